"""Hypnogram: sleep stages over a night."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._style import COLORS, axes_for, remove_frame

__all__ = ["hypnogram"]

#: Usual order of stages in a hypnogram, from top to bottom: wake, REM, then N1 to N3.
DISPLAY_ORDER = ("W", "R", "N1", "N2", "N3")


def display_order(stage_names: Sequence[str]) -> list[str]:
    """Return stage names from top to bottom; other names follow in the given order.

    Examples
    --------
    >>> display_order(["N3", "N2", "N1", "R", "W"])
    ['W', 'R', 'N1', 'N2', 'N3']
    """
    known = [name for name in DISPLAY_ORDER if name in stage_names]
    return known + [name for name in stage_names if name not in DISPLAY_ORDER]


def hypnogram(
    true: ArrayLike,
    predicted: ArrayLike | None = None,
    stage_names: Sequence[str] | None = None,
    window_seconds: float = 30.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the sleep stages of one night, with predicted stages and differences if given.

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        True stages in chronological order, as indices into ``stage_names`` or as names. The values
        -1, NaN and None stand for an unknown stage, which stays blank.
    predicted : ndarray, shape (n_windows,) | None
        Predicted stages, in the same form.
    stage_names : sequence of str | None
        Names of the stages; required when stages are indices.
    window_seconds : float
        Length of a window in seconds.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with the hypnogram. With a prediction, the title shows the percentage of windows in
        which both agree. Windows with an unknown stage in either do not count.

    Raises
    ------
    ValueError
        If a stage is not in ``stage_names``, or the lengths differ.

    Examples
    --------
    Simulated stages of one night, and a prediction with N2 in a tenth of the windows:

    .. plot::
        :include-source:

        >>> import numpy as np
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.hypnogram(720, rng)  # six hours
        >>> predicted = np.where(rng.random(720) < 0.1, 2, true)
        >>> ax = plotting.hypnogram(true, predicted, datasets.simulated.STAGES)

    Stages may also be names:

    >>> ax = plotting.hypnogram(["W", "N1", "N2", "N2"], ["W", "N1", "N1", "N2"])
    >>> ax.get_title("left")
    'agreement 75 % of 4 windows'
    """
    # Check the stages
    given = {"true": np.asarray(true)}
    if predicted is not None:
        given["predicted"] = np.asarray(predicted)
    for name, stages in given.items():
        if stages.ndim != 1 or len(stages) == 0:
            raise ValueError(
                f"{name} has shape {stages.shape}; pass the stages of one night, (n_windows,)."
            )
    if len({len(stages) for stages in given.values()}) > 1:
        raise ValueError(
            f"There are {len(given['true'])} true and {len(given['predicted'])} predicted stages; "
            "pass one of each for every window."
        )
    if stage_names is None:
        stage_names = _names_among(given)
    order = display_order(stage_names)
    rows = {name: _rows(name, stages, stage_names) for name, stages in given.items()}

    # Steps, and a row of differences below the stages
    [ax] = axes_for(ax, 1, 1, (9, 2.6))
    hours = np.arange(len(given["true"]) + 1) * window_seconds / 3600
    bottom = len(order) - 1
    ticks, labels = list(range(len(order))), order
    if predicted is None:
        ax.stairs(-rows["true"], hours, baseline=None, color="0.2")
    else:
        ax.stairs(-rows["true"], hours, baseline=None, color="0.72", lw=3.2, label="true")
        style = dict(color=COLORS[0], lw=1.1, label="predicted")
        ax.stairs(-rows["predicted"], hours, baseline=None, **style)
        bottom += 1
        ticks, labels = [*ticks, bottom], [*labels, "differ"]
        _mark_differences(ax, rows["true"], rows["predicted"], hours, -bottom)
        ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    # Axes
    ax.set_yticks([-tick for tick in ticks], labels)
    ax.set(xlabel="hours", xlim=(0, hours[-1]), ylim=(-bottom - 0.45, 0.45))
    remove_frame(ax)
    return ax


def _names_among(given: dict[str, np.ndarray]) -> list[str]:
    for name, stages in given.items():
        if stages.dtype.kind in "biuf":
            raise ValueError(f"{name} contains numbers; pass stage_names, the names of the stages.")
    found = np.concatenate([stages.astype(object) for stages in given.values()])
    return sorted({stage for stage in found if not _is_unknown(stage)})


def _is_unknown(stage: object) -> bool:
    return stage == -1 or bool(pd.isna(stage))


def _rows(name: str, stages: np.ndarray, stage_names: Sequence[str]) -> np.ndarray:
    """Row of each stage, counted from the top; NaN for an unknown stage."""
    order = display_order(stage_names)
    names = list(stage_names)
    by_index = stages.dtype.kind in "biuf"
    accepted = dict(enumerate(names)) if by_index else {stage: stage for stage in names}
    invalid = {stage for stage in stages.tolist() if not _is_unknown(stage)} - set(accepted)
    if invalid:
        kind = f"indices from 0 to {len(names) - 1} of " if by_index else ""
        raise ValueError(
            f"{name} contains {', '.join(map(repr, sorted(invalid, key=str)))}; accepted are {kind}"
            f"{', '.join(names)}, and -1 for an unknown stage."
        )
    return np.array(
        [
            np.nan if _is_unknown(stage) else order.index(accepted[stage])
            for stage in stages.tolist()
        ],
        dtype=float,
    )


def _mark_differences(
    ax: Axes, true: np.ndarray, predicted: np.ndarray, hours: np.ndarray, height: float
) -> None:
    """Draw a block below the stages for each window with different true and predicted stages."""
    both = np.isfinite(true) & np.isfinite(predicted)
    differ = np.flatnonzero(both & (true != predicted))
    spans = [(hours[i], hours[i + 1] - hours[i]) for i in differ]
    # The edge line keeps a window visible when it is narrower than a pixel.
    ax.broken_barh(spans, (height - 0.3, 0.6), color=COLORS[6], lw=0.6)
    agreement = 100 * (1 - len(differ) / both.sum()) if both.any() else np.nan
    ax.set_title(f"agreement {agreement:.0f} % of {both.sum()} windows", loc="left")
