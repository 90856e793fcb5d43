"""SpaceTimeEncoder: a transformer encoder with attention along time and across channels."""

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

#: Key in the ``config`` of an encoder that states its kind. A PatchEncoder does not have this key.
KIND = "encoder_kind"

#: Value of this key in the ``config`` of a SpaceTimeEncoder.
SPACE_TIME = "space_time"


class SpaceTimeBlock(TransformerBlock):
    """Transformer block with attention across channels, then along time.

    Given tokens ``x``, the block first computes ``x + MHSA(LN(x))`` across channels, separately for
    each patch index (LN is a layer norm, MHSA is multi-head self-attention). It then applies a
    :class:`~braindecode_pars.encoder.TransformerBlock` along the time of each channel. The
    attention across channels is skipped in windows with one channel.

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
        """Return the output of the block for each token.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_patches, embed_dim) or (batch, n_patches, embed_dim)
            Tokens of all channels, or of single channels.
        key_mask : Tensor of bool, shape (batch, n_chans) or (batch, n_patches) | None
            If ``x`` contains all channels, a mask that is False for missing channels. If ``x``
            contains single channels, a mask of the patches, as in
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
        # The channels of one patch are one sequence: (batch * n_patches, n_chans, embed_dim).
        sequences = self.channel_norm(x).transpose(1, 2).flatten(0, 1)
        mask = None if keep is None else keep.repeat_interleave(n_patches, dim=0)
        mixed = self.channel_attention(sequences, sequences, mask)
        mixed = mixed.unflatten(0, (batch, n_patches)).transpose(1, 2)
        return mixed if keep is None else mixed * has_several_channels(keep)[:, None, None, None]


def has_several_channels(keep: Tensor) -> Tensor:
    """Return whether each window has at least two channels: (batch, n_chans) -> (batch,)."""
    return keep.sum(dim=1) > 1


class SpaceTimeEncoder(PatchEncoder):
    """Transformer encoder of all channels of a window, with attention along time and channels.

    A token is a vector that represents one patch (a short segment) of one channel. Two position
    encodings are added to each token: a sinusoidal encoding of the time of the patch, and a Fourier
    encoding of the 3-D position of the electrode. Channels with unknown position share a learned
    encoding. Each transformer block computes attention first across the channels of each patch, and
    then along the time of each channel. The shapes of the weights do not depend on the number of
    channels or samples, so the encoder can be used with any montage. To encode windows, use
    :func:`~braindecode_pars.models.embed_channels`.

    A window with one channel is encoded without electrode encoding and without attention across
    channels, exactly as by a :class:`~braindecode_pars.PatchEncoder` with the same weights.

    Parameters
    ----------
    patch_size : int
        Number of samples in a patch.
    **sizes
        Additional arguments of :class:`~braindecode_pars.PatchEncoder`, such as ``embed_dim``.

    Attributes
    ----------
    config : dict
        Arguments of the constructor, and the entry ``encoder_kind="space_time"``.

    Raises
    ------
    TypeError, ValueError
        As in :class:`~braindecode_pars.PatchEncoder`.

    Notes
    -----
    Related work: CBraMod (Wang et al. 2025) computes attention in space and attention in time in
    parallel. LUNA (Döner et al. 2025) maps any montage to a fixed number of queries. REVE (El
    Ouahidi et al. 2025) and the masked autoencoder of neuraltrain (Meta) add a Fourier encoding of
    3-D position and time to the token of each patch of each channel.

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
        """Return the tokens of patches of all channels, without position encodings.

        The normalization removes amplitudes from the patches. Therefore, an encoding of the
        amplitude of each channel, relative to the other channels, is added to the tokens.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_chans, n_patches, patch_size)
            Patches of normalized signals.
        x : Tensor, shape (batch, n_chans, n_times)
            Signals before :func:`~braindecode_pars.tokens.instance_norm`.
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
        """Return the encodings of electrode positions.

        Parameters
        ----------
        positions : Tensor, shape (n_chans, 3) or (batch, n_chans, 3)
            Positions in meters in the head frame; NaN for unknown positions.
        keep : Tensor of bool, shape (batch, n_chans)
            Mask that is False for missing channels.

        Returns
        -------
        Tensor, shape (batch, n_chans, embed_dim)
            Encodings of the electrode positions; zeros in windows with one channel.
        """
        return self.electrode_code(positions) * has_several_channels(keep)[:, None, None]

    def embed(
        self, x: Tensor, positions: Tensor | None, keep: Tensor | None, layer: int = -1
    ) -> Tensor:
        """Return the features of each channel; :func:`embed_channels` calls this method."""
        if keep is None:
            keep = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        positions = positions_of(None, x) if positions is None else positions
        x = x.masked_fill(~keep[..., None], 0.0)  # missing channels may contain NaN
        patches, times = _patches_and_times(self, x)
        tokens = self.tokens_of(patches, x, keep)
        electrodes = self.places(positions.to(times.dtype), keep)[:, :, None]
        features = self.features_at(tokens + (times + electrodes).to(tokens.dtype), layer, keep)
        return features.mean(dim=2).masked_fill(~keep[..., None], 0.0)


def build_encoder(encoder_kind: str = "patch", **config: Any) -> PatchEncoder:
    """Build a new encoder from the ``config`` of an encoder."""
    return SpaceTimeEncoder(**config) if encoder_kind == SPACE_TIME else PatchEncoder(**config)


def _patches_and_times(encoder: PatchEncoder, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the patches of signals, and the sinusoidal encodings of their times.

    The patches have shape (..., n_patches, patch_size), and the encodings (n_patches, embed_dim).
    """
    normed = instance_norm(x).to(encoder.norm.weight.dtype)
    patches = grid_patches(normed, encoder.patch_size)
    # At least float32, because bfloat16 cannot represent large positions.
    dtype = torch.promote_types(patches.dtype, torch.float32)
    times = torch.arange(patches.shape[-2], device=x.device, dtype=dtype)
    return patches, sinusoidal_positions(times, encoder.embed_dim)


def signal_tokens(encoder: PatchEncoder, x: Tensor, layer: int = -1) -> Tensor:
    """Return the features of each patch of single-channel signals, (batch, n_patches, embed_dim).

    The arguments are the same as in :func:`embed_signals`, which averages the features over time.
    """
    patches, times = _patches_and_times(encoder, x)
    tokens = encoder.tokenize(patches)  # (batch, n_patches, embed_dim)
    return encoder.features_at(tokens + times.to(tokens.dtype), layer)


def embed_signals(encoder: PatchEncoder, x: Tensor, layer: int = -1) -> Tensor:
    """Return one feature vector for each single-channel signal.

    Each signal is normalized and cut into adjacent patches (short segments). The patches are
    encoded together with their positions, and the features are averaged over time (section 2.4 of
    the PARS paper).

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder. This function does not switch to evaluation mode: if the encoder has dropout, call
        ``encoder.eval()`` first.
    x : Tensor, shape (batch, n_times)
        Signals of at least one patch, in any unit and of any floating-point type.
    layer : int
        Layer whose features are averaged over time: 0 for the tokens (the vectors that represent
        patches) with their position encodings, k for the output of block k, and -1 for the output
        of the last block after the final layer norm. See :meth:`PatchEncoder.features_at
        <braindecode_pars.PatchEncoder.features_at>`.

    Returns
    -------
    Tensor, shape (batch, embed_dim)
        One feature vector per signal.

    Raises
    ------
    ValueError
        If the encoder does not have this layer.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.models import embed_signals
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> embed_signals(encoder, torch.randn(8, 3000)).shape
    torch.Size([8, 32])
    """
    return signal_tokens(encoder, x, layer).mean(dim=1)


def embed_channels(
    encoder: PatchEncoder,
    x: Tensor,
    positions: Tensor | None = None,
    keep: Tensor | None = None,
    layer: int = -1,
) -> Tensor:
    """Return one feature vector for each channel of each window.

    A :class:`~braindecode_pars.PatchEncoder` encodes each channel separately (section 2.4 of the
    PARS paper), and a :class:`~braindecode_pars.models.SpaceTimeEncoder` encodes all channels
    jointly.

    Parameters
    ----------
    encoder : PatchEncoder | SpaceTimeEncoder
        Encoder. This function does not switch to evaluation mode: if the encoder has dropout, call
        ``encoder.eval()`` first.
    x : Tensor, shape (batch, n_chans, n_times)
        Windows of at least one patch, in any unit and of any floating-point type.
    positions : Tensor, shape (n_chans, 3) or (batch, n_chans, 3) | None
        Electrode positions in meters in the head frame; NaN for unknown positions. If None, all
        positions are unknown. A PatchEncoder ignores positions.
    keep : Tensor of bool, shape (batch, n_chans) | None
        Mask that is False for missing channels, whose samples are ignored. If None, no channel is
        missing.
    layer : int
        As in :func:`embed_signals`.

    Returns
    -------
    Tensor, shape (batch, n_chans, embed_dim)
        Features averaged over time; zeros for missing channels.

    Raises
    ------
    ValueError
        If the encoder does not have this layer.

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
    # Missing channels are not encoded, which saves time. Shape: (n_present, embed_dim).
    present = embed_signals(encoder, x[keep], layer)
    tokens = present.new_zeros(*x.shape[:2], present.shape[-1])
    return tokens.index_put((keep,), present)
