"""Predictions of a continuous recording, as a table with one row for each window.

The recording is prepared as those of the training. What is found on the way is kept as findings,
with a warning where it matters. Windows lie side by side or overlap, and never contain a gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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

from braindecode_pars._common.channel_names import (
    differing_references,
    is_eeg,
    is_eeg_by_type,
    odd_first,
    with_types,
)
from braindecode_pars._common.checks import (
    boolean,
    check_parameters,
    check_same_rate,
    listed,
    share,
    warn_user,
)
from braindecode_pars._common.subjects import SubjectKeys, possible_subjects, public_corpora
from braindecode_pars._common.tables import SMOOTHED, SMOOTHED_LABEL
from braindecode_pars.estimators import smoothing
from braindecode_pars.recordings.as_trained import (
    Derivation,
    find_derivations,
    held_time,
    new_sample,
    preprocessed_signals,
    rereferenced,
)
from braindecode_pars.recordings.cutting import usable_stretches
from braindecode_pars.recordings.label_files import marks_of
from braindecode_pars.recordings.preparation import warn_of_other_names
from braindecode_pars.recordings.preprocessing import (
    AVERAGE,
    CHANGED,
    Difference,
    Preprocessing,
    differences,
    missing_steps,
    recorded,
    text_of,
)
from braindecode_pars.recordings.readers import open_recording
from braindecode_pars.windows import door
from braindecode_pars.windows.amplitudes import FAR, N_WINDOWS_IN_RANGE, spread_out
from braindecode_pars.windows.table import ItemReader, Montage, Windows


def predict_raw(
    clf: Any, raw: Any, *, overlap: float, preprocess: bool, rescale: bool, smooth: bool = False
) -> pd.DataFrame:
    """Predict a recording with a fitted model; see ``PARSClassifier.predict_raw``."""
    check_parameters(
        locals(),
        dict(overlap=share(), preprocess=boolean(), smooth=boolean(), rescale=boolean()),
        "predict_raw",
    )
    check_is_fitted(clf)
    if smooth:
        check_transitions(clf)
    if clf.sfreq_ is None:
        raise ValueError(
            "The sampling rate of the windows in fit is unknown, so no recording can be cut into "
            "such windows; fit again with sfreq (Hz)."
        )
    # Prepare the signals.
    given = raw
    raw, name = open_recording(given)
    if raw is not given:  # bad times in the table of BIDS beside a file
        raw.set_annotations(marks_of(raw, Path(given).expanduser()), verbose="error")
    recording = prepare_recording(raw, name, clf, preprocess=preprocess)
    length, seconds = clf.n_times_, clf.n_times_ / clf.sfreq_
    starts = recording.starts(length, overlap)
    if not len(starts):
        raise ValueError(
            f"No window of {seconds:g} s can be predicted: the recording has {raw.duration:g} s, "
            'and a window contains neither a gap nor an annotation that begins with "BAD".'
        )
    if not np.ptp(recording.signals, axis=1).any():
        names = listed([derivation.formula for derivation in recording.found])
        missing = f"; {listed(recording.missing)} missing" if recording.missing else ""
        raise ValueError(
            f"All channels of the model that the recording has are flat ({names}{missing}). It has "
            f"{listed(odd_first(raw.ch_names))}; {_MAY_BE_REFERENCE}."
        )
    rescaled = {"rescaled_by": rescale_signals(recording, clf)} if rescale else {}
    findings = recording_findings(recording, clf, possible_names(given, raw)) | rescaled
    # Predict. There is one row for each window of the grid.
    windows, numbers = recording.windows(starts, length), is_regressor(clf)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The amplitude of these windows")  # a finding says so
        values = clf.predict(windows)[:, None] if numbers else clf.predict_proba(windows)
    n_rows = recording.signals.shape[1] // length
    rows = grid_average(values, starts, length, n_rows)
    rows[~recording.may_predict(np.arange(n_rows) * length, length)] = np.nan
    findings |= dict(windows=n_rows, windows_not_predicted=int(np.isnan(rows[:, 0]).sum()))
    if numbers:
        onsets = np.arange(n_rows) * seconds
        frame = pd.DataFrame(dict(onset=onsets, duration=seconds, prediction=rows[:, 0]))
    else:
        frame = prediction_frame(rows, seconds, clf._class_texts)
    frame = frame.assign(n_chans=len(recording.found))
    if smooth:
        frame = frame.assign(**smoothed_columns(rows, clf.transitions_, clf._class_texts))
    channels = {derivation.name: derivation.formula for derivation in recording.found}
    frame.attrs |= dict(recording=name, channels=channels, findings=findings)
    return frame


def prediction_frame(probabilities: np.ndarray, seconds: float, classes: list[str]) -> pd.DataFrame:
    """Return the table of the probabilities of windows side by side.

    Parameters
    ----------
    probabilities : ndarray, shape (n_windows, n_classes)
        Probabilities; NaN for a window that was not predicted.
    seconds : float
        Length of a window in seconds.
    classes : list of str
        Names of the classes.

    Returns
    -------
    pandas.DataFrame
        Columns ``onset``, ``duration``, ``label``, ``probability_CLASS`` for each class, and
        ``entropy``.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.estimators.predict_raw import prediction_frame
    >>> frame = prediction_frame(np.array([[0.1, 0.9], [np.nan, np.nan]]), 30.0, ["W", "N1"])
    >>> frame["label"].tolist(), frame["onset"].tolist()
    (['N1', None], [0.0, 30.0])
    """
    frame = pd.DataFrame(
        {
            "onset": np.arange(len(probabilities)) * seconds,
            "duration": seconds,
            "label": _texts(probabilities, probabilities.argmax(axis=1), classes),
            **{f"probability_{name}": probabilities[:, i] for i, name in enumerate(classes)},
            "entropy": entr(probabilities).sum(axis=1),
        }
    )
    frame.attrs["classes"] = classes
    return frame


def smoothed_columns(
    probabilities: np.ndarray, transitions: smoothing.Transitions, classes: list[str]
) -> dict[str, Any]:
    """Return the further columns of predictions that are smoothed over time.

    Parameters
    ----------
    probabilities : ndarray, shape (n_windows, n_classes)
        Probabilities of windows side by side; NaN for a window that was not predicted, which has no
        smoothed prediction either.
    transitions : Transitions
        Transitions between the classes.
    classes : list of str
        Names of the classes.

    Returns
    -------
    dict of str to array
        ``label_smoothed``, and ``smoothed_CLASS`` for each class.
    """
    smoothed, path = transitions.smooth(probabilities)
    smoothed[np.isnan(probabilities)] = np.nan
    columns = {f"{SMOOTHED}{name}": smoothed[:, i] for i, name in enumerate(classes)}
    return {SMOOTHED_LABEL: _texts(probabilities, path, classes), **columns}


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


def window_starts(n_times: int, length: int, overlap: float = 0.0) -> np.ndarray:
    """Return the first samples of the windows to predict.

    Parameters
    ----------
    n_times, length : int
        Samples of the recording and of a window.
    overlap : float
        Share of a window, in [0, 1), that the next one repeats.

    Returns
    -------
    ndarray of int
        All multiples of the length, and those of the step ``(1 - overlap) * length``, rounded.

    Examples
    --------
    >>> from braindecode_pars.estimators.predict_raw import window_starts
    >>> window_starts(35, 10).tolist(), window_starts(35, 10, overlap=0.5).tolist()
    ([0, 10, 20], [0, 5, 10, 15, 20, 25])
    """
    step = max(1, round((1 - overlap) * length))
    stop = n_times - length + 1
    return np.union1d(np.arange(0, stop, length), np.arange(0, stop, step))


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
    >>> from braindecode_pars.estimators.predict_raw import grid_average
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


@dataclass(frozen=True, eq=False)
class RecordingToPredict:
    """A recording with the signals that a model receives.

    Attributes
    ----------
    raw : Raw
        The recording, unchanged.
    name : str
        Name of the recording.
    missing : list of str
        Channels of the model that the recording does not have.
    found : list of Derivation
        How the other channels of the model are found or computed.
    not_rereferenced : list of Derivation
        Those that do not have the reference of the model.
    differences : list of Difference
        What differs from the training and was not repaired.
    sfreq : float
        Sampling rate of the signals in Hz.
    signals : ndarray of float32, shape (n_found, n_times)
        Signals of the channels that were found, preprocessed.
    chs_info : list of dict
        These channels, as in ``mne.Info["chs"]``, with the names of the model.
    """

    raw: mne.io.BaseRaw
    name: str
    missing: list[str]
    found: list[Derivation]
    not_rereferenced: list[Derivation]
    differences: list[Difference]
    sfreq: float
    signals: np.ndarray
    chs_info: list[dict]

    @property
    def channels(self) -> list[str]:
        """Channels of the recording that are used."""
        return list(dict.fromkeys(name for each in self.found for name in each.channels))

    def may_predict(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Whether each window has neither a gap nor a "BAD" annotation, shape (n_windows,)."""
        may = np.zeros(len(starts), dtype=bool)
        for stretch in usable_stretches(self.raw, set(self.channels)):
            first, stop = (new_sample(sample, self.raw, self.sfreq) for sample in stretch)
            may |= (starts >= first) & (starts + length <= stop)
        return may

    def starts(self, length: int, overlap: float = 0.0) -> np.ndarray:
        """Return the first samples of all windows that can be predicted."""
        starts = window_starts(self.signals.shape[1], length, overlap)
        return starts[self.may_predict(starts, length)]

    def windows(self, starts: np.ndarray, length: int) -> Windows:
        """Return the windows that begin at some samples; each is copied when it is read."""
        views = sliding_window_view(self.signals, length, axis=1).swapaxes(0, 1)
        # One recording is of one subject.
        recording = dict(reader=ItemReader(views), subject=self.name, sfreq=self.sfreq)
        recording |= dict(channels=Montage.of(self.chs_info))
        return door.windows_of([recording], recording=np.zeros(len(starts), dtype=int), item=starts)


def prepare_recording(
    raw: mne.io.BaseRaw, name: str, clf: Any, *, preprocess: bool = True
) -> RecordingToPredict:
    """Find the channels of a model in a recording, and preprocess them as the model expects.

    Parameters
    ----------
    raw : Raw
        Continuous recording; it is not changed.
    name : str
        Name of the recording.
    clf : fitted classifier
        Model with ``sfreq_``, ``n_times_``, ``chs_info_`` and ``preprocessing_``. Parts between
        gaps that are shorter than its windows are not prepared.
    preprocess : bool
        Whether to preprocess. With False, the samples are used as they are.

    Returns
    -------
    RecordingToPredict
        The signals with their channels.

    Raises
    ------
    ValueError
        When no channel of the model is found, when samples are NaN or infinite, or when another
        sampling rate is not to be changed.
    """
    sfreq = float(clf.sfreq_)
    if not preprocess:
        remedy = "resample to {expected:g} Hz, or leave preprocess=False out"
        check_same_rate(raw.info["sfreq"], sfreq, "This recording is", "the model", remedy)
    # Compare the preprocessing.
    had, trained = recorded(raw.info), replace(clf.preprocessing_, sfreq=sfreq)
    names = [name for name in raw.ch_names if name not in raw.info["bads"]]
    eeg = [ch for ch in with_types(raw.info["chs"]) if ch["ch_name"] in names and is_eeg(ch)]
    eeg_names = [ch["ch_name"] for ch in eeg]
    if had.reference == CHANGED and _is_averaged(raw, eeg_names):
        had = replace(had, reference=AVERAGE)
    differing = [each for each in differences(trained, had) if not (preprocess and each.repair)]
    if (trained.reference, had.reference) == (AVERAGE, CHANGED):
        # Channels of an earlier average may be missing, so that another one is not the same.
        differing.append(Difference("reference", AVERAGE, CHANGED))
    to_apply = missing_steps(trained, had) if preprocess else Preprocessing()
    # Find the channels.
    chs_info = clf.chs_info_ or eeg
    wanted = [ch["ch_name"] for ch in chs_info]
    pairs = zip(find_derivations(wanted, names, compute=preprocess), chs_info, strict=True)
    places = [(replace(d, is_eeg=is_eeg_by_type(ch)), ch) for d, ch in pairs if d is not None]
    if not places:
        raise ValueError(
            f"The recording has none of the channels of the model ({listed(wanted) or 'EEG'}); it "
            f"has {listed(raw.ch_names)} (marked as bad: {listed(raw.info['bads']) or 'none'}). "
            "Rename them with raw.rename_channels if they are the same electrodes."
        )
    if not clf.chs_info_:
        warn_of_other_names(raw.info["chs"])
    derived = [derivation for derivation, _ in places]
    found, not_rereferenced = _with_reference(derived, to_apply.reference, eeg_names, names)
    return RecordingToPredict(
        raw=raw,
        name=name,
        missing=[name for name in wanted if name not in {d.name for d in found}],
        found=found,
        not_rereferenced=not_rereferenced,
        differences=differing,
        sfreq=sfreq,
        signals=preprocessed_signals(raw, found, sfreq, to_apply, shortest=clf.n_times_),
        chs_info=[ch for _, ch in places],
    )


def _is_averaged(raw: mne.io.BaseRaw, names: list[str]) -> bool:
    """Whether the mean of channels is zero, up to the precision of a file."""
    first = raw.n_times // 2
    block = raw.get_data(names, first, first + 1000, verbose="error") if names else np.zeros((0, 0))
    return len(names) > 1 and bool(np.abs(block.mean(axis=0)).max() < 1e-4 * block.std())


def _with_reference(
    derivations: list[Derivation], reference: str | None, eeg: list[str], found: list[str]
) -> tuple[list[Derivation], list[Derivation]]:
    """Return the channels with the reference of the model, and those that cannot have it."""
    changed = [rereferenced(each, reference, eeg, found) for each in derivations]
    failed = [d for d, after in zip(derivations, changed, strict=True) if after is None]
    if len({after.reference for after in changed if after and after.reference}) > 1:
        failed = derivations  # C3-M2 and C4-M1
    # All or none: a model compares its channels.
    return (derivations if failed else [after for after in changed if after]), failed


class Remark(NamedTuple):
    """A value that JSON supports, and a warning; nothing was found if the value is false."""

    name: str
    value: Any
    warning: str | None = None


def possible_names(given: Any, raw: mne.io.BaseRaw) -> list:
    """Return what may be the subject of a recording: by its file, and as MNE knows it.

    Parameters
    ----------
    given : Raw | path
        What the user has passed.
    raw : Raw
        The recording itself.
    """
    files = given.filenames if isinstance(given, mne.io.BaseRaw) else [given]
    named = [possible_subjects(Path(files[0]))] if files and files[0] else []
    told = (raw.info["subject_info"] or {}).get("his_id")
    return [name for name in (told, *chain(*named)) if name and name != "X"]  # X: EDF, anonymous


def recording_findings(
    recording: RecordingToPredict, clf: Any, subjects: Sequence = ()
) -> dict[str, Any]:
    """Return what differs from the training recordings and makes predictions doubtful.

    Parameters
    ----------
    recording : RecordingToPredict
        A prepared recording.
    clf : fitted classifier
        Model that predicts it.
    subjects : sequence
        What may be the name of its subject.

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
        *_find_channels(recording, clf),
        _find_preprocessing(recording),
        *_find_held_time(recording, clf.n_times_ / recording.sfreq),
        _find_amplitudes(recording, clf),
        _find_subject(subjects, clf),
    ]
    findings = [finding for finding in findings if finding.value]
    for finding in findings:
        if finding.warning is not None:
            warn_user(finding.warning)
    return {finding.name: finding.value for finding in findings}


def _find_channels(recording: RecordingToPredict, clf: Any) -> Iterator[Remark]:
    """Yield what is different about the channels of the recording, and about their reference."""
    yield Remark("missing_channels", recording.missing)  # the prediction itself warns
    others = {
        each.name: each.formula
        for each in recording.found
        if each in recording.not_rereferenced
        or (not each.is_computed and differing_references([each.name, each.formula]))
    }
    # A channel of the same name says nothing: its reference is that of the recording.
    named, had = (
        text_of("reference", each.reference)
        for each in (clf.preprocessing_, recorded(recording.raw.info))
    )
    texts = [
        f"{name} ({had})" if used == name else f"{used} for {name}" for name, used in others.items()
    ]
    yield Remark(
        "other_reference",
        others,
        f"The recording has another reference than the model was trained with"
        f"{f' ({named})' if recording.not_rereferenced else ''}, and cannot be given it: "
        f"{listed(texts, most=3)}. "
        "Re-reference it, or add the channels of the reference.",
    )
    is_averaged = clf.preprocessing_.reference == AVERAGE and not (
        others or any(each.name == "reference" for each in recording.differences)
    )
    chs_info = (clf.chs_info_ or []) if is_averaged else []
    absent = [ch["ch_name"] for ch in chs_info if is_eeg_by_type(ch)]
    absent = [name for name in absent if name in recording.missing]
    yield Remark(
        "average_without",
        absent,
        f"The average reference of the recording lacks {listed(absent)}, which it had in training, "
        "so that all channels differ from those of the training. Add them, or fit on the channels "
        "that all recordings have.",
    )


def _find_preprocessing(recording: RecordingToPredict) -> Remark:
    """Return what differs from the preprocessing of the training, and cannot be repaired here."""
    differing = recording.differences
    advice = "Leave preprocess=False out, or prepare the recording as in training."
    if any(each.trained == CHANGED for each in differing):
        advice = (
            "Re-reference it as in training, or fit with preprocessing={'reference': ...}, so that "
            "this is done here."
        )
    elif all(each.repair is None for each in differing):
        advice = "Start from the original recording, if there is one: this cannot be repaired here."
    return Remark(
        "prepared_otherwise",
        {each.name: str(each) for each in differing},
        "The recording was prepared otherwise than those of the training: "
        f"{'; '.join(map(str, differing))}. {advice}",
    )


def _find_held_time(recording: RecordingToPredict, window: float) -> Iterator[Remark]:
    """Yield the seconds in which channels are flat, or at an end of the range of the amplifier.

    It must be much of the recording, and at least a window.
    """
    held = held_time(recording.raw, recording.channels)
    duration = recording.raw.n_times / recording.raw.info["sfreq"]
    for how in ("flat", "clipped"):
        seconds = {name: getattr(time, how) for name, time in held.items()}
        seconds = {n: time for n, time in seconds.items() if time >= max(_SHARE * duration, window)}
        much = [f"{name} for {time:.0f} of {duration:.0f} s" for name, time in seconds.items()]
        has_whole = any(time >= 0.99 * duration for time in seconds.values())
        yield Remark(
            f"{how}_channels",
            seconds,
            f"Channels are {how}: {listed(much, most=3)}. Mark such a channel in raw.info['bads'], "
            f'or the time with an annotation "BAD {how}", to leave it out'
            f"{f'; {_MAY_BE_REFERENCE}' if how == 'flat' and has_whole else ''}.",
        )


def rescale_signals(recording: RecordingToPredict, clf: Any) -> float:
    """Multiply the signals so that their median amplitude is in the middle of the training's range.

    The middle is the geometric mean of both ends. Channels keep their ratios; flat ones, which the
    filters leave with rounding errors, do not count.

    Parameters
    ----------
    recording : RecordingToPredict
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
    usual, found = clf.amplitudes_, np.array([*_amplitudes(recording, clf.n_times_).values()])
    if usual is None or not len(found):
        raise ValueError("The amplitudes of the training windows are unknown; leave rescale out.")
    middle = float(np.sqrt(usual.low * usual.high))
    factor = middle / float(np.median(found[found * _FLAT > found.max()]))
    recording.signals[...] *= np.float32(factor)
    return factor


def _amplitudes(recording: RecordingToPredict, length: int) -> dict[str, float]:
    """Return the median standard deviation of each channel in windows that can be predicted."""
    starts = recording.starts(length)
    starts = starts[spread_out(len(starts), N_WINDOWS_IN_RANGE)]
    if not len(starts):
        return {}
    return {
        derivation.name: float(np.median(sliding_window_view(signal, length)[starts].std(axis=1)))
        for derivation, signal in zip(recording.found, recording.signals, strict=True)
    }


def _find_amplitudes(recording: RecordingToPredict, clf: Any) -> Remark:
    """Return the channels whose amplitude is a factor of five or more outside the training's."""
    usual = clf.amplitudes_
    if usual is None:
        return Remark("unusual_amplitudes", None)
    amplitudes = _amplitudes(recording, clf.n_times_)
    odd = {
        name: amplitude
        for name, amplitude in amplitudes.items()
        # A flat channel, which the filters leave with rounding errors, is another finding.
        if FAR <= usual.times_outside(amplitude) < _FLAT
    }
    shown = listed([f"{name} {amplitude:.1g}" for name, amplitude in odd.items()])
    return Remark(
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


def _find_subject(subjects: Sequence, clf: Any) -> Remark:
    """Return the name by which the subject was in the training, if it is known to have been.

    People of a published corpus are numbered there, so that a name alone does not tell them.
    """
    card = getattr(clf, "encoder_card_", None)
    known = card.seen_subjects if card is not None else ()
    seen = SubjectKeys(name for name in known if not public_corpora([name]))
    name = next((str(name) for name in subjects if name in seen), None)
    return Remark(
        "subject_in_training",
        name,
        f"The model was trained on a subject called {name}: if this is the same person, its "
        "predictions are better than those of new people, and no score of the model.",
    )


#: Smallest share of a recording that matters. The last record of an EDF file is often filled with
#: zeros.
_SHARE = 0.01
#: Factor below the usual amplitudes of a flat channel.
_FLAT = 1e9
