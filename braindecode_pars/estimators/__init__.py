"""Pretraining, then what it is for, as scikit-learn estimators."""

from braindecode_pars.estimators.classifier import PARSClassifier
from braindecode_pars.estimators.embedder import PARSEmbedder
from braindecode_pars.estimators.network import NetworkClassifier

__all__ = ["NetworkClassifier", "PARSClassifier", "PARSEmbedder"]
