"""Report of a study: answers to three questions, and an HTML page with figures and tables.

Tables, captions and explanations of the page are in the template ``study_report.html``.
"""

import base64
import io
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars import plotting
from braindecode_pars._common.checks import format_list
from braindecode_pars.evaluation.controls import LEVEL, join_with_last
from braindecode_pars.plotting import style
from braindecode_pars.study.study_design import RELEVANT_DIFFERENCE

#: Kinds of methods, in the order of the colors of the figures.
KINDS = ("pretrained", "sham", "random", "baseline", "bundled", "ensemble", "network")
_SCORES = (
    "The mean {metric} on held-out subjects was {score} with {method} and {reference_score} with "
    "{reference}."
)
#: Headline and further sentences by the outcome of the primary comparison.
PRETRAINING = {
    "gain": (
        "Yes, pretraining on these recordings improved classification significantly.",
        _SCORES,
        "The mean difference is {difference} ({ci}; {p}), and the score improved in {n_better} of "
        "{n_subjects} subjects.",
    ),
    "no gain worth having": (
        "No, pretraining did not improve classification by a relevant amount.",
        "The mean difference from {reference} is {difference} ({p}), and an improvement of "
        "{relevant} or more is ruled out (one-sided 95 % CI up to {upper}).",
        "Question 3 names the recommended method.",
    ),
    "unclear": (
        "Inconclusive: the improvement is not significant, but not ruled out either.",
        "The mean difference from {reference} is {difference} ({ci}; {p}); the minimum detectable "
        "difference is {detectable} (80 % power).",
        "Detecting a difference of {relevant} requires {needed}.",
    ),
    "worse": (
        "No, pretraining reduced the score significantly.",
        _SCORES,
        "The mean difference is {difference} ({ci}; {p}), and the score improved in {n_better} of "
        "{n_subjects} subjects.",
    ),
}
#: Headline and further sentences by the result of the comparison with the baseline.
BASELINE = {
    "significant": (
        "{method} is significantly {result} than {reference}.",
        _SCORES,
        "The mean difference from this baseline, which was specified in advance, is {difference} "
        "({ci}; {p}).",
    ),
    "not significant": (
        "{method} is not significantly different from {reference}.",
        "The mean difference from this baseline, which was specified in advance, is {difference} "
        "({ci}; {p}).",
        "The minimum detectable difference is {detectable} (80 % power).",
    ),
    "not tested": (
        "Not tested, because pretraining did not improve classification significantly.",
        _SCORES,
    ),
}


class Answer(NamedTuple):
    """Headline, further sentences, and the main number: value, name and interval."""

    headline: str
    details: Sequence[str] = ()
    number: tuple[str, str, str] | None = None


def answers_of(study: Any) -> list[str]:
    """Return the answers to the three questions of a study as texts.

    Parameters
    ----------
    study : Study
        Result of a study. It may be unfinished.

    Returns
    -------
    list of str
        Three answers: effect of pretraining, comparison with the baseline, recommended method.
    """
    return [" ".join([answer.headline, *answer.details]) for answer in _answers(study)]


def _answers(study: Any) -> list[Answer]:
    if study.check.stops:
        reason = Answer("No answer: the data check failed.", study.check.stops)
    elif len(study.levels) == 0 or (not _above_chance(study.levels).any() and _n_to_come(study)):
        return 3 * [_missing(study)]
    elif not _above_chance(study.levels).any():
        reason = _at_chance(study)
    else:
        return [_pretraining_answer(study), _baseline_answer(study), _method_answer(study)]
    return [reason] + 2 * [Answer("No answer, for the reason given under question 1.")]


def _pretraining_answer(study: Any) -> Answer:
    if study.primary is None:
        return _missing(study)
    if not study.has_learned:
        return _not_learned(study)
    return _comparison_answer(study, study.primary, PRETRAINING[study.primary.outcome])


def _baseline_answer(study: Any) -> Answer:
    pair = study.baseline
    if pair is None:
        return _missing(study)
    if np.isnan(pair.p):
        return _comparison_answer(study, pair, BASELINE["not tested"])._replace(number=None)
    result = "significant" if pair.p < LEVEL else "not significant"
    return _comparison_answer(study, pair, BASELINE[result])


def _method_answer(study: Any) -> Answer:
    chosen, metric = study.recommendation, study.metric.replace("_", " ")
    if chosen is None:
        return _missing(study)
    interval = f"95 % prediction interval {_number(chosen.low)} to {_number(chosen.high)}"
    status = "Preliminary recommendation" if _n_to_come(study) else "Recommended"
    reason, names = "It has the highest mean score.", chosen.equivalent
    if names:
        listed = join_with_last(names, " and ") if len(names) < 4 else format_list(names, 3)
        reason = (
            f"It is the simplest of {len(names) + 1} equivalent methods (at most "
            f"{RELEVANT_DIFFERENCE} below the highest mean, and not significantly lower); the "
            f"other methods are {listed}."
        )
    return Answer(
        f"{status}: {chosen.method}{', subject-centered' * chosen.is_centered}.",
        [f"The expected {metric} on a new subject is {chosen.score:.3f} ({interval}).", reason],
        (f"{chosen.score:.3f}", f"expected {metric} on a new subject", interval),
    )


def _comparison_answer(study: Any, pair: Any, texts: Sequence[str]) -> Answer:
    """Fill the values of a comparison into the texts of its outcome."""
    values = {k: _number(v) if isinstance(v, float) else v for k, v in vars(pair).items()}
    values |= dict(metric=study.metric.replace("_", " "), relevant=RELEVANT_DIFFERENCE)
    values["ci"] = "95 % CI {ci_low} to {ci_high}".format(**values)
    values["p"] = f"p {_p(pair.p)}" if pair.p < 0.001 else f"p = {_p(pair.p)}"
    values["result"] = "better" if pair.difference > 0 else "worse"
    values["needed"] = "more pretrainings, not only more subjects"
    if np.isfinite(pair.subjects_needed):
        rounded = float(f"{pair.subjects_needed:.1e}")  # two digits
        values["needed"] = f"about {rounded:.0f} subjects of similar variability"
    headline, *details = (text.format(**values) for text in texts)
    name = "difference in {metric}: {method} minus {reference}".format(**values)
    return Answer(headline, details, (_number(pair.difference, "+.3f"), name, values["ci"]))


def _not_learned(study: Any) -> Answer:
    """Return the answer for a primary pretext task that was not learned."""
    runs = study.pretrainings[~study.pretrainings["is_sham"].astype(bool)]
    runs = runs[runs["task"] == runs["task"].iloc[0]]
    n_steps, loss = runs["n_steps"].median(), runs["held_out_loss"].mean()
    details = [
        f"After {n_steps:.0f} steps, the relative held-out loss was {loss:.2f} (1 = chance level).",
        "Add recordings, with or without labels, or pretrain longer (--minutes, --thorough).",
    ]
    return Answer(
        f"No answer: {study.primary.method} did not learn its task on these recordings.", details
    )


def _missing(study: Any) -> Answer:
    """Return the answer for a comparison that is not finished, or that failed."""
    if n := _n_to_come(study):
        return Answer("Not finished.", [f"{n} of {len(study.plan)} steps remain."])
    failed = study.plan[study.plan["status"] != "finished"]
    reasons = [f"{row.step}: {row.status.rstrip('.')}." for row in failed.itertuples()]
    return Answer("No answer: no scores are available for this comparison.", reasons)


def _at_chance(study: Any) -> Answer:
    best = study.levels.loc[study.levels["mean"].idxmax()]
    ci = f"95 % CI {best['ci_low']:.3f} to {best['ci_high']:.3f}"
    details = [
        f"{best['method']} has the highest mean, {best['mean']:.3f} (uncorrected {ci}); chance "
        f"level is {best['chance']:.3f}.",
        "Check the labels and the recordings, or add labeled subjects.",
    ]
    return Answer(
        "No answer: no method is significantly above chance level (Holm-corrected tests).", details
    )


def _n_to_come(study: Any) -> int:
    return int((study.plan["status"] == "to come").sum())


def _above_chance(levels: pd.DataFrame) -> pd.Series:
    return (levels["p_chance"] < LEVEL) & (levels["mean"] > levels["chance"])


def _number(value: float, form: str = ".3f") -> str:
    """Format a number with a minus sign instead of a hyphen, and NaN as an en dash."""
    minus, dash = "\N{MINUS SIGN}", "\N{EN DASH}"
    return dash if pd.isna(value) else format(value, form).replace("-", minus)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else _number(value)


def _text(value: Any) -> str:
    """Format a text, a number, or a list or dict of texts and numbers."""
    if isinstance(value, Mapping):
        value = [f"{name} {_text(entry)}" for name, entry in value.items()]
    return ", ".join(map(_text, value)) if isinstance(value, list | tuple) else str(value)


def write_report(study: Any, path: str | Path) -> Path:
    """Write the report of a study as one HTML file, without scripts or external files.

    Parameters
    ----------
    study : Study
        Result of a study. It may be unfinished or without an answer.
    path : path
        File, such as ``"study.html"``, or folder, in which ``report.html`` is written.

    Returns
    -------
    Path
        The HTML file. It is written completely or not at all.
    """
    file = Path(path).expanduser()
    file = file / "report.html" if file.is_dir() or not file.suffix else file
    answers, levels, metric = _answers(study), study.levels, study.metric.replace("_", " ")
    if len(levels):
        data = study.methods[["method", "is_centered", "additional_data"]]
        levels = levels.assign(is_above=_above_chance(levels)).merge(data, how="left")
    content = dict(study=study, answers=answers, levels=levels, metric=metric, level=LEVEL)
    content |= dict(figures=_figures(study, answers), relevant=RELEVANT_DIFFERENCE)
    template = Path(__file__).with_suffix(".html")
    return style.write_page(
        file, template, content, number=_number, p=_p, text=_text, quote=shlex.quote
    )


def _figures(study: Any, answers: Sequence[Answer]) -> dict[str, dict[str, str]]:
    """Return the figures of the page, by section id."""
    figures, levels = {}, study.levels
    if answers[0].number:
        figures["pretraining"] = _paired_score_figure(study)
    if study.baseline is not None and answers[1].details:
        names = [study.primary.method, study.primary.reference]
        is_compared = levels["method"].isin(names) | (levels["kind"] == "baseline")
        figures["baseline"] = _mean_score_figure(study, levels[is_compared])
    if len(levels):
        figures["method"] = _mean_score_figure(study, levels, study.recommendation)
    if study.controls is not None:
        axes = plotting.control_gains(study.controls, study.metric.replace("_", " "))
        axes[0].set_title("")  # the title would be the only number of labeled subjects
        alt = "Differences from sham pretraining on recorded signals and on control signals."
        figures["controls"] = _image(axes[0], alt)
    if len(study.confusion):
        ax = plotting.confusion_matrix(study.confusion["true"], study.confusion["predicted"])
        figures["confusion"] = _image(
            ax, "Confusion matrix of true and predicted classes in percent."
        )
    return figures


def _paired_score_figure(study: Any) -> dict[str, str]:
    """Draw the scores of each subject by initialization, and the mean differences below."""
    pairs = [pair for pair in (study.primary, study.initialization) if pair is not None]
    means = {pair.reference: pair.reference_score for pair in reversed(pairs)}
    means[study.primary.method] = study.primary.score  # last, next to its sham
    values = study.scores.pivot_table("value", "subject", "method")[list(means)].to_numpy()
    top, bottom = style.axes_for(None, 2, 1, (4.6, 4.6), height_ratios=[3, 1])
    top.plot(values.T, color=style.shade(0.7), lw=0.7, zorder=1)
    for x, mean in enumerate(means.values()):
        look = style.series_style(len(means) - 1 - x) | dict(linestyle="", markersize=5)
        top.plot(np.full(len(values), x), values[:, x], **look)
        top.hlines(mean, x - 0.3, x + 0.3, color=style.shade(0), lw=2, zorder=3)
    style.draw_chance(top, study.levels["chance"].mean())
    top.set_xticks(range(len(means)), [textwrap.fill(n, 14) for n in means], parse_math=False)
    top.set(xlim=(-0.5, len(means) - 0.5), ylabel=study.metric.replace("_", " "))
    style.remove_frame(top, grid="y")
    for number, pair in enumerate(pairs, 1):
        look = style.series_style(number) | dict(linestyle="", markersize=6)
        bottom.hlines(-number, pair.ci_low, pair.ci_high, color=look["color"], lw=2)
        bottom.plot(pair.difference, -number, **look)
    bottom.axvline(0, color=style.shade(0.3), lw=0.8, zorder=1.5)
    names = [textwrap.fill(f"minus {pair.reference}", 20) for pair in pairs]
    positions = [-number for number in range(1, len(pairs) + 1)]
    bottom.set_yticks(positions, names, parse_math=False)
    bottom.tick_params(axis="y", length=0)
    bottom.set(ylim=(-len(pairs) - 0.6, -0.4), xlabel="difference (95 % CI)")
    style.remove_frame(bottom, grid="x")
    texts = [f"{_number(pair.difference, '+.3f')} from {pair.reference}" for pair in pairs]
    alt = f"Scores of each subject and method as dots. {study.primary.method} differs by "
    return _image(top, alt + join_with_last(texts, " and by ") + ".")


def _mean_score_figure(study: Any, levels: pd.DataFrame, chosen: Any = None) -> dict[str, str]:
    """Draw the mean of each method with its 95 % confidence interval, the highest on top."""
    order = list(levels.groupby("method")["mean"].max().sort_values().index)
    [ax] = style.axes_for(None, 1, 1, (4.6, 1.5 + 0.45 * len(order)))
    names = [textwrap.fill(name, 18) for name in order]
    ax.set_yticks(range(len(order)), names, parse_math=False)
    shift = 0.17 * levels["is_centered"].any()
    for row in levels.itertuples():
        y = order.index(row.method) + (-shift if row.is_centered else shift)
        color = style.COLORS[KINDS.index(row.kind)]
        ax.hlines(y, row.ci_low, row.ci_high, color=color, lw=1.5)
        ax.plot(row.mean, y, "s" if row.is_centered else "o", color=color, markersize=5)
        if chosen and (row.method, row.is_centered) == (chosen.method, chosen.is_centered):
            ax.get_yticklabels()[order.index(row.method)].set_fontweight("bold")
            bar = dict(
                height=0.3, color=style.shade(0.8), zorder=0, label="95 % prediction interval"
            )
            ax.barh(y, chosen.high - chosen.low, left=chosen.low, **bar)
    for marker, name in {"o": "not centered", "s": "subject-centered"}.items():
        if shift:
            ax.plot([], [], marker, color=style.shade(0.3), markersize=5, label=name)
    chance = dict(color=style.shade(0.25), lw=1, ls=":", label="chance level")
    ax.axvline(levels["chance"].mean(), **chance)
    ax.set(xlabel=f"mean {study.metric.replace('_', ' ')}", ylim=(-0.6, len(order) - 0.4))
    ax.tick_params(axis="y", length=0)
    position = dict(loc="outside upper left", ncols=2, handlelength=1.5)
    style.named_legend(ax.figure, style.named_artists(ax), **position)
    style.remove_frame(ax, grid="x")
    alt = f"Mean scores with 95 % confidence intervals; {order[-1]} has the highest mean."
    return _image(ax, alt)


def _image(ax: Axes, alt: str) -> dict[str, str]:
    """Return the figure of the axes as a data URI, with its text alternative."""
    file = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "study"}):  # reproducible output
        style.save_figure(ax, file, format="svg", transparent=True, metadata={"Date": None})
    source = "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()
    return dict(source=source, alt=alt)
