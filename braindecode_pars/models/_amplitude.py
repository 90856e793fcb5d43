"""Amplitude of each channel relative to the other channels of its window, and its code."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from braindecode_pars._parameters import check_parameters, integer

__all__ = ["AmplitudeCode", "relative_amplitude"]

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
        check_parameters({"embed_dim": embed_dim}, {"embed_dim": integer(1)}, type(self).__name__)
        # Without biases, zero stays zero.
        super().__init__(
            nn.Linear(1, self.HIDDEN_DIM, bias=False),
            nn.GELU(),
            nn.Linear(self.HIDDEN_DIM, embed_dim, bias=False),
        )
