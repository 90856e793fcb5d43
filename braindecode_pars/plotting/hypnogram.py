"""Sleep stages over a night, as laboratories draw them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._style import COLORS, axes_for, bare

__all__ = ["hypnogram"]

#: From top to bottom: wake, REM, then ever deeper.
LABORATORY_ORDER = ("W", "R", "N1", "N2", "N3")


def laboratory_order(stage_names: Sequence[str]) -> list[str]:
    """Stage names from top to bottom; names other than W R N1 N2 N3 follow as they come.

    Examples
    --------
    >>> laboratory_order(["N3", "N2", "N1", "R", "W"])
    ['W', 'R', 'N1', 'N2', 'N3']
    """
    known = [name for name in LABORATORY_ORDER if name in stage_names]
    return known + [name for name in stage_names if name not in LABORATORY_ORDER]


def hypnogram(
    true: ArrayLike,
    predicted: ArrayLike | None = None,
    stage_names: Sequence[str] | None = None,
    window_seconds: float = 30.0,
    ax: Axes | None = None,
) -> Axes:
    """Sleep stages of one night; with a prediction, both, and where they differ.

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        Stages in chronological order: indices into ``stage_names``, or the names themselves.
        -1 and NaN, or None among names, stand for an unknown stage, which is left blank.
    predicted : ndarray, shape (n_windows,) | None
        In the same way.
    stage_names : sequence of str | None
        May be left out where stages are given by name.
    window_seconds : float
        Length of a window in seconds.
    ax : Axes | None
        Made when not given.

    Returns
    -------
    Axes
        The share of windows on which both agree is in the title; windows unknown to either do not
        count.

    Raises
    ------
    ValueError
        If a stage is unknown, or the lengths differ.

    Examples
    --------
    A simulated night, and a prediction that takes a tenth of it for N2:

    .. plot::
        :include-source:

        >>> import numpy as np
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.hypnogram(720, rng)  # six hours
        >>> predicted = np.where(rng.random(720) < 0.1, 2, true)
        >>> ax = plotting.hypnogram(true, predicted, datasets.simulated.STAGES)

    Stages may be given by name, too:

    >>> ax = plotting.hypnogram(["W", "N1", "N2", "N2"], ["W", "N1", "N1", "N2"])
    >>> ax.get_title("left")
    'agreement 75 % of 4 windows'
    """
    given = {"true": np.asarray(true)}
    if predicted is not None:
        given["predicted"] = np.asarray(predicted)
    for name, stages in given.items():
        if stages.ndim != 1 or len(stages) == 0:
            raise ValueError(f"{name} has shape {stages.shape}; give one night, (n_windows,).")
    if len({len(stages) for stages in given.values()}) > 1:
        raise ValueError(
            f"There are {len(given['true'])} true and {len(given['predicted'])} predicted stages; "
            "give both for the same windows."
        )
    if stage_names is None:
        stage_names = _names_among(given)
    order = laboratory_order(stage_names)
    depths = {name: _depths(name, stages, stage_names) for name, stages in given.items()}

    [ax] = axes_for(ax, 1, 1, (9, 2.6))
    hours = np.arange(len(given["true"]) + 1) * window_seconds / 3600
    bottom = len(order) - 1
    ticks, labels = list(range(len(order))), order
    if predicted is None:
        ax.stairs(-depths["true"], hours, baseline=None, color="0.2")
    else:
        ax.stairs(-depths["true"], hours, baseline=None, color="0.72", lw=3.2, label="true")
        style = dict(color=COLORS[0], lw=1.1, label="predicted")
        ax.stairs(-depths["predicted"], hours, baseline=None, **style)
        bottom += 1
        ticks, labels = [*ticks, bottom], [*labels, "differ"]
        _mark_differences(ax, depths["true"], depths["predicted"], hours, -bottom)
        ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    ax.set_yticks([-tick for tick in ticks], labels)
    ax.set(xlabel="hours", xlim=(0, hours[-1]), ylim=(-bottom - 0.45, 0.45))
    bare(ax)
    return ax


def _names_among(given: dict[str, np.ndarray]) -> list[str]:
    for name, stages in given.items():
        if stages.dtype.kind in "biuf":
            raise ValueError(f"{name} holds numbers; say with stage_names what they stand for.")
    found = np.concatenate([stages.astype(object) for stages in given.values()])
    return sorted({stage for stage in found if not _unknown(stage)})


def _unknown(stage: object) -> bool:
    return stage == -1 or bool(pd.isna(stage))


def _depths(name: str, stages: np.ndarray, stage_names: Sequence[str]) -> np.ndarray:
    """How far below the top each stage is drawn, NaN for unknown ones."""
    order = laboratory_order(stage_names)
    names = list(stage_names)
    by_index = stages.dtype.kind in "biuf"
    accepted = dict(enumerate(names)) if by_index else {stage: stage for stage in names}
    foreign = {stage for stage in stages.tolist() if not _unknown(stage)} - set(accepted)
    if foreign:
        kind = f"indices from 0 to {len(names) - 1}, of " if by_index else ""
        raise ValueError(
            f"{name} holds {', '.join(map(repr, sorted(foreign, key=str)))}; accepted are {kind}"
            f"{', '.join(names)}, and -1 for an unknown stage."
        )
    return np.array(
        [np.nan if _unknown(stage) else order.index(accepted[stage]) for stage in stages.tolist()],
        dtype=float,
    )


def _mark_differences(
    ax: Axes, true: np.ndarray, predicted: np.ndarray, hours: np.ndarray, height: float
) -> None:
    """A strip below the stages with a block for each window on which the two differ."""
    both = np.isfinite(true) & np.isfinite(predicted)
    differ = np.flatnonzero(both & (true != predicted))
    spans = [(hours[i], hours[i + 1] - hours[i]) for i in differ]
    # The edge keeps a window visible where it is narrower than a pixel.
    ax.broken_barh(spans, (height - 0.3, 0.6), color=COLORS[6], lw=0.6)
    agreement = 100 * (1 - len(differ) / both.sum()) if both.any() else np.nan
    ax.set_title(f"agreement {agreement:.0f} % of {both.sum()} windows", loc="left")
