"""Folds of the protocols: fit an estimator on training windows and score its predictions.

``_corpus`` is the dataset that folds index into. ``_running`` runs folds, and ``_fold_store`` saves
finished folds. ``_probabilities`` are saved beside the predicted labels, and ``_scoring`` computes
the scores of both. ``_fingerprint`` describes what a result depends on, ``_code`` the code of the
user, and ``_digest`` makes long descriptions short. ``_seed`` sets the seed of a fold, and ``_gpu``
its device. ``_shared_encoders`` pretrains once for several folds. ``_fold_warnings`` shows a
warning of several folds once. ``_encoder_origin`` finds test subjects that an encoder was
pretrained on. ``_curves`` collects the losses by epoch.
"""

from braindecode_pars.evaluation.folds._corpus import Corpus
from braindecode_pars.evaluation.folds._running import Fold, FoldError, Run, run_folds

__all__ = ["Corpus", "Fold", "FoldError", "Run", "run_folds"]
