"""NetworkClassifier: a braindecode model, trained as PARSClassifier fine-tunes its network."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import braindecode.models
import numpy as np
import pandas as pd
import torch
from braindecode.models.base import EEGModuleMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from braindecode_pars._common.seeding import drawing, seeded
from braindecode_pars._common.settings import WEIGHT_DECAY
from braindecode_pars._common.training import history_frame
from braindecode_pars.estimators.costs import (
    TrainingCost,
    network_cost,
    unfitted,
    without_warnings,
)
from braindecode_pars.estimators.fine_tuning import (
    FineTuningNet,
    fine_tune,
    fine_tuning_net,
    steps_of_fine_tuning,
    warn_of_fine_tuning,
)
from braindecode_pars.estimators.logits import LogitClassifier
from braindecode_pars.estimators.parameters import check_parameters
from braindecode_pars.estimators.windows_estimator import (
    Seeds,
    WindowsEstimator,
    check_finite,
    fresh_fit,
    preprocessing_of,
    read_labeled,
    read_to_predict,
    seeded_fit,
)
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.windows.amplitudes import amplitude_range, warn_of_amplitudes
from braindecode_pars.windows.held_out import hold_out
from braindecode_pars.windows.labels import cross_entropy_weights, that_weigh
from braindecode_pars.windows.table import Windows


class NetworkClassifier(LogitClassifier, WindowsEstimator):
    """A braindecode model, trained from scratch on labelled windows.

    This classifier is a baseline for :class:`~braindecode_pars.PARSClassifier`. Both share the
    optimiser, the class weights, the internal validation, the restoring of the best state and
    the accepted types of windows. All signals are divided by one number, the root mean square of
    the training windows. Models made for microvolts then also work with volts.

    Parameters
    ----------
    network : str | type
        Name or class of a braindecode model, such as ``"EEGNet"`` or ``"ShallowFBCSPNet"``.
    network_params : dict | callable | None
        Further arguments of the model, or a function that returns them for a sampling rate in Hz,
        for lengths in samples that stand for a time.
    sfreq : float | None
        Sampling rate in Hz, for windows without one (arrays, lists).
    preprocessing : Preprocessing | dict | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    channels : list of str | None
        As in :class:`~braindecode_pars.PARSClassifier`. Recordings with different channels are
        fitted on their common channels, and a warning lists the others.
    finetune_epochs, finetune_batch_size, finetune_lr, finetune_warmup, gradient_clip, \
label_smoothing, weight_decay
        Settings of training, named as in :class:`~braindecode_pars.PARSClassifier`.
    augmentation, class_weight, validation, unlabeled_label, callbacks, device, random_state, \
verbose
        As in :class:`~braindecode_pars.PARSClassifier`.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    class_names_ : dict of label to str | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    net_ : skorch.NeuralNetClassifier
        Trained net.
    history_ : pandas.DataFrame
        Losses, one row per epoch.
    sfreq_, preprocessing_, amplitudes_, n_chans_, n_times_, chs_info_
        As in :class:`~braindecode_pars.PARSClassifier`.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.estimators import NetworkClassifier
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> clf = NetworkClassifier("EEGNet", finetune_epochs=1, verbose=0)
    >>> clf.fit(windows).predict(windows).shape == (len(windows),)
    True
    """

    def __init__(
        self,
        network: str | type[nn.Module] = "EEGNet",
        *,
        network_params: dict[str, Any] | Callable[[float], dict[str, Any]] | None = None,
        sfreq: float | None = None,
        preprocessing: Preprocessing | dict[str, Any] | None = None,
        channels: list[str] | None = None,
        finetune_epochs: int | None = None,
        finetune_batch_size: int = 32,
        finetune_lr: float = 1e-3,
        finetune_warmup: float | None = 0.1,
        gradient_clip: float | None = 1.0,
        label_smoothing: float = 0.0,
        weight_decay: float = WEIGHT_DECAY,
        augmentation: Any = None,
        class_weight: str | dict | None = "balanced",
        validation: float | str = 0.0,
        unlabeled_label: Any = "auto",
        callbacks: list | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 1,
    ):
        self.network = network
        self.network_params = network_params
        self.sfreq = sfreq
        self.preprocessing = preprocessing
        self.channels = channels
        self.finetune_epochs = finetune_epochs
        self.finetune_batch_size = finetune_batch_size
        self.finetune_lr = finetune_lr
        self.finetune_warmup = finetune_warmup
        self.gradient_clip = gradient_clip
        self.label_smoothing = label_smoothing
        self.weight_decay = weight_decay
        self.augmentation = augmentation
        self.class_weight = class_weight
        self.validation = validation
        self.unlabeled_label = unlabeled_label
        self.callbacks = callbacks
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> NetworkClassifier:
        """Train on the labelled windows.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.

        Returns
        -------
        NetworkClassifier
            The fitted classifier itself.

        Raises
        ------
        TypeError, ValueError
            For the same windows and labels as in PARSClassifier; when ``network`` is not a
            braindecode model, or does not accept windows of this shape.
        KeyboardInterrupt
            After Ctrl-C. The weights trained so far are kept.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            As :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        """
        check_parameters(self)
        _model_class(self.network)  # before windows are read
        with fresh_fit(self), seeded_fit(self) as seeds:
            windows = self._read(X, y, sample_weight, groups)
            warn_of_amplitudes(windows)
            train, valid = hold_out(windows, self.validation, seeds.split)
            train = that_weigh(train, "training")
            self.amplitudes_ = amplitude_range(train)
            self.net_ = self._build_net(train, valid, seeds)
            fine_tune(self.net_, train, valid)
            warn_of_fine_tuning(self, train, valid)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Windows:
        """Return the labelled windows."""
        windows = read_labeled(self, X, y, groups, sample_weight=sample_weight)
        self.chs_info_ = windows.labeled.chs_info
        self.n_chans_, self.n_times_ = windows.labeled.check()
        self.classes_, self.sfreq_ = windows.classes, windows.labeled.sfreq
        self.preprocessing_ = preprocessing_of(self, windows.labeled)
        self.class_names_ = windows.class_names
        return windows.labeled

    def _build_net(self, train: Windows, valid: Windows | None, seeds: Seeds) -> FineTuningNet:
        model_class = _model_class(self.network)
        scale = root_mean_square(train)  # of training windows only
        with drawing():
            module = self._build(model_class, scale)
        return fine_tuning_net(
            self,
            module,
            class_weights=cross_entropy_weights(
                train.labels, self.classes_, self.class_weight, train.weights
            ),
            n_windows=len(train),
            restore_best=valid is not None,
            augmentation_seed=seeds.augmentation,
        )

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> TrainingCost:
        """Return what ``fit`` would cost, without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Trained parameters, steps, tokens and floating-point operations.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As :meth:`fit`, before it trains.
        """
        clf = unfitted(self)
        with without_warnings():
            check_parameters(clf)
            _model_class(clf.network)
            with seeded_fit(clf) as seeds:
                windows = clf._read(X, y, None, groups)
                train, valid = hold_out(windows, clf.validation, seeds.split)
                train = that_weigh(train, "training")
                net = clf._build_net(train, valid, seeds)
            return network_cost(net, train, steps_of_fine_tuning(net, train))

    def _build(self, model_class: type[nn.Module], scale: float) -> ScaledNetwork:
        signal = dict(
            n_outputs=len(self.classes_),
            n_chans=self.n_chans_,
            n_times=self.n_times_,
            sfreq=self.sfreq_,
        )
        try:
            arguments = dict(**signal, **self._network_params())
            return ScaledNetwork(model_class, arguments, scale)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{model_class.__name__} cannot be built for windows of {self.n_chans_} channels "
                f"and {self.n_times_} samples: {error}"
            ) from error

    def _network_params(self) -> dict[str, Any]:
        params = self.network_params
        if callable(params):
            if self.sfreq_ is None:
                raise ValueError(
                    "network_params is a function of the sampling rate, which is unknown; pass "
                    "sfreq (Hz)."
                )
            params = params(self.sfreq_)
            if not isinstance(params, dict):
                raise TypeError(f"network_params must return a dict, got {params!r}.")
        return params or {}

    @property
    def history_(self) -> pd.DataFrame:
        """Losses, one row per epoch.

        The columns are those of ``PARSClassifier.history_``.
        """
        check_is_fitted(self)
        return history_frame({"fine-tuning": self.net_.history})

    def _logits(self, X: Any, groups: Any = None) -> Tensor:
        check_is_fitted(self)
        windows = read_to_predict(self, X)
        module = self.net_.module_.eval()
        logits = []
        with torch.inference_mode():
            for batch in windows.batches(64):
                if batch.shape[1:] != (self.n_chans_, self.n_times_):
                    raise ValueError(
                        f"These windows have shape {batch.shape[1:]}, but the model was trained "
                        f"on windows of shape ({self.n_chans_}, {self.n_times_})."
                    )
                logits.append(module(torch.from_numpy(batch).to(module.scale.device)).cpu())
        return check_finite(torch.cat(logits))


class ScaledNetwork(nn.Module):
    """A network whose input signals are divided by a constant.

    A copy or a pickle stores the constructor arguments and the tensors, and builds the network
    again. torch cannot pickle the parametrised layers of some braindecode models.

    Parameters
    ----------
    model_class : type[nn.Module]
        Class of the network.
    arguments : dict
        Arguments of ``model_class``.
    scale : float
        Divisor of the signals.
    """

    def __init__(self, model_class: type[nn.Module], arguments: dict[str, Any], scale: float):
        super().__init__()
        self.constructor_arguments = (model_class, arguments, scale)
        with warnings.catch_warnings():  # some models use defaults that braindecode deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            self.network = model_class(**arguments)
        self.scale: Tensor
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits: (batch, n_chans, n_times) -> (batch, n_outputs)."""
        return self.network(x / self.scale)

    def __reduce__(self) -> tuple:
        return _rebuild, (self.constructor_arguments, self.state_dict(), self.training)


def _rebuild(
    constructor_arguments: tuple, tensors: dict[str, Tensor], training: bool
) -> ScaledNetwork:
    # The initial weights are replaced below. Drawing them must not advance the global generator.
    with seeded(0):
        network = ScaledNetwork(*constructor_arguments)
    device = tensors["scale"].device
    network.to(device).load_state_dict(tensors)
    return network.train(training)


def root_mean_square(windows: Windows) -> float:
    """Return the root mean square of all samples of all windows; 1 when all samples are zero."""
    squares = np.mean(
        [np.mean(window.astype(float) ** 2) for batch in windows.batches(64) for window in batch]
    )
    return float(np.sqrt(squares)) or 1.0


def _model_class(network: str | type) -> type[nn.Module]:
    model = getattr(braindecode.models, network, None) if isinstance(network, str) else network
    if not (isinstance(model, type) and issubclass(model, EEGModuleMixin)):
        raise ValueError(
            f"network={network!r} is not a braindecode model; pass the name or the class of one, "
            "such as 'EEGNet' (see braindecode.models)."
        )
    return model
