"""Predict the power spectra of removed patches from the visible ones, of one channel or all."""

from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars._common.checks import integer
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import AllChannelTask, register, weights_of
from braindecode_pars.pretext.grid import MaskedGridTask, take
from braindecode_pars.tokens import LogPowerSpectrum, grid_patches, instance_norm

__all__ = ["SpaceTimeSpectralMAE", "SpectralMAE", "frequency_bands"]

#: First frequency of each band, in cycles per patch: delta, theta, alpha, beta and gamma of patches
#: of one second.
_BAND_STARTS = (1, 4, 8, 16, 32)


def frequency_bands(patch_size: int) -> list[tuple[int, int]]:
    """Return the bands of frequencies that have equal weights in the loss.

    Parameters
    ----------
    patch_size : int
        Number of samples in a patch.

    Returns
    -------
    list of (int, int)
        First and last frequency of each band, in cycles per patch. With patches of one second these
        are delta, theta, alpha, beta and gamma.

    Examples
    --------
    >>> from braindecode_pars.pretext.spectral import frequency_bands
    >>> frequency_bands(128)
    [(1, 3), (4, 7), (8, 15), (16, 31), (32, 64)]
    >>> frequency_bands(20)
    [(1, 3), (4, 7), (8, 10)]
    """
    highest = patch_size // 2
    starts = [start for start in _BAND_STARTS if start <= highest]
    ends = [*(start - 1 for start in starts[1:]), highest]
    return list(zip(starts, ends, strict=True))


@register("spectral")
class SpectralMAE(MaskedGridTask):
    r"""Masked prediction of power spectra on one channel.

    The task is that of :class:`~braindecode_pars.pretext.MAE`, but it predicts the log power
    spectrum of the removed patches instead of their samples. It asks for rhythms and their change;
    the phase of a rhythm cannot be inferred from other patches, and most of a waveform's error is
    in its largest, slow components. It is not in the paper.

    The target is the :class:`~braindecode_pars.tokens.LogPowerSpectrum` of a patch. Each frequency
    is standardized with its mean and standard deviation over all patches of the batch, so that a
    guess that does not use the signal costs 1. The spectrum that all signals have in common is
    then no part of the task; what a channel, a person and a state have of their own is.

    The loss is the mean squared error of each band, averaged over the bands
    (:func:`~braindecode_pars.pretext.spectral.frequency_bands`): with one-second patches, delta
    (three frequencies) counts as much as gamma (more than thirty). The log has the loss of each
    band.

    Parameters
    ----------
    n_times : int
        Number of samples in a signal; at least two patches.
    patch_size : int
        Number of samples in a patch; at least two.
    encoder : PatchEncoder | None
        Encoder to train in place. None builds one.
    mask_ratio : float
        Share of the patches that is removed. At least one patch is removed, and at least one is
        visible.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of removed patches.
    bands : list of (int, int)
        First and last frequency of each band, in cycles per patch.

    Raises
    ------
    ValueError
        When an argument is out of range, or there are too few patches for it.

    Notes
    -----
    The weight of a frequency, :math:`w_k^2 = K / (B\, n_k)` with :math:`K` frequencies, :math:`B`
    bands and :math:`n_k` frequencies in the band of :math:`k`, is part of prediction and target:
    both are multiplied by :math:`w_k`.

    References
    ----------
    He et al. 2022, Masked autoencoders are scalable vision learners, arXiv:2111.06377.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpectralMAE
    >>> task = SpectralMAE(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> prediction.shape, target.shape
    (torch.Size([2, 15, 50]), torch.Size([2, 15, 50]))
    """

    criterion = nn.MSELoss

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        encoder: PatchEncoder | None = None,
        mask_ratio: float = 0.5,
        **encoder_arguments: Any,
    ):
        integer(2).check("patch_size", patch_size, type(self).__name__)
        params = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, n_outputs=patch_size // 2, **params)
        self.spectrum = LogPowerSpectrum(patch_size)
        self.bands = frequency_bands(patch_size)

        # Roots of the weights, so that every band has the same share of the mean squared error.
        n_in_band = [1 + last - first for first, last in self.bands for _ in range(first, last + 1)]
        weights = (patch_size // 2) / (len(self.bands) * torch.tensor(n_in_band))
        self.scale: Tensor
        self.register_buffer("scale", weights.sqrt(), persistent=False)

    def spectra(self, patches: Tensor, keep: Tensor | None = None) -> Tensor:
        """Return the log power spectra of patches, standardized over the batch.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalized patches.
        keep : Tensor of bool, shape (batch,) | None
            Mask that is False for signals that do not count, which are finite all the same. None:
            all count.

        Returns
        -------
        Tensor, shape (batch, n_patches, patch_size // 2)
            For each frequency, mean 0 and variance 1 over batch and patches. A frequency with the
            same power in all patches is zero.
        """
        spectra = self.spectrum(patches)
        if keep is None:
            variance, mean = torch.var_mean(spectra, dim=(0, 1), correction=0)
        else:
            share = (keep / keep.sum().clamp(min=1))[:, None]
            mean = (share * spectra.mean(dim=1)).sum(dim=0)
            variance = (share * (spectra - mean).square().mean(dim=1)).sum(dim=0)
        return (spectra - mean) * torch.rsqrt(variance + 1e-6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true spectra of the removed patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_masked, patch_size // 2)
            Output of :meth:`spectra` for the removed patches, times the root of each frequency's
            weight.
        """
        patches = self.patches(x)
        order = self.random_order(x)
        removed = order[:, : self.n_masked]
        prediction = take(self.reconstruct(patches, order), removed)
        target = take(self.spectra(patches), removed)
        return prediction * self.scale, target * self.scale

    def chance_loss(self) -> float:
        """Return 1, the variance of a standardized spectrum: the loss of predicting its mean."""
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the loss of each band, relative to chance.

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar losses by name; ``"band_8_15"`` has the frequencies 8 to 15.
        """
        errors = ((prediction - target) / self.scale).square()
        return {
            f"band_{first}_{last}": errors[..., first - 1 : last].mean()
            for first, last in self.bands
        }


@register("spectral_space_time")
class SpaceTimeSpectralMAE(AllChannelTask, SpectralMAE):
    """Masked prediction of power spectra on all channels of a window.

    Each channel loses patches of its own. The encoder has mask tokens in their places, since the
    neighbors at the same moment may help to fill them in. Then all is as in
    :class:`~braindecode_pars.pretext.SpectralMAE`.

    Parameters
    ----------
    n_times, patch_size, mask_ratio
        As in :class:`~braindecode_pars.pretext.SpectralMAE`.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place. None builds one.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder` when no encoder is given.

    Raises
    ------
    TypeError, ValueError
        As :class:`~braindecode_pars.pretext.SpectralMAE`. Also for an encoder of single channels.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimeSpectralMAE
    >>> task = SpaceTimeSpectralMAE(1000, 100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000), 0.1 * torch.rand(2, 19, 3))
    >>> prediction.shape
    torch.Size([2, 19, 5, 50])
    """

    def forward(
        self, x: Tensor, positions: Tensor | None = None, keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true spectra of the removed patches.

        Parameters
        ----------
        x, positions, keep
            As in :meth:`SpaceTimePARS.forward <braindecode_pars.pretext.SpaceTimePARS.forward>`.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_chans, n_masked, patch_size // 2)
            As in :class:`~braindecode_pars.pretext.SpectralMAE`, times the :func:`weights_of
            <braindecode_pars.pretext.base.weights_of>` the channels.
        """
        x, positions, keep = self.windows(x, positions, keep)
        patches = grid_patches(instance_norm(x), self.patch_size)
        removed = self.random_order(patches.flatten(0, 1))[:, : self.n_masked]
        is_removed = torch.zeros(keep.numel(), self.n_patches, dtype=torch.bool, device=x.device)
        is_removed = is_removed.scatter(1, removed, True).unflatten(0, keep.shape)

        # Mask tokens, and the positions in time and space of all tokens.
        tokens = self.encoder.tokens_of(patches, x, keep)  # (batch, n_chans, n_patches, embed_dim)
        tokens = torch.where(is_removed[..., None], self.mask_token.to(tokens.dtype), tokens)
        when, where = self.positions(tokens), self.encoder.places(positions.to(x.dtype), keep)
        features = self.encoder(tokens + when + where[:, :, None].to(tokens.dtype), keep)
        features = features.roll(1, dims=0) if self.is_sham else features

        # Channels are predicted independently: (batch * n_chans, n_masked, patch_size // 2).
        predictions = self.head(self.decoder(features.flatten(0, 1) + when))
        weights = self.scale * weights_of(keep).flatten()[:, None, None]
        targets = self.spectra(patches.flatten(0, 1), keep.flatten())
        results = (take(spectra, removed) * weights for spectra in (predictions, targets))
        prediction, target = (result.unflatten(0, keep.shape) for result in results)
        return prediction, target

    def sham_target(self, target: Tensor) -> Tensor:
        """Return the targets as they are: :meth:`forward` predicts from another window in a sham.

        Targets of another window may be of channels that are missing here.
        """
        return target
