"""The base classes of the tasks on a grid of adjacent patches, and of those that remove some."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars._common.checks import number
from braindecode_pars.encoder import PatchEncoder, TransformerBlock
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.tokens import grid_patches, shuffled, sinusoidal_positions

__all__ = ["GridTask", "MaskedGridTask"]


def number_of(ratio: float, total: int, name: str, *, least: int, most: int) -> int:
    """Return ``round(ratio * total)`` after a check of its range.

    Parameters
    ----------
    ratio : float
        Share of the total, in [0, 1].
    total : int
        Number of all patches.
    name : str
        Name of the ratio in the message.
    least, most : int
        Smallest and largest accepted number.

    Returns
    -------
    int
        Number of patches.

    Raises
    ------
    TypeError
        When the ratio is not a number.
    ValueError
        When the ratio or the number is out of range; the message gives the accepted range.
    """
    number("in [0, 1]", lambda value: 0 <= value <= 1).check(name, ratio)
    count = round(float(ratio) * total)
    if not least <= count <= most:
        raise ValueError(
            f"{name}={ratio:g} of {total} patches is {count}, but it must be {least} to {most}: "
            f"{name} between {least / total:.3g} and {most / total:.3g} fits, or longer windows or "
            "shorter patches."
        )
    return count


class GridTask(PretextTask):
    """A task on ``n_times // patch_size`` adjacent patches.

    Samples after the last whole patch are dropped.

    Parameters
    ----------
    n_times, patch_size, encoder, **encoder_arguments
        As in :class:`~braindecode_pars.pretext.PretextTask`.
    mask_ratio : float
        Share of the patches that is hidden, in a way of the subclass; at least one is not.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of hidden patches.

    Raises
    ------
    ValueError
        When there are fewer than two patches, or too few for ``mask_ratio``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.grid import GridTask
    >>> task = GridTask(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> task.patches(torch.randn(2, 3000)).shape
    torch.Size([2, 30, 100])
    """

    #: Smallest number of hidden patches.
    LEAST_MASKED = 0

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        mask_ratio: float = 0.0,
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        self.n_patches = n_times // patch_size
        if self.n_patches < 2:
            raise ValueError(
                f"{type(self).__name__} needs two patches or more; a window of {n_times} samples "
                f"has one patch of {patch_size}. Use longer windows or a shorter patch."
            )
        limits = dict(least=self.LEAST_MASKED, most=self.n_patches - 1)
        self.n_masked = number_of(mask_ratio, self.n_patches, "mask_ratio", **limits)
        self.mask_ratio = mask_ratio

    def patches(self, x: Tensor) -> Tensor:
        """Return the patches of the normalised signals.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        Tensor, shape (batch, n_patches, patch_size)
            Normalised patches in chronological order.
        """
        return grid_patches(self.normalized(x), self.patch_size)

    def positions(self, like: Tensor) -> Tensor:
        """Return the sinusoidal position embedding of every place in the grid.

        Parameters
        ----------
        like : Tensor
            Tensor with the dtype and the device of the result.

        Returns
        -------
        Tensor, shape (n_patches, embed_dim)
            Embeddings in chronological order.
        """
        times = torch.arange(self.n_patches, device=like.device)
        return sinusoidal_positions(times, self.encoder.embed_dim).to(like.dtype)

    def random_order(self, x: Tensor) -> Tensor:
        """Return a random permutation of the places for every example.

        Parameters
        ----------
        x : Tensor, shape (batch, ...)
            Tensor with the batch size and the device of the result.

        Returns
        -------
        Tensor of int64, shape (batch, n_patches)
            One permutation in each row.
        """
        places = torch.arange(self.n_patches, device=x.device)
        return shuffled(places.expand(len(x), -1))


def take(tokens: Tensor, places: Tensor) -> Tensor:
    """Return the tokens (batch, n, size) at places (batch, m), shape (batch, m, size)."""
    return tokens.take_along_dim(places[..., None], dim=1)


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
    >>> from braindecode_pars.pretext.grid import MaskedGridTask
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
