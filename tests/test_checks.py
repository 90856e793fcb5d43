"""Checks of what users pass, and warnings that point to the code of users."""

from __future__ import annotations

import warnings
from threading import Thread
from types import NoneType

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars._common.checks import (
    boolean,
    check_parameters,
    choice,
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
    ("name", "value", "error", "message"),
    [
        ("count", 0, ValueError, "at least 1, got 0"),
        ("count", 2**63, ValueError, "got 9223"),
        ("count", 1.0, TypeError, "integer .*got 1.0"),
        ("count", True, TypeError, "got True"),
        ("rate", 0, ValueError, "positive .*got 0"),
        ("rate", float("nan"), ValueError, "got nan"),
        ("rate", float("inf"), ValueError, "got inf"),
        ("bounded", 2e12, ValueError, r"1e\+12, got 2"),
        ("share", 1.0, ValueError, r"\[0, 1\), got 1\.0"),
        ("task", "mp3", ValueError, "'pars', 'mae', got 'mp3'"),
        ("flag", 1, TypeError, "got 1"),
        ("folder", 3, TypeError, "a path, or None, got 3"),
        ("workers", -1, ValueError, "at least 0, or None, got -1"),
    ],
)
def test_what_is_refused(name, value, error, message):
    with pytest.raises(error, match=message):
        check_parameters({name: value}, RULES)


def _warn_quietly_beside_another_thread():
    with quiet():
        warn_user("here")
        other = Thread(target=warn_user, args=("in another thread",))
        other.start()
        other.join()


def test_rates_agree_up_to_rounding():
    assert is_same_rate(128.0, 128.0000001)  # as some headers round it
    assert not is_same_rate(200.0, 200.1)
    assert is_same_rate(None, 200.0)
    assert is_same_rate(200.0, None)


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
