"""Decoders of PARS, which predict the time shift of each ordered pair of patches."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from braindecode_pars._common.checks import choice
from braindecode_pars.encoder import MultiHeadAttention

__all__ = ["CrossAttentionDecoder", "PairwiseMLPDecoder"]

#: Minimum denominator for which the factorized softmax is exact in float64: exp(-690).
MIN_DENOMINATOR = 1e-300


class CrossAttentionDecoder(nn.Module):
    r"""Cross-attention decoder of PARS: each pair of patches attends to all patches.

    This is the decoder of the PARS paper (section 2.3, equation 2). The query of pair
    :math:`(j, k)` is :math:`A_Q [y_j; y_k]`, where :math:`y_j` and :math:`y_k` are the features of
    the two patches and :math:`A_Q` is a learned matrix. The query attends to the features of all
    patches (standard multi-head attention), and one linear layer computes the prediction from the
    result.

    Parameters
    ----------
    embed_dim : int
        Size of the feature vector of a patch.
    num_heads : int
        Number of attention heads; must divide ``embed_dim``.
    n_outputs : int
        Number of predictions per pair: 1 for the time shift of :class:`PARS
        <braindecode_pars.pretext.PARS>`, or the number of axes of :class:`SpaceTimePARS
        <braindecode_pars.pretext.SpaceTimePARS>`.
    method : "factorized" | "literal"
        Algorithm. Both algorithms have the same weights and compute the same predictions.
        ``"literal"`` computes the query of every pair, as in the paper. ``"factorized"`` is
        equivalent, but computes no query explicitly: :math:`A_Q` splits into :math:`A_1, A_2`, so
        the logit of key :math:`i` is a sum :math:`a_{ji} + b_{ki}`. All operations after the
        softmax are linear, so every key contributes one scalar :math:`v_i` per head. The prediction
        is then

        .. math::
            \hat\theta_{jk} = \sum_h
            \frac{(E \operatorname{diag}(v) G^\top)_{jk}}{(E G^\top)_{jk}} + c, \qquad
            E = e^{a - \max_i a}, \quad G = e^{b - \max_i b},

        where the sum is over the heads :math:`h`, and :math:`c` is a constant.

    Notes
    -----
    AFT (Zhai et al. 2021, arXiv:2105.14103) and Strassen attention (arXiv:2501.19215) use the
    same factorization of exponentials of sums.

    The factorized algorithm computes the exponentials, both products and the ratio in float64. The
    prediction of a pair is exact as long as, for at least one key, :math:`a_{ji} + b_{ki}` is at
    most 690 below the sum of the two maxima (in float32, this limit would be about 87). Beyond the
    limit, the denominator underflows, and the prediction of the pair is NaN. In training, the loss
    is then also NaN, and training ends with an error. In evaluation mode, the literal algorithm is
    used for this batch, unless the decoder is compiled. On devices without float64, the logits are
    added with broadcasting, and a softmax is applied. The decoder disables autocast, so that only
    the encoder runs in mixed precision.

    The paper does not state the number of heads. With the sizes of the paper and 8 heads, the
    decoder has 1,575,937 parameters.

    Raises
    ------
    ValueError
        If ``method`` is unknown, or ``num_heads`` does not divide ``embed_dim``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.pairwise import CrossAttentionDecoder
    >>> features = torch.randn(2, 40, 16)  # 40 patches
    >>> masked = features[:, :32]  # the first 32 patches
    >>> decoder = CrossAttentionDecoder(embed_dim=16)
    >>> shifts = decoder(masked, features)
    >>> shifts.shape
    torch.Size([2, 32, 32])

    With the same weights, the literal algorithm computes the same shifts:

    >>> literal = CrossAttentionDecoder(embed_dim=16, method="literal")
    >>> literal.load_state_dict(decoder.state_dict())
    <All keys matched successfully>
    >>> torch.allclose(shifts, literal(masked, features), atol=1e-5)
    True
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int = 8,
        *,
        method: str = "factorized",
        n_outputs: int = 1,
    ):
        super().__init__()
        choice("factorized", "literal").check("method", method, type(self).__name__)
        self.method = method
        self.pair_query = nn.Linear(2 * embed_dim, embed_dim)
        self.attention = MultiHeadAttention(embed_dim, num_heads)
        self.head = nn.Linear(embed_dim, n_outputs)

    def forward(self, queries: Tensor, features: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Return the prediction for each ordered pair of patches.

        Parameters
        ----------
        queries : Tensor, shape (batch, n_masked, embed_dim)
            Features of the patches that form the pairs.
        features : Tensor, shape (batch, n_patches, embed_dim)
            Features of all patches.
        key_mask : Tensor of bool, shape (batch, n_patches) | None
            Mask that is True for patches that are attended to. If None, all patches are attended
            to.

        Returns
        -------
        Tensor, shape (batch, n_masked, n_masked) or (batch, n_masked, n_masked, n_outputs)
            Entry ``[:, j, k]`` is the prediction for the pair ``(j, k)``. The last dimension exists
            only if ``n_outputs`` is greater than 1.
        """
        with torch.autocast(queries.device.type, enabled=False):
            dtype = self.head.weight.dtype
            queries, features = queries.to(dtype), features.to(dtype)
            if self.method == "literal":
                return self._literal(queries, features, key_mask)
            prediction = self._factorized(queries, features, key_mask)
            # In training, a NaN leads to an error anyway, and this branch would make the CPU wait
            # for the GPU in each step. torch.compile cannot trace the branch.
            if self.training or torch.compiler.is_compiling() or not prediction.isnan().any():
                return prediction
            return self._literal(queries, features, key_mask)

    def _literal(self, queries: Tensor, features: Tensor, key_mask: Tensor | None) -> Tensor:
        """Compute equation 2 as written in the paper, with one query for each pair."""
        n_masked = queries.shape[1]

        # All pairs [y_j; y_k]: (batch, n_masked, n_masked, 2 embed_dim).
        first = queries[:, :, None].expand(-1, -1, n_masked, -1)
        second = queries[:, None].expand(-1, n_masked, -1, -1)
        pairs = torch.cat([first, second], dim=-1)

        # Attention takes one sequence of queries: (batch, n_masked ** 2, embed_dim).
        attended = self.attention(self.pair_query(pairs).flatten(1, 2), features, key_mask)
        return self.head(attended).unflatten(1, (n_masked, n_masked)).squeeze(-1)

    def _factorized(self, queries: Tensor, features: Tensor, key_mask: Tensor | None) -> Tensor:
        """Compute the formula in the docstring of the class, with the same symbols."""
        attention = self.attention
        scale = (attention.query.out_features // attention.num_heads) ** -0.5

        # Merge W_Q with A_Q and split the product into the parts that act on y_j and on y_k.
        # Each weight is (embed_dim, embed_dim); the bias is added once, with the first part.
        weight_1, weight_2 = (attention.query.weight @ self.pair_query.weight).chunk(2, dim=1)
        bias = attention.query(self.pair_query.bias)

        # Logits of the keys: the logit of key i for pair (j, k) is a[j, i] + b[k, i].
        keys = attention.split_heads(attention.key(features) * scale).mT
        # keys: (batch, num_heads, head_dim, n_patches)
        a = attention.split_heads(F.linear(queries, weight_1, bias)) @ keys
        b = attention.split_heads(F.linear(queries, weight_2)) @ keys
        # a, b: (batch, num_heads, n_masked, n_patches)
        if key_mask is not None:
            a, b = (logits.masked_fill(~key_mask[:, None, None], -torch.inf) for logits in (a, b))

        constant = self.head(attention.output.bias)  # (n_outputs,)

        # Average the scalars with the softmax weights: (batch, num_heads, n_masked, n_masked).
        if queries.device.type == "mps":
            # MPS has no float64. Build the logits of all pairs instead:
            # (batch, num_heads, n_masked, n_masked, n_patches).
            weights = (a[:, :, :, None] + b[:, :, None]).float().softmax(dim=-1)
            ratios = [(weights * v[:, :, None]).sum(dim=-1) for v in self._values(features)]
        else:
            # exp(a + b) = exp(a) exp(b), so the sums over keys are matrix products. The maxima
            # cancel in the ratio, so no gradient flows through them.
            e = torch.exp(a.double() - a.detach().amax(-1, keepdim=True))
            g = torch.exp(b.double() - b.detach().amax(-1, keepdim=True)).mT
            denominator = e @ g
            # If the denominator underflows even in float64, the pair becomes NaN. A branch to the
            # other formula would break torch.compile and make the CPU wait for the GPU.
            denominator = denominator.where(denominator >= MIN_DENOMINATOR, float("nan"))
            ratios = [((e * v) @ g) / denominator for v in self._values(features)]

        # Sum over the heads: (batch, n_masked, n_masked, n_outputs).
        shifts = torch.stack([ratio.sum(dim=1).to(queries.dtype) for ratio in ratios], dim=-1)
        return (shifts + constant).squeeze(-1)

    def _values(self, features: Tensor) -> Iterator[Tensor]:
        """Yield the scalar of each key, (batch, num_heads, 1, n_patches), for each output.

        W_V, W_O and the output layer are merged, so each key contributes one scalar per head.
        """
        attention, n_heads = self.attention, self.attention.num_heads
        for row in (self.head.weight @ attention.output.weight).split(1):
            read_out = row.view(n_heads, 1, -1)  # (num_heads, 1, head_dim)
            weight = read_out @ attention.value.weight.unflatten(0, (n_heads, -1))
            # weight: (num_heads, 1, embed_dim)
            bias = read_out @ attention.value.bias.view(n_heads, -1, 1)  # (num_heads, 1, 1)
            values = F.linear(features, weight.squeeze(1), bias.flatten())
            # values: (batch, n_patches, num_heads) -> (batch, num_heads, 1, n_patches)
            yield values.mT[:, :, None]


class PairwiseMLPDecoder(nn.Module):
    """MLP decoder of PARS, which uses only the two patches of a pair (PARS paper, appendix A.4).

    This decoder is used in the ablation "decoder architecture" of the paper. For each pair, the
    decoder concatenates the features of the two patches, each of size F, and applies ``Linear(2 F,
    hidden_dim) - ReLU - Linear(hidden_dim, n_outputs)``. The first layer is split into one part for
    each patch of a pair, so that it is applied once per patch instead of once per pair.

    Parameters
    ----------
    embed_dim : int
        Size F of the feature vector of a patch.
    hidden_dim : int
        Size of the hidden layer; 512 in the paper.
    n_outputs : int
        Number of predictions per pair: 1 for the time shift of :class:`PARS
        <braindecode_pars.pretext.PARS>`, or the number of axes of :class:`SpaceTimePARS
        <braindecode_pars.pretext.SpaceTimePARS>`.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.pairwise import PairwiseMLPDecoder
    >>> features = torch.randn(2, 40, 16)  # 40 patches
    >>> PairwiseMLPDecoder(embed_dim=16)(features[:, :32], features).shape
    torch.Size([2, 32, 32])
    """

    def __init__(self, embed_dim: int, hidden_dim: int = 512, *, n_outputs: int = 1):
        super().__init__()
        self.hidden = nn.Linear(2 * embed_dim, hidden_dim)
        self.head = nn.Linear(hidden_dim, n_outputs)

    def forward(self, queries: Tensor, features: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Return the prediction for each ordered pair of patches.

        Parameters
        ----------
        queries : Tensor, shape (batch, n_masked, embed_dim)
            Features of the patches that form the pairs.
        features, key_mask : Tensor
            Not used; present so that both decoders have the same signature.

        Returns
        -------
        Tensor, shape (batch, n_masked, n_masked) or (batch, n_masked, n_masked, n_outputs)
            Entry ``[:, j, k]`` is the prediction for the pair ``(j, k)``. The last dimension exists
            only if ``n_outputs`` is greater than 1.
        """
        weight_1, weight_2 = self.hidden.weight.chunk(2, dim=1)
        first = F.linear(queries, weight_1, self.hidden.bias)  # (batch, n_masked, hidden_dim)
        second = F.linear(queries, weight_2)
        # Broadcast to all pairs: (batch, n_masked, n_masked, hidden_dim).
        return self.head(F.relu(first[:, :, None] + second[:, None])).squeeze(-1)
