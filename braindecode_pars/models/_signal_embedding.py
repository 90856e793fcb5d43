"""From a single-channel signal to one vector."""

from __future__ import annotations

import torch
from torch import Tensor

from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.tokens import grid_patches, instance_norm, sinusoidal_positions

__all__ = ["embed_signals"]


def embed_signals(encoder: PatchEncoder, x: Tensor, layer: int = -1) -> Tensor:
    """Return one vector per single-channel signal.

    The steps are grid patches, positions, encoder and mean over time (section 2.4).

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder of the patches. Its training or evaluation mode is not changed.
    x : Tensor, shape (batch, n_times)
        Signals of at least one patch, in any unit and of any floating-point type.
    layer : int
        Layer of the encoder whose features are averaged over time: 0 for the tokens with their
        positions, k for the output of block k, -1 for the last block and the final norm. See
        :meth:`PatchEncoder.features_at <braindecode_pars.PatchEncoder.features_at>`.

    Returns
    -------
    Tensor, shape (batch, embed_dim)
        One vector per signal.

    Raises
    ------
    ValueError
        When the encoder has no such layer.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.models import embed_signals
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> embed_signals(encoder, torch.randn(8, 3000)).shape
    torch.Size([8, 32])
    """
    # Patches to tokens: (batch, n_times) -> (batch, n_patches, embed_dim).
    normed = instance_norm(x).to(encoder.norm.weight.dtype)
    tokens = encoder.tokenize(grid_patches(normed, encoder.patch_size))

    # Add positions, computed in at least float32: bfloat16 cannot represent large positions.
    dtype = torch.promote_types(tokens.dtype, torch.float32)
    times = torch.arange(tokens.shape[1], device=x.device, dtype=dtype)
    positions = sinusoidal_positions(times, encoder.embed_dim).to(tokens.dtype)
    return encoder.features_at(tokens + positions, layer).mean(dim=1)  # (batch, embed_dim)
