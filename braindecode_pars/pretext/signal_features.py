"""SignalFeatures: predict classical features of a signal from the mean output of the encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars._common.checks import check_parameters, listed, warn_user
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.pretext.base import register
from braindecode_pars.pretext.features import BANDS, FEATURES, bands
from braindecode_pars.pretext.grid import GridTask, take
from braindecode_pars.tokens import grid_patches

__all__ = ["SignalFeatures"]

_RULES = dict(
    sfreq=checks.optional(checks.positive()),
    features=checks.optional(checks.instance("names or a dict of functions", list, tuple, Mapping)),
)


@register("features")
class SignalFeatures(GridTask):
    r"""Prediction of classical features of the signal from the pooled output of the encoder.

    The output of the encoder, averaged over time, goes through one linear layer to the features of
    the whole signal: 31 numbers that people measure in EEG, such as band powers, the aperiodic
    exponent and Hjorth's mobility. They are computed from the normalised signal, standardised, and
    limited to five standard deviations. The loss is the mean squared error. The log has the loss of
    each entry of :data:`~braindecode_pars.pretext.features.FEATURES`.

    An encoder that is trained so is a learned set of feature detectors: what it knows are these
    features and what is needed to compute them. It can learn them from noise, so a low loss says
    nothing about brains. The task is not in the paper. In speech, PASE predicts features such as
    the log power spectrum and prosody, of each moment and with contrastive tasks beside; here the
    features are those of EEG, and of a whole window. In sleep staging, frequency pretraining
    predicts which frequencies random sums of sines contain; here the signals are any, also EEG, and
    what is predicted is measured in them.

    Parameters
    ----------
    n_times : int
        Number of samples in a signal; at least two patches and, for the features of the spectrum,
        two seconds.
    patch_size : int
        Number of samples in a patch.
    sfreq : float | None
        Sampling rate in Hz. :func:`~braindecode_pars.pretraining.pretrain_encoder`, the estimators
        and the runs pass that of the windows. It is needed.
    encoder : PatchEncoder | None
        Encoder to train in place. None builds one.
    features : list of str | dict of str to callable | None
        Names in :data:`~braindecode_pars.pretext.features.FEATURES`, or functions by name, such as
        ``{**FEATURES, "range": function}``. A function takes normalised signals, float32 (batch,
        n_times), and ``sfreq``, and returns one or several numbers for each, (batch,) or (batch,
        n). They should be of the order of one. Functions are not saved with an encoder. None means
        all of FEATURES.
    mask_ratio : float
        Share of the patches that is hidden from the encoder, which then has to infer the features
        of the whole signal from the others. At least one patch is visible.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of hidden patches.
    mean, scale : Tensor, shape (n_features,)
        Mean and standard deviation of the features, from :meth:`prepare`; 0 and 1 before. They are
        saved with the task.

    Raises
    ------
    ValueError
        When the sampling rate is missing or too low, an argument is out of range, a feature is
        unknown or not finite, or the signals are too short.
    TypeError
        When an argument or what a function returns has the wrong type.

    Warns
    -----
    UserWarning
        When bands end above half the sampling rate, and are left out.

    References
    ----------
    Pascual et al. 2019, Learning problem-agnostic speech representations from multiple
    self-supervised tasks (PASE), arXiv:1904.03416. Grieger et al. 2024, Data-efficient sleep
    staging with synthetic time series pretraining, arXiv:2403.08592.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SignalFeatures
    >>> task = SignalFeatures(3000, 100, sfreq=100, embed_dim=32, num_layers=1)
    >>> task.prepare(lambda n: torch.randn(n, 3000))
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> prediction.shape, target.shape
    (torch.Size([2, 31]), torch.Size([2, 31]))
    """

    criterion = nn.MSELoss

    #: Targets are limited to this number of standard deviations.
    LIMIT = 5.0

    #: Number of signals that mean and standard deviation are computed from.
    N_PREPARED = 2000

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        sfreq: float | None = None,
        encoder: PatchEncoder | None = None,
        features: Iterable[str] | Mapping[str, Callable[[Tensor, float], Tensor]] | None = None,
        mask_ratio: float = 0.0,
        **encoder_arguments: Any,
    ):
        check_parameters(locals(), _RULES, type(self).__name__)
        given = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, **given)
        if sfreq is None:
            raise ValueError(
                f"{type(self).__name__} needs the sampling rate of the signals, which is unknown; "
                'pass sfreq= in Hz, or pretext_params={"sfreq": ...} in an estimator.'
            )
        self.sfreq = float(sfreq)
        features = FEATURES if features is None else features
        if not features:
            raise ValueError("features is empty; name at least one, or None for all.")
        if not isinstance(features, Mapping):
            if unknown := [repr(name) for name in features if name not in [*FEATURES]]:
                raise ValueError(
                    f"Unknown features {listed(unknown)}; known are {listed(list(FEATURES))}. A "
                    "dict of functions adds others."
                )
            features = {name: FEATURES[name] for name in features}
        self.features = dict(features)
        # How many numbers each function returns.
        noise = torch.randn(2, self.n_times, generator=torch.Generator().manual_seed(0))
        self._sizes = {name: part.shape[1] for name, part in self._parts(noise).items()}
        left_out = [f"{low:g} to {high:g} Hz" for low, high in BANDS if high > self.sfreq / 2]
        if bands in self.features.values() and left_out:
            warn_user(
                f"{type(self).__name__} leaves out the bands {listed(left_out)}: signals at "
                f"{self.sfreq:g} Hz have no frequencies above {self.sfreq / 2:g} Hz."
            )
        n_features = sum(self._sizes.values())
        self.head = nn.Linear(self.encoder.embed_dim, n_features)
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def prepare(self, draw: Callable[[int], Tensor]) -> None:
        """Set mean and standard deviation of the features to those of random signals.

        Parameters
        ----------
        draw : callable
            As in :meth:`PretextTask.prepare <braindecode_pars.pretext.PretextTask.prepare>`; 2,000
            signals are drawn.

        Raises
        ------
        ValueError
            When a feature is not finite in a signal. The message names the feature.
        """
        signals = draw(self.N_PREPARED).to(self.mean.device)
        # In parts, since a spectrum takes more memory than its signal.
        parts = [self.measured(self.normalized(part)) for part in signals.split(256)]
        found = torch.cat(parts).cpu().double()
        for name, values in zip(
            self._sizes, found.split(list(self._sizes.values()), 1), strict=True
        ):
            if not values.isfinite().all():
                raise ValueError(f"The feature {name!r} is NaN or infinite in some signals.")
        scale, mean = torch.std_mean(found, dim=0, correction=0)
        self.mean.copy_(mean)
        self.scale.copy_(scale + 1e-4)  # a feature that is always the same stays finite

    def measured(self, x: Tensor) -> Tensor:
        """Return the features as they are.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Normalised signals.

        Returns
        -------
        Tensor of float32 (float64 for float64 signals), shape (batch, n_features)
            Features in their units, in the order of their names.
        """
        return torch.cat(list(self._parts(x).values()), dim=1)

    @torch.no_grad()
    def _parts(self, x: Tensor) -> dict[str, Tensor]:
        """Return what each function returns, shape (batch, n)."""
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        found = {}
        with torch.autocast(x.device.type, enabled=False):
            for name, function in self.features.items():
                part = function(x, self.sfreq)
                if not isinstance(part, Tensor) or part.ndim not in (1, 2) or len(part) != len(x):
                    what = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
                    raise TypeError(
                        f"The feature {name!r} returned {what} for {len(x)} signals; a function "
                        "returns a tensor of shape (batch,) or (batch, n)."
                    )
                found[name] = part.to(x.dtype).reshape(len(x), -1)
        return found

    def predict(self, patches: Tensor) -> Tensor:
        """Return the predicted features, standardised.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalised patches in chronological order. With ``mask_ratio`` above 0, random ones of
            each signal are hidden.

        Returns
        -------
        Tensor, shape (batch, n_features)
            Predictions.
        """
        if not self.n_masked:
            tokens = self.encoder.tokenize(patches)
            features = self.encoder(tokens + self.positions(tokens))
        else:
            visible = self.random_order(patches)[:, self.n_masked :]
            tokens = self.encoder.tokenize(take(patches, visible))
            features = self.encoder(tokens + self.positions(tokens)[visible])
        return self.head(features.mean(dim=1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true features.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Signals in any unit.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_features)
            Standardised features.
        """
        x = self.normalized(x)
        target = (self.measured(x) - self.mean) / self.scale
        prediction = self.predict(grid_patches(x, self.patch_size))
        return prediction.to(target.dtype), target.clamp(-self.LIMIT, self.LIMIT)

    def chance_loss(self) -> float:
        """Return 1, the variance of a standardised feature: the loss of predicting its mean.

        Features with values beyond five standard deviations are limited, and have a little less.
        """
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the loss of each entry of the features, relative to chance.

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar losses by name, such as ``"bands"``.
        """
        errors = (prediction - target).square().split(list(self._sizes.values()), dim=1)
        return {name: part.mean() for name, part in zip(self._sizes, errors, strict=True)}
