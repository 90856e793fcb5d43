"""Tokens of one EEG channel: normalization, patches, patch embeddings, position encoding."""

import math

import torch
from torch import Tensor, nn

__all__ = [
    "LogPowerSpectrum",
    "PatchEmbedding",
    "SpectralPatchEmbedding",
    "detrended_patches",
    "extract_patches",
    "grid_patches",
    "instance_norm",
    "nonoverlapping_starts",
    "random_starts",
    "sinusoidal_positions",
]


def instance_norm(x: Tensor, eps: float = 1e-20) -> Tensor:
    r"""Normalize each signal to zero mean and unit variance.

    The result is :math:`(x - \bar x) / \sqrt{\operatorname{Var}(x) + \epsilon}`, where the mean and
    the biased variance are computed over the last axis. There are no learnable parameters (appendix
    A.1 of the PARS paper).

    Parameters
    ----------
    x : Tensor, shape (..., n_times)
        Signals in any unit, such as volts or microvolts. The unit has practically no effect on the
        result if the standard deviation of each signal is between 1e-9 and 1e19, see Notes.
    eps : float
        Constant added to the variance under the square root, in the squared unit of ``x``. It
        prevents a division by zero.

    Returns
    -------
    Tensor, shape (..., n_times)
        Normalized signals, in the floating-point type of ``x``. A constant signal is mapped to
        zeros.

    Notes
    -----
    If the standard deviation of a signal is below 1e-9 in its unit, the variance of the result is
    below 0.99, because the default ``eps`` is not negligible. If the standard deviation is above
    1e19, the variance overflows. The estimators and the
    :class:`~braindecode_pars.signal_store.SignalStore` issue a warning in both cases. EEG in volts
    is far above the lower limit, which is 1 nV.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.tokens import instance_norm
    >>> instance_norm(torch.tensor([[1e-6, 3e-6], [5.0, 5.0]]))
    tensor([[-1.,  1.],
            [ 0.,  0.]])
    """
    dtype = x.dtype if x.is_floating_point() else torch.float32
    # Half precision cannot represent a variance in squared volts.
    x = x.to(torch.promote_types(dtype, torch.float32))
    # After subtracting the first sample, a constant signal is exactly zero, whatever its offset.
    x = x - x[..., :1]
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return ((x - mean) * torch.rsqrt(variance + eps)).to(dtype)


def grid_patches(x: Tensor, patch_size: int) -> Tensor:
    """Cut signals into adjacent, non-overlapping patches.

    Samples after the last complete patch are dropped.

    Adjacent patches are used in fine-tuning (section 2.5 of the PARS paper), and in the pretext
    tasks with which the paper compares PARS (appendix A.2).

    Parameters
    ----------
    x : Tensor, shape (batch, n_times)
        Signals, at least one patch long.
    patch_size : int
        Number of samples in a patch.

    Returns
    -------
    Tensor, shape (batch, n_times // patch_size, patch_size)
        Patches, as a view of ``x`` (no copy). Patch ``n`` starts at sample ``n * patch_size``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.tokens import grid_patches
    >>> grid_patches(torch.arange(7)[None], patch_size=3)
    tensor([[[0, 1, 2],
             [3, 4, 5]]])
    """
    return x.unfold(-1, patch_size, patch_size)


def extract_patches(x: Tensor, starts: Tensor, patch_size: int) -> Tensor:
    """Cut patches out of signals, at the given start samples.

    Parameters
    ----------
    x : Tensor, shape (batch, n_times)
        Signals.
    starts : Tensor of int64, shape (batch, n_patches)
        First sample of each patch, between 0 and ``n_times - patch_size``.
    patch_size : int
        Number of samples in a patch.

    Returns
    -------
    Tensor, shape (batch, n_patches, patch_size)
        Patches in the order of ``starts``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.tokens import extract_patches
    >>> starts = torch.tensor([[4, 1, 2]])
    >>> extract_patches(torch.arange(7)[None], starts, patch_size=2)
    tensor([[[4, 5],
             [1, 2],
             [2, 3]]])
    """
    examples = torch.arange(len(x), device=x.device)[:, None]
    # unfold returns a view of all possible patches, (batch, n_starts, patch_size), without a copy.
    return x.unfold(-1, patch_size, 1)[examples, starts]


def detrended_patches(patches: Tensor) -> Tensor:
    """Remove the mean and the linear trend from each patch.

    Use this function in a pretext task that predicts the positions of patches. Low-frequency drifts
    change the mean and the slope of patches gradually over a window, so the mean and the slope of a
    patch would reveal its position.

    Parameters
    ----------
    patches : Tensor, shape (..., patch_size)
        Patches of at least two samples.

    Returns
    -------
    Tensor, shape (..., patch_size)
        Residuals of a linear least-squares fit to each patch, in the type of ``patches``.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.tokens import detrended_patches
    >>> detrended_patches(torch.tensor([[3.0, 5.0, 7.0], [0.0, 3.0, 0.0]]))
    tensor([[ 0.,  0.,  0.],
            [-1.,  2., -1.]])
    """
    x = patches.to(torch.promote_types(patches.dtype, torch.float32))
    times = torch.arange(x.shape[-1], device=x.device, dtype=x.dtype)
    times = times - times.mean()
    x = x - x.mean(dim=-1, keepdim=True)
    slopes = (x * times).sum(dim=-1, keepdim=True) / times.square().sum()
    return (x - slopes * times).to(patches.dtype)


def random_starts(
    batch_size: int,
    n_patches: int,
    n_times: int,
    patch_size: int,
    *,
    device: torch.device | str | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw random start samples for patches that may overlap (section 2.1 of the PARS paper).

    The starts are drawn independently from a uniform distribution between 0 and ``n_times -
    patch_size``. With many patches, overlaps are unavoidable: 40 patches of 1 s, for example, do
    not fit into 30 s without overlap.

    Parameters
    ----------
    batch_size, n_patches : int
        Number of signals, and number of patches per signal.
    n_times, patch_size : int
        Number of samples in a signal, and in a patch.
    device : torch.device | str | None
        Device of the result. If None, the default device of torch.
    generator : torch.Generator | None
        Random number generator. If None, the global generator of torch.

    Returns
    -------
    Tensor of int64, shape (batch_size, n_patches)
        First sample of each patch.

    Examples
    --------
    >>> from braindecode_pars.tokens import random_starts
    >>> starts = random_starts(2, 40, n_times=6000, patch_size=200)
    >>> starts.shape, bool(starts.min() >= 0), bool(starts.max() <= 5800)
    (torch.Size([2, 40]), True, True)
    """
    n_starts = n_times - patch_size + 1
    return torch.randint(n_starts, (batch_size, n_patches), device=device, generator=generator)


def nonoverlapping_starts(
    batch_size: int,
    n_patches: int,
    n_times: int,
    patch_size: int,
    *,
    min_gap: int = 0,
    device: torch.device | str | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw random start samples for patches that do not overlap within a signal.

    In the PARS paper, patches may overlap. Use patches without overlap to measure how much a
    pretext task depends on samples that two patches have in common.

    All arrangements of ``n_patches`` patches with at least ``min_gap`` samples between adjacent
    patches are equally likely. The patches of a signal are in random order.

    Parameters
    ----------
    batch_size, n_patches, n_times, patch_size, device, generator
        As in :func:`random_starts`.
    min_gap : int
        Minimum number of samples between adjacent patches.

    Returns
    -------
    Tensor of int64, shape (batch_size, n_patches)
        First sample of each patch.

    Raises
    ------
    ValueError
        If the patches and their gaps do not fit into the signal. The message contains the
        maximum number of patches.

    Examples
    --------
    >>> from braindecode_pars.tokens import nonoverlapping_starts
    >>> sizes = dict(n_times=320, patch_size=100, min_gap=10)
    >>> starts = nonoverlapping_starts(1, 3, **sizes)
    >>> starts.sort().values.tolist()  # the only possible arrangement
    [[0, 110, 220]]
    """
    stride = patch_size + min_gap
    slack = n_times - n_patches * stride + min_gap  # samples outside of patches and gaps
    if slack < 0:
        raise ValueError(
            f"{n_patches} patches of {patch_size} samples with min_gap={min_gap} do not "
            f"fit into {n_times} samples without overlap; at most "
            f"{(n_times + min_gap) // stride} patches fit. Decrease n_patches or min_gap, or allow "
            "overlap (overlap=True in a pretext task)."
        )
    # Without the samples of patches and gaps, the starts of the patches are a multiset of n_patches
    # values in 0..slack. Each multiset is obtained from a subset of n_patches values in
    # 0..slack + n_patches - 1, by sorting the subset and subtracting the rank of each value. The
    # indices of the n_patches largest of independent uniform keys are a random subset, and all
    # subsets are equally likely.
    ranks = torch.arange(n_patches, device=device)
    keys = torch.rand(batch_size, slack + n_patches, device=device, generator=generator)
    # Adding rank * stride accounts for the samples of the preceding patches and gaps.
    ordered = keys.topk(n_patches, dim=-1).indices.sort(dim=-1).values - ranks + ranks * stride
    return shuffled(ordered, generator=generator)


def shuffled(values: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Return ``values``, shape (batch, n), with each row permuted independently."""
    order = torch.rand(values.shape, device=values.device, generator=generator).argsort(dim=-1)
    return values.gather(-1, order)


def sinusoidal_positions(times: Tensor, embed_dim: int, *, base: float = 10_000.0) -> Tensor:
    r"""Return the sinusoidal position encoding of real-valued times (PARS paper, section 2.1).

    This is the position encoding of Vaswani et al. (2017). For a time :math:`t` and an encoding of
    size :math:`F`, entry :math:`2i` is
    :math:`\sin(t \cdot b^{-2i/F})` with :math:`b` = ``base``, and entry :math:`2i + 1` is the
    cosine of the same angle.

    Parameters
    ----------
    times : Tensor, shape (...)
        Start of each patch, in units of the patch length (``start / patch_size``). In this unit,
        adjacent patches, as in fine-tuning, have the times 0, 1, 2, ..., and patches with random
        starts, as in pretraining, have times in between.
    embed_dim : int
        Size of the encoding; must be even.
    base : float
        Base of the wavelengths, which range from ``2 * pi`` to almost ``2 * pi * base`` patch
        lengths.

    Returns
    -------
    Tensor of float32 (float64 for float64 times), shape (..., embed_dim)
        Sines in the even entries, and cosines in the odd entries.

    Notes
    -----
    The PARS paper does not state the unit of the encoded times. The patch length as unit is a
    choice of this package.

    References
    ----------
    Vaswani et al. 2017, Attention is all you need, arXiv:1706.03762.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.tokens import sinusoidal_positions
    >>> sinusoidal_positions(torch.tensor([0.0, 0.5, 1.0]), embed_dim=4).shape
    torch.Size([3, 4])
    >>> sinusoidal_positions(torch.tensor(0), embed_dim=4)
    tensor([0., 1., 0., 1.])
    """
    times = times if times.is_floating_point() else times.float()
    exponents = torch.arange(0, embed_dim, 2, device=times.device, dtype=times.dtype) / embed_dim
    angles = times[..., None] * torch.exp(-math.log(base) * exponents)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class PatchEmbedding(nn.Linear):
    """Linear patch embedding, which maps each patch to a token (section 2.1 of the PARS paper).

    A token is the vector that represents a patch in the transformer. The patch embedding is a
    linear layer with a bias.

    Parameters
    ----------
    patch_size : int
        Number of samples in a patch.
    embed_dim : int
        Size of a token.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.tokens import PatchEmbedding
    >>> tokenizer = PatchEmbedding(patch_size=200, embed_dim=32)
    >>> tokenizer(torch.randn(2, 40, 200)).shape
    torch.Size([2, 40, 32])
    """

    def __init__(self, patch_size: int = 200, embed_dim: int = 512):
        super().__init__(patch_size, embed_dim)


class LogPowerSpectrum(nn.Module):
    r"""Log power spectrum of patches.

    The mean of the patch is subtracted, and a Hann window :math:`w` is applied. The power at
    frequency :math:`k` is computed with the discrete Fourier transform,

    .. math::
        P_k = \frac{1}{\sum_n w_n^2} \Bigl| \sum_n w_n (x_n - \bar x)
        e^{-2 \pi i k n / M} \Bigr|^2, \qquad k = 1, \dots, \lfloor M / 2 \rfloor ,

    so that white noise of variance 1 has an expected power of 1. The output is
    :math:`\log(P_k + 10^{-4})`. The computation is in float32 or float64, even under autocast.

    Parameters
    ----------
    patch_size : int
        Number of samples in a patch, :math:`M`.

    Notes
    -----
    Frequencies are in cycles per patch: with patches of one second, :math:`k` is in Hz. For a patch
    of one sample, the output has no entries. The Fourier transform is computed as a product with a
    constant matrix, so that the module can be compiled and exported. For patches of a few hundred
    samples, this product is as fast as an FFT.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.tokens import LogPowerSpectrum
    >>> alpha = torch.sin(2 * torch.pi * 10 * torch.arange(128) / 128)
    >>> spectrum = LogPowerSpectrum(patch_size=128)(alpha)
    >>> spectrum.shape, spectrum.argmax().item() + 1  # the peak is at 10 Hz
    (torch.Size([64]), 10)
    """

    #: Constant added to the power, so that the logarithm of a filtered or flat signal is finite.
    #: For comparison, white noise of variance 1 has a power of 1, and EEG at 40 Hz has a power of
    #: about 0.01 to 0.3.
    FLOOR = 1e-4

    def __init__(self, patch_size: int = 200):
        super().__init__()
        # Columns of the matrix: cosine and sine of each frequency, times the Hann window, minus
        # their mean, which removes the mean of the patch.
        samples = torch.arange(patch_size, dtype=torch.float64)
        frequencies = torch.arange(1, patch_size // 2 + 1, dtype=torch.float64)
        window = torch.hann_window(patch_size, periodic=True, dtype=torch.float64)
        angles = 2 * math.pi * samples[:, None] * frequencies / patch_size
        waves = torch.stack([angles.cos(), angles.sin()]) * window[:, None]
        waves = (waves - waves.mean(dim=1, keepdim=True)) / window.square().sum().sqrt()
        # The matrix is constant, so it is not in the state_dict.
        self.waves: Tensor
        self.register_buffer("waves", waves.float(), persistent=False)

    def forward(self, patches: Tensor) -> Tensor:
        """Return the log power at each frequency.

        Parameters
        ----------
        patches : Tensor, shape (..., patch_size)
            Patches of signals after :func:`instance_norm`.

        Returns
        -------
        Tensor of float32 (float64 for float64 patches), shape (..., patch_size // 2)
            Natural logarithm of the power at the frequencies 1, 2, ... cycles per patch.
        """
        with torch.autocast(patches.device.type, enabled=False):
            patches = patches.to(torch.promote_types(patches.dtype, torch.float32))
            cosines, sines = self.waves.to(patches.dtype)  # (patch_size, patch_size // 2)
            power = (patches @ cosines).square() + (patches @ sines).square()
            return torch.log(power + self.FLOOR)


class SpectralPatchEmbedding(PatchEmbedding):
    """Spectral patch embedding: linear map of the patch plus linear map of its log power spectrum.

    The patch embedding maps each patch to a token, the vector that represents the patch in the
    transformer. The first map is the linear patch embedding of the PARS paper
    (:class:`PatchEmbedding`). The second map is applied to the :class:`LogPowerSpectrum` of the
    patch. It is needed because a linear layer on the samples cannot represent the power of an
    oscillation, which is quadratic in the signal. The foundation model CBraMod also adds a map of
    the spectrum of a patch to the token of this patch.

    Parameters
    ----------
    patch_size : int
        Number of samples in a patch.
    embed_dim : int
        Size of a token.

    References
    ----------
    Wang et al. 2025, CBraMod: A criss-cross brain foundation model for EEG decoding,
    arXiv:2412.07236.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.tokens import SpectralPatchEmbedding
    >>> tokenizer = SpectralPatchEmbedding(patch_size=200, embed_dim=32)
    >>> tokenizer(torch.randn(2, 40, 200)).shape
    torch.Size([2, 40, 32])
    """

    #: Divisor of the log power spectrum, so that both maps have outputs of similar size initially.
    #: The root mean square of the log power spectrum of EEG between 0.5 and 45 Hz is 4 to 5.
    SCALE = 4.0

    def __init__(self, patch_size: int = 200, embed_dim: int = 512):
        super().__init__(patch_size, embed_dim)
        self.spectrum = LogPowerSpectrum(patch_size)
        # The same initial distribution as in nn.Linear. The bias is part of the first map.
        n_frequencies = patch_size // 2
        bound = max(1, n_frequencies) ** -0.5
        self.spectrum_weight = nn.Parameter(
            torch.empty(embed_dim, n_frequencies).uniform_(-bound, bound)
        )

    def forward(self, patches: Tensor) -> Tensor:
        """Return the tokens of patches.

        Parameters
        ----------
        patches : Tensor, shape (..., patch_size)
            Patches of signals after :func:`instance_norm`.

        Returns
        -------
        Tensor, shape (..., embed_dim)
            One token per patch.
        """
        spectrum = (self.spectrum(patches) / self.SCALE).to(self.spectrum_weight.dtype)
        return super().forward(patches) + nn.functional.linear(spectrum, self.spectrum_weight)
