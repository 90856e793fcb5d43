"""Self-supervised pretraining for EEG, with scores of people who were not in the training.

Four floors, the lowest first; a part imports only what is below it, and all may import _common/.

data        recordings/ files -> windows; windows/ any source -> one lazy dataset; signal_store/
            corpora on disk; datasets/ a recipe for each corpus
method      tokens.py one channel -> patches -> tokens; encoder.py -> features; models/ PARSNet,
            which fine-tunes, and an encoder of all channels; pretext/ tasks without labels;
            pretraining.py and callbacks.py train them, runs/ at scale; pretrained/ encoders as
            folders; paper.py its settings
estimators  estimators/ all of it for scikit-learn; baselines.py to compare with
scores      evaluation/ protocols -> tidy scores; predictions.py; plotting/; above them cli/

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
