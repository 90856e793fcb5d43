"""Recordings are read in parallel, in order."""

from __future__ import annotations

import pickle

from braindecode_pars.signal_store.samples import _read
from braindecode_pars.signal_store.sources import Preparation, find_sources


def test_objects_sent_between_processes_can_be_pickled(recordings):
    preparation = Preparation(sfreq=50)
    for source in find_sources(recordings, None):
        (direct,) = _read(source, preparation, "int16")
        (pickled,) = pickle.loads(pickle.dumps(_read))(
            *pickle.loads(pickle.dumps((source, preparation, "int16")))
        )
        assert pickle.loads(pickle.dumps(pickled)).checksum == direct.checksum
