"""scikit-learn estimators: pretraining, then classification, regression or embedding."""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.estimators.augmentation import ChannelNoise
from braindecode_pars.estimators.embedder import PARSEmbedder, TrainingCost
from braindecode_pars.estimators.few_labels import FewLabelsClassifier
from braindecode_pars.estimators.linear_probe import LinearProbe
from braindecode_pars.estimators.network import NetworkClassifier
from braindecode_pars.estimators.pars_estimator import PARSClassifier, PARSRegressor
from braindecode_pars.estimators.smoothing import HMMSmoothing
from braindecode_pars.estimators.transformers import (
    EuclideanAlignment,
    RiemannianCentering,
    SubjectCentering,
)

__all__ = [
    "ChannelNoise",
    "EuclideanAlignment",
    "FewLabelsClassifier",
    "HMMSmoothing",
    "LinearProbe",
    "NetworkClassifier",
    "PARSClassifier",
    "PARSEmbedder",
    "PARSRegressor",
    "RiemannianCentering",
    "SubjectCentering",
    "TrainingCost",
]
