"""What was done with a recording, as its info and braindecode's records tell.

MNE's info does not tell every step, so our own functions add theirs to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
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
)
from braindecode_pars.windows.preprocessing import AS_RECORDED, AVERAGE, CHANGED, Preprocessing


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
    >>> from braindecode_pars.windows.recorded_steps import recorded
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> step = {"fn": "filter", "kwargs": {"l_freq": 0.5, "h_freq": 40}}
    >>> print(recorded(info, [step]))
    sampling rate 100 Hz, band 0.5-40 Hz, notch none, reference as recorded, factor from volts 1
    >>> print(recorded(info))
    sampling rate 100 Hz, reference as recorded
    """
    sfreq = float(info["sfreq"]) if sfreq is None else sfreq
    all_steps = [Step.of(record) for record in (*remembered_steps(info), *steps)]
    complete = bool(all_steps) and all(step.is_known for step in all_steps)
    eeg_steps = [step for step in all_steps if step.is_of_eeg]
    filters = [step.kwargs for step in eeg_steps if step.name in ("filter", "filter_data")]
    kinds = {step.kwargs.get("method", "fir") for step in eeg_steps if step.name == "filter"}
    freqs: list[Any] = [s.kwargs.get("freqs") for s in eeg_steps if s.name == "notch_filter"]
    is_searched = any(entry is None for entry in freqs)  # MNE searched the frequencies itself
    notch = {float(freq) for entry in freqs if not is_searched for freq in np.atleast_1d(entry)}
    notch = {freq for freq in notch if freq < sfreq / 2}
    edges = _edges(info)
    return Preprocessing(
        sfreq=sfreq,
        band=_band(edges, filters, sfreq, complete),
        notch=tuple(sorted(notch)) if notch or (complete and not is_searched) else None,
        reference=_reference(info, eeg_steps, complete),
        scale=float(np.prod([step.factor or 1.0 for step in eeg_steps])) if complete else None,
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
    # Several filters whose pass bands do not overlap leave no band.
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
        # The channels in the info are not the averaged ones.
        picks = choices[-1].picks if choices else [AVERAGE]
        names = picks if all(isinstance(pick, str) and not _is_kind(pick) for pick in picks) else []
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
        value = self.kwargs.get("factor") if self.name in _SCALING else None
        if self.is_method and self.name == "rescale":
            value = self.kwargs.get("scalings")
            value = value.get("eeg") if isinstance(value, Mapping) else value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return float(value) if value > 0 else None

    @property
    def picks(self) -> list:
        """Names, kinds or numbers of the channels that the step keeps; empty for all."""
        argument = dict(pick="picks", pick_channels="ch_names").get(self.name, "")
        return _listed(self.kwargs.get(argument))

    @property
    def chooses(self) -> bool:
        """Whether the step leaves out EEG channels by their names or numbers."""
        left_out = "ch_names" if self.name == "drop_channels" else "exclude"
        dropped = [pick for pick in _listed(self.kwargs.get(left_out)) if not _is_kind(pick)]
        are_others = all(isinstance(pick, str) and is_other_kind(pick) for pick in dropped)
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
    >>> from braindecode_pars.windows.recorded_steps import remember_steps, remembered_steps
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
        edges = {names.get(name, name): channel_edges for name, channel_edges in edges.items()}
        raw.info["temp"] = {**temp, _EDGES: (of_file, edges)}


def _edges(info: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the narrowest edges of the EEG channels before the recorded steps, as in the info."""
    info_edges = info.get("highpass"), info.get("lowpass")
    of_file, edges = (info.get("temp") or {}).get(_EDGES, (None, {}))
    used = [edges.get(ch["ch_name"]) for ch in info["chs"] if is_eeg(ch)]
    if of_file is None or not used or None in [*used]:
        return info_edges
    lows, highs = zip(*used, strict=True)
    narrowest = max(filter(None, lows), default=0.0), min(filter(None, highs), default=math.inf)
    # An edge that differs from that of the file is the edge of a filter that was applied later.
    low, high = (a if b == c else b for a, b, c in zip(narrowest, info_edges, of_file, strict=True))
    return low, high


def remembered_steps(info: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the steps that :func:`remember_steps` added, in the order of their application."""
    entries = info.get("temp") or {}
    return [(name, dict(kwargs)) for name, kwargs in entries.get(_ENTRY, ())]
