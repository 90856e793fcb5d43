"""Figures of scores: label efficiency, held-out subjects, ablations, and what a gain needs.

Most draw the table that protocols return; its rows are selected, checked and averaged here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars._common import tables
from braindecode_pars.evaluation.paired_tests import mean_interval
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

    Lines are means over held-out subjects and seeds. Bands are the 95 % confidence intervals of
    :func:`evaluation.mean_interval <braindecode_pars.evaluation.mean_interval>`, of the same kind
    as those of the tests: subjects and draws of labeled subjects are random. Scores that have only
    rows pooled over subjects (subject ``"all"``) are drawn as in the paper's figure 3, "Label
    Efficiency Experiment": lines are means over seeds, and bands extend one sample standard
    deviation over seeds to both sides.
    For that figure, pass ``scores[scores["subject"] == "all"]``.

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
        If the scores are empty, lack a column or the metric, have rows that differ in their value
        alone, or contain several datasets or protocols. Also if a method in ``methods`` is not in
        the scores.

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

    >>> [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ['method A', 'method B']
    """
    rows = select(scores, metric, ("method", "subject", "n_train_subjects", "seed"))
    rows, styles = chosen_methods(rows, methods)
    is_new = ax is None
    [ax] = style.axes_for(ax, 1, 1, (5.6, 4.0))
    _draw_curves(ax, rows, "method", "n_train_subjects", styles, label or metric)
    style.draw_chance(ax, tables.chance_level(rows) if chance is None else chance)
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
    style.draw_legend(ax, is_new=is_new, handlelength=3)
    return ax


def _draw_curves(
    ax: Axes, rows: pd.DataFrame, series: str, x: str, styles: Mapping[Any, int], value_label: str
) -> None:
    """Draw a line of means for each series, with a band.

    ``series`` and ``x`` are columns of the rows; ``styles`` numbers the series.
    """
    summary, unit = summarized(rows, [series, x])
    summary = summary.set_index([series, x])
    for name, number in styles.items():
        look = style.series_style(number)
        # Where all values are NaN there is no row; the legend keeps the series.
        curve = summary[summary.index.get_level_values(0) == name].droplevel(0).sort_index()
        ax.plot(curve.index, curve["mean"], label=str(name), markersize=5, **look)
        limits = curve["ci_low"], curve["ci_high"]
        ax.fill_between(curve.index, *limits, color=look["color"], alpha=0.18, lw=0)
    ax.set_ylabel(f"{value_label.replace('_', ' ')}\n({unit})")
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
    thick bar is the mean over subjects. NaN values are not drawn. Rows pooled over subjects are
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
        If the scores are empty, lack a column or the metric, have rows that differ in their value
        alone, contain several datasets or protocols, or contain only pooled rows. Also if a method
        in ``methods`` is not in the scores.

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
    rows = rows[rows["subject"] != tables.POOLED]
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
    step, is_new = len(styles) + 1, ax is None
    [ax] = style.axes_for(ax, 1, 1, (np.clip(2 + 0.26 * step * len(sizes), 4.6, 14), 4.0))
    ink = style.shade(0)
    for group, size in enumerate(sizes):
        values = means.loc[size].reindex(columns=list(styles)).to_numpy()
        places = group * step + np.arange(len(styles))
        ax.plot(places, values.T, color=style.shade(0.85), lw=0.7, zorder=1)
        for (method, number), x, dots in zip(styles.items(), places, values.T, strict=True):
            look = {**style.series_style(number), "linestyle": "", "markersize": 4, "alpha": 0.8}
            ax.plot(np.full(len(dots), x), dots, label="" if group else str(method), **look)
            if np.isfinite(dots).any():
                ax.hlines(np.nanmean(dots), x - 0.4, x + 0.4, color=ink, lw=2, zorder=3)
    # Axes and legend
    style.draw_chance(ax, tables.chance_level(rows) if chance is None else chance)
    ticks = np.arange(len(sizes)) * step + (len(styles) - 1) / 2
    ax.set_xticks(ticks, [f"{n:g}" if numbered else "" for n in sizes])
    ax.tick_params(axis="x", length=0)
    numbers = "training subjects\n" if numbered else ""
    ax.set(
        xlabel=f"{numbers}(a dot is a held-out subject, a bar the mean)",
        ylabel=label or metric.replace("_", " "),
    )
    style.remove_frame(ax, grid="y")
    style.draw_legend(ax, is_new=is_new)
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

    Means and bands are those of :func:`label_efficiency`: means over held-out subjects with 95 %
    confidence intervals; of pooled scores alone, means over seeds with one sample standard
    deviation, as in the paper's ablations of masking, patch sampling and decoder (appendix A.4,
    figure 6). Values are averaged over all other columns that vary.

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
        If the scores are empty, lack a column or the metric, have rows that differ in their value
        alone, contain several datasets or protocols, or contain no row with both settings.

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

    >>> [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ['cross_attention', 'mlp']
    """
    if x == lines:
        raise ValueError(f"Both settings are {x!r}; pass two different ones.")
    rows = select(scores, metric, ("subject", "seed", lines, x))
    rows = rows.dropna(subset=[lines, x])
    if rows.empty:
        raise ValueError(f"No row of the scores has values of both {lines} and {x}.")
    is_new = ax is None
    [ax] = style.axes_for(ax, 1, 1, (5.6, 4.0))
    numbers = {value: number for number, value in enumerate(sorted_values(rows[lines]))}
    _draw_curves(ax, rows, lines, x, numbers, label or metric)
    style.draw_chance(ax, tables.chance_level(rows))
    ax.set_xticks(sorted_values(rows[x]))
    ax.set_xlabel(x.replace("_", " "), parse_math=False)
    title = lines.replace("_", " ")
    style.draw_legend(ax, is_new=is_new, handlelength=3, title=title, alignment="left")
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
        If the table lacks a column, is empty, has several datasets, or a gain twice, or the number
        of axes is wrong.

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
        ...     dict(method=method, against="from scratch", control=control, n_train_subjects=4,
        ...          gain=gain, gain_low=gain - 0.02, gain_high=gain + 0.02,
        ...          without=without, without_low=without - 0.02, without_high=without + 0.02)
        ...     for method, control, gain, without in table
        ... ])
        >>> [ax] = plotting.control_gains(gains, label="balanced accuracy")

    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['unchanged', 'slow', 'phase', 'amplitude']
    """
    gain, without = (
        [f"{name}{end}" for end in ("", "_low", "_high")] for name in ("gain", "without")
    )
    columns = ["method", "against", "control", "n_train_subjects", *gain, *without]
    tables.check_table(gains, "gains", columns)
    tables.check_one_value(gains, "gains", ["dataset", "metric"])
    tables.check_once(gains, "gains", ["method", "control", "n_train_subjects"])
    rows = gains[gains["method"] != gains["against"]]
    methods, controls = (list(dict.fromkeys(rows[name])) for name in ("method", "control"))
    numbers = sorted_values(rows["n_train_subjects"])
    height = 1.6 + 0.12 * (1 + len(controls)) * max(3, 1 + len(methods))
    panels = style.axes_for(axes, 1, len(numbers), (2.2 + 2.6 * len(numbers), height), sharey=True)
    name = label or (gains["metric"].iloc[0] if "metric" in gains else "the metric")
    # The methods of a row are offset.
    offsets = (np.arange(len(methods)) - (len(methods) - 1) / 2) * 0.7 / len(methods)
    for ax, n in zip(panels, numbers, strict=True):
        for number, method in enumerate(methods):
            is_method = (rows["n_train_subjects"] == n) & (rows["method"] == method)
            method_rows = rows[is_method].set_index("control").reindex(controls)
            first = method_rows.bfill().head(1)  # the gain is the same in all rows that have it
            values = np.vstack([first[gain].to_numpy(), method_rows[without].to_numpy()])
            means, low, high = values.astype(float).T
            look = {**style.series_style(number), "linestyle": "", "markersize": 5, "lw": 1.3}
            places = np.arange(len(values)) + offsets[number]
            ax.errorbar(means, places, xerr=[means - low, high - means], label=method, **look)
        ax.axvline(0, color=style.shade(0.3), lw=0.8, zorder=0.5)
        ax.axhline(0.5, color=style.shade(0.85), lw=0.8, zorder=0.5)
        style.remove_frame(ax, grid="x")
        ax.locator_params(axis="x", nbins=4)
        style.name_rows(ax, ["unchanged", *controls])
        against = str(rows["against"].iloc[0]).replace("$", r"\$")  # not mathematics
        ax.set_xlabel(f"gain in {name.replace('_', ' ')}\nover {against}")
        ax.set_title(f"{n:g} training subjects", fontsize=10)
    style.draw_legend(panels[0], is_new=axes is None)
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
        If the scores are empty, lack a column or the metric, have rows that differ in their value
        alone, or are of several datasets, protocols or amounts of labels, over which the figure
        would average.
    """
    rows = tables.checked_scores(tables.rows_of(scores, metric), ("value", *columns))
    averaged = [name for name in ("dataset", "protocol", *tables.AMOUNTS) if name not in columns]
    tables.check_one_value(rows, "scores", averaged)
    return tables.with_numbers(rows, ["n_train_subjects"])


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
    labels = list(dict.fromkeys(rows["method"]))
    names = labels if methods is None else list(methods)
    unknown = [name for name in names if name not in labels]
    if unknown or not names or len(set(names)) < len(names) or isinstance(methods, str):
        raise ValueError(
            f"methods must be different methods of the scores, which have {', '.join(labels)}; got "
            f"{methods!r}."
        )
    return rows[rows["method"].isin(names)], {name: labels.index(name) for name in names}


def sorted_values(values: pd.Series) -> list:
    """Return the unique values: numbers in ascending order, others in order of appearance."""
    unique_values = list(dict.fromkeys(values.dropna()))
    numeric = pd.api.types.is_numeric_dtype(pd.Series(unique_values).infer_objects())
    return sorted(unique_values) if numeric else unique_values


def summarized(rows: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, str]:
    """Return the mean of each group with the limits of its band, and what the band is.

    Where each group has scores of single subjects, the band is the 95 % confidence interval of
    :func:`~braindecode_pars.evaluation.mean_interval`. Where each group has pooled scores only, the
    mean is that of seeds, without NaN, and the band is one sample standard deviation to both sides.

    Parameters
    ----------
    rows : DataFrame
        Scores of one metric.
    by : list of str
        Columns that tell groups apart. Values are averaged over all other columns.

    Returns
    -------
    summary : DataFrame
        Table with the columns of groups, ``mean``, and the limits ``ci_low`` and ``ci_high``, which
        are NaN where they are unknown.
    unit : str
        Description of mean and band.

    Raises
    ------
    ValueError
        If neither pooled rows nor rows of single subjects exist for every group.
    """
    is_pooled = rows["subject"] == tables.POOLED
    n_groups = rows.groupby(by).ngroups
    if rows[~is_pooled].groupby(by).ngroups == n_groups:
        summary = mean_interval(rows, by=by)
        draws = summary.loc[summary["test"].isin(("two-way", "three-way", "nested")), "n_draws"]
        text = f"mean and 95 % CI over {_count(summary['n_subjects'], 'subject')}"
        return summary, f"{text}\nand {_count(draws, 'draw')}" if len(draws) else text
    if rows[is_pooled].groupby(by).ngroups == n_groups:
        seeds = rows[is_pooled].groupby([*by, "seed"], sort=False)["value"].mean().dropna()
        summary = seeds.groupby(by, sort=False).agg(["mean", "std", "count"]).reset_index()
        for name, sign in (("ci_low", -1), ("ci_high", 1)):
            summary[name] = summary["mean"] + sign * summary["std"]
        return summary, f"mean ± SD over {_count(summary['count'], 'seed')}"
    raise ValueError(
        f"Some scores have only rows pooled over subjects (subject {tables.POOLED!r}) and some "
        "have only rows of single subjects, which cannot be compared; draw them in separate "
        "figures."
    )


def _count(numbers: pd.Series, unit: str) -> str:
    """Return the smallest and the largest number as text, such as "5 to 8 subjects"."""
    low, high = int(numbers.min()), int(numbers.max())
    number = f"{low} to {high}" if low < high else f"{high}"
    return f"{number} {unit}{'s' * (high != 1)}"
