"""PARSClassifier: pretraining and fine-tuning as one scikit-learn classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from braindecode_pars._common.model_files import CLASSIFIER
from braindecode_pars.estimators.pars_estimator import PARSEstimator
from braindecode_pars.estimators.windows_estimator import LogitClassifier, read_labelled
from braindecode_pars.windows.held_out import hold_out
from braindecode_pars.windows.table import Windows


@dataclass(kw_only=True, eq=False, repr=False)
class PARSClassifier(LogitClassifier, PARSEstimator):
    """Pretrain an encoder without labels, then fine-tune it with labels.

    This scikit-learn classifier runs the whole method of the paper: a pretext task on single
    channels (section 2), then a :class:`~braindecode_pars.PARSNet` on all channels (section 2.4).
    ``PARSClassifier(**paper.CLASSIFIER)`` has the published settings. The defaults are small
    enough for a laptop.

    Parameters
    ----------
    pretext : str | type[PretextTask] | PretextTask | None
        Pretext task as a name (``"pars"``, ``"mae"``, ``"spectral"``, ``"features"``,
        ``"mp3"``, ``"droppos"``, ``"joint"``), a class or an instance. With None, the model is
        trained from scratch.
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
    freeze_encoder : "auto" | bool
        Whether the encoder stays fixed in fine-tuning. Only the other layers are then trained, and
        ``head_epochs`` and ``encoder_lr_factor`` have no effect. ``"auto"`` freezes an ``encoder``
        that is given when it is trained on labels of fewer than 24 people, or of unknown ones, and
        neither of these two is given. The log says what it chose, and so does ``fine_tuning_``.
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
    head : "auto" | "attention" | "spatial_filter" | "both"
        How the model pools the channels, see :class:`~braindecode_pars.PARSNet`. The paper's
        attention treats channels as a set, and hardly tells left from right. Spatial filters use
        electrode positions whatever ``electrode_position`` is. ``"auto"`` takes them when the
        training windows have the same channels, more than one, and the position of at least one is
        known, and attention otherwise; ``fine_tuning_`` says what it took.
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
        fit, without "auto" and None, see
        :func:`~braindecode_pars.estimators.fine_tuning.fine_tuning_defaults`.
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

    _kind = CLASSIFIER

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, unlabeled: Any = None
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
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for ``validation`` and the card of the encoder.
            None uses the subjects of the dataset.
        unlabeled : windows | SignalStore | SyntheticSignals | None
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
        return self._fit(X, y, groups, unlabeled)

    def _read(
        self, X: Any, y: Any, groups: Any, *, any_montage: bool
    ) -> tuple[Windows, np.ndarray]:
        windows = read_labelled(self, X, y, groups, any_montage=any_montage)
        return windows, windows.labels >= 0

    def _hold_out(self, windows: Windows, seed: int) -> tuple[Windows, Windows | None]:
        return hold_out(windows, self.validation, seed)

    def _logits(self, X: Any, groups: Any) -> Tensor:
        return self._outputs(X)
