"""Windows for torch and scikit-learn: crops of one or all channels, and X, y and groups."""

from __future__ import annotations

import mne
import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset, RawDataset, create_from_X_y
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from braindecode_pars import as_sklearn
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


def test_missing_subjects_are_counted(nights):
    parts = [
        type(part)(part.raw, part.metadata, {"night": 1} if i == 1 else part.description)
        for i, part in enumerate(nights.datasets)
    ]
    with pytest.raises(ValueError, match=r"24 of 96 .*'subject'"):
        as_sklearn(type(nights)(parts))
