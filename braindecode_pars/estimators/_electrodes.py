"""Whether an estimator's model receives electrode positions, and whether they are known."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from braindecode_pars._warnings import warn_user
from braindecode_pars.electrodes import electrode_positions
from braindecode_pars.models import PARSNet
from braindecode_pars.windows._channels import Channels, Montage
from braindecode_pars.windows._window_set import WindowSet

__all__ = [
    "has_electrode_code",
    "needs_one_montage",
    "positions_for",
    "warn_of_unknown_electrodes",
]

log = logging.getLogger(__name__)


def needs_one_montage(estimator: BaseEstimator) -> bool:
    """Return whether the training windows must have the same channels.

    Positions ask for it, and so do the means of a subject, which are those of each channel.
    ``electrode_position="auto"`` does not: windows of different channels are accepted, and the
    model then gets no positions.
    """
    has_positions = estimator.electrode_position not in (False, "auto")
    return has_positions or estimator.head != "attention" or estimator.recenter is not None


def has_electrode_code(estimator: BaseEstimator, chs_info: list[dict] | None) -> bool:
    """Return whether a code of the electrode position is added to the tokens.

    Parameters
    ----------
    estimator : PARSClassifier
        Estimator with the parameters ``electrode_position`` and ``verbose``.
    chs_info : list of dict | None
        Channels of the training windows. None when they are unknown, empty when they differ.

    Returns
    -------
    bool
        With ``"auto"``, whether the position of at least one channel is known. The log says so.

    Raises
    ------
    ValueError
        When ``electrode_position`` is True, and channels have no names or recordings have
        different channels.
    """
    if estimator.electrode_position != "auto":
        if estimator.electrode_position:
            _check_named(chs_info)
        return bool(estimator.electrode_position)
    n_known = _n_known(chs_info or [])
    if n_known:
        found = f"on: {n_known} of {len(chs_info)} channels are known electrodes"
    elif chs_info:
        found = f"off: no channel ({chs_info[0]['ch_name']}, ...) is a known electrode"
    else:
        found = f"off: the windows have {_not_named(chs_info)}"
    if estimator.verbose:
        log.info("electrode_position='auto' is %s.", found)
    return n_known > 0


def warn_of_unknown_electrodes(windows: WindowSet, n_chans: int) -> None:
    """Warn of windows to predict in which no electrode position is known.

    ``n_chans`` is the number of channels of the fit. Windows without channel names are assumed to
    have the channels of the fit, if they have as many.
    """
    channels = windows.channels or Channels.of_recording(len(windows))
    reasons: dict[str, int] = {}  # reason -> number of windows
    for number, montage in enumerate(channels.montages):
        first = int(np.argmax(channels.of_window == number))
        if reason := _why_unknown(windows, first, montage, n_chans):
            reasons[reason] = reasons.get(reason, 0) + int(channels.counts[number])
    for reason, n in reasons.items():
        warn_user(f"No electrode position is known in {n} of {len(windows)} windows: {reason}")


def positions_for(module: PARSNet, chs_info: list[dict] | None, n_chans: int) -> dict[str, Any]:
    """Return the arguments of ``module.forward`` that locate the channels of a batch.

    Empty when the module needs none: it uses no positions, or those of its own channels.
    """
    if module.positions is None or (chs_info is None and n_chans == len(module.positions)):
        return {}
    if chs_info is None:
        return {"pos": torch.full((n_chans, 3), torch.nan)}
    return {"chs_info": chs_info}


def _why_unknown(windows: WindowSet, i: int, montage: Montage, n_chans: int) -> str | None:
    """Return why no electrode position of window ``i`` is known; None when one is."""
    if montage.names is None:
        found = len(windows[i][0])
        if found == n_chans:
            return None
        return f"they have {found} channels without names, and the model was fitted on {n_chans}."
    if _n_known(montage.chs_info):
        return None
    return (
        f"none of their channels ({montage.names[0]}, ...) is an electrode of the 10-05 system or "
        "has a location; rename them, or set a montage."
    )


def _check_named(chs_info: list[dict] | None) -> None:
    if not chs_info:
        raise ValueError(
            "electrode_position=True needs channel names, with the same names and order in every "
            f"recording; these windows have {_not_named(chs_info)}."
        )


def _not_named(chs_info: list[dict] | None) -> str:
    return "no channel names" if chs_info is None else "different montages"


def _n_known(chs_info: list[dict]) -> int:
    """Return how many channels have a known position."""
    return int(np.isfinite(electrode_positions(chs_info)).all(axis=1).sum())
