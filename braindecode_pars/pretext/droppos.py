"""DropPos: find the places of patches that lost them, among others that did not (A.2)."""

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

    A random share of the patches is removed. Of those that are left, most get a learnable mask
    token instead of their position, and are classified into all places of the grid, with
    cross-entropy as loss. (The paper counts fewer classes, a slip.)

    Parameters
    ----------
    n_times : int
        Samples of the signal; at least two patches.
    patch_size : int
        Samples in a patch.
    encoder : PatchEncoder | None
        Trained in place when given.
    mask_ratio : float
        Share of the patches that is removed, in [0, 1). The paper does not tell its own.
    position_mask_ratio : float
        Share of the patches left that lose their position, in (0, 1]. The paper does not tell
        its own.
    **encoder_arguments
        Passed to :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_visible, n_dropped : int
        Patches in the grid, how many of them are left, how many of these lose their position.

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
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        self.n_visible = self.n_patches - number_of(
            mask_ratio,
            self.n_patches,
            "mask_ratio",
            least=0,
            most=self.n_patches - 1,
            does="removes",
        )
        # Where all places but one are shown, there is nothing to find.
        most_shown = self.n_patches - 2
        self.n_dropped = number_of(
            position_mask_ratio,
            self.n_visible,
            "position_mask_ratio",
            least=max(1, self.n_visible - most_shown),
            most=self.n_visible,
            does="drops the positions of",
            of="visible patches",
        )
        self.mask_ratio = mask_ratio
        self.position_mask_ratio = position_mask_ratio
        self.mask_token = nn.Parameter(torch.empty(self.encoder.embed_dim).normal_(std=0.02))
        self.head = nn.Linear(self.encoder.embed_dim, self.n_patches)

    def classify(self, patches: Tensor, places: Tensor) -> Tensor:
        """Logits of every place for the patches whose position is dropped.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalised, in the order of time.
        places : Tensor of int64, shape (batch, n_visible)
            Which patches are left; the first ``n_dropped`` of each row lose their position.

        Returns
        -------
        Tensor, shape (batch, n_dropped, n_patches)
            Before the softmax.
        """
        tokens = self.encoder.tokenize(take(patches, places))  # (batch, n_visible, embed_dim)
        shown = self.positions(tokens)[places[:, self.n_dropped :]]
        dropped = self.mask_token.to(tokens.dtype).expand(len(patches), self.n_dropped, -1)
        features = self.encoder(tokens + torch.cat([dropped, shown], dim=1))
        return self.head(features[:, : self.n_dropped])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Classify the patches that lose their position into their places.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            In any unit.

        Returns
        -------
        prediction : Tensor, shape (batch, n_patches, n_dropped)
            Logits as cross-entropy takes them: ``[:, n, m]`` is that of place ``n`` for the
            ``m``-th of these patches.
        target : Tensor of int64, shape (batch, n_dropped)
            Places.
        """
        places = self.random_order(x)[:, : self.n_visible]
        logits = self.classify(self.patches(x), places)
        return logits.mT, places[:, : self.n_dropped]

    def chance_loss(self) -> float:
        """Cross-entropy of guessing any place that is not shown: log of their number."""
        return math.log(self.n_patches - (self.n_visible - self.n_dropped))
