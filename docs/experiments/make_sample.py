"""Create the bundled datasets from recordings.

``python docs/experiments/make_sample.py mental_arithmetic PATH`` reads the files of EEGMAT below
the folder PATH, and writes ``recordings.npz`` into the package. With ``sleep`` instead, it reads
windows of UCDDB, files ``ucddbNNN.npz``, and writes ``sleep.npz``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars.datasets import eegmat, ucddb

__all__ = ["make", "make_sleep", "samples_of"]

SUBJECTS = tuple(f"Subject{number:02d}" for number in range(24))

#: Channels over frontal, parietal and posterior temporal cortex, which are active in mental
#: arithmetic. They were selected without labels: Fp1, Fp2, F7 and F8 have the most power below 3 Hz
#: (eyes), and these and T3 and T4 the most power above 30 Hz (muscles) in some recordings.
CHANNELS = ("F3", "Fz", "F4", "T5", "P3", "Pz", "P4", "T6")

SFREQ = 128.0

#: Maximum number of windows per stage and subject in the sleep dataset.
N_WINDOWS = 60

#: UCDDB files contain no unit; with this unit in volts, amplitudes are typical of EEG.
UNIT = 100e-6


def make(path: str | Path, file: Path = eegmat.SAMPLE) -> None:
    """Write the arithmetic dataset as an archive of NumPy arrays, without pickled objects.

    Parameters
    ----------
    path : path
        Folder of the recordings of EEGMAT, at any depth.
    file : Path
        Archive to write.

    Examples
    --------
    >>> from make_sample import make
    >>> make("eegmat", "recordings.npz")  # doctest: +SKIP
    """
    np.savez_compressed(
        file,
        samples=samples_of(path, SUBJECTS),
        subjects=np.array(SUBJECTS),
        ch_names=np.array(CHANNELS),
        sfreq=np.array(SFREQ),
    )


def samples_of(path: str | Path, subjects: Sequence[str]) -> np.ndarray:
    """Return the samples of some subjects in the format of the archive.

    Parameters
    ----------
    path : path
        Folder of the recordings of EEGMAT, at any depth.
    subjects : sequence of str
        Subjects.

    Returns
    -------
    ndarray of int16, shape (n_subjects, n_conditions, n_chans, n_times)
        Samples in steps of 0.5 microvolts.

    Examples
    --------
    >>> from make_sample import samples_of
    >>> samples = samples_of("eegmat", ["Subject00"])  # doctest: +SKIP
    """
    # Filter whole recordings, to avoid edge effects at the ends of a minute.
    windows = eegmat.load(
        path,
        subjects,
        window_seconds=eegmat.SAMPLE_SECONDS,
        sfreq=SFREQ,
        low=0.5,
        high=45.0,
        mains=None,
        reference="average",
        verbose=0,
    )
    minutes = {
        tuple(recording.description[["subject", "condition"]]): _minute(recording)
        for recording in windows.datasets
    }
    volts = np.array(
        [[minutes[subject, name] for name in eegmat.CARD["classes"]] for subject in subjects]
    )
    return np.rint(volts / eegmat.SAMPLE_STEP).astype(np.int16)


def _minute(recording: EEGWindowsDataset) -> np.ndarray:
    """Return the last minute of rest, or the first minute of arithmetic."""
    signals = recording.raw.get_data(list(CHANNELS))
    n_times = round(eegmat.SAMPLE_SECONDS * SFREQ)
    is_rest = recording.description["condition"] == "rest"
    return signals[:, -n_times:] if is_rest else signals[:, :n_times]


def make_sleep(path: str | Path, file: Path = ucddb.SAMPLE) -> None:
    """Write the sleep dataset: windows of each stage, evenly distributed over the recording.

    Parameters
    ----------
    path : path
        Folder with ``ucddb002.npz`` and so on, at any depth: windows ``x`` in int16 times
        ``scale``, with their ``stage``, ``position`` in the night, and whether they are ``bad``.
    file : Path
        Archive to write.

    Examples
    --------
    >>> from make_sample import make_sleep
    >>> make_sleep("ucddb", "sleep.npz")  # doctest: +SKIP
    """
    sources = sorted(Path(path).rglob("ucddb*.npz"))
    subject_windows = [_windows_of(source, number) for number, source in enumerate(sources)]
    steps = [person.pop("step") for person in subject_windows]
    np.savez_compressed(
        file,
        subjects=np.array([source.stem for source in sources]),
        step=np.array(steps, np.float32),
        **{
            name: np.concatenate([person[name] for person in subject_windows])
            for name in subject_windows[0]
        },
    )


def _windows_of(source: Path, number: int) -> dict[str, np.ndarray]:
    """Return the windows of one subject in steps of a tenth of their median amplitude."""
    with np.load(source, allow_pickle=False) as archive:
        night = {name: archive[name] for name in archive.files}
    kept = np.sort(
        np.concatenate([_spread(night["stage"] == stage) for stage in ucddb.SAMPLE_STAGES])
    )
    volts = night["x"][kept].astype(float) * float(night["scale"]) * UNIT
    step = np.median(volts.std(axis=1)) / 10
    samples = np.rint(volts / step).clip(-127, 127).astype(np.int8)
    return dict(
        step=step,
        # Differences compress better. They may wrap around, which the cumulative sum undoes.
        differences=np.diff(samples, axis=1, prepend=np.int8(0)),
        person=np.full(len(kept), number, np.uint8),
        **{name: night[name][kept] for name in ("stage", "position", "bad")},
    )


def _spread(is_wanted: np.ndarray) -> np.ndarray:
    """Return at most 60 of the requested windows, evenly distributed."""
    rows = np.flatnonzero(is_wanted)
    places = np.linspace(0, len(rows) - 1, min(N_WINDOWS, len(rows)))
    return rows[np.unique(places.round().astype(int))]


if __name__ == "__main__":
    parser = ArgumentParser(description="Make the samples in the package from recordings.")
    parser.add_argument("sample", choices=["mental_arithmetic", "sleep"])
    parser.add_argument("path", help="folder of the recordings, at any depth", metavar="PATH")
    options = parser.parse_args()
    (make_sleep if options.sample == "sleep" else make)(options.path)
