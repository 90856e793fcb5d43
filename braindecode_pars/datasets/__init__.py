"""Interchangeable sources of windows: ``load(path, ...)`` or a simulation, and a ``CARD``."""

from braindecode_pars.datasets import physionet_mi, simulated

__all__ = ["physionet_mi", "simulated"]
