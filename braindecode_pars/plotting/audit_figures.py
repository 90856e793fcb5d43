"""The figure of an audit: what the features of encoders hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars._common.checks import checked
from braindecode_pars._common.tables import check_table, with_numbers
from braindecode_pars.plotting.style import axes_for, draw_cells

_KEYS = ["encoder", "features"]
_COLUMNS = [*_KEYS, "property", "value", "chance"]


@checked()
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
    check_table(audits, "audits", _COLUMNS)
    audits = with_numbers(audits, ["value", "chance"])
    if audits.duplicated([*_KEYS, "property"]).any():
        raise ValueError("audits has a score twice; draw the audit of other windows alone.")
    rows = audits.drop_duplicates("property").set_index("property")["chance"]
    values = audits.set_index(["property", *_KEYS])["value"].unstack(_KEYS).loc[rows.index]
    columns = dict(_columns(values, audits))
    values = np.column_stack(list(columns.values()))
    chance = rows.to_numpy()[:, None]
    shares = np.clip((values - chance) / (1 - chance), 0, 1)
    size = 3.6 + 0.62 * len(columns), 1.6 + 0.27 * len(rows)
    [ax] = axes_for(ax, 1, 1, size)
    names = [
        f"{name} (chance {_text(level)})" if level else str(name) for name, level in rows.items()
    ]
    draw_cells(
        ax,
        shares,
        lambda i, j: _text(values[i, j]),
        names,
        list(columns),
        label="from chance (0) to perfect (1)",
        cmap="Blues",
        vmin=0,
        vmax=1,
        aspect="auto",
    )
    ax.xaxis.tick_top()
    ax.set_xticks(
        range(len(columns)), list(columns), rotation=40, ha="left", rotation_mode="anchor"
    )
    return ax


def _columns(values: pd.DataFrame, audits: pd.DataFrame) -> Iterator[tuple[str, np.ndarray]]:
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


def _text(value: float) -> str:
    """Return a score with two digits, without a zero in front."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-.00", ".00")
