"""Channels of a model, computed from the channels that a recording has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from braindecode_pars._channel_names import electrode_pair, match_channels

__all__ = ["Derivation", "find_derivations"]


@dataclass(frozen=True)
class Derivation:
    """A weighted sum of channels of a recording.

    Attributes
    ----------
    name : str
        Name of the channel in the model.
    weights : tuple of (str, float)
        Channels of the recording, each with its weight.
    reference : tuple of str
        Channels of the recording whose mean is subtracted; empty for none.
    is_eeg : bool
        Whether it is referenced and filtered, as MNE does with EEG and not with other channels.

    Examples
    --------
    >>> from braindecode_pars.recordings._derivations import Derivation
    >>> fpz_cz = Derivation("EEG Fpz-Cz", (("Fpz-A1", 1.0), ("Cz-A1", -1.0)))
    >>> fpz_cz.formula, fpz_cz.is_computed
    ('Fpz-A1 - Cz-A1', True)
    """

    name: str
    weights: tuple[tuple[str, float], ...]
    reference: tuple[str, ...] = ()
    is_eeg: bool = True

    @property
    def is_computed(self) -> bool:
        """Whether the channel is more than one of the recording under another name."""
        return len(self.weights) > 1 or self.weights[0][1] != 1 or bool(self.reference)

    @property
    def channels(self) -> list[str]:
        """The channels of the recording that are used."""
        return [*(name for name, _ in self.weights), *self.reference]

    @property
    def formula(self) -> str:
        """The sum as text, such as ``Fpz-A1 - Cz-A1``."""
        text = " ".join(f"{'-' if weight < 0 else '+'} {name}" for name, weight in self.weights)
        if len(self.reference) > 4:
            text += f" - mean of {len(self.reference)} channels"
        elif self.reference:
            text += f" - mean of {', '.join(self.reference)}"
        return text.removeprefix("+ ")


def find_derivations(
    wanted: Sequence[str], found: Sequence[str], *, compute: bool = True
) -> list[Derivation | None]:
    """Find or compute the channels of a model in a recording, by the names of electrodes.

    The first that is possible: a channel of the same electrode and the same reference, or of the
    same two electrodes; the same two electrodes in the other order, with the sign changed; the
    difference of two channels that have one reference; a channel of the electrode, whatever its
    reference is, as :func:`~braindecode_pars._channel_names.match_channels` finds it. Channels
    that name no reference are taken to have one in common.

    Parameters
    ----------
    wanted : sequence of str
        Names of the channels of the model.
    found : sequence of str
        Names of the channels of the recording.
    compute : bool
        Whether channels may be computed. With False, they are only found.

    Returns
    -------
    list of Derivation | None
        One for each wanted channel; None where it can be neither found nor computed.

    Examples
    --------
    >>> from braindecode_pars.recordings._derivations import find_derivations
    >>> found = ["EEG C3-REF", "EEG A2-REF", "EEG Cz-Fpz", "T3"]
    >>> [d and d.formula for d in find_derivations(["C3-M2", "Fpz-Cz", "T7", "O1"], found)]
    ['EEG C3-REF - EEG A2-REF', '- EEG Cz-Fpz', 'T3', None]
    """
    pairs = _by_pair(found)
    return [
        _same_pair(name, pairs)
        or (_computed(name, pairs) if compute else None)
        or _same_electrode(name, place, found)
        for name, place in zip(wanted, match_channels(wanted, found), strict=True)
    ]


#: Channels by their electrode and reference, or their two electrodes.
_Pairs = dict[tuple[str, str | None], list[str]]


def _by_pair(found: Iterable[str]) -> _Pairs:
    pairs: _Pairs = {}
    for name in found:
        pairs.setdefault(electrode_pair(name), []).append(name)
    return pairs


def _one_of(pair: tuple[str, str | None], pairs: _Pairs, name: str = "") -> str | None:
    """Return the channel of a pair: of several, such as T3 and T7, only one of the same name."""
    names = pairs.get(pair, [])
    return names[0] if len(names) == 1 else next((n for n in names if n == name), None)


def _same_pair(name: str, pairs: _Pairs) -> Derivation | None:
    channel = _one_of(electrode_pair(name), pairs, name)
    return None if channel is None else Derivation(name, ((channel, 1.0),))


def _computed(name: str, pairs: _Pairs) -> Derivation | None:
    """Return a channel with the sign changed, or a difference of two channels."""
    first, second = electrode_pair(name)
    if second is None:
        return None
    reversed_channel = _one_of((second, first), pairs)
    if reversed_channel is not None:
        return Derivation(name, ((reversed_channel, -1.0),))
    # One reference: None stands for the unnamed reference of all channels without one.
    for reference in [r for electrode, r in pairs if electrode == first]:
        plus, minus = _one_of((first, reference), pairs), _one_of((second, reference), pairs)
        if plus is not None and minus is not None:
            return Derivation(name, ((plus, 1.0), (minus, -1.0)))
    return None


def _same_electrode(name: str, place: int | None, found: Sequence[str]) -> Derivation | None:
    return None if place is None else Derivation(name, ((found[place], 1.0),))
