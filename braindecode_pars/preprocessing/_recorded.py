"""The preprocessing of a recording, read from its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from mne.io.constants import FIFF

from braindecode_pars._channel_names import electrode_pair, is_eeg, is_eeg_by_type
from braindecode_pars.preprocessing._preprocessing import AS_RECORDED, AVERAGE, Preprocessing
from braindecode_pars.preprocessing._steps import Step, remembered_steps

__all__ = ["recorded"]


def recorded(
    info: Mapping[str, Any],
    steps: Iterable[Any] = (),
    *,
    sfreq: float | None = None,
) -> Preprocessing:
    """Return the preprocessing of a recording, as far as its records tell.

    MNE's info tells what was done: the edges of the band-pass, and the average of the channels as a
    projection. Recorded steps also tell what was not done: without a notch filter among them, there
    was none. This does not hold if one of them has an unknown effect, such as a lambda.

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
    >>> from braindecode_pars.preprocessing._recorded import recorded
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> step = {"fn": "filter", "kwargs": {"l_freq": 0.5, "h_freq": 40}}
    >>> print(recorded(info, [step]))
    sampling rate 100 Hz, band 0.5-40 Hz, notch none, reference as recorded, factor from volts 1
    >>> print(recorded(info))
    sampling rate 100 Hz
    """
    sfreq = float(info["sfreq"]) if sfreq is None else sfreq
    found = [Step.of(record) for record in (*remembered_steps(info), *steps)]
    complete = bool(found) and all(step.is_known for step in found)
    return Preprocessing(
        sfreq=sfreq,
        band=_band(info, found, sfreq, complete),
        notch=_notch(found, sfreq, complete),
        reference=_reference(info, found, complete),
        scale=_scale(found) if complete else None,
        filter=_kind_of_filter(found),
    )


def _band(
    info: Mapping[str, Any], steps: list[Step], sfreq: float, complete: bool
) -> tuple[float | None, float | None] | None:
    """Return the edges of all filters. MNE's 0 and half the sampling rate stand for no filter.

    An edge is that of the recorded filters. Without any, it is that of the info, in which readers
    write the filters of the amplifier too: these may differ between files prepared in the same way.
    """
    filters = [step.kwargs for step in steps if step.name in ("filter", "filter_data")]
    # An upper edge below the lower one is a band-stop filter.
    filters = [kwargs for kwargs in filters if not _stops_a_band(**kwargs)]
    lows = [kwargs["l_freq"] for kwargs in filters if "l_freq" in kwargs] or [info.get("highpass")]
    highs = [kwargs["h_freq"] for kwargs in filters if "h_freq" in kwargs] or [info.get("lowpass")]
    top = sfreq / 2 * (1 - 1e-6)
    low = max((_rounded(low) for low in lows if low), default=None)
    high = min((_rounded(high) for high in highs if high and high < top), default=None)
    # Edges of several filters that have nothing in common are none of a band.
    if low is not None and high is not None and low >= high:
        return None
    return (low, high) if complete or (low, high) != (None, None) else None


def _stops_a_band(l_freq: float | None = None, h_freq: float | None = None, **others: Any) -> bool:
    return None not in (l_freq, h_freq) and l_freq >= h_freq


def _kind_of_filter(steps: list[Step]) -> str | None:
    """Return "iir" where such a filter is recorded; FIR filters, MNE's default, are not named."""
    kinds = {step.kwargs.get("method", "fir") for step in steps if step.name == "filter"}
    return "iir" if kinds == {"iir"} else None


def _rounded(frequency: float) -> float:
    """Return a frequency without the digits that single precision in a file adds."""
    return float(f"{frequency:.6g}")


def _notch(steps: list[Step], sfreq: float, complete: bool) -> tuple[float, ...] | None:
    filters = [step.kwargs.get("freqs") for step in steps if step.name == "notch_filter"]
    if any(freqs is None for freqs in filters):  # MNE searched the frequencies itself
        return None
    freqs = {float(freq) for freqs in filters for freq in np.atleast_1d(freqs) if freq < sfreq / 2}
    return tuple(sorted(freqs)) if freqs or complete else None


def _reference(info: Mapping[str, Any], steps: list[Step], complete: bool) -> str | None:
    averages = (p for p in info.get("projs", ()) if p["kind"] == FIFF.FIFFV_PROJ_ITEM_EEG_AVREF)
    is_averaged = any(projection["active"] for projection in averages)
    places = [i for i, step in enumerate(steps) if step.name == "set_eeg_reference"]
    if not is_averaged:  # a projection that is not applied leaves the signals as they are
        places = [i for i in places if not steps[i].kwargs.get("projection")]
    if places:
        last = places[-1]
        name = _name_of(steps[last].kwargs.get("ref_channels", AVERAGE))
        return _average(info, steps[:last], steps[last:]) if name == AVERAGE else name
    if is_averaged:
        return AVERAGE
    is_custom = bool(info.get("custom_ref_applied"))
    return AS_RECORDED if complete and not is_custom else None


def _average(info: Mapping[str, Any], before: list[Step], after: list[Step]) -> str | None:
    """Return the average of all EEG channels, or of other channels, by their names.

    A recording to predict may have channels that were left out of that average. On the other hand,
    MNE averages whatever has the type EEG, which readers of EDF files give to every signal, such
    as an ECG, and channels with different references, such as C3-M2 and A2-A1.
    """
    choices = [step for step in before if step.chooses]
    if any(step.chooses or step.name == "drop_channels" for step in after):
        # The info has other channels than the average.
        names = choices[-1].picked if choices else [AVERAGE]
    else:
        averaged = [
            ch for ch in info["chs"] if is_eeg_by_type(ch) and ch["ch_name"] not in info["bads"]
        ]
        names = [ch["ch_name"] for ch in averaged]
        have_one_reference = len({electrode_pair(name)[1] for name in names}) <= 1
        if not choices and have_one_reference and all(map(is_eeg, averaged)):
            names = [AVERAGE]
    return ", ".join(names) or None


def _name_of(ref_channels: str | Sequence[str] | Mapping) -> str | None:
    """Return the name of a reference in MNE; None for one that differs between channels."""
    if isinstance(ref_channels, Mapping):
        return None
    names = [ref_channels] if isinstance(ref_channels, str) else list(ref_channels)
    return ", ".join(names) or AS_RECORDED


def _scale(steps: list[Step]) -> float:
    return float(np.prod([step.factor or 1.0 for step in steps]))
