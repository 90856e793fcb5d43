"""Pretraining runs: on a SignalStore, on one process or several, resumable to the bit."""

from braindecode_pars.runs.config import RunConfig
from braindecode_pars.runs.run import pretrain

__all__ = ["RunConfig", "pretrain"]
