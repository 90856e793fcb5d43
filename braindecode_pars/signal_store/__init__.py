"""SignalStore: a corpus of continuous recordings in one memory-mapped folder.

``sources`` finds and prepares recordings. ``samples`` encodes and decodes them, ``index`` has
their metadata. ``writing`` creates and extends a store, and ``store`` opens it. ``parts`` divides a
corpus and joins stores. ``stored_windows`` cuts a store into windows.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.signal_store.store import SignalStore

__all__ = ["SignalStore"]
