"""Preprocessing of the paper: channels, sampling rate and filters (appendix A.3), and its records.

MNE's info does not tell every step. So what is done here is remembered in it, and :func:`recorded`
reads what was done with a recording, here or by braindecode.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mne
import numpy as np
from mne.io.constants import FIFF

from braindecode_pars._common.channel_names import (
    electrode_pair,
    is_eeg,
    is_eeg_by_type,
    is_other_kind,
    match_channels,
    other_system,
)
from braindecode_pars._common.checks import check_positive, instance, listed, warn_user
from braindecode_pars.recordings import cutting
from braindecode_pars.recordings.preprocessing import AS_RECORDED, AVERAGE, CHANGED, Preprocessing

#: Channels that all corpora of Temple University have.
COMMON_CHANNELS = (
    *("Fp1", "Fp2", "F3", "F4", "F7", "F8", "Fz", "C3", "C4", "Cz"),
    *("P3", "P4", "Pz", "O1", "O2", "T3", "T4", "T5", "T6"),
)

#: Sampling rate in Hz to which all recordings are resampled.
SFREQ = 200.0

#: Classes of the sleep corpora, in the order of the targets 0 to 4.
SLEEP_STAGES = ("W", "N1", "N2", "N3", "R")
#: Label of each stage.
SLEEP_TARGETS = {stage: target for target, stage in enumerate(SLEEP_STAGES)}


def pick_electrodes(raw: mne.io.BaseRaw, wanted: Sequence[str]) -> mne.io.BaseRaw:
    """Pick the channels of electrodes, in the given order, and rename them to the electrodes.

    Channels are matched as in the estimators: ``EEG FP1-REF`` is of ``Fp1``, and ``T7`` of ``T3``.

    Parameters
    ----------
    raw : Raw
        Recording; changed in place.
    wanted : sequence of str
        Names of electrodes, in upper or lower case.

    Returns
    -------
    Raw
        The given recording.

    Raises
    ------
    ValueError
        When an electrode has no channel, or several whose names are other ones.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import pick_electrodes
    >>> info = mne.create_info(["EEG C4-REF", "EEG C3-REF", "EKG"], 200.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((3, 400)), info, verbose="error")
    >>> pick_electrodes(raw, ["C3", "C4"]).ch_names
    ['C3', 'C4']
    """
    for name in wanted:
        instance("a list of names", str).check("wanted", name)
    places = dict(zip(wanted, match_channels(wanted, raw.ch_names), strict=True))
    missing = [name for name, place in places.items() if place is None]
    if missing:
        raise ValueError(
            f"channel {', '.join(missing)} missing, or not the only one of its electrode; the "
            f"recording has {', '.join(raw.ch_names)}.{other_system(wanted, raw.ch_names)}"
        )
    chosen = {raw.ch_names[place]: name for name, place in places.items() if place is not None}
    # Pick, order, rename, and mark as EEG.
    raw.pick(list(chosen), verbose="error").reorder_channels(list(chosen))
    rename_channels(raw, chosen)
    raw.set_channel_types(dict.fromkeys(wanted, "eeg"), verbose="error")
    return raw


def drop_other_signals(raw: mne.io.BaseRaw) -> mne.io.BaseRaw:
    """Drop the channels that are not EEG by type or name, such as ECG, EOG and EMG.

    Parameters
    ----------
    raw : Raw
        Recording; changed in place.

    Returns
    -------
    Raw
        The given recording.

    Raises
    ------
    ValueError
        When no channel is EEG.

    Warns
    -----
    UserWarning
        When a channel is EEG by its type and not by its name.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import drop_other_signals
    >>> info = mne.create_info(["C3", "EOG left"], 200.0, ["eeg", "eog"])
    >>> drop_other_signals(mne.io.RawArray(np.zeros((2, 400)), info, verbose="error")).ch_names
    ['C3']
    """
    eeg = [ch["ch_name"] for ch in raw.info["chs"] if is_eeg(ch)]
    if not eeg:
        raise ValueError(f"it has no EEG channel, only {', '.join(raw.ch_names)}.")
    warn_of_other_names(raw.info["chs"])
    return raw.pick(eeg, verbose="error")


def warn_of_other_names(chs: Iterable[Mapping[str, Any]]) -> None:
    """Warn of channels, as in ``mne.Info["chs"]``, that are EEG by their type and not by name."""
    others = [ch["ch_name"] for ch in chs if is_eeg_by_type(ch) and not is_eeg(ch)]
    if others:
        warn_user(
            f"{listed(others)}: EEG by the type and another signal by the name, and not used. "
            "Rename an EEG channel, or set the type of the others."
        )


def check_filters(
    *,
    sfreq: float | None = None,
    low: float | None = None,
    high: float | None = None,
    mains: float | None = None,
) -> None:
    """Check the arguments of :func:`filter_and_resample` before a recording is opened.

    Parameters
    ----------
    sfreq : float | None
        New sampling rate in Hz; None keeps the rate of the recording.
    low, high, mains : float | None
        Edges of the band-pass and frequency of the notch filter in Hz; None for none.

    Raises
    ------
    TypeError
        When an argument is not a number.
    ValueError
        When a frequency is not positive, or ``low`` is not less than ``high``: MNE would apply a
        band-stop filter instead.

    Examples
    --------
    >>> from braindecode_pars.recordings.preparation import check_filters
    >>> check_filters(sfreq=128, low=0.5, high=45)
    """
    given = dict(sfreq=sfreq, low=low, high=high, mains=mains)
    check_positive(**{name: value for name, value in given.items() if value is not None})
    if low is not None and high is not None and low >= high:
        raise ValueError(f"low={low:g} Hz must be less than high={high:g} Hz.")


def filter_and_resample(
    raw: mne.io.BaseRaw,
    *,
    sfreq: float = SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 60.0,
) -> mne.io.BaseRaw:
    """Resample a recording and apply a band-pass and a notch filter (appendix A.3).

    Parameters
    ----------
    raw : Raw
        Preloaded recording; changed in place.
    sfreq : float
        New sampling rate in Hz.
    low, high : float | None
        Edges of the FIR band-pass in Hz; None for no edge. An upper edge at or above the Nyquist
        frequency is ignored.
    mains : float | None
        Frequency of the notch filter in Hz; None for no notch filter. A frequency at or above the
        Nyquist frequency is ignored.

    Returns
    -------
    Raw
        The given recording.

    Raises
    ------
    ValueError
        When samples are NaN or infinite. The message names the channels.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import filter_and_resample
    >>> info = mne.create_info(["C3"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 60 * 250)), info, verbose="error")
    >>> filter_and_resample(raw, mains=50.0).get_data().shape
    (1, 12000)
    """
    steps: list[tuple[str, dict[str, Any]]] = []
    if raw.info["sfreq"] != sfreq:
        steps.append(("resample", dict(sfreq=sfreq)))
    nyquist = sfreq / 2
    high = high if high is not None and high < nyquist else None
    steps.append(("filter", dict(l_freq=low, h_freq=high)))
    if mains is not None and mains < nyquist:
        steps.append(("notch_filter", dict(freqs=mains)))
    apply_steps(raw, steps)
    remember_steps(raw, steps)
    return raw


def apply_steps(raw: mne.io.BaseRaw, steps: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Resample and filter a preloaded recording in place; filters end at its gaps.

    Parameters
    ----------
    raw : Raw
        Preloaded recording.
    steps : iterable of (str, mapping)
        ``"resample"``, ``"filter"`` or ``"notch_filter"``, and the arguments of this method.

    Raises
    ------
    ValueError
        When samples are NaN or infinite. The message names the channels.
    """
    bad = np.array(raw.ch_names)[~np.isfinite(raw.get_data()).all(axis=1)]
    if len(bad):
        raise ValueError(f"channel {', '.join(bad)} contains NaN or infinite samples.")
    for name, kwargs in steps:
        with _gaps_marked(raw) as gap:
            skip = {} if name == "resample" else dict(skip_by_annotation=gap)
            getattr(raw, name)(**kwargs, **skip, verbose="error")


@contextmanager
def _gaps_marked(raw: mne.io.BaseRaw) -> Iterator[str]:
    """Mark gaps by one text inside; MNE takes the duration of some for that of missing samples."""
    gap, notes, start = "braindecode_pars gap", raw.annotations, 0
    for first, stop in [*cutting.continuous_stretches(raw), (raw.n_times, 0)]:
        if first > 0 and start < raw.n_times:
            duration = (first - start) / raw.info["sfreq"]
            notes.append(start / raw.info["sfreq"] + raw.first_time, duration, gap)
        start = stop
    try:
        yield gap
    finally:
        notes.delete(np.flatnonzero(notes.description == gap))


def set_reference(raw: mne.io.BaseRaw, reference: str | Sequence[str]) -> mne.io.BaseRaw:
    """Reference the channels of a recording to their average, or to some of them.

    Parameters
    ----------
    raw : Raw
        Preloaded recording; changed in place.
    reference : "average" | sequence of str
        New reference, as in :meth:`mne.io.Raw.set_eeg_reference`.

    Returns
    -------
    Raw
        The given recording.

    Raises
    ------
    ValueError
        When the average is that of one channel, which would be zero.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import set_reference
    >>> info = mne.create_info(["C3", "C4"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.array([[1.0, 1.0], [3.0, 5.0]]), info, verbose="error")
    >>> set_reference(raw, "average").get_data().tolist()
    [[-1.0, -2.0], [1.0, 2.0]]
    """
    good = np.array(raw.ch_names)[mne.pick_types(raw.info, eeg=True)]
    if len(good) == 1 and reference in (AVERAGE, [*good]):
        raise ValueError(f"its only EEG channel, {good[0]}, is zero against the average.")
    raw.set_eeg_reference(reference, verbose="error")
    remember_steps(raw, [("set_eeg_reference", dict(ref_channels=reference))])
    return raw


def recorded(
    info: Mapping[str, Any], steps: Iterable[Any] = (), *, sfreq: float | None = None
) -> Preprocessing:
    """Return the preprocessing of a recording, as far as its records tell.

    MNE's info tells what was done: the edges of the band-pass, the average of the channels as a
    projection, and whether the reference was changed otherwise. Recorded steps also tell what was
    not done: without a notch filter among them, there was none. This does not hold if one of them
    has an unknown effect, such as a lambda.

    Parameters
    ----------
    info : mne.Info
        Measurement info of the recording.
    steps : iterable
        Steps as braindecode records them in ``raw_preproc_kwargs`` and ``window_preproc_kwargs``,
        after those in the info.
    sfreq : float | None
        Sampling rate in Hz after the steps; None takes that of the info.

    Returns
    -------
    Preprocessing
        Description without channels and length of a window.

    Examples
    --------
    >>> import mne
    >>> from braindecode_pars.recordings.preparation import recorded
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> step = {"fn": "filter", "kwargs": {"l_freq": 0.5, "h_freq": 40}}
    >>> print(recorded(info, [step]))
    sampling rate 100 Hz, band 0.5-40 Hz, notch none, reference as recorded, factor from volts 1
    >>> print(recorded(info))
    sampling rate 100 Hz, reference as recorded
    """
    sfreq = float(info["sfreq"]) if sfreq is None else sfreq
    found = [Step.of(record) for record in (*remembered_steps(info), *steps)]
    complete = bool(found) and all(step.is_known for step in found)
    found = [step for step in found if step.is_of_eeg]
    filters = [step.kwargs for step in found if step.name in ("filter", "filter_data")]
    kinds = {step.kwargs.get("method", "fir") for step in found if step.name == "filter"}
    freqs: list[Any] = [step.kwargs.get("freqs") for step in found if step.name == "notch_filter"]
    is_searched = any(each is None for each in freqs)  # MNE searched the frequencies itself
    notch = {float(freq) for each in freqs if not is_searched for freq in np.atleast_1d(each)}
    notch = {freq for freq in notch if freq < sfreq / 2}
    edges = _edges(info)
    return Preprocessing(
        sfreq=sfreq,
        band=_band(edges, filters, sfreq, complete),
        notch=tuple(sorted(notch)) if notch or (complete and not is_searched) else None,
        reference=_reference(info, found, complete),
        scale=float(np.prod([step.factor or 1.0 for step in found])) if complete else None,
        # FIR filters, MNE's default, are not named.
        filter="iir" if kinds == {"iir"} else None,
        amplifier=_band(edges, [], sfreq, complete=False),
    )


def _band(
    of_info: tuple[float | None, float | None],
    filters: Iterable[Mapping[str, Any]],
    sfreq: float,
    complete: bool,
) -> tuple[float | None, float | None] | None:
    """Return the edges of all filters. MNE's 0 and half the sampling rate stand for no filter.

    An edge is that of the recorded filters. Without any, it is that of the info, in which readers
    write the filters of the amplifier too: these may differ between files prepared in the same way.
    """
    # An upper edge below the lower one is a band-stop filter.
    filters = [f for f in filters if (f.get("l_freq") or 0) < (f.get("h_freq") or math.inf)]
    lows = [kwargs["l_freq"] for kwargs in filters if "l_freq" in kwargs] or of_info[:1]
    highs = [kwargs["h_freq"] for kwargs in filters if "h_freq" in kwargs] or of_info[1:]
    top = sfreq / 2 * (1 - 1e-6)
    # Without the digits that single precision in a file adds
    low = max((float(f"{low:.6g}") for low in lows if low), default=None)
    high = min((float(f"{high:.6g}") for high in highs if high and high < top), default=None)
    # Edges of several filters that have nothing in common are none of a band.
    if low is not None and high is not None and low >= high:
        return None
    return (low, high) if complete or (low, high) != (None, None) else None


def _reference(info: Mapping[str, Any], steps: list[Step], complete: bool) -> str | None:
    averages = (p for p in info.get("projs", ()) if p["kind"] == FIFF.FIFFV_PROJ_ITEM_EEG_AVREF)
    is_averaged = any(projection["active"] for projection in averages)
    places = [i for i, step in enumerate(steps) if step.name == "set_eeg_reference"]
    if not is_averaged:  # a projection that is not applied leaves the signals as they are
        places = [i for i in places if not steps[i].kwargs.get("projection")]
    if places:
        last = places[-1]
        channels = steps[last].kwargs.get("ref_channels", AVERAGE)
        if isinstance(channels, Mapping):  # it differs between channels
            return None
        name = channels if isinstance(channels, str) else ", ".join(channels)
        if name == AVERAGE:
            return _average(info, steps[:last], steps[last:])
        return name or AS_RECORDED
    if is_averaged:
        return AVERAGE
    if info.get("custom_ref_applied"):
        return CHANGED
    return AS_RECORDED if complete or not steps else None


def _average(info: Mapping[str, Any], before: list[Step], after: list[Step]) -> str | None:
    """Return the average of all EEG channels, or of other channels, by their names.

    A recording to predict may have channels that were left out of that average. On the other hand,
    MNE averages whatever has the type EEG, which readers of EDF files give to every signal, such
    as an ECG, and channels with different references, such as C3-M2 and A2-A1.
    """
    choices = [step for step in before if step.chooses]
    if any(step.chooses or step.name == "drop_channels" for step in after):
        # The info has other channels than the average.
        picks = choices[-1].picks if choices else [AVERAGE]
        names = picks if all(isinstance(one, str) and not _is_kind(one) for one in picks) else []
    else:
        averaged = [
            ch for ch in info["chs"] if is_eeg_by_type(ch) and ch["ch_name"] not in info["bads"]
        ]
        names = [ch["ch_name"] for ch in averaged]
        have_one_reference = len({electrode_pair(name)[1] for name in names}) <= 1
        if not choices and have_one_reference and all(map(is_eeg, averaged)):
            names = [AVERAGE]
    return ", ".join(names) or None


#: Our entries in ``info["temp"]``, where MNE keeps what others add; it is not written to files.
_ENTRY, _EDGES = "braindecode_pars_steps", "braindecode_pars_edges"

#: Methods of MNE whose effect is not known from their arguments.
_OPAQUE = ("apply_function", "apply_hilbert", "savgol_filter")
#: Texts that pick channels by their kind, and not by their name.
_KINDS = {*mne.io.get_channel_type_constants(include_defaults=True), "all", "data", "bads", "meg"}
#: Functions that multiply a signal by their argument ``factor``.
_SCALING = ("multiply", "scale")


@dataclass(frozen=True)
class Step:
    """One step of the preprocessing of a recording.

    Attributes
    ----------
    name : str
        Name of the method of MNE or of the function.
    kwargs : mapping
        Arguments by name.
    is_method : bool
        Whether it is a method of MNE.
    """

    name: str
    kwargs: Mapping[str, Any]
    is_method: bool = True

    @classmethod
    def of(cls, record: Any) -> Step:
        """Return the step of a record: a dict of braindecode, or a pair of name and arguments."""
        try:
            if isinstance(record, Mapping):
                kwargs = record.get("kwargs") or {}
                # A class such as braindecode's NotchFilter has no entry "fn".
                name = record.get("fn")
                if not name:  # SetEEGReference is behind set_eeg_reference
                    name = record["__class_path__"].rpartition(".")[2]
                    name = re.sub(
                        r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name
                    ).lower()
            else:
                name, kwargs = record
            module, _, name = str(name).rpartition(".")
            return cls(name, dict(kwargs), not module)
        except (KeyError, TypeError, ValueError):  # written by another program
            return cls("", {}, False)

    @property
    def is_of_eeg(self) -> bool:
        """Whether the step is not a filter of other kinds of channels only."""
        picks = _listed(self.kwargs.get("picks"))
        others = {"eeg", "data", "all"}.isdisjoint(picks) and all(map(_is_kind, picks))
        is_filter = self.name in ("filter", "filter_data", "notch_filter")
        return not (is_filter and picks and others)

    @property
    def is_known(self) -> bool:
        """Whether it is known what the step does with the signals."""
        if not self.is_method or self.name == "rescale":
            return self.factor is not None
        is_of_mne = hasattr(mne.io.BaseRaw, self.name) or hasattr(mne.BaseEpochs, self.name)
        return is_of_mne and self.name not in _OPAQUE

    @property
    def factor(self) -> float | None:
        """Factor by which the step multiplies EEG; None for an unknown one."""
        found = self.kwargs.get("factor") if self.name in _SCALING else None
        if self.is_method and self.name == "rescale":
            found = self.kwargs.get("scalings")
            found = found.get("eeg") if isinstance(found, Mapping) else found
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            return None
        return float(found) if found > 0 else None

    @property
    def picks(self) -> list:
        """Names, kinds or numbers of the channels that the step keeps; empty for all."""
        argument = dict(pick="picks", pick_channels="ch_names").get(self.name, "")
        return _listed(self.kwargs.get(argument))

    @property
    def chooses(self) -> bool:
        """Whether the step leaves out EEG channels by their names or numbers."""
        left_out = "ch_names" if self.name == "drop_channels" else "exclude"
        dropped = [one for one in _listed(self.kwargs.get(left_out)) if not _is_kind(one)]
        are_others = all(isinstance(one, str) and is_other_kind(one) for one in dropped)
        return not (are_others and all(map(_is_kind, self.picks)))


def _is_kind(pick: Any) -> bool:
    return isinstance(pick, str) and pick in _KINDS


def _listed(picks: Any) -> list:
    """Return names, kinds or numbers of channels as a list."""
    return [picks] if isinstance(picks, str) else list(picks) if np.iterable(picks) else []


def remember_steps(raw: mne.io.BaseRaw, steps: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Add steps that were applied to a recording to its info.

    MNE's own info has the edges of the band-pass, but neither a notch filter nor a reference.

    Parameters
    ----------
    raw : Raw
        Recording; its ``info`` is changed in place.
    steps : iterable of (str, mapping)
        Method of MNE and its arguments, as JSON takes them.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.preparation import remember_steps, remembered_steps
    >>> raw = mne.io.RawArray(np.zeros((1, 9)), mne.create_info(["C3"], 1.0, "eeg"), verbose=False)
    >>> remember_steps(raw, [("notch_filter", {"freqs": [50.0]})])
    >>> remembered_steps(raw.info)
    [('notch_filter', {'freqs': [50.0]})]
    """
    new = [(name, dict(kwargs)) for name, kwargs in steps]
    earlier = raw.info.get("temp") or {}
    raw.info["temp"] = {**earlier, _ENTRY: [*remembered_steps(raw.info), *new]}


def remember_edges(info: Any, edges: Mapping[str, Sequence[float | None]]) -> None:
    """Add the amplifier's filters of each channel, two edges in Hz, to the info of a recording.

    MNE's info has one pair for all, also of signals that are not EEG.
    """
    of_file = info["highpass"], info["lowpass"]
    info["temp"] = {**(info.get("temp") or {}), _EDGES: (of_file, {**edges})}


def rename_channels(raw: mne.io.BaseRaw, names: Mapping[str, str]) -> None:
    """Rename channels, also in what is remembered of them."""
    raw.rename_channels(names, verbose="error")
    if _EDGES in (temp := raw.info.get("temp") or {}):
        of_file, edges = temp[_EDGES]
        edges = {names.get(name, name): each for name, each in edges.items()}
        raw.info["temp"] = {**temp, _EDGES: (of_file, edges)}


def _edges(info: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the narrowest edges of the EEG channels before the recorded steps, as in the info."""
    found = info.get("highpass"), info.get("lowpass")
    of_file, edges = (info.get("temp") or {}).get(_EDGES, (None, {}))
    used = [edges.get(ch["ch_name"]) for ch in info["chs"] if is_eeg(ch)]
    if of_file is None or not used or None in [*used]:
        return found
    lows, highs = zip(*used, strict=True)
    own = max(filter(None, lows), default=0.0), min(filter(None, highs), default=math.inf)
    # An edge that is another than in the file is of a filter since.
    low, high = (a if b == c else b for a, b, c in zip(own, found, of_file, strict=True))
    return low, high


def remembered_steps(info: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the steps that :func:`remember_steps` added, in the order of their application."""
    entries = info.get("temp") or {}
    return [(name, dict(kwargs)) for name, kwargs in entries.get(_ENTRY, ())]
