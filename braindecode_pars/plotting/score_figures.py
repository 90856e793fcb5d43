"""Figures of scores: label efficiency, held-out subjects, ablations, and what a gain needs.

Most draw the table that protocols return; its rows are selected, checked and averaged here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars._common import tables
from braindecode_pars.plotting import style


def label_efficiency(
    scores: pd.DataFrame,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
    *,
    methods: Sequence[str] | None = None,
    chance: float | None = None,
) -> Axes:
    """Draw the scores of each method as a curve over the number of training subjects.

    The figure follows the paper's figure 3, "Label Efficiency Experiment". Lines are means over
    seeds. Bands extend one sample standard deviation over seeds to both sides. The value of a seed
    is the score pooled over test subjects (subject ``"all"``) if every seed, method and number of
    subjects has one, and the mean over test subjects otherwise.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`evaluation.label_efficiency
        <braindecode_pars.evaluation.label_efficiency>`, or any table with the columns ``method``,
        ``subject``, ``n_train_subjects``, ``seed``, ``metric`` and ``value``.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis; None uses the name of the metric.
    ax : Axes | None
        Axes to draw on; None makes a new figure.
    methods : sequence of str | None
        Methods to draw, in this order; None draws all. Each keeps the style that it has among all
        methods of the scores.
    chance : float | None
        Chance level of the metric, drawn as a dotted line. None means the one that is known: 0 of
        kappa, 0.5 of AUROC, and one divided by the number of classes of balanced accuracy, in
        scores that a protocol returns.

    Returns
    -------
    Axes
        Axes with the curves. The horizontal axis is logarithmic when the numbers of subjects span
        more than a factor of four.

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, or contain several datasets or
        protocols. Also if a method in ``methods`` is not in the scores.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Kappa against the number of training subjects as two lines with bands; both rise.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(method=method, subject="all", n_train_subjects=n, seed=seed,
        ...          metric="kappa",
        ...          value=level + 0.1 * np.log10(n) + rng.normal(0, 0.02))
        ...     for method, level in [("method A", 0.4), ("method B", 0.3)]
        ...     for n in (10, 30, 100, 300)
        ...     for seed in range(5)
        ... ])
        >>> ax = plotting.label_efficiency(scores, label="Cohen's kappa")

    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['method A', 'method B']
    """
    # Mean and standard deviation over seeds
    rows = select(scores, metric, ("method", "subject", "n_train_subjects", "seed"))
    rows, styles = chosen_methods(rows, methods)
    summary = over_seeds(rows, ["method", "n_train_subjects"])
    # One curve for each method
    [ax] = style.axes_for(ax, 1, 1, (5.6, 4.0))
    _draw_curves(ax, summary, styles, label or metric)
    _draw_chance(ax, rows, metric, chance)
    sizes = sorted_values(rows["n_train_subjects"])
    logarithmic = sizes[0] > 0 and sizes[-1] > 4 * sizes[0]
    if logarithmic:
        ax.set_xscale("log")
    positions = np.log(sizes) if logarithmic else np.asarray(sizes, dtype=float)
    # From the largest number to the smallest; without ticks too close to the last one shown.
    shown = [len(sizes) - 1]
    for i in reversed(range(len(sizes) - 1)):
        if positions[shown[-1]] - positions[i] >= 0.07 * np.ptp(positions):
            shown.append(i)
    ax.set_xticks([sizes[i] for i in shown], [f"{sizes[i]:g}" for i in shown])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("training subjects")
    style.draw_legend(ax, handlelength=3)
    return ax


def _draw_curves(
    ax: Axes, summary: pd.DataFrame, styles: Mapping[Any, int], value_label: str
) -> None:
    """Draw a line of means for each series, with a band of one standard deviation over seeds.

    ``summary`` is indexed by series and position; ``styles`` numbers the series.
    """
    for series, number in styles.items():
        look = style.series_style(number)
        # Where all values are NaN there is no row; the legend keeps the series.
        curve = summary[summary.index.get_level_values(0) == series].droplevel(0).sort_index()
        ax.plot(curve.index, curve["mean"], label=str(series), markersize=5, **look)
        low, high = curve["mean"] - curve["std"], curve["mean"] + curve["std"]
        ax.fill_between(curve.index, low, high, color=look["color"], alpha=0.18, lw=0)
    low, high = (int(n) for n in summary["count"].agg(["min", "max"]).fillna(1))
    n_seeds = f"{high}" if low == high else f"{low} to {high}"
    interval = f"mean ± SD over {n_seeds} seeds" if high > 1 else "one seed"
    ax.set_ylabel(f"{value_label.replace('_', ' ')}\n({interval})")
    style.remove_frame(ax, grid="y")


def subject_dots(
    scores: pd.DataFrame,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
    *,
    methods: Sequence[str] | None = None,
    chance: float | None = None,
) -> Axes:
    """Draw a dot for each held-out subject and method, and a line between those of one subject.

    A mean does not show whether a method is a little better for all subjects or much better for a
    few. There is one group of columns for each number of training subjects, and a single one for
    scores without this column, such as those of scikit-learn. Seeds of a subject are averaged. The
    black bar is the mean over subjects. NaN values are not drawn. Rows pooled over subjects are
    ignored.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol of :mod:`braindecode_pars.evaluation`, or any table with the columns
        ``method``, ``subject``, ``metric`` and ``value``.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis; None uses the name of the metric.
    ax : Axes | None
        Axes to draw on; None makes a new figure.
    methods : sequence of str | None
        Methods to draw, in this order; None draws all. Each keeps the style that it has among all
        methods of the scores.
    chance : float | None
        Chance level of the metric, drawn as a dotted line. None means the one that is known: 0 of
        kappa, 0.5 of AUROC, and one divided by the number of classes of balanced accuracy, in
        scores that a protocol returns.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, contain several datasets or
        protocols, or contain only pooled rows. Also if a method in ``methods`` is not in the
        scores.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Dots of twelve subjects for two methods, joined by lines, with 2 and with 8 training
            subjects.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> levels = rng.uniform(0.3, 0.7, 12)
        >>> scores = pd.DataFrame([
        ...     dict(method=method, subject=subject, n_train_subjects=n, metric="kappa",
        ...          value=level + gain / n + rng.normal(0, 0.03))
        ...     for method, gain in [("method A", 0), ("method B", 0.2)]
        ...     for n in (2, 8)
        ...     for subject, level in enumerate(levels)
        ... ])
        >>> ax = plotting.subject_dots(scores, label="Cohen's kappa")

    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['2', '8']
    """
    # Mean over seeds, with subjects as rows and methods as columns, for each number of subjects
    rows = select(scores, metric, ("method", "subject"))
    numbered = "n_train_subjects" in rows
    rows = rows[rows["subject"].astype(str) != tables.POOLED]
    rows = rows if numbered else rows.assign(n_train_subjects=0)
    if rows.empty:
        raise ValueError(
            f"All scores are pooled over subjects (subject {tables.POOLED!r}); this figure needs a "
            "row for each subject."
        )
    rows, styles = chosen_methods(rows, methods)
    sizes = sorted_values(rows["n_train_subjects"])
    means = rows.pivot_table("value", ["n_train_subjects", "subject"], "method", dropna=False)

    # One column for each method, and a gap after each group
    step = len(styles) + 1
    [ax] = style.axes_for(ax, 1, 1, (np.clip(2 + 0.26 * step * len(sizes), 4.6, 14), 4.0))
    for group, size in enumerate(sizes):
        values = means.loc[size].reindex(columns=list(styles)).to_numpy()
        places = group * step + np.arange(len(styles))
        ax.plot(places, values.T, color="0.85", lw=0.7, zorder=1)
        for (method, number), x, dots in zip(styles.items(), places, values.T, strict=True):
            look = {**style.series_style(number), "linestyle": "", "markersize": 4, "alpha": 0.8}
            ax.plot(np.full(len(dots), x), dots, label="" if group else method, **look)
            if np.isfinite(dots).any():
                ax.hlines(np.nanmean(dots), x - 0.4, x + 0.4, color="black", lw=2, zorder=3)
    # Axes and legend
    _draw_chance(ax, rows, metric, chance)
    ticks = np.arange(len(sizes)) * step + (len(styles) - 1) / 2
    ax.set_xticks(ticks, [f"{n:g}" if numbered else "" for n in sizes])
    ax.tick_params(axis="x", length=0)
    # The label has 5 inches on one line.
    space = " " if ax.bbox.width / ax.figure.dpi > 5 else "\n"
    numbers = f"training subjects{space}" if numbered else ""
    ax.set(
        xlabel=f"{numbers}(a dot is a held-out subject, a black bar the mean)",
        ylabel=label or metric.replace("_", " "),
    )
    style.draw_legend(ax)
    style.remove_frame(ax, grid="y")
    return ax


def ablation_lines(
    scores: pd.DataFrame,
    *,
    x: str,
    lines: str,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean score over one setting, as a line for each value of another.

    Behind each line, a band extends one sample standard deviation over seeds to both sides, as in
    the paper's ablations of masking, patch sampling and decoder (appendix A.4, figure 6). The value
    of a seed is the score pooled over test subjects (subject ``"all"``) if every seed and pair has
    one, and the mean over test subjects otherwise. It is averaged over all other columns that vary.

    Parameters
    ----------
    scores : DataFrame
        Scores with the columns ``subject``, ``seed``, ``metric``, ``value`` and one column for each
        setting, such as ``decoder`` and ``position_mask_ratio``. Rows without a value for one of
        the two settings are ignored.
    x : str
        Name of the setting on the horizontal axis.
    lines : str
        Name of the setting with one line for each value.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis; None uses the name of the metric.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with the lines. Numbers in the legend ascend; other settings are in order of
        appearance.

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, contain several datasets or
        protocols, or contain no row with both settings.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Kappa against the mask ratio as two lines with bands, one for each decoder; both
            rise.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(subject="all", seed=seed, metric="kappa", decoder=decoder,
        ...          position_mask_ratio=ratio,
        ...          value=level + 0.1 * ratio + rng.normal(0, 0.01))
        ...     for decoder, level in [("cross_attention", 0.55), ("mlp", 0.5)]
        ...     for ratio in (0.2, 0.4, 0.6, 0.8, 1.0)
        ...     for seed in range(5)
        ... ])
        >>> ax = plotting.ablation_lines(scores, x="position_mask_ratio", lines="decoder")

    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['cross_attention', 'mlp']
    """
    if x == lines:
        raise ValueError(f"Both settings are {x!r}; pass two different ones.")
    rows = select(scores, metric, ("subject", "seed", lines, x))
    rows = rows.dropna(subset=[lines, x])
    if rows.empty:
        raise ValueError(f"No row of the scores has values of both {lines} and {x}.")
    summary = over_seeds(rows, [lines, x])
    positions = sorted_values(rows[x])
    [ax] = style.axes_for(ax, 1, 1, (5.6, 4.0))
    numbers = {value: number for number, value in enumerate(sorted_values(rows[lines]))}
    _draw_curves(ax, summary, numbers, label or metric)
    _draw_chance(ax, rows, metric)
    ax.set_xticks(positions)
    ax.set_xlabel(x.replace("_", " "))
    ax.legend(frameon=False, handlelength=3, title=lines.replace("_", " "))
    return ax


def control_gains(
    gains: pd.DataFrame, label: str | None = None, axes: Sequence[Axes] | Axes | None = None
) -> np.ndarray:
    """Draw the gain of each method on windows as they are, and what is left without one thing.

    There is one panel for each number of training subjects. Lines are intervals of 95 %, and the
    vertical line is a gain of zero.

    Parameters
    ----------
    gains : DataFrame
        Table of :func:`evaluation.control_gains <braindecode_pars.evaluation.control_gains>`, of
        one dataset.
    label : str | None
        Name of the metric; None uses that of the table.
    axes : Axes | sequence of Axes | None
        One for each number of training subjects; None makes a new figure.

    Returns
    -------
    ndarray of Axes

    Raises
    ------
    ValueError
        If the table lacks a column, is empty, or has several datasets, or the number of axes is
        wrong.

    Examples
    --------
    Synthetic gains:

    .. plot::
        :include-source:
        :alt: Gains of two methods with intervals, unchanged and without three things. That of
            method A is zero without slow voltages.

        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> table = [
        ...     ("method A", "slow", 0.06, 0.005), ("method A", "phase", 0.06, 0.02),
        ...     ("method A", "amplitude", 0.06, 0.055), ("method B", "slow", 0.03, 0.03),
        ...     ("method B", "phase", 0.03, 0.025), ("method B", "amplitude", 0.03, 0.0),
        ... ]
        >>> gains = pd.DataFrame([
        ...     dict(method=method, against="scratch", control=control, n_train_subjects=4,
        ...          gain=gain, gain_low=gain - 0.02, gain_high=gain + 0.02,
        ...          without=without, without_low=without - 0.02, without_high=without + 0.02)
        ...     for method, control, gain, without in table
        ... ])
        >>> [ax] = plotting.control_gains(gains, label="balanced accuracy")

    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['unchanged', 'slow', 'phase', 'amplitude']
    """
    found, left = (
        [f"{name}{end}" for end in ("", "_low", "_high")] for name in ("gain", "without")
    )
    columns = ["method", "against", "control", "n_train_subjects", *found, *left]
    tables.check_table(gains, "gains", columns)
    _check_one_source(gains, "gains")
    rows = gains[gains["method"] != gains["against"]]
    methods, controls = (list(dict.fromkeys(rows[name])) for name in ("method", "control"))
    numbers = sorted_values(rows["n_train_subjects"])
    height = 1.6 + 0.12 * (1 + len(controls)) * max(3, 1 + len(methods))
    panels = style.axes_for(axes, 1, len(numbers), (2.2 + 2.6 * len(numbers), height), sharey=True)
    name = label or str(gains.attrs.get("metric", "the metric")).replace("_", " ")
    # The methods of a row are offset.
    offsets = (np.arange(len(methods)) - (len(methods) - 1) / 2) * 0.7 / len(methods)
    for ax, n in zip(panels, numbers, strict=True):
        for number, method in enumerate(methods):
            is_own = (rows["n_train_subjects"] == n) & (rows["method"] == method)
            own = rows[is_own].set_index("control").reindex(controls)
            first = own.bfill().head(1)  # the gain is the same in all rows that have it
            values = np.vstack([first[found].to_numpy(), own[left].to_numpy()])
            means, low, high = values.astype(float).T
            look = {**style.series_style(number), "linestyle": "", "markersize": 5, "lw": 1.3}
            places = np.arange(len(values)) + offsets[number]
            ax.errorbar(means, places, xerr=[means - low, high - means], label=method, **look)
        ax.axvline(0, color="0.3", lw=0.8, zorder=0.5)
        ax.axhline(0.5, color="0.85", lw=0.8, zorder=0.5)
        style.remove_frame(ax, grid="x")
        ax.locator_params(axis="x", nbins=4)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(f"gain in {name}\nover {rows['against'].iloc[0]}")
        ax.set_title(f"{n:g} training subjects", fontsize=10)
    texts = ["unchanged", *controls]
    panels[0].set_yticks(range(len(texts)), texts, fontsize=9)
    panels[0].set_ylim(len(texts) - 0.4, -0.6)
    style.draw_legend(panels[0], of_figure=True)
    return panels


def select(scores: pd.DataFrame, metric: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows of one metric, which are of one dataset and protocol.

    Parameters
    ----------
    scores : DataFrame
        Scores with the columns ``metric``, ``value`` and ``columns``.
    metric : str
        Metric to select.
    columns : sequence of str
        Other columns that the figure needs.

    Raises
    ------
    TypeError
        If ``scores`` is not a DataFrame.
    ValueError
        If the scores are empty, lack a column or the metric, or are of several datasets or
        protocols, over which the figure would average.
    """
    rows = tables.of_metric(scores, metric, ("metric", "value", *columns))
    _check_one_source(rows, "scores")
    return rows


def _check_one_source(table: pd.DataFrame, name: str) -> None:
    for column in ("dataset", "protocol"):
        if column in table and table[column].nunique() > 1:
            found = ", ".join(map(str, sorted_values(table[column])))
            raise ValueError(
                f"{name} have several values of {column} ({found}), which would be averaged; "
                f"select one, as in {name}[{name}[{column!r}] == ...]."
            )


def _draw_chance(ax: Axes, rows: pd.DataFrame, metric: str, level: float | None = None) -> None:
    """Draw the given chance level, or the one that is known of rows of one dataset."""
    if level is None:
        dataset = rows["dataset"].iloc[0] if "dataset" in rows else None
        level = tables.chance_level(rows, metric, dataset)
    style.draw_chance(ax, level)


def chosen_methods(
    rows: pd.DataFrame, methods: Sequence[str] | None
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows of the methods to draw, and the position of each among all methods.

    A method has the style of its position, so that figures of a part of the methods agree.

    Raises
    ------
    ValueError
        If a method is not in the rows, is given twice, or none is given.
    """
    found = list(dict.fromkeys(rows["method"]))
    names = found if methods is None else list(methods)
    unknown = [name for name in names if name not in found]
    if unknown or not names or len(set(names)) < len(names) or isinstance(methods, str):
        raise ValueError(
            f"methods must be different methods of the scores, which have {', '.join(found)}; got "
            f"{methods!r}."
        )
    return rows[rows["method"].isin(names)], {name: found.index(name) for name in names}


def sorted_values(values: pd.Series) -> list:
    """Return the unique values: numbers in ascending order, others in order of appearance."""
    found = list(dict.fromkeys(values.dropna()))
    numeric = pd.api.types.is_numeric_dtype(pd.Series(found).infer_objects())
    return sorted(found) if numeric else found


def over_seeds(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return mean, sample standard deviation and number of the values of the seeds of each group.

    The value of a seed is the pooled score, or the mean over subjects. Pooled scores and means over
    subjects are different quantities. All values are therefore pooled scores if every seed and
    group has one, and means over subjects otherwise. Means ignore NaN.

    Parameters
    ----------
    rows : DataFrame
        Scores of one metric.
    by : list of str
        Columns that tell groups apart. Values of a seed are averaged over all other columns.

    Returns
    -------
    DataFrame
        Table with the columns ``mean``, ``std`` (NaN for one seed) and ``count``.

    Raises
    ------
    ValueError
        If neither pooled rows nor rows of single subjects exist for every group.
    """
    # Try the pooled rows first, then the rows of single subjects.
    keys = [*by, "seed"]
    wanted = rows.groupby(keys).ngroups
    pooled = rows["subject"].astype(str) == tables.POOLED
    for part in (rows[pooled], rows[~pooled]):
        values = part.groupby(keys, sort=False)["value"].mean()
        if len(values) == wanted:
            return values.dropna().groupby(by, sort=False).agg(["mean", "std", "count"])
    raise ValueError(
        f"Some scores have only rows pooled over subjects (subject {tables.POOLED!r}) and some "
        "have only rows of single subjects, which cannot be compared; draw them in separate "
        "figures."
    )
