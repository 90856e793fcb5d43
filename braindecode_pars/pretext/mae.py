"""MAE: reconstruct the samples of removed patches from the visible patches (appendix A.2)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from braindecode_pars._common.checks import choice
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import register
from braindecode_pars.pretext.grid import MaskedGridTask, take

__all__ = ["MAE"]


@register("mae")
class MAE(MaskedGridTask):
    """Masked autoencoder on one channel (appendix A.2; He et al. 2022).

    The task removes a random share of the patches and encodes the others. Mask tokens then take
    the places of the removed patches, and one transformer layer reconstructs all samples. (The
    paper states that masked tokens are encoded, which is a slip.) The loss is the element-wise
    mean squared error against the normalised signal.

    Parameters
    ----------
    n_times : int
        Number of samples in a signal; at least two patches.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. None builds one.
    mask_ratio : float
        Share of the patches that is removed. At least one patch is removed, and at least one is
        visible. The paper does not give its value.
    loss_on : "all" | "masked"
        Patches in the loss: all (the paper), or only the removed ones (He et al.). Visible patches
        are easy to copy, so with ``"all"`` the log also has the loss on the removed patches.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of removed patches.

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
        choice("all", "masked").check("loss_on", loss_on, type(self).__name__)
        given = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, n_outputs=patch_size, **given)
        self.loss_on = loss_on

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the reconstructed and the true patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_patches, patch_size)
            Normalised samples; the removed patches come first. With ``loss_on="masked"`` only the
            removed patches, shape (batch, n_masked, patch_size).
        """
        patches = self.patches(x)
        order = self.random_order(x)
        compared = order[:, : self.n_masked] if self.loss_on == "masked" else order
        return take(self.reconstruct(patches, order), compared), take(patches, compared)

    def chance_loss(self) -> float:
        """Return 1, the variance of a normalised signal: the loss of predicting its mean."""
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the loss on the removed patches, relative to chance, as ``"masked"``.

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar loss by name. Empty with ``loss_on="masked"``, where it equals the loss itself.
        """
        if self.loss_on == "masked":
            return {}
        removed = prediction[:, : self.n_masked], target[:, : self.n_masked]
        return {"masked": nn.functional.mse_loss(*removed) / self.chance_loss()}
