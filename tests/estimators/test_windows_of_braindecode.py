"""Every way of braindecode to make windows gives a model that can be fitted and predicts."""

from __future__ import annotations

import warnings

import mne
import mne_bids
import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import (
    BaseConcatDataset,
    BIDSDataset,
    MOABBDataset,
    RawDataset,
    SleepPhysionet,
    create_from_mne_epochs,
    create_from_mne_raw,
    create_from_X_y,
)
from braindecode.datasets.tuh import _TUHAbnormalMock
from braindecode.preprocessing import create_fixed_length_windows, create_windows_from_events
from support.small_estimators import classifier

from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.preprocessing import Preprocessing

# Of MOABB and braindecode, whose arguments may be removed one day.
pytestmark = pytest.mark.filterwarnings("ignore:Montage name:FutureWarning")

SFREQ, N_TIMES, NAMES = 100.0, 200, ["C3", "Cz", "C4"]
#: The windows that windowers of braindecode cut.
CUT = dict(window_size_samples=N_TIMES, window_stride_samples=N_TIMES, drop_last_window=False)
TRIALS = dict(trial_start_offset_samples=0, trial_stop_offset_samples=0, mapping={"a": 0, "b": 1})


def noise(n_chans: int, n_seconds: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return 1e-5 * rng.normal(size=(n_chans, int(n_seconds * SFREQ)))


def recording(names=NAMES, kinds="eeg", descriptions=("a", "b")) -> mne.io.RawArray:
    """One minute, in which each class has every other stretch of two seconds."""
    info = mne.create_info(list(names), SFREQ, kinds)
    raw = mne.io.RawArray(noise(len(names), 60), info, verbose="error")
    onsets = np.arange(0, 60, 2)
    labels = [descriptions[i % len(descriptions)] for i in range(len(onsets))]
    return raw.set_annotations(mne.Annotations(onsets, 2.0, labels), verbose="error")


def from_arrays(tmp_path, monkeypatch):
    X = noise(3, 60).reshape(3, 30, N_TIMES).transpose(1, 0, 2)
    return create_from_X_y(X, np.arange(30) % 2, False, SFREQ, NAMES)


def from_mne_raw(tmp_path, monkeypatch):
    raws = [recording(), recording()]
    return create_from_mne_raw(raws, **TRIALS, **CUT, descriptions=[{"subject": i} for i in "12"])


def from_mne_epochs(tmp_path, monkeypatch):
    cut = dict(tmin=0, tmax=(N_TIMES - 1) / SFREQ, baseline=None, preload=True, verbose="error")
    return create_from_mne_epochs([mne.Epochs(recording(), **cut)], **CUT)


def from_moabb(tmp_path, monkeypatch):
    for name in ("MNE_DATA", "_MNE_FAKE_HOME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    from moabb.datasets.fake import FakeDataset

    sizes = dict(n_sessions=1, n_runs=1, n_subjects=2, n_events=8, duration=30, sfreq=SFREQ)
    fake = FakeDataset(["left_hand", "right_hand"], channels=tuple(NAMES), **sizes)
    mapping = {"left_hand": 0, "right_hand": 1}
    return create_windows_from_events(MOABBDataset(fake), **{**TRIALS, "mapping": mapping})


def from_bids(tmp_path, monkeypatch):
    raw = recording()
    raw.set_meas_date(0).info["line_freq"] = 50
    path = mne_bids.BIDSPath("01", task="rest", datatype="eeg", root=tmp_path / "bids")
    mne_bids.write_raw_bids(
        raw, path, format="BrainVision", allow_preload=True, verbose="error", event_id=None
    )
    return create_windows_from_events(BIDSDataset(tmp_path / "bids", preload=True), **TRIALS, **CUT)


def from_tuh(tmp_path, monkeypatch):
    """Braindecode has a simulated corpus of its own; the rate of its recordings is 10 Hz."""
    tuh = _TUHAbnormalMock("tuh_abnormal_eeg/v2.0.0/edf", target_name="pathological", n_jobs=1)
    cut = dict(window_size_samples=400, window_stride_samples=400, drop_last_window=True)
    return create_fixed_length_windows(tuh, mapping={True: 1, False: 0}, **cut)


def from_sleep_physionet(tmp_path, monkeypatch):
    """A night of the corpus as its reader leaves it, with channels that are not EEG."""
    names = ["EEG Fpz-Cz", "EEG Pz-Oz", "EOG horizontal", "EMG submental", "Resp oro-nasal"]
    stages = [f"Sleep stage {stage}" for stage in "W12R"]
    night, hypnogram = tmp_path / "SC4001E0-PSG.edf", tmp_path / "SC4001EC-Hypnogram.txt"
    raw = recording([*names, "Event marker", "Temp rectal"], descriptions=stages)
    raw.annotations.save(hypnogram, verbose="error")
    mne.export.export_raw(night, raw.set_annotations(None), verbose="error")
    monkeypatch.setattr(
        "braindecode.datasets.sleep_physionet.fetch_data", lambda *_, **__: [(night, hypnogram)]
    )
    nights = SleepPhysionet([0], [1], crop_wake_mins=0, load_eeg_only=False, preload=True)
    mapping = dict(zip(stages, (0, 1, 1, 2), strict=True))
    return create_windows_from_events(nights, **{**TRIALS, "mapping": mapping}, **CUT)


#: Function that makes windows -> channels that a model uses, or their number, and channels that the
#: warning names, since they are not EEG.
MAKERS = {
    from_arrays: (NAMES, []),
    from_mne_raw: (NAMES, []),
    from_mne_epochs: (NAMES, []),
    from_moabb: (NAMES, ["stim"]),
    from_bids: (NAMES, []),
    from_tuh: (21, []),
    from_sleep_physionet: (["Fpz-Cz", "Pz-Oz"], ["EOG horizontal", "EMG submental"]),
}


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_fit_and_predict(make, tmp_path, monkeypatch):
    with mne.utils.use_log_level("error"), warnings.catch_warnings(action="ignore"):
        windows_ds = make(tmp_path, monkeypatch)
    channels, others = MAKERS[make]
    clf = classifier(pretext=None, validation=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(windows_ds)
    told = [str(warning.message) for warning in caught if "not EEG" in str(warning.message)]
    assert len(told) == bool(others)
    assert all(name in told[0] for name in others)
    used = [ch["ch_name"] for ch in clf.chs_info_]
    assert channels in (used, len(used))
    classes = {int(y) for ds in windows_ds.datasets for y in np.atleast_1d(ds.y)}
    assert set(clf.classes_) == classes
    probabilities = clf.predict_proba(windows_ds)
    assert probabilities.shape == (len(windows_ds), len(classes))
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert set(clf.predict(windows_ds)) <= classes


@pytest.mark.filterwarnings("ignore:`drop_last_window` is deprecated")
def test_names_decide_where_no_channel_has_a_type():
    X = noise(4, 60).reshape(4, 30, N_TIMES).transpose(1, 0, 2)
    windows_ds = create_from_X_y(X, np.arange(30) % 2, False, SFREQ, ["C3", "x1", "EOG", "Cz"])
    with pytest.warns(UserWarning, match="EOG"):
        clf = classifier(pretext=None).fit(windows_ds)
    assert [ch["ch_name"] for ch in clf.chs_info_] == ["C3", "x1", "Cz"]
    # The same recording, continuous: filters of the training are applied to its channels.
    clf.preprocessing_ = Preprocessing(sfreq=SFREQ, band=(5.0, 20.0), window_seconds=2.0)
    raws = [recording(["C3", "x1", "Cz"], kinds) for kinds in ("misc", "eeg")]
    tables = [clf.predict_raw(raw) for raw in raws]
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.filterwarnings("ignore:`drop_last_window` is deprecated")
def test_all_are_used_where_names_say_nothing():
    windows_ds = create_from_X_y(noise(3, 60).reshape(-1, 3, N_TIMES), [0, 1] * 15, False, SFREQ)
    clf = classifier(pretext=None, electrode_position=False).fit(windows_ds)
    assert [ch["ch_name"] for ch in clf.chs_info_] == ["0", "1", "2"]


def test_a_store_of_recordings_without_types(tmp_path):
    raws = BaseConcatDataset([RawDataset(recording(kinds="misc"), {"subject": 1})])
    store = SignalStore.create(tmp_path / "store", raws, verbose=0)
    assert [list(names) for names in store.recordings["ch_names"]] == [NAMES]
