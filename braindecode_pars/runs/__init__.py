"""Pretraining runs on a SignalStore, in one or several processes; resumed runs are identical."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["RunConfig"],
        "planning": ["CorpusSize", "RunPlan", "plan"],
        "run": ["pretrain"],
    },
)
