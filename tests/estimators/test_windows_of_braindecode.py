"""Every way of braindecode to make windows gives a model that can be fitted and predicts."""

from __future__ import annotations

import warnings

import mne
import numpy as np
import pytest
from braindecode.datasets import (
    create_from_mne_epochs,
    create_from_mne_raw,
    create_from_X_y,
)
from support.small_estimators import classifier

SFREQ, N_TIMES, NAMES = 100.0, 200, ["C3", "Cz", "C4"]
#: The windows that windowers of braindecode cut.
CUT = dict(window_size_samples=N_TIMES, window_stride_samples=N_TIMES, drop_last_window=False)
TRIALS = dict(trial_start_offset_samples=0, trial_stop_offset_samples=0, mapping={"a": 0, "b": 1})


def noise(n_chans: int) -> np.ndarray:
    return 1e-5 * np.random.default_rng(0).normal(size=(n_chans, int(24 * SFREQ)))


def recording() -> mne.io.RawArray:
    """24 seconds, in which the classes of two seconds each alternate."""
    raw = mne.io.RawArray(noise(3), mne.create_info(NAMES, SFREQ, "eeg"), verbose="error")
    onsets = np.arange(0, 24, 2)
    return raw.set_annotations(mne.Annotations(onsets, 2.0, ["a", "b"] * 6), verbose="error")


def from_arrays():
    X = noise(3).reshape(3, 12, N_TIMES).transpose(1, 0, 2)
    return create_from_X_y(X, np.arange(12) % 2, False, SFREQ, NAMES)


def from_mne_raw():
    raws = [recording(), recording()]
    return create_from_mne_raw(raws, **TRIALS, **CUT, descriptions=[{"subject": i} for i in "12"])


def from_mne_epochs():
    cut = dict(tmin=0, tmax=(N_TIMES - 1) / SFREQ, baseline=None, preload=True, verbose="error")
    return create_from_mne_epochs([mne.Epochs(recording(), **cut)], **CUT)


@pytest.mark.parametrize("make", [from_arrays, from_mne_raw, from_mne_epochs])
def test_fit_and_predict(make):
    with mne.utils.use_log_level("error"), warnings.catch_warnings(action="ignore"):
        windows_ds = make()
    clf = classifier(pretext=None, validation=0).fit(windows_ds)
    assert [ch["ch_name"] for ch in clf.chs_info_] == NAMES
    classes = {int(y) for ds in windows_ds.datasets for y in np.atleast_1d(ds.y)}
    assert set(clf.classes_) == classes
    probabilities = clf.predict_proba(windows_ds)
    assert probabilities.shape == (len(windows_ds), len(classes))
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert set(clf.predict(windows_ds)) <= classes


@pytest.mark.filterwarnings("ignore:`drop_last_window` is deprecated")
def test_names_decide_where_no_channel_has_a_type():
    X = noise(4).reshape(4, 12, N_TIMES).transpose(1, 0, 2)
    windows_ds = create_from_X_y(X, np.arange(12) % 2, False, SFREQ, ["C3", "x1", "EOG", "Cz"])
    with pytest.warns(UserWarning, match="EOG"):
        clf = classifier(pretext=None).fit(windows_ds)
    assert [ch["ch_name"] for ch in clf.chs_info_] == ["C3", "x1", "Cz"]
