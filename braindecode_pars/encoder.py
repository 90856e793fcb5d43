"""Transformer encoder of EEG patches, used in pretraining and in fine-tuning."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from braindecode_pars._common.checks import (
    ParameterRule,
    check_parameters,
    choice,
    integer,
    proportion,
)
from braindecode_pars.tokens import PatchEmbedding, SpectralPatchEmbedding

__all__ = ["MultiHeadAttention", "PatchEncoder", "TransformerBlock"]

#: Name of a tokenizer -> its class.
TOKENIZERS = {"linear": PatchEmbedding, "spectral": SpectralPatchEmbedding}

#: Argument of the encoder or of its layers -> rule.
_RULES = dict(
    **dict.fromkeys(("patch_size", "embed_dim", "num_layers", "num_heads", "mlp_dim"), integer(1)),
    drop_prob=proportion(),
    activation=ParameterRule(
        "a subclass of torch.nn.Module, such as torch.nn.GELU",
        (type,),
        lambda value: issubclass(value, nn.Module),
    ),
    tokenizer=choice(*TOKENIZERS),
)


class MultiHeadAttention(nn.Module):
    """Multi-head attention, with biases for queries, keys, values and output.

    Parameters
    ----------
    embed_dim : int
        Size of the input vectors (``queries`` and ``features`` of :meth:`forward`) and of the
        output vectors.
    num_heads : int
        Number of attention heads; must divide ``embed_dim``.

    Raises
    ------
    ValueError
        If ``num_heads`` does not divide ``embed_dim``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.encoder import MultiHeadAttention
    >>> attention = MultiHeadAttention(embed_dim=32, num_heads=4)
    >>> queries, features = torch.randn(2, 1, 32), torch.randn(2, 30, 32)
    >>> attention(queries, features).shape
    torch.Size([2, 1, 32])
    >>> attention.weights(queries, features).shape
    torch.Size([2, 4, 1, 30])
    """

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(
                f"embed_dim must be divisible by num_heads, got embed_dim={embed_dim} and "
                f"num_heads={num_heads}. Change embed_dim or num_heads."
            )
        self.num_heads = num_heads
        self.query = nn.Linear(embed_dim, embed_dim)
        self.key = nn.Linear(embed_dim, embed_dim)
        self.value = nn.Linear(embed_dim, embed_dim)
        self.output = nn.Linear(embed_dim, embed_dim)

    def split_heads(self, x: Tensor) -> Tensor:
        """Reshape (batch, n, embed_dim) to (batch, num_heads, n, embed_dim / num_heads)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, queries: Tensor, features: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Return the output of attention for each query.

        Parameters
        ----------
        queries : Tensor, shape (batch, n_queries, embed_dim)
            Vectors from which the queries are computed.
        features : Tensor, shape (batch, n_features, embed_dim)
            Vectors from which the keys and values are computed.
        key_mask : Tensor of bool, shape (batch, n_features) | None
            Mask that is True for features that are attended to. Every row must contain at least
            one True. If None, all features are attended to.

        Returns
        -------
        Tensor, shape (batch, n_queries, embed_dim)
            Mean of the values, weighted by the attention of the query, after the output projection.
        """
        attended = F.scaled_dot_product_attention(
            self.split_heads(self.query(queries)),
            self.split_heads(self.key(features)),
            self.split_heads(self.value(features)),
            attn_mask=None if key_mask is None else key_mask[:, None, None, :],
        )  # (batch, num_heads, n_queries, embed_dim / num_heads)
        # Concatenate the heads: (batch, n_queries, embed_dim).
        return self.output(attended.transpose(1, 2).flatten(-2))

    def weights(self, queries: Tensor, features: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Return the attention weights of each query.

        Parameters
        ----------
        queries, features, key_mask
            As in :meth:`forward`.

        Returns
        -------
        Tensor, shape (batch, num_heads, n_queries, n_features)
            Attention weights, which sum to 1 over the features.
        """
        keys = self.split_heads(self.key(features)).mT  # (batch, num_heads, size, n_features)
        logits = self.split_heads(self.query(queries)) @ keys * keys.shape[-2] ** -0.5
        if key_mask is not None:
            # The softmax of -inf is 0.
            logits = logits.masked_fill(~key_mask[:, None, None, :], -torch.inf)
        return logits.softmax(dim=-1)


class TransformerBlock(nn.Module):
    """Pre-norm transformer block (appendix A.1 of the PARS paper, equations 4 and 5).

    The block computes ``x + MHSA(LN(x))``, then ``x + FF(LN(x))``. LN is a layer norm, MHSA is
    multi-head self-attention, and FF is a feed-forward network of two linear layers.

    Parameters
    ----------
    embed_dim, num_heads, mlp_dim : int
        Size of a token, number of attention heads, and hidden size of the feed-forward network.
    drop_prob : float
        Dropout probability on both residual branches.
    activation : type[nn.Module]
        Activation between the two linear layers of the feed-forward network.

    Raises
    ------
    ValueError
        If ``num_heads`` does not divide ``embed_dim``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.encoder import TransformerBlock
    >>> block = TransformerBlock(embed_dim=32, num_heads=4, mlp_dim=64)
    >>> block(torch.randn(2, 30, 32)).shape
    torch.Size([2, 30, 32])
    """

    def __init__(
        self,
        embed_dim: int = 512,
        num_heads: int = 8,
        mlp_dim: int = 512,
        drop_prob: float = 0.0,
        activation: type[nn.Module] = nn.GELU,
    ):
        super().__init__()
        self.attention_norm = nn.LayerNorm(embed_dim)
        self.attention = MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward_norm = nn.LayerNorm(embed_dim)
        self.feed_forward = nn.Sequential(
            nn.Linear(embed_dim, mlp_dim), activation(), nn.Linear(mlp_dim, embed_dim)
        )
        self.dropout = nn.Dropout(drop_prob)

    def forward(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Return the output of the block for each token.

        Parameters
        ----------
        x : Tensor, shape (batch, n_patches, embed_dim)
            Tokens, or the output of the previous block.
        key_mask : Tensor of bool, shape (batch, n_patches) | None
            Mask that is True for tokens that are attended to. If None, all tokens are attended to.

        Returns
        -------
        Tensor, shape (batch, n_patches, embed_dim)
            Features of the tokens.
        """
        normed = self.attention_norm(x)
        x = x + self.dropout(self.attention(normed, normed, key_mask))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


def activation_name(encoder: PatchEncoder) -> str:
    """Return the name of the activation in ``torch.nn``, which is stored in model files.

    Raises
    ------
    ValueError
        If the activation is not a class of ``torch.nn``.
    """
    activation = encoder.config["activation"]
    name: str = activation.__name__
    if getattr(nn, name, None) is not activation:
        raise ValueError(
            f"The encoder cannot be saved, because its activation {activation!r} is not a class of "
            "torch.nn, and model files store only the name of the class. Build the encoder with an "
            "activation from torch.nn, such as torch.nn.GELU."
        )
    return name


class PatchEncoder(nn.Module):
    """Transformer encoder of patches (short segments) of one channel, as in PatchTST.

    The encoder consists of a patch embedding, which maps each patch to a vector (a token), and
    transformer blocks, as in appendix A.1 of the PARS paper. Only the weights of this module are
    transferred from pretraining to fine-tuning. The encoder processes one channel at a time. It
    does not add a position encoding: add :func:`~braindecode_pars.tokens.sinusoidal_positions` to
    the output of :meth:`tokenize` before you call :meth:`forward`. To encode signals in one call,
    use :func:`~braindecode_pars.models.embed_signals`.

    Parameters
    ----------
    patch_size : int
        Number of samples in a patch.
    embed_dim : int
        Size of a token; must be even.
    num_layers, num_heads, mlp_dim : int
        Number of transformer blocks, number of attention heads in each block, and hidden size of
        the feed-forward networks.
    drop_prob : float
        Dropout probability on the residual branches, in [0, 1).
    activation : type[nn.Module]
        Activation of the feed-forward networks. An encoder can only be saved if its activation is a
        class of ``torch.nn``.
    tokenizer : "linear" | "spectral"
        Patch embedding, which maps patches to tokens. ``"linear"`` is a linear layer, as in the
        paper. ``"spectral"`` adds the output of a second linear layer, which is applied to the log
        power spectrum of the patch (:class:`~braindecode_pars.tokens.SpectralPatchEmbedding`).

    Attributes
    ----------
    config : dict
        Arguments of the constructor.

    Raises
    ------
    ValueError
        If an argument is out of range, ``embed_dim`` is odd, ``num_heads`` does not divide
        ``embed_dim``, or ``activation`` is not a subclass of ``torch.nn.Module``.
    TypeError
        If a size is not an integer, or ``activation`` is not a class.

    Notes
    -----
    The defaults are the sizes in the paper. An encoder with these sizes has 12,727,808 parameters:
    102,912 in the patch embedding, 1,577,984 in each block and 1,024 in the final layer norm.

    References
    ----------
    Nie et al. 2023, A time series is worth 64 words, arXiv:2211.14730.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars import PatchEncoder
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> tokens = encoder.tokenize(torch.randn(2, 30, 100))
    >>> encoder(tokens).shape
    torch.Size([2, 30, 32])
    >>> torch.equal(encoder.features_at(tokens, layer=0), tokens)  # layer 0 is the input
    True
    """

    #: Class of the transformer blocks.
    block: ClassVar[type[TransformerBlock]] = TransformerBlock

    def __init__(
        self,
        patch_size: int = 200,
        embed_dim: int = 512,
        num_layers: int = 8,
        num_heads: int = 8,
        mlp_dim: int = 512,
        drop_prob: float = 0.0,
        activation: type[nn.Module] = nn.GELU,
        tokenizer: str = "linear",
    ):
        super().__init__()
        params = {name: value for name, value in locals().items() if name in _RULES}
        check_parameters(params, _RULES, type(self).__name__)
        if embed_dim % 2:
            raise ValueError(
                f"embed_dim must be even, got {embed_dim}, because positions are encoded by pairs "
                "of a sine and a cosine. Use an even number."
            )

        # Stored with the weights, so that the same encoder can be built again. NumPy numbers are
        # converted to Python numbers.
        self.config: dict[str, Any] = {
            name: v.item() if hasattr(v, "item") else v for name, v in params.items()
        }

        # Layers
        self.patch_size, self.embed_dim = patch_size, embed_dim
        self.tokenizer = TOKENIZERS[tokenizer](patch_size, embed_dim)
        self.blocks = nn.ModuleList(
            self.block(embed_dim, num_heads, mlp_dim, drop_prob, activation)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(embed_dim)

    def tokenize(self, patches: Tensor) -> Tensor:
        """Return the tokens of patches, without position encoding.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Patches of signals after :func:`~braindecode_pars.tokens.instance_norm`.

        Returns
        -------
        Tensor, shape (batch, n_patches, embed_dim)
            One token per patch.
        """
        return self.tokenizer(patches)

    def forward(self, tokens: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Return the features of tokens.

        Parameters
        ----------
        tokens : Tensor, shape (batch, n_patches, embed_dim)
            Tokens plus their position encoding.
        key_mask : Tensor of bool, shape (batch, n_patches) | None
            Mask that is True for tokens that are attended to in every block. If None, all tokens
            are attended to.

        Returns
        -------
        Tensor, shape (batch, n_patches, embed_dim)
            Features after the final layer norm.
        """
        for block in self.blocks:
            tokens = block(tokens, key_mask)
        return self.norm(tokens)

    def block_number(self, layer: int) -> int:
        """Convert a layer number, which may be negative, to a number of transformer blocks.

        Parameters
        ----------
        layer : int
            Layer of the encoder: 0 for the tokens, k for the output of block k. Negative numbers
            count from the end: -1 is the last block.

        Returns
        -------
        int
            Number of transformer blocks up to this layer, from 0 to ``num_layers``.

        Raises
        ------
        ValueError
            If the encoder does not have this layer.
        """
        numbers = range(len(self.blocks) + 1)
        if not -len(numbers) <= layer < len(numbers):
            raise ValueError(
                f"layer={layer} does not exist in this encoder. Use a number from 0 (the tokens) "
                f"to {len(self.blocks)} (the last block), or from {-len(numbers)} to -1 to count "
                "from the end."
            )
        return numbers[layer]

    def features_at(
        self, tokens: Tensor, layer: int = -1, key_mask: Tensor | None = None
    ) -> Tensor:
        """Return the features of one layer.

        Parameters
        ----------
        tokens : Tensor, shape (batch, n_patches, embed_dim)
            Tokens plus their position encoding.
        layer : int
            Layer of the encoder: 0 for the tokens, k for the output of block k. Negative numbers
            count from the end: -1 is the last block.
        key_mask : Tensor of bool | None
            As in :meth:`forward`.

        Returns
        -------
        Tensor, shape (batch, n_patches, embed_dim)
            For layer 0, the tokens. For the last layer, the output of :meth:`forward`, which
            includes the final layer norm. For all other layers, the output of the block.

        Raises
        ------
        ValueError
            If the encoder does not have this layer.
        """
        number = self.block_number(layer)
        if number == len(self.blocks):
            return self(tokens, key_mask)
        for block in self.blocks[:number]:
            tokens = block(tokens, key_mask)
        return tokens
