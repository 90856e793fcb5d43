"""Figures of audits: what features hold of signals and of the subject."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars._common import tables
from braindecode_pars.plotting import style


def audit_map(audits: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw what can be read from the features of encoders: properties by encoders.

    A cell has the R2 or the balanced accuracy. Its color is the share of the way from the chance
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
        >>> subjects = ["Subject12", "Subject13", "Subject14", "Subject15"]
        >>> audit = audit_encoder("small", datasets.mental_arithmetic(subjects))
        >>> ax = plotting.audit_map(audit)

    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['small', 'tokens', 'random encoder']
    """
    source = ["encoder", "features"]
    tables.check_table(audits, "audits", [*source, "property", "value", "chance"])
    audits = tables.with_numbers(audits, ["value", "chance"])
    tables.check_once(audits, "audits", [*source, "property"])
    rows = audits.drop_duplicates("property").set_index("property")["chance"]
    table = audits.set_index(["property", *source])["value"].unstack(source).loc[rows.index]
    # Encoders first, and other features once where they are equal
    columns: dict[str, np.ndarray] = {}
    encoders = list(dict.fromkeys(audits["encoder"]))
    for features in dict.fromkeys(audits["features"]):
        values_by_encoder = {
            name: table[name, features].to_numpy() for name in encoders if (name, features) in table
        }
        first, *others = values_by_encoder.values()
        if features == "encoder":
            columns |= {str(name): column for name, column in values_by_encoder.items()}
        elif all(np.array_equal(first, other, equal_nan=True) for other in others):
            columns[str(features)] = first
        else:
            columns |= {f"{features}, {name}": column for name, column in values_by_encoder.items()}
    values = np.column_stack(list(columns.values()))
    chance = rows.to_numpy()[:, None]
    shares = np.clip((values - chance) / (1 - chance), 0, 1)
    [ax] = style.axes_for(ax, 1, 1, (3.6 + 0.62 * len(columns), 1.6 + 0.27 * len(rows)))
    names = [
        f"{name} (chance {_digits(level)})" if level else str(name) for name, level in rows.items()
    ]
    texts = np.vectorize(_digits)(values)
    label = "from chance (0) to perfect (1)"
    style.draw_cells(ax, shares, texts, names, list(columns), label=label, vmax=1, aspect="auto")
    ax.xaxis.tick_top()
    turned: dict[str, Any] = dict(rotation=40, ha="left", rotation_mode="anchor")
    ax.set_xticks(ax.get_xticks(), list(columns), parse_math=False, **turned)
    return ax


def _digits(value: float) -> str:
    """Return a score with two digits, without a zero in front."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-.00", ".00")


def subjects_in_features(
    table: pd.DataFrame, axes: Sequence[Axes] | Axes | None = None
) -> np.ndarray:
    """Draw how much of features is the person, and what is left when that is erased.

    There is one panel for each measure. An upright line is what chance gives: the mean of
    permutations, or the chance level of an accuracy.

    Parameters
    ----------
    table : pandas.DataFrame
        Table from :func:`~braindecode_pars.evaluation.audit_subjects`.
    axes : Axes | sequence of Axes | None
        One for each measure; None makes a new figure.

    Returns
    -------
    ndarray of Axes

    Raises
    ------
    ValueError
        If the table lacks a column or is empty, or the number of axes is wrong.

    Examples
    --------
    Band power of the sample in the package:

    .. plot::
        :include-source:
        :alt: Three panels. By person is most of the variance, and by class little. People are told
            apart, and no longer when they are erased. The cosine of classes is above its null.

        >>> from braindecode_pars import as_sklearn, datasets, plotting
        >>> from braindecode_pars.evaluation import LogBandPower, audit_subjects
        >>> windows = datasets.mental_arithmetic([f"Subject0{i}" for i in range(8)])
        >>> X, y, groups = as_sklearn(windows)
        >>> table = audit_subjects({"log band power": LogBandPower().fit_transform(X)}, y, groups)
        >>> axes = plotting.subjects_in_features(table)

    >>> [ax.get_xlabel() for ax in axes]
    ['explained variance', 'balanced accuracy', 'cosine']
    """
    columns = ["features", "property", "measure", "erased", "value", "null"]
    tables.check_table(table, "table", columns)
    tables.check_once(table, "table", columns[:4])
    names, measures = (list(dict.fromkeys(table[key])) for key in ("features", "measure"))
    kinds = list(dict.fromkeys(zip(table["property"], table["erased"], strict=True)))
    size = (1.6 + 1.7 * len(measures), 1.5 + 0.6 * len(names))  # and a legend
    panels = style.axes_for(axes, 1, len(measures), size, sharey=True)
    for ax, measure in zip(panels, measures, strict=True):
        for number, (what, erased) in enumerate(kinds):
            is_kind = (table["property"] == what) & (table["erased"] == erased)
            kind_rows = table[is_kind & (table["measure"] == measure)].set_index("features")
            kind_rows = kind_rows.reindex(names)
            places = np.arange(len(names)) + (number - (len(kinds) - 1) / 2) * 0.7 / len(kinds)
            look = {**style.series_style(number), "linestyle": "", "markersize": 6}
            label = what if erased == "nothing" else f"{what}, {erased} erased"
            ax.plot(kind_rows["value"], places, label=label, **look)
            ax.plot(kind_rows["null"], places, **{**look, "marker": "|", "markersize": 11})
        ax.set_xlabel(measure)
        style.remove_frame(ax, grid="x")
        style.name_rows(ax, names)
    style.draw_legend(panels[0], is_new=axes is None)
    return panels
