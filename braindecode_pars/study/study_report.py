"""Write the report of a study: an HTML page with answers, figures and tables.

The template ``study_report.html`` contains the tables, captions and explanations of the page.
"""

from __future__ import annotations

import base64
import io
import shlex
import textwrap
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
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

#: Kinds of methods. Each kind has the color at the same position in ``style.COLORS``.
KINDS = ("pretrained", "sham", "random", "baseline", "bundled", "ensemble", "network")


def write_report(study: Any, path: str | Path) -> Path:
    """Write the report of a study as one HTML file, without scripts or external files.

    Parameters
    ----------
    study : Study
        Result of a study, which may be unfinished or have no answers.
    path : path
        File to write, such as ``"study.html"``, or a folder, in which ``report.html`` is written.

    Returns
    -------
    Path
        Path of the HTML file. The file is written completely or not at all.
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
    """Return the figures of the page, by the id of their section."""
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
        axes[0].set_title("")  # the title would only state the number of labeled subjects
        alt = (
            "Differences between pretraining and sham pretraining, on recorded signals and on "
            "control signals."
        )
        figures["controls"] = _image(axes[0], alt)
    if len(study.confusion):
        true, predicted = study.confusion["true"], study.confusion["predicted"]
        alt = "Confusion matrix: percentage of the windows of each true class, by predicted class."
        figures["confusion"] = _image(training_figures.confusion_matrix(true, predicted), alt)
    return figures


def _paired_score_figure(study: Any, primary: Comparison) -> dict[str, str]:
    """Draw the scores of each subject with each initialization, and below the mean differences."""
    pairs = [primary, *filter(None, [study.initialization])]
    means = {pair.reference: pair.reference_score for pair in reversed(pairs)}
    means[primary.method] = primary.score  # last, next to sham pretraining
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
    for y, pair in enumerate(pairs):
        look = style.series_style(y + 1) | dict(linestyle="", markersize=6)
        bottom.hlines(y, pair.ci_low, pair.ci_high, color=look["color"], lw=2)
        bottom.plot(pair.difference, y, **look)
    bottom.axvline(0, color=style.shade(0.3), lw=0.8, zorder=1.5)
    style.name_rows(bottom, [textwrap.fill(f"minus {pair.reference}", 20) for pair in pairs])
    bottom.set_xlabel("mean difference (uncorrected 95 % CI)")
    style.remove_frame(bottom, grid="x")
    differences = [
        f"{study_answers.number_text(pair.difference, '+.3f')} from {pair.reference}"
        for pair in pairs
    ]
    alt = f"Scores of each subject and method as dots. {primary.method} differs on average by "
    return _image(top, alt + " and by ".join(differences) + ".")


def _mean_score_figure(
    study: Any, levels: pd.DataFrame, chosen: Recommendation | None = None
) -> dict[str, str]:
    """Draw the mean score of each method with its 95 % confidence interval, highest on top."""
    order = levels.groupby("method")["mean"].max().sort_values(ascending=False).index
    [ax] = style.axes_for(None, 1, 1, (4.6, 1.5 + 0.45 * len(order)))
    style.name_rows(ax, [textwrap.fill(name, 18) for name in order])
    is_centered = levels["is_centered"]
    shift = np.where(is_centered, 0.17, -0.17) * is_centered.any()
    rows = levels.assign(y=order.get_indexer(levels["method"]) + shift)
    for row in rows.itertuples():
        color = style.COLORS[KINDS.index(row.kind)]
        ax.hlines(row.y, row.ci_low, row.ci_high, color=color, lw=1.5)
        ax.plot(row.mean, row.y, "s" if row.is_centered else "o", color=color, markersize=5)
        if chosen and (row.method, row.is_centered) == (chosen.method, chosen.is_centered):
            ax.get_yticklabels()[order.get_loc(row.method)].set_fontweight("bold")
            ax.barh(
                row.y,
                chosen.high - chosen.low,
                left=chosen.low,
                height=0.3,
                color=style.shade(0.8),
                zorder=0,
                label="95 % prediction interval",
            )
    if is_centered.any():
        for marker, name in {"o": "not centered", "s": "subject-centered"}.items():
            ax.plot([], [], marker, color=style.shade(0.3), markersize=5, label=name)
    chance = levels["chance"].mean()
    ax.axvline(chance, color=style.shade(0.25), lw=1, ls=":", label="chance level")
    ax.set_xlabel(f"mean {study.metric.replace('_', ' ')}")
    position = dict(loc="outside upper left", ncols=2, handlelength=1.5)
    style.named_legend(ax.figure, style.named_artists(ax), **position)
    style.remove_frame(ax, grid="x")
    alt = (
        f"Mean score of each method with its 95 % confidence interval. {order[0]} has the highest "
        "mean score."
    )
    return _image(ax, alt)


def _image(ax: Axes, alt: str) -> dict[str, str]:
    """Return the figure of the axes as a data URI, with its text alternative."""
    file = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "study"}):  # reproducible output
        style.save_figure(ax, file, format="svg", transparent=True, metadata={"Date": None})
    source = "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()
    return dict(source=source, alt=alt)
