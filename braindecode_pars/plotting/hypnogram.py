"""Hypnogram: sleep stages over a night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._classes import check_order, is_unknown
from braindecode_pars.plotting._steps import draw_steps
from braindecode_pars.plotting._style import axes_for
from braindecode_pars.sleep_stages import stages_of, top_to_bottom

__all__ = ["hypnogram"]


def hypnogram(
    true: ArrayLike,
    predicted: ArrayLike | None = None,
    stage_names: Sequence[str] | Mapping[Any, str] | None = None,
    window_seconds: float = 30.0,
    ax: Axes | None = None,
    *,
    order: Sequence[str] | None = None,
) -> Axes:
    """Draw the sleep stages of one night, with predicted stages and differences if given.

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        True stages in chronological order, as indices into ``stage_names`` or as names. The values
        -1, NaN and None stand for an unknown stage, which stays blank. Numbers of Rechtschaffen and
        Kales, where 5 is REM, need no names.
    predicted : ndarray, shape (n_windows,) | None
        Predicted stages, in the same form.
    stage_names : sequence of str | mapping of label to str | None
        Names of the stages, such as ``class_names_`` of a classifier; required when stages are
        indices.
    window_seconds : float
        Length of a window in seconds.
    ax : Axes | None
        Axes to draw on; None makes a new figure.
    order : sequence of str | None
        Names of all stages from top to bottom. None means wake, REM, then N1 to N3, for names of
        any usual spelling (:func:`~braindecode_pars.sleep_stages.stage_of`).

    Returns
    -------
    Axes
        Axes with the hypnogram. With a prediction, the title shows the percentage of windows in
        which both agree. Windows with an unknown stage in either do not count.

    Raises
    ------
    ValueError
        If a stage is not in ``stage_names``, or the lengths differ. Without ``order``, if a name is
        not that of a sleep stage.

    Examples
    --------
    Simulated stages of one night, and a prediction with N2 in a tenth of the windows:

    .. plot::
        :include-source:
        :alt: True and predicted hypnogram of six hours as steps, and marks below where they
            differ.

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
    names = list(dict.fromkeys(_by_label(stage_names).values()))
    order = top_to_bottom(names) if order is None else check_order(names, order)
    rows = {name: _rows(name, stages, stage_names, order) for name, stages in given.items()}

    [ax] = axes_for(ax, 1, 1, (9, 2.6))
    edges = np.arange(len(given["true"]) + 1) * window_seconds
    draw_steps(ax, edges, order, rows["true"], rows.get("predicted"))
    return ax


def _names_among(given: dict[str, np.ndarray]) -> list[str] | dict[Any, str]:
    """Return the names that occur, or those of the numbers of Rechtschaffen and Kales."""
    # By value: an array with None has dtype object, whatever the others are.
    found = [(stage, name) for name, stages in given.items() for stage in stages.tolist()]
    found = {stage: name for stage, name in found if not is_unknown(stage)}
    numeric = [name for stage, name in found.items() if not isinstance(stage, str)]
    if not numeric:
        return sorted(found)
    known = stages_of(list(found))
    if None in known:
        raise ValueError(
            f"{numeric[0]} contains numbers; pass stage_names, the names of the stages. Only "
            "numbers of Rechtschaffen and Kales, where 5 is REM, need no names."
        )
    return {stage: name.replace("N", "S") for stage, name in zip(found, known, strict=True) if name}


def _by_label(stage_names: Sequence[str] | Mapping[Any, str]) -> dict[Any, str]:
    return dict(stage_names if isinstance(stage_names, Mapping) else enumerate(stage_names))


def _rows(
    name: str,
    stages: np.ndarray,
    stage_names: Sequence[str] | Mapping[Any, str],
    order: Sequence[str],
) -> np.ndarray:
    """Row of each stage, counted from the top; NaN for an unknown stage."""
    by_label = _by_label(stage_names)
    by_index = stages.dtype.kind in "biuf"
    accepted = by_label if by_index else {n: n for n in by_label.values()} | by_label
    values = stages.tolist()
    invalid = {stage for stage in values if not is_unknown(stage)} - set(accepted)
    if invalid:
        texts = list(dict.fromkeys(by_label.values()))
        kind = f"indices from 0 to {len(texts) - 1} of " if by_index else ""
        raise ValueError(
            f"{name} contains {', '.join(map(repr, sorted(invalid, key=str)))}; accepted are {kind}"
            f"{', '.join(texts)}, and -1 for an unknown stage."
        )
    rows = [np.nan if is_unknown(stage) else order.index(accepted[stage]) for stage in values]
    return np.array(rows, dtype=float)
