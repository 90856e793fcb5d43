"""SignalStore: a corpus of continuous recordings in one memory-mapped folder.

``_sources`` finds and prepares recordings, and ``_reading`` does so in parallel. ``_samples``
encodes and decodes samples. ``_index`` stores the metadata of all recordings. ``_shares`` mixes
corpora. ``_writing`` creates and extends a store, and ``_store`` opens it. ``_division`` divides
recordings into parts; ``_joining`` has the rules for joining stores, ``_parts`` their list in a
file, and ``_joined_samples`` reads them. ``_windows`` cuts a store into windows and registers them
with ``braindecode_pars.windows``.
"""

import braindecode_pars._hosts  # noqa: F401
from braindecode_pars.signal_store._store import SignalStore
from braindecode_pars.signal_store._windows import StoreWindows

__all__ = ["SignalStore", "StoreWindows"]
