"""Pretraining runs on a SignalStore, in one process or several; a resumed run is bit-identical.

- ``_config``: the settings of a run.
- ``_corpus_size``, ``_plan``: what a run takes, before it is started.
- ``_run``: the run itself.
- ``_steps``: its data.
- ``_net``: its training loop.
- ``_checkpoint``: the state that it resumes from.
- ``_folder``: its folder.
- ``_records``: the files that it writes after each epoch.
- ``_held_out``: its loss on held-out subjects.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_config": ["RunConfig"],
        "_corpus_size": ["CorpusSize"],
        "_held_out": ["HeldOutLoss", "held_out_loss"],
        "_plan": ["RunPlan", "plan"],
        "_run": ["pretrain"],
    },
)
