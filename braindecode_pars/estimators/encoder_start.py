"""The encoder of an estimator: loaded, or pretrained on the windows of ``fit``.

The preprocessing of the windows is compared with that of the encoder.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from braindecode_pars._common.checks import check_same_rate, warn_user
from braindecode_pars._common.model_files import ENCODER, LoadReport, check_may_save
from braindecode_pars._common.tables import RELATIVE
from braindecode_pars._common.training import TIME_IS_OVER
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.models import patch_size_for
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.pretrained.cards import EncoderCard, Pretrained, unique_subjects
from braindecode_pars.pretrained.saved import load_encoder, save_encoder
from braindecode_pars.pretraining import PretrainingNet, pretrain_encoder
from braindecode_pars.recordings.preprocessing import (
    FIELDS,
    Difference,
    Preprocessing,
    agreed,
    counted,
    differences,
    disagreements,
)
from braindecode_pars.windows.table import Windows

log = logging.getLogger(__name__)

#: Arguments of a new encoder that are parameters of the estimators.
SIZES = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer")

#: Estimator parameter -> argument of pretrain_encoder.
_ARGUMENTS = dict(
    pretext="task",
    pretext_params="task_params",
    pretrain_epochs="epochs",
    pretrain_lr="lr",
    pretrain_batch_size="batch_size",
    weight_decay="weight_decay",
    pretrain_callbacks="callbacks",
    precision="precision",
    compile="compile",
    device="device",
    verbose="verbose",
)

#: Entry of skorch's history: number of examples in a step.
_SIZE = "train_batch_size"


def make_checkpoint_dir(folder: str | Path | None) -> None:
    """Create the folder for the pretrained encoder, so that a wrong path fails before training.

    Raises
    ------
    ValueError
        When the folder cannot be created, or contains another model or other files.
    """
    if folder is None:
        return
    path = Path(folder).expanduser()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"checkpoint_dir={str(folder)!r} is not a folder and cannot be created: {error}."
        ) from error
    check_may_save(path, ENCODER)


def encoder_for(estimator: BaseEstimator, sfreq: float | None) -> Pretrained | None:
    """Load the encoder of an estimator and check that it fits the windows; None without one.

    Raises
    ------
    ValueError
        When the windows have another sampling rate than the encoder, or are shorter than one of
        its patches.
    """
    if estimator.encoder is None:
        return None
    pretrained = load_encoder(estimator.encoder)
    if pretrained.report is not None and estimator.verbose:
        log.info("Encoder from %s: %s.", estimator.encoder, pretrained.report)
    check_rate_of_encoder(sfreq, pretrained.card)
    if estimator.n_times_ < pretrained.encoder.patch_size:
        raise ValueError(
            f"A window of {estimator.n_times_} samples is shorter than the encoder's patch of "
            f"{pretrained.encoder.patch_size} samples; use longer windows."
        )
    return pretrained


def check_rate_of_encoder(sfreq: float | None, card: EncoderCard) -> None:
    """Check that windows have the sampling rate of an encoder; an unknown one is not checked."""
    check_same_rate(
        sfreq,
        card.sfreq,
        "The windows are",
        "the encoder was pretrained",
        "resample the recordings to {expected:g} Hz, for example with raw.resample({expected:g})",
    )


def encoder_sizes(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the arguments of a new encoder, without its patch size."""
    return {name: getattr(estimator, name) for name in SIZES}


def patch_size_of(
    pretrained: Pretrained | None,
    patch_seconds: float,
    sfreq: float | None,
    n_times: int,
    owner: str,
) -> tuple[int, float | None]:
    """Return the samples per patch and the sampling rate in Hz; warn when the rate is unknown."""
    advice = f"Pass sfreq= (in Hz) to {owner}"

    # The encoder determines the patch, and the rate of windows without one.
    if pretrained is None:
        patch_size = patch_size_for(patch_seconds, sfreq, n_times)
        length = f"{patch_size} samples long, a thirtieth of the window"
    else:
        patch_size = pretrained.encoder.patch_size
        length = f"{patch_size} samples long"
        if sfreq is None and pretrained.card.sfreq is not None:
            sfreq = pretrained.card.sfreq
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


def set_load_report(estimator: BaseEstimator, report: LoadReport | None) -> None:
    """Set ``load_report_``. An encoder passed as an object was not loaded and has no report."""
    if report is not None:
        estimator.load_report_ = report


def check_continued(estimator: BaseEstimator) -> None:
    """Check that there is something to continue, and a task to continue with.

    Raises
    ------
    ValueError
        When ``continue_pretraining`` is set without an encoder or without a pretext task.
    """
    if not estimator.continue_pretraining:
        return
    if estimator.encoder is None:
        raise ValueError(
            "continue_pretraining=True needs encoder=, the encoder to continue with; without one, "
            "fit pretrains a new encoder."
        )
    if estimator.pretext is None:
        raise ValueError(
            "continue_pretraining=True needs a pretext task, such as pretext='pars'; got None."
        )


def warn_if_unlabeled_unused(estimator: BaseEstimator, unlabeled: Windows | None) -> None:
    """Warn when the further windows are not used because ``fit`` does not pretrain."""
    if unlabeled is None or _pretrains(estimator):
        return
    reason = "pretext is None"
    if estimator.encoder is not None:
        reason = "an encoder was given; continue_pretraining=True continues with it"
    warn_user(f"The windows in unlabeled are not used: fit does not pretrain because {reason}.")


def needs_pretraining(estimator: BaseEstimator) -> bool:
    """Return whether ``fit`` pretrains: a new encoder, or one that it continues with."""
    return _pretrains(estimator) and estimator.pretrain_epochs != 0


def _pretrains(estimator: BaseEstimator) -> bool:
    is_new = estimator.encoder is None
    return (is_new or estimator.continue_pretraining) and estimator.pretext is not None


def pretrain(
    estimator: BaseEstimator,
    encoder: PatchEncoder,
    parts: list[Windows | None],
    seed: int,
    store: Callable[[PretextTask, list[dict[str, Any]], EncoderCard], None],
    pretrained: Pretrained | None = None,
) -> None:
    """Pretrain an encoder in place with the parameters of an estimator.

    The encoder is written to ``checkpoint_dir``, also after Ctrl-C.

    Parameters
    ----------
    estimator : PARSClassifier | PARSEmbedder
        Estimator with the parameters.
    encoder : PatchEncoder
        Encoder that is trained in place.
    parts : list of Windows | None
        Windows to pretrain on. The windows of ``fit`` are the first entry.
    seed : int
        Seed of all random draws.
    store : callable
        Function that receives the trained task, its history and the card of the encoder.
    pretrained : Pretrained | None
        The encoder that the training continues with; None for a new one.
    """
    _, *extra = parts = [part for part in parts if part is not None]
    preprocessing = pretraining_of(estimator.preprocessing_, extra)

    # Called at the end of training, also after Ctrl-C.
    def store_and_save(net: PretrainingNet) -> None:
        # An epoch that was interrupted has no relative loss.
        history = [dict(row) for row in net.history if RELATIVE in row]
        if history and TIME_IS_OVER in net.history[-1]:
            history[-1][TIME_IS_OVER] = True
        batches = [batch for row in net.history for batch in row["batches"]]
        sizes = [batch[_SIZE] for batch in batches if _SIZE in batch]  # not that of Ctrl-C
        card = EncoderCard(
            sfreq=estimator.sfreq_,
            task=net.task_.name,
            task_params=dict(estimator.pretext_params or {}),
            subjects=unique_subjects(*(part.people for part in parts)),
            n_windows=sum(map(len, parts)),
            epochs=len(history),
            n_times=net.task_.n_times,
            n_steps=len(sizes),
            n_examples=sum(sizes),
            loss_relative=history[-1][RELATIVE] if history else None,
            preprocessing=preprocessing,
        )
        if pretrained is not None:
            card = card.continues(pretrained.card)
        store(net.task_, history, card)
        if estimator.checkpoint_dir is not None:
            save_encoder(encoder, card, estimator.checkpoint_dir)

    # Weights that were pretrained before need not move by their size.
    continued = partial(PretrainingNet, callbacks__enough_steps=None)
    # Crops are as long as the shortest window, so that every window has a crop.
    pretrain_encoder(
        encoder,
        parts,
        n_times=min([estimator.n_times_, *(part.shortest() for part in extra)]),
        on_end=store_and_save,
        net=None if pretrained is None else continued,
        seed=seed,
        **{argument: getattr(estimator, name) for name, argument in _ARGUMENTS.items()},
    )


#: Entries that matter to an encoder: it normalises each window, and sees one channel at a time. A
#: notch filter is not one: 50 and 60 Hz are the mains of two countries.
_OF_ENCODERS = ("band", "reference")


def rate_given(estimator: Any) -> float | None:
    """Return the sampling rate in Hz among the parameters of an estimator; None without one.

    Raises
    ------
    ValueError
        When ``sfreq`` and ``preprocessing`` have different rates.
    """
    given = Preprocessing.of(estimator.preprocessing).sfreq
    whose = "The recordings of the argument preprocessing are", "the argument sfreq is"
    check_same_rate(given, estimator.sfreq, *whose, "leave one of them out")
    return given if estimator.sfreq is None else estimator.sfreq


def preprocessing_of(estimator: Any, windows: Windows) -> Preprocessing:
    """Return the preprocessing of the windows of ``fit``: what is given, else what they tell.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameter ``preprocessing`` and the attributes ``sfreq_``, ``n_times_``
        and ``chs_info_``.
    windows : Windows
        Windows of ``fit``.

    Warns
    -----
    UserWarning
        When the recordings were prepared differently, or otherwise than ``preprocessing`` states.
    """
    found = _counted(windows)
    differing = disagreements(found)
    if differing:
        warn_user(
            f"The recordings were prepared differently: {'; '.join(differing)}. Prepare all of "
            "them alike, so that no difference between them is one of their filters."
        )
    sfreq, names = estimator.sfreq_, [ch["ch_name"] for ch in estimator.chs_info_ or ()]
    told = replace(
        agreed(found),
        sfreq=sfreq,
        channels=names or None,
        window_seconds=None if sfreq is None else estimator.n_times_ / sfreq,
    )
    given = Preprocessing.of(estimator.preprocessing)
    wrong = differences(given, told)
    if wrong:
        warn_user(
            "The argument preprocessing contradicts the records of the windows, and is used: "
            f"{_listed(wrong, 'in the argument')}. Correct the argument, or leave this entry out."
        )
    return replace(
        told, **{name: value for name, value in vars(given).items() if value is not None}
    )


def pretraining_of(trained: Preprocessing, further: list[Windows]) -> Preprocessing:
    """Return the preprocessing of all windows of pretraining: those of ``fit`` and further ones.

    Warns
    -----
    UserWarning
        When further windows have another band or reference.
    """
    beginning = "The unlabelled windows were prepared otherwise than the others"
    parts = [replace(trained, channels=None)]  # an encoder sees one channel at a time
    for windows in further:
        _warn(trained, windows, beginning, _OF_ENCODERS)
        parts.append(agreed(_counted(windows)))
    return agreed(parts)


def warn_of_encoder(trained: Preprocessing, found: Preprocessing) -> None:
    """Warn when the windows of ``fit`` have another band or reference than those of an encoder."""
    differing = [each for each in differences(trained, found) if each.name in _OF_ENCODERS]
    if differing:
        warn_user(
            "The windows were prepared otherwise than the recordings that the encoder was "
            f"pretrained on: {_listed(differing, 'in pretraining')}. {_advice(differing)}"
        )


def warn_of_differences(trained: Preprocessing, windows: Windows) -> None:
    """Warn once when windows to predict were prepared otherwise than those of ``fit``."""
    _warn(trained, windows, "These windows were prepared otherwise than those of fit", FIELDS)


def _counted(windows: Windows) -> Counter[Preprocessing | None]:
    """Return the number of windows of each preprocessing."""
    return counted(windows.column("preprocessing"))


def _warn(trained: Preprocessing, windows: Windows, beginning: str, names: Collection[str]) -> None:
    """Warn when windows differ in some of these entries."""
    counts: Counter[Difference] = Counter()
    for found, n in _counted(windows).items():
        for each in differences(trained, found or Preprocessing()):
            counts[each] += n if each.name in names else 0
    some = {
        each: "" if n == len(windows) else f" ({n} of {len(windows)} windows)"
        for each, n in counts.items()
        if n
    }
    if some:
        phrases = "; ".join(f"{each}{share}" for each, share in some.items())
        warn_user(f"{beginning}: {phrases}. {_advice(list(some))}")


def _listed(found: list[Difference], where: str) -> str:
    return "; ".join(str(each).replace("in training", where) for each in found)


def _advice(found: list[Difference]) -> str:
    """Return what to do about differences: prepare again, or do not trust the model."""
    lost = [each for each in found if each.repair is None]
    if not lost:
        return "Prepare the recordings as in training, before cutting windows."
    names = ", ".join(dict.fromkeys(each.name for each in lost))
    return (
        f"Prepare the recordings as in training. For the {names}, start from the original "
        "recordings: what a filter or a reference has removed cannot be restored."
    )
