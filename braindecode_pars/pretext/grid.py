"""Pretext tasks on adjacent patches: base classes, MAE, MP3 and DropPos."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars.encoder import PatchEncoder, TransformerBlock
from braindecode_pars.pretext.base import PretextTask, register
from braindecode_pars.tokens import grid_patches, shuffled, sinusoidal_positions

__all__ = ["MAE", "MP3", "DropPos", "GridTask", "MaskedGridTask"]


def count_from_ratio(ratio: float, total: int, name: str, *, min_count: int, max_count: int) -> int:
    """Return the number of patches ``round(ratio * total)``, and check that it is in range.

    Parameters
    ----------
    ratio : float
        Fraction of the patches, in [0, 1].
    total : int
        Number of all patches.
    name : str
        Name of the ratio in the error message.
    min_count, max_count : int
        Minimum and maximum accepted number of patches.

    Returns
    -------
    int
        Number of patches.

    Raises
    ------
    TypeError
        If the ratio is not a number.
    ValueError
        If the ratio or the number of patches is out of range. The message states the accepted
        range.
    """
    checks.number("in [0, 1]", lambda value: 0 <= value <= 1).check(name, ratio)
    count = round(float(ratio) * total)
    if not min_count <= count <= max_count:
        raise ValueError(
            f"{name}={ratio:g} selects {count} of {total} patches, but must select between "
            f"{min_count} and {max_count} patches. Use {name} between {min_count / total:.3g} and "
            f"{max_count / total:.3g}, or use longer windows or shorter patches."
        )
    return count


class GridTask(PretextTask):
    """Base class of pretext tasks on a grid of ``n_times // patch_size`` adjacent patches.

    Inherit from this class to write a pretext task that cuts each crop (a random segment of one
    channel) into adjacent patches. Samples after the last complete patch are dropped.

    Parameters
    ----------
    n_times, patch_size, encoder, **encoder_arguments
        As in :class:`~braindecode_pars.pretext.PretextTask`.
    mask_ratio : float
        Fraction of the patches that are masked, in [0, 1); at least one patch is not masked. Each
        subclass defines how masked patches are treated.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of masked patches.

    Raises
    ------
    ValueError
        If the grid has fewer than two patches, or too few patches for ``mask_ratio``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.grid import GridTask
    >>> task = GridTask(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> task.patches(torch.randn(2, 3000)).shape
    torch.Size([2, 30, 100])
    """

    #: Minimum number of masked patches.
    MIN_MASKED = 0

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
                f"{type(self).__name__} requires at least two patches, but a window of {n_times} "
                f"samples contains only one patch of {patch_size} samples. Use longer windows or "
                "shorter patches."
            )
        limits = dict(min_count=self.MIN_MASKED, max_count=self.n_patches - 1)
        self.n_masked = count_from_ratio(mask_ratio, self.n_patches, "mask_ratio", **limits)
        self.mask_ratio = mask_ratio

    def patches(self, x: Tensor) -> Tensor:
        """Normalize crops and cut them into adjacent patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.

        Returns
        -------
        Tensor, shape (batch, n_patches, patch_size)
            Normalized patches in chronological order.
        """
        return grid_patches(self.normalized(x), self.patch_size)

    def positions(self, like: Tensor) -> Tensor:
        """Return the sinusoidal position encoding of all patches of the grid.

        Parameters
        ----------
        like : Tensor
            Tensor whose dtype and device are used for the result.

        Returns
        -------
        Tensor, shape (n_patches, embed_dim)
            Position encodings in chronological order.
        """
        times = torch.arange(self.n_patches, device=like.device)
        return sinusoidal_positions(times, self.encoder.embed_dim).to(like.dtype)

    def random_order(self, x: Tensor) -> Tensor:
        """Return a random permutation of the patches of the grid for every crop.

        Parameters
        ----------
        x : Tensor, shape (batch, ...)
            Tensor whose batch size and device are used for the result.

        Returns
        -------
        Tensor of int64, shape (batch, n_patches)
            One permutation in each row.
        """
        indices = torch.arange(self.n_patches, device=x.device)
        return shuffled(indices.expand(len(x), -1))


def take(tokens: Tensor, indices: Tensor) -> Tensor:
    """Return the tokens (batch, n, size) at indices (batch, m), shape (batch, m, size)."""
    return tokens.take_along_dim(indices[..., None], dim=1)


class MaskedGridTask(GridTask):
    """Base class of masked autoencoders on a grid of patches (He et al. 2022).

    Inherit from this class to write a pretext task that predicts properties of masked patches. A
    random fraction of the patches is masked, and the encoder processes only the visible patches.
    Mask tokens are then inserted in place of the masked patches, and one transformer layer and one
    linear layer compute ``n_outputs`` predictions for each patch.

    Parameters
    ----------
    n_times, patch_size, encoder, **encoder_arguments
        As in :class:`~braindecode_pars.pretext.PretextTask`.
    mask_ratio : float
        Fraction of the patches that are masked. At least one patch is masked, and at least one
        patch is visible.
    n_outputs : int
        Number of predictions for each patch.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of masked patches.

    Raises
    ------
    ValueError
        If ``mask_ratio`` is out of range, or the grid has too few patches.

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

    MIN_MASKED = 1

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

        # The decoder is one transformer block with the sizes of the encoder.
        names = ("embed_dim", "num_heads", "mlp_dim", "drop_prob", "activation")
        self.mask_token = nn.Parameter(torch.empty(self.encoder.embed_dim).normal_(std=0.02))
        self.decoder = TransformerBlock(**{name: self.encoder.config[name] for name in names})
        self.head = nn.Linear(self.encoder.embed_dim, n_outputs)

    def reconstruct(self, patches: Tensor, order: Tensor) -> Tensor:
        """Compute predictions for all patches from the visible patches.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalized patches in chronological order.
        order : Tensor of int64, shape (batch, n_patches)
            Permutation of the patches. The first ``n_masked`` patches of each row are masked.

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
        chronological = take(torch.cat([masked, features], dim=1), order.argsort(dim=1))
        return self.head(self.decoder(chronological + positions))


@register("mae")
class MAE(MaskedGridTask):
    """MAE: masked autoencoder on one channel (appendix A.2 of the PARS paper; He et al. 2022).

    A crop (a random segment of one channel) is cut into adjacent patches. A random fraction of the
    patches is masked, and the encoder processes only the visible patches. Mask tokens are then
    inserted in place of the masked patches, and one transformer layer reconstructs all samples. The
    loss is the mean squared error between the reconstruction and the normalized signal, over all
    samples.

    The PARS paper states that the encoder processes the masked patches. This is an error in the
    paper: the encoder of a masked autoencoder processes only the visible patches.

    Parameters
    ----------
    n_times : int
        Number of samples in a crop; at least two patches.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    mask_ratio : float
        Fraction of the patches that are masked. At least one patch is masked, and at least one
        patch is visible. The PARS paper does not state the mask ratio.
    loss_on : "all" | "masked"
        Patches that contribute to the loss: all patches, as in the PARS paper, or only the masked
        patches, as in He et al. The loss on all patches may be low only because visible patches are
        easy to reconstruct. With ``"all"``, the training history therefore also contains the loss
        on the masked patches.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`, used if ``encoder`` is None.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in a crop, and number of masked patches.

    Raises
    ------
    ValueError
        If an argument is out of range, or the crop contains too few patches.

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
            Single-channel crops, in any unit.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_patches, patch_size)
            Normalized samples of all patches, starting with the masked patches. With
            ``loss_on="masked"``, only the masked patches are returned, shape (batch, n_masked,
            patch_size).
        """
        patches = self.patches(x)
        order = self.random_order(x)
        in_loss = order[:, : self.n_masked] if self.loss_on == "masked" else order
        return take(self.reconstruct(patches, order), in_loss), take(patches, in_loss)

    def chance_loss(self) -> float:
        """Return 1, the loss of predicting the mean, because signals are normalized."""
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the relative loss on the masked patches (1 = chance level).

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar relative loss on the masked patches, with the key ``"masked"``. With
            ``loss_on="masked"``, the dict is empty, because the loss on the masked patches is then
            the loss of the task.
        """
        if self.loss_on == "masked":
            return {}
        masked = prediction[:, : self.n_masked], target[:, : self.n_masked]
        return {"masked": nn.functional.mse_loss(*masked) / self.chance_loss()}


@register("mp3")
class MP3(GridTask):
    """MP3: masked patch position prediction on one channel (Zhai et al. 2022).

    A crop (a random segment of one channel) is cut into adjacent patches, and the position of every
    patch is predicted (appendix A.2 of the PARS paper). The prediction is a classification with one
    class per position and the cross-entropy loss. No position encoding is added to the tokens,
    which are the vectors that represent patches. In the attention, all tokens are queries, but only
    a random subset of the tokens are keys and values. This subset is the same in every attention
    layer. Tokens do not need to be shuffled, because without position encoding, the encoder is
    equivariant to the order of the tokens.

    Parameters
    ----------
    n_times : int
        Number of samples in a crop; at least two patches.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    mask_ratio : float
        Fraction of the patches that are excluded from the keys and values, in [0, 1). At least one
        patch is a key. The PARS paper does not state this fraction.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`, used if ``encoder`` is None.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in a crop, and number of patches that are excluded from the keys and
        values.

    Raises
    ------
    ValueError
        If an argument is out of range, or the crop contains too few patches.

    References
    ----------
    Zhai et al. 2022, Position prediction as an effective pretraining strategy, arXiv:2207.07611.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import MP3
    >>> task = MP3(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> logits, places = task(torch.randn(2, 3000))
    >>> logits.shape, places.shape  # each of 30 patches may have any of 30 positions
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
        """Return the logits of all positions for every patch.

        Parameters
        ----------
        patches : Tensor, shape (batch, n, patch_size)
            Normalized patches in any order.
        is_key : Tensor of bool, shape (batch, n) | None
            Mask that is True for patches that are keys and values. If None, all patches are keys
            and values.

        Returns
        -------
        Tensor, shape (batch, n, n_patches)
            Logits of the positions.
        """
        return self.head(self.encoder(self.encoder.tokenize(patches), is_key))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the position logits and the true positions of all patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.

        Returns
        -------
        prediction : Tensor, shape (batch, n_patches, n_patches)
            Logits in the layout of cross-entropy: ``[:, n, m]`` is the logit of position ``n`` for
            patch ``m``.
        target : Tensor of int64, shape (batch, n_patches)
            True positions.
        """
        # Rank of each patch in a random order. Exactly n_masked patches are not keys.
        ranks = self.random_order(x)
        is_key = ranks >= self.n_masked if self.n_masked else None
        logits = self.classify(self.patches(x), is_key)
        # The true positions are the same in all crops, so sham pretraining uses random positions.
        positions = torch.arange(self.n_patches, device=x.device).expand(len(x), -1)
        positions = ranks.roll(1, dims=0) if self.is_sham else positions
        return logits.mT, positions  # cross-entropy expects classes in dimension 1

    def sham_target(self, target: Tensor) -> Tensor:
        """Return the targets unchanged, because :meth:`forward` already returns sham targets."""
        return target

    def chance_loss(self) -> float:
        """Return ``log(n_patches)``: the cross-entropy of uniform predictions over positions."""
        return math.log(self.n_patches)


@register("droppos")
class DropPos(GridTask):
    """DropPos: dropped position prediction on one channel (Wang et al. 2023).

    A crop (a random segment of one channel) is cut into adjacent patches. A random fraction of the
    patches is masked: the encoder processes only the remaining patches, called visible patches
    (appendix A.2 of the PARS paper). For most visible patches, the position is masked as well: the
    position encoding is replaced with a learnable mask token. The masked positions are predicted.
    The prediction is a classification with one class per position in the crop and the cross-entropy
    loss.

    The PARS paper states that the number of classes is the number of patches whose position is
    predicted. This is an error in the paper: a patch may have any position in the crop. Wang et al.
    also smooth the targets over neighboring positions, and weight the loss by the similarity of
    patches; the PARS paper and this class do neither.

    Parameters
    ----------
    n_times : int
        Number of samples in a crop; at least two patches.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    mask_ratio : float
        Fraction of the patches that are masked (not processed by the encoder), in [0, 1). The PARS
        paper does not state this fraction.
    position_mask_ratio : float
        Fraction of the visible patches whose position is masked, in (0, 1]. The PARS paper does not
        state this fraction.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`, used if ``encoder`` is None.

    Attributes
    ----------
    n_patches, n_visible, n_dropped : int
        Number of patches in a crop, number of visible patches, and number of visible patches whose
        position is masked.

    Raises
    ------
    ValueError
        If an argument is out of range, or the crop contains too few patches.

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
    >>> logits.shape, places.shape  # 11 of 15 visible patches have a masked position
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
        # At least two positions must not be shown: if only one were not shown, it would be known.
        max_shown = self.n_patches - 2
        min_dropped = max(1, self.n_visible - max_shown)
        limits = dict(min_count=min_dropped, max_count=self.n_visible)
        name = "position_mask_ratio"
        self.n_dropped = count_from_ratio(position_mask_ratio, self.n_visible, name, **limits)
        self.position_mask_ratio = position_mask_ratio
        self.mask_token = nn.Parameter(torch.empty(self.encoder.embed_dim).normal_(std=0.02))
        self.head = nn.Linear(self.encoder.embed_dim, self.n_patches)

    def classify(self, patches: Tensor, places: Tensor) -> Tensor:
        """Return the logits of all positions for the visible patches with masked position.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalized patches in chronological order.
        places : Tensor of int64, shape (batch, n_visible)
            Positions of the visible patches in the grid. The positions of the first ``n_dropped``
            patches of each row are masked.

        Returns
        -------
        Tensor, shape (batch, n_dropped, n_patches)
            Logits of the positions.
        """
        tokens = self.encoder.tokenize(take(patches, places))  # (batch, n_visible, embed_dim)

        # Add the position encoding or the mask token to each visible patch.
        shown = self.positions(tokens)[places[:, self.n_dropped :]]
        dropped = self.mask_token.to(tokens.dtype).expand(len(patches), self.n_dropped, -1)
        features = self.encoder(tokens + torch.cat([dropped, shown], dim=1))
        return self.head(features[:, : self.n_dropped])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Predict the positions of patches whose content is visible, but whose position is masked.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.

        Returns
        -------
        prediction : Tensor, shape (batch, n_patches, n_dropped)
            Logits in the layout of cross-entropy: ``[:, n, m]`` is the logit of position ``n`` for
            the ``m``-th visible patch with masked position.
        target : Tensor of int64, shape (batch, n_dropped)
            True positions of the visible patches with masked position.
        """
        visible = self.random_order(x)[:, : self.n_visible]
        logits = self.classify(self.patches(x), visible)
        # Cross-entropy expects classes in dimension 1.
        return logits.mT, visible[:, : self.n_dropped]

    def chance_loss(self) -> float:
        """Return the cross-entropy of a uniform prediction over all possible positions.

        Visible patches that keep their position encoding have known positions, so the patches whose
        position is predicted cannot have these positions. In sham pretraining, the targets are
        the positions in another crop, so all positions are possible.
        """
        n_shown = 0 if self.is_sham else self.n_visible - self.n_dropped
        return math.log(self.n_patches - n_shown)
