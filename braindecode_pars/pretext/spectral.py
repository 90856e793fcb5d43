"""Pretext tasks that predict log power spectra of masked patches, on one or all channels."""

from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars._common.checks import integer
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import AllChannelTask, channel_weights, register
from braindecode_pars.pretext.grid import MaskedGridTask, take
from braindecode_pars.tokens import LogPowerSpectrum, grid_patches, instance_norm

__all__ = ["SpaceTimeSpectralMAE", "SpectralMAE", "frequency_bands"]

#: First frequency of each band, in cycles per patch. With patches of one second, the bands are
#: delta, theta, alpha, beta and gamma.
_BAND_STARTS = (1, 4, 8, 16, 32)


def frequency_bands(patch_size: int) -> list[tuple[int, int]]:
    """Return the frequency bands that have equal weights in the loss of SpectralMAE.

    Parameters
    ----------
    patch_size : int
        Number of samples in a patch.

    Returns
    -------
    list of (int, int)
        First and last frequency of each band, in cycles per patch. With patches of one second, the
        bands are delta, theta, alpha, beta and gamma.

    Examples
    --------
    >>> from braindecode_pars.pretext.spectral import frequency_bands
    >>> frequency_bands(128)
    [(1, 3), (4, 7), (8, 15), (16, 31), (32, 64)]
    >>> frequency_bands(20)  # the highest frequency is 10 cycles per patch
    [(1, 3), (4, 7), (8, 10)]
    """
    highest = patch_size // 2
    starts = [start for start in _BAND_STARTS if start <= highest]
    ends = [*(start - 1 for start in starts[1:]), highest]
    return list(zip(starts, ends, strict=True))


@register("spectral")
class SpectralMAE(MaskedGridTask):
    r"""Masked autoencoder that predicts log power spectra of masked patches on one channel.

    As in :class:`~braindecode_pars.pretext.MAE`, patches (short segments) are masked and predicted
    from the visible patches, but the target is the log power spectrum of a masked patch instead of
    its samples. The encoder therefore has to represent oscillations and how their power changes
    over time. Samples are less suitable as targets, because the phase of an oscillation cannot be
    inferred from other patches. In addition, low-frequency components have the largest amplitude
    and dominate the squared error of samples. This task is not part of the PARS paper.

    The target is the :class:`~braindecode_pars.tokens.LogPowerSpectrum` of each masked patch. Each
    frequency is standardized with its mean and standard deviation over all patches of the batch, so
    that the chance-level loss is 1. The target is therefore the deviation of a patch from the mean
    spectrum. This deviation depends on the channel, the subject and the brain state.

    The loss is the mean squared error in each frequency band, averaged over the bands
    (:func:`~braindecode_pars.pretext.spectral.frequency_bands`). With one-second patches, delta
    (three frequencies) thus has the same weight as gamma (more than thirty frequencies). The loss
    of each band is recorded in the training history.

    Parameters
    ----------
    n_times : int
        Number of samples in a crop (the random segment of a channel that is one training example);
        at least two patches.
    patch_size : int
        Number of samples in a patch; at least two.
    encoder : PatchEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    mask_ratio : float
        Fraction of the patches that are masked. At least one patch is masked, and at least one
        patch is visible.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`, used if ``encoder`` is None.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in a crop, and number of masked patches.
    bands : list of (int, int)
        First and last frequency of each band, in cycles per patch.

    Raises
    ------
    ValueError
        If an argument is out of range, or the crop contains too few patches.

    Notes
    -----
    The weight of frequency :math:`k` in the squared error is :math:`w_k^2 = K / (B\, n_k)`. Here,
    :math:`K` is the number of frequencies, :math:`B` the number of bands, and :math:`n_k` the
    number of frequencies in the band that contains :math:`k`. Prediction and target are multiplied
    by :math:`w_k`.

    References
    ----------
    He et al. 2022, Masked autoencoders are scalable vision learners, arXiv:2111.06377.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpectralMAE
    >>> task = SpectralMAE(n_times=3000, patch_size=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> prediction.shape, target.shape  # 15 masked patches, 50 frequencies
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

        # Square roots of the weights of frequencies. All bands have the same weight in the loss.
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
            Mask that is False for signals (rows of the batch) that are excluded from the mean and
            the standard deviation. Excluded signals must not contain NaN or infinite values. If
            None, no signal is excluded.

        Returns
        -------
        Tensor, shape (batch, n_patches, patch_size // 2)
            Log power of each patch at each frequency. At each frequency, the mean over the patches
            of all signals that are not excluded is 0, and the variance is 1 (0 if all patches have
            the same power).
        """
        spectra = self.spectrum(patches)
        if keep is None:
            variance, mean = torch.var_mean(spectra, dim=(0, 1), correction=0)
        else:
            weights = (keep / keep.sum().clamp(min=1))[:, None]
            mean = (weights * spectra.mean(dim=1)).sum(dim=0)
            variance = (weights * (spectra - mean).square().mean(dim=1)).sum(dim=0)
        return (spectra - mean) * torch.rsqrt(variance + 1e-6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true spectra of the masked patches.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_masked, patch_size // 2)
            Standardized log power spectra of the masked patches (:meth:`spectra`), times the square
            root of the weight of each frequency.
        """
        patches = self.patches(x)
        order = self.random_order(x)
        masked = order[:, : self.n_masked]
        prediction = take(self.reconstruct(patches, order), masked)
        target = take(self.spectra(patches), masked)
        return prediction * self.scale, target * self.scale

    def chance_loss(self) -> float:
        """Return 1, the loss of predicting the mean, because spectra are standardized."""
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the relative loss of each frequency band (1 = chance level).

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar relative loss of each band, by name. For example, ``"band_8_15"`` is the loss at
            8 to 15 cycles per patch.
        """
        errors = ((prediction - target) / self.scale).square()
        return {
            f"band_{first}_{last}": errors[..., first - 1 : last].mean()
            for first, last in self.bands
        }


@register("spectral_space_time")
class SpaceTimeSpectralMAE(AllChannelTask, SpectralMAE):
    """Masked autoencoder that predicts log power spectra of masked patches on all channels.

    Different patches are masked in each channel. Unlike in
    :class:`~braindecode_pars.pretext.SpectralMAE`, the encoder also processes mask tokens in place
    of the masked patches, so that the spectra of these patches can be predicted from the signals of
    other channels at the same time. In all other respects, this task is the same as SpectralMAE.

    Parameters
    ----------
    n_times, patch_size, mask_ratio
        As in :class:`~braindecode_pars.pretext.SpectralMAE`.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder`, used if ``encoder`` is
        None.

    Raises
    ------
    TypeError, ValueError
        As in :class:`~braindecode_pars.pretext.SpectralMAE`, and when ``encoder`` is an encoder of
        single channels.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimeSpectralMAE
    >>> task = SpaceTimeSpectralMAE(1000, 100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000), 0.1 * torch.rand(2, 19, 3))
    >>> prediction.shape  # 5 masked patches and 50 frequencies in each of 19 channels
    torch.Size([2, 19, 5, 50])
    """

    def forward(
        self, x: Tensor, positions: Tensor | None = None, keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true spectra of the masked patches of all channels.

        Parameters
        ----------
        x, positions, keep
            As in :meth:`SpaceTimePARS.forward <braindecode_pars.pretext.SpaceTimePARS.forward>`.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_chans, n_masked, patch_size // 2)
            Spectra as in ``forward`` of :class:`~braindecode_pars.pretext.SpectralMAE`, multiplied
            by the :func:`~braindecode_pars.pretext.base.channel_weights`, which exclude missing
            channels.
        """
        x, positions, keep = self.windows(x, positions, keep)
        patches = grid_patches(instance_norm(x), self.patch_size)
        masked = self.random_order(patches.flatten(0, 1))[:, : self.n_masked]
        is_masked = torch.zeros(keep.numel(), self.n_patches, dtype=torch.bool, device=x.device)
        is_masked = is_masked.scatter(1, masked, True).unflatten(0, keep.shape)

        # Replace masked patches with mask tokens, and add the encodings of time and electrode.
        tokens = self.encoder.tokens_of(patches, x, keep)  # (batch, n_chans, n_patches, embed_dim)
        tokens = torch.where(is_masked[..., None], self.mask_token.to(tokens.dtype), tokens)
        times = self.positions(tokens)
        electrodes = self.encoder.places(positions.to(x.dtype), keep)
        features = self.encoder(tokens + times + electrodes[:, :, None].to(tokens.dtype), keep)
        features = features.roll(1, dims=0) if self.is_sham else features

        # Channels are predicted independently: (batch * n_chans, n_masked, patch_size // 2).
        predictions = self.head(self.decoder(features.flatten(0, 1) + times))
        weights = self.scale * channel_weights(keep).flatten()[:, None, None]
        targets = self.spectra(patches.flatten(0, 1), keep.flatten())
        results = (take(spectra, masked) * weights for spectra in (predictions, targets))
        prediction, target = (result.unflatten(0, keep.shape) for result in results)
        return prediction, target

    def sham_target(self, target: Tensor) -> Tensor:
        """Return the targets unchanged.

        In sham pretraining (a control in which nothing can be learned), targets are not exchanged
        between windows, because different channels may be missing in each window. Instead,
        :meth:`forward` predicts the targets of each window from the encoder output of another
        window.
        """
        return target
