"""Data augmentation: Gaussian noise on random channels, and braindecode transforms by name."""

import inspect
from typing import Any

import braindecode.augmentation
import numpy as np
import torch
from braindecode.augmentation import Mixup, Transform

from braindecode_pars._common.checks import check_parameters, number

_PROBABILITY = number("in [0, 1]", lambda value: 0 <= value <= 1)
_RULES = dict(
    probability=_PROBABILITY,
    channel_probability=_PROBABILITY,
    std=number("of at least 0", lambda value: value >= 0),
)


def add_channel_noise(
    X: torch.Tensor,
    y: torch.Tensor,
    channel_probability: float,
    std: float,
    rng: np.random.RandomState,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add white Gaussian noise to random channels of X, as described in :class:`ChannelNoise`.

    Returns a noisy copy of ``X``, shape (batch, n_chans, n_times), and ``y`` unchanged.
    """
    # Random numbers come from NumPy, as in braindecode; the sum is computed on the device of X.
    is_noisy = torch.from_numpy(rng.random_sample(X.shape[:2]) < channel_probability).to(X.device)
    noise = torch.from_numpy(rng.standard_normal(X.shape)).to(X)
    noise_std = std * X.std(dim=-1, keepdim=True, correction=0)  # (batch, n_chans, 1)
    return X + is_noisy[..., None] * noise_std * noise, y


class ChannelNoise(Transform):
    """Augmentation that adds Gaussian noise to random channels.

    The standard deviation of the noise is proportional to the standard deviation of the channel.
    The paper (Sandino et al. 2025, appendix A.3) uses this augmentation for the dataset EESM17. It
    specifies neither the proportion of channels nor the amplitude of the noise; the defaults are
    choices of this package. To use this augmentation in fine-tuning, pass
    ``PARSClassifier(augmentation=ChannelNoise())``.

    Parameters
    ----------
    probability : float
        Probability that a window is augmented.
    channel_probability : float
        Probability that noise is added to a channel of an augmented window, independently for each
        channel.
    std : float
        Standard deviation of the noise, as a multiple of the standard deviation of the channel in
        the window.
    random_state : int | numpy.random.RandomState | None
        Seed or random number generator. In an estimator such as PARSClassifier, the
        ``random_state`` of the estimator is used instead.

    Raises
    ------
    TypeError
        If a probability or ``std`` is not a number.
    ValueError
        If a probability is not in [0, 1], or ``std`` is negative.

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
        """Return the keyword arguments of :func:`add_channel_noise`, the same for every batch."""
        return dict(channel_probability=self.channel_probability, std=self.std, rng=self.rng)


#: Probability of applying a transform that is specified by name, if the transform has no default.
_DEFAULT_PROBABILITY = 0.5


def make_augmentation(augmentation: Any) -> Transform | list[Transform] | None:
    """Create the transforms that the argument ``augmentation`` of an estimator specifies.

    Parameters
    ----------
    augmentation : str | dict | braindecode Transform | list of these | None
        One of: ``"ChannelNoise"`` (:class:`ChannelNoise`); the name of a transform in
        ``braindecode.augmentation``; a dict with the ``name`` and the arguments of a transform; or
        a transform, which is returned unchanged. If a dict contains no ``probability``, or only a
        name is passed, the default of the transform is used or, if there is none, 0.5.

    Returns
    -------
    Transform | list of Transform | None
        A transform or, if ``augmentation`` is a list, a list of transforms. None if
        ``augmentation`` is None.

    Raises
    ------
    TypeError
        If ``augmentation``, or an entry of a list, has none of these types. If arguments of a
        transform are missing or unknown. If a transform is an instance of Mixup, which is not
        supported because it mixes the labels of windows.
    ValueError
        If the name of a transform is unknown, or is ``"Mixup"``.

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
    if isinstance(augmentation, (str, dict)):
        arguments = {"name": augmentation} if isinstance(augmentation, str) else dict(augmentation)
        name = str(arguments.pop("name", None))
        transform: Any = getattr(braindecode.augmentation, name, None)
        transform = ChannelNoise if name == "ChannelNoise" else transform
        is_transform = isinstance(transform, type) and issubclass(transform, Transform)
        if not is_transform or issubclass(transform, Mixup):
            raise ValueError(
                f"Unknown or unsupported augmentation {name!r}. Use 'ChannelNoise', or the name of "
                "a transform in braindecode.augmentation (except Mixup, which mixes the labels of "
                "windows)."
            )
        probability = inspect.signature(transform).parameters.get("probability")
        if probability is not None and probability.default is probability.empty:
            arguments = {"probability": _DEFAULT_PROBABILITY, **arguments}
        augmentation = transform(**arguments)
    if not isinstance(augmentation, Transform):
        raise TypeError(
            "augmentation must be a braindecode transform, the name of a transform, a dict with "
            "the name and the arguments of a transform, a list of these, or None, got "
            f"{augmentation!r}."
        )
    # A Compose contains other transforms.
    if any(isinstance(part, Mixup) for part in augmentation.modules()):
        raise TypeError(
            "augmentation contains Mixup, which is not supported because it mixes the labels of "
            "windows. Remove Mixup."
        )
    return augmentation
