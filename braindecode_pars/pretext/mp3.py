"""MP3: classify patches without any position into their places in the signal (appendix A.2)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import register
from braindecode_pars.pretext.grid import GridTask

__all__ = ["MP3"]


@register("mp3")
class MP3(GridTask):
    """Masked patch position prediction on one channel (appendix A.2; Zhai et al. 2022).

    Tokens get no position. All tokens are queries. A random subset of the tokens are keys and
    values, the same subset in every attention layer. The task classifies every token into its
    place, with cross-entropy as loss. Tokens are not shuffled: without positions the encoder is
    equivariant to their order.

    Parameters
    ----------
    n_times : int
        Number of samples in a signal; at least two patches.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. None builds one.
    mask_ratio : float
        Share of the patches that are not keys, in [0, 1). At least one patch is a key. The paper
        does not give its value.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of patches that are not keys.

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
        given = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, **given)
        self.head = nn.Linear(self.encoder.embed_dim, self.n_patches)

    def classify(self, patches: Tensor, is_key: Tensor | None) -> Tensor:
        """Return the logits of all places for every patch.

        Parameters
        ----------
        patches : Tensor, shape (batch, n, patch_size)
            Normalised patches in any order.
        is_key : Tensor of bool, shape (batch, n) | None
            Mask of the patches that are keys. None means that all are.

        Returns
        -------
        Tensor, shape (batch, n, n_patches)
            Logits of the places.
        """
        return self.head(self.encoder(self.encoder.tokenize(patches), is_key))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits and the true places of all patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        prediction : Tensor, shape (batch, n_patches, n_patches)
            Logits in the layout of cross-entropy: ``[:, n, m]`` is the logit of place ``n`` for
            patch ``m``.
        target : Tensor of int64, shape (batch, n_patches)
            True places.
        """
        self.check_signals(x)
        # Ranks in a random order: exactly n_masked patches in each row are not keys.
        is_key = self.random_order(x) >= self.n_masked if self.n_masked else None
        logits = self.classify(self.patches(x), is_key)
        places = torch.arange(self.n_patches, device=x.device).expand(len(x), -1)
        return logits.mT, places  # cross-entropy takes classes in dimension 1

    def chance_loss(self) -> float:
        """Return ``log(n_patches)``, the cross-entropy of a uniform guess among all places."""
        return math.log(self.n_patches)
