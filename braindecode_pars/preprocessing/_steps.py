"""Steps of preprocessing as braindecode and MNE record them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mne
import numpy as np

from braindecode_pars._channel_names import is_other_kind

__all__ = ["Step", "remember_steps", "remembered_steps"]

#: Our entry in ``info["temp"]``, where MNE keeps what others add; it is not written to files.
_ENTRY = "braindecode_pars_steps"

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
                name = record.get("fn") or _snake_case(record["__class_path__"])
            else:
                name, kwargs = record
            module, _, name = str(name).rpartition(".")
            return cls(name, dict(kwargs), not module)
        except (KeyError, TypeError, ValueError):  # written by another program
            return cls("", {}, False)

    @property
    def is_known(self) -> bool:
        """Whether it is known what the step does with the signals."""
        if not self.is_method:
            return self.factor is not None
        if self.name == "rescale":
            return self.factor is not None
        is_of_mne = hasattr(mne.io.BaseRaw, self.name) or hasattr(mne.BaseEpochs, self.name)
        return is_of_mne and self.name not in _OPAQUE

    @property
    def factor(self) -> float | None:
        """Factor by which the step multiplies EEG; None for an unknown one."""
        found = None
        if self.is_method and self.name == "rescale":
            found = self.kwargs.get("scalings")
            found = found.get("eeg") if isinstance(found, Mapping) else found
        elif self.name in _SCALING:
            found = self.kwargs.get("factor")
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        return float(found) if is_number and found > 0 else None

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
        are_others = all(isinstance(one, str) and is_other_kind(one) for one in dropped)
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


def _snake_case(class_path: str) -> str:
    """Return the name of the method behind a class of braindecode: ``SetEEGReference``."""
    name = class_path.rpartition(".")[2]
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return words.lower()


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
    >>> from braindecode_pars.preprocessing._steps import remember_steps, remembered_steps
    >>> raw = mne.io.RawArray(np.zeros((1, 9)), mne.create_info(["C3"], 1.0, "eeg"), verbose=False)
    >>> remember_steps(raw, [("notch_filter", {"freqs": [50.0]})])
    >>> remembered_steps(raw.info)
    [('notch_filter', {'freqs': [50.0]})]
    """
    new = [(name, dict(kwargs)) for name, kwargs in steps]
    raw.info["temp"] = {**_temporary(raw.info), _ENTRY: [*remembered_steps(raw.info), *new]}


def remembered_steps(info: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the steps that :func:`remember_steps` added, in the order of their application."""
    return [(name, dict(kwargs)) for name, kwargs in _temporary(info).get(_ENTRY, ())]


def _temporary(info: Mapping[str, Any]) -> dict[str, Any]:
    found = info.get("temp")
    return found if isinstance(found, dict) else {}
