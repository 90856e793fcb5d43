"""Make the sample from the recordings of EEGMAT.

``python docs/experiments/make_sample.py PATH`` reads the files of EEGMAT below
the folder PATH, and writes ``recordings.npz`` into the package.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars.datasets import eegmat
from braindecode_pars.datasets.sample import CONDITIONS, FILE, SECONDS, STEP

__all__ = ["make", "samples_of"]

SUBJECTS = tuple(f"Subject{number:02d}" for number in range(24))

#: Over frontal, parietal and posterior temporal cortex, which work in mental arithmetic. No label
#: was used: Fp1, Fp2, F7 and F8 have the most power below 3 Hz (eyes), and these with T3 and T4 in
#: some recordings the most above 30 Hz (muscles).
CHANNELS = ("F3", "Fz", "F4", "T5", "P3", "Pz", "P4", "T6")

SFREQ = 128.0


def make(path: str | Path, file: Path = FILE) -> None:
    """Write the sample as an archive of NumPy arrays, without pickled objects.

    Parameters
    ----------
    path : path
        Folder of the recordings of EEGMAT, at any depth.
    file : Path
        Archive to write.

    Examples
    --------
    >>> from braindecode_pars.datasets.sample.make import make
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
    """Return the samples of some subjects, as they are in the archive.

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
    >>> from braindecode_pars.datasets.sample.make import samples_of
    >>> samples = samples_of("eegmat", ["Subject00"])  # doctest: +SKIP
    """
    # Whole recordings are filtered, so that the ends of a minute are not those of a filter.
    windows = eegmat.load(
        path,
        subjects,
        window_seconds=SECONDS,
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
    volts = np.array([[minutes[subject, name] for name in CONDITIONS] for subject in subjects])
    return np.rint(volts / STEP).astype(np.int16)


def _minute(recording: EEGWindowsDataset) -> np.ndarray:
    """Return the last minute of rest, or the first one of arithmetic: those nearest in time."""
    signals = recording.raw.get_data(list(CHANNELS))
    n_times = round(SECONDS * SFREQ)
    is_rest = recording.description["condition"] == "rest"
    return signals[:, -n_times:] if is_rest else signals[:, :n_times]


if __name__ == "__main__":
    parser = ArgumentParser(description="Make the sample from the recordings of EEGMAT.")
    parser.add_argument("path", help="folder of the recordings, at any depth", metavar="PATH")
    make(parser.parse_args().path)
