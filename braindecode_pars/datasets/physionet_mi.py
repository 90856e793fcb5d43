"""PhysioNet-MI: motor imagery (EEG Motor Movement/Imagery Dataset, eegmmidb 1.0.0).

Each trial, in which a movement is imagined, is one window. By default, preprocessing, trials and
splits follow appendix A.3 of the PARS paper: high-pass 0.3 Hz, notch 60 Hz, average reference,
200 Hz. Unlike ``mne.datasets.eegbci.load_data``, this module does not download files. The sampling
rate of the files is 160 Hz, except for subjects 88, 92 and 100 (128 Hz). Files with fewer channels
or another sampling rate are also supported. The paper does not use this corpus for pretraining. To
pretrain on whole runs, create a signal store (a folder of preprocessed recordings):
``braindecode-pars store --recipe physionet_mi=FOLDER STORE``.

A trial starts at the cue. In runs 4, 8 and 12 (left or right fist), the cue appears on the left or
on the right side of the screen. Low-frequency potentials in the first second, most likely eye
movements, separate these two classes. Therefore, a score above chance level is not sufficient
evidence of motor imagery. To exclude the first second, pass ``tmin=1``.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
import numpy as np
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars._common import channel_names, checks
from braindecode_pars.recordings import cutting, loading, preparation, readers, recipe

__all__ = ["CARD", "MONTAGES", "class_names", "cut", "load", "prepare", "recordings"]

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="PhysioNet-MI",
    version="1.0.0",
    license="ODC-BY-1.0",
    address="https://physionet.org/content/eegmmidb/1.0.0/",
    subjects=109,
    channels=64,
    sfreq=preparation.SFREQ,
    classes=("left fist", "right fist", "both fists", "both feet"),
    reference="Schalk et al. 2004, IEEE TBME 51(6); Goldberger et al. 2000, Circulation 101(23)",
)

_MOTOR = tuple(f"{row}{column}" for row in ("FC", "C", "CP") for column in "531z246")

#: Named lists of channels for the argument ``picks``: the three rows of electrodes over the motor
#: cortex, and these rows together with the remaining electrodes of the 10-20 system.
MONTAGES: dict[str, tuple[str, ...]] = {
    "motor": _MOTOR,
    "motor and 10-20": (
        *_MOTOR,
        *("Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "T8"),
        *("P7", "P3", "Pz", "P4", "P8", "O1", "O2"),
    ),
}

#: Targets of the events T1 and T2 in each motor imagery run. The event T0 is rest.
TARGETS = {
    **{run: {"T1": 0, "T2": 1} for run in (4, 8, 12)},
    **{run: {"T1": 2, "T2": 3} for run in (6, 10, 14)},
}
#: Targets of the events with ``contrast="rest"``.
REST_OR_IMAGERY = {"T0": 0, "T1": 1, "T2": 1}
RUNS = tuple(sorted(TARGETS))
RULES = dict(
    contrast=checks.choice("movements", "rest"),
    **dict.fromkeys(("tmin", "tmax"), checks.number("of at least 0", lambda value: value >= 0)),
    sfreq=checks.positive(),
    reference=checks.choice("average", "picks", None),
)


def recordings(path: str | Path, *, runs: Iterable[int] = RUNS) -> list[loading.Recording]:
    """List the motor imagery runs in a folder, without opening the files.

    Parameters
    ----------
    path : path
        Folder with files such as ``S001R04.edf`` in any subfolder, for example the data folder of
        MNE.
    runs : iterable of int
        Runs to list: one or more of 4, 8 and 12 (left or right fist) and 6, 10 and 14 (both fists
        or both feet). Missing runs are skipped.

    Returns
    -------
    list of Recording
        The description of a recording contains ``subject`` (1 to 109), ``corpus``, ``run`` and
        ``split``. As in appendix A.3 of the PARS paper, subjects 1-70 are "train", 71-89 "valid"
        and 90-109 "test".

    Raises
    ------
    ValueError
        If a run is not a motor imagery run, or if two files of a subject have the same name.
    FileNotFoundError
        If the folder contains none of the runs.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "S071R04.edf").touch()
    ...     [recording] = datasets.physionet_mi.recordings(folder)
    >>> recording.description
    {'subject': 71, 'corpus': 'physionet_mi', 'run': 4, 'split': 'valid'}
    """
    runs = tuple(runs)
    if not runs or not set(runs) <= set(RUNS):
        raise ValueError(f"runs must be one or more of the motor imagery runs {RUNS}, got {runs}.")
    texts = [f"{run:02d}" for run in runs]
    all_recordings = loading.find_recordings(
        path,
        "physionet_mi",
        f"S001R{texts[0]}.edf",
        rf"S(?P<subject>\d{{3}})R(?P<run>{'|'.join(texts)})\.edf",
        convert=dict(subject=int, run=int),
    )
    return [
        r.described(split="train" if r.subject <= 70 else "valid" if r.subject <= 89 else "test")
        for r in all_recordings
    ]


def prepare(
    recording: loading.Recording,
    *,
    picks: list[str] | str | None = None,
    sfreq: float = preparation.SFREQ,
    low: float | None = 0.3,
    high: float | None = None,
    mains: float | None = 60.0,
    reference: str | None = "average",
) -> mne.io.BaseRaw:
    """Read and preprocess a run: pick EEG channels, resample, filter and re-reference.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.
    picks : list of str | "motor" | "motor and 10-20" | None
        Channels to pick, by names of the 10-05 system such as "FC5", or the name of a list of
        channels in :data:`MONTAGES`. If None, use all channels of the file, usually 64.
    sfreq : float
        New sampling rate in Hz.
    low, high : float | None
        Cutoff frequencies of the high-pass (``low``) and the low-pass filter (``high``) in Hz. If
        None, the filter is omitted. ``high`` is ignored if it is at or above half of ``sfreq``.
    mains : float | None
        Frequency of the notch filter that removes line noise, in Hz. If it is None, or at or above
        half of ``sfreq``, the filter is omitted.
    reference : "average" | "picks" | None
        New reference: the average of all channels of the file ("average"), or only of the channels
        in the argument ``picks`` ("picks"). If None, the reference is not changed.

    Returns
    -------
    Raw
        Preloaded recording in volts, with the events of the file as annotations.

    Raises
    ------
    ValueError
        If the file is damaged, a channel is missing, or an argument is invalid.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.physionet_mi.recordings("~/mne_data")[0]  # doctest: +SKIP
    >>> raw = datasets.physionet_mi.prepare(first, picks="motor", sfreq=128)  # doctest: +SKIP
    """
    _check(picks=picks, reference=reference, sfreq=sfreq, low=low, high=high, mains=mains)
    raw = readers.read_recording(recording.file).pick("eeg", verbose="error")
    # Channel names such as "Fc5." in the files are changed to those of the montage, such as "FC5".
    mne.datasets.eegbci.standardize(raw)
    raw.set_montage(channel_names.template_montage(), verbose="error")
    preparation.filter_and_resample(raw, sfreq=sfreq, low=low, high=high, mains=mains)
    # As in the paper, the reference is the average of all channels, so channels are picked later.
    if reference == "average":
        preparation.set_reference(raw, "average")
    if picks is not None:
        preparation.pick_electrodes(raw, MONTAGES[picks] if isinstance(picks, str) else picks)
    if reference == "picks":
        # By name, for the recorded preprocessing steps
        preparation.set_reference(raw, raw.ch_names)
    return raw


def _check(*, tmin: float = 0.0, tmax: float = 4.0, picks: Any = None, **settings: Any) -> None:
    if isinstance(picks, str) and picks not in MONTAGES:
        known = ", ".join(map(repr, MONTAGES))
        raise ValueError(f"picks must be a list of channels, or one of {known}, got {picks!r}.")
    checks.check_parameters(dict(tmin=tmin, tmax=tmax, **settings), RULES)
    filters = {
        name: settings[name] for name in ("sfreq", "low", "high", "mains") if name in settings
    }
    preparation.check_filters(**filters)
    if tmin >= tmax:
        raise ValueError(f"tmin must be less than tmax, got tmin={tmin:g} s and tmax={tmax:g} s.")


def cut(
    recording: loading.Recording,
    *,
    contrast: str = "movements",
    tmin: float = 0.0,
    tmax: float = 4.0,
    **preparation: Any,
) -> EEGWindowsDataset | None:
    """Read a recording, preprocess it, and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.
    contrast : "movements" | "rest"
        Classes to distinguish. "movements": the movement that is imagined, see ``CARD["classes"]``.
        "rest": rest (target 0) vs. any imagined movement (target 1); rest windows are from the
        periods between two trials.
    tmin, tmax : float
        Start and stop of the window of a trial, in seconds after the cue, or of a rest window, in
        seconds after the start of the rest period. Trials and rest periods that are shorter than
        ``tmax`` are excluded. Most trials last 4.1 seconds.
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
    >>> first = datasets.physionet_mi.recordings("~/mne_data")[0]  # doctest: +SKIP
    >>> windows = datasets.physionet_mi.cut(first)  # doctest: +SKIP
    >>> datasets.physionet_mi.CARD["classes"]
    ('left fist', 'right fist', 'both fists', 'both feet')
    """
    _check(contrast=contrast, tmin=tmin, tmax=tmax)
    raw = prepare(recording, **preparation)
    # Crop the annotation of each trial to one window. A shorter annotation results in no window.
    annotations = raw.annotations.copy()
    is_trial = np.isin(annotations.description, list(REST_OR_IMAGERY))
    annotations.duration[is_trial] = np.clip(annotations.duration[is_trial] - tmin, 0, tmax - tmin)
    annotations.onset[is_trial] += tmin
    raw.set_annotations(annotations, verbose="error")
    targets = TARGETS[recording.description["run"]] if contrast == "movements" else REST_OR_IMAGERY
    return cutting.event_windows(raw, targets, tmax - tmin)


def class_names(*, contrast: str = "movements") -> tuple[str, ...]:
    """Return the class names for a contrast, in the order of the targets 0, 1, ....

    Parameters
    ----------
    contrast : "movements" | "rest"
        Classes to distinguish, as in :func:`cut`.

    Returns
    -------
    tuple of str
        Class names.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.physionet_mi.class_names(contrast="rest")
    ('rest', 'imagined movement')
    """
    return CARD["classes"] if contrast == "movements" else ("rest", "imagined movement")


RECIPE = recipe.Recipe(
    "physionet_mi",
    CARD,
    recordings,
    prepare,
    cut,
    check=_check,
    class_names=class_names,
    expected=lambda chosen: (),
)
load = RECIPE.load
