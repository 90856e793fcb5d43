"""PARSClassifier: pretraining and fine-tuning as one scikit-learn classifier."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from braindecode_pars._common.model_files import CLASSIFIER, model_folder, read_model
from braindecode_pars._common.settings import BATCH_SIZE, LEARNING_RATE, WEIGHT_DECAY
from braindecode_pars._common.training import history_frame, history_row
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators.costs import (
    TrainingCost,
    classifier_cost,
    encoder_size,
    unfitted,
    without_warnings,
)
from braindecode_pars.estimators.embedder import PARSEmbedder
from braindecode_pars.estimators.encoder_start import (
    EncoderStart,
    check_fit,
    encoder_start,
    further_windows,
)
from braindecode_pars.estimators.fine_tuning import (
    FineTuningNet,
    fine_tune,
    fine_tuning_net,
    steps_of_fine_tuning,
    warn_of_fine_tuning,
)
from braindecode_pars.estimators.logits import LogitClassifier
from braindecode_pars.estimators.recentring import recentred_logits
from braindecode_pars.estimators.sharing import (
    MALFORMED,
    SharedOnHub,
    labels_from_json,
    labels_to_json,
    names_from_json,
    parameters_from_json,
    parameters_to_json,
    rows_from_json,
    save_model,
)
from braindecode_pars.estimators.windows_estimator import (
    LabeledWindows,
    Seeds,
    WindowsEstimator,
    batches,
    check_finite,
    fresh_fit,
    has_electrode_code,
    needs_one_montage,
    positions_for,
    read_labeled,
    read_to_predict,
    seeded_fit,
    warn_of_unknown_electrodes,
)
from braindecode_pars.models import PARSNet
from braindecode_pars.models.network_files import network_from_file
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.pretrained.cards import EncoderCard, read_card, unique_subjects
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.windows.amplitudes import AmplitudeRange, amplitude_range, warn_of_amplitudes
from braindecode_pars.windows.held_out import drop_held_out, hold_out, without_held_out_splits
from braindecode_pars.windows.labels import cross_entropy_weights, that_weigh
from braindecode_pars.windows.table import Windows


class PARSClassifier(LogitClassifier, SharedOnHub, WindowsEstimator):
    """Pretrain an encoder without labels, then fine-tune it with labels.

    This scikit-learn classifier runs the whole method of the paper: a pretext task on single
    channels (section 2), then a :class:`~braindecode_pars.PARSNet` on all channels (section 2.4).
    ``PARSClassifier(**paper.CLASSIFIER)`` has the published settings. The defaults are small
    enough for a laptop.

    Parameters
    ----------
    pretext : str | type[PretextTask] | PretextTask | None
        Pretext task as a name (``"pars"``, ``"mae"``, ``"spectral"``, ``"mp3"``, ``"droppos"``,
        ``"joint"``), a class or an instance. With None, the model is trained from scratch.
    pretext_params : dict | None
        Further arguments of the task, for example ``{"position_mask_ratio": 0.6}``.
    encoder : path | str | fitted estimator, net or model | None
        Pretrained encoder. With an encoder, ``fit`` does not pretrain, and the sizes of the
        encoder replace ``patch_seconds``, ``embed_dim``, ``num_layers``, ``num_heads``,
        ``mlp_dim`` and ``tokenizer``. The encoder is copied and never changed. A string is a
        folder, the name of an encoder in the package (``"small"``), or a model id of the Hugging
        Face Hub: ``"hf://owner/name"`` downloads the model, ``"owner/name"`` uses an earlier
        download. See
        :func:`~braindecode_pars.pretrained.load_encoder` for the objects that are accepted.
    continue_pretraining : bool
        Whether ``fit`` continues to pretrain ``encoder`` with the pretext task, on the training
        windows and those in ``unlabeled``, before it fine-tunes. With unlabelled windows of the
        test subjects this is transductive: report it as such.
    freeze_encoder : bool
        Whether the encoder stays fixed in fine-tuning. Only the other layers are then trained, and
        ``head_epochs`` and ``encoder_lr_factor`` have no effect.
    sfreq : float | None
        Sampling rate in Hz, for windows without one (arrays, lists).
    preprocessing : Preprocessing | dict | None
        What was done with the recordings, for what the windows do not tell, such as arrays: a
        :class:`~braindecode_pars.recordings.preprocessing.Preprocessing` or a dict of its entries.
        Entries that contradict the records of MNE or braindecode are used, with a warning.
    channels : list of str | None
        Names of the channels to use, in this order. None uses all EEG channels: those with the
        MNE type "eeg", "ecog", "seeg" or "dbs" whose name is not that of another signal, such as
        ``EOG1`` or ``SpO2``. Channels that are marked as bad are never used.
    patch_seconds : float
        Length of a patch in seconds. When the sampling rate is unknown, a patch is a thirtieth of
        the window, and ``fit`` warns.
    embed_dim, num_layers, num_heads, mlp_dim : int
        Sizes of the encoder. The defaults are small; ``paper.CLASSIFIER`` has the published sizes.
    tokenizer : "spectral" | "linear"
        Map from patches to tokens, see :class:`~braindecode_pars.PatchEncoder`. The paper's is
        linear.
    channel_drop_prob : float
        Probability of dropping a channel in fine-tuning.
    electrode_position : "auto" | bool
        Whether a code of the electrode position is added to the spatial tokens, see
        :class:`~braindecode_pars.PARSNet`. ``"auto"`` adds it when the training windows have the
        same channels and the position of at least one is known; the log says so. The paper has no
        positions.
    amplitude : bool
        Whether the model receives the amplitude of each channel relative to the others, see
        :class:`~braindecode_pars.PARSNet`. The paper has no amplitudes.
    head : "attention" | "spatial_filter" | "both"
        How the model pools the channels, see :class:`~braindecode_pars.PARSNet`. The spatial
        filters use electrode positions whatever ``electrode_position`` is.
    recenter : "subject" | None
        With ``"subject"``, the mean over the windows of each subject is subtracted from the
        features and amplitudes of each channel, so that the model sees how a window differs from
        the subject's others. A label that all windows of a subject share, such as a diagnosis, is
        removed with the mean. **This is transductive**: a prediction uses the other windows of the
        test subject, without their labels. Give the same to every method that you compare
        (:class:`~braindecode_pars.SubjectCentering` for features). In fine-tuning, a batch has
        eight windows of each of a few subjects, and the means are those of the batch. Predictions
        use all windows of a subject in the call, at least ten. Relatives are adaptive batch
        normalisation (Li et al. 2016, arXiv:1603.04779) and the recentring of covariances (Zanini
        et al. 2018, IEEE Transactions on Biomedical Engineering 65).
    pretrain_epochs, pretrain_batch_size, pretrain_lr : int | None, int, float
        Number of epochs, batch size and learning rate of pretraining. The learning rate follows a
        linear warm-up and cosine annealing. With None there are 50 epochs, or as many more as 600
        steps take.
    finetune_epochs, finetune_batch_size, finetune_lr : int | None, int, float
        Number of epochs, batch size and learning rate of fine-tuning. With None there are 30
        epochs, or as many more as 60 steps take.
    finetune_warmup : float | None
        Share of the steps of fine-tuning in which the learning rate warms up. It then falls to zero
        on a cosine, as in :class:`~braindecode_pars.callbacks.WarmupCosine`. With None it is
        constant, or that of a scheduler in ``callbacks``.
    head_epochs : int
        Number of epochs, at the beginning of fine-tuning, that train only the layers outside the
        encoder (Kumar et al. 2022). The encoder is trained from the next epoch on, if there is one.
    encoder_lr_factor : float
        Learning rate of the encoder in fine-tuning, as a factor of ``finetune_lr`` (Howard and
        Ruder 2018). 0 is the same as ``freeze_encoder=True``.
    gradient_clip : float | None
        Largest L2 norm of the gradient of all trained weights together, in fine-tuning. A longer
        gradient is shortened to this norm. With None it is not.
    label_smoothing : float
        Probability in [0, 1) that each training label gives to all classes in equal parts (Szegedy
        et al. 2016). The training loss is that of these labels; the validation loss is that of the
        true ones.
    drop_prob : float
        Dropout probability of the encoder in fine-tuning, also of a frozen one. It replaces that
        of a given encoder.
    weight_decay : float
        Weight decay of pretraining and of fine-tuning.
    augmentation : str | dict | braindecode Transform | list of these | None
        Augmentation of the training batches in fine-tuning: transforms, their names, or dicts such
        as ``{"name": "GaussianNoise", "std": 0.1}``, see
        :func:`~braindecode_pars.estimators.augmentation.make_augmentation`.
    class_weight : "balanced" | dict | None
        Class weights of the cross-entropy. ``"balanced"`` is n / (K n_c) of the training labels
        (section 2.5); a dict maps labels to weights.
    validation : float | "split"
        Share of the subjects that ``fit`` holds out for internal validation. When the subjects
        are unknown, it is a share of the windows, stratified by label. ``"split"`` holds out the
        windows whose recordings have ``split`` ``"valid"`` in their description, such as the
        validation subjects of a published corpus; all other labelled windows must have the split
        ``"train"``. The held-out windows are
        used neither for pretraining nor for fine-tuning. An ``encoder`` that was pretrained before
        may have seen a random share without labels, as may the one that the fits of an
        :func:`~braindecode_pars.evaluation.ablation` share. The state with the lowest validation
        loss is restored. This loss is the mean of the cross-entropies of all held-out windows, each
        with the weight of its class. With 0, all windows are training windows and the last state is
        kept.
    unlabeled_label : hashable | None
        Label that marks unlabelled windows. They are used for pretraining only. ``"auto"`` means
        -1, as in scikit-learn, and warns when there are such windows; -1 means the same without a
        warning. With None every window is labelled, so that -1 is a class like any other.
    callbacks : list of skorch callbacks | None
        Callbacks for fine-tuning. A learning-rate scheduler needs ``finetune_warmup=None``, and a
        callback that monitors the validation loss needs ``validation``. Early stopping with a
        warm-up ends before the rate has fallen to zero.
        :class:`~braindecode_pars.callbacks.TimeBudget` limits the time.
    pretrain_callbacks : list of skorch callbacks | None
        Callbacks for pretraining, which has its own schedule and no validation windows.
    precision : "float32" | "bfloat16"
        Floating-point precision of training. Weights and predictions are always float32.
    compile : bool
        Whether the encoder is compiled for training. Compiling takes about a minute, so it pays
        off when training takes hours.
    device : str
        Name of a torch device. ``"auto"`` uses CUDA, then MPS, then the CPU.
    random_state : int | RandomState | None
        Seed of all random draws. With an int, two fits on the CPU give exactly the same weights.
    verbose : int
        Verbosity: 0 prints nothing, 1 shows one progress bar per phase.
    checkpoint_dir : path | None
        Folder for the pretrained encoder, which is written before fine-tuning starts.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    class_names_ : dict of label to str | None
        Name of each label, where the data have names: in the ``mapping`` of braindecode's windows,
        or the ``event_id`` of an mne.Epochs. None for other data, and for labels given as ``y``
        that are not those of the data.
    net_ : skorch.NeuralNetClassifier
        Fine-tuned net; its module is a PARSNet.
    encoder_ : PatchEncoder
        Fine-tuned encoder.
    encoder_card_ : EncoderCard
        Training data and pretext task of the encoder.
    history_ : pandas.DataFrame
        Losses, one row per epoch, over both phases.
    load_report_ : LoadReport
        Tensors that were loaded. Only present when the encoder or the model came from a folder.
    sfreq_ : float | None
        Sampling rate of the training windows in Hz; None when it is unknown.
    preprocessing_ : Preprocessing
        Preprocessing of the training windows, as far as it is known. Windows to predict that were
        prepared otherwise give a warning.
    amplitudes_ : AmplitudeRange | None
        Usual amplitudes of the training windows: 5th and 95th percentile (``low``, ``high``) of the
        standard deviations of a channel in a window. ``predict_raw`` compares a recording with it.
    n_chans_, n_times_ : int
        Number of channels and of samples in a training window.
    chs_info_ : list of dict | None
        Channels as in ``mne.Info["chs"]``. None when the channels of the training windows are
        unknown; an empty list when the recordings have different channels.

    References
    ----------
    Howard and Ruder 2018, Universal language model fine-tuning for text classification,
    arXiv:1801.06146.

    Kumar et al. 2022, Fine-tuning can distort pretrained features and underperform
    out-of-distribution, arXiv:2202.10054.

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

    encoder_card_: EncoderCard
    n_chans_: int
    n_times_: int

    def __init__(
        self,
        pretext: str | type[PretextTask] | PretextTask | None = "pars",
        *,
        pretext_params: dict[str, Any] | None = None,
        encoder: Any = None,
        continue_pretraining: bool = False,
        freeze_encoder: bool = False,
        sfreq: float | None = None,
        preprocessing: Preprocessing | dict[str, Any] | None = None,
        channels: list[str] | None = None,
        patch_seconds: float = 1.0,
        embed_dim: int = 64,
        num_layers: int = 2,
        num_heads: int = 4,
        mlp_dim: int = 128,
        tokenizer: str = "spectral",
        channel_drop_prob: float = 0.5,
        electrode_position: str | bool = "auto",
        amplitude: bool = True,
        head: str = "attention",
        recenter: str | None = None,
        pretrain_epochs: int | None = None,
        pretrain_batch_size: int = BATCH_SIZE,
        pretrain_lr: float = LEARNING_RATE,
        finetune_epochs: int | None = None,
        finetune_batch_size: int = 32,
        finetune_lr: float = 1e-3,
        finetune_warmup: float | None = 0.1,
        head_epochs: int = 0,
        encoder_lr_factor: float = 1.0,
        gradient_clip: float | None = 1.0,
        label_smoothing: float = 0.0,
        drop_prob: float = 0.0,
        weight_decay: float = WEIGHT_DECAY,
        augmentation: Any = None,
        class_weight: str | dict | None = "balanced",
        validation: float | str = 0.0,
        unlabeled_label: Any = "auto",
        callbacks: list | None = None,
        pretrain_callbacks: list | None = None,
        precision: str = "float32",
        compile: bool = False,  # noqa: A002 skorch's name
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 1,
        checkpoint_dir: str | Path | None = None,
    ):
        self.pretext = pretext
        self.pretext_params = pretext_params
        self.encoder = encoder
        self.continue_pretraining = continue_pretraining
        self.freeze_encoder = freeze_encoder
        self.sfreq = sfreq
        self.preprocessing = preprocessing
        self.channels = channels
        self.patch_seconds = patch_seconds
        self.embed_dim = embed_dim
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.tokenizer = tokenizer
        self.channel_drop_prob = channel_drop_prob
        self.electrode_position = electrode_position
        self.amplitude = amplitude
        self.head = head
        self.recenter = recenter
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_lr = pretrain_lr
        self.finetune_epochs = finetune_epochs
        self.finetune_batch_size = finetune_batch_size
        self.finetune_lr = finetune_lr
        self.finetune_warmup = finetune_warmup
        self.head_epochs = head_epochs
        self.encoder_lr_factor = encoder_lr_factor
        self.gradient_clip = gradient_clip
        self.label_smoothing = label_smoothing
        self.drop_prob = drop_prob
        self.weight_decay = weight_decay
        self.augmentation = augmentation
        self.class_weight = class_weight
        self.validation = validation
        self.unlabeled_label = unlabeled_label
        self.callbacks = callbacks
        self.pretrain_callbacks = pretrain_callbacks
        self.precision = precision
        self.compile = compile
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint_dir = checkpoint_dir

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        unlabeled: Any = None,
    ) -> PARSClassifier:
        """Pretrain on the training windows, then fine-tune on the labelled ones.

        Parameters
        ----------
        X : windows
            Training windows: a braindecode windows dataset, the X of ``as_sklearn``, a list of
            windows, an mne.Epochs or an array of shape (n_windows, n_chans, n_times). Recordings
            may have their channels in different orders. When they have different numbers of
            channels, or different channels with ``electrode_position=True`` or spatial filters,
            their common channels are used and a warning lists the others.
        y : array-like, shape (n_windows,) | None
            Labels of any type. None uses the labels of the dataset.
        sample_weight : array-like, shape (n_windows,) | None
            Weight of each window in the loss of fine-tuning and of validation, which is multiplied
            by that of its class. ``class_weight="balanced"`` counts windows by their weights. The
            weights of unlabelled windows are ignored; pretraining has none. None means 1.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for ``validation``, ``recenter`` and the card of the encoder.
            None uses the subjects of the dataset.
        unlabeled : windows | SignalStore | None
            Further windows for pretraining, with any montage. A store is cut into windows of the
            same length as those of ``X``, without people of its validation and test splits. With
            ``channels``, only these are used; windows that have none of them keep all their EEG
            channels.

        Returns
        -------
        PARSClassifier
            The fitted classifier itself.

        Raises
        ------
        TypeError
            When ``X`` is of another type or contains continuous recordings, or when a parameter
            has the wrong type.
        ValueError
            When windows are missing, are malformed or contain NaN; when labels are missing, are
            all the same, or are exactly -1 and +1 (see ``unlabeled_label``); when sampling rates
            differ from each other or from that of the encoder; when a window is shorter than a
            patch; when ``validation`` is "split" and a labelled window has neither the split
            "train" nor "valid"; when a loss is not finite.
        FileNotFoundError
            When ``encoder`` is not an existing folder or model.
        KeyboardInterrupt
            After Ctrl-C. The weights trained so far are kept.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            When pretraining or fine-tuning cannot have learned, or has learned nothing: too few
            steps, a pretraining loss at chance, a validation loss that never fell, or a class that
            is predicted for no training window.
        """
        check_fit(self)
        with fresh_fit(self):
            # Read the windows: labelled, unlabelled, and further ones for pretraining.
            windows = self._read(X, y, sample_weight, groups)
            warn_of_amplitudes(windows.all)
            further = further_windows(self, unlabeled, windows.all)
            start = encoder_start(self, windows.all)
            with seeded_fit(self) as seeds:
                # Hold out validation subjects and build the net.
                train, valid = hold_out(windows.labeled, self.validation, seeds.split)
                self.amplitudes_ = amplitude_range(train)
                self.net_ = self._build_net(start, train, valid, seeds)
                start.load_into(self.encoder_)

                # Pretrain on training windows only, then fine-tune. The card is written first, so
                # that it is complete after Ctrl-C.
                parts = self._to_pretrain_on(windows, further, train, valid)
                start.pretrain(self.encoder_, parts, seeds.pretraining)
                self.encoder_card_ = replace(
                    self.encoder_card_,
                    sfreq=self.sfreq_,
                    finetune_subjects=unique_subjects(
                        self.encoder_card_.finetune_subjects, windows.labeled.people
                    ),
                )
                fine_tune(self.net_, train, valid, recenter=self.recenter)
            warn_of_fine_tuning(self, train, valid)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> LabeledWindows:
        any_montage = not needs_one_montage(self)
        windows = read_labeled(
            self, X, y, groups, any_montage=any_montage, sample_weight=sample_weight
        )
        self.n_chans_, self.n_times_ = windows.all.check()
        self.chs_info_, self.classes_ = windows.all.chs_info, windows.classes
        self.class_names_ = windows.class_names
        return windows

    def _to_pretrain_on(
        self,
        windows: LabeledWindows,
        further: list[Windows],
        train: Windows,
        valid: Windows | None,
    ) -> list[Windows]:
        """Return the training windows, and the unlabelled ones of people who are not held out."""
        unlabeled = [] if windows.unlabeled is None else [windows.unlabeled]
        parts = [without_held_out_splits(part, self.validation) for part in unlabeled + further]
        parts = [drop_held_out(part, train, valid) for part in parts]
        return [train, *(part for part in parts if part is not None)]

    def pretrained(self, X: Any, *, groups: Any = None, unlabeled: Any = None) -> PARSEmbedder:
        """Pretrain an encoder as :meth:`fit` does, for several fits that share it.

        Labels are not used. ``fit`` holds validation windows out of its own pretraining; here every
        window is used.

        Parameters
        ----------
        X, groups, unlabeled
            As in :meth:`fit`.

        Returns
        -------
        PARSEmbedder
            Fitted embedder, which ``PARSClassifier(encoder=...)`` accepts.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError, KeyboardInterrupt
            As :meth:`PARSEmbedder.fit <braindecode_pars.PARSEmbedder.fit>`.
        """
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in PARSEmbedder().get_params(deep=False) if name in own}
        return PARSEmbedder(**shared).fit(X, groups=groups, unlabeled=unlabeled)

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> TrainingCost:
        """Return what ``fit`` would cost, without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Trained parameters, steps, tokens and floating-point operations. Validation does not
            count.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As :meth:`fit`, before it trains.
        """
        clf = unfitted(self)
        with without_warnings():
            check_fit(clf)
            windows = clf._read(X, y, None, groups)
            start = encoder_start(clf, windows.all)
            with seeded_fit(clf) as seeds:
                train, valid = hold_out(windows.labeled, clf.validation, seeds.split)
                net = clf._build_net(start, train, valid, seeds)
                start.load_into(net.module_.encoder)
            n_windows = sum(map(len, clf._to_pretrain_on(windows, [], train, valid)))
            n_steps = steps_of_fine_tuning(net, train, recenter=clf.recenter)
        return classifier_cost(start, net, n_windows, that_weigh(train, "training"), n_steps)

    def n_encoder_parameters(self, X: Any) -> int:
        """Return the number of parameters of the encoder that ``fit`` would use.

        Parameters
        ----------
        X : windows
            As in :meth:`fit`. Their sampling rate determines the size of a patch.

        Returns
        -------
        int
            Number of parameters of the given encoder, or of a new one.
        """
        return encoder_size(self, X)

    @property
    def encoder_(self) -> PatchEncoder:
        """The fine-tuned encoder."""
        return self.net_.module_.encoder

    def _build_net(
        self, start: EncoderStart, train: Windows, valid: Windows | None, seeds: Seeds
    ) -> FineTuningNet:
        return fine_tuning_net(
            self,
            PARSNet,
            class_weights=cross_entropy_weights(
                train.labels, self.classes_, self.class_weight, train.weights
            ),
            n_windows=len(that_weigh(train, "training")),
            restore_best=valid is not None,
            augmentation_seed=seeds.augmentation,
            n_outputs=len(self.classes_),
            n_chans=self.n_chans_,
            chs_info=self.chs_info_ or None,
            n_times=self.n_times_,
            sfreq=self.sfreq_,
            channel_drop_prob=self.channel_drop_prob,
            electrode_position=has_electrode_code(self, self.chs_info_),
            amplitude=self.amplitude,
            head=self.head,
            recenter=self.recenter,
            **start.sizes,
        )

    @property
    def history_(self) -> pd.DataFrame:
        """Losses, one row per epoch, over both phases.

        The columns are ``phase`` (``"pretraining"`` or ``"fine-tuning"``), ``epoch``, ``restored``,
        ``train_loss``, ``valid_loss`` and ``train_loss_relative`` (the loss relative to chance).
        ``restored`` is True for the epoch whose state the model has: that with the lowest
        validation loss, unless an ``EarlyStopping(load_best=True)`` in ``callbacks`` has restored
        another. Where it is never True, as without validation, the model has the last state. When
        a :class:`~braindecode_pars.callbacks.TimeBudget` has ended a phase,
        ``history_.attrs["time_is_over"]`` has the phase and its last epoch.
        A task with several part losses adds a column ``train_loss_relative_NAME`` for each part.
        A value is NaN when its phase has no such loss.
        :func:`~braindecode_pars.plotting.training_curves` plots this table.
        """
        check_is_fitted(self)
        return history_frame(
            {"pretraining": self.pretraining_history_, "fine-tuning": self.net_.history}
        )

    def predict_proba(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : windows
            Windows of any type that :meth:`fit` accepts, and of any length of at least one patch.
            Channels are matched by name: those of ``fit`` are used, in the order of ``fit``. When
            some are missing, the others are used; when all are missing, all EEG channels. Both
            give a warning. A model with electrode positions uses those of the windows at hand, and
            warns when none of their channels is a known electrode; windows without channel names
            are assumed to have the channels of ``fit``. With ``recenter="subject"``, all channels
            of ``fit`` must be there, and the windows should be all windows of their subjects.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for ``recenter="subject"``; ignored otherwise. None uses the
            subjects of the windows.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes)
            Probabilities; the columns are in the order of ``classes_``.

        Raises
        ------
        ValueError
            When there are no windows, when their sampling rate differs from that of the model,
            when a window is shorter than a patch, or when windows contain NaN. With
            ``recenter="subject"``, when the subject of a window is unknown or has fewer than ten
            windows.
        """
        return super().predict_proba(X, groups=groups)

    def _logits(self, X: Any, groups: Any) -> Tensor:
        check_is_fitted(self)
        module = self.net_.module_.eval()
        recentres = module.recenter is not None
        windows = read_to_predict(
            self, X, any_montage=not recentres, groups=groups if recentres else None
        )
        if module.positions is not None:
            warn_of_unknown_electrodes(windows, self.n_chans_)
        if recentres:
            with torch.inference_mode():
                return check_finite(recentred_logits(module, windows))
        device = module.final_layer.weight.device
        logits, n_done = [], 0
        with torch.inference_mode():
            for batch in batches(windows, module.encoder.patch_size, device):
                # Windows of other channels have other positions.
                chs_info = windows.montage_of(n_done).chs_info
                logits.append(
                    module(batch, **positions_for(module, chs_info, batch.shape[1])).cpu()
                )
                n_done += len(batch)
        return check_finite(torch.cat(logits))

    def save(self, folder: str | Path, *, share: bool = False) -> Path:
        """Write the fitted model into a folder, without pickle.

        ``model.safetensors`` contains everything that :meth:`load` reads: weights, labels,
        parameters, history, the card of the encoder and a checksum. ``config.json`` is a copy of
        the arguments of the network. ``PARSNet.from_pretrained`` reads the folder too, and
        ``PARSClassifier(encoder=folder)`` uses its fine-tuned encoder.

        Parameters
        ----------
        folder : path
            Folder of the model. It is created if it does not exist. A classifier in it is
            replaced.
        share : bool
            Whether the folder is for others: without the names of subjects, see
            :meth:`~braindecode_pars.pretrained.EncoderCard.without_names`, without paths, and with
            a model card, ``README.md``, if there is none.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before ``fit``.
        OSError
            When the folder cannot be written. Its previous content is then unchanged.
        ValueError
            When labels are neither strings nor numbers. Also when the folder contains another
            model, or other files; with ``share``, any further file.
        """
        return save_model(self, folder, share=share)

    def _to_save(self) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
        """Return the kind of the model, its description, and its tensors."""
        weights = self.net_.criterion_.weight
        # None: unknown channels; an empty list: recordings with different channels.
        montage = "one" if self.chs_info_ else "several"
        module = self.net_.module_
        # The description of the PARSNet, and of everything else.
        description = module.description()
        description["classifier"] = {
            "parameters": parameters_to_json(self),
            "classes": labels_to_json(self.classes_),
            "class_names": self.class_names_ and list(self.class_names_.values()),
            "class_weights": None if weights is None else weights.tolist(),
            "windows": {
                "sfreq": self.sfreq_,
                "montage": "unknown" if self.chs_info_ is None else montage,
            },
            "preprocessing": self.preprocessing_.known(),
            "amplitudes": None if self.amplitudes_ is None else asdict(self.amplitudes_),
            "pretraining": asdict(self.encoder_card_),
            "history": {
                "pretraining": list(map(history_row, self.pretraining_history_)),
                "fine-tuning": list(map(history_row, self.net_.history)),
            },
        }
        return CLASSIFIER, description, module.state_dict()

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str = "auto", strict: bool = True
    ) -> PARSClassifier:
        """Load a classifier that :meth:`save` wrote.

        The loaded classifier makes exactly the same predictions as the saved one.

        Parameters
        ----------
        folder : path | str
            Folder of the model, or ``"hf://owner/name"`` to download it from the Hugging Face Hub.
        device : str
            Device of the loaded model. The saved device is ignored, because this machine may not
            have it.
        strict : bool
            Whether to raise an error when the tensors in the file differ from those of the model.
            With False, the matching tensors are loaded and ``load_report_`` lists them.

        Returns
        -------
        PARSClassifier
            A fitted classifier.

        Raises
        ------
        FileNotFoundError
            When the folder or its model file does not exist.
        ValueError
            When a file is damaged or was edited, or when its tensors do not match the model it
            describes.

        Warns
        -----
        UserWarning
            When parameters were not saved. ``encoder`` and ``checkpoint_dir`` never are: a file
            must not decide where a refit reads, downloads or writes.
        """
        folder = model_folder(folder)
        model = read_model(folder, CLASSIFIER)
        module = network_from_file(PARSNet, model, folder, strict=strict)
        # Any wrong entry ends in one error that names the folder.
        try:
            described = model.description["classifier"]
            loaded = parameters_from_json(cls, described["parameters"])
            loaded.device = device
            loaded.classes_ = labels_from_json(described["classes"])
            loaded.class_names_ = names_from_json(described.get("class_names"), loaded.classes_)
            loaded.sfreq_ = described["windows"]["sfreq"]
            montages: dict[str, Any] = {"one": module._chs_info, "several": [], "unknown": None}
            loaded.chs_info_ = montages[described["windows"]["montage"]]
            # Earlier versions saved neither preprocessing nor amplitudes.
            amplitudes = described.get("amplitudes")
            loaded.amplitudes_ = None if amplitudes is None else AmplitudeRange(**amplitudes)
            loaded.preprocessing_ = Preprocessing.of(described.get("preprocessing"))
            loaded.encoder_card_ = read_card(described["pretraining"])
            loaded.pretraining_history_ = rows_from_json(described["history"]["pretraining"])
            history = rows_from_json(described["history"]["fine-tuning"])
            weights = described["class_weights"]
            weights = None if weights is None else torch.tensor(weights, dtype=torch.float32)
            if not history:
                raise ValueError("it was never fine-tuned")
            if len(loaded.classes_) != module.n_outputs:
                raise ValueError(
                    f"it lists {len(loaded.classes_)} classes, but the model has "
                    f"{module.n_outputs} outputs"
                )
        except MALFORMED as error:
            raise ValueError(f"{folder} does not describe a PARSClassifier: {error}.") from error
        # Restore the net around the loaded module. It is not trained again.
        loaded.n_chans_, loaded.n_times_ = module.n_chans, module.n_times
        loaded.load_report_ = module.load_report
        loaded.net_ = fine_tuning_net(loaded, module, class_weights=weights)
        loaded.net_.history.extend(history)
        return loaded
