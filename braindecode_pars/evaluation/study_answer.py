"""The answer of a study: tests of its scores, decisions about people, and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from braindecode_pars._common.tables import POOLED
from braindecode_pars.baselines import CENTRED
from braindecode_pars.evaluation import metrics, study_plan
from braindecode_pars.evaluation.controls import LEVEL, joined
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.evaluation.paired_tests import holm, paired_tests

CHANCE = "chance level"
METRIC = "balanced_accuracy"
#: The tests where no pretrained method could be fitted.
NO_TESTS = pd.DataFrame(
    columns=["method_a", "method_b", "n_train_subjects", "question", "mean_difference", "p"]
)


def judged(
    scores: pd.DataFrame, methods: Mapping[str, study_plan.Method], chance: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Test scores against chance level, untrained encoders and the best simple method.

    Returns
    -------
    levels, tests : DataFrame
        Of a :class:`~braindecode_pars.evaluation.Study`.
    """
    rows = scores[scores["subject"] != POOLED]
    levels, tests = [], []
    for n, of_n in rows.groupby("n_train_subjects"):
        guess = of_n[of_n["method"] == of_n["method"].iloc[0]].assign(method=CHANCE, value=chance)
        against = paired_tests(pd.concat([of_n, guess]), METRIC, against=CHANCE)
        levels.append(against.assign(n_train_subjects=n))
        means = of_n.groupby("method")["value"].mean()
        for name in means.index:
            if methods[name].kind not in ("pretrained", "vote"):
                continue
            simple = [
                other
                for other in means.index
                if methods[other].kind == "simple"
                and other.endswith(CENTRED) == name.endswith(CENTRED)
            ]
            pairs = [("baseline", means[simple].idxmax())] if simple else []
            if methods[name].twin in means.index:
                pairs.append(("pretraining", methods[name].twin))
            for question, other in pairs:
                pair = of_n[of_n["method"].isin([name, other])]
                test = paired_tests(pair, METRIC, against=other)
                tests.append(test.assign(n_train_subjects=n, question=question))
    level = pd.concat(levels, ignore_index=True)
    level = level.rename(columns={"method_a": "method", "mean_difference": "mean"})
    level[["mean", "ci_low", "ci_high"]] += chance
    level[["ci_low", "ci_high"]] = level[["ci_low", "ci_high"]].clip(0, 1)
    level["p_holm"] = holm(level["p"])
    level = level[["method", "n_train_subjects", "mean", "ci_low", "ci_high", "p", "p_holm"]]
    test = pd.concat(tests, ignore_index=True) if tests else NO_TESTS.copy()
    test["p_holm"] = test.groupby("n_train_subjects")["p"].transform(holm)
    level.attrs = test.attrs = {}
    return level, test


def weighted(scores: pd.DataFrame, corpus: Corpus) -> pd.DataFrame:
    """Weigh subjects that have one class each so that every class counts the same."""
    labelled = corpus.labeled
    people = corpus.groups[labelled].astype(str)
    labels = pd.Series(corpus.y[labelled], people).groupby(level=0).first()
    weights = len(labels) / (labels.nunique() * labels.map(labels.value_counts()))
    return scores.assign(value=scores["value"] * scores["subject"].astype(str).map(weights))


def decisions_of(results: Iterable[Mapping[str, Any]], classes: Sequence[str]) -> pd.DataFrame:
    """Return each person's class in each draw: that with the highest mean probability."""
    parts = []
    for result in results:
        own, key = result["probabilities"], result["key"]
        shares = pd.get_dummies(pd.Series(result["predicted"]))
        if "columns" in own:
            shares = pd.DataFrame(dict(zip(own["classes"], own["columns"], strict=True)))
        shares = shares.astype(float).rename(columns=str).reindex(columns=classes, fill_value=0)
        by_person = shares.groupby(result["subjects"]).mean()
        true = pd.Series(result["true"]).map(str).groupby(result["subjects"]).first()
        told = dict(method=key["method"], seed=key["seed"], true=true)
        parts.append(by_person.assign(predicted=by_person.idxmax(axis=1), **told))
    return pd.concat(parts)


def scores_of_people(decisions: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Score the decisions on people; the scores are the means of draws."""
    rows = []
    for (method, _), own in decisions.groupby(["method", "seed"], sort=False):
        true, predicted = own["true"].to_numpy(), own["predicted"].to_numpy()
        shares = own[classes].to_numpy()
        given = dict(probabilities=shares / shares.sum(axis=1, keepdims=True), classes=classes)
        row = dict(method=method, right=(true == predicted).sum(), people=len(own))
        scores = ("balanced_accuracy", "auroc")
        row |= {name: metrics.score_predictions(true, predicted, name, **given) for name in scores}
        rows.append(row)
    table = pd.DataFrame(rows).groupby("method", as_index=False).mean()
    return table.sort_values("balanced_accuracy", ascending=False, ignore_index=True)


def ahead(tests: pd.DataFrame) -> pd.Series:
    """Whether the first method of each test is significantly ahead."""
    return (tests["p_holm"] < LEVEL) & (tests["mean_difference"] > 0)


def ahead_in(tests: pd.DataFrame, question: str) -> set[str]:
    """Return the methods that are significantly better in the tests of a question."""
    return set(tests[ahead(tests) & (tests["question"] == question)]["method_a"])


def leading(tests: pd.DataFrame) -> tuple[str, set[str]]:
    """Return what pretraining did, and the pretrained methods that an answer may be about.

    They are those that outperform their untrained encoder and the best simple method, or else those
    that do the first, or else all.
    """
    helped, better = (ahead_in(tests, question) for question in ("pretraining", "baseline"))
    if helped & better:
        return "both", helped & better
    pretrained = set(tests["method_a"][tests["question"] == "pretraining"])
    return ("untrained", helped) if helped else ("none", pretrained)


def answer_of(levels: pd.DataFrame, tests: pd.DataFrame, chance: float) -> str:
    """Say whether pretraining helped, with the interval of the difference.

    Parameters
    ----------
    levels, tests : DataFrame
        Of a :class:`~braindecode_pars.evaluation.Study`.
    chance : float
        Chance level.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation.study_answer import answer_of
    >>> levels = pd.DataFrame(
    ...     [dict(method="small", n_train_subjects=4, mean=0.51, ci_low=0.47, ci_high=0.55,
    ...           p=0.6, p_holm=0.6)]
    ... )
    >>> answer_of(levels, pd.DataFrame(), 0.5).split(":")[0]
    'No method is above chance level, so the question has no answer here'
    """
    above = levels[(levels["p_holm"] < LEVEL) & (levels["mean"] > chance)]
    n = int(levels["n_train_subjects"].max())
    last = levels[levels["n_train_subjects"] == n].set_index("method")
    best = last.loc[last["mean"].idxmax()]
    if above.empty:
        return (
            "No method is above chance level, so the question has no answer here: there is no "
            f"difference from chance level. With {n} labelled people the best, {best.name}, has "
            f"{_score(best)}; chance level is {chance:.2f}."
        )
    asked = set(tests["question"]) if len(tests) else set()
    if len(asked) < 2:
        missing = "simple method" if "pretraining" in asked else "pretrained encoder"
        return (
            f"No {missing} took part. With {n} labelled people the best method, "
            f"{best.name}, has a balanced accuracy of {_score(best)}."
        )
    kinds = {int(m): leading(part)[0] for m, part in tests.groupby("n_train_subjects")}
    kind = kinds.pop(n)
    sentences = [_at(n, tests[tests["n_train_subjects"] == n], last)]
    if same := [str(other) for other, found in kinds.items() if found == kind]:
        sentences.append(f"The answer is the same with {joined(same, ' and ')}.")
    sentences += [f"With {m} {_IN_SHORT[other]}." for m, other in kinds.items() if other != kind]
    sentences.append(f"The best of all methods is {best.name} with {_score(best)}.")
    return " ".join(sentences).replace(CENTRED, " (centred by subject)")


#: What pretraining did: outperform both, the untrained encoder only, or neither.
_IN_SHORT = {
    "both": "it is ahead of the untrained encoder and of the best simple method",
    "untrained": "it is ahead of the untrained encoder, and not of the best simple method",
    "none": "no difference from the untrained encoder was found",
}


def _at(n: int, tests: pd.DataFrame, levels: pd.DataFrame) -> str:
    """Return the answer for one number of labelled people."""
    rows = {
        q: tests[tests["question"] == q].set_index("method_a") for q in ("pretraining", "baseline")
    }
    kind, methods = leading(tests)
    name = levels["mean"][levels.index.isin(methods)].idxmax()
    untrained, simple = rows["pretraining"].loc[name], rows["baseline"].loc[name]
    score = (
        f"With {n} labelled people, {name} has a balanced accuracy of {_score(levels.loc[name])}"
    )
    over = f"{_difference(untrained)} without this pretraining"
    against = f"{_difference(simple)} {simple['method_b']}, the best simple method"
    if kind == "both":
        return f"Yes, pretraining helps. {score}: {over}, and {against}."
    if kind == "none":
        return (
            f"No effect of pretraining is established. {score}: {over}. One test would have found "
            f"a difference of {untrained['detectable']:.3f} with a probability of 80 %."
        )
    is_behind = simple["p_holm"] < LEVEL and simple["mean_difference"] < 0
    detectable = f"one test would have found a difference of {simple['detectable']:.3f}"
    return (
        f"Pretraining makes the encoder better, but it is {'worse' if is_behind else 'no better'} "
        f"than a simple method. {score}: {over}, but {against}"
        + ("." if is_behind else f"; {detectable} with a probability of 80 %.")
    )


def _score(level: pd.Series) -> str:
    return f"{level['mean']:.3f} (95 % interval {level['ci_low']:.3f} to {level['ci_high']:.3f})"


def _difference(test: pd.Series) -> str:
    word = "more" if test["mean_difference"] >= 0 else "less"
    ends = f"95 % interval {test['ci_low']:+.3f} to {test['ci_high']:+.3f}"
    p = "p < 0.001" if test["p_holm"] < 0.001 else f"p = {test['p_holm']:.3f}"
    return f"{abs(test['mean_difference']):.3f} {word} ({ends}; {p} after Holm's correction) than"
