"""PhysioNet-MI: motor imagery (EEG Motor Movement/Imagery Dataset, eegmmidb 1.0.0)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import mne
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._parameters import check_positive
from braindecode_pars.electrodes import template_montage
from braindecode_pars.recordings.cutting import event_windows, fixed_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus
from braindecode_pars.recordings.preparation import SFREQ, filter_and_resample
from braindecode_pars.recordings.readers import read_edf

__all__ = ["CARD", "load", "recordings"]

log = logging.getLogger(__name__)

#: Description of the corpus and of the windows that :func:`load` returns.
CARD: dict[str, Any] = dict(
    name="PhysioNet-MI",
    version="1.0.0",
    licence="ODC-BY-1.0",
    address="https://physionet.org/content/eegmmidb/1.0.0/",
    subjects=109,
    channels=64,
    sfreq=SFREQ,
    classes=("left fist", "right fist", "both fists", "both feet"),
    reference="Schalk et al. 2004, IEEE TBME 51(6); Goldberger et al. 2000, Circulation 101(23)",
)

#: Classes of the events T1 and T2 in each motor imagery run. T0 is rest.
TARGETS = {
    **{run: {"T1": 0, "T2": 1} for run in (4, 8, 12)},
    **{run: {"T1": 2, "T2": 3} for run in (6, 10, 14)},
}
RUNS = tuple(sorted(TARGETS))
TRIAL_SECONDS = 4.0
_TREE = Path("MNE-eegbci-data", "files", "eegmmidb", "1.0.0")


def recordings(path: str | Path, *, runs: Iterable[int] = RUNS) -> list[Recording]:
    """Return the motor imagery runs in a folder, without opening the files.

    The folder has the layout of ``mne.datasets.eegbci``.

    Parameters
    ----------
    path : path
        Folder that contains ``MNE-eegbci-data``.
    runs : iterable of int
        Runs to find, among 4, 8, 12 (left or right fist) and 6, 10, 14 (both fists or both feet).

    Returns
    -------
    list of Recording
        The description of a recording has ``subject`` (1 to 109), ``run`` and ``split``. As in
        appendix A.3, subjects 1-70 are "train", 71-89 "valid" and 90-109 "test".

    Raises
    ------
    ValueError
        When a run is not a motor imagery run.
    FileNotFoundError
        When ``path`` does not have the expected layout, or contains none of the runs.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = Path(folder, "MNE-eegbci-data", "files", "eegmmidb", "1.0.0", "S071")
    ...     files.mkdir(parents=True)
    ...     Path(files, "S071R04.edf").touch()
    ...     [recording] = datasets.physionet_mi.recordings(folder)
    >>> recording.description
    {'subject': 71, 'run': 4, 'split': 'valid'}
    """
    runs = _numbers(runs)
    if not runs or not set(runs) <= set(RUNS):
        raise ValueError(f"runs must be among {RUNS}, the motor imagery runs; got {runs}.")
    found = [
        Recording(file, dict(subject=subject, run=run, split=_split(subject)))
        for subject in range(1, CARD["subjects"] + 1)
        for run in runs
        if (file := _file(path, subject, run)).exists() or file.is_symlink()
    ]
    if not found:
        raise FileNotFoundError(
            f"{path} contains none of the runs {', '.join(map(str, runs))} of eegmmidb; expected "
            f"files such as {_file(path, 1, runs[0])}."
        )
    return found


def load(
    path: str | Path,
    subjects: Iterable[int] | None = None,
    *,
    part: str = "trials",
    runs: Iterable[int] = RUNS,
    picks: list[str] | None = None,
    sfreq: float = SFREQ,
    stride_seconds: float = 30.0,
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Return motor imagery windows: high-pass 0.3 Hz, notch 60 Hz, average reference, 200 Hz.

    The files must exist already: unlike ``mne.datasets.eegbci.load_data``, this function never
    downloads anything. The sampling rate of the files is 160 Hz, except for subjects 88, 92 and
    100 (128 Hz).

    Parameters
    ----------
    path : path
        Folder that contains ``MNE-eegbci-data``, in MNE's layout.
    subjects : iterable of int | None
        Subjects to read, from 1 to 109. None reads every subject in the folder.
    part : "trials" | "pretraining"
        Kind of windows. "trials" gives 4-second windows that start at the cue of an imagined
        movement, with its class as target. "pretraining" gives 30-second windows of whole runs,
        with target -1.
    runs : iterable of int
        Runs to read, among 4, 8, 12 (left or right fist) and 6, 10, 14 (both fists or both feet).
        Missing runs are skipped, and their number is logged.
    picks : list of str | None
        Channels to keep, named as in MNE's montage. None keeps all 64. The average reference is
        computed over all 64 channels before channels are picked.
    sfreq : float
        Sampling rate in Hz.
    stride_seconds : float
        Time in seconds between the starts of two pretraining windows.
    n_jobs, cache, on_error, verbose
        As in :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Signals in volts. A target is an index into ``CARD["classes"]``. Descriptions have
        ``subject``, ``run`` and ``split``.

    Raises
    ------
    FileNotFoundError
        When the folder contains none of the runs, or none of the runs of a requested subject.
    ValueError
        When a file is damaged or truncated, or an argument is invalid.

    Notes
    -----
    Preprocessing, trials and splits follow appendix A.3. The pretraining windows do not: the paper
    pretrains on other corpora.

    A trial starts at the cue. In runs 4, 8 and 12 the cue appears on the left or on the right of
    the screen. Slow potentials in the first second, most likely eye movements, separate these two
    classes. A score above chance level alone is therefore not evidence of motor imagery.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.physionet_mi.CARD["classes"]
    ('left fist', 'right fist', 'both fists', 'both feet')
    >>> windows = datasets.physionet_mi.load("~/mne_data", subjects=[1, 2])  # doctest: +SKIP
    """
    # Check the arguments.
    if part not in ("trials", "pretraining"):
        raise ValueError(f"part must be 'trials' or 'pretraining', got {part!r}.")
    check_positive(sfreq=sfreq, stride_seconds=stride_seconds)
    runs = _numbers(runs)

    # Find the recordings, then read their windows.
    chosen = choose_subjects(recordings(path, runs=runs), subjects, path)
    if verbose:
        _log_missing_runs(chosen, runs)
    arguments = dict(part=part, picks=picks, sfreq=sfreq, stride_seconds=stride_seconds)
    return read_corpus(
        chosen,
        partial(_read, **arguments),
        dict(corpus=CARD["name"], version=CARD["version"], **arguments),
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )


def _numbers(runs: Iterable[int]) -> tuple[int, ...]:
    if isinstance(runs, Integral):
        raise TypeError(f"runs is the number {runs}; pass a list of runs, such as [{runs}].")
    return tuple(runs)


def _file(path: str | Path, subject: int, run: int) -> Path:
    return Path(path).expanduser() / _TREE / f"S{subject:03d}" / f"S{subject:03d}R{run:02d}.edf"


def _split(subject: int) -> str:
    if subject <= 70:
        return "train"
    return "valid" if subject <= 89 else "test"


def _log_missing_runs(found: list[Recording], runs: tuple[int, ...]) -> None:
    requested = {(r.subject, run) for r in found for run in runs}
    missing = sorted(requested - {(r.subject, r.description["run"]) for r in found})
    if missing:
        shown = ", ".join(f"S{subject:03d}R{run:02d}" for subject, run in missing[:6])
        more = ", ..." if len(missing) > 6 else ""
        log.info("Skipped %d missing runs: %s%s.", len(missing), shown, more)


def _read(
    recording: Recording, *, part: str, picks: list[str] | None, sfreq: float, stride_seconds: float
) -> EEGWindowsDataset | None:
    raw = read_edf(recording.file)
    # The files name their channels "Fc5." and so on; the montage has "FC5".
    mne.datasets.eegbci.standardize(raw)
    raw.set_montage(template_montage(), verbose="error")
    filter_and_resample(raw, sfreq=sfreq, high=None, mains=60.0)
    # The reference is the average of all 64 channels, whichever of them are picked afterwards.
    raw.set_eeg_reference("average", verbose="error")
    if picks is not None:
        raw.pick(picks, verbose="error")
    if part == "pretraining":
        return fixed_windows(raw, stride_seconds=stride_seconds)
    return event_windows(raw, TARGETS[recording.description["run"]], TRIAL_SECONDS)
