"""Base class of estimators that pretrain an encoder: initial encoder of a fit, and pretraining."""

import logging
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from braindecode_pars import pretraining
from braindecode_pars._common import checks, computing, model_files, settings, tables, training
from braindecode_pars._common.settings import PretrainingSettings
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators import saved_estimator, windows_estimator
from braindecode_pars.models import parsnet
from braindecode_pars.models.space_time import build_encoder
from braindecode_pars.pretext import base
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.windows import Windows, amplitudes, convert, picking
from braindecode_pars.windows.preprocessing import Preprocessing, agreed

log = logging.getLogger(__name__)

#: Arguments of a new encoder that are also parameters of the estimators.
SIZES = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer")


@dataclass(frozen=True)
class EncoderStart:
    """Initial encoder of a fit, and the settings of its pretraining.

    Attributes
    ----------
    n_chans, n_times : int
        Shape of the windows of ``fit``.
    sfreq : float | None
        Sampling rate of the windows in Hz. If it is unknown, the sampling rate of the loaded
        encoder, or None for a new encoder.
    preprocessing : Preprocessing
        Preprocessing of the windows.
    card : EncoderCard
        Encoder card: metadata of the encoder, such as its training data and pretext task.
    sizes : dict
        Arguments of ``build_encoder``, which builds an encoder with initial weights.
    loaded_encoder : Pretrained | None
        Pretrained encoder that was loaded; None for a new encoder.
    settings : PretrainingSettings | None
        Settings of pretraining; None if ``fit`` does not pretrain.
    """

    n_chans: int
    n_times: int
    sfreq: float | None
    preprocessing: Preprocessing
    card: cards.EncoderCard
    sizes: dict[str, Any]
    loaded_encoder: cards.Pretrained | None
    settings: PretrainingSettings | None

    def n_steps(self, n_windows: int) -> float:
        """Return the maximum number of pretraining steps of a fit on ``n_windows`` windows.

        The steps in which a loaded encoder was pretrained earlier are included. NaN if their number
        is unknown.
        """
        steps = 0 if self.loaded_encoder is None else _steps_of_card(self.card)
        if (plan := self.settings) is not None:
            steps_per_epoch = math.ceil(n_windows / plan.batch_size)
            steps += plan.step_limit if plan.epochs is None else plan.epochs * steps_per_epoch
        return steps

    def new_encoder(self) -> PatchEncoder:
        """Return an encoder with initial weights."""
        return build_encoder(**self.sizes)

    def make_task(self) -> base.PretextTask:
        """Return the pretext task of this fit, with a new encoder."""
        plan: Any = self.settings
        shape: Any = dict(n_times=self.n_times, sfreq=self.sfreq, encoder=self.new_encoder())
        return base.make_task(plan.task, task_params=plan.task_params, **shape)

    def pretrained_card(
        self, net: pretraining.PretrainingNet, history: list[dict[str, Any]], parts: list[Windows]
    ) -> cards.EncoderCard:
        """Return the card (metadata) of the encoder after pretraining on the windows in ``parts``.

        ``parts`` contains the training windows of ``fit``, then the unlabeled windows, if any.
        ``net`` is the net that trained the pretext task, and ``history`` contains the losses of
        each complete epoch.
        """
        # The card contains no channel names, because an encoder processes single channels.
        descriptions = [replace(self.preprocessing, channels=None)]
        descriptions += [agreed(part.column("preprocessing")) for part in parts[1:]]
        plan: Any = self.settings
        batches = [batch for row in net.history for batch in row["batches"]]
        # A batch that was interrupted by Ctrl-C has no size.
        sizes = [batch["train_batch_size"] for batch in batches if "train_batch_size" in batch]
        card = cards.EncoderCard(
            sfreq=self.sfreq,
            task=net.task_.name,
            task_params=dict(plan.task_params),
            subjects=cards.unique_subjects(*(part.corpus_subjects for part in parts)),
            n_windows=sum(map(len, parts)),
            epochs=len(history),
            n_times=net.task_.n_times,
            n_steps=len(sizes),
            n_examples=sum(sizes),
            **training.card_losses(history),
            sham=plan.sham,
            preprocessing=agreed(descriptions),
        )
        return card if self.loaded_encoder is None else card.continues(self.card)


def _steps_of_card(card: cards.EncoderCard) -> float:
    if card.subjects == [] and card.task is None:  # never pretrained
        return 0
    steps = math.nan if card.n_steps is None else card.n_steps
    earlier = card.continued_from
    return steps + (_steps_of_card(cards.read_card(earlier)) if earlier else 0)


def load_or_build_encoder(estimator: Any, windows: Windows, source: Any = None) -> EncoderStart:
    """Load the encoder of an estimator, or determine the sizes of a new encoder.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameter ``encoder``. If ``fit`` builds or pretrains an encoder, the
        estimator must also have the parameters that define a new encoder and its pretraining.
    windows : Windows
        Windows that were passed to ``fit``.
    source : Any
        Encoder that was already loaded. If None, the parameter ``encoder`` is used.

    Returns
    -------
    EncoderStart
        The loaded encoder with its card (metadata), or the sizes of the encoder to build; and the
        settings of pretraining.

    Raises
    ------
    ValueError
        If the windows are malformed, differ in sampling rate from the pretrained encoder, or are
        shorter than a patch of the encoder. If ``sham=True`` (a control for pretraining), but
        ``fit`` does not pretrain.

    Warns
    -----
    UserWarning
        If the sampling rate is unknown, or if the preprocessing of the windows differs from the
        preprocessing of the pretraining data of the encoder.
    """
    n_chans, n_times = windows_estimator.check_fit_windows(windows)
    source = estimator.encoder if source is None else source
    loaded = None if source is None else saved.load_encoder(source)
    if loaded is None:
        patch_size = parsnet.patch_size_for(estimator.patch_seconds, windows.sfreq, n_times)
        sizes = dict(patch_size=patch_size, **{name: getattr(estimator, name) for name in SIZES})
        sizes["encoder_kind"] = base.encoder_kind_of(estimator.pretext)
        card = cards.EncoderCard(sfreq=windows.sfreq)
    else:
        sizes, card = loaded.encoder.config, loaded.card
        patch_size = loaded.encoder.patch_size
        remedy = "resample the recordings, for example with raw.resample({expected:g})"
        whose = "The windows are", "the encoder was pretrained at"
        checks.check_same_rate(windows.sfreq, card.sfreq, *whose, remedy)
        parsnet.check_length(n_times, patch_size)
    if windows.sfreq is None:
        assumption = f"patches of {patch_size} samples are used"
        if card.sfreq is not None:
            assumption = f"it is assumed to be {card.sfreq:g} Hz, as in pretraining"
        checks.warn_user(
            f"The sampling rate of X is unknown, so {assumption}. Pass sfreq (in Hz) to "
            f"{type(estimator).__name__}. If you passed a windows dataset through scikit-learn, "
            "for example to cross_val_score, scikit-learn converted it to a list without metadata. "
            "In this case, use X, y, groups = as_sklearn(windows) and pass this X, which retains "
            "the sampling rate, the channel names and the subjects."
        )
    sfreq = card.sfreq if windows.sfreq is None else windows.sfreq
    preprocessing = windows_estimator.preprocessing_of(estimator, windows, sfreq, n_times)
    if differing := card.differences(preprocessing):
        listing = "; ".join(entry.text("in pretraining") for entry in differing)
        advice = windows_estimator.advice(differing, "preprocessing of the pretraining data")
        checks.warn_user(
            "Preprocessing of these windows differs from the pretraining data of the encoder: "
            f"{listing}. {advice}"
        )
    if loaded is not None and loaded.report is not None and estimator.verbose:
        log.info("Pretrained encoder (%s): %s.", estimator.encoder, loaded.report)
    plan = pretraining_settings(estimator)
    return EncoderStart(n_chans, n_times, sfreq, preprocessing, card, sizes, loaded, plan)


def pretraining_settings(estimator: Any) -> PretrainingSettings | None:
    """Return the settings of the pretraining in ``fit``; None if ``fit`` does not pretrain."""
    params = vars(estimator)
    pretrains = params.get("pretext") is not None and params["pretrain_epochs"] != 0
    if params["encoder"] is not None:
        pretrains = pretrains and params["continue_pretraining"]
    if not pretrains:
        if params.get("sham"):
            raise ValueError(
                "sham=True has no effect, because fit does not pretrain. Use sham=False. To "
                "pretrain, set pretext to a pretext task, and do not use pretrain_epochs=0. If you "
                "pass an encoder, also set continue_pretraining=True."
            )
        return None
    task_params = base.params_of(params["pretext"], params["pretext_params"])
    shared = {name.removeprefix("pretrain_"): value for name, value in params.items()}
    return PretrainingSettings.of(shared, task=params["pretext"], task_params=task_params)


def further_windows(estimator: Any, unlabeled: Any, windows: Windows) -> list[Windows]:
    """Validate the argument ``unlabeled`` of ``fit``, and convert it to windows for pretraining.

    Returns a list with the converted windows as its only entry, or an empty list if ``unlabeled``
    is None or ``fit`` does not pretrain. If a window contains none of the channels in the parameter
    ``channels``, all EEG channels of this window are used.

    Raises
    ------
    ValueError
        If there are no windows, or their sampling rate differs from the sampling rate of ``X``.

    Warns
    -----
    UserWarning
        If ``fit`` does not pretrain and therefore does not use the unlabeled windows, or if the
        preprocessing of the unlabeled windows differs from the preprocessing of ``X``.
    """
    if unlabeled is None:
        return []
    if pretraining_settings(estimator) is None:
        checks.warn_user(
            "The windows passed as unlabeled= are not used, because fit does not pretrain. To "
            "pretrain on these windows, set pretext to a pretext task, and do not use "
            "pretrain_epochs=0. If you pass an encoder, also set continue_pretraining=True. To fit "
            "without pretraining, do not pass unlabeled."
        )
        return []
    further = convert.as_windows(unlabeled, n_times=estimator.n_times_)
    if len(further) == 0:
        raise ValueError("unlabeled= contains no windows. Pass windows, or unlabeled=None.")
    checks.check_same_rate(
        further.sfreq, windows.sfreq, "The unlabeled windows are", "X is sampled at"
    )
    if estimator.channels is None:
        further = picking.pick_eeg(further)
    else:
        further = picking.pick_as_fitted(further, estimator.chs_info_, any_montage=True)
    amplitudes.warn_of_amplitudes(further)
    expected, names = estimator.preprocessing_, cards.OF_ENCODERS
    beginning = "Preprocessing of the unlabeled windows differs from the preprocessing of X"
    windows_estimator.warn_of_differences(expected, further, beginning, names, expected_in="in X")
    return [further]


@dataclass(kw_only=True, eq=False, repr=False)
class EncoderEstimator(BaseEstimator):
    """Base class of estimators that pretrain an encoder.

    The parameters are described in PARSClassifier.
    """

    # The windows
    sfreq: float | None = None
    preprocessing: Preprocessing | dict[str, Any] | None = None
    channels: list[str] | None = None
    # The encoder and its pretraining
    pretext: str | type[base.PretextTask] | base.PretextTask | None = field(
        default="pars", kw_only=False
    )
    pretext_params: dict[str, Any] | None = None
    encoder: Any = None
    continue_pretraining: bool = False
    sham: bool = False
    patch_seconds: float = 1.0
    embed_dim: int = 64
    num_layers: int = 2
    num_heads: int = 4
    mlp_dim: int = 128
    tokenizer: str = "spectral"
    pretrain_epochs: int | None = None
    pretrain_max_steps: int | None = None
    pretrain_minutes: float | None = None
    pretrain_batch_size: int = settings.BATCH_SIZE
    pretrain_lr: float = settings.LEARNING_RATE
    pretrain_callbacks: list | None = None
    # All training
    weight_decay: float = settings.WEIGHT_DECAY
    precision: str = "float32"
    compile: bool = False
    device: str = "auto"
    random_state: Any = None
    verbose: int = 1
    checkpoint_dir: str | Path | None = None

    #: Kind of the model file.
    _kind = model_files.EMBEDDER

    history_ = property(windows_estimator.fitted_history)
    save = saved_estimator.save
    load = classmethod(saved_estimator.load)
    from_pretrained = classmethod(saved_estimator.from_pretrained)
    __sklearn_clone__ = saved_estimator.clone_with_encoder
    _pretrained_card = saved_estimator.pretrained_card

    def n_encoder_parameters(self, X: Any) -> int:
        """Return the number of weights of the encoder that ``fit`` would use, without training.

        Parameters
        ----------
        X : windows
            Windows, as in ``fit``. The number of parameters depends on their sampling rate, which
            determines the number of samples in a patch.

        Returns
        -------
        int
            Number of weights.
        """
        with windows_estimator.without_training(self) as (unfitted, _):
            windows = windows_estimator.read_windows(unfitted, X, any_montage=True)
            return computing.n_parameters(unfitted._start(windows).new_encoder())

    def _start(self, windows: Windows, source: Any = None) -> EncoderStart:
        """Load or build the encoder, and set the fitted attributes of encoder and windows."""
        start = load_or_build_encoder(self, windows, source)
        self.n_chans_, self.n_times_ = start.n_chans, start.n_times
        self.chs_info_, self.sfreq_ = windows.chs_info, start.sfreq
        self.preprocessing_, self.encoder_card_ = start.preprocessing, start.card
        self.pretraining_history_: list[dict[str, Any]] = []
        if (loaded := start.loaded_encoder) is not None and loaded.report is not None:
            self.load_report_ = loaded.report
        return start

    def _pretrain(
        self,
        start: EncoderStart,
        encoder: PatchEncoder,
        parts: list[Windows],
        seed: int,
        held_out: Windows | None = None,
    ) -> None:
        """Load the initial weights, and pretrain the encoder.

        When pretraining ends, also after Ctrl-C, the encoder is saved in ``checkpoint_dir``.

        Parameters
        ----------
        start : EncoderStart
            Initial encoder of this fit, and the settings of its pretraining.
        encoder : PatchEncoder
            Encoder whose weights are updated in place.
        parts : list of Windows
            Windows for pretraining. The first entry contains the windows of ``fit``.
        seed : int
            Seed of all random numbers.
        held_out : Windows | None
            Windows on which the held-out loss is computed, used only if ``pretrain_epochs`` is
            None. If ``held_out`` is also None, a tenth of the subjects in ``parts`` is held out.
        """
        if start.loaded_encoder is not None:
            encoder.load_state_dict(start.loaded_encoder.encoder.state_dict())
        if start.settings is None:
            return

        def remember(net: pretraining.PretrainingNet) -> None:
            # An interrupted epoch has no relative loss, and is excluded.
            history = [dict(row) for row in net.history if tables.RELATIVE in row]
            card = start.pretrained_card(net, history, parts)
            self.pretraining_history_, self.encoder_card_ = history, card
            self._remember_task(net.task_)
            if self.checkpoint_dir is not None:
                saved.save_encoder(encoder, card, self.checkpoint_dir)

        # Crops are as long as the shortest window, so that every window has a crop.
        pretraining.pretrain_encoder(
            encoder,
            parts,
            start.settings,
            sfreq=start.sfreq,
            n_times=min([start.n_times, *(part.shortest() for part in parts[1:])]),
            held_out_windows=held_out,
            callbacks=self.pretrain_callbacks,
            on_end=remember,
            seed=seed,
            verbose=self.verbose,
        )

    def _remember_task(self, task: base.PretextTask) -> None:
        """Store the trained pretext task as an attribute, in estimators with this attribute."""
