"""Tables of ``docs/measured/few_labels``: frozen features with few labeled subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pandas as pd
from stored_scores import (
    DETECTABLE,
    DIFFERENCE,
    HIGHER,
    MEASURED,
    P_HOLM,
    difference_cell,
    n_higher_cell,
    result_scores,
)

from braindecode_pars.baselines import CENTERED
from braindecode_pars.evaluation import paired_tests
from braindecode_pars.evaluation.paired_tests import holm

__all__ = [
    *("BASELINES", "against_baselines", "few_labels_scores", "fine_tuned", "larger"),
    *("long_scores", "means", "score_cell"),
]

FOLDER = MEASURED / "few_labels"

#: Baselines that the encoder ``small`` is compared with.
BASELINES = ("log band power", "tangent space", "hand-crafted features", "random encoder")
#: Methods in the order of the tables. Several pretraining seeds count as one method.
_METHODS = (*BASELINES, "SpectralMAE", "PARS without overlap", "noise", "small", "feature ensemble")


def few_labels_scores(name: str) -> pd.DataFrame:
    """Return tidy scores of a task, with the columns ``centered`` and ``pretraining_seed``."""
    return long_scores(FOLDER / f"{name}.csv")


@cache
def long_scores(file: Path) -> pd.DataFrame:
    """Return tidy scores of a file with one column per subject.

    A method with several pretraining seeds is stored as ``name, seed 1``.
    """
    wide = pd.read_csv(file, comment="#")
    keys = ["method", "n_train_subjects", "seed"]
    scores = wide.melt(keys, var_name="subject", value_name="value")
    scores["centered"] = scores["method"].str.endswith(CENTERED)
    plain = scores["method"].str.removesuffix(CENTERED)
    parts = plain.str.extract(r"^(?P<method>.*?)(?:, seed (?P<seed>\d+))?$")
    scores["method"] = parts["method"]
    # The name of the first of several seeds has no seed. NaN if there is at most one pretraining.
    has_several = parts["method"].isin(parts.dropna()["method"])
    scores["pretraining_seed"] = parts["seed"].astype(float).fillna(0).where(has_several)
    design = dict(protocol="label_efficiency", dataset=file.stem, metric="balanced_accuracy")
    return scores.assign(**design)


def means(name: str, *, centered: bool) -> pd.DataFrame:
    """Return mean ± SD over subjects, by method and number of labeled subjects.

    For several pretraining seeds, the lowest and the highest mean follow in parentheses.
    """
    scores = few_labels_scores(name)
    scores = scores[scores["centered"] == centered]
    rows = {}
    for method in _METHODS:
        method_scores = scores[scores["method"] == method]
        rows[_title(method, method_scores)] = {
            f"{n} labeled subjects": score_cell(part)
            for n, part in method_scores.groupby("n_train_subjects")
        }
    return pd.DataFrame(rows).T.rename_axis("method").reset_index()


def _title(method: str, scores: pd.DataFrame) -> str:
    n_seeds = scores["pretraining_seed"].nunique()
    return f"{method} ({n_seeds} pretraining seeds)" if n_seeds > 1 else method


def score_cell(part: pd.DataFrame) -> str:
    """Format mean ± SD over subjects, and the range of means over pretraining seeds."""
    subjects = part.groupby("subject")["value"].mean()
    text = f"{subjects.mean():.3f} ± {subjects.std():.3f}"
    if part["pretraining_seed"].nunique() > 1:
        seed_means = part.groupby("pretraining_seed")["value"].mean()
        text += f" ({seed_means.min():.3f} to {seed_means.max():.3f})"
    return text


def against_baselines(
    name: str, method: str = "small", *, centered: bool, numbers: Iterable[int] = (2, 4, 8)
) -> pd.DataFrame:
    """Test the difference of a method from each baseline.

    Subjects, draws and pretraining seeds are crossed random effects; p-values are Holm-corrected
    over the table.
    """
    scores = few_labels_scores(name)
    scores = scores[scores["centered"] == centered]
    tests = {}
    for n in numbers:
        for baseline in BASELINES:
            is_pair = scores["method"].isin([method, baseline])
            pair = scores[scores["n_train_subjects"].eq(n) & is_pair]
            tests[n, baseline] = _test(pair, method, baseline)
    return _test_table(tests, f"{method} compared with")


def fine_tuned(name: str) -> pd.DataFrame:
    """Compare the network with the encoder ``small`` and training from scratch, in the same draws.

    Numbers of labeled subjects without a stored score of training from scratch are skipped.
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
    return _test_table(tests, f"{tuned['method'].iloc[0]} compared with")


def larger(names: Mapping[str, str], n: int = 4, *, centered: bool) -> pd.DataFrame:
    """Compare encoders that were pretrained on a GPU with ``small``, which has three seeds.

    ``names`` maps titles to tasks, and ``n`` is the number of labeled subjects. p-values are
    Holm-corrected over the table.
    """
    tests = {}
    for title, name in names.items():
        larger_scores = few_labels_scores(f"{name}_larger")
        both = pd.concat([larger_scores, few_labels_scores(name)]).assign(dataset=name)
        both = both[both["centered"].eq(centered) & both["n_train_subjects"].eq(n)]
        for method in larger_scores["method"].unique():
            pair = both[both["method"].isin([method, "small"])]
            tests[title, method] = _test(pair, method, "small")
    return _test_table(tests, "encoder compared with small").rename(
        columns={"labeled subjects": "task"}
    )


def _test(pair: pd.DataFrame, method: str, other: str) -> pd.Series:
    test = paired_tests(pair, "balanced_accuracy", against=other).iloc[0].copy()
    means = pair.groupby("method")["value"].mean()
    test["means"] = f"{means[method]:.3f}, {means[other]:.3f}"
    return test


def _test_table(tests: dict, title: str) -> pd.DataFrame:
    """Format tests by number of labeled subjects and method; ``title`` heads the methods."""
    p_values = holm([test["p"] for test in tests.values()])
    return pd.DataFrame(
        [
            {
                "labeled subjects": str(n),
                title: other,
                "mean scores of the two methods": test["means"],
                DIFFERENCE: difference_cell(test),
                HIGHER: n_higher_cell(test),
                P_HOLM: f"{p:.2g}",
                DETECTABLE: f"{test['detectable']:.3f}",
            }
            for ((n, other), test), p in zip(tests.items(), p_values, strict=True)
        ]
    )
