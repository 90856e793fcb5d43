"""Positions of electrodes on the head, and their encoding for a neural network."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from itertools import product

import mne
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from braindecode_pars._channel_names import electrode_name

__all__ = ["ElectrodeCode", "electrode_positions", "template_montage"]

HEAD_RADIUS = 0.095  # metres, the radius of MNE's default sphere
_EARS = {"A1", "A2", "M1", "M2"}
#: Unit vectors along the axes, the diagonals of faces and those of the cube; one of v and -v each.
_DIAGONALS = F.normalize(
    torch.tensor([v for v in product((-1.0, 0.0, 1.0), repeat=3) if v > (0.0, 0.0, 0.0)])
)


def template_montage() -> mne.channels.DigMontage:
    """Return MNE's template montage of the 10-05 system.

    Returns
    -------
    mne.channels.DigMontage
        Montage for ``raw.set_montage``.

    Examples
    --------
    >>> from braindecode_pars.electrodes import template_montage
    >>> {"C3", "Cz", "C4"} <= set(template_montage().ch_names)
    True
    """
    # The name of this montage depends on the version of MNE.
    known = mne.channels.get_builtin_montages()
    return mne.channels.make_standard_montage(
        "colin27_1005" if "colin27_1005" in known else "standard_1005"
    )


@functools.cache
def _template_positions() -> dict[str, np.ndarray]:
    """Return the 10-05 positions in MNE's head frame, by upper-case name."""
    montage = template_montage()
    info = mne.create_info(montage.ch_names, 1.0, "eeg").set_montage(montage)
    return {ch["ch_name"].upper(): ch["loc"][:3] for ch in info["chs"]}


def electrode_positions(chs_info: list[dict]) -> np.ndarray:
    """Return the position of each channel's electrode on the head.

    The position is looked up by name in the 10-05 system, so that recordings with and without
    digitised positions get the same positions. For a name that is not in the 10-05 system, the
    channel's own location (``loc``) is used.

    Parameters
    ----------
    chs_info : list of dict
        Channel descriptions, as in ``mne.Info["chs"]``.

    Returns
    -------
    ndarray of float32, shape (n_chans, 3)
        Positions in metres in MNE's head frame. NaN for unknown electrodes, for ears and mastoids,
        and for bipolar derivations.

    Raises
    ------
    TypeError
        When an entry is not the description of a channel, such as a name alone.

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
        if not isinstance(ch, Mapping) or "ch_name" not in ch:
            raise TypeError(
                f"chs_info contains {ch!r}; its entries are dicts with the key 'ch_name', as in "
                "mne.create_info(names, sfreq, 'eeg')['chs']."
            )
        name = electrode_name(ch["ch_name"])
        if name in _EARS:
            continue
        position = _template_positions().get(name)
        if position is None:
            location = ch.get("loc")
            position = np.asarray([] if location is None else location, dtype=float)[:3]
            # MNE uses NaN or zeros for a location that is not set.
            if len(position) < 3 or not np.isfinite(position).all() or not position.any():
                continue
        row[:] = position
    return positions


class ElectrodeCode(nn.Module):
    """Fourier features of 3-D electrode positions, and one learned code for unknown positions.

    The features are sines and cosines of waves across the head. A linear layer projects them to
    ``embed_dim``. With ``electrode_position=True``, :class:`~braindecode_pars.PARSNet` adds this
    code to its spatial tokens; the gains of a
    :class:`~braindecode_pars.models.SpatialFilter` are such a code too. The paper does not
    encode positions.

    Parameters
    ----------
    embed_dim : int
        Size of the code.
    oblique : bool
        Directions of the waves. With False, they run along the three axes, with wavelengths of 4,
        2, 1 and 1/2 head radii; the code is then a sum of functions of one coordinate each. With
        True, they run along the axes and all diagonals, with wavelengths of 4, 2 and 1 head radii.
        The codes of the 64 electrodes of the 10-10 system are then linearly independent, so that a
        linear function of the code can have any values there.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.electrodes import ElectrodeCode
    >>> left, unknown = [-0.06, 0.0, 0.06], [torch.nan] * 3
    >>> ElectrodeCode(embed_dim=32)(torch.tensor([left, unknown])).shape
    torch.Size([2, 32])
    """

    def __init__(self, embed_dim: int, *, oblique: bool = False):
        super().__init__()
        directions = _DIAGONALS if oblique else torch.eye(3)
        self.register_buffer("directions", directions, persistent=False)
        self.n_wavelengths = 3 if oblique else 4
        self.project = nn.Linear(2 * self.n_wavelengths * len(directions), embed_dim)
        self.unknown_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))

    def forward(self, positions: Tensor) -> Tensor:
        """Return the codes of positions.

        Parameters
        ----------
        positions : Tensor, shape (..., n_chans, 3)
            Positions in metres in the head frame. A position that contains NaN, or is the origin,
            is unknown.

        Returns
        -------
        Tensor, shape (..., n_chans, embed_dim)
            Codes of the positions.
        """
        unknown = ~(positions.isfinite().all(-1) & positions.any(-1))
        positions = positions.masked_fill(unknown[..., None], 0.0)
        code = self.project(self.features(positions.to(self.project.weight.dtype)))
        return torch.where(unknown[..., None], self.unknown_token, code)

    def features(self, positions: Tensor) -> Tensor:
        """Return the Fourier features of known positions.

        Parameters
        ----------
        positions : Tensor, shape (..., n_chans, 3)
            Positions in metres in the head frame.

        Returns
        -------
        Tensor, shape (..., n_chans, n_features)
            For each direction, the sines of all wavelengths, then the cosines.
        """
        # Angular frequencies: a wavelength of 4 radii, halved several times.
        octaves = torch.arange(self.n_wavelengths, device=positions.device)
        frequencies = (math.pi / 2 / HEAD_RADIUS * 2.0**octaves).to(positions.dtype)
        along = (positions[..., None, :] * self.directions).sum(dim=-1)  # (..., n_directions)
        angles = along[..., None] * frequencies  # (..., n_directions, n_wavelengths)
        return torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2)
