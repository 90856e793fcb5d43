"""Spatial filters whose weights are a function of electrode position."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from braindecode_pars._parameters import check_parameters, integer
from braindecode_pars.electrodes import ElectrodeCode

__all__ = ["SpatialFilter"]

_RULES = dict(n_features=integer(1), n_gains=integer(1))


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
        sizes = dict(n_features=n_features, n_gains=n_gains)
        check_parameters(sizes, _RULES, type(self).__name__)
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
            Positions in metres in the head frame; NaN for unknown positions.
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
