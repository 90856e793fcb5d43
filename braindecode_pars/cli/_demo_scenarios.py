"""The data of the demo, each with the settings of its training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars import datasets
from braindecode_pars.datasets import eegmat, physionet_mi, simulated
from braindecode_pars.evaluation import label_efficiency, leave_one_subject_out

__all__ = ["Scenario", "mental_arithmetic", "motor_imagery", "simulated_nights"]

#: The encoder in the package that pretraining on the sample of real EEG continues from.
ENCODER = "small"

#: Continued pretraining of that encoder. An epoch has one channel of each window.
CONTINUED = dict(pretrain_epochs=50, pretrain_lr=1e-3)

#: Fine-tuning on the sample of real EEG.
FINETUNE = dict(finetune_epochs=30)

#: Subjects of the sample without labels. The package's defaults were chosen on them, so no score is
#: of them.
N_UNLABELED = 12
#: Labelled subjects of a fit, and folds of the others.
N_LABELED, N_FOLDS = 4, 3


@dataclass
class Scenario:
    """Data and training settings of the demo.

    Attributes
    ----------
    name : str
        Name of the data, also in the scores.
    unlabeled, labeled : BaseConcatDataset
        Windows for pretraining, and windows for fine-tuning and scores, of other subjects.
    held_out : BaseConcatDataset
        Windows of the subjects in ``labeled``, with the length of the unlabelled windows.
    pretrain : dict
        Arguments of PARSEmbedder for a new encoder.
    finetune : dict
        Arguments of PARSClassifier.
    notice : str
        Licence and references of the data.
    encoder : str | None
        Encoder to continue with; None where every encoder is new.
    continued : dict
        Arguments of PARSEmbedder for the continued pretraining.
    protocol : callable
        Protocol of the scores, a function of estimators and windows.
    design : str
        The protocol in words.
    """

    name: str
    unlabeled: BaseConcatDataset
    labeled: BaseConcatDataset
    held_out: BaseConcatDataset
    pretrain: Mapping[str, Any]
    finetune: Mapping[str, Any]
    notice: str = ""
    encoder: str | None = None
    continued: Mapping[str, Any] = field(default_factory=dict)
    protocol: Callable[..., pd.DataFrame] = leave_one_subject_out
    design: str = "one subject held out at a time"


def mental_arithmetic() -> Scenario:
    """Read the recordings in the package: rest and mental arithmetic of 24 subjects."""
    subjects = [f"Subject{number:02}" for number in range(24)]
    labeled = datasets.mental_arithmetic(subjects[N_UNLABELED:])
    return Scenario(
        "mental arithmetic",
        unlabeled=datasets.mental_arithmetic(subjects[:N_UNLABELED]),
        labeled=labeled,
        held_out=labeled,
        pretrain=dict(pretrain_epochs=150),
        finetune=FINETUNE,
        notice=_notice(eegmat.CARD),
        encoder=ENCODER,
        continued=CONTINUED,
        protocol=partial(
            label_efficiency,
            n_train_subjects=[N_LABELED],
            cv=N_FOLDS,
            metrics=("kappa", "balanced_accuracy"),
        ),
        design=f"{N_LABELED} labelled subjects in each of {N_FOLDS} folds",
    )


def simulated_nights(seed: int) -> Scenario:
    """Simulate eight subjects for pretraining and six others with a quarter of windows labelled."""
    nights = simulated.sleep(n_subjects=14, hours=2, n_chans=3, sfreq=100, random_state=seed)
    labeled = BaseConcatDataset([_every_fourth(night) for night in nights.datasets[8:]])
    return Scenario(
        "simulated sleep",
        unlabeled=BaseConcatDataset(nights.datasets[:8]),
        labeled=labeled,
        held_out=labeled,
        pretrain=dict(pretrain_epochs=25),
        finetune=dict(finetune_epochs=15),
    )


def _every_fourth(night: EEGWindowsDataset) -> EEGWindowsDataset:
    return EEGWindowsDataset(night.raw, night.metadata.iloc[::4], dict(night.description))


def motor_imagery(folder: Path) -> Scenario:
    """Read 30-second windows of some subjects for pretraining, and trials of the others."""
    runs = (4, 8, 12)  # left or right fist
    subjects = sorted({r.subject for r in physionet_mi.recordings(folder, runs=runs)})
    if len(subjects) < 4:
        raise ValueError(
            f"{folder} has {len(subjects)} subjects; the demo needs at least four, two for "
            "pretraining and two for scores."
        )
    # At most eight subjects have labels, so that cross-validation takes minutes.
    n_labeled = min(len(subjects) // 2, 8)

    def read(chosen: list[int], part: str) -> BaseConcatDataset:
        return physionet_mi.load(
            folder,
            chosen,
            part=part,
            runs=runs,
            picks="motor",
            sfreq=160.0,
            stride_seconds=15.0,
            verbose=0,
        )

    return Scenario(
        physionet_mi.CARD["name"],
        unlabeled=read(subjects[n_labeled:], "pretraining"),
        labeled=read(subjects[:n_labeled], "trials"),
        held_out=read(subjects[:n_labeled], "pretraining"),
        pretrain=dict(pretrain_epochs=150),
        # Left and right hand differ in topography, so the model needs the electrode positions.
        finetune=dict(finetune_epochs=20, electrode_position=True),
        notice=_notice(physionet_mi.CARD),
    )


def _notice(card: Mapping[str, Any]) -> str:
    return (
        f"From {card['name']} {card['version']}, {card['address']}, licence {card['licence']}.\n"
        f"Cite {card['reference']}."
    )
