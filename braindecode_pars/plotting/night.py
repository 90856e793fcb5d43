"""A hypnogram with one example window of each sleep stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from braindecode_pars.plotting._classes import check_order
from braindecode_pars.plotting._style import COLORS, axes_for, remove_frame
from braindecode_pars.plotting.hypnogram import hypnogram
from braindecode_pars.sleep_stages import top_to_bottom

__all__ = ["night"]


def night(
    windows: np.ndarray,
    stages: np.ndarray,
    stage_names: Sequence[str],
    sfreq: float,
    channel: int = 0,
    axes: Sequence[Axes] | None = None,
    *,
    order: Sequence[str] | None = None,
) -> np.ndarray:
    """Draw a hypnogram and, below it, one window of each stage.

    Parameters
    ----------
    windows : ndarray, shape (n_windows, n_chans, n_times)
        Windows in volts, in chronological order.
    stages : ndarray of int, shape (n_windows,)
        Stages as indices into ``stage_names``.
    stage_names : sequence of str
        Names of the stages.
    sfreq : float
        Sampling rate in Hz.
    channel : int
        Index of the channel to draw.
    axes : sequence of 1 + len(stage_names) Axes | None
        Axes to draw on; None makes a new figure.
    order : sequence of str | None
        As in :func:`hypnogram <braindecode_pars.plotting.hypnogram>`.

    Returns
    -------
    ndarray of Axes, shape (1 + len(stage_names),)
        Panels: the hypnogram, then the stages from top to bottom. The panel of a stage that does
        not occur is empty.

    Raises
    ------
    ValueError
        If the numbers of stages and windows differ, or a stage is unknown. Without ``order``, if a
        name is not that of a sleep stage.

    Examples
    --------
    One hour of simulated EEG:

    .. plot::
        :include-source:
        :alt: A hypnogram of one hour, and below it thirty seconds of EEG for each of five stages.

        >>> import numpy as np
        >>> from braindecode_pars import as_sklearn, datasets, plotting
        >>> nights = datasets.simulated.sleep(n_subjects=1, hours=1, n_chans=1)
        >>> X, stages, _ = as_sklearn(nights)
        >>> windows = np.stack([window for window, *_ in nights])
        >>> names = datasets.simulated.STAGES
        >>> axes = plotting.night(windows, stages, names, sfreq=100)

    >>> axes.shape
    (6,)
    """
    stages = np.asarray(stages)
    if len(windows) != len(stages):
        raise ValueError(
            f"There are {len(windows)} windows and {len(stages)} stages; pass one stage for each "
            "window."
        )
    # Hypnogram
    n = len(stage_names)
    axes = axes_for(axes, 1 + n, 1, (9, 1.8 + 1.15 * n), height_ratios=[1.5] + [1] * n)
    n_times = windows.shape[-1]
    order = top_to_bottom(stage_names) if order is None else check_order(stage_names, order)
    seconds = n_times / sfreq
    hypnogram(stages, stage_names=stage_names, window_seconds=seconds, ax=axes[0], order=order)
    # The middle one of the windows of each stage
    seconds = np.arange(n_times) / sfreq
    for ax, name in zip(axes[1:], order, strict=True):
        of_stage = np.flatnonzero(stages == list(stage_names).index(name))
        if len(of_stage):
            middle = of_stage[len(of_stage) // 2]
            # volts -> microvolts
            ax.plot(seconds, 1e6 * windows[middle, channel], lw=0.5, color=COLORS[0])
        ax.set(ylim=(-90, 90), xlim=(0, seconds[-1]), ylabel=f"{name}\nµV")
        if ax is not axes[-1]:
            ax.set_xticklabels([])
        remove_frame(ax)
    axes[-1].set_xlabel("seconds")
    return axes
