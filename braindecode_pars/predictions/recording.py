"""Predictions of a continuous recording, as a table with one row for each window.

The recording is prepared as those of the training. What is found on the way is kept as findings,
with a warning where it matters. Windows lie side by side or overlap, and never contain a gap.
"""

import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import mne
import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import entr
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import channel_names, checks, subjects, tables
from braindecode_pars._common.sleep_stages import absent_stages
from braindecode_pars.recordings import as_trained, readers
from braindecode_pars.windows import amplitudes, convert, preprocessing, recorded_steps, table


def predict_raw(
    clf: Any, raw: Any, *, overlap: float, preprocess: bool, rescale: bool, smooth: bool = False
) -> pd.DataFrame:
    """Predict a recording with a fitted model; see ``PARSClassifier.predict_raw``."""
    rules = dict.fromkeys(("preprocess", "smooth", "rescale"), checks.boolean())
    checks.check_parameters(locals(), {"overlap": checks.proportion(), **rules}, "predict_raw")
    check_is_fitted(clf)
    if smooth:
        check_transitions(clf)
    if clf.sfreq_ is None:
        raise ValueError(
            "The sampling rate of the windows in fit is unknown, so no recording can be cut into "
            "such windows; fit again with sfreq (Hz)."
        )
    # Prepare the signals.
    source = raw
    raw, name = readers.open_recording(source)
    recording = prepare_recording(raw, name, clf, preprocess=preprocess)
    length, seconds = clf.n_times_, clf.n_times_ / clf.sfreq_
    starts = usable_starts(recording, length, overlap)
    if not len(starts):
        raise ValueError(
            f"No window of {seconds:g} s can be predicted: the recording has {raw.duration:g} s, "
            'and a window contains neither a gap nor an annotation that begins with "BAD".'
        )
    if not np.ptp(recording.signals, axis=1).any():
        names = checks.format_list([derivation.formula for derivation in recording.found])
        missing = f"; {checks.format_list(recording.missing)} missing" if recording.missing else ""
        raise ValueError(
            f"All channels of the model that the recording has are flat ({names}{missing}). It has "
            f"{checks.format_list(channel_names.odd_first(raw.ch_names))}; {_MAY_BE_REFERENCE}."
        )
    rescaled = {"rescaled_by": rescale_signals(recording, clf)} if rescale else {}
    findings = recording_findings(recording, clf, source) | rescaled
    # Predict. There is one row for each window of the grid.
    windows, numbers = windows_from(recording, starts, length), is_regressor(clf)
    with warnings.catch_warnings():
        for message in ("The amplitude of", "Channels are flat"):  # findings say so
            warnings.filterwarnings("ignore", message)
        values = clf.predict(windows)[:, None] if numbers else clf.predict_proba(windows)
    n_rows = recording.signals.shape[1] // length
    rows = grid_average(values, starts, length, n_rows)
    rows[~recording.may_use(np.arange(n_rows) * length, length)] = np.nan
    findings |= dict(windows=n_rows, windows_not_predicted=int(np.isnan(rows[:, 0]).sum()))
    if hasattr(clf, "expected_score_"):  # a model of a study
        findings["expected_score"] = clf.expected_score_
    columns = {"prediction": rows[:, 0]} if numbers else _class_columns(rows, class_texts(clf))
    frame = pd.DataFrame({"onset": np.arange(n_rows) * seconds, "duration": seconds, **columns})
    frame["n_chans"] = len(recording.found)
    if smooth:
        smoothed, path = clf.transitions_.smooth(rows)
        smoothed[np.isnan(rows)] = np.nan
        frame[tables.SMOOTHED_LABEL] = _texts(rows, path, class_texts(clf))
        for i, text in enumerate(class_texts(clf)):
            frame[f"{tables.SMOOTHED}{text}"] = smoothed[:, i]
    channels = {derivation.name: derivation.formula for derivation in recording.found}
    frame.attrs |= {} if numbers else dict(classes=class_texts(clf))
    frame.attrs |= dict(recording=name, channels=channels, findings=findings)
    return frame


def class_texts(clf: Any) -> list[str]:
    """Return the name of each class of a classifier, or its label as text where it has none."""
    names = getattr(clf, "class_names_", None) or {}
    return [str(names.get(label, label)) for label in clf.classes_.tolist()]


def _class_columns(probabilities: np.ndarray, classes: list[str]) -> dict[str, Any]:
    """Return the columns of predicted classes; a window that was not predicted has NaN."""
    return {
        "label": _texts(probabilities, probabilities.argmax(axis=1), classes),
        **{f"{tables.PROBABILITY}{name}": probabilities[:, i] for i, name in enumerate(classes)},
        "entropy": entr(probabilities).sum(axis=1),
    }


def _texts(probabilities: np.ndarray, codes: np.ndarray, classes: list[str]) -> pd.Series:
    """Return the names of classes by their indices; None in a window that was not predicted."""
    known = np.where(np.isnan(probabilities[:, 0]), -1, codes)
    # pandas 3 would make NaN of None
    return pd.Series(np.array([*classes, None], object)[known], dtype=object)


def check_transitions(clf: Any) -> None:
    """Check that a classifier knows the transitions of its training.

    Raises
    ------
    ValueError
        When it does not.
    """
    if clf.transitions_ is None:
        raise ValueError(
            "This model knows no transitions between labels, which smoothing needs: no two windows "
            "of its training touch in time. Fit again, on windows side by side."
        )


def grid_average(values: np.ndarray, starts: np.ndarray, length: int, n_rows: int) -> np.ndarray:
    """Average what was predicted for windows over the rows of the grid, by the time they share.

    Parameters
    ----------
    values : ndarray, shape (n_windows, n_classes)
        Values of the windows.
    starts : ndarray of int, shape (n_windows,)
        First sample of each window.
    length : int
        Samples of a window and of a row.
    n_rows : int
        Number of rows; row ``k`` begins at sample ``k * length``.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_classes)
        Means; NaN in a row that shares no sample with a window.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.predictions.recording import grid_average
    >>> values = np.array([[0.0], [1.0], [0.0]])
    >>> grid_average(values, np.array([0, 5, 10]), 10, 2).ravel().round(3).tolist()
    [0.333, 0.333]
    """
    totals, weights = np.zeros((n_rows + 1, values.shape[1])), np.zeros((n_rows + 1, 1))
    # A window shares samples with the row in which it begins, and with the next one.
    row, later = np.divmod(starts, length)
    for rows, shared in ((row, length - later), (row + 1, later)):
        np.add.at(totals, rows, shared[:, None] * values)
        np.add.at(weights, rows, shared[:, None])
    with np.errstate(invalid="ignore"):
        return (totals / weights)[:n_rows]


def prepare_recording(
    raw: mne.io.BaseRaw, name: str, clf: Any, *, preprocess: bool = True
) -> as_trained.Prepared:
    """Prepare a recording as those that a model was trained on."""
    return as_trained.prepare_as_trained(
        raw,
        name,
        clf.preprocessing_,
        float(clf.sfreq_),
        clf.chs_info_,
        preprocess=preprocess,
    )


def usable_starts(recording: as_trained.Prepared, length: int, overlap: float = 0.0) -> np.ndarray:
    """Return the first samples of all windows that can be predicted.

    They are multiples of the length, in samples, and of the step ``(1 - overlap) * length``,
    rounded.
    """
    stop, step = recording.signals.shape[1] - length + 1, max(1, round((1 - overlap) * length))
    starts = np.union1d(np.arange(0, stop, length), np.arange(0, stop, step))
    return starts[recording.may_use(starts, length)]


def windows_from(recording: as_trained.Prepared, starts: np.ndarray, length: int) -> table.Windows:
    """Return the windows that begin at some samples; each is copied when it is read."""
    views = sliding_window_view(recording.signals, length, axis=1).swapaxes(0, 1)
    # One recording is of one subject.
    row = dict(reader=table.ItemReader(views), subject=recording.name, sfreq=recording.sfreq)
    row |= dict(channels=table.Montage.of(recording.chs_info))
    return convert.windows_of([row], recording=np.zeros(len(starts), dtype=int), item=starts)


class RecordingFinding(NamedTuple):
    """A value that JSON supports, and a warning; nothing was found if the value is false."""

    name: str
    value: Any
    warning: str | None = None


def recording_findings(
    recording: as_trained.Prepared, clf: Any, source: Any = None
) -> dict[str, Any]:
    """Return what differs from the training recordings and makes predictions doubtful.

    Parameters
    ----------
    recording : Prepared
        A prepared recording.
    clf : fitted classifier
        Model that predicts it.
    source : Raw | path | None
        What the user has passed: its path may name the subject.

    Returns
    -------
    dict of str to Any
        Findings by name, as values that JSON supports. What was not found has no entry.

    Warns
    -----
    UserWarning
        One for each finding that needs a decision.
    """
    findings = [
        *_compare_channels(recording, clf),
        _compare_preprocessing(recording),
        *_find_flat_clipped_channels(recording, clf.n_times_ / recording.sfreq),
        _compare_amplitudes(recording, clf),
        _find_subject(recording, clf, source),
        _compare_centering(clf),
        _find_absent_stages(clf),
    ]
    findings = [finding for finding in findings if finding.value]
    for finding in findings:
        if finding.warning is not None:
            checks.warn_user(finding.warning)
    return {finding.name: finding.value for finding in findings}


def _compare_channels(recording: as_trained.Prepared, clf: Any) -> Iterator[RecordingFinding]:
    """Yield what is different about the channels of the recording, and about their reference."""
    yield RecordingFinding("missing_channels", recording.missing)  # the prediction itself warns
    others = {
        lead.name: lead.formula
        for lead in recording.found
        if lead in recording.not_rereferenced
        or (not lead.reference and channel_names.differing_references([lead.name, lead.channel]))
    }
    # A channel of the same name says nothing: its reference is that of the recording.
    named, had = (
        preprocessing.text_of("reference", steps.reference)
        for steps in (clf.preprocessing_, recorded_steps.recorded(recording.raw.info))
    )
    texts = [
        f"{name} ({had})" if used == name else f"{used} for {name}" for name, used in others.items()
    ]
    yield RecordingFinding(
        "other_reference",
        others,
        f"The recording has another reference than the model was trained with"
        f"{f' ({named})' if recording.not_rereferenced else ''}, and cannot be given it: "
        f"{checks.format_list(texts, max_items=3)}. "
        "Re-reference it, or add the channels of the reference.",
    )
    if clf.preprocessing_.reference != preprocessing.AVERAGE:
        return
    chs_info = clf.chs_info_ or []
    is_averaged = not (others or any(step.name == "reference" for step in recording.differences))
    absent = [ch["ch_name"] for ch in chs_info if channel_names.is_eeg_by_type(ch)]
    absent = [name for name in absent if name in recording.missing] if is_averaged else []
    yield RecordingFinding(
        "average_without",
        absent,
        f"The average reference of the recording lacks {checks.format_list(absent)}, which it had in "
        "training, so that all channels differ from those of the training. Add them, or fit on the "
        "channels that all recordings have.",
    )
    # Other caps have more electrodes, and readers give the type EEG to any signal.
    model = {lead.channel for lead in recording.found}
    further = sorted({name for lead in recording.found for name in lead.reference} - model)
    if len(model) == 1 or getattr(clf, "channels", None):  # electrodes were in that of training
        further = [n for n in further if channel_names.why_no_electrode({"ch_name": n})]
    yield RecordingFinding(
        "average_with",
        further,
        f"The average reference of the recording has {checks.format_list(further)}, not in the model. "
        "If they were not in the average in training, mark them as bad, or set another type.",
    )


def _compare_preprocessing(recording: as_trained.Prepared) -> RecordingFinding:
    """Return what differs from the preprocessing of the training, and cannot be repaired here."""
    differing = recording.differences
    advice = "Leave preprocess=False out, or prepare the recording as in training."
    if any(step.expected == preprocessing.CHANGED for step in differing):
        advice = (
            "Re-reference it as in training, or fit with preprocessing={'reference': ...}, so that "
            "this is done here."
        )
    elif all(step.repair is None for step in differing):
        advice = "Start from the original recording, if there is one: this cannot be repaired here."
    return RecordingFinding(
        "prepared_otherwise",
        {step.name: str(step) for step in differing},
        "The recording was prepared otherwise than those of the training: "
        f"{'; '.join(map(str, differing))}. {advice}",
    )


def _find_flat_clipped_channels(
    recording: as_trained.Prepared, window: float
) -> Iterator[RecordingFinding]:
    """Yield the seconds in which channels are flat, or at an end of the range of the amplifier.

    It must be much of the recording, and at least a window.
    """
    held = as_trained.flat_clipped_durations(recording.raw, recording.channels)
    duration = recording.raw.n_times / recording.raw.info["sfreq"]
    for how in ("flat", "clipped"):
        seconds = {name: getattr(time, how) for name, time in held.items()}
        seconds = {n: time for n, time in seconds.items() if time >= max(_SHARE * duration, window)}
        much = [f"{name} for {time:.0f} of {duration:.0f} s" for name, time in seconds.items()]
        has_whole = any(time >= 0.99 * duration for time in seconds.values())
        yield RecordingFinding(
            f"{how}_channels",
            seconds,
            f"Channels are {how}: {checks.format_list(much, max_items=3)}. Mark such a channel in "
            "raw.info['bads'], "
            f'or the time with an annotation "BAD {how}", to leave it out'
            f"{f'; {_MAY_BE_REFERENCE}' if how == 'flat' and has_whole else ''}.",
        )


def rescale_signals(recording: as_trained.Prepared, clf: Any) -> float:
    """Multiply the signals so that their median amplitude is in the middle of the training's range.

    The middle is the geometric mean of both ends. Channels keep their ratios; flat ones, which the
    filters leave with rounding errors, do not count.

    Parameters
    ----------
    recording : Prepared
        A prepared recording. Its signals are changed in place.
    clf : fitted classifier
        Model that predicts it.

    Returns
    -------
    float
        The factor.

    Raises
    ------
    ValueError
        When the amplitudes of the training are not known, or no window can be predicted.
    """
    usual, levels = clf.amplitudes_, np.array([*_amplitudes(recording, clf.n_times_).values()])
    if usual is None or not len(levels):
        raise ValueError("The amplitudes of the training windows are unknown; leave rescale out.")
    middle = float(np.sqrt(usual.low * usual.high))
    factor = middle / float(np.median(levels[levels * _FLAT > levels.max()]))
    recording.signals[...] *= np.float32(factor)
    return factor


def _amplitudes(recording: as_trained.Prepared, length: int) -> dict[str, float]:
    """Return the median standard deviation of each channel in windows that can be predicted."""
    starts = usable_starts(recording, length)
    starts = starts[amplitudes.evenly_spaced(len(starts), amplitudes.N_WINDOWS_IN_RANGE)]
    if not len(starts):
        return {}
    return {
        derivation.name: float(np.median(sliding_window_view(signal, length)[starts].std(axis=1)))
        for derivation, signal in zip(recording.found, recording.signals, strict=True)
    }


def _compare_amplitudes(recording: as_trained.Prepared, clf: Any) -> RecordingFinding:
    """Return the channels whose amplitude is a factor of five or more outside the training's."""
    usual = clf.amplitudes_
    if usual is None:
        return RecordingFinding("unusual_amplitudes", None)
    odd = {
        name: amplitude
        for name, amplitude in _amplitudes(recording, clf.n_times_).items()
        # A flat channel, which the filters leave with rounding errors, is another finding.
        if amplitudes.MIN_MISMATCH_FACTOR <= usual.times_outside(amplitude) < _FLAT
    }
    shown = checks.format_list([f"{name} {amplitude:.1g}" for name, amplitude in odd.items()])
    return RecordingFinding(
        "unusual_amplitudes",
        {"found": odd, "trained": [usual.low, usual.high]} if odd else None,
        f"The amplitude of channels is far outside that of the training ({usual.low:.1g} to "
        f"{usual.high:.1g}): {shown}. Check the unit and the gain of the file, or predict with "
        "rescale=True (--rescale); if the training windows were in microvolts, fit with "
        "preprocessing={'scale': 1e6}.",
    )


_MAY_BE_REFERENCE = (
    "one that is flat throughout may be the reference of the others, and is right in a difference "
    "such as C4-C3"
)


def _find_subject(recording: as_trained.Prepared, clf: Any, source: Any) -> RecordingFinding:
    """Return the name by which the subject was in the training, if it may have been.

    The name is in the file, as MNE knows it, or in its path. A number of an unknown corpus is
    compared with the subjects of the labels only: a pretrained encoder is from elsewhere.
    """
    card = getattr(clf, "encoder_card_", None)
    seen = subjects.SeenSubjects(card.seen_subjects if card is not None else ())
    labeled = subjects.SubjectKeys((card.finetune_subjects or ()) if card is not None else ())
    files = source.filenames if isinstance(source, mne.io.BaseRaw) else [source]
    named = [subjects.possible_subjects(Path(files[0]))] if files and files[0] else []
    his_id = (recording.raw.info["subject_info"] or {}).get("his_id")
    names = [name for name in (his_id, *chain(*named)) if name and name != "X"]  # EDF's anonymous
    name = next((str(name) for name in names if name in seen or name in labeled), None)
    return RecordingFinding(
        "subject_in_training",
        name,
        f"The model was trained on a subject called {name}: if this is the same person, its "
        "predictions are better than those of new people, and no score of the model.",
    )


def _compare_centering(clf: Any) -> RecordingFinding:
    """Return whether the mean of a recording alone removes what tells its class."""
    by_mean = getattr(clf, "test_subject_data_", None) is tables.TestSubjectData.ALL_UNLABELED
    return RecordingFinding(
        "centered_alone",
        by_mean and clf.one_class_recordings_,
        "The model subtracts the mean of each person, and in training each recording had one "
        "class. Of one recording alone, the mean removes its class, so that these predictions say "
        "nothing if it has one class, too. Adapt the model to windows of all recordings of the "
        "person before, or fit with recenter=None, in the command fit --set recenter=null.",
    )


def _find_absent_stages(clf: Any) -> RecordingFinding:
    """Return the sleep stages that a model of sleep stages cannot predict."""
    classes = class_texts(clf) if hasattr(clf, "classes_") else []
    absent = absent_stages(classes)
    return RecordingFinding(
        "absent_stages",
        absent,
        f"The model knows only {checks.format_list(classes)}; {', '.join(absent)} cannot come out, even "
        "where a probability is near 1. For whole nights, train on all stages.",
    )


#: Smallest share of a recording that matters. The last record of an EDF file is often filled with
#: zeros.
_SHARE = 0.01
#: Factor below the usual amplitudes of a flat channel.
_FLAT = 1e9
