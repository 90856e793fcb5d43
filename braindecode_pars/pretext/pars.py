"""PARS: predict the time shift between pairs of randomly placed patches (section 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars._common.checks import check_parameters
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import PretextTask, register
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder, PairwiseMLPDecoder
from braindecode_pars.tokens import (
    detrended,
    extract_patches,
    nonoverlapping_starts,
    random_starts,
    shuffled,
    sinusoidal_positions,
)

__all__ = ["PARS", "DistanceLoss", "relative_shifts"]

#: Number of patches in each simulated example; the shifts of all pairs have the same distribution.
_N_SIMULATED = 8

_RULES = dict(
    n_patches=checks.optional(checks.integer(1)),
    position_mask_ratio=checks.number("in (0, 1]", lambda value: 0 < value <= 1),
    sampling=checks.choice("random", "grid"),
    overlap=checks.boolean(),
    min_gap=checks.integer(0),
    detrend=checks.boolean(),
    target=checks.choice("shift", "distance"),
    n_bins=checks.integer(2),
    decoder=checks.choice("cross_attention", "mlp"),
    **dict.fromkeys(("shortest", "longest"), checks.positive()),
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


@register("pars")
class PARS(PretextTask):
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
        Number of patches per signal. None means 4/3 of ``n_times / patch_size``, which gives the
        paper's 40 patches for 30 s. With ``overlap=False`` None means 2/3 of it, so that there is
        space between the patches, or as many as fit with their gaps. Grid sampling always has all
        patches of the grid.
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
        Smallest number of samples between neighbouring patches; needs ``overlap=False`` or
        ``sampling="grid"``. Without a gap, a model may match the ends of adjacent patches.
    detrend : bool
        Whether patches lose their mean and linear trend, so that a model cannot read their place
        from a slow drift. Fine-tuning keeps both.
    target : "shift" | "distance"
        What is predicted for a pair. ``"shift"`` is the signed shift (equation 1). ``"distance"``
        is a distribution over binned distances and, apart from it, which patch is the later one:
        see :class:`~braindecode_pars.pretext.pars.DistanceLoss`. A model can then be sure of a
        distance and not know the order.
    n_bins : int
        Number of bins with ``target="distance"``, equally wide on a logarithmic scale from a
        patch to the longest lag; the first one also has all shorter lags.
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
        When an argument is out of range, the patches do not fit into the signal, fewer than two
        patches are masked, or the signal is too short for bins of distances. The message states
        what is accepted.

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

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        n_patches: int | None = None,
        position_mask_ratio: float = 0.8,
        sampling: str = "random",
        overlap: bool = True,
        min_gap: int = 0,
        detrend: bool = False,
        target: str = "shift",
        n_bins: int = 8,
        decoder: str = "cross_attention",
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        check_parameters(locals(), _RULES, type(self).__name__)
        self.sampling = sampling
        self.overlap = bool(overlap)
        self.min_gap = int(min_gap)
        self.position_mask_ratio = position_mask_ratio
        self.detrend = detrend
        self.target = target
        self.n_bins = int(n_bins)
        n_patches = self._number_of_patches(n_patches)
        if target == "distance" and self.n_times <= 2 * self.patch_size:
            raise ValueError(
                f"target='distance' needs windows of more than two patches, {2 * self.patch_size} "
                f"samples; got {n_times}. Use longer windows or a shorter patch."
            )

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
        n_outputs = 1 if target == "shift" else n_bins + 1
        self.mask_token = nn.Parameter(torch.empty(embed_dim).normal_(std=0.02))
        self.decoder: nn.Module
        if decoder == "cross_attention":
            num_heads = self.encoder.config["num_heads"]
            self.decoder = CrossAttentionDecoder(embed_dim, num_heads, n_outputs=n_outputs)
        else:
            self.decoder = PairwiseMLPDecoder(embed_dim, n_outputs=n_outputs)

        # One draw raises the error for patches that do not fit, before training begins.
        self.sample_starts(1)

    def _number_of_patches(self, given: int | None) -> int:
        """Return the number of patches, the given one or the default, after checks of places."""
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
            if given not in (None, most):
                raise ValueError(
                    f"The grid has {most} patches; n_patches={given} needs sampling='random'."
                )
            return most
        if given is not None:
            return int(given)
        # The paper's 40 patches for 30 s; without overlap fewer, so that there is space between.
        length = n_times / patch_size
        return round(4 / 3 * length) if self.overlap else min(round(2 / 3 * length), most)

    @property
    def criterion(self) -> Callable[[], nn.Module]:
        """Class of the loss, or constructor of a :class:`~.pars.DistanceLoss`."""
        return nn.MSELoss if self.target == "shift" else self._distance_loss

    def _distance_loss(self) -> DistanceLoss:
        longest = (self.n_times - self.patch_size) / self.n_times
        return DistanceLoss(self.n_bins, self.patch_size / self.n_times, longest)

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
            ``k`` to patch ``j``. With ``target="distance"`` the logits of the bins and of the
            order instead, shape (batch, n_masked, n_masked, n_bins + 1).
        """
        patches = extract_patches(self.normalized(x), starts, self.patch_size)
        if self.detrend:
            patches = detrended(patches)
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

        With ``target="distance"`` the best guess is the share of the pairs in each bin, and 1/2
        for the order. Its loss is the entropy of the bins plus log 2, simulated in the same way.
        """
        if self.target == "distance":
            shifts, criterion = self._simulated_shifts(_N_SIMULATED), self._distance_loss()
            guess = criterion.best_guess(shifts).expand(*shifts.shape, -1)
            return criterion(guess, shifts).item()
        if self.sampling == "random" and self.overlap:
            n_starts = self.n_times - self.patch_size + 1
            off_diagonal = (self.n_masked - 1) / self.n_masked
            return (n_starts**2 - 1) / (6 * self.n_times**2) * off_diagonal
        return self._simulated_shifts(self.n_masked).square().mean().item()

    def _simulated_shifts(self, n_masked: int) -> Tensor:
        """Return the shifts of 4096 examples, always the same."""
        starts = self.sample_starts(4096, generator=torch.Generator().manual_seed(0))
        return relative_shifts(starts[:, :n_masked], self.n_times)


#: A distance on an edge belongs to the upper bin, also where rounding makes it slightly smaller.
_ROUNDING = 1e-4


class DistanceLoss(nn.Module):
    r"""Cross-entropy of the distance of two patches in bins, plus that of their order.

    The squared error of a shift is dominated by pairs far apart, and the best guess of a model
    that knows a distance but not the order is zero. Here the prediction for a pair
    :math:`(j, k)` has ``n_bins`` logits for the distance :math:`|\theta_{jk}|`, and one logit for
    patch :math:`j` being the later one.

    Bins are equally wide on a logarithmic scale from ``shortest`` to ``longest``; the first one
    also has all shorter distances. The diagonal is left out. Two patches with the same start have
    a distance but no order.

    Parameters
    ----------
    n_bins : int
        Number of bins, at least 2.
    shortest, longest : float
        Range of the bins, in the unit of the shifts; ``shortest < longest``.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.pars import DistanceLoss
    >>> shifts = torch.tensor([[[0.0, 0.1, -0.4], [-0.1, 0.0, -0.5], [0.4, 0.5, 0.0]]])
    >>> criterion = DistanceLoss(n_bins=3, shortest=0.1, longest=0.8)
    >>> criterion.bins(shifts)
    tensor([[[0, 0, 2],
             [0, 0, 2],
             [2, 2, 0]]])
    >>> logits = torch.zeros(1, 3, 3, 4)  # a uniform guess costs log 3 + log 2
    >>> round(criterion(logits, shifts).item(), 3)
    1.792
    """

    def __init__(self, n_bins: int, shortest: float, longest: float):
        super().__init__()
        check_parameters(locals(), _RULES, type(self).__name__)
        if not shortest < longest:
            raise ValueError(f"DistanceLoss: shortest={shortest} must be below longest={longest}.")
        self.n_bins = n_bins
        self.shortest = shortest
        self.longest = longest

    def bins(self, shifts: Tensor) -> Tensor:
        """Return the bin of each distance.

        Parameters
        ----------
        shifts : Tensor, shape (...)
            Shifts in the unit of ``shortest`` and ``longest``.

        Returns
        -------
        Tensor of int64, shape (...)
            Numbers of the bins, 0 to ``n_bins - 1``.
        """
        octaves = (shifts.abs() / self.shortest).log() / math.log(self.longest / self.shortest)
        bins = (octaves * self.n_bins + _ROUNDING).floor()
        return bins.clamp(0, self.n_bins - 1).long()

    def forward(self, prediction: Tensor, shifts: Tensor) -> Tensor:
        """Return the sum of both losses.

        Parameters
        ----------
        prediction : Tensor, shape (batch, n, n, n_bins + 1)
            Logits of the bins, then the logit of the order.
        shifts : Tensor, shape (batch, n, n)
            True shifts.

        Returns
        -------
        Tensor
            Cross-entropy in nats: mean over the ordered pairs of different patches.
        """
        batch, n, _ = shifts.shape
        prediction = prediction.float()
        logits, later = prediction[..., :-1], prediction[..., -1]
        distance = F.cross_entropy(logits.movedim(-1, 1), self.bins(shifts), reduction="none")
        order = F.binary_cross_entropy_with_logits(later, (shifts > 0).to(later), reduction="none")
        is_pair = ~torch.eye(n, dtype=torch.bool, device=shifts.device)
        losses = distance * is_pair + order * (shifts != 0)  # (batch, n, n)
        return losses.sum() / (batch * n * (n - 1))

    def best_guess(self, shifts: Tensor) -> Tensor:
        """Return the best constant prediction.

        Parameters
        ----------
        shifts : Tensor, shape (batch, n, n)
            Shifts of many examples.

        Returns
        -------
        Tensor, shape (n_bins + 1,)
            Logarithm of the share of the pairs in each bin, and 0 for the order.
        """
        pairs = ~torch.eye(shifts.shape[-1], dtype=torch.bool, device=shifts.device)
        counts = self.bins(shifts[:, pairs]).flatten().bincount(minlength=self.n_bins)
        shares = (counts + 1) / (counts + 1).sum()  # a finite logarithm for an empty bin
        return F.pad(shares.log(), (0, 1))
