"""Effect of smoothing over time on simulated nights, and on rest vs. imagery recordings.

    python docs/experiments/smoothing.py EEGBCI

EEGBCI is a folder for ``mne.datasets.eegbci`` with runs 4, 8 and 12 of subjects 1 to 16. A window
of 1 s is rest or imagery of a hand, according to the annotation at its center; in this paradigm, 4
s of each alternate. The simulated nights are 4 hours of 16 subjects; as a control, the windows of
each night are also scored in random order. Both use a logistic regression on log band power. Writes
mean and standard deviation over test subjects, averaged over draws of labeled subjects, to
``docs/measured/smoothing.csv``. It takes some minutes on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset
from stored_table import store_table

from braindecode_pars.baselines import make_methods
from braindecode_pars.datasets import simulated
from braindecode_pars.evaluation import features_computed_once, label_efficiency
from braindecode_pars.recordings.cutting import fixed_windows

MEASURED = Path(__file__).parents[1] / "measured"
CHANNELS = ["C3", "C4", "Cz", "F3", "F4", "P3", "P4"]
N_TRAIN, SEEDS = (2, 8), range(3)


def main(folder: str) -> None:
    nights = simulated.sleep(n_subjects=16, hours=4, n_chans=2)
    tables = [
        scores("simulated nights", nights),
        scores("rest and imagery", imagery(folder)),
        scores("simulated nights in random order", shuffled(nights)),
    ]
    command = "python docs/experiments/smoothing.py EEGBCI"
    table = pd.concat(tables).round(3)
    store_table(table, MEASURED / "smoothing.csv", command, index=False)


def scores(name: str, windows: BaseConcatDataset) -> pd.DataFrame:
    """Return mean and SD of raw and smoothed predictions, and of their difference."""
    with features_computed_once():
        found = label_efficiency(
            make_methods(["band-power"], smoothing=True),
            windows,
            n_train_subjects=N_TRAIN,
            cv=4,
            seeds=SEEDS,
            metrics=["kappa", "balanced_accuracy"],
            verbose=0,
        )
    found = found[found["subject"] != "all"]
    keys = ["metric", "n_train_subjects", "subject", "method"]
    of_subjects = found.groupby(keys)["value"].mean().unstack()
    of_subjects.columns = ["raw", "smoothed"]
    of_subjects["difference"] = of_subjects["smoothed"] - of_subjects["raw"]
    summary = of_subjects.groupby(level=[0, 1]).agg(["mean", "std"])
    summary.columns = ["_".join(column) for column in summary.columns]
    better = (of_subjects["difference"] > 0).groupby(level=[0, 1]).sum()
    summary = summary.assign(n_better=better, n_subjects=16).reset_index()
    summary.insert(0, "windows", name)
    print(summary.to_string(), flush=True)
    return summary


def shuffled(nights: BaseConcatDataset) -> BaseConcatDataset:
    """Return the nights with the windows of each in random order."""
    rng = np.random.default_rng(0)
    recordings = []
    for night in nights.datasets:
        order = rng.permutation(len(night))
        signals = np.concatenate([night[i][0] for i in order], axis=1)
        raw = mne.io.RawArray(signals, night.raw.info, verbose="error")
        windows = fixed_windows(raw, 30.0, night.metadata["target"].to_numpy()[order])
        windows.set_description({"subject": night.description["subject"]})
        recordings.append(windows)
    return BaseConcatDataset(recordings)


def imagery(folder: str) -> BaseConcatDataset:
    """Return adjacent windows of 1 s, of rest (0) and imagery (1)."""
    recordings = []
    for subject in range(1, 17):
        options = dict(path=folder, update_path=False, verbose="error")
        for file in mne.datasets.eegbci.load_data(subject, [4, 8, 12], **options):
            raw = mne.io.read_raw_edf(file, preload=True, verbose="error")
            mne.datasets.eegbci.standardize(raw)
            raw.pick(CHANNELS).filter(0.5, 45, verbose="error")
            onsets, names = raw.annotations.onset, raw.annotations.description

            def labels(starts, stops, onsets=onsets, names=names):
                center = (starts + stops) / 2
                return (names[np.searchsorted(onsets, center, "right") - 1] != "T0").astype(int)

            windows = fixed_windows(raw, 1.0, labels)
            windows.set_description({"subject": subject})
            recordings.append(windows)
    return BaseConcatDataset(recordings)


if __name__ == "__main__":
    main(sys.argv[1])
