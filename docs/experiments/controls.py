"""What do the gains of pretrained encoders need? The few-labels results on changed signals.

    python docs/experiments/controls.py arithmetic OUT
    python docs/experiments/controls.py imagery OUT --eeg FOLDER
    python docs/experiments/controls.py hands OUT --eeg FOLDER

FOLDER has PhysioNet's motor imagery recordings. OUT gets the scores of every fit, and an
interrupted command resumes from there. ``OUT/encoders`` has the runs of the encoders that are not
in the package, as ``reproduce.py`` pretrains them, and ``synthetic_signals.py`` the one of noise.
At the end ``docs/measured/controls/TASK.csv`` is written. Every method is a linear classifier of
frozen features, and all have the same labeled people in a draw. The sample of arithmetic has no
frontal channels, so slow voltages are left out there.
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
#: Numbers of labeled people, and of draws.
DESIGNS = {"arithmetic": ((4, 8), 20), "imagery": ((4,), 20), "hands": ((4, 16), 20)}
#: On imagery the others were left out for their time.
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
    given = parser.parse_args()
    question = TASKS[given.task](given.out / "encoders", given.eeg)
    numbers, n_draws = DESIGNS[given.task]
    # All others may be labeled.
    split = {name: value for name, value in question.split.items() if name != "train_subjects"}
    names = BASELINES if given.task != "arithmetic" else BASELINES[:-1]
    scores = controls(
        methods(names, given.out / "encoders"),
        question.windows,
        controls=CHOSEN.get(given.task, CONTROLS),
        n_train_subjects=numbers,
        seeds=range(n_draws),
        metrics=[question.metric],
        dataset=question.name,
        out=given.out / given.task,
        equal_sizes=False,
        **split,
    )
    keys = ["method", "control", "n_train_subjects", "seed"]
    each = scores[scores["subject"] != "all"]
    table = each.pivot(index=keys, columns="subject", values="value").reset_index()
    command = f"python docs/experiments/controls.py {given.task} OUT"
    command += " --eeg FOLDER" * bool(given.eeg)
    store_table(table, MEASURED / f"{given.task}.csv", command, index=False, float_format="%.4g")


def methods(names: tuple[str, ...], folder: Path) -> dict[str, BaseEstimator]:
    """Return the frozen encoders and the baselines by name."""
    torch.manual_seed(0)  # one random encoder for all draws
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
