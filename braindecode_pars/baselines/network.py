"""NetworkClassifier: train a braindecode model from scratch, or fine-tune published weights.

The training procedure is the same as in the fine-tuning of PARSClassifier.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

import braindecode.models
import numpy as np
import torch
from braindecode.models.base import EEGModuleMixin
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, computing, settings
from braindecode_pars.baselines import foundation, window_features
from braindecode_pars.estimators import (
    embedder,
    fine_tuning,
    windows_classifier,
    windows_estimator,
)
from braindecode_pars.pretrained import cards
from braindecode_pars.windows import Windows, amplitudes, labels

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassifier(windows_classifier.WindowsClassifier):
    """Classifier that trains a braindecode model from scratch, or from published weights.

    This classifier is a baseline for :class:`~braindecode_pars.PARSClassifier`. Both classifiers
    use the same optimizer, class weights and internal validation, restore the weights of the epoch
    with the lowest validation loss, and accept the same types of windows. If the model is trained
    from scratch, all signals are divided by a constant, the root mean square of the training
    windows, so that models that were designed for microvolts also work with volts. With
    ``weights``, the signals are converted to the input format in which the model was pretrained.

    Parameters
    ----------
    network : str | type
        Name or class of a braindecode model, such as ``"EEGNet"`` or ``"ShallowFBCSPNet"``.
    network_params : dict | callable | None
        Further arguments of the model: a dict, or a function that is called with the sampling rate
        in Hz and returns a dict. Use a function if an argument is a number of samples that depends
        on the sampling rate, such as the length of a kernel.
    weights : path | str | None
        Published weights of the network: a file (``.safetensors``, or ``.pt`` that contains only
        tensors), a folder written by ``save_pretrained``, or a model of the Hugging Face Hub.
        ``"hf://owner/name"`` downloads the model, and ``"owner/name"`` uses a previous download.
        The weights of the last layer are not loaded: this layer is initialized randomly. If None,
        the network is trained from scratch.
    input_format : InputFormat | None
        Input format (sampling rate, unit, channels, ...) for which the weights were trained. If
        None, the input format is looked up in :data:`~braindecode_pars.models.FOUNDATION_MODELS`.
        Required with ``weights`` for networks that are not in this table.
    freeze_encoder, head_epochs : bool | "auto", int | "auto"
        Only used with ``weights``. ``freeze_encoder``: whether all pretrained weights are frozen,
        so that only the last layer is trained. ``head_epochs``: number of initial epochs in which
        only the last layer is trained. By default (both are ``"auto"``), the pretrained weights are
        frozen. If only ``head_epochs`` is set, they are trained after these epochs. Frozen layers
        are in evaluation mode, without dropout.
    sfreq : float | None
        Sampling rate in Hz, for inputs without a sampling rate (arrays, lists).
    preprocessing : Preprocessing | dict | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    channels : list of str | None
        As in :class:`~braindecode_pars.PARSClassifier`. If recordings have different channels,
        the channels shared by all recordings are used, and a warning lists the other channels.
    finetune_epochs, finetune_batch_size, finetune_lr, finetune_warmup, gradient_clip, \
label_smoothing, weight_decay
        Training parameters, as in :class:`~braindecode_pars.PARSClassifier`.
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
        Losses of training, one row per epoch.
    load_report_ : LoadReport
        Report of the tensors that were loaded or not loaded. Only present with ``weights``.
    fine_tuning_ : dict
        Values of ``freeze_encoder`` and ``head_epochs`` that were used: ``"auto"`` is replaced with
        the selected value. A third entry, ``encoder_lr_factor``, is always 1.
    encoder_card_ : EncoderCard
        Metadata of the published weights. The pretraining subjects are None, because they are
        unknown. Only present with ``weights``.
    sfreq_, preprocessing_, amplitudes_, transitions_, n_chans_, n_times_, chs_info_
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

    _own_rules = {  # noqa: RUF012
        "network_params": checks.optional(
            checks.instance(
                "a dict of arguments, or a function of the sampling rate in Hz that returns a dict",
                dict,
                FunctionType,
            )
        ),
        "input_format": checks.optional(checks.instance("an InputFormat", foundation.InputFormat)),
    }

    network: str | type[torch.nn.Module] = field(default="EEGNet", kw_only=False)
    network_params: dict[str, Any] | Callable[[float], dict[str, Any]] | None = None
    weights: str | Path | None = None
    input_format: foundation.InputFormat | None = None
    freeze_encoder: bool | str = checks.AUTO
    head_epochs: int | str = checks.AUTO
    finetune_epochs: int | None = None
    finetune_batch_size: int = 32
    finetune_lr: float = 1e-3
    finetune_warmup: float | None = 0.1
    gradient_clip: float | None = 1.0
    label_smoothing: float = 0.0
    weight_decay: float = settings.WEIGHT_DECAY
    augmentation: Any = None
    validation: float | str = 0.0
    callbacks: list | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> NetworkClassifier:
        """Train the network on the labeled windows.

        Parameters
        ----------
        X, y, groups
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.

        Returns
        -------
        NetworkClassifier
            The fitted classifier itself.

        Raises
        ------
        TypeError, ValueError
            If the windows or labels are invalid, as in PARSClassifier. If ``network`` is not a
            braindecode model. With ``weights``, also if the weights belong to a different
            architecture, if the sampling rate of the windows is unknown, or if the network does not
            accept the unit, the length or the channels of the windows. Errors of the network are
            also raised.
        FileNotFoundError
            If ``weights`` does not exist.
        ImportError
            If a download requires a package that is not installed.
        KeyboardInterrupt
            After Ctrl-C. The estimator keeps the weights trained so far.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        """
        with windows_estimator.seeded_fit(self) as seeds:
            train, valid = self._begin(X, y, groups, seeds=seeds)
            self.amplitudes_ = amplitudes.amplitude_range(train, compare=True)
            fine_tuning.fine_tune(self.net_, train, valid)
            fine_tuning.warn_of_fine_tuning(self, train, valid)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_") and len(self.net_.history) > 0

    history_ = property(windows_estimator.fitted_history)

    def _pretrained_card(self) -> cards.EncoderCard | None:
        """Return the encoder card of the weights, with unknown subjects; None without ``weights``.

        If the file of the weights cannot be read, the error is raised here, before an evaluation
        protocol trains other methods.
        """
        if self.weights is None:
            return None
        foundation.read_weights(self.weights, _model_class(self.network))
        return cards.unknown_card(self)

    def _begin(
        self, X: Any, y: Any, groups: Any, *, seeds: windows_estimator.Seeds
    ) -> tuple[Windows, Windows | None]:
        """Read the labeled windows, hold out validation windows, and build the net."""
        windows = self._read_labeled(X, y, groups)
        windows = windows[windows.labels >= 0]
        self.n_chans_, self.n_times_ = windows_estimator.check_fit_windows(windows)
        self.chs_info_, self.sfreq_ = windows.chs_info, windows.sfreq
        self.preprocessing_ = windows_estimator.preprocessing_of(
            self, windows, self.sfreq_, self.n_times_
        )
        train, valid = labels.hold_out(windows, self.validation, seeds.split)
        if self.weights is None:  # the scale is computed from the training windows only
            signal = dict(n_chans=self.n_chans_, n_times=self.n_times_, sfreq=self.sfreq_)
            module = self._network(signal, {}, root_mean_square(train))
        else:
            module = self._build_pretrained(train)
        self.fine_tuning_ = fine_tuning.chosen_settings(vars(self), train)
        self.net_ = fine_tuning.fine_tuning_net(
            self, module, train, valid, seed=seeds.augmentation, frozen=module.loaded
        )
        return train, valid

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> embedder.TrainingCost:
        """Return the training cost of ``fit`` (trained weights and steps), without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Number of trained weights and number of training steps (``finetuning_steps``).
            ``pretraining_steps`` is 0, also with ``weights``.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            In the cases in which :meth:`fit` raises an error before training.
        """
        with windows_estimator.without_training(self) as (clf, seeds):
            train, _ = clf._begin(X, y, groups, seeds=seeds)
            net, module = clf.net_, clf.net_.module_
            trained = {name: p.numel() for name, p in module.named_parameters() if p.requires_grad}
            if fine_tuning.frozen_epochs(clf.fine_tuning_) >= net.max_epochs:
                trained |= dict.fromkeys(module.loaded, 0)
            return embedder.TrainingCost(sum(trained.values()), 0, fine_tuning.n_steps(net, train))

    def _build_pretrained(self, train: Windows) -> ScaledNetwork:
        """Build the network for the windows of ``fit``, and load the published weights."""
        network, scale = _model_class(self.network), self.preprocessing_.scale or 1.0
        tensors, architecture = foundation.read_weights(self.weights or "", network)
        input_format = foundation.input_format_of(network, self.input_format, tensors)
        foundation.check_volts(amplitudes.amplitude_range(train), scale)
        prepare = foundation.Prepare(
            input_format, self.sfreq_, [c["ch_name"] for c in self.chs_info_ or ()]
        )
        signal = prepare.signal(self.n_chans_, self.n_times_)
        defaults = {**architecture, **input_format.network_params}
        module = self._network(signal, defaults, input_format.volts * scale, prepare)
        self.load_report_ = foundation.load_network(module.network, tensors, self.weights)
        self.encoder_card_ = cards.unknown_card(self)
        if self.verbose:
            log.info("Published weights (%s): %s.", self.weights, self.load_report_)
            log.info("Windows sampled at %g Hz are converted to %s.", self.sfreq_, input_format)
        params = {name for name, p in module.network.named_parameters() if p.requires_grad}
        module.loaded = [f"network.{name}" for name in self.load_report_.loaded if name in params]
        return module

    def _network(
        self,
        signal: dict[str, Any],
        defaults: dict[str, Any],
        scale: float,
        prepare: foundation.Prepare | None = None,
    ) -> ScaledNetwork:
        """Return the network with scaling of the input and, for published weights, conversion.

        ``network_params`` take precedence over ``defaults``.
        """
        params: Any = self.network_params or {}
        if callable(params):
            params = params(window_features.known_rate(signal["sfreq"]))
        arguments = dict(n_outputs=len(self.classes_), **signal, **{**defaults, **params})
        return ScaledNetwork(_model_class(self.network), arguments, scale, prepare)

    def _outputs(self, X: Any, groups: Any = None) -> torch.Tensor:
        check_is_fitted(self)
        windows = windows_estimator.read_to_predict(self, X)
        if self.weights is not None:
            foundation.check_volts(
                amplitudes.amplitude_range(windows), self.preprocessing_.scale or 1.0
            )
        module = self.net_.module_.eval()
        logits = []
        with computing.usual_torch(gradients=False):
            for batch in windows.batches(64):
                if (shape := batch.shape[1:]) != (fitted := (self.n_chans_, self.n_times_)):
                    raise ValueError(
                        f"X has windows of {shape[0]} channels and {shape[1]} samples, but "
                        f"NetworkClassifier was fitted on windows of {fitted[0]} channels and "
                        f"{fitted[1]} samples. Create windows with the same channels and the same "
                        "length as in fit."
                    )
                logits.append(module(torch.from_numpy(batch).to(module.scale.device)).cpu())
        return windows_estimator.check_finite(torch.cat(logits))


class ScaledNetwork(torch.nn.Module):
    """Network whose input is divided by a constant and, for published weights, converted.

    A copy or a pickle contains the constructor arguments and the tensors, from which the network is
    rebuilt, because torch cannot pickle the parametrized layers of some braindecode models. In a
    copy, no layer is frozen.

    Parameters
    ----------
    model_class : type[nn.Module]
        Class of the network.
    arguments : dict
        Arguments of ``model_class``.
    scale : float
        Divisor of the signals.
    prepare : Prepare | None
        Conversion of the scaled signals to the input format of published weights.
    """

    def __init__(
        self,
        model_class: type[torch.nn.Module],
        arguments: dict[str, Any],
        scale: float,
        prepare: foundation.Prepare | None = None,
    ):
        super().__init__()
        self.constructor_arguments = (model_class, arguments, scale, prepare)
        with warnings.catch_warnings():  # some models use defaults that braindecode has deprecated
            warnings.simplefilter("ignore", DeprecationWarning)
            # Labram issues a warning if the windows do not have all of the 128 channels of the
            # model.
            warnings.filterwarnings("ignore", "Labram chs_info")
            self.network = model_class(**arguments).float()
        self.scale: torch.Tensor
        self.register_buffer("scale", torch.tensor(scale))
        self.prepare = prepare
        self._accepts_names = "ch_names" in inspect.signature(self.network.forward).parameters
        #: Names of the parameters that were loaded from published weights
        self.loaded: list[str] = []

    def train(self, mode: bool = True) -> ScaledNetwork:
        """Set training or evaluation mode; frozen layers always remain in evaluation mode."""
        super().train(mode)
        if mode and self.loaded and not self.get_parameter(self.loaded[0]).requires_grad:
            self.network.eval()
            self.network.get_submodule(foundation.HEAD).train()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits: (batch, n_chans, n_times) -> (batch, n_outputs)."""
        x, names = x / self.scale, {}
        if self.prepare is not None:
            x = self.prepare(x)
            names = {"ch_names": self.prepare.names} if self._accepts_names else {}
        return self.network(x, **names)

    def __reduce__(self) -> tuple:
        return _rebuild, (self.constructor_arguments, self.state_dict(), self.training)


def _rebuild(
    constructor_arguments: tuple, tensors: dict[str, torch.Tensor], mode: bool
) -> ScaledNetwork:
    # Do not change the global random state: the initial weights are replaced below.
    with computing.seeded(0):
        network = ScaledNetwork(*constructor_arguments)
    device = tensors["scale"].device
    network.to(device).load_state_dict(tensors)
    return network.train(mode)


def root_mean_square(windows: Windows) -> float:
    """Return the root mean square of all samples of all windows, or 1 if all samples are zero."""
    squares = np.mean(
        [np.mean(window.astype(float) ** 2) for batch in windows.batches(64) for window in batch]
    )
    return float(np.sqrt(squares)) or 1.0


def _model_class(network: str | type) -> type[torch.nn.Module]:
    model = getattr(braindecode.models, network, None) if isinstance(network, str) else network
    if not (isinstance(model, type) and issubclass(model, EEGModuleMixin)):
        raise ValueError(
            f"network must be the name or the class of a braindecode model, got {network!r}. Pass "
            "a model in braindecode.models, such as 'EEGNet'."
        )
    return model
