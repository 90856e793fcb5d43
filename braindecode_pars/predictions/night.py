"""Convert predictions of a recording to annotations, BIDS events or sleep statistics.

All functions accept the table that ``predict_raw`` of a classifier returns. This table has one row
per window, and the columns ``onset`` and ``duration`` in seconds, ``label``, ``probability_LABEL``
for each class, and ``entropy``. To write the table to a CSV file, use
``frame.to_csv("recording1.csv", index=False)``. Names of sleep stages are recognized in many
spellings, and are ordered from wake to deep sleep.
"""

from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import entr

from braindecode_pars._common import checks, files, subjects, tables
from braindecode_pars._common.sleep_stages import (
    INCLUDED_STAGES,
    UNSCORED,
    are_stages,
    known_stages,
    stage_of,
)


def check_predictions(frame: pd.DataFrame) -> pd.DataFrame:
    """Check the columns and times of a table of predictions, and convert its labels to strings.

    Parameters
    ----------
    frame : DataFrame
        Predictions with the columns ``onset``, ``duration`` and ``label``.

    Returns
    -------
    DataFrame
        The same rows with a default index. Missing labels become None. All other labels are
        converted to strings, so that they match the column names ``probability_LABEL``. This
        includes numeric labels, because labels such as "0" and "1" are read from CSV files as
        integers, or as floats if a label is missing.

    Raises
    ------
    TypeError
        If ``frame`` is not a DataFrame.
    ValueError
        If a column is missing, if there are no rows, or if windows overlap or are not in
        chronological order.
    """
    tables.check_table(frame, "table of predictions", ("onset", "duration", "label"))
    frame = tables.with_numbers(frame.reset_index(drop=True), ["onset", "duration"])
    onset, duration = frame["onset"], frame["duration"]
    is_late = onset.iloc[1:].to_numpy() >= (onset + duration).iloc[:-1].to_numpy() - 1e-6
    if not (np.isfinite(onset).all() and (duration > 0).all() and is_late.all()):
        raise ValueError(
            "The table of predictions must contain the windows of a single recording, one per "
            "row, sorted by onset and without overlap. Onsets must be finite, and durations "
            "positive (in seconds). Pass each recording separately, or sort or correct the rows."
        )
    classes = [str(name).removeprefix(tables.PROBABILITY) for name in frame]
    texts = [
        None if pd.isna(label) else str(label if str(label) in classes else subjects.whole(label))
        for label in frame["label"].tolist()
    ]
    return frame.assign(label=pd.Series(texts, dtype=object))


def classes_of(frame: pd.DataFrame) -> list[str]:
    """Return the classes that have a column ``probability_LABEL``; if none, the labels of rows."""
    columns = [str(name) for name in frame if str(name).startswith(tables.PROBABILITY)]
    classes = [name.removeprefix(tables.PROBABILITY) for name in columns]
    return classes or sorted({label for label in frame["label"] if not pd.isna(label)})


def smoothed(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace the raw predictions in a table with its smoothed predictions.

    Parameters
    ----------
    frame : DataFrame
        Predictions of a recording, as returned by ``predict_raw`` of a classifier with
        ``smooth=True``.

    Returns
    -------
    DataFrame
        Table with the same rows. The columns ``label``, ``probability_LABEL`` and ``entropy``
        contain the smoothed predictions. All functions that accept a table of predictions also
        accept this table.

    Raises
    ------
    TypeError
        If ``frame`` is not a DataFrame.
    ValueError
        If ``frame`` contains no smoothed predictions (column ``label_smoothed``).

    Examples
    --------
    After smoothing, the second window has the label W instead of N1:

    >>> import pandas as pd
    >>> from braindecode_pars.predictions import smoothed
    >>> frame = pd.DataFrame(dict(onset=[0.0, 30.0], duration=30.0, label=["W", "N1"]))
    >>> frame = frame.assign(label_smoothed=["W", "W"], smoothed_W=[1.0, 0.5], smoothed_N1=[0, 0.5])
    >>> smoothed(frame)["label"].tolist()
    ['W', 'W']
    """
    tables.check_table(frame, "frame (of predict_raw with smooth=True)", [tables.SMOOTHED_LABEL])
    columns = [name for name in frame if str(name).startswith(tables.SMOOTHED)]
    names = [tables.PROBABILITY + name.removeprefix(tables.SMOOTHED) for name in columns]
    values = frame[columns].set_axis(names, axis=1)
    entropy = entr(values.to_numpy(float)).sum(axis=1)
    raw = frame.drop(columns=[tables.SMOOTHED_LABEL, *columns])
    return raw.assign(label=frame[tables.SMOOTHED_LABEL], **values, entropy=entropy)


def to_annotations(frame: pd.DataFrame, *, merge: bool = True) -> mne.Annotations:
    """Convert predictions to MNE annotations.

    By default, adjacent windows with the same label become one annotation, as in the annotation
    files of sleep corpora. Windows that were not predicted have no annotation. To view the
    annotations, use ``raw.plot()``. To divide them into windows again, use
    :func:`mne.events_from_annotations` with ``chunk_duration``, or the windowers of braindecode.

    Parameters
    ----------
    frame : DataFrame
        Predictions of a recording, as returned by ``predict_raw`` of a classifier.
    merge : bool
        Whether to merge adjacent windows with the same label. If False, each window has its own
        annotation.

    Returns
    -------
    mne.Annotations
        Annotations in seconds from the first sample of the recording (``orig_time=None``).
        ``raw.set_annotations(predicted)`` replaces the annotations of the recording with
        ``predicted``, the returned annotations. To add them to the existing annotations instead,
        use ``raw.annotations.append(predicted.onset + raw.first_time, predicted.duration,
        predicted.description)``. Do not use ``raw.annotations + predicted``: if the recording has a
        measurement date or was cropped, this sum raises an error or shifts the predictions.

    Raises
    ------
    TypeError, ValueError
        If ``frame`` is not a table of predictions.

    Examples
    --------
    The first two windows have the same label and are merged. The third window was not predicted:

    >>> import pandas as pd
    >>> from braindecode_pars.predictions import to_annotations
    >>> frame = pd.DataFrame(
    ...     dict(onset=[0.0, 30.0, 60.0, 90.0], duration=30.0, label=["W", "W", None, "N1"])
    ... )
    >>> annotations = to_annotations(frame)
    >>> annotations.description.tolist(), annotations.duration.tolist()
    (['W', 'N1'], [60.0, 30.0])
    """
    checks.boolean().check("merge", merge)
    rows = check_predictions(frame)
    rows = rows[[label is not None for label in rows["label"]]]
    stops = rows["onset"] + rows["duration"]
    is_next = np.isclose(rows["onset"], stops.shift()) & (rows["label"] == rows["label"].shift())
    segment_of_row = (~(is_next & merge)).cumsum()  # index of the annotation of each window
    groups = rows.assign(stop=stops).groupby(segment_of_row)
    segments = groups.agg({"onset": "first", "stop": "last", "label": "first"})
    return mne.Annotations(
        segments["onset"], segments["stop"] - segments["onset"], segments["label"]
    )


def to_bids_events(frame: pd.DataFrame, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write predictions as a BIDS events file, with a JSON file that describes its columns.

    The events file has one row per window. Its columns are ``onset`` and ``duration`` in seconds,
    ``trial_type`` (predicted label), ``probability_LABEL`` for each class, and ``entropy``. For
    windows that were not predicted, the label, the probabilities and the entropy are ``n/a``.

    In BIDS, predictions are derivatives. Write them to the folder ``derivatives`` of the dataset,
    with an entity ``desc`` in the file name, so that they do not replace the events of a human
    scorer.

    Parameters
    ----------
    frame : DataFrame
        Predictions of a recording, as returned by ``predict_raw`` of a classifier.
    path : path
        Events file to write, such as ``sub-01/eeg/sub-01_task-sleep_desc-pars_events.tsv``. The
        JSON file has the same name, but ends with ``.json``. Missing folders are created.
    overwrite : bool
        Whether to replace existing files.

    Returns
    -------
    Path
        Path of the events file.

    Raises
    ------
    FileExistsError
        If one of the files exists and ``overwrite`` is False.
    OSError
        If the files cannot be written. In this case, no file is changed.
    TypeError
        If ``frame`` is not a DataFrame.
    ValueError
        If ``frame`` is not a table of predictions, or if the file name does not end with
        ``_events.tsv``.

    References
    ----------
    Brain Imaging Data Structure, Modality agnostic files: Events,
    https://bids-specification.readthedocs.io.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars.predictions import to_bids_events
    >>> frame = pd.DataFrame(
    ...     dict(onset=[0.0, 30.0], duration=30.0, label=["W", None], probability_W=[0.75, None])
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_bids_events(frame, Path(folder, "sub-01_task-sleep_events.tsv"))
    ...     print(file.read_text().expandtabs(13))
    onset        duration     trial_type   probability_W
    0.0          30.0         W            0.75
    30.0         30.0         n/a          n/a
    <BLANKLINE>
    """
    path = Path(path).expanduser()
    if not path.name.endswith("_events.tsv"):
        raise ValueError(
            f"The file name in path must end with _events.tsv, as BIDS requires, got {path.name}."
        )
    rows = check_predictions(frame)
    descriptions = _descriptions(classes_of(rows))
    table = rows.rename(columns={"label": "trial_type"}).rename(columns=str)
    table = table[[name for name in descriptions if name in table]]
    sidecar = path.with_suffix(".json")
    existing = [str(file) for file in (path, sidecar) if file.exists()]
    if existing and not overwrite:
        raise FileExistsError(
            f"{existing[0]} already exists. Choose another path, or pass overwrite=True."
        )
    text = table.round(6).to_csv(sep="\t", index=False, na_rep="n/a", lineterminator="\n")
    columns = files.to_json({name: descriptions[name] for name in table}).encode()
    files.replace_files(path.parent, {path.name: text.encode(), sidecar.name: columns})
    return path


def _descriptions(classes: list[str]) -> dict[str, dict[str, Any]]:
    """Return the description of each column that an events file may have, as required by BIDS."""
    kind = "sleep stage" if are_stages(classes) else "class"
    levels = {name: f"{kind} {stage_of(name) or name}" for name in classes}
    trial_type = (
        "Predicted class of the window. The value is n/a if the window was not predicted, because "
        "it contains a gap or a period that is marked as bad."
    )
    entropy = (
        "Entropy of the predicted class probabilities. The value is 0 if one class has a "
        "probability of 1, and highest if all classes are equally probable."
    )
    return {
        "onset": {
            "Description": "Start of the window, relative to the first sample of the recording.",
            "Units": "s",
        },
        "duration": {"Description": "Length of the window.", "Units": "s"},
        "trial_type": {"LongName": "Predicted class", "Description": trial_type, "Levels": levels},
        **{
            f"{tables.PROBABILITY}{name}": {
                "Description": f"Predicted probability of the class {name}."
            }
            for name in levels
        },
        "entropy": {"Description": entropy, "Units": "nat"},
    }


#: Stages that are summed in each sleep statistic. Stages 3 and 4 of Rechtschaffen and Kales are N3.
_PARTS = {
    "N1": ("N1",),
    "N2": ("N2",),
    "N3": ("N3", "N4"),
    "REM": ("R",),
    "NREM": ("N1", "N2", "N3", "N4", "light", "NREM"),
}


def sleep_statistics(
    stages: pd.DataFrame | ArrayLike, *, window_seconds: float = 30.0
) -> dict[str, float]:
    """Compute sleep statistics, such as sleep efficiency and latencies, as defined in YASA.

    Parameters
    ----------
    stages : DataFrame | sequence of str, shape (n_windows,)
        Predictions of a recording, as returned by ``predict_raw`` of a classifier, or a sequence
        with the sleep stages of consecutive windows. Stages may have any usual spelling
        (:func:`~braindecode_pars.predictions.stage_of`).

        The time from the start of the first window to the end of the last window is used as the
        time in bed, so crop the recording to the period between lights off and lights on. Windows
        with the stage None, NaN, "unscored" or movement time, and gaps between the rows of a table,
        count as unscored.
    window_seconds : float
        Length of a window in seconds. Used only if ``stages`` is a sequence.

    Returns
    -------
    dict of str to float
        Durations and latencies are in minutes. ``SE``, ``SME`` and the values whose names begin
        with ``%`` are in percent:

        - ``TIB``: time in bed, from the start of the first to the end of the last window.
        - ``SPT``: sleep period time, from the start of the first to the end of the last window of
          sleep.
        - ``WASO``: wake after sleep onset, the duration of all windows of wake in the sleep period.
        - ``TST``: total sleep time, the duration of all windows of sleep.
        - ``WAKE``, ``N1``, ``N2``, ``N3``, ``REM``: duration of each stage.
        - ``NREM``, ``UNS``: duration of all NREM sleep, and of all unscored windows.
        - ``SOL``: sleep onset latency, the time from the start of the first window to the first
          window of sleep.
        - ``Lat_N1``, ``Lat_N2``, ``Lat_N3``, ``Lat_REM``: time from the start of the first window
          to the first window of each stage. The AASM defines the REM latency from sleep onset,
          which is ``Lat_REM - SOL``.
        - ``%N1``, ``%N2``, ``%N3``, ``%REM``, ``%NREM``: duration of each stage as a percentage of
          the total sleep time.
        - ``SE``: sleep efficiency, ``100 * TST / TIB``.
        - ``SME``: sleep maintenance efficiency, ``100 * TST / SPT``.

        In the following cases, values are NaN:

        - Latencies of stages that do not occur.
        - Percentages of the total sleep time, if there is no sleep.
        - Values of stages that are not distinguished. For example, if the stages are wake, light
          sleep, deep sleep and REM, the values of N1 and N2 are NaN.

    Raises
    ------
    ValueError
        If a name is not a known sleep stage, or if ``stages`` is empty.

    Notes
    -----
    Unscored windows are included in the time in bed, but count neither as sleep nor as wake.
    Therefore, they decrease the sleep efficiency. Statistics that are computed from predicted
    stages are affected by the errors of the model, and these errors do not cancel out. For example,
    the sleep onset latency is too long if the model predicts wake in windows of N1.

    References
    ----------
    Iber et al. 2007, The AASM manual for the scoring of sleep and associated events.

    Vallat and Walker 2021, An open-source, high-performance tool for automated sleep staging, eLife
    10:e70092 (YASA).

    Examples
    --------
    The stages of 800 windows of 30 seconds, which are 400 minutes:

    >>> from braindecode_pars.predictions import sleep_statistics
    >>> night = ["W"] * 40 + ["N1"] * 10 + ["N2"] * 400 + ["W"] * 50 + ["REM"] * 100 + ["W"] * 200
    >>> statistics = sleep_statistics(night)
    >>> [statistics[name] for name in ("TIB", "SPT", "WASO", "TST", "SOL")]
    [400.0, 280.0, 25.0, 255.0, 20.0]
    >>> round(statistics["SE"], 2), round(statistics["%REM"], 1)
    (63.75, 19.6)
    """
    checks.check_positive(window_seconds=window_seconds)
    windows = _scored_windows(stages, window_seconds)
    stage, start, minutes = windows["stage"], windows["start"], windows["minutes"]
    is_wake = stage == "W"
    sleep = windows[~is_wake & (stage != UNSCORED)]
    # If there is no sleep, the limits of the sleep period are NaN.
    sleep_onset, sleep_end = sleep["start"].min(), (sleep["start"] + sleep["minutes"]).max()
    in_period = start.between(sleep_onset, sleep_end, inclusive="left")
    # Durations and latencies are NaN for stages that are not distinguished.
    durations, latencies = {}, {}
    for name, parts in _PARTS.items():
        coarser = {coarse for coarse, fine in INCLUDED_STAGES.items() if {*fine} & {*parts}}
        is_known = not stage.isin(coarser - {*parts}).any()
        is_stage = stage.isin(parts) & is_known
        durations[name] = minutes[is_stage].sum() if is_known else np.nan
        if name != "NREM":
            latencies[f"Lat_{name}"] = start[is_stage].min()
    total = (start + minutes).iloc[-1]
    total_sleep, wake = sleep["minutes"].sum(), minutes[is_wake].sum()
    statistics = {
        "TIB": total,
        "SPT": sleep_end - sleep_onset if len(sleep) else 0.0,
        "WASO": minutes[is_wake & in_period].sum(),
        "TST": total_sleep,
        "WAKE": wake,
        **durations,
        "UNS": total - total_sleep - wake,
        "SOL": sleep_onset,
        **latencies,
        # If there is no sleep, percentages of the sleep time are NaN.
        **{f"%{name}": 100 * value / (total_sleep or np.nan) for name, value in durations.items()},
        "SE": 100 * total_sleep / total,
        "SME": 100 * total_sleep / (sleep_end - sleep_onset),
    }
    return {name: float(value) for name, value in statistics.items()}


def _scored_windows(stages: pd.DataFrame | ArrayLike, window_seconds: float) -> pd.DataFrame:
    """Return a table with the stage of each window, and its start and duration in minutes."""
    if not isinstance(stages, pd.DataFrame):
        labels = np.asarray(stages, dtype=object)
        onsets = np.arange(len(labels)) * window_seconds
        stages = pd.DataFrame(dict(onset=onsets, duration=window_seconds, label=labels))
    rows = check_predictions(stages)
    stage_of_name = known_stages([*classes_of(rows), *rows["label"].dropna()])
    return pd.DataFrame(
        {
            "stage": rows["label"].map(stage_of_name).fillna(UNSCORED),
            "start": (rows["onset"] - rows["onset"].iloc[0]) / 60,
            "minutes": rows["duration"] / 60,
        }
    )
