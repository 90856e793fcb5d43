"""Measure a result of the site again, and print it beside the stored scores.

    python docs/experiments/reproduce.py control --out OUT
    python docs/experiments/reproduce.py nights --out OUT
    python docs/experiments/reproduce.py arithmetic --out OUT --eeg FOLDER
    python docs/experiments/reproduce.py hands --out OUT --eeg FOLDER
    python docs/experiments/reproduce.py imagery --out OUT --eeg FOLDER

FOLDER has PhysioNet's motor imagery recordings. Encoders that are not in the package are pretrained
first, into OUT/encoders. Then every score in docs/measured is computed again, into OUT/RESULT. An
interrupted command resumes when it is given again. A part is chosen by the names of methods,
numbers of labeled subjects and seeds; what one part has fitted, another does not fit again:

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
#: Columns that name a score.
KEYS = ["method", "n_train_subjects", "seed", "subject"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", choices=RESULTS)
    parser.add_argument("--out", type=Path, required=True, help="folder of encoders and scores")
    parser.add_argument("--eeg", type=Path, help="folder of PhysioNet's motor imagery recordings")
    parser.add_argument("--only", nargs="*", metavar="METHOD")
    parser.add_argument("--n", nargs="*", type=int, help="numbers of labeled subjects")
    parser.add_argument("--seeds", nargs="*", type=int)
    given = parser.parse_args(arguments)
    if given.result in ("hands", "imagery") and given.eeg is None:
        parser.error(f"{given.result} needs --eeg, the folder of the recordings")
    if given.eeg is not None and not given.eeg.is_dir():
        parser.error(f"--eeg {given.eeg} is not a folder")
    stored = pd.read_csv(MEASURED / f"{given.result}.csv", comment="#", dtype={"subject": str})
    try:
        wanted = choose(stored, given.only, given.n, given.seeds)
    except ValueError as error:
        parser.error(str(error))
    out = given.out / given.result
    scores = measure(wanted, ask_for(given.result, given.out / "encoders", given.eeg), out)
    scores.to_csv(out / "scores.csv", index=False)
    print(compare(wanted, scores))


def choose(
    stored: pd.DataFrame, methods: list[str] | None, n: list[int] | None, seeds: list[int] | None
) -> pd.DataFrame:
    """Return the stored scores of a part; what is not given is not restricted.

    Raises
    ------
    ValueError
        When no score is stored of one of the values, or of their combination.
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
    """Compute the scores in ``wanted`` again: of the same methods, numbers and seeds."""
    scores = []
    for seed, of_seed in wanted.groupby("seed"):
        question = ask(seed)
        for n, rows in of_seed.groupby("n_train_subjects"):
            found = label_efficiency(
                {method: question.classifier(method, n) for method in _methods(rows)},
                question.windows,
                n_train_subjects=[n],
                seeds=[seed],
                metrics=[question.metric],
                dataset=question.name,
                out=out / f"{n} labeled, seed {seed}",
                **question.split,
            )
            scores.append(found[found["method"].isin(rows["method"])])
    return pd.concat(scores).astype({"subject": str})


def compare(stored: pd.DataFrame, scores: pd.DataFrame) -> str:
    """Return stored and new means over subjects and seeds, and the largest difference of a score.

    Raises
    ------
    ValueError
        When a score is stored that was not computed, or the reverse.
    """
    both = stored.merge(scores, "outer", on=KEYS, suffixes=("_stored", "_new"), indicator=True)
    missing = both[both["_merge"] != "both"]
    if len(missing):
        raise ValueError(f"{len(missing)} scores are only stored, or only new:\n{missing[KEYS]}")
    both["difference"] = (both["value_new"] - both["value_stored"]).abs()
    each = both[both["subject"] != "all"].rename(columns=dict(value_stored="stored"))
    groups = each.rename(columns=dict(value_new="new")).groupby(KEYS[:2], sort=False)
    table = groups[["stored", "new"]].mean()
    table["largest difference"] = groups["difference"].max()
    equal = int((each["difference"] < 1e-6).sum())
    return (
        f"{table.sort_index(level=1, sort_remaining=False).round(4).to_string()}\n\n"
        f"{equal} of {len(each)} scores of subjects are equal. Largest difference of one: "
        f"{each['difference'].max():.4f}; of a mean: "
        f"{(table['new'] - table['stored']).abs().max():.4f}."
    )


def ask_for(result: str, encoders: Path, eeg: Path | None) -> Callable[[int], Question]:
    """Return a function that makes the question of a seed.

    The results of real recordings share their encoders; each simulation has its own.
    """
    if result in ("control", "nights"):
        return lambda seed: getattr(simulated, result)(seed, encoders / result)
    question = getattr(real_recordings, result)(encoders, eeg)
    return lambda seed: question


def _methods(scores: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(scores["method"]))


if __name__ == "__main__":
    main()
