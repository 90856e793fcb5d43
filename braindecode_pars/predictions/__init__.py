"""Predictions of continuous recordings, and their conversion and evaluation.

``predict_raw`` of a fitted classifier returns a table of predictions. The functions of this module
convert this table to annotations, BIDS events or sleep statistics, and compare it with the labels
of an expert.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars._common.sleep_stages import UNSCORED, stage_of
from braindecode_pars.predictions.expert_agreement import agreement
from braindecode_pars.predictions.night import (
    sleep_statistics,
    smoothed,
    to_annotations,
    to_bids_events,
)

__all__ = [
    "UNSCORED",
    "agreement",
    "sleep_statistics",
    "smoothed",
    "stage_of",
    "to_annotations",
    "to_bids_events",
]
