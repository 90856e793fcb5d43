"""Metadata of windows of every source, and registration of a new source."""

from __future__ import annotations

import mne
import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from braindecode_pars import as_sklearn
from braindecode_pars.windows.door import Description, describe
from braindecode_pars.windows.table import as_window_set

ARRAY = np.zeros((4, 2, 50))


def epochs(array=ARRAY):
    return mne.EpochsArray(array, mne.create_info(["C3", "C4"], 100.0, "eeg"), verbose="error")


@pytest.mark.parametrize(
    ("source", "sfreq", "names", "has_labels"),
    [
        (ARRAY, None, None, False),
        (torch.zeros(4, 2, 50), None, None, False),
        (list(ARRAY), None, None, False),
        ([(window, i) for i, window in enumerate(ARRAY)], None, None, True),
        (TensorDataset(torch.zeros(4, 2, 50)), None, None, False),
        (epochs(), 100.0, ["C3", "C4"], True),
        ([epochs(window[None]) for window in ARRAY], 100.0, ["C3", "C4"], True),
    ],
)
def test_metadata_of_a_source(source, sfreq, names, has_labels):
    found = describe(source)
    assert found.n_windows == 4
    assert next(iter(found.sfreqs), None) == sfreq
    assert (found.y is not None) == has_labels
    assert (None if found.channels is None else found.channels.montages[0].names) == names
    window, _ = as_window_set(source)[3]
    assert window.shape == (2, 50)


def test_parts_of_a_dataset(nights):
    X, y, groups = as_sklearn(nights)
    chosen = np.array([50, 3, 70])
    for part in (X[chosen], Subset(nights, chosen)):
        found = describe(part)
        assert found.y.tolist() == y[chosen].tolist()
        assert found.groups.tolist() == groups[chosen].tolist()


def test_channels_that_contain_targets_are_not_signals(nights):
    night = nights.datasets[0]
    raw = night.raw.copy().set_channel_types({"C4": "misc"}, on_unit_change="ignore")
    one = type(night)(raw, night.metadata, {"subject": 1}, targets_from="channels")
    (montage,) = describe(one).channels.montages
    assert montage.names == ["C3", "F3"]
    assert as_window_set(one)[0][0].shape == (2, 3000)


def test_a_new_source_can_be_registered():
    """The windows package does not import the class of the source."""

    class Remote(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return np.full((1, 10), i)

    @describe.register(Remote)
    def _(X):
        return Description(X, len(X), groups=np.array(["a", "a", "b"], dtype=object))

    windows = as_window_set(Remote())
    assert windows.groups.tolist() == ["a", "a", "b"]
    assert windows[2][0].tolist() == [[2.0] * 10]


@pytest.mark.parametrize("X", ["windows", 3, None, {"a": 1}])
def test_other_types_raise(X):
    with pytest.raises(TypeError, match=f"X is a {type(X).__name__}; it must be"):
        describe(X)


def test_preprocessing_of_each_window():
    filtered = epochs(np.random.default_rng(0).normal(size=(4, 2, 500))).filter(
        1, 40, verbose="error"
    )
    (found,) = set(describe(filtered).preprocessings)
    assert (found.band, found.notch, found.window_seconds) == ((1.0, 40.0), None, 5.0)
    singles = [filtered[i] for i in range(4)]
    assert set(describe(singles).preprocessings) == {found}
    assert describe(ARRAY).preprocessings is None


def test_preprocessing_follows_the_windows(nights):
    night = nights.datasets[0]
    filtered = type(night)(night.raw.copy(), night.metadata, dict(night.description))
    filtered.raw_preproc_kwargs = [{"fn": "filter", "kwargs": {"l_freq": 1, "h_freq": 20}}]
    joined = ConcatDataset([night, filtered])
    part = as_window_set(Subset(joined, [3, len(night) + 3]))
    assert [each.band for each in part.preprocessings] == [None, (1.0, 20.0)]
    assert part.take([1]).preprocessings[0].notch == ()
    filtered.transform = np.negative  # its effect on the signal is unknown
    assert describe(filtered).preprocessings[0].notch is None
    mixed = as_window_set(ConcatDataset([filtered, TensorDataset(torch.zeros(2, 3, 3000))]))
    assert mixed.preprocessings[-1] is None
