"""Tables of ``docs/measured/few_labels``: frozen features with the labels of few people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pandas as pd
from stored_scores import MEASURED, difference_cell, result_scores

from braindecode_pars.baselines import CENTERED
from braindecode_pars.evaluation import paired_tests
from braindecode_pars.evaluation.paired_tests import holm

__all__ = [
    *("BASELINES", "against_baselines", "few_labels_scores", "fine_tuned", "larger"),
    *("long_scores", "means", "score_cell"),
]

FOLDER = MEASURED / "few_labels"

#: What the encoder ``small`` is compared with.
BASELINES = ("log band power", "tangent space", "hand-crafted features", "random encoder")
#: Methods in the order of a table. A pretraining with three seeds is one method.
_METHODS = (*BASELINES, "SpectralMAE", "PARS without overlap", "noise", "small", "feature ensemble")


def few_labels_scores(name: str) -> pd.DataFrame:
    """Return tidy scores of a task, with the columns ``centered`` and ``pretraining_seed``."""
    return long_scores(FOLDER / f"{name}.csv")


@cache
def long_scores(file: Path) -> pd.DataFrame:
    """Return tidy scores of a file with a column for each subject.

    A method is called ``name, seed 1`` where it has several pretrainings.
    """
    wide = pd.read_csv(file, comment="#")
    keys = ["method", "n_train_subjects", "seed"]
    scores = wide.melt(keys, var_name="subject", value_name="value")
    scores["centered"] = scores["method"].str.endswith(CENTERED)
    plain = scores["method"].str.removesuffix(CENTERED)
    found = plain.str.extract(r"^(?P<method>.*?)(?:, seed (?P<seed>\d+))?$")
    scores["method"] = found["method"]
    # The first of several seeds is not in the name. NaN where there is one pretraining, or none.
    several = found["method"].isin(found.dropna()["method"])
    scores["pretraining_seed"] = found["seed"].astype(float).fillna(0).where(several)
    facts = dict(protocol="label_efficiency", dataset=file.stem, metric="balanced_accuracy")
    return scores.assign(**facts)


def means(name: str, *, centered: bool) -> pd.DataFrame:
    """Return mean and SD over subjects, a row for each method, a column for each number of people.

    Of several pretraining seeds, the lowest and the highest mean stand behind.
    """
    scores = few_labels_scores(name)
    scores = scores[scores["centered"] == centered]
    rows = {}
    for method in _METHODS:
        own = scores[scores["method"] == method]
        rows[_title(method, own)] = {
            f"{n} people": score_cell(part) for n, part in own.groupby("n_train_subjects")
        }
    return pd.DataFrame(rows).T.rename_axis("method").reset_index()


def _title(method: str, own: pd.DataFrame) -> str:
    n = own["pretraining_seed"].nunique()
    return f"{method} ({n} pretrainings)" if n > 1 else method


def score_cell(part: pd.DataFrame) -> str:
    """Return mean and SD over subjects, and the range over several pretrainings."""
    subjects = part.groupby("subject")["value"].mean()
    text = f"{subjects.mean():.3f} ± {subjects.std():.3f}"
    if part["pretraining_seed"].nunique() > 1:
        of_seeds = part.groupby("pretraining_seed")["value"].mean()
        text += f" ({of_seeds.min():.3f} to {of_seeds.max():.3f})"
    return text


def against_baselines(
    name: str, method: str = "small", *, centered: bool, numbers: Iterable[int] = (2, 4, 8)
) -> pd.DataFrame:
    """Compare a method with each baseline; subjects, draws and its pretrainings are random.

    The p-values have Holm's correction over the table.
    """
    scores = few_labels_scores(name)
    scores = scores[scores["centered"] == centered]
    tests = {}
    for n in numbers:
        for other in BASELINES:
            pair = scores[scores["n_train_subjects"].eq(n) & scores["method"].isin([method, other])]
            tests[n, other] = _test(pair, method, other)
    return _shown(tests, "against")


def fine_tuned(name: str) -> pd.DataFrame:
    """Compare the fine-tuned encoder ``small`` with the network from scratch, in the same draws.

    A number of people without a stored score from scratch is left out.
    """
    tuned = few_labels_scores(f"{name}_fine_tuned")
    scratch = result_scores(name)
    scratch = scratch[scratch["method"].eq("from scratch") & scratch["subject"].ne("all")]
    both = pd.concat([tuned, scratch.assign(dataset=name)], ignore_index=True)
    both = both.assign(dataset=name).astype({"subject": str})
    both = both[both["seed"].isin(tuned["seed"])]
    tests = {}
    for n, pair in both.groupby("n_train_subjects"):
        if pair["method"].nunique() == 2:
            tests[n, "from scratch"] = _test(pair, tuned["method"].iloc[0], "from scratch")
    return _shown(tests, "against")


def larger(names: Mapping[str, str], n: int = 4, *, centered: bool) -> pd.DataFrame:
    """Compare the encoders of a GPU with ``small``, which has three pretrainings.

    ``names`` are the tasks by their titles, and ``n`` the number of labeled people. The p-values
    have Holm's correction over the table.
    """
    tests = {}
    for title, name in names.items():
        of_gpu = few_labels_scores(f"{name}_larger")
        both = pd.concat([of_gpu, few_labels_scores(name)]).assign(dataset=name)
        both = both[both["centered"].eq(centered) & both["n_train_subjects"].eq(n)]
        for method in of_gpu["method"].unique():
            pair = both[both["method"].isin([method, "small"])]
            tests[title, method] = _test(pair, method, "small")
    return _shown(tests, "encoder").rename(columns={"people": "question"})


def _test(pair: pd.DataFrame, method: str, other: str) -> pd.Series:
    test = paired_tests(pair, "balanced_accuracy", against=other).iloc[0].copy()
    of_method = pair.groupby("method")["value"].mean()
    test["means"] = f"{of_method[method]:.3f}, {of_method[other]:.3f}"
    return test


def _shown(tests: dict, title: str) -> pd.DataFrame:
    p_values = holm([test["p"] for test in tests.values()])
    return pd.DataFrame(
        [
            {
                "people": str(n),
                title: other,
                "means": test["means"],
                "difference (95 %)": difference_cell(test),
                "ahead in": f"{test['wins']} of {test['n_subjects']}",
                "p": f"{p:.2g}",
                "detectable": f"{test['detectable']:.3f}",
            }
            for ((n, other), test), p in zip(tests.items(), p_values, strict=True)
        ]
    )
