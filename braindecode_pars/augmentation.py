"""What braindecode's augmentations lack: noise on some of the channels."""

from __future__ import annotations

import braindecode_pars._hosts  # noqa: F401  before braindecode

# isort: split
from typing import Any

import numpy as np
import torch
from braindecode.augmentation import Transform
from torch import Tensor

__all__ = ["ChannelNoise"]


def add_channel_noise(
    X: Tensor, y: Tensor, channel_probability: float, std: float, rng: np.random.RandomState
) -> tuple[Tensor, Tensor]:
    """Add white noise to random channels; arguments as those of :class:`ChannelNoise`."""
    chosen = torch.from_numpy(rng.random_sample(X.shape[:2]) < channel_probability).to(X.device)
    noise = torch.from_numpy(rng.standard_normal(X.shape)).to(X)
    spread = std * X.std(dim=-1, keepdim=True, correction=0)
    return X + chosen[..., None] * spread * noise, y


class ChannelNoise(Transform):
    """Gaussian noise on random channels, as loud as the channel itself (appendix A.3, EESM17).

    The paper names neither the share of channels nor the level of the noise; the defaults are
    ours. Use it as ``PARSClassifier(augmentation=ChannelNoise())``.

    Parameters
    ----------
    probability : float
        Probability that a window is augmented at all.
    channel_probability : float
        Probability of each channel of such a window, each on its own.
    std : float
        Standard deviation of the noise, in units of the channel's in this window.
    random_state : int | numpy.random.RandomState | None
        Of the draws. In PARSClassifier they follow the classifier's ``random_state`` instead.

    Raises
    ------
    ValueError
        When a probability is not in [0, 1], or ``std`` is negative.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.augmentation import ChannelNoise
    >>> windows, labels = torch.randn(4, 3, 200), torch.zeros(4)
    >>> noisy, _ = ChannelNoise(channel_probability=1.0, random_state=0)(windows, labels)
    >>> noisy.shape, torch.equal(noisy, windows)
    (torch.Size([4, 3, 200]), False)
    """

    operation = staticmethod(add_channel_noise)  # type: ignore[assignment]

    def __init__(
        self,
        probability: float = 1.0,
        channel_probability: float = 0.2,
        std: float = 1.0,
        random_state: Any = None,
    ):
        super().__init__(probability=probability, random_state=random_state)
        if not 0 <= channel_probability <= 1:
            raise ValueError(f"channel_probability must be in [0, 1], got {channel_probability}.")
        if not std >= 0:
            raise ValueError(f"std must not be negative, got {std}.")
        self.channel_probability = channel_probability
        self.std = std

    def get_augmentation_params(self, *batch: Tensor) -> dict[str, Any]:
        """Arguments of :func:`add_channel_noise`, whatever the batch."""
        return dict(channel_probability=self.channel_probability, std=self.std, rng=self.rng)
