"""PARS: predict the time shift between pairs of randomly placed patches (section 2)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import PretextTask, register
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder, PairwiseMLPDecoder
from braindecode_pars.tokens import (
    detrended_patches,
    extract_patches,
    nonoverlapping_starts,
    random_starts,
    shuffled,
    sinusoidal_positions,
)

__all__ = ["PARS", "relative_shifts"]

_RULES = dict(
    n_patches=checks.optional(checks.integer(1)),
    position_mask_ratio=checks.number("in (0, 1]", lambda value: 0 < value <= 1),
    sampling=checks.choice("random", "grid"),
    overlap=checks.boolean(),
    min_gap=checks.integer(0),
    detrend=checks.boolean(),
    decoder=checks.choice("cross_attention", "mlp"),
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
        decoder: str = "cross_attention",
        **encoder_arguments: Any,
    ):
        super().__init__(n_times, patch_size, encoder=encoder, **encoder_arguments)
        checks.check_parameters(locals(), _RULES, type(self).__name__)
        self.sampling = sampling
        self.overlap = bool(overlap)
        self.min_gap = int(min_gap)
        self.position_mask_ratio = position_mask_ratio
        self.detrend = detrend
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
        self.decoder: nn.Module
        if decoder == "cross_attention":
            num_heads = self.encoder.config["num_heads"]
            self.decoder = CrossAttentionDecoder(embed_dim, num_heads)
        else:
            self.decoder = PairwiseMLPDecoder(embed_dim)

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
