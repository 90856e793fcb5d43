"""MAE: reconstruct the samples of removed patches from those that are left (appendix A.2)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars.encoder import PatchEncoder, TransformerBlock
from braindecode_pars.pretext.base import register
from braindecode_pars.pretext.grid import GridTask, number_of, take

__all__ = ["MAE"]


@register("mae")
class MAE(GridTask):
    """Masked autoencoder on one channel (appendix A.2; He et al. 2022).

    A random share of the patches is removed, the others are encoded; mask tokens take the places
    of the removed ones, and one transformer layer reconstructs all samples. (The paper writes
    that masked tokens are encoded, a slip.) The loss is the element-wise mean squared error
    against the normalised signal.

    Parameters
    ----------
    n_times : int
        Samples of the signal; at least two patches.
    patch_size : int
        Samples in a patch.
    encoder : PatchEncoder | None
        Trained in place when given.
    mask_ratio : float
        Share of the patches that is removed; at least one is removed and one left. The paper does
        not tell its own.
    loss_on : "all" | "masked"
        Compare all patches (the paper), or only the removed ones (He et al.). Patches that were
        seen are easy to copy, so with ``"all"`` the removed part is logged on its own.
    **encoder_arguments
        Passed to :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_masked : int
        Patches in the grid, and how many of them are removed.

    Raises
    ------
    ValueError
        When an argument is out of range, or there are too few patches for it.

    References
    ----------
    He et al. 2022, Masked autoencoders are scalable vision learners, arXiv:2111.06377.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import MAE
    >>> task = MAE(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> prediction.shape, target.shape
    (torch.Size([2, 30, 100]), torch.Size([2, 30, 100]))
    """

    criterion = nn.MSELoss

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        mask_ratio: float = 0.5,
        loss_on: str = "all",
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        if loss_on not in ("all", "masked"):
            raise ValueError(f"loss_on must be 'all' or 'masked', got {loss_on!r}.")
        self.n_masked = number_of(
            mask_ratio,
            self.n_patches,
            "mask_ratio",
            least=1,
            most=self.n_patches - 1,
            does="removes",
        )
        self.mask_ratio = mask_ratio
        self.loss_on = loss_on
        sizes = self.encoder.config
        self.mask_token = nn.Parameter(torch.empty(self.encoder.embed_dim).normal_(std=0.02))
        self.decoder = TransformerBlock(
            *(sizes[name] for name in ("embed_dim", "num_heads", "mlp_dim", "drop_prob")),
            sizes["activation"],
        )
        self.head = nn.Linear(self.encoder.embed_dim, patch_size)

    def reconstruct(self, patches: Tensor, order: Tensor) -> Tensor:
        """Reconstruct all patches without looking at some.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalised.
        order : Tensor of int64, shape (batch, n_patches)
            Places in the grid; the first ``n_masked`` of each row are removed.

        Returns
        -------
        Tensor, shape (batch, n_patches, patch_size)
            In the order of time.
        """
        visible = order[:, self.n_masked :]
        tokens = self.encoder.tokenize(take(patches, visible))
        positions = self.positions(tokens)  # (n_patches, embed_dim)
        features = self.encoder(tokens + positions[visible])  # (batch, n_visible, embed_dim)
        masked = self.mask_token.to(features.dtype).expand(len(patches), self.n_masked, -1)
        in_places = take(torch.cat([masked, features], dim=1), order.argsort(dim=1))
        return self.head(self.decoder(in_places + positions))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Remove patches, and reconstruct them.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            In any unit.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_patches, patch_size)
            Normalised samples, the removed patches first; with ``loss_on="masked"`` these alone,
            shape (batch, n_masked, patch_size).
        """
        patches = self.patches(x)
        order = self.random_order(x)
        compared = order[:, : self.n_masked] if self.loss_on == "masked" else order
        return take(self.reconstruct(patches, order), compared), take(patches, compared)

    def chance_loss(self) -> float:
        """Variance of a normalised signal: the loss of predicting its mean."""
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Loss on the removed patches alone, relative to chance, as ``"masked"``.

        Parameters
        ----------
        prediction, target
            What :meth:`forward` has returned.

        Returns
        -------
        dict of str to Tensor
            Empty with ``loss_on="masked"``, where it is the loss itself.
        """
        if self.loss_on == "masked":
            return {}  # that is the loss itself
        removed = prediction[:, : self.n_masked], target[:, : self.n_masked]
        return {"masked": nn.functional.mse_loss(*removed) / self.chance_loss()}
