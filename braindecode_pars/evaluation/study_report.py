"""The answer of a study in sentences, and its page: answer, figures, tables, and how it was made.

Sentences and tables of the page are in the template ``study_report.html``. Figures are made here.
"""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars import plotting
from braindecode_pars._common.tables import POOLED
from braindecode_pars.baselines import CENTRED
from braindecode_pars.evaluation import metrics, splitting, study_plan
from braindecode_pars.evaluation.controls import LEVEL, joined
from braindecode_pars.evaluation.paired_tests import holm, paired_tests
from braindecode_pars.plotting import style

#: What the two kinds of tests ask.
QUESTIONS = {
    "pretraining": "Is it better than without pretraining?",
    "baseline": "Is it better than the best simple method?",
}
#: Whether methods are centred by subject.
PANELS = {False: "Recordings as they are", True: "Centred by subject"}
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
        guess = of_n[of_n["method"] == of_n["method"].iloc[0]].assign(
            method=study_plan.CHANCE, value=chance
        )
        against = paired_tests(
            pd.concat([of_n, guess]), study_plan.METRIC, against=study_plan.CHANCE
        )
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
            baseline = means[simple].idxmax() if simple else None
            for question, other in (("baseline", baseline), ("pretraining", methods[name].twin)):
                if other in means.index:
                    pair = of_n[of_n["method"].isin([name, other])]
                    test = paired_tests(pair, study_plan.METRIC, against=other)
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


def weighted(scores: pd.DataFrame, corpus: splitting.Corpus) -> pd.DataFrame:
    """Weigh subjects that have one class each so that every class counts the same."""
    labelled = corpus.labeled
    people = corpus.groups[labelled].astype(str)
    labels = pd.Series(corpus.y[labelled], people).groupby(level=0).first()
    weights = len(labels) / (labels.nunique() * labels.map(labels.value_counts()))
    return scores.assign(value=scores["value"] * scores["subject"].astype(str).map(weights))


def decided_by_person(
    results: Iterable[Mapping[str, Any]], corpus: splitting.Corpus
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Decide each person in each draw: the class with the highest mean probability.

    Beside them are scores of recordings, which are decided in the same way, and of windows.

    Returns
    -------
    people, decided : DataFrame
        Of a :class:`~braindecode_pars.evaluation.Study`; the classes are texts.
    """
    classes = [str(label) for label in np.unique(corpus.y[corpus.labeled])]
    groups = corpus.groups.astype(str)
    recordings, *_ = corpus.spans
    parts: dict[str, list[pd.DataFrame]] = {"person": [], "recording": [], "window": []}
    for result in results:
        own, key = result["probabilities"], result["key"]
        shares = pd.get_dummies(pd.Series(result["predicted"]))
        if "columns" in own:
            shares = pd.DataFrame(dict(zip(own["classes"], own["columns"], strict=True)))
        shares = shares.astype(float).rename(columns=str).reindex(columns=classes, fill_value=0)
        true = pd.Series(result["true"]).map(str)
        tested = corpus.labeled & np.isin(groups, result["subjects"])
        units = (result["subjects"], recordings[tested], range(len(true)))
        for part, of_window in zip(parts.values(), units, strict=True):
            unit = np.asarray(of_window)
            of_unit = shares.groupby(unit).mean()
            told = dict(method=key["method"], seed=key["seed"], true=true.groupby(unit).first())
            part.append(of_unit.assign(predicted=of_unit.idxmax(axis=1), **told))
    decisions = pd.concat(parts["person"])
    people = _scores_of_decisions(decisions, classes)
    for kind in ("recording", "window"):
        scores = _scores_of_decisions(pd.concat(parts[kind]), classes).set_index("method")
        people[f"by_{kind}"] = people["method"].map(scores["balanced_accuracy"])
    of_best = decisions["method"] == people["method"].iloc[0]
    return people, decisions.loc[of_best, ["true", "predicted"]]


def _scores_of_decisions(decisions: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return the scores of each method, means of the draws; the best is the first."""
    rows = []
    for (method, _), own in decisions.groupby(["method", "seed"], sort=False):
        true, predicted = own["true"].to_numpy(), own["predicted"].to_numpy()
        shares = own[classes].to_numpy()
        given = dict(probabilities=shares / shares.sum(axis=1, keepdims=True), classes=classes)
        row = dict(method=method, right=(true == predicted).sum(), people=len(own))
        for name in ("balanced_accuracy", "auroc"):
            row[name] = metrics.score_predictions(true, predicted, name, **given)
        rows.append(row)
    table = pd.DataFrame(rows).groupby("method", as_index=False).mean()
    return table.sort_values("balanced_accuracy", ascending=False, ignore_index=True)


def ahead(tests: pd.DataFrame) -> pd.Series:
    """Whether the first method of each test is significantly ahead."""
    return (tests["p_holm"] < LEVEL) & (tests["mean_difference"] > 0)


def leading(tests: pd.DataFrame) -> tuple[str, set[str]]:
    """Return what pretraining did, and the pretrained methods that an answer may be about.

    They are those that outperform their untrained encoder and the best simple method, or else those
    that do the first, or else all.
    """
    found = tests[ahead(tests)]
    helped, better = (
        set(found["method_a"][found["question"] == name]) for name in ("pretraining", "baseline")
    )
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
    >>> from braindecode_pars.evaluation.study_report import answer_of
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
    "both": "it outperforms the untrained encoder and the best simple method",
    "untrained": "it outperforms the untrained encoder, and not the best simple method",
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


# The page --------------------------------------------------------------------------------------


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
    headline, _, details = study.answer.partition(". ")
    content = dict(
        study=study,
        headline=headline.rstrip(".") + ".",
        details=details,
        metric=study.metric.replace("_", " "),
        level=LEVEL,
        left_out=[row for row in study.plan.itertuples() if row.left_out],
        compared=len(study.scores) > 0,
    )
    if content["compared"]:
        content |= _show_scores(study)
    template = Path(__file__).with_suffix(".html")
    return style.write_page(
        file, template, content, shown=short_name, number=_number, p=_p, text=_text
    )


def _show_scores(study: Any) -> dict[str, Any]:
    """Return the numbers, tables and figures of a study with scores."""
    levels, tests, chance = study.levels, study.tests, 1 / len(study.check.classes)
    sizes = sorted(levels["n_train_subjects"].unique().tolist())
    n = sizes[-1]
    largest = levels[levels["n_train_subjects"] == n].set_index("method", drop=False)
    of_largest = tests["n_train_subjects"] == n
    given = study, largest["mean"], tests[of_largest]
    few = _few(*given)
    # The methods of the answer, plain and centred, on the same scale
    kinds = {title: _few(*given, [panel]) for panel, title in PANELS.items()}
    drawn = {title: _curve(study, methods) for title, methods in kinds.items() if methods}
    low, high = zip(*(ax.get_ylim() for ax in drawn.values()), strict=True)
    for ax in drawn.values():
        ax.set_ylim(min(low), max(high))
    alt = "A line of means for each method; the table of all methods has the numbers."
    rows = _rows_of(study, few)
    rows = rows[rows["n_train_subjects"] == n]
    dots = plotting.subject_dots(rows, study.metric, ax=_axes(4.2), chance=chance)
    dots.set(xticks=[], xlabel="", ylabel=study.metric.replace("_", " "))
    return dict(
        n=n,
        chance=chance,
        sizes=sizes,
        first=largest.loc[few[0]],
        first_tests=tests[of_largest & (tests["method_a"] == few[0])],
        front=_front(study, largest["mean"]),
        curves={title: _image(ax, alt) for title, ax in drawn.items()},
        scores={title: _score_rows(study, panel, sizes) for panel, title in PANELS.items()},
        tests={
            title: tests[of_largest & (tests["question"] == question)]
            for question, title in QUESTIONS.items()
        },
        other_tests=tests[~of_largest],
        gains=_gains(study),
        dots=_image(dots, "A dot for each person under each method, and a bar at the mean."),
        confusion=_confusion(study.confusion),
        decided=None if study.people is None else _confusion(study.decided),
        ran=study.plan[study.plan["left_out"] == ""],
    )


# Texts ---------------------------------------------------------------------------------------


def short_name(method: str) -> str:
    """Return the name of a method in tables and figures."""
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


def _few(
    study: Any, means: pd.Series, tests: pd.DataFrame, panels: Sequence[bool] = tuple(PANELS)
) -> list[str]:
    """Return the methods of a figure: pretrained, its untrained twin, best simple, scratch.

    Means and tests are those with most labelled people. The pretrained method is that of the
    answer, or has the same place among these panels.
    """
    means = means[np.isin(means.index.str.endswith(CENTRED), panels)]
    if means.empty:
        return []
    tests = tests[tests["method_a"].isin(means.index)]
    best = means[means.index.isin(leading(tests)[1] or means.index)].idxmax()
    others = tests[tests["method_a"] == best].set_index("question")["method_b"]
    few = [best, *(others[question] for question in QUESTIONS if question in others)]
    few += ["scratch"] if False in panels and "scratch" in set(study.levels["method"]) else []
    return list(dict.fromkeys(few))


def _score_rows(
    study: Any, panel: bool, sizes: Sequence[int]
) -> list[tuple[str, list[dict | None], str, str]]:
    """Return method, scores by number of people, what it was given and why it failed.

    The best method is the first.
    """
    sd = metrics.summarize(study.scores).set_index(["metric", "method", "n_train_subjects"])["sd"]
    best = study.levels.groupby("n_train_subjects")["mean"].max()
    better = study.tests[ahead(study.tests)]
    better = {*zip(better["method_a"], better["n_train_subjects"], better["question"], strict=True)}
    levels = study.levels[study.levels["method"].str.endswith(CENTRED) == panel]
    # The scores, their marks of significance, and whether they are the highest
    cells: dict[str, dict[int, dict]] = {}
    for row in levels.sort_values(["n_train_subjects", "mean"], ascending=False).itertuples():
        n = row.n_train_subjects
        marks = "*" if row.p_holm < LEVEL and row.mean > 1 / len(study.check.classes) else ""
        for mark, question in zip("†‡", QUESTIONS, strict=True):
            marks += mark if (row.method, n, question) in better else ""
        cell = dict(mean=row.mean, sd=sd[study.metric, row.method, n], marks=marks)
        cells.setdefault(row.method, {})[n] = cell | dict(is_best=row.mean == best[n])
    given = study.plan.set_index("method")["given"]
    found = [
        (method.removesuffix(CENTRED), [*map(of_method.get, sizes)], given.get(method, ""), "")
        for method, of_method in cells.items()
    ]
    failed = study.plan[study.plan["left_out"].str.startswith("failed")]
    for row in failed[failed["method"].str.endswith(CENTRED) == panel].itertuples():
        found.append((row.method.removesuffix(CENTRED), [None] * len(sizes), "", row.left_out))
    return found


# Figures -------------------------------------------------------------------------------------


def _image(ax: Axes, alt: str) -> dict[str, str]:
    """Return the figure of some axes as a data URI, with its text alternative."""
    file = io.BytesIO()
    # Without a background, and the same in each run
    options: dict[str, Any] = dict(format="svg", transparent=True, metadata={"Date": None})
    with plt.rc_context({"svg.hashsalt": "study"}):
        style.save_figure(ax, file, **options)
    source = "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()
    return dict(source=source, alt=alt)


def _axes(height: float) -> Axes:
    """Return axes little wider than a phone, where letters of a wide figure would be small."""
    return plt.subplots(figsize=(4.4, height), layout="constrained")[1]


def _rows_of(study: Any, methods: Sequence[str]) -> pd.DataFrame:
    """Return the scores of these methods, in this order and with short names."""
    rows = pd.concat([study.scores[study.scores["method"] == method] for method in methods])
    return rows.assign(method=rows["method"].map(short_name))


def _curve(study: Any, methods: Sequence[str]) -> Axes:
    """Draw scores against numbers of labelled people."""
    rows = _rows_of(study, methods)
    if not study.check.by_subject:  # else subjects have one class, and no balance
        rows = rows[rows["subject"] != POOLED]
    ax = plotting.label_efficiency(
        rows, study.metric, ax=_axes(3.8), chance=1 / len(study.check.classes)
    )
    style.draw_legend(ax, ncols=1, handlelength=3)
    ax.set(xlabel="labelled people", ylabel=study.metric.replace("_", " "))
    return ax


def _front(study: Any, means: pd.Series) -> dict[str, str] | None:
    """Draw the own pretraining, the best simple method and scratch, none of them centred."""
    ran = study.plan[study.plan["left_out"] == ""].set_index("method")["kind"]
    ran = ran[~ran.index.str.endswith(CENTRED)]
    methods = [name for name in ran.index if name.endswith(study_plan.OWN)][:1]
    if not methods:
        return None
    simple = means[means.index.isin(ran.index[ran == "simple"])]
    methods += [str(simple.idxmax())] if len(simple) else []
    methods += ["scratch"] if "scratch" in ran else []
    alt = "Means by number of labelled people; the table of all methods has the numbers."
    return _image(_curve(study, methods), alt)


def _confusion(table: pd.DataFrame) -> dict[str, str]:
    true, predicted = table["true"], table["predicted"]
    ax = plotting.confusion_matrix(true, predicted)
    right = (true == predicted).groupby(true).mean().items()
    shares = ", ".join(f"{100 * share:.0f} % of {name}" for name, share in right)
    return _image(ax, f"Table of true and predicted classes; right are {shares}.")


def _gains(study: Any) -> dict[str, dict]:
    """Draw what the controls leave of the gains over each method without pretraining."""
    images: dict[str, dict] = {}
    if study.controls is None:
        return images
    for name, rows in study.controls.groupby("against", sort=False):
        against = short_name(str(name))
        rows = rows.assign(method=rows["method"].map(short_name), against=against)
        axes = plotting.control_gains(rows, study.metric.replace("_", " "))
        for ax, n in zip(axes, sorted(rows["n_train_subjects"].unique()), strict=True):
            ax.set_title(f"{n:g} labelled people", fontsize=10)
        alt = "Gains and what is left of them; the sentences above have the numbers."
        images[against] = _image(axes[0], alt)
    return images
