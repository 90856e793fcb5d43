"""Warnings point to the code of the user."""

from __future__ import annotations

from threading import Thread

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.small_estimators import classifier

from braindecode_pars._common.checks import quiet, warn_user
from braindecode_pars.estimators.transformers import LogBandPower
from braindecode_pars.evaluation import leave_one_subject_out


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


def test_the_line_outside_the_package_however_deep_the_call(nights):
    y = [-1 if i % 3 == 0 else i % 3 for i in range(len(nights))]
    with pytest.warns(UserWarning, match="32 of 96") as caught:
        classifier(pretext=None, validation=0).fit(nights, y)
    assert {warning.filename for warning in caught} == {__file__}


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
    with pytest.warns(UserWarning, match="unlabelled") as caught:
        leave_one_subject_out({"band power": probe}, marked, metrics=["accuracy"], verbose=0)
    assert len([w for w in caught if "unlabelled" in str(w.message)]) == 1
    assert caught[0].filename == __file__
