"""No writer overwrites what another program wrote."""

from __future__ import annotations

import pytest

from braindecode_pars._common.files import check_may_write


def test_a_new_folder_an_empty_folder_and_one_of_this_kind(tmp_path):
    check_may_write(tmp_path / "new", "a store", is_ours=False)
    check_may_write(tmp_path, "a store", is_ours=False)
    # What a killed process leaves behind is no content.
    (tmp_path / ".lock").touch()
    (tmp_path / ".writing-abc").mkdir()
    check_may_write(tmp_path, "a store", is_ours=False)
    (tmp_path / "store.json").touch()
    check_may_write(tmp_path, "a store", is_ours=True)


def test_the_error_names_what_is_in_the_way(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"contains thesis\.tex, and is not the folder of a store"):
        check_may_write(tmp_path, "a store", is_ours=False)
    (tmp_path / "config.json").touch()
    with pytest.raises(ValueError, match=r"contains config\.json and 1 more, and is not"):
        check_may_write(tmp_path, "a store", is_ours=False)
    with pytest.raises(ValueError, match=r"thesis\.tex is a file; pass a folder for a store"):
        check_may_write(tmp_path / "thesis.tex", "a store", is_ours=False)
