"""Figures: functions that draw tidy DataFrames or arrays on matplotlib Axes.

Scores are drawn from the table that every protocol of the package returns. Its columns are
``protocol dataset method subject n_train_subjects seed metric value``. A row with the subject
``"all"`` is pooled over subjects. Series differ in marker, line style or hatching as well as in
color.
"""

from typing import TYPE_CHECKING

from braindecode_pars._common import names
from braindecode_pars.plotting.training_figures import (
    confusion_matrix,
    shift_matrices,
    training_curves,
)

if TYPE_CHECKING:
    from braindecode_pars.evaluation.audit_figures import audit_map, subjects_in_features
    from braindecode_pars.evaluation.score_figures import (
        ablation_lines,
        control_gains,
        label_efficiency,
        subject_dots,
    )
    from braindecode_pars.predictions.night_figures import hypnodensity, hypnogram, night_page

__all__ = [
    "ablation_lines",
    "audit_map",
    "confusion_matrix",
    "control_gains",
    "hypnodensity",
    "hypnogram",
    "label_efficiency",
    "night_page",
    "shift_matrices",
    "subject_dots",
    "subjects_in_features",
    "training_curves",
]
__getattr__, __dir__ = names.facade(__name__, __all__)
