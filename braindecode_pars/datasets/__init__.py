"""Interchangeable sources of windows: ``load(path, ...)`` or a simulation, and a ``CARD``."""

from braindecode_pars.datasets import eegmat, physionet_mi, simulated, tuab, tueg, tusz

__all__ = ["eegmat", "physionet_mi", "simulated", "tuab", "tueg", "tusz"]
