"""The answer of a study in sentences, from its tests."""

from __future__ import annotations

import pandas as pd

from braindecode_pars.baselines import CENTRED
from braindecode_pars.evaluation.controls import LEVEL, joined


def ahead(tests: pd.DataFrame) -> pd.Series:
    """Whether the first method of each test is significantly ahead."""
    return (tests["p_holm"] < LEVEL) & (tests["mean_difference"] > 0)


def ahead_in(tests: pd.DataFrame, question: str) -> set[str]:
    """Return the methods that are significantly better in the tests of a question."""
    return set(tests[ahead(tests) & (tests["question"] == question)]["method_a"])


def leading(tests: pd.DataFrame) -> tuple[str, set[str]]:
    """Return what pretraining did, and the pretrained methods that an answer may be about.

    They are those that are ahead of their untrained encoder and of the best simple method, or else
    of the first, or else all.
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


#: What pretraining did: ahead of both, of the untrained encoder only, or of neither.
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
