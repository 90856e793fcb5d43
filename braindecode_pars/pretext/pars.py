"""PARS: predict the time shift between pairs of randomly placed patches (section 2)."""

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
    r"""Return the time shifts between all ordered pairs of patches (section 2.2, equation 1).

    .. math:: \theta_{jk} = (t_j - t_k) / T_s

    Parameters
    ----------
    starts : Tensor, shape (batch, n)
        First samples :math:`t` of the patches.
    n_times : int
        Number of samples in the whole signal, :math:`T_s`.

    Returns
    -------
    Tensor of float32, shape (batch, n, n)
        Antisymmetric matrix of shifts between -1 and 1.

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
    """What PARS and its variants share: places of patches, the mask token and the decoder."""

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

        # Number of patches that lose their position
        n_masked = round(float(position_mask_ratio) * n_patches)
        if n_masked < 2:
            raise ValueError(
                f"PARS needs two masked patches, but position_mask_ratio={position_mask_ratio} of "
                f"{n_patches} masks {n_masked}; use more or shorter patches, or a higher ratio."
            )
        self.n_patches = n_patches
        self.n_masked = n_masked

        # Layers besides the encoder.
        embed_dim = self.encoder.embed_dim
        self.mask_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))
        if decoder == "mlp":
            self.decoder: nn.Module = PairwiseMLPDecoder(embed_dim, n_outputs=n_outputs)
        else:
            num_heads = self.encoder.config["num_heads"]
            self.decoder = CrossAttentionDecoder(embed_dim, num_heads, n_outputs=n_outputs)

        # One draw raises the error for patches that do not fit, before training begins.
        self.sample_starts(1)

    def _number_of_patches(self, n_patches: int | None) -> int:
        """Check the places of patches, and return the number of patches; None is the default."""
        n_times, patch_size, gap = self.n_times, self.patch_size, self.min_gap
        if gap and self.overlap and self.sampling != "grid":
            raise ValueError(f"min_gap={gap} needs overlap=False or sampling='grid'.")
        if n_times == patch_size:
            raise ValueError(
                f"A window of {n_times} samples has only one patch, so all shifts are zero; use "
                "longer windows or a shorter patch."
            )
        most = (n_times + gap) // (patch_size + gap)  # without overlap
        if self.sampling == "grid":
            if n_patches not in (None, most):
                raise ValueError(
                    f"The grid has {most} patches; n_patches={n_patches} needs sampling='random'."
                )
            return most
        if n_patches is not None:
            return int(n_patches)
        # Fewer patches without overlap, so that there is space between them.
        length = n_times / patch_size
        return round(self.density * length) if self.overlap else min(round(2 / 3 * length), most)

    def sample_starts(
        self,
        batch_size: int,
        *,
        device: torch.device | str | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draw the first samples of the patches of a batch.

        Parameters
        ----------
        batch_size : int
            Number of signals.
        device, generator
            As in :func:`~braindecode_pars.tokens.random_starts`.

        Returns
        -------
        Tensor of int64, shape (batch_size, n_patches)
            First sample of each patch, in random order. The first ``n_masked`` patches lose their
            position; because of the random order they are a random choice.
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
    """Pairwise relative shift pretraining (Sandino et al. 2025, section 2).

    The task cuts patches at random places of one channel. Most patches get a learnable mask token
    instead of their position (section 2.1). A decoder predicts the time shift between every
    ordered pair of these masked patches (equations 1 and 2). The loss is the mean squared error
    (equation 3).

    Parameters
    ----------
    n_times : int
        Number of samples in a signal.
    patch_size : int
        Number of samples in a patch.
    encoder : PatchEncoder | None
        Encoder to train in place. None builds one.
    n_patches : int | None
        Number of patches per signal. None means ``density`` times ``n_times / patch_size``. With
        ``overlap=False`` None means 2/3 of it, so that there is space between the patches, or as
        many as fit with their gaps. Grid sampling always has all patches of the grid.
    density : float
        Number of patches that may overlap, per length of a patch, where ``n_patches`` is None. The
        default of 4/3 gives the paper's 40 patches of one second for 30 s.
    position_mask_ratio : float
        Share of the patches that lose their position, in (0, 1].
    sampling : "random" | "grid"
        Independent random starts; or adjacent patches (the ablation of appendix A.4), or patches
        ``min_gap`` apart.
    overlap : bool
        Whether random patches may share samples. The paper cuts forty one-second patches from
        thirty seconds, so its patches overlap. A model can then find shifts from the samples that
        two patches share.
    min_gap : int
        Smallest number of samples between neighboring patches; needs ``overlap=False`` or
        ``sampling="grid"``. Without a gap, a model may match the ends of adjacent patches.
    detrend : bool
        Whether patches lose their mean and linear trend, so that a model cannot read their place
        from a slow drift. Fine-tuning keeps both.
    decoder : "cross_attention" | "mlp"
        :class:`~braindecode_pars.pretext.pairwise.CrossAttentionDecoder`, or
        :class:`~braindecode_pars.pretext.pairwise.PairwiseMLPDecoder` (the ablation of appendix
        A.4).
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    encoder : PatchEncoder
        The encoder that fine-tuning starts from.
    n_patches, n_masked : int
        Number of patches per signal, and number of patches that lose their position.

    Raises
    ------
    TypeError
        When an argument has the wrong type.
    ValueError
        When an argument is out of range, the patches do not fit into the signal, or fewer than two
        patches are masked. The message states what is accepted.

    References
    ----------
    Sandino et al. 2025, Learning the relative composition of EEG signals using pairwise relative
    shift pretraining, arXiv:2511.11940.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import PARS
    >>> task = PARS(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> prediction.shape, target.shape
    (torch.Size([2, 32, 32]), torch.Size([2, 32, 32]))
    """

    criterion = nn.MSELoss
    #: With more patches and more positions, PARS begins to learn earlier, see docs/guide/pars.rst.
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
        """Return the predicted shifts between the first ``n_masked`` patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.
        starts : Tensor of int64, shape (batch, n_patches)
            Output of :meth:`sample_starts`.

        Returns
        -------
        Tensor, shape (batch, n_masked, n_masked)
            Shifts as a share of the signal's length. Entry ``[:, j, k]`` is the shift from patch
            ``k`` to patch ``j``.
        """
        patches = extract_patches(self.normalized(x), starts, self.patch_size)
        if self.detrend:
            patches = detrended_patches(patches)
        tokens = self.encoder.tokenize(patches)  # (batch, n_patches, embed_dim)

        # The mask token or the position, in units of patches, for each token.
        shown = starts[:, self.n_masked :] / self.patch_size
        positions = sinusoidal_positions(shown, tokens.shape[-1]).to(tokens.dtype)
        masked = self.mask_token.to(tokens.dtype).expand(len(x), self.n_masked, -1)
        features = self.encoder(tokens + torch.cat([masked, positions], dim=1))
        return self.decoder(features[:, : self.n_masked], features)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true shifts between randomly drawn patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        prediction : Tensor
            Output of :meth:`predict_shifts`.
        target : Tensor, shape (batch, n_masked, n_masked)
            Shifts between the masked patches, as a share of the signal's length.
        """
        self.check_signals(x)
        starts = self.sample_starts(len(x), device=x.device)
        prediction = self.predict_shifts(x, starts)
        return prediction, relative_shifts(starts[:, : self.n_masked], self.n_times)

    def chance_loss(self) -> float:
        r"""Return the loss of the best constant guess.

        The best constant shift is zero, and its loss the mean squared shift. For random starts
        that may overlap this is :math:`(L^2 - 1) / (6 T^2) \cdot (N_m - 1) / N_m` with
        :math:`L = T - M + 1`. For the other kinds of sampling it is simulated with a fixed seed.
        """
        if self.sampling == "random" and self.overlap:
            n_starts = self.n_times - self.patch_size + 1
            off_diagonal = (self.n_masked - 1) / self.n_masked
            return (n_starts**2 - 1) / (6 * self.n_times**2) * off_diagonal
        starts = self.sample_starts(4096, generator=torch.Generator().manual_seed(0))
        shifts = relative_shifts(starts[:, : self.n_masked], self.n_times)
        return shifts.square().mean().item()


class RelativeShiftLoss(nn.Module):
    """Mean over the axes of the squared error of shifts, each relative to its chance.

    The chance of an axis is the mean squared shift of the batch, the loss of a guess of zero. Each
    micro-batch, and each of several processes, has its own. Pairs of unknown shift (NaN) do not
    count, nor does an axis without any shift.
    """

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return the loss: shifts of shape (batch, n, n, n_axes) -> ()."""
        losses = self.of_axes(prediction, target)
        counts = losses.isfinite()
        return torch.where(counts, losses, 0.0).sum() / counts.sum().clamp(min=1)

    @staticmethod
    def of_axes(prediction: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each axis, shape (n_axes,); NaN for an axis without any shift."""
        known = target.isfinite()
        error = torch.where(known, prediction - target, 0.0).square().flatten(0, -2).sum(dim=0)
        chance = torch.where(known, target, 0.0).square().flatten(0, -2).sum(dim=0)
        # No division by zero: its gradient would be NaN, although the axis does not count.
        return torch.where(chance > 0, error / chance.where(chance > 0, 1.0), torch.nan)


#: Tokens whose shifts are asked for in a window of several channels, about.
N_QUERIES = 32


@register("pars_space_time")
class SpaceTimePARS(AllChannelTask, _Shifts):
    r"""PARS over the head: relative shifts in space and time between pairs of tokens.

    A token is one patch of one channel, and its position is a vector :math:`p = (x, y, z, t)`: the
    place of its electrode in head radii, and its time in lengths of the window. Each channel is cut
    at its own random times. At the same times, neighbors would be found by the samples that they
    share. Most electrodes lose their place, as if it were unknown, and most patches of each channel
    their time. For pairs of tokens that have lost both, a decoder predicts the difference of their
    positions, equation 1 with a vector:

    .. math:: \theta_{jk} = p_j - p_k.

    The loss is the mean over the axes of the squared error, divided by the mean squared shift of
    the batch, so that each axis has a loss of 1 at chance. Electrodes whose place is unknown are
    seen, but do not count. With one channel and ``axes="time"`` the task is
    :class:`~braindecode_pars.pretext.PARS`.

    Parameters
    ----------
    n_times, patch_size, n_patches, overlap, decoder
        As in :class:`~braindecode_pars.pretext.PARS`.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place. None builds one.
    axes : "time" | "space" | "space_time"
        What is hidden and predicted: when, where, or both.
    position_mask_ratio : float
        Share of the patches that lose their time, and of the channels that lose their electrode.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder` when no encoder is given.

    Attributes
    ----------
    encoder : SpaceTimeEncoder
        The encoder that fine-tuning starts from.
    axis_names : tuple of str
        Axes that are predicted, out of ``"x"``, ``"y"``, ``"z"`` and ``"t"``.

    Raises
    ------
    TypeError, ValueError
        As :class:`~braindecode_pars.pretext.PARS`. Also for an encoder of single channels.

    References
    ----------
    Ayoughi et al. 2025, PART: self-supervised pretraining with pairwise relative translations, from
    which PARS comes, predicts shifts in the two dimensions of an image.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimePARS
    >>> task = SpaceTimePARS(n_times=1000, patch_size=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000), 0.1 * torch.rand(2, 19, 3))
    >>> prediction.shape, target.shape
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
        """Draw the channels that lose their electrode: (batch, n_chans) -> the same, bool.

        In each window it is the same share of the channels that are there, and none where there is
        one channel or only time is predicted.
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
        """Return the features of all tokens, where times and electrodes are hidden.

        Parameters
        ----------
        x, positions, keep
            As in :meth:`forward`.
        starts : Tensor of int64, shape (batch, n_chans, n_patches)
            First samples of the patches; the first ``n_masked`` of each channel lose their time.
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
        # When: the code of the time, or the mask token. (batch, n_chans, n_patches, embed_dim)
        when = sinusoidal_positions(starts / self.patch_size, encoder.embed_dim)
        if "t" in self.axis_names:
            masked = self.mask_token.expand(*x.shape[:2], self.n_masked, -1)
            when = torch.cat([masked, when[:, :, self.n_masked :]], dim=2)
        # Where: the code of the electrode, or that of unknown ones. (batch, n_chans, embed_dim)
        seen = positions.to(when.dtype).masked_fill(hidden[..., None], torch.nan)
        where = encoder.places(seen, keep)
        return encoder(tokens + (when + where[:, :, None]).to(tokens.dtype), keep)

    def predict_shifts(
        self, features: Tensor, keep: Tensor, channels: Tensor, patches: Tensor
    ) -> Tensor:
        """Return the predicted shifts between some tokens.

        Parameters
        ----------
        features : Tensor, shape (batch, n_chans, n_patches, embed_dim)
            Output of :meth:`features`.
        keep : Tensor of bool, shape (batch, n_chans)
            Mask that is False for missing channels.
        channels, patches : Tensor of int64, shape (batch, n)
            Channel and patch of each token.

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
        """Return the predicted and the true shifts between randomly drawn tokens.

        Parameters
        ----------
        x : Tensor, shape (batch, n_chans, n_times)
            Windows in any unit.
        positions : Tensor, shape (batch, n_chans, 3) | None
            Electrode positions in meters in the head frame; NaN where unknown. None: all are.
        keep : Tensor of bool, shape (batch, n_chans) | None
            Mask that is False for missing channels. None keeps all.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n, n, n_axes)
            Shifts between n tokens: in head radii, and in lengths of the window. The target is NaN
            where a position is unknown.
        """
        x, positions, keep = self.windows(x, positions, keep)
        starts = self.sample_starts(keep.numel(), device=x.device).unflatten(0, keep.shape)
        hidden = self.hidden_electrodes(keep)
        features = self.features(x, starts, positions, keep, hidden)
        # Each patch without its time is asked for on some channels without their electrode.
        n_each = 1 if x.shape[1] == 1 else -(-N_QUERIES // self.n_masked)
        asked = torch.where(hidden.any(dim=1, keepdim=True), hidden, keep)
        channels = asked.float().multinomial(n_each * self.n_masked, replacement=True)
        patches = torch.arange(self.n_masked, device=x.device).repeat(n_each).expand(len(x), -1)
        prediction = self.predict_shifts(features, keep, channels, patches)
        # Positions of the tokens: (batch, n, n_axes)
        where = positions.gather(1, channels[..., None].expand(-1, -1, 3)) / HEAD_RADIUS
        chosen = starts.flatten(1).gather(1, channels * self.n_patches + patches)
        when = (chosen / self.n_times)[..., None].to(where.dtype)
        place = {"time": when, "space": where}.get(self.axes, torch.cat([where, when], dim=-1))
        return prediction, place[:, :, None] - place[:, None]

    def chance_loss(self) -> float:
        """Return 1: the loss of each axis is relative to its chance."""
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the loss of each axis, relative to chance.

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar losses by the name of the axis; NaN without a known position.
        """
        losses = RelativeShiftLoss.of_axes(prediction, target)
        return dict(zip(self.axis_names, losses, strict=True))
