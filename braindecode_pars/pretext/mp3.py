"""MP3: find the place of every patch in the signal, without any position (appendix A.2)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import register
from braindecode_pars.pretext.grid import GridTask, number_of

__all__ = ["MP3"]


@register("mp3")
class MP3(GridTask):
    """Masked patch position prediction on one channel (appendix A.2; Zhai et al. 2022).

    Tokens carry no position. In every attention layer the same random subset of them serves as
    keys and values; all of them are queries, and each is classified into its place, with
    cross-entropy as loss. Without
    positions the encoder cannot tell in which order tokens come, so they need no shuffling.

    Parameters
    ----------
    n_times : int
        Samples of the signal; at least two patches.
    patch_size : int
        Samples in a patch.
    encoder : PatchEncoder | None
        Trained in place when given.
    mask_ratio : float
        Share of the patches that nobody may attend to, in [0, 1); at least one stays. The paper
        does not tell its own.
    **encoder_arguments
        Passed to :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_masked : int
        Patches in the grid, and how many of them are no keys.

    Raises
    ------
    ValueError
        When an argument is out of range, or there are too few patches for it.

    References
    ----------
    Zhai et al. 2022, Position prediction as an effective pretraining strategy, arXiv:2207.07611.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import MP3
    >>> task = MP3(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> logits, places = task(torch.randn(2, 3000))
    >>> logits.shape, places.shape
    (torch.Size([2, 30, 30]), torch.Size([2, 30]))
    """

    criterion = nn.CrossEntropyLoss

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        mask_ratio: float = 0.5,
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        self.n_masked = number_of(
            mask_ratio,
            self.n_patches,
            "mask_ratio",
            least=0,
            most=self.n_patches - 1,
            does="masks",
        )
        self.mask_ratio = mask_ratio
        self.head = nn.Linear(self.encoder.embed_dim, self.n_patches)

    def classify(self, patches: Tensor, is_key: Tensor | None) -> Tensor:
        """Logits of every place for every patch.

        Parameters
        ----------
        patches : Tensor, shape (batch, n, patch_size)
            Normalised, in any order.
        is_key : Tensor of bool, shape (batch, n) | None
            Which patches may be attended to; None for all.

        Returns
        -------
        Tensor, shape (batch, n, n_patches)
            Before the softmax.
        """
        return self.head(self.encoder(self.encoder.tokenize(patches), is_key))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Classify every patch into its place.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            In any unit.

        Returns
        -------
        prediction : Tensor, shape (batch, n_patches, n_patches)
            Logits as cross-entropy takes them: ``[:, n, m]`` is that of place ``n`` for patch
            ``m``.
        target : Tensor of int64, shape (batch, n_patches)
            Places.
        """
        is_key = self.random_order(x) >= self.n_masked if self.n_masked else None
        logits = self.classify(self.patches(x), is_key)
        places = torch.arange(self.n_patches, device=x.device).expand(len(x), -1)
        return logits.mT, places

    def chance_loss(self) -> float:
        """Cross-entropy of guessing any place with equal probability, ``log(n_patches)``."""
        return math.log(self.n_patches)
