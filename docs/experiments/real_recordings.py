"""Classification tasks with real recordings, and the encoders that are pretrained for them.

They are run by ``reproduce.py``. Rest vs. mental arithmetic uses the bundled dataset; the other
tasks need PhysioNet's motor imagery recordings.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from braindecode.datasets import BaseConcatDataset
from question import Question

from braindecode_pars import PARSClassifier, as_sklearn, datasets, runs
from braindecode_pars.runs import RunConfig
from braindecode_pars.signal_store import SignalStore

#: Sizes of all encoders.
SIZES = dict(embed_dim=128, num_layers=4, num_heads=8, mlp_dim=256)

#: Pretraining of all encoders, on motor imagery recordings.
PRETRAINING = dict(
    **SIZES,
    window_seconds=10.0,
    patch_seconds=1.0,
    drop_prob=0.0,
    tokenizer="spectral",
    epochs=24,
    steps_per_epoch=250,
    batch_size=128,
    micro_batch_size=128,
    lr=1e-3,
    weight_decay=1e-4,
    warmup=0.05,
    precision="float32",
)

#: Settings that differ from PRETRAINING, by method.
TASKS: dict[str, dict[str, Any]] = {
    "SpectralMAE": dict(task="spectral", task_params=dict(mask_ratio=0.5)),
    "PARS": dict(task="pars"),
    "PARS without overlap": dict(task="pars", task_params=dict(overlap=False, min_gap=16)),
    "PARS without overlap, seed 1": dict(
        task="pars", task_params=dict(overlap=False, min_gap=16), seed=1
    ),
    "MAE": dict(task="mae", task_params=dict(mask_ratio=0.5)),
}

#: Names of two encoders that were bundled with version 0.2.0.
FORMER = {"spectral-eegmmidb": "SpectralMAE", "pars-eegmmidb": "PARS without overlap"}

#: Train all weights of a pretrained encoder in the same way as from scratch.
AS_FROM_SCRATCH = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0, head="attention")

#: Fine-tuning of all PARSNets, chosen on the development subjects.
FINE_TUNING = dict(
    **AS_FROM_SCRATCH,
    amplitude=True,
    finetune_epochs=30,
    finetune_warmup=0.1,
    gradient_clip=1.0,
    validation=0,
    verbose=0,
)

#: Preprocessing of the motor imagery recordings, for pretraining and for labeled windows.
PREPARED = dict(
    runs=[4, 8, 12],
    picks="motor and 10-20",
    reference="picks",
    sfreq=128,
    low=0.5,
    high=45,
    mains=None,
)
PRETRAINED, SCORED = range(1, 51), range(51, 71)


def arithmetic(encoders: Path, eeg: Path | None) -> Question:
    """Rest vs. arithmetic; subjects 12 to 23 are tested, 0 to 11 are development subjects."""
    windows = datasets.mental_arithmetic()
    _, _, groups = as_sklearn(windows)
    scored = [f"Subject{number:02d}" for number in range(12, 24)]
    # Each half of these subjects may be labeled while the other half is tested.
    halves = [np.isin(groups, scored[::2]), np.isin(groups, scored[1::2])]
    cv = [(np.flatnonzero(~half), np.flatnonzero(half)) for half in halves]
    return _question("rest or arithmetic", windows, dict(cv=cv), encoders, eeg)


def imagery(encoders: Path, eeg: Path) -> Question:
    """Imagined movement vs. rest, 1 to 4 s after the cue."""
    return _motor("imagery or rest", "rest", encoders, eeg)


def hands(encoders: Path, eeg: Path) -> Question:
    """Imagined movement of the left vs. the right fist, 1 to 4 s after the cue."""
    return _motor("left or right fist", "movements", encoders, eeg, head="spatial_filter")


def _motor(name: str, contrast: str, encoders: Path, eeg: Path, **fine_tuning: Any) -> Question:
    split = dict(test_subjects=list(SCORED), train_subjects=list(PRETRAINED))
    windows = _motor_windows(eeg, contrast)
    return _question(name, windows, split, encoders, eeg, finetune_epochs=15, **fine_tuning)


@cache
def _motor_windows(eeg: Path, contrast: str) -> BaseConcatDataset:
    return datasets.physionet_mi.load(
        eeg, [*PRETRAINED, *SCORED], tmin=1, tmax=4, verbose=0, contrast=contrast, **PREPARED
    )


def _question(
    name: str,
    windows: BaseConcatDataset,
    split: dict[str, Any],
    encoders: Path,
    eeg: Path | None,
    **fine_tuning: Any,
) -> Question:
    fitted_by = partial(_classifier, encoders, eeg, {**FINE_TUNING, **fine_tuning})
    return Question(name, windows, "balanced_accuracy", split, fitted_by)


def _classifier(
    encoders: Path, eeg: Path | None, settings: dict[str, Any], method: str, n_labeled: int
) -> PARSClassifier:
    if n_labeled == 50:
        settings = settings | dict(
            finetune_epochs=5
        )  # about the same number of steps as with 16 subjects
    if method == "from scratch":
        return PARSClassifier(None, **SIZES, **settings)
    return PARSClassifier(encoder=pretrained(method, encoders, eeg), **settings)


def pretrained(method: str, encoders: Path, eeg: Path | None) -> Path:
    """Return the folder of an encoder, pretraining or resuming it if necessary."""
    run = encoders / method
    if not (run / "encoder.json").exists():
        if eeg is None:
            raise SystemExit(f"{method} must be pretrained first. Pass the recordings with --eeg.")
        config = RunConfig(**PRETRAINING, **TASKS[method])
        began = (run / "run.json").exists()
        runs.pretrain(_store(encoders / "store", eeg), run, config, resume=began)
    return run


def _store(folder: Path, eeg: Path) -> SignalStore:
    """Return a store of the recordings of subjects 1 to 50."""
    try:
        return SignalStore.open(folder)
    except (FileNotFoundError, ValueError):  # the store does not exist, or is unfinished
        others = [subject for subject in range(1, 110) if subject not in PRETRAINED]
        corpus = datasets.RECIPES["physionet_mi"].continuous(eeg, exclude=[others], **PREPARED)
        return SignalStore.create(folder, corpus)
