"""Modules of PARSNet for electrode positions, spatial filters and relative amplitudes.

Electrode positions are encoded by Fourier features. The weights of a spatial filter are a function
of the electrode position. The amplitude of a channel is relative to the other channels of its
window.
"""

import math
from itertools import product

import numpy as np
import torch
from torch import Tensor, nn

from braindecode_pars._common.channel_names import electrode_positions

HEAD_RADIUS = 0.095  # radius of the default sphere of MNE, in meters
#: Unit vectors along the axes, the face diagonals and the space diagonals of a cube. Of each pair
#: of opposite vectors, only one is included.
_DIAGONALS = nn.functional.normalize(
    torch.tensor([v for v in product((-1.0, 0.0, 1.0), repeat=3) if v > (0.0, 0.0, 0.0)])
)


def positions_of(chs_info: list[dict] | None, x: Tensor) -> Tensor:
    """Return the electrode positions of channels, on the device of ``x``; NaN if unknown."""
    if not chs_info:
        return x.new_full((x.shape[1], 3), torch.nan)
    return torch.from_numpy(electrode_positions(chs_info)).to(x.device)


def n_known_electrodes(chs_info: list[dict]) -> int:
    """Return the number of channels with a known electrode position."""
    return int(np.isfinite(electrode_positions(chs_info)).all(axis=1).sum())


class ElectrodeCode(nn.Module):
    """Fourier encoding of 3-D electrode positions, with a learned encoding of unknown positions.

    The Fourier features of a position are sines and cosines of plane waves across the head. A
    linear layer projects these features to ``embed_dim`` dimensions. With
    ``electrode_position=True``, :class:`~braindecode_pars.PARSNet` adds this encoding to its
    spatial tokens (the feature vectors of channels). A
    :class:`~braindecode_pars.models.SpatialFilter` uses this class to compute its gains (the
    weights of features). The PARS paper does not encode electrode positions.

    Parameters
    ----------
    embed_dim : int
        Size of the encoding.
    oblique : bool
        Whether to use waves in oblique directions as well. If False, the waves are along the three
        axes, with wavelengths of 4, 2, 1 and 1/2 head radii. The encoding is then a sum of one
        function of x, one of y and one of z. If True, the waves are along the axes and all
        diagonals, with wavelengths of 4, 2 and 1 head radii. The encodings of the 64 electrodes of
        the 10-10 system are then linearly independent, so that a linear function of the encoding
        can have arbitrary values at these electrodes.

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
        """Return the encodings of electrode positions.

        Parameters
        ----------
        positions : Tensor, shape (..., n_chans, 3)
            Positions in meters in the head frame. A position that contains NaN, or equals the
            origin, is treated as unknown.

        Returns
        -------
        Tensor, shape (..., n_chans, embed_dim)
            Encodings of the positions.
        """
        unknown = ~(positions.isfinite().all(-1) & positions.any(-1))
        positions = positions.masked_fill(unknown[..., None], 0.0)
        code = self.project(self.features(positions.to(self.project.weight.dtype)))
        return torch.where(unknown[..., None], self.unknown_token, code)

    def features(self, positions: Tensor) -> Tensor:
        """Return the Fourier features of known electrode positions.

        Parameters
        ----------
        positions : Tensor, shape (..., n_chans, 3)
            Positions in meters in the head frame.

        Returns
        -------
        Tensor, shape (..., n_chans, n_features)
            Features in this order: for each direction, the sines of all wavelengths, followed by
            the cosines of all wavelengths.
        """
        # Angular frequencies of wavelengths of 4 head radii, 2 head radii, and so on.
        octaves = torch.arange(self.n_wavelengths, device=positions.device)
        frequencies = (math.pi / 2 / HEAD_RADIUS * 2.0**octaves).to(positions.dtype)
        along = (positions[..., None, :] * self.directions).sum(dim=-1)  # (..., n_directions)
        angles = along[..., None] * frequencies  # (..., n_directions, n_wavelengths)
        return torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class SpatialFilter(nn.Module):
    r"""Spatial filters for any montage, whose weights are a learned function of electrode position.

    The module pools the channels of a window: it computes weighted means of features over channels.
    In :class:`~braindecode_pars.PARSNet`, it is an alternative to attention over channels.
    Attention uses the sum of features and position encoding, but distinguishing left from right
    requires a product of features and position. A spatial filter computes this product: each
    feature of a channel is multiplied by ``n_gains`` weights, called gains. The gains :math:`g_k`
    are a linear function of a Fourier encoding of the position. With the features :math:`f_c` and
    the position :math:`p_c` of channel :math:`c`, the output is

    .. math:: \operatorname{LayerNorm}\Big(\frac{1}{C} \sum_{c=1}^{C} g_k(p_c) \odot f_c\Big),
        \qquad k = 1, \ldots, K.

    The shapes of the weights do not depend on the montage, and channels may be missing. All
    channels with unknown position share the same learned gains.

    Parameters
    ----------
    n_features : int
        Number of features per channel.
    n_gains : int
        Number of gains per feature, :math:`K`.

    Attributes
    ----------
    out_features : int
        Size of the output, ``n_gains * n_features``.

    Notes
    -----
    A linear layer on the output of :meth:`pool`, which has no layer norm, can represent every
    linear classifier of the features of all channels, under two conditions: ``n_gains`` is at least
    the number of outputs, and the encodings of the electrode positions are linearly independent.
    The second condition holds for the 64 electrodes of the 10-10 system. In :meth:`forward`, the
    layer norm normalizes the mean and the scale of the output for each window.

    Related work: the spatial attention of Défossez et al. weights channels by a Fourier series of
    their 2-D positions. The spatial filters of S-JEPA (Guetschel et al.) are learned for a single
    montage, on tokens with a position encoding. LUNA (Döner et al.) maps any montage to a fixed
    number of queries by cross-attention. REVE (El Ouahidi et al.) adds a Fourier encoding of 3-D
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
        self.n_features = n_features
        self.out_features = n_gains * n_features
        self.gains = ElectrodeCode(self.out_features, oblique=True)
        # This is the standard deviation of the initial gains at known positions.
        nn.init.normal_(self.gains.unknown_token, std=0.4)
        self.norm = nn.LayerNorm(self.out_features)

    def forward(self, features: Tensor, positions: Tensor, keep: Tensor | None = None) -> Tensor:
        """Return the weighted means over channels, after the layer norm.

        Parameters
        ----------
        features : Tensor, shape (batch, n_chans, n_features)
            Features of each channel.
        positions : Tensor, shape (n_chans, 3) or (batch, n_chans, 3)
            Electrode positions in meters in the head frame; NaN for unknown positions.
        keep : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels, whose features are ignored. Every row must
            contain at least one True. If None, no channel is missing.

        Returns
        -------
        Tensor, shape (batch, n_gains * n_features)
            Pooled features.
        """
        return self.norm(self.pool(features, positions, keep))

    def pool(self, features: Tensor, positions: Tensor, keep: Tensor | None = None) -> Tensor:
        """Return the weighted means over channels, before the layer norm.

        Parameters
        ----------
        features, positions, keep
            As in :meth:`forward`.

        Returns
        -------
        Tensor, shape (batch, n_gains * n_features)
            Weighted means of all features with the first gain, followed by the means of all
            features with the second gain, and so on.
        """
        # (..., n_chans, n_gains * n_features) -> (..., n_chans, n_gains, n_features)
        gains = self.gains(positions).unflatten(-1, (-1, self.n_features))
        if keep is None:
            keep = torch.ones_like(features[..., 0], dtype=torch.bool)
        features = features.masked_fill(~keep[..., None], 0.0)
        total = (features[:, :, None] * gains).sum(dim=1)  # (batch, n_gains, n_features)
        return (total / keep.sum(dim=1)[:, None, None]).flatten(1)


#: Maximum absolute value of relative amplitudes (natural logarithms). 3 is a factor of about 20.
LIMIT = 3.0


def relative_amplitude(x: Tensor, ch_mask: Tensor | None = None) -> Tensor:
    r"""Return the log amplitude of each channel, minus the mean log amplitude of its window.

    :class:`~braindecode_pars.PARSNet` uses relative amplitudes in addition to the features of the
    encoder, which do not contain amplitudes, because each channel is normalized
    (:func:`~braindecode_pars.tokens.instance_norm`). The relative amplitude of channel :math:`c` is
    :math:`\log s_c - \operatorname{mean}_j \log s_j`, where :math:`s` is the standard deviation
    over time. The mean is computed over all channels of the window that are neither missing nor
    flat, including channel :math:`c`. A factor that is common to all channels, such as the
    conversion from volts to microvolts, therefore has no effect.

    Parameters
    ----------
    x : Tensor, shape (batch, n_chans, n_times)
        Windows in any unit and of any floating-point type.
    ch_mask : Tensor of bool, shape (batch, n_chans) | None
        Mask that is False for missing channels, whose samples are ignored. If None, no channel is
        missing.

    Returns
    -------
    Tensor of float32 (float64 for float64 windows), shape (batch, n_chans)
        Relative amplitudes (natural logarithms), clipped to the range -3 to 3. The value is 0 for
        missing channels, for the only channel of a window, and for all channels of a window in
        which every channel is flat. In all other windows, flat channels have the value -3.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.models import relative_amplitude
    >>> x = torch.tensor([[[-1.0, 1.0], [-4.0, 4.0], [7.0, 7.0]]])
    >>> # The mean log amplitude is log(2). Results: log(1 / 2), log(4 / 2), -3 (flat channel).
    >>> relative_amplitude(x), relative_amplitude(1e-6 * x)
    (tensor([[-0.6931,  0.6931, -3.0000]]), tensor([[-0.6931,  0.6931, -3.0000]]))
    """
    # Half precision cannot represent a variance in squared volts.
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    if ch_mask is not None:
        x = x.masked_fill(~ch_mask[..., None], 0.0)  # missing channels may contain NaN
    # After subtracting the first sample, a constant signal is exactly zero, whatever its offset.
    x = x - x[..., :1]
    peak = x.abs().amax(dim=-1)  # (batch, n_chans)
    has_signal = peak > 0

    # Divide by the peak, so that the variance neither underflows nor overflows.
    peak = torch.where(has_signal, peak, 1.0)
    variance = torch.where(has_signal, (x / peak[..., None]).var(dim=-1, correction=0), 1.0)
    log_std = peak.log() + variance.log() / 2  # 0 for flat and missing channels

    # Subtract the mean over channels that are neither missing nor flat.
    n_signals = has_signal.sum(dim=1, keepdim=True).clamp(min=1)
    mean_log_std = log_std.sum(dim=1, keepdim=True) / n_signals
    relative = torch.where(has_signal, (log_std - mean_log_std).clamp(-LIMIT, LIMIT), -LIMIT)
    is_defined = has_signal.any(dim=1, keepdim=True)
    return relative * (is_defined if ch_mask is None else is_defined & ch_mask)


class AmplitudeCode(nn.Sequential):
    """Learned nonlinear encoding of the relative amplitude of channels.

    With ``amplitude=True``, :class:`~braindecode_pars.PARSNet` adds this encoding to its spatial
    tokens (the feature vectors of channels). The encoding is nonlinear: the relative amplitudes of
    a window sum to zero, so the mean of a linear encoding over channels would be zero. The encoding
    of 0 is 0.

    The input has shape (..., 1) and contains relative amplitudes, see
    :func:`~braindecode_pars.models.relative_amplitude`. The output has shape (..., embed_dim).

    Parameters
    ----------
    embed_dim : int
        Size of the encoding.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.models import AmplitudeCode
    >>> AmplitudeCode(embed_dim=32)(torch.randn(2, 19, 1)).shape
    torch.Size([2, 19, 32])
    """

    HIDDEN_DIM = 16

    def __init__(self, embed_dim: int):
        # The layers have no biases, so that the encoding of 0 is 0.
        super().__init__(
            nn.Linear(1, self.HIDDEN_DIM, bias=False),
            nn.GELU(),
            nn.Linear(self.HIDDEN_DIM, embed_dim, bias=False),
        )
