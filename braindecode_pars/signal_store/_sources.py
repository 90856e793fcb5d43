"""Recordings before they are stored: of a dataset, or files of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

import mne
import numpy as np
from braindecode.datasets import EEGWindowsDataset, RawDataset, WindowsDataset
from torch.utils.data import ConcatDataset

from braindecode_pars._parameters import check_positive
from braindecode_pars.recordings.preparation import filter_and_resample
from braindecode_pars.recordings.readers import read_recording
from braindecode_pars.storage._json import plain

__all__ = ["Preparation", "Source", "find_sources"]

ACCEPTED = (
    "a BaseConcatDataset of continuous recordings or of windows that are cut from such, or a "
    "folder of .edf, .bdf, .fif or WFDB (.hea) recordings"
)

_BIDS_SUBJECT = re.compile(r"(?:^|[/_])sub-([A-Za-z0-9]+)")


@dataclass(frozen=True)
class Preparation:
    """What is done to every recording of a store before it is stored.

    Attributes
    ----------
    sfreq : float | None
        Sampling rate to bring it to, in Hz; None keeps its own.
    low, high : float | None
        Edges of the band-pass in Hz.
    mains : float | None
        Frequency of the notch in Hz.
    channels : list of str | None
        EEG channels to keep where they are there; None keeps all.
    """

    sfreq: float | None = None
    low: float | None = None
    high: float | None = None
    mains: float | None = None
    channels: list[str] | None = None

    def __post_init__(self) -> None:
        rates = dict(sfreq=self.sfreq, low=self.low, high=self.high, mains=self.mains)
        check_positive(**{name: rate for name, rate in rates.items() if rate is not None})
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(
                f"low={self.low:g} Hz and high={self.high:g} Hz leave nothing between them; a "
                "band-pass has its lower edge below its upper one."
            )

    def apply(self, raw: mne.io.BaseRaw) -> tuple[np.ndarray, list[str], float]:
        """Signals of the EEG channels in volts, (n_chans, n_times); their names; the rate in Hz.

        The recording itself stays as it is. Channels that are marked as bad are left out, as
        MNE does.

        Raises
        ------
        ValueError
            When there is no such channel or no sample.
        """
        names = [raw.ch_names[i] for i in mne.pick_types(raw.info, eeg=True)]
        if self.channels is not None:
            names = [name for name in names if name in self.channels]
        if not names:
            wanted = "" if self.channels is None else f" among {', '.join(self.channels)}"
            shown = ", ".join(raw.ch_names[:10]) + (", ..." if len(raw.ch_names) > 10 else "")
            raise ValueError(f"it has no EEG channel{wanted}, only {shown}.")
        signals = raw.get_data(names, verbose="error")
        sfreq = float(raw.info["sfreq"])
        treated = (self.low, self.high, self.mains) != (None, None, None)
        if (treated or self.sfreq not in (None, sfreq)) and np.isfinite(signals).all():
            picked = mne.pick_info(raw.info, mne.pick_channels(raw.ch_names, names, ordered=True))
            raw = mne.io.RawArray(signals, picked, verbose="error")
            sfreq = self.sfreq or sfreq
            filter_and_resample(raw, sfreq=sfreq, low=self.low, high=self.high, mains=self.mains)
            signals = raw.get_data()
        if signals.shape[1] == 0:
            raise ValueError("it has no samples.")
        return signals, names, sfreq


@dataclass(frozen=True)
class Source:
    """A recording that is to be stored.

    Attributes
    ----------
    name : str
    description : dict
        Plain values.
    state : dict
        What tells whether it has changed since it was stored.
    origin : Path | mne.io.BaseRaw
    """

    name: str
    description: Mapping[str, Any]
    state: Mapping[str, Any]
    origin: Path | mne.io.BaseRaw

    @property
    def told(self) -> str:
        """What a message calls it."""
        if isinstance(self.origin, Path):
            return str(self.origin)
        subject = self.description.get("subject")
        return self.name if subject is None else f"{self.name} (subject {subject})"

    def open(self) -> mne.io.BaseRaw:
        """The recording.

        Raises
        ------
        ValueError
            When the file is damaged.
        """
        return read_recording(self.origin) if isinstance(self.origin, Path) else self.origin


def find_sources(
    recordings: Any, subject: Callable[[Path], Any] | None, n_before: int = 0
) -> list[Source]:
    """List the recordings that a user gave, without reading them.

    Parameters
    ----------
    recordings : BaseConcatDataset | RawDataset | EEGWindowsDataset | path
    subject : callable | None
        From the path of a file below the folder to its subject. None takes the label of BIDS
        (``sub-``), else the first folder, else the name of the file.
    n_before : int
        Recordings that have been numbered already; those of a dataset have no other name.

    Raises
    ------
    TypeError
        When that is something else, or windows without their recording.
    FileNotFoundError
        When the folder does not exist or holds no recording.
    """
    if isinstance(recordings, (str, Path)):
        return _files_of(Path(recordings).expanduser(), subject or _subject_of)
    if subject is not None:
        raise TypeError(
            "subject= is for a folder of files; a dataset has 'subject' in its descriptions."
        )
    return [
        _of_dataset(dataset, f"recording-{number}")
        for number, dataset in enumerate(_leaves(recordings), n_before)
    ]


def _leaves(dataset: Any) -> list[Any]:
    if isinstance(dataset, ConcatDataset):
        return [leaf for part in dataset.datasets for leaf in _leaves(part)]
    if isinstance(dataset, WindowsDataset):
        raise TypeError(
            "The windows of an mne.Epochs are cut out of their recording, and a store holds whole "
            "recordings; give the continuous recordings, or cut windows with "
            "use_mne_epochs=False."
        )
    if isinstance(dataset, (RawDataset, EEGWindowsDataset)):
        return [dataset]
    raise TypeError(f"recordings holds a {type(dataset).__name__}; it must be {ACCEPTED}.")


def _of_dataset(dataset: Any, name: str) -> Source:
    raw = dataset.raw
    described = {} if dataset.description is None else dataset.description.to_dict()
    return Source(
        name,
        {str(key): plain(value) for key, value in described.items()},
        dict(n_times=int(raw.n_times), n_chans=len(raw.ch_names), sfreq=float(raw.info["sfreq"])),
        raw,
    )


def _files_of(root: Path, subject: Callable[[Path], Any]) -> list[Source]:
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is no folder; recordings must be {ACCEPTED}.")
    sources = []
    for file in sorted(root.rglob("*")):
        if _is_recording(file):
            below = file.relative_to(root)
            who = {"subject": plain(subject(below))}
            sources.append(Source(below.as_posix(), who, _state_of(file), file))
    if not sources:
        raise FileNotFoundError(f"{root} holds no .edf, .bdf, .fif or WFDB (.hea) recording.")
    return sources


def _is_recording(file: Path) -> bool:
    name = file.name.lower()
    if name.startswith(".") or _is_later_part(file):
        return False
    if name.endswith(".hea"):
        # One of several segments, whose own headers stand beside it.
        return "/" not in (file.read_text(errors="replace").split() or [""])[0]
    return name.endswith((".edf", ".bdf", ".fif", ".fif.gz")) and file.is_file()


def _is_later_part(file: Path) -> bool:
    """Whether a FIF file goes on with another beside it, which MNE reads with that one."""
    firsts = {
        re.sub(r"-[1-9]\d*(\.fif(\.gz)?)$", r"\1", file.name),
        re.sub(r"_split-(\d+)_", lambda part: f"_split-{1:0{len(part[1])}}_", file.name),
    }
    return any((file.parent / first).exists() for first in firsts - {file.name})


def _subject_of(below: Path) -> str:
    labelled = _BIDS_SUBJECT.search(below.as_posix())
    if labelled:
        return labelled[1]
    return below.parts[0] if len(below.parts) > 1 else below.name.split(".")[0]


def _state_of(file: Path) -> dict[str, int]:
    """Size and time of a file, or of a WFDB header and its signals."""
    files = list(file.parent.glob(f"{escape(file.stem)}.*")) if file.suffix == ".hea" else [file]
    states = [each.stat() for each in files]
    return dict(
        bytes=sum(state.st_size for state in states),
        mtime_ns=max(state.st_mtime_ns for state in states),
    )
