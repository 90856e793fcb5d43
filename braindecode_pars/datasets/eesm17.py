"""Sleep stages from electrodes in the ears: Ear-EEG Sleep Monitoring 2017 (OpenNeuro ds004348)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
import mne_bids
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars.recordings.cutting import event_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus
from braindecode_pars.recordings.preparation import (
    SFREQ,
    SLEEP_STAGES,
    filter_and_resample,
    pick_electrodes,
)

__all__ = ["CARD", "CHANNELS", "load", "recordings"]

#: Left ear, then right. ELB1 and ERB1 are in the files too, but the authors did not use them.
CHANNELS = tuple(f"E{side}{place}" for side in "LR" for place in "ABEGIK")

#: What the corpus is, and what :func:`load` makes of it.
CARD: dict[str, Any] = dict(
    name="EESM17",
    version="1.0.5",
    licence="CC0",
    address="https://openneuro.org/datasets/ds004348/versions/1.0.5",
    subjects=9,
    channels=len(CHANNELS),
    sfreq=SFREQ,
    classes=SLEEP_STAGES,
    reference="Mikkelsen et al. 2017, BioMedical Engineering OnLine 16:111",
)

WINDOW_SECONDS = 30.0
_TASK = "sleep"

#: What the scoring calls the stages. 7 (artefact), 8 (unknown) and whatever else are dropped.
_CODES = {"1": "W", "2": "R", "3": "N1", "4": "N2", "5": "N3"}
_NAMES = {"WAKE": "W", "AWAKE": "W", "REM": "R", **{stage: stage for stage in SLEEP_STAGES}}


def recordings(path: str | Path) -> list[Recording]:
    """Find the nights (task "sleep") of a BIDS folder, without opening them.

    Parameters
    ----------
    path : path
        The folder that holds ``sub-001`` to ``sub-009``.

    Returns
    -------
    list of Recording
        Descriptions hold ``subject`` ("001" to "009") and ``session`` ("001"). There is no split:
        with nine subjects, one is left out at a time.

    Raises
    ------
    FileNotFoundError
        When there is none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = Path(folder, "sub-001", "ses-001", "eeg")
    ...     files.mkdir(parents=True)
    ...     Path(files, "sub-001_ses-001_task-sleep_eeg.set").touch()
    ...     [recording] = datasets.eesm17.recordings(folder)
    >>> recording.description
    {'subject': '001', 'session': '001'}
    """
    folder = Path(path).expanduser()
    found = [] if not folder.is_dir() else _nights(folder)
    if not found:
        example = f"sub-001/ses-001/eeg/sub-001_ses-001_task-{_TASK}_eeg.set"
        raise FileNotFoundError(
            f"{path} holds no night of EESM17; expected files such as {folder / example}."
        )
    return [
        Recording(night.fpath, dict(subject=night.subject, session=night.session))
        for night in found
    ]


def _nights(folder: Path) -> list[mne_bids.BIDSPath]:
    return mne_bids.find_matching_paths(
        folder, tasks=_TASK, suffixes="eeg", extensions=".set", datatypes="eeg"
    )


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read 30-second windows of 12 ear channels at 200 Hz, 0.3 to 75 Hz, without 50 Hz.

    One window for each that was scored. The scoring is the file ``..._acq-scoring_events.tsv``
    beside the recording: column ``staging`` with 1 for W, 2 for R, 3, 4, 5 for N1, N2, N3, and 7
    and 8 for artefact and unknown, which are dropped; names of stages are understood too. It begins
    when the lights go out; whether its times count from there or from the beginning of the
    recording is seen from the event "Lights Off" in the recording's own events.

    Parameters
    ----------
    path : path
        The BIDS folder.
    subjects : iterable of str | None
        Among "001" to "009"; None means all that are there.
    n_jobs, cache, on_error, verbose
        See :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Volts. Targets are the places in ``CARD["classes"]``; descriptions hold ``subject`` and
        ``session``. The column ``missing`` of the metadata is the share of a window's samples that
        are NaN in the file, as where an electrode had no contact: such gaps are bridged by a
        straight line, and a channel without any sample is zero.

    Raises
    ------
    FileNotFoundError
        When the folder or a subject has no recording.
    ValueError
        When a recording is damaged, lacks a channel or its scoring, naming it.

    Notes
    -----
    Files are read with :func:`mne_bids.read_raw_bids`. So does
    :class:`braindecode.datasets.BIDSDataset`, but it opens all of them in its constructor, and
    knows nothing of a scoring that is a file of its own.

    Windows and filters are those of appendix A.3. Names of channels and codes of stages are those
    that public readers of the corpus use; the paper counts 7,390 windows. It fine-tunes with
    Gaussian noise on random channels: :class:`~braindecode_pars.augmentation.ChannelNoise`.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.eesm17.CARD["classes"]
    ('W', 'N1', 'N2', 'N3', 'R')
    >>> windows = datasets.eesm17.load("ds004348", ["001", "002"])  # doctest: +SKIP
    """
    return read_corpus(
        choose_subjects(recordings(path), subjects, path),
        _read,
        dict(corpus=CARD["name"], version=CARD["version"]),
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )


def _read(recording: Recording) -> EEGWindowsDataset | None:
    scoring = _scoring(recording.file)
    raw = _read_signals(recording.file)
    pick_electrodes(raw, CHANNELS, str)
    missing, native = _bridge_gaps(raw), raw.info["sfreq"]
    raw.set_annotations(scoring, verbose="error")
    filter_and_resample(raw, mains=50.0)
    targets = {stage: target for target, stage in enumerate(SLEEP_STAGES)}
    windows = event_windows(raw, targets, WINDOW_SECONDS)
    if windows is not None:
        starts = windows.metadata["i_start_in_trial"].to_numpy() / SFREQ
        windows.metadata["missing"] = _share(missing, native, starts)
    return windows


def _read_signals(file: Path) -> mne.io.BaseRaw:
    try:
        with warnings.catch_warnings():
            # Of types of channels that BIDS does not know, and the like; none is of ours.
            warnings.simplefilter("ignore")
            raw = mne_bids.read_raw_bids(
                mne_bids.get_bids_path_from_fname(file, verbose="error"),
                on_ch_mismatch="reorder",
                verbose="error",
            )
            return raw.load_data(verbose="error")
    except Exception as error:
        raise ValueError(
            f"it is damaged or truncated ({error}); remove it and fetch it again."
        ) from error


def _bridge_gaps(raw: mne.io.BaseRaw) -> np.ndarray:
    """Replace NaN by straight lines, in place; which share of channels it was, shape (n_times,)."""
    gaps = np.isnan(raw.get_data())
    if gaps.any():
        raw.apply_function(_bridge, picks="all", verbose="error")
    return gaps.mean(axis=0)


def _bridge(signal: np.ndarray) -> np.ndarray:
    gap = np.isnan(signal)
    if gap.all():
        return np.zeros_like(signal)
    times = np.arange(len(signal))
    return np.interp(times, times[~gap], signal[~gap])


def _share(missing: np.ndarray, sfreq: float, starts: np.ndarray) -> np.ndarray:
    """Mean over windows that begin at ``starts`` (seconds), shape (n_windows,)."""
    total = np.concatenate([[0.0], np.cumsum(missing)])
    first = np.round(starts * sfreq).astype(int)
    last = np.minimum(first + round(WINDOW_SECONDS * sfreq), len(missing))
    return (total[last] - total[first]) / (last - first)


def _scoring(file: Path) -> mne.Annotations:
    """The stages of a night, in seconds from the beginning of the recording."""
    stem = file.name.removesuffix("_eeg.set")
    own = file.with_name(f"{stem}_events.tsv")
    scored = file.with_name(f"{stem}_acq-scoring_events.tsv")
    source = scored if scored.is_file() else own
    if not source.is_file():
        raise ValueError(f"it has no scoring: neither {scored.name} nor {own.name} is beside it.")
    table = pd.read_csv(source, sep="\t", dtype=str, keep_default_na=False)
    column = next((c for c in table if c.lower().startswith(("staging", "scoring"))), "trial_type")
    if not {"onset", column} <= set(table):
        raise ValueError(
            f"{source.name} has the columns {', '.join(table)}; onset and staging are needed."
        )
    stages = [_stage(value) for value in table[column]]
    if not any(stages):
        shown = ", ".join(sorted(set(table[column]))[:10]) or "nothing"
        raise ValueError(
            f"it has no scoring: {source.name} says {shown}, of which no entry is a stage "
            f"({', '.join(_CODES)} or {', '.join(_NAMES)})."
        )
    onsets = table["onset"].astype(float).to_numpy()
    if source == scored:
        onsets = _from_the_beginning(onsets, _lights_off(own))
    return mne.Annotations(onsets, _durations(table), [stage or "none" for stage in stages])


def _durations(table: pd.DataFrame) -> np.ndarray:
    """One window each, or several where the table says so; zero and n/a are no lengths."""
    if "duration" not in table:
        return np.full(len(table), WINDOW_SECONDS)
    seconds = pd.to_numeric(table["duration"], errors="coerce").fillna(0.0)
    return np.maximum(seconds.to_numpy(), WINDOW_SECONDS)


def _stage(value: str) -> str | None:
    value = value.strip().upper().removesuffix(".0")
    return _CODES.get(value) or _NAMES.get(value)


def _lights_off(events: Path) -> float:
    if not events.is_file():
        return 0.0
    table = pd.read_csv(events, sep="\t", dtype=str, keep_default_na=False)
    if not {"onset", "trial_type"} <= set(table):
        return 0.0
    of_lights = table["onset"][table["trial_type"].str.strip().str.lower() == "lights off"]
    return float(of_lights.iloc[0]) if len(of_lights) else 0.0


def _from_the_beginning(onsets: np.ndarray, lights_off: float) -> np.ndarray:
    """Onsets in the recording's time; the first is at lights out, so it shows where they count."""
    counts_from_lights_off = abs(onsets[0]) < abs(onsets[0] - lights_off)
    return onsets + lights_off if counts_from_lights_off else onsets
