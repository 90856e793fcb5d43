"""EEGMAT: rest vs. mental arithmetic (EEG During Mental Arithmetic Tasks 1.0.0, PhysioNet).

The PARS paper does not use this corpus. It is small and freely available, and was recorded in a
laboratory that contributed to none of the corpora in the paper.

For each subject, there are three minutes of rest (target 0) and one minute of mental arithmetic
(target 1). Windows contain 19 EEG channels; the ECG is dropped. Signals are resampled from 500 Hz
and filtered. The published files were already filtered to 0.5-45 Hz and cleaned of artifacts.

Rest and arithmetic are separate recordings, and rest was always recorded first. Therefore, part of
the difference between the classes may be an effect of time.

:func:`datasets.mental_arithmetic <braindecode_pars.datasets.mental_arithmetic>` loads a bundled
sample of this corpus. The folder ``sample_data`` contains the signals, and ``README.md`` their
license and origin. The sample was created by ``docs/experiments/make_sample.py``.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._common import checks
from braindecode_pars._common.channel_names import template_montage
from braindecode_pars.recordings import cutting, loading, preparation, readers, recipe
from braindecode_pars.windows.recorded_steps import remember_steps

__all__ = ["CARD", "cut", "load", "prepare", "recordings"]

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="EEGMAT",
    version="1.0.0",
    license="ODC-BY-1.0",
    address="https://physionet.org/content/eegmat/1.0.0/",
    subjects=36,
    channels=len(preparation.COMMON_CHANNELS),
    sfreq=preparation.SFREQ,
    classes=("rest", "arithmetic"),
    reference="Zyma et al. 2019, Data 4(1); Goldberger et al. 2000, Circulation 101(23)",
)

#: File of the bundled sample dataset: one minute of each condition of the first 24 subjects.
SAMPLE = Path(__file__).parent / "sample_data" / "recordings.npz"
#: Duration of a recording in the sample dataset in seconds.
SAMPLE_SECONDS = 60.0
#: Quantization step of the stored integers in volts.
SAMPLE_STEP = 0.5e-6

#: Preprocessing steps that were applied to the sample dataset before eight channels were picked.
_SAMPLE_PREPARATION = (
    ("filter", dict(l_freq=0.5, h_freq=45.0)),
    ("set_eeg_reference", dict(ref_channels=list(preparation.COMMON_CHANNELS))),
)
#: Age of each subject of the sample dataset in years, from the table of the corpus.
_AGES = (
    *(21, 18, 19, 17, 17, 16, 18, 18, 26, 16, 17, 18),
    *(17, 24, 17, 17, 17, 17, 17, 22, 17, 20, 19, 16),
)

_NAME = r"(?P<subject>Subject\d\d)_(?P<condition>[12])\.edf"


def recordings(path: str | Path) -> list[loading.Recording]:
    """List the recordings in a folder, without opening the files.

    Parameters
    ----------
    path : path
        Folder that contains files such as ``Subject00_1.edf`` (rest) and ``Subject00_2.edf``
        (mental arithmetic), in any subfolder.

    Returns
    -------
    list of Recording
        The description of a recording contains ``subject`` (for example "Subject00"), ``corpus``
        and ``condition`` ("rest" or "arithmetic").

    Raises
    ------
    FileNotFoundError
        If the folder contains no recording of this corpus.
    ValueError
        If two files of a subject have the same name.

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
    conditions = {"1": "rest", "2": "arithmetic"}
    return loading.find_recordings(
        path, "eegmat", "Subject00_1.edf", _NAME, convert=dict(condition=conditions.__getitem__)
    )


def prepare(
    recording: loading.Recording,
    *,
    sfreq: float = preparation.SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 50.0,
    reference: str | None = None,
) -> mne.io.BaseRaw:
    """Read and preprocess a recording: pick 19 channels, resample and filter.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.
    sfreq : float
        New sampling rate in Hz.
    low, high : float | None
        Cutoff frequencies of the high-pass (``low``) and the low-pass filter (``high``) in Hz. If
        None, the filter is omitted. ``high`` is ignored if it is at or above half of ``sfreq``.
    mains : float | None
        Frequency of the notch filter that removes line noise, in Hz. If it is None, or at or above
        half of ``sfreq``, the filter is omitted.
    reference : "average" | None
        If "average", re-reference to the average of the 19 channels. If None, the reference of the
        files (the ears) is not changed.

    Returns
    -------
    Raw
        Preloaded recording in volts, with the channels in the order of
        :data:`~braindecode_pars.recordings.preparation.COMMON_CHANNELS`.

    Raises
    ------
    ValueError
        If the file is damaged, a channel is missing, or an argument is invalid.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.eegmat.recordings("eegmat")[0]  # doctest: +SKIP
    >>> raw = datasets.eegmat.prepare(first, sfreq=128)  # doctest: +SKIP
    """
    _check(sfreq=sfreq, low=low, high=high, mains=mains, reference=reference)
    # Channel names in the files are "EEG Fp1" and so on, and "ECG ECG".
    raw = readers.read_edf(recording.file, lambda name: name.startswith("EEG "))
    preparation.pick_electrodes(raw, preparation.COMMON_CHANNELS)
    raw.set_montage(template_montage(), match_case=False, match_alias=True, verbose="error")
    preparation.filter_and_resample(raw, sfreq=sfreq, low=low, high=high, mains=mains)
    if reference == "average":
        # By name, for the recorded preprocessing steps
        preparation.set_reference(raw, raw.ch_names)
    return raw


def _check(
    reference: str | None = None, window_seconds: float = 10.0, **filters: float | None
) -> None:
    checks.choice("average", None).check("reference", reference)
    checks.check_positive(window_seconds=window_seconds)
    preparation.check_filters(**filters)


def cut(
    recording: loading.Recording, *, window_seconds: float = 10.0, **preparation: Any
) -> EEGWindowsDataset | None:
    """Read a recording, preprocess it, and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.
    window_seconds : float
        Length of a window in seconds. Windows are consecutive and do not overlap.
    **preparation
        Arguments of :func:`prepare`.

    Returns
    -------
    EEGWindowsDataset | None
        Labeled windows, or None if the recording has no windows. The entries of
        ``recording.description`` are not stored with the windows; ``load`` adds them.

    Raises
    ------
    ValueError
        If the file is damaged, a channel is missing, or an argument is invalid.

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
    # Recordings of arithmetic are shorter than recordings of rest, so this class might have no
    # windows if windows are long.
    expected=lambda chosen: {recording.description["condition"] for recording in chosen},
)
load = RECIPE.load


def mental_arithmetic(
    subjects: Iterable[str] | None = None, *, window_seconds: float = 10.0
) -> BaseConcatDataset:
    """Load the bundled sample dataset of rest vs. mental arithmetic (24 subjects, 8 channels).

    The dataset contains one minute of each condition per subject, in eight channels: F3, Fz, F4,
    T5, P3, Pz, P4 and T6. Signals are sampled at 128 Hz, filtered to 0.5-45 Hz and referenced to
    the average of 19 channels. The eight electrodes are over areas that are active in mental
    arithmetic (frontal, parietal and posterior temporal cortex), and far from the eyes and the
    muscles of the jaw and the temples. The recordings are a subset of EEGMAT;
    :mod:`~braindecode_pars.datasets.eegmat` loads the full corpus.

    Parameters
    ----------
    subjects : iterable of str | None
        Subjects to load, among "Subject00" to "Subject23". If None, load all subjects.
    window_seconds : float
        Length of a window in seconds, at most 60. Windows are consecutive and do not overlap.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Windows with signals in volts. Target 0 is rest, and target 1 is arithmetic. The
        descriptions of the recordings contain ``subject`` and ``condition``, as in EEGMAT, and
        ``age`` in years.

    Raises
    ------
    FileNotFoundError
        If the sample dataset does not contain a requested subject, or if ``subjects`` is empty.
    TypeError
        If ``subjects`` is a string, or if ``window_seconds`` is not a number.
    ValueError
        If ``window_seconds`` is not positive, or more than 60.

    Notes
    -----
    The two conditions are close in time: the rest windows are from the last minute of the rest
    recording, and the arithmetic windows are from the first minute of the arithmetic recording.
    Rest was recorded first in all subjects, so part of the difference between the conditions may be
    an effect of time.

    Signals are quantized in steps of 0.5 microvolts. License: ODC-BY 1.0. Cite Zyma et al. 2019,
    Data 4(1), and Goldberger et al. 2000, Circulation 101(23).

    Examples
    --------
    Two minutes of each of 24 subjects, in windows of 10 s at 128 Hz. Half of the windows have the
    target 1:

    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.mental_arithmetic()
    >>> len(windows), windows[0][0].shape
    (288, (8, 1280))
    >>> X, y, groups = as_sklearn(windows)
    >>> int(y.sum()), len(set(groups))
    (144, 24)
    """
    checks.positive(SAMPLE_SECONDS).check("window_seconds", window_seconds, "mental_arithmetic")
    with np.load(SAMPLE, allow_pickle=False) as archive:
        sample = dict(archive)
    known = sample["subjects"].tolist()
    recordings = (
        loading.Recording(SAMPLE, dict(subject=s, corpus="eegmat", condition=c, age=age))
        for s, age in zip(known, _AGES, strict=True)
        for c in CARD["classes"]
    )
    chosen = loading.choose_subjects(recordings, subjects, "The sample dataset")
    info = mne.create_info(sample["ch_names"].tolist(), float(sample["sfreq"]), "eeg")
    info.set_montage(template_montage())
    datasets = []
    for recording in chosen:
        target = CARD["classes"].index(recording.description["condition"])
        steps = sample["samples"][known.index(recording.subject)][target]
        raw = mne.io.RawArray(SAMPLE_STEP * steps, info, verbose="error")
        remember_steps(raw, _SAMPLE_PREPARATION)
        windows = cutting.fixed_windows(raw, window_seconds, target)
        assert windows is not None  # recordings last 60 s, the maximum of window_seconds
        windows.set_description(recording.description)
        datasets.append(cutting.name_classes(windows, CARD["classes"]))
    return BaseConcatDataset(datasets)
