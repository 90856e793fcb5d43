"""Predictions as annotations of MNE."""

from __future__ import annotations

import mne
import numpy as np
import pandas as pd

from braindecode_pars.predictions._table import check_predictions

__all__ = ["to_annotations"]


def to_annotations(frame: pd.DataFrame, *, merge: bool = True) -> mne.Annotations:
    """Return predictions as annotations.

    Adjacent windows with the same label are one annotation, as in the files of sleep corpora. They
    are easy to see in ``raw.plot()``, and both :func:`mne.events_from_annotations` with
    ``chunk_duration`` and braindecode's windowers divide them into windows again. Windows that
    could not be predicted have no annotation.

    Parameters
    ----------
    frame : DataFrame
        Predictions of a recording, as from ``predict_raw``.
    merge : bool
        Whether adjacent windows with the same label are one annotation. With False, each window is
        one.

    Returns
    -------
    mne.Annotations
        Annotations in seconds from the first sample of the recording (``orig_time=None``), for
        ``raw.set_annotations``, which replaces those of the recording. To add ``found`` to them,
        use ``raw.annotations.append(found.onset + raw.first_time, found.duration,
        found.description)``: the sum of both fails or is late where the recording has a date of
        measurement or was cropped.

    Raises
    ------
    TypeError, ValueError
        When ``frame`` is not a table of predictions.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.predictions import to_annotations
    >>> frame = pd.DataFrame(
    ...     dict(onset=[0.0, 30.0, 60.0, 90.0], duration=30.0, label=["W", "W", None, "N1"])
    ... )
    >>> annotations = to_annotations(frame)
    >>> annotations.description.tolist(), annotations.duration.tolist()
    (['W', 'N1'], [60.0, 30.0])
    """
    rows = check_predictions(frame)
    rows = rows[[label is not None for label in rows["label"]]]
    stops = rows["onset"] + rows["duration"]
    is_next = np.isclose(rows["onset"], stops.shift()) & (rows["label"] == rows["label"].shift())
    run = (~(is_next & merge)).cumsum()  # number of the annotation of each window
    onsets = rows.groupby(run)["onset"].first()
    return mne.Annotations(
        onsets.to_numpy(),
        (stops.groupby(run).last() - onsets).to_numpy(),
        rows.groupby(run)["label"].first().to_numpy(),
        orig_time=None,
    )
