"""Pretraining runs on a SignalStore; a resumed run is identical to an uninterrupted run."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["RunConfig"],
        "planning": ["CorpusSize", "RunPlan", "plan"],
        "run": ["pretrain"],
    },
)
