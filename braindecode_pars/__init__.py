"""Self-supervised pretraining for EEG, with scores of people who were not in the training.

recordings/    files -> windows; datasets/ has a recipe for each corpus
windows/       windows of any source -> one lazy dataset; signal_store/ holds corpora on disk
tokens.py      one channel -> patches -> tokens; encoder.py -> features; electrodes.py -> positions
pretext/       tasks without labels; pretraining.py trains them, runs/ does so at scale
models.py      PARSNet, which fine-tunes the encoder; estimators/ do all of it for scikit-learn
evaluation/    protocols -> tidy scores; baselines.py to compare with; plotting/ draws
pretrained.py  encoders as folders; paper.py has the published settings; cli/ the command line

Names are loaded when they are first used, so that ``import braindecode_pars`` costs nothing.
"""

from typing import Any

import lazy_loader

__version__ = "0.2.0"

_load, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["datasets", "evaluation", "paper", "plotting"],
    submod_attrs={
        "encoder": ["PatchEncoder"],
        "estimators": ["PARSClassifier", "PARSEmbedder", "SubjectCentering"],
        "models": ["PARSNet"],
        "windows": ["as_sklearn"],
    },
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        from braindecode_pars import _hosts  # noqa: F401  says what to install where they do not fit
    return _load(name)
