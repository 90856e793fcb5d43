"""Protocols that score any scikit-learn estimator; each returns one tidy DataFrame."""

from braindecode_pars.evaluation.band_power import LogBandPower
from braindecode_pars.evaluation.leave_one_subject_out import leave_one_subject_out
from braindecode_pars.evaluation.metrics import score_predictions

__all__ = ["LogBandPower", "leave_one_subject_out", "score_predictions"]
