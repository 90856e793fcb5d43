"""Windows of all sources as two tables and readers, without reading them."""

from __future__ import annotations

import mne
import numpy as np
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from skorch.helper import SliceDataset
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from braindecode_pars import as_sklearn
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.convert import as_windows


def test_views_of_views_keep_metadata_and_signals(nights):
    X, y, groups = as_sklearn(nights)
    picked = np.array([90, 3, 40])
    for view in (
        X[picked],
        Subset(nights, picked.tolist()),
        Subset(Subset(nights, range(95, -1, -1)), [5, 92, 55]),
        SliceDataset(ConcatDataset(nights.datasets))[picked],
    ):
        windows = as_windows(view)
        assert windows.sfreq == 100.0
        np.testing.assert_array_equal(windows.y, y[picked])
        np.testing.assert_array_equal(windows.groups, groups[picked])
        np.testing.assert_array_equal(windows[1], nights[3][0])


def test_all_containers_give_the_same_windows(nights):
    array = np.stack([nights[i][0] for i in range(10)])
    info = mne.create_info(["C3", "C4", "F3"], 100.0, "eeg")
    events = np.column_stack([np.arange(10), np.zeros(10, int), np.arange(10) % 3])
    epochs = mne.EpochsArray(array, info, events, verbose="error")
    for X, y in (
        (array, None),
        (TensorDataset(torch.from_numpy(array)), None),
        (array[:, :, :5].tolist(), None),
        ([nights[i] for i in range(10)], [nights[i][1] for i in range(10)]),
        (epochs, events[:, 2]),
        ([epochs[i] for i in range(10)], events[:, 2]),
    ):
        windows = as_windows(X)
        n_times = 5 if isinstance(X[0], list) else 3000
        assert windows.check() == (3, n_times)
        np.testing.assert_array_equal(windows, array[:, :, :n_times])
        np.testing.assert_array_equal(windows.y, y)
        is_epochs = y is not None and not isinstance(X[0], tuple)
        assert windows.sfreq == (100.0 if is_epochs else None)
        assert windows.montages[0].names == (info.ch_names if is_epochs else [])


def test_given_labels_and_groups_replace_those_of_the_dataset(nights):
    windows = as_windows(nights, y=["a"] * 96, groups=np.arange(96))
    assert set(windows.y) == {"a"}
    assert windows.groups[17] == 17
    transformed = BaseConcatDataset(nights.datasets, target_transform=lambda label: label + 10)
    np.testing.assert_array_equal(as_windows(transformed).y, as_windows(nights).y + 10)
    assert as_windows(transformed).label_names is None


def test_a_part_has_the_rate_and_the_names_of_its_own_recordings(nights):
    slow = mne.io.RawArray(np.zeros((3, 8000)), mne.create_info(3, 80.0, "eeg"), verbose="error")
    description = {"subject": 1, "corpus": "slow"}
    other = type(nights.datasets[0])(slow, nights.datasets[0].metadata.iloc[:2], description)
    part = as_windows(Subset(BaseConcatDataset([other, *nights.datasets]), [30, 3]))
    assert part.sfreq == 100.0
    assert part.recordings["subject"].tolist() == [1, 2]
    np.testing.assert_array_equal(part[0], nights[28][0])


def test_lazy_epochs_are_loaded(nights):
    raw = nights.datasets[0].raw
    epochs = mne.make_fixed_length_epochs(raw, 30.0, preload=False, verbose="error")
    np.testing.assert_allclose(as_windows(epochs)[3], nights[3][0], rtol=1e-6)


def test_labels_and_subjects_of_mixed_types_are_kept(nights):
    """NumPy would convert numbers to strings, and subject 1 would become another subject."""
    first, second = (
        type(d)(d.raw, d.metadata, {"subject": s})
        for d, s in zip(nights.datasets, (1, "S2"), strict=False)
    )
    windows = as_windows(BaseConcatDataset([first, second]))
    assert set(windows.groups.tolist()) == {1, "S2"}
    second.metadata = second.metadata.assign(target="a")
    second.y = second.metadata["target"].to_list()
    windows = as_windows(BaseConcatDataset([first, second]))
    assert {type(label) for label in windows.y.tolist()} == {int, str}


def test_metadata_of_store_windows_needs_no_reading(nights, store, monkeypatch):
    read = []
    monkeypatch.setattr(SignalStore, "crops", lambda *arguments: read.append(arguments))
    windows = as_windows(store.windows(1000))
    assert len(windows) == 4 * 72
    assert windows.sfreq == 100.0
    assert windows.y is None
    assert windows.groups.tolist() == [1] * 72 + [2] * 72 + [3] * 72 + [4] * 72
    assert [ch["ch_name"] for ch in windows.chs_info] == ["C3", "C4", "F3"]
    assert read == []


def in_corpora(nights, *corpora):
    """Four nights, of the subjects 1, 2, 1 and 2, with the corpus of each."""
    parts = [
        EEGWindowsDataset(night.raw, night.metadata, dict(subject=subject, corpus=corpus))
        for night, subject, corpus in zip(nights.datasets, [1, 2, 1, 2], corpora, strict=True)
    ]
    return BaseConcatDataset(parts)


def test_subject_1_of_two_corpora_is_two_subjects(nights):
    windows = as_windows(in_corpora(nights, "day", "day", "night", None))
    names = ["day:1", "day:2", "night:1", 2]
    assert pd.unique(windows.groups).tolist() == names
    assert pd.unique(windows.corpus_subjects).tolist() == names
    assert set(windows.take(np.arange(24)).groups) == {"day:1"}
    # Subjects of one corpus keep their names.
    of_one = in_corpora(nights, *["day"] * 4)
    windows = as_windows(of_one)
    assert pd.unique(windows.groups).tolist() == [1, 2]
    assert pd.unique(windows.corpus_subjects).tolist() == ["day:1", "day:2"]
    regrouped = as_windows(of_one, groups=np.repeat(["A", "B"], 48))
    assert pd.unique(regrouped.corpus_subjects).tolist() == ["day:A", "day:B"]


def test_a_store_names_the_corpora_of_its_subjects(tmp_path, nights):
    store = SignalStore.create(tmp_path, in_corpora(nights, *["day"] * 3, "night"), verbose=0)
    assert store.subjects == ["day:1", "day:2", "night:2"]
    assert store.select(exclude=[1]).subjects == ["day:2", "night:2"]
    assert store.select(exclude=["night:2"]).subjects == ["day:1", "day:2"]
    assert store.select([2]).subjects == ["day:2", "night:2"]
    assert set(as_windows(store.windows(3000)).groups) == {*store.subjects}


def test_channels_that_contain_targets_are_not_signals(nights):
    night = nights.datasets[0]
    raw = night.raw.copy().set_channel_types({"C4": "misc"}, on_unit_change="ignore")
    one = type(night)(raw, night.metadata, {"subject": 1}, targets_from="channels")
    (montage,) = as_windows(one).montages
    assert montage.names == ["C3", "F3"]
    assert as_windows(one)[0].shape == (2, 3000)


def test_the_effect_of_a_transform_on_the_preprocessing_is_unknown(nights):
    night = nights.datasets[0]
    filtered = type(night)(night.raw, night.metadata, dict(night.description))
    filtered.raw_preproc_kwargs = [{"fn": "filter", "kwargs": {"l_freq": 1, "h_freq": 20}}]
    joined = ConcatDataset([night, filtered])
    part = as_windows(Subset(joined, [3, len(night) + 3]))
    assert [description.band for description in part.column("preprocessing")] == [None, (1.0, 20.0)]
    assert part.take([1]).column("preprocessing")[0].notch == ()
    filtered.transform = np.negative
    assert as_windows(filtered).column("preprocessing")[0].notch is None
