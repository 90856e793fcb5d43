"""Compute the scores of a result again, and compare them with the stored scores.

    python docs/experiments/reproduce.py control --out OUT
    python docs/experiments/reproduce.py nights --out OUT
    python docs/experiments/reproduce.py arithmetic --out OUT --eeg FOLDER
    python docs/experiments/reproduce.py hands --out OUT --eeg FOLDER
    python docs/experiments/reproduce.py imagery --out OUT --eeg FOLDER

FOLDER contains PhysioNet's motor imagery recordings. Encoders that are not bundled are pretrained
first, into OUT/encoders. Then every score in docs/measured is computed again, into OUT/RESULT. An
interrupted command resumes when it is run again. To compute only a part, pass method names, numbers
of labeled subjects and seeds; finished fits are used again:

    python docs/experiments/reproduce.py arithmetic --out OUT --only "log band power" --n 2

Log band power, training from scratch and bundled encoders need no pretraining.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import real_recordings
import simulated
from question import Question

from braindecode_pars.evaluation import label_efficiency

MEASURED = Path(__file__).parents[1] / "measured"

RESULTS = ("control", "nights", "arithmetic", "hands", "imagery")
#: Columns that identify a score.
KEYS = ["method", "n_train_subjects", "seed", "subject"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", choices=RESULTS)
    parser.add_argument("--out", type=Path, required=True, help="folder of encoders and scores")
    parser.add_argument("--eeg", type=Path, help="folder of PhysioNet's motor imagery recordings")
    parser.add_argument("--only", nargs="*", metavar="METHOD")
    parser.add_argument("--n", nargs="*", type=int, help="numbers of labeled subjects")
    parser.add_argument("--seeds", nargs="*", type=int)
    options = parser.parse_args(arguments)
    if options.result in ("hands", "imagery") and options.eeg is None:
        parser.error(f"{options.result} requires --eeg, the folder of the recordings")
    if options.eeg is not None and not options.eeg.is_dir():
        parser.error(f"--eeg {options.eeg} is not a folder")
    stored = pd.read_csv(MEASURED / f"{options.result}.csv", comment="#", dtype={"subject": str})
    try:
        wanted = choose(stored, options.only, options.n, options.seeds)
    except ValueError as error:
        parser.error(str(error))
    out = options.out / options.result
    scores = measure(wanted, ask_for(options.result, options.out / "encoders", options.eeg), out)
    scores.to_csv(out / "scores.csv", index=False)
    print(compare(wanted, scores))


def choose(
    stored: pd.DataFrame, methods: list[str] | None, n: list[int] | None, seeds: list[int] | None
) -> pd.DataFrame:
    """Return a part of the stored scores, by method, number of labeled subjects and seed.

    Raises
    ------
    ValueError
        If no score is stored for one of the values, or for their combination.
    """
    part = stored
    for column, values in zip(KEYS, (methods, n, seeds), strict=False):
        if not values:
            continue
        known = dict.fromkeys(stored[column])
        if unknown := [str(value) for value in values if value not in known]:
            raise ValueError(
                f"no score is stored with {column} {', '.join(unknown)}; "
                f"there are {', '.join(map(str, known))}"
            )
        part = part[part[column].isin(values)]
    if part.empty:
        raise ValueError("no score is stored with this combination")
    return part


def measure(wanted: pd.DataFrame, ask: Callable[[int], Question], out: Path) -> pd.DataFrame:
    """Compute the scores in ``wanted`` again, with the same methods, numbers and seeds."""
    scores = []
    for seed, of_seed in wanted.groupby("seed"):
        question = ask(seed)
        for n, rows in of_seed.groupby("n_train_subjects"):
            new_scores = label_efficiency(
                {method: question.classifier(method, n) for method in _methods(rows)},
                question.windows,
                n_train_subjects=[n],
                seeds=[seed],
                metrics=[question.metric],
                dataset=question.name,
                out=out / f"{n} labeled, seed {seed}",
                **question.split,
            )
            scores.append(new_scores[new_scores["method"].isin(rows["method"])])
    return pd.concat(scores).astype({"subject": str})


def compare(stored: pd.DataFrame, scores: pd.DataFrame) -> str:
    """Format stored and new means, and the largest difference of a score.

    Raises
    ------
    ValueError
        If a stored score was not computed, or a computed score is not stored.
    """
    both = stored.merge(scores, "outer", on=KEYS, suffixes=("_stored", "_new"), indicator=True)
    missing = both[both["_merge"] != "both"]
    if len(missing):
        raise ValueError(f"{len(missing)} scores are only stored, or only new:\n{missing[KEYS]}")
    both["difference"] = (both["value_new"] - both["value_stored"]).abs()
    subject_scores = both[both["subject"] != "all"].rename(columns=dict(value_stored="stored"))
    groups = subject_scores.rename(columns=dict(value_new="new")).groupby(KEYS[:2], sort=False)
    table = groups[["stored", "new"]].mean()
    table["largest difference"] = groups["difference"].max()
    equal = int((subject_scores["difference"] < 1e-6).sum())
    return (
        f"{table.sort_index(level=1, sort_remaining=False).round(4).to_string()}\n\n"
        f"{equal} of {len(subject_scores)} scores of subjects are equal. "
        f"Largest difference of a score: {subject_scores['difference'].max():.4f}; of a mean: "
        f"{(table['new'] - table['stored']).abs().max():.4f}."
    )


def ask_for(result: str, encoders: Path, eeg: Path | None) -> Callable[[int], Question]:
    """Return a function that creates the classification task of a seed.

    Results with real recordings share their encoders; each simulation has its own encoders.
    """
    if result in ("control", "nights"):
        return lambda seed: getattr(simulated, result)(seed, encoders / result)
    question = getattr(real_recordings, result)(encoders, eeg)
    return lambda seed: question


def _methods(scores: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(scores["method"]))


if __name__ == "__main__":
    main()
