"""Figures of probing analyses: signal properties and subject information in features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars._common import tables
from braindecode_pars.plotting import style


def audit_map(audits: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Plot a probing analysis as a heat map, with properties as rows and encoders as columns.

    Each cell shows R2 or balanced accuracy. The color of the cell is the normalized score, from 0
    (chance level) to 1 (perfect score): ``(value - chance) / (1 - chance)``, or 0 below chance
    level.

    Parameters
    ----------
    audits : pandas.DataFrame
        Table from :func:`~braindecode_pars.evaluation.audit_encoder`, with one or several encoders
        that were analyzed on the same windows.
    ax : Axes | None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    Axes
        Axes with a row for each property, and columns for the encoders, for their tokens (the
        input of the transformer) and for random encoders of the same size. Random encoders with
        equal scores are shown in one column. Missing scores are blank.

    Raises
    ------
    ValueError
        If a column is missing, the table is empty, or the table contains a score twice.

    Examples
    --------
    The encoder "small" on four subjects of the bundled dataset:

    .. plot::
        :include-source:
        :alt: Heat map of signal properties. R2 of the encoder is near 1. R2 of tokens and random
            encoder is lower, and about 0 for the slope.

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
    # Tokens have a single column if their scores are equal for all encoders, and so do random
    # encoders
    columns: dict[str, pd.Series] = {}
    for features, part in audits.groupby("features", sort=False):
        table = part.pivot(index="property", columns="encoder", values="value")
        table = table.reindex(index=rows.index, columns=part["encoder"].unique())
        is_encoder = features == "encoder"
        if not is_encoder and len(table.T.drop_duplicates()) == 1:
            columns[str(features)] = table.iloc[:, 0]
        else:
            prefix = "" if is_encoder else f"{features}, "
            columns |= {f"{prefix}{name}": table[name] for name in table}
    values = np.column_stack(list(columns.values()))
    chance = rows.to_numpy()[:, None]
    normalized = np.clip((values - chance) / (1 - chance), 0, 1)
    [ax] = style.axes_for(ax, 1, 1, (3.6 + 0.62 * len(columns), 1.6 + 0.27 * len(rows)))
    names = [
        f"{name} (chance level {_digits(chance_level)})" if chance_level else str(name)
        for name, chance_level in rows.items()
    ]
    texts = np.vectorize(_digits)(values)
    label = "normalized score (0: chance level, 1: perfect)"
    cell_options: Any = dict(label=label, vmax=1, aspect="auto")
    style.draw_cells(ax, normalized, texts, names, list(columns), **cell_options)
    ax.xaxis.tick_top()
    rotation: dict[str, Any] = dict(rotation=40, ha="left", rotation_mode="anchor")
    ax.set_xticks(ax.get_xticks(), list(columns), parse_math=False, **rotation)
    return ax


def _digits(value: float) -> str:
    """Return a score with two decimals, without a leading zero."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-.00", ".00")


def subjects_in_features(
    table: pd.DataFrame, axes: Sequence[Axes] | Axes | None = None
) -> np.ndarray:
    """Plot subject information in features, and class decoding with and without this information.

    There is one panel for each measure: explained variance, balanced accuracy, and the cosine
    between the class directions (differences between the class means) of different subjects.
    Vertical marks show the value expected by chance: the mean over permutations or, for balanced
    accuracy, the chance level. In the legend, "LEACE fitted on training subjects" means that
    subject information was removed with linear concept erasure
    (:class:`~braindecode_pars.evaluation.LinearErasure`), which was fitted on the training subjects
    only.

    Parameters
    ----------
    table : pandas.DataFrame
        Table from :func:`~braindecode_pars.evaluation.audit_subjects`.
    axes : Axes | sequence of Axes | None
        One Axes for each measure. If None, a new figure is created.

    Returns
    -------
    ndarray of Axes
        One Axes for each measure.

    Raises
    ------
    ValueError
        If the table is empty, a column is missing, the table contains a measurement twice, or the
        number of axes is wrong.

    Examples
    --------
    Log band power of eight subjects of the bundled dataset:

    .. plot::
        :include-source:
        :alt: Three panels. Most of the variance is explained by subject, and little by class.
            Subject decoding is above chance level, but not after erasing the subject. The cosine
            between classes is above the mean of its permutations.

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
    indexed = table.set_index(columns[:4])
    size = (1.4 + 1.6 * len(measures), 1.5 + 0.6 * len(names))  # and a legend
    panels = style.axes_for(axes, 1, len(measures), size, sharey=True)
    for ax, measure in zip(panels, measures, strict=True):
        for number, (target, erased) in enumerate(kinds):
            kind_rows = indexed.reindex([(name, target, measure, erased) for name in names])
            positions = np.arange(len(names)) + (number - (len(kinds) - 1) / 2) * 0.7 / len(kinds)
            look = {**style.series_style(number), "linestyle": "", "markersize": 6}
            label = target if erased == "nothing" else f"{target}, LEACE fitted on {erased}"
            ax.plot(kind_rows["value"], positions, label=label, **look)
            ax.plot(kind_rows["null"], positions, **{**look, "marker": "|", "markersize": 11})
        ax.set_xlabel(measure)
        style.remove_frame(ax, grid="x")
        style.name_rows(ax, names)
    style.draw_legend(panels[0], is_new=axes is None)
    return panels
