"""Self-supervised pretraining for EEG, evaluated on held-out subjects.

The package has five layers. A layer imports only from itself and from the layers above it in this
list.

core
    tokens.py: patches (short segments of one channel) and tokens (the vectors that represent
    patches in the transformer). encoder.py: transformer encoder of one channel. models/: PARSNet
    for fine-tuning, and an encoder of all channels. pretext/: pretext tasks, which train an encoder
    without labels. pretraining.py and callbacks.py: training of an encoder on a pretext task.
    paper.py: hyperparameters of the PARS paper.
    windows/: conversion of every supported input to one table of windows. estimators/: scikit-learn
    estimators. pretrained/: saving and loading of encoders. plotting/: figure style and training
    curves. _common/: helper functions that are used by several of these modules.
evaluation
    evaluation/: evaluation protocols (functions that train and test methods on held-out subjects),
    which return tables of scores, and figures of these scores. baselines/: methods with which
    pretrained encoders are compared.
data
    recordings/: conversion of files to windows. datasets/: one recipe (a module that reads and
    preprocesses the recordings) for each public corpus.
scale
    signal_store/: a corpus of signals in one folder on disk, which is read without loading it into
    memory. runs/: pretraining runs that can be resumed.
study
    study/: tests of whether pretraining helps on a dataset. predictions/: predictions for new
    recordings. cli/: commands for the terminal.

Names are imported on first use, so that ``import braindecode_pars`` is fast.
"""

from typing import Any

import lazy_loader

__version__ = "0.2.0"

_load, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["datasets", "evaluation", "paper", "plotting"],
    submod_attrs={
        "encoder": ["PatchEncoder"],
        "estimators": [
            "FewLabelsClassifier",
            "PARSClassifier",
            "PARSEmbedder",
            "PARSRegressor",
            "SubjectCentering",
        ],
        "models": ["PARSNet"],
        "windows": ["as_sklearn"],
    },
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        from braindecode_pars._common import hosts as _hosts  # noqa: F401  checks host versions
    return _load(name)
