"""PARSClassifier and PARSRegressor: pretrain an encoder, then fine-tune a PARSNet on labels.

The base class ``PARSEstimator`` contains the parameters and the ``fit`` of both classes. The
subclasses define the labels and the meaning of the network outputs. The module ``encoder_start``
contains pretraining, and the module ``fine_tuning`` contains fine-tuning.
"""

import logging
import re
from abc import abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, computing, findings, model_files, names, training
from braindecode_pars._common.findings import Finding
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators import (
    embedder,
    encoder_start,
    fine_tuning,
    saved_estimator,
    windows_classifier,
    windows_estimator,
)
from braindecode_pars.models import PARSNet, electrodes
from braindecode_pars.pretrained import cards
from braindecode_pars.windows import Windows, amplitudes, convert, labels

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False, repr=False)
class PARSEstimator(encoder_start.EncoderEstimator):
    """Base class of estimators that pretrain an encoder and fine-tune a PARSNet.

    The parameters are described in PARSClassifier. A subclass defines the labels and the meaning
    of the network outputs.
    """

    # The head
    channel_drop_prob: float = 0.5
    electrode_position: str | bool = "auto"
    amplitude: bool = True
    head: str = "auto"
    # Fine-tuning
    freeze_encoder: str | bool = "auto"
    head_epochs: str | int = "auto"
    encoder_lr_factor: str | float | tuple[float, float] = "auto"
    drop_prob: float = 0.0
    finetune_epochs: int | None = None
    finetune_batch_size: int = 32
    finetune_lr: float = 1e-3
    finetune_warmup: float | None = 0.1
    gradient_clip: float | None = 1.0
    augmentation: Any = None
    validation: float | str = 0.0
    callbacks: list | None = None

    @abstractmethod
    def _read(self, X: Any, y: Any, groups: Any, any_montage: bool) -> tuple[Windows, np.ndarray]:
        """Return the windows of ``fit`` with numeric labels, and a mask of the labeled windows."""

    def _hold_out(self, windows: Windows, seed: int) -> tuple[Windows, Windows | None]:
        """Return training and validation windows, with the labels that the network predicts."""
        return labels.hold_out(windows, self.validation, seed)

    def _fit(self, X: Any, y: Any, groups: Any, unlabeled: Any) -> Self:
        with windows_estimator.seeded_fit(self) as seeds:
            # Read the windows, load or build the encoder, hold out windows, and build the network
            start, train, valid, parts = self._begin(X, y, groups, unlabeled, seeds)
            self.amplitudes_ = amplitudes.amplitude_range(train, compare=True)
            # Pretrain the encoder
            self._pretrain(start, self.encoder_, parts, seeds.pretraining, valid)
            # Fine-tune the network. The card is set first, so that it is complete even after
            # Ctrl-C.
            subjects = [part.corpus_subjects for part in (train, valid) if part is not None]
            self.encoder_card_ = cards.fine_tuned_card(self.encoder_card_, self.sfreq_, *subjects)
            fine_tuning.fine_tune(self.net_, train, valid)
            fine_tuning.warn_of_fine_tuning(self, train, valid)
        return self

    def _begin(
        self, X: Any, y: Any, groups: Any, unlabeled: Any, seeds: windows_estimator.Seeds
    ) -> tuple[encoder_start.EncoderStart, Windows, Windows | None, list[Windows]]:
        """Read the windows and build the net.

        Returns
        -------
        start : EncoderStart
            Initial encoder of the net, and the settings of its pretraining.
        train, valid : Windows, Windows | None
            Labeled training windows, and held-out validation windows.
        parts : list of Windows
            Windows for pretraining: the training windows, and the unlabeled windows of subjects
            that are not held out.
        """
        # Read the windows. If electrode positions are used, all windows need the same montage.
        has_filters = self.head in ("spatial_filter", "both")
        has_positions = self.electrode_position not in (False, checks.AUTO) or has_filters
        windows, labeled = self._read(X, y, groups, not has_positions)
        # Load a pretrained encoder, or build a new one
        start = self._start(windows)
        unlabeled_parts = encoder_start.further_windows(self, unlabeled, windows)
        if not labeled.all():
            unlabeled_parts = [windows[~labeled], *unlabeled_parts]
        # Hold out windows for validation, also from pretraining
        train, valid = self._hold_out(windows[labeled], seeds.split)
        not_held_out = (
            labels.without_held_out_splits(part, self.validation) for part in unlabeled_parts
        )
        not_held_out = (labels.drop_held_out(part, train, valid) for part in not_held_out)
        parts = [train, *(part for part in not_held_out if part is not None)]
        # Build the network
        module = self._network(start)
        self.fine_tuning_ = fine_tuning.chosen_settings(vars(self), train) | {"head": module.head}
        self.net_ = fine_tuning.fine_tuning_net(self, module, train, valid, seed=seeds.augmentation)
        if self.verbose and self.encoder is not None:
            settings = ", ".join(f"{name}={value!r}" for name, value in self.fine_tuning_.items())
            log.info("Settings of fine-tuning with the pretrained encoder: %s.", settings)
        return start, train, valid, parts

    def _network(self, start: encoder_start.EncoderStart) -> PARSNet:
        """Return a new network with the encoder of ``start``."""
        # chs_info_ is empty if recordings have different channels.
        if self.electrode_position not in (checks.AUTO, False) and not self.chs_info_:
            raise ValueError(
                "electrode_position=True requires channel names, but X contains none. Pass windows "
                "with channel names, or use electrode_position='auto'."
            )
        return PARSNet(
            n_outputs=len(getattr(self, "classes_", ["one number"])),
            n_chans=self.n_chans_,
            chs_info=self.chs_info_ or None,
            n_times=self.n_times_,
            sfreq=self.sfreq_,
            channel_drop_prob=self.channel_drop_prob,
            electrode_position=self.electrode_position,
            amplitude=self.amplitude,
            head=self.head,
            **start.sizes,
        )

    def pretrained(
        self, X: Any, *, groups: Any = None, unlabeled: Any = None
    ) -> embedder.PARSEmbedder:
        """Pretrain an encoder with the settings of this estimator, for use in several fits.

        Labels are not used. This method pretrains on all windows, whereas ``fit`` excludes the
        validation windows from pretraining.

        Parameters
        ----------
        X, groups, unlabeled
            As in :meth:`fit`.

        Returns
        -------
        PARSEmbedder
            Fitted embedder. Pass it as ``encoder`` to this estimator or to another estimator.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError, KeyboardInterrupt
            As in :meth:`PARSEmbedder.fit <braindecode_pars.PARSEmbedder.fit>`.
        """
        shared = {f.name: getattr(self, f.name) for f in fields(encoder_start.EncoderEstimator)}
        return embedder.PARSEmbedder(**shared).fit(X, groups=groups, unlabeled=unlabeled)

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> embedder.TrainingCost:
        """Return the training cost of ``fit`` (trained weights and steps), without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Number of trained weights, number of pretraining steps (including the earlier
            pretraining of ``encoder``), and number of fine-tuning steps. The computation of
            validation losses is not counted.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            In the cases in which :meth:`fit` raises an error before training.
        """
        with windows_estimator.without_training(self) as (unfitted, seeds):
            start, train, _, parts = unfitted._begin(X, y, groups, None, seeds)
            net, steps = unfitted.net_, start.n_steps(sum(map(len, parts)))
            parameters = computing.n_parameters(net.module_)
            if steps == 0 and fine_tuning.frozen_epochs(unfitted.fine_tuning_) >= net.max_epochs:
                # The parameters of a frozen random encoder are not trained
                parameters -= computing.n_parameters(net.module_.encoder)
            return embedder.TrainingCost(parameters, steps, fine_tuning.n_steps(net, train))

    def __sklearn_is_fitted__(self) -> bool:
        # After Ctrl-C in pretraining, the net exists, but its head is not trained.
        return hasattr(self, "net_") and len(self.net_.history) > 0

    @property
    def encoder_(self) -> PatchEncoder:
        """The fine-tuned encoder."""
        return self.net_.module_.encoder

    def _outputs(self, X: Any, groups: Any = None) -> torch.Tensor:
        """Return finite outputs of the network on the CPU, shape (n_windows, n_outputs)."""
        check_is_fitted(self)
        module = self.net_.module_.eval()
        windows = windows_estimator.read_to_predict(self, X, any_montage=True)
        device = module.final_layer.weight.device
        n_positions = None if module.positions is None else len(module.positions)
        outputs: list[torch.Tensor] = []
        n_unknown, channels = 0, ""
        with computing.usual_torch(gradients=False):
            for batch, montage in windows_estimator.batches(
                windows, module.encoder.patch_size, device
            ):
                positions = None  # the module uses its own positions, or no positions
                has_own_channels = montage.chs_info is None and batch.shape[1] == n_positions
                if n_positions is not None and not has_own_channels:
                    positions = electrodes.positions_of(montage.chs_info, batch)
                    if not positions.isfinite().any():
                        n_unknown += len(batch)
                        channels = checks.format_list(montage.names, max_items=3)
                outputs.append(module(batch, pos=positions).cpu())
        if n_unknown:
            values = dict(n=n_unknown, n_windows=len(windows), channels=channels or "without names")
            findings.warn(Finding("unknown_positions", values))
        return windows_estimator.check_finite(torch.cat(outputs))

    def _to_save(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        # chs_info_ is None for unknown channels, and empty for recordings with different channels.
        montage = "one" if self.chs_info_ else "several"
        module, weights = self.net_.module_, getattr(self.net_.criterion_, "weight", None)
        # The description of the PARSNet, and of all other fitted attributes
        description = module.description()
        description[model_files.ENTRIES[self._kind]] = {
            "class_weights": None if weights is None else weights.tolist(),
            "fine_tuning": self.fine_tuning_,
            "windows": {
                "sfreq": self.sfreq_,
                "montage": "unknown" if self.chs_info_ is None else montage,
            },
            "pretraining": asdict(self.encoder_card_),
            "history": {
                "pretraining": list(map(training.history_row, self.pretraining_history_)),
                "fine-tuning": list(map(training.history_row, self.net_.history)),
            },
        }
        return description, module.state_dict()

    def _restore(self, described: dict[str, Any], loaded: Any, tensors: dict[str, Any]) -> None:
        self.__dict__.update(saved_estimator.fitted_from_json(described))
        montages = {"one": loaded._chs_info, "several": [], "unknown": None}
        self.chs_info_ = montages[described["windows"]["montage"]]
        self.encoder_card_ = cards.read_card(described["pretraining"])
        self.n_chans_, self.n_times_ = loaded.n_chans, loaded.n_times
        self.load_report_ = loaded.load_report
        # The skorch net of the loaded module, which is not trained again
        self.pretraining_history_ = described["history"]["pretraining"]
        settings = described["fine_tuning"].items()
        self.fine_tuning_ = {k: tuple(v) if isinstance(v, list) else v for k, v in settings}
        class_weights = described["class_weights"]  # None in a regressor
        class_weights = None if class_weights is None else torch.FloatTensor(class_weights)
        self.fine_tuning_["head"] = loaded.head
        self.net_ = fine_tuning.fine_tuning_net(self, loaded, class_weights=class_weights)
        self.net_.history.extend(described["history"]["fine-tuning"])


@dataclass(kw_only=True, eq=False, repr=False)
class PARSClassifier(PARSEstimator, windows_classifier.WindowsClassifier):
    """Classifier: self-supervised pretraining of an encoder, then fine-tuning on labels.

    This scikit-learn classifier implements the complete method of the paper (Sandino et al. 2025):
    pretraining of an encoder with a pretext task on single channels (section 2), then fine-tuning
    of a :class:`~braindecode_pars.PARSNet`, which consists of the encoder and a classification
    head, on all channels (section 2.4). ``PARSClassifier(**braindecode_pars.paper.CLASSIFIER)``
    uses the published settings. The default encoder is smaller, so that training is feasible on a
    laptop.

    Parameters
    ----------
    pretext : str | type[PretextTask] | PretextTask | None
        Pretext task, which the encoder solves in pretraining: a name in
        :data:`~braindecode_pars.pretext.PRETEXT_TASKS` (such as ``"pars"`` or ``"mae"``), a class
        or an instance. Tasks on all channels, such as ``"pars_space_time"``, use a
        :class:`~braindecode_pars.models.SpaceTimeEncoder`, which encodes several channels jointly;
        all other tasks use an encoder of single channels. If None, ``fit`` does not pretrain;
        without ``encoder``, the model is then trained from scratch (with labels only).
    pretext_params : dict | None
        Arguments of the pretext task, for example ``{"position_mask_ratio": 0.6}``.
    encoder : path | str | fitted estimator, net or model | None
        Pretrained encoder. If None, ``fit`` builds a new encoder. If an encoder is passed, ``fit``
        pretrains only with ``continue_pretraining=True``, and the parameters ``patch_seconds``,
        ``embed_dim``, ``num_layers``, ``num_heads``, ``mlp_dim`` and ``tokenizer`` are ignored. The
        encoder is copied and never modified. A string is a folder, the name of an encoder that is
        bundled with the package (such as ``"small"``), or a model id of the Hugging Face Hub:
        ``"hf://owner/name"`` downloads the model, and ``"owner/name"`` uses a previous download.
        See :func:`~braindecode_pars.pretrained.load_encoder` for the objects that are accepted.
    continue_pretraining : bool
        Whether ``fit`` first continues to pretrain ``encoder`` with the pretext task, on the
        training windows and the windows passed to ``fit`` as ``unlabeled``. If False, fine-tuning
        starts from the weights of ``encoder``. If ``unlabeled`` contains windows of the test
        subjects, the scores are transductive (unlabeled test windows were used for training) and
        must be reported as such.
    sham : bool
        Whether pretraining pairs each window with the target of another window, so that signals
        and targets are unrelated and nothing can be learned. Sham pretraining is a control
        condition: the difference between the scores with pretraining and with sham pretraining of
        the same number of steps shows how much the pretext task contributes.
    freeze_encoder : "auto" | bool
        Whether the encoder is frozen (not trained) in fine-tuning. If True, only the head is
        trained, and ``head_epochs`` and ``encoder_lr_factor`` have no effect. ``"auto"`` freezes
        the encoder if three conditions are met: ``encoder`` is not None; the number of subjects
        with labeled training windows is below 24 or unknown; and ``head_epochs`` and
        ``encoder_lr_factor`` are both ``"auto"``. The choice is logged and stored in
        ``fine_tuning_``.
    sfreq : float | None
        Sampling rate in Hz, for inputs without a sampling rate (arrays, lists). If None, the
        sampling rate stored with the windows is used.
    preprocessing : Preprocessing | dict | None
        How the recordings were preprocessed (filters, reference, unit, ...): a
        :class:`~braindecode_pars.windows.preprocessing.Preprocessing`, or a dict of its entries.
        Pass only the entries that are not stored in the metadata of the windows; arrays have no
        metadata. If an entry contradicts the metadata of MNE or braindecode, a warning is issued,
        and the entry of this argument is used.
    channels : list of str | None
        Names of the channels to use, in this order. If None, all EEG channels are used: channels
        with the MNE type "eeg", "ecog", "seeg" or "dbs", except channels whose name indicates
        another signal, such as ``EOG1`` or ``SpO2``. Channels that are marked as bad are never
        used.
    patch_seconds : float
        Length in seconds of a patch, the segment of a channel that the encoder maps to one token.
        If the sampling rate is unknown, a patch is 1/30 as long as the window, and ``fit`` issues a
        warning.
    embed_dim, num_layers, num_heads, mlp_dim : int
        Sizes of the encoder: dimension of a token, number of transformer layers, number of
        attention heads, and hidden dimension of the feed-forward networks. The defaults are small;
        ``paper.CLASSIFIER`` contains the published sizes.
    tokenizer : "spectral" | "linear"
        Patch embedding: the mapping from patches to tokens, see
        :class:`~braindecode_pars.PatchEncoder`. The paper uses the linear patch embedding.
    channel_drop_prob : float
        Probability of dropping (ignoring) each channel of a training window in fine-tuning. At
        least one channel per window is always used.
    electrode_position : "auto" | bool
        Whether to add an encoding of the electrode position to the spatial tokens (the features of
        each channel, averaged over time), see :class:`~braindecode_pars.PARSNet`. ``"auto"`` adds
        the encoding if all training windows have the same channels, there is more than one channel,
        and the position of at least one channel is known. The paper does not use electrode
        positions.
    amplitude : bool
        Whether the amplitude of each channel, relative to the other channels, is an additional
        input of the model, see :class:`~braindecode_pars.PARSNet`. The paper does not use
        amplitudes.
    head : "auto" | "attention" | "spatial_filter" | "both"
        How the head pools the channels, see :class:`~braindecode_pars.PARSNet`. ``"attention"``,
        the cross-attention of the paper, treats the channels as an unordered set, and can hardly
        distinguish the left from the right hemisphere. ``"spatial_filter"`` computes weighted means
        over channels, with weights that depend on the electrode positions, even with
        ``electrode_position=False``. ``"both"`` combines attention and spatial filters. ``"auto"``
        is ``"spatial_filter"`` if all training windows have the same channels, there is more than
        one channel, and the position of at least one channel is known. Otherwise, ``"auto"`` is
        ``"attention"``. The choice is stored in ``fine_tuning_``.
    pretrain_epochs, pretrain_batch_size, pretrain_lr : int | None, int, float
        Number of epochs, batch size and learning rate of pretraining. If ``pretrain_epochs`` is a
        number, the learning rate has a linear warm-up, followed by cosine annealing; 0 disables
        pretraining. If ``pretrain_epochs`` is None, pretraining continues while the loss on
        held-out subjects decreases, see :class:`~braindecode_pars.callbacks.HeldOutSchedule`. The
        held-out subjects are the validation subjects (see ``validation``) or, without validation,
        10 % of the subjects (at least one).
    pretrain_max_steps, pretrain_minutes : int | None, float | None
        Limits of pretraining if ``pretrain_epochs`` is None: maximum number of steps, and maximum
        duration in minutes. If both are None, pretraining ends after at most 2000 steps. With
        ``pretrain_minutes``, the result depends on the speed of the machine.
    finetune_epochs, finetune_batch_size, finetune_lr : int | None, int, float
        Number of epochs, batch size and learning rate of fine-tuning. If ``finetune_epochs`` is
        None, the number of epochs is 30 or, if 30 epochs have fewer than 60 steps, as large as
        needed for 60 steps.
    finetune_warmup : float | None
        Proportion of the fine-tuning steps in which the learning rate increases linearly to
        ``finetune_lr`` (warm-up). In the remaining steps, the learning rate decreases to zero with
        cosine annealing, see :class:`~braindecode_pars.callbacks.WarmupCosine`. If None, the
        learning rate is constant, or set by a scheduler in ``callbacks``.
    head_epochs : "auto" | int
        Number of epochs at the beginning of fine-tuning in which the encoder is frozen and only the
        head is trained (Kumar et al. 2022). In the remaining epochs, both are trained. ``"auto"``
        is a third of the epochs if ``encoder`` is not None, and 0 otherwise.
    encoder_lr_factor : "auto" | float | (float, float)
        Learning rate of the encoder in fine-tuning, as a factor of ``finetune_lr``. A pair contains
        the factors of the patch embedding and of the last layer; the factors of the layers in
        between increase geometrically (Howard and Ruder 2018). 0 is equivalent to
        ``freeze_encoder=True``. ``"auto"`` is (0.01, 0.1) if ``encoder`` is not None, and 1
        otherwise.
    gradient_clip : float | None
        Maximum L2 norm of the gradient of all trained weights in fine-tuning. A larger gradient is
        scaled to this norm. If None, gradients are not clipped.
    label_smoothing : float
        Label smoothing in [0, 1) (Szegedy et al. 2016): the probability that is distributed equally
        over all classes. Labels are smoothed in the training loss only, not in the validation loss.
    drop_prob : float
        Dropout probability of the encoder in fine-tuning, also if the encoder is frozen. It is used
        instead of the dropout probability with which ``encoder`` was pretrained.
    weight_decay : float
        Weight decay of pretraining and of fine-tuning.
    augmentation : str | dict | braindecode Transform | list of these | None
        Augmentation of the training batches in fine-tuning: a transform, the name of a transform,
        or a list of these. A transform with arguments is specified by a dict such as ``{"name":
        "GaussianNoise", "std": 0.1}``, see
        :func:`~braindecode_pars.estimators.augmentation.make_augmentation`.
    class_weight : "balanced" | dict | None
        Class weights of the cross-entropy. ``"balanced"`` is n / (K n_c), with n training windows,
        K classes and n_c training windows of class c (section 2.5 of the paper). A dict maps labels
        to weights. If None, all windows have equal weight.
    validation : float | "split"
        Proportion of the subjects that ``fit`` holds out for internal validation. At the end of
        fine-tuning, the weights of the epoch with the lowest validation loss are restored. The
        validation loss is the mean cross-entropy of all held-out windows, weighted by the class
        weights. If 0, all windows are used for training, and the model has the weights of the last
        epoch.

        If the subjects are unknown, or if there is only one subject, a proportion of the windows is
        held out, stratified by label. ``"split"`` holds out the recordings whose description has
        the entry ``split="valid"``, such as the validation subjects of a published corpus; all
        other labeled windows must have ``split="train"``.

        ``fit`` uses the held-out windows neither for pretraining nor for fine-tuning. However, an
        encoder that was pretrained outside of this fit may have been pretrained on them, without
        their labels: an encoder passed as ``encoder``, or one that
        :func:`~braindecode_pars.evaluation.ablation` pretrained once for several fits.
    unlabeled_label : hashable | None
        Label that marks unlabeled windows, which are used for pretraining only. ``"auto"`` uses -1,
        as in scikit-learn, and a warning is issued if any window has this label. To avoid the
        warning, pass -1. If None, all windows are labeled, and -1 is an ordinary class.
        ``VotingClassifier`` and ``StackingClassifier`` of scikit-learn encode the labels before
        they call this classifier, so that -1 becomes an ordinary class. Remove the unlabeled
        windows before you pass the data to them.
    callbacks : list of skorch callbacks | None
        Callbacks for fine-tuning. A learning rate scheduler requires ``finetune_warmup=None``, and
        a callback that monitors the validation loss requires ``validation``. With
        ``finetune_warmup``, early stopping ends training before the learning rate reaches zero.
    pretrain_callbacks : list of skorch callbacks | None
        Callbacks for pretraining. Learning rate schedulers, and callbacks that monitor a validation
        loss, are not accepted.
    precision : "float32" | "bfloat16"
        Floating-point precision of training. Weights and predictions are always float32.
    compile : bool
        Whether to compile the encoder and, in pretraining, the decoder of the pretext task.
        Compilation takes about a minute, and is useful if training takes hours.
    device : str
        Name of a torch device. ``"auto"`` uses the first available of CUDA, MPS and CPU.
    random_state : int | RandomState | None
        Seed of all random numbers. With an int, repeated fits on the CPU yield identical weights.
    verbose : int
        Verbosity level. If 0, nothing is printed. If 1, one progress bar is shown for pretraining
        and one for fine-tuning.
    checkpoint_dir : path | None
        Folder in which the pretrained encoder is saved before fine-tuning starts. If None, the
        pretrained encoder is not saved.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    class_names_ : dict of label to str | None
        Name of each class, if the data contain class names (in the ``mapping`` of a braindecode
        dataset, or in the ``event_id`` of mne.Epochs). None if the data contain no class names, or
        if ``y`` differs from the labels of the data.
    net_ : skorch.NeuralNetClassifier
        Fine-tuned net, whose ``module_`` is a PARSNet.
    encoder_ : PatchEncoder
        Fine-tuned encoder.
    encoder_card_ : EncoderCard
        Encoder card: metadata of the encoder, such as training data, training subjects, pretext
        task and preprocessing.
    fine_tuning_ : dict
        Values of ``freeze_encoder``, ``head_epochs``, ``encoder_lr_factor`` and ``head`` that were
        used: ``"auto"`` is replaced with the selected value.
    history_ : pandas.DataFrame
        Losses of pretraining and of fine-tuning, one row per epoch.
    load_report_ : LoadReport
        Report of the tensors that were loaded. Only present if the encoder or the model was loaded
        from a folder.
    sfreq_ : float | None
        Sampling rate of the training windows in Hz; None if it is unknown.
    preprocessing_ : Preprocessing
        Preprocessing of the training windows; unknown entries are None. A warning is issued if the
        windows to predict were preprocessed differently.
    amplitudes_ : AmplitudeRange | None
        Usual range of the amplitudes of the training windows: the 5th and the 95th percentile
        (``low`` and ``high``) of the standard deviation of a channel in a window. ``predict_raw``
        compares the amplitudes of a recording with this range.
    transitions_ : Transitions | None
        Transition probabilities between the labels of consecutive training windows, for
        ``predict_raw(smooth=True)``. None if there are no consecutive windows.
    n_chans_, n_times_ : int
        Number of channels and number of samples of a training window.
    chs_info_ : list of dict | None
        Channels, as in ``mne.Info["chs"]``. None if the channels of the training windows are
        unknown; an empty list if the recordings have different channels.

    References
    ----------
    Howard and Ruder 2018, Universal language model fine-tuning for text classification,
    arXiv:1801.06146.

    Kumar et al. 2022, Fine-tuning can distort pretrained features and underperform
    out-of-distribution, arXiv:2202.10054.

    Sandino et al. 2025, Learning the relative composition of EEG signals using pairwise relative
    shift pretraining, arXiv:2511.11940.

    Szegedy et al. 2016, Rethinking the inception architecture for computer vision,
    arXiv:1512.00567.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> clf = PARSClassifier(pretrain_epochs=1, finetune_epochs=1, verbose=0)
    >>> clf.fit(windows).predict_proba(windows).shape[0] == len(windows)
    True
    >>> clf.encoder_card_.task, clf.encoder_card_.seen_subjects
    ('pars', {1, 2, 3})
    """

    label_smoothing: float = 0.0

    _kind = model_files.CLASSIFIER

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, unlabeled: Any = None) -> Self:
        """Pretrain the encoder on all training windows, then fine-tune on the labeled windows.

        Parameters
        ----------
        X : windows
            Training windows: a braindecode windows dataset, the X that
            :func:`~braindecode_pars.as_sklearn` returns, a list of windows, an mne.Epochs or an
            array of shape (n_windows, n_chans, n_times). The order of the channels may differ
            between recordings. Only the channels shared by all recordings are used, and a warning
            lists the other channels, in two cases: if the number of channels differs between
            recordings; or if the recordings have different channels, and the model has
            ``electrode_position=True`` or spatial filters.
        y : array-like, shape (n_windows,) | None
            Labels of any type. If None, the labels of the dataset are used.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for ``validation`` and for the encoder card (metadata of the
            encoder). If None, the subjects of the dataset are used.
        unlabeled : windows | SignalStore | None
            Additional unlabeled windows for pretraining, with any montage. A
            :class:`~braindecode_pars.signal_store.SignalStore` (a folder of continuous recordings)
            is divided into windows of the same length as the windows of ``X``, and its validation
            and test subjects are excluded. The parameter ``channels`` also applies to unlabeled
            windows; if a window contains none of these channels, all of its EEG channels are used.

        Returns
        -------
        PARSClassifier
            The fitted classifier itself.

        Raises
        ------
        TypeError
            If ``X`` has an unsupported type or contains continuous recordings instead of windows,
            or if a parameter has the wrong type.
        ValueError
            In any of these cases:

            - There are no windows, or windows are malformed or contain NaN.
            - Labels are missing or all equal, or the only labels are -1 and +1, so that it is
              unclear whether -1 is a class (set ``unlabeled_label``).
            - The sampling rate differs between recordings, or from the sampling rate of
              ``encoder``.
            - A window is shorter than a patch.
            - With ``validation="split"``, the split of a labeled window is neither "train" nor
              "valid".
            - A loss is not finite.
        FileNotFoundError
            If ``encoder`` is not an existing folder or model.
        OSError
            If ``checkpoint_dir`` cannot be created.
        KeyboardInterrupt
            After Ctrl-C. The estimator keeps the weights trained so far.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If pretraining or fine-tuning may have failed to learn. Possible signs are too few
            steps, a pretraining loss at chance level, a validation loss that never decreased, and a
            class that is predicted for none of the training windows.
        """
        return self._fit(X, y, groups, unlabeled)

    def _read(self, X: Any, y: Any, groups: Any, any_montage: bool) -> tuple[Windows, np.ndarray]:
        windows = self._read_labeled(X, y, groups, any_montage=any_montage)
        return windows, windows.labels >= 0


@dataclass(kw_only=True, eq=False, repr=False)
class PARSRegressor(RegressorMixin, PARSEstimator):
    """Regressor: self-supervised pretraining of an encoder, then fine-tuning on numeric targets.

    The target is one number per window, such as a reaction time, or one number that all windows of
    a subject share, such as age. Encoder, network and training are the same as in
    :class:`~braindecode_pars.PARSClassifier`, but the network has a single output and a regression
    loss. Regression is not part of the paper.

    Parameters
    ----------
    loss : "mse" | "huber"
        Loss of fine-tuning: the mean squared error (``"mse"``), or the Huber loss (``"huber"``),
        which is linear for errors above one standard deviation of the training targets and
        therefore less sensitive to outliers.
    pretext, pretext_params, encoder, continue_pretraining, sham, freeze_encoder, sfreq, \
preprocessing, channels, patch_seconds, embed_dim, num_layers, num_heads, mlp_dim, tokenizer, \
channel_drop_prob, electrode_position, amplitude, head
        As in :class:`~braindecode_pars.PARSClassifier`.
    pretrain_epochs, pretrain_max_steps, pretrain_minutes, pretrain_batch_size, pretrain_lr, \
finetune_epochs, finetune_batch_size, finetune_lr, finetune_warmup, head_epochs, \
encoder_lr_factor, gradient_clip, drop_prob, weight_decay, augmentation, callbacks, \
pretrain_callbacks
        As in :class:`~braindecode_pars.PARSClassifier`.
    validation : float | "split"
        As in :class:`~braindecode_pars.PARSClassifier`, except that windows are held out without
        stratification if the subjects are unknown or if there is only one subject.
    precision, compile, device, random_state, verbose, checkpoint_dir
        As in :class:`~braindecode_pars.PARSClassifier`.

    Attributes
    ----------
    target_mean_, target_scale_ : float
        Mean and standard deviation of the training targets. The network is trained on standardized
        targets: target minus mean, divided by the standard deviation.
    net_ : skorch.NeuralNetRegressor
        Fine-tuned net, whose ``module_`` is a PARSNet.
    encoder_, encoder_card_, fine_tuning_, history_, load_report_, sfreq_, preprocessing_, \
amplitudes_, n_chans_, n_times_, chs_info_
        As in :class:`~braindecode_pars.PARSClassifier`. The losses refer to standardized targets:
        predicting the mean of the training targets for every window yields a mean squared error of
        about 1.

    Notes
    -----
    Compare the scores with the scores of a baseline, such as ridge regression on the features of
    the frozen encoder (see the second example). If the target has one value per subject, such as
    age, evaluate on held-out subjects: :func:`~braindecode_pars.evaluation.regression_scores`
    computes scores over windows and over subjects.

    References
    ----------
    Huber 1964, Robust estimation of a location parameter, Annals of Mathematical Statistics 35.

    Examples
    --------
    Predict the depth of sleep in each window of simulated recordings:

    >>> import numpy as np
    >>> from braindecode_pars import PARSRegressor, as_sklearn, datasets
    >>> X, stages, subjects = as_sklearn(datasets.simulated.sleep(3, hours=0.2, n_chans=2))
    >>> depth = np.array([0.0, 1.0, 2.0, 3.0, 1.0])[stages]  # W, N1, N2, N3, REM
    >>> regressor = PARSRegressor(pretrain_epochs=1, finetune_epochs=1, verbose=0)
    >>> regressor.fit(X, depth).predict(X).shape == depth.shape
    True

    Compute the predictions of the baseline, ridge regression on the features of a frozen encoder:

    >>> from sklearn.linear_model import RidgeCV
    >>> from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import PARSEmbedder
    >>> ridge = make_pipeline(
    ...     PARSEmbedder(None, random_state=0, verbose=0),  # in practice, encoder="small"
    ...     StandardScaler(),
    ...     RidgeCV(np.logspace(-2, 4, 13)),
    ... )
    >>> cross_val_predict(ridge, X, depth, groups=subjects, cv=LeaveOneGroupOut()).shape
    (72,)
    """

    loss: str = "mse"

    _kind = model_files.REGRESSOR

    # scikit-learn's metadata routing may pass groups, which a regressor ignores.
    __metadata_request__score = {"groups": True}  # noqa: RUF012
    __metadata_request__predict = {"groups": True}  # noqa: RUF012

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, unlabeled: Any = None) -> Self:
        """Pretrain the encoder on all training windows, then fine-tune on windows with a target.

        Parameters
        ----------
        X, groups, unlabeled
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        y : array-like, shape (n_windows,) | None
            Targets, in any unit. NaN marks windows without a target, which are used for pretraining
            only. If None, the labels of the dataset are used. If the labels of the dataset are
            codes of named classes, an error is raised. This is the case even if the class names are
            numbers such as ages, because the codes (0, 1, ...) differ from the ages. To convert the
            codes to ages, use ``X, y, _ = as_sklearn(windows)`` and pass
            ``np.array([*map(float, X.label_names)])[y]`` as ``y``.

        Returns
        -------
        PARSRegressor
            The fitted regressor itself.

        Raises
        ------
        TypeError, FileNotFoundError, KeyboardInterrupt
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        ValueError
            If windows or parameters are invalid, as in :meth:`PARSClassifier.fit
            <braindecode_pars.PARSClassifier.fit>`. If all targets are missing or equal, or if
            targets are infinite, not real numbers, or codes of named classes.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If pretraining or fine-tuning may have failed to learn. Possible signs are too few
            steps, a pretraining loss at chance level, a validation loss that never decreased, and a
            validation loss that was always above the loss of predicting the mean of the training
            targets.
        """
        return self._fit(X, y, groups, unlabeled)

    def _read(self, X: Any, y: Any, groups: Any, any_montage: bool) -> tuple[Windows, np.ndarray]:
        windows = windows_estimator.read_windows(self, X, y, groups, any_montage=any_montage)
        targets = _targets(windows, y)
        return windows.with_labels(targets), ~np.isnan(targets)

    def _hold_out(self, windows: Windows, seed: int) -> tuple[Windows, Windows | None]:
        train, valid = labels.hold_out(windows, self.validation, seed, stratified=False)
        targets = train.labels
        if labels.are_equal(targets):
            # scikit-learn's estimator checks expect "one sample" in the message.
            raise ValueError(
                f"All training targets are equal ({targets[0]:g}), or there is only one sample "
                "(window). A regression requires windows with at least two different targets."
            )
        self.target_mean_, self.target_scale_ = float(targets.mean()), float(targets.std())
        return self._standardized(train), None if valid is None else self._standardized(valid)

    def _standardized(self, windows: Windows) -> Windows:
        targets = (windows.labels - self.target_mean_) / self.target_scale_
        # Use single precision, because some GPUs do not support double precision
        return windows.with_labels(targets.astype(np.float32))

    def predict(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Predict the target of each window.

        Parameters
        ----------
        X : windows
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`.
        groups : array-like | None
            Ignored.

        Returns
        -------
        ndarray of float64, shape (n_windows,)
            Predictions, in the unit of the targets.

        Raises
        ------
        ValueError
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`.
        """
        outputs = self._outputs(X)[:, 0].double().numpy()
        return self.target_mean_ + self.target_scale_ * outputs

    def predict_raw(
        self, raw: Any, *, overlap: float = 0.0, preprocess: bool = True, rescale: bool = False
    ) -> pd.DataFrame:
        """Predict the target in consecutive windows of a continuous recording.

        Parameters
        ----------
        raw, overlap, preprocess, rescale
            As in :meth:`PARSClassifier.predict_raw <braindecode_pars.PARSClassifier.predict_raw>`.

        Returns
        -------
        pandas.DataFrame
            One row for each window, with the columns ``onset`` and ``duration`` in seconds,
            ``prediction`` in the unit of the targets (NaN in a window with a gap or a "BAD"
            annotation), and ``n_chans`` (number of channels used). With ``overlap``, the prediction
            in a row is the mean of the predictions for all windows that overlap with the window of
            this row, weighted by the duration of the overlap. The attribute ``attrs`` of the table
            has the same entries as in :meth:`PARSClassifier.predict_raw
            <braindecode_pars.PARSClassifier.predict_raw>`, except for the classes.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As in :meth:`PARSClassifier.predict_raw
            <braindecode_pars.PARSClassifier.predict_raw>`.
        """
        return names.lazy("estimators.predict_raw")(
            self, raw, overlap=overlap, preprocess=preprocess, rescale=rescale
        )

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> float:
        """Return the coefficient of determination (R2) on the windows with a target.

        Parameters
        ----------
        X, groups
            As in ``predict``.
        y : array-like, shape (n_windows,) | None
            Targets. Windows with NaN are ignored. If None, the labels of the dataset are used.
        sample_weight : array-like, shape (n_windows,) | None
            Weight of each window.

        Returns
        -------
        float
            1 for perfect predictions, 0 for predictions that all equal the mean of ``y``, and
            negative for worse predictions. If all targets are equal, the score is NaN, and a
            warning is issued.

        Raises
        ------
        ValueError
            If windows, targets or weights are malformed, or if no window has a target.
        """
        check_is_fitted(self)
        windows = convert.as_windows(X, y, groups)
        targets = _targets(windows, y)
        known = ~np.isnan(targets)
        if sample_weight is not None:
            sample_weight = labels.check_weights(sample_weight, len(windows), known)
        predicted = self.predict(windows)[known]
        if labels.are_equal(targets[known]):
            checks.warn_user(
                "R2 is not defined (NaN), because the targets of all scored windows are equal "
                f"({targets[known][0]:g}). Compute the score over windows of several subjects, as "
                "regression_scores does."
            )
            return float("nan")
        return float(r2_score(targets[known], predicted, sample_weight=sample_weight))


def _targets(windows: Windows, y: Any) -> np.ndarray:
    """Return the targets of windows: ``y``, or the labels of the dataset if these are numeric."""
    codes = set() if windows.y is None else {*windows.y.tolist()}
    items = (windows.label_names or {}).items()
    names = [name for name, code in items if code in codes and name != str(code)]
    # Codes of names that are not numbers may be ordinal, such as the depth of sleep.
    are_numbers = all(re.fullmatch(r"-?\d+(\.\d+)?", name) for name in names)
    if names and (y is None or are_numbers):
        raise ValueError(
            "PARSRegressor requires numeric targets, but the labels of X are codes of classes "
            f"({checks.format_list(names)}). Pass one number per window as y. If the class names "
            "are numbers, convert the codes with X, y, _ = as_sklearn(windows) and "
            "np.array([*map(float, X.label_names)])[y]. To predict classes, use PARSClassifier."
        )
    return labels.targets_of(windows)
