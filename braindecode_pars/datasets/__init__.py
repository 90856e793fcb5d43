"""EEG corpora, samples of real recordings and simulated sleep EEG, as windows; also noise.

Every corpus module has ``load(path, ...)`` and a ``CARD`` that describes the corpus;
:mod:`~braindecode_pars.datasets.folder` reads own recordings. The samples are in the package:
:func:`sleep` and :func:`mental_arithmetic` need no files. :class:`SyntheticSignals` has no
recordings at all.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.datasets import (
    eegmat,
    eesm17,
    folder,
    physionet_mi,
    simulated,
    tuab,
    tueg,
    tusz,
    ucddb,
    ysyw,
)
from braindecode_pars.datasets.sample import mental_arithmetic, sleep
from braindecode_pars.datasets.synthetic_signals import SyntheticSignals

__all__ = [
    "RECIPES",
    "SyntheticSignals",
    "eegmat",
    "eesm17",
    "folder",
    "mental_arithmetic",
    "physionet_mi",
    "simulated",
    "sleep",
    "tuab",
    "tueg",
    "tusz",
    "ucddb",
    "ysyw",
]

#: The modules that read a corpus from files, by name.
RECIPES = {
    recipe.__name__.rpartition(".")[-1]: recipe
    for recipe in (eegmat, eesm17, physionet_mi, tuab, tueg, tusz, ucddb, ysyw)
}
