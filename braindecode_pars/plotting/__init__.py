"""Figures: functions that draw tidy DataFrames or arrays on matplotlib Axes.

Scores are drawn from the table that every protocol of the package returns. Its columns are
``protocol dataset method subject n_train_subjects seed metric value``. A row with the subject
``"all"`` is pooled over subjects. Series differ in marker, line style or hatching as well as in
colour.
"""

from braindecode_pars.plotting.score_figures import (
    ablation_lines,
    control_gains,
    label_efficiency,
    subject_dots,
)
from braindecode_pars.plotting.sleep_figures import hypnodensity, hypnogram, night_page
from braindecode_pars.plotting.training_figures import (
    audit_map,
    confusion_matrix,
    person_in_features,
    shift_matrices,
    training_curves,
)

__all__ = [
    "ablation_lines",
    "audit_map",
    "confusion_matrix",
    "control_gains",
    "hypnodensity",
    "hypnogram",
    "label_efficiency",
    "night_page",
    "person_in_features",
    "shift_matrices",
    "subject_dots",
    "training_curves",
]
