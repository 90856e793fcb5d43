"""Pretraining, then what it is for, as scikit-learn estimators."""

from braindecode_pars.estimators.classifier import PARSClassifier
from braindecode_pars.estimators.embedder import PARSEmbedder

__all__ = ["PARSClassifier", "PARSEmbedder"]
