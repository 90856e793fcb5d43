"""Predict a continuous recording, and return a table with one row per window.

The recording is preprocessed like the training data of the model. Differences from the training
data that remain are stored with the table as findings. If the user has to decide what to do about a
finding, a warning is issued. Windows are consecutive or overlap, and never contain a gap.
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
            "predict_raw() requires the sampling rate of the training windows, which is unknown. "
            "Set the parameter sfreq of the model (in Hz), and fit the model again."
        )
    # Preprocess the signals.
    source = raw
    raw, name = readers.open_recording(source)
    recording = prepare_recording(raw, name, clf, preprocess=preprocess)
    length, seconds = clf.n_times_, clf.n_times_ / clf.sfreq_
    starts = usable_starts(recording, length, overlap)
    if not len(starts):
        raise ValueError(
            f"The recording ({raw.duration:g} s) contains no window of {seconds:g} s that can be "
            'predicted. Windows with a gap or an annotation that starts with "BAD" are excluded. '
            "Pass a longer recording, or correct the annotations."
        )
    if not np.ptp(recording.signals, axis=1).any():
        names = checks.format_list([derivation.formula for derivation in recording.found])
        raise ValueError(
            f"All channels that the model uses are flat: {names}. The channels of the recording "
            f"are {checks.format_list(channel_names.odd_first(raw.ch_names))}. {MAY_BE_REFERENCE}"
        )
    rescaled = {"rescaled_by": rescale_signals(recording, clf)} if rescale else {}
    about = recording_findings(recording, clf, source) | rescaled
    # Predict all windows. The table has one row per window of a regular grid.
    windows, is_numeric = windows_from(recording, starts, length), is_regressor(clf)
    with checks.quiet("other_unit", "flat_windows"):  # findings about the recording include these
        values = clf.predict(windows)[:, None] if is_numeric else clf.predict_proba(windows)
    n_rows = recording.signals.shape[1] // length
    rows = grid_average(values, starts, length, n_rows)
    rows[~recording.may_use(np.arange(n_rows) * length, length)] = np.nan
    about |= dict(windows=n_rows, windows_not_predicted=int(np.isnan(rows[:, 0]).sum()))
    if hasattr(clf, "expected_score_"):  # the model was trained by a study
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
    """Return the name of each class of a classifier. If a class has no name, return its label.

    Parameters
    ----------
    clf : fitted classifier
        Classifier with named or unnamed classes.
    """
    names = getattr(clf, "class_names_", None) or {}
    return [str(names.get(label, label)) for label in clf.classes_.tolist()]


def _labels(probabilities: np.ndarray, codes: np.ndarray, classes: list[str]) -> pd.Series:
    """Return the class name of each window, or None if the window was not predicted."""
    indices = np.where(np.isnan(probabilities[:, 0]), -1, codes)
    # pandas 3 would convert None to NaN.
    return pd.Series(np.array([*classes, None], object)[indices], dtype=object)


def check_transitions(clf: Any) -> None:
    """Check that a classifier has the transition probabilities that smoothing requires.

    Parameters
    ----------
    clf : fitted classifier
        Classifier to check.

    Raises
    ------
    ValueError
        If the classifier has no transition probabilities.
    """
    if clf.transitions_ is None:
        raise ValueError(
            "smooth=True requires transition probabilities between classes. They could not be "
            "estimated in fit, because the training data contain no pair of consecutive windows. "
            "Fit the model again on consecutive windows, or use smooth=False."
        )


def grid_average(values: np.ndarray, starts: np.ndarray, length: int, n_rows: int) -> np.ndarray:
    """Average the predictions of overlapping windows in consecutive segments of equal length.

    Each window is weighted by the number of samples that it shares with the segment.

    Parameters
    ----------
    values : ndarray, shape (n_windows, n_classes)
        Predicted values of the windows.
    starts : ndarray of int, shape (n_windows,)
        First sample of each window.
    length : int
        Number of samples of each window, which is also the number of samples of each row.
    n_rows : int
        Number of rows. Row ``k`` starts at sample ``k * length``.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_classes)
        Weighted mean prediction of each row. NaN if no window shares samples with the row.

    Examples
    --------
    Three windows of 10 samples each overlap by half. Row 0 contains 10 samples of the first window
    (0.0) and 5 samples of the second window (1.0), so its mean is 5 / 15. The mean of row 1 is the
    same:

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
    """Preprocess a recording like the training data of a classifier or regressor.

    Parameters
    ----------
    raw : Raw
        Continuous recording.
    name : str
        Name of the recording.
    clf : fitted estimator
        Model that predicts the recording.
    preprocess : bool
        Whether to preprocess the recording. If False, the samples are not changed.

    Returns
    -------
    Prepared
        Preprocessed recording.
    """
    training = clf.preprocessing_, float(clf.sfreq_), clf.chs_info_
    return as_trained.prepare_as_trained(raw, name, *training, preprocess=preprocess)


def usable_starts(recording: as_trained.Prepared, length: int, overlap: float = 0.0) -> np.ndarray:
    """Return the first sample of each window that contains no gap and no "BAD" annotation.

    Windows start at all multiples of ``length`` samples. If ``overlap`` is not 0, windows also
    start at all multiples of ``(1 - overlap) * length`` samples, rounded to an integer.

    Parameters
    ----------
    recording : Prepared
        Preprocessed recording.
    length : int
        Length of a window in samples.
    overlap : float
        Overlap of consecutive windows, as a fraction of the window length.

    Returns
    -------
    ndarray of int
        First samples, in ascending order.
    """
    stop, step = recording.signals.shape[1] - length + 1, max(1, round((1 - overlap) * length))
    starts = np.union1d(np.arange(0, stop, length), np.arange(0, stop, step))
    return starts[recording.may_use(starts, length)]


def windows_from(recording: as_trained.Prepared, starts: np.ndarray, length: int) -> table.Windows:
    """Return the windows that start at ``starts``. Their samples are copied when they are read.

    Parameters
    ----------
    recording : Prepared
        Preprocessed recording.
    starts : ndarray of int
        First sample of each window.
    length : int
        Length of a window in samples.
    """
    array_views = sliding_window_view(recording.signals, length, axis=1).swapaxes(0, 1)
    # All windows of a recording come from the same subject.
    row = dict(reader=table.ItemReader(array_views), subject=recording.name, sfreq=recording.sfreq)
    row |= dict(channels=table.Montage.of(recording.chs_info))
    return convert.windows_of([row], recording=np.zeros(len(starts), dtype=int), item=starts)


def recording_findings(
    recording: as_trained.Prepared, clf: Any, source: Any = None
) -> dict[str, Any]:
    """Find properties of a recording that may impair its predictions, such as missing channels.

    Parameters
    ----------
    recording : Prepared
        Preprocessed recording.
    clf : fitted classifier
        Model that predicts the recording.
    source : Raw | path | None
        Recording as passed by the user. If it is a path, the path is also searched for the subject
        identifier.

    Returns
    -------
    dict of str to Any
        Value of each finding, by the name of the finding, such as the list of missing channels. All
        values can be written as JSON.

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
    if recording.missing:  # a note is enough, because the prediction issues a warning
        yield Finding("missing_channels", dict(value=recording.missing), "note")
    differing = {
        lead.name: lead.formula
        for lead in recording.found
        if lead in recording.not_rereferenced
        or (not lead.reference and channel_names.differing_references([lead.name, lead.channel]))
    }
    # A channel whose name does not contain a reference has the reference of the recording.
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
    # The average reference may include channels that the model does not use: the cap has more
    # electrodes than in training, or a reader of files assigned the type EEG to another signal.
    used = {lead.channel for lead in recording.found}
    further = sorted({name for lead in recording.found for name in lead.reference} - used)
    # If the model uses one channel or selected channels, the average reference in training also
    # included other electrodes, so only signals that are not electrodes are reported.
    if len(used) == 1 or getattr(clf, "channels", None):
        further = [n for n in further if channel_names.why_no_electrode({"ch_name": n})]
    if further:
        yield Finding("average_with", dict(value=further))


def _compare_preprocessing(recording: as_trained.Prepared) -> Iterator[Finding]:
    """Yield a finding with the preprocessing mismatches that cannot be corrected automatically."""
    if recording.differences:
        value = {step.name: str(step) for step in recording.differences}
        yield Finding("preprocessing_mismatch", dict(value=value, texts="; ".join(value.values())))


def _find_flat_clipped_channels(recording: as_trained.Prepared, window: float) -> Iterator[Finding]:
    """Yield findings with the number of seconds in which each channel is flat or clipped.

    Channels are ignored if this number is below 1 % of the duration of the recording, or below the
    length of a window.
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
    """Multiply all signals by the same factor, to match the amplitude of the training data.

    After rescaling, the median amplitude over channels equals the geometric mean of the lowest and
    the highest usual amplitude in the training data. Flat channels are ignored in the median,
    even if rounding errors of a filter make their amplitude slightly different from zero.

    Parameters
    ----------
    recording : Prepared
        Preprocessed recording. Its signals are changed in place.
    clf : fitted classifier
        Model that predicts the recording.

    Returns
    -------
    float
        Factor by which the signals were multiplied.

    Raises
    ------
    ValueError
        If the amplitude of the training data is unknown, or if no window can be predicted.
    """
    channel_amplitudes = np.array([*_amplitudes(recording, clf.n_times_).values()])
    if clf.amplitudes_ is None or not len(channel_amplitudes):
        raise ValueError(
            "rescale=True requires the amplitude of the training windows, which is unknown "
            "for this model. Use rescale=False."
        )
    is_used = channel_amplitudes * _FLAT > channel_amplitudes.max()
    middle = np.sqrt(clf.amplitudes_.low * clf.amplitudes_.high)
    factor = float(middle / np.median(channel_amplitudes[is_used]))
    recording.signals[...] *= np.float32(factor)
    return factor


def _amplitudes(recording: as_trained.Prepared, length: int) -> dict[str, float]:
    """Return the amplitude of each channel: the median SD over windows that can be predicted."""
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
        # Flat channels, in which filters leave rounding errors, are a separate finding.
        if amplitudes.MIN_MISMATCH_FACTOR <= usual.times_outside(amplitude) < _FLAT
    }
    if mismatched:
        value = {"found": mismatched, "trained": [usual.low, usual.high]}
        yield Finding("unusual_amplitudes", dict(value=value))


def _find_subject(recording: as_trained.Prepared, clf: Any, source: Any) -> Iterator[Finding]:
    """Yield a finding if the subject identifier of the recording occurs in the training data.

    The subject identifier is read from the file, or from the path of the file. It is compared with
    the labeled subjects and the pretraining subjects of the model. An identifier that consists only
    of digits is not compared with pretraining subjects from a known corpus, because the same
    numbers occur in many corpora.
    """
    card = getattr(clf, "encoder_card_", None)
    seen = subjects.SeenSubjects(card.seen_subjects if card is not None else ())
    labeled = subjects.SubjectKeys((card.finetune_subjects or ()) if card is not None else ())
    files = source.filenames if isinstance(source, mne.io.BaseRaw) else [source]
    from_path = subjects.possible_subjects(Path(files[0])) if files and files[0] else []
    his_id = (recording.raw.info["subject_info"] or {}).get("his_id")
    # Anonymous EDF files contain "X".
    names = [name for name in (his_id, *from_path) if name and name != "X"]
    for name in [str(name) for name in names if name in seen or name in labeled][:1]:
        yield Finding("subject_in_training", dict(value=name))


def _compare_centering(clf: Any) -> Iterator[Finding]:
    """Yield a finding if subtracting the mean of this recording removes the class difference."""
    by_mean = getattr(clf, "test_subject_data_", None) is tables.TestSubjectData.ALL_UNLABELED
    if by_mean and clf.one_class_recordings_:
        yield Finding("centered_alone", dict(value=True))


def _find_absent_stages(clf: Any) -> Iterator[Finding]:
    """Yield a finding with the sleep stages that a sleep staging model cannot predict."""
    classes = class_texts(clf) if hasattr(clf, "classes_") else []
    if absent := absent_stages(classes):
        yield Finding("absent_stages", dict(value=absent, classes=classes))


#: Minimum proportion of a recording that must be flat or clipped for a finding. It is not zero,
#: because the last record of an EDF file is often filled with zeros.
_MIN_PROPORTION = 0.01
#: A channel counts as flat if its amplitude is below the usual amplitude by at least this factor.
_FLAT = 1e9
