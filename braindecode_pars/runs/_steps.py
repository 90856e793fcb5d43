"""The data of a run, step by step: a closed form of seed and step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from braindecode_pars.signal_store import SignalStore

__all__ = ["EpochLoader", "Steps"]

#: What a generator is drawn for, so that no two draw the same.
ORDER, CROPS, MODEL = range(3)


class Steps(Dataset):
    """What a process trains on in each step of a run.

    A pass visits each recording once for every whole window that it holds, in random order, and
    takes a random channel and a random crop each time (section 2.5). Steps go on across the
    borders of passes. Everything is a pure function of seed and step: it depends neither on what
    was read before, nor on how many processes and data workers share the reading.

    Parameters
    ----------
    store : SignalStore
    n_times : int
        Samples of a crop. Recordings that are shorter take no part.
    batch_size : int
        Examples of a step, of all processes together.
    seed : int
    process, n_processes : int
        Which part of each step is read here: that many consecutive examples of ``batch_size``,
        which ``n_processes`` divides.

    Raises
    ------
    ValueError
        When every recording is shorter than a crop.
    """

    #: Items are signals of one channel, not windows.
    is_single_channel = True

    def __init__(
        self,
        store: SignalStore,
        n_times: int,
        batch_size: int,
        *,
        seed: int = 0,
        process: int = 0,
        n_processes: int = 1,
    ):
        if n_times < 1:
            raise ValueError(
                f"At {store.sfreq:g} Hz the crops have {n_times} samples; use longer windows."
            )
        recordings = store.recordings
        self.lengths = recordings["n_times"].to_numpy()
        self.n_chans = recordings["ch_names"].map(len).to_numpy()
        self.first_signals = recordings["first_signal"].to_numpy()
        self.window_ends = (self.lengths // n_times).cumsum()
        if self.n_windows == 0:
            raise ValueError(
                f"The crops have {n_times} samples ({n_times / store.sfreq:g} s), and the longest "
                f"of {len(recordings)} recordings only {self.lengths.max()} "
                f"({self.lengths.max() / store.sfreq:g} s); use shorter windows."
            )
        share = batch_size // n_processes
        self.store = store
        self.n_times = n_times
        self.batch_size = batch_size
        self.seed = seed
        self.here = slice(process * share, (process + 1) * share)
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, dtype=int))

    @property
    def n_windows(self) -> int:
        """Examples of a pass."""
        return int(self.window_ends[-1])

    @property
    def steps_per_pass(self) -> int:
        """Steps that one pass takes, the last of which reaches into the next."""
        return -(-self.n_windows // self.batch_size)

    def __getitem__(self, step: int) -> tuple[Tensor, int]:
        """Signals of this process, float32 (share, n_times), and the seed of the step's draws."""
        recordings = self.recordings_of(step)
        rng = np.random.default_rng([self.seed, CROPS, step])
        signals = self.first_signals[recordings] + rng.integers(self.n_chans[recordings])
        starts = rng.integers(self.lengths[recordings] - self.n_times + 1)
        crops = self.store.crops(signals[self.here], starts[self.here], self.n_times)
        (seed,) = np.random.SeedSequence([self.seed, MODEL, step]).generate_state(1)
        return torch.from_numpy(crops), int(seed)

    def recordings_of(self, step: int) -> np.ndarray:
        """Which recordings the examples of a step come from, those of all processes."""
        examples = step * self.batch_size + np.arange(self.batch_size)
        passes, places = np.divmod(examples, self.n_windows)
        windows = np.empty(self.batch_size, dtype=int)
        for number in np.unique(passes).tolist():
            here = passes == number
            windows[here] = self._windows_of_pass(number)[places[here]]
        return np.searchsorted(self.window_ends, windows, side="right")

    def _windows_of_pass(self, number: int) -> np.ndarray:
        """The order of a pass; the last one is kept, since many steps ask for it."""
        if self._order[0] != number:
            rng = np.random.default_rng([self.seed, ORDER, number])
            self._order = number, rng.permutation(self.n_windows)
        return self._order[1]


class EpochLoader:
    """Loads some steps of a run, an epoch each time that it is iterated over.

    Data workers read ahead from one epoch into the next.

    Parameters
    ----------
    steps : Steps
    first, last : int
        The steps to load, without the last one.
    steps_per_epoch : int
    num_workers : int
        Processes that read ahead; 0 reads when asked.
    pin_memory : bool
        For copies to a GPU that do not wait.
    """

    def __init__(
        self,
        steps: Steps,
        first: int,
        last: int,
        steps_per_epoch: int,
        *,
        num_workers: int = 0,
        pin_memory: bool = False,
    ):
        self.loader = DataLoader(
            steps,
            batch_size=None,
            sampler=range(first, last),
            num_workers=num_workers,
            pin_memory=pin_memory,
            generator=torch.Generator(),  # otherwise it draws from torch's global one
        )
        self.steps_per_epoch = steps_per_epoch
        self._batches: Iterator[tuple[Tensor, int]] | None = None

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        """The next epoch.

        Raises
        ------
        ChildProcessError
            When a data worker was killed while it handed over a batch. At any other time torch
            raises a RuntimeError, wherever it learns of it.
        """
        if self._batches is None:
            self._batches = _read(self.loader)
        return islice(self._batches, self.steps_per_epoch)


def _read(loader: DataLoader) -> Iterator[tuple[Tensor, int]]:
    try:
        yield from loader
    except Exception as error:
        is_of_torch = str(error).startswith(("Caught ", "DataLoader worker"))
        if loader.num_workers == 0 or is_of_torch:
            raise
        time.sleep(1)  # until torch has learned of it and raised, here rather than later
        raise ChildProcessError(f"{type(error).__name__}: {error}") from error
