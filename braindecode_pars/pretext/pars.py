"""PARS: pairwise relative shift pretraining (Sandino et al. 2025), in time or in space and time."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.models import space_time
from braindecode_pars.models.electrodes import HEAD_RADIUS
from braindecode_pars.pretext.base import AllChannelTask, PretextTask, register
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder, PairwiseMLPDecoder
from braindecode_pars.tokens import (
    detrended_patches,
    extract_patches,
    instance_norm,
    nonoverlapping_starts,
    random_starts,
    shuffled,
    sinusoidal_positions,
)

__all__ = ["PARS", "SpaceTimePARS", "relative_shifts"]

_RULES = dict(
    n_patches=checks.optional(checks.integer(1)),
    density=checks.positive(),
    position_mask_ratio=checks.number("in (0, 1]", lambda value: 0 < value <= 1),
    sampling=checks.choice("random", "grid"),
    overlap=checks.boolean(),
    min_gap=checks.integer(0),
    detrend=checks.boolean(),
    decoder=checks.choice("cross_attention", "mlp"),
    axes=checks.choice("time", "space", "space_time"),
)


def relative_shifts(starts: Tensor, n_times: int) -> Tensor:
    r"""Return the relative time shifts of all ordered pairs of patches (PARS paper, equation 1).

    .. math:: \theta_{jk} = (t_j - t_k) / T_s

    Parameters
    ----------
    starts : Tensor, shape (batch, n)
        First sample of each patch, :math:`t`.
    n_times : int
        Number of samples in the signal from which the patches were cut, :math:`T_s`.

    Returns
    -------
    Tensor of float32, shape (batch, n, n)
        Antisymmetric matrix of shifts between -1 and 1. Entry ``[:, j, k]`` is the shift from patch
        ``k`` to patch ``j``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.pars import relative_shifts
    >>> relative_shifts(torch.tensor([[0, 250, 750]]), n_times=1000)
    tensor([[[ 0.0000, -0.2500, -0.7500],
             [ 0.2500,  0.0000, -0.5000],
             [ 0.7500,  0.5000,  0.0000]]])
    """
    return (starts[:, :, None] - starts[:, None]).float() / n_times


class _Shifts(PretextTask):
    """Common part of PARS and SpaceTimePARS: patch starts, mask token and decoder."""

    def _build(
        self,
        n_patches: int | None,
        position_mask_ratio: float,
        overlap: bool,
        decoder: str,
        sampling: str = "random",
        min_gap: int = 0,
        density: float = 4 / 3,
        n_outputs: int = 1,
    ) -> None:
        self.sampling = sampling
        self.density = density
        self.overlap = bool(overlap)
        self.min_gap = int(min_gap)
        self.position_mask_ratio = position_mask_ratio
        n_patches = self._number_of_patches(n_patches)

        # Number of patches whose position is masked.
        n_masked = round(float(position_mask_ratio) * n_patches)
        if n_masked < 2:
            raise ValueError(
                "PARS requires at least two patches whose position is masked, but "
                f"position_mask_ratio={position_mask_ratio} masks the position of only {n_masked} "
                f"of {n_patches} patches. Increase n_patches or position_mask_ratio, or use "
                "shorter patches."
            )
        self.n_patches = n_patches
        self.n_masked = n_masked

        # These layers are discarded after pretraining.
        embed_dim = self.encoder.embed_dim
        self.mask_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))
        if decoder == "mlp":
            self.decoder: nn.Module = PairwiseMLPDecoder(embed_dim, n_outputs=n_outputs)
        else:
            num_heads = self.encoder.config["num_heads"]
            self.decoder = CrossAttentionDecoder(embed_dim, num_heads, n_outputs=n_outputs)

        # If the patches do not fit into the window, this call raises an error before training.
        self.sample_starts(1)

    def _number_of_patches(self, n_patches: int | None) -> int:
        """Check the arguments for sampling patches, and return the number of patches."""
        n_times, patch_size, gap = self.n_times, self.patch_size, self.min_gap
        if gap and self.overlap and self.sampling != "grid":
            raise ValueError(
                f"min_gap={gap} has no effect on random patches that may overlap. Set "
                "overlap=False or sampling='grid', or use min_gap=0."
            )
        if n_times == patch_size:
            raise ValueError(
                f"A window of {n_times} samples contains only one patch of {patch_size} samples, "
                "so all time shifts are zero. Use longer windows or shorter patches."
            )
        n_disjoint = (n_times + gap) // (patch_size + gap)  # maximum number without overlap
        if self.sampling == "grid":
            if n_patches not in (None, n_disjoint):
                raise ValueError(
                    f"n_patches={n_patches} cannot be combined with sampling='grid', because the "
                    f"grid in this window has {n_disjoint} patches. Use n_patches=None or "
                    "sampling='random'."
                )
            return n_disjoint
        if n_patches is not None:
            return int(n_patches)
        # Without overlap, the patches cover only 2/3 of the window, so that their positions vary.
        length = n_times / patch_size
        if self.overlap:
            return round(self.density * length)
        return min(round(2 / 3 * length), n_disjoint)

    def sample_starts(
        self,
        batch_size: int,
        *,
        device: torch.device | str | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draw the starts of the patches of a batch of crops.

        Parameters
        ----------
        batch_size : int
            Number of crops.
        device, generator
            As in :func:`~braindecode_pars.tokens.random_starts`.

        Returns
        -------
        Tensor of int64, shape (batch_size, n_patches)
            First sample of each patch, in random order. The positions of the first ``n_masked``
            patches are masked. Because the order is random, the masked patches are a random subset.
        """
        size = (batch_size, self.n_patches, self.n_times, self.patch_size)
        options: dict[str, Any] = dict(device=device, generator=generator)
        if self.sampling == "grid":
            grid = torch.arange(self.n_patches, device=device) * (self.patch_size + self.min_gap)
            return shuffled(grid.expand(batch_size, -1), generator=generator)
        if self.overlap:
            return random_starts(*size, **options)
        return nonoverlapping_starts(*size, min_gap=self.min_gap, **options)


@register("pars")
class PARS(_Shifts):
    """PARS: pairwise relative shift pretraining (Sandino et al. 2025, section 2).

    Patches (short segments) are cut out of one channel at random times; they may overlap (section
    2.1 of the paper). The encoder processes all patches, but most patches, called masked patches,
    have a learnable mask token instead of their position encoding. For every ordered pair of masked
    patches, a decoder predicts the relative time shift (equations 1 and 2). The loss is the mean
    squared error (equation 3).

    Parameters
    ----------
    n_times : int
        Number of samples in a crop (the random segment of a channel that is one training example).
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    n_patches : int | None
        Number of patches per crop. If None, the number depends on how patches are sampled:

        - Random patches that may overlap: ``density * n_times / patch_size``.
        - Random patches without overlap: ``2 / 3 * n_times / patch_size``, or as many as fit with
          their gaps, whichever is smaller.
        - Grid: all patches of the grid.
    density : float
        Total length of the patches divided by the crop length. Used only if ``n_patches`` is None
        and random patches may overlap. The default of 4/3 corresponds to the paper: 40 patches of
        one second in 30 s.
    position_mask_ratio : float
        Fraction of the patches whose position is masked, in (0, 1]. These patches are called masked
        patches.
    sampling : "random" | "grid"
        How patches are sampled. ``"random"`` draws random starts. ``"grid"`` uses adjacent patches
        (the ablation in appendix A.4 of the paper), or patches with gaps of ``min_gap`` samples.
    overlap : bool
        Whether random patches may overlap. In the paper, patches overlap, because 40 patches of one
        second are cut from 30 s. If two patches overlap, a model can infer their time shift by
        comparing the samples that they have in common.
    min_gap : int
        Minimum number of samples between adjacent patches; requires ``overlap=False`` or
        ``sampling="grid"``. Without a gap, a model may recognize adjacent patches, because the end
        of one patch continues in the start of the next patch.
    detrend : bool
        Whether to remove the mean and the linear trend of each patch in pretraining, so that a
        model cannot infer the position of a patch from low-frequency drifts. In fine-tuning,
        patches are never detrended.
    decoder : "cross_attention" | "mlp"
        Decoder: :class:`~braindecode_pars.pretext.pairwise.CrossAttentionDecoder` or
        :class:`~braindecode_pars.pretext.pairwise.PairwiseMLPDecoder` (the ablation of appendix
        A.4).
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`, used if ``encoder`` is None.

    Attributes
    ----------
    encoder : PatchEncoder
        The encoder, which is used for fine-tuning after pretraining.
    n_patches, n_masked : int
        Number of patches per crop, and number of patches whose position is masked.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If an argument is out of range, the patches do not fit into the crop, or the positions of
        fewer than two patches are masked.

    References
    ----------
    Sandino et al. 2025, Learning the relative composition of EEG signals using pairwise relative
    shift pretraining, arXiv:2511.11940.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import PARS
    >>> task = PARS(n_times=3000, patch_size=100, embed_dim=16, num_layers=1)
    >>> task.n_patches, task.n_masked
    (40, 32)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> prediction.shape, target.shape  # pairs of masked patches
    (torch.Size([2, 32, 32]), torch.Size([2, 32, 32]))
    """

    criterion = nn.MSELoss
    #: With these values (more patches and fewer masked positions than in the paper), the loss
    #: starts to decrease earlier in training, see docs/guide/pars.rst.
    short_params: ClassVar[dict[str, Any]] = {"position_mask_ratio": 0.5, "density": 2.0}

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        n_patches: int | None = None,
        density: float = 4 / 3,
        position_mask_ratio: float = 0.8,
        sampling: str = "random",
        overlap: bool = True,
        min_gap: int = 0,
        detrend: bool = False,
        decoder: str = "cross_attention",
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        checks.check_parameters(locals(), _RULES, type(self).__name__)
        self.detrend = detrend
        self._build(n_patches, position_mask_ratio, overlap, decoder, sampling, min_gap, density)

    def predict_shifts(self, x: Tensor, starts: Tensor) -> Tensor:
        """Predict the relative time shifts of all pairs of masked patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.
        starts : Tensor of int64, shape (batch, n_patches)
            Output of :meth:`sample_starts`.

        Returns
        -------
        Tensor, shape (batch, n_masked, n_masked)
            Time shifts, as a fraction of the length of the crop. Entry ``[:, j, k]`` is the shift
            from patch ``k`` to patch ``j``.
        """
        patches = extract_patches(self.normalized(x), starts, self.patch_size)
        if self.detrend:
            patches = detrended_patches(patches)
        tokens = self.encoder.tokenize(patches)  # (batch, n_patches, embed_dim)

        # Add the mask token to masked patches, and the position encoding to visible patches. Times
        # are in units of the patch length.
        visible_times = starts[:, self.n_masked :] / self.patch_size
        positions = sinusoidal_positions(visible_times, tokens.shape[-1]).to(tokens.dtype)
        masked = self.mask_token.to(tokens.dtype).expand(len(x), self.n_masked, -1)
        features = self.encoder(tokens + torch.cat([masked, positions], dim=1))
        return self.decoder(features[:, : self.n_masked], features)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Draw patches, and return the predicted and the true time shifts of all masked pairs.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.

        Returns
        -------
        prediction : Tensor, shape (batch, n_masked, n_masked)
            Output of :meth:`predict_shifts`.
        target : Tensor, shape (batch, n_masked, n_masked)
            True time shifts, as a fraction of the length of the crop.
        """
        starts = self.sample_starts(len(x), device=x.device)
        prediction = self.predict_shifts(x, starts)
        return prediction, relative_shifts(starts[:, : self.n_masked], self.n_times)

    def chance_loss(self) -> float:
        r"""Return the chance-level loss: the loss of the best constant prediction.

        The best constant prediction is zero, and its loss is the mean squared shift. For random
        patches that may overlap, the mean squared shift is

        .. math:: \frac{L^2 - 1}{6 T^2} \cdot \frac{N_m - 1}{N_m}, \qquad L = T - M + 1,

        where :math:`T` is ``n_times``, :math:`M` is ``patch_size`` and :math:`N_m` is ``n_masked``.
        For random patches without overlap and for a grid, the mean squared shift is estimated by
        simulation with a fixed seed.
        """
        if self.sampling == "random" and self.overlap:
            n_starts = self.n_times - self.patch_size + 1
            off_diagonal = (self.n_masked - 1) / self.n_masked
            return (n_starts**2 - 1) / (6 * self.n_times**2) * off_diagonal
        starts = self.sample_starts(4096, generator=torch.Generator().manual_seed(0))
        shifts = relative_shifts(starts[:, : self.n_masked], self.n_times)
        return shifts.square().mean().item()


class RelativeShiftLoss(nn.Module):
    """Loss of SpaceTimePARS: the relative loss of each axis (1 = chance level), averaged over axes.

    The loss of each axis is the squared error divided by the chance-level loss. The chance-level
    loss is the loss of predicting zero, which is the mean squared shift in the batch. This mean is
    computed separately for each micro-batch and, in distributed training, for each process. Pairs
    with unknown shift (NaN), and axes on which all shifts are zero or unknown, are ignored.
    """

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return the scalar loss. Both arguments have shape (batch, n, n, n_axes)."""
        losses = self.axis_losses(prediction, target)
        is_defined = losses.isfinite()
        return torch.where(is_defined, losses, 0.0).sum() / is_defined.sum().clamp(min=1)

    @staticmethod
    def axis_losses(prediction: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each axis, shape (n_axes,); NaN if all shifts are zero or unknown."""
        is_known = target.isfinite()
        error = torch.where(is_known, prediction - target, 0.0).square().flatten(0, -2).sum(dim=0)
        chance = torch.where(is_known, target, 0.0).square().flatten(0, -2).sum(dim=0)
        # Avoid a division by zero, whose gradient would be NaN even though the axis is ignored.
        return torch.where(chance > 0, error / chance.where(chance > 0, 1.0), torch.nan)


#: Approximate number of tokens per window whose pairwise shifts are predicted, if the window has
#: several channels.
N_QUERIES = 32


@register("pars_space_time")
class SpaceTimePARS(AllChannelTask, _Shifts):
    r"""PARS in space and time: predict relative shifts between patches of all channels.

    This task extends :class:`~braindecode_pars.pretext.PARS` to all channels of a window. A token
    represents one patch of one channel. Its position is a vector :math:`p = (x, y, z, t)`: the
    position of the electrode in head radii, and the start of the patch in units of the window
    length. The patches of each channel start at different random times, because patches of
    neighboring electrodes with the same start could be recognized by their common signal. The
    positions of most electrodes, and the start times of most patches of each channel, are masked,
    as if they were unknown. For pairs of tokens with masked positions, a decoder predicts the
    difference of the two positions. This is equation 1 of the PARS paper with vectors instead of
    times:

    .. math:: \theta_{jk} = p_j - p_k.

    The loss of each axis is the squared error divided by the mean squared shift in the batch, so
    the chance level is 1. The losses are averaged over the axes. Electrodes with unknown position
    are encoded, but their spatial shifts are ignored in the loss. With one channel and
    ``axes="time"``, the task is equivalent to PARS.

    Parameters
    ----------
    n_times, patch_size, n_patches, overlap, decoder
        As in :class:`~braindecode_pars.pretext.PARS`.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    axes : "time" | "space" | "space_time"
        Which positions are masked and predicted: the start times of patches, the positions of
        electrodes, or both.
    position_mask_ratio : float
        Fraction of the patches of each channel whose start time is masked, and fraction of the
        channels whose electrode position is masked (at least two channels).
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder`, used if ``encoder`` is
        None.

    Attributes
    ----------
    encoder : SpaceTimeEncoder
        The encoder, which is used for fine-tuning after pretraining.
    axis_names : tuple of str
        Axes that are predicted: a subset of ``"x"``, ``"y"``, ``"z"`` and ``"t"``.

    Raises
    ------
    TypeError, ValueError
        As in :class:`~braindecode_pars.pretext.PARS`, and when ``encoder`` is an encoder of single
        channels.

    References
    ----------
    Ayoughi et al. 2025, PART: self-supervised pretraining with pairwise relative translations. PARS
    is derived from PART, which predicts shifts in the two dimensions of an image.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimePARS
    >>> task = SpaceTimePARS(n_times=1000, patch_size=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000), 0.1 * torch.rand(2, 19, 3))
    >>> prediction.shape, target.shape  # pairs of 40 randomly drawn tokens; axes x, y, z, t
    (torch.Size([2, 40, 40, 4]), torch.Size([2, 40, 40, 4]))
    """

    criterion = RelativeShiftLoss

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: space_time.SpaceTimeEncoder | None = None,
        axes: str = "space_time",
        n_patches: int | None = None,
        position_mask_ratio: float = 0.8,
        overlap: bool = True,
        decoder: str = "cross_attention",
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        checks.check_parameters(locals(), _RULES, type(self).__name__)
        self.axes = axes
        names = {"time": ("t",), "space": ("x", "y", "z"), "space_time": ("x", "y", "z", "t")}
        self.axis_names = names[axes]
        n_axes = len(self.axis_names)
        self._build(n_patches, position_mask_ratio, overlap, decoder, n_outputs=n_axes)

    def hidden_electrodes(self, keep: Tensor) -> Tensor:
        """Draw the channels whose electrode position is masked.

        Parameters
        ----------
        keep : Tensor of bool, shape (batch, n_chans)
            Mask that is False for missing channels.

        Returns
        -------
        Tensor of bool, shape (batch, n_chans)
            Mask that is True for masked electrodes. In each window, the fraction
            ``position_mask_ratio`` of the channels that are not missing is masked, but at least two
            channels. In a window with one channel, or if ``axes="time"``, no channel is masked.
        """
        if self.axes == "time":
            return torch.zeros_like(keep)
        n_kept = keep.sum(dim=1, keepdim=True)
        n_hidden = (self.position_mask_ratio * n_kept).round().clamp(min=2) * (n_kept > 1)
        draws = torch.rand(keep.shape, device=keep.device).masked_fill(~keep, 2.0)
        return draws.argsort(dim=1).argsort(dim=1) < n_hidden

    def features(
        self, x: Tensor, starts: Tensor, positions: Tensor, keep: Tensor, hidden: Tensor
    ) -> Tensor:
        """Return the features of all tokens, with masked start times and electrode positions.

        Parameters
        ----------
        x, positions, keep
            As in :meth:`forward`.
        starts : Tensor of int64, shape (batch, n_chans, n_patches)
            First sample of each patch. The start times of the first ``n_masked`` patches of each
            channel are masked.
        hidden : Tensor of bool, shape (batch, n_chans)
            Output of :meth:`hidden_electrodes`.

        Returns
        -------
        Tensor, shape (batch, n_chans, n_patches, embed_dim)
            Output of the encoder.
        """
        encoder, signals = self.encoder, instance_norm(x).flatten(0, 1)
        patches = extract_patches(signals, starts.flatten(0, 1), self.patch_size)
        tokens = encoder.tokens_of(patches.unflatten(0, x.shape[:2]), x, keep)
        # Time encoding, or the mask token: (batch, n_chans, n_patches, embed_dim)
        times = sinusoidal_positions(starts / self.patch_size, encoder.embed_dim)
        if "t" in self.axis_names:
            masked = self.mask_token.expand(*x.shape[:2], self.n_masked, -1)
            times = torch.cat([masked, times[:, :, self.n_masked :]], dim=2)
        # Electrode encoding; masked electrodes get the code of unknown positions:
        # (batch, n_chans, embed_dim)
        visible = positions.to(times.dtype).masked_fill(hidden[..., None], torch.nan)
        electrodes = encoder.places(visible, keep)
        return encoder(tokens + (times + electrodes[:, :, None]).to(tokens.dtype), keep)

    def predict_shifts(
        self, features: Tensor, keep: Tensor, channels: Tensor, patches: Tensor
    ) -> Tensor:
        """Predict the shifts of all pairs of the selected tokens.

        Parameters
        ----------
        features : Tensor, shape (batch, n_chans, n_patches, embed_dim)
            Output of :meth:`features`.
        keep : Tensor of bool, shape (batch, n_chans)
            Mask that is False for missing channels.
        channels, patches : Tensor of int64, shape (batch, n)
            Channel index and patch index of each selected token.

        Returns
        -------
        Tensor, shape (batch, n, n, n_axes)
            Entry ``[:, j, k]`` is the shift from token ``k`` to token ``j``.
        """
        examples = torch.arange(len(features), device=features.device)[:, None]
        key_mask = keep.repeat_interleave(features.shape[2], dim=1)
        queries = features[examples, channels, patches]
        shifts = self.decoder(queries, features.flatten(1, 2), key_mask)
        return shifts.reshape(*shifts.shape[:3], len(self.axis_names))

    def forward(
        self, x: Tensor, positions: Tensor | None = None, keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw tokens, and return the predicted and the true shifts of all pairs of tokens.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_times)
            Windows in any unit.
        positions : Tensor, shape (batch, n_chans, 3) | None
            Electrode positions in meters in the head frame; NaN for unknown positions. If None, all
            positions are unknown.
        keep : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels. If None, no channel is missing.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n, n, n_axes)
            Shifts of all pairs of n tokens, which are drawn at random in each window. With several
            channels, n is the smallest multiple of ``n_masked`` that is at least 32; with one
            channel, n is ``n_masked``. Spatial shifts are in head radii, and time shifts in units
            of the window length. The target is NaN if a position is unknown.
        """
        x, positions, keep = self.windows(x, positions, keep)
        starts = self.sample_starts(keep.numel(), device=x.device).unflatten(0, keep.shape)
        hidden = self.hidden_electrodes(keep)
        features = self.features(x, starts, positions, keep, hidden)
        # Predict shifts of each patch with a masked time, on randomly drawn masked channels.
        n_repeats = 1 if x.shape[1] == 1 else -(-N_QUERIES // self.n_masked)
        candidates = torch.where(hidden.any(dim=1, keepdim=True), hidden, keep)
        channels = candidates.float().multinomial(n_repeats * self.n_masked, replacement=True)
        patches = torch.arange(self.n_masked, device=x.device).repeat(n_repeats).expand(len(x), -1)
        prediction = self.predict_shifts(features, keep, channels, patches)
        # Positions of the tokens: (batch, n, n_axes)
        in_space = positions.gather(1, channels[..., None].expand(-1, -1, 3)) / HEAD_RADIUS
        token_starts = starts.flatten(1).gather(1, channels * self.n_patches + patches)
        in_time = (token_starts / self.n_times)[..., None].to(in_space.dtype)
        both = torch.cat([in_space, in_time], dim=-1)
        token_positions = {"time": in_time, "space": in_space}.get(self.axes, both)
        return prediction, token_positions[:, :, None] - token_positions[:, None]

    def chance_loss(self) -> float:
        """Return 1, because the loss of each axis is relative to its chance level."""
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the relative loss of each axis (1 = chance level).

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar relative loss of each axis, by name; NaN if all shifts on the axis are zero or
            unknown.
        """
        losses = RelativeShiftLoss.axis_losses(prediction, target)
        return dict(zip(self.axis_names, losses, strict=True))
