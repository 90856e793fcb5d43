"""EESM17: sleep staging with ear-EEG (Ear-EEG Sleep Monitoring 2017, OpenNeuro ds004348).

Each scored segment of 30 seconds is one window. The scoring (the sleep stages) is read from the
file ``..._acq-scoring_events.tsv`` in the folder of the recording. The column ``staging`` of this
file contains codes: 1 for W, 2 for R, 3 for N1, 4 for N2 and 5 for N3. Segments with the codes 7
(artifact) or 8 (unknown) are dropped. Names of stages, such as "N2", are supported as well.

The scoring starts at lights off. In some files, its onsets are relative to lights off, in others,
to the start of the recording. To distinguish the two cases, the first onset is compared with the
onset of the event "Lights Off" in the file ``..._events.tsv`` of the recording.

Files are read with MNE, together with their BIDS tables.
:class:`braindecode.datasets.BIDSDataset` is not used because it opens every file in its
constructor and cannot read a scoring from a separate file.

Windows and filters follow appendix A.3 of the PARS paper, which reports 7,390 windows. Channel
names and stage codes follow public software that reads this corpus. For fine-tuning, the paper adds
Gaussian noise to random channels, see :class:`~braindecode_pars.estimators.ChannelNoise`.
"""

from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars._common import checks, sleep_stages, tables
from braindecode_pars.recordings import cutting, loading, preparation, readers, recipe, side_tables

__all__ = ["CARD", "CHANNELS", "cut", "load", "prepare", "recordings"]

#: Channels of the left ear, followed by channels of the right ear. The files also contain ELB1 and
#: ERB1, which were not used by the authors of the corpus.
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

#: Length of a window in seconds.
WINDOW_SECONDS = 30.0
_NAME = r"sub-(?P<subject>[^_/]+)_ses-(?P<session>[^_/]+)_task-sleep_[^/]*eeg\.set"

#: Sleep stage of each code in the scoring. Segments with other codes, such as 7 (artifact) and 8
#: (unknown), are dropped.
_CODES = {"1": "W", "2": "R", "3": "N1", "4": "N2", "5": "N3"}


def recordings(path: str | Path) -> list[loading.Recording]:
    """List the sleep recordings (BIDS task "sleep") in a folder, without opening the files.

    Parameters
    ----------
    path : path
        BIDS folder that contains ``sub-001`` to ``sub-009``.

    Returns
    -------
    list of Recording
        The description of a recording contains ``subject`` ("001" to "009"), ``corpus`` and
        ``session`` (for example "001"), but no ``split``: with only nine subjects, methods are
        evaluated by leave-one-subject-out cross-validation.

    Raises
    ------
    FileNotFoundError
        If the folder contains no sleep recording.
    PermissionError
        If a folder cannot be listed.

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
    example = "sub-001_ses-001_task-sleep_eeg.set"
    return loading.find_recordings(path, "eesm17", example, _NAME)


def prepare(recording: loading.Recording) -> mne.io.BaseRaw:
    """Read and preprocess a recording: 12 channels, 200 Hz, band-pass 0.3-75 Hz, notch 50 Hz.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    Raw
        Preloaded recording in volts, with the channels in the order of :data:`CHANNELS`. Samples
        that are NaN in the file, for example because an electrode lost contact, are linearly
        interpolated. A channel that contains only NaN is set to zero.

    Raises
    ------
    ValueError
        If the file is damaged, or a channel is missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.eesm17.recordings("ds004348")[0]  # doctest: +SKIP
    >>> raw = datasets.eesm17.prepare(first)  # doctest: +SKIP
    """
    raw = readers.read_with_tables(recording.file)
    preparation.pick_electrodes(raw, CHANNELS)
    raw.apply_function(_interpolated, picks="all", verbose="error")
    return preparation.filter_and_resample(raw, mains=50.0)


def _interpolated(signal: np.ndarray) -> np.ndarray:
    """Interpolate missing samples (NaN). If all samples are missing, the signal becomes zero."""
    return pd.Series(signal).interpolate(limit_direction="both").fillna(0.0).to_numpy()


def cut(recording: loading.Recording) -> EEGWindowsDataset | None:
    """Read a recording, preprocess it, and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    EEGWindowsDataset | None
        Labeled windows, or None if the recording has no windows. The entries of
        ``recording.description`` are not stored with the windows; ``load`` adds them.

    Raises
    ------
    ValueError
        If the file is damaged, or a channel or the scoring is missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.eesm17.recordings("ds004348")[0]  # doctest: +SKIP
    >>> windows = datasets.eesm17.cut(first)  # doctest: +SKIP
    >>> datasets.eesm17.CARD["classes"]
    ('W', 'N1', 'N2', 'N3', 'R')
    """
    # Read the scoring first, because reading the signals is slow.
    scoring = _read_scoring(recording.file)
    raw = prepare(recording).set_annotations(scoring, verbose="error")
    return cutting.event_windows(raw, sleep_stages.SLEEP_TARGETS, WINDOW_SECONDS)


def _read_scoring(file: Path) -> mne.Annotations:
    """Read the sleep stages, with onsets in seconds relative to the start of the recording."""
    stem = file.name.removesuffix("_eeg.set")
    events = file.with_name(f"{stem}_events.tsv")
    scoring = file.with_name(f"{stem}_acq-scoring_events.tsv")
    table = side_tables.read_table(scoring, scoring.parent)
    column = next((c for c in table if c.startswith(("staging", "scoring"))), "staging")
    tables.check_table(table, scoring.name, ["onset", column])
    codes = table[column].str.removesuffix(".0")
    stages = codes.map(lambda code: _CODES.get(code, sleep_stages.stage_of(code)))
    if stages.isna().all():
        raise ValueError(
            f"The column {column} of {scoring.name} must contain sleep stages (codes "
            f"{', '.join(_CODES)}, or names such as N2), got only "
            f"{checks.format_list(sorted(set(codes.dropna()))) or 'empty cells'}. Correct the file."
        )

    onsets, durations = side_tables.times_in(table.fillna({"onset": "none"}), scoring.name)
    if events.is_file():
        # The first scored window starts at lights off. If its onset is closer to 0 than to the time
        # of lights off, all onsets are relative to lights off.
        event_table = side_tables.read_table(events, events.parent)
        event_table = event_table.reindex(columns=["onset", "trial_type"], fill_value="0")
        is_off = event_table["trial_type"].str.lower() == "lights off"
        lights_off = float(next(iter(event_table["onset"][is_off]), 0.0))
        if abs(onsets[0]) < abs(onsets[0] - lights_off):
            onsets = onsets + lights_off
    # Replace missing, zero and shorter durations with the length of a window.
    durations = np.nan_to_num(durations).clip(WINDOW_SECONDS)
    return mne.Annotations(onsets, durations, stages.fillna("none"))


RECIPE = recipe.Recipe("eesm17", CARD, recordings, prepare, cut)
load = RECIPE.load
