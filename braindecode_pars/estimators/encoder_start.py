"""Where the encoder of a fit begins, and its pretraining on the windows of the fit.

An encoder is given, or a new one is built. ``PARSEmbedder`` and ``PARSClassifier`` share this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from braindecode_pars._common.checks import check_same_rate, warn_user
from braindecode_pars._common.computing import find_device
from braindecode_pars._common.model_files import ENCODER, check_may_save
from braindecode_pars._common.settings import PretrainingSettings
from braindecode_pars._common.tables import RELATIVE
from braindecode_pars._common.training import TIME_IS_OVER
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators.parameters import check_parameters
from braindecode_pars.estimators.windows_estimator import (
    OF_ENCODERS,
    counted_preprocessing,
    preprocessing_of,
    read_further,
    warn_of_differences,
    warn_of_encoder,
)
from braindecode_pars.models import patch_size_for
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.pretrained.cards import EncoderCard, Pretrained, unique_subjects
from braindecode_pars.pretrained.saved import load_encoder, save_encoder
from braindecode_pars.pretraining import PretrainingNet, pretrain_encoder
from braindecode_pars.recordings.preprocessing import Preprocessing, agreed
from braindecode_pars.windows.table import Windows

log = logging.getLogger(__name__)

#: Arguments of a new encoder that are parameters of the estimators.
SIZES = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer")

#: Entry of skorch's history: number of examples in a step.
_SIZE = "train_batch_size"


def check_fit(estimator: BaseEstimator) -> None:
    """Check the parameters of an estimator with an encoder, before windows are read.

    Raises
    ------
    TypeError, ValueError
        When a parameter is not accepted, or the device cannot be used. When
        ``continue_pretraining`` is set without an encoder or without a pretext task. When
        ``checkpoint_dir`` cannot be created, or contains another model or other files.
    """
    check_parameters(estimator)
    find_device(estimator.device)
    if estimator.continue_pretraining and estimator.encoder is None:
        raise ValueError(
            "continue_pretraining=True needs encoder=, the encoder to continue with; without one, "
            "fit pretrains a new encoder."
        )
    if estimator.continue_pretraining and estimator.pretext is None:
        raise ValueError(
            "continue_pretraining=True needs a pretext task, such as pretext='pars'; got None."
        )
    if estimator.checkpoint_dir is not None:
        _make_folder(Path(estimator.checkpoint_dir).expanduser())


def _make_folder(folder: Path) -> None:
    """Create the folder for the pretrained encoder, so that a wrong path fails before training."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"checkpoint_dir={str(folder)!r} is not a folder and cannot be created: {error}."
        ) from error
    check_may_save(folder, ENCODER)


@dataclass(frozen=True)
class EncoderStart:
    """The encoder of a fit before its training, and how it is pretrained.

    Attributes
    ----------
    estimator : PARSClassifier | PARSEmbedder
        Estimator with the parameters of pretraining.
    sizes : dict
        Arguments of :class:`~braindecode_pars.PatchEncoder`.
    given : Pretrained | None
        The encoder that was given; None for a new one.
    """

    estimator: Any
    sizes: dict[str, Any]
    given: Pretrained | None

    def new_encoder(self) -> PatchEncoder:
        """Return an encoder with random weights, or with those of the given one."""
        encoder = PatchEncoder(**self.sizes)
        self.load_into(encoder)
        return encoder

    def load_into(self, encoder: PatchEncoder) -> None:
        """Set the weights of the given encoder, if there is one."""
        if self.given is not None:
            encoder.load_state_dict(self.given.encoder.state_dict())

    @property
    def is_pretrained(self) -> bool:
        """Whether the fit pretrains: a new encoder, or one that it continues with."""
        return _pretrains(self.estimator) and self.estimator.pretrain_epochs != 0

    @property
    def settings(self) -> PretrainingSettings:
        estimator = self.estimator
        return PretrainingSettings(
            task=estimator.pretext,
            task_params=estimator.pretext_params or {},
            epochs=estimator.pretrain_epochs,
            lr=estimator.pretrain_lr,
            batch_size=estimator.pretrain_batch_size,
            weight_decay=estimator.weight_decay,
            precision=estimator.precision,
            compile=estimator.compile,
            device=estimator.device,
        )

    def pretrain(
        self,
        encoder: PatchEncoder,
        parts: list[Windows],
        seed: int,
        on_end: Callable[[PretextTask], None] = lambda task: None,
    ) -> None:
        """Pretrain an encoder in place, and set history and card of the estimator.

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
        if not self.is_pretrained:
            return
        estimator, further = self.estimator, parts[1:]
        preprocessing = _preprocessing_of_all(estimator.preprocessing_, further)

        def keep(net: PretrainingNet) -> None:
            # An epoch that was interrupted has no relative loss.
            history = [dict(row) for row in net.history if RELATIVE in row]
            if history and TIME_IS_OVER in net.history[-1]:
                history[-1][TIME_IS_OVER] = True
            card = self._card(net, history, parts, preprocessing)
            estimator.pretraining_history_, estimator.encoder_card_ = history, card
            on_end(net.task_)
            if estimator.checkpoint_dir is not None:
                save_encoder(encoder, card, estimator.checkpoint_dir)

        # Weights that were pretrained before need not move by their size.
        continued = partial(PretrainingNet, callbacks__enough_steps=None)
        # Crops are as long as the shortest window, so that every window has a crop.
        pretrain_encoder(
            encoder,
            parts,
            self.settings,
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
    ) -> EncoderCard:
        batches = [batch for row in net.history for batch in row["batches"]]
        sizes = [batch[_SIZE] for batch in batches if _SIZE in batch]  # not that of Ctrl-C
        card = EncoderCard(
            sfreq=self.estimator.sfreq_,
            task=net.task_.name,
            task_params=dict(self.estimator.pretext_params or {}),
            subjects=unique_subjects(*(part.people for part in parts)),
            n_windows=sum(map(len, parts)),
            epochs=len(history),
            n_times=net.task_.n_times,
            n_steps=len(sizes),
            n_examples=sum(sizes),
            loss_relative=history[-1][RELATIVE] if history else None,
            preprocessing=preprocessing,
        )
        return card if self.given is None else card.continues(self.given.card)


def encoder_start(estimator: Any, windows: Windows) -> EncoderStart:
    """Load the encoder of an estimator, or choose the sizes of a new one.

    Sets the attributes ``sfreq_``, ``preprocessing_``, ``encoder_card_``,
    ``pretraining_history_`` and, for an encoder from a folder, ``load_report_``.

    Raises
    ------
    ValueError
        When the windows have another sampling rate than the given encoder, or are shorter than one
        of its patches.
    """
    given = None if estimator.encoder is None else load_encoder(estimator.encoder)
    if given is not None:
        _check_fits(estimator, windows, given)
    patch_size, estimator.sfreq_ = _patch_size(estimator, windows.sfreq, given)
    estimator.preprocessing_ = preprocessing_of(estimator, windows)
    estimator.pretraining_history_ = []
    if given is None:
        estimator.encoder_card_ = EncoderCard(sfreq=estimator.sfreq_)
        own = {name: getattr(estimator, name) for name in SIZES}
        return EncoderStart(estimator, {"patch_size": patch_size, **own}, None)
    estimator.encoder_card_ = given.card
    warn_of_encoder(given.card.preprocessing, estimator.preprocessing_)
    if given.report is not None:  # an encoder that is an object was not loaded
        estimator.load_report_ = given.report
        if estimator.verbose:
            log.info("Encoder from %s: %s.", estimator.encoder, given.report)
    return EncoderStart(estimator, given.encoder.config, given)


def _check_fits(estimator: Any, windows: Windows, given: Pretrained) -> None:
    check_same_rate(
        windows.sfreq,
        given.card.sfreq,
        "The windows are",
        "the encoder was pretrained",
        "resample the recordings to {expected:g} Hz, for example with raw.resample({expected:g})",
    )
    if estimator.n_times_ < given.encoder.patch_size:
        raise ValueError(
            f"A window of {estimator.n_times_} samples is shorter than the encoder's patch of "
            f"{given.encoder.patch_size} samples; use longer windows."
        )


def _patch_size(
    estimator: Any, sfreq: float | None, given: Pretrained | None
) -> tuple[int, float | None]:
    """Return the samples per patch and the sampling rate in Hz; warn when the rate is unknown."""
    advice = f"Pass sfreq= (in Hz) to {type(estimator).__name__}"
    # The encoder determines the patch, and the rate of windows without one.
    if given is None:
        patch_size = patch_size_for(estimator.patch_seconds, sfreq, estimator.n_times_)
        length = f"{patch_size} samples long, a thirtieth of the window"
    else:
        patch_size = given.encoder.patch_size
        length = f"{patch_size} samples long"
        if sfreq is None and given.card.sfreq is not None:
            sfreq = given.card.sfreq
            warn_user(
                f"The sampling rate of these windows is unknown; the encoder's {sfreq:g} Hz is "
                f"assumed. {advice}."
            )
    if sfreq is None:
        warn_user(
            f"The sampling rate of these windows is unknown; a patch is {length}. {advice}, or fit "
            "on the X of as_sklearn."
        )
    return patch_size, sfreq


def further_windows(estimator: Any, unlabeled: Any, windows: Windows) -> list[Windows]:
    """Return the further windows for pretraining: one part or none.

    Warns
    -----
    UserWarning
        When they are not used, because ``fit`` does not pretrain.
    """
    if unlabeled is None:
        return []
    further = read_further(estimator, unlabeled, windows.sfreq)
    if not _pretrains(estimator):
        reason = "pretext is None"
        if estimator.encoder is not None:
            reason = "an encoder was given; continue_pretraining=True continues with it"
        warn_user(f"The windows in unlabeled are not used: fit does not pretrain because {reason}.")
    return [further]


def _pretrains(estimator: BaseEstimator) -> bool:
    is_new = estimator.encoder is None
    return (is_new or estimator.continue_pretraining) and estimator.pretext is not None


def _preprocessing_of_all(trained: Preprocessing, further: list[Windows]) -> Preprocessing:
    """Return the preprocessing of all windows of pretraining: those of ``fit`` and further ones.

    Warns
    -----
    UserWarning
        When further windows have another band or reference.
    """
    beginning = "The unlabelled windows were prepared otherwise than the others"
    parts = [replace(trained, channels=None)]  # an encoder sees one channel at a time
    for windows in further:
        warn_of_differences(trained, windows, beginning, OF_ENCODERS)
        parts.append(agreed(counted_preprocessing(windows)))
    return agreed(parts)
