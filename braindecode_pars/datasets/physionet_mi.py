"""Motor imagery from the PhysioNet EEG Motor Movement/Imagery Dataset (eegmmidb 1.0.0)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import create_windows_from_events

from braindecode_pars.electrodes import template_montage

__all__ = ["CARD", "load", "local_subjects", "recordings", "trials"]

CARD: dict[str, Any] = dict(
    name="PhysioNet-MI",
    version="1.0.0",
    licence="ODC-BY-1.0",
    address="https://physionet.org/content/eegmmidb/1.0.0/",
    subjects=109,
    channels=64,
    sfreq=160.0,
    classes=("left fist", "right fist"),
    reference="Schalk et al. 2004, IEEE TBME 51(6); Goldberger et al. 2000, Circulation 101(23)",
)

#: Runs of imagined left (T1) or right (T2) fist.
RUNS = (4, 8, 12)
TRIAL_SECONDS = 4.0
_TREE = Path("MNE-eegbci-data", "files", "eegmmidb", "1.0.0")


def _file(path: str | Path, subject: int, run: int) -> Path:
    return Path(path).expanduser() / _TREE / f"S{subject:03d}" / f"S{subject:03d}R{run:02d}.edf"


def local_subjects(path: str | Path, runs: Iterable[int] = RUNS) -> list[int]:
    """Subjects of whom at least one of the runs lies under ``path``, in MNE's eegbci layout.

    Raises
    ------
    FileNotFoundError
        When ``path`` does not hold the layout, or no run at all.
    """
    runs = tuple(runs)
    found = [s for s in range(1, 110) if any(_file(path, s, run).is_file() for run in runs)]
    if not found:
        raise FileNotFoundError(
            f"{path} holds no run {', '.join(map(str, runs))} of eegmmidb; expected files such as "
            f"{_file(path, 1, runs[0])}."
        )
    return found


def recordings(
    path: str | Path,
    subjects: Iterable[int] | None = None,
    *,
    runs: Iterable[int] = RUNS,
    sfreq: float = 160.0,
    picks: list[str] | None = None,
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read continuous recordings: high-pass 0.3 Hz, 60 Hz notch, average reference.

    Only files that are there are read; nothing is ever downloaded.

    Parameters
    ----------
    path : path
        The folder that contains ``MNE-eegbci-data``, as MNE lays it out.
    subjects : iterable of int | None
        Between 1 and 109; None means all that are there.
    runs : iterable of int
        Among 4, 8 and 12.
    sfreq : float
        In Hz. Recordings with another rate (S088, S092 and S100 are at 128 Hz) are resampled.
    picks : list of str | None
        Channels to keep, by the names of MNE's montage; None keeps all 64. They are picked after
        the average over all 64 is subtracted.
    verbose : int
        1 says what was resampled or is absent.

    Returns
    -------
    BaseConcatDataset of RawDataset
        Volts; descriptions hold ``subject`` and ``run``.

    Raises
    ------
    FileNotFoundError
        When a subject that was asked for has none of the runs.
    ValueError
        When a file is damaged or truncated, or a run is not 4, 8 or 12.
    """
    runs = tuple(runs)
    if not runs or not set(runs) <= set(RUNS):
        raise ValueError(f"runs must be among {RUNS}, imagined left and right fist; got {runs}.")
    there = local_subjects(path, runs)
    subjects = there if subjects is None else list(subjects)
    absent = [subject for subject in subjects if subject not in there]
    if absent:
        raise FileNotFoundError(
            f"{path} holds no run of subject{'s' if len(absent) > 1 else ''} "
            f"{', '.join(map(str, absent))}; it has {', '.join(map(str, there))}."
        )
    found, resampled, missing = [], [], []
    for subject in subjects:
        for run in runs:
            if not _file(path, subject, run).is_file():
                missing.append(f"S{subject:03d}R{run:02d}")
                continue
            raw = _read(path, subject, run)
            if raw.info["sfreq"] != sfreq:
                resampled.append(f"S{subject:03d}R{run:02d} ({raw.info['sfreq']:g} Hz)")
            found.append(RawDataset(_prepare(raw, sfreq, picks), dict(subject=subject, run=run)))
    if verbose and resampled:
        print(f"Resampled to {sfreq:g} Hz: {', '.join(resampled)}.")
    if verbose and missing:
        print(f"Not there, so left out: {', '.join(missing)}.")
    return BaseConcatDataset(found)


def trials(recordings: BaseConcatDataset) -> BaseConcatDataset:
    """Cut recordings into imagined movements, 4-second windows from the cue.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Target 0 is the left fist, 1 the right one; descriptions hold ``subject`` and ``run``.
    """
    length = round(TRIAL_SECONDS * recordings.datasets[0].raw.info["sfreq"])
    return create_windows_from_events(
        recordings,
        window_size_samples=length,
        window_stride_samples=length,
        on_last_window="drop",  # trials last 4.1 s: one window each
        mapping={"T1": 0, "T2": 1},
        verbose="error",
    )


def load(
    path: str | Path,
    subjects: Iterable[int] | None = None,
    *,
    runs: Iterable[int] = RUNS,
    sfreq: float = 160.0,
    picks: list[str] | None = None,
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read imagined left and right fist movements: :func:`trials` of :func:`recordings`.

    Arguments and errors are those of :func:`recordings`, the result that of :func:`trials`.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> windows = datasets.physionet_mi.load("~/mne_data", subjects=[1, 2])  # doctest: +SKIP
    """
    return trials(recordings(path, subjects, runs=runs, sfreq=sfreq, picks=picks, verbose=verbose))


def _read(path: str | Path, subject: int, run: int) -> mne.io.BaseRaw:
    # Files that are there are never fetched, and only such are asked for.
    (file,) = mne.datasets.eegbci.load_data(
        subject, run, path=str(Path(path).expanduser()), update_path=False, verbose="error"
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "Number of records from the header")
            raw = mne.io.read_raw_edf(file, preload=True, verbose="warning")
    except Exception as error:
        raise ValueError(
            f"{file} is damaged or truncated ({error}); remove it and fetch it again."
        ) from error
    mne.datasets.eegbci.standardize(raw)
    return raw


def _prepare(raw: mne.io.BaseRaw, sfreq: float, picks: list[str] | None) -> mne.io.BaseRaw:
    raw.set_montage(template_montage(), verbose="error")
    raw.filter(0.3, None, verbose="error")
    raw.notch_filter(60.0, verbose="error")
    raw.set_eeg_reference("average", verbose="error")
    if raw.info["sfreq"] != sfreq:
        raw.resample(sfreq, verbose="error")
    if picks is not None:
        raw.pick(picks, verbose="error")
    return raw
