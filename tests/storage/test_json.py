"""Values as JSON and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from braindecode_pars._common.files import as_read, plain, read_json, to_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("W"), "W"),
        (torch.tensor(2), 2),
        (float("nan"), None),
        (pd.NA, None),
        (None, None),
        (float("inf"), "inf"),
        (Path("a"), "a"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_one_value(value, expected):
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


def test_values_are_read_back(tmp_path):
    given = {"n": np.int64(3), "subjects": ["ä", 1, None], "folder": tmp_path}
    (tmp_path / "a.json").write_text(to_json(given), encoding="utf-8")
    assert read_json(tmp_path / "a.json") == as_read(given)
    assert as_read(given) == {"n": 3, "subjects": ["ä", 1, None], "folder": str(tmp_path)}


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff{")
    with pytest.raises(ValueError, match=r"a\.json is damaged or no"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"a\.json .* list, not a JSON object"):
        read_json(tmp_path / "a.json")
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "b.json")
