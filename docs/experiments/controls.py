"""Control analyses: which signal properties do improvements of encoders depend on?

    python docs/experiments/controls.py arithmetic OUT
    python docs/experiments/controls.py imagery OUT --eeg FOLDER
    python docs/experiments/controls.py hands OUT --eeg FOLDER

FOLDER contains PhysioNet's motor imagery recordings. OUT receives the scores of every fit. An
interrupted command resumes when it is run again. ``OUT/encoders`` contains the runs of the encoders
that are not bundled, as pretrained by ``reproduce.py``, and the encoder noise of
``synthetic_signals.py``. Writes ``docs/measured/controls/TASK.csv``. Every method is a linear probe
on frozen features, and all methods have the same labeled subjects in a draw. The arithmetic dataset
has no frontal channels, so low-frequency amplitude is not run there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from few_labels import C
from real_recordings import FORMER, arithmetic, hands, imagery
from sklearn.base import BaseEstimator
from stored_table import store_table

from braindecode_pars import PARSEmbedder, PatchEncoder
from braindecode_pars.baselines import make_methods
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import controls
from braindecode_pars.evaluation.controls import CONTROLS
from braindecode_pars.pretrained import load_encoder

MEASURED = Path(__file__).parents[1] / "measured" / "controls"
TASKS = dict(arithmetic=arithmetic, imagery=imagery, hands=hands)
#: Numbers of labeled subjects, and number of draws, by task.
DESIGNS = {"arithmetic": ((4, 8), 20), "imagery": ((4,), 20), "hands": ((4, 16), 20)}
#: Controls that were run on imagery; the other controls take too long.
CHOSEN = {"imagery": ("slow", "eyes", "labels")}
BASELINES = (
    *("classical-features", "tangent-space", "tangent-space-8-30"),
    *("band-power", "amplitude", "slow-voltages"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("out", type=Path, help="folder of the scores")
    parser.add_argument("--eeg", type=Path, help="folder of PhysioNet's motor imagery recordings")
    options = parser.parse_args()
    question = TASKS[options.task](options.out / "encoders", options.eeg)
    numbers, n_draws = DESIGNS[options.task]
    # All other subjects may be labeled.
    split = {name: value for name, value in question.split.items() if name != "train_subjects"}
    names = BASELINES if options.task != "arithmetic" else BASELINES[:-1]
    scores = controls(
        methods(names, options.out / "encoders"),
        question.windows,
        controls=CHOSEN.get(options.task, CONTROLS),
        n_train_subjects=numbers,
        seeds=range(n_draws),
        metrics=[question.metric],
        dataset=question.name,
        out=options.out / options.task,
        equal_sizes=False,
        **split,
    )
    keys = ["method", "control", "n_train_subjects", "seed"]
    subject_scores = scores[scores["subject"] != "all"]
    table = subject_scores.pivot(index=keys, columns="subject", values="value").reset_index()
    command = f"python docs/experiments/controls.py {options.task} OUT"
    command += " --eeg FOLDER" * bool(options.eeg)
    store_table(table, MEASURED / f"{options.task}.csv", command, index=False, float_format="%.4g")


def methods(names: tuple[str, ...], folder: Path) -> dict[str, BaseEstimator]:
    """Return linear probes on frozen encoders, and the baselines, by name."""
    torch.manual_seed(0)  # the same random encoder in all draws
    random = PatchEncoder(**load_encoder("small").encoder.config)
    former = {name: folder / run for name, run in FORMER.items()}
    encoders = {"small": "small", "noise": folder / "noise", **former, "random encoder": random}
    probes = {
        name: LinearProbe(PARSEmbedder(encoder=encoder, pooling="channels", verbose=0), C=C)
        for name, encoder in encoders.items()
    }
    return probes | make_methods(names, C=C)


if __name__ == "__main__":
    main()
