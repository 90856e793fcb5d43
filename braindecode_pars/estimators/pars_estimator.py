"""PARSClassifier and PARSRegressor: an encoder is pretrained, then a PARSNet is fine-tuned.

``PARSEstimator`` has the parameters and the fit of both. The two classes say what labels are, and
what the outputs of the network mean. ``embedder`` pretrains, ``fine_tuning`` fine-tunes.
"""

import logging
import re
from abc import abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import Any, NoReturn, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, computing, model_files, names, training
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators import embedder, fine_tuning, windows_classifier, windows_estimator
from braindecode_pars.models import PARSNet, electrodes
from braindecode_pars.pretrained import cards
from braindecode_pars.windows import Windows, amplitudes, convert, labels, transitions

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False, repr=False)
class PARSEstimator(embedder.EncoderEstimator):
    """An estimator that pretrains an encoder and fine-tunes a PARSNet; PARSClassifier describes it.

    A subclass says what the labels are, and what the outputs of the network mean.
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
    def _read(
        self, X: Any, y: Any, groups: Any, *, any_montage: bool
    ) -> tuple[Windows, np.ndarray]:
        """Return the windows of ``fit`` with labels as numbers, and whether each has one."""

    def _hold_out(self, windows: Windows, seed: int) -> tuple[Windows, Windows | None]:
        """Return training and validation windows, with the labels that the network learns."""
        return labels.hold_out(windows, self.validation, seed)

    def _fit(self, X: Any, y: Any, groups: Any, unlabeled: Any) -> Self:
        with windows_estimator.seeded_fit(self) as seeds:
            # Read the windows, start an encoder, hold windows out, and build the network
            start, train, valid, parts = self._begin(X, y, groups, unlabeled, seeds=seeds)
            self.amplitudes_ = amplitudes.amplitude_range(train, compare=True)
            # Pretrain the encoder
            start.pretrain(self.encoder_, parts, seeds.pretraining, valid)
            # Fine-tune the network. The card is written first: after Ctrl-C it is complete.
            subjects = [part.corpus_subjects for part in (train, valid) if part is not None]
            self.encoder_card_ = cards.fine_tuned_card(self.encoder_card_, self.sfreq_, *subjects)
            fine_tuning.fine_tune(self.net_, train, valid)
            fine_tuning.warn_of_fine_tuning(self, train, valid)
        return self

    def _begin(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        unlabeled: Any = None,
        *,
        seeds: windows_estimator.Seeds,
    ) -> tuple[embedder.EncoderStart, Windows, Windows | None, list[Windows]]:
        """Read the windows and build the net.

        Returns
        -------
        start : EncoderStart
            The encoder of the net before its training.
        train, valid : Windows, Windows | None
            Labeled windows, of which the second ones are held out.
        parts : list of Windows
            What to pretrain on: the training windows, and unlabeled windows of subjects who are
            not held out.
        """
        # Read the windows. Positions are those of one montage.
        has_filters = self.head in ("spatial_filter", "both")
        has_positions = self.electrode_position not in (False, checks.AUTO) or has_filters
        windows, labeled = self._read(X, y, groups, any_montage=not has_positions)
        # Start with a given encoder, or a new one
        start = embedder.load_or_build_encoder(self, windows)
        others = embedder.further_windows(self, unlabeled, windows)
        if not labeled.all():
            others = [windows[~labeled], *others]
        # Hold out windows for validation, also from pretraining
        train, valid = self._hold_out(windows[labeled], seeds.split)
        remaining = (labels.without_held_out_splits(part, self.validation) for part in others)
        remaining = (labels.drop_held_out(part, train, valid) for part in remaining)
        parts = [train, *(part for part in remaining if part is not None)]
        # Build the network
        module = self._network(start)
        self.net_ = fine_tuning.fine_tuning_net(self, module, train, valid, seed=seeds.augmentation)
        self.fine_tuning_["head"] = module.head
        if self.verbose and self.encoder is not None:
            shown = dict(self.fine_tuning_)
            if shown["freeze_encoder"]:  # the others have no effect
                shown = {name: shown[name] for name in ("freeze_encoder", "head")}
            settings = ", ".join(f"{name}={value!r}" for name, value in shown.items())
            subjects = cards.unique_subjects(train.corpus_subjects)
            number = "an unknown number of" if subjects is None else len(subjects)
            log.info("A given encoder and labels of %s people: %s.", number, settings)
        return start, train, valid, parts

    def _network(self, start: embedder.EncoderStart) -> PARSNet:
        """Return a new network; log what "auto" means for its positions."""
        # An empty list where recordings have different channels. One channel has nothing to filter.
        names, head = self.chs_info_ or [], self.head
        n_known = n_known_electrodes(names)
        is_spatial = len(names) > 1 and n_known > 0
        if head == checks.AUTO:
            head = "spatial_filter" if is_spatial else "attention"
        if self.electrode_position == checks.AUTO and self.verbose:
            state = "on" if is_spatial else "off"
            text = "electrode_position='auto' is %s: %d of %d channels are known electrodes."
            log.info(text, state, n_known, len(names))
        elif self.electrode_position not in (checks.AUTO, False) and not names:
            raise ValueError(
                "electrode_position=True needs channel names, with the same names and order in "
                "every recording."
            )
        return PARSNet(
            n_outputs=len(getattr(self, "classes_", ["one number"])),
            n_chans=self.n_chans_,
            chs_info=names or None,
            n_times=self.n_times_,
            sfreq=self.sfreq_,
            channel_drop_prob=self.channel_drop_prob,
            electrode_position=self.electrode_position,
            amplitude=self.amplitude,
            head=head,
            **start.sizes,
        )

    def pretrained(
        self, X: Any, *, groups: Any = None, unlabeled: Any = None
    ) -> embedder.PARSEmbedder:
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
            Fitted embedder, which ``encoder=`` of this estimator accepts.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError, KeyboardInterrupt
            As :meth:`PARSEmbedder.fit <braindecode_pars.PARSEmbedder.fit>`.
        """
        shared = {f.name: getattr(self, f.name) for f in fields(embedder.EncoderEstimator)}
        return embedder.PARSEmbedder(**shared).fit(X, groups=groups, unlabeled=unlabeled)

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> embedder.TrainingCost:
        """Return what ``fit`` would cost, without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Trained parameters and steps. Validation does not count.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As :meth:`fit`, before it trains.
        """
        with windows_estimator.without_training(self) as (unfitted, seeds):
            start, train, _, parts = unfitted._begin(X, y, groups=groups, seeds=seeds)
            net, steps = unfitted.net_, start.n_steps(sum(map(len, parts)))
            parameters = computing.n_parameters(net.module_)
            if steps == 0 and fine_tuning.frozen_epochs(unfitted.fine_tuning_) >= net.max_epochs:
                # A random encoder that is never trained
                parameters -= computing.n_parameters(net.module_.encoder)
            return embedder.TrainingCost(parameters, steps, fine_tuning.n_steps(net, train))

    def __sklearn_is_fitted__(self) -> bool:
        # After Ctrl-C in pretraining, the net exists but its head is untrained.
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
        if module.positions is not None:
            warn_unknown_electrodes(windows, self.n_chans_)
        device = module.final_layer.weight.device
        outputs: list[torch.Tensor] = []
        with computing.usual_torch(gradients=False):
            for batch, montage in windows_estimator.batches(
                windows, module.encoder.patch_size, device
            ):
                # Windows of other channels have other positions.
                where: dict[str, Any] = {}  # empty for the positions of the module, or none
                if module.positions is not None and montage.chs_info is not None:
                    where["chs_info"] = montage.chs_info
                elif module.positions is not None and batch.shape[1] != len(module.positions):
                    where["pos"] = torch.full((batch.shape[1], 3), torch.nan)
                outputs.append(module(batch, **where).cpu())
        return windows_estimator.check_finite(torch.cat(outputs))

    def _to_save(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        # None: unknown channels; an empty list: recordings with different channels.
        montage = "one" if self.chs_info_ else "several"
        module, weights = self.net_.module_, getattr(self.net_.criterion_, "weight", None)
        # The description of the PARSNet, and of everything else.
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

    def _restore(
        self, described: dict[str, Any], loaded: Any, tensors: dict[str, torch.Tensor]
    ) -> None:
        montages = {"one": loaded._chs_info, "several": [], "unknown": None}
        self.chs_info_ = montages[described["windows"]["montage"]]
        self.encoder_card_ = cards.read_card(described["pretraining"])
        self.n_chans_, self.n_times_ = loaded.n_chans, loaded.n_times
        self.load_report_ = loaded.load_report
        if "classes" in described:
            self.transitions_ = transitions.Transitions.from_json(described["transitions"])
        # The net around the loaded module, which is not trained again.
        self.pretraining_history_ = described["history"]["pretraining"]
        chosen = described["fine_tuning"].items()
        self.fine_tuning_ = {k: tuple(v) if isinstance(v, list) else v for k, v in chosen}
        of_classes = described["class_weights"]  # None too for numbers as labels
        of_classes = None if of_classes is None else torch.FloatTensor(of_classes)
        self.net_ = fine_tuning.fine_tuning_net(self, loaded, class_weights=of_classes)
        self.fine_tuning_["head"] = loaded.head
        self.net_.history.extend(described["history"]["fine-tuning"])


@dataclass(kw_only=True, eq=False, repr=False)
class PARSClassifier(PARSEstimator, windows_classifier.WindowsClassifier):
    """Pretrain an encoder without labels, then fine-tune it with labels.

    This scikit-learn classifier runs the whole method of the paper: a pretext task on single
    channels (section 2), then a :class:`~braindecode_pars.PARSNet` on all channels (section 2.4).
    ``PARSClassifier(**paper.CLASSIFIER)`` has the published settings. The defaults are small
    enough for a laptop.

    Parameters
    ----------
    pretext : str | type[PretextTask] | PretextTask | None
        Pretext task as a name in :data:`~braindecode_pars.pretext.PRETEXT_TASKS`, such as
        ``"pars"`` or ``"mae"``, a class or an instance. Those of space and time take a
        :class:`~braindecode_pars.models.SpaceTimeEncoder`, which compares channels; the others have
        an encoder of single channels. With None, the model is trained from scratch.
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
        windows and those in ``unlabeled``, before it fine-tunes. With unlabeled windows of the
        test subjects this is transductive: report it as such.
    sham : bool
        Whether pretraining uses the targets of other windows, so that nothing can be learned from
        it. Sham pretraining of equal steps is the control that shows what the task contributes.
    freeze_encoder : "auto" | bool
        Whether the encoder stays fixed in fine-tuning. Only the other layers are then trained, and
        ``head_epochs`` and ``encoder_lr_factor`` have no effect. ``"auto"`` freezes an ``encoder``
        that is given when it is trained on labels of fewer than 24 people, or of unknown ones, and
        neither of these two is given. The log says what it chose, and so does ``fine_tuning_``.
    sfreq : float | None
        Sampling rate in Hz, for windows without one (arrays, lists).
    preprocessing : Preprocessing | dict | None
        What was done with the recordings, for what the windows do not tell, such as arrays: a
        :class:`~braindecode_pars.windows.preprocessing.Preprocessing` or a dict of its entries.
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
        same channels, more than one, and the position of at least one is known; the log says so.
        The paper has no positions.
    amplitude : bool
        Whether the model receives the amplitude of each channel relative to the others, see
        :class:`~braindecode_pars.PARSNet`. The paper has no amplitudes.
    head : "auto" | "attention" | "spatial_filter" | "both"
        How the model pools the channels, see :class:`~braindecode_pars.PARSNet`. The paper's
        attention treats channels as a set, and hardly tells left from right. Spatial filters use
        electrode positions whatever ``electrode_position`` is. ``"auto"`` takes them when the
        training windows have the same channels, more than one, and the position of at least one is
        known, and attention otherwise; ``fine_tuning_`` says what it took.
    pretrain_epochs, pretrain_batch_size, pretrain_lr : int | None, int, float
        Number of epochs, batch size and learning rate of pretraining. With a number of epochs, the
        learning rate follows a linear warm-up and cosine annealing. If None, training continues
        while the loss on held-out subjects falls, see
        :class:`~braindecode_pars.callbacks.HeldOutSchedule`. These are the subjects of
        ``validation``, or else a tenth of the subjects, at least one, who are not trained on.
    pretrain_max_steps, pretrain_minutes : int | None, float | None
        Maximum number of steps and of minutes of pretraining, where ``pretrain_epochs`` is None. If
        both are None, there are 2000 steps at most. With ``pretrain_minutes``, the result depends
        on the speed of the machine.
    finetune_epochs, finetune_batch_size, finetune_lr : int | None, int, float
        Number of epochs, batch size and learning rate of fine-tuning. With None there are 30
        epochs, or as many more as 60 steps take.
    finetune_warmup : float | None
        Share of the steps of fine-tuning in which the learning rate warms up. It then falls to zero
        on a cosine, as in :class:`~braindecode_pars.callbacks.WarmupCosine`. With None it is
        constant, or that of a scheduler in ``callbacks``.
    head_epochs : "auto" | int
        Number of epochs, at the beginning of fine-tuning, that train only the layers outside the
        encoder (Kumar et al. 2022). The encoder is trained from the next epoch on, if there is one.
        ``"auto"`` is a third of the epochs for an ``encoder`` that is given, and 0 otherwise.
    encoder_lr_factor : "auto" | float | (float, float)
        Learning rate of the encoder in fine-tuning, as a factor of ``finetune_lr``. Two numbers are
        the factors of the tokens and of the last layer; those between grow by equal ratios (Howard
        and Ruder 2018). 0 is the same as ``freeze_encoder=True``. ``"auto"`` is (0.01, 0.1) for an
        ``encoder`` that is given, and 1 otherwise.
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
        validation subjects of a published corpus; all other labeled windows must have the split
        ``"train"``. The held-out windows are
        used neither for pretraining nor for fine-tuning. An ``encoder`` that was pretrained before
        may have seen a random share without labels, as may the one that the fits of an
        :func:`~braindecode_pars.evaluation.ablation` share. The state with the lowest validation
        loss is restored. This loss is the mean of the cross-entropies of all held-out windows, each
        with the weight of its class. With 0, all windows are training windows and the last state is
        kept.
    unlabeled_label : hashable | None
        Label that marks unlabeled windows. They are used for pretraining only. ``"auto"`` means
        -1, as in scikit-learn, and warns when there are such windows; -1 means the same without a
        warning. With None every window is labeled, so that -1 is a class like any other.
        ``VotingClassifier`` and ``StackingClassifier`` of scikit-learn number the labels before
        this classifier sees them, so that -1 is a class there: leave unlabeled windows out.
    callbacks : list of skorch callbacks | None
        Callbacks for fine-tuning. A learning-rate scheduler needs ``finetune_warmup=None``, and a
        callback that monitors the validation loss needs ``validation``. Early stopping with a
        warm-up ends before the rate has fallen to zero.
    pretrain_callbacks : list of skorch callbacks | None
        Callbacks for pretraining, which has its own schedule and no validation windows.
    precision : "float32" | "bfloat16"
        Floating-point precision of training. Weights and predictions are always float32.
    compile : bool
        Whether the encoder, and in pretraining the decoder, is compiled. Compiling takes about a
        minute, so it pays off when training takes hours.
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
    fine_tuning_ : dict
        ``freeze_encoder``, ``head_epochs``, ``encoder_lr_factor`` and ``head`` as they were in the
        fit, without "auto" and None.
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
    transitions_ : Transitions | None
        Which labels follow each other in the training windows, for ``predict_raw(smooth=True)``.
        None when no two windows touch in time.
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

    label_smoothing: float = 0.0
    class_weight: str | dict | None = "balanced"
    unlabeled_label: Any = "auto"

    _kind = model_files.CLASSIFIER

    @property
    def adapt(self) -> NoReturn:
        """Not available; use :meth:`FewLabelsClassifier.adapt`, with this as its ``encoder``."""
        raise AttributeError("PARSClassifier has no adapt; fit FewLabelsClassifier(encoder=clf).")

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, unlabeled: Any = None) -> Self:
        """Pretrain on the training windows, then fine-tune on the labeled ones.

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
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for ``validation`` and the card of the encoder.
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
            patch; when ``validation`` is "split" and a labeled window has neither the split
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
        return self._fit(X, y, groups, unlabeled)

    def _read(
        self, X: Any, y: Any, groups: Any, *, any_montage: bool
    ) -> tuple[Windows, np.ndarray]:
        windows = windows_classifier.read_labeled(self, X, y, groups, any_montage=any_montage)
        return windows, windows.labels >= 0


@dataclass(kw_only=True, eq=False, repr=False)
class PARSRegressor(RegressorMixin, PARSEstimator):
    """Pretrain an encoder without labels, then fine-tune it to predict a number.

    The number is one of each window, such as a reaction time, or one that all windows of a subject
    share, such as an age. Encoder, network and training are those of
    :class:`~braindecode_pars.PARSClassifier`; the network has one output, and another loss. The
    paper has no regression.

    Parameters
    ----------
    loss : "mse" | "huber"
        Loss of fine-tuning: the mean squared error, or Huber's, in which errors of more than one
        standard deviation of the training targets count linearly. Outliers then move the model
        less.
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
        As in :class:`~braindecode_pars.PARSClassifier`, but a share of the windows is not
        stratified.
    precision, compile, device, random_state, verbose, checkpoint_dir
        As in :class:`~braindecode_pars.PARSClassifier`.

    Attributes
    ----------
    target_mean_, target_scale_ : float
        Mean and standard deviation of the targets of the training windows. The network learns
        targets minus the mean, divided by the standard deviation.
    net_ : skorch.NeuralNetRegressor
        Fine-tuned net; its module is a PARSNet.
    encoder_, encoder_card_, fine_tuning_, history_, load_report_, sfreq_, preprocessing_, \
amplitudes_, n_chans_, n_times_, chs_info_
        As in :class:`~braindecode_pars.PARSClassifier`. The losses are those of standardized
        targets: with the mean squared error, 1 is about that of the mean of the training targets.

    Notes
    -----
    Compare it with a ridge regression on the features of the frozen encoder, which trains no
    network. For an age there are as many targets as subjects, so score subjects that are held out:
    :func:`~braindecode_pars.evaluation.regression_scores` has the scores over windows and over
    subjects.

    References
    ----------
    Huber 1964, Robust estimation of a location parameter, Annals of Mathematical Statistics 35.

    Examples
    --------
    A target of each window: the depth of simulated sleep.

    >>> import numpy as np
    >>> from braindecode_pars import PARSRegressor, as_sklearn, datasets
    >>> X, stages, subjects = as_sklearn(datasets.simulated.sleep(3, hours=0.2, n_chans=2))
    >>> depth = np.array([0.0, 1.0, 2.0, 3.0, 1.0])[stages]
    >>> regressor = PARSRegressor(pretrain_epochs=1, finetune_epochs=1, verbose=0)
    >>> regressor.fit(X, depth).predict(X).shape == depth.shape
    True

    The baseline:

    >>> from sklearn.linear_model import RidgeCV
    >>> from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import PARSEmbedder
    >>> ridge = make_pipeline(
    ...     PARSEmbedder(None, random_state=0, verbose=0),  # encoder="small" for yours
    ...     StandardScaler(),
    ...     RidgeCV(np.logspace(-2, 4, 13)),
    ... )
    >>> cross_val_predict(ridge, X, depth, groups=subjects, cv=LeaveOneGroupOut()).shape
    (72,)
    """

    loss: str = "mse"

    _kind = model_files.REGRESSOR

    # scikit-learn's metadata routing may pass groups, which predictions of numbers ignore.
    __metadata_request__score = {"groups": True}  # noqa: RUF012
    __metadata_request__predict = {"groups": True}  # noqa: RUF012

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, unlabeled: Any = None) -> Self:
        """Pretrain on the training windows, then fine-tune on those with a target.

        Parameters
        ----------
        X, groups, unlabeled
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        y : array-like, shape (n_windows,) | None
            Targets, in any unit. NaN marks windows without one, which are used for pretraining
            only. None uses the labels of the dataset, unless they are codes of named classes.
            Codes of classes whose names are numbers, such as ages, are refused; those numbers are
            ``np.array([*map(float, X.label_names)])[y]`` after ``X, y, _ = as_sklearn(windows)``.

        Returns
        -------
        PARSRegressor
            The fitted regressor itself.

        Raises
        ------
        TypeError, FileNotFoundError, KeyboardInterrupt
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        ValueError
            For the same windows and settings as there; when targets are missing, are no real
            numbers, are codes of the dataset's classes, are infinite, or are all the same.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            When pretraining or fine-tuning cannot have learned, or has learned nothing: too few
            steps, a pretraining loss at chance, or a validation loss that never fell, or was never
            below that of the mean of the training targets.
        """
        return self._fit(X, y, groups, unlabeled)

    def _read(
        self, X: Any, y: Any, groups: Any, *, any_montage: bool
    ) -> tuple[Windows, np.ndarray]:
        windows = windows_estimator.read_windows(self, X, y, groups, any_montage=any_montage)
        targets = _targets(windows, y)
        return windows.with_labels(targets), ~np.isnan(targets)

    def _hold_out(self, windows: Windows, seed: int) -> tuple[Windows, Windows | None]:
        train, valid = labels.hold_out(windows, self.validation, seed, stratified=False)
        targets = train.labels
        if labels.are_equal(targets):
            # scikit-learn's estimator checks expect "one sample" in the message.
            raise ValueError(
                f"All training targets are {targets[0]:g}, as if there were one sample; pass "
                "targets that differ."
            )
        self.target_mean_, self.target_scale_ = float(targets.mean()), float(targets.std())
        parts: list[Any] = [train, valid]
        for i, part in enumerate(parts):
            if part is not None:
                standardized = (part.labels - self.target_mean_) / self.target_scale_
                # In single precision, since some GPUs have no other.
                parts[i] = part.with_labels(standardized.astype(np.float32))
        return parts[0], parts[1]

    def predict(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the predicted number of each window.

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
        """Predict a continuous recording, window after window.

        Parameters
        ----------
        raw, overlap, preprocess, rescale
            As in :meth:`PARSClassifier.predict_raw <braindecode_pars.PARSClassifier.predict_raw>`.

        Returns
        -------
        pandas.DataFrame
            One row for each window, with ``onset`` and ``duration`` in seconds, ``prediction`` in
            the unit of the targets, NaN in a window with a gap or a "BAD" annotation, and
            ``n_chans``. With ``overlap``, a prediction is the mean over the windows that share
            samples with the row. Its ``attrs`` are those of PARSClassifier, without classes.

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
        """Return the coefficient of determination, r2, of the windows with a target.

        Parameters
        ----------
        X, groups
            As in ``predict``.
        y : array-like, shape (n_windows,) | None
            Targets. Windows with NaN are ignored. None uses the labels of the dataset.
        sample_weight : array-like, shape (n_windows,) | None
            Weight of each window.

        Returns
        -------
        float
            1 for perfect predictions, 0 for the mean of ``y``, and less than 0 for worse ones. NaN
            with a warning where all targets are the same.

        Raises
        ------
        ValueError
            When windows, targets or weights are malformed, or when no target is known.
        """
        check_is_fitted(self)
        windows = convert.as_windows(X, y, groups)
        targets = _targets(windows, y)
        known = ~np.isnan(targets)
        if sample_weight is not None:
            sample_weight = labels.check_weights(sample_weight, len(windows))[known]
        predicted = self.predict(windows)[known]
        if labels.are_equal(targets[known]):
            checks.warn_user(
                f"All targets are {targets[known][0]:g}, for which r2 is not defined; score "
                "windows of several subjects together, as regression_scores does."
            )
            return float("nan")
        return float(r2_score(targets[known], predicted, sample_weight=sample_weight))


def _targets(windows: Windows, y: Any) -> np.ndarray:
    """Return the targets of windows: ``y``, or the labels of the dataset if they are quantities."""
    codes = set() if windows.y is None else {*windows.y.tolist()}
    named = (windows.label_names or {}).items()
    names = [name for name, code in named if code in codes and name != str(code)]
    # Codes of other names may be ordinal, such as the depth of sleep.
    are_numbers = all(re.fullmatch(r"-?\d+(\.\d+)?", name) for name in names)
    if names and (y is None or are_numbers):
        values = ", y = np.array([*map(float, X.label_names)])[y] after X, y, _ = as_sklearn(...)"
        raise ValueError(
            f"The labels of these windows are codes of classes ({checks.format_list(names)}), not "
            f"quantities; pass y, one number for each window{values if are_numbers else ''}. "
            "PARSClassifier takes classes."
        )
    return labels.targets_of(windows)


def warn_unknown_electrodes(windows: Windows, n_chans: int | None) -> None:
    """Warn of windows to predict in which no electrode position is known.

    ``n_chans`` is the number of channels of the fit. Windows without channel names are assumed to
    have the channels of the fit, if they have as many.
    """
    n_unknown, example = 0, ""
    for number, montage in enumerate(windows.montages):
        indices = np.flatnonzero(windows.montage_numbers == number)
        if montage.chs_info is None:
            is_known = len(windows[int(indices[0])]) == n_chans
        else:
            is_known = n_known_electrodes(montage.chs_info) > 0
        if not is_known:
            n_unknown, example = (
                n_unknown + len(indices),
                checks.format_list(montage.names, max_items=3),
            )
    if n_unknown:
        checks.warn_user(
            f"No electrode position is known in {n_unknown} of {len(windows)} windows (channels "
            f"{example or 'without names'}). Rename them as in the 10-05 system, or set a montage."
        )


def n_known_electrodes(chs_info: list[dict]) -> int:
    """Return how many channels have a known position."""
    return int(np.isfinite(electrodes.electrode_positions(chs_info)).all(axis=1).sum())
