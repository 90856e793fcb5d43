"""SpaceTimeEncoder: an encoder of all channels of a window, which attends along time and across."""

from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars.encoder import MultiHeadAttention, PatchEncoder, TransformerBlock
from braindecode_pars.models.electrodes import (
    AmplitudeCode,
    ElectrodeCode,
    positions_of,
    relative_amplitude,
)
from braindecode_pars.tokens import grid_patches, instance_norm, sinusoidal_positions

#: Entry of an encoder's ``config`` that says its kind; a PatchEncoder has none.
KIND, SPACE_TIME = "encoder_kind", "space_time"


class SpaceTimeBlock(TransformerBlock):
    """A transformer block that first attends across the channels, at each moment.

    With :math:`x` the tokens of a channel, the block computes ``x + MHSA(LN(x))`` over the channels
    of each patch, then what a :class:`~braindecode_pars.encoder.TransformerBlock` computes along
    the time of each channel. The first part is left out where a window has one channel.

    Parameters
    ----------
    embed_dim, num_heads, mlp_dim, drop_prob, activation
        As in :class:`~braindecode_pars.encoder.TransformerBlock`.
    """

    def __init__(
        self,
        embed_dim: int = 512,
        num_heads: int = 8,
        mlp_dim: int = 512,
        drop_prob: float = 0.0,
        activation: type[nn.Module] = nn.GELU,
    ):
        super().__init__(embed_dim, num_heads, mlp_dim, drop_prob, activation)
        self.channel_norm = nn.LayerNorm(embed_dim)
        self.channel_attention = MultiHeadAttention(embed_dim, num_heads)

    def forward(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Return the features of this block.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_patches, embed_dim) or (batch, n_patches, embed_dim)
            Tokens of all channels, or of one.
        key_mask : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels. Of one channel, that of the patches, as in
            :class:`~braindecode_pars.encoder.TransformerBlock`.

        Returns
        -------
        Tensor, shape of ``x``
            Features of the tokens.
        """
        if x.ndim == 3:
            return super().forward(x, key_mask)
        if x.shape[1] > 1:
            x = x + self.dropout(self._across_channels(x, key_mask))
        return super().forward(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    def _across_channels(self, x: Tensor, keep: Tensor | None) -> Tensor:
        batch, _, n_patches, _ = x.shape
        # Channels of one moment are a sequence: (batch * n_patches, n_chans, embed_dim).
        moments = self.channel_norm(x).transpose(1, 2).flatten(0, 1)
        mask = None if keep is None else keep.repeat_interleave(n_patches, dim=0)
        mixed = self.channel_attention(moments, moments, mask)
        mixed = mixed.unflatten(0, (batch, n_patches)).transpose(1, 2)
        return mixed if keep is None else mixed * has_neighbors(keep)[:, None, None, None]


def has_neighbors(keep: Tensor) -> Tensor:
    """Return whether each window has two channels or more: (batch, n_chans) -> (batch,)."""
    return keep.sum(dim=1) > 1


class SpaceTimeEncoder(PatchEncoder):
    """Encoder of all channels of a window: attention along time and across channels in turns.

    A token is one patch of one channel. Its position has two parts, when and where: the code of its
    time, and a Fourier code of the 3-D position of its electrode. A channel of unknown position has
    a learned code. Channels are compared in each block, at the same moment. No weight depends on
    the number of channels or samples, so any montage goes in, and any part of it.

    A window with one channel has no neighbors and no place among them: it is encoded as by a
    :class:`~braindecode_pars.PatchEncoder` with the same weights.

    Parameters
    ----------
    patch_size : int
        Number of samples in a patch.
    **sizes
        Further arguments of :class:`~braindecode_pars.PatchEncoder`.

    Attributes
    ----------
    config : dict
        Arguments of the constructor, and the kind of the encoder.

    Raises
    ------
    TypeError, ValueError
        As :class:`~braindecode_pars.PatchEncoder`.

    Notes
    -----
    Relatives: CBraMod (Wang et al. 2025) attends in space and in time in parallel. LUNA (Döner et
    al. 2025) maps any montage to a fixed number of queries. REVE (El Ouahidi et al. 2025) adds a
    Fourier code of 3-D position and time to the token of a channel and a patch, and so does the
    masked autoencoder of Meta's neuraltrain.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.models import SpaceTimeEncoder, embed_channels
    >>> encoder = SpaceTimeEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> positions = 0.1 * torch.rand(19, 3)
    >>> embed_channels(encoder, torch.randn(2, 19, 1000), positions).shape
    torch.Size([2, 19, 32])
    """

    block = SpaceTimeBlock

    def __init__(self, patch_size: int = 200, **sizes: Any):
        super().__init__(patch_size, **sizes)
        self.config[KIND] = SPACE_TIME
        self.electrode_code = ElectrodeCode(self.embed_dim)
        self.amplitude_code = AmplitudeCode(self.embed_dim)

    def tokens_of(self, patches: Tensor, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Return the tokens of patches, without positions.

        Each has the code of the amplitude of its channel relative to the others, which the patches
        have lost.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_chans, n_patches, patch_size)
            Patches of normalized signals.
        x : Tensor, shape (batch, n_chans, n_times)
            The signals before :func:`~braindecode_pars.tokens.instance_norm`.
        keep : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels.

        Returns
        -------
        Tensor, shape (batch, n_chans, n_patches, embed_dim)
            Tokens.
        """
        tokens = self.tokenize(patches)
        amplitudes = relative_amplitude(x, keep)[..., None].to(tokens.dtype)
        return tokens + self.amplitude_code(amplitudes)[:, :, None]

    def places(self, positions: Tensor, keep: Tensor) -> Tensor:
        """Return the codes of electrodes; zeros in a window with one channel.

        Parameters
        ----------
        positions : Tensor, shape (n_chans, 3) or (batch, n_chans, 3)
            Positions in meters in the head frame; NaN for unknown positions.
        keep : Tensor of bool, shape (batch, n_chans)
            Mask that is False for missing channels.

        Returns
        -------
        Tensor, shape (batch, n_chans, embed_dim)
            Codes.
        """
        return self.electrode_code(positions) * has_neighbors(keep)[:, None, None]

    def embed(
        self, x: Tensor, positions: Tensor | None, keep: Tensor | None, layer: int = -1
    ) -> Tensor:
        """Return one vector for each channel of windows; see :func:`embed_channels`."""
        if keep is None:
            keep = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        positions = positions_of(None, x) if positions is None else positions
        x = x.masked_fill(~keep[..., None], 0.0)  # missing channels may contain NaN
        patches, when = _patches_and_times(self, x)
        tokens = self.tokens_of(patches, x, keep)
        where = self.places(positions.to(when.dtype), keep)[:, :, None]
        features = self.features_at(tokens + (when + where).to(tokens.dtype), layer, keep)
        return features.mean(dim=2).masked_fill(~keep[..., None], 0.0)


def build_encoder(encoder_kind: str = "patch", **config: Any) -> PatchEncoder:
    """Return a new encoder from its ``config``."""
    return SpaceTimeEncoder(**config) if encoder_kind == SPACE_TIME else PatchEncoder(**config)


def _patches_and_times(encoder: PatchEncoder, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the patches of signals, (..., n_patches, patch_size), and the codes of their times."""
    normed = instance_norm(x).to(encoder.norm.weight.dtype)
    patches = grid_patches(normed, encoder.patch_size)
    # In at least float32: bfloat16 cannot represent large positions.
    dtype = torch.promote_types(patches.dtype, torch.float32)
    times = torch.arange(patches.shape[-2], device=x.device, dtype=dtype)
    return patches, sinusoidal_positions(times, encoder.embed_dim)


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
    patches, when = _patches_and_times(encoder, x)
    tokens = encoder.tokenize(patches)  # (batch, n_patches, embed_dim)
    return encoder.features_at(tokens + when.to(tokens.dtype), layer).mean(dim=1)


def embed_channels(
    encoder: PatchEncoder,
    x: Tensor,
    positions: Tensor | None = None,
    keep: Tensor | None = None,
    layer: int = -1,
) -> Tensor:
    """Return one vector for each channel of windows, from an encoder of either kind.

    A :class:`~braindecode_pars.PatchEncoder` embeds each channel by itself (section 2.4), a
    :class:`~braindecode_pars.models.SpaceTimeEncoder` all of them together.

    Parameters
    ----------
    encoder : PatchEncoder | SpaceTimeEncoder
        Encoder. Its training or evaluation mode is not changed.
    x : Tensor, shape (batch, n_chans, n_times)
        Windows of at least one patch, in any unit and of any floating-point type.
    positions : Tensor, shape (n_chans, 3) or (batch, n_chans, 3) | None
        Electrode positions in meters in the head frame; NaN where unknown. None: all are unknown.
        An encoder of single channels does not use them.
    keep : Tensor of bool, shape (batch, n_chans) | None
        Mask that is False for missing channels, which change nothing. None keeps all.
    layer : int
        As in :func:`embed_signals`.

    Returns
    -------
    Tensor, shape (batch, n_chans, embed_dim)
        Means over time; zeros for missing channels.

    Raises
    ------
    ValueError
        When the encoder has no such layer.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.models import embed_channels
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> embed_channels(encoder, torch.randn(8, 6, 3000)).shape
    torch.Size([8, 6, 32])
    """
    if isinstance(encoder, SpaceTimeEncoder):
        return encoder.embed(x, positions, keep, layer)
    if keep is None:
        # (batch, n_chans, n_times) -> (batch * n_chans, embed_dim) -> (batch, n_chans, embed_dim)
        return embed_signals(encoder, x.flatten(0, 1), layer).unflatten(0, x.shape[:2])
    of_kept = embed_signals(encoder, x[keep], layer)  # (n_kept, embed_dim); others cost nothing
    tokens = of_kept.new_zeros(*x.shape[:2], of_kept.shape[-1])
    return tokens.index_put((keep,), of_kept)
