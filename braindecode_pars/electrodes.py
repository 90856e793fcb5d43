"""Where an electrode sits on the head: from a channel's name to a code that a network reads."""

from __future__ import annotations

import functools
import math
import re

import mne
import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["ElectrodeCode", "electrode_positions", "template_montage"]

HEAD_RADIUS = 0.095  # metres, MNE's default sphere
_EARS = {"A1", "A2", "M1", "M2"}
_REFERENCES = {"REF", "LE", "AR", "AVG", "A1", "A2", "M1", "M2", "CAR", "LER"}


def template_montage() -> mne.channels.DigMontage:
    """The 10-05 system, under the name that the installed MNE has for it.

    Returns
    -------
    mne.channels.DigMontage
        As ``raw.set_montage`` takes it.

    Examples
    --------
    >>> from braindecode_pars.electrodes import template_montage
    >>> {"C3", "Cz", "C4"} <= set(template_montage().ch_names)
    True
    """
    known = mne.channels.get_builtin_montages()
    return mne.channels.make_standard_montage(
        "colin27_1005" if "colin27_1005" in known else "standard_1005"
    )


@functools.cache
def _template() -> dict[str, np.ndarray]:
    """Positions of the 10-05 system in the head frame, by upper-case name."""
    montage = template_montage()
    info = mne.create_info(montage.ch_names, 1.0, "eeg").set_montage(montage)
    return {ch["ch_name"].upper(): ch["loc"][:3] for ch in info["chs"]}


def _electrode_name(channel: str) -> str:
    """The electrode behind names such as ``Fc5.``, ``EEG FP1-REF`` or ``C3-M2``."""
    name = re.sub(r"^EEG\s+", "", channel.strip().upper()).rstrip(".")
    electrode, _, reference = name.partition("-")
    return electrode if reference in _REFERENCES else name


def electrode_positions(chs_info: list[dict]) -> np.ndarray:
    """Position of each channel's electrode on the head.

    The name is looked up in the 10-05 system, so that recordings with and without digitised
    positions agree; a name that is not in it falls back on the channel's own location.

    Parameters
    ----------
    chs_info : list of dict
        As in ``mne.Info["chs"]``.

    Returns
    -------
    ndarray of float32, shape (n_chans, 3)
        Metres in MNE's head frame; NaN for unknown electrodes, ears and mastoids, and bipolar
        derivations.

    Examples
    --------
    >>> import mne
    >>> from braindecode_pars.electrodes import electrode_positions
    >>> info = mne.create_info(["C3", "C4", "Fpz-Cz"], 100.0, "eeg")
    >>> left, right, bipolar = electrode_positions(info["chs"])
    >>> bool(left[0] < 0 < right[0]), bool(bipolar[0] == bipolar[0])
    (True, False)
    """
    positions = np.full((len(chs_info), 3), np.nan, dtype=np.float32)
    for row, ch in zip(positions, chs_info, strict=True):
        name = _electrode_name(ch["ch_name"])
        if name in _EARS:
            continue
        known = _template().get(name)
        if known is None:
            location = ch.get("loc")
            known = np.asarray([] if location is None else location, dtype=float)[:3]
            if len(known) < 3 or not np.isfinite(known).all() or not known.any():
                continue
        row[:] = known
    return positions


class ElectrodeCode(nn.Module):
    """Fourier code of 3-D electrode positions, and one learned code for unknown ones.

    Sines and cosines of each coordinate, in units of the head's radius, at wavelengths of 4, 2,
    1 and 1/2 radii, then a linear layer. It is what ``electrode_position=True`` adds to the
    spatial tokens of :class:`~braindecode_pars.PARSNet`; the paper has none.

    Parameters
    ----------
    embed_dim : int
        Size of the code.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.electrodes import ElectrodeCode
    >>> left, unknown = [-0.06, 0.0, 0.06], [torch.nan] * 3
    >>> ElectrodeCode(embed_dim=32)(torch.tensor([left, unknown])).shape
    torch.Size([2, 32])
    """

    N_WAVELENGTHS = 4

    def __init__(self, embed_dim: int):
        super().__init__()
        self.project = nn.Linear(6 * self.N_WAVELENGTHS, embed_dim)
        self.unknown_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))

    def forward(self, positions: Tensor) -> Tensor:
        """Encode positions.

        Parameters
        ----------
        positions : Tensor, shape (..., n_chans, 3)
            Metres in the head frame. One with a NaN in it, or at the origin, is unknown.

        Returns
        -------
        Tensor, shape (..., n_chans, embed_dim)
        """
        unknown = ~(positions.isfinite().all(-1) & positions.any(-1))
        positions = positions.masked_fill(unknown[..., None], 0.0)
        octaves = torch.arange(self.N_WAVELENGTHS, device=positions.device)
        positions = positions.to(self.project.weight.dtype)
        frequencies = (math.pi / 2 / HEAD_RADIUS * 2.0**octaves).to(positions.dtype)
        angles = positions[..., None] * frequencies
        code = self.project(torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2))
        return torch.where(unknown[..., None], self.unknown_token, code)
