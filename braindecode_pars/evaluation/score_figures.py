"""Figures of scores: label efficiency, scores of held-out subjects, ablations, control analyses.

The functions check, select and average the rows of tables of scores that the evaluation protocols
return.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars._common import tables
from braindecode_pars.evaluation.changed_signals import DESCRIPTIONS
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
    """Plot label efficiency: mean score of each method by number of training subjects.

    Lines are means over held-out subjects and seeds. Shaded areas are 95 % confidence intervals
    from :func:`evaluation.mean_interval <braindecode_pars.evaluation.mean_interval>`, with crossed
    random effects of subjects and draws (random subsets of labeled subjects), as in
    :func:`evaluation.paired_tests <braindecode_pars.evaluation.paired_tests>`.

    To reproduce figure 3 of the PARS paper, pass only scores over the windows of all test subjects
    together (pooled): ``scores[scores["subject"] == "all"]``. Lines are then means over seeds, and
    shaded areas are ± 1 sample standard deviation.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`evaluation.label_efficiency
        <braindecode_pars.evaluation.label_efficiency>`, or any table with the columns ``method``,
        ``subject``, ``n_train_subjects``, ``seed``, ``metric`` and ``value``.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis. If None, the name of the metric.
    ax : Axes | None
        Axes to draw on. If None, a new figure is created.
    methods : sequence of str | None
        Methods to draw, in this order. If None, all methods. The colors and markers of the methods
        do not depend on this selection.
    chance : float | None
        Chance level of the metric, drawn as a dotted line. If None, the chance level is drawn if it
        is known: 0 for kappa, 0.5 for AUROC and, if the scores are from a protocol, one divided by
        the number of classes for balanced accuracy.

    Returns
    -------
    Axes
        Axes with the curves. The horizontal axis is logarithmic if the largest number of subjects
        is more than four times the smallest number.

    Raises
    ------
    ValueError
        If the scores are empty, a column or the metric is missing, two rows differ only in
        ``value``, or there are several datasets or protocols. Also if a method in ``methods`` is
        not in the scores.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Cohen's kappa by number of training subjects for two methods, as lines with shaded
            areas; both increase.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(method=method, subject="all", n_train_subjects=n, seed=seed,
        ...          metric="kappa",
        ...          value=mean + 0.1 * np.log10(n) + rng.normal(0, 0.02))
        ...     for method, mean in [("method A", 0.4), ("method B", 0.3)]
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
    # Place ticks from the largest number to the smallest, without ticks that are too close to the
    # previous tick
    ticks = [len(sizes) - 1]
    for i in reversed(range(len(sizes) - 1)):
        if positions[ticks[-1]] - positions[i] >= 0.07 * np.ptp(positions):
            ticks.append(i)
    ax.set_xticks([sizes[i] for i in ticks], [f"{sizes[i]:g}" for i in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("number of labeled training subjects")
    style.draw_legend(ax, is_new=is_new, handlelength=3)
    return ax


def _draw_curves(
    ax: Axes, rows: pd.DataFrame, series: str, x: str, styles: Mapping[Any, int], value_label: str
) -> None:
    """Draw a line of means with a shaded area for each series.

    ``series`` and ``x`` are columns of the rows; ``styles`` contains the number of each series.
    """
    summary, unit = summarized(rows, [series, x])
    summary = summary.set_index([series, x])
    for name, number in styles.items():
        look = style.series_style(number)
        # A series without defined values has no rows, but is still in the legend.
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
    """Plot the score of each held-out subject and method, and connect the scores of a subject.

    Use this figure to see whether a method is slightly better for all subjects, or much better for
    only a few subjects. There is one group of columns for each number of training subjects, and a
    single group for scores without the column ``n_train_subjects``, such as scores from
    scikit-learn. The scores of a subject are averaged over seeds. The thick horizontal bar is the
    mean over subjects. NaN values are not drawn. Pooled rows (subject ``"all"``, scored over the
    windows of all test subjects together) are ignored.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol of :mod:`braindecode_pars.evaluation`, or any table with the columns
        ``method``, ``subject``, ``metric`` and ``value``.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis. If None, the name of the metric.
    ax : Axes | None
        Axes to draw on. If None, a new figure is created.
    methods : sequence of str | None
        Methods to draw, in this order. If None, all methods. The colors and markers of the methods
        do not depend on this selection.
    chance : float | None
        Chance level of the metric, drawn as a dotted line. If None, the chance level is drawn if it
        is known: 0 for kappa, 0.5 for AUROC and, if the scores are from a protocol, one divided by
        the number of classes for balanced accuracy.

    Returns
    -------
    Axes
        Axes with the scores.

    Raises
    ------
    ValueError
        If the scores are empty, a column or the metric is missing, two rows differ only in
        ``value``, there are several datasets or protocols, or all rows are pooled over subjects.
        Also if a method in ``methods`` is not in the scores.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Scores of twelve subjects for two methods as dots connected by lines, for 2 and 8
            labeled training subjects.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> subject_means = rng.uniform(0.3, 0.7, 12)
        >>> scores = pd.DataFrame([
        ...     dict(method=method, subject=subject, n_train_subjects=n, metric="kappa",
        ...          value=mean + effect / n + rng.normal(0, 0.03))
        ...     for method, effect in [("method A", 0), ("method B", 0.2)]
        ...     for n in (2, 8)
        ...     for subject, mean in enumerate(subject_means)
        ... ])
        >>> ax = plotting.subject_dots(scores, label="Cohen's kappa")

    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['2', '8']
    """
    # Mean over seeds, with subjects as rows and methods as columns, for each number of subjects
    rows = select(scores, metric, ("method", "subject"))
    has_numbers = "n_train_subjects" in rows
    rows = rows[rows["subject"] != tables.POOLED]
    rows = rows if has_numbers else rows.assign(n_train_subjects=0)
    if rows.empty:
        raise ValueError(
            "subject_dots requires scores of single subjects, but all scores are pooled over "
            f"subjects (subject {tables.POOLED!r}). Pass scores with a row for each subject."
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
        positions = group * step + np.arange(len(styles))
        ax.plot(positions, values.T, color=style.shade(0.85), lw=0.7, zorder=1)
        for (method, number), x, dots in zip(styles.items(), positions, values.T, strict=True):
            look = {**style.series_style(number), "linestyle": "", "markersize": 4, "alpha": 0.8}
            ax.plot(np.full(len(dots), x), dots, label="" if group else str(method), **look)
            if np.isfinite(dots).any():
                ax.hlines(np.nanmean(dots), x - 0.4, x + 0.4, color=ink, lw=2, zorder=3)
    # Axes and legend
    style.draw_chance(ax, tables.chance_level(rows) if chance is None else chance)
    ticks = np.arange(len(sizes)) * step + (len(styles) - 1) / 2
    ax.set_xticks(ticks, [f"{n:g}" if has_numbers else "" for n in sizes])
    ax.tick_params(axis="x", length=0)
    axis_name = "number of labeled training subjects\n" if has_numbers else ""
    ax.set(
        xlabel=f"{axis_name}(dots: held-out subjects; bars: mean over subjects)",
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
    """Plot an ablation: mean score by the setting ``x``, with one line per value of ``lines``.

    Lines and shaded areas are computed as in :func:`label_efficiency`: means over held-out subjects
    and seeds, with 95 % confidence intervals. If all scores are pooled (subject ``"all"``, scored
    over the windows of all test subjects together), the lines are means over seeds, and the shaded
    areas are ± 1 sample standard deviation, as in the ablations of the PARS paper (appendix A.4,
    figure 6). Scores are averaged over all settings other than ``x`` and ``lines``.

    Parameters
    ----------
    scores : DataFrame
        Scores with the columns ``subject``, ``seed``, ``metric``, ``value`` and one column for each
        setting, such as ``decoder`` and ``position_mask_ratio``. Rows without a value of ``x`` or
        ``lines`` are ignored.
    x : str
        Name of the setting (column) on the horizontal axis.
    lines : str
        Name of the setting (column) that has a line for each of its values.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis. If None, the name of the metric.
    ax : Axes | None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    Axes
        Axes with the lines. In the legend, numeric values are sorted; other values are in order of
        appearance.

    Raises
    ------
    ValueError
        If the scores are empty, a column or the metric is missing, two rows differ only in
        ``value``, there are several datasets or protocols, or no row has values of both settings.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Cohen's kappa by position mask ratio for two decoders, as lines with shaded areas;
            both increase.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(subject="all", seed=seed, metric="kappa", decoder=decoder,
        ...          position_mask_ratio=ratio,
        ...          value=mean + 0.1 * ratio + rng.normal(0, 0.01))
        ...     for decoder, mean in [("cross_attention", 0.55), ("mlp", 0.5)]
        ...     for ratio in (0.2, 0.4, 0.6, 0.8, 1.0)
        ...     for seed in range(5)
        ... ])
        >>> ax = plotting.ablation_lines(scores, x="position_mask_ratio", lines="decoder")

    >>> [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ['cross_attention', 'mlp']
    """
    if x == lines:
        raise ValueError(f"x and lines must be different settings, but both are {x!r}.")
    rows = select(scores, metric, ("subject", "seed", lines, x))
    rows = rows.dropna(subset=[lines, x])
    if rows.empty:
        raise ValueError(
            f"No row of the scores has values in both columns, x={x!r} and lines={lines!r}. Use "
            "settings that were varied together."
        )
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
    """Plot control analyses: difference from a baseline on original windows and control signals.

    A difference that disappears on a control signal depends on the property that was removed from
    this signal, see :func:`evaluation.controls <braindecode_pars.evaluation.controls>`. There is
    one panel for each number of training subjects. Error bars are uncorrected 95 % confidence
    intervals, and the vertical line marks a difference of zero.

    Parameters
    ----------
    gains : DataFrame
        Table from :func:`evaluation.control_gains <braindecode_pars.evaluation.control_gains>`, of
        one dataset.
    label : str | None
        Name of the metric. If None, the name in the table.
    axes : Axes | sequence of Axes | None
        One Axes for each number of training subjects. If None, a new figure is created.

    Returns
    -------
    ndarray of Axes
        One Axes for each number of training subjects.

    Raises
    ------
    ValueError
        If the table is empty, a column is missing, there are several datasets, the table contains a
        difference twice, or the number of axes is wrong.

    Examples
    --------
    Synthetic differences:

    .. plot::
        :include-source:
        :alt: Differences of two methods from a baseline with 95 % confidence intervals, for
            original windows and three controls. On high-pass filtered signals, the difference of
            method A is near zero.

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
    ['original', 'high-pass filtered', 'phase-randomized', 'amplitude-normalized']
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
    # Within a row, the methods are drawn at different heights.
    offsets = (np.arange(len(methods)) - (len(methods) - 1) / 2) * 0.7 / len(methods)
    for ax, n in zip(panels, numbers, strict=True):
        for number, method in enumerate(methods):
            is_method = (rows["n_train_subjects"] == n) & (rows["method"] == method)
            method_rows = rows[is_method].set_index("control").reindex(controls)
            first = method_rows.bfill().head(1)  # gain is equal in all rows
            values = np.vstack([first[gain].to_numpy(), method_rows[without].to_numpy()])
            means, low, high = values.astype(float).T
            look = {**style.series_style(number), "linestyle": "", "markersize": 5, "lw": 1.3}
            positions = np.arange(len(values)) + offsets[number]
            ax.errorbar(means, positions, xerr=[means - low, high - means], label=method, **look)
        ax.axvline(0, color=style.shade(0.3), lw=0.8, zorder=0.5)
        ax.axhline(0.5, color=style.shade(0.85), lw=0.8, zorder=0.5)
        style.remove_frame(ax, grid="x")
        ax.locator_params(axis="x", nbins=4)
        style.name_rows(ax, ["original", *(DESCRIPTIONS.get(name, name) for name in controls)])
        against = str(rows["against"].iloc[0]).replace("$", r"\$")  # no math mode
        quantity = f"difference in {name.replace('_', ' ')}"
        ax.set_xlabel(f"{quantity}\ncompared with '{against}' (95 % CI)")
        ax.set_title(f"{n:g} labeled training subject{'' if n == 1 else 's'}", fontsize=10)
    style.draw_legend(panels[0], is_new=axes is None)
    return panels


def select(scores: pd.DataFrame, metric: str, columns: Sequence[str]) -> pd.DataFrame:
    """Select the rows of one metric, and check that they are from a single dataset and protocol.

    Parameters
    ----------
    scores : DataFrame
        Scores with the columns ``metric`` and ``value``, and those listed in ``columns``.
    metric : str
        Metric to select.
    columns : sequence of str
        Other columns that the figure requires.

    Raises
    ------
    TypeError
        If ``scores`` is not a DataFrame.
    ValueError
        If the scores are empty, a column or the metric is missing, or two rows differ only in
        ``value``. Also if the figure would average over several datasets, protocols or amounts of
        labeled data.
    """
    rows = tables.checked_scores(tables.rows_of(scores, metric), ("value", *columns))
    averaged = [name for name in ("dataset", "protocol", *tables.AMOUNTS) if name not in columns]
    tables.check_one_value(rows, "scores", averaged)
    return tables.with_numbers(rows, ["n_train_subjects"])


def chosen_methods(
    rows: pd.DataFrame, methods: Sequence[str] | None
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Select the rows of the methods to draw, and assign a number to each method.

    The number is the position of the method among all methods in ``rows``. It determines the color
    and the marker of the method, which are therefore the same in a figure of fewer methods.

    Raises
    ------
    ValueError
        If a method is not in the rows.
    """
    labels = list(dict.fromkeys(rows["method"]))
    names = labels if methods is None else list(methods)
    return rows[rows["method"].isin(names)], {name: labels.index(name) for name in names}


def sorted_values(values: pd.Series) -> list:
    """Return the unique values, sorted if they are numbers, otherwise in order of appearance."""
    unique_values = values.dropna().infer_objects().drop_duplicates()
    is_numeric = pd.api.types.is_numeric_dtype(unique_values)
    return sorted(unique_values) if is_numeric else unique_values.tolist()


def summarized(rows: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, str]:
    """Return the mean and the error band of each group, and a description of both.

    The error band is the shaded area around a line. If each group has scores of single subjects, it
    is the 95 % confidence interval of :func:`~braindecode_pars.evaluation.mean_interval`. If all
    scores are pooled over subjects, the mean is computed over seeds, without NaN, and the error
    band is ± 1 sample standard deviation.

    Parameters
    ----------
    rows : DataFrame
        Scores of one metric.
    by : list of str
        Grouping columns. Scores are averaged over all other columns.

    Returns
    -------
    summary : DataFrame
        Table with the grouping columns, ``mean``, and the limits of the error band, ``ci_low`` and
        ``ci_high``, which are NaN if they are unknown.
    unit : str
        Description of the mean and the error band, for the axis label.

    Raises
    ------
    ValueError
        If some groups have only rows pooled over subjects, and other groups have only rows of
        single subjects.
    """
    is_pooled = rows["subject"] == tables.POOLED
    singles, pooled, n_groups = rows[~is_pooled], rows[is_pooled], rows.groupby(by).ngroups
    if singles.groupby(by).ngroups == n_groups:
        summary = mean_interval(singles, by=by)
        draws = summary.loc[summary["test"].isin(("two-way", "three-way", "nested")), "n_draws"]
        text = f"mean and 95 % CI over {_count(summary['n_subjects'], 'subject')}"
        return summary, f"{text}\nand {_count(draws, 'draw')}" if len(draws) else text
    if pooled.groupby(by).ngroups < n_groups:
        raise ValueError(
            "Some lines have only scores pooled over subjects (subject "
            f"{tables.POOLED!r}), and other lines only scores of single subjects, so the lines "
            "cannot be compared. Draw them in separate figures."
        )
    seeds = pooled.groupby([*by, "seed"], sort=False)["value"].mean().dropna()
    summary = seeds.groupby(by, sort=False).agg(["mean", "std", "count"]).reset_index()
    for name, sign in (("ci_low", -1), ("ci_high", 1)):
        summary[name] = summary["mean"] + sign * summary["std"]
    return summary, f"mean ± SD over {_count(summary['count'], 'seed')}"


def _count(numbers: pd.Series, unit: str) -> str:
    """Return the range of numbers as text, such as "5 to 8 subjects"."""
    low, high = int(numbers.min()), int(numbers.max())
    number = f"{low} to {high}" if low < high else f"{high}"
    return f"{number} {unit}{'s' * (high != 1)}"
