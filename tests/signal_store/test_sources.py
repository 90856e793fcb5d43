"""Recordings of folders and datasets, their preparation, and shares of corpora."""

from __future__ import annotations

import copy

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from braindecode.preprocessing import create_fixed_length_windows
from support.challenge_records import write
from support.raws import of_raws
from torch.utils.data import ConcatDataset, Subset

from braindecode_pars.datasets import ysyw
from braindecode_pars.runs.steps import windows_of_a_pass
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store.sources import StoredForm, find_sources
from braindecode_pars.signal_store.writing import check_shares
from braindecode_pars.windows.preprocessing import Preprocessing


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([f"{part}/n{i}.edf" for part in ("train", "eval") for i in range(5)], "eval or train"),
        ([f"{part}/n{i}.edf" for part in "abc" for i in range(5)], {"a", "b", "c"}),
        ([f"edf/aaaaaaab_s001_t{i:03d}.edf" for i in range(12)], {"aaaaaaab"}),
        ([f"a/sub-01/ses-{i}/sub-01_ses-{i}_eeg.edf" for i in range(12)], {"01"}),
    ],
)
def test_top_level_folders_of_many_recordings_are_no_subjects(names, expected, tmp_path):
    """Except for three folders, few recordings, or a known layout."""
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=rf"{expected}.*--subject"):
            find_sources(tmp_path, None)
        assert len(find_sources(tmp_path, lambda path: path.parts[0])) == 10
    else:
        sources = find_sources(tmp_path, None)
        assert {source.description["subject"] for source in sources} == expected


def test_the_state_of_a_record_includes_its_header_but_no_labels(tmp_path):
    """Labels that are downloaded later do not change the stored signals."""
    write(tmp_path, "tr03-0001", notes=None)
    corpus = ysyw.RECIPE.continuous(tmp_path)
    (before,) = find_sources(corpus, None)
    header = tmp_path / "training/tr03-0001/tr03-0001.hea"
    header.with_suffix(".arousal").write_text("labels")
    assert find_sources(corpus, None)[0].state == before.state
    header.write_text(header.read_text() + "# a comment\n")
    assert find_sources(corpus, None)[0].state != before.state


def test_parts_of_a_recording_are_not_separate_recordings(tmp_path, make_raw):
    raw = make_raw(0, seconds=3000)
    raw.save(tmp_path / "a_raw.fif", split_size="2MB", verbose="error")
    raw.save(tmp_path / "b_eeg.fif", split_size="2MB", split_naming="bids", verbose="error")
    (tmp_path / "c-1.fif").touch()  # which cannot be opened
    (tmp_path / "m.hea").write_text("m/2 3 100 500\nm_0001 200\nm_0002 300\n")
    (tmp_path / "m_0001.hea").write_text("m_0001 1 100 200\nm_0001.dat 16 1 16 0 0 0 0 C3\n")
    sources = find_sources(tmp_path, None)
    names = ["a_raw.fif", "b_split-01_eeg.fif", "c-1.fif", "m_0001.hea"]
    assert [source.name for source in sources] == names
    # The state of a recording includes its parts.
    with (tmp_path / "a_raw-1.fif").open("ab") as later:
        later.write(b"x")
    changed = [
        a.state != b.state for a, b in zip(sources, find_sources(tmp_path, None), strict=True)
    ]
    assert changed == [True, False, False, False]


def test_epochs_are_no_recordings(recordings):
    cut = dict(window_size_samples=300, window_stride_samples=300, on_last_window="drop")
    cut |= dict(use_mne_epochs=True, preload=True)
    epochs = create_fixed_length_windows(recordings, **cut, verbose="error")
    for wrong in (epochs, Subset(recordings, [0, 1]), [1, 2]):
        with pytest.raises(TypeError, match=r"use_mne_epochs=False|recordings must be"):
            find_sources(wrong, None)


def test_a_function_for_labels_is_applied(nights):
    inner = BaseConcatDataset(nights.datasets[:1], target_transform=lambda label: label + 10)
    assert find_sources(inner, None)[0].labels["target"][0] == inner[0][1]


def test_a_transform_of_the_signals_is_refused(nights, recordings):
    for given in (nights.datasets[1], recordings.datasets[1]):
        changed = copy.copy(given)
        changed.transform = np.negative
        with pytest.raises(ValueError, match=r"recording-1 .*transform"):
            find_sources(ConcatDataset([given, changed]), None)


def wave(sfreq: float, *frequencies: float) -> mne.io.BaseRaw:
    t = np.arange(round(20 * sfreq)) / sfreq
    values = sum(1e-5 * np.sin(2 * np.pi * frequency * t) for frequency in frequencies)
    return mne.io.RawArray(values[None], mne.create_info(["Cz"], sfreq, "eeg"), verbose="error")


def amplitudes(signals: np.ndarray, *frequencies: float) -> np.ndarray:
    return 2 * np.abs(np.fft.rfft(signals[0]))[[20 * f for f in frequencies]] / signals.shape[1]


def test_filters_and_resampling_are_optional():
    raw = wave(250, 1, 10, 50, 90)
    signals, _, sfreq, _ = StoredForm().apply(raw)
    np.testing.assert_array_equal(signals, raw.get_data())
    signals, _, sfreq, _ = StoredForm(sfreq=200, low=5, high=70, mains=50).apply(raw)
    assert sfreq == 200
    assert signals.shape == (1, 4000)
    kept = amplitudes(signals, 1, 10, 50, 90)
    np.testing.assert_allclose(kept, [0, 1e-5, 0, 0], atol=4e-7)
    signals, _, sfreq, _ = StoredForm(high=30).apply(raw)
    assert sfreq == 250
    np.testing.assert_allclose(amplitudes(signals, 1, 10, 90), [1e-5, 1e-5, 0], atol=4e-7)
    assert raw.info["sfreq"] == 250  # the given recording is unchanged
    assert amplitudes(raw.get_data(), 90)[0] == pytest.approx(1e-5)


def test_only_requested_channels_are_kept(make_raw):
    raw = make_raw(0, 3, names=["C3", "ECG", "C4"], kinds=["eeg", "ecg", "eeg"])
    _, ch_names, *_ = StoredForm(channels=["C4", "ECG", "Pz"]).apply(raw)
    assert ch_names == ["C4"]
    assert StoredForm(channels=["C4", "ECG", "Pz"]).missing(ch_names) == ("ECG", "Pz")
    named = make_raw(0, 3, names=["EEG C3-REF", "T7", "Fc5."])  # matched as in the estimators
    preparation = StoredForm(channels=["FC5", "T3", "C3"])
    assert preparation.apply(named)[1] == ["EEG C3-REF", "T7", "Fc5."]
    with pytest.raises(ValueError, match=r"Pz .*C3, ECG, C4"):
        StoredForm(channels=["Pz"]).apply(raw)


def test_the_reference_is_the_average_of_the_stored_channels(make_raw):
    raw = make_raw(0, 4, names=["C3", "ECG", "C4", "Pz"], kinds=["eeg", "ecg", "eeg", "eeg"])
    before = raw.get_data()
    signals, ch_names, *_ = StoredForm(channels=["C3", "C4"], reference="average").apply(raw)
    assert ch_names == ["C3", "C4"]
    expected = before[[0, 2]] - (before[0] + before[2]) / 2
    np.testing.assert_allclose(signals, expected, atol=1e-12)
    np.testing.assert_array_equal(raw.get_data(), before)  # the given recording is unchanged
    with pytest.raises(ValueError, match="C3"):  # it would be zero everywhere
        StoredForm(channels=["C3"], reference="average").apply(raw)
    with pytest.raises(ValueError, match="'average', None"):
        StoredForm(reference="Average")


def test_the_preparation_is_recorded(make_raw):
    steps = [{"fn": "rescale", "kwargs": {"scalings": 1.0}}]
    raw = make_raw(0, 5, sfreq=200.0, names=["C3", "C4", "O1", "Oz", "ECG"], kinds="eeg")
    raw.filter(0.5, None, verbose="error")
    preparation = StoredForm(sfreq=128.0, high=30.0, mains=20.0, reference="average")
    # The average is over the stored channels only, without the ECG.
    assert preparation.apply(raw, steps)[-1] == Preprocessing(
        128.0, (0.5, 30.0), (20.0,), "average", 1.0, amplifier=(0.5, None)
    )
    expected = Preprocessing(200.0, (0.5, None), reference="as recorded", amplifier=(0.5, None))
    assert StoredForm().apply(raw)[-1] == expected


def test_channels_without_a_type_and_of_several_types_are_prepared_alike(make_raw):
    names = ["C3", "C4", "O1", "O2"]
    form = StoredForm(low=1.0, high=20.0, reference="average")
    of_eeg, untyped, mixed = (
        form.apply(make_raw(0, 4, names=names, kinds=kinds))[0]
        for kinds in ("eeg", "misc", ["eeg", "eeg", "seeg", "seeg"])
    )
    np.testing.assert_array_equal(untyped, of_eeg)
    np.testing.assert_array_equal(mixed, of_eeg)


def test_a_store_knows_its_preprocessing(tmp_path, make_raw):
    recordings = of_raws(wave(200.0, hz) for hz in (5.0, 7.0))
    recordings.datasets[1].raw_preproc_kwargs = [{"fn": "pick", "kwargs": {}}]
    store = SignalStore.create(tmp_path / "store", recordings, low=0.5, sfreq=100.0, verbose=0)
    expected = Preprocessing(100.0, (0.5, None), (), "as recorded", 1.0)
    assert store.preprocessing == expected
    plain = SignalStore.create(tmp_path / "plain", recordings, verbose=0)
    # Of one, nothing else is known.
    assert plain.preprocessing == Preprocessing(200.0, reference="as recorded")
    (found,) = set(store.windows(300).column("preprocessing"))
    assert (found.window_seconds, found.notch) == (3.0, ())
    # The average of chosen channels is recorded by their names.
    given = of_raws([make_raw(0, 3, names=["Fz", "EEG C3-REF", "C4"])])
    chosen = dict(channels=["C3", "C4"], reference="average", verbose=0)
    store = SignalStore.create(tmp_path / "chosen", given, **chosen)
    assert store.preprocessing.reference == "C3, C4"


@pytest.mark.parametrize("seed", range(3))
def test_a_pass_is_the_largest_that_repeats_no_window(seed):
    """Compared with a search over all sizes of a pass."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c"]
    n_windows = dict(zip(names, rng.integers(50, 2000, 3).tolist(), strict=True))
    shares = dict(zip(names, rng.uniform(0.2, 3, 3).tolist(), strict=True))
    total = sum(shares.values())
    for size in range(sum(n_windows.values()), 0, -1):
        parts = {name: size * share / total for name, share in shares.items()}
        if all(parts[name] <= n_windows[name] for name in names):
            break
    found = windows_of_a_pass(n_windows, shares)
    for name in names:
        assert abs(found[name] - parts[name]) <= 1.5
        assert found[name] <= n_windows[name]
    assert any(found[name] == n_windows[name] for name in names)
    assert windows_of_a_pass({"a": 10, "b": 1}, {"a": 1e-9, "b": 1.0}) == {"a": 1, "b": 1}
    assert windows_of_a_pass({}, {}) == {}


@pytest.mark.parametrize(
    ("shares", "message"),
    [({"a": 1}, "a, b"), ({"a": 1, "c": 1}, "c"), ({"a": 0, "b": 1}, "a.* 0")],
)
def test_impossible_shares(shares, message):
    with pytest.raises(ValueError, match=message):
        check_shares(shares, ["a", "b"])
    with pytest.raises(ValueError, match="no corpora"):
        check_shares({"a": 1}, [])
    assert check_shares({"a": np.float32(1)}, ["a"]) == {"a": 1.0}
