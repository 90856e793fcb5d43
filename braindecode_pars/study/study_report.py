"""Report of a study: an HTML page with the answers, figures and tables.

Tables, captions and explanations of the page are in the template ``study_report.html``.
"""

from __future__ import annotations

import base64
import io
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.evaluation.controls import join_with_last
from braindecode_pars.evaluation.score_figures import control_gains
from braindecode_pars.plotting import style, training_figures
from braindecode_pars.study.study_answers import (
    Answer,
    answers_of,
    are_above_chance,
    number_text,
    p_text,
    value_text,
)
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
    answers, levels, metric = answers_of(study), study.levels, study.metric.replace("_", " ")
    if len(levels):
        data = study.methods[["method", "is_centered", "additional_data"]]
        levels = levels.assign(is_above=are_above_chance(levels)).merge(data, how="left")
    content = dict(study=study, answers=answers, levels=levels, metric=metric, level=ALPHA)
    content |= dict(figures=_figures(study, answers), relevant=RELEVANT_DIFFERENCE)
    template = Path(__file__).with_suffix(".html")
    return style.write_page(
        file, template, content, number=number_text, p=p_text, text=value_text, quote=shlex.quote
    )


def _figures(study: Any, answers: Sequence[Answer]) -> dict[str, dict[str, str]]:
    """Return the figures of the page, by section id."""
    figures, levels, primary = {}, study.levels, study.primary
    if primary is not None and answers[0].number:
        figures["pretraining"] = _paired_score_figure(study, primary)
    if primary is not None and study.baseline is not None and answers[1].details:
        names = [primary.method, primary.reference]
        is_compared = levels["method"].isin(names) | (levels["kind"] == "baseline")
        figures["baseline"] = _mean_score_figure(study, levels[is_compared])
    if len(levels):
        figures["method"] = _mean_score_figure(study, levels, study.recommendation)
    if study.controls is not None:
        axes = control_gains(study.controls, study.metric.replace("_", " "))
        axes[0].set_title("")  # the title would be the only number of labeled subjects
        alt = "Differences from sham pretraining on recorded signals and on control signals."
        figures["controls"] = _image(axes[0], alt)
    if len(study.confusion):
        ax = training_figures.confusion_matrix(
            study.confusion["true"], study.confusion["predicted"]
        )
        figures["confusion"] = _image(
            ax, "Confusion matrix of true and predicted classes in percent."
        )
    return figures


def _paired_score_figure(study: Any, primary: Comparison) -> dict[str, str]:
    """Draw the scores of each subject by initialization, and the mean differences below."""
    pairs = [primary, *filter(None, [study.initialization])]
    means = {pair.reference: pair.reference_score for pair in reversed(pairs)}
    means[primary.method] = primary.score  # last, next to its sham
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
    texts = [f"{number_text(pair.difference, '+.3f')} from {pair.reference}" for pair in pairs]
    alt = f"Scores of each subject and method as dots. {primary.method} differs by "
    return _image(top, alt + join_with_last(texts, " and by ") + ".")


def _mean_score_figure(
    study: Any, levels: pd.DataFrame, chosen: Recommendation | None = None
) -> dict[str, str]:
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
