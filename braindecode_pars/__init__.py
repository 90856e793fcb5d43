"""Self-supervised pretraining for EEG, evaluated on held-out subjects.

The package has five layers. A layer imports only from itself and from the layers that are listed
before it.

core
    tokens.py: patches and tokens of one channel. encoder.py: transformer encoder. models/: PARSNet
    for fine-tuning, and an encoder of all channels. pretext/: pretext tasks. pretraining.py and
    callbacks.py: training of the pretext tasks. paper.py: published hyperparameters. windows/:
    conversion of every supported input to one table of windows. estimators/: scikit-learn
    estimators. pretrained/: saving and loading of encoders. plotting/: figure style and training
    curves. _common/: files, names and channels.
evaluation
    evaluation/: evaluation protocols, which return tidy scores, and their figures. baselines/:
    methods to compare with.
data
    recordings/: conversion of files to windows. datasets/: a recipe for each corpus.
scale
    signal_store/: corpora on disk. runs/: long pretraining runs.
study
    study/: does pretraining help on a dataset? predictions/: predictions for whole recordings.
    cli/: the commands.

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
