"""The two decoders that turn features into a matrix of predictions, one for each pair."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from braindecode_pars.encoder import MultiHeadAttention

__all__ = ["CrossAttentionDecoder", "PairwiseMLPDecoder"]


class CrossAttentionDecoder(nn.Module):
    r"""Each pair of patches attends to all patches (section 2.3, equation 2).

    The query of pair :math:`(j, k)` is :math:`A_Q [y_j; y_k]`; standard multi-head attention
    over all features follows, then one linear layer to a scalar.

    Parameters
    ----------
    embed_dim : int
        Size of a feature.
    num_heads : int
        Attention heads; must divide ``embed_dim``.
    method : "factorized" | "literal"
        How to compute the same numbers from the same parameters. ``"literal"`` builds all
        ``n_masked ** 2`` queries. ``"factorized"`` never does: because :math:`A_Q` splits into
        :math:`A_1, A_2`, the logit of key :math:`i` is a sum :math:`a_{ji} + b_{ki}`, and
        because all that follows the softmax is linear, every key carries one scalar
        :math:`v_i` per head, so that

        .. math::
            \hat\theta_{jk} = \sum_h
            \frac{(E \operatorname{diag}(v) G^\top)_{jk}}{(E G^\top)_{jk}} + c, \qquad
            E = e^{a - \max_i a}, \quad G = e^{b - \max_i b}.

    Notes
    -----
    The algebra of exponentials of sums is that of AFT (Zhai et al. 2021, arXiv:2105.14103) and
    of Strassen attention (arXiv:2501.19215). The exponentials, both products and the ratio
    are computed in float64, where they are exact up to a combined spread of the logits of 690
    (in float32 the denominator underflows where the key that suits both :math:`a_j` and
    :math:`b_k` best lies some 87 below their two maxima); on devices without float64 the sum of
    logits is broadcast and soft-maxed instead. Everything is outside autocast: mixed precision
    ends at the encoder.

    The paper leaves the number of heads open. At its size, with 8 heads, the decoder has
    1,575,937 parameters.

    Raises
    ------
    ValueError
        When ``method`` is unknown, or ``num_heads`` does not divide ``embed_dim``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.pairwise import CrossAttentionDecoder
    >>> features = torch.randn(2, 40, 32)  # of 40 patches
    >>> masked = features[:, :32]
    >>> decoder = CrossAttentionDecoder(embed_dim=32)
    >>> shifts = decoder(masked, features)
    >>> shifts.shape
    torch.Size([2, 32, 32])

    The other method computes the same from the same parameters:

    >>> literal = CrossAttentionDecoder(embed_dim=32, method="literal")
    >>> literal.load_state_dict(decoder.state_dict())
    <All keys matched successfully>
    >>> torch.allclose(shifts, literal(masked, features), atol=1e-5)
    True
    """

    def __init__(self, embed_dim: int, num_heads: int = 8, *, method: str = "factorized"):
        super().__init__()
        if method not in ("factorized", "literal"):
            raise ValueError(f"method must be 'factorized' or 'literal', got {method!r}.")
        self.method = method
        self.pair_query = nn.Linear(2 * embed_dim, embed_dim)
        self.attention = MultiHeadAttention(embed_dim, num_heads)
        self.head = nn.Linear(embed_dim, 1)

    def forward(self, queries: Tensor, features: Tensor) -> Tensor:
        """Predict one number for each ordered pair.

        Parameters
        ----------
        queries : Tensor, shape (batch, n_masked, embed_dim)
            Features of the patches to be paired.
        features : Tensor, shape (batch, n_patches, embed_dim)
            Features of all patches.

        Returns
        -------
        Tensor, shape (batch, n_masked, n_masked)
            Entry ``[:, j, k]`` belongs to the pair ``(j, k)``.
        """
        with torch.autocast(queries.device.type, enabled=False):
            dtype = self.head.weight.dtype
            predict = self._factorized if self.method == "factorized" else self._literal
            return predict(queries.to(dtype), features.to(dtype))

    def _literal(self, queries: Tensor, features: Tensor) -> Tensor:
        n_masked = queries.shape[1]
        first = queries[:, :, None].expand(-1, -1, n_masked, -1)
        second = queries[:, None].expand(-1, n_masked, -1, -1)
        pairs = torch.cat([first, second], dim=-1)  # (batch, n_masked, n_masked, 2 embed_dim)
        attended = self.attention(self.pair_query(pairs).flatten(1, 2), features)
        return self.head(attended).unflatten(1, (n_masked, n_masked)).squeeze(-1)

    def _factorized(self, queries: Tensor, features: Tensor) -> Tensor:
        attention = self.attention
        scale = (attention.query.out_features // attention.num_heads) ** -0.5

        # A_1, A_2 and A_Q's bias, each already through W_Q.
        weight_1, weight_2 = (attention.query.weight @ self.pair_query.weight).chunk(2, dim=1)
        bias = attention.query(self.pair_query.bias)
        keys = attention.split_heads(attention.key(features) * scale).mT
        a = attention.split_heads(F.linear(queries, weight_1, bias)) @ keys
        b = attention.split_heads(F.linear(queries, weight_2)) @ keys
        # a, b: (batch, num_heads, n_masked, n_patches)

        # What a key contributes to the prediction, through W_V, W_O and the head.
        read_out = (self.head.weight @ attention.output.weight).view(attention.num_heads, 1, -1)
        value_weight = read_out @ attention.value.weight.unflatten(0, (attention.num_heads, -1))
        value_bias = read_out @ attention.value.bias.view(attention.num_heads, -1, 1)
        values = F.linear(features, value_weight.squeeze(1), value_bias.flatten())
        values = values.mT[:, :, None]  # (batch, num_heads, 1, n_patches)
        constant = self.head(attention.output.bias)

        if queries.device.type == "mps":  # no float64 there
            weights = (a[:, :, :, None] + b[:, :, None]).float().softmax(dim=-1)
            ratio = (weights * values[:, :, None]).sum(-1)
        else:
            e = torch.exp(a.double() - a.detach().amax(-1, keepdim=True))
            g = torch.exp(b.double() - b.detach().amax(-1, keepdim=True)).mT
            ratio = ((e * values) @ g) / (e @ g).clamp_min(1e-300)
        return ratio.sum(dim=1).to(queries.dtype) + constant


class PairwiseMLPDecoder(nn.Module):
    """Each pair of patches on its own (appendix A.4, decoder architecture).

    ``Linear(2 F, hidden_dim) - ReLU - Linear(hidden_dim, 1)`` on ``[y_j; y_k]``, computed with
    the first layer split, so that it runs once for each patch instead of once for each pair.

    Parameters
    ----------
    embed_dim : int
        Size F of a feature.
    hidden_dim : int
        Size of the hidden layer; 512 in the paper.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.pairwise import PairwiseMLPDecoder
    >>> features = torch.randn(2, 40, 32)  # of 40 patches
    >>> PairwiseMLPDecoder(embed_dim=32)(features[:, :32], features).shape
    torch.Size([2, 32, 32])
    """

    def __init__(self, embed_dim: int, hidden_dim: int = 512):
        super().__init__()
        self.hidden = nn.Linear(2 * embed_dim, hidden_dim)
        self.head = nn.Linear(hidden_dim, 1)

    def forward(self, queries: Tensor, features: Tensor) -> Tensor:
        """Predict one number for each ordered pair.

        Parameters
        ----------
        queries : Tensor, shape (batch, n_masked, embed_dim)
            Features of the patches to be paired.
        features : Tensor
            Not used; here because the other decoder takes them.

        Returns
        -------
        Tensor, shape (batch, n_masked, n_masked)
            As of :class:`CrossAttentionDecoder`.
        """
        weight_1, weight_2 = self.hidden.weight.chunk(2, dim=1)
        first = F.linear(queries, weight_1, self.hidden.bias)
        second = F.linear(queries, weight_2)
        return self.head(F.relu(first[:, :, None] + second[:, None])).squeeze(-1)
