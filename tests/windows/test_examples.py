"""Windows for torch and scikit-learn: crops of one or all channels, and X, y and groups."""

from __future__ import annotations

import unicodedata

import mne
import numpy as np
import pytest
import torch
from braindecode import EEGClassifier
from braindecode.datasets import BaseConcatDataset, RawDataset, create_from_X_y
from support.montages import concatenated
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from braindecode_pars import PARSNet, as_sklearn, datasets
from braindecode_pars.models import electrode_positions
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import AllChannelWindows, SingleChannelWindows

TEN_TWENTY = [
    *("Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz", "C4", "T8"),
    *("P7", "P3", "Pz", "P4", "P8", "O1", "O2"),
]
PLACES = electrode_positions([{"ch_name": name} for name in TEN_TWENTY])
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{start}")
    for start in ("The mean of the signal", ".*do not change", "`drop_last_window` is deprecated")
]


def coded(n_windows: int = 3, n_chans: int = 3, n_times: int = 50) -> np.ndarray:
    """Samples that tell their window, channel and time."""
    sizes = (np.arange(n) for n in (n_windows, n_chans, n_times))
    window, channel, time = np.meshgrid(*sizes, indexing="ij")
    return (window * 100_000 + channel * 1000 + time).astype("float32")


def of_names(names: list[str]) -> BaseConcatDataset:
    X = coded(n_chans=len(names))
    return create_from_X_y(X, np.zeros(len(X), int), False, 100.0, names)


def test_an_item_is_a_random_crop_of_a_random_channel():
    single = SingleChannelWindows(TensorDataset(torch.from_numpy(coded(4))), n_times=40)
    assert len(single) == 4
    seen = set()
    for _ in range(300):
        signal, no_target = single[2]
        assert (signal.shape, signal.dtype, no_target) == ((40,), torch.float32, 0)
        assert torch.equal(signal.diff(), torch.ones(39))
        assert signal[0] // 100_000 == 2
        seen.add(divmod(int(signal[0] % 100_000), 1000))
    assert seen == {(channel, start) for channel in range(3) for start in range(11)}
    torch.manual_seed(4)
    one = [single[2][0] for _ in range(9)]
    torch.manual_seed(4)
    assert all(torch.equal(single[2][0], signal) for signal in one)


def test_an_example_is_one_crop_of_some_channels_with_their_places():
    examples = AllChannelWindows(of_names(TEN_TWENTY), n_times=40)
    assert examples.n_chans == 19
    sizes, starts, channels = set(), set(), set()
    for _ in range(200):
        example, target = examples[2]
        n = int(example["keep"].sum())
        assert (target, example["keep"].tolist()) == (0, [True] * n + [False] * (19 - n))
        code = example["x"][:n]
        assert not example["x"][n:].any()
        assert torch.equal(code.diff(), torch.ones(n, 39))
        assert (code // 100_000 == 2).all()
        start, chosen = code[:, 0] % 1000, (code[:, 0] % 100_000 // 1000).long()
        assert len(start.unique()) == 1  # the same time for all channels
        assert len(chosen.unique()) == n
        sizes.add(n)
        starts.add(int(start[0]))
        channels.add(tuple(chosen.tolist()))
        np.testing.assert_array_equal(example["positions"][:n], PLACES[chosen])
        assert example["positions"][n:].isnan().all()
    assert (min(sizes), max(sizes), starts) == (8, 19, set(range(11)))
    assert len(channels) > 190  # in random order, too


def test_montages_differ_within_a_batch():
    examples = AllChannelWindows([of_names(TEN_TWENTY), of_names([*TEN_TWENTY[:3], "unknown"])])
    (batch, _) = next(iter(DataLoader(examples, batch_size=6)))
    shapes = {name: tuple(part.shape) for name, part in batch.items()}
    assert shapes == {"x": (6, 19, 50), "positions": (6, 19, 3), "keep": (6, 19)}
    assert batch["keep"].sum(dim=1)[3:].tolist() == [4, 4, 4]
    known = batch["positions"].isfinite().all(dim=-1).sum(dim=1)
    assert known[3:].tolist() == [3, 3, 3]
    # No more than 32 of a large montage
    many = AllChannelWindows(of_names([f"E{i}" for i in range(64)]))
    assert many.n_chans == 32
    assert many[0][0]["x"].shape == (32, 50)


@pytest.mark.filterwarnings("ignore:The amplitude")
def test_crops_of_all_channels_of_a_store_are_those_of_its_recordings(tmp_path):
    info = mne.create_info(TEN_TWENTY[:3], 100.0, "eeg")
    raws = [mne.io.RawArray(code, info, verbose="error") for code in coded(2, n_times=900)]
    recordings = BaseConcatDataset([RawDataset(raw) for raw in raws])
    store = SignalStore.create(tmp_path / "store", recordings, dtype="float32", verbose=0)
    examples = AllChannelWindows(store, n_times=400)
    for (example, _), recording in zip(examples.__getitems__([0, 3, 1]), (0, 1, 0), strict=True):
        code = example["x"].double()
        assert torch.equal(code.diff(), torch.ones(3, 399).double())
        chosen = (code[:, 0] % 100_000 // 1000).long()
        assert sorted(chosen.tolist()) == [0, 1, 2]
        starts = code[:, 0] - 1000 * chosen
        assert (starts // 100_000).unique().tolist() == [recording]
        assert len(starts.unique()) == 1
        np.testing.assert_array_equal(example["positions"], PLACES[chosen])


def test_several_corpora_are_one_dataset(nights):
    """Of different size, montage and length."""
    both = [
        TensorDataset(torch.full((90, 6, 300), 1.0)),
        TensorDataset(torch.full((10, 19, 200), 2.0)),
    ]
    single = SingleChannelWindows(both)
    assert (len(single), single.n_times) == (100, 200)  # the shorter length
    assert [single[i][0][0].item() for i in (0, 89, 90, 99)] == [1, 1, 2, 2]
    single = SingleChannelWindows(ConcatDataset([nights, both[1]]), n_times=150)
    assert all(single[i][0].shape == (150,) for i in (0, 95, 96, 100))
    with pytest.raises(ValueError, match="no windows"):
        SingleChannelWindows([both[0], TensorDataset(torch.randn(0, 1, 100))])


def test_windows_of_two_shapes_have_the_shape_of_a_list(nights):
    X, _, _ = as_sklearn(nights)
    shorter = datasets.simulated.sleep(1, 0.1, n_chans=2, random_state=0)
    both, _, _ = as_sklearn(BaseConcatDataset([*nights.datasets, *shorter.datasets]))
    assert (both.shape, both.ndim, X.ndim) == ((len(both),), 1, 3)
    assert both[: len(X)].shape == X.shape


def test_a_classifier_of_braindecode_finds_channels_samples_and_classes_of_the_view():
    X, y, _ = as_sklearn(concatenated(0))
    sizes = dict(module__embed_dim=8, module__num_layers=1, module__sfreq=100.0)
    net = EEGClassifier(PARSNet, train_split=None, batch_size=4, max_epochs=1, verbose=0, **sizes)
    module = net.fit(X[:4], y[:4]).module_
    assert (module.n_chans, module.n_times, module.n_outputs) == (4, 300, 2)


def test_as_sklearn_needs_labels():
    with pytest.raises(ValueError, match="no labels"):
        as_sklearn(TensorDataset(torch.randn(2, 1, 100)))


def test_crops_lie_within_the_windows_of_a_store(nights, store):
    """A crop of 2990 samples has eleven starts in each of three channels of 3000 samples."""
    single = SingleChannelWindows(store.windows(3000), n_times=2990)
    found_starts = set()
    for _ in range(300):
        signal, _ = single[30]
        for channel, samples in enumerate(nights[30][0]):
            starts = np.flatnonzero(samples[:11] == signal[0].item())
            found_starts |= {
                (channel, s) for s in starts if np.array_equal(samples[s : s + 2990], signal)
            }
    assert found_starts == {(channel, start) for channel in range(3) for start in range(11)}


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
    with pytest.raises(ValueError, match="n_times"):
        SingleChannelWindows(store)


@pytest.mark.parametrize("item", [lambda x: (x, 0, [0, 0, 9]), lambda x: (x, 0), lambda x: x])
def test_a_list_of_windows_is_one_dataset_and_a_list_of_arrays_several(item):
    windows = [np.full((2, 9), i, dtype=np.float32) for i in range(4)]
    examples = SingleChannelWindows([item(window) for window in windows])
    assert [examples[i][0].unique().item() for i in range(len(examples))] == [0, 1, 2, 3]
    several = SingleChannelWindows([np.stack(windows), np.stack(windows[:2])])
    assert len(several.corpora) == 2


@pytest.mark.parametrize(("numbers", "counts"), [(range(4), "96 of 96"), ([1], "24 of 96")])
def test_missing_subjects_are_counted(nights, numbers, counts):
    parts = [
        type(part)(part.raw, part.metadata, {"night": 1} if i in numbers else part.description)
        for i, part in enumerate(nights.datasets)
    ]
    with pytest.raises(ValueError, match=f"{counts} .*'subject'"):
        as_sklearn(type(nights)(parts))


def test_both_unicode_forms_of_a_name_are_one_group(nights):
    """As macOS writes a folder's name, and as other systems do."""
    names = ["Jörg", unicodedata.normalize("NFD", "Jörg"), "Anna", "Bert"]
    parts = [
        type(part)(part.raw, part.metadata, {"subject": name})
        for part, name in zip(nights.datasets, names, strict=True)
    ]
    groups = as_sklearn(type(nights)(parts))[2]
    assert sorted(set(groups)) == ["Anna", "Bert", "Jörg"]
