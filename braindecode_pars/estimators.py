"""PARSClassifier and PARSEmbedder: pretraining and fine-tuning as scikit-learn estimators."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from braindecode.augmentation import AugmentedDataLoader, Transform
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, Freezer
from skorch.helper import predefined_split
from skorch.utils import noop
from torch import nn

from braindecode_pars.callbacks import ProgressLine
from braindecode_pars.electrodes import electrode_positions
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.encoder_estimator import COUNT, POSITIVE, EncoderEstimator
from braindecode_pars.labels import (
    cross_entropy_weights,
    drop_held_out,
    hold_out,
    split_unlabeled,
)
from braindecode_pars.models import PARSNet, embed_signals
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.pretrained import save_encoder, unique_subjects
from braindecode_pars.pretraining import NO_DECAY, NoSilentFailure
from braindecode_pars.window_set import WindowSet, as_window_set

__all__ = ["PARSClassifier", "PARSEmbedder"]


_LOSSES = ("train_loss", "valid_loss", "train_loss_relative")


class FineTuningNet(NoSilentFailure, NeuralNetClassifier):
    """skorch's classifier, which neither swallows Ctrl-C nor trains on after a loss of NaN."""


class PARSClassifier(ClassifierMixin, EncoderEstimator):
    """Pretrain an encoder without labels, then fine-tune it with labels.

    Parameters
    ----------
    pretext : str | type[PretextTask] | PretextTask | None
        Pretext task by name (``"pars"``), class or instance; None trains from scratch.
    pretext_params : dict | None
        Further arguments of the task, for example ``{"position_mask_ratio": 0.6}``.
    encoder : path | fitted estimator, net or model | None
        An encoder that is pretrained already: no further pretraining, and its sizes win over
        ``patch_seconds``, ``embed_dim``, ... below. It is copied, never changed.
    freeze_encoder : bool
        Train only what comes after the encoder.
    sfreq : float | None
        Sampling rate in Hz, for windows that do not carry one (arrays, lists).
    patch_seconds : float
        Length of a patch.
    embed_dim, num_layers, num_heads, mlp_dim : int
        Of the encoder; small by default, ``paper.CLASSIFIER`` has the published ones.
    channel_drop_prob : float
        Probability to drop a channel in fine-tuning.
    electrode_position : bool
        Let the model know where the electrodes are, see :class:`~braindecode_pars.PARSNet`.
    pretrain_epochs, pretrain_batch_size, pretrain_lr : int, int, float
        Of pretraining; the schedule is linear warm-up and cosine annealing.
    finetune_epochs, finetune_batch_size, finetune_lr : int, int, float
        Of fine-tuning, at a constant learning rate.
    weight_decay : float
        Of both.
    augmentation : braindecode Transform | list of Transform | None
        Applied to the training batches of fine-tuning.
    class_weight : "balanced" | dict | None
        Weights of the cross-entropy; ``"balanced"`` is n / (K n_c) of the training labels.
    validation : float
        Share of the subjects (of the windows, stratified by label, where subjects are unknown)
        held out inside ``fit``: not pretrained on, not trained on. The state with the lowest
        validation loss is restored. 0 keeps everything for training and the last state.
    unlabeled_label : hashable
        Windows with this label are used for pretraining only.
    callbacks : list of skorch callbacks | None
        For fine-tuning.
    device : str
        ``"auto"`` takes CUDA, then MPS, then the CPU.
    random_state : int | RandomState | None
        With an int, fitting twice on the CPU gives the same model to the bit.
    verbose : int
        0 is silent, 1 shows a progress bar for each phase.
    checkpoint_dir : path | None
        Folder for the pretrained encoder, written before fine-tuning starts.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels in the order of ``predict_proba``'s columns.
    net_ : skorch.NeuralNetClassifier
        The fine-tuned net; its module is a PARSNet.
    encoder_ : PatchEncoder
        The fine-tuned encoder.
    encoder_card_ : EncoderCard
        What the encoder was pretrained on.
    history_ : pandas.DataFrame
        One row an epoch: ``phase``, ``epoch``, ``train_loss``, ``valid_loss``,
        ``train_loss_relative`` (to chance).
    sfreq_, n_chans_, n_times_, chs_info_
        Of the training windows.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2, sfreq=100)
    >>> clf = PARSClassifier(pretrain_epochs=1, finetune_epochs=1, random_state=0, verbose=0)
    >>> clf.fit(windows).predict_proba(windows).shape[0] == len(windows)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        **EncoderEstimator._parameter_constraints,
        "freeze_encoder": ["boolean"],
        "channel_drop_prob": [Interval(Real, 0, 1, closed="left")],
        "electrode_position": ["boolean"],
        "finetune_epochs": [COUNT],
        "finetune_batch_size": [COUNT],
        "finetune_lr": [POSITIVE],
        "augmentation": [Transform, list, None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "validation": [Interval(Real, 0, 1, closed="left")],
        "callbacks": [list, None],
    }

    def __init__(
        self,
        pretext: str | type[PretextTask] | PretextTask | None = "pars",
        *,
        pretext_params: dict[str, Any] | None = None,
        encoder: Any = None,
        freeze_encoder: bool = False,
        sfreq: float | None = None,
        patch_seconds: float = 1.0,
        embed_dim: int = 64,
        num_layers: int = 2,
        num_heads: int = 4,
        mlp_dim: int = 128,
        channel_drop_prob: float = 0.5,
        electrode_position: bool = False,
        pretrain_epochs: int = 50,
        pretrain_batch_size: int = 64,
        pretrain_lr: float = 4e-3,
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
        checkpoint_dir: str | Path | None = None,
    ):
        self.pretext = pretext
        self.pretext_params = pretext_params
        self.encoder = encoder
        self.freeze_encoder = freeze_encoder
        self.sfreq = sfreq
        self.patch_seconds = patch_seconds
        self.embed_dim = embed_dim
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.channel_drop_prob = channel_drop_prob
        self.electrode_position = electrode_position
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_lr = pretrain_lr
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
        self.checkpoint_dir = checkpoint_dir

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, unlabeled: Any = None
    ) -> PARSClassifier:
        """Pretrain on the training windows, then fine-tune on the labelled ones.

        Parameters
        ----------
        X : windows
            A braindecode windows dataset, ``as_sklearn``'s X, a list of windows, an mne.Epochs
            or an array of shape (n_windows, n_chans, n_times).
        y : array-like, shape (n_windows,) | None
            Labels of any kind; None takes those of the dataset.
        groups : array-like, shape (n_windows,) | None
            Subjects, for the internal validation split; None takes those of the dataset.
        unlabeled : windows | None
            More windows to pretrain on, of any montage.

        Raises
        ------
        ValueError
            When windows are missing, malformed or hold NaN, and when labels are missing or all
            the same.
        """
        windows = self._read(X, y, groups)
        labeled, without_label = split_unlabeled(windows, self.unlabeled_label)
        if np.issubdtype(labeled.y.dtype, np.floating):
            check_classification_targets(labeled.y)
        try:
            self.classes_, codes = np.unique(labeled.y, return_inverse=True)
        except TypeError as error:
            raise ValueError(
                f"Labels of different types cannot be put into one order: {error}."
            ) from error
        if len(self.classes_) < 2:
            raise ValueError(
                f"All labels are {self.classes_.tolist()[0]!r}; a classifier needs at least two "
                "classes."
            )
        labeled = replace(labeled, y=codes)
        if self.electrode_position:
            self._check_electrodes()
        extra = self._read_unlabeled(unlabeled)
        encoder = self._resolve_encoder()

        with self._seeded():
            train, valid = hold_out(labeled, self.validation, torch.randint(2**31, ()).item())
            self.net_ = self._build_net(train, valid, encoder)
            if encoder is not None:
                self.encoder_.load_state_dict(encoder.state_dict())
            self.pretraining_history_ = []
            try:
                if self._wants_pretraining(encoder):
                    others = [drop_held_out(part, train, valid) for part in (without_label, extra)]
                    self._pretrain(self.encoder_, [train, *others])
                self.net_.partial_fit(train, None)
            finally:
                self.net_.train_split = None  # or a pickle would hold the training data
        self.encoder_card_ = replace(
            self.encoder_card_,
            sfreq=self.sfreq_,
            finetune_subjects=unique_subjects(self.encoder_card_.finetune_subjects, labeled.groups),
        )
        return self

    def _check_electrodes(self) -> None:
        if not self.chs_info_:
            raise ValueError(
                "electrode_position=True needs channel names, the same in every recording and in "
                "the same order; these windows "
                + ("carry none." if self.chs_info_ is None else "come from different montages.")
            )
        if np.isnan(electrode_positions(self.chs_info_)).all():
            warnings.warn(
                f"electrode_position=True has no effect: none of the channels "
                f"({self.chs_info_[0]['ch_name']}, ...) is an electrode of the 10-05 system or "
                "has a location; rename them, or set a montage.",
                stacklevel=3,
            )

    @property
    def encoder_(self) -> PatchEncoder:
        """The fine-tuned encoder."""
        return self.net_.module_.encoder

    def _build_net(
        self, train: WindowSet, valid: WindowSet | None, encoder: PatchEncoder | None
    ) -> FineTuningNet:
        patch_size = self._patch_size(encoder)
        # Where nothing tells the sampling rate, a patch is called a second.
        sfreq = self.sfreq_ or float(patch_size)
        if encoder is not None:
            sizes = {name: value for name, value in encoder.config.items() if name != "patch_size"}
        else:
            names = ("embed_dim", "num_layers", "num_heads", "mlp_dim")
            sizes = {name: getattr(self, name) for name in names}
        callbacks: list = list(self.callbacks or [])
        if valid is not None:  # never stops, only brings back the best state
            best = EarlyStopping(
                patience=self.finetune_epochs + 1, threshold=0.0, load_best=True, sink=noop
            )
            callbacks.insert(0, ("restore_best", best))
        if self.freeze_encoder:
            callbacks.insert(0, ("freeze_encoder", Freezer("encoder.*")))
        if self.verbose:
            callbacks.append(("progress", ProgressLine("fine-tuning")))
        loader: dict[str, Any] = {}
        if self.augmentation is not None:
            loader = dict(
                iterator_train=AugmentedDataLoader,
                iterator_train__transforms=_seeded_copy(self.augmentation),
            )
        return FineTuningNet(
            PARSNet,
            module__n_outputs=len(self.classes_),
            module__n_chans=self.n_chans_,
            module__chs_info=self.chs_info_ or None,
            module__n_times=self.n_times_,
            module__sfreq=sfreq,
            module__patch_seconds=patch_size / sfreq,
            module__channel_drop_prob=self.channel_drop_prob,
            module__electrode_position=self.electrode_position,
            **{f"module__{name}": value for name, value in sizes.items()},
            criterion=nn.CrossEntropyLoss,
            criterion__weight=cross_entropy_weights(train.y, self.classes_, self.class_weight),
            optimizer=torch.optim.AdamW,
            optimizer__weight_decay=self.weight_decay,
            optimizer__param_groups=NO_DECAY,
            lr=self.finetune_lr,
            max_epochs=self.finetune_epochs,
            batch_size=self.finetune_batch_size,
            iterator_train__shuffle=True,
            **loader,
            train_split=None if valid is None else predefined_split(valid),
            classes=np.arange(len(self.classes_)),
            callbacks=callbacks,
            callbacks__print_log=None,
            device=self._device(),
        ).initialize()

    @property
    def history_(self) -> pd.DataFrame:
        """One row an epoch, over both phases."""
        rows = [
            {"phase": phase, **{k: row[k] for k in row if k == "epoch" or k in _LOSSES}}
            for phase, history in (
                ("pretraining", self.pretraining_history_),
                ("fine-tuning", self.net_.history),
            )
            for row in history
        ]
        return pd.DataFrame(rows, columns=["phase", "epoch", *_LOSSES])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n_windows, n_classes), columns as in ``classes_``.

        Windows may have other channels than those of ``fit``, and any length of at least one
        patch.
        """
        windows = self._prediction_windows(X)
        module = self.net_.module_.eval()
        pos = None
        if self.electrode_position and windows.chs_info is not None:
            if not windows.chs_info:
                raise ValueError(
                    "These windows come from different montages; a model with electrode_position "
                    "predicts one montage at a time."
                )
            pos = torch.from_numpy(electrode_positions(windows.chs_info))
        with torch.inference_mode():
            logits = [module(batch, pos=pos).cpu() for batch in self._batches(windows)]
        return torch.cat(logits).softmax(dim=1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each window, shape (n_windows,)."""
        check_is_fitted(self, "encoder_")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; labels of the dataset where ``y`` is None."""
        y = as_window_set(X, y).y
        if y is None:
            raise ValueError("There are no labels to score against: pass y.")
        return super().score(X, y, sample_weight)


def _seeded_copy(augmentation: Any) -> Any:
    """braindecode transforms with their own random states, drawn from torch's."""
    augmentation = copy.deepcopy(augmentation)
    for transform in augmentation if isinstance(augmentation, list) else [augmentation]:
        for part in transform.modules() if isinstance(transform, nn.Module) else [transform]:
            if hasattr(part, "rng"):
                part.rng = np.random.RandomState(torch.randint(2**31, ()).item())
    return augmentation


class PARSEmbedder(TransformerMixin, EncoderEstimator):
    """Pretrain an encoder without labels and embed windows with it, for linear probes.

    Parameters
    ----------
    pooling : "mean_std" | "mean"
        How the channels of a window become one vector: their mean and standard deviation
        (invariant to the order of channels), or their mean.
    pretext, pretext_params, encoder, sfreq, patch_seconds, embed_dim, num_layers, num_heads, \
mlp_dim, pretrain_epochs, pretrain_batch_size, pretrain_lr, weight_decay, device, random_state, \
verbose, checkpoint_dir
        As in :class:`PARSClassifier`. ``pretext=None`` embeds with a random encoder, the dull
        baseline.

    Attributes
    ----------
    encoder_ : PatchEncoder
    encoder_card_ : EncoderCard
        What the encoder was pretrained on.
    task_ : PretextTask
        The pretext task with its trained decoder, where ``fit`` has pretrained.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import PARSEmbedder, as_sklearn, datasets
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=2, hours=0.2, n_chans=2))
    >>> probe = make_pipeline(PARSEmbedder(pretrain_epochs=1, verbose=0), LogisticRegression())
    >>> probe.fit(X, y).predict(X).shape == y.shape
    True
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        **EncoderEstimator._parameter_constraints,
        "pooling": [StrOptions({"mean_std", "mean"})],
    }

    def __init__(
        self,
        pretext: str | type[PretextTask] | PretextTask | None = "pars",
        *,
        pretext_params: dict[str, Any] | None = None,
        encoder: Any = None,
        sfreq: float | None = None,
        patch_seconds: float = 1.0,
        embed_dim: int = 64,
        num_layers: int = 2,
        num_heads: int = 4,
        mlp_dim: int = 128,
        pretrain_epochs: int = 50,
        pretrain_batch_size: int = 64,
        pretrain_lr: float = 4e-3,
        weight_decay: float = 1e-4,
        pooling: str = "mean_std",
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 1,
        checkpoint_dir: str | Path | None = None,
    ):
        self.pretext = pretext
        self.pretext_params = pretext_params
        self.encoder = encoder
        self.sfreq = sfreq
        self.patch_seconds = patch_seconds
        self.embed_dim = embed_dim
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_lr = pretrain_lr
        self.weight_decay = weight_decay
        self.pooling = pooling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint_dir = checkpoint_dir

    def fit(self, X: Any, y: Any = None, *, unlabeled: Any = None) -> PARSEmbedder:
        """Pretrain on all windows; ``y`` is ignored. Arguments as in PARSClassifier.fit."""
        windows = self._read(X)
        extra = self._read_unlabeled(unlabeled)
        encoder = self._resolve_encoder()
        patch_size = self._patch_size(encoder)
        with self._seeded():
            if encoder is None:
                encoder_ = PatchEncoder(
                    patch_size, self.embed_dim, self.num_layers, self.num_heads, self.mlp_dim
                )
            else:
                encoder_ = PatchEncoder(**encoder.config)
                encoder_.load_state_dict(encoder.state_dict())
            self.encoder_ = encoder_
            self.pretraining_history_ = []
            try:
                if self._wants_pretraining(encoder):
                    self._pretrain(self.encoder_, [windows, extra])
            finally:
                self.encoder_.cpu()  # a pickle must load where there is no GPU
        return self

    def _keep_task(self, task: PretextTask) -> None:
        self.task_ = task.cpu()

    def transform(self, X: Any) -> np.ndarray:
        """Embed windows: float32, shape (n_windows, 2 * embed_dim), or embed_dim for "mean"."""
        windows = self._prediction_windows(X)
        encoder = copy.deepcopy(self.encoder_).to(self._device()).eval()
        embedded = []
        with torch.inference_mode():
            for batch in self._batches(windows):
                channels = embed_signals(encoder, batch.flatten(0, 1))
                channels = channels.unflatten(0, batch.shape[:2])  # (batch, n_chans, embed_dim)
                pooled = [channels.mean(dim=1)]
                if self.pooling == "mean_std":
                    pooled.append(channels.std(dim=1, correction=0))
                embedded.append(torch.cat(pooled, dim=1).cpu())
        return torch.cat(embedded).numpy()

    def save(self, folder: str | Path) -> Path:
        """Write the encoder and its card to a folder, for ``PARSClassifier(encoder=folder)``."""
        check_is_fitted(self, "encoder_")
        return save_encoder(self.encoder_, self.encoder_card_, folder)
