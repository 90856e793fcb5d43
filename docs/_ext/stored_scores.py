"""Tables of means and standard deviations of stored scores, and the provenance of the scores.

The files contain tidy scores, as written by the protocols of the package. Lines at the top that
start with ``#`` contain the command, the date and the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from braindecode_pars.evaluation import paired_tests, score_table
from braindecode_pars.evaluation.paired_tests import holm

__all__ = [
    *("DETECTABLE", "DIFFERENCE", "HIGHER", "P_HOLM"),
    "RESULTS",
    "Result",
    "averaged_seeds",
    "difference_cell",
    "fine_tuning",
    "gain",
    "n_higher_cell",
    "provenance",
    "read_scores",
    "result_scores",
    "table",
    "tests_against",
    "variants",
]

MEASURED = Path(__file__).parents[1] / "measured"

#: Column heads of tables of tests.
DIFFERENCE = "difference (uncorrected 95 % CI)"
HIGHER = "subjects with a positive difference"
P_HOLM = "p (Holm)"
DETECTABLE = "minimum detectable difference"


@dataclass
class Result:
    """Metric and design of a result, for figures and tables of its stored scores.

    Attributes
    ----------
    label : str
        Name of the metric.
    chance : float
        Chance level of the metric.
    own_subjects : bool
        Whether each seed has its own subjects.
    """

    label: str
    chance: float
    own_subjects: bool = False


#: Results by name, which is the name of the page, of the file of scores and of the command.
RESULTS = {
    "control": Result("balanced accuracy", 0.5, own_subjects=True),
    "nights": Result("Cohen's kappa", 0.0, own_subjects=True),
    "arithmetic": Result("balanced accuracy", 0.5),
    "hands": Result("balanced accuracy", 0.5),
    "imagery": Result("balanced accuracy", 0.5),
}


def difference_cell(test: pd.Series) -> str:
    """Format a mean difference with its uncorrected 95 % confidence interval."""
    return f"{test['mean_difference']:+.3f} ({test['ci_low']:+.3f} to {test['ci_high']:+.3f})"


def result_scores(name: str) -> pd.DataFrame:
    """Return the stored scores of a result."""
    return read_scores(MEASURED / f"{name}.csv", RESULTS[name].own_subjects)


def read_scores(file: Path, own_subjects: bool = False) -> pd.DataFrame:
    """Read stored scores; with ``own_subjects``, each seed has its own subjects."""
    scores = pd.read_csv(file, comment="#", dtype={"subject": str})
    if own_subjects:
        # Rows of subject "all" are scores over all subjects, and keep their name.
        is_subject = scores["subject"] != "all"
        scores.loc[is_subject, "subject"] = scores["seed"].astype(str) + "-" + scores["subject"]
    return scores


def provenance(files: list[Path]) -> list[str]:
    """Return the unique header lines of the files: commands first, then dates and machines."""
    lines = [
        line.removeprefix("#").strip()
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    # Lines on date and machine begin with the year.
    return sorted(dict.fromkeys(lines), key=lambda line: line[:1].isdigit())


def table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean ± SD of the first metric, by method and number of labeled subjects."""
    first = score_table(scores)[scores["metric"].iloc[0]]
    wide = first.droplevel("dataset").unstack("n_train_subjects", sort=False)
    wide.columns = [f"{n} labeled subjects" for n in wide.columns]
    return wide.fillna("")  # some methods were not run with every number of labeled subjects


def averaged_seeds(scores: pd.DataFrame) -> str:
    """Describe how many draws were averaged per subject, and which methods have more draws."""
    keys = ["subject", "n_train_subjects", "method"]
    seeds = scores.groupby(keys, sort=False)["seed"].nunique().groupby(keys[1:], sort=False).min()
    few, many = seeds.min(), seeds.max()
    if many == 1:
        return ""
    text = f". The score of a subject is the mean over {few} draws of labeled subjects"
    for n, more in seeds[seeds > few].groupby("n_train_subjects"):
        methods = " and ".join(f'"{method}"' for method in more.index.unique("method"))
        text += f" ({many} draws for {methods} with {n} labeled subjects)"
    return text


def tests_against(scores: pd.DataFrame, other: str) -> pd.DataFrame:
    """Test the difference of each method from a reference method, in the first metric.

    Returns
    -------
    pandas.DataFrame of str
        One row per method and number of labeled subjects that both methods have. p-values are
        Holm-corrected over all rows; confidence intervals are uncorrected. The minimum detectable
        difference is the difference that an uncorrected test detects with 80 % power.
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
                DIFFERENCE: difference_cell(test),
                HIGHER: n_higher_cell(test),
                P_HOLM: f"{p:.2g}",
                DETECTABLE: f"{test['detectable']:.3f}",
            }
            for ((method, n), test), p in zip(tests.items(), p_values, strict=True)
        ]
    )


@cache
def _result_differences(name: str) -> pd.DataFrame:
    """Return the differences from training from scratch, by method and number of subjects."""
    tests = tests_against(result_scores(name), "from scratch")
    return tests.set_index(["method", "labeled subjects"])


def gain(name: str, method: str, n: int) -> str:
    """Format the difference from training from scratch with its interval and p-value."""
    test = _result_differences(name).loc[(method, str(n))]
    difference, interval = test[DIFFERENCE][:-1].split(" (")
    return f"{difference} (uncorrected 95 % CI {interval}; Holm-corrected p = {test[P_HOLM]})"


def variants(rows: list[list[str]]) -> pd.DataFrame:
    """Return means and standard errors over draws of variants on development subjects.

    Parameters
    ----------
    rows : list of list of str
        A description, and names in ``development.csv``; an empty name results in an empty cell.
    """
    stored = pd.read_csv(MEASURED / "development.csv", comment="#")
    draws = stored.groupby("variant")["balanced_accuracy"]
    known = {name: f"{values.mean():.3f} ± {values.sem():.3f}" for name, values in draws}
    return pd.DataFrame(
        [[text, *(known[name] if name else "" for name in names)] for text, *names in rows]
    )


def fine_tuning() -> pd.DataFrame:
    """Return means and standard errors over draws, by method, task and number of subjects."""
    stored = pd.read_csv(MEASURED / "fine_tuning.csv", comment="#")
    draws = stored.groupby(["method", "task", "n_labeled"], sort=False)["score"]
    shown = draws.agg(
        lambda values: f"{values.mean():.3f} ± {values.sem():.3f}".removesuffix(" ± nan")
    )
    wide = shown.unstack(["task", "n_labeled"], sort=False).fillna("")
    wide.columns = [f"{task}, {n} labeled" for task, n in wide.columns]
    return wide.reset_index()


def _test(scores: pd.DataFrame, method: str, other: str) -> pd.Series:
    """Test the difference between a method and a reference method."""
    pair = scores[scores["method"].isin([method, other])]
    return paired_tests(pair, scores["metric"].iloc[0], against=other).iloc[0]


def n_higher_cell(test: pd.Series) -> str:
    """Format the number of subjects with a positive difference."""
    return f"{test['wins']} of {test['n_subjects']}"
