"""Scores against the number of labelled subjects: pretrained encoders, scratch and baselines.

    python docs/experiments/real_recordings.py arithmetic ENCODERS OUT
    python docs/experiments/real_recordings.py imagery ENCODERS OUT --eeg FOLDER
    python docs/experiments/real_recordings.py hands ENCODERS OUT --eeg FOLDER

ENCODERS is a folder with one run of ``braindecode-pars pretrain`` for each pretrained method; the
name of the run is the name of the method. FOLDER has PhysioNet's motor imagery recordings. An
interrupted run goes on with the same command.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from braindecode.datasets import BaseConcatDataset

from braindecode_pars import PARSClassifier, as_sklearn, datasets
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import label_efficiency

#: Sizes of all encoders.
SIZES = dict(embed_dim=128, num_layers=4, num_heads=8, mlp_dim=256)

#: Fine-tuning of all PARSNets, chosen on the development subjects.
FINE_TUNING = dict(
    amplitude=True,
    finetune_epochs=30,
    finetune_warmup=0.1,
    gradient_clip=1.0,
    validation=0,
    verbose=0,
)

#: Preparation of the motor imagery recordings, as for the pretraining of the encoders.
PREPARED = dict(
    runs=[4, 8, 12],
    picks="motor and 10-20",
    reference="picks",
    sfreq=128,
    low=0.5,
    high=45,
    mains=None,
)


@dataclass
class Question:
    """Windows, the subjects that are scored, and the numbers of labelled subjects."""

    name: str
    windows: BaseConcatDataset
    n_train_subjects: list[int]
    split: dict[str, Any]
    fine_tuning: dict[str, Any] = field(default_factory=dict)


def arithmetic(eeg: None) -> Question:
    """Rest against arithmetic. Subjects 12 to 23 are scored; 0 to 11 served for development."""
    windows = datasets.mental_arithmetic()
    _, _, groups = as_sklearn(windows)
    scored = [f"Subject{number:02d}" for number in range(12, 24)]
    # Half of the scored subjects are labelled while the other half is tested.
    halves = [np.isin(groups, scored[::2]), np.isin(groups, scored[1::2])]
    cv = [(np.flatnonzero(~half), np.flatnonzero(half)) for half in halves]
    return Question("rest or arithmetic", windows, [2, 4, 8, 16, 18], dict(cv=cv))


def imagery(eeg: Path) -> Question:
    """Imagined movement against rest, 1 to 4 s after the cue."""
    return _motor("imagery or rest", eeg, contrast="rest")


def hands(eeg: Path) -> Question:
    """Imagined left against right fist, 1 to 4 s after the cue."""
    return _motor("left or right fist", eeg, head="spatial_filter")


def _motor(name: str, eeg: Path, head: str = "attention", **contrast: Any) -> Question:
    windows = datasets.physionet_mi.load(
        eeg, range(1, 71), tmin=1, tmax=4, verbose=0, **contrast, **PREPARED
    )
    split = dict(test_subjects=list(range(51, 71)), train_subjects=list(range(1, 51)))
    return Question(name, windows, [2, 4, 8, 16, 50], split, dict(head=head, finetune_epochs=15))


QUESTIONS = dict(arithmetic=arithmetic, imagery=imagery, hands=hands)


def methods(encoders: Path, fine_tuning: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and classifiers: the fastest first."""
    yield from make_methods(["band-power", "tangent-space"]).items()
    settings = {**FINE_TUNING, **fine_tuning}
    yield "scratch", PARSClassifier(None, **SIZES, **settings)
    for run in sorted(path for path in encoders.iterdir() if (path / "encoder.json").exists()):
        yield run.name, PARSClassifier(encoder=run, **settings)
    yield from make_methods(["eegnet", "shallow"]).items()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", choices=QUESTIONS)
    parser.add_argument("encoders", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--eeg", type=Path)
    parser.add_argument("--methods", nargs="*", help="a part of the methods, by name")
    parser.add_argument("--n-train-subjects", nargs="*", type=int)
    parser.add_argument("--epochs", type=int, help="of fine-tuning")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    if arguments.question != "arithmetic" and arguments.eeg is None:
        parser.error(f"{arguments.question} needs --eeg, the folder of the recordings")
    question = QUESTIONS[arguments.question](arguments.eeg)
    if arguments.epochs is not None:
        question.fine_tuning["finetune_epochs"] = arguments.epochs
    chosen = {
        name: method
        for name, method in methods(arguments.encoders, question.fine_tuning)
        if arguments.methods is None or name in arguments.methods
    }
    label_efficiency(
        chosen,
        question.windows,
        n_train_subjects=arguments.n_train_subjects or question.n_train_subjects,
        seeds=arguments.seeds,
        metrics=["balanced_accuracy"],
        dataset=question.name,
        out=arguments.out,
        **question.split,
    )


if __name__ == "__main__":
    main()
