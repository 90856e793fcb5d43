"""Self-supervised pretraining for EEG that a scientist can trust.

recording -> window -> one channel -> patches -> tokens -> features -> prediction and target
                                        tokens.py    encoder.py     pretext/
The encoder then crosses to fine-tuning: models.py (PARSNet), trained by
pretraining.py and callbacks.py under skorch, wrapped for scikit-learn by
estimators/ (PARSClassifier, PARSEmbedder), fed by windows.py and window_set.py,
stored by pretrained.py and weights.py. datasets/ makes or reads windows, evaluation/ scores
estimators (contenders.py has ready ones) into tidy tables, plotting/ draws them, cli/ runs the
main jobs, and paper.py keeps the published hyperparameters.
"""

import warnings as _warnings

try:
    import torchaudio as _torchaudio  # noqa: F401  braindecode imports it
except (ImportError, OSError, RuntimeError) as _error:
    import torch as _torch

    raise ImportError(
        f"torch {_torch.__version__} and torchaudio do not load together "
        f"({(str(_error) or type(_error).__name__).splitlines()[0]}): install a pair built for "
        "the same CUDA version, for example with: pip install --force-reinstall "
        "'torch>=2.11,<2.15' 'torchaudio>=2.11,<2.12'"
    ) from None

with _warnings.catch_warnings():
    # braindecode 1.8 asks MNE for montages by names that MNE is about to retire.
    _warnings.filterwarnings("ignore", "Montage name", FutureWarning)
    import braindecode.models as _models

from braindecode_pars import datasets, evaluation, paper, plotting
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder
from braindecode_pars.models import PARSNet
from braindecode_pars.windows import as_sklearn

# So that braindecode finds it by name: EEGClassifier("PARSNet").
_models.util.models_dict.setdefault(PARSNet.__name__, PARSNet)

__version__ = "0.1.0"

__all__ = [
    "PARSClassifier",
    "PARSEmbedder",
    "PARSNet",
    "PatchEncoder",
    "as_sklearn",
    "datasets",
    "evaluation",
    "paper",
    "plotting",
]
