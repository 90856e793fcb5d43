"""Findings as values: texts, warnings and processes."""

from __future__ import annotations

import pickle
import warnings

import pytest
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning, InconsistentVersionWarning

from braindecode_pars._common import findings
from braindecode_pars._common.findings import Finding, FindingWarning, NotConverged

FLAT = Finding("flat_windows", dict(n=3, n_windows=9, rows=[0, 2], window=17))


def test_a_warning_is_a_user_warning_with_kind_and_values_in_other_processes():
    # A local function, because workers cannot import this file.
    def warned(n):
        caught = []
        with findings.collected(caught):
            warnings.simplefilter("always")
            findings.warn(Finding("flat_windows", FLAT.values | dict(n=n)))
            findings.warn(Finding("first_epoch_best", dict(n_epochs=n)), NotConverged)
        return caught

    of_workers = Parallel(n_jobs=2)(delayed(warned)(n) for n in (3, 4))
    (flat, category, *_), (epochs, *_) = pickle.loads(pickle.dumps(of_workers[1]))
    assert (flat.kind, flat.values["n"], category) == ("flat_windows", 4, FindingWarning)
    assert str(flat) == flat.finding.text
    assert "4 of 9 windows" in str(flat)
    assert isinstance(flat, UserWarning)
    assert isinstance(epochs, ConvergenceWarning)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        findings.warn_once([*of_workers, []])
    assert [(w.message.kind, w.message.finding.n, w.message.n_folds) for w in caught] == [
        ("flat_windows", 2, 3),
        ("first_epoch_best", 2, 3),
    ]
    assert str(caught[0].message) == f"In 2 of 3 folds: {FLAT.text}"


def test_findings_with_other_texts_are_not_merged():
    other = Finding("flat_windows", FLAT.values | dict(rows=[1], n=5))
    assert other.identity == FLAT.identity  # rows are numbers
    one, two = (
        Finding("bad_channels", dict(channels=[name], n=1, n_windows=2)) for name in ("C3", "C4")
    )
    assert one.identity != two.identity


def test_warnings_of_a_class_with_other_arguments_are_shown():
    caught = []
    with findings.collected(caught):
        warnings.simplefilter("always")
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name="SVC", current_sklearn_version="2", original_sklearn_version="1"
            ),
            stacklevel=1,
        )
    with pytest.warns(UserWarning, match="SVC"):
        findings.warn_once([caught])


def test_kinds_are_silent_in_a_context_only():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with findings.silent("other_unit"), findings.silent("flat_windows"):
            findings.warn(FLAT)
        with findings.silent("other_unit"), pytest.raises(FindingWarning):
            findings.warn(FLAT)
