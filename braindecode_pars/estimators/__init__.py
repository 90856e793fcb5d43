"""scikit-learn estimators: pretraining, then classification or embedding."""

import braindecode_pars._hosts  # noqa: F401
from braindecode_pars.estimators._classifier import PARSClassifier
from braindecode_pars.estimators._cost import TrainingCost
from braindecode_pars.estimators._embedder import PARSEmbedder
from braindecode_pars.estimators._euclidean_alignment import EuclideanAlignment
from braindecode_pars.estimators._network import NetworkClassifier
from braindecode_pars.estimators._subject_centering import SubjectCentering

__all__ = [
    "EuclideanAlignment",
    "NetworkClassifier",
    "PARSClassifier",
    "PARSEmbedder",
    "SubjectCentering",
    "TrainingCost",
]
