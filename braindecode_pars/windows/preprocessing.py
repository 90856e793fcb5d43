"""What was done with recordings before they were cut into windows, and whether two agree.

Several recordings have in common what they agree in. The recordings of a model are compared with
others. :func:`~braindecode_pars.windows.recorded_steps.recorded` reads what was done with one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

from braindecode_pars._common import channel_names, checks

#: References that are no electrodes. MNE records that a reference was changed, but not to which.
AS_RECORDED, AVERAGE, CHANGED = "as recorded", "average", "changed"


def are_positive(values: Sequence[Any]) -> bool:
    """Whether values are finite positive numbers."""
    are_numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in values)
    return are_numbers and all(0 < value < math.inf for value in values)


_RULES = dict(
    sfreq=checks.optional(checks.positive()),
    band=checks.optional(
        checks.ParameterRule(
            "two rising edges in Hz, such as (0.3, None)",
            (tuple,),
            lambda band: (
                len(band) == 2
                and are_positive(edges := [edge for edge in band if edge is not None])
                and edges == sorted(set(edges))
            ),
        )
    ),
    notch=checks.optional(
        checks.ParameterRule("a list of positive numbers (Hz)", (tuple,), are_positive)
    ),
    reference=checks.optional(checks.instance("a text", str)),
    scale=checks.optional(checks.positive()),
    channels=checks.optional(
        checks.ParameterRule(
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
    >>> from braindecode_pars.windows.preprocessing import Preprocessing
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
        >>> from braindecode_pars.windows.preprocessing import Preprocessing
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
        >>> from braindecode_pars.windows.preprocessing import Preprocessing
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
        return checks.format_list(
            channel_names.odd_first(value.split(", ") if isinstance(value, str) else value)
        )
    units = dict(sfreq=" Hz", window_seconds=" s")
    return value if name == "filter" else f"{value:g}{units.get(name, '')}"


def agreed(descriptions: Collection[Preprocessing | None]) -> Preprocessing:
    """Return the entries that are the same in all descriptions; others are unknown.

    Parameters
    ----------
    descriptions : collection of Preprocessing | None
        Descriptions; None stands for an unknown one.

    Returns
    -------
    Preprocessing
        The entries that are known in all descriptions, and equal.

    Examples
    --------
    >>> from braindecode_pars.windows.preprocessing import Preprocessing
    >>> from braindecode_pars.windows.preprocessing import agreed
    >>> print(agreed([Preprocessing(sfreq=100, notch=[50]), Preprocessing(sfreq=100, notch=[60])]))
    sampling rate 100 Hz
    """
    values = {name: {getattr(d, name, None) for d in descriptions} for name in FIELDS}
    bands = values.pop("amplifier") - {None}
    alike = Preprocessing(**{name: v.pop() for name, v in values.items() if len(v) == 1})
    if not bands:
        return alike
    # The highest lower edge and the lowest upper edge, unless they form no band.
    lows, highs = zip(*bands, strict=True)
    low, high = max(filter(None, lows), default=None), min(filter(None, highs), default=None)
    is_band = low is None or high is None or low < high
    return replace(alike, amplifier=(low, high) if is_band else None)


def disagreements(descriptions: Counter[Preprocessing | None]) -> list[str]:
    """Return a phrase for each entry that is known to differ.

    Parameters
    ----------
    descriptions : Counter of Preprocessing | None
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
        for description, n in descriptions.items():
            counts[getattr(description, name, None)] += n
        counts.pop(None, None)
        if len(counts) > 1:
            values = [f"{text_of(name, v)} in {n} windows" for v, n in counts.most_common(4)]
            phrases.append(f"{WORDS[name]} {', '.join(values)}{', ...' if len(counts) > 4 else ''}")
    return phrases


def counted(descriptions: Collection[Preprocessing | None]) -> Counter[Preprocessing | None]:
    """Count equal descriptions; many windows share one object, which is looked at once."""
    objects = {id(description): description for description in descriptions}
    counts: Counter[Preprocessing | None] = Counter()
    for number, n in Counter(map(id, descriptions)).items():
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
    >>> from braindecode_pars.windows.preprocessing import Difference
    >>> print(Difference("band", (0.3, 75.0), (0.5, 40.0), None))
    band 0.5-40 Hz, but 0.3-75 Hz in training
    """

    name: str
    trained: Any
    found: Any
    repair: str | None = None

    def __str__(self) -> str:
        expected, actual = (text_of(self.name, value) for value in (self.trained, self.found))
        return f"{WORDS[self.name]} {actual}, but {expected} in training"


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
    >>> from braindecode_pars.windows.preprocessing import Preprocessing, differences
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
        ("sfreq", not _are_close(trained.sfreq, found.sfreq), "resample"),
        ("notch", missing or further, None if further else "notch_filter"),
        ("reference", *_compare_references(trained, found)),
        ("scale", not _are_close(trained.scale, found.scale), "rescale"),
        ("channels", absent or reordered, None if absent else "pick"),
        ("window_seconds", not _are_close(trained.window_seconds, found.window_seconds), "cut"),
    )
    differing = _band_difference(trained, found)
    for name, differs, repair in rows:
        values = getattr(trained, name), getattr(found, name)
        if differs and None not in values:
            differing.append(Difference(name, *values, repair))
    return sorted(differing, key=lambda difference: FIELDS.index(difference.name))


def missing_steps(trained: Preprocessing, actual: Preprocessing) -> Preprocessing:
    """Return what to apply to a recording, so that it is like those that a model was trained on.

    Parameters
    ----------
    trained : Preprocessing
        Preprocessing of the recordings of the training.
    actual : Preprocessing
        Preprocessing of the recording, as far as its records tell. Without a ``scale``, its band
        may be that of the amplifier, and does not count.

    Returns
    -------
    Preprocessing
        ``trained`` without the edges of the band, the notch filters and the reference that the
        recording has; ``scale`` is the factor that is left.

    Examples
    --------
    >>> from braindecode_pars.windows.preprocessing import Preprocessing
    >>> from braindecode_pars.windows.preprocessing import missing_steps
    >>> trained = Preprocessing(band=(0.3, 35.0), notch=[50.0], scale=1e6)
    >>> print(missing_steps(trained, Preprocessing(band=(0.3, 70.0), scale=1.0)))
    band up to 35 Hz, notch 50 Hz, factor from volts 1e+06
    """
    band, had = trained.band or (None, None), actual.band or (None, None)
    if actual.scale is None and trained.scale is not None:
        # The edges are in the info alone, where readers write the filters of the amplifier, for
        # channels of any kind. The filter of the training was recorded as a step.
        had = None, None
    low, high = (None if _are_close(*pair) else pair[0] for pair in zip(band, had, strict=True))
    has_reference = _is_same_reference(trained.reference, actual.reference)
    return replace(
        trained,
        band=(low, high),
        notch=tuple(_lacking(trained, actual)),
        reference=None if has_reference else trained.reference,
        scale=None if trained.scale is None else trained.scale / (actual.scale or 1.0),
    )


def _is_same_reference(ref: str | None, other: str | None) -> bool:
    """Whether two references are the same electrodes, in any order: "A1, A2" and "M2, M1"."""
    if ref is None or other is None:
        return ref is other
    first, second = (
        {channel_names.electrode_pair(name) for name in text.split(",")} for text in (ref, other)
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
    reasons = {name: channel_names.why_no_electrode({"ch_name": name}) for name in names}
    odd = {name: why for name, why in reasons.items() if why not in ("", channel_names.EAR)}
    if 0 < len(odd) < len(reasons) / 2:
        text = "; ".join(dict.fromkeys(odd.values()))
        checks.warn_user(
            f"The average reference is over {len(reasons)} channels, not all of them electrodes of "
            f"the scalp: {checks.format_list([*odd])} ({text}). Leave these out before the average "
            "is made."
        )


def _are_close(a: float | None, b: float | None) -> bool:
    """Whether two frequencies or lengths are known, and the same up to one percent."""
    return a is not None and b is not None and math.isclose(a, b, rel_tol=_TOLERANCE)


def _top(description: Preprocessing) -> float:
    """Return the highest frequency that signals can have: at most half the sampling rate."""
    high = description.band[1] if description.band else None
    return min(math.inf if description.sfreq is None else description.sfreq / 2, high or math.inf)


def _band_difference(trained: Preprocessing, actual: Preprocessing) -> list[Difference]:
    """Compare the bands. A low sampling rate can take away a part of the band, too.

    Frequencies that the amplifiers of the training removed may be removed by another one, too.
    """
    if trained.band is None:
        return []
    low, high = trained.band
    usual_low, usual_high = trained.amplifier or (None, None)
    actual_low, _ = actual.band or (None, None)
    actual_top, top = _top(actual), min(_top(trained), usual_high or math.inf)
    if actual_top < top * (1 - _TOLERANCE):
        return [Difference("band", (low, _top(trained)), (actual_low, actual_top))]
    if actual.band is None:
        return []
    if not math.isclose(low or 0, actual_low or 0, rel_tol=_TOLERANCE):
        lowest = max(low or 0, usual_low or 0) * (1 + _TOLERANCE)
        repair = None if (actual_low or 0) > lowest else "filter"
        return [Difference("band", trained.band, actual.band, repair)]
    # Without a low-pass filter in training, resampling removes the frequencies above the band.
    if high is not None and actual_top > high * (1 + _TOLERANCE):
        return [Difference("band", trained.band, actual.band, "filter")]
    return []


def _lacking(wanted: Preprocessing, actual: Preprocessing) -> list[float]:
    """Return the frequencies of the wanted notch filters that were not applied."""
    return [f for f in wanted.notch or () if not any(_are_close(f, o) for o in actual.notch or ())]


def _compare_references(trained: Preprocessing, actual: Preprocessing) -> tuple[bool, str | None]:
    """Return whether references are known to differ, and how that of the model can be computed."""
    expected, other = trained.reference, actual.reference
    if CHANGED in (expected, other):
        # It may be any reference. MNE marks bipolar channels as changed, too; their names tell.
        names = trained.channels or actual.channels or ()
        tell = bool(names) and all(channel_names.electrode_pair(name)[1] for name in names)
        differ = AS_RECORDED in (expected, other) and not tell
    else:
        differ = not _is_same_reference(expected, other)
    if expected in (None, AS_RECORDED, CHANGED):
        return differ, None
    needed = trained.channels if expected == AVERAGE else tuple(expected.split(", "))
    needed = needed and tuple(channel_names.system_names(needed, trained.channels or ()))
    is_absent, _ = _compare_channels(needed, actual.channels)
    return differ, None if is_absent else "set_eeg_reference"


def _compare_channels(
    trained: tuple[str, ...] | None, actual: tuple[str, ...] | None
) -> tuple[bool, bool]:
    """Return whether electrodes are absent, and whether they are in another order."""
    if trained is None or actual is None:
        return False, False
    places = channel_names.match_channels(list(trained), list(actual))
    present = [place for place in places if place is not None]
    return len(present) < len(places), present != sorted(present)
