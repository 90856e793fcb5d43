"""Training data of a pretraining run.

The data of a step depend only on the seed and the number of the step, so a run can be resumed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch

from braindecode_pars._common.channel_names import electrode_positions
from braindecode_pars.pretrained.cards import unique_subjects
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import examples

#: Purposes of random generators: order of the windows, crops, random numbers of the model, and
#: crops for measurements. The purpose is part of the seed, so that generators with different
#: purposes are independent.
ORDER, CROPS, MODEL, FIRST_PASS = range(4)


@dataclass(eq=False, repr=False)
class Steps(torch.utils.data.Dataset):
    """Dataset of training steps for one process: item ``i`` contains the examples of step ``i``.

    In one pass over the data, a recording with ``n`` complete windows is used ``n`` times, in
    random order with the other recordings. Each time, a random channel is drawn, and a random crop
    (excerpt) of this channel is an example (section 2.5 of the paper). If ``store.shares`` contains
    proportions of corpora, each pass uses only a random subset of the windows of the larger
    corpora, so that the numbers of examples have these proportions. Each pass draws a new subset.

    A step may contain the end of one pass and the start of the next pass. The data of a step depend
    only on the seed and the number of the step: they do not depend on which steps were read before,
    nor on the number of processes that train or load data.

    Parameters
    ----------
    store : SignalStore
        Recordings to read.
    n_times : int | sequence of int
        Number of samples in a crop. With several lengths, successive steps cycle through the
        lengths. Recordings shorter than the longest crop are not used.
    batch_size : int
        Number of examples in a step, summed over all processes. It must be a multiple of
        ``n_processes``.
    seed : int
        Seed of the order of recordings, of channels and crops, and of the random numbers of the
        pretext task.
    process, n_processes : int
        Index of this process, and number of processes. The examples of each step are divided into
        consecutive parts of equal size, one for each process.
    held_out : Steps | None
        Examples whose loss determines the number of epochs, from held-out subjects if possible.
        None if the number of epochs is fixed.

    Raises
    ------
    ValueError
        If every recording is shorter than a crop. If ``store.shares`` contains a corpus of which
        every recording is shorter than a crop.
    """

    store: SignalStore
    n_times: Any
    batch_size: int
    _: KW_ONLY
    seed: int = 0
    process: int = 0
    n_processes: int = 1
    held_out: Any = None
    #: Number of windows in a pass over the data.
    n_windows: int = field(init=False)

    #: Whether items are examples for a pretext task. (Items of other datasets are windows.)
    has_examples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        store, self.sfreq = self.store, self.store.sfreq
        lengths = [self.n_times] if isinstance(self.n_times, int) else list(self.n_times)
        self.crop_lengths, self.n_times = lengths, max(lengths)
        n_times, n_examples = self.n_times, self.batch_size // self.n_processes
        self.process_examples = slice(self.process * n_examples, (self.process + 1) * n_examples)

        # Columns of the store's table as arrays.
        recordings = store.recordings
        self.lengths = recordings["n_times"].to_numpy()
        self.n_chans = recordings["ch_names"].map(len).to_numpy()
        self.first_signals = recordings["first_signal"].to_numpy()
        if min(lengths) < 1 or n_times > self.lengths.max():
            raise ValueError(
                f"Training windows must have from 1 to {self.lengths.max()} samples (the length of "
                f"the longest recording), got {n_times} samples ({n_times / store.sfreq:g} s). "
                "Change window_seconds."
            )
        self.window_ends = (self.lengths // n_times).cumsum()

        # Windows of each corpus, and number of windows of each corpus in a pass. Both are empty if
        # the store has no proportions.
        corpora = recordings["corpus"].to_numpy().repeat(self.lengths // n_times)
        self.windows_of = {name: np.flatnonzero(corpora == name) for name in store.shares}
        n_windows = {name: len(windows) for name, windows in self.windows_of.items()}
        if empty := [name for name, n in n_windows.items() if not n]:
            raise ValueError(
                f"The training data must contain the corpus {empty[0]} (store.shares), but no "
                "training recording of this corpus is long enough for a training window. Decrease "
                "window_seconds, or use a store without this corpus."
            )
        self.in_pass = windows_of_a_pass(n_windows, store.shares)
        self.n_windows = sum(self.in_pass.values()) or int(self.window_ends[-1])

        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, dtype=int))

    def __getitem__(self, step: int) -> tuple[Any, int]:
        """Return the examples of a step for this process, and a seed for the pretext task.

        The examples are a float32 tensor, shape (batch_size / n_processes, n_times), where n_times
        is the crop length of this step. In :class:`AllChannelSteps`, they are a dict of tensors.
        """
        n_times = self.crop_lengths[step % len(self.crop_lengths)]
        # Every process draws channels and starts of the whole batch, but reads only its own part.
        recordings = self.recordings_of(step)
        signals = self._crops(recordings, n_times, CROPS, step, read=self.process_examples)
        (seed,) = np.random.SeedSequence([self.seed, MODEL, step]).generate_state(1)
        return signals, int(seed)

    @property
    def subjects(self) -> list | None:
        """Subjects of recordings that are not too short; None if any subject is unknown."""
        subjects = self.store.recordings["subject"][self.lengths >= self.n_times]
        return unique_subjects(subjects) if subjects.notna().all() else None

    def __str__(self) -> str:
        hours = self.lengths.sum() / self.sfreq / 3600
        n_short = int((self.lengths < self.n_times).sum())
        skipped = f"; recordings not used (shorter than a window): {n_short}" if n_short else ""
        return (
            f"{len(self.lengths)} recordings of {len(self.store.subjects)} subjects, {hours:.1f} "
            f"hours, {len(self.store)} signals at {self.sfreq:g} Hz{skipped}"
        )

    def first_pass(self, n: int) -> Any:
        """Return n random crops, from which pretext tasks compute statistics before training.

        The crops are from the windows of the first pass over the data, but are not the crops of the
        training steps. All processes return the same crops: a float32 tensor, shape (n, n_times),
        where n_times is the longest crop length, or a dict of tensors in :class:`AllChannelSteps`.
        """
        windows = np.resize(self._windows_of_pass(0), n)
        recordings = np.searchsorted(self.window_ends, windows, side="right")
        return self._crops(recordings, self.n_times, FIRST_PASS)

    def _crops(
        self, recordings: np.ndarray, n_times: int, *purpose: int, read: slice = slice(None)
    ) -> Any:
        """Draw a crop of a random channel for each recording, and read the crops in ``read``."""
        rng = np.random.default_rng([self.seed, *purpose])
        signals = self.first_signals[recordings] + rng.integers(self.n_chans[recordings])
        starts = rng.integers(self.lengths[recordings] - n_times + 1)
        return torch.from_numpy(self.store.crops(signals[read], starts[read], n_times))

    def recordings_of(self, step: int) -> np.ndarray:
        """Return the index of the recording of each example in a step, shape (batch_size,)."""
        # For each example: number of the pass over the data, and position in this pass.
        examples = step * self.batch_size + np.arange(self.batch_size)
        passes, positions = np.divmod(examples, self.n_windows)

        # Look up which window is at this position in the random order of the pass.
        windows = np.empty(self.batch_size, dtype=int)
        for number in np.unique(passes).tolist():
            in_pass = passes == number
            windows[in_pass] = self._windows_of_pass(number)[positions[in_pass]]
        return np.searchsorted(self.window_ends, windows, side="right")

    def _windows_of_pass(self, number: int) -> np.ndarray:
        """Return the windows of a pass in random order.

        The result for the last pass is cached, because many steps belong to the same pass.
        """
        if self._order[0] != number:
            rng = np.random.default_rng([self.seed, ORDER, number])
            chosen = [
                rng.choice(windows, self.in_pass[name], replace=False, shuffle=False)
                for name, windows in self.windows_of.items()
            ]
            windows = np.concatenate(chosen) if chosen else self.n_windows
            self._order = number, rng.permutation(windows)
        return self._order[1]


class AllChannelSteps(Steps):
    """Dataset of training steps for pretext tasks that use several channels at once.

    In contrast to :class:`Steps`, an example is a random crop of a random subset of the channels of
    a recording. The examples of a step are a dict of tensors, with one row per example, as in
    :class:`~braindecode_pars.windows.AllChannelWindows`.

    Parameters
    ----------
    store, n_times, batch_size, seed, process, n_processes
        See :class:`Steps`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positions = np.full((len(self.n_chans), self.n_chans.max(), 3), np.nan, np.float32)
        # Compute electrode positions once per montage: many recordings have the same montage.
        montages = self.store.recordings["ch_names"].map(tuple).reset_index(drop=True)
        for names, rows in montages.groupby(montages).groups.items():
            montage_positions = electrode_positions([{"ch_name": name} for name in names])
            self.positions[rows, : len(names)] = montage_positions

    def _crops(
        self, recordings: np.ndarray, n_times: int, *purpose: int, read: slice = slice(None)
    ) -> dict[str, torch.Tensor]:
        rng = np.random.default_rng([self.seed, *purpose])
        starts = rng.integers(self.lengths[recordings] - n_times + 1)
        max_channels = np.minimum(self.n_chans[recordings], examples.MAX_CHANNELS)
        n_drawn = rng.integers(np.minimum(max_channels, examples.MIN_CHANNELS), max_channels + 1)
        # Put the channels of each recording in random order, before entries without a channel.
        order = rng.random((len(recordings), self.n_chans.max()))
        order[np.arange(order.shape[1]) >= self.n_chans[recordings, None]] = np.inf
        channels = order.argsort(axis=1)[:, : examples.MAX_CHANNELS]
        recordings, starts, n_drawn, channels = (
            array[read] for array in (recordings, starts, n_drawn, channels)
        )
        keep = np.arange(channels.shape[1]) < n_drawn[:, None]
        signals = (self.first_signals[recordings, None] + channels)[keep]
        x = np.zeros((*keep.shape, n_times), np.float32)
        x[keep] = self.store.crops(signals, starts.repeat(n_drawn), n_times)
        positions = np.where(keep[..., None], self.positions[recordings[:, None], channels], np.nan)
        batch = dict(x=x, positions=positions, keep=keep)
        return {name: torch.from_numpy(values) for name, values in batch.items()}


def windows_of_a_pass(n_windows: Mapping[str, int], shares: Mapping[str, float]) -> dict[str, int]:
    r"""Return the number of windows of each corpus in one pass over the data.

    A pass uses all windows of the corpus that has the fewest windows relative to its proportion,
    and a subset of the windows of the other corpora, so that the numbers of windows have the
    specified proportions: :math:`m_c = \mathrm{round}(s_c \min_k n_k / s_k)`.

    Parameters
    ----------
    n_windows : mapping of str to int
        Number of windows :math:`n_c` of each corpus, at least 1.
    shares : mapping of str to float
        Relative proportion :math:`s_c` of each corpus.

    Returns
    -------
    dict of str to int
        Number of windows :math:`m_c` of each corpus in a pass, from 1 to :math:`n_c`.

    Examples
    --------
    With equal proportions, a pass uses as many windows of the larger corpus as of the smaller:

    >>> from braindecode_pars.runs.steps import windows_of_a_pass
    >>> windows_of_a_pass({"tueg": 3_000_000, "ysyw": 756_563}, {"tueg": 1.0, "ysyw": 1.0})
    {'tueg': 756563, 'ysyw': 756563}
    """
    unit = min((n / shares[name] for name, n in n_windows.items()), default=0.0)
    return {name: min(n, max(1, round(unit * shares[name]))) for name, n in n_windows.items()}


class EpochLoader(torch.utils.data.DataLoader):
    """DataLoader for a range of steps. Each iteration over the DataLoader yields one epoch.

    Worker processes load steps of the next epoch in advance.

    Parameters
    ----------
    steps : Steps
        Training data of the run.
    first, last : int
        Range of steps to load: from ``first`` to ``last - 1``.
    steps_per_epoch : int
        Number of steps in an epoch.
    **options
        Additional arguments of torch's DataLoader.
    """

    def __init__(self, steps: Steps, first: int, last: int, steps_per_epoch: int, **options: Any):
        # Pass a generator; otherwise, DataLoader would use torch's global random generator.
        options |= dict(generator=torch.Generator(), sampler=range(first, last))
        super().__init__(steps, batch_size=None, **options)
        self.steps_per_epoch = steps_per_epoch
        self._batches: Iterator[tuple[torch.Tensor, int]] | None = None

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __iter__(self) -> Any:
        """Return an iterator over the steps of the next epoch."""
        if self._batches is None:
            self._batches = super().__iter__()
        return islice(self._batches, self.steps_per_epoch)
