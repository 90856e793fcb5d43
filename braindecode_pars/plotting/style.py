"""What all figures share: colours and other styles, axes, legends, files and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import jinja2
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from braindecode_pars._common.files import replace_file

#: Okabe and Ito's colours, which readers with colour vision deficiency can distinguish.
COLORS = ("#0072B2", "#E69F00", "#999999", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: In grey print the colours look alike, so series also differ in marker, line style or hatching.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")


def series_style(number: int) -> dict[str, Any]:
    """Return colour, marker and line style of a series.

    Parameters
    ----------
    number : int
        Position of the series in the legend, from 0. Pairs of colour and marker repeat after 70.

    Examples
    --------
    >>> series_style(0)
    {'color': '#0072B2', 'marker': 'o', 'linestyle': '-'}
    """
    return dict(
        color=COLORS[number % len(COLORS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle=LINES[number % len(LINES)],
    )


def axes_for(
    axes: Sequence[Axes] | Axes | None,
    n_rows: int,
    n_columns: int,
    figsize: tuple[float, float],
    **gridspec: Any,
) -> np.ndarray:
    """Check the number of the given axes, or make the axes of a new figure.

    Returns
    -------
    ndarray of Axes, shape (n_rows * n_columns,)

    Raises
    ------
    ValueError
        If the number of given axes is not ``n_rows * n_columns``.
    """
    wanted = n_rows * n_columns
    if axes is None:
        _, axes = plt.subplots(
            n_rows, n_columns, figsize=figsize, layout="constrained", squeeze=False, **gridspec
        )
    given = np.ravel(np.asarray(axes, dtype=object))
    if len(given) != wanted or not all(isinstance(ax, Axes) for ax in given):
        raise ValueError(f"This figure needs {wanted} axes, got {len(given)}: {axes!s:.99}")
    return given


def save_figure(ax: Axes, file: Path, **options: Any) -> None:
    """Write the figure of some axes, and close it. Options are those of ``savefig``."""
    figure = cast(Figure, ax.figure)
    figure.savefig(file, **options)
    plt.close(figure)


def write_page(
    path: str | Path, template: Path, content: Mapping[str, Any], **filters: Callable[..., str]
) -> Path:
    """Write a page from a template, which may include files beside it, with filters by name."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    file = Path(path).expanduser()
    replace_file(file, environment.get_template(template.name).render(content))
    return file


def legend_columns(ax: Axes, labels: Sequence[str]) -> int:
    """Return the number of columns of a legend that fit into the width of the figure."""
    width = ax.figure.bbox.width / ax.figure.dpi  # inches
    # Symbol and space, then letters of 10 points
    entry = 0.7 + 0.075 * max(len(str(label)) for label in labels)
    return max(1, min(len(labels), int(width / entry)))


def draw_legend(ax: Axes, labels: Sequence[str], **options: Any) -> None:
    """Draw a legend with as many columns as fit: above the axes, if not told otherwise."""
    above: Any = dict(loc="lower left", bbox_to_anchor=(0, 1), ncols=legend_columns(ax, labels))
    ax.legend(frameon=False, **(above | options))


def draw_chance(ax: Axes, chance: float | None) -> None:
    """Draw the chance level as a dotted line with a name; None draws nothing."""
    if chance is None:
        return
    ax.axhline(chance, color="0.25", lw=1, ls=":", zorder=1.5)
    place = ax.get_yaxis_transform()  # the x-coordinate is a share of the width
    box = dict(facecolor="white", edgecolor="none", alpha=0.7, pad=0.5)
    ax.text(1, chance, "chance", transform=place, ha="right", va="bottom", size=8, bbox=box)


def draw_cells(
    ax: Axes,
    values: np.ndarray,
    texts: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    label: str,
    **options: Any,
) -> None:
    """Draw a matrix from 0 as blue cells with texts, rows from top to bottom; NaN stays blank."""
    image = ax.imshow(np.ma.masked_invalid(values), cmap="Blues", vmin=0, **options)
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            color = text_color(image.to_rgba(value))
            ax.text(j, i, str(texts[i, j]), ha="center", va="center", color=color, fontsize=9)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label=label)


def text_color(rgba: Sequence[float] | np.ndarray) -> str:
    """Return black or white, whichever has the higher contrast with the background (WCAG 2)."""
    # Relative luminance of sRGB; the two contrasts are equal at sqrt(1.05 * 0.05) - 0.05.
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgba[:3]]
    luminance = np.dot([0.2126, 0.7152, 0.0722], linear)
    return "black" if luminance + 0.05 > (1.05 * 0.05) ** 0.5 else "white"


def remove_frame(ax: Axes, grid: Literal["x", "y"] | None = None) -> None:
    """Remove the top and right lines of the frame, and draw grid lines across one axis."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color="0.92")
        ax.set_axisbelow(True)


def time_unit(seconds: float) -> tuple[str, int]:
    """Return the unit of a time axis of this length, and the number of seconds in it.

    Examples
    --------
    >>> time_unit(8 * 3600), time_unit(600), time_unit(60)
    (('hours', 3600), ('minutes', 60), ('seconds', 1))
    """
    if seconds >= 3600:
        return "hours", 3600
    return ("minutes", 60) if seconds > 180 else ("seconds", 1)
