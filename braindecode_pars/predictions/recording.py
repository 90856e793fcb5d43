"""Predict a continuous recording: return a table with one row per window.

The recording is preprocessed like the training data. Differences from the training data are stored
as findings, with a warning if a decision of the user is required. Windows are consecutive or
overlap, and never contain a gap.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import entr
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import channel_names, checks, findings, subjects, tables
from braindecode_pars._common.finding_texts import MAY_BE_REFERENCE
from braindecode_pars._common.findings import Finding
from braindecode_pars._common.sleep_stages import absent_stages
from braindecode_pars.recordings import as_trained, readers
from braindecode_pars.windows import amplitudes, convert, preprocessing, recorded_steps, table


def predict_raw(
    clf: Any, raw: Any, *, overlap: float, preprocess: bool, rescale: bool, smooth: bool = False
) -> pd.DataFrame:
    """Predict a recording with a fitted model. See ``PARSClassifier.predict_raw``."""
    rules = dict.fromkeys(("preprocess", "smooth", "rescale"), checks.boolean())
    checks.check_parameters(locals(), {"overlap": checks.proportion(), **rules}, "predict_raw")
    check_is_fitted(clf)
    if smooth:
        check_transitions(clf)
    if clf.sfreq_ is None:
        raise ValueError(
            "predict_raw needs the sampling rate of the training windows, which is unknown. Refit "
            "with sfreq, in Hz."
        )
    # Preprocess the signals.
    source = raw
    raw, name = readers.open_recording(source)
    recording = prepare_recording(raw, name, clf, preprocess=preprocess)
    length, seconds = clf.n_times_, clf.n_times_ / clf.sfreq_
    starts = usable_starts(recording, length, overlap)
    if not len(starts):
        raise ValueError(
            f"No window of {seconds:g} s can be predicted. The recording lasts {raw.duration:g} s, "
            'and windows with a gap or an annotation that starts with "BAD" are excluded. Pass a '
            "longer recording, or correct the annotations."
        )
    if not np.ptp(recording.signals, axis=1).any():
        names = checks.format_list([derivation.formula for derivation in recording.found])
        raise ValueError(
            f"All channels that the model uses are flat: {names}. The recording contains "
            f"{checks.format_list(channel_names.odd_first(raw.ch_names))}. {MAY_BE_REFERENCE}"
        )
    rescaled = {"rescaled_by": rescale_signals(recording, clf)} if rescale else {}
    about = recording_findings(recording, clf, source) | rescaled
    # Predict. The table has one row per window of a regular grid.
    windows, is_numeric = windows_from(recording, starts, length), is_regressor(clf)
    with checks.quiet("other_unit", "flat_windows"):  # there are findings of the recording
        values = clf.predict(windows)[:, None] if is_numeric else clf.predict_proba(windows)
    n_rows = recording.signals.shape[1] // length
    rows = grid_average(values, starts, length, n_rows)
    rows[~recording.may_use(np.arange(n_rows) * length, length)] = np.nan
    about |= dict(windows=n_rows, windows_not_predicted=int(np.isnan(rows[:, 0]).sum()))
    if hasattr(clf, "expected_score_"):  # a model of a study
        about["expected_score"] = clf.expected_score_
    frame = pd.DataFrame({"onset": np.arange(n_rows) * seconds, "duration": seconds})
    if is_numeric:
        frame["prediction"] = rows[:, 0]
    else:
        classes = class_texts(clf)
        frame.attrs["classes"] = classes
        frame["label"] = _labels(rows, rows.argmax(axis=1), classes)
        frame[[f"{tables.PROBABILITY}{name}" for name in classes]] = rows
        frame["entropy"] = entr(rows).sum(axis=1)
    frame["n_chans"] = len(recording.found)
    if smooth:
        smoothed, codes = clf.transitions_.smooth(rows)
        frame[tables.SMOOTHED_LABEL] = _labels(rows, codes, classes)
        smoothed[np.isnan(rows)] = np.nan
        frame[[f"{tables.SMOOTHED}{name}" for name in classes]] = smoothed
    channels = {derivation.name: derivation.formula for derivation in recording.found}
    frame.attrs |= dict(recording=name, channels=channels, findings=about)
    return frame


def class_texts(clf: Any) -> list[str]:
    """Return the name of each class of a classifier, or the label of a class without a name."""
    names = getattr(clf, "class_names_", None) or {}
    return [str(names.get(label, label)) for label in clf.classes_.tolist()]


def _labels(probabilities: np.ndarray, codes: np.ndarray, classes: list[str]) -> pd.Series:
    """Return class names for class indices. Windows that were not predicted are None."""
    indices = np.where(np.isnan(probabilities[:, 0]), -1, codes)
    # pandas 3 would convert None to NaN.
    return pd.Series(np.array([*classes, None], object)[indices], dtype=object)


def check_transitions(clf: Any) -> None:
    """Check that a classifier has transition probabilities, which smoothing requires.

    Raises
    ------
    ValueError
        If the classifier has no transition probabilities.
    """
    if clf.transitions_ is None:
        raise ValueError(
            "smooth=True requires transition probabilities between classes, but the training data "
            "contain no pair of consecutive windows to estimate them. Refit on consecutive "
            "windows, or use smooth=False."
        )


def grid_average(values: np.ndarray, starts: np.ndarray, length: int, n_rows: int) -> np.ndarray:
    """Return the mean prediction in each row of a regular grid, from overlapping windows.

    A window is weighted by the number of samples that it shares with the row.

    Parameters
    ----------
    values : ndarray, shape (n_windows, n_classes)
        Predicted values of the windows.
    starts : ndarray of int, shape (n_windows,)
        First sample of each window.
    length : int
        Number of samples of a window and of a row.
    n_rows : int
        Number of rows; row ``k`` starts at sample ``k * length``.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_classes)
        Weighted means; NaN in rows without a window.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.predictions.recording import grid_average
    >>> values = np.array([[0.0], [1.0], [0.0]])
    >>> grid_average(values, np.array([0, 5, 10]), 10, 2).ravel().round(3).tolist()
    [0.333, 0.333]
    """
    totals, weights = np.zeros((n_rows + 1, values.shape[1])), np.zeros((n_rows + 1, 1))
    # A window shares samples with the row in which it starts, and with the next row.
    row, later = np.divmod(starts, length)
    for rows, shared in ((row, length - later), (row + 1, later)):
        np.add.at(totals, rows, shared[:, None] * values)
        np.add.at(weights, rows, shared[:, None])
    with np.errstate(invalid="ignore"):
        return (totals / weights)[:n_rows]


def prepare_recording(
    raw: mne.io.BaseRaw, name: str, clf: Any, *, preprocess: bool = True
) -> as_trained.Prepared:
    """Preprocess a recording like the training data of a model."""
    training = clf.preprocessing_, float(clf.sfreq_), clf.chs_info_
    return as_trained.prepare_as_trained(raw, name, *training, preprocess=preprocess)


def usable_starts(recording: as_trained.Prepared, length: int, overlap: float = 0.0) -> np.ndarray:
    """Return the first samples of all windows that can be predicted.

    Windows start at all multiples of ``length``, and at all multiples of the step, which is
    ``(1 - overlap) * length``, rounded.
    """
    stop, step = recording.signals.shape[1] - length + 1, max(1, round((1 - overlap) * length))
    starts = np.union1d(np.arange(0, stop, length), np.arange(0, stop, step))
    return starts[recording.may_use(starts, length)]


def windows_from(recording: as_trained.Prepared, starts: np.ndarray, length: int) -> table.Windows:
    """Return the windows that start at the given samples. Windows are copied when read."""
    array_views = sliding_window_view(recording.signals, length, axis=1).swapaxes(0, 1)
    # A recording comes from one subject.
    row = dict(reader=table.ItemReader(array_views), subject=recording.name, sfreq=recording.sfreq)
    row |= dict(channels=table.Montage.of(recording.chs_info))
    return convert.windows_of([row], recording=np.zeros(len(starts), dtype=int), item=starts)


def recording_findings(
    recording: as_trained.Prepared, clf: Any, source: Any = None
) -> dict[str, Any]:
    """Return differences between a recording and the training data that may impair predictions.

    Parameters
    ----------
    recording : Prepared
        Preprocessed recording.
    clf : fitted classifier
        Model that predicts the recording.
    source : Raw | path | None
        Recording as passed by the user. The path may contain the subject identifier.

    Returns
    -------
    dict of str to Any
        Findings by name, as values that JSON supports.

    Warns
    -----
    UserWarning
        For each finding that requires a decision of the user.
    """
    checked = [
        *_compare_channels(recording, clf),
        *_compare_preprocessing(recording),
        *_find_flat_clipped_channels(recording, clf.n_times_ / recording.sfreq),
        *_compare_amplitudes(recording, clf),
        *_find_subject(recording, clf, source),
        *_compare_centering(clf),
        *_find_absent_stages(clf),
    ]
    for finding in checked:
        if finding.level == "warning":
            findings.warn(finding)
    return {finding.kind: finding.values["value"] for finding in checked}


def _compare_channels(recording: as_trained.Prepared, clf: Any) -> Iterator[Finding]:
    """Yield findings about missing channels, and about differences in the reference."""
    if recording.missing:  # the prediction warns
        yield Finding("missing_channels", dict(value=recording.missing), "note")
    differing = {
        lead.name: lead.formula
        for lead in recording.found
        if lead in recording.not_rereferenced
        or (not lead.reference and channel_names.differing_references([lead.name, lead.channel]))
    }
    # If the channel name does not contain the reference, it is the reference of the recording.
    expected, actual = (
        preprocessing.text_of("reference", steps.reference)
        for steps in (clf.preprocessing_, recorded_steps.recorded(recording.raw.info))
    )
    if differing:
        shown = expected if recording.not_rereferenced else None
        yield Finding("other_reference", dict(value=differing, actual=actual, expected=shown))
    if clf.preprocessing_.reference != preprocessing.AVERAGE:
        return
    chs_info = clf.chs_info_ or []
    is_averaged = not differing and all(step.name != "reference" for step in recording.differences)
    absent = [ch["ch_name"] for ch in chs_info if channel_names.is_eeg_by_type(ch)]
    absent = [name for name in absent if name in recording.missing] if is_averaged else []
    if absent:
        yield Finding("average_without", dict(value=absent))
    # Caps may have more electrodes, and file readers assign the type EEG to any signal.
    used = {lead.channel for lead in recording.found}
    further = sorted({name for lead in recording.found for name in lead.reference} - used)
    # With one or selected channels, other electrodes were in the average reference in training.
    if len(used) == 1 or getattr(clf, "channels", None):
        further = [n for n in further if channel_names.why_no_electrode({"ch_name": n})]
    if further:
        yield Finding("average_with", dict(value=further))


def _compare_preprocessing(recording: as_trained.Prepared) -> Iterator[Finding]:
    """Yield preprocessing mismatches that cannot be corrected automatically."""
    if recording.differences:
        value = {step.name: str(step) for step in recording.differences}
        yield Finding("preprocessing_mismatch", dict(value=value, texts="; ".join(value.values())))


def _find_flat_clipped_channels(recording: as_trained.Prepared, window: float) -> Iterator[Finding]:
    """Yield findings with the durations for which channels are flat, or clipped, in seconds.

    Durations below 1 % of the recording, or below the length of a window, are ignored.
    """
    durations = as_trained.flat_clipped_durations(recording.raw, recording.channels)
    total = recording.raw.n_times / recording.raw.info["sfreq"]
    minimum = max(_MIN_PROPORTION * total, window)
    for state in ("flat", "clipped"):
        seconds = {name: getattr(duration, state) for name, duration in durations.items()}
        seconds = {name: duration for name, duration in seconds.items() if duration >= minimum}
        if seconds:
            yield Finding(f"{state}_channels", dict(value=seconds, total=total))


def rescale_signals(recording: as_trained.Prepared, clf: Any) -> float:
    """Rescale all signals to the amplitude of the training data, by the same factor.

    After rescaling, the median amplitude over channels is the geometric mean of the amplitude range
    of the training data. Flat channels, in which filters leave rounding errors, are ignored in this
    median.

    Parameters
    ----------
    recording : Prepared
        Preprocessed recording. Its signals are changed in place.
    clf : fitted classifier
        Model that predicts the recording.

    Returns
    -------
    float
        The factor.

    Raises
    ------
    ValueError
        If the amplitude of the training data is unknown, or no window can be predicted.
    """
    channel_amplitudes = np.array([*_amplitudes(recording, clf.n_times_).values()])
    if clf.amplitudes_ is None or not len(channel_amplitudes):
        raise ValueError(
            "rescale=True requires the amplitude of the training windows, which is unknown. Use "
            "rescale=False."
        )
    is_used = channel_amplitudes * _FLAT > channel_amplitudes.max()
    middle = np.sqrt(clf.amplitudes_.low * clf.amplitudes_.high)
    factor = float(middle / np.median(channel_amplitudes[is_used]))
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


def _compare_amplitudes(recording: as_trained.Prepared, clf: Any) -> Iterator[Finding]:
    """Yield a finding if amplitudes are outside the training range by a factor of at least five."""
    usual = clf.amplitudes_
    if usual is None:
        return
    mismatched = {
        name: amplitude
        for name, amplitude in _amplitudes(recording, clf.n_times_).items()
        # Flat channels are a separate finding. (Filters leave rounding errors in flat channels.)
        if amplitudes.MIN_MISMATCH_FACTOR <= usual.times_outside(amplitude) < _FLAT
    }
    if mismatched:
        value = {"found": mismatched, "trained": [usual.low, usual.high]}
        yield Finding("unusual_amplitudes", dict(value=value))


def _find_subject(recording: as_trained.Prepared, clf: Any, source: Any) -> Iterator[Finding]:
    """Yield a finding if the training data contain the subject identifier of the recording.

    The identifier is read from the file, or from its path. An identifier that is only a number is
    compared with all labeled subjects. It is not compared with pretraining subjects of a known
    corpus, because the same numbers occur in many corpora.
    """
    card = getattr(clf, "encoder_card_", None)
    seen = subjects.SeenSubjects(card.seen_subjects if card is not None else ())
    labeled = subjects.SubjectKeys((card.finetune_subjects or ()) if card is not None else ())
    files = source.filenames if isinstance(source, mne.io.BaseRaw) else [source]
    from_path = subjects.possible_subjects(Path(files[0])) if files and files[0] else []
    his_id = (recording.raw.info["subject_info"] or {}).get("his_id")
    names = [name for name in (his_id, *from_path) if name and name != "X"]  # X: anonymous in EDF
    for name in [str(name) for name in names if name in seen or name in labeled][:1]:
        yield Finding("subject_in_training", dict(value=name))


def _compare_centering(clf: Any) -> Iterator[Finding]:
    """Yield a finding if centering by the mean of one recording removes the class difference."""
    by_mean = getattr(clf, "test_subject_data_", None) is tables.TestSubjectData.ALL_UNLABELED
    if by_mean and clf.one_class_recordings_:
        yield Finding("centered_alone", dict(value=True))


def _find_absent_stages(clf: Any) -> Iterator[Finding]:
    """Yield a finding with the sleep stages that a sleep staging model cannot predict."""
    classes = class_texts(clf) if hasattr(clf, "classes_") else []
    if absent := absent_stages(classes):
        yield Finding("absent_stages", dict(value=absent, classes=classes))


#: Minimum flat or clipped proportion of a recording for a finding. The last record of an EDF file
#: is often filled with zeros.
_MIN_PROPORTION = 0.01
#: Minimum factor by which the amplitude of a flat channel is below the usual amplitude.
_FLAT = 1e9
