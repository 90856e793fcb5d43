"""Description of the preprocessing of recordings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from braindecode_pars._parameters import (
    Rule,
    check_parameters,
    choice,
    instance,
    optional,
    positive,
)

__all__ = ["AS_RECORDED", "AVERAGE", "FIELDS", "WORDS", "Preprocessing", "text_of"]

#: References that are no electrodes.
AS_RECORDED, AVERAGE = "as recorded", "average"

_POSITIVE = positive()


def _is_band(band: tuple) -> bool:
    edges = [edge for edge in band if edge is not None]
    ordered = len(edges) < 2 or edges[0] < edges[1]
    return len(band) == 2 and all(map(_is_positive, edges)) and ordered


def _is_positive(value: Any) -> bool:
    try:
        _POSITIVE.check("", value)
    except (TypeError, ValueError):
        return False
    return True


_RULES = dict(
    sfreq=optional(_POSITIVE),
    band=optional(
        Rule(
            "a lower and a higher frequency in Hz, such as (0.3, 35) or (0.3, None)",
            (tuple,),
            _is_band,
        )
    ),
    notch=optional(
        Rule(
            "a list of positive numbers (Hz)", (tuple,), lambda freqs: all(map(_is_positive, freqs))
        )
    ),
    reference=optional(instance("a text", str)),
    scale=optional(_POSITIVE),
    channels=optional(
        Rule(
            "a list of names",
            (tuple,),
            lambda names: len(names) > 0 and all(isinstance(name, str) for name in names),
        )
    ),
    window_seconds=optional(_POSITIVE),
    filter=choice("fir", "iir", None),
)
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
        electrodes separated by commas for the mean of these, or ``"as recorded"`` when the
        recordings were not re-referenced.
    scale : float | None
        Factor by which the signals in volts were multiplied: 1 for volts, 1e6 for microvolts.
    channels : tuple of str | None
        Names of the channels, in the order of the model.
    window_seconds : float | None
        Length of a window in seconds.
    filter : "fir" | "iir" | None
        Kind of the band-pass, as the argument ``method`` of :meth:`mne.io.Raw.filter`. None stands
        for "fir", MNE's default, when a recording is filtered.

    Raises
    ------
    TypeError, ValueError
        When an entry is not one of the above. Lists are accepted for tuples.

    Examples
    --------
    >>> from braindecode_pars.preprocessing import Preprocessing
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

    def __post_init__(self) -> None:
        for name in ("band", "notch", "channels"):  # JSON has lists
            value = getattr(self, name)
            if isinstance(value, Iterable) and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
        if isinstance(self.reference, str):  # "A1,A2" is "A1, A2"
            names = (name.strip() for name in self.reference.split(","))
            object.__setattr__(self, "reference", ", ".join(names))
        check_parameters(vars(self), _RULES, "Preprocessing")

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
        >>> from braindecode_pars.preprocessing import Preprocessing
        >>> Preprocessing.of({"band": [0.5, None]}).band
        (0.5, None)
        """
        if isinstance(value, cls):
            return value
        unknown = [name for name in value or {} if name not in FIELDS]
        if unknown:
            raise ValueError(
                f"preprocessing has an entry {unknown[0]!r}; its entries are {', '.join(FIELDS)}."
            )
        return cls(**(value or {}))

    def known(self) -> dict[str, Any]:
        """Return the entries that are known, as JSON takes them.

        Returns
        -------
        dict of str to Any
            The entries, from which :meth:`of` makes an equal description.

        Examples
        --------
        >>> from braindecode_pars.preprocessing import Preprocessing
        >>> Preprocessing(sfreq=100.0, notch=[50.0]).known()
        {'sfreq': 100.0, 'notch': [50.0]}
        """
        entries = ((name, getattr(self, name)) for name in FIELDS)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in entries
            if value is not None
        }

    def steps(self) -> list[dict[str, Any]]:
        """Return the steps that prepare a recording in this way, as far as they are known.

        Returns
        -------
        list of dict
            Steps as in braindecode's records: ``fn`` is the name of a method of
            :class:`mne.io.Raw`, and ``kwargs`` are its arguments. The channels are not picked, and
            no window is cut.

        Examples
        --------
        Prepare recordings with braindecode as those of a model:

        >>> from braindecode.preprocessing import Preprocessor
        >>> from braindecode_pars.preprocessing import Preprocessing
        >>> trained = Preprocessing(sfreq=100.0, band=(0.3, 35.0), reference="average")
        >>> [Preprocessor(step["fn"], apply_on_array=False, **step["kwargs"]).fn
        ...  for step in trained.steps()]
        ['resample', 'filter', 'set_eeg_reference']
        """
        steps: list[tuple[str, dict[str, Any]]] = []
        if self.sfreq is not None:
            steps.append(("resample", dict(sfreq=self.sfreq)))
        if self.band not in (None, (None, None)):
            kwargs: dict[str, Any] = dict(zip(("l_freq", "h_freq"), self.band, strict=True))
            steps.append(
                ("filter", kwargs if self.filter is None else kwargs | {"method": self.filter})
            )
        if self.notch:
            steps.append(("notch_filter", dict(freqs=list(self.notch))))
        if self.reference not in (None, AS_RECORDED):
            names = self.reference.split(", ")
            steps.append(("set_eeg_reference", dict(ref_channels=_average_or(names))))
        if self.scale not in (None, 1):
            steps.append(("rescale", dict(scalings=self.scale)))
        return [{"fn": fn, "kwargs": kwargs} for fn, kwargs in steps]

    def __str__(self) -> str:
        known = [f"{WORDS[name]} {text_of(name, value)}" for name, value in self.known().items()]
        return ", ".join(known) or "unknown"


def _average_or(names: list[str]) -> str | list[str]:
    return AVERAGE if names == [AVERAGE] else names


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
    if name == "sfreq":
        return f"{value:g} Hz"
    if name == "band":
        return _text_of_band(*value)
    if name == "notch":
        return f"{', '.join(f'{freq:g}' for freq in value)} Hz" if value else "none"
    if name == "window_seconds":
        return f"{value:g} s"
    if name in ("channels", "reference"):
        value = value.split(", ") if isinstance(value, str) else value
        return ", ".join(value[:10]) + (f" and {len(value) - 10} more" * (len(value) > 10))
    return value if name == "filter" else f"{value:g}"


def _text_of_band(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "not filtered"
    if low is None:
        return f"up to {high:g} Hz"
    return f"from {low:g} Hz" if high is None else f"{low:g}-{high:g} Hz"
