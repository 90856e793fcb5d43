"""``braindecode-pars store``: the store, the printed summary, and errors."""

from __future__ import annotations

import pytest
from support.store_command import invoke, make_tree


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dtype", "int8"], "dtype must be"),
        (["--reference", "mastoids"], "reference must be"),
        (["--jobs", 0], "n_jobs must be"),
        (["--append"], "is not a SignalStore"),
        (["--part", "3"], "N/PARTS"),
        (["--part", "9/8"], "9 of 8"),
    ],
)
def test_user_errors_end_without_a_traceback(tree, tmp_path, arguments, message):
    code, output = invoke(tree, tmp_path / "store", *arguments)
    assert code == 1
    assert output.startswith("Error: ")
    assert message in output
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["store"], "got 1 folders"),
        (["--recipe", "tueg=tueg", "a", "store"], "got 2 folders"),
        (["a", "store", "--share", "tueg=1"], "--recipe; omit --share"),
        (["--recipe", "tueg=tueg", "store", "--append", "--dtype", "int16"], "omit --dtype"),
        (["a", "store", "--append", "--part", "1/2"], "omit --part"),
        (["a", "store", "--join", "--channel", "C3"], "omit --channel"),
        (["a", "store", "--join", "--recipe", "tueg=tueg"], "omit --recipe"),
        (["a", "--join"], "after --join"),
    ],
)
def test_arguments_that_do_not_fit_together(arguments, message):
    code, output = invoke(*arguments)
    assert code == 2
    assert message in output
