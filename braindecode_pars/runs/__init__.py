"""Pretraining runs on a SignalStore, in one process or several; a resumed run is bit-identical."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["RunConfig"],
        "planning": ["CorpusSize", "RunPlan", "plan"],
        "run": ["pretrain"],
    },
)
