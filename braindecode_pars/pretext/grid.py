"""Tasks on a grid of patches: their base classes, and the tasks MAE, MP3 and DropPos."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars.encoder import PatchEncoder, TransformerBlock
from braindecode_pars.pretext.base import PretextTask, register
from braindecode_pars.tokens import grid_patches, shuffled, sinusoidal_positions

__all__ = ["MAE", "MP3", "DropPos", "GridTask", "MaskedGridTask"]


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
    checks.number("in [0, 1]", lambda value: 0 <= value <= 1).check(name, ratio)
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
        """Return the patches of the normalized signals.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        Tensor, shape (batch, n_patches, patch_size)
            Normalized patches in chronological order.
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
        params = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, **params)

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
            Normalized patches in chronological order.
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


@register("mae")
class MAE(MaskedGridTask):
    """Masked autoencoder on one channel (appendix A.2; He et al. 2022).

    The task removes a random share of the patches and encodes the others. Mask tokens then take
    the places of the removed patches, and one transformer layer reconstructs all samples. (The
    paper states that masked tokens are encoded, which is a slip.) The loss is the element-wise
    mean squared error against the normalized signal.

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
        checks.choice("all", "masked").check("loss_on", loss_on, type(self).__name__)
        params = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, n_outputs=patch_size, **params)
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
            Normalized samples; the removed patches come first. With ``loss_on="masked"`` only the
            removed patches, shape (batch, n_masked, patch_size).
        """
        patches = self.patches(x)
        order = self.random_order(x)
        compared = order[:, : self.n_masked] if self.loss_on == "masked" else order
        return take(self.reconstruct(patches, order), compared), take(patches, compared)

    def chance_loss(self) -> float:
        """Return 1, the variance of a normalized signal: the loss of predicting its mean."""
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
        params = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, **params)
        self.head = nn.Linear(self.encoder.embed_dim, self.n_patches)

    def classify(self, patches: Tensor, is_key: Tensor | None) -> Tensor:
        """Return the logits of all places for every patch.

        Parameters
        ----------
        patches : Tensor, shape (batch, n, patch_size)
            Normalized patches in any order.
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
        ranks = self.random_order(x)
        is_key = ranks >= self.n_masked if self.n_masked else None
        logits = self.classify(self.patches(x), is_key)
        # All examples have the same places. A sham has the places of another example.
        places = torch.arange(self.n_patches, device=x.device).expand(len(x), -1)
        places = ranks.roll(1, dims=0) if self.is_sham else places
        return logits.mT, places  # cross-entropy takes classes in dimension 1

    def sham_target(self, target: Tensor) -> Tensor:
        """Return the targets as they are: :meth:`forward` has those of the sham."""
        return target

    def chance_loss(self) -> float:
        """Return ``log(n_patches)``, the cross-entropy of a uniform guess among all places."""
        return math.log(self.n_patches)


@register("droppos")
class DropPos(GridTask):
    """Dropped position prediction on one channel (appendix A.2; Wang et al. 2023).

    The task removes a random share of the patches. The others are visible. Most visible patches
    get a learnable mask token instead of their position. The task classifies these patches into
    the places of the grid, with cross-entropy as loss. There is one class for each place. The
    number of classes in the paper is that of the classified patches, which is a slip. As in the
    paper, targets are not smoothed over neighboring positions, and the loss has no weights for
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
        params = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, **params)
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
            Normalized patches in chronological order.
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
        """Return the cross-entropy of a uniform guess among the places that are not shown.

        In a sham pretraining, the places that are shown do not exclude any of the target.
        """
        n_shown = 0 if self.is_sham else self.n_visible - self.n_dropped
        return math.log(self.n_patches - n_shown)
