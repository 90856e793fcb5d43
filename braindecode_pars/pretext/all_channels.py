"""Tasks of one channel on all channels of a window: spectra, features, and several at a time.

Each trains an encoder that compares channels, and so can ask a channel's neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from braindecode_pars.models.space_time import SpaceTimeEncoder
from braindecode_pars.pretext.base import AllChannelTask, register, weights_of
from braindecode_pars.pretext.features import SignalFeatures
from braindecode_pars.pretext.grid import take
from braindecode_pars.pretext.joint import Joint
from braindecode_pars.pretext.spectral import SpectralMAE
from braindecode_pars.tokens import grid_patches, instance_norm


@register("features_space_time")
class SpaceTimeFeatures(AllChannelTask, SignalFeatures):
    """Prediction of the classical features of each channel of a window.

    The task is :class:`~braindecode_pars.pretext.SignalFeatures`, and each channel is encoded with
    its neighbours.

    Parameters
    ----------
    n_times, patch_size, sfreq, features
        As in :class:`~braindecode_pars.pretext.SignalFeatures`. No patch is hidden.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place. None builds one.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder` when no encoder is given.

    Raises
    ------
    TypeError, ValueError
        As :class:`~braindecode_pars.pretext.SignalFeatures`. Also for an encoder of single
        channels.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimeFeatures
    >>> task = SpaceTimeFeatures(1000, 100, sfreq=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000), 0.1 * torch.rand(2, 19, 3))
    >>> prediction.shape
    torch.Size([2, 19, 31])
    """

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        sfreq: float | None = None,
        encoder: SpaceTimeEncoder | None = None,
        features: Iterable[str] | Mapping[str, Callable[[Tensor, float], Tensor]] | None = None,
        **encoder_arguments: Any,
    ):
        given = dict(sfreq=sfreq, encoder=encoder, features=features, mask_ratio=0.0)
        super().__init__(n_times, patch_size, **given, **encoder_arguments)  # type: ignore[arg-type]

    def forward(
        self, x: Tensor, positions: Tensor | None = None, keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true features of all channels.

        Parameters
        ----------
        x, positions, keep
            As in :meth:`SpaceTimePARS.forward <braindecode_pars.pretext.SpaceTimePARS.forward>`.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_chans, n_features)
            Standardised features, times the :func:`weights_of
            <braindecode_pars.pretext.base.weights_of>` the channels.
        """
        x, positions, keep = self.windows(x, positions, keep)
        measured = self.measured(instance_norm(x).flatten(0, 1)).unflatten(0, keep.shape)
        target = ((measured - self.mean) / self.scale).clamp(-self.LIMIT, self.LIMIT)
        prediction = self.head(self.encoder.embed(x, positions, keep)).to(target.dtype)
        weights = weights_of(keep)[..., None]
        return prediction * weights, target * weights


@register("spectral_space_time")
class SpaceTimeSpectralMAE(AllChannelTask, SpectralMAE):
    """Masked prediction of power spectra on all channels of a window.

    Each channel loses patches of its own. The encoder has mask tokens in their places, since the
    neighbours at the same moment may help to fill them in. Then all is as in
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

        # Of each channel by itself: (batch * n_chans, n_masked, patch_size // 2).
        predictions = self.head(self.decoder(features.flatten(0, 1) + when))
        weights = self.scale * weights_of(keep).flatten()[:, None, None]
        targets = self.spectra(patches.flatten(0, 1), keep.flatten())
        results = (take(each, removed) * weights for each in (predictions, targets))
        prediction, target = (each.unflatten(0, keep.shape) for each in results)
        return prediction, target


@register("joint_space_time")
class SpaceTimeJoint(AllChannelTask, Joint):
    """A weighted sum of tasks on all channels of a window.

    Parameters
    ----------
    n_times, patch_size, task_params, sfreq
        As in :class:`~braindecode_pars.pretext.Joint`.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place; all tasks share it. None builds one.
    tasks : dict of str to float | None
        Weights by the name of a task of all channels. None means spectra and features, with equal
        weights.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder` when no encoder is given.

    Raises
    ------
    TypeError, ValueError
        As :class:`~braindecode_pars.pretext.Joint`. Also for an encoder of single channels.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimeJoint
    >>> weights = {"pars_space_time": 1.0, "spectral_space_time": 1.0}
    >>> task = SpaceTimeJoint(1000, 100, tasks=weights, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000))
    >>> sorted(prediction)
    ['pars_space_time', 'spectral_space_time']
    """

    default: ClassVar = {"features_space_time": 1.0, "spectral_space_time": 1.0}
