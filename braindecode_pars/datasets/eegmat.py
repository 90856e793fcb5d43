"""EEGMAT: rest and mental arithmetic (EEG During Mental Arithmetic Tasks 1.0.0, PhysioNet).

The paper does not use this corpus. It is small and free, and was not recorded in any of the
laboratories of the paper's corpora.

Each subject has three minutes of rest (target 0) and one minute of mental arithmetic (target 1).
The windows have the 19 common EEG channels; the ECG is dropped. Signals are resampled from 500 Hz
and filtered. The published files were already filtered to 0.5-45 Hz and cleaned of artifacts.

Rest and arithmetic are separate recordings. Part of the difference between the two classes may
therefore be an effect of time.

:func:`datasets.mental_arithmetic <braindecode_pars.datasets.mental_arithmetic>` is a sample of it
in the package: the folder ``sample_data`` has its samples, and ``README.md`` their license and
origin. ``docs/experiments/make_sample.py`` made them.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._common.channel_names import template_montage
from braindecode_pars._common.checks import check_parameters, check_positive, choice, positive
from braindecode_pars.recordings import cutting, loading, readers, recipe, search
from braindecode_pars.recordings.preparation import (
    COMMON_CHANNELS,
    SFREQ,
    check_filters,
    filter_and_resample,
    pick_electrodes,
    set_reference,
)
from braindecode_pars.windows.recorded_steps import remember_steps

__all__ = ["CARD", "cut", "load", "prepare", "recordings"]

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="EEGMAT",
    version="1.0.0",
    license="ODC-BY-1.0",
    address="https://physionet.org/content/eegmat/1.0.0/",
    subjects=36,
    channels=len(COMMON_CHANNELS),
    sfreq=SFREQ,
    classes=("rest", "arithmetic"),
    reference="Zyma et al. 2019, Data 4(1); Goldberger et al. 2000, Circulation 101(23)",
)

#: The sample in the package: the first subjects, a minute of each condition.
SAMPLE = Path(__file__).parent / "sample_data" / "recordings.npz"
SAMPLE_SECONDS = 60.0
#: A step of its integers in volts.
SAMPLE_STEP = 0.5e-6

#: What was done with its recordings before the channels were picked.
_SAMPLE_PREPARATION = (
    ("filter", dict(l_freq=0.5, h_freq=45.0)),
    ("set_eeg_reference", dict(ref_channels=list(COMMON_CHANNELS))),
)
#: Age of each of its subjects in years, in the table of the corpus.
_AGES = (
    *(21, 18, 19, 17, 17, 16, 18, 18, 26, 16, 17, 18),
    *(17, 24, 17, 17, 17, 17, 17, 22, 17, 20, 19, 16),
)

_NAME = re.compile(r"(Subject\d\d)_([12])\.edf")


def recordings(path: str | Path, subjects: Iterable[str] | None = None) -> list[loading.Recording]:
    """Return the recordings in a folder, without opening the files.

    Parameters
    ----------
    path : path
        Folder with ``SubjectNN_1.edf`` (rest) and ``SubjectNN_2.edf`` (mental arithmetic), at any
        depth.
    subjects : iterable of str | None
        Subjects to return, for example ``["Subject00"]``. None returns every subject in the folder.

    Returns
    -------
    list of Recording
        The description of a recording has ``subject`` (for example "Subject00"), ``corpus`` and
        ``condition`` ("rest" or "arithmetic").

    Raises
    ------
    FileNotFoundError
        When the folder contains no such recording.
    ValueError
        When two files have the same name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "Subject00_2.edf").touch()
    ...     [recording] = datasets.eegmat.recordings(folder)
    >>> recording.description
    {'subject': 'Subject00', 'corpus': 'eegmat', 'condition': 'arithmetic'}
    """
    all_recordings = [
        loading.Recording(
            file,
            dict(subject=match[1], corpus="eegmat", condition=CARD["classes"][int(match[2]) - 1]),
        )
        for file, match in search.find_named(
            path, _NAME, "no recording of EEGMAT", "Subject00_1.edf"
        )
    ]
    return loading.choose_subjects(all_recordings, subjects, path)


def prepare(
    recording: loading.Recording,
    *,
    sfreq: float = SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 50.0,
    reference: str | None = None,
) -> mne.io.BaseRaw:
    """Read a recording and prepare it: 19 channels, resampled and filtered.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.
    sfreq : float
        Sampling rate in Hz.
    low, high, mains : float | None
        Edges of the band-pass and frequency of the notch filter in Hz; None for none. An upper
        edge or notch at or above half of ``sfreq`` is ignored.
    reference : "average" | None
        New reference: the average of the 19 channels. None keeps that of the files, the ears.

    Returns
    -------
    Raw
        Preloaded recording in volts, channels in the order of
        :data:`~braindecode_pars.recordings.preparation.COMMON_CHANNELS`.

    Raises
    ------
    ValueError
        When the file is damaged or lacks a channel, or an argument is invalid.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.eegmat.recordings("eegmat")[0]  # doctest: +SKIP
    >>> raw = datasets.eegmat.prepare(first, sfreq=128)  # doctest: +SKIP
    """
    _check(sfreq=sfreq, low=low, high=high, mains=mains, reference=reference)
    # The files name their channels "EEG Fp1" and so on, and the ECG "ECG ECG".
    raw = readers.read_edf(recording.file, lambda name: name.startswith("EEG "))
    pick_electrodes(raw, COMMON_CHANNELS)
    raw.set_montage(template_montage(), match_case=False, match_alias=True, verbose="error")
    filter_and_resample(raw, sfreq=sfreq, low=low, high=high, mains=mains)
    if reference == "average":
        set_reference(raw, raw.ch_names)  # by name, as the record of what was done
    return raw


def _check(
    reference: str | None = None, window_seconds: float = 10.0, **filters: float | None
) -> None:
    check_parameters(dict(reference=reference), dict(reference=choice("average", None)))
    check_positive(window_seconds=window_seconds)
    check_filters(**filters)


def cut(
    recording: loading.Recording, *, window_seconds: float = 10.0, **preparation: Any
) -> EEGWindowsDataset | None:
    """Read a recording and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.
    window_seconds : float
        Length of a window in seconds. Windows are adjacent and do not overlap.
    **preparation
        As in :func:`prepare`.

    Returns
    -------
    EEGWindowsDataset | None
        Labeled windows without a description; None when the recording has none.

    Raises
    ------
    ValueError
        When the file is damaged, lacks a channel, or an argument is invalid.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.eegmat.recordings("eegmat")[0]  # doctest: +SKIP
    >>> windows = datasets.eegmat.cut(first)  # doctest: +SKIP
    >>> datasets.eegmat.CARD["classes"]
    ('rest', 'arithmetic')
    """
    target = CARD["classes"].index(recording.description["condition"])
    return cutting.fixed_windows(prepare(recording, **preparation), window_seconds, target)


RECIPE = recipe.Recipe(
    "eegmat",
    CARD,
    recordings,
    prepare,
    cut,
    check=_check,
    # Rest lasts longer than arithmetic, so that long windows might all be rest.
    expected=lambda chosen: {recording.description["condition"] for recording in chosen},
)
load = RECIPE.load


def mental_arithmetic(
    subjects: Iterable[str] | None = None, *, window_seconds: float = 10.0
) -> BaseConcatDataset:
    """Return windows of rest and mental arithmetic, from real recordings in the package.

    24 subjects, one minute of each condition, eight channels (F3, Fz, F4, T5, P3, Pz, P4, T6) at
    128 Hz, filtered to 0.5-45 Hz and with the average of 19 channels as reference. The channels are
    over frontal, parietal and posterior temporal cortex, which work in mental arithmetic, and away
    from the eyes and the muscles of jaw and temples. The recordings are a part of EEGMAT;
    :mod:`~braindecode_pars.datasets.eegmat` reads the whole.

    Parameters
    ----------
    subjects : iterable of str | None
        Subjects, among "Subject00" to "Subject23". None returns all.
    window_seconds : float
        Length of a window in seconds, at most 60. Windows are adjacent and do not overlap.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Signals in volts. Target 0 is rest, target 1 is arithmetic. Descriptions have ``subject``
        and ``condition``, as those of EEGMAT, and ``age`` in years.

    Raises
    ------
    FileNotFoundError
        When the sample does not have a subject.
    TypeError
        When ``subjects`` is a string, or ``window_seconds`` is not a number.
    ValueError
        When ``subjects`` is empty, or ``window_seconds`` is not positive or more than 60.

    Notes
    -----
    Rest is the minute before the end of its recording, arithmetic the first minute of its own: the
    two that are nearest in time. Rest still comes first in every subject, so a part of the
    difference may be an effect of time.

    Samples have steps of 0.5 microvolts. License: ODC-BY 1.0. Cite Zyma et al. 2019, Data 4(1), and
    Goldberger et al. 2000, Circulation 101(23).

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.mental_arithmetic()
    >>> len(windows), windows[0][0].shape
    (288, (8, 1280))
    >>> X, y, groups = as_sklearn(windows)
    >>> int(y.sum()), len(set(groups))
    (144, 24)
    """
    check_parameters(
        locals(), dict(window_seconds=positive(maximum=SAMPLE_SECONDS)), "mental_arithmetic"
    )
    with np.load(SAMPLE, allow_pickle=False) as archive:
        sample = dict(archive)
    known = sample["subjects"].tolist()
    recordings = (
        loading.Recording(SAMPLE, dict(subject=s, corpus="eegmat", condition=c, age=age))
        for s, age in zip(known, _AGES, strict=True)
        for c in CARD["classes"]
    )
    chosen = loading.choose_subjects(recordings, subjects, "The sample")
    info = mne.create_info(sample["ch_names"].tolist(), float(sample["sfreq"]), "eeg")
    info.set_montage(template_montage())
    datasets = []
    for recording in chosen:
        target = CARD["classes"].index(recording.description["condition"])
        of_subject = sample["samples"][known.index(recording.subject)]
        raw = mne.io.RawArray(SAMPLE_STEP * of_subject[target], info, verbose="error")
        remember_steps(raw, _SAMPLE_PREPARATION)
        windows = cutting.fixed_windows(raw, window_seconds, target)
        assert windows is not None  # the sample is minutes long
        windows.set_description(recording.description)
        datasets.append(cutting.name_classes(windows, CARD["classes"]))
    return BaseConcatDataset(datasets)
