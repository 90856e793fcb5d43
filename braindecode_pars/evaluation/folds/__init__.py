"""The engine of every protocol: fit on these windows, predict those, keep the answer.

``_corpus`` is the windows that folds are made of, ``_running`` runs them, ``_fold_store`` keeps
finished ones, ``_fingerprint`` says what they depend on, ``_encoder_origin`` whom an encoder has
seen, ``_curves`` how the losses went.
"""

from braindecode_pars.evaluation.folds._corpus import Corpus
from braindecode_pars.evaluation.folds._running import Fold, FoldError, Run, run_folds

__all__ = ["Corpus", "Fold", "FoldError", "Run", "run_folds"]
