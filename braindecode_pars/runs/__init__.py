"""Pretraining runs: on a SignalStore, on one process or several, resumable to the bit.

``_config`` is what a run depends on, ``_run`` the run itself; ``_steps`` are its data, ``_net`` its
training loop, ``_checkpoint`` what it resumes from, ``_folder`` where it lives, ``_records`` what
it writes after each epoch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"_config": ["RunConfig"], "_run": ["pretrain"]}
)
