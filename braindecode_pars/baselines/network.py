"""NetworkClassifier: a braindecode model, trained as PARSClassifier fine-tunes its network.

It is trained from scratch, or begins with published weights.
"""

from __future__ import annotations

import inspect
import logging
import os
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
from einops import EinopsError
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, computing, settings
from braindecode_pars.baselines import foundation
from braindecode_pars.estimators import (
    embedder,
    fine_tuning,
    windows_classifier,
    windows_estimator,
)
from braindecode_pars.pretrained import cards
from braindecode_pars.windows import Windows, amplitudes, labels
from braindecode_pars.windows.preprocessing import Preprocessing

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassifier(windows_classifier.WindowsClassifier):
    """A braindecode model, trained on labeled windows from scratch or from published weights.

    This classifier is a baseline for :class:`~braindecode_pars.PARSClassifier`. Both share the
    optimizer, the class weights, the internal validation, the restoring of the best state and
    the accepted types of windows. From scratch, all signals are divided by one number, the root
    mean square of the training windows. Models made for microvolts then also work with volts. With
    ``weights``, they are brought to what the model was pretrained on.

    Parameters
    ----------
    network : str | type
        Name or class of a braindecode model, such as ``"EEGNet"`` or ``"ShallowFBCSPNet"``.
    network_params : dict | callable | None
        Further arguments of the model, or a function that returns them for a sampling rate in Hz,
        for lengths in samples that stand for a time.
    weights : path | str | None
        Published weights of the network: a file (``.safetensors``, or ``.pt`` with nothing but
        tensors), a folder of ``save_pretrained``, or a model of the Hugging Face Hub:
        ``"hf://owner/name"`` downloads it, ``"owner/name"`` uses an earlier download. The last
        layer is new.
    input_format : InputFormat | None
        The input that the weights were trained on. None takes that of
        :data:`~braindecode_pars.models.FOUNDATION_MODELS`; other networks need one.
    freeze_encoder, head_epochs : bool | "auto", int | "auto"
        Whether the weights stay as they are, and the last layer alone is trained; and number of
        epochs at the beginning in which they do. ``"auto"`` freezes them, unless ``head_epochs``
        is given. Frozen layers are in evaluation mode, without dropout.
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
    load_report_ : LoadReport
        Tensors that were loaded, and those that were not. Only present with ``weights``.
    fine_tuning_ : dict
        ``freeze_encoder`` and ``head_epochs`` as they were in the fit, and ``encoder_lr_factor=1``.
    encoder_card_ : EncoderCard
        Says that the subjects of the pretraining are unknown. Only present with ``weights``.
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
        "network": checks.instance("the name or the class of a braindecode model", str, type),
        "network_params": checks.optional(
            checks.instance(
                "a dict of arguments, or a function of the sampling rate", dict, FunctionType
            )
        ),
        "weights": checks.optional(
            checks.instance("a path, or the name of a model", str, os.PathLike)
        ),
        "input_format": checks.optional(checks.instance("an InputFormat", foundation.InputFormat)),
    }

    network: str | type[torch.nn.Module] = field(default="EEGNet", kw_only=False)
    network_params: dict[str, Any] | Callable[[float], dict[str, Any]] | None = None
    weights: str | Path | None = None
    input_format: foundation.InputFormat | None = None
    freeze_encoder: bool | str = checks.AUTO
    head_epochs: int | str = checks.AUTO
    sfreq: float | None = None
    preprocessing: Preprocessing | dict[str, Any] | None = None
    channels: list[str] | None = None
    finetune_epochs: int | None = None
    finetune_batch_size: int = 32
    finetune_lr: float = 1e-3
    finetune_warmup: float | None = 0.1
    gradient_clip: float | None = 1.0
    label_smoothing: float = 0.0
    weight_decay: float = settings.WEIGHT_DECAY
    augmentation: Any = None
    class_weight: str | dict | None = "balanced"
    validation: float | str = 0.0
    unlabeled_label: Any = "auto"
    callbacks: list | None = None
    device: str = "auto"
    random_state: Any = None
    verbose: int = 1

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> NetworkClassifier:
        """Train on the labeled windows.

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
            For the same windows and labels as in PARSClassifier; when ``network`` is not a
            braindecode model, or does not accept windows of this shape. With ``weights``, when
            they are not of this network; when the rate of the windows is unknown, or their unit,
            length or channels are not what the network can have.
        FileNotFoundError
            When there are no such weights.
        ImportError
            When a download needs a package that is not installed.
        KeyboardInterrupt
            After Ctrl-C. The weights trained so far are kept.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            As :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
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

    def _given_card(self) -> cards.EncoderCard | None:
        """Card of the weights, whose subjects are unknown; None without weights.

        A file that cannot be loaded fails here, before a protocol trains other methods.
        """
        if self.weights is None:
            return None
        foundation.read_weights(self.weights, _model_class(self.network))
        return cards.unknown_card(self)

    def _begin(
        self, X: Any, y: Any, groups: Any, *, seeds: windows_estimator.Seeds
    ) -> tuple[Windows, Windows | None]:
        """Read the labeled windows, hold some out, and build the net."""
        network = _model_class(self.network)  # refused before windows are read
        if self.weights is not None:
            foundation.input_format_of(network, self.input_format)
        windows = windows_classifier.read_labeled(self, X, y, groups)
        windows = windows[windows.labels >= 0]
        windows_estimator.remember_windows(self, windows)
        self.sfreq_ = windows.sfreq
        self.preprocessing_ = windows_estimator.preprocessing_of(self, windows)
        train, valid = labels.hold_out(windows, self.validation, seeds.split)
        if self.weights is None:  # the scale is that of the training windows only
            signal = dict(n_chans=self.n_chans_, n_times=self.n_times_, sfreq=self.sfreq_)
            module = self._network(signal, {}, root_mean_square(train))
        else:
            module = self._build_pretrained(train)
        self.net_ = fine_tuning.fine_tuning_net(
            self, module, train, valid, seed=seeds.augmentation, frozen=module.loaded
        )
        return train, valid

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> embedder.TrainingCost:
        """Return what ``fit`` would cost, without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Trained parameters and steps.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As :meth:`fit`, before it trains.
        """
        with windows_estimator.without_training(self) as (clf, seeds):
            train, _ = clf._begin(X, y, groups, seeds=seeds)
            net, module = clf.net_, clf.net_.module_
            trained = {name: p.numel() for name, p in module.named_parameters() if p.requires_grad}
            if fine_tuning.frozen_epochs(clf.fine_tuning_) >= net.max_epochs:
                trained |= dict.fromkeys(module.loaded, 0)
            return embedder.TrainingCost(sum(trained.values()), 0, fine_tuning.n_steps(net, train))

    def _build_pretrained(self, train: Windows) -> ScaledNetwork:
        """Return the network with the weights of the file, for windows like those of ``fit``."""
        network, scale = _model_class(self.network), self.preprocessing_.scale or 1.0
        tensors, architecture = foundation.read_weights(self.weights or "", network)
        wanted = foundation.input_format_of(network, self.input_format, tensors)
        foundation.check_volts(amplitudes.amplitude_range(train), scale)
        prepare = foundation.Prepare(
            wanted, self.sfreq_, [c["ch_name"] for c in self.chs_info_ or ()]
        )
        signal = prepare.signal(self.n_chans_, self.n_times_)
        defaults = {**architecture, **wanted.network_params}
        module = self._network(signal, defaults, wanted.volts * scale, prepare)
        self.load_report_ = foundation.load_network(module.network, tensors, self.weights)
        self.encoder_card_ = cards.unknown_card(self)
        if self.verbose:
            log.info(
                "%s from %s: %s. Windows: %s. It was pretrained on %s; whether on people of these "
                "windows is unknown.",
                *(network.__name__, self.weights, self.load_report_, prepare, wanted.corpus),
            )
        params = {name for name, p in module.network.named_parameters() if p.requires_grad}
        module.loaded = [f"network.{name}" for name in self.load_report_.loaded if name in params]
        return module

    def _network(self, signal: dict, defaults: dict, *prepared: Any) -> ScaledNetwork:
        """Return the network with the scale, and further preparation, of its windows.

        ``network_params`` win over the defaults.
        """
        model_class, n_outputs = _model_class(self.network), len(self.classes_)
        params: Any = self.network_params
        if callable(params):
            if signal["sfreq"] is None:
                raise ValueError("network_params is a function of the sampling rate; pass sfreq.")
            params = params(signal["sfreq"])
        try:
            arguments = dict(n_outputs=n_outputs, **signal, **{**defaults, **(params or {})})
            return ScaledNetwork(model_class, arguments, *prepared)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{model_class.__name__} cannot be built for windows of {self.n_chans_} channels "
                f"and {self.n_times_} samples: {error}"
            ) from error

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
                    raise ValueError(f"These windows have shape {shape}, those of fit {fitted}.")
                logits.append(module(torch.from_numpy(batch).to(module.scale.device)).cpu())
        return windows_estimator.check_finite(torch.cat(logits))


class ScaledNetwork(torch.nn.Module):
    """A network whose input signals are divided by a constant, and prepared further.

    A copy or a pickle stores the constructor arguments and the tensors, and builds the network
    again. torch cannot pickle the parametrized layers of some braindecode models. In a copy,
    nothing is frozen.

    Parameters
    ----------
    model_class : type[nn.Module]
        Class of the network.
    arguments : dict
        Arguments of ``model_class``.
    scale : float
        Divisor of the signals.
    prepare : Prepare | None
        What is done to the signals then.
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
        with warnings.catch_warnings():  # some models use defaults that braindecode deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            # Labram warns when a recording has not all of its 128 channels.
            warnings.filterwarnings("ignore", "Labram chs_info")
            self.network = model_class(**arguments).float()
        self.scale: torch.Tensor
        self.register_buffer("scale", torch.tensor(scale))
        self.prepare = prepare
        self._takes_names = "ch_names" in inspect.signature(self.network.forward).parameters
        #: Parameters that have published weights
        self.loaded: list[str] = []

    def train(self, mode: bool = True) -> ScaledNetwork:
        """Set the mode of training; frozen layers stay in evaluation mode."""
        super().train(mode)
        if mode and self.loaded and not self.get_parameter(self.loaded[0]).requires_grad:
            self.network.eval()
            self.network.get_submodule(foundation.HEAD).train()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits: (batch, n_chans, n_times) -> (batch, n_outputs).

        Raises
        ------
        ValueError
            When the network does not accept windows of this shape, or returns something else.
        """
        x, names = x / self.scale, {}
        if self.prepare is not None:
            x = self.prepare(x)
            names = {"ch_names": self.prepare.names} if self._takes_names else {}
        try:
            logits = self.network(x, **names)
        except EinopsError as error:
            raise ValueError(
                f"{type(self.network).__name__} does not accept windows of {x.shape[1]} channels "
                f"and {x.shape[2]} samples; cut windows of a multiple of its patch, or pass its "
                f"network_params. {error}"
            ) from error
        needed = len(x), self.constructor_arguments[1]["n_outputs"]
        shape = getattr(logits, "shape", type(logits).__name__)
        if shape != needed:
            raise ValueError(
                f"{type(self.network).__name__} returns {shape}, not logits of the shape {needed}: "
                "one for each window and class; pass its network_params, or another network."
            )
        return logits

    def __reduce__(self) -> tuple:
        return _rebuild, (self.constructor_arguments, self.state_dict(), self.training)


def _rebuild(
    constructor_arguments: tuple, tensors: dict[str, torch.Tensor], mode: bool
) -> ScaledNetwork:
    # The initial weights are replaced below. Drawing them must not advance the global generator.
    with computing.seeded(0):
        network = ScaledNetwork(*constructor_arguments)
    device = tensors["scale"].device
    network.to(device).load_state_dict(tensors)
    return network.train(mode)


def root_mean_square(windows: Windows) -> float:
    """Return the root mean square of all samples of all windows; 1 when all samples are zero."""
    squares = np.mean(
        [np.mean(window.astype(float) ** 2) for batch in windows.batches(64) for window in batch]
    )
    return float(np.sqrt(squares)) or 1.0


def _model_class(network: str | type) -> type[torch.nn.Module]:
    model = getattr(braindecode.models, network, None) if isinstance(network, str) else network
    if not (isinstance(model, type) and issubclass(model, EEGModuleMixin)):
        raise ValueError(
            f"network={network!r} is not a braindecode model; pass the name or the class of one, "
            "such as 'EEGNet' (see braindecode.models)."
        )
    return model
