"""SignalStore: a corpus of continuous recordings in one memory-mapped folder.

``sources`` finds, prepares and encodes recordings, and ``index`` reads and writes the files of a
store, and has its recordings as Raws of MNE. ``writing`` creates a store, ``store`` opens it.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.signal_store.store import SignalStore

__all__ = ["SignalStore"]
