"""What is found about a recording when a model predicts it, with a warning where it matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mne
import numpy as np

from braindecode_pars._channel_names import differing_references, is_eeg
from braindecode_pars._lists import listed
from braindecode_pars._warnings import warn_user
from braindecode_pars.electrodes import electrode_positions
from braindecode_pars.estimators._recording import RecordingToPredict
from braindecode_pars.preprocessing._preprocessing import AS_RECORDED, text_of
from braindecode_pars.preprocessing._recorded import recorded
from braindecode_pars.windows._amplitude_range import N_WINDOWS
from braindecode_pars.windows._spread import spread_out

__all__ = ["recording_findings"]


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
    starts = starts[spread_out(len(starts), N_WINDOWS)]
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
