"""Crops of several channels, for tasks that compare channels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset, RawDataset, create_from_X_y
from torch.utils.data import DataLoader

from braindecode_pars import datasets
from braindecode_pars.models import electrode_positions
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import AllChannelWindows

TEN_TWENTY = (
    *("Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz", "C4", "T8"),
    *("P7", "P3", "Pz", "P4", "P8", "O1", "O2"),
)


pytestmark = [
    pytest.mark.filterwarnings("ignore:`drop_last_window` is deprecated"),
    pytest.mark.filterwarnings("ignore:The mean of the signal", "ignore:The standard deviations"),
]


def windows_of(X: np.ndarray, names: list[str]) -> BaseConcatDataset:
    return create_from_X_y(X, np.zeros(len(X), int), False, 100.0, names)


def coded(names, n_windows: int = 3, n_times: int = 50) -> np.ndarray:
    """Samples that tell their window, channel and time."""
    sizes = np.arange(n_windows), np.arange(len(names)), np.arange(n_times)
    window, channel, time = np.meshgrid(*sizes, indexing="ij")
    return (window * 10_000 + channel * 100 + time).astype("float32")


def test_an_example_is_one_crop_of_some_channels_with_their_places():
    windows = windows_of(coded(TEN_TWENTY), list(TEN_TWENTY))
    examples = AllChannelWindows(windows, n_times=40)
    where = electrode_positions([{"ch_name": name} for name in TEN_TWENTY])
    assert examples.n_chans == 19
    sizes, starts, channels = set(), set(), set()
    for _ in range(200):
        example, target = examples[2]
        assert target == 0
        n = int(example["keep"].sum())
        sizes.add(n)
        assert example["keep"].tolist() == [True] * n + [False] * (19 - n)
        code = example["x"][:n]
        assert not example["x"][n:].any()
        assert torch.equal(code.diff(), torch.ones(n, 39))
        assert (code // 10_000 == 2).all()
        start, chosen = code[:, 0] % 100, (code[:, 0] % 10_000 // 100).long()
        assert len(start.unique()) == 1  # the same time for all channels
        assert len(chosen.unique()) == n
        starts.add(int(start[0]))
        channels.add(tuple(chosen.tolist()))
        np.testing.assert_array_equal(example["positions"][:n], where[chosen])
        assert example["positions"][n:].isnan().all()
    assert (min(sizes), max(sizes)) == (8, 19)
    assert starts == set(range(11))
    assert len(channels) > 190  # in random order, too


def test_montages_differ_within_a_batch():
    first = windows_of(coded(TEN_TWENTY), list(TEN_TWENTY))
    second = windows_of(coded(TEN_TWENTY[:4]), [*TEN_TWENTY[:3], "unknown"])
    examples = AllChannelWindows([first, second])
    (batch, _) = next(iter(DataLoader(examples, batch_size=6)))
    assert {name: tuple(part.shape) for name, part in batch.items()} == {
        "x": (6, 19, 50),
        "positions": (6, 19, 3),
        "keep": (6, 19),
    }
    assert batch["keep"].sum(dim=1)[3:].tolist() == [4, 4, 4]
    known = batch["positions"].isfinite().all(dim=-1).sum(dim=1)
    assert known[3:].tolist() == [3, 3, 3]
    # No more than 32 of a large montage
    many = AllChannelWindows(
        windows_of(np.random.default_rng(0).normal(size=(2, 64, 50)), [f"E{i}" for i in range(64)])
    )
    assert many.n_chans == 32
    assert many[0][0]["x"].shape == (32, 50)


def test_crops_of_a_store_are_those_of_its_recordings(tmp_path):
    windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=3)
    recordings = BaseConcatDataset([RawDataset(each.raw) for each in windows.datasets])
    store = SignalStore.create(tmp_path / "store", recordings, dtype="float32", verbose=0)
    examples = AllChannelWindows(store, n_times=1000)
    signals = [each.raw.get_data() for each in windows.datasets]
    names = windows.datasets[0].raw.ch_names
    where = electrode_positions([{"ch_name": name} for name in names])
    for example, _ in examples.__getitems__([0, len(examples) - 1, 0]):
        assert example["keep"].all()
        found = []
        for signal, place in zip(example["x"].numpy(), example["positions"].numpy(), strict=True):
            (channel,) = np.flatnonzero(np.isclose(where, place).all(axis=1))
            of_channel = [r[channel] for r in signals]
            starts = [np.flatnonzero(np.abs(each - signal[0]) < 1e-8) for each in of_channel]
            found.append(
                tuple(
                    (recording, start)
                    for recording, each in enumerate(of_channel)
                    for start in starts[recording].tolist()
                    if len(each) >= start + 1000
                    and np.abs(each[start : start + 1000] - signal).max() < 1e-8
                )
            )
        assert len(set(found)) == 1
        assert len(found[0]) == 1
