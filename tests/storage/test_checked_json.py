"""Damage and edits of a JSON file are noticed."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars._common.files import read_checked, write_checked

CONTENT = {"n": np.int64(3), "names": ["ä", None], "loss": 0.1}


def test_round_trip(tmp_path):
    file = tmp_path / "a.json"
    write_checked(file, CONTENT)
    assert read_checked(file) == {"n": 3, "names": ["ä", None], "loss": 0.1}


def test_edits_and_other_files_are_refused(tmp_path):
    file = tmp_path / "a.json"
    write_checked(file, CONTENT)
    file.write_text(file.read_text().replace("0.1", "0.2"))
    with pytest.raises(ValueError, match=r"a\.json does not match its checksum"):
        read_checked(file)
    file.write_text('{"loss": 0.2}')
    with pytest.raises(ValueError, match=r"has no checksum; it is of version 0\.1\.0, or was"):
        read_checked(file)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        read_checked(file)
    file.mkdir()
    with pytest.raises(ValueError, match=r"cannot be read \(Is a directory\)"):
        read_checked(file)
