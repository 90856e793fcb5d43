"""Pretraining runs on a SignalStore, which can be interrupted and resumed.

On a CPU, in one process, a resumed run has the same result as an uninterrupted run.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["RunConfig"],
        "planning": ["CorpusSize", "RunPlan", "plan"],
        "run": ["pretrain"],
    },
)
