"""What to do with the predictions of a recording: annotations, BIDS events, sleep statistics.

All functions take the table that ``predict_raw`` of a classifier returns. It has the columns
``onset`` and ``duration`` in seconds, ``label``, ``probability_LABEL`` for each class, and
``entropy``. For a CSV file, use ``frame.to_csv("night1.csv", index=False)``.
"""

from braindecode_pars.predictions._annotations import to_annotations
from braindecode_pars.predictions._bids_events import to_bids_events
from braindecode_pars.predictions._sleep_statistics import sleep_statistics

__all__ = ["sleep_statistics", "to_annotations", "to_bids_events"]
