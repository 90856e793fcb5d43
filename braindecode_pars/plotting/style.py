"""What all figures share: colors and other styles, classes, axes, legends, files and pages."""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import jinja2
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.transforms import offset_copy
from numpy.typing import ArrayLike

from braindecode_pars._common import sleep_stages
from braindecode_pars._common.files import replace_file

#: Okabe and Ito's colors, which readers with color vision deficiency can distinguish.
COLORS = ("#0072B2", "#E69F00", "#999999", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: In gray print the colors look alike, so series also differ in marker, line style or hatching.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")
#: Names by label, such as ``class_names_`` of a classifier, or the names of 0, 1, ....
ClassNames = Mapping[Any, str] | Sequence[str]
Entry = TypeVar("Entry")


def series_style(number: int) -> dict[str, Any]:
    """Return color, marker and line style of a series.

    Parameters
    ----------
    number : int
        Position of the series in the legend, from 0. Pairs of color and marker repeat after 70.

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
    panels = np.ravel(np.asarray(axes, dtype=object))
    if len(panels) != wanted or not all(isinstance(ax, Axes) for ax in panels):
        raise ValueError(f"This figure needs {wanted} axes, got {len(panels)}: {axes!s:.99}")
    return panels


def save_figure(ax: Axes, file: Any, **options: Any) -> None:
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


def shade(lightness: float) -> str:
    """Return a gray between texts (0) and background (1): 0 is white in a dark style."""
    ink = np.mean(to_rgb(plt.rcParams["text.color"]))
    return f"{(1 - lightness) * ink + lightness * (ink < 0.5):.3f}"


def named_artists(ax: Axes) -> dict[str, Any]:
    """Return the artists that have a label, by their labels.

    matplotlib leaves out labels that begin with "_", such as those that it sets itself.
    """
    artists: list[Any] = [*ax.lines, *ax.collections, *ax.patches, *ax.containers]
    by_name = {str(artist.get_label()): artist for artist in artists}
    unnamed = re.compile("_(child|container)[0-9]+|_nolegend_|")
    return {name: artist for name, artist in by_name.items() if not unnamed.fullmatch(name)}


def named_legend(owner: Any, handles: Mapping[str, Any], **options: Any) -> Legend:
    """Draw a legend of axes or a figure; names stay as they are, also with "_" and "$"."""
    places = [str(i) for i in range(len(handles))]
    legend = owner.legend([*handles.values()], places, frameon=False, **options)
    for text, name in zip(legend.get_texts(), handles, strict=True):
        text.set(text=name, parse_math=False)
    return legend


def draw_legend(ax: Axes, *, is_new: bool = False, **options: Any) -> None:
    """Draw the legend of some axes; long names are wrapped.

    Parameters
    ----------
    ax : Axes
        Axes with the series.
    is_new : bool
        Whether the figure is a new one, in the constrained layout. The legend is then to the right
        of all axes, and the figure becomes wider; else it is where it covers least of the axes.
    **options
        Options of matplotlib's legend.
    """
    handles = {textwrap.fill(name, 40): artist for name, artist in named_artists(ax).items()}
    if is_new:
        make_room(named_legend(ax.figure, handles, loc="outside right upper", **options))
    else:
        named_legend(ax, handles, **options)


def make_room(legend: Legend) -> None:
    """Enlarge the figure of a legend by its width, and to its height."""
    figure = cast(Figure, legend.figure)
    box, (width, height) = legend.get_window_extent(), figure.get_size_inches()
    margin = 0.2  # inches, above and below
    figure.set_size_inches(
        width + box.width / figure.dpi, max(height, box.height / figure.dpi + margin)
    )


def draw_chance(ax: Axes, chance: float | None) -> None:
    """Draw the chance level as a dotted line, with a name beside the axes; None draws nothing."""
    if chance is None:
        return
    ax.axhline(chance, color=shade(0.25), lw=1, ls=":", zorder=1.5)
    # The x-coordinate is a share of the width; a text within the axes would cover points.
    place = offset_copy(ax.get_yaxis_transform(), ax.figure.canvas.figure, x=3, units="points")
    ax.text(1, chance, "chance", transform=place, va="center", size=8)


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
            # Where black and white have the same contrast with these blues (WCAG 2)
            color = "black" if value < 0.715 * image.get_clim()[1] else "white"
            ax.text(j, i, str(texts[i, j]), ha="center", va="center", color=color, fontsize=9)
    ax.set_xticks(range(len(columns)), columns, parse_math=False)
    ax.set_yticks(range(len(rows)), rows, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label=label)


def remove_frame(ax: Axes, grid: Literal["x", "y"] | None = None) -> None:
    """Remove the top and right lines of the frame, and draw grid lines across one axis."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=shade(0.92))
        ax.set_axisbelow(True)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name rows at the heights 0, 1, ..., from top to bottom."""
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


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


# Classes -----------------------------------------------------------------------------------------

#: Warm colors for wake and REM, and blues that darken from N1 to stage 4.
_STAGE_COLORS = {
    "W": "#E69F00",
    "R": "#CC79A7",
    "N1": "#C6E3F5",
    "light": "#A3D3EE",
    "N2": "#6DB6E0",
    "NREM": "#6DB6E0",
    "N3": "#1F78B4",
    "N4": "#08456F",
    "sleep": "#1F78B4",
    sleep_stages.UNSCORED: "#BBBBBB",
}


def label_list(name: str, labels: ArrayLike) -> list:
    """Return labels, shape (n_windows,), as a list; any other shape raises ValueError."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; pass one label for each window.")
    return array.tolist()


def is_unknown(label: Any) -> bool:
    """Whether a label is missing: None, NaN, NA or the number -1."""
    return pd.isna(label) or label == -1


def by_number(label: Any) -> tuple[bool, Any]:
    """Key for sorting labels: numbers by value, then texts."""
    return isinstance(label, str), label


def names_by_label(class_names: ClassNames) -> dict[Any, str]:
    """Return the name of each label, and of each name."""
    mapping = class_names if isinstance(class_names, Mapping) else dict(enumerate(class_names))
    names = {label: str(name) for label, name in mapping.items()}
    return {**{name: name for name in names.values()}, **names}


def entries(labels: ArrayLike, table: Mapping[Any, Entry]) -> list[Entry | None]:
    """Return the entry of each label in a table; None for a missing label.

    Raises
    ------
    ValueError
        When a label that is not missing has no entry.
    """
    values = label_list("labels", labels)
    absent = {label for label in values if label not in table and not is_unknown(label)}
    if absent:
        raise ValueError(
            f"No class is called {', '.join(map(repr, sorted(absent, key=by_number)))}; known are "
            f"{', '.join(map(repr, table))}."
        )
    return [table.get(label) for label in values]


def in_figure_order(names: Sequence[str], order: Sequence[str] | None) -> list[str]:
    """Return classes from top to bottom: sleep stages from wake to N3, others as they are given.

    Raises
    ------
    ValueError
        When a given order lacks a class, or has one twice.
    """
    if order is None:
        return sleep_stages.top_to_bottom(names) if sleep_stages.are_stages(names) else list(names)
    if not set(names) <= set(order) or len(set(order)) < len(order):
        raise ValueError(
            f"order={list(order)} must have each class once; the classes are "
            f"{', '.join(map(repr, names))}."
        )
    return list(order)


def area_styles(names: Sequence[str]) -> list[dict[str, str]]:
    """Return color and hatching of the area of each class."""
    if sleep_stages.are_stages(names):
        return [
            dict(facecolor=_STAGE_COLORS[stage])
            for stage in map(sleep_stages.stage_of, names)
            if stage
        ]
    n = len(COLORS)
    return [
        dict(facecolor=COLORS[i % n], hatch=HATCHES[i // n % len(HATCHES)])
        for i in range(len(names))
    ]
