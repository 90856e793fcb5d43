"""SignalStore: a corpus of continuous recordings in one memory-mapped folder.

``sources`` finds and prepares recordings, ``reading`` does so several at a time, ``samples``
encodes them, ``index`` is what is known of them, ``writing`` makes and extends a store, ``store``
opens one, ``windows`` cuts it.
"""

from braindecode_pars.signal_store.store import SignalStore

__all__ = ["SignalStore"]
