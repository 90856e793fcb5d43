"""Windows for torch and scikit-learn: crops of single channels, and X, y and groups."""

from __future__ import annotations

import unicodedata

import mne
import numpy as np
import pytest
import torch
from braindecode import EEGClassifier
from braindecode.datasets import BaseConcatDataset
from support.counting import Counting
from support.montages import windows_of
from torch.utils.data import TensorDataset

from braindecode_pars import as_sklearn, datasets
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import SingleChannelWindows


@pytest.mark.filterwarnings("ignore:The mean of the signal", "ignore:.*do not change")
def test_an_item_is_a_random_crop_of_a_random_channel():
    # The value of a sample encodes its window, channel and time.
    window, channel, time = np.meshgrid(np.arange(4), np.arange(3), np.arange(50), indexing="ij")
    code = torch.from_numpy(window * 10_000 + channel * 1000 + time).float()
    single = SingleChannelWindows(TensorDataset(code), n_times=40)
    assert len(single) == 4
    seen = set()
    for _ in range(300):
        signal, no_target = single[2]
        assert signal.shape == (40,)
        assert signal.dtype == torch.float32
        assert no_target == 0
        assert torch.equal(signal.diff(), torch.ones(39))
        assert signal[0] // 10_000 == 2
        seen.add((int(signal[0] % 10_000) // 1000, int(signal[0]) % 1000))
    assert {channel for channel, _ in seen} == {0, 1, 2}
    assert {start for _, start in seen} == set(range(11))


def test_montages_and_lengths_may_differ(nights):
    short = TensorDataset(torch.randn(5, 7, 2000))
    from torch.utils.data import ConcatDataset

    single = SingleChannelWindows(ConcatDataset([nights, short]), n_times=2000)
    assert all(single[i][0].shape == (2000,) for i in (0, 95, 96, 100))


def corpora():
    """Two corpora of different size, montage and length; all samples are 1 or all are 2."""
    return [
        TensorDataset(torch.full((90, 6, 300), 1.0)),
        TensorDataset(torch.full((10, 19, 200), 2.0)),
    ]


@pytest.mark.filterwarnings("ignore:The mean of the signal", "ignore:.*do not change")
def test_several_corpora_are_one_dataset():
    single = SingleChannelWindows(corpora())
    assert len(single) == 100
    assert single.n_times == 200  # the shorter length
    assert [single[i][0][0].item() for i in (0, 89, 90, 99)] == [1, 1, 2, 2]


def test_corpora_of_different_sampling_rates_raise(nights):
    slow = datasets.simulated.sleep(2, 0.1, n_chans=2, sfreq=200, random_state=0)
    with pytest.raises(ValueError, match=r"200 Hz.* 100 Hz"):
        SingleChannelWindows([nights, slow], n_times=500)


def test_an_empty_corpus_is_refused():
    with pytest.raises(ValueError, match="no windows"):
        SingleChannelWindows([corpora()[0], TensorDataset(torch.randn(0, 1, 100))])


def test_the_same_seed_gives_the_same_crop(nights):
    single = SingleChannelWindows(nights, n_times=500)
    crops = []
    for _ in range(2):
        torch.manual_seed(4)
        crops.append(single[9][0])
    assert torch.equal(*crops)


def test_as_sklearn_reads_only_indexed_windows(nights):
    counting = [Counting(dataset) for dataset in nights.datasets]
    for dataset, original in zip(counting, nights.datasets, strict=True):
        dataset.__class__ = type("Counted", (Counting, type(original)), {})
        dataset.__dict__.update({**original.__dict__, **dataset.__dict__})
    X, y, groups = as_sklearn(BaseConcatDataset(counting))
    X[np.array([1, 95])]
    assert all(dataset.read == [] for dataset in counting)
    assert X.shape == (96, 3, 3000)
    assert y.shape == groups.shape == (96,)
    assert X[np.array([1, 95])].shape == (2, 3, 3000)
    assert all(dataset.read == [] for dataset in counting)
    np.testing.assert_array_equal(X[95], nights[95][0])


def test_windows_of_two_shapes_have_the_shape_of_a_list(nights):
    X, _, _ = as_sklearn(nights)
    shorter = datasets.simulated.sleep(1, 0.1, n_chans=2, random_state=0)
    both, _, _ = as_sklearn(BaseConcatDataset([*nights.datasets, *shorter.datasets]))
    assert (both.shape, both.ndim, X.ndim) == ((len(both),), 1, 3)
    assert both[: len(X)].shape == X.shape


def test_a_plain_network_of_braindecode_learns_from_the_view_in_microvolts():
    """It finds channels, samples and classes; beside the constant of batch norm, volts vanish."""
    rng = np.random.default_rng(0)
    parts = []
    for subject in range(4):
        y = np.arange(40) % 2
        signals = rng.standard_normal((2, 40, 300))
        signals[0] += np.outer(y, 2 * np.sin(2 * np.pi * np.arange(300) / 10))
        info = mne.create_info(["C3", "C4"], 100.0, "eeg")
        raw = mne.io.RawArray(1e-5 * signals.reshape(2, -1), info, verbose="error")
        parts.append(windows_of(raw, y, subject))
    X, y, groups = as_sklearn(BaseConcatDataset(parts))
    net = EEGClassifier("EEGNet", optimizer=torch.optim.Adam, lr=0.01, train_split=None)
    net.set_params(batch_size=16, max_epochs=8, verbose=0)
    net.set_params(module__final_layer_with_constraint=True)  # braindecode warns of its default
    train = groups < 2
    net.fit(1e6 * np.asarray(X)[train], y[train])
    assert net.score(1e6 * np.asarray(X)[~train], y[~train]) > 0.8
    net.set_params(max_epochs=1).fit(X, y)  # the view itself, lazily
    module = net.module_
    assert (module.n_chans, module.n_times, module.n_outputs) == (2, 300, 2)


def test_as_sklearn_needs_labels():
    with pytest.raises(ValueError, match="no labels"):
        as_sklearn(TensorDataset(torch.randn(2, 1, 100)))


@pytest.fixture(scope="module")
def store(nights, tmp_path_factory):
    return SignalStore.create(tmp_path_factory.mktemp("store"), nights, dtype="float32", verbose=0)


def test_a_store_is_cut_into_windows(nights, store):
    single = SingleChannelWindows(store, n_times=3000)
    assert len(single) == 96
    for i in (0, 23, 24, 95):
        signal, _ = single[i]
        assert any(np.array_equal(signal, channel) for channel in nights[i][0])
    with pytest.raises(ValueError, match="n_times"):
        SingleChannelWindows(store)


def test_crops_lie_within_the_windows_of_a_store(nights, store):
    """A crop of 2990 samples has eleven starts in each of three channels of 3000 samples."""
    single = SingleChannelWindows(store.windows(3000), n_times=2990)
    found = set()
    for _ in range(300):
        signal, _ = single[30]
        for channel, samples in enumerate(nights[30][0]):
            starts = np.flatnonzero(samples[:11] == signal[0].item())
            found |= {(channel, s) for s in starts if np.array_equal(samples[s : s + 2990], signal)}
    assert found == {(channel, start) for channel in range(3) for start in range(11)}


def test_a_store_can_be_combined_with_windows(nights, store):
    single = SingleChannelWindows([nights, store, store.windows(4000)])
    assert single.n_times == 3000
    assert len(single) == 96 + 96 + 4 * 18
    assert {single[i][0].shape for i in (0, 96, 192, 263)} == {(3000,)}
    signal, _ = single[96 + 50]
    assert any(np.array_equal(signal, channel) for channel in nights[50][0])
    slow = datasets.simulated.sleep(2, 0.1, n_chans=2, sfreq=200, random_state=0)
    with pytest.raises(ValueError, match=r"100 Hz.* 200 Hz"):
        SingleChannelWindows([slow, store])


@pytest.mark.filterwarnings("ignore:The mean of the signal", "ignore:.*do not change")
@pytest.mark.parametrize("item", [lambda x: (x, 0, [0, 0, 9]), lambda x: (x, 0), lambda x: x])
def test_a_list_of_windows_is_one_dataset_and_a_list_of_arrays_several(item):
    windows = [np.full((2, 9), i, dtype=np.float32) for i in range(4)]
    examples = SingleChannelWindows([item(window) for window in windows])
    assert [examples[i][0].unique().item() for i in range(len(examples))] == [0, 1, 2, 3]
    several = SingleChannelWindows([np.stack(windows), np.stack(windows[:2])])
    assert len(several.corpora) == 2


def test_views_are_lazy_and_keep_labels_and_subjects(nights):
    X, y, _ = as_sklearn(nights)
    assert X.shape == np.asarray(X).shape
    assert X[5].shape == nights[5][0].shape
    part = X[np.array([30, 2])]
    again, y_part, groups_part = as_sklearn(part)
    assert len(again) == 2
    assert y_part.tolist() == y[[30, 2]].tolist()
    assert groups_part.tolist() == [2, 1]


def without_subject(nights, numbers):
    """The same windows, without a subject in the description of some recordings."""
    parts = [
        type(part)(part.raw, part.metadata, {"night": 1} if i in numbers else part.description)
        for i, part in enumerate(nights.datasets)
    ]
    return type(nights)(parts)


@pytest.mark.parametrize(("numbers", "found"), [(range(4), "96 of 96"), ([1], "24 of 96")])
def test_missing_subjects_are_counted(nights, numbers, found):
    with pytest.raises(ValueError, match=f"{found} .*'subject'"):
        as_sklearn(without_subject(nights, numbers))


def test_both_unicode_forms_of_a_name_are_one_group(nights):
    """As macOS writes a folder's name, and as other systems do."""
    names = ["Jörg", unicodedata.normalize("NFD", "Jörg"), "Anna", "Bert"]
    parts = [
        type(part)(part.raw, part.metadata, {"subject": name})
        for part, name in zip(nights.datasets, names, strict=True)
    ]
    groups = as_sklearn(type(nights)(parts))[2]
    assert sorted(set(groups)) == ["Anna", "Bert", "Jörg"]
