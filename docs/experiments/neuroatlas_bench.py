"""Score stored features with the package neuroatlas-bench, to compare its scores with ours.

    pip install --no-deps neuroatlas-bench==0.1.1
    pip install "numpy<2" scipy "scikit-learn<1.8" "pandas<3" "mne<1.14" pyyaml tqdm loguru h5py
    python neuroatlas_bench.py windows FOLDER OUT
    python neuroatlas_bench.py scores OUT

Runs in a separate environment, without braindecode_pars. ``neuroatlas_bench`` imports braindecode
and torch, which must be installed, but are not used here. ``windows`` writes the windows of the
subjects in FOLDER with the preprocessing of neuroatlas-bench. ``scores`` reads OUT/*.features.npz,
which ``eegmat_neuroatlas.py features`` writes. It writes the splits, the selected C and the
balanced accuracy of each test subject to OUT/*.scores.json, and the validation subjects of 24 and
of 36 subjects to OUT/splits.json.
"""

from __future__ import annotations

import argparse
import json
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import sklearn
from neuroatlas.benchmarking_helpers.probes.probe import train_probe
from neuroatlas.extensions.datasets.dataio.bci import get_subject_split
from neuroatlas.extensions.datasets.preprocessors.preprocess_cognitive import eegmat_subject
from neuroatlas.results import _mean_std

#: Bands in Hz, sampling rate in Hz, line frequency in Hz.
BANDS = {"4 to 40 Hz": (4.0, 40.0), "0.5 to 45 Hz": (0.5, 45.0)}
SFREQ, LINE = 128.0, 50.0
#: Options of the benchmark ``bci_cognitive``.
OPTIONS = dict(seeds=[0], probe_type="linear", max_iter=1000, class_weight=None)
C_VALUES = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]


def write_windows(folder: Path, out: Path) -> None:
    numbers = [int(re.findall(r"\d+", file.name)[0]) for file in sorted(folder.glob("*_1.edf"))]
    for name, band in BANDS.items():
        parts = [eegmat_subject(folder, n, (*band, SFREQ, LINE)) for n in numbers]
        np.savez(
            out / f"{name}.windows.npz",
            x=np.concatenate([x for x, _ in parts]),
            y=np.concatenate([y for _, y in parts]),
            subjects=np.repeat(numbers, [len(y) for _, y in parts]),
        )


def score(file: Path) -> dict:
    stored = np.load(file)
    features, y, subjects = stored["features"], stored["y"], stored["subjects"]
    names, folds = np.unique(subjects).tolist(), []
    for fold in range(len(names)):
        split = get_subject_split(names, fold=fold, n_folds="loso")
        train, valid, test = (np.isin(subjects, part) for part in split)
        parts = [array for rows in (train, valid, test) for array in (features[rows], y[rows])]
        result = train_probe(*parts, c_values=C_VALUES, **OPTIONS)
        scored = result.metrics["best_test"]
        folds.append(
            dict(
                train=sorted(split[0]),
                valid=split[1],
                test=split[2],
                C=result.metrics["C"],
                balanced_accuracy=scored["balanced_accuracy"],
                kappa=scored["cohen_kappa"],
            )
        )
    mean, sd = _mean_std([fold["balanced_accuracy"] for fold in folds])
    package = "neuroatlas-bench"
    versions = {package: version(package), "scikit-learn": sklearn.__version__}
    return dict(versions=versions, mean=mean, sd=sd, folds=folds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["windows", "scores"])
    parser.add_argument("folders", type=Path, nargs="+")
    options = parser.parse_args()
    if options.step == "windows":
        write_windows(*options.folders)
        return
    [out] = options.folders
    splits = {
        n: [get_subject_split(range(n), fold, n_folds="loso")[1] for fold in range(n)]
        for n in (24, 36)
    }
    (out / "splits.json").write_text(json.dumps({"validation": splits}))
    for file in sorted(out.glob("*.features.npz")):
        result = score(file)
        target = file.with_name(file.name.replace("features.npz", "scores.json"))
        target.write_text(json.dumps(result))
        print(target.name, round(result["mean"], 6), round(result["sd"], 6), flush=True)


if __name__ == "__main__":
    main()
