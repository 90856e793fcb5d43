"""The page of a study, in one HTML file: answer, figures, tables, and how it was made.

Sentences and tables are in the template ``study_report.html``. Figures are made here.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from braindecode_pars import plotting
from braindecode_pars._common.tables import POOLED
from braindecode_pars.baselines import CENTRED
from braindecode_pars.evaluation import metrics, study_answer, study_plan
from braindecode_pars.plotting.style import draw_legend, write_page

#: What the two kinds of tests ask.
QUESTIONS = {
    "pretraining": "Is it better than without pretraining?",
    "baseline": "Is it better than the best simple method?",
}
#: Whether methods are centred by subject.
PANELS = {False: "Recordings as they are", True: "Centred by subject"}


class Image(NamedTuple):
    """A figure as a data URI, with its text alternative."""

    source: str
    alt: str


class Cell(NamedTuple):
    """Score of a method, its marks of significance, and whether it is the highest of a column."""

    mean: float
    sd: float
    marks: str
    is_best: bool


def write_report(study: Any, path: str | Path) -> Path:
    """Write a page that needs no script, no other file and no network.

    Parameters
    ----------
    study : Study
        What a study found. Without scores, the page says why there is no answer.
    path : path
        File, such as ``"study.html"``, or folder for ``report.html``.

    Returns
    -------
    Path
        The file. It is written completely or not at all.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    file = Path(path).expanduser()
    if file.is_dir() or not file.suffix:
        file = file / "report.html"
    plan = [*study.plan.itertuples()]
    headline, _, details = study.answer.partition(". ")
    content = dict(
        study=study,
        headline=headline.rstrip(".") + ".",
        details=details,
        metric=study.metric.replace("_", " "),
        level=study_answer.LEVEL,
        left_out=[row for row in plan if row.left_out],
        compared=len(study.scores) > 0,
    )
    if content["compared"]:
        content |= _show_scores(study)
    template = Path(__file__).with_suffix(".html")
    return write_page(file, template, content, shown=_shown, number=_number, p=_p, text=_text)


def _show_scores(study: Any) -> dict[str, Any]:
    """Return the numbers, tables and figures of a study with scores."""
    n, few = _sizes(study)[-1], _few(study)
    levels, tests = study.levels, study.tests
    of_largest = tests["n_train_subjects"] == n
    is_first = (levels["n_train_subjects"] == n) & (levels["method"] == few[0])
    rows = _rows_of(study, few)
    rows = rows[rows["n_train_subjects"] == n]
    ax = plotting.subject_dots(rows, study.metric, ax=_axes(4.2), chance=_chance(study))
    ax.set(xticks=[], xlabel="", ylabel=study.metric.replace("_", " "))
    return dict(
        n=n,
        chance=_chance(study),
        sizes=_sizes(study),
        first=levels[is_first].iloc[0],
        first_tests=tests[of_largest & (tests["method_a"] == few[0])],
        front=_front(study),
        curves=_curves(study),
        scores={title: _score_rows(study, panel) for panel, title in PANELS.items()},
        tests={
            title: tests[of_largest & (tests["question"] == question)]
            for question, title in QUESTIONS.items()
        },
        other_tests=tests[~of_largest],
        gains=_gains(study),
        dots=_image(ax, "A dot for each person under each method, and a bar at the mean."),
        confusion=_confusion(study.confusion),
        decided=None if study.people is None else _confusion(study.decided),
        ran=study.plan[study.plan["left_out"] == ""],
    )


# Texts ---------------------------------------------------------------------------------------


def _shown(method: str) -> str:
    return method.replace(CENTRED, ", centred")


def _number(value: float, form: str = ".3f") -> str:
    """Format a number with a minus sign instead of a hyphen, and NaN as a dash."""
    minus, dash = "\N{MINUS SIGN}", "\N{EN DASH}"
    return dash if pd.isna(value) else format(value, form).replace("-", minus)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else _number(value)


def _text(value: Any) -> str:
    """Return a value of ``Study.about``, a list or a dict, as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(each)}" for name, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value))
    return str(value)


# Methods and their scores --------------------------------------------------------------------


def _sizes(study: Any) -> list[int]:
    return sorted(study.levels["n_train_subjects"].unique().tolist())


def _chance(study: Any) -> float:
    return 1 / len(study.check.classes)


def _few(study: Any, panels: Sequence[bool] = tuple(PANELS)) -> list[str]:
    """Return the methods of a figure: pretrained, its untrained twin, best simple, scratch.

    The pretrained one is that of the answer, or has the same place among these panels.
    """
    largest = _sizes(study)[-1]
    levels = study.levels[study.levels["method"].str.endswith(CENTRED).isin(panels)]
    levels = levels[levels["n_train_subjects"] == largest].set_index("method")["mean"]
    if levels.empty:
        return []
    tests = study.tests[study.tests["method_a"].isin(levels.index)]
    tests = tests[tests["n_train_subjects"] == largest]
    best = levels[levels.index.isin(study_answer.leading(tests)[1] or levels.index)].idxmax()
    others = tests[tests["method_a"] == best].set_index("question")["method_b"]
    few = [best, *(others[question] for question in QUESTIONS if question in others)]
    if False in panels and "scratch" in set(study.levels["method"]):
        few.append("scratch")
    return list(dict.fromkeys(few))


def _score_rows(study: Any, panel: bool) -> list[tuple[str, list[Cell | None], str, str]]:
    """Return method, scores by number of people, what it was given and why it failed.

    The best method is the first.
    """
    sd = metrics.summarize(study.scores).set_index(["metric", "method", "n_train_subjects"])["sd"]
    given = study.plan.set_index("method")["given"]
    levels = study.levels[study.levels["method"].str.endswith(CENTRED) == panel]
    best = study.levels.groupby("n_train_subjects")["mean"].max()
    tests = dict(list(study.tests.groupby("n_train_subjects")))

    def cell(row: Any) -> Cell:
        n = row.n_train_subjects
        marks = "*" if row.p_holm < study_answer.LEVEL and row.mean > _chance(study) else ""
        for mark, question in zip("†‡", QUESTIONS, strict=True):
            marks += (
                mark
                if n in tests and row.method in study_answer.ahead_in(tests[n], question)
                else ""
            )
        return Cell(row.mean, sd[study.metric, row.method, n], marks, row.mean == best[n])

    order = levels.sort_values(["n_train_subjects", "mean"], ascending=False)["method"]
    found = []
    for method in dict.fromkeys(order):
        rows = levels[levels["method"] == method].itertuples()
        cells = {row.n_train_subjects: cell(row) for row in rows}
        shown = method.removesuffix(CENTRED)
        found.append((shown, [*map(cells.get, _sizes(study))], given.get(method, ""), ""))
    failed = study.plan[study.plan["left_out"].str.startswith("failed")]
    for row in failed[failed["method"].str.endswith(CENTRED) == panel].itertuples():
        shown = str(row.method).removesuffix(CENTRED)
        found.append((shown, [None] * len(_sizes(study)), "", str(row.left_out)))
    return found


# Figures -------------------------------------------------------------------------------------


def _image(ax: Axes, alt: str) -> Image:
    """Return the figure of some axes, without a background and the same in each run."""
    file, figure = io.BytesIO(), cast(Figure, ax.figure)
    options: dict[str, Any] = dict(format="svg", transparent=True, metadata={"Date": None})
    with plt.rc_context({"svg.hashsalt": "study"}):
        figure.savefig(file, **options)
    plt.close(figure)
    return Image("data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode(), alt)


def _axes(height: float) -> Axes:
    """Return axes little wider than a phone, where letters of a wide figure would be small."""
    return plt.subplots(figsize=(4.4, height), layout="constrained")[1]


def _rows_of(study: Any, methods: Sequence[str]) -> pd.DataFrame:
    """Return the scores of these methods, in this order and with short names."""
    rows = pd.concat([study.scores[study.scores["method"] == method] for method in methods])
    return rows.assign(method=rows["method"].map(_shown))


def _curve(study: Any, methods: Sequence[str]) -> Axes:
    """Draw scores against numbers of labelled people."""
    rows = _rows_of(study, methods)
    if not study.check.by_subject:  # else subjects have one class, and no balance
        rows = rows[rows["subject"] != POOLED]
    ax = plotting.label_efficiency(rows, study.metric, ax=_axes(3.8), chance=_chance(study))
    draw_legend(ax, methods, ncols=1, handlelength=3)
    ax.set(xlabel="labelled people", ylabel=study.metric.replace("_", " "))
    return ax


def _front(study: Any) -> Image | None:
    """Draw the own pretraining, the best simple method and scratch, none of them centred."""
    ran = study.plan[study.plan["left_out"] == ""].set_index("method")["kind"]
    ran = ran[~ran.index.str.endswith(CENTRED)]
    means = study.levels[study.levels["n_train_subjects"] == _sizes(study)[-1]]
    means = means.set_index("method")["mean"]
    simple = means[means.index.isin(ran.index[ran == "simple"])]
    methods = [name for name in ran.index if name.endswith(study_plan.OWN)][:1]
    if not methods:
        return None
    methods += [str(simple.idxmax())] if len(simple) else []
    methods += [name for name in ran.index if name == "scratch"]
    alt = "Means by number of labelled people; the table of all methods has the numbers."
    return _image(_curve(study, methods), alt)


def _curves(study: Any) -> dict[str, Image]:
    """Draw the methods of the answer, plain and centred, on the same scale."""
    few = {title: _few(study, [panel]) for panel, title in PANELS.items()}
    drawn = {title: _curve(study, methods) for title, methods in few.items() if methods}
    low, high = zip(*(ax.get_ylim() for ax in drawn.values()), strict=True)
    for ax in drawn.values():
        ax.set_ylim(min(low), max(high))
    alt = "A line of means for each method; the table of all methods has the numbers."
    return {title: _image(ax, alt) for title, ax in drawn.items()}


def _confusion(table: pd.DataFrame) -> Image:
    true, predicted = table["true"], table["predicted"]
    ax = plotting.confusion_matrix(true, predicted)
    right = (true == predicted).groupby(true).mean().items()
    shares = ", ".join(f"{100 * share:.0f} % of {name}" for name, share in right)
    return _image(ax, f"Table of true and predicted classes; right are {shares}.")


def _gains(study: Any) -> dict[str, Image]:
    """Draw what the controls leave of the gains over each method without pretraining."""
    images: dict[str, Image] = {}
    if study.controls is None:
        return images
    for name, rows in study.controls.groupby("against", sort=False):
        against = _shown(str(name))
        rows = rows.assign(method=rows["method"].map(_shown), against=against)
        axes = plotting.control_gains(rows, study.metric.replace("_", " "))
        for ax, n in zip(axes, sorted(rows["n_train_subjects"].unique()), strict=True):
            ax.set_title(f"{n:g} labelled people", fontsize=10)
        alt = "Gains and what is left of them; the sentences above have the numbers."
        images[against] = _image(axes[0], alt)
    return images
