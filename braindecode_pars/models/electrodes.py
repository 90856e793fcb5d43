"""What PARSNet knows of an electrode: its position, a spatial filter there, and its amplitude.

Positions are encoded by Fourier features. The weights of a spatial filter are a function of the
position. The amplitude of a channel is relative to the other channels of its window.
"""

import math
from itertools import product

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars._common.channel_names import electrode_positions

HEAD_RADIUS = 0.095  # meters, the radius of MNE's default sphere
#: Unit vectors along the axes, the diagonals of faces and those of the cube; one of v and -v each.
_DIAGONALS = nn.functional.normalize(
    torch.tensor([v for v in product((-1.0, 0.0, 1.0), repeat=3) if v > (0.0, 0.0, 0.0)])
)


def positions_of(chs_info: list[dict] | None, x: Tensor) -> Tensor:
    """Return the positions of the channels of windows, on their device; NaN where unknown."""
    if not chs_info:
        return x.new_full((x.shape[1], 3), torch.nan)
    return torch.from_numpy(electrode_positions(chs_info)).to(x.device)


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
    >>> from braindecode_pars.models.electrodes import ElectrodeCode
    >>> left, unknown = [-0.06, 0.0, 0.06], [torch.nan] * 3
    >>> ElectrodeCode(embed_dim=32)(torch.tensor([left, unknown])).shape
    torch.Size([2, 32])
    """

    def __init__(self, embed_dim: int, *, oblique: bool = False):
        super().__init__()
        directions = _DIAGONALS if oblique else torch.eye(3)
        self.directions: Tensor
        self.register_buffer("directions", directions, persistent=False)
        self.n_wavelengths = 3 if oblique else 4
        self.project = nn.Linear(2 * self.n_wavelengths * len(directions), embed_dim)
        self.unknown_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))

    def forward(self, positions: Tensor) -> Tensor:
        """Return the codes of positions.

        Parameters
        ----------
        positions : Tensor, shape (..., n_chans, 3)
            Positions in meters in the head frame. A position that contains NaN, or is the origin,
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
            Positions in meters in the head frame.

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


_RULES = dict(n_features=checks.integer(1), n_gains=checks.integer(1))


class SpatialFilter(nn.Module):
    r"""Weighted means over channels, with weights that depend on feature and electrode position.

    Attention adds the code of a position to the features of a channel. Left against right needs
    their product, which is what this module computes. Channel :math:`c` at position :math:`p_c`
    has ``n_gains`` gains for each of its features :math:`f_c`, as a linear function of a Fourier
    code of the position, and the output is

    .. math:: \operatorname{LayerNorm}\Big(\frac{1}{C} \sum_{c=1}^{C} g_k(p_c) \odot f_c\Big),
        \qquad k = 1, \ldots, K.

    No learnable shape depends on the montage. Channels may be missing, and all channels of unknown
    position share one learned gain of each feature.

    Parameters
    ----------
    n_features : int
        Number of features of a channel.
    n_gains : int
        Number of gains :math:`K` of each feature.

    Attributes
    ----------
    out_features : int
        Size of the output, ``n_gains * n_features``.

    Notes
    -----
    A linear layer on :meth:`pool`, which is the output before the layer norm, can equal every
    linear classifier on the channels times features of a montage if ``n_gains`` is at least the
    number of outputs and the codes of the positions are linearly independent, as those of the 64
    electrodes of the 10-10 system are. The layer norm sets the mean and the scale of each window's
    output.

    Relatives: the spatial attention of Défossez et al. weights channels by a Fourier series of
    their 2-D positions. The spatial filters of S-JEPA (Guetschel et al.) are learned for one
    montage, on tokens with a code of the position. LUNA (Döner et al.) maps any montage to a fixed
    number of queries by cross-attention. REVE (El Ouahidi et al.) adds a Fourier code of 3-D
    position and time to each token.

    References
    ----------
    Défossez, Caucheteux, Rapin, Kabeli, King 2023, Decoding speech perception from non-invasive
    brain recordings, Nature Machine Intelligence 5.

    Döner, Ingolfsson, Benini, Li 2025, LUNA: efficient and topology-agnostic foundation model for
    EEG signal analysis, NeurIPS.

    El Ouahidi et al. 2025, REVE: a foundation model for EEG, adapting to any setup with large-scale
    pretraining on 25,000 subjects, NeurIPS.

    Guetschel, Moreau, Tangermann 2024, S-JEPA: towards seamless cross-dataset transfer through
    dynamic spatial attention, Graz Brain-Computer Interface Conference.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.models import SpatialFilter
    >>> pool = SpatialFilter(n_features=32, n_gains=4)
    >>> features, positions = torch.randn(2, 19, 32), 0.1 * torch.rand(19, 3)
    >>> pool(features, positions).shape
    torch.Size([2, 128])
    """

    def __init__(self, n_features: int, n_gains: int = 4):
        super().__init__()
        checks.check_parameters(locals(), _RULES, type(self).__name__)
        self.n_features = n_features
        self.out_features = n_gains * n_features
        self.gains = ElectrodeCode(self.out_features, oblique=True)
        # As large as the gains of known positions are at the start.
        nn.init.normal_(self.gains.unknown_token, std=0.4)
        self.norm = nn.LayerNorm(self.out_features)

    def forward(self, features: Tensor, positions: Tensor, keep: Tensor | None = None) -> Tensor:
        """Return the layer norm of the weighted means.

        Parameters
        ----------
        features : Tensor, shape (batch, n_chans, n_features)
            Features of each channel.
        positions : Tensor, shape (n_chans, 3) or (batch, n_chans, 3)
            Positions in meters in the head frame; NaN for unknown positions.
        keep : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels, which change nothing. Every example needs at
            least one True. None keeps all channels.

        Returns
        -------
        Tensor, shape (batch, n_gains * n_features)
            Pooled features.
        """
        return self.norm(self.pool(features, positions, keep))

    def pool(self, features: Tensor, positions: Tensor, keep: Tensor | None = None) -> Tensor:
        """Return the weighted means, before the layer norm.

        Parameters
        ----------
        features, positions, keep
            As in :meth:`forward`.

        Returns
        -------
        Tensor, shape (batch, n_gains * n_features)
            The features of the first gain, then those of the second, and so on.
        """
        # (..., n_chans, n_gains * n_features) -> (..., n_chans, n_gains, n_features)
        gains = self.gains(positions).unflatten(-1, (-1, self.n_features))
        if keep is None:
            keep = torch.ones_like(features[..., 0], dtype=torch.bool)
        features = features.masked_fill(~keep[..., None], 0.0)
        total = (features[:, :, None] * gains).sum(dim=1)  # (batch, n_gains, n_features)
        return (total / keep.sum(dim=1)[:, None, None]).flatten(1)


#: Bound of the relative amplitudes: about twenty times the other channels.
LIMIT = 3.0


def relative_amplitude(x: Tensor, ch_mask: Tensor | None = None) -> Tensor:
    r"""Return the log standard deviation of each channel, relative to its window.

    The encoder does not see amplitudes, because :func:`~braindecode_pars.tokens.instance_norm`
    removes them. Channel :math:`c` of a window gets :math:`\log s_c - \operatorname{mean}_j \log
    s_j`, where :math:`s` is the standard deviation over time. The mean is over all channels of the
    window that are neither missing nor flat, channel :math:`c` included. So a gain that all
    channels share, such as the factor from volts to microvolts, has no effect.

    Parameters
    ----------
    x : Tensor, shape (batch, n_chans, n_times)
        Windows in any unit and of any floating-point type.
    ch_mask : Tensor of bool, shape (batch, n_chans) | None
        Mask of the channels: False marks a missing channel, whose samples are ignored.

    Returns
    -------
    Tensor of float32 (float64 for float64 windows), shape (batch, n_chans)
        Natural logarithms, clipped to the range from -3 to 3. A flat channel has -3. Missing
        channels, the only channel of a window, and all channels of a flat window have 0.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.models import relative_amplitude
    >>> x = torch.tensor([[[-1.0, 1.0], [-4.0, 4.0], [7.0, 7.0]]])
    >>> relative_amplitude(x), relative_amplitude(1e-6 * x)
    (tensor([[-0.6931,  0.6931, -3.0000]]), tensor([[-0.6931,  0.6931, -3.0000]]))
    """
    # Half precision cannot represent a variance in squared volts.
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    if ch_mask is not None:
        x = x.masked_fill(~ch_mask[..., None], 0.0)  # missing channels may contain NaN
    # Without its first sample, a constant signal is exactly zero for every offset.
    x = x - x[..., :1]
    peak = x.abs().amax(dim=-1)  # (batch, n_chans)
    alive = peak > 0

    # Divided by its peak, no signal is too small or too large for its variance.
    peak = torch.where(alive, peak, 1.0)
    variance = torch.where(alive, (x / peak[..., None]).var(dim=-1, correction=0), 1.0)
    log_std = peak.log() + variance.log() / 2  # 0 for flat and missing channels

    # Relative to the mean of the channels that have a signal.
    reference = log_std.sum(dim=1, keepdim=True) / alive.sum(dim=1, keepdim=True).clamp(min=1)
    relative = torch.where(alive, (log_std - reference).clamp(-LIMIT, LIMIT), -LIMIT)
    known = alive.any(dim=1, keepdim=True)
    return relative * (known if ch_mask is None else known & ch_mask)


class AmplitudeCode(nn.Sequential):
    """Learned code of relative amplitudes; the code of 0 is 0.

    With ``amplitude=True``, :class:`~braindecode_pars.PARSNet` adds this code to its spatial
    tokens. It is not linear: the amplitudes of a window have a sum of zero, so a mean over channels
    would contain nothing of a linear code.

    Parameters
    ----------
    embed_dim : int
        Size of the code.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.models import AmplitudeCode
    >>> AmplitudeCode(embed_dim=32)(torch.randn(2, 19, 1)).shape
    torch.Size([2, 19, 32])
    """

    HIDDEN_DIM = 16

    def __init__(self, embed_dim: int):
        checks.check_parameters(
            {"embed_dim": embed_dim}, {"embed_dim": checks.integer(1)}, type(self).__name__
        )
        # Without biases, zero stays zero.
        super().__init__(
            nn.Linear(1, self.HIDDEN_DIM, bias=False),
            nn.GELU(),
            nn.Linear(self.HIDDEN_DIM, embed_dim, bias=False),
        )
