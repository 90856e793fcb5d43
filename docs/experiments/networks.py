"""EEGNet and ShallowFBCSPNet with 15 epochs on imagined movement, and what they use.

    python docs/experiments/networks.py hands OUT --eeg FOLDER
    python docs/experiments/networks.py imagery OUT --eeg FOLDER

FOLDER has PhysioNet's motor imagery recordings. The labeled people, draws and scored people are
those of ``reproduce.py``, for ``--n`` and ``--draws`` of them. With ``--controls``, that many draws
of four people are scored once more without frequencies below 7 Hz, and without what frontal
channels predict. OUT gets the scores of every fit, and an interrupted command resumes from there.
At the end ``docs/measured/networks/RESULT.csv`` is written.
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
    parser.add_argument("--n", nargs="*", type=int, default=[4, 16], help="labeled people")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--controls", type=int, default=0, help="draws of the controls, such as 5")
    given = parser.parse_args()
    ask = ask_for(given.result, given.out / "encoders", given.eeg)
    wanted = [
        dict(method=method, n_train_subjects=n, seed=seed)
        for n in given.n
        for seed in range(given.draws)
        for method in SHORT
    ]
    scores = measure(pd.DataFrame(wanted), ask, given.out / given.result)
    tables = [scores.assign(control="none")]
    if given.controls:
        question = ask(0)
        changed = controls(
            {method: question.classifier(method, 4) for method in SHORT},
            question.windows,
            controls=("slow", "eyes"),
            n_train_subjects=[4],
            seeds=range(given.controls),
            metrics=[question.metric],
            dataset=question.name,
            out=given.out / f"{given.result}, controls",
            equal_sizes=False,
            test_subjects=question.split["test_subjects"],
        )
        tables.append(changed[changed["control"] != "none"])
    command = f"python docs/experiments/networks.py {given.result} OUT --eeg FOLDER"
    command += f" --n {' '.join(map(str, given.n))} --draws {given.draws}"
    command += f" --controls {given.controls}" * bool(given.controls)
    store(pd.concat(tables), given.result, command)


def store(scores: pd.DataFrame, result: str, command: str) -> None:
    """Write one row for each method, control, number of labeled people and draw."""
    keys = ["method", "control", "n_train_subjects", "seed"]
    each = scores.astype({"subject": str})  # numbers in one of the tables
    each = each[each["subject"] != "all"]
    table = each.pivot(index=keys, columns="subject", values="value").reset_index()
    MEASURED.mkdir(exist_ok=True)
    store_table(table, MEASURED / f"{result}.csv", command, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
