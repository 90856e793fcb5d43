"""SignalStore: a corpus of continuous recordings in one memory-mapped folder.

``_sources`` finds and prepares recordings, ``_reading`` does so several at a time, ``_samples``
encodes them, ``_index`` is what is known of them, ``_writing`` makes and extends a store,
``_store`` opens one, ``_windows`` cuts it into windows, and says to ``windows/`` what these are.
"""

from braindecode_pars.signal_store._store import SignalStore
from braindecode_pars.signal_store._windows import StoreWindows

__all__ = ["SignalStore", "StoreWindows"]
