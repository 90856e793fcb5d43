"""NetworkClassifier: a braindecode model, trained as PARSClassifier fine-tunes its network."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import braindecode.models
import numpy as np
import pandas as pd
import torch
from braindecode.models.base import EEGModuleMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from braindecode_pars._common.seeding import drawing, seeded
from braindecode_pars._common.training import history_frame
from braindecode_pars.estimators.costs import TrainingCost, network_cost
from braindecode_pars.estimators.fine_tuning import fine_tune, fine_tuning_net, warn_of_fine_tuning
from braindecode_pars.estimators.windows_estimator import (
    LogitClassifier,
    Seeds,
    check_finite,
    preprocessing_of,
    read_labelled,
    read_to_predict,
    remember_windows,
    training,
    without_training,
)
from braindecode_pars.windows.amplitudes import amplitude_range
from braindecode_pars.windows.held_out import hold_out
from braindecode_pars.windows.table import Windows


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassifier(LogitClassifier):
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

    network: str | type[nn.Module] = field(default="EEGNet", kw_only=False)
    network_params: dict[str, Any] | Callable[[float], dict[str, Any]] | None = None

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> NetworkClassifier:
        """Train on the labelled windows.

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
            braindecode model, or does not accept windows of this shape.
        KeyboardInterrupt
            After Ctrl-C. The weights trained so far are kept.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            As :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        """
        with training(self) as seeds:
            train, valid = self._begin(X, y, groups, seeds=seeds)
            self.amplitudes_ = amplitude_range(train)
            fine_tune(self.net_, train, valid)
            warn_of_fine_tuning(self, train, valid)
        return self

    def _check(self) -> None:
        super()._check()
        _model_class(self.network)

    def _begin(
        self, X: Any, y: Any, groups: Any, *, seeds: Seeds
    ) -> tuple[Windows, Windows | None]:
        """Read the labelled windows, hold some out, and build the net."""
        windows = read_labelled(self, X, y, groups)
        windows = windows[windows.labels >= 0]
        remember_windows(self, windows)
        self.sfreq_ = windows.sfreq
        self.preprocessing_ = preprocessing_of(self, windows)
        train, valid = hold_out(windows, self.validation, seeds.split)
        scale = root_mean_square(train)  # of training windows only
        with drawing():
            module = self._build(scale)
        self.net_ = fine_tuning_net(self, module, train, valid, seed=seeds.augmentation)
        return train, valid

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
        with without_training(self) as (clf, seeds):
            train, _ = clf._begin(X, y, groups, seeds=seeds)
            return network_cost(clf.net_, train)

    def _build(self, scale: float) -> ScaledNetwork:
        model_class, params = _model_class(self.network), self.network_params
        if callable(params):
            if self.sfreq_ is None:
                raise ValueError("network_params is a function of the sampling rate; pass sfreq.")
            params = params(self.sfreq_)
        signal = dict(
            n_outputs=len(self.classes_),
            n_chans=self.n_chans_,
            n_times=self.n_times_,
            sfreq=self.sfreq_,
        )
        try:
            return ScaledNetwork(model_class, dict(**signal, **(params or {})), scale)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{model_class.__name__} cannot be built for windows of {self.n_chans_} channels "
                f"and {self.n_times_} samples: {error}"
            ) from error

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
                        f"These windows have shape {batch.shape[1:]}, those of fit had "
                        f"({self.n_chans_}, {self.n_times_})."
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
