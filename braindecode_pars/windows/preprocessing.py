"""Describe and compare the preprocessing of recordings: sampling rate, filters, reference, unit.

A model stores the preprocessing of its training data, which is compared with the preprocessing of
new recordings. :func:`~braindecode_pars.windows.recorded_steps.recorded` reads the preprocessing of
a recording from its metadata.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from braindecode_pars._common import channel_names, checks

#: Value of ``reference`` if the recording was not re-referenced.
AS_RECORDED = "as recorded"
#: Value of ``reference`` for the average reference.
AVERAGE = "average"
#: Value of ``reference`` if the recording was re-referenced, but the new reference is unknown. MNE
#: stores that the reference was changed, but not the new reference.
CHANGED = "changed"


def are_positive(values: Sequence[Any]) -> bool:
    """Whether values are finite positive numbers."""
    are_numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in values)
    return are_numbers and all(0 < value < math.inf for value in values)


def _is_band(band: tuple[float | None, ...]) -> bool:
    edges = [edge for edge in band if edge is not None]
    return len(band) == 2 and are_positive(edges) and edges == sorted(set(edges))


def _are_names(names: tuple[Any, ...]) -> bool:
    return len(names) > 0 and all(isinstance(name, str) for name in names)


_NUMBER = checks.optional(checks.positive())
_BAND = "two increasing cutoff frequencies in Hz (None for no cutoff), such as (0.3, None)"
_NOTCH = "a list of positive numbers (Hz)"
_RULES = dict(
    sfreq=_NUMBER,
    band=checks.optional(checks.ParameterRule(_BAND, (tuple,), _is_band)),
    notch=checks.optional(checks.ParameterRule(_NOTCH, (tuple,), are_positive)),
    reference=checks.optional(checks.instance("a string", str)),
    scale=_NUMBER,
    channels=checks.optional(
        checks.ParameterRule("a non-empty list of names", (tuple,), _are_names)
    ),
    window_seconds=_NUMBER,
    filter=checks.choice("fir", "iir", None),
)
_RULES["amplifier"] = _RULES["band"]
#: Names of the entries, in their order in messages.
FIELDS = tuple(_RULES)


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of recordings: sampling rate, filters, reference, unit, channels, windows.

    A Preprocessing describes a recording, or the recordings that a model was trained on. Unknown
    entries are None.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz, after resampling.
    band : tuple of (float | None) | None
        Lower and upper cutoff frequency of the band-pass filter in Hz. The lower cutoff is None if
        no high-pass filter was applied, and the upper cutoff is None if no low-pass filter was
        applied.
    notch : tuple of float | None
        Frequencies of the notch filter in Hz. An empty tuple if no notch filter was applied.
    reference : str | None
        Reference of the channels, one of

        - ``"average"``: the average of all EEG channels of a recording;
        - names of electrodes, separated by commas: the mean of these electrodes;
        - ``"as recorded"``: the recordings were not re-referenced;
        - ``"changed"``: the recordings were re-referenced, but the new reference is unknown.
    scale : float | None
        Factor by which the signals in volts were multiplied: 1 for volts, 1e6 for microvolts.
    channels : tuple of str | None
        Names of the channels, in the order in which the model uses them.
    window_seconds : float | None
        Length of a window in seconds.
    filter : "fir" | "iir" | None
        Type of the band-pass filter, as the argument ``method`` of :meth:`mne.io.Raw.filter`. If
        None (unknown), new recordings are filtered with "fir", the default of MNE.
    amplifier : tuple of (float | None) | None
        Lower and upper cutoff frequency in Hz of the amplifier, or of other filters that were
        applied before the known preprocessing steps. For several recordings, the narrowest band.

    Raises
    ------
    TypeError, ValueError
        If an entry has an invalid value. Lists are accepted in place of tuples.

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
        for name in ("band", "notch", "channels", "amplifier"):  # lists, as read from JSON
            value = getattr(self, name)
            if isinstance(value, Iterable) and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
        if isinstance(self.reference, str):  # "A1,A2" is "A1, A2"
            names = (name.strip() for name in self.reference.split(","))
            object.__setattr__(self, "reference", ", ".join(names))
        checks.check_parameters(vars(self), _RULES, "Preprocessing")

    @classmethod
    def of(cls, value: Preprocessing | Mapping[str, Any] | None) -> Preprocessing:
        """Create a Preprocessing from a dict.

        Parameters
        ----------
        value : Preprocessing | mapping | None
            Entries of the preprocessing by name, for example read from a JSON file. A Preprocessing
            is returned unchanged. If None, all entries are unknown.

        Returns
        -------
        Preprocessing
            Preprocessing with these entries.

        Raises
        ------
        TypeError, ValueError
            If the name or the value of an entry is invalid.

        Examples
        --------
        >>> from braindecode_pars.windows.preprocessing import Preprocessing
        >>> Preprocessing.of({"band": [0.5, None]}).band
        (0.5, None)
        """
        if isinstance(value, Preprocessing):
            return value
        entries = dict(value or {})
        entries.pop("filters", None)  # an unused entry of the bundled encoder "features-eegmmidb"
        if unknown := [name for name in entries if name not in FIELDS]:
            raise ValueError(
                f"preprocessing contains the unknown entry {unknown[0]!r}. Use only these entries: "
                f"{', '.join(FIELDS)}."
            )
        return cls(**entries)

    def known(self) -> dict[str, Any]:
        """Return the known entries as JSON-serializable values.

        Returns
        -------
        dict of str to Any
            The known entries. :meth:`of` converts this dict back to an equal Preprocessing.

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


#: Name of each entry in messages.
WORDS = dict(zip(FIELDS, FIELDS, strict=True)) | dict(
    sfreq="sampling rate", scale="scale from volts", window_seconds="window length"
)


def text_of(name: str, value: Any) -> str:
    """Format the value of an entry for a message: "0.3-75 Hz" for the band (0.3, 75).

    Parameters
    ----------
    name : str
        Name of the entry.
    value : Any
        Value of the entry.
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


def agreed(descriptions: Iterable[Preprocessing]) -> Preprocessing:
    """Return the preprocessing that several recordings have in common.

    Parameters
    ----------
    descriptions : iterable of Preprocessing
        Preprocessing of each recording.

    Returns
    -------
    Preprocessing
        Entries that are known and equal in all recordings. All other entries are unknown (None),
        except for ``amplifier``, which is the narrowest band.

    Examples
    --------
    >>> from braindecode_pars.windows.preprocessing import Preprocessing
    >>> from braindecode_pars.windows.preprocessing import agreed
    >>> print(agreed([Preprocessing(sfreq=100, notch=[50]), Preprocessing(sfreq=100, notch=[60])]))
    sampling rate 100 Hz
    """
    different = {*descriptions}
    values = {name: {getattr(d, name) for d in different} for name in FIELDS}
    bands = values.pop("amplifier") - {None}
    shared = Preprocessing(**{name: v.pop() for name, v in values.items() if len(v) == 1})
    if not bands:
        return shared
    # The narrowest band: the highest lower cutoff and the lowest upper cutoff. None if the lower
    # cutoff is not below the upper cutoff.
    lows, highs = zip(*bands, strict=True)
    low, high = max(filter(None, lows), default=None), min(filter(None, highs), default=None)
    is_band = low is None or high is None or low < high
    return replace(shared, amplifier=(low, high) if is_band else None)


#: Maximum relative difference between two frequencies or lengths that are treated as equal.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Difference:
    """Entry of the preprocessing that differs between the training data and a recording.

    Attributes
    ----------
    name : str
        Name of the entry, such as "band".
    expected, actual : Any
        Value in the training data, and value in the recording.
    repair : str | None
        Preprocessing step that makes the recording match the training data, such as "filter". None
        if no step can do this.

    Examples
    --------
    >>> from braindecode_pars.windows.preprocessing import Difference
    >>> print(Difference("band", (0.3, 75.0), (0.5, 40.0), None))
    band 0.5-40 Hz, but 0.3-75 Hz in training
    """

    name: str
    expected: Any
    actual: Any
    repair: str | None = None

    def __str__(self) -> str:
        return self.text("in training")

    def text(self, expected_in: str) -> str:
        """Return a text with both values.

        ``expected_in`` states where the expected value comes from, such as "in training".
        """
        expected, actual = (text_of(self.name, value) for value in (self.expected, self.actual))
        return f"{WORDS[self.name]} {actual}, but {expected} {expected_in}"


def differences(expected: Preprocessing, actual: Preprocessing) -> list[Difference]:
    """Compare the preprocessing of the training data with the preprocessing of a recording.

    Entries that are unknown in the training data or in the recording are not compared.

    Parameters
    ----------
    expected : Preprocessing
        Preprocessing of the training data of the model.
    actual : Preprocessing
        Preprocessing of a recording, or of windows, to predict.

    Returns
    -------
    list of Difference
        Entries that differ. The following differences can be repaired. The preprocessing step that
        repairs a difference is its attribute ``repair``:

        - a different sampling rate (``"resample"``);
        - a different band that contains the band of the training data (``"filter"``);
        - a notch filter that was applied to the training data but not to the recording
          (``"notch_filter"``). Notch frequencies above the band of the training data or of the
          recording are ignored;
        - a different reference, if the reference of the training data can be computed from the
          channels of the recording (``"set_eeg_reference"``);
        - a different scale (``"rescale"``), order of the channels (``"pick"``), or window length
          (``"cut"``).

        For all other differences, ``repair`` is None.

    Examples
    --------
    The band cannot be repaired, because the recording lacks the frequencies from 0.3 to 0.5 Hz:

    >>> from braindecode_pars.windows.preprocessing import Preprocessing, differences
    >>> trained = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=[])
    >>> for difference in differences(trained, Preprocessing(sfreq=256.0, band=(0.5, None))):
    ...     print(difference, "|", difference.repair)
    sampling rate 256 Hz, but 100 Hz in training | resample
    band from 0.5 Hz, but 0.3-35 Hz in training | None
    """
    top = min(_highest_frequency(expected), _highest_frequency(actual))
    is_missing = any(freq < top for freq in _missing_notches(expected, actual))
    is_additional = any(freq < top for freq in _missing_notches(actual, expected))
    absent, reordered = _compare_channels(expected.channels, actual.channels)
    rows = (
        ("sfreq", not _are_close(expected.sfreq, actual.sfreq), "resample"),
        ("notch", is_missing or is_additional, None if is_additional else "notch_filter"),
        ("reference", *_compare_references(expected, actual)),
        ("scale", not _are_close(expected.scale, actual.scale), "rescale"),
        ("channels", absent or reordered, None if absent else "pick"),
        ("window_seconds", not _are_close(expected.window_seconds, actual.window_seconds), "cut"),
    )
    differing = _band_difference(expected, actual)
    for name, differs, repair in rows:
        values = getattr(expected, name), getattr(actual, name)
        if differs and None not in values:
            differing.append(Difference(name, *values, repair))
    return sorted(differing, key=lambda difference: FIELDS.index(difference.name))


def missing_steps(trained: Preprocessing, actual: Preprocessing) -> Preprocessing:
    """Return the preprocessing to apply to a recording, so that it matches the training data.

    Parameters
    ----------
    trained : Preprocessing
        Preprocessing of the training data.
    actual : Preprocessing
        Preprocessing that was already applied to the recording, as far as known. If its ``scale``
        is unknown, its ``band`` is ignored, because ``band`` may then be the band of the amplifier.

    Returns
    -------
    Preprocessing
        ``trained`` without the cutoff frequencies, notch filters and reference that were already
        applied to the recording. ``scale`` is the factor by which the recording must be multiplied.

    Examples
    --------
    The high-pass filter at 0.3 Hz was already applied to the recording:

    >>> from braindecode_pars.windows.preprocessing import Preprocessing
    >>> from braindecode_pars.windows.preprocessing import missing_steps
    >>> trained = Preprocessing(band=(0.3, 35.0), notch=[50.0], scale=1e6)
    >>> print(missing_steps(trained, Preprocessing(band=(0.3, 70.0), scale=1.0)))
    band up to 35 Hz, notch 50 Hz, scale from volts 1e+06
    """
    band, actual_band = trained.band or (None, None), actual.band or (None, None)
    if actual.scale is None and trained.scale is not None:
        # The cutoffs are only known from the MNE info, in which file readers store the filters of
        # the amplifier for channels of any type. In contrast, the band of the training data is
        # known from a recorded preprocessing step.
        actual_band = None, None
    pairs = zip(band, actual_band, strict=True)
    low, high = (None if _are_close(*pair) else pair[0] for pair in pairs)
    references = [_reference_electrodes(steps.reference) for steps in (trained, actual)]
    return replace(
        trained,
        band=(low, high),
        notch=tuple(_missing_notches(trained, actual)),
        reference=None if references[0] == references[1] else trained.reference,
        scale=None if trained.scale is None else trained.scale / (actual.scale or 1.0),
    )


def _reference_electrodes(reference: str | None) -> set[Any] | None:
    """Return the electrodes of a reference as a set, with synonyms converted to one name."""
    if reference is None:
        return None
    return {channel_names.electrode_pair(name) for name in reference.split(",")}


def warn_of_average(reference: str | None, channels: Sequence[str]) -> None:
    """Warn if an average reference includes channels that are not scalp electrodes.

    Ears and mastoids are accepted. No warning is issued if at least half of the channels are not
    scalp electrodes, because the channels then probably have other names than in the 10-20 system.

    Parameters
    ----------
    reference : str | None
        As in :class:`Preprocessing`.
    channels : sequence of str
        Channels that are averaged if the reference is ``"average"``.
    """
    names = channels if reference == AVERAGE else (reference or "").split(", ")
    reasons = {name: channel_names.why_no_electrode({"ch_name": name}) for name in names}
    non_scalp = {name: why for name, why in reasons.items() if why not in ("", channel_names.EAR)}
    if 0 < len(non_scalp) < len(reasons) / 2:
        text = "; ".join(dict.fromkeys(non_scalp.values()))
        checks.warn_user(
            f"The average reference over {len(reasons)} channels includes channels that are not "
            f"scalp electrodes: {checks.format_list([*non_scalp])} ({text}). Exclude these "
            "channels, and compute the average reference again."
        )


def _are_close(a: float | None, b: float | None) -> bool:
    """Whether two frequencies or lengths are both known, and differ by at most one percent."""
    return a is not None and b is not None and math.isclose(a, b, rel_tol=_TOLERANCE)


def _highest_frequency(description: Preprocessing) -> float:
    """Return the highest frequency in the signals in Hz: the cutoff, or half the sampling rate."""
    high = description.band[1] if description.band else None
    return min(math.inf if description.sfreq is None else description.sfreq / 2, high or math.inf)


def _band_difference(trained: Preprocessing, actual: Preprocessing) -> list[Difference]:
    """Compare the bands of the training data and of a recording.

    The sampling rates are considered, because they limit the highest frequency. A narrower band of
    the recording is not a difference if the amplifiers of the training data removed the same
    frequencies.
    """
    if trained.band is None:
        return []
    low, high = trained.band
    amplifier_low, amplifier_high = trained.amplifier or (None, None)
    actual_low, _ = actual.band or (None, None)
    actual_top = _highest_frequency(actual)
    top = min(_highest_frequency(trained), amplifier_high or math.inf)
    if actual_top < top * (1 - _TOLERANCE):
        return [Difference("band", (low, _highest_frequency(trained)), (actual_low, actual_top))]
    if actual.band is None:
        return []
    if not math.isclose(low or 0, actual_low or 0, rel_tol=_TOLERANCE):
        lowest = max(low or 0, amplifier_low or 0) * (1 + _TOLERANCE)
        repair = None if (actual_low or 0) > lowest else "filter"
        return [Difference("band", trained.band, actual.band, repair)]
    # If no low-pass filter was applied in training, resampling the recording to the sampling rate
    # of the training data removes higher frequencies.
    if high is not None and actual_top > high * (1 + _TOLERANCE):
        return [Difference("band", trained.band, actual.band, "filter")]
    return []


def _missing_notches(wanted: Preprocessing, actual: Preprocessing) -> list[float]:
    """Return the frequencies in Hz of those wanted notch filters that were not applied."""
    return [f for f in wanted.notch or () if not any(_are_close(f, o) for o in actual.notch or ())]


def _compare_references(trained: Preprocessing, actual: Preprocessing) -> tuple[bool, str | None]:
    """Return whether the references are known to differ, and the step that repairs the difference.

    The step is None if the reference of the training data cannot be computed from the channels of
    the recording.
    """
    expected, other = trained.reference, actual.reference
    if CHANGED in (expected, other):
        # A reference is unknown. MNE also marks recordings with bipolar channels as re-referenced.
        # Their channel names contain the reference, so no difference is assumed.
        names = trained.channels or actual.channels or ()
        are_named = bool(names) and all(channel_names.electrode_pair(name)[1] for name in names)
        differ = AS_RECORDED in (expected, other) and not are_named
    else:
        differ = _reference_electrodes(expected) != _reference_electrodes(other)
    if expected in (None, AS_RECORDED, CHANGED):
        return differ, None
    required = trained.channels if expected == AVERAGE else tuple(expected.split(", "))
    required = required and tuple(channel_names.system_names(required, trained.channels or ()))
    is_absent, _ = _compare_channels(required, actual.channels)
    return differ, None if is_absent else "set_eeg_reference"


def _compare_channels(
    trained: tuple[str, ...] | None, actual: tuple[str, ...] | None
) -> tuple[bool, bool]:
    """Return whether electrodes of the training data are missing, and whether the order differs."""
    if trained is None or actual is None:
        return False, False
    places = channel_names.match_channels(list(trained), list(actual))
    present = [place for place in places if place is not None]
    return len(present) < len(places), present != sorted(present)
