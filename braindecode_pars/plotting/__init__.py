"""Plotting functions, which draw tables or arrays on matplotlib Axes.

Figures of scores are drawn from the table that an evaluation protocol (a function of
:mod:`braindecode_pars.evaluation`) returns. The columns of this table are ``protocol dataset method
subject n_train_subjects seed metric value``. Rows with the subject ``"all"`` contain scores of the
pooled windows of all test subjects. In all figures, series differ not only in color, but also in
marker, line style or hatching.
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
    from braindecode_pars.predictions.night_figures import (
        hypnodensity,
        hypnogram,
        night_page,
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
    "shift_matrices",
    "subject_dots",
    "subjects_in_features",
    "training_curves",
]
__getattr__, __dir__ = names.facade(__name__, __all__)
