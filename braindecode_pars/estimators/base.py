"""What both estimators share: read windows, get an encoder, pretrain it, remember how."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.utils.data import ConcatDataset

from braindecode_pars.callbacks import Pretraining
from braindecode_pars.device import find_device
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators.sanity import refuse_triggers
from braindecode_pars.models import patch_size_for
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.pretrained import (
    EncoderCard,
    load_encoder,
    refuse_classifier_folder,
    save_encoder,
    unique_subjects,
)
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.seeding import seeded
from braindecode_pars.window_set import WindowSet, as_window_set

__all__ = ["COUNT", "POSITIVE", "EncoderEstimator"]

COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")


class _Seeds(NamedTuple):
    split: int
    pretraining: int
    augmentation: int


class EncoderEstimator(BaseEstimator):
    """An estimator around a :class:`~braindecode_pars.PatchEncoder`.

    Subclasses have the parameters ``pretext``, ``pretext_params``, ``encoder``, ``sfreq``,
    ``patch_seconds``, ``pretrain_epochs``, ``pretrain_lr``, ``pretrain_batch_size``,
    ``weight_decay``, ``precision``, ``compile``, ``device``, ``random_state``, ``verbose`` and
    ``checkpoint_dir``, and set ``encoder_`` in ``fit``.
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "pretext": [str, type, PretextTask, None],
        "pretext_params": [dict, None],
        "sfreq": [POSITIVE, None],
        "patch_seconds": [POSITIVE],
        "embed_dim": [COUNT],
        "num_layers": [COUNT],
        "num_heads": [COUNT],
        "mlp_dim": [COUNT],
        "pretrain_epochs": [Interval(Integral, 0, None, closed="left")],
        "pretrain_batch_size": [COUNT],
        "pretrain_lr": [POSITIVE],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "precision": [StrOptions({"float32", "bfloat16"})],
        "compile": ["boolean"],
        "device": [str, torch.device],
        "random_state": ["random_state"],
        "checkpoint_dir": [str, os.PathLike, None],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False  # a windows dataset carries its own
        return tags

    def __sklearn_clone__(self) -> EncoderEstimator:
        # scikit-learn would clone an estimator or net given as ``encoder`` into an unfitted one.
        without = copy.copy(self)
        without.encoder = None
        twin = BaseEstimator.__sklearn_clone__(without)
        twin.encoder = self.encoder
        return twin

    def _forget(self) -> None:
        """Drop what an earlier ``fit`` has learned; one that fails then leaves nothing stale."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _read(self, X: Any, y: Any = None, groups: Any = None) -> WindowSet:
        """The training windows, each of them looked at once."""
        self._validate_params()
        self._forget()
        if self.checkpoint_dir is not None:
            try:
                Path(self.checkpoint_dir).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ValueError(
                    f"checkpoint_dir={str(self.checkpoint_dir)!r} cannot be a folder: {error}."
                ) from error
            refuse_classifier_folder(Path(self.checkpoint_dir))
        windows = as_window_set(X, y, groups, self.sfreq)
        refuse_triggers(windows.chs_info)
        self.n_chans_, self.n_times_ = windows.check()
        self.chs_info_ = windows.chs_info
        self.sfreq_ = windows.sfreq
        return windows

    def _read_unlabeled(self, unlabeled: Any) -> WindowSet | None:
        if unlabeled is None:
            return None
        windows = as_window_set(unlabeled, n_times=self.n_times_)
        if len(windows) == 0:
            raise ValueError("unlabeled holds no windows; leave it out.")
        refuse_triggers(windows.chs_info)
        self._check_sfreq(windows, "The unlabelled windows")
        if self.encoder is not None or self.pretext is None:
            warnings.warn(
                "Windows without labels are of no use here: there is no pretraining, because "
                + ("an encoder was given." if self.encoder is not None else "pretext is None."),
                stacklevel=3,
            )
            return None
        return windows

    def _check_sfreq(self, windows: WindowSet, what: str) -> None:
        if None not in (windows.sfreq, self.sfreq_) and not np.isclose(windows.sfreq, self.sfreq_):
            raise ValueError(
                f"{what} are sampled at {windows.sfreq:g} Hz, the model at {self.sfreq_:g} Hz; "
                "resample them first."
            )

    def _device(self) -> torch.device:
        return find_device(self.device)

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """A fit that fails leaves nothing behind; Ctrl-C keeps what was learned until then."""
        try:
            yield
        except Exception:
            self._forget()
            raise

    @contextmanager
    def _seeded(self) -> Iterator[_Seeds]:
        """Everything random inside follows ``random_state``; torch's global state is put back.

        The parts have seeds of their own, so that neither the head nor an augmentation changes
        what is pretrained.
        """
        model, *parts = check_random_state(self.random_state).randint(2**31, size=4).tolist()
        with seeded(model, self._device()):
            yield _Seeds(*parts)

    def _resolve_encoder(self) -> PatchEncoder | None:
        """The encoder the user brings along, after checking that it fits the windows."""
        if self.encoder is None:
            self.encoder_card_ = EncoderCard(sfreq=self.sfreq_)
            return None
        encoder, self.encoder_card_, report = load_encoder(self.encoder)
        if report is not None:
            self.load_report_ = report
            if self.verbose:
                print(f"encoder from {self.encoder}: {report}")
        trained_at = self.encoder_card_.sfreq
        if self.sfreq_ is None and trained_at is not None:
            warnings.warn(
                f"These windows do not tell their sampling rate; they are taken to have the "
                f"encoder's {trained_at:g} Hz. Pass sfreq= (in Hz) to {type(self).__name__}.",
                stacklevel=3,
            )
            self.sfreq_ = trained_at
        elif trained_at is not None and not np.isclose(self.sfreq_, trained_at):
            raise ValueError(
                f"The encoder was pretrained at {trained_at:g} Hz, the windows are sampled at "
                f"{self.sfreq_:g} Hz; resample the windows to {trained_at:g} Hz."
            )
        if self.n_times_ < encoder.patch_size:
            raise ValueError(
                f"A window of {self.n_times_} samples is shorter than the encoder's patch of "
                f"{encoder.patch_size} samples; use longer windows."
            )
        return encoder

    def _patch_size(self, encoder: PatchEncoder | None) -> int:
        """Samples in a patch; warns where nothing tells the sampling rate."""
        if encoder is not None:
            patch_size = encoder.patch_size
        else:
            patch_size = patch_size_for(self.patch_seconds, self.sfreq_, self.n_times_)
        if self.sfreq_ is None:
            warnings.warn(
                f"These windows do not tell their sampling rate; a patch is {patch_size} samples "
                + ("long" if encoder is not None else "long, a thirtieth of the window")
                + f". Pass sfreq= (in Hz) to {type(self).__name__}, or fit on as_sklearn's X.",
                stacklevel=3,
            )
        return patch_size

    def _pretrain(self, encoder: PatchEncoder, parts: list[WindowSet | None], seed: int) -> None:
        """Pretrain in place, and write the result to ``checkpoint_dir`` if there is one.

        After Ctrl-C too, so that what was trained until then is kept.
        """
        windows, *extra = parts = [part for part in parts if part is not None]
        pretraining = Pretraining(
            self.pretext,
            epochs=self.pretrain_epochs,
            lr=self.pretrain_lr,
            batch_size=self.pretrain_batch_size,
            weight_decay=self.weight_decay,
            task_params=self.pretext_params,
            unlabeled=ConcatDataset(extra) if extra else None,
            n_times=min([self.n_times_, *(part.shortest() for part in extra)]),
            precision=self.precision,
            compile=self.compile,
            verbose=self.verbose,
        ).initialize()
        device = self._device()
        try:
            with seeded(seed, device):
                pretraining.pretrain(encoder, windows, device)
        except KeyboardInterrupt:
            if pretraining.net_ is not None:
                self._remember(encoder, pretraining.net_, parts)
            raise
        self._remember(encoder, pretraining.net_, parts)

    def _remember(self, encoder: PatchEncoder, net: PretrainingNet, parts: list[WindowSet]) -> None:
        epochs = [row for row in net.history if "train_loss_relative" in row]
        self.pretraining_history_ = epochs
        self.encoder_card_ = EncoderCard(
            sfreq=self.sfreq_,
            task=net.module_.name,
            task_params=dict(self.pretext_params or {}),
            subjects=unique_subjects(*(part.groups for part in parts)),
            n_windows=sum(map(len, parts)),
            epochs=len(epochs),
            loss_relative=epochs[-1]["train_loss_relative"] if epochs else None,
        )
        self._keep_task(net.module_)
        if self.checkpoint_dir is not None:
            save_encoder(encoder, self.encoder_card_, self.checkpoint_dir)

    def _keep_task(self, task: PretextTask) -> None:
        """What to do with the task and its decoder after pretraining; nothing by default."""

    def _wants_pretraining(self, encoder: PatchEncoder | None) -> bool:
        return encoder is None and self.pretext is not None and self.pretrain_epochs > 0

    def _prediction_windows(self, X: Any) -> WindowSet:
        check_is_fitted(self)
        windows = as_window_set(X)
        if len(windows) == 0:
            raise ValueError("There are no windows: the dataset has length 0.")
        self._check_sfreq(windows, "These windows")
        return windows

    def _batches(
        self, windows: WindowSet, device: torch.device, batch_size: int = 64
    ) -> Iterator[Tensor]:
        for batch in windows.batches(batch_size):
            if batch.shape[-1] < self.encoder_.patch_size:
                raise ValueError(
                    f"A window of {batch.shape[-1]} samples is shorter than the model's patch of "
                    f"{self.encoder_.patch_size} samples."
                )
            yield torch.from_numpy(batch).to(device)
