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
        (["--dtype", "int8"], "dtype must be one of int16"),
        (["--reference", "mastoids"], "reference must be one of 'average', None"),
        (["--jobs", 0], "n_jobs must be a number of processes"),
        (["--append"], "is not a SignalStore"),
        (["--part", "3"], "--part '3' is not of the form N/PARTS, such as 3/8"),
        (["--part", "9/8"], "part is 9 of 8; parts are numbered from 1 to 8"),
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
        (["store"], "expected SOURCE and STORE, or --recipe and STORE; got 1 folders"),
        (["--recipe", "tueg=tueg", "a", "store"], "expected STORE after --recipe; got 2 folders"),
        (
            ["a", "store", "--share", "tueg=1"],
            "--exclude, --share, --set and --labels need --recipe",
        ),
        (["--recipe", "tueg=tueg", "store", "--append", "--dtype", "int16"], "omit --dtype"),
        (["a", "store", "--append", "--part", "1/2"], "uses the store's own settings; omit --part"),
        (["a", "store", "--join", "--channel", "C3"], "--join reads no recording; omit --channel"),
        (["a", "store", "--join", "--recipe", "tueg=tueg"], "omit --recipe"),
        (["a", "--join"], "expected the folders of stores, and STORE, after --join"),
    ],
)
def test_arguments_that_do_not_fit_together(arguments, message):
    code, output = invoke(*arguments)
    assert code == 2
    assert message in output
