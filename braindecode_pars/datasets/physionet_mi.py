"""Motor imagery from the PhysioNet EEG Motor Movement/Imagery Dataset (eegmmidb 1.0.0)."""

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

#: What the corpus is, and what :func:`load` makes of it.
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

#: What T1 and T2 mean in each run of imagined movements; T0 is rest.
TARGETS = {
    **{run: {"T1": 0, "T2": 1} for run in (4, 8, 12)},
    **{run: {"T1": 2, "T2": 3} for run in (6, 10, 14)},
}
RUNS = tuple(sorted(TARGETS))
TRIAL_SECONDS = 4.0
_TREE = Path("MNE-eegbci-data", "files", "eegmmidb", "1.0.0")


def recordings(path: str | Path, *, runs: Iterable[int] = RUNS) -> list[Recording]:
    """The runs that lie under a folder, in the layout of ``mne.datasets.eegbci``.

    Parameters
    ----------
    path : path
        The folder that contains ``MNE-eegbci-data``.
    runs : iterable of int
        Among 4, 8, 12 (left or right fist) and 6, 10, 14 (both fists or both feet).

    Returns
    -------
    list of Recording
        Descriptions hold ``subject`` (1 to 109), ``run``, and ``split`` (subjects 1-70 train,
        71-89 valid, 90-109 test, as in appendix A.3).

    Raises
    ------
    ValueError
        When a run is not one of imagined movements.
    FileNotFoundError
        When ``path`` does not hold the layout, or no such run at all.

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
        raise ValueError(f"runs must be among {RUNS}, imagined movements; got {runs}.")
    there = [
        Recording(file, dict(subject=subject, run=run, split=_split(subject)))
        for subject in range(1, CARD["subjects"] + 1)
        for run in runs
        if (file := _file(path, subject, run)).is_file()
    ]
    if not there:
        raise FileNotFoundError(
            f"{path} holds no run {', '.join(map(str, runs))} of eegmmidb; expected files such as "
            f"{_file(path, 1, runs[0])}."
        )
    return there


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
    """Read imagined movements: high-pass 0.3 Hz, 60 Hz notch, average reference, 200 Hz.

    Only files that are there are read, with MNE; nothing is ever downloaded, as
    ``mne.datasets.eegbci.load_data`` would. Most recordings were made at 160 Hz, those of
    subjects 88, 92 and 100 at 128 Hz.

    Parameters
    ----------
    path : path
        The folder that contains ``MNE-eegbci-data``, as MNE lays it out.
    subjects : iterable of int | None
        Between 1 and 109; None means all that are there.
    part : "trials" | "pretraining"
        4-second windows from the cue of each imagined movement, with its class as target; or
        30-second windows of the whole runs with target -1, to pretrain on.
    runs : iterable of int
        Among 4, 8, 12 (left or right fist) and 6, 10, 14 (both fists or both feet). What is
        absent is counted and left out.
    picks : list of str | None
        Channels to keep, by the names of MNE's montage; None keeps all 64. They are picked after
        the average over all 64 is subtracted.
    sfreq : float
        Sampling rate in Hz.
    stride_seconds : float
        From one window to the next, for pretraining.
    n_jobs, cache, on_error, verbose
        See :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Volts. Targets are the places in ``CARD["classes"]``; descriptions hold ``subject``,
        ``run`` and ``split``.

    Raises
    ------
    FileNotFoundError
        When a subject that was asked for has none of the runs.
    ValueError
        When a file is damaged or truncated, or an argument is not one of those above.

    Notes
    -----
    Preparation, trials and splits are those of appendix A.3; the pretraining windows are not the
    paper's, which pretrains on other corpora.

    Trials begin at the cue, which stands on the left or on the right of the screen in runs 4, 8
    and 12. Slow voltages of the first second, most likely of the eyes, tell these two classes
    apart; a score above chance need not be imagery.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.physionet_mi.CARD["classes"]
    ('left fist', 'right fist', 'both fists', 'both feet')
    >>> windows = datasets.physionet_mi.load("~/mne_data", subjects=[1, 2])  # doctest: +SKIP
    """
    if part not in ("trials", "pretraining"):
        raise ValueError(f"part must be 'trials' or 'pretraining', got {part!r}.")
    check_positive(sfreq=sfreq, stride_seconds=stride_seconds)
    runs = _numbers(runs)
    there = choose_subjects(recordings(path, runs=runs), subjects, path)
    if verbose:
        _tell_absent(there, runs)
    arguments = dict(part=part, picks=picks, sfreq=sfreq, stride_seconds=stride_seconds)
    return read_corpus(
        there,
        partial(_read, **arguments),
        dict(corpus=CARD["name"], version=CARD["version"], **arguments),
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )


def _numbers(runs: Iterable[int]) -> tuple[int, ...]:
    if isinstance(runs, Integral):
        raise TypeError(f"runs is the number {runs}; give a list of runs.")
    return tuple(runs)


def _file(path: str | Path, subject: int, run: int) -> Path:
    return Path(path).expanduser() / _TREE / f"S{subject:03d}" / f"S{subject:03d}R{run:02d}.edf"


def _split(subject: int) -> str:
    if subject <= 70:
        return "train"
    return "valid" if subject <= 89 else "test"


def _tell_absent(there: list[Recording], runs: tuple[int, ...]) -> None:
    wanted = {(r.subject, run) for r in there for run in runs}
    absent = sorted(wanted - {(r.subject, r.description["run"]) for r in there})
    if absent:
        shown = ", ".join(f"S{subject:03d}R{run:02d}" for subject, run in absent[:6])
        more = ", ..." if len(absent) > 6 else ""
        log.info("%d runs are not there and left out: %s%s.", len(absent), shown, more)


def _read(
    recording: Recording, *, part: str, picks: list[str] | None, sfreq: float, stride_seconds: float
) -> EEGWindowsDataset | None:
    raw = read_edf(recording.file)
    mne.datasets.eegbci.standardize(raw)
    raw.set_montage(template_montage(), verbose="error")
    filter_and_resample(raw, sfreq=sfreq, high=None, mains=60.0)
    raw.set_eeg_reference("average", verbose="error")
    if picks is not None:
        raw.pick(picks, verbose="error")
    if part == "pretraining":
        return fixed_windows(raw, stride_seconds=stride_seconds)
    return event_windows(raw, TARGETS[recording.description["run"]], TRIAL_SECONDS)
