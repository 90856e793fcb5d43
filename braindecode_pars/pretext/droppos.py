"""DropPos: classify patches without a position into their places in the grid (A.2)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import register
from braindecode_pars.pretext.grid import GridTask, number_of, take

__all__ = ["DropPos"]


@register("droppos")
class DropPos(GridTask):
    """Dropped position prediction on one channel (appendix A.2; Wang et al. 2023).

    The task removes a random share of the patches. The others are visible. Most visible patches
    get a learnable mask token instead of their position. The task classifies these patches into
    the places of the grid, with cross-entropy as loss. There is one class for each place. The
    number of classes in the paper is that of the classified patches, which is a slip. As in the
    paper, targets are not smoothed over neighbouring positions, and the loss has no weights for
    similar patches: Wang et al. have both.

    Parameters
    ----------
    n_times : int
        Number of samples in a signal; at least two patches.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. None builds one.
    mask_ratio : float
        Share of the patches that is removed, in [0, 1). The paper does not give its value.
    position_mask_ratio : float
        Share of the visible patches that lose their position, in (0, 1]. The paper does not give
        its value.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_visible, n_dropped : int
        Number of patches in the grid, of visible patches, and of visible patches without their
        position.

    Raises
    ------
    ValueError
        When an argument is out of range, or there are too few patches for it.

    References
    ----------
    Wang et al. 2023, DropPos: pre-training vision transformers by reconstructing dropped
    positions, arXiv:2309.03576.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import DropPos
    >>> task = DropPos(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> logits, places = task(torch.randn(2, 3000))
    >>> logits.shape, places.shape
    (torch.Size([2, 30, 11]), torch.Size([2, 11]))
    """

    criterion = nn.CrossEntropyLoss

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        mask_ratio: float = 0.5,
        position_mask_ratio: float = 0.75,
        **encoder_arguments: Any,
    ):
        given = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, **given)
        self.n_visible = self.n_patches - self.n_masked
        # If only one place is not shown, the answer is known, so at least two stay hidden.
        most_shown = self.n_patches - 2
        limits = dict(least=max(1, self.n_visible - most_shown), most=self.n_visible)
        name = "position_mask_ratio"
        self.n_dropped = number_of(position_mask_ratio, self.n_visible, name, **limits)
        self.position_mask_ratio = position_mask_ratio
        self.mask_token = nn.Parameter(torch.empty(self.encoder.embed_dim).normal_(std=0.02))
        self.head = nn.Linear(self.encoder.embed_dim, self.n_patches)

    def classify(self, patches: Tensor, places: Tensor) -> Tensor:
        """Return the logits of all places for the patches without their position.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalised patches in chronological order.
        places : Tensor of int64, shape (batch, n_visible)
            Places of the visible patches; the first ``n_dropped`` of each row lose their
            position.

        Returns
        -------
        Tensor, shape (batch, n_dropped, n_patches)
            Logits of the places.
        """
        tokens = self.encoder.tokenize(take(patches, places))  # (batch, n_visible, embed_dim)

        # A position or the mask token for each visible patch.
        shown = self.positions(tokens)[places[:, self.n_dropped :]]
        dropped = self.mask_token.to(tokens.dtype).expand(len(patches), self.n_dropped, -1)
        features = self.encoder(tokens + torch.cat([dropped, shown], dim=1))
        return self.head(features[:, : self.n_dropped])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits and the true places of the patches without their position.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        prediction : Tensor, shape (batch, n_patches, n_dropped)
            Logits in the layout of cross-entropy: ``[:, n, m]`` is the logit of place ``n`` for
            the ``m``-th of these patches.
        target : Tensor of int64, shape (batch, n_dropped)
            True places.
        """
        self.check_signals(x)
        places = self.random_order(x)[:, : self.n_visible]
        logits = self.classify(self.patches(x), places)
        return logits.mT, places[:, : self.n_dropped]  # cross-entropy takes classes in dimension 1

    def chance_loss(self) -> float:
        """Return the cross-entropy of a uniform guess among the places that are not shown."""
        return math.log(self.n_patches - (self.n_visible - self.n_dropped))
