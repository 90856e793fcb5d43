"""Where the encoder of a fit begins, and its pretraining on the windows of the fit.

An encoder is given, or a new one is built. ``PARSEmbedder`` and ``PARSClassifier`` share this.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from braindecode_pars._common import checks, computing, tables
from braindecode_pars._common.settings import (
    BATCH_SIZE,
    LEARNING_RATE,
    WEIGHT_DECAY,
    PretrainingSettings,
)
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.models import patch_size_for
from braindecode_pars.models.space_time import build_encoder
from braindecode_pars.pretext.base import PretextTask, encoder_kind_of, make_task
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.pretraining import (
    PretrainingNet,
    default_epochs_of,
    pretrain_encoder,
)
from braindecode_pars.recordings.preprocessing import Preprocessing, agreed, counted
from braindecode_pars.windows import Windows, amplitudes, door, picking

log = logging.getLogger(__name__)

#: Arguments of a new encoder that are parameters of the estimators.
SIZES = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer")


@dataclass(kw_only=True, eq=False, repr=False)
class EncoderEstimator(saved.SavedEstimator, windows_estimator.WindowsEstimator):
    """An estimator with an encoder, given or pretrained; for its parameters see PARSClassifier."""

    # The windows
    sfreq: float | None = None
    preprocessing: Preprocessing | dict[str, Any] | None = None
    channels: list[str] | None = None
    # The encoder, new or given, and its pretraining
    pretext: str | type[PretextTask] | PretextTask | None = field(default="pars", kw_only=False)
    pretext_params: dict[str, Any] | None = None
    encoder: Any = None
    continue_pretraining: bool = False
    patch_seconds: float = 1.0
    embed_dim: int = 64
    num_layers: int = 2
    num_heads: int = 4
    mlp_dim: int = 128
    tokenizer: str = "spectral"
    pretrain_epochs: int | None = None
    pretrain_batch_size: int = BATCH_SIZE
    pretrain_lr: float = LEARNING_RATE
    pretrain_callbacks: list | None = None
    # All training
    weight_decay: float = WEIGHT_DECAY
    precision: str = "float32"
    compile: bool = False
    device: str = "auto"
    random_state: Any = None
    verbose: int = 1
    checkpoint_dir: str | Path | None = None

    history_ = property(windows_estimator.fitted_history)

    @property
    def _has_to_pretrain(self) -> bool:
        """Whether there is something to pretrain: a new encoder, or one that it continues with."""
        return self.pretext is not None and (self.encoder is None or self.continue_pretraining)

    def n_encoder_parameters(self, X: Any) -> int:
        """Return the number of parameters of the encoder that ``fit`` would use.

        Parameters
        ----------
        X : windows
            As in ``fit``. Their sampling rate determines the size of a patch.

        Returns
        -------
        int
            Number of parameters of the given encoder, or of a new one.
        """
        with windows_estimator.without_training(self) as (unfitted, _):
            windows = windows_estimator.read_windows(unfitted, X, any_montage=True)
            return computing.n_parameters(begin(unfitted, windows).new_encoder())


class TrainingCost(NamedTuple):
    """What a fit costs.

    Attributes
    ----------
    parameters : int
        Number of weights that are trained, in pretraining or in fine-tuning. Decoders of pretext
        tasks, which are discarded, do not count.
    pretraining_steps : float
        Number of steps of pretraining, also of the earlier one of a given encoder; NaN when that
        is unknown.
    finetuning_steps : int
        Number of steps of fine-tuning.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> cost = PARSClassifier(None, finetune_epochs=2, channel_drop_prob=0).training_cost(windows)
    >>> cost.pretraining_steps, cost.finetuning_steps  # 2 epochs of 24 windows
    (0, 2)
    """

    parameters: int
    pretraining_steps: float
    finetuning_steps: int


@dataclass(frozen=True)
class EncoderStart:
    """The encoder of a fit before its training, and how it is pretrained.

    Attributes
    ----------
    estimator : PARSClassifier | PARSEmbedder
        Estimator with the parameters of pretraining.
    sizes : dict
        Arguments of the encoder, and its kind.
    given : Pretrained | None
        The encoder that was given; None for a new one.
    """

    estimator: Any
    sizes: dict[str, Any]
    given: cards.Pretrained | None

    @property
    def is_pretrained(self) -> bool:
        """Whether the fit pretrains: a new encoder, or one that it continues with."""
        return self.estimator._has_to_pretrain and self.estimator.pretrain_epochs != 0

    @property
    def settings(self) -> PretrainingSettings:
        given = vars(self.estimator)
        return PretrainingSettings(
            task=given["pretext"],
            task_params=given["pretext_params"] or {},
            **{name: given[f"pretrain_{name}"] for name in ("epochs", "lr", "batch_size")},
            **{name: given[name] for name in ("weight_decay", "precision", "compile", "device")},
        )

    def n_steps(self, n_windows: int) -> float:
        """Return the steps of pretraining, also of the earlier one of a given encoder.

        NaN when these are unknown.
        """
        earlier = 0 if self.given is None else _steps_of_card(self.given.card)
        settings = self.settings
        if not self.is_pretrained:
            return earlier
        epochs = settings.epochs
        epochs = default_epochs_of(settings, n_windows) if epochs is None else epochs
        return earlier + epochs * math.ceil(n_windows / settings.batch_size)

    def new_encoder(self) -> PatchEncoder:
        """Return an encoder with initial weights."""
        return build_encoder(**self.sizes)

    def make_task(self, encoder: PatchEncoder) -> PretextTask:
        """Return the pretext task that trains this encoder, on windows as long as those of fit."""
        return make_task(
            self.estimator.pretext,
            n_times=self.estimator.n_times_,
            encoder=encoder,
            task_params=self.estimator.pretext_params,
            sfreq=self.estimator.sfreq_,
        )

    def pretrain(
        self,
        encoder: PatchEncoder,
        parts: list[Windows],
        seed: int,
        on_end: Callable[[PretextTask], None] = lambda task: None,
    ) -> None:
        """Give an encoder the weights to start with, pretrain it, and set its history and card.

        The encoder is written to ``checkpoint_dir``, also after Ctrl-C.

        Parameters
        ----------
        encoder : PatchEncoder
            Encoder that is trained in place.
        parts : list of Windows
            Windows to pretrain on. The windows of ``fit`` are the first entry.
        seed : int
            Seed of all random draws.
        on_end : callable
            Function that receives the trained task, also after Ctrl-C.
        """
        if self.given is not None:
            encoder.load_state_dict(self.given.encoder.state_dict())
        if not self.is_pretrained:
            return
        estimator, further = self.estimator, parts[1:]
        trained = estimator.preprocessing_
        known = [replace(trained, channels=None)]  # an encoder sees one channel at a time
        for windows in further:
            beginning = "The unlabelled windows were prepared otherwise than the others"
            windows_estimator.warn_of_differences(trained, windows, beginning, cards.OF_ENCODERS)
            known.append(agreed(counted(windows.column("preprocessing"))))
        preprocessing = agreed(known)

        def keep(net: PretrainingNet) -> None:
            # An epoch that was interrupted has no relative loss.
            history = [dict(row) for row in net.history if tables.RELATIVE in row]
            card = self._card(net, history, parts, preprocessing)
            estimator.pretraining_history_, estimator.encoder_card_ = history, card
            on_end(net.task_)
            if estimator.checkpoint_dir is not None:
                saved.save_encoder(encoder, card, estimator.checkpoint_dir)

        # Weights that were pretrained before need not move by their size.
        continued = partial(PretrainingNet, callbacks__enough_steps=None)
        # Crops are as long as the shortest window, so that every window has a crop.
        pretrain_encoder(
            encoder,
            parts,
            self.settings,
            sfreq=estimator.sfreq_,
            n_times=min([estimator.n_times_, *(part.shortest() for part in further)]),
            callbacks=estimator.pretrain_callbacks,
            on_end=keep,
            seed=seed,
            verbose=estimator.verbose,
            net=None if self.given is None else continued,
        )

    def _card(
        self,
        net: PretrainingNet,
        history: list[dict[str, Any]],
        parts: list[Windows],
        preprocessing: Preprocessing,
    ) -> cards.EncoderCard:
        batches = [batch for row in net.history for batch in row["batches"]]
        # The batch of Ctrl-C has no size.
        sizes = [batch["train_batch_size"] for batch in batches if "train_batch_size" in batch]
        card = cards.EncoderCard(
            sfreq=self.estimator.sfreq_,
            task=net.task_.name,
            task_params=dict(self.estimator.pretext_params or {}),
            subjects=cards.unique_subjects(*(part.people for part in parts)),
            n_windows=sum(map(len, parts)),
            epochs=len(history),
            n_times=net.task_.n_times,
            n_steps=len(sizes),
            n_examples=sum(sizes),
            loss_relative=history[-1][tables.RELATIVE] if history else None,
            preprocessing=preprocessing,
        )
        return card if self.given is None else card.continues(self.given.card)


def _steps_of_card(card: cards.EncoderCard) -> float:
    if card.subjects == [] and card.task is None:  # never pretrained
        return 0
    steps = math.nan if card.n_steps is None else card.n_steps
    return steps + (
        _steps_of_card(cards.read_card(card.continued_from)) if card.continued_from else 0
    )


def begin(estimator: Any, windows: Windows) -> EncoderStart:
    """Load the encoder of an estimator, or choose the sizes of a new one.

    Sets the attributes ``n_chans_``, ``n_times_``, ``chs_info_``, ``sfreq_``, ``preprocessing_``,
    ``encoder_card_``, ``pretraining_history_`` and, for an encoder from a folder, ``load_report_``.

    Raises
    ------
    ValueError
        When the windows are malformed, have another sampling rate than the given encoder, or are
        shorter than one of its patches.
    """
    windows_estimator.remember_windows(estimator, windows)
    given = None if estimator.encoder is None else saved.load_encoder(estimator.encoder)
    if given is None:
        patch_size = patch_size_for(estimator.patch_seconds, windows.sfreq, estimator.n_times_)
        config = dict(patch_size=patch_size, **{name: getattr(estimator, name) for name in SIZES})
        config["encoder_kind"] = encoder_kind_of(estimator.pretext)
        card = cards.EncoderCard(sfreq=windows.sfreq)
    else:
        config, card = given.encoder.config, given.card
        patch_size = given.encoder.patch_size
        remedy = "resample the recordings, for example with raw.resample({expected:g})"
        whose = "The windows are", "the encoder was pretrained"
        checks.check_same_rate(windows.sfreq, card.sfreq, *whose, remedy)
        if (n_times := estimator.n_times_) < patch_size:
            raise ValueError(
                f"A window of {n_times} samples is shorter than the encoder's patch of "
                f"{patch_size} samples; use longer windows."
            )
    estimator.sfreq_ = card.sfreq if windows.sfreq is None else windows.sfreq
    if windows.sfreq is None:
        assumed = f"a patch is {patch_size} samples long"
        if card.sfreq is not None:
            assumed = f"the encoder's {card.sfreq:g} Hz is assumed"
        checks.warn_user(
            f"The sampling rate of these windows is unknown; {assumed}. Pass sfreq= (in Hz) to "
            f"{type(estimator).__name__}, or fit on the X of as_sklearn."
        )
    estimator.encoder_card_, estimator.pretraining_history_ = card, []
    estimator.preprocessing_ = windows_estimator.preprocessing_of(estimator, windows)
    if differing := card.differences(estimator.preprocessing_):
        how = "; ".join(map(str, differing)).replace("in training", "in pretraining")
        checks.warn_user(
            "The windows were prepared otherwise than the signals that the encoder was pretrained "
            f"on: {how}. {windows_estimator.advice(differing)}"
        )
    if given is not None and given.report is not None:  # an object was not loaded
        estimator.load_report_ = given.report
        if estimator.verbose:
            log.info("Encoder from %s: %s.", estimator.encoder, given.report)
    return EncoderStart(estimator, config, given)


def further_windows(estimator: Any, unlabeled: Any, windows: Windows) -> list[Windows]:
    """Return the further windows for pretraining, after checks: one part or none.

    Of the channels that the user listed, none may be there: all EEG channels are used then.

    Warns
    -----
    UserWarning
        When they are not used, because ``fit`` does not pretrain.
    """
    if unlabeled is None:
        return []
    further = door.as_windows(unlabeled, n_times=estimator.n_times_)
    if len(further) == 0:
        raise ValueError("unlabeled contains no windows; pass None instead.")
    checks.check_same_rate(further.sfreq, windows.sfreq, "The unlabelled windows are", "the others")
    if estimator.channels is None:
        further = picking.pick_eeg(further)
    else:
        further = picking.pick_as_fitted(further, estimator.chs_info_, any_montage=True)
    amplitudes.warn_of_amplitudes(further)
    if not estimator._has_to_pretrain:
        reason = "pretext is None"
        if estimator.encoder is not None:
            reason = "an encoder was given; continue_pretraining=True continues with it"
        checks.warn_user(
            f"The windows in unlabeled are not used: fit does not pretrain because {reason}."
        )
    return [further]
