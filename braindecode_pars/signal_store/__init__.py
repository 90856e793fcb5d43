"""SignalStore: a corpus of continuous recordings in one memory-mapped folder.

``sources`` finds and prepares recordings, and ``index`` reads and writes the files of a store, and
has its recordings as Raws of MNE. ``writing`` encodes and stores them, ``store`` opens a store.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.signal_store.store import SignalStore

__all__ = ["SignalStore"]
