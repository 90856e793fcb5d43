"""scikit-learn estimators: PARS models, baselines, and subject-wise centering or alignment."""

from typing import TYPE_CHECKING

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars._common import names
from braindecode_pars.estimators.augmentation import ChannelNoise
from braindecode_pars.estimators.embedder import PARSEmbedder, TrainingCost
from braindecode_pars.estimators.pars_estimator import PARSClassifier, PARSRegressor
from braindecode_pars.estimators.transformers import EuclideanAlignment, SubjectCentering

if TYPE_CHECKING:
    from braindecode_pars.baselines.few_labels import FewLabelsClassifier
    from braindecode_pars.baselines.linear_probe import LinearProbe
    from braindecode_pars.baselines.network import NetworkClassifier
    from braindecode_pars.baselines.riemannian import RiemannianCentering
    from braindecode_pars.baselines.smoothing import HMMSmoothing

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
__getattr__, __dir__ = names.facade(__name__, __all__)
