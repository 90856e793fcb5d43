"""Predictions of a continuous recording, as a table with one row for each window.

The recording is prepared as those of the training. What is found on the way is kept as findings,
with a warning where it matters. Windows lie side by side or overlap, and never contain a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import mne
import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common.channel_names import (
    differing_references,
    is_eeg,
    is_eeg_by_type,
    match_channels,
)
from braindecode_pars._common.checks import (
    boolean,
    check_parameters,
    check_same_rate,
    listed,
    share,
    warn_user,
)
from braindecode_pars.estimators.recentring import MIN_WINDOWS
from braindecode_pars.models.electrodes import electrode_positions
from braindecode_pars.recordings.as_trained import (
    Derivation,
    HeldTime,
    find_derivations,
    held_time,
    missing_steps,
    new_sample,
    preprocessed_signals,
    rereferenced,
)
from braindecode_pars.recordings.cutting import usable_stretches
from braindecode_pars.recordings.preprocessing import (
    AS_RECORDED,
    Difference,
    Preprocessing,
    differences,
    recorded,
    text_of,
)
from braindecode_pars.recordings.readers import open_recording
from braindecode_pars.windows.amplitudes import N_WINDOWS_IN_RANGE, spread_out
from braindecode_pars.windows.door import windows_of
from braindecode_pars.windows.table import ItemReader, Montage, Windows

RULES = dict(overlap=share(), preprocess=boolean())


def predict_raw(clf: Any, raw: Any, *, overlap: float, preprocess: bool) -> pd.DataFrame:
    """Predict a recording with a fitted classifier; see ``LogitClassifier.predict_raw``."""
    # Check everything before a file is read.
    check_parameters(dict(overlap=overlap, preprocess=preprocess), RULES, "predict_raw")
    check_is_fitted(clf)
    sfreq, length = _known_rate(clf), clf.n_times_

    # Prepare the signals.
    raw, name = open_recording(raw)
    _check_length(raw, length / sfreq)
    recording = prepare_recording(
        raw, name, sfreq, length, clf.chs_info_, clf.preprocessing_, preprocess=preprocess
    )
    _check_signals(recording)
    findings = recording_findings(recording, clf)

    # Predict the windows that can be predicted.
    starts = window_starts(recording.n_times, length, overlap)
    starts = starts[recording.may_predict(starts, length)]
    _check_windows(clf, starts, recording, length / sfreq)
    probabilities = clf.predict_proba(recording.windows(starts, length))

    # One row for each window of the grid.
    n_rows = recording.n_times // length
    rows = grid_average(probabilities, starts, length, n_rows)
    rows[~recording.may_predict(np.arange(n_rows) * length, length)] = np.nan
    findings["windows"] = n_rows
    findings["windows_not_predicted"] = int(np.isnan(rows[:, 0]).sum())
    frame = prediction_frame(rows, length / sfreq, clf._class_texts)
    frame.attrs |= {"recording": name, "findings": findings}
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
    predicted = ~np.isnan(probabilities[:, 0])
    labels = np.full(len(probabilities), None, object)
    labels[predicted] = np.array(classes, object)[probabilities[predicted].argmax(axis=1)]
    frame = pd.DataFrame(
        {
            "onset": np.arange(len(probabilities)) * seconds,
            "duration": seconds,
            "label": pd.Series(labels, dtype=object),  # pandas 3 would make NaN of None
            **{f"probability_{name}": probabilities[:, i] for i, name in enumerate(classes)},
            "entropy": entr(probabilities).sum(axis=1),
        }
    )
    frame.attrs["classes"] = classes
    return frame


def _known_rate(clf: Any) -> float:
    if clf.sfreq_ is None:
        raise ValueError(
            f"The sampling rate of the windows in fit is unknown, so {type(clf).__name__} cannot "
            "cut a recording into such windows; fit again with sfreq (Hz)."
        )
    return float(clf.sfreq_)


def _check_length(raw: Any, seconds: float) -> None:
    recorded = raw.n_times / raw.info["sfreq"]
    if round(recorded, 6) < round(seconds, 6):
        raise ValueError(
            f"The recording has {recorded:g} s, less than one window of the model ({seconds:g} s)."
        )


def _check_signals(recording: RecordingToPredict) -> None:
    if not np.ptp(recording.signals, axis=1).any():
        names = ", ".join(d.formula for d in recording.found)
        raise ValueError(
            f"All channels of the recording are flat ({names}), so there is nothing to predict; "
            "was the recording exported without its signals?"
        )


def _check_windows(
    clf: Any, starts: np.ndarray, recording: RecordingToPredict, seconds: float
) -> None:
    """Check that there are windows, and for a model that recentres, enough for a mean."""
    if not len(starts):
        raise ValueError(
            f"No window of {seconds:g} s of the recording can be predicted: each contains a gap or "
            'an annotation that begins with "BAD".'
        )
    if getattr(clf, "recenter", None) is not None and len(starts) < MIN_WINDOWS:
        raise ValueError(
            f"The recording has {len(starts)} windows of {seconds:g} s that can be predicted; a "
            f"model with recenter='subject' needs at least {MIN_WINDOWS} for the mean of a subject."
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
    wanted : list of str
        Channels of the model; all EEG channels of the recording when those are unknown.
    derivations : list of (Derivation | None)
        How each wanted channel is found or computed; None for a missing one.
    not_rereferenced : list of Derivation
        Those that do not have the reference of the model.
    trained : Preprocessing
        Preprocessing of the recordings that the model was trained on.
    applied : Preprocessing
        What was applied to the recording.
    differences : list of Difference
        What differs from the training and was not repaired.
    sfreq : float
        Sampling rate of the signals in Hz.
    signals : ndarray of float32, shape (n_found, n_times)
        Signals of the channels that were found, preprocessed.
    chs_info : list of dict
        These channels, as in ``mne.Info["chs"]``, with the names of the model.
    usable : list of (int, int)
        Parts of the signals without gaps and "BAD" annotations: first sample, last + 1.
    """

    raw: mne.io.BaseRaw
    name: str
    wanted: list[str]
    derivations: list[Derivation | None]
    not_rereferenced: list[Derivation]
    trained: Preprocessing
    applied: Preprocessing
    differences: list[Difference]
    sfreq: float
    signals: np.ndarray
    chs_info: list[dict]
    usable: list[tuple[int, int]]

    @property
    def found(self) -> list[Derivation]:
        """The derivations of the signals."""
        return [derivation for derivation in self.derivations if derivation is not None]

    @cached_property
    def held(self) -> dict[str, HeldTime]:
        """Time in which the used channels of the recording are flat or clipped."""
        names = dict.fromkeys(name for d in self.found for name in d.channels)
        return held_time(self.raw, names)

    @property
    def n_times(self) -> int:
        """Number of samples of the signals."""
        return self.signals.shape[1]

    def may_predict(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Whether each window is in a usable part as a whole, shape (n_windows,)."""
        may = np.zeros(len(starts), dtype=bool)
        for first, stop in self.usable:
            may |= (starts >= first) & (starts + length <= stop)
        return may

    def windows(self, starts: np.ndarray, length: int) -> Windows:
        """Return the windows that begin at some samples; each is copied when it is read."""
        views = sliding_window_view(self.signals, length, axis=1).swapaxes(0, 1)
        recording = dict(
            reader=ItemReader(views),
            subject=self.name,  # one recording is of one subject
            sfreq=self.sfreq,
            channels=Montage.of(self.chs_info),
        )
        numbers = np.zeros(len(starts), dtype=int)
        return windows_of([recording], recording=numbers, item=starts)


def prepare_recording(
    raw: mne.io.BaseRaw,
    name: str,
    sfreq: float,
    length: int,
    chs_info: list[dict] | None,
    trained: Preprocessing,
    *,
    preprocess: bool = True,
) -> RecordingToPredict:
    """Find the channels of a model in a recording, and preprocess them as the model expects.

    Parameters
    ----------
    raw : Raw
        Continuous recording; it is not changed.
    name : str
        Name of the recording.
    sfreq : float
        Sampling rate of the model in Hz.
    length : int
        Samples of a window; shorter parts between gaps are not prepared.
    chs_info : list of dict | None
        Channels of the model, as in ``mne.Info["chs"]``; None or empty when they are unknown.
    trained : Preprocessing
        Preprocessing of the recordings that the model was trained on.
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
    if not preprocess:
        check_same_rate(
            raw.info["sfreq"],
            sfreq,
            "This recording is",
            "the model",
            remedy="resample to {expected:g} Hz, or leave preprocess=False out",
        )
    # Compare the preprocessing.
    had, trained = recorded(raw.info), replace(trained, sfreq=sfreq)
    differing = [each for each in differences(trained, had) if not (preprocess and each.repair)]
    applied = missing_steps(trained, had) if preprocess else Preprocessing()
    # Find the channels.
    names = [name for name in raw.ch_names if name not in raw.info["bads"]]
    eeg = [ch for ch in raw.info["chs"] if ch["ch_name"] in names and is_eeg(ch)]
    chs_info = chs_info or eeg
    wanted = [ch["ch_name"] for ch in chs_info]
    derivations = find_derivations(wanted, names, compute=preprocess)
    if derivations.count(None) == len(wanted):
        raise ValueError(_nothing_found(wanted, raw))
    derivations = [
        derivation and replace(derivation, is_eeg=is_eeg_by_type(ch))
        for derivation, ch in zip(derivations, chs_info, strict=True)
    ]
    derivations, not_rereferenced = _with_reference(
        derivations, applied.reference, [ch["ch_name"] for ch in eeg], names
    )
    # Read and preprocess them.
    found = [derivation for derivation in derivations if derivation is not None]
    used = {channel for derivation in found for channel in derivation.channels}
    return RecordingToPredict(
        raw=raw,
        name=name,
        wanted=wanted,
        derivations=derivations,
        not_rereferenced=not_rereferenced,
        trained=trained,
        applied=applied,
        differences=differing,
        sfreq=sfreq,
        signals=preprocessed_signals(raw, found, sfreq, applied, shortest=length),
        chs_info=[ch for ch, d in zip(chs_info, derivations, strict=True) if d is not None],
        usable=[
            (new_sample(start, raw, sfreq), new_sample(stop, raw, sfreq))
            for start, stop in usable_stretches(raw, used)
        ],
    )


def _with_reference(
    derivations: Sequence[Derivation | None],
    reference: str | None,
    eeg: Sequence[str],
    found: Sequence[str],
) -> tuple[list[Derivation | None], list[Derivation]]:
    """Return the channels with the reference of the model, and those that cannot have it."""
    changed = [d and rereferenced(d, reference, eeg, found) for d in derivations]
    failed = [
        before
        for before, after in zip(derivations, changed, strict=True)
        if before is not None and after is None
    ]
    if len({after.reference for after in changed if after and after.reference}) > 1:
        failed = [before for before in derivations if before is not None]  # C3-M2 and C4-M1
    # All or none: a model compares its channels.
    return (list(derivations) if failed else changed), failed


def _nothing_found(wanted: Sequence[str], raw: Any) -> str:
    bads = raw.info["bads"]
    if bads and any(place is not None for place in match_channels(wanted, bads)):
        return (
            f"All channels of the model that the recording has are marked as bad ({listed(bads)}); "
            "remove those from raw.info['bads'] that are good."
        )
    marked = f" (marked as bad: {listed(bads)})" if bads else ""
    if not wanted:
        return f"The recording has no EEG channel, only {listed(raw.ch_names)}{marked}."
    return (
        f"The recording has none of the channels of the model ({listed(wanted)}), only "
        f"{listed(raw.ch_names)}{marked}; rename its channels with raw.rename_channels if they are "
        "the same electrodes."
    )


class Finding(NamedTuple):
    """A value that JSON supports, and a warning; nothing was found if the value is false."""

    value: Any
    warning: str | None = None


def recording_findings(recording: RecordingToPredict, clf: Any) -> dict[str, Any]:
    """Return what differs from the training recordings, and what was done about it.

    Parameters
    ----------
    recording : RecordingToPredict
        A prepared recording.
    clf : fitted classifier
        Model that predicts it.

    Returns
    -------
    dict of str to Any
        Findings by their names in :data:`CHECKS`, as values that JSON supports. What was not found
        has no entry.

    Warns
    -----
    UserWarning
        One for each finding that makes predictions doubtful.
    """
    findings = {name: check(recording, clf) for name, check in CHECKS.items()}
    findings = {name: finding for name, finding in findings.items() if finding.value}
    for finding in findings.values():
        if finding.warning is not None:
            warn_user(finding.warning)
    return {name: finding.value for name, finding in findings.items()}


def _missing_channels(recording: RecordingToPredict, clf: Any) -> Finding:
    """Channels of the model that the recording does not have; the prediction itself warns."""
    pairs = zip(recording.wanted, recording.derivations, strict=True)
    return Finding([name for name, derivation in pairs if derivation is None])


def _computed_channels(recording: RecordingToPredict, clf: Any) -> Finding:
    """Channels that were computed, with their formulas."""
    return Finding({d.name: d.formula for d in recording.found if d.is_computed})


def _other_reference(recording: RecordingToPredict, clf: Any) -> Finding:
    """Channels of the recording that are used for a channel of another named reference."""
    pairs = {d.name: d.formula for d in recording.found if not d.is_computed}
    differ = {name: used for name, used in pairs.items() if differing_references([name, used])}
    shown = listed([f"{used} for {name}" for name, used in differ.items()], most=3)
    return Finding(
        differ,
        f"The recording has another reference than the model was trained with ({shown}), so its "
        "signals differ; re-reference it, or add the channel of the reference.",
    )


def _reference_not_applied(recording: RecordingToPredict, clf: Any) -> Finding:
    """The reference of the model, where the recording cannot have it."""
    names = [d.formula for d in recording.not_rereferenced]
    return Finding(
        recording.trained.reference if names else None,
        f"The model was trained with the reference "
        f"{text_of('reference', recording.trained.reference)!r}, which "
        f"cannot be computed in this recording: {listed(names, most=3)} "
        f"{'is' if len(names) == 1 else 'are'} used as recorded.",
    )


def _referenced_before(recording: RecordingToPredict, clf: Any) -> Finding:
    """The reference of the model, where the recording got another one before; MNE keeps no name."""
    raw, reference = recording.raw, recording.trained.reference
    was_changed = raw.info["custom_ref_applied"] and recorded(raw.info).reference is None
    applied = {d.reference for d in recording.found if d.reference}
    if reference == AS_RECORDED:
        done = "but those of the training were not"
    elif applied and not all(_is_zero(raw, names) for names in applied):
        done = "so that the reference of the model is that of what was left"
    else:
        return Finding(None)
    return Finding(
        reference if was_changed else None,
        f"The recording was re-referenced before, {done}; its signals may differ from those of "
        "the training. Pass the original recording with all its channels.",
    )


def _is_zero(raw: mne.io.BaseRaw, names: Sequence[str]) -> bool:
    """Whether the mean of channels is zero, because it was subtracted from them before."""
    samples = raw[list(names), : round(10 * raw.info["sfreq"])][0]
    return bool(np.abs(samples.mean(axis=0)).max() <= 1e-3 * np.abs(samples).max())


def _unknown_of_training(recording: RecordingToPredict, clf: Any) -> Finding:
    """What is unknown of the training recordings, so that nothing was done for it."""
    trained = recording.trained
    names = ("band", "notch", "reference", "scale")
    unknown = [name for name in names if getattr(trained, name) is None]
    # Records that tell of notch filters tell of the band, too, and those that also tell of the
    # factor tell of the reference, unless the recordings differ.
    has_notch, has_scale = trained.notch is not None, trained.scale is not None
    is_told = dict(band=has_notch, reference=has_notch and has_scale)
    lost = [name for name in unknown if is_told.get(name)]
    entries = ", ".join(f"{name!r}: ..." for name in lost)
    return Finding(
        unknown,
        f"The {' and '.join(lost)} of the training recordings {'is' if len(lost) == 1 else 'are'} "
        "not the same in all of them, or unknown, so nothing was applied for it. Prepare this "
        f"recording as they were, or fit with preprocessing={{{entries}}}."
        if lost
        else None,
    )


def _not_filtered(recording: RecordingToPredict, clf: Any) -> Finding:
    """Channels that MNE does not filter unless they are named, so that they were not filtered."""
    band, notch = recording.applied.band, recording.applied.notch
    names = [d.name for d in recording.found if not d.is_eeg]
    return Finding(
        names if notch or band not in (None, (None, None)) else None,
        f"Channels that had another type than EEG in fit are not filtered ({listed(names)}), as "
        "MNE's filters leave them out, too. If picks= named them in training, filter them in the "
        "recording before, with raw.filter(..., picks=...).",
    )


def _resampled_from(recording: RecordingToPredict, clf: Any) -> Finding:
    """Sampling rate of a recording in Hz that was resampled."""
    rate = float(recording.raw.info["sfreq"])
    return Finding(None if rate == recording.sfreq else rate)


def _more_channels(recording: RecordingToPredict, clf: Any) -> Finding:
    """Numbers of channels, where the model does not know the names of its own."""
    return _other_number(
        recording,
        clf,
        len(recording.found) > clf.n_chans_,
        "whose names it does not know, so all are used; pick those of the training first, with "
        "raw.copy().pick(names).",
    )


def _fewer_channels(recording: RecordingToPredict, clf: Any) -> Finding:
    """Numbers of channels, where the model does not know the names of its own."""
    return _other_number(
        recording,
        clf,
        len(recording.found) < clf.n_chans_,
        "so it sees less than in training; its scores hold for the channels of the training only.",
    )


def _other_number(recording: RecordingToPredict, clf: Any, differs: bool, text: str) -> Finding:
    n_found, n_trained = len(recording.found), clf.n_chans_
    return Finding(
        {"found": n_found, "trained": n_trained} if differs and not clf.chs_info_ else None,
        f"The recording has {n_found} EEG channels, but the model was trained with {n_trained}, "
        f"{text}",
    )


def _not_electrodes(recording: RecordingToPredict, clf: Any) -> Finding:
    """Unused EEG channels without a known electrode, where channels of the model are missing."""
    used = {channel for derivation in recording.found for channel in derivation.channels}
    others = [ch for ch in recording.raw.info["chs"] if is_eeg(ch) and ch["ch_name"] not in used]
    if None not in recording.derivations or not others:
        return Finding(None)
    known = np.isfinite(electrode_positions(others)).all(axis=1)
    names = [ch["ch_name"] for ch, is_known in zip(others, known, strict=True) if not is_known]
    return Finding(
        names,
        f"Channels of the model are missing, and the recording has channels whose names are no "
        f"electrodes: {listed(names)}. If they are the missing ones, rename them with "
        "raw.rename_channels.",
    )


def _prepared_otherwise(recording: RecordingToPredict, clf: Any) -> Finding:
    """Differences in the records that cannot be repaired, or that preprocess=False leaves."""
    differing = recording.differences
    is_lost = all(each.repair is None for each in differing)
    advice = "Leave preprocess=False out, or prepare the recording as in training."
    if is_lost:
        advice = "This cannot be repaired here; start from the original recording, if there is one."
    if is_lost and any(each.name == "band" for each in differing):
        # That of the training is the band of the recorded filters, not that of the amplifier.
        advice += " If the headers of the training files tell the same band, this is no difference."
    return Finding(
        {each.name: str(each) for each in differing},
        f"The recording was prepared otherwise than those of the training: "
        f"{'; '.join(map(str, differing))}. {advice}",
    )


def _flat_channels(recording: RecordingToPredict, clf: Any) -> Finding:
    """Seconds in which channels are flat."""
    return _held(
        recording,
        clf,
        "flat",
        "Was the electrode connected, and the amplifier on? Predictions of that time use the other "
        "channels.",
    )


def _clipped_channels(recording: RecordingToPredict, clf: Any) -> Finding:
    """Seconds in which channels are at an end of the range of the amplifier or of the file."""
    return _held(
        recording,
        clf,
        "clipped",
        "They are at an end of the range of the amplifier or of the file, which is not EEG.",
    )


def _held(recording: RecordingToPredict, clf: Any, how: str, meaning: str) -> Finding:
    """Seconds of each channel; a warning if it is much of the recording, at least a window."""
    seconds = {
        name: time
        for name, held in recording.held.items()
        if (time := getattr(held, how)) >= _SECONDS
    }
    duration = recording.raw.n_times / recording.raw.info["sfreq"]
    least = max(_SHARE * duration, clf.n_times_ / recording.sfreq)
    much = [
        f"{name} for {time:.0f} of {duration:.0f} s"
        for name, time in seconds.items()
        if time >= least
    ]
    return Finding(
        seconds,
        f"Channels are {how}: {listed(much, most=3)}. {meaning} Mark such a channel in "
        f"raw.info['bads'], or the time with an annotation \"BAD {how}\", to leave it out."
        if much
        else None,
    )


def _unusual_amplitudes(recording: RecordingToPredict, clf: Any) -> Finding:
    """Channels whose amplitude is a factor of five or more outside the range of the training."""
    usual = getattr(clf, "amplitudes_", None)
    if usual is None:
        return Finding(None)
    starts = np.arange(recording.n_times // clf.n_times_) * clf.n_times_
    starts = starts[recording.may_predict(starts, clf.n_times_)]
    starts = starts[spread_out(len(starts), N_WINDOWS_IN_RANGE)]
    amplitudes = {
        derivation.name: float(np.median([signal[i : i + clf.n_times_].std() for i in starts]))
        for derivation, signal in zip(recording.found, recording.signals, strict=True)
        if len(starts)
    }
    odd = {
        name: amplitude
        for name, amplitude in amplitudes.items()
        # A flat channel, which the filters leave with rounding errors, is another finding.
        if _TIMES <= usual.times_outside(amplitude) < _FLAT
    }
    shown = [f"{name} {amplitude:.1g}" for name, amplitude in odd.items()]
    return Finding(
        {"found": odd, "trained": [usual.low, usual.high]} if odd else None,
        f"The amplitude of channels is far outside that of the training ({usual.low:.1g} to "
        f"{usual.high:.1g}): {listed(shown)}. Check the unit and the gain of the file. If the "
        "training windows were not in volts, fit with preprocessing={'scale': ...}, such as 1e6 "
        "for microvolts. If the training recordings were standardised, standardise this one, too.",
    )


#: Shortest time in seconds that is a finding, and the share of a recording that is a warning. The
#: last record of an EDF file is often filled with zeros, which is no reason to doubt a short one.
_SECONDS, _SHARE = 1.0, 0.01
#: Factor outside of the usual amplitudes: people and amplifiers differ by a factor of about three.
_TIMES, _FLAT = 5.0, 1e9

#: What is looked at, by the names of the findings.
CHECKS = {
    "missing_channels": _missing_channels,
    "computed_channels": _computed_channels,
    "other_reference": _other_reference,
    "reference_not_applied": _reference_not_applied,
    "referenced_before": _referenced_before,
    "unknown_of_training": _unknown_of_training,
    "not_filtered": _not_filtered,
    "resampled_from": _resampled_from,
    "fewer_channels": _fewer_channels,
    "more_channels": _more_channels,
    "not_electrodes": _not_electrodes,
    "prepared_otherwise": _prepared_otherwise,
    "flat_channels": _flat_channels,
    "clipped_channels": _clipped_channels,
    "unusual_amplitudes": _unusual_amplitudes,
}
