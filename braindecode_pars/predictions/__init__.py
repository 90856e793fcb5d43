"""Predictions of a recording: a table, and what to do with it.

The table of ``predict_raw`` becomes annotations, BIDS events or sleep statistics, and is compared
with the labels of an expert.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars._common.sleep_stages import UNSCORED, stage_of
from braindecode_pars.predictions.night import (
    agreement,
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
