"""Recordings of folders and datasets, and their preparation."""

from __future__ import annotations

import copy

import mne
import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import create_fixed_length_windows
from support import own_recipe
from support.challenge_records import write
from support.raws import of_raws
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from braindecode_pars.datasets import ysyw
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store.sources import StoredForm, find_sources
from braindecode_pars.windows.preprocessing import Preprocessing


def test_all_formats_in_a_folder_are_read(written):
    root, expected = written
    sources = find_sources(root, None)
    assert [source.name for source in sources] == list(expected)
    for source in sources:
        signals, ch_names, sfreq, _ = StoredForm().apply(source.open()[0])
        assert sfreq == 100
        assert len(ch_names) == len(expected[source.name])
        # EDF rounds to 65,536 steps, WFDB to fewer.
        np.testing.assert_allclose(signals, expected[source.name], atol=3e-8)


def test_subjects_of_files(written):
    def subjects(rule):
        sources = find_sources(written[0], rule)
        return {source.name: source.description["subject"] for source in sources}

    assert subjects(None) == {
        "anna/night_raw.fif": "anna",
        "b/r01.hea": "b",
        "b/r02.bdf": "b",
        "lone.EDF": "lone",
        "sub-07/ses-1/eeg/sub-07_ses-1_eeg.edf": "07",
    }
    assert set(subjects(lambda file: np.int64(len(file.parts))).values()) == {1, 2, 4}


def test_unreadable_files_are_sources_with_a_problem(tmp_path, make_edf):
    make_edf(tmp_path / "good.edf", ["C3"])
    (tmp_path / "rec.hea").write_text("rec 1 100 200\nrec.dat 16 1 16 0 0 0 0 C3\n")
    for name in ("dead.edf", "dead.hea", "rec.dat"):
        (tmp_path / name).symlink_to(f".git/annex/objects/{name}")
    for source in find_sources(tmp_path, None):
        if source.name == "good.edf":
            source.open()
            continue
        with pytest.raises(ValueError, match=r"link to .* does not exist\. Download") as error:
            source.open()
        assert source.name != "rec.hea" or "rec.dat" in str(error.value)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([f"{part}/n{i}.edf" for part in ("train", "eval") for i in range(5)], "eval or train"),
        ([f"{part}/n{i}.edf" for part in "abc" for i in range(5)], {"a", "b", "c"}),
        ([f"anna/n{i}.edf" for i in range(9)], {"anna"}),
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


def test_sources_of_a_corpus(tmp_path):
    own_recipe.write(tmp_path / "night", "P01_train", 4)
    corpus = own_recipe.corpus_of(tmp_path)
    (source,) = find_sources(corpus, None)
    assert source.name == "own_recipe/night/P01_train.txt"
    assert source.description == dict(corpus="own_recipe", subject="P01", split="train")
    assert source.open()[0].ch_names == ["C3", "C4"]
    assert [other.name for other in find_sources([corpus], None)] == [source.name]


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
    changed = find_sources(tmp_path, None)
    assert [a.state != b.state for a, b in zip(sources, changed, strict=True)] == [True] + [
        False
    ] * 3


def test_recordings_of_a_dataset(recordings):
    first, *_, last = sources = find_sources(recordings, None)
    assert [source.name for source in sources] == [f"recording-{i}" for i in range(4)]
    assert first.description == {"subject": 1, "age": 30}
    assert last.open()[0] is recordings.datasets[-1].raw
    assert last.label == "recording-3 (subject 1)"
    signals, ch_names, *_ = StoredForm().apply(recordings.datasets[2].raw)
    assert ch_names == ["Fz", "Cz", "Pz", "O1"]  # O2 is marked as bad
    np.testing.assert_array_equal(signals, recordings.datasets[2].raw.get_data()[:4])


def test_descriptions_become_plain_values(make_raw):
    when = pd.Timestamp("2020-01-01")
    described = dict(subject=np.int64(3), when=when, age=np.nan, sex=None, bmi=21.5)
    (source,) = find_sources(RawDataset(make_raw(0), described), None)
    plain = dict(subject=3, when="2020-01-01 00:00:00", age=None, sex=None, bmi=21.5)
    assert source.description == plain
    assert type(source.description["subject"]) is int


def test_windows_are_stored_as_whole_recordings(recordings):
    cut = dict(window_size_samples=300, window_stride_samples=300, on_last_window="drop")
    windows = create_fixed_length_windows(recordings, **cut, verbose="error")
    sources = find_sources(windows, None)
    assert len(sources) == 4
    assert all(s.open()[0] is ds.raw for s, ds in zip(sources, windows.datasets, strict=True))
    cut |= dict(use_mne_epochs=True, preload=True)
    epochs = create_fixed_length_windows(recordings, **cut, verbose="error")
    with pytest.raises(TypeError, match="use_mne_epochs=False"):
        find_sources(epochs, None)


def test_functions_for_labels_within_a_dataset_are_applied(nights):
    inner = BaseConcatDataset(nights.datasets[:1], target_transform=lambda label: label + 10)
    outer = ConcatDataset([inner, nights.datasets[1]])
    first, last = (source.labels["target"] for source in find_sources(outer, None))
    assert [first[0], last[0]] == [inner[0][1], nights.datasets[1][0][1]]
    outer.target_transform = lambda label: f"stage {label}"
    assert find_sources(outer, None)[0].labels["target"][0] == f"stage {inner[0][1]}"


def test_a_transform_of_the_signals_is_refused(nights, recordings):
    for given in (nights.datasets[1], recordings.datasets[1]):
        changed = copy.copy(given)
        changed.transform = np.negative
        with pytest.raises(ValueError, match=r"recording-1 .*transform"):
            find_sources(ConcatDataset([given, changed]), None)


def test_what_has_no_recordings_is_refused(tmp_path, recordings):
    for wrong in (TensorDataset(), 3, [1, 2], None, Subset(recordings, [0, 1])):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            find_sources(wrong, None)
    with pytest.raises(FileNotFoundError, match=r"\.edf"):
        find_sources(tmp_path, None)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_sources(tmp_path / "nowhere", None)
    with pytest.raises(TypeError, match="subject="):
        find_sources(recordings, lambda file: 1)


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
    signals, _, sfreq, _ = StoredForm(sfreq=100).apply(raw)
    assert signals.shape == (1, 2000)
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
    assert preparation.missing(["EEG C3-REF", "T7"]) == ("FC5",)
    with pytest.raises(ValueError, match=r"Pz .*C3, ECG, C4"):
        StoredForm(channels=["Pz"]).apply(raw)
    with pytest.raises(ValueError, match="X"):
        StoredForm().apply(make_raw(0, 1, names=["X"], kinds="emg"))


def test_the_reference_is_the_average_of_the_stored_channels(make_raw):
    raw = make_raw(0, 4, names=["C3", "ECG", "C4", "Pz"], kinds=["eeg", "ecg", "eeg", "eeg"])
    before = raw.get_data()
    signals, ch_names, *_ = StoredForm(channels=["C3", "C4"], reference="average").apply(raw)
    assert ch_names == ["C3", "C4"]
    expected = before[[0, 2]] - (before[0] + before[2]) / 2
    np.testing.assert_allclose(signals, expected, atol=1e-12)
    np.testing.assert_array_equal(raw.get_data(), before)  # the given recording is unchanged
    # The order of filter and reference does not matter: both are linear.
    filtered, *_ = StoredForm(low=1, high=20, reference="average").apply(raw)
    plain = raw.copy().pick("eeg").filter(1, 20, verbose="error").get_data()
    np.testing.assert_allclose(filtered, plain - plain.mean(axis=0), atol=1e-12)
    with pytest.raises(ValueError, match="C3"):  # it would be zero everywhere
        StoredForm(channels=["C3"], reference="average").apply(raw)
    for wrong in ("mastoids", "Average", 1, True):
        with pytest.raises(ValueError, match="'average', None"):
            StoredForm(reference=wrong)


def test_the_preparation_is_recorded(make_raw):
    steps = [{"fn": "rescale", "kwargs": {"scalings": 1.0}}]
    raw = make_raw(0, 5, sfreq=200.0, names=["C3", "C4", "O1", "Oz", "ECG"], kinds="eeg")
    raw.filter(0.5, None, verbose="error")
    preparation = StoredForm(sfreq=128.0, high=30.0, mains=20.0, reference="average")
    # The average is over the stored channels only, without the ECG.
    assert preparation.apply(raw, steps)[-1] == Preprocessing(
        128.0, (0.5, 30.0), (20.0,), "average", 1.0, amplifier=(0.5, None)
    )
    steps = [{"fn": "set_eeg_reference", "kwargs": {"ref_channels": ["O1"]}}]  # comes first
    assert preparation.apply(raw, steps)[-1].reference == "average"
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
    assert plain.select([1]).preprocessing.notch == ()
    (found,) = set(store.windows(300).column("preprocessing"))
    assert (found.window_seconds, found.notch) == (3.0, ())
    # The average of chosen channels is recorded by their names.
    given = of_raws([make_raw(0, 3, names=["Fz", "EEG C3-REF", "C4"])])
    chosen = dict(channels=["C3", "C4"], reference="average", verbose=0)
    store = SignalStore.create(tmp_path / "chosen", given, **chosen)
    assert store.preprocessing.reference == "C3, C4"
    given = of_raws([make_raw(0, 5, names=["C3", "C4", "A1", "UNUSED", "O1"])])
    with pytest.warns(UserWarning, match=r"average .* 5 channels.*: UNUSED"):
        SignalStore.create(tmp_path / "odd", given, reference="average", verbose=0)
