"""The base class of the tasks that infer something about removed patches from visible ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars.encoder import PatchEncoder, TransformerBlock
from braindecode_pars.pretext.grid import GridTask, take

__all__ = ["MaskedGridTask"]


class MaskedGridTask(GridTask):
    """A task that removes a random share of the patches of a grid (He et al. 2022).

    The visible patches are encoded. Mask tokens then take the places of the removed patches, and
    one transformer layer and one linear layer predict some numbers for each patch.

    Parameters
    ----------
    n_times, patch_size, encoder, **encoder_arguments
        As in :class:`~braindecode_pars.pretext.PretextTask`.
    mask_ratio : float
        Share of the patches that is removed. At least one patch is removed, and at least one is
        visible.
    n_outputs : int
        Number of predictions for each patch.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of removed patches.

    Raises
    ------
    ValueError
        When ``mask_ratio`` is out of range, or there are too few patches for it.

    References
    ----------
    He et al. 2022, Masked autoencoders are scalable vision learners, arXiv:2111.06377.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.masked import MaskedGridTask
    >>> sizes = dict(embed_dim=32, num_layers=1)
    >>> task = MaskedGridTask(n_times=3000, patch_size=100, mask_ratio=0.4, n_outputs=3, **sizes)
    >>> x = torch.randn(2, 3000)
    >>> task.n_masked, task.reconstruct(task.patches(x), task.random_order(x)).shape
    (12, torch.Size([2, 30, 3]))
    """

    LEAST_MASKED = 1

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        mask_ratio: float = 0.5,
        n_outputs: int,
        **encoder_arguments: Any,
    ):
        given = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, **given)

        # The decoder is one block of the encoder's sizes.
        names = ("embed_dim", "num_heads", "mlp_dim", "drop_prob", "activation")
        self.mask_token = nn.Parameter(torch.empty(self.encoder.embed_dim).normal_(std=0.02))
        self.decoder = TransformerBlock(**{name: self.encoder.config[name] for name in names})
        self.head = nn.Linear(self.encoder.embed_dim, n_outputs)

    def reconstruct(self, patches: Tensor, order: Tensor) -> Tensor:
        """Return the predictions for all patches, computed from the visible ones.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalised patches in chronological order.
        order : Tensor of int64, shape (batch, n_patches)
            Places in the grid; the first ``n_masked`` of each row are removed.

        Returns
        -------
        Tensor, shape (batch, n_patches, n_outputs)
            Predictions in chronological order.
        """
        # Encode the visible patches.
        visible = order[:, self.n_masked :]
        tokens = self.encoder.tokenize(take(patches, visible))
        positions = self.positions(tokens)  # (n_patches, embed_dim)
        features = self.encoder(tokens + positions[visible])  # (batch, n_visible, embed_dim)

        # Add mask tokens and restore the chronological order: (batch, n_patches, embed_dim).
        masked = self.mask_token.to(features.dtype).expand(len(patches), self.n_masked, -1)
        in_time_order = take(torch.cat([masked, features], dim=1), order.argsort(dim=1))
        return self.head(self.decoder(in_time_order + positions))
