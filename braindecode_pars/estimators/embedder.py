"""PARSEmbedder, and the loading, building and pretraining of the encoder of an estimator.

PARSClassifier and PARSRegressor use the same functions for the encoder before fine-tuning.
"""

import copy
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils import Tags, validation

from braindecode_pars import pretraining
from braindecode_pars._common import checks, computing, model_files, settings, tables, training
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.models import electrodes, embed_channels, patch_size_for
from braindecode_pars.models.space_time import build_encoder
from braindecode_pars.pretext import base
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.windows import Windows, amplitudes, convert, picking
from braindecode_pars.windows.preprocessing import Preprocessing, agreed, counted

log = logging.getLogger(__name__)

#: Arguments of a new encoder that are parameters of the estimators.
SIZES = ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer")


@dataclass(kw_only=True, eq=False, repr=False)
class EncoderEstimator(saved.SavedEstimator, windows_estimator.WindowsEstimator):
    """Base class of estimators with an encoder; the parameters are described in PARSClassifier."""

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

    history_ = property(windows_estimator.fitted_history)

    def n_encoder_parameters(self, X: Any) -> int:
        """Return the number of parameters of the encoder that ``fit`` would use.

        Parameters
        ----------
        X : windows
            As in ``fit``. Their sampling rate determines the size of a patch.

        Returns
        -------
        int
            Number of parameters.
        """
        with windows_estimator.without_training(self) as (unfitted, _):
            windows = windows_estimator.read_windows(unfitted, X, any_montage=True)
            return computing.n_parameters(load_or_build_encoder(unfitted, windows).new_encoder())


class TrainingCost(NamedTuple):
    """Training cost of a fit: number of trained parameters and of training steps.

    Attributes
    ----------
    parameters : int
        Number of weights that are trained in pretraining or in fine-tuning. Decoders of pretext
        tasks, which are discarded after pretraining, are not included.
    pretraining_steps : float
        Maximum number of pretraining steps, including the previous pretraining of ``encoder``.
        NaN when the number is unknown.
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
    """Encoder of a fit before training, and its pretraining.

    Attributes
    ----------
    estimator : PARSClassifier | PARSEmbedder
        Estimator with the parameters of pretraining.
    sizes : dict
        Arguments of the encoder, and its kind.
    loaded_encoder : Pretrained | None
        Pretrained encoder that was loaded; None for a new encoder.
    """

    estimator: Any
    sizes: dict[str, Any]
    loaded_encoder: cards.Pretrained | None

    @property
    def is_pretrained(self) -> bool:
        """Whether the fit pretrains a new encoder, or continues the pretraining of an encoder."""
        model = self.estimator
        is_new = self.loaded_encoder is None
        return (
            model.pretext is not None
            and (is_new or model.continue_pretraining)
            and model.pretrain_epochs != 0
        )

    @property
    def settings(self) -> settings.PretrainingSettings:
        model = self.estimator
        parameters = {name.removeprefix("pretrain_"): value for name, value in vars(model).items()}
        params = base.params_of(model.pretext, model.pretext_params)
        return settings.PretrainingSettings.of(parameters, task=model.pretext, task_params=params)

    def n_steps(self, n_windows: int) -> float:
        """Return the maximum number of pretraining steps, including those of a loaded encoder.

        NaN when the number is unknown.
        """
        steps = 0 if self.loaded_encoder is None else _steps_of_card(self.loaded_encoder.card)
        if self.is_pretrained:
            plan = self.settings
            steps_per_epoch = math.ceil(n_windows / plan.batch_size)
            steps += plan.step_limit if plan.epochs is None else plan.epochs * steps_per_epoch
        return steps

    def new_encoder(self) -> PatchEncoder:
        """Return an encoder with initial weights."""
        return build_encoder(**self.sizes)

    def make_task(self, encoder: PatchEncoder) -> base.PretextTask:
        """Return the pretext task for this encoder and for windows of the same length as in fit."""
        model, task_params = self.estimator, self.settings.task_params
        signal: Any = dict(n_times=model.n_times_, sfreq=model.sfreq_)
        return base.make_task(model.pretext, encoder=encoder, task_params=task_params, **signal)

    def pretrain(
        self,
        encoder: PatchEncoder,
        parts: list[Windows],
        seed: int,
        held_out: Windows | None = None,
        on_end: Callable[[base.PretextTask], None] = lambda task: None,
    ) -> None:
        """Load the initial weights, pretrain the encoder, and set its history and card.

        The encoder is saved in ``checkpoint_dir``, also after Ctrl-C.

        Parameters
        ----------
        encoder : PatchEncoder
            Encoder, which is trained in place.
        parts : list of Windows
            Windows for pretraining. The first entry contains the windows of ``fit``.
        seed : int
            Seed of all random numbers.
        held_out : Windows | None
            Windows for the held-out loss. If None, windows in ``parts`` are held out.
        on_end : callable
            Function that is called with the trained pretext task, also after Ctrl-C.
        """
        if self.loaded_encoder is not None:
            encoder.load_state_dict(self.loaded_encoder.encoder.state_dict())
        if not self.is_pretrained:
            if self.estimator.sham:
                raise ValueError(
                    "sham=True has no effect, because fit does not pretrain. Use sham=False, or "
                    "pretrain: set pretext and, with an encoder, continue_pretraining=True."
                )
            return
        estimator, further = self.estimator, parts[1:]
        expected = estimator.preprocessing_
        descriptions = [replace(expected, channels=None)]  # encoders process single channels
        for windows in further:
            beginning = "Preprocessing of the unlabeled windows differs from X"
            windows_estimator.warn_of_differences(expected, windows, beginning, cards.OF_ENCODERS)
            descriptions.append(agreed(counted(windows.column("preprocessing"))))
        preprocessing = agreed(descriptions)

        def save_result(net: pretraining.PretrainingNet) -> None:
            # An interrupted epoch has no relative loss.
            history = [dict(row) for row in net.history if tables.RELATIVE in row]
            card = self._card(net, history, parts, preprocessing)
            estimator.pretraining_history_, estimator.encoder_card_ = history, card
            on_end(net.task_)
            if estimator.checkpoint_dir is not None:
                saved.save_encoder(encoder, card, estimator.checkpoint_dir)

        # Crops are as long as the shortest window, so that every window has a crop.
        pretraining.pretrain_encoder(
            encoder,
            parts,
            self.settings,
            sfreq=estimator.sfreq_,
            n_times=min([estimator.n_times_, *(part.shortest() for part in further)]),
            held_out_windows=held_out,
            callbacks=estimator.pretrain_callbacks,
            on_end=save_result,
            seed=seed,
            verbose=estimator.verbose,
        )

    def _card(
        self,
        net: pretraining.PretrainingNet,
        history: list[dict[str, Any]],
        parts: list[Windows],
        preprocessing: Preprocessing,
    ) -> cards.EncoderCard:
        batches = [batch for row in net.history for batch in row["batches"]]
        # The batch that was interrupted by Ctrl-C has no size.
        sizes = [batch["train_batch_size"] for batch in batches if "train_batch_size" in batch]
        card = cards.EncoderCard(
            sfreq=self.estimator.sfreq_,
            task=net.task_.name,
            task_params=dict(self.settings.task_params),
            subjects=cards.unique_subjects(*(part.corpus_subjects for part in parts)),
            n_windows=sum(map(len, parts)),
            epochs=len(history),
            n_times=net.task_.n_times,
            n_steps=len(sizes),
            n_examples=sum(sizes),
            **training.card_losses(history),
            sham=self.estimator.sham,
            preprocessing=preprocessing,
        )
        loaded = self.loaded_encoder
        return card if loaded is None else card.continues(loaded.card)


def _steps_of_card(card: cards.EncoderCard) -> float:
    if card.subjects == [] and card.task is None:  # never pretrained
        return 0
    steps = math.nan if card.n_steps is None else card.n_steps
    earlier = card.continued_from
    return steps + (_steps_of_card(cards.read_card(earlier)) if earlier else 0)


def load_or_build_encoder(estimator: Any, windows: Windows) -> EncoderStart:
    """Load the encoder of an estimator, or determine the sizes of a new encoder.

    Sets the attributes ``n_chans_``, ``n_times_``, ``chs_info_``, ``sfreq_``, ``preprocessing_``,
    ``encoder_card_``, ``pretraining_history_`` and, if the encoder is loaded from a folder,
    ``load_report_``.

    Raises
    ------
    ValueError
        When the windows are malformed, have another sampling rate than the pretrained encoder, or
        are shorter than a patch of the encoder.
    """
    windows_estimator.remember_windows(estimator, windows)
    pretrained = None if estimator.encoder is None else saved.load_encoder(estimator.encoder)
    if pretrained is None:
        patch_size = patch_size_for(estimator.patch_seconds, windows.sfreq, estimator.n_times_)
        config = dict(patch_size=patch_size, **{name: getattr(estimator, name) for name in SIZES})
        config["encoder_kind"] = base.encoder_kind_of(estimator.pretext)
        card = cards.EncoderCard(sfreq=windows.sfreq)
    else:
        config, card = pretrained.encoder.config, pretrained.card
        patch_size = pretrained.encoder.patch_size
        remedy = "resample the recordings, for example with raw.resample({expected:g})"
        whose = "The windows are", "the encoder was pretrained at"
        checks.check_same_rate(windows.sfreq, card.sfreq, *whose, remedy)
        if (n_times := estimator.n_times_) < patch_size:
            raise ValueError(
                f"Windows must have at least {patch_size} samples, the length of a patch of the "
                f"encoder, got {n_times} samples. Use longer windows."
            )
    estimator.sfreq_ = card.sfreq if windows.sfreq is None else windows.sfreq
    if windows.sfreq is None:
        assumption = f"using patches of {patch_size} samples"
        if card.sfreq is not None:
            assumption = f"assuming {card.sfreq:g} Hz, the sampling rate of the encoder"
        checks.warn_user(
            f"The sampling rate of X is unknown; {assumption}. Pass sfreq (in Hz) to "
            f"{type(estimator).__name__}, or pass the X of as_sklearn to fit, which also contains "
            "channel names and subjects. (scikit-learn converts a windows dataset to a list "
            "without these.)"
        )
    estimator.encoder_card_, estimator.pretraining_history_ = card, []
    estimator.preprocessing_ = windows_estimator.preprocessing_of(estimator, windows)
    if differing := card.differences(estimator.preprocessing_):
        listing = "; ".join(entry.text("in pretraining") for entry in differing)
        advice = windows_estimator.advice(differing, "preprocessing of the pretraining data")
        checks.warn_user(
            "Preprocessing of these windows differs from the pretraining data of the encoder: "
            f"{listing}. {advice}"
        )
    if pretrained is not None and pretrained.report is not None:  # None if encoder is an object
        estimator.load_report_ = pretrained.report
        if estimator.verbose:
            log.info("Encoder from %s: %s.", estimator.encoder, pretrained.report)
    return EncoderStart(estimator, config, pretrained)


def further_windows(estimator: Any, unlabeled: Any, windows: Windows) -> list[Windows]:
    """Validate the unlabeled windows for pretraining; return a list with one entry, or no entry.

    If the windows contain none of the channels in ``channels``, all their EEG channels are used.

    Warns
    -----
    UserWarning
        When the windows are not used, because ``fit`` does not pretrain.
    """
    if unlabeled is None:
        return []
    further = convert.as_windows(unlabeled, n_times=estimator.n_times_)
    if len(further) == 0:
        raise ValueError("unlabeled contains no windows. Pass unlabeled=None instead.")
    checks.check_same_rate(
        further.sfreq, windows.sfreq, "The unlabeled windows are", "X is sampled at"
    )
    if estimator.channels is None:
        further = picking.pick_eeg(further)
    else:
        further = picking.pick_as_fitted(further, estimator.chs_info_, any_montage=True)
    amplitudes.warn_of_amplitudes(further)
    reason = remedy = None
    if estimator.pretext is None:
        reason, remedy = "pretext=None", "Set pretext"
    if estimator.encoder is not None and not estimator.continue_pretraining:
        reason, remedy = "a pretrained encoder was passed", "Pass continue_pretraining=True"
    if reason is not None:
        checks.warn_user(
            f"The windows in unlabeled are not used, because fit does not pretrain ({reason}). "
            f"{remedy} to pretrain on these windows, or omit unlabeled."
        )
    return [further]


@dataclass(kw_only=True, eq=False, repr=False)
class PARSEmbedder(TransformerMixin, EncoderEstimator):
    """Transformer: self-supervised pretraining of an encoder, then embedding of windows.

    Each window is transformed to one feature vector, for linear probes and visualization. Every
    channel is embedded as in fine-tuning (section 2.4: grid patches, encoder, mean over time). The
    features of the channels are then concatenated or pooled, without trained parameters.

    Parameters
    ----------
    pooling : "auto" | "channels" | "mean_std" | "mean"
        Pooling of the channels. ``"channels"`` concatenates the features of the channels, so that a
        linear probe can distinguish them. Every window must then contain the channels of ``fit``,
        which are matched by name. ``"mean_std"`` computes the mean and the standard deviation over
        the channels, and ``"mean"`` only the mean. Both accept any montage and do not depend on
        the order of the channels. ``"auto"`` is ``"channels"`` if all windows of ``fit`` have the
        same montage, and ``"mean_std"`` otherwise. If the embedder was created by
        ``from_pretrained`` from an encoder, and was therefore not fitted, ``"auto"`` is determined
        by the first windows that are transformed.
    layer : int
        Layer of the encoder whose output is used: 0 for the tokens with position encoding, k for
        the output of block k, and -1 for the output of the last block after the final
        normalization, as in fine-tuning.
    pretext, pretext_params, encoder, continue_pretraining, sham, sfreq, preprocessing, channels, \
patch_seconds, embed_dim, num_layers, num_heads, mlp_dim, tokenizer, pretrain_epochs, \
pretrain_max_steps, pretrain_minutes, pretrain_batch_size, pretrain_lr, pretrain_callbacks, \
weight_decay, precision, compile, device, random_state, verbose, checkpoint_dir
        As in :class:`PARSClassifier`. With ``pretext=None``, the encoder is a random encoder
        (randomly initialized), which is a baseline.

    Attributes
    ----------
    encoder_ : PatchEncoder
        Pretrained encoder, on the CPU.
    encoder_card_ : EncoderCard
        Training data and pretext task of the encoder.
    task_ : PretextTask
        Pretext task with its trained decoder. Only present if ``fit`` pretrained the encoder.
    load_report_ : LoadReport
        Tensors that were loaded. Only present if the encoder was loaded from a folder.
    history_ : pandas.DataFrame
        Losses, one row per epoch of pretraining.
    pooling_ : str
        Pooling that is used: ``pooling``, or the choice of ``"auto"``.
    sfreq_, preprocessing_, n_chans_, n_times_, chs_info_
        As in :class:`PARSClassifier`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import PARSEmbedder, as_sklearn, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.2, n_chans=2)
    >>> X, y, groups = as_sklearn(windows)
    >>> embedder = PARSEmbedder(pretrain_epochs=1, random_state=0, verbose=0)
    >>> probe = make_pipeline(embedder, LogisticRegression(max_iter=1000))
    >>> probe.fit(X, y).predict(X).shape == y.shape
    True
    """

    pooling: str = "auto"
    layer: int = -1

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, unlabeled: Any = None) -> Self:
        """Pretrain the encoder on all windows.

        Parameters
        ----------
        X, groups, unlabeled
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        y : Any
            Not used, present for API consistency.

        Returns
        -------
        PARSEmbedder
            The fitted embedder itself.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError, KeyboardInterrupt
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`, except the
            errors about labels. A ValueError is also raised if the encoder has no layer ``layer``.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            As in :func:`~braindecode_pars.pretraining.pretrain_encoder`.
        """
        with windows_estimator.seeded_fit(self) as seeds:
            start, windows = self._begin(X, groups)
            further = further_windows(self, unlabeled, windows)
            self.encoder_ = start.new_encoder()
            self.encoder_.block_number(self.layer)  # raises before pretraining starts
            try:
                start.pretrain(
                    self.encoder_,
                    [windows, *further],
                    seeds.pretraining,
                    on_end=lambda task: setattr(self, "task_", task.cpu()),
                )
            finally:
                self.encoder_.cpu()  # so that a pickle can be loaded on a machine without a GPU
        return self

    def _begin(self, X: Any, groups: Any) -> tuple[EncoderStart, Windows]:
        windows = windows_estimator.read_windows(
            self, X, None, groups, any_montage=self.pooling != "channels"
        )
        start = load_or_build_encoder(self, windows)
        self._choose_pooling()
        return start, windows

    def _choose_pooling(self) -> None:
        self.pooling_ = self.pooling
        if self.pooling == checks.AUTO:  # chs_info_ is empty if recordings have different channels
            self.pooling_ = "mean_std" if self.chs_info_ == [] else "channels"

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> TrainingCost:
        """Return the training cost of ``fit``, without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Number of trained parameters and of pretraining steps.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As in :meth:`fit`, before training.
        """
        with windows_estimator.without_training(self) as (embedder, _):
            start, windows = embedder._begin(X, groups)
            steps = start.n_steps(len(windows))
            size = computing.n_parameters(start.new_encoder()) if steps else 0
            return TrainingCost(size, steps, 0)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    def transform(self, X: Any) -> np.ndarray:
        """Embed windows: compute one feature vector per window.

        Parameters
        ----------
        X : windows
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_features)
            With ``pooling_="channels"``, the features of all channels, ordered by channel
            (``n_chans * embed_dim`` columns). With ``"mean_std"``, the means over the channels,
            followed by the standard deviations (``2 * embed_dim`` columns). With ``"mean"``, the
            means (``embed_dim`` columns).

        Raises
        ------
        ValueError
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`. With ``pooling_="channels"``, also
            when a channel of ``fit`` is missing.
        """
        validation.check_is_fitted(self)
        if self.pooling_ == checks.AUTO:  # after from_pretrained; determined here, as in fit
            windows_estimator.remember_windows(
                self, windows_estimator.read_windows(self, X, any_montage=True)
            )
            self._choose_pooling()
        any_montage = self.pooling_ != "channels"
        windows = windows_estimator.read_to_predict(self, X, any_montage=any_montage)
        output = self.layer, self.pooling_, tuple(ch["ch_name"] for ch in self.chs_info_ or ())
        return windows_estimator.computed_once(
            lambda: (type(self), saved.encoder_digest(self.encoder_), *output),
            windows,
            self._embedded,
        )["features"]

    def _embedded(self, windows: Windows) -> dict[str, np.ndarray]:
        device = computing.find_device(self.device)
        encoder = copy.deepcopy(self.encoder_).to(device).eval()
        embedded: list[torch.Tensor] = []
        with computing.usual_torch(gradients=False):
            for batch, montage in windows_estimator.batches(windows, encoder.patch_size, device):
                if self.pooling_ == "channels":
                    windows_estimator.check_n_chans(self, batch.shape[1])
                positions = electrodes.positions_of(montage.chs_info, batch)
                # (batch, n_chans, embed_dim)
                channels = embed_channels(encoder, batch, positions, layer=self.layer)
                pooled = channels.flatten(1)
                if self.pooling_ != "channels":
                    pooled = channels.mean(dim=1)
                if self.pooling_ == "mean_std":
                    pooled = torch.cat([pooled, channels.std(dim=1, correction=0)], dim=1)
                embedded.append(pooled.cpu())  # (batch, n_features)
        return {"features": windows_estimator.check_finite(torch.cat(embedded)).numpy()}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the column names of ``transform``.

        With ``pooling_="channels"``, the names are ``C3_0``, ``C3_1``, ... for each channel
        (``channel0_0``, ... for channels without names). With ``"mean_std"``, they are ``mean0``,
        ``mean1``, ..., ``std0``, ..., and with ``"mean"`` only ``mean0``, ``mean1``, ...

        Parameters
        ----------
        input_features : Any
            Not used, present for API consistency.

        Returns
        -------
        ndarray of str, shape (n_features,)
            One name per column.
        """
        validation.check_is_fitted(self)
        parts = [f"channel{i}_" for i in range(self.n_chans_ or 0)]
        parts = [f"{ch['ch_name']}_" for ch in self.chs_info_ or ()] or parts
        parts = {"mean_std": ["mean", "std"], "mean": ["mean"]}.get(self.pooling_, parts)
        names = [f"{part}{i}" for part in parts for i in range(self.encoder_.embed_dim)]
        return np.asarray(names, dtype=object)

    def _to_save(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        description = saved.describe_encoder(self.encoder_, self.encoder_card_)
        description["embedder"] = {
            "pooling": self.pooling_,
            "windows": self._windows_to_save(),
            "history": list(map(training.history_row, self.pretraining_history_)),
        }
        return description, self.encoder_.state_dict()

    def _restore(
        self, described: dict[str, Any], loaded: Any, tensors: dict[str, torch.Tensor]
    ) -> None:
        windows = described["windows"]
        self.n_chans_, self.n_times_ = windows["n_chans"], windows["n_times"]
        self.chs_info_ = [{"ch_name": name} for name in windows["ch_names"]] or None
        self.pooling_, self.pretraining_history_ = described["pooling"], described["history"]
        self.encoder_, self.encoder_card_, self.load_report_ = loaded

    @classmethod
    def _load_folder(cls, folder: Path, source: str | Path, *, device: str, strict: bool) -> Self:
        """Load a saved embedder, or create an embedder with the encoder of another model."""
        if model_files.EMBEDDER in model_files.kinds_in(folder):
            return cls.load(folder, device=device, strict=strict)
        pretrained = saved.load_encoder(folder, strict=strict)
        # Without fit, windows of any montage, unit and length are accepted.
        embedder = cls(encoder=str(source), device=device)
        unknown = dict.fromkeys(("scale", "channels", "window_seconds"))
        embedder.preprocessing_ = replace(pretrained.card.preprocessing, **unknown)
        embedder.sfreq_ = pretrained.card.sfreq
        windows: dict[str, Any] = dict(n_chans=None, n_times=None, ch_names=[])
        embedder._restore(dict(windows=windows, pooling="auto", history=[]), pretrained, {})
        return embedder
