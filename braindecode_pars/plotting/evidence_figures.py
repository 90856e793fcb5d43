"""Figures of what a gain needs, and of what the features of encoders hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars._common.tables import check_table, with_numbers
from braindecode_pars.plotting.score_figures import sorted_values
from braindecode_pars.plotting.style import (
    axes_for,
    draw_cells,
    legend_columns,
    remove_frame,
    series_style,
)

#: Columns that the figures need.
_OF_GAINS = (
    *("method", "against", "control", "n_train_subjects"),
    *(f"{name}{end}" for name in ("gain", "without") for end in ("", "_low", "_high")),
)
_SOURCE = ["encoder", "features"]
_OF_AUDITS = [*_SOURCE, "property", "value", "chance"]


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
    check_table(gains, "gains", _OF_GAINS)
    if "dataset" in gains and gains["dataset"].nunique() > 1:
        found = ", ".join(map(str, dict.fromkeys(gains["dataset"])))
        raise ValueError(f"gains have several datasets ({found}); select one of them.")
    rows = gains[gains["method"] != gains["against"]]
    styles = {name: number for number, name in enumerate(dict.fromkeys(rows["method"]))}
    controls = list(dict.fromkeys(rows["control"]))
    numbers = sorted_values(rows["n_train_subjects"])
    height = 1.6 + 0.12 * (1 + len(controls)) * max(3, 1 + len(styles))
    panels = axes_for(axes, 1, len(numbers), (2.2 + 2.6 * len(numbers), height), sharey=True)
    name = label or str(gains.attrs.get("metric", "the metric")).replace("_", " ")
    for ax, n in zip(panels, numbers, strict=True):
        _draw_panel(ax, rows[rows["n_train_subjects"] == n], styles, controls)
        ax.set_xlabel(f"gain in {name}\nover {rows['against'].iloc[0]}")
        ax.set_title(f"{n:g} training subjects", fontsize=10)
    texts = ["unchanged", *controls]
    panels[0].set_yticks(range(len(texts)), texts, fontsize=9)
    panels[0].set_ylim(len(texts) - 0.4, -0.6)
    handles, labels = panels[0].get_legend_handles_labels()
    columns = legend_columns(panels[0], labels)
    panels[0].figure.legend(
        handles, labels, frameon=False, loc="outside upper left", ncols=columns, handlelength=1.5
    )
    return panels


def _draw_panel(
    ax: Axes, rows: pd.DataFrame, styles: dict[str, int], controls: Sequence[str]
) -> None:
    """Draw the gains with one number of training subjects; the methods of a row are offset."""
    offsets = (np.arange(len(styles)) - (len(styles) - 1) / 2) * 0.7 / len(styles)
    for (method, number), offset in zip(styles.items(), offsets, strict=True):
        own = rows[rows["method"] == method].set_index("control").reindex(controls)
        first = own.dropna(subset=["gain"]).head(1)
        columns = [
            [f"{name}{end}" for end in ("", "_low", "_high")] for name in ("gain", "without")
        ]
        values = np.vstack([first[columns[0]].to_numpy(), own[columns[1]].to_numpy()])
        places = np.arange(len(values)) + 1 - len(first) + offset
        means, low, high = values.astype(float).T
        style = {**series_style(number), "linestyle": "", "markersize": 5, "lw": 1.3}
        ax.errorbar(means, places, xerr=[means - low, high - means], label=method, **style)
    ax.axvline(0, color="0.3", lw=0.8, zorder=0.5)
    ax.axhline(0.5, color="0.85", lw=0.8, zorder=0.5)
    remove_frame(ax, grid="x")
    ax.locator_params(axis="x", nbins=4)
    ax.tick_params(axis="y", length=0)


def audit_map(audits: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw what can be read from the features of encoders: properties by encoders.

    A cell has the R2 or the balanced accuracy. Its colour is the share of the way from the chance
    level to a perfect score, ``(value - chance) / (1 - chance)``, and 0 below chance.

    Parameters
    ----------
    audits : pandas.DataFrame
        Table from :func:`~braindecode_pars.evaluation.audit_encoder`, of one or several encoders on
        the same windows.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with a row for each property, and a column for each encoder, then for the tokens and
        the random encoders. Random encoders with equal scores are one column. A missing score is
        blank.

    Raises
    ------
    ValueError
        If columns are missing, there is no row, or a score is there twice.

    Examples
    --------
    The encoder "small" on a part of the sample in the package:

    .. plot::
        :include-source:
        :alt: Column of properties of a signal with their R2. Those of the encoder are near 1, those
            of tokens and random encoder lower, for the slope about 0.

        >>> from braindecode_pars import datasets, plotting
        >>> from braindecode_pars.evaluation import audit_encoder
        >>> people = ["Subject12", "Subject13", "Subject14", "Subject15"]
        >>> audit = audit_encoder("small", datasets.mental_arithmetic(people))
        >>> ax = plotting.audit_map(audit)

    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['small', 'tokens', 'random encoder']
    """
    check_table(audits, "audits", _OF_AUDITS)
    audits = with_numbers(audits, ["value", "chance"])
    if audits.duplicated([*_SOURCE, "property"]).any():
        raise ValueError("audits has a score twice; draw the audit of other windows alone.")
    rows = audits.drop_duplicates("property").set_index("property")["chance"]
    values = audits.set_index(["property", *_SOURCE])["value"].unstack(_SOURCE).loc[rows.index]
    columns = dict(_columns_of(values, audits))
    values = np.column_stack(list(columns.values()))
    chance = rows.to_numpy()[:, None]
    shares = np.clip((values - chance) / (1 - chance), 0, 1)
    [ax] = axes_for(ax, 1, 1, (3.6 + 0.62 * len(columns), 1.6 + 0.27 * len(rows)))
    names = [
        f"{name} (chance {_digits(level)})" if level else str(name) for name, level in rows.items()
    ]
    texts = np.vectorize(_digits)(values)
    label = "from chance (0) to perfect (1)"
    draw_cells(ax, shares, texts, names, list(columns), label=label, vmax=1, aspect="auto")
    ax.xaxis.tick_top()
    ax.set_xticks(ax.get_xticks(), list(columns), rotation=40, ha="left", rotation_mode="anchor")
    return ax


def _columns_of(values: pd.DataFrame, audits: pd.DataFrame) -> Iterator[tuple[str, np.ndarray]]:
    """Yield title and values of each column: encoders first, equal ones of other features once."""
    encoders = list(dict.fromkeys(audits["encoder"]))
    for features in dict.fromkeys(audits["features"]):
        own = [name for name in encoders if (name, features) in values]
        found = [values[name, features].to_numpy() for name in own]
        if features == "encoder":
            yield from zip(map(str, own), found, strict=True)
        elif all(np.array_equal(found[0], other, equal_nan=True) for other in found):
            yield str(features), found[0]
        else:
            yield from ((f"{features}, {name}", one) for name, one in zip(own, found, strict=True))


def _digits(value: float) -> str:
    """Return a score with two digits, without a zero in front."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-.00", ".00")
