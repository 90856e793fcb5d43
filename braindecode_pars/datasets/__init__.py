"""Load EEG datasets as windows: public corpora, folders of recordings, bundled and simulated data.

:func:`load` loads any dataset by name or path. Each public corpus has a module with a function
``load(path, ...)`` and a dict ``CARD`` that describes the corpus.
:mod:`~braindecode_pars.datasets.folder` loads a folder of recordings or a BIDS dataset.
:func:`sleep` and :func:`mental_arithmetic` load the bundled sample datasets, which need no files.
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
