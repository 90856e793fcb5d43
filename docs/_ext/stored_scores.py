"""Tables of means and spreads from stored scores, and the origin of the scores.

The files contain tidy scores, as the package's protocols write them. Lines at the top that begin
with ``#`` give the command that made them, the date and the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from braindecode_pars.evaluation import paired_tests, score_table
from braindecode_pars.evaluation.paired_tests import holm

__all__ = [
    "RESULTS",
    "Result",
    "averaged_seeds",
    "difference_cell",
    "fine_tuning",
    "gain",
    "provenance",
    "read_scores",
    "result_scores",
    "table",
    "tests_against",
    "variants",
]

MEASURED = Path(__file__).parents[1] / "measured"


@dataclass
class Result:
    """What figures and tables of stored scores need to know of them.

    Attributes
    ----------
    label : str
        Name of the metric.
    chance : float
        Its chance level.
    own_subjects : bool
        Whether each seed has subjects of its own.
    """

    label: str
    chance: float
    own_subjects: bool = False


#: The results of the site: the name of a page, of a file of scores and of the command.
RESULTS = {
    "control": Result("balanced accuracy", 0.5, own_subjects=True),
    "nights": Result("Cohen's kappa", 0.0, own_subjects=True),
    "arithmetic": Result("balanced accuracy", 0.5),
    "hands": Result("balanced accuracy", 0.5),
    "imagery": Result("balanced accuracy", 0.5),
}


def difference_cell(test: pd.Series) -> str:
    """Return a mean difference with its interval, as tables show it."""
    return f"{test['mean_difference']:+.3f} ({test['ci_low']:+.3f} to {test['ci_high']:+.3f})"


def result_scores(name: str) -> pd.DataFrame:
    """Return the stored scores of a result."""
    return read_scores(MEASURED / f"{name}.csv", RESULTS[name].own_subjects)


def read_scores(file: Path, own_subjects: bool = False) -> pd.DataFrame:
    """Read stored scores; with ``own_subjects``, each seed has subjects of its own."""
    scores = pd.read_csv(file, comment="#", dtype={"subject": str})
    if own_subjects:
        # Rows of "all" subjects stay: they are no subjects.
        each = scores["subject"] != "all"
        scores.loc[each, "subject"] = scores["seed"].astype(str) + "-" + scores["subject"]
    return scores


def provenance(files: list[Path]) -> list[str]:
    """Return the lines on the origin of the files, each once: commands, then dates and machines."""
    lines = [
        line.removeprefix("#").strip()
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    # Lines on date and machine begin with the year.
    return sorted(dict.fromkeys(lines), key=lambda line: line[:1].isdigit())


def table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return means and spreads of the first metric: methods by numbers of training subjects."""
    first = score_table(scores)[scores["metric"].iloc[0]]
    wide = first.droplevel("dataset").unstack("n_train_subjects", sort=False)
    wide.columns = [f"{n} subjects" for n in wide.columns]
    return wide.fillna("")  # not every method was run with every number


def averaged_seeds(scores: pd.DataFrame) -> str:
    """Return how many seeds of a subject are averaged, and which methods have more of them."""
    keys = ["subject", "n_train_subjects", "method"]
    seeds = scores.groupby(keys, sort=False)["seed"].nunique().groupby(keys[1:], sort=False).min()
    few, many = seeds.min(), seeds.max()
    if many == 1:
        return ""
    told = f"; the {few} seeds of each are averaged first"
    for n, more in seeds[seeds > few].groupby("n_train_subjects"):
        told += f", {many} of {' and '.join(more.index.unique('method'))} with {n} subjects"
    return told


def tests_against(scores: pd.DataFrame, other: str) -> pd.DataFrame:
    """Compare each method with another one in the first metric, at each number of subjects.

    Returns
    -------
    pandas.DataFrame of str
        One row for each method and number of training subjects that both methods have. The
        p-values are corrected with Holm's method over all rows. ``detectable`` is the difference
        that the test would find with a probability of 80 %.
    """
    tests = {
        (method, n): _test(part, method, other)
        for method in dict.fromkeys(scores["method"])
        for n, part in scores.groupby("n_train_subjects")
        if method != other and {method, other} <= set(part["method"])
    }
    p_values = holm([test["p"] for test in tests.values()])
    return pd.DataFrame(
        [
            {
                "method": method,
                "labeled subjects": str(n),
                "draws": str(test["n_draws"]),
                "difference": difference_cell(test),
                "ahead in": _ahead(test),
                "p": f"{p:.2g}",
                "detectable": f"{test['detectable']:.3f}",
            }
            for ((method, n), test), p in zip(tests.items(), p_values, strict=True)
        ]
    )


@cache
def _result_differences(name: str) -> pd.DataFrame:
    """Return the differences of a result to scratch, by method and number of labeled subjects."""
    tests = tests_against(result_scores(name), "from scratch")
    return tests.set_index(["method", "labeled subjects"])


def gain(name: str, method: str, n: int) -> str:
    """Return the difference to scratch with its interval, p and what would be detectable."""
    test = _result_differences(name).loc[(method, str(n))]
    difference, interval = test["difference"][:-1].split(" (")
    return f"{difference} (95 %: {interval}; p = {test['p']}; detectable {test['detectable']})"


def variants(rows: list[list[str]]) -> pd.DataFrame:
    """Return means and standard errors over draws of what was tried on development subjects.

    Parameters
    ----------
    rows : list of list of str
        A description, and names in ``development.csv``; an empty name leaves a cell empty.
    """
    stored = pd.read_csv(MEASURED / "development.csv", comment="#")
    draws = stored.groupby("variant")["balanced_accuracy"]
    known = {name: f"{values.mean():.3f} ± {values.sem():.3f}" for name, values in draws}
    return pd.DataFrame(
        [[text, *(known[name] if name else "" for name in names)] for text, *names in rows]
    )


def fine_tuning() -> pd.DataFrame:
    """Return means and standard errors over draws: methods by tasks and numbers of people."""
    stored = pd.read_csv(MEASURED / "fine_tuning.csv", comment="#")
    draws = stored.groupby(["method", "task", "n_labeled"], sort=False)["score"]
    shown = draws.agg(
        lambda values: f"{values.mean():.3f} ± {values.sem():.3f}".removesuffix(" ± nan")
    )
    wide = shown.unstack(["task", "n_labeled"], sort=False).fillna("")
    wide.columns = [f"{task}, {n}" for task, n in wide.columns]
    return wide.reset_index()


def _test(scores: pd.DataFrame, method: str, other: str) -> pd.Series:
    """Return the test of a method minus another one."""
    pair = scores[scores["method"].isin([method, other])]
    return paired_tests(pair, scores["metric"].iloc[0], against=other).iloc[0]


def _ahead(test: pd.Series) -> str:
    """Return the number of subjects with a higher score; equal scores do not count."""
    return f"{test['wins']} of {test['n_subjects']}"
