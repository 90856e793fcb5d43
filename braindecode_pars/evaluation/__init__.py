"""Evaluate classifiers on held-out subjects, test differences between methods, audit encoders.

Each evaluation protocol, such as :func:`leave_one_subject_out`, returns one tidy DataFrame of
scores."""

from typing import TYPE_CHECKING

from braindecode_pars._common import names
from braindecode_pars.baselines import cost_table
from braindecode_pars.baselines.window_features import (
    ChannelFeatures,
    LogAmplitude,
    LogBandPower,
    LowFrequencyAmplitude,
    SpatialCovariance,
)
from braindecode_pars.estimators.windows_estimator import features_computed_once
from braindecode_pars.evaluation.ablation import GRIDS, ablation
from braindecode_pars.evaluation.audits import audit_encoder
from braindecode_pars.evaluation.changed_signals import ControlSignals
from braindecode_pars.evaluation.controls import control_gains, controls, describe_controls
from braindecode_pars.evaluation.folds import FoldError
from braindecode_pars.evaluation.metrics import (
    regression_scores,
    score_predictions,
    score_table,
    summarize,
    worst_subjects,
)
from braindecode_pars.evaluation.paired_tests import (
    describe_differences,
    mean_interval,
    paired_tests,
    power,
)
from braindecode_pars.evaluation.protocols import (
    compare,
    evaluate,
    label_efficiency,
    leave_one_subject_out,
    reproduce,
    transfer,
)
from braindecode_pars.evaluation.split_audit import audit_split
from braindecode_pars.evaluation.splitters import (
    LabeledSubjects,
    LabeledWindows,
    LeaveOneSubjectOut,
    WithinSubject,
)
from braindecode_pars.evaluation.subject_information import LinearErasure, audit_subjects

if TYPE_CHECKING:
    from braindecode_pars.study.study import study
    from braindecode_pars.study.study_results import Study

__all__ = [
    "GRIDS",
    "ChannelFeatures",
    "ControlSignals",
    "FoldError",
    "LabeledSubjects",
    "LabeledWindows",
    "LeaveOneSubjectOut",
    "LinearErasure",
    "LogAmplitude",
    "LogBandPower",
    "LowFrequencyAmplitude",
    "SpatialCovariance",
    "Study",
    "WithinSubject",
    "ablation",
    "audit_encoder",
    "audit_split",
    "audit_subjects",
    "compare",
    "control_gains",
    "controls",
    "cost_table",
    "describe_controls",
    "describe_differences",
    "evaluate",
    "features_computed_once",
    "label_efficiency",
    "leave_one_subject_out",
    "mean_interval",
    "paired_tests",
    "power",
    "regression_scores",
    "reproduce",
    "score_predictions",
    "score_table",
    "study",
    "summarize",
    "transfer",
    "worst_subjects",
]
__getattr__, __dir__ = names.facade(__name__, __all__)
