"""PARSEmbedder: pretraining, then one embedding vector per window."""

import copy
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils import Tags, validation

from braindecode_pars._common import computing, model_files, training
from braindecode_pars.estimators import encoder_start, windows_estimator
from braindecode_pars.models import electrodes, embed_channels
from braindecode_pars.pretrained import saved
from braindecode_pars.windows import Windows


@dataclass(kw_only=True, eq=False, repr=False)
class PARSEmbedder(TransformerMixin, encoder_start.EncoderEstimator):
    """Pretrain an encoder without labels and embed windows with it, for linear probes.

    Each window becomes one vector. Every channel is embedded as in fine-tuning (section 2.4: grid
    patches, encoder, mean over time). The channels are then put side by side, or pooled, without
    learned parameters.

    Parameters
    ----------
    pooling : "auto" | "channels" | "mean_std" | "mean"
        What becomes of the channels of a window. ``"channels"`` keeps them side by side, so that a
        probe can tell one from another. Every window then needs the channels of ``fit``, which are
        matched by name. ``"mean_std"`` takes their mean and standard deviation, and ``"mean"``
        their mean only. These two accept any montage and do not depend on the order of the
        channels. ``"auto"`` is ``"channels"`` where all windows of ``fit`` share a montage, and
        ``"mean_std"`` elsewhere. After ``from_pretrained`` of an encoder, which has no ``fit``, the
        first windows that are transformed decide.
    layer : int
        Layer of the encoder whose features are used: 0 for the tokens with their positions, k for
        the output of block k, and -1 for the last block with the final norm, as in fine-tuning.
    pretext, pretext_params, encoder, continue_pretraining, sfreq, preprocessing, channels, \
patch_seconds, embed_dim, num_layers, num_heads, mlp_dim, tokenizer, pretrain_epochs, \
pretrain_batch_size, pretrain_lr, pretrain_callbacks, weight_decay, precision, compile, device, \
random_state, verbose, checkpoint_dir
        As in :class:`PARSClassifier`. With ``pretext=None``, the encoder keeps its random initial
        weights, which is a baseline.

    Attributes
    ----------
    encoder_ : PatchEncoder
        Pretrained encoder, on the CPU.
    encoder_card_ : EncoderCard
        Training data and pretext task of the encoder.
    task_ : PretextTask
        Pretext task with its trained decoder. Only present when ``fit`` has pretrained.
    load_report_ : LoadReport
        Tensors that were loaded. Only present when the encoder came from a folder.
    history_ : pandas.DataFrame
        Losses, one row per epoch of pretraining.
    pooling_ : str
        The pooling that is used: ``pooling``, or what ``"auto"`` has chosen.
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
        """Pretrain on all windows.

        Parameters
        ----------
        X, groups, unlabeled
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        y : Any
            Not used; scikit-learn passes it.

        Returns
        -------
        PARSEmbedder
            The fitted embedder itself.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError, KeyboardInterrupt
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`, except the
            errors about labels. Also a ValueError when the encoder has no such ``layer``.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            As :func:`~braindecode_pars.pretraining.pretrain_encoder`.
        """
        with windows_estimator.seeded_fit(self) as seeds:
            start, windows = self._begin(X, groups)
            further = encoder_start.further_windows(self, unlabeled, windows)
            self.encoder_ = start.new_encoder()
            self.encoder_.block_number(self.layer)  # before minutes of pretraining
            try:
                start.pretrain(
                    self.encoder_,
                    [windows, *further],
                    seeds.pretraining,
                    lambda task: setattr(self, "task_", task.cpu()),
                )
            finally:
                self.encoder_.cpu()  # a pickle must load on a machine without a GPU
        return self

    def _begin(self, X: Any, groups: Any) -> tuple[encoder_start.EncoderStart, Windows]:
        windows = windows_estimator.read_windows(
            self, X, None, groups, any_montage=self.pooling != "channels"
        )
        start = encoder_start.begin(self, windows)
        self._choose_pooling()
        return start, windows

    def _choose_pooling(self) -> None:
        self.pooling_ = self.pooling
        if self.pooling == "auto":  # an empty list of channels means that they differ
            self.pooling_ = "mean_std" if self.chs_info_ == [] else "channels"

    def training_cost(
        self, X: Any, y: Any = None, *, groups: Any = None
    ) -> encoder_start.TrainingCost:
        """Return what ``fit`` would cost, without training.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Trained parameters and steps of pretraining.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As :meth:`fit`, before it trains.
        """
        with windows_estimator.without_training(self) as (embedder, _):
            start, windows = embedder._begin(X, groups)
            steps = start.n_steps(len(windows))
            size = computing.n_parameters(start.new_encoder()) if steps else 0
            return encoder_start.TrainingCost(size, steps, 0)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    def transform(self, X: Any) -> np.ndarray:
        """Return one embedding vector per window.

        Parameters
        ----------
        X : windows
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_features)
            The features of the first channel, then those of the second, and so on: ``n_chans *
            embed_dim`` columns. With ``pooling_="mean_std"``, the means over the channels, then
            their standard deviations (``2 * embed_dim`` columns); with ``"mean"``, only the means.

        Raises
        ------
        ValueError
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`. With ``pooling_="channels"`` also when
            a channel of ``fit`` is missing.
        """
        validation.check_is_fitted(self)
        if self.pooling_ == "auto":  # an encoder without a fit: the first windows decide, as in fit
            windows_estimator.remember_windows(
                self, windows_estimator.read_windows(self, X, any_montage=True)
            )
            self._choose_pooling()
        any_montage = self.pooling_ != "channels"
        windows = windows_estimator.read_to_predict(self, X, any_montage=any_montage)
        return windows_estimator.computed_once(self._key, windows, self._embedded)["features"]

    def _key(self) -> Hashable:
        """Return what the features of a window depend on, apart from the window."""
        names = tuple(ch["ch_name"] for ch in self.chs_info_ or ())
        return type(self), saved.encoder_digest(self.encoder_), self.layer, self.pooling_, names

    def _embedded(self, windows: Windows) -> dict[str, np.ndarray]:
        device = computing.find_device(self.device)
        encoder = copy.deepcopy(self.encoder_).to(device).eval()
        embedded: list[torch.Tensor] = []
        with computing.usual_torch(gradients=False):
            for batch in windows_estimator.batches(windows, encoder.patch_size, device):
                if self.pooling_ == "channels":
                    windows_estimator.check_n_chans(self, batch.shape[1])
                chs_info = windows.montage_of(sum(map(len, embedded))).chs_info
                positions = electrodes.positions_of(chs_info, batch)
                # (batch, n_chans, embed_dim)
                channels = embed_channels(encoder, batch, positions, layer=self.layer)
                embedded.append(_pool(channels, self.pooling_).cpu())
        return {"features": windows_estimator.check_finite(torch.cat(embedded)).numpy()}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the column names of ``transform``.

        They are ``C3_0``, ``C3_1``, ... for each channel (``channel0_0``, ... for channels without
        names), or ``mean0``, ``mean1``, ..., ``std0``, ...

        Parameters
        ----------
        input_features : Any
            Not used; scikit-learn passes it.

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
            "windows": {
                "n_chans": self.n_chans_,
                "n_times": self.n_times_,
                "sfreq": self.sfreq_,
                "ch_names": [ch["ch_name"] for ch in self.chs_info_ or ()],
            },
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
        """Return a saved embedder, or an embedder with the encoder of another model."""
        if model_files.EMBEDDER in model_files.kinds_in(folder):
            return cls.load(folder, device=device, strict=strict)
        pretrained = saved.load_encoder(folder, strict=strict)
        # Windows of any montage, unit and length: none was fitted.
        embedder = cls(encoder=str(source), device=device)
        unknown = dict.fromkeys(("scale", "channels", "window_seconds"))
        embedder.preprocessing_ = replace(pretrained.card.preprocessing, **unknown)
        embedder.sfreq_ = pretrained.card.sfreq
        windows: dict[str, Any] = dict(n_chans=None, n_times=None, ch_names=[])
        embedder._restore(dict(windows=windows, pooling="auto", history=[]), pretrained, {})
        return embedder


def _pool(channels: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return one vector per window: (batch, n_chans, embed_dim) -> (batch, n_features)."""
    if pooling == "channels":
        return channels.flatten(1)
    mean = channels.mean(dim=1)  # (batch, embed_dim)
    return mean if pooling == "mean" else torch.cat([mean, channels.std(1, correction=0)], dim=1)
