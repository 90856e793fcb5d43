"""What was done with recordings before they were cut into windows, and whether two agree.

It is read from the records of MNE and braindecode. Several recordings have in common what they
agree in. The recordings of a model are compared with others.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import mne
import numpy as np
from mne.io.constants import FIFF

from braindecode_pars._common import channel_names, checks

#: References that are no electrodes. MNE tells that a reference was changed, but not to which.
AS_RECORDED, AVERAGE, CHANGED = "as recorded", "average", "changed"


def _are_positive(values: Sequence[Any]) -> bool:
    are_numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in values)
    return are_numbers and all(0 < value < math.inf for value in values)


_RULES = dict(
    sfreq=checks.optional(checks.positive()),
    band=checks.optional(
        checks.Rule(
            "two rising edges in Hz, such as (0.3, None)",
            (tuple,),
            lambda band: (
                len(band) == 2
                and _are_positive(edges := [edge for edge in band if edge is not None])
                and edges == sorted(set(edges))
            ),
        )
    ),
    notch=checks.optional(checks.Rule("a list of positive numbers (Hz)", (tuple,), _are_positive)),
    reference=checks.optional(checks.instance("a text", str)),
    scale=checks.optional(checks.positive()),
    channels=checks.optional(
        checks.Rule(
            "a list of names", (tuple,), lambda x: len(x) > 0 and all(isinstance(n, str) for n in x)
        )
    ),
    window_seconds=checks.optional(checks.positive()),
    filter=checks.choice("fir", "iir", None),
)
_RULES["amplifier"] = _RULES["band"]
#: Names of the entries, in the order of the description.
FIELDS = tuple(_RULES)


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of the recordings that a model was trained on; None where it is unknown.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz, after resampling.
    band : tuple of (float | None) | None
        Lower and upper edge of the band-pass in Hz. An edge is None where no filter was applied.
    notch : tuple of float | None
        Frequencies of the notch filter in Hz; empty when there was none.
    reference : str | None
        Reference of the channels: ``"average"`` of all EEG channels of a recording, names of
        electrodes separated by commas for the mean of these, ``"as recorded"`` when the recordings
        were not re-referenced since they were read, or ``"changed"`` when they were, to what is
        unknown.
    scale : float | None
        Factor by which the signals in volts were multiplied: 1 for volts, 1e6 for microvolts.
    channels : tuple of str | None
        Names of the channels, in the order of the model.
    window_seconds : float | None
        Length of a window in seconds.
    filter : "fir" | "iir" | None
        Kind of the band-pass, as the argument ``method`` of :meth:`mne.io.Raw.filter`. None stands
        for "fir", MNE's default, when a recording is filtered.
    amplifier : tuple of (float | None) | None
        Edges in Hz of the recordings themselves, by the amplifier or by filters before the steps
        that are known; of several recordings the narrowest.

    Raises
    ------
    TypeError, ValueError
        When an entry is not one of the above. Lists are accepted for tuples.

    Examples
    --------
    >>> from braindecode_pars.recordings.preprocessing import Preprocessing
    >>> preprocessing = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=[50.0])
    >>> preprocessing.band, preprocessing.notch, preprocessing.reference
    ((0.3, 35.0), (50.0,), None)
    >>> print(preprocessing)
    sampling rate 100 Hz, band 0.3-35 Hz, notch 50 Hz
    """

    sfreq: float | None = None
    band: tuple[float | None, float | None] | None = None
    notch: tuple[float, ...] | None = None
    reference: str | None = None
    scale: float | None = None
    channels: tuple[str, ...] | None = None
    window_seconds: float | None = None
    filter: str | None = None
    amplifier: tuple[float | None, float | None] | None = None

    def __post_init__(self) -> None:
        for name in ("band", "notch", "channels", "amplifier"):  # JSON has lists
            value = getattr(self, name)
            if isinstance(value, Iterable) and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
        if isinstance(self.reference, str):  # "A1,A2" is "A1, A2"
            names = (name.strip() for name in self.reference.split(","))
            object.__setattr__(self, "reference", ", ".join(names))
        checks.check_parameters(vars(self), _RULES, "Preprocessing")

    @classmethod
    def of(cls, value: Preprocessing | Mapping[str, Any] | None) -> Preprocessing:
        """Return a description from a dict of its entries.

        Parameters
        ----------
        value : Preprocessing | mapping | None
            Description, or its entries, such as those of a JSON file; None for an unknown one.

        Returns
        -------
        Preprocessing
            The description.

        Raises
        ------
        TypeError, ValueError
            When an entry is unknown or not accepted.

        Examples
        --------
        >>> from braindecode_pars.recordings.preprocessing import Preprocessing
        >>> Preprocessing.of({"band": [0.5, None]}).band
        (0.5, None)
        """
        if isinstance(value, Preprocessing):
            return value
        entries, names = dict(value or {}), [field.name for field in fields(cls)]
        entries.pop("filters", None)  # in files of development versions
        if unknown := [name for name in entries if name not in names]:
            raise ValueError(
                f"preprocessing has an entry {unknown[0]!r}; its entries are {', '.join(names)}."
            )
        return cls(**entries)

    def known(self) -> dict[str, Any]:
        """Return the entries that are known, as JSON takes them.

        Returns
        -------
        dict of str to Any
            The entries, from which :meth:`of` makes an equal description.

        Examples
        --------
        >>> from braindecode_pars.recordings.preprocessing import Preprocessing
        >>> Preprocessing(sfreq=100.0, notch=[50.0]).known()
        {'sfreq': 100.0, 'notch': [50.0]}
        """
        known = {name: value for name, value in vars(self).items() if value is not None}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in known.items()}

    def __str__(self) -> str:
        known = [
            f"{WORDS[name]} {text_of(name, value)}"
            for name, value in self.known().items()
            if name != "amplifier"
        ]
        return ", ".join(known) or "unknown"


#: Names of the entries in sentences.
WORDS = dict(zip(FIELDS, FIELDS, strict=True)) | dict(
    sfreq="sampling rate", scale="factor from volts", window_seconds="windows of"
)


def text_of(name: str, value: Any) -> str:
    """Return the value of an entry for a sentence: "0.3-75 Hz".

    Parameters
    ----------
    name : str
        Name of the entry.
    value : Any
        Its value.
    """
    if value is None:
        return "unknown"
    if name == "band":
        low, high = value
        if low is None:
            return "not filtered" if high is None else f"up to {high:g} Hz"
        return f"from {low:g} Hz" if high is None else f"{low:g}-{high:g} Hz"
    if name == "notch":
        return f"{', '.join(f'{freq:g}' for freq in value)} Hz" if value else "none"
    if name in ("channels", "reference"):
        return checks.listed(
            channel_names.odd_first(value.split(", ") if isinstance(value, str) else value)
        )
    units = dict(sfreq=" Hz", window_seconds=" s")
    return value if name == "filter" else f"{value:g}{units.get(name, '')}"


def agreed(found: Collection[Preprocessing | None]) -> Preprocessing:
    """Return the entries that are the same in all descriptions; others are unknown.

    Parameters
    ----------
    found : collection of Preprocessing | None
        Descriptions; None stands for an unknown one.

    Returns
    -------
    Preprocessing
        The entries that are known in all descriptions, and equal.

    Examples
    --------
    >>> from braindecode_pars.recordings.preprocessing import Preprocessing
    >>> from braindecode_pars.recordings.preprocessing import agreed
    >>> print(agreed([Preprocessing(sfreq=100, notch=[50]), Preprocessing(sfreq=100, notch=[60])]))
    sampling rate 100 Hz
    """
    values = {name: {getattr(each, name, None) for each in found} for name in FIELDS}
    bands = [band for band in values.pop("amplifier") if band is not None]
    alike = Preprocessing(**{name: v.pop() for name, v in values.items() if len(v) == 1})
    return replace(alike, amplifier=_narrowest(bands))


def _narrowest(
    bands: Collection[tuple[float | None, float | None]],
) -> tuple[float | None, float | None] | None:
    """Return the highest lower and the lowest upper edge; None where they are none of a band."""
    if not bands:
        return None
    lows, highs = zip(*bands, strict=True)
    low, high = max(filter(None, lows), default=None), min(filter(None, highs), default=None)
    return None if low is not None and high is not None and low >= high else (low, high)


def disagreements(found: Counter[Preprocessing | None]) -> list[str]:
    """Return a phrase for each entry that is known to differ.

    Parameters
    ----------
    found : Counter of Preprocessing | None
        Number of windows of each description.

    Returns
    -------
    list of str
        Such as "band 0.3-75 Hz in 20 windows, 0.5-40 Hz in 4 windows".
    """
    phrases = []
    for name in FIELDS:
        if name == "amplifier":  # it may differ between files that are prepared alike
            continue
        counts: Counter[Any] = Counter()
        for each, n in found.items():
            counts[getattr(each, name, None)] += n
        counts.pop(None, None)
        if len(counts) > 1:
            values = [f"{text_of(name, v)} in {n} windows" for v, n in counts.most_common(4)]
            phrases.append(f"{WORDS[name]} {', '.join(values)}{', ...' if len(counts) > 4 else ''}")
    return phrases


def counted(found: Collection[Preprocessing | None]) -> Counter[Preprocessing | None]:
    """Count equal descriptions; many windows share one object, which is looked at once."""
    objects = {id(each): each for each in found}
    counts: Counter[Preprocessing | None] = Counter()
    for number, n in Counter(map(id, found)).items():
        counts[objects[number]] += n
    return counts


#: Relative difference of frequencies and lengths that is ignored.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Difference:
    """An entry of the preprocessing that differs between a model and a recording.

    Attributes
    ----------
    name : str
        Name of the entry, such as "band".
    trained, found : Any
        Value of the model, and of the recording.
    repair : str | None
        What makes the recording like those of the model, such as "filter"; None if nothing can.

    Examples
    --------
    >>> from braindecode_pars.recordings.preprocessing import Difference
    >>> print(Difference("band", (0.3, 75.0), (0.5, 40.0), None))
    band 0.5-40 Hz, but 0.3-75 Hz in training
    """

    name: str
    trained: Any
    found: Any
    repair: str | None = None

    def __str__(self) -> str:
        trained, found = (text_of(self.name, value) for value in (self.trained, self.found))
        return f"{WORDS[self.name]} {found}, but {trained} in training"


def differences(trained: Preprocessing, found: Preprocessing) -> list[Difference]:
    """Compare the preprocessing of a model's recordings with that of other ones.

    What is unknown on either side is no difference.

    Parameters
    ----------
    trained : Preprocessing
        Preprocessing of the recordings that the model was trained on.
    found : Preprocessing
        Preprocessing of a recording, or of windows, to predict.

    Returns
    -------
    list of Difference
        What differs. It can be repaired in the recording when

        - the sampling rate is another one (``"resample"``);
        - its band is wider than that of the model (``"filter"``), and no edge is narrower;
        - a notch filter of the model is missing (``"notch_filter"``). Notch filters above the band
          of either do not count;
        - the reference is one that can be computed from its channels (``"set_eeg_reference"``);
        - the signals have another factor (``"rescale"``), channels another order (``"pick"``), or
          windows another length (``"cut"``).

    Examples
    --------
    >>> from braindecode_pars.recordings.preprocessing import Preprocessing, differences
    >>> trained = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=[])
    >>> for each in differences(trained, Preprocessing(sfreq=256.0, band=(0.5, None))):
    ...     print(each, "|", each.repair)
    sampling rate 256 Hz, but 100 Hz in training | resample
    band from 0.5 Hz, but 0.3-35 Hz in training | None
    """
    top = min(_top(trained), _top(found))
    missing = any(freq < top for freq in _lacking(trained, found))
    further = any(freq < top for freq in _lacking(found, trained))
    absent, reordered = _compare_channels(trained.channels, found.channels)
    rows = (
        ("sfreq", not are_close(trained.sfreq, found.sfreq), "resample"),
        ("notch", missing or further, None if further else "notch_filter"),
        ("reference", _references_differ(trained, found), _reference_repair(trained, found)),
        ("scale", not are_close(trained.scale, found.scale), "rescale"),
        ("channels", absent or reordered, None if absent else "pick"),
        ("window_seconds", not are_close(trained.window_seconds, found.window_seconds), "cut"),
    )
    differing = _band_difference(trained, found)
    for name, differs, repair in rows:
        values = getattr(trained, name), getattr(found, name)
        if differs and None not in values:
            differing.append(Difference(name, *values, repair))
    return sorted(differing, key=lambda each: FIELDS.index(each.name))


def missing_steps(trained: Preprocessing, found: Preprocessing) -> Preprocessing:
    """Return what to apply to a recording, so that it is like those that a model was trained on.

    Parameters
    ----------
    trained : Preprocessing
        Preprocessing of the recordings of the training.
    found : Preprocessing
        Preprocessing of the recording, as far as its records tell.

    Returns
    -------
    Preprocessing
        ``trained`` without the edges of the band, the notch filters and the reference that the
        recording has; ``scale`` is the factor that is left.

    Examples
    --------
    >>> from braindecode_pars.recordings.preprocessing import Preprocessing
    >>> from braindecode_pars.recordings.preprocessing import missing_steps
    >>> trained = Preprocessing(band=(0.3, 35.0), notch=[50.0], scale=1e6)
    >>> print(missing_steps(trained, Preprocessing(band=(0.3, 70.0))))
    band up to 35 Hz, notch 50 Hz, factor from volts 1e+06
    """
    band, had = trained.band or (None, None), found.band or (None, None)
    low, high = (None if are_close(*pair) else pair[0] for pair in zip(band, had, strict=True))
    has_reference = is_same_reference(trained.reference, found.reference)
    return replace(
        trained,
        band=(low, high),
        notch=tuple(_lacking(trained, found)),
        reference=None if has_reference else trained.reference,
        scale=None if trained.scale is None else trained.scale / (found.scale or 1.0),
    )


def is_same_reference(one: str | None, other: str | None) -> bool:
    """Whether two references are the same electrodes, in any order: "A1, A2" and "M2, M1".

    Examples
    --------
    >>> from braindecode_pars.recordings.preprocessing import is_same_reference
    >>> is_same_reference("A1, A2", "M2, M1"), is_same_reference("A1, A2", "average")
    (True, False)
    """
    if one is None or other is None:
        return one is other
    first, second = (
        {channel_names.electrode_pair(name) for name in each.split(",")} for each in (one, other)
    )
    return first == second


def warn_of_average(reference: str | None, channels: Sequence[str]) -> None:
    """Warn of a few channels in an average that are neither electrodes of the scalp nor ears.

    Parameters
    ----------
    reference : str | None
        As in :class:`Preprocessing`.
    channels : sequence of str
        Channels of which ``"average"`` is the mean.
    """
    names = channels if reference == AVERAGE else (reference or "").split(", ")
    found = {name: channel_names.why_no_electrode({"ch_name": name}) for name in names}
    odd = {name: why for name, why in found.items() if why not in ("", channel_names.EAR)}
    if 0 < len(odd) < len(found) / 2:
        reasons = "; ".join(dict.fromkeys(odd.values()))
        checks.warn_user(
            f"The average reference is over {len(found)} channels, not all of them electrodes of "
            f"the scalp: {checks.listed([*odd])} ({reasons}). Leave these out before the average "
            "is made."
        )


def _references_differ(trained: Preprocessing, found: Preprocessing) -> bool:
    """Return whether references are known to differ; one that was changed may be any other."""
    one, other = trained.reference, found.reference
    if CHANGED not in (one, other):
        return not is_same_reference(one, other)
    # MNE takes bipolar channels for changed, too. Such names tell the reference.
    names = trained.channels or found.channels or (None,)
    return AS_RECORDED in (one, other) and not all(
        name and channel_names.electrode_pair(name)[1] for name in names
    )


def are_close(one: float | None, other: float | None) -> bool:
    """Whether two frequencies or lengths are known, and the same up to one percent."""
    return one is not None and other is not None and math.isclose(one, other, rel_tol=_TOLERANCE)


def _top(each: Preprocessing) -> float:
    """Return the highest frequency that signals can have: at most half the sampling rate."""
    high = each.band[1] if each.band else None
    return min(math.inf if each.sfreq is None else each.sfreq / 2, high or math.inf)


def _band_difference(trained: Preprocessing, found: Preprocessing) -> list[Difference]:
    """Compare the bands. A low sampling rate can take away a part of the band, too.

    What the amplifiers of the training took away, another one may take away, too.
    """
    if trained.band is None:
        return []
    low, high = trained.band
    usual_low, usual_high = trained.amplifier or (None, None)
    found_low, _ = found.band or (None, None)
    found_top, top = _top(found), min(_top(trained), usual_high or math.inf)
    if found_top < top * (1 - _TOLERANCE):
        return [Difference("band", (low, _top(trained)), (found_low, found_top))]
    if found.band is None:
        return []
    if not math.isclose(low or 0, found_low or 0, rel_tol=_TOLERANCE):
        lowest = max(low or 0, usual_low or 0) * (1 + _TOLERANCE)
        repair = None if (found_low or 0) > lowest else "filter"
        return [Difference("band", trained.band, found.band, repair)]
    # Without a low-pass filter in training, resampling takes away what is above.
    if high is not None and found_top > high * (1 + _TOLERANCE):
        return [Difference("band", trained.band, found.band, "filter")]
    return []


def _lacking(wanted: Preprocessing, found: Preprocessing) -> list[float]:
    """Return the frequencies of notch filters of one that the other has not."""
    return [f for f in wanted.notch or () if not any(are_close(f, o) for o in found.notch or ())]


def _reference_repair(trained: Preprocessing, found: Preprocessing) -> str | None:
    """Return how the reference of the model can be computed, if it can."""
    if trained.reference in (None, AS_RECORDED, CHANGED):
        return None
    of_average = trained.reference == AVERAGE
    needed = trained.channels if of_average else tuple(trained.reference.split(", "))
    needed = needed and tuple(channel_names.system_names(needed, trained.channels or ()))
    absent, _ = _compare_channels(needed, found.channels)
    return None if absent else "set_eeg_reference"


def _compare_channels(
    trained: tuple[str, ...] | None, found: tuple[str, ...] | None
) -> tuple[bool, bool]:
    """Return whether electrodes are absent, and whether they are in another order."""
    if trained is None or found is None:
        return False, False
    places = channel_names.match_channels(list(trained), list(found))
    present = [place for place in places if place is not None]
    return len(present) < len(places), present != sorted(present)


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
    >>> from braindecode_pars.recordings.preprocessing import recorded
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
    kinds = {step.kwargs.get("method", "fir") for step in found if step.name == "filter"}
    filters: list[Any] = [step.kwargs.get("freqs") for step in found if step.name == "notch_filter"]
    is_searched = any(freqs is None for freqs in filters)  # MNE searched the frequencies itself
    notch = {
        float(freq)
        for freqs in (() if is_searched else filters)
        for freq in np.atleast_1d(freqs)
        if freq < sfreq / 2
    }
    return Preprocessing(
        sfreq=sfreq,
        band=_band(info, found, sfreq, complete),
        notch=tuple(sorted(notch)) if notch or (complete and not is_searched) else None,
        reference=_reference(info, found, complete),
        scale=float(np.prod([step.factor or 1.0 for step in found])) if complete else None,
        # FIR filters, MNE's default, are not named.
        filter="iir" if kinds == {"iir"} else None,
        amplifier=_band(info, [], sfreq, complete=False),
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
    filters = [f for f in filters if (f.get("l_freq") or 0) < (f.get("h_freq") or math.inf)]
    of_amplifier = _edges(info)
    lows = [kwargs["l_freq"] for kwargs in filters if "l_freq" in kwargs] or [of_amplifier[0]]
    highs = [kwargs["h_freq"] for kwargs in filters if "h_freq" in kwargs] or [of_amplifier[1]]
    top = sfreq / 2 * (1 - 1e-6)
    low = max((_rounded(low) for low in lows if low), default=None)
    high = min((_rounded(high) for high in highs if high and high < top), default=None)
    # Edges of several filters that have nothing in common are none of a band.
    if low is not None and high is not None and low >= high:
        return None
    return (low, high) if complete or (low, high) != (None, None) else None


def _rounded(frequency: float) -> float:
    """Return a frequency without the digits that single precision in a file adds."""
    return float(f"{frequency:.6g}")


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
        return (
            _average(info, steps[:last], steps[last:]) if name == AVERAGE else name or AS_RECORDED
        )
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
        names = choices[-1].picked if choices else [AVERAGE]
    else:
        averaged = [
            ch
            for ch in info["chs"]
            if channel_names.is_eeg_by_type(ch) and ch["ch_name"] not in info["bads"]
        ]
        names = [ch["ch_name"] for ch in averaged]
        have_one_reference = len({channel_names.electrode_pair(name)[1] for name in names}) <= 1
        if not choices and have_one_reference and all(map(channel_names.is_eeg, averaged)):
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
    def picked(self) -> list[str]:
        """Names of the channels that the step keeps; empty if it does not choose by names."""
        picks = self._picks
        are_names = all(isinstance(pick, str) and not _is_kind(pick) for pick in picks)
        return picks if are_names else []

    @property
    def chooses(self) -> bool:
        """Whether the step leaves out EEG channels by their names or numbers."""
        left_out = "ch_names" if self.name == "drop_channels" else "exclude"
        dropped = [one for one in _listed(self.kwargs.get(left_out)) if not _is_kind(one)]
        are_others = all(
            isinstance(one, str) and channel_names.is_other_kind(one) for one in dropped
        )
        return not (are_others and all(map(_is_kind, self._picks)))

    @property
    def _picks(self) -> list:
        of = dict(pick="picks", pick_channels="ch_names")
        return _listed(self.kwargs.get(of.get(self.name, "")))


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
    >>> from braindecode_pars.recordings.preprocessing import remember_steps, remembered_steps
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
    used = [edges.get(ch["ch_name"]) for ch in info["chs"] if channel_names.is_eeg(ch)]
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
