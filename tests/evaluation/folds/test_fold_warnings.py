"""A warning of every fold is shown once, with its text, class and line."""

from __future__ import annotations

import pickle
import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from braindecode_pars.evaluation.folds import collected, warn_once


def fold(n, error=None):
    with collected() as found:
        warnings.warn(f"Channel C3 is bad in {n} of 9 windows.", UserWarning, stacklevel=2)
        warnings.warn(f"Channel C{n} is flat.", RuntimeWarning, stacklevel=2)
        if error is not None:
            raise error
    return pickle.loads(pickle.dumps(found))


def test_warnings_that_differ_in_the_number_of_windows_only_are_shown_once():
    shown = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (3, 4):
            warn_once(fold(n), shown)
    assert [(str(w.message), w.category, w.filename) for w in caught] == [
        ("Channel C3 is bad in 3 of 9 windows.", UserWarning, __file__),
        ("Channel C3 is flat.", RuntimeWarning, __file__),
        ("Channel C4 is flat.", RuntimeWarning, __file__),
    ]


def test_warnings_of_trainings_that_differ_in_their_losses_are_shown_once():
    """Each fold ends at another loss."""
    shown = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for loss, n_steps in ((0.991, "1,200"), (0.987, "36")):
            with collected() as found:
                text = f"ended at {loss} after {n_steps} steps"
                warnings.warn(text, ConvergenceWarning, stacklevel=1)
            warn_once(found, shown)
    assert [str(w.message) for w in caught] == ["ended at 0.991 after 1,200 steps"]


def test_the_warnings_before_an_error_are_shown():
    with pytest.raises(KeyError), pytest.warns(UserWarning, match="C3 is bad"):  # noqa: SIM117
        with pytest.warns(RuntimeWarning, match="flat"):
            fold(3, KeyError("C3"))


def test_a_filter_that_makes_errors_holds_in_folds():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="C3 is bad"):
            fold(3)
