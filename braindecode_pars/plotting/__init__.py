"""Figures: functions that draw tidy DataFrames or arrays on matplotlib Axes.

Scores are drawn from the table that every protocol of the package returns. Its columns are
``protocol dataset method subject n_train_subjects seed metric value``. A row with the subject
``"all"`` is pooled over subjects. Series differ in marker, line style or hatching as well as in
colour.
"""

from braindecode_pars.plotting.ablation_grid import ablation_grid
from braindecode_pars.plotting.ablation_lines import ablation_lines
from braindecode_pars.plotting.calibration_curve import calibration_curve
from braindecode_pars.plotting.confusion_matrix import confusion_matrix
from braindecode_pars.plotting.embedding import embedding
from braindecode_pars.plotting.hypnodensity import hypnodensity
from braindecode_pars.plotting.hypnogram import hypnogram
from braindecode_pars.plotting.label_efficiency import label_efficiency
from braindecode_pars.plotting.lag_losses import lag_losses
from braindecode_pars.plotting.night import night
from braindecode_pars.plotting.paired_bars import paired_bars
from braindecode_pars.plotting.shift_matrices import shift_matrices
from braindecode_pars.plotting.spatial_attention import spatial_attention
from braindecode_pars.plotting.subject_dots import subject_dots
from braindecode_pars.plotting.training_curves import training_curves
from braindecode_pars.plotting.transfer import transfer

__all__ = [
    "ablation_grid",
    "ablation_lines",
    "calibration_curve",
    "confusion_matrix",
    "embedding",
    "hypnodensity",
    "hypnogram",
    "label_efficiency",
    "lag_losses",
    "night",
    "paired_bars",
    "shift_matrices",
    "spatial_attention",
    "subject_dots",
    "training_curves",
    "transfer",
]
