"""Arguments of ``PARSNet.forward``, checked and as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from braindecode_pars.electrodes import electrode_positions

__all__ = ["check_windows", "mask_of", "positions_of", "subjects_of"]


def check_windows(x: Any, patch_size: int) -> None:
    """Check that windows are a tensor of real numbers and at least one patch long.

    Raises
    ------
    TypeError, ValueError
        When they are not.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"x is a {type(x).__name__}; PARSNet takes a torch tensor of shape (batch, "
            "n_chans, n_times), for example torch.from_numpy(x).float()."
        )
    if x.ndim != 3 or 0 in x.shape[:2]:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; windows have shape (batch, n_chans, n_times)."
        )
    if not x.is_floating_point():
        raise ValueError(
            f"x has dtype {x.dtype}; EEG samples are real numbers. Convert integers with x.float()."
        )
    if x.shape[-1] < patch_size:
        raise ValueError(
            f"A window of {x.shape[-1]} samples is shorter than the model's patch of "
            f"{patch_size} samples."
        )


def mask_of(x: Tensor, ch_mask: Any) -> Tensor | None:
    """Return the mask of the channels that are there, (batch, n_chans); None for all.

    Raises
    ------
    ValueError
        When the mask has another shape than the windows, or a window has no channel.
    """
    if ch_mask is None:
        return None
    ch_mask = torch.as_tensor(ch_mask, device=x.device)
    if ch_mask.shape != x.shape[:2]:
        raise ValueError(
            f"ch_mask has shape {tuple(ch_mask.shape)}; these windows need shape (batch, "
            f"n_chans) = {tuple(x.shape[:2])}."
        )
    ch_mask = ch_mask.bool()
    # torch.compile cannot trace a branch that depends on tensor values.
    if not torch.compiler.is_compiling() and not ch_mask.any(dim=1).all():
        raise ValueError("ch_mask marks every channel of a window as missing.")
    return ch_mask


def positions_of(x: Tensor, pos: Any, chs_info: list[dict] | None) -> Tensor | None:
    """Return the positions that are given with the windows; None when none are.

    Raises
    ------
    TypeError, ValueError
        When ``pos`` and ``chs_info`` are both given, or do not describe the channels of ``x``.
    """
    if pos is not None and chs_info is not None:
        raise ValueError(
            "pos and chs_info are both given; pass pos for positions in metres, or chs_info to "
            "look positions up by channel name."
        )
    if chs_info is not None:
        if not isinstance(chs_info, Sequence):
            raise TypeError(
                f"chs_info is a {type(chs_info).__name__}; it must be a list of channels as in "
                "mne.Info['chs']."
            )
        if len(chs_info) != x.shape[1]:
            raise ValueError(
                f"chs_info describes {len(chs_info)} channels, but the windows have {x.shape[1]}; "
                "pass one entry for each channel of the windows, in their order."
            )
        return torch.from_numpy(electrode_positions(chs_info)).to(x.device)
    if pos is None:
        return None
    positions = torch.as_tensor(pos, dtype=torch.float32, device=x.device)
    batch = positions.shape[0] if positions.ndim == 3 else 1
    if positions.ndim not in (2, 3) or positions.shape[-1] != 3 or batch not in (1, len(x)):
        raise ValueError(
            f"pos has shape {tuple(positions.shape)}; these windows need shape "
            f"(n_chans, 3) or (batch, n_chans, 3), with batch = {len(x)}."
        )
    return positions


def subjects_of(x: Tensor, subjects: Any) -> Tensor:
    """Return the subjects of windows, (batch,), for a model that recentres by subject.

    Raises
    ------
    TypeError
        When they are not numbers.
    ValueError
        When they are missing, or not one for each window.
    """
    if subjects is None:
        raise ValueError(
            "This PARSNet has recenter='subject': pass subjects to forward, one integer for each "
            "window, with many windows of each subject in a batch."
        )
    try:
        subjects = torch.as_tensor(subjects, device=x.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            "subjects must be one integer for each window; number the names of subjects first, "
            "for example with numpy.unique(names, return_inverse=True)."
        ) from error
    if subjects.shape != x.shape[:1]:
        raise ValueError(
            f"subjects has shape {tuple(subjects.shape)}; these windows need shape ({len(x)},)."
        )
    return subjects
