"""Read the preprocessing of a recording from its MNE info and from steps recorded by braindecode.

The MNE info does not contain all preprocessing steps. Functions of this package that preprocess a
recording therefore add the steps that they applied to its info (:func:`remember_steps`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mne
import numpy as np
from mne.io.constants import FIFF

from braindecode_pars._common import channel_names
from braindecode_pars.windows.preprocessing import AS_RECORDED, AVERAGE, CHANGED, Preprocessing


def recorded(
    info: Mapping[str, Any], steps: Iterable[Any] = (), *, sfreq: float | None = None
) -> Preprocessing:
    """Return the preprocessing of a recording from its info and its recorded steps.

    The MNE info contains the cutoff frequencies of the band-pass filter, an average reference that
    was applied as a projection, and whether the reference was changed in another way. The recorded
    steps supplement the info, in one of three ways:

    - If steps were recorded, and the effect of every step is known, the function assumes that no
      other steps were applied: without a recorded notch filter, for example, ``notch`` is empty.
    - If steps were recorded, but the effect of a step is unknown (as for a lambda), ``scale`` is
      unknown, as well as every entry that neither the info nor a known step determines.
    - If no steps were recorded, ``notch`` and ``scale`` are unknown. The reference is "as
      recorded", unless the info states otherwise.

    Parameters
    ----------
    info : mne.Info
        Measurement info of the recording.
    steps : iterable
        Preprocessing steps that were applied after the steps in the info, as recorded by
        braindecode in ``raw_preproc_kwargs`` and ``window_preproc_kwargs``.
    sfreq : float | None
        Sampling rate in Hz after the steps. If None, the sampling rate in the info is used.

    Returns
    -------
    Preprocessing
        Preprocessing of the recording, with ``channels`` and ``window_seconds`` set to None.

    Examples
    --------
    >>> import mne
    >>> from braindecode_pars.windows.recorded_steps import recorded
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> step = {"fn": "filter", "kwargs": {"l_freq": 0.5, "h_freq": 40}}
    >>> print(recorded(info, [step]))
    sampling rate 100 Hz, band 0.5-40 Hz, notch none, reference as recorded, scale from volts 1
    >>> print(recorded(info))
    sampling rate 100 Hz, reference as recorded
    """
    sfreq = float(info["sfreq"]) if sfreq is None else sfreq
    all_steps = [_step_of(record) for record in (*remembered_steps(info), *steps)]
    known = [step for step in all_steps if step is not None]
    complete = bool(known) and len(known) == len(all_steps)
    of_eeg = [(name, kwargs) for name, kwargs in known if _is_of_eeg(kwargs)]
    filters = [kwargs for name, kwargs in of_eeg if name == "filter"]
    methods = {kwargs.get("method", "fir") for kwargs in filters}
    freqs = {
        freq
        for name, kwargs in of_eeg
        if name == "notch_filter"
        for freq in np.atleast_1d(kwargs["freqs"]).tolist()
    }
    is_estimated = None in freqs  # MNE estimated the frequencies from the signals
    notch = [] if is_estimated else sorted(float(freq) for freq in freqs if freq < sfreq / 2)
    factors = [kwargs["factor"] for name, kwargs in known if name == "rescale"]
    edges = _edges(info)
    return Preprocessing(
        sfreq=sfreq,
        band=_band(edges, filters, sfreq, complete),
        notch=tuple(notch) if notch or (complete and not is_estimated) else None,
        reference=_reference(info, known, may_be_as_recorded=complete or not all_steps),
        scale=math.prod(factors, start=1.0) if complete else None,
        # None represents FIR filters, which are the default of MNE.
        filter="iir" if methods == {"iir"} else None,
        amplifier=_band(edges, [], sfreq, complete=False),
    )


#: Preprocessing step: name of a method of MNE, and its arguments by name.
Step = tuple[str, dict[str, Any]]
#: Methods of MNE whose effect cannot be determined from their arguments.
_OPAQUE = ("apply_function", "apply_hilbert", "savgol_filter")


def _step_of(record: Any) -> Step | None:
    """Convert a step recorded by braindecode or by this package to a name and its arguments.

    None is returned if the effect of the step is unknown. A step that multiplies EEG by a factor is
    returned as ``rescale`` with the argument ``factor``.
    """
    try:
        if isinstance(record, Mapping):
            name, kwargs = record.get("fn"), record.get("kwargs") or {}
        else:  # recorded by this package, or read from a JSON file
            name, kwargs = record
        if not name:  # a class of braindecode: convert SetEEGReference to set_eeg_reference
            name = record["__class_path__"].rpartition(".")[2]
            name = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    except (KeyError, TypeError, ValueError):  # the step was recorded by another program
        return None
    if name in ("rescale", "numpy.multiply"):
        factor = kwargs.get("scalings", kwargs.get("factor"))
        factor = factor.get("eeg") if isinstance(factor, Mapping) else factor
        is_factor = isinstance(factor, int | float) and factor > 0
        return ("rescale", {"factor": factor}) if is_factor else None
    if not isinstance(name, str):
        return None
    is_of_mne = hasattr(mne.io.BaseRaw, name) or hasattr(mne.BaseEpochs, name)
    return (name, dict(kwargs)) if is_of_mne and name not in _OPAQUE else None


def _band(
    info_edges: tuple[float | None, float | None],
    filters: Iterable[Mapping[str, Any]],
    sfreq: float,
    complete: bool,
) -> tuple[float | None, float | None] | None:
    """Return the lower and upper cutoff frequency after all filters; None if the band is unknown.

    If ``complete`` is True, all steps are known, and a band without a filter is (None, None).
    Cutoffs of filters in the recorded steps take precedence over cutoffs in the info. The cutoffs
    in the info may be cutoffs of the amplifier, because file readers store these in the info. They
    may therefore differ between recordings with the same preprocessing. In MNE, a lower cutoff of 0
    and an upper cutoff of half the sampling rate mean that no filter was applied.
    """
    # If the upper cutoff is below the lower cutoff, the filter is a band-stop filter.
    filters = [f for f in filters if (f.get("l_freq") or 0) < (f.get("h_freq") or math.inf)]
    lows = [kwargs["l_freq"] for kwargs in filters if "l_freq" in kwargs] or info_edges[:1]
    highs = [kwargs["h_freq"] for kwargs in filters if "h_freq" in kwargs] or info_edges[1:]
    top = sfreq / 2 * (1 - 1e-6)
    # Round to remove the digits that result from single precision in a file.
    low = max((float(f"{low:.6g}") for low in lows if low), default=None)
    high = min((float(f"{high:.6g}") for high in highs if high and high < top), default=None)
    # If the pass bands of several filters do not overlap, there is no band.
    if low is not None and high is not None and low >= high:
        return None
    return (low, high) if complete or (low, high) != (None, None) else None


def _reference(
    info: Mapping[str, Any], steps: list[Step], *, may_be_as_recorded: bool
) -> str | None:
    averages = [p for p in info.get("projs", ()) if p["kind"] == FIFF.FIFFV_PROJ_ITEM_EEG_AVREF]
    is_averaged = any(projection["active"] for projection in averages)
    references = [
        i
        for i, (name, kwargs) in enumerate(steps)
        # A projection that was not applied does not change the signals.
        if name == "set_eeg_reference" and (is_averaged or not kwargs.get("projection"))
    ]
    if not references:
        if is_averaged:
            return AVERAGE
        if info.get("custom_ref_applied"):
            return CHANGED
        return AS_RECORDED if may_be_as_recorded else None
    last = references[-1]
    channels = steps[last][1].get("ref_channels", AVERAGE)
    if channels == AVERAGE:
        return _average(info, steps[:last], steps[last:])
    if isinstance(channels, Mapping):  # the reference differs between channels
        return None
    return ", ".join(_listed(channels)) or AS_RECORDED


def _average(info: Mapping[str, Any], before: list[Step], after: list[Step]) -> str | None:
    """Return "average", or the names of the averaged channels, or None if these are unknown.

    Names are returned in two cases:

    - Channels were excluded before averaging. A recording to predict may contain these channels,
      and must be re-referenced without them.
    - The average over the channels is not a usual average reference, for one of two reasons: Some
      channels are not EEG, because readers of EDF files assign the type EEG to every signal, such
      as an ECG. Or the channels have different references, such as C3-M2 and A2-A1.
    """
    is_selection = any(_selects_channels(*step) for step in before)
    if any(name == "drop_channels" or _selects_channels(name, kwargs) for name, kwargs in after):
        # Channels were dropped after averaging, so the names of the averaged channels are unknown.
        return None if is_selection else AVERAGE
    eeg = filter(channel_names.is_eeg_by_type, info["chs"])
    averaged = [ch for ch in eeg if ch["ch_name"] not in info["bads"]]
    names = [ch["ch_name"] for ch in averaged]
    have_one_reference = len({channel_names.electrode_pair(name)[1] for name in names}) <= 1
    if not is_selection and have_one_reference and all(map(channel_names.is_eeg, averaged)):
        return AVERAGE
    return ", ".join(names) or None


#: Strings in ``picks`` that pick channels by type instead of by name.
_KINDS = {*mne.io.get_channel_type_constants(include_defaults=True), "all", "data", "bads", "meg"}


def _listed(picks: Any) -> list:
    """Convert an argument that selects channels (by name, type or index) to a list."""
    return [] if picks is None else np.atleast_1d(picks).tolist()


def _is_of_eeg(kwargs: Mapping[str, Any]) -> bool:
    """Whether a step applies to EEG channels. Steps without ``picks`` do.

    ``kwargs`` are the arguments of the step, whose ``picks`` select channels by type or name.
    """
    picks = _listed(kwargs.get("picks"))
    kinds = {pick if isinstance(pick, str) and pick in _KINDS else "eeg" for pick in picks}
    return not kinds or not kinds.isdisjoint(("eeg", "data", "all"))


def _selects_channels(name: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether a step selects or excludes EEG channels by name or index."""
    if name not in ("pick", "pick_channels", "pick_types", "drop_channels"):
        return False
    arguments = (_listed(kwargs.get(argument)) for argument in ("picks", "ch_names", "exclude"))
    chosen = [pick for picks in arguments for pick in picks if pick not in _KINDS]
    return not all(isinstance(pick, str) and channel_names.is_other_kind(pick) for pick in chosen)


#: Key of the recorded steps in ``info["temp"]``. MNE provides this entry for other programs, and
#: does not write it to files.
_ENTRY = "braindecode_pars_steps"
#: Key of the cutoff frequencies of each channel in ``info["temp"]``.
_EDGES = "braindecode_pars_edges"


def remember_steps(raw: mne.io.BaseRaw, steps: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Store in the info of a recording which preprocessing steps were applied to the recording.

    Otherwise, the info would contain the cutoff frequencies of the band-pass filter, but no notch
    filter and no name of the reference.

    Parameters
    ----------
    raw : Raw
        Recording. Its ``info`` is modified in place.
    steps : iterable of (str, mapping)
        For each step, the name of the MNE method and its arguments, which must be JSON
        serializable.

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
    """Store the cutoff frequencies of the amplifier for each channel in the info of a recording.

    The MNE info itself has only one pair of cutoff frequencies for all channels, including channels
    that are not EEG.

    Parameters
    ----------
    info : mne.Info
        Measurement info, modified in place.
    edges : mapping of str to (float | None, float | None)
        Lower and upper cutoff frequency in Hz, by channel name.
    """
    of_file = info["highpass"], info["lowpass"]
    info["temp"] = {**(info.get("temp") or {}), _EDGES: (of_file, {**edges})}


def rename_channels(raw: mne.io.BaseRaw, names: Mapping[str, str]) -> None:
    """Rename channels in place, also in the cutoff frequencies that are stored by channel name."""
    raw.rename_channels(names, verbose="error")
    if _EDGES in (temp := raw.info.get("temp") or {}):
        of_file, edges = temp[_EDGES]
        edges = {names.get(name, name): channel_edges for name, channel_edges in edges.items()}
        raw.info["temp"] = {**temp, _EDGES: (of_file, edges)}


def _edges(info: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the highest lower cutoff and the lowest upper cutoff of all EEG channels in the info.

    Filters in the recorded steps are not considered.
    """
    info_edges = info.get("highpass"), info.get("lowpass")
    of_file, edges = (info.get("temp") or {}).get(_EDGES, (None, {}))
    used = [edges.get(ch["ch_name"]) for ch in info["chs"] if channel_names.is_eeg(ch)]
    if of_file is None or not used or None in [*used]:
        return info_edges
    lows, highs = zip(*used, strict=True)
    narrowest = max(filter(None, lows), default=0.0), min(filter(None, highs), default=math.inf)
    # If a cutoff in the info differs from the cutoff in the file, a filter was applied after the
    # file was read, and the cutoff in the info is used.
    low, high = (a if b == c else b for a, b, c in zip(narrowest, info_edges, of_file, strict=True))
    return low, high


def remembered_steps(info: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the steps recorded by :func:`remember_steps`, in the order of application."""
    entries = info.get("temp") or {}
    return [(name, dict(kwargs)) for name, kwargs in entries.get(_ENTRY, ())]
