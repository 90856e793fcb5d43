"""EEG corpora, samples of real recordings and simulated sleep EEG, as windows.

:func:`load` reads any source by its name or place. Every corpus module has ``load(path, ...)`` and
a ``CARD`` that describes the corpus; :mod:`~braindecode_pars.datasets.folder` reads own recordings.
The samples are in the package: :func:`sleep` and :func:`mental_arithmetic` need no files.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars._common import names
from braindecode_pars.datasets import folder, simulated
from braindecode_pars.datasets.any_source import RECIPES, load
from braindecode_pars.datasets.eegmat import mental_arithmetic
from braindecode_pars.datasets.ucddb import sleep

__all__ = [
    "RECIPES",
    "folder",
    "load",
    "mental_arithmetic",
    "simulated",
    "sleep",
    *names.RECIPES,
]
