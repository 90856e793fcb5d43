"""Interchangeable sources of windows: ``load(path, ...)`` or a simulation, and a ``CARD``."""

import braindecode_pars._hosts  # noqa: F401
from braindecode_pars.datasets import (
    eegmat,
    eesm17,
    physionet_mi,
    simulated,
    tuab,
    tueg,
    tusz,
    ysyw,
)

__all__ = [
    "RECIPES",
    "eegmat",
    "eesm17",
    "physionet_mi",
    "simulated",
    "tuab",
    "tueg",
    "tusz",
    "ysyw",
]

#: The corpora that are read from files, by name.
RECIPES = {
    recipe.__name__.rpartition(".")[-1]: recipe
    for recipe in (eegmat, eesm17, physionet_mi, tuab, tueg, tusz, ysyw)
}
