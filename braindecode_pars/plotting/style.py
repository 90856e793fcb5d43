"""Style that all figures share: colors, markers, classes, axes and legends; saving of figures."""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
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

#: Color palette of Okabe and Ito, for readers with color vision deficiency.
COLORS = ("#0072B2", "#E69F00", "#999999", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: Markers of series, so that series can be distinguished in grayscale.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
#: Line styles of series.
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
#: Hatching of areas.
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")
#: Class names: a mapping of labels to names, such as ``class_names_`` of a classifier, or a
#: sequence of the names of the labels 0, 1, ....
ClassNames = Mapping[Any, str] | Sequence[str]
Entry = TypeVar("Entry")


def series_style(number: int) -> dict[str, Any]:
    """Return color, marker and line style of a series.

    Parameters
    ----------
    number : int
        Position of the series in the legend, starting from 0. The first 70 series have different
        combinations of color and marker.

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
    """Check the number of axes, or create the axes of a new figure if ``axes`` is None.

    Returns
    -------
    ndarray of Axes, shape (n_rows * n_columns,)
        Axes of the panels, row by row.

    Raises
    ------
    ValueError
        If the number of axes is not ``n_rows * n_columns``.
    """
    n_expected = n_rows * n_columns
    if axes is None:
        _, axes = plt.subplots(
            n_rows, n_columns, figsize=figsize, layout="constrained", squeeze=False, **gridspec
        )
    panels = np.ravel(np.asarray(axes, dtype=object))
    if len(panels) != n_expected:
        raise ValueError(
            f"The number of axes must be {n_expected}, one per panel of this figure, got "
            f"{len(panels)}. Pass {n_expected} matplotlib Axes, or None to create a new figure."
        )
    return panels


def save_figure(ax: Axes, file: Any, **options: Any) -> None:
    """Save the figure of ``ax`` and close it. The options are passed to ``savefig``."""
    figure = cast(Figure, ax.figure)
    figure.savefig(file, **options)
    plt.close(figure)


def write_page(
    path: str | Path, template: Path, content: Mapping[str, Any], **filters: Callable[..., str]
) -> Path:
    """Write a page from a jinja2 template, which may include other files from its folder.

    Keyword arguments are additional jinja2 filters; their names can be used in the template.
    """
    file = Path(path).expanduser()
    replace_file(file, _compiled(template, tuple(filters.items())).render(content))
    return file


@cache  # a study updates its report often
def _compiled(template: Path, filters: tuple[tuple[str, Callable[..., str]], ...]) -> Any:
    """Return a jinja2 template with these filters."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(template.name)


def shade(lightness: float) -> str:
    """Return a gray between the text color (0) and the background (1), even in dark styles."""
    ink = np.mean(to_rgb(plt.rcParams["text.color"]))
    return f"{(1 - lightness) * ink + lightness * (ink < 0.5):.3f}"


def named_artists(ax: Axes) -> dict[str, Any]:
    """Return the labeled artists of axes as a dict from label to artist.

    Unlike in legends of matplotlib, labels that begin with "_" are included, unless matplotlib has
    set them itself.
    """
    artists: list[Any] = [*ax.lines, *ax.collections, *ax.patches, *ax.containers]
    by_name = {str(artist.get_label()): artist for artist in artists}
    unnamed = re.compile("_(child|container)[0-9]+|_nolegend_|")
    return {name: artist for name, artist in by_name.items() if not unnamed.fullmatch(name)}


def named_legend(owner: Any, handles: Mapping[str, Any], **options: Any) -> Legend:
    """Draw a legend of axes or of a figure. Names are shown verbatim, even with "_" and "$"."""
    places = [str(i) for i in range(len(handles))]
    legend = owner.legend([*handles.values()], places, frameon=False, **options)
    for text, name in zip(legend.get_texts(), handles, strict=True):
        text.set(text=name, parse_math=False)
    return legend


def draw_legend(ax: Axes, *, is_new: bool = False, **options: Any) -> None:
    """Draw the legend of axes. Long names are wrapped.

    Parameters
    ----------
    ax : Axes
        Axes with the series.
    is_new : bool
        Whether the plotting function created the figure, with the constrained layout. If True, the
        legend is placed to the right of all axes, and the figure becomes wider. If False, the
        legend is placed inside the axes.
    **options
        Options of ``legend`` of matplotlib.
    """
    handles = {textwrap.fill(name, 40): artist for name, artist in named_artists(ax).items()}
    if not is_new:
        named_legend(ax, handles, **options)
        return
    figure = cast(Figure, ax.figure)
    legend = named_legend(figure, handles, loc="outside right upper", **options)
    box, (width, height) = legend.get_window_extent(), figure.get_size_inches()
    margin = 0.2  # inches, above and below
    figure.set_size_inches(
        width + box.width / figure.dpi, max(height, box.height / figure.dpi + margin)
    )


def draw_chance(ax: Axes, chance: float | None) -> None:
    """Draw the chance level as a dotted line with a label. If ``chance`` is None, draw nothing."""
    if chance is None:
        return
    ax.axhline(chance, color=shade(0.25), lw=1, ls=":", zorder=1.5)
    # The label is to the right of the axes, so that it covers no points. The x-coordinate is a
    # fraction of the width of the axes.
    place = offset_copy(ax.get_yaxis_transform(), ax.figure.canvas.figure, x=3, units="points")
    ax.text(1, chance, "chance\nlevel", transform=place, va="center", size=8)


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
    """Draw a matrix of nonnegative values as blue cells with texts. Cells with NaN are blank."""
    image = ax.imshow(np.ma.masked_invalid(values), cmap="Blues", vmin=0, **options)
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            # At this value, black and white texts have the same contrast with the blue (WCAG 2).
            color = "black" if value < 0.715 * image.get_clim()[1] else "white"
            ax.text(j, i, str(texts[i, j]), ha="center", va="center", color=color, fontsize=9)
    ax.set_xticks(range(len(columns)), columns, parse_math=False)
    ax.set_yticks(range(len(rows)), rows, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label=label)


def remove_frame(ax: Axes, grid: Literal["x", "y"] | None = None) -> None:
    """Remove the top and right spines, and draw the grid lines of one axis."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=shade(0.92))
        ax.set_axisbelow(True)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Label the rows of a figure, which are at the y-coordinates 0, 1, ..., from top to bottom."""
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


def time_unit(seconds: float) -> tuple[str, int]:
    """Return the unit of a time axis of this length, and the number of seconds per unit.

    Examples
    --------
    >>> time_unit(8 * 3600), time_unit(600), time_unit(60)
    (('hours', 3600), ('minutes', 60), ('seconds', 1))
    """
    if seconds >= 3600:
        return "hours", 3600
    return ("minutes", 60) if seconds > 180 else ("seconds", 1)


# Classes -----------------------------------------------------------------------------------------

#: Colors of sleep stages: warm colors for wake and REM, and increasingly dark blues from N1 to
#: stage 4.
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
    """Convert labels of shape (n_windows,) to a list, and raise ValueError for other shapes."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must have shape (n_windows,), got shape {array.shape}. Pass one label for "
            "each window."
        )
    return array.tolist()


def is_unknown(label: Any) -> bool:
    """Return whether a label is missing: None, NaN, NA or the number -1."""
    return pd.isna(label) or label == -1


def by_number(label: Any) -> tuple[bool, Any]:
    """Sort key of labels: numbers by value, then strings."""
    return isinstance(label, str), label


def names_by_label(class_names: ClassNames) -> dict[Any, str]:
    """Return a mapping of labels to names, which also maps each name to itself."""
    mapping = class_names if isinstance(class_names, Mapping) else dict(enumerate(class_names))
    names = {label: str(name) for label, name in mapping.items()}
    return {**{name: name for name in names.values()}, **names}


def entries(labels: ArrayLike, table: Mapping[Any, Entry]) -> list[Entry | None]:
    """Look up each label in a table; return None for missing labels.

    Raises
    ------
    ValueError
        If a label that is not missing has no entry.
    """
    values = label_list("labels", labels)
    absent = {label for label in values if label not in table and not is_unknown(label)}
    if absent:
        raise ValueError(
            "These labels have no class name: "
            f"{', '.join(map(repr, sorted(absent, key=by_number)))}. Class names, and labels with "
            f"a class name: {', '.join(map(repr, table))}. Correct the labels, or add the missing "
            "class names."
        )
    return [table.get(label) for label in values]


def in_figure_order(names: Sequence[str], order: Sequence[str] | None) -> list[str]:
    """Return the classes in the order of a figure, from top to bottom.

    If ``order`` is None, sleep stages are sorted from wake to N3, and the order of other classes is
    not changed.

    Raises
    ------
    ValueError
        If ``order`` does not contain each class exactly once.
    """
    if order is None:
        return sleep_stages.top_to_bottom(names) if sleep_stages.are_stages(names) else list(names)
    if not set(names) <= set(order) or len(set(order)) < len(order):
        raise ValueError(
            f"order must contain each class exactly once, got order={list(order)}. List each of "
            f"these classes once: {', '.join(map(repr, names))}."
        )
    return list(order)


def area_styles(names: Sequence[str]) -> list[dict[str, str]]:
    """Return the color and the hatching of the area of each class."""
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
