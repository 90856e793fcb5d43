"""A night at a glance: its stages, and what the signal looks like in each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from braindecode_pars.plotting._style import COLORS, axes_for, bare
from braindecode_pars.plotting.hypnogram import hypnogram, laboratory_order

__all__ = ["night"]


def night(
    windows: np.ndarray,
    stages: np.ndarray,
    stage_names: Sequence[str],
    sfreq: float,
    channel: int = 0,
    axes: Sequence[Axes] | None = None,
) -> np.ndarray:
    """A hypnogram, and one window of each stage below it.

    Parameters
    ----------
    windows : ndarray, shape (n_windows, n_chans, n_times)
        Volts, in chronological order.
    stages : ndarray of int, shape (n_windows,)
        Indices into ``stage_names``.
    stage_names : sequence of str
        What they are called.
    sfreq : float
        Sampling rate in Hz.
    channel : int
        Which channel to draw.
    axes : sequence of 1 + len(stage_names) Axes | None
        Made when not given.

    Returns
    -------
    ndarray of Axes, shape (1 + len(stage_names),)
        The hypnogram, then the stages from top to bottom; one that does not occur stays empty.

    Raises
    ------
    ValueError
        If there are not as many stages as windows, or a stage is unknown.

    Examples
    --------
    A simulated hour:

    .. plot::
        :include-source:

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
        raise ValueError(f"There are {len(windows)} windows and {len(stages)} stages.")
    n = len(stage_names)
    axes = axes_for(axes, 1 + n, 1, (9, 1.8 + 1.15 * n), height_ratios=[1.5] + [1] * n)
    n_times = windows.shape[-1]
    hypnogram(stages, stage_names=stage_names, window_seconds=n_times / sfreq, ax=axes[0])
    seconds = np.arange(n_times) / sfreq
    for ax, name in zip(axes[1:], laboratory_order(stage_names), strict=True):
        of_stage = np.flatnonzero(stages == list(stage_names).index(name))
        if len(of_stage):
            middle = of_stage[len(of_stage) // 2]
            ax.plot(seconds, 1e6 * windows[middle, channel], lw=0.5, color=COLORS[0])
        ax.set(ylim=(-90, 90), xlim=(0, seconds[-1]), ylabel=f"{name}\nµV")
        if ax is not axes[-1]:
            ax.set_xticklabels([])
        bare(ax)
    axes[-1].set_xlabel("seconds")
    return axes
