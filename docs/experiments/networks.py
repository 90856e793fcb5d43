"""EEGNet and ShallowFBCSPNet with 15 epochs on imagined movement, with control analyses.

    python docs/experiments/networks.py hands OUT --eeg FOLDER
    python docs/experiments/networks.py imagery OUT --eeg FOLDER

FOLDER contains PhysioNet's motor imagery recordings. Labeled subjects, draws and held-out subjects
are the same as in ``reproduce.py``, for the numbers ``--n`` and ``--draws``. With ``--controls``,
this number of draws of four labeled subjects is also run with a high-pass filter at 7 Hz, and with
frontal channels regressed out. OUT receives the scores of every fit. An interrupted command resumes
when it is run again. Writes ``docs/measured/networks/RESULT.csv``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from question import SHORT
from reproduce import ask_for, measure
from stored_table import store_table

from braindecode_pars.evaluation import controls

MEASURED = Path(__file__).parents[1] / "measured" / "networks"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", choices=("hands", "imagery"))
    parser.add_argument("out", type=Path, help="folder of the scores")
    parser.add_argument("--eeg", type=Path, required=True)
    parser.add_argument(
        "--n", nargs="*", type=int, default=[4, 16], help="numbers of labeled subjects"
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument(
        "--controls", type=int, default=0, help="number of draws with control signals"
    )
    options = parser.parse_args()
    ask = ask_for(options.result, options.out / "encoders", options.eeg)
    wanted = [
        dict(method=method, n_train_subjects=n, seed=seed)
        for n in options.n
        for seed in range(options.draws)
        for method in SHORT
    ]
    scores = measure(pd.DataFrame(wanted), ask, options.out / options.result)
    tables = [scores.assign(control="none")]
    if options.controls:
        question = ask(0)
        changed = controls(
            {method: question.classifier(method, 4) for method in SHORT},
            question.windows,
            controls=("slow", "eyes"),
            n_train_subjects=[4],
            seeds=range(options.controls),
            metrics=[question.metric],
            dataset=question.name,
            out=options.out / f"{options.result}, controls",
            equal_sizes=False,
            test_subjects=question.split["test_subjects"],
        )
        tables.append(changed[changed["control"] != "none"])
    command = f"python docs/experiments/networks.py {options.result} OUT --eeg FOLDER"
    command += f" --n {' '.join(map(str, options.n))} --draws {options.draws}"
    command += f" --controls {options.controls}" * bool(options.controls)
    store(pd.concat(tables), options.result, command)


def store(scores: pd.DataFrame, result: str, command: str) -> None:
    """Write one row per method, control, number of labeled subjects and draw."""
    keys = ["method", "control", "n_train_subjects", "seed"]
    subject_scores = scores.astype({"subject": str})  # numbers in one of the tables
    subject_scores = subject_scores[subject_scores["subject"] != "all"]
    table = subject_scores.pivot(index=keys, columns="subject", values="value").reset_index()
    MEASURED.mkdir(exist_ok=True)
    store_table(table, MEASURED / f"{result}.csv", command, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
