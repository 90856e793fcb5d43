"""Data augmentation: noise on some of the channels, and braindecode's transforms by name."""

import inspect
from typing import Any

import braindecode.augmentation
import numpy as np
import torch
from braindecode.augmentation import Compose, IdentityTransform, Mixup, Transform

from braindecode_pars._common.checks import check_parameters, number

_PROBABILITY = number("in [0, 1]", lambda value: 0 <= value <= 1)
_RULES = dict(
    probability=_PROBABILITY,
    channel_probability=_PROBABILITY,
    std=number("of 0 or more", lambda value: value >= 0),
)


def add_channel_noise(
    X: torch.Tensor,
    y: torch.Tensor,
    channel_probability: float,
    std: float,
    rng: np.random.RandomState,
) -> tuple[torch.Tensor, torch.Tensor]:
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
    >>> from braindecode_pars.estimators.augmentation import ChannelNoise
    >>> windows, labels = torch.randn(4, 3, 200), torch.zeros(4)
    >>> noisy, _ = ChannelNoise(channel_probability=1.0, random_state=0)(windows, labels)
    >>> noisy.shape, torch.equal(noisy, windows)
    (torch.Size([4, 3, 200]), False)
    """

    operation = staticmethod(add_channel_noise)

    def __init__(
        self,
        probability: float = 1.0,
        channel_probability: float = 0.2,
        std: float = 1.0,
        random_state: Any = None,
    ):
        check_parameters(locals(), _RULES, type(self).__name__)
        super().__init__(probability=probability, random_state=random_state)
        self.channel_probability = channel_probability
        self.std = std

    def get_augmentation_params(self, *batch: torch.Tensor) -> dict[str, Any]:
        """Return the arguments of :func:`add_channel_noise`, which do not depend on the batch."""
        return dict(channel_probability=self.channel_probability, std=self.std, rng=self.rng)


#: Probability of a transform that is given by its name, if it has no default of its own.
_BY_NAME = 0.5


def make_augmentation(augmentation: Any) -> Transform | list[Transform] | None:
    """Return transforms by their names, as in ``PARSClassifier(augmentation=...)``.

    Parameters
    ----------
    augmentation : str | dict | braindecode Transform | list of these | None
        Name of :class:`ChannelNoise` or of a transform of ``braindecode.augmentation``; a dict with
        the ``name`` and arguments; or a transform, which is returned as it is. A transform whose
        ``probability`` has no default is applied to half of the windows.

    Returns
    -------
    Transform | list of Transform | None
        The transforms; None for None.

    Raises
    ------
    TypeError
        When an entry is none of these, or when arguments are missing or unknown. Also for a Mixup,
        which mixes labels.
    ValueError
        When a name is unknown, as ``"Mixup"`` is.

    Examples
    --------
    >>> from braindecode_pars.estimators.augmentation import make_augmentation
    >>> type(make_augmentation("ChannelNoise")).__name__
    'ChannelNoise'
    >>> noise, flip = make_augmentation([{"name": "GaussianNoise", "std": 0.2}, "SignFlip"])
    >>> noise.std, flip.probability
    (0.2, 0.5)
    """
    if isinstance(augmentation, list):
        return [make_augmentation(entry) for entry in augmentation]
    if augmentation is None:
        return None
    if isinstance(augmentation, Transform):
        # A Compose contains other transforms.
        if any(isinstance(part, Mixup) for part in augmentation.modules()):
            raise TypeError("augmentation contains Mixup, which also mixes labels.")
        return augmentation
    if not isinstance(augmentation, (str, dict)):
        raise TypeError(
            "augmentation must be braindecode transforms, their names, or dicts of a name and "
            f"arguments; got {augmentation!r}."
        )
    arguments = {"name": augmentation} if isinstance(augmentation, str) else dict(augmentation)
    name = arguments.pop("name", None)
    # The transforms of braindecode that change windows, but not labels
    others = (Transform, IdentityTransform, Compose, Mixup)
    classes = dict(inspect.getmembers(braindecode.augmentation, inspect.isclass))
    usable = {key: c for key, c in classes.items() if issubclass(c, Transform) and c not in others}
    known: dict[str, type[Transform]] = {"ChannelNoise": ChannelNoise, **usable}
    if name not in known:
        raise ValueError(f"Unknown augmentation {name!r}; known are {', '.join(known)}.")
    probability = inspect.signature(known[name]).parameters["probability"]
    if probability.default is inspect.Parameter.empty:
        arguments = {"probability": _BY_NAME, **arguments}
    return known[name](**arguments)
