"""Checks of what users pass, lists in sentences, and warnings that point to the code of users."""

from __future__ import annotations

import warnings
from threading import Thread
from types import NoneType

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import plotting
from braindecode_pars._common.checks import (
    boolean,
    check_parameters,
    check_positive,
    check_same_rate,
    choice,
    format_list,
    instance,
    integer,
    is_same_rate,
    number,
    optional,
    positive,
    quiet,
    warn_user,
)
from braindecode_pars.baselines.window_features import LogBandPower
from braindecode_pars.evaluation import leave_one_subject_out

RULES = dict(
    count=integer(1),
    rate=positive(),
    bounded=positive(1e12),
    share=number("in [0, 1)", lambda value: 0 <= value < 1),
    task=choice("pars", "mae"),
    flag=boolean(),
    folder=instance("a path, or None", str, NoneType),
    workers=optional(integer(0)),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 1),
        ("count", np.int64(3)),
        ("rate", 2),
        ("rate", np.float32(0.5)),
        ("share", 0),
        ("task", "mae"),
        ("flag", True),
        ("flag", np.bool_(False)),
        ("folder", None),
        ("workers", None),
        ("workers", 0),
        ("unknown", object()),
    ],
)
def test_what_is_accepted(name, value):
    check_parameters({name: value}, RULES)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("count", 0, ValueError, "at least 1, got 0"),
        ("count", 2**63, ValueError, "got 9223"),
        ("count", 1.0, TypeError, "integer .*got 1.0"),
        ("count", True, TypeError, "got True"),
        ("count", np.bool_(True), TypeError, "integer"),
        ("rate", 0, ValueError, "positive .*got 0"),
        ("rate", float("nan"), ValueError, "got nan"),
        ("rate", float("inf"), ValueError, "got inf"),
        ("rate", "1", TypeError, "'1'"),
        ("bounded", 2e12, ValueError, r"1e\+12, got 2"),
        ("share", 1.0, ValueError, r"\[0, 1\), got 1\.0"),
        ("share", float("nan"), ValueError, "got nan"),
        ("task", "mp3", ValueError, "'pars', 'mae', got 'mp3'"),
        ("task", 1, ValueError, "got 1"),
        ("flag", 1, TypeError, "got 1"),
        ("folder", 3, TypeError, "a path, or None, got 3"),
        ("workers", -1, ValueError, "at least 0, or None, got -1"),
        ("workers", "two", TypeError, "'two'"),
    ],
)
def test_what_is_refused(name, value, error, message):
    with pytest.raises(error, match=message):
        check_parameters({name: value}, RULES)


def test_the_owner_and_the_first_of_several_numbers_are_named():
    with pytest.raises(ValueError, match=r"^PARSClassifier: count "):
        check_parameters({"count": 0}, RULES, "PARSClassifier")
    with pytest.raises(ValueError, match=r"high .*-1"):
        check_positive(low=0.5, high=-1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (200.0, 200.0, True),
        (128.0, 128.0000001, True),  # as some headers round it
        (200.0, 200.1, False),
        (None, 200.0, True),
        (200.0, None, True),
        (None, None, True),
    ],
)
def test_rates_agree_up_to_rounding(one, other, same):
    assert is_same_rate(one, other) is same


def test_the_error_has_both_rates_and_the_remedy():
    check_same_rate(100.0, None, "The windows are", "the model was trained")
    with pytest.raises(ValueError, match=r"100 Hz.* 200 Hz.*[Rr]esample"):
        check_same_rate(100.0, 200.0, "The windows are", "the model was trained")


def test_the_first_ones_and_how_many_more_there_are():
    names = [f"EEG {n}" for n in range(11)]
    assert format_list(names[:2]) == "EEG 0, EEG 1"
    assert format_list(names[:10]).endswith("EEG 9")
    assert format_list(names).endswith("EEG 9 and 1 more")
    assert format_list(names, max_items=2) == "EEG 0, EEG 1 and 9 more"
    assert format_list([]) == ""


def test_a_direct_caller():
    with pytest.warns(UserWarning, match="C3") as caught:
        warn_user("Channel C3 is flat.")
    assert caught[0].filename == __file__


def _warn_quietly_beside_another_thread():
    with quiet():
        warn_user("here")
        other = Thread(target=warn_user, args=("in another thread",))
        other.start()
        other.join()


def test_quiet_is_quiet_in_its_own_thread_only():
    with pytest.warns(UserWarning, match="in another thread") as caught:
        _warn_quietly_beside_another_thread()
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="afterwards"):
        warn_user("afterwards")


@pytest.mark.parametrize(("action", "n_shown"), [("default", 1), ("always", 3)])
def test_the_same_warning_of_every_fold_comes_once(action, n_shown):
    """Python forgets what it has shown whenever filters change, as scikit-learn's do in a fold."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        for fold in range(3):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "of a library that is imported late")
                warn_user("The sampling rate is unknown.")
            warnings.filterwarnings("ignore", f"of library {fold}")
    assert len(caught) == n_shown
    with pytest.warns(UserWarning, match="elsewhere"):
        warn_user("The sampling rate is unknown, elsewhere.")


def test_the_line_of_the_user_in_a_pipeline(nights):
    """Between the user's line and this package is scikit-learn."""
    raw = nights.datasets[0].raw.copy()
    raw.info["bads"] = ["C4"]
    one = nights.datasets[0]
    windows = type(one)(raw, one.metadata, {"subject": 1})
    probe = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression(max_iter=1000))
    with pytest.warns(UserWarning, match="C4") as caught:
        probe.fit(windows, one.y)
    assert caught[0].filename == __file__


def test_protocols_warn_once(nights):
    probe = make_pipeline(LogBandPower(), LogisticRegression(max_iter=1000))
    marked = type(nights)(nights.datasets, target_transform=lambda label: label % 3 - 1)
    with pytest.warns(UserWarning, match="unlabeled") as caught:
        leave_one_subject_out({"log band power": probe}, marked, metrics=["accuracy"], verbose=0)
    assert len([w for w in caught if "unlabeled" in str(w.message)]) == 1
    assert caught[0].filename == __file__


def test_scores_that_are_not_numbers_are_named():
    table = pd.DataFrame(
        dict(metric="kappa", value=["a"], method="m", subject=1, n_train_subjects=1)
    )
    with pytest.raises(TypeError, match="The column value must be numbers, got"):
        plotting.subject_dots(table)
