"""Self-supervised pretraining for EEG, with scores of people who were not in the training.

Five parts, the lowest first; a part imports only what is below it.

core        tokens.py one channel -> patches -> tokens; encoder.py -> features; models/ PARSNet,
            which fine-tunes, and an encoder of all channels; pretext/ tasks without labels;
            pretraining.py and callbacks.py train them; paper.py its settings; windows/ any source
            -> one table; estimators/ all of it for scikit-learn; pretrained/ encoders as folders;
            plotting/ style and curves; _common/ files, names, channels
evaluation  evaluation/ protocols -> tidy scores, with figures; baselines/ to compare with
data        recordings/ files -> windows; datasets/ a recipe for each corpus
scale       signal_store/ corpora on disk; runs/ long pretraining
study       study/ does pretraining help here; predictions/ of recordings; cli/ the commands

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
        from braindecode_pars._common import hosts as _hosts  # noqa: F401  says what to install where they do not fit
    return _load(name)
