"""Figure of PARS over the head: two tokens, and their shift in position and time."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from braindecode_pars import datasets
from braindecode_pars.models import electrode_positions
from braindecode_pars.models.electrodes import HEAD_RADIUS

__all__ = ["shift_over_the_head"]

NAMES = (
    *("Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz", "C4", "T8"),
    *("P7", "P3", "Pz", "P4", "P8", "O1", "O2"),
)
#: Tokens of the figure: electrode, and start of the patch in seconds.
FIRST, SECOND = ("F3", 2), ("P4", 6)
COLORS = ("C0", "C1")


def shift_over_the_head() -> Figure:
    """Draw two tokens on the head and in time, and the four numbers that PARS predicts."""
    figure, (head, time) = plt.subplots(
        1, 2, figsize=(7.6, 3.4), layout="constrained", width_ratios=(1, 1.5)
    )
    where = electrode_positions([{"ch_name": name} for name in NAMES]) / HEAD_RADIUS
    _draw_head(head, where)
    _draw_time(time)
    first, second = (where[NAMES.index(name)] for name, _ in (FIRST, SECOND))
    x, y, z = second - first
    when = (SECOND[1] - FIRST[1]) / 10
    figure.supxlabel(
        f"shift from {FIRST[0]} to {SECOND[0]}: x {x:+.1f}, y {y:+.1f}, z {z:+.1f} head radii, "
        f"t {when:+.1f} windows",
        fontsize=10,
    )
    return figure


def _draw_head(ax: Axes, where: np.ndarray) -> None:
    places = where[:, :2]
    center = (places.max(axis=0) + places.min(axis=0)) / 2
    radius = 1.08 * np.linalg.norm(places - center, axis=1).max()
    ax.add_patch(Circle(center, radius, fill=False, color="0.6"))
    nose = np.array([[-0.12, 0.0], [0.0, 0.14], [0.12, 0.0]]) + center + [0, radius]
    ax.plot(*nose.T, color="0.6")
    ax.scatter(*places.T, s=18, color="0.6")
    ends = [places[NAMES.index(name)] for name, _ in (FIRST, SECOND)]
    for end, (name, _), color in zip(ends, (FIRST, SECOND), COLORS, strict=True):
        ax.scatter(*end, s=90, color=color, zorder=3)
        ax.annotate(name, end, (9, 7), textcoords="offset points")
    ax.annotate("", ends[1], ends[0], arrowprops=dict(arrowstyle="-|>", shrinkA=6, shrinkB=6))
    ax.set(aspect="equal", title="where")
    ax.axis("off")


def _draw_time(ax: Axes) -> None:
    (recording, *_) = datasets.mental_arithmetic(["Subject00"]).datasets
    shown = ("F3", "Fz", "P4", "P3")
    signals = recording.raw.get_data(picks=list(shown))[:, : 10 * 128] * 1e6
    times = np.arange(signals.shape[1]) / 128
    for row, (name, signal) in enumerate(zip(shown, signals, strict=True)):
        height = -row
        trace = height + (signal - signal.mean()) / 90
        ax.plot(times, trace, color="0.5", linewidth=0.6)
        ax.text(-0.2, height, name, ha="right", va="center")
        for (electrode, second), color in zip((FIRST, SECOND), COLORS, strict=True):
            if name == electrode:
                own = (times >= second) & (times < second + 1)
                ax.axvspan(second, second + 1, color=color, alpha=0.12, linewidth=0)
                ax.plot(times[own], trace[own], color=color, linewidth=1.4)
    low = -len(shown) + 0.25
    ax.annotate(
        "", (SECOND[1], low), (FIRST[1], low), arrowprops=dict(arrowstyle="-|>", color="black")
    )
    ax.set(
        title="when", xlabel="time in the window (s)", xlim=(0, 10), yticks=[], ylim=(low - 0.2, 1)
    )
    ax.spines[["left", "top", "right"]].set_visible(False)
