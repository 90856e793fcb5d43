"""What PARSClassifier and PARSRegressor share: pretraining, then fine-tuning of a PARSNet."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from braindecode_pars._common.checks import listed, warn_user
from braindecode_pars._common.model_files import ENTRIES
from braindecode_pars._common.seeding import drawing
from braindecode_pars._common.training import history_row
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.estimators.costs import TrainingCost, fine_tuning_cost
from braindecode_pars.estimators.embedder import PARSEmbedder
from braindecode_pars.estimators.encoder_start import (
    EncoderEstimator,
    EncoderStart,
    encoder_start,
    further_windows,
)
from braindecode_pars.estimators.fine_tuning import (
    fine_tune,
    fine_tuning_net,
    warn_of_fine_tuning,
)
from braindecode_pars.estimators.parameters import AUTO
from braindecode_pars.estimators.transitions import Transitions
from braindecode_pars.estimators.windows_estimator import (
    FineTunedEstimator,
    Seeds,
    batches,
    check_finite,
    positions_for,
    read_to_predict,
    training,
    without_training,
)
from braindecode_pars.models import PARSNet
from braindecode_pars.models.electrodes import electrode_positions
from braindecode_pars.pretrained.cards import fine_tuned_card, read_card, unique_subjects
from braindecode_pars.windows.amplitudes import amplitude_range
from braindecode_pars.windows.held_out import drop_held_out, without_held_out_splits
from braindecode_pars.windows.table import Windows

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False, repr=False)
class PARSEstimator(FineTunedEstimator, EncoderEstimator):
    """An estimator that pretrains an encoder and fine-tunes a PARSNet; PARSClassifier describes it.

    A subclass says what the labels are, and what the outputs of the network mean.
    """

    freeze_encoder: str | bool = "auto"
    channel_drop_prob: float = 0.5
    electrode_position: str | bool = "auto"
    amplitude: bool = True
    head: str = "auto"
    head_epochs: str | int = "auto"
    encoder_lr_factor: str | float | tuple[float, float] = "auto"
    drop_prob: float = 0.0

    @abstractmethod
    def _read(
        self, X: Any, y: Any, groups: Any, *, any_montage: bool
    ) -> tuple[Windows, np.ndarray]:
        """Return the windows of ``fit`` with labels as numbers, and whether each has one."""

    @abstractmethod
    def _hold_out(self, windows: Windows, seed: int) -> tuple[Windows, Windows | None]:
        """Return training and validation windows, with the labels that the network learns."""

    def _fit(self, X: Any, y: Any, groups: Any, unlabeled: Any) -> Self:
        with training(self) as seeds:
            start, train, valid, parts = self._begin(X, y, groups, unlabeled, seeds=seeds)
            self.amplitudes_ = amplitude_range(train)
            start.pretrain(self.encoder_, parts, seeds.pretraining)
            # The card is written first, so that it is complete after Ctrl-C.
            people = [part.people for part in (train, valid) if part is not None]
            self.encoder_card_ = fine_tuned_card(self.encoder_card_, self.sfreq_, *people)
            fine_tune(self.net_, train, valid)
            warn_of_fine_tuning(self, train, valid)
        return self

    def _begin(
        self, X: Any, y: Any, groups: Any = None, unlabeled: Any = None, *, seeds: Seeds
    ) -> tuple[EncoderStart, Windows, Windows | None, list[Windows]]:
        """Read the windows and build the net.

        Returns
        -------
        start : EncoderStart
            The encoder of the net before its training.
        train, valid : Windows, Windows | None
            Labelled windows, of which the second ones are held out.
        parts : list of Windows
            What to pretrain on: the training windows, and unlabelled ones of people who are not
            held out.
        """
        # Positions are those of one montage.
        has_filters = self.head in ("spatial_filter", "both")
        has_positions = self.electrode_position not in (False, AUTO) or has_filters
        windows, labelled = self._read(X, y, groups, any_montage=not has_positions)
        start = encoder_start(self, windows)
        others = further_windows(self, unlabeled, windows)
        if not labelled.all():
            others = [windows[~labelled], *others]
        train, valid = self._hold_out(windows[labelled], seeds.split)
        head = self._head()
        self._check_positions()
        with drawing():
            module = PARSNet(
                n_outputs=len(getattr(self, "classes_", ["one number"])),
                n_chans=self.n_chans_,
                chs_info=self.chs_info_ or None,
                n_times=self.n_times_,
                sfreq=self.sfreq_,
                channel_drop_prob=self.channel_drop_prob,
                electrode_position=self.electrode_position,
                amplitude=self.amplitude,
                head=head,
                **start.sizes,
            )
        self.net_ = fine_tuning_net(self, module, train, valid, seed=seeds.augmentation)
        self.fine_tuning_["head"] = head
        if self.verbose and self.encoder is not None:
            self._log_fine_tuning(unique_subjects(train.people))
        kept = (without_held_out_splits(part, self.validation) for part in others)
        kept = (drop_held_out(part, train, valid) for part in kept)
        return start, train, valid, [train, *(part for part in kept if part is not None)]

    def _head(self) -> str:
        """Return the head that the network gets."""
        if self.head != AUTO:
            return self.head
        # An empty list where recordings have different channels. One channel has nothing to filter.
        names = self.chs_info_ or []
        return "spatial_filter" if len(names) > 1 and n_known_electrodes(names) else "attention"

    def _log_fine_tuning(self, people: list | None) -> None:
        told = dict(self.fine_tuning_)
        if told["freeze_encoder"]:  # the others have no effect
            told = {name: told[name] for name in ("freeze_encoder", "head")}
        settings = ", ".join(f"{name}={value!r}" for name, value in told.items())
        number = "an unknown number of" if people is None else len(people)
        log.info("A given encoder and labels of %s people: %s.", number, settings)

    def _check_positions(self) -> None:
        """Check that positions that are asked for have names; log what "auto" means."""
        names = self.chs_info_ or []
        if self.electrode_position == AUTO and self.verbose:
            n_known = n_known_electrodes(names)
            found = "on" if n_known else "off"
            text = "electrode_position='auto' is %s: %d of %d channels are known electrodes."
            log.info(text, found, n_known, len(names))
        elif self.electrode_position not in (AUTO, False) and not names:
            raise ValueError(
                "electrode_position=True needs channel names, with the same names and order in "
                "every recording."
            )

    def pretrained(self, X: Any, *, groups: Any = None, unlabeled: Any = None) -> PARSEmbedder:
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
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in PARSEmbedder().get_params(deep=False) if name in own}
        return PARSEmbedder(**shared).fit(X, groups=groups, unlabeled=unlabeled)

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> TrainingCost:
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
        with without_training(self) as (unfitted, seeds):
            start, train, _, parts = unfitted._begin(X, y, groups=groups, seeds=seeds)
            return fine_tuning_cost(start, unfitted.net_, train, sum(map(len, parts)))

    @property
    def encoder_(self) -> PatchEncoder:
        """The fine-tuned encoder."""
        return self.net_.module_.encoder

    def _outputs(self, X: Any) -> Tensor:
        """Return finite outputs of the network on the CPU, shape (n_windows, n_outputs)."""
        check_is_fitted(self)
        module = self.net_.module_.eval()
        windows = read_to_predict(self, X, any_montage=True)
        if module.positions is not None:
            warn_of_unknown_electrodes(windows, self.n_chans_)
        device = module.final_layer.weight.device
        outputs: list[Tensor] = []
        with torch.inference_mode():
            for batch in batches(windows, module.encoder.patch_size, device):
                # Windows of other channels have other positions.
                chs_info = windows.montage_of(sum(map(len, outputs))).chs_info
                positions = positions_for(module, chs_info, batch.shape[1])
                outputs.append(module(batch, **positions).cpu())
        return check_finite(torch.cat(outputs))

    def _to_save(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        # None: unknown channels; an empty list: recordings with different channels.
        montage = "one" if self.chs_info_ else "several"
        module, weights = self.net_.module_, getattr(self.net_.criterion_, "weight", None)
        # The description of the PARSNet, and of everything else.
        description = module.description()
        description[ENTRIES[self._kind]] = {
            "class_weights": None if weights is None else weights.tolist(),
            "fine_tuning": self.fine_tuning_,
            "windows": {
                "sfreq": self.sfreq_,
                "montage": "unknown" if self.chs_info_ is None else montage,
            },
            "pretraining": asdict(self.encoder_card_),
            "history": {
                "pretraining": list(map(history_row, self.pretraining_history_)),
                "fine-tuning": list(map(history_row, self.net_.history)),
            },
        }
        return description, module.state_dict()

    def _restore(self, described: dict[str, Any], loaded: Any, tensors: dict[str, Tensor]) -> None:
        montages = {"one": loaded._chs_info, "several": [], "unknown": None}
        self.chs_info_ = montages[described["windows"]["montage"]]
        self.encoder_card_ = read_card(described["pretraining"])
        self.n_chans_, self.n_times_ = loaded.n_chans, loaded.n_times
        self.load_report_ = loaded.load_report
        if "transitions" in described:
            self.transitions_ = Transitions.from_json(described["transitions"])
        # The net around the loaded module, which is not trained again.
        self.pretraining_history_ = described["history"]["pretraining"]
        chosen = described["fine_tuning"].items()
        self.fine_tuning_ = {k: tuple(v) if isinstance(v, list) else v for k, v in chosen}
        of_classes = described["class_weights"]  # None too for numbers as labels
        of_classes = None if of_classes is None else torch.FloatTensor(of_classes)
        self.net_ = fine_tuning_net(self, loaded, class_weights=of_classes)
        self.fine_tuning_["head"] = loaded.head
        self.net_.history.extend(described["history"]["fine-tuning"])


def warn_of_unknown_electrodes(windows: Windows, n_chans: int | None) -> None:
    """Warn of windows to predict in which no electrode position is known.

    ``n_chans`` is the number of channels of the fit. Windows without channel names are assumed to
    have the channels of the fit, if they have as many.
    """
    n_unknown, example = 0, ""
    for number, montage in enumerate(windows.montages):
        own = np.flatnonzero(windows.montage_numbers == number)
        if montage.chs_info is None:
            is_known = len(windows[int(own[0])]) == n_chans
        else:
            is_known = n_known_electrodes(montage.chs_info) > 0
        if not is_known:
            n_unknown, example = n_unknown + len(own), listed(montage.names, most=3)
    if n_unknown:
        warn_user(
            f"No electrode position is known in {n_unknown} of {len(windows)} windows (channels "
            f"{example or 'without names'}). Rename them as in the 10-05 system, or set a montage."
        )


def n_known_electrodes(chs_info: list[dict]) -> int:
    """Return how many channels have a known position."""
    return int(np.isfinite(electrode_positions(chs_info)).all(axis=1).sum())
