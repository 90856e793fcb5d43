"""Data augmentation that braindecode does not have: noise on some of the channels."""

from __future__ import annotations

import braindecode_pars._hosts  # noqa: F401  must come before braindecode

# isort: split
from typing import Any

import numpy as np
import torch
from braindecode.augmentation import Transform
from torch import Tensor

from braindecode_pars._parameters import check_parameters, number

__all__ = ["ChannelNoise"]

_PROBABILITY = number("in [0, 1]", lambda value: 0 <= value <= 1)
_RULES = dict(
    probability=_PROBABILITY,
    channel_probability=_PROBABILITY,
    std=number("of 0 or more", lambda value: value >= 0),
)


def add_channel_noise(
    X: Tensor, y: Tensor, channel_probability: float, std: float, rng: np.random.RandomState
) -> tuple[Tensor, Tensor]:
    """Add white noise to random channels, with the arguments of :class:`ChannelNoise`."""
    # NumPy draws the noise, as in braindecode; torch computes it on the device of X.
    chosen = torch.from_numpy(rng.random_sample(X.shape[:2]) < channel_probability).to(X.device)
    noise = torch.from_numpy(rng.standard_normal(X.shape)).to(X)
    noise_std = std * X.std(dim=-1, keepdim=True, correction=0)  # (batch, n_chans, 1)
    return X + chosen[..., None] * noise_std * noise, y


class ChannelNoise(Transform):
    """Gaussian noise on random channels, scaled to each channel (appendix A.3, EESM17).

    The paper specifies neither the share of channels nor the level of the noise; the defaults are
    choices of this package. Use it as ``PARSClassifier(augmentation=ChannelNoise())``.

    Parameters
    ----------
    probability : float
        Probability that a window is augmented.
    channel_probability : float
        Probability that a channel of an augmented window receives noise. Channels are drawn
        independently.
    std : float
        Standard deviation of the noise, relative to that of the channel in this window.
    random_state : int | numpy.random.RandomState | None
        Seed or generator of the random draws. PARSClassifier replaces it by its own
        ``random_state``.

    Raises
    ------
    TypeError
        When a probability or ``std`` is not a number.
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
        given = dict(probability=probability, channel_probability=channel_probability, std=std)
        check_parameters(given, _RULES, type(self).__name__)
        super().__init__(probability=probability, random_state=random_state)
        self.channel_probability = channel_probability
        self.std = std

    def get_augmentation_params(self, *batch: Tensor) -> dict[str, Any]:
        """Return the arguments of :func:`add_channel_noise`, which do not depend on the batch."""
        return dict(channel_probability=self.channel_probability, std=self.std, rng=self.rng)
