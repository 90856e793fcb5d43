"""NetworkClassifier: any braindecode model, trained from scratch as PARSClassifier fine-tunes."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import braindecode.models
import numpy as np
import pandas as pd
import torch
from braindecode.augmentation import Transform
from braindecode.models.base import EEGModuleMixin
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from braindecode_pars.device import find_device
from braindecode_pars.estimators.base import COUNT, POSITIVE
from braindecode_pars.estimators.fine_tuning import fine_tuning_net
from braindecode_pars.estimators.history import history_frame
from braindecode_pars.estimators.logits import LogitClassifier, encode_labels
from braindecode_pars.estimators.sanity import finite, refuse_triggers
from braindecode_pars.labels import cross_entropy_weights, hold_out, split_unlabeled
from braindecode_pars.seeding import seeded
from braindecode_pars.window_set import WindowSet, as_window_set

__all__ = ["NetworkClassifier"]


class NetworkClassifier(LogitClassifier, BaseEstimator):
    """A braindecode model trained from scratch, with labels only.

    For comparisons: optimiser, class weights, internal validation, restoring of the best state
    and kinds of input are those of :class:`~braindecode_pars.PARSClassifier`. Signals are divided
    by the root mean square of the training windows, one number for all of them, so that models
    made for microvolts take volts.

    Parameters
    ----------
    network : str | type
        Name or class of a braindecode model, such as ``"EEGNet"`` or ``"ShallowFBCSPNet"``.
    network_params : dict | None
        Further arguments of the model.
    sfreq : float | None
        Sampling rate in Hz, for windows that do not carry one.
    finetune_epochs, finetune_batch_size, finetune_lr, weight_decay
        Of training, named as in PARSClassifier.
    augmentation, class_weight, validation, unlabeled_label, callbacks, device, random_state, \
verbose
        As in PARSClassifier.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels in the order of ``predict_proba``'s columns.
    net_ : skorch.NeuralNetClassifier
        The trained net.
    history_ : pandas.DataFrame
        Losses, one row an epoch.
    sfreq_, n_chans_, n_times_
        As in PARSClassifier.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.estimators import NetworkClassifier
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> clf = NetworkClassifier("EEGNet", finetune_epochs=1, verbose=0)
    >>> clf.fit(windows).predict(windows).shape == (len(windows),)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "network": [str, type],
        "network_params": [dict, None],
        "sfreq": [POSITIVE, None],
        "finetune_epochs": [COUNT],
        "finetune_batch_size": [COUNT],
        "finetune_lr": [POSITIVE],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "augmentation": [Transform, list, None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "validation": [Interval(Real, 0, 1, closed="left")],
        "callbacks": [list, None],
        "device": [str, torch.device],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        network: str | type[nn.Module] = "EEGNet",
        *,
        network_params: dict[str, Any] | None = None,
        sfreq: float | None = None,
        finetune_epochs: int = 30,
        finetune_batch_size: int = 32,
        finetune_lr: float = 1e-3,
        weight_decay: float = 1e-4,
        augmentation: Any = None,
        class_weight: str | dict | None = "balanced",
        validation: float = 0.2,
        unlabeled_label: Any = -1,
        callbacks: list | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 1,
    ):
        self.network = network
        self.network_params = network_params
        self.sfreq = sfreq
        self.finetune_epochs = finetune_epochs
        self.finetune_batch_size = finetune_batch_size
        self.finetune_lr = finetune_lr
        self.weight_decay = weight_decay
        self.augmentation = augmentation
        self.class_weight = class_weight
        self.validation = validation
        self.unlabeled_label = unlabeled_label
        self.callbacks = callbacks
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False  # a windows dataset carries its own
        return tags

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> NetworkClassifier:
        """Train on the labelled windows.

        Parameters
        ----------
        X, y, groups
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.

        Returns
        -------
        NetworkClassifier
            Itself.

        Raises
        ------
        TypeError, ValueError
            For windows and labels as PARSClassifier refuses them, and for a network that is none
            of braindecode's or does not take windows of this shape.
        KeyboardInterrupt
            After Ctrl-C; what was learned until then is kept.
        """
        self._validate_params()
        kind = _model_class(self.network)
        windows = as_window_set(X, y, groups, self.sfreq)
        refuse_triggers(windows.chs_info)
        labeled, _ = split_unlabeled(windows, self.unlabeled_label)
        self.n_chans_, self.n_times_ = labeled.check()
        self.sfreq_ = windows.sfreq
        self.classes_, labeled.y = encode_labels(labeled.y)
        device = find_device(self.device)
        seeds = check_random_state(self.random_state).randint(2**31, size=3).tolist()
        train, valid = hold_out(labeled, self.validation, seeds[0])
        with seeded(seeds[1], device):
            self.net_ = fine_tuning_net(
                self._build(kind, root_mean_square(train)),
                len(self.classes_),
                class_weights=cross_entropy_weights(train.y, self.classes_, self.class_weight),
                valid=valid,
                epochs=self.finetune_epochs,
                lr=self.finetune_lr,
                batch_size=self.finetune_batch_size,
                weight_decay=self.weight_decay,
                augmentation=self.augmentation,
                augmentation_seed=seeds[2],
                callbacks=self.callbacks,
                verbose=self.verbose,
                device=device,
            )
            try:
                self.net_.partial_fit(train, None)
            finally:
                self.net_.train_split = None  # or a pickle would hold the training data
        return self

    def _build(self, kind: type[nn.Module], scale: float) -> ScaledNetwork:
        arguments = dict(
            n_outputs=len(self.classes_),
            n_chans=self.n_chans_,
            n_times=self.n_times_,
            sfreq=self.sfreq_,
            **(self.network_params or {}),
        )
        try:
            return ScaledNetwork(kind, arguments, scale)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{kind.__name__} cannot be built for windows of {self.n_chans_} channels and "
                f"{self.n_times_} samples: {error}"
            ) from error

    @property
    def history_(self) -> pd.DataFrame:
        """Losses, one row an epoch.

        Columns as in ``PARSClassifier.history_``.
        """
        check_is_fitted(self)
        return history_frame({"fine-tuning": self.net_.history})

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_") and len(self.net_.history) > 0

    def _logits(self, X: Any) -> Tensor:
        check_is_fitted(self)
        windows = as_window_set(X)
        if len(windows) == 0:
            raise ValueError("There are no windows: the dataset has length 0.")
        if None not in (windows.sfreq, self.sfreq_) and not np.isclose(windows.sfreq, self.sfreq_):
            raise ValueError(
                f"These windows are sampled at {windows.sfreq:g} Hz, the model at "
                f"{self.sfreq_:g} Hz; resample them first."
            )
        module = self.net_.module_.eval()
        logits = []
        with torch.inference_mode():
            for batch in windows.batches(64):
                if batch.shape[1:] != (self.n_chans_, self.n_times_):
                    raise ValueError(
                        f"These windows have shape {batch.shape[1:]}, the model was trained on "
                        f"({self.n_chans_}, {self.n_times_})."
                    )
                logits.append(module(torch.from_numpy(batch).to(module.scale.device)).cpu())
        return finite(torch.cat(logits))


class ScaledNetwork(nn.Module):
    """A network on signals divided by a number.

    Copies and pickles as its arguments and tensors, because torch refuses to pickle the
    parametrised layers of some of braindecode's models.

    Parameters
    ----------
    kind : type[nn.Module]
    arguments : dict
        Of ``kind``.
    scale : float
    """

    def __init__(self, kind: type[nn.Module], arguments: dict[str, Any], scale: float):
        super().__init__()
        self.recipe = (kind, arguments, scale)
        with warnings.catch_warnings():  # of defaults that braindecode itself retires
            warnings.simplefilter("ignore", DeprecationWarning)
            self.network = kind(**arguments)
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, n_chans, n_times) -> logits (batch, n_outputs)."""
        return self.network(x / self.scale)

    def __reduce__(self) -> tuple:
        return _built_again, (self.recipe, self.state_dict(), self.training)


def _built_again(recipe: tuple, tensors: dict[str, Tensor], training: bool) -> ScaledNetwork:
    with seeded(0):  # its first weights are thrown away; nobody else's draws change
        network = ScaledNetwork(*recipe)
    device = tensors["scale"].device
    network.to(device).load_state_dict(tensors)
    return network.train(training)


def root_mean_square(windows: WindowSet) -> float:
    """Of all samples of all windows; 1 where all are zero."""
    squares = np.mean(
        [np.mean(window.astype(float) ** 2) for batch in windows.batches(64) for window in batch]
    )
    return float(np.sqrt(squares)) or 1.0


def _model_class(network: str | type) -> type[nn.Module]:
    kind = getattr(braindecode.models, network, None) if isinstance(network, str) else network
    if not (isinstance(kind, type) and issubclass(kind, EEGModuleMixin)):
        raise ValueError(
            f"network={network!r} is no braindecode model; it takes the name or class of one, "
            "such as 'EEGNet' (see braindecode.models)."
        )
    return kind
