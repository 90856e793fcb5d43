"""The reference of a model for the channels of a recording, where it can be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from braindecode_pars._channel_names import electrode_name, electrode_pair
from braindecode_pars.preprocessing._preprocessing import AS_RECORDED, AVERAGE
from braindecode_pars.recordings._derivations import Derivation

__all__ = ["rereferenced"]


def rereferenced(
    derivation: Derivation, reference: str | None, eeg: Sequence[str], found: Sequence[str]
) -> Derivation | None:
    """Return a channel with the reference of the model.

    A bipolar or computed channel, one that has the reference by its name, and one that is not EEG
    stay as they are.

    Parameters
    ----------
    derivation : Derivation
        Channel of the recording.
    reference : str | None
        As in :class:`~braindecode_pars.preprocessing.Preprocessing`: ``"average"``, electrodes
        separated by commas, ``"as recorded"``, or None when it is unknown.
    eeg : sequence of str
        EEG channels of the recording, of which ``"average"`` is the mean.
    found : sequence of str
        All channels of the recording.

    Returns
    -------
    Derivation | None
        The channel. None when the recording cannot have this reference: an electrode is missing, or
        has another reference. The average is that of the channels with the same reference.

    Examples
    --------
    >>> from braindecode_pars.recordings._derivations import Derivation
    >>> from braindecode_pars.recordings._referencing import rereferenced
    >>> c3 = Derivation("C3", (("C3", 1.0),))
    >>> names = ["C3", "A1", "A2"]
    >>> rereferenced(c3, "M1, M2", names, names).formula
    'C3 - mean of A1, A2'
    >>> rereferenced(c3, "Cz", names, names) is None
    True
    """
    channel = derivation.weights[0][0]
    own = electrode_pair(channel)[1]
    if reference in (None, AS_RECORDED) or derivation.is_computed or not derivation.is_eeg:
        return derivation
    names = tuple(reference.split(", "))
    if channel in names and set(names) <= set(found):  # the average of just these channels
        return replace(derivation, reference=names)
    if _is_bipolar(channel) or (own is not None and own in _names_of(reference)):
        return derivation
    if reference == AVERAGE:  # of channels with one reference: A2-A1 is none of them
        others = [n for n in eeg if not _is_bipolar(n) and electrode_pair(n)[1] == own]
    else:
        by_electrode = {electrode_pair(name)[0]: name for name in found if not _is_bipolar(name)}
        others = [by_electrode.get(electrode) for electrode in _electrodes(reference)]
    if len(others) < (2 if reference == AVERAGE else 1) or None in others:
        return None
    if any(electrode_pair(name)[1] != own for name in others):
        return None
    return replace(derivation, reference=tuple(others))


def _is_bipolar(channel: str) -> bool:
    return "-" in electrode_name(channel)


def _electrodes(reference: str) -> list[str]:
    return [electrode_pair(name)[0] for name in reference.split(",")]


def _names_of(reference: str) -> set[str]:
    """Return what a channel with this reference has after its dash, such as M2 in C3-M2."""
    if reference == AVERAGE:
        return {"AVG"}
    electrodes = _electrodes(reference)
    if sorted(electrodes) == ["M1", "M2"]:
        return {"LE"}  # linked ears
    return set(electrodes) if len(electrodes) == 1 else set()
