"""SignalStore: a corpus of continuous recordings in one memory-mapped folder.

``sources`` finds, preprocesses and encodes recordings. ``index`` reads and writes the files of a
store, and returns stored recordings as MNE Raw objects. ``writing`` creates a store, and ``store``
opens it.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.signal_store.store import SignalStore

__all__ = ["SignalStore"]
