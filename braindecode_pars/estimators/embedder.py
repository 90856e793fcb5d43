"""PARSEmbedder: pretrain an encoder without labels, then embed windows."""

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils import Tags, validation

from braindecode_pars._common import checks, computing, training
from braindecode_pars.estimators import encoder_start, saved_estimator, windows_estimator
from braindecode_pars.models import electrodes, embed_channels
from braindecode_pars.pretext import base
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.windows import Windows


class TrainingCost(NamedTuple):
    """Training cost of a fit: number of trained parameters and number of training steps.

    Attributes
    ----------
    parameters : int
        Number of weights that are trained in pretraining (also in an earlier pretraining of
        ``encoder``), in fine-tuning, or in both; each weight is counted once. The decoder of the
        pretext task, which is discarded after pretraining, is not counted.
    pretraining_steps : float
        Number of pretraining steps. With ``pretrain_epochs=None``, pretraining may end early, and
        this is the maximum number of steps. If the estimator has a pretrained ``encoder``, the
        steps of the earlier pretraining are included; NaN if their number is unknown.
    finetuning_steps : int
        Number of fine-tuning steps.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> cost = PARSClassifier(None, finetune_epochs=2).training_cost(windows)
    >>> # No pretraining (None), and 2 epochs of fine-tuning with one batch per epoch:
    >>> cost.pretraining_steps, cost.finetuning_steps
    (0, 2)
    """

    parameters: int
    pretraining_steps: float
    finetuning_steps: int


@dataclass(kw_only=True, eq=False, repr=False)
class PARSEmbedder(TransformerMixin, encoder_start.EncoderEstimator):
    """scikit-learn transformer that pretrains an encoder without labels, then embeds windows.

    Each window is transformed into one feature vector, for example for a linear probe (a linear
    classifier on the features of a fixed encoder) or for visualization. Every channel is embedded
    as in fine-tuning (section 2.4 of the paper): the encoder is applied to consecutive patches
    (short segments of the channel), and its output is averaged over time. The features of the
    channels are then concatenated or pooled, without trained parameters.

    Parameters
    ----------
    pooling : "auto" | "channels" | "mean_std" | "mean"
        How the features of the channels are combined. ``"channels"`` concatenates them, so that a
        linear probe can distinguish the channels. Every window must then contain the channels of
        ``fit``, which are matched by name. ``"mean_std"`` computes the mean and the standard
        deviation over the channels, and ``"mean"`` only the mean. ``"mean_std"`` and ``"mean"``
        accept any montage and do not depend on the order of the channels. ``"auto"`` is
        ``"channels"`` if all windows of ``fit`` have the same montage, and ``"mean_std"``
        otherwise. An embedder that ``from_pretrained`` created from an encoder has not seen any
        windows: it resolves ``"auto"`` in the same way in the first call of :meth:`transform`, from
        the windows of this call.
    layer : int
        Layer of the encoder whose output is used: 0 for the embedded patches (tokens) with position
        encoding, k for the output of transformer block k, and -1 for the normalized output of the
        last block, as in fine-tuning.
    pretext, pretext_params, encoder, continue_pretraining, sham, sfreq, preprocessing, channels, \
patch_seconds, embed_dim, num_layers, num_heads, mlp_dim, tokenizer, pretrain_epochs, \
pretrain_max_steps, pretrain_minutes, pretrain_batch_size, pretrain_lr, pretrain_callbacks, \
weight_decay, precision, compile, device, random_state, verbose, checkpoint_dir
        As in :class:`PARSClassifier`. If both ``pretext`` and ``encoder`` are None, the encoder is
        randomly initialized and not trained, as a baseline for pretrained encoders.

    Attributes
    ----------
    encoder_ : PatchEncoder
        Pretrained encoder, on the CPU.
    encoder_card_ : EncoderCard
        Metadata of the encoder, such as its training data and pretext task.
    task_ : PretextTask
        Pretext task with its trained decoder. Only present if ``fit`` pretrained the encoder.
    load_report_ : LoadReport
        Report of the tensors that were loaded. Only present if the encoder was loaded from a
        folder.
    history_ : pandas.DataFrame
        Losses of pretraining, one row per epoch.
    pooling_ : str
        Pooling that is used: ``pooling``, with ``"auto"`` replaced with the selected value.
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

        If ``encoder`` is not None, ``fit`` loads this encoder, and pretrains it further only with
        ``continue_pretraining=True``. If ``pretext`` is None, ``fit`` does not pretrain.

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
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`, except for
            errors about labels. A ValueError is also raised if ``layer`` is not a layer of the
            encoder.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            As in :func:`~braindecode_pars.pretraining.pretrain_encoder`.
        """
        with windows_estimator.seeded_fit(self) as seeds:
            start, windows = self._begin(X, groups)
            further = encoder_start.further_windows(self, unlabeled, windows)
            self.encoder_ = start.new_encoder()
            self.encoder_.block_number(self.layer)  # raises before pretraining starts
            try:
                self._pretrain(start, self.encoder_, [windows, *further], seeds.pretraining)
            finally:
                self.encoder_.cpu()  # so that a pickle can be loaded on a machine without a GPU
        return self

    def _remember_task(self, task: base.PretextTask) -> None:
        self.task_ = task.cpu()

    def _begin(
        self, X: Any, groups: Any = None, source: Any = None
    ) -> tuple[encoder_start.EncoderStart, Windows]:
        windows = windows_estimator.read_windows(
            self, X, None, groups, any_montage=self.pooling != "channels"
        )
        start = self._start(windows, source)
        self.pooling_ = self.pooling
        if self.pooling == checks.AUTO:  # chs_info_ is empty if recordings have different channels
            self.pooling_ = "mean_std" if self.chs_info_ == [] else "channels"
        return start, windows

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> TrainingCost:
        """Return the training cost of ``fit`` (trained weights and steps), without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Number of trained weights and number of pretraining steps, including the earlier
            pretraining of ``encoder``. ``finetuning_steps`` is 0.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            In the cases in which :meth:`fit` raises an error before training.
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
            The columns depend on ``pooling_``. ``"channels"``: the features of all channels,
            ordered by channel (``n_chans * embed_dim`` columns). ``"mean_std"``: the means over the
            channels, followed by the standard deviations over the channels (``2 * embed_dim``
            columns). ``"mean"``: only the means (``embed_dim`` columns).

        Raises
        ------
        ValueError
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`. If ``pooling_`` is ``"channels"``,
            also if a channel of ``fit`` is missing.
        """
        validation.check_is_fitted(self)
        if self.pooling_ == checks.AUTO:  # after from_pretrained
            expected = replace(self.preprocessing_, scale=None, channels=None, window_seconds=None)
            self._begin(X, source=cards.Pretrained(self.encoder_, self.encoder_card_, None))
            if self.encoder_card_.differences(self.preprocessing_):
                self.preprocessing_ = expected  # compare further windows with the training data
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
        """Return the names of the columns that ``transform`` returns.

        The names depend on ``pooling_``. ``"channels"``: ``C3_0``, ``C3_1``, ... for each channel
        (``channel0_0``, ... for channels without names). ``"mean_std"``: ``mean0``, ``mean1``, ...,
        then ``std0``, ``std1``, .... ``"mean"``: only ``mean0``, ``mean1``, ....

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
            "windows": saved_estimator.windows_to_json(self),
            "history": list(map(training.history_row, self.pretraining_history_)),
        }
        return description, self.encoder_.state_dict()

    def _restore(self, described: dict[str, Any], loaded: Any, tensors: dict[str, Any]) -> None:
        self.__dict__.update(saved_estimator.fitted_from_json(described))
        windows = described["windows"]
        self.n_chans_, self.n_times_ = windows["n_chans"], windows["n_times"]
        self.chs_info_ = [{"ch_name": name} for name in windows["ch_names"]] or None
        self.pooling_, self.pretraining_history_ = described["pooling"], described["history"]
        self.encoder_, self.encoder_card_, self.load_report_ = loaded

    @classmethod
    def _with_encoder(cls, source: str | Path, pretrained: cards.Pretrained, device: str) -> Self:
        """Return an embedder with a pretrained encoder, which is fitted by the first transform."""
        embedder, card = cls(encoder=str(source), device=device), pretrained.card
        described = dict(
            windows=dict(n_chans=None, n_times=None, sfreq=card.sfreq, ch_names=[]),
            preprocessing=card.preprocessing,
            pooling=checks.AUTO,
            history=[],
        )
        embedder._restore(described, pretrained, {})
        return embedder
