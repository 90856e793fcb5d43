"""SignalStore: a corpus of continuous recordings in one folder, read through a memory map.

The module ``sources`` finds, preprocesses and encodes recordings. ``index`` reads and writes the
files of a store, and returns stored recordings as MNE Raw objects. ``writing`` creates a store, and
``store`` opens a store.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.signal_store.store import SignalStore

__all__ = ["SignalStore"]
