"""The data of each step of a run without recordings."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.runs.steps import CROPS, FIRST_PASS, StepsOfRun


@runtime_checkable
class SignalSource(Protocol):
    """What a run needs of signals without recordings: ``datasets.SyntheticSignals`` has it.

    Its attributes are what decides on the signals, as JSON takes them.

    Attributes
    ----------
    sfreq : float
        Sampling rate in Hz.
    n_windows : int
        Number of signals in a pass.
    preprocessing : Preprocessing
        Rate and band of the signals.
    """

    sfreq: float
    n_windows: int

    @property
    def preprocessing(self) -> Preprocessing: ...

    def draw(self, n: int, n_times: int, rng: np.random.Generator) -> np.ndarray:
        """Return signals, float32 (n, n_times), that depend only on the generator."""


class SyntheticSteps(StepsOfRun):
    """The signals of one process, in the place of :class:`~braindecode_pars.runs.steps.Steps`.

    The signals of a step are drawn for the step alone. They depend only on the source, the seed and
    the step number.

    Parameters
    ----------
    store : SignalSource
        Source of the signals.
    n_times, batch_size, seed, process, n_processes
        As in ``Steps``.

    Raises
    ------
    ValueError
        When a signal has no sample.
    """

    store: SignalSource

    #: The signals have no subject and no corpus.
    subjects: list = []  # noqa: RUF012
    in_pass: dict[str, int] = {}  # noqa: RUF012

    @property
    def n_windows(self) -> int:
        """Number of signals in a pass."""
        return self.store.n_windows

    @property
    def described(self) -> dict[str, Any]:
        """The data in ``run.json``: the settings of the source, no recordings and no subjects."""
        return {
            "path": None,
            "checksum": None,
            "sfreq": self.sfreq,
            "synthetic": dict(vars(self.store)),
            "recordings": [],
            "subjects": self.subjects,
        }

    @property
    def about(self) -> dict[str, Any]:
        """Facts for the encoder's card."""
        told = "Pretrained on synthetic signals: without recordings, and without subjects."
        return {"description": told, "corpora": ["synthetic signals"], "reference": "none"}

    def __str__(self) -> str:
        return f"Synthetic signals at {self.sfreq:g} Hz: no recordings, no subjects"

    def _signals_of(self, step: int, n_times: int) -> Tensor:
        # All processes draw the whole batch, so that their number does not matter.
        return self._draw(self.batch_size, n_times, CROPS, step)[self.own_examples]

    def first_pass(self, n: int) -> Tensor:
        """Return n of the longest signals, other ones than those of the steps.

        They are the same for all processes.
        """
        return self._draw(n, self.n_times, FIRST_PASS)

    def _draw(self, n: int, n_times: int, *purpose: int) -> Tensor:
        rng = np.random.default_rng([self.seed, *purpose])
        return torch.from_numpy(self.store.draw(n, n_times, rng))
