"""EESM17: sleep stages and ear-EEG (Ear-EEG Sleep Monitoring 2017, OpenNeuro ds004348).

Each scored 30-second stretch gives one window. The scoring is the file
``..._acq-scoring_events.tsv`` next to the recording. Its column ``staging`` has 1 for W, 2 for
R, 3 for N1, 4 for N2 and 5 for N3. Stretches with 7 (artifact) or 8 (unknown) are dropped.
Names of stages, such as "N2", are accepted as well.

The scoring starts at lights off. Its onsets count either from lights off or from the start of
the recording. The first onset is compared with the event "Lights Off" in the recording's own
events to find out which.

Files are read with :func:`mne_bids.read_raw_bids`.
:class:`braindecode.datasets.BIDSDataset` uses this function too, but opens every file in its
constructor and cannot read a scoring from a separate file.

Windows and filters follow appendix A.3 of the paper, which counts 7,390 windows. Channel names
and stage codes follow the public readers of the corpus. The paper fine-tunes with Gaussian
noise on random channels: :class:`~braindecode_pars.estimators.ChannelNoise`.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
import mne_bids
import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars._common import sleep_stages
from braindecode_pars._common.checks import format_list
from braindecode_pars._common.sleep_stages import stage_of
from braindecode_pars.recordings import cutting, loading, preparation, readers, recipe, search

__all__ = ["CARD", "CHANNELS", "cut", "load", "prepare", "recordings"]

#: Channels of the left ear, then of the right ear. The files also contain ELB1 and ERB1, which
#: the authors of the corpus did not use.
CHANNELS = tuple(f"E{side}{place}" for side in "LR" for place in "ABEGIK")

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="EESM17",
    version="1.0.5",
    license="CC0",
    address="https://openneuro.org/datasets/ds004348/versions/1.0.5",
    subjects=9,
    channels=len(CHANNELS),
    sfreq=preparation.SFREQ,
    classes=sleep_stages.SLEEP_STAGES,
    reference="Mikkelsen et al. 2017, BioMedical Engineering OnLine 16:111",
)

WINDOW_SECONDS = 30.0
_NAME = re.compile(r"sub-([^_]+)_ses-([^_]+)_task-sleep_.*eeg\.set")

#: Codes of the stages in the scoring. Other entries, such as 7 (artifact) and 8 (unknown), are
#: dropped.
_CODES = {"1": "W", "2": "R", "3": "N1", "4": "N2", "5": "N3"}


def recordings(path: str | Path, subjects: Iterable[str] | None = None) -> list[loading.Recording]:
    """Return the nights (BIDS task "sleep") in a folder, without opening the files.

    Parameters
    ----------
    path : path
        BIDS folder with ``sub-001`` to ``sub-009``.
    subjects : iterable of str | None
        Subjects to return, from "001" to "009". None returns every subject in the folder.

    Returns
    -------
    list of Recording
        The description of a recording has ``subject`` ("001" to "009"), ``corpus`` and ``session``
        ("001"), but no ``split``: with nine subjects, evaluation is leave-one-subject-out.

    Raises
    ------
    FileNotFoundError
        When the folder contains no night.
    PermissionError
        When a folder may not be listed.

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
    {'subject': '001', 'corpus': 'eesm17', 'session': '001'}
    """
    nights = search.find_named(
        path, _NAME, "no night of EESM17", "sub-001_ses-001_task-sleep_eeg.set"
    )
    all_recordings = [
        loading.Recording(night, dict(subject=match[1], corpus="eesm17", session=match[2]))
        for night, match in nights
    ]
    return loading.choose_subjects(all_recordings, subjects, path)


def prepare(recording: loading.Recording) -> mne.io.BaseRaw:
    """Read a recording and prepare it: 12 channels, 200 Hz, band-pass 0.3-75 Hz, notch 50 Hz.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    Raw
        Preloaded recording in volts, channels in the order of :data:`CHANNELS`.
        Samples that are NaN in the file, for example because an electrode lost contact, are filled
        by linear interpolation. A channel that is NaN throughout becomes zero.

    Raises
    ------
    ValueError
        When the file is damaged, or lacks a channel.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.eesm17.recordings("ds004348")[0]  # doctest: +SKIP
    >>> raw = datasets.eesm17.prepare(first)  # doctest: +SKIP
    """
    # Warnings about channel types unknown to BIDS concern no ear channel.
    with readers.short_errors():
        raw = mne_bids.read_raw_bids(
            mne_bids.get_bids_path_from_fname(recording.file, verbose="error"),
            on_ch_mismatch="reorder",
            verbose="error",
        )
        raw.load_data(verbose="error")
    preparation.pick_electrodes(raw, CHANNELS)
    if np.isnan(raw.get_data()).any():
        fill = dict(limit_direction="both")
        raw.apply_function(
            lambda signal: pd.Series(signal).interpolate(**fill).fillna(0.0).to_numpy(),
            picks="all",
            verbose="error",
        )
    return preparation.filter_and_resample(raw, mains=50.0)


def cut(recording: loading.Recording) -> EEGWindowsDataset | None:
    """Read a recording and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    EEGWindowsDataset | None
        Labeled windows without a description; None when the recording has none.

    Raises
    ------
    ValueError
        When the file is damaged, or lacks a channel or its scoring.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.eesm17.recordings("ds004348")[0]  # doctest: +SKIP
    >>> windows = datasets.eesm17.cut(first)  # doctest: +SKIP
    >>> datasets.eesm17.CARD["classes"]
    ('W', 'N1', 'N2', 'N3', 'R')
    """
    # A recording without scoring fails before its signals are loaded, which is slow.
    scoring = _read_scoring(recording.file)
    raw = prepare(recording).set_annotations(scoring, verbose="error")
    return cutting.event_windows(raw, sleep_stages.SLEEP_TARGETS, WINDOW_SECONDS)


def _read_scoring(file: Path) -> mne.Annotations:
    """Return the stages of a night, with onsets in seconds from the start of the recording."""
    # The stages are in a scoring file, or else among the events of the recording.
    stem = file.name.removesuffix("_eeg.set")
    events = file.with_name(f"{stem}_events.tsv")
    scoring = file.with_name(f"{stem}_acq-scoring_events.tsv")
    source = scoring if scoring.is_file() else events
    if not source.is_file():
        raise ValueError(f"it has no scoring: neither {scoring.name} nor {events.name} exists.")

    # Scoring files name the column staging or scoring; other events have trial_type.
    table = loading.read_table(source, source.parent)
    column = next((c for c in table if c.startswith(("staging", "scoring"))), "trial_type")
    if not {"onset", column} <= set(table):
        raise ValueError(f"{source.name} lacks onset or staging; it has {', '.join(table)}.")
    codes = table[column].str.removesuffix(".0")
    stages = codes.map(lambda code: _CODES.get(code, stage_of(code)))
    if stages.isna().all():
        raise ValueError(
            f"it has no scoring: {source.name} contains {format_list(sorted(set(codes.dropna())))}, but "
            f"no sleep stage ({', '.join(_CODES)} or names, such as N2)."
        )

    onsets, durations = loading.times_in(table.fillna({"onset": "none"}), source.name)
    if source == scoring and events.is_file():
        # The first scored window starts at lights off: an onset near 0 counts from there.
        event_table = loading.read_table(events, events.parent)
        event_table = event_table.reindex(columns=["onset", "trial_type"], fill_value="0")
        is_off = event_table["trial_type"].str.lower() == "lights off"
        lights_off = float(next(iter(event_table["onset"][is_off]), 0.0))
        if abs(onsets[0]) < abs(onsets[0] - lights_off):
            onsets = onsets + lights_off
    # A missing, zero or shorter duration becomes one window.
    durations = np.nan_to_num(durations).clip(WINDOW_SECONDS)
    return mne.Annotations(onsets, durations, stages.fillna("none"))


RECIPE = recipe.Recipe("eesm17", CARD, recordings, prepare, cut)
load = RECIPE.load
