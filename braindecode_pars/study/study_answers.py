"""Answers of a study to its three questions, as sentences with the numbers of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from braindecode_pars._common.checks import format_list
from braindecode_pars.study.study_tests import ALPHA, RELEVANT_DIFFERENCE, Comparison, Outcome

_SCORES = (
    "The mean {metric} on held-out subjects was {score} with {method} and {reference_score} with "
    "{reference}."
)
_DIFFERENCE = "The mean difference from {reference} is {difference} ({ci}; {p})."
_IMPROVED = (
    "{method} scored higher than {reference} in {n_better} of {n_subjects} held-out subjects."
)
_SIGNIFICANT = (_SCORES, _DIFFERENCE, _IMPROVED)
_DETECTABLE = (
    "The minimum detectable difference is {detectable}: the test detects a true difference of this "
    "size with 80 % power."
)
_IN_ADVANCE = "The baseline, {reference}, was specified in advance."
#: Headline and further sentences for each outcome of the primary comparison.
PRETRAINING = {
    Outcome.GAIN: (
        "Yes, pretraining on these recordings improved classification significantly.",
        *_SIGNIFICANT,
    ),
    Outcome.NO_GAIN: (
        "No, pretraining did not improve classification by a relevant amount.",
        _DIFFERENCE,
        "An improvement of {relevant} or more is ruled out, because the upper limit of the "
        "one-sided 95 % CI of the difference is {upper}.",
        "For the recommended method, see question 3.",
    ),
    Outcome.UNCLEAR: (
        "Inconclusive: the difference is not significant, but a relevant improvement is not ruled "
        "out.",
        _DIFFERENCE,
        _DETECTABLE,
        "Improvements of {relevant} or more count as relevant. To detect a difference of "
        "{relevant} with 80 % power, the study requires {needed}.",
    ),
    Outcome.WORSE: ("No, pretraining reduced the score significantly.", *_SIGNIFICANT),
}
#: Headline and further sentences for each result of the comparison with the baseline.
BASELINE = {
    "significant": (
        "{method} is significantly {result} than {reference}.",
        _SCORES,
        _DIFFERENCE,
        _IN_ADVANCE,
    ),
    "not significant": (
        "{method} is not significantly different from {reference}.",
        _DIFFERENCE,
        _DETECTABLE,
        _IN_ADVANCE,
    ),
    "not tested": (
        "Not tested, because pretraining did not improve classification significantly.",
        _SCORES,
    ),
}


class Answer(NamedTuple):
    """Answer of a study to one of its questions.

    Attributes
    ----------
    headline : str
        First sentence of the answer.
    details : sequence of str
        Further sentences.
    number : tuple of str | None
        Main number of the answer: value, name and interval. None if there is no number.
    """

    headline: str
    details: Sequence[str] = ()
    number: tuple[str, str, str] | None = None

    def __str__(self) -> str:
        return " ".join([self.headline, *self.details])


def answers_of(study: Any) -> list[Answer]:
    """Return the answers to the three questions of a study.

    Parameters
    ----------
    study : Study
        Result of a finished or unfinished study.

    Returns
    -------
    list of Answer
        Three answers, on the effect of pretraining, the comparison with a baseline, and the
        recommended method.
    """
    is_above = len(study.levels) > 0 and are_above_chance(study.levels).any()
    if study.check.stops:
        reason = Answer("No answer: the data check found problems.", study.check.stops)
    elif is_above:
        return [_pretraining_answer(study), _baseline_answer(study), _method_answer(study)]
    elif len(study.levels) == 0 or _n_to_come(study):
        return 3 * [_missing(study)]
    else:
        reason = Answer(
            "No answer: no method scores significantly above chance level (Holm-corrected tests).",
            ["Check the labels and the recordings, or add labeled subjects."],
        )
    return [reason] + 2 * [Answer("No answer, for the reason given under question 1.")]


def _pretraining_answer(study: Any) -> Answer:
    if study.primary is None:
        return _missing(study)
    if study.has_learned:
        return _comparison_answer(study, study.primary, PRETRAINING[study.primary.outcome])
    runs = study.pretrainings[~study.pretrainings["is_sham"].astype(bool)]
    runs = runs[runs["task"] == runs["task"].iloc[0]]
    n_steps, loss = runs["n_steps"].median(), runs["held_out_loss"].mean()
    return Answer(
        f"No answer: {study.primary.method} did not learn its pretext task on these recordings.",
        [
            f"After {n_steps:.0f} steps, the loss on held-out subjects was {loss:.2f} times the "
            "chance-level loss (below 1 is better than chance).",
            "Add recordings, with or without labels, or pretrain longer. On the command line, use "
            '--minutes or --thorough; in Python, use minutes or effort="thorough".',
        ],
    )


def _baseline_answer(study: Any) -> Answer:
    pair = study.baseline
    if pair is None:
        return _missing(study)
    if np.isnan(pair.p):
        return _comparison_answer(study, pair, BASELINE["not tested"])._replace(number=None)
    result = "significant" if pair.p < ALPHA else "not significant"
    return _comparison_answer(study, pair, BASELINE[result])


def _method_answer(study: Any) -> Answer:
    chosen, metric = study.recommendation, study.metric.replace("_", " ")
    if chosen is None:
        return _missing(study)
    interval = f"95 % prediction interval {number_text(chosen.low)} to {number_text(chosen.high)}"
    status = "Preliminary recommendation" if _n_to_come(study) else "Recommended"
    reasons = ["This method has the highest mean score."]
    if chosen.equivalent:
        reasons = [
            f"This method is the simplest of {len(chosen.equivalent) + 1} equivalent methods. A "
            f"method is equivalent if its mean score is at most {RELEVANT_DIFFERENCE} below the "
            "highest mean score, and not significantly lower.",
            f"Other equivalent methods: {format_list(chosen.equivalent, max_items=3)}.",
        ]
    return Answer(
        f"{status}: {chosen.method}{', subject-centered' * chosen.is_centered}.",
        [f"The expected {metric} on a new subject is {chosen.score:.3f} ({interval}).", *reasons],
        (f"{chosen.score:.3f}", f"expected {metric} on a new subject", interval),
    )


def _comparison_answer(study: Any, pair: Comparison, texts: Sequence[str]) -> Answer:
    """Return the answer with the texts of an outcome and the values of a comparison."""
    values = {k: number_text(v) if isinstance(v, float) else v for k, v in vars(pair).items()}
    values |= dict(metric=study.metric.replace("_", " "), relevant=RELEVANT_DIFFERENCE)
    values["ci"] = "95 % CI {ci_low} to {ci_high}".format(**values)
    values["p"] = f"p {p_text(pair.p)}" if pair.p < 0.001 else f"p = {p_text(pair.p)}"
    values["result"] = "better" if pair.difference > 0 else "worse"
    values["needed"] = "more pretraining runs, because more subjects alone do not suffice"
    if np.isfinite(pair.subjects_needed):
        rounded = float(f"{pair.subjects_needed:.1e}")  # two digits
        values["needed"] = f"about {rounded:.0f} subjects, if they vary as much as these subjects"
    headline, *details = (text.format(**values) for text in texts)
    name = "difference in {metric}: {method} minus {reference}".format(**values)
    return Answer(headline, details, (number_text(pair.difference, "+.3f"), name, values["ci"]))


def _missing(study: Any) -> Answer:
    """Return the answer to a question whose comparison is not finished, or failed."""
    if n := _n_to_come(study):
        return Answer("Not finished.", [f"Steps that are not finished: {n} of {len(study.plan)}."])
    failed = study.plan[study.plan["status"] == "failed"]
    reasons = [f"{row.step}: {row.reason.rstrip('.')}." for row in failed.itertuples()]
    return Answer("No answer: no scores are available for this comparison.", reasons)


def _n_to_come(study: Any) -> int:
    return int((study.plan["status"] == "to come").sum())


def are_above_chance(levels: pd.DataFrame) -> pd.Series:
    """Return for each method whether its mean score is significantly above chance level.

    Parameters
    ----------
    levels : DataFrame
        Mean scores, in the format of ``Study.levels``.
    """
    return (levels["p_chance"] < ALPHA) & (levels["mean"] > levels["chance"])


def number_text(value: float, form: str = ".3f") -> str:
    """Format a number, with a minus sign instead of a hyphen, or NaN as an en dash.

    Parameters
    ----------
    value : float
        Number to format.
    form : str
        Format specification, as in :func:`format`.
    """
    minus, dash = "\N{MINUS SIGN}", "\N{EN DASH}"
    return dash if pd.isna(value) else format(value, form).replace("-", minus)


def p_text(value: float) -> str:
    """Format a p-value. Values below 0.001 are formatted as "< 0.001"."""
    return "< 0.001" if value < 0.001 else number_text(value)
