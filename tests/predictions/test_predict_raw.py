"""Predictions of continuous recordings, against windows that braindecode cuts from them."""

from __future__ import annotations

import copy
import json

import mne
import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import Preprocessor, create_fixed_length_windows, preprocess
from scipy.stats import entropy
from sklearn.exceptions import NotFittedError
from support.small_estimators import classifier

from braindecode_pars import PARSClassifier, datasets
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.predictions import to_bids_events
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.preprocessing import Preprocessing

STAGES = ("W", "N1", "N2", "N3", "R")
CHANNELS = ["C3", "C4", "F3"]


@pytest.fixture(scope="module")
def windows():
    """24 windows of 30 s, with a class of five for each."""
    nights = datasets.simulated.sleep(2, 0.1, n_chans=3, sfreq=100, random_state=3)
    return as_windows(nights).with_labels(np.arange(24) % 5)


@pytest.fixture(scope="module")
def clf(windows):
    fitted = classifier(pretext=None, validation=0).fit(windows)
    fitted.preprocessing_ = Preprocessing(band=(0.5, 30.0), notch=(45.0,), reference="average")
    fitted.class_names_ = dict(enumerate(STAGES))
    return fitted


def recording(names=CHANNELS, sfreq=256.0, seconds=200.0, seed=0):
    rng = np.random.default_rng(seed)
    samples = 2e-5 * rng.standard_normal((len(names), round(sfreq * seconds))).cumsum(axis=1) / 20
    return mne.io.RawArray(samples, mne.create_info(names, sfreq, "eeg"), verbose="error")


def annotated(raw, *annotations):
    """Add annotations as (onset, duration, description)."""
    return raw.set_annotations(raw.annotations + mne.Annotations(*zip(*annotations, strict=True)))


def probabilities(frame):
    return frame.filter(like="probability_").to_numpy()


def with_attributes(clf, **attributes):
    changed = copy.copy(clf)
    vars(changed).update(attributes)
    return changed


def braindecode_windows(raw, stride=3000):
    """Preprocess as the model of ``clf`` expects, and cut windows, with braindecode alone."""
    dataset = BaseConcatDataset([RawDataset(raw.copy(), {"subject": 1})])
    steps = [
        Preprocessor("set_eeg_reference", apply_on_array=False, ref_channels="average"),
        Preprocessor("resample", apply_on_array=False, sfreq=100),
        Preprocessor("filter", apply_on_array=False, l_freq=0.5, h_freq=30.0),
        Preprocessor("notch_filter", apply_on_array=False, freqs=45.0),
    ]
    preprocess(dataset, steps)
    return create_fixed_length_windows(
        dataset,
        window_size_samples=3000,
        window_stride_samples=stride,
        on_last_window="drop",
    )


def test_a_row_is_a_window_that_braindecode_cuts(clf):
    raw = recording()
    frame = clf.predict_raw(raw)
    expected = clf.predict_proba(braindecode_windows(raw))
    assert len(frame) == len(expected) == 6
    np.testing.assert_allclose(probabilities(frame), expected, atol=1e-6)
    assert frame["label"].tolist() == [STAGES[i] for i in expected.argmax(axis=1)]
    np.testing.assert_allclose(frame["entropy"], entropy(expected, axis=1), rtol=1e-5)
    assert frame["onset"].tolist() == [0, 30, 60, 90, 120, 150]
    assert (frame["duration"] == 30).all()


def test_columns_and_attributes(clf):
    frame = clf.predict_raw(recording())
    classes = [f"probability_{stage}" for stage in STAGES]
    names = ["onset", "duration", "label", *classes, "entropy", "n_chans"]
    assert frame.columns.tolist() == names
    assert frame.attrs["classes"] == list(STAGES)
    assert json.loads(json.dumps(frame.attrs)) == frame.attrs
    assert frame.attrs["findings"]["windows"] == 6
    names = [f"{name} - mean of C3, C4, F3" for name in CHANNELS]
    assert list(frame.attrs["channels"].values()) == names
    labels = with_attributes(clf, class_names_=None).predict_raw(recording())["label"]
    assert labels.tolist() == [str(STAGES.index(label)) for label in frame["label"]]


def test_overlap_is_the_mean_of_the_windows_by_shared_time(clf):
    raw, overlap = recording(), 0.7
    stride = round((1 - overlap) * 3000)
    windows = braindecode_windows(raw, stride=100)  # of which some are used
    every = clf.predict_proba(windows)
    starts = windows.get_metadata()["i_start_in_trial"].to_numpy()
    frame = clf.predict_raw(raw, overlap=overlap)
    for row in range(len(frame)):
        total, weight = np.zeros(5), 0
        for start, probability in zip(starts, every, strict=True):
            shared = min(start, row * 3000) + 3000 - max(start, row * 3000)
            if (start % stride == 0 or start % 3000 == 0) and shared > 0:
                total += shared * probability
                weight += shared
        np.testing.assert_allclose(probabilities(frame)[row], total / weight, atol=1e-6)


def test_a_file_and_a_raw_give_the_same(clf, tmp_path):
    raw = recording()
    before = raw.get_data().copy()
    frame = clf.predict_raw(raw)
    np.testing.assert_array_equal(raw.get_data(), before)
    assert raw.info["sfreq"] == 256
    file = tmp_path / "night_raw.fif"
    raw.save(file, fmt="double", verbose="error")
    lazy = mne.io.read_raw_fif(file, verbose="error")
    for source in (file, str(file), lazy):
        predicted = clf.predict_raw(source)
        pd.testing.assert_frame_equal(predicted, frame)
        assert predicted.attrs["recording"] == "night_raw.fif"
    assert not lazy.preload


def test_gaps_and_bad_annotations_are_not_predicted(clf):
    clf = with_attributes(clf, preprocessing_=Preprocessing())
    first, second = recording(sfreq=100.0, seconds=95), recording(sfreq=100.0, seconds=105, seed=1)
    raw = mne.concatenate_raws([first, second], verbose="error")  # row 3 has the gap
    annotated(raw, (10, 5, "N2"), (179, 0, "bad movement"))  # row 5
    frame = clf.predict_raw(raw)
    dropped = frame["label"].isna()
    assert dropped.tolist() == [False, False, False, True, False, True]
    assert all(label is None for label in frame["label"][dropped])
    assert frame.filter(regex="probability|entropy")[dropped].isna().all(axis=None)
    assert frame["onset"].notna().all()
    assert frame.attrs["findings"]["windows_not_predicted"] == 2
    # The others are those of braindecode.
    windows = create_fixed_length_windows(
        BaseConcatDataset([RawDataset(raw)]),
        window_size_samples=3000,
        window_stride_samples=3000,
        on_last_window="drop",
    )
    expected = clf.predict_proba(windows)[~dropped]
    np.testing.assert_allclose(probabilities(frame)[~dropped], expected, atol=1e-6)
    # Windows in between do not reach over a gap either.
    half = clf.predict_raw(raw, overlap=0.5)
    assert (half["label"].isna() == dropped).all()


@pytest.mark.parametrize("mark", ["BAD_move", "bad"])
def test_windows_that_are_excluded_from_training_are_not_predicted(clf, mark, tmp_path):
    """Annotations are in the file, or in the BIDS events file in the same folder."""
    clf = with_attributes(clf, preprocessing_=Preprocessing())
    raw, file = recording(sfreq=100.0), tmp_path / "sub-99_task-rest_eeg.fif"
    raw.save(file, verbose="error")
    rows = f"0\tabc\tsleep\n35\t10\t{mark}\n149.9\tn/a\t{mark}\n"
    (tmp_path / "sub-99_task-rest_events.tsv").write_text(f"onset\tduration\ttrial_type\n{rows}")
    annotated(raw, (35, 10, mark), (149.9, 0, mark))
    used = fixed_windows(raw, 30.0).metadata["i_start_in_trial"] / 3000
    for source in (raw, file):
        frame = clf.predict_raw(source)
        assert frame.index[frame["label"].notna()].tolist() == used.tolist() == [0, 2, 3, 5]
    events = to_bids_events(frame, tmp_path / "night_events.tsv").read_text()
    assert events.count("\t30.0\tn/a\t") == 2


def test_bad_times_of_other_channels_do_not_count(clf, tmp_path, monkeypatch):
    clf = with_attributes(clf, preprocessing_=Preprocessing())
    raw = recording([*CHANNELS, "EOG"], sfreq=100.0, seconds=90)
    file = tmp_path / "night_raw.fif"
    monkeypatch.setenv("HOME", str(tmp_path))
    for names, n_dropped in ((("EOG",), 0), (("EOG", "F3"), 1), ((), 1)):
        marked = raw.copy().set_annotations(mne.Annotations(40, 1, "BAD", ch_names=[names]))
        marked.save(file, overwrite=True, verbose="error")
        for source in (marked, file, "~/night_raw.fif"):
            frame = clf.predict_raw(source)
            assert frame["label"].isna().sum() == n_dropped


def test_a_table_of_events_that_cannot_be_read_is_named(clf, tmp_path):
    """It may have bad times."""
    recording().save(tmp_path / "sub-99_task-rest_eeg.fif", verbose="error")
    table = 'onset\ttrial_type\n1\t"BAD\n'
    (tmp_path / "sub-99_task-rest_events.tsv").write_text(table)
    with pytest.raises(ValueError, match=r"sub-99_task-rest_events\.tsv cannot .*UTF-8"):
        clf.predict_raw(tmp_path / "sub-99_task-rest_eeg.fif")


def test_without_preprocessing_the_samples_are_used_as_they_are(clf):
    raw = recording(sfreq=100.0)
    plain = with_attributes(clf, preprocessing_=Preprocessing())
    with pytest.warns(UserWarning, match="reference as recorded, but average in training"):
        frame = clf.predict_raw(raw, preprocess=False)
    np.testing.assert_array_equal(probabilities(frame), probabilities(plain.predict_raw(raw)))
    with pytest.raises(ValueError, match=r"256 Hz.* 100 Hz"):
        clf.predict_raw(recording(), preprocess=False)


def test_missing_channels(clf):
    raw = recording(["C4", "F3"])
    lacks = pytest.warns(UserWarning, match=r"average reference in training.*C3\.")
    missing = r"channels: C3.*\(2 of 3\)"
    with lacks, pytest.warns(UserWarning, match=missing):
        frame = clf.predict_raw(raw)
    assert frame.attrs["findings"]["missing_channels"] == ["C3"]
    assert frame.attrs["findings"]["average_without"] == ["C3"]
    assert (frame["n_chans"] == 2).all()
    with pytest.raises(ValueError, match="C3, C4, F3"):
        clf.predict_raw(recording(["O1", "O2"]))
    raw = recording()
    raw.info["bads"] = list(CHANNELS)
    with pytest.raises(ValueError, match="bad: C3, C4, F3"):
        clf.predict_raw(raw)


def test_a_network_needs_all_channels(windows):
    clf = NetworkClassifier("EEGNet", finetune_epochs=1, random_state=0, verbose=0).fit(windows)
    raw = recording(sfreq=100.0)
    frame = clf.predict_raw(raw)
    assert len(frame) == 6
    clf.preprocessing_ = Preprocessing(scale=1e6)  # a network sees the unit
    scaled = clf.predict_raw(raw.copy().apply_function(lambda x: x * 1e-6))
    np.testing.assert_allclose(probabilities(scaled), probabilities(frame), atol=1e-5)
    clf.preprocessing_ = Preprocessing()
    with pytest.raises(ValueError, match="C3"):
        clf.predict_raw(recording(["C4", "F3"], sfreq=100.0))


def test_a_model_of_arrays_takes_all_eeg_channels(windows):
    X = np.stack([windows[i] for i in range(24)])
    y = np.arange(24) % 2
    clf = classifier(pretext=None, validation=0, sfreq=100.0).fit(X, y)
    with pytest.warns(UserWarning, match="EOG"):
        frame = clf.predict_raw(recording(["Pz", "EOG", "C3", "C4"], sfreq=100.0))
    assert len(frame) == 6
    with pytest.warns(UserWarning, match="sfreq"):
        clf = classifier(pretext=None, validation=0).fit(X, y)
    with pytest.raises(ValueError, match="sfreq"):
        clf.predict_raw(recording())


def test_bad_input(clf):
    for raw, message in [
        (recording(seconds=29), r"29 s\).* 30 s"),
        (recording(seconds=60).apply_function(lambda x: 0 * x), "flat"),
        (annotated(recording(), (0, 200, "BAD")), "BAD"),
    ]:
        with pytest.raises(ValueError, match=message):
            clf.predict_raw(raw)
    with pytest.raises(ValueError, match="overlap"):
        clf.predict_raw(recording(), overlap=1.0)
    with pytest.raises(NotFittedError):
        PARSClassifier().predict_raw(recording())


@pytest.mark.filterwarnings("ignore:The average reference over 4 channels")
@pytest.mark.parametrize("kind", ["eeg", "eog"])
def test_an_eog_is_prepared_as_mne_does_by_its_type(kind):
    """With the type EEG it is a part of the average; with its own, MNE does not filter it."""
    raw = mne.io.RawArray(
        recording([*CHANNELS, "EOG"], seconds=600).get_data(),
        mne.create_info([*CHANNELS, "EOG"], 256.0, ["eeg"] * 3 + [kind]),
        verbose="error",
    )
    windows = braindecode_windows(raw)
    fitted = classifier(pretext=None, validation=0, channels=["C3", "EOG"]).fit(
        windows, np.arange(20) % 2
    )
    frame = fitted.predict_raw(raw)
    np.testing.assert_allclose(probabilities(frame), fitted.predict_proba(windows), atol=1e-5)


def test_a_recording_of_another_gain_is_rescaled(clf):
    """The middle is the geometric mean; a flat channel with rounding errors does not count."""
    clf = with_attributes(clf, preprocessing_=Preprocessing())
    raw = recording(sfreq=100.0)
    raw._data[2] *= 1e-12
    amplitudes = [
        [raw.get_data()[c, i : i + 3000].std() for c in (0, 1)] for i in range(0, 18000, 3000)
    ]
    middle = np.sqrt(clf.amplitudes_.low * clf.amplitudes_.high)
    factor = middle / np.median(np.median(amplitudes, axis=0))
    for gain in (1.0, 30.0, 1e3, 1e-3):
        other = mne.io.RawArray(gain * raw.get_data(), raw.info, verbose="error")
        before = other.get_data().copy()
        frame = clf.predict_raw(other, rescale=True)
        assert frame.attrs["findings"]["rescaled_by"] == pytest.approx(factor / gain, rel=1e-5)
        assert "unusual_amplitudes" not in frame.attrs["findings"]
        np.testing.assert_array_equal(other.get_data(), before)
    unknown = with_attributes(clf, amplitudes_=None)
    with pytest.raises(ValueError, match="rescale"):
        unknown.predict_raw(raw, rescale=True)
