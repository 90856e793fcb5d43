"""Protocols that score scikit-learn classifiers on held-out subjects.

Each protocol returns one tidy DataFrame."""

from braindecode_pars.evaluation.ablation import GRIDS, ablation
from braindecode_pars.evaluation.band_power import LogBandPower
from braindecode_pars.evaluation.compare import compare
from braindecode_pars.evaluation.cost import cost_table
from braindecode_pars.evaluation.folds import FoldError
from braindecode_pars.evaluation.label_efficiency import label_efficiency
from braindecode_pars.evaluation.leave_one_subject_out import leave_one_subject_out
from braindecode_pars.evaluation.metrics import score_predictions
from braindecode_pars.evaluation.paired_tests import describe_differences, paired_tests
from braindecode_pars.evaluation.spatial_covariance import SpatialCovariance
from braindecode_pars.evaluation.summary import score_table, summarize
from braindecode_pars.evaluation.transfer import transfer

__all__ = [
    "GRIDS",
    "FoldError",
    "LogBandPower",
    "SpatialCovariance",
    "ablation",
    "compare",
    "cost_table",
    "describe_differences",
    "label_efficiency",
    "leave_one_subject_out",
    "paired_tests",
    "score_predictions",
    "score_table",
    "summarize",
    "transfer",
]
