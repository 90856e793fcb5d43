"""Report of a study: an HTML page with the answers, figures and tables.

Tables, captions and explanations of the page are in the template ``study_report.html``.
"""

from __future__ import annotations

import base64
import io
import shlex
import textwrap
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.evaluation import score_figures
from braindecode_pars.plotting import style, training_figures
from braindecode_pars.study import study_answers
from braindecode_pars.study.study_tests import (
    ALPHA,
    RELEVANT_DIFFERENCE,
    Comparison,
    Recommendation,
)

#: Kinds of methods, in the order of the colors of the figures.
KINDS = ("pretrained", "sham", "random", "baseline", "bundled", "ensemble", "network")


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
    answers, levels = study_answers.answers_of(study), study.levels
    if len(levels):
        is_above = study_answers.are_above_chance(levels)
        data = study.methods[["method", "additional_data"]]
        levels = levels.assign(is_above=is_above).merge(data, how="left")
    content = dict(
        study=study,
        answers=answers,
        levels=levels,
        metric=study.metric.replace("_", " "),
        level=ALPHA,
        relevant=RELEVANT_DIFFERENCE,
        figures=_figures(study, answers),
    )
    return style.write_page(
        file,
        Path(__file__).with_suffix(".html"),
        content,
        number=study_answers.number_text,
        p=study_answers.p_text,
        quote=shlex.quote,
    )


def _figures(study: Any, answers: list[study_answers.Answer]) -> dict[str, dict[str, str]]:
    """Return the figures of the page, by section id."""
    figures, levels, primary = {}, study.levels, study.primary
    if primary is not None and answers[0].number:
        figures["pretraining"] = _paired_score_figure(study, primary)
    if primary is not None and study.baseline is not None and answers[1].details:
        is_primary = levels["method"].isin([primary.method, primary.reference])
        compared = levels[is_primary | (levels["kind"] == "baseline")]
        figures["baseline"] = _mean_score_figure(study, compared)
    if len(levels):
        figures["method"] = _mean_score_figure(study, levels, study.recommendation)
    if study.controls is not None:
        axes = score_figures.control_gains(study.controls, study.metric.replace("_", " "))
        axes[0].set_title("")  # the title would be the only number of labeled subjects
        alt = "Differences from sham pretraining on recorded signals and on control signals."
        figures["controls"] = _image(axes[0], alt)
    if len(study.confusion):
        true, predicted = study.confusion["true"], study.confusion["predicted"]
        alt = "Confusion matrix of true and predicted classes in percent."
        figures["confusion"] = _image(training_figures.confusion_matrix(true, predicted), alt)
    return figures


def _paired_score_figure(study: Any, primary: Comparison) -> dict[str, str]:
    """Draw the scores of each subject by initialization."""
    pairs = [primary, *filter(None, [study.initialization])]
    methods = [*(pair.reference for pair in reversed(pairs)), primary.method]
    scores = study.scores[study.scores["method"].isin(methods)]
    means = scores.groupby(["method", "subject"], as_index=False)["value"].mean()
    ax = score_figures.subject_dots(
        means.assign(metric=study.metric),
        study.metric,
        methods=methods,
        chance=study.levels["chance"].mean(),
    )
    difference = study_answers.number_text(primary.difference, "+.3f")
    alt = f"{primary.method} differs by {difference} from {primary.reference}."
    return _image(ax, f"Scores of each subject and method as dots. {alt}")


def _mean_score_figure(
    study: Any, levels: pd.DataFrame, chosen: Recommendation | None = None
) -> dict[str, str]:
    """Draw the mean of each method with its 95 % confidence interval, the highest on top."""
    order = levels.groupby("method")["mean"].max().sort_values(ascending=False).index
    [ax] = style.axes_for(None, 1, 1, (4.6, 1.5 + 0.45 * len(order)))
    style.name_rows(ax, [textwrap.fill(name, 18) for name in order])
    if chosen is not None:
        ax.get_yticklabels()[order.get_loc(chosen.method)].set_fontweight("bold")
    for (kind, is_centered), rows in levels.groupby(["kind", "is_centered"]):
        shift = (0.17 if is_centered else -0.17) * levels["is_centered"].any()
        y, color = order.get_indexer(rows["method"]) + shift, style.COLORS[KINDS.index(kind)]
        ax.hlines(y, rows["ci_low"], rows["ci_high"], lw=1.5, color=color)
        ax.plot(rows["mean"], y, "s" if is_centered else "o", markersize=5, color=color)
    ax.axvline(levels["chance"].mean(), color=style.shade(0.25), lw=1, ls=":", label="chance level")
    ax.set_xlabel(f"mean {study.metric.replace('_', ' ')}")
    style.named_legend(ax.figure, style.named_artists(ax), loc="outside upper left")
    style.remove_frame(ax, grid="x")
    alt = f"Mean scores with 95 % confidence intervals; {order[0]} has the highest mean."
    return _image(ax, alt)


def _image(ax: Axes, alt: str) -> dict[str, str]:
    """Return the figure of the axes as a data URI, with its text alternative."""
    file = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "study"}):  # reproducible output
        style.save_figure(ax, file, format="svg", transparent=True, metadata={"Date": None})
    source = "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()
    return dict(source=source, alt=alt)
