"""Does pretraining improve sleep classification? Stage 3 vs. 4, and wake vs. deep sleep.

    python docs/experiments/sleep.py pretrain OUT --eeg FOLDER
    python docs/experiments/sleep.py probes OUT --eeg FOLDER
    python docs/experiments/sleep.py networks OUT --eeg FOLDER
    python docs/experiments/sleep.py controls OUT --eeg FOLDER
    python docs/experiments/sleep.py losses OUT --eeg FOLDER

FOLDER contains the recordings of the UCD Sleep Apnea Database. The first command pretrains every
pretext task without labels on six of the twelve subjects, and again on the other six: the four
tasks of the paper, a sham of each (``PARSEmbedder(sham=True)``) and PARS with 200 steps, with three
seeds; all other variants with one seed. OUT/encoders/noise is the encoder of
``synthetic_signals.py``. An interrupted command resumes when it is run again. The other commands
write tables to ``docs/measured/sleep``; ``probes`` with ``--only`` adds rows to the stored tables.
Every subject is tested with the encoder that was not pretrained on it, and the labels of 1, 2, 4 or
8 other subjects. The pretraining settings are the default settings before 2026-11-28; all other
settings are current.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset
from few_labels import by_subject
from safetensors.torch import load_file, save_file
from sklearn.base import TransformerMixin
from sklearn.metrics import balanced_accuracy_score
from stored_table import add_rows, store_table

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn
from braindecode_pars.baselines import CENTERED
from braindecode_pars.baselines.linear_probe import logistic_regression
from braindecode_pars.datasets.ucddb import SAMPLE_STAGES as STAGES
from braindecode_pars.datasets.ucddb import scored_epochs
from braindecode_pars.evaluation import (
    ChannelFeatures,
    ControlSignals,
    LogBandPower,
    label_efficiency,
)
from braindecode_pars.evaluation.changed_signals import (
    high_passed,
    random_phases,
    shuffled_patches,
)
from braindecode_pars.evaluation.controls import UNCHANGED
from braindecode_pars.evaluation.splitting import draw_subjects
from braindecode_pars.pretext.base import PretextTask, find_task
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.recordings.loading import Recording
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.table import Windows

MEASURED = Path(__file__).parents[1] / "measured" / "sleep"

#: Assumed unit of the recordings in volts, see ``datasets.sleep``.
UNIT = 100e-6
N_SEEDS = 3
#: Pretext task and its parameters, by variant.
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "PARS": ("pars", {}),
    "MAE": ("mae", {}),
    "MP3": ("mp3", {}),
    "DropPos": ("droppos", {}),
    "PARS without overlap": ("pars", dict(overlap=False)),
    "PARS, 200 steps": ("pars", {}),
    "features": ("features", {}),
}
#: Pretext tasks of the paper.
PAPER = ("PARS", "DropPos", "MP3", "MAE")
#: Suffix of variants with a sham pretraining.
SHAM = ", sham"
TASKS |= {f"{name}{SHAM}": TASKS[name] for name in PAPER}
#: Number of epochs of variants that do not have 50; 14 epochs are about 200 steps.
EPOCHS = {"PARS, 200 steps": 14}
#: Default settings of pretraining before 2026-11-28.
PREVIOUS: dict[str, Any] = dict(pretrain_batch_size=64, pretrain_lr=4e-3)
#: Default settings of PARS before 2026-11-28.
PREVIOUS_PARS = dict(position_mask_ratio=0.8, density=4 / 3)
#: Variants by patch embedding: spectral (package) and linear (paper).
TOKENS = {"spectral": tuple(TASKS), "linear": PAPER}
#: Stages of both classes, by task.
QUESTIONS = {"deep": (("3",), ("4",)), "wake": (("W",), ("3", "4"))}
#: Numbers of labeled subjects, and number of draws.
N_LABELED, N_DRAWS = {"deep": (1, 2, 4, 8), "wake": (1, 4)}, 20
C = 0.01
UNTRAINED = "random encoder"
#: Number of pretraining seeds, and variants with several seeds.
SEVERAL = (*PAPER, *(f"{name}{SHAM}" for name in PAPER), *EPOCHS)
#: Suffix of variants with linear patch embedding, as in the paper.
LINEAR = ", linear patch embedding"
#: Cutoff frequency in Hz of the high-pass filter of the control "slow", above slow waves.
EDGE = 4.0
#: Number of draws and methods of the control analyses, with their first seed.
CONTROL_DRAWS = 10
CONTROLLED = (UNTRAINED, "PARS", "PARS without overlap", "MAE", "hand-crafted features")
#: Numbers of labeled subjects of the networks.
N_NETWORK = {"deep": (1, 4), "wake": (1,)}


def read(eeg: Path) -> BaseConcatDataset:
    """Return all labeled windows of the recordings in a folder."""
    datasets = []
    for file in sorted(eeg.rglob("ucddb*.npz")):
        with np.load(file, allow_pickle=False) as night:
            volts = night["x"] * float(night["scale"]) * UNIT
            table = pd.DataFrame({name: night[name] for name in ("stage", "position", "bad")})
        recording = Recording(file, dict(subject=file.stem, corpus="ucddb"))
        datasets.append(scored_epochs(volts, table, STAGES, recording))
    return BaseConcatDataset(datasets)


def halves(windows: BaseConcatDataset) -> list[list[int]]:
    """Return the indices of the recordings in each half: every second subject."""
    numbers = list(range(len(windows.datasets)))
    return [numbers[::2], numbers[1::2]]


def variants() -> Iterator[tuple[int, str, str, int]]:
    """Yield seed, variant, patch embedding and half of all pretrainings."""
    for tokenizer, names in TOKENS.items():
        for name, seed, half in product(names, range(N_SEEDS), range(2)):
            if seed == 0 or name in SEVERAL:
                yield seed, name, tokenizer, half


def folder_of(out: Path, seed: int, name: str, tokenizer: str, half: int) -> Path:
    return out / "encoders" / f"{name}, {tokenizer}, half {half}, seed {seed}"


def pretrain(out: Path, eeg: Path, only: list[str], part: list[int]) -> None:
    windows = read(eeg)
    for i, (seed, name, tokenizer, half) in enumerate(variants()):
        folder = folder_of(out, seed, name, tokenizer, half)
        if (folder / "encoder.json").exists() or (only and name not in only) or half not in part:
            continue
        task, params = TASKS[name]
        embedder = PARSEmbedder(
            task,
            pretext_params=(PREVIOUS_PARS if task == "pars" else {}) | params,
            pooling="channels",
            tokenizer=tokenizer,
            pretrain_epochs=EPOCHS.get(name, 50),
            sham=name.endswith(SHAM),
            random_state=seed,
            verbose=0,
            **PREVIOUS,
        )
        embedder.fit(BaseConcatDataset([windows.datasets[k] for k in halves(windows)[half]]))
        embedder.save(folder)
        save_file(embedder.task_.state_dict(), folder / "task.safetensors")
        last = embedder.history_.iloc[-1]
        embedder.history_.to_csv(folder / "history.csv", index=False)
        print(i, folder.name, round(last["train_loss_relative"], 3), flush=True)


@dataclass
class TaskWindows:
    """Windows of a classification task: signals, labels 0 and 1, and subjects."""

    windows: Windows
    y: np.ndarray
    subjects: np.ndarray

    @classmethod
    def of(cls, windows: BaseConcatDataset, name: str) -> TaskWindows:
        target = {stage: k for k, group in enumerate(QUESTIONS[name]) for stage in group}
        X, y, subjects = as_sklearn(windows)
        labels = pd.Series(y).map({STAGES.index(stage): k for stage, k in target.items()})
        rows_with_label = np.flatnonzero(labels.notna())
        return cls(
            as_windows(X[rows_with_label]),
            labels[rows_with_label].to_numpy(int),
            subjects[rows_with_label].astype(str),
        )

    def folds(self, half: int, n: int = 3) -> list[np.ndarray]:
        """Return the six test subjects of the encoder of a half, in folds."""
        subjects = np.unique(self.subjects)[1 - half :: 2]
        return [subjects[k::n] for k in range(n)]


def scored(
    task_windows: TaskWindows, half: int, features: np.ndarray, numbers: Iterable[int], n_draws: int
) -> Iterator[dict[str, Any]]:
    """Yield one row per number of labeled subjects and draw, with the score of each subject.

    Equivalent to ``label_efficiency`` with a LinearProbe, with features computed in advance.
    """
    for n, seed in product(numbers, range(n_draws)):
        row: dict[str, Any] = dict(n_train_subjects=n, seed=seed)
        for tested in task_windows.folds(half):
            available = [s for s in np.unique(task_windows.subjects) if s not in tested]
            train = np.isin(task_windows.subjects, draw_subjects(available, n, seed))
            probe = logistic_regression(C, "balanced").fit(features[train], task_windows.y[train])
            for test_subject in tested:
                is_subject = task_windows.subjects == test_subject
                predicted = probe.predict(features[is_subject])
                row[test_subject] = balanced_accuracy_score(task_windows.y[is_subject], predicted)
        yield row


def centered(features: np.ndarray, subjects: np.ndarray) -> np.ndarray:
    means = pd.DataFrame(features).groupby(subjects).transform("mean")
    return features - means.to_numpy()


def sources(out: Path, half: int, windows: BaseConcatDataset) -> dict[str, TransformerMixin]:
    """Return transformers of windows, by name and pretraining seed."""
    found: dict[str, TransformerMixin] = {}
    for tokenizer, names in TOKENS.items():
        for name, seed in product((UNTRAINED, *names), range(N_SEEDS)):
            if name == UNTRAINED:
                folder = untrained(out, windows, tokenizer, seed)
            else:
                folder = folder_of(out, seed, name, tokenizer, half)
            if (folder / "encoder.json").exists():
                shown = f"{name}{LINEAR * (tokenizer == 'linear')}, seed {seed}"
                found[shown] = PARSEmbedder(encoder=folder, pooling="channels", verbose=0)
    for name, encoder in (("small", "small"), ("noise", out / "encoders" / "noise")):
        found[name] = PARSEmbedder(encoder=encoder, pooling="channels", verbose=0)
    return found | {"hand-crafted features": ChannelFeatures(), "log band power": LogBandPower()}


def untrained(out: Path, windows: BaseConcatDataset, tokenizer: str, seed: int) -> Path:
    """Return the folder of a random encoder."""
    folder = out / "encoders" / f"{UNTRAINED}, {tokenizer}, seed {seed}"
    if not (folder / "encoder.json").exists():
        new = PARSEmbedder(None, tokenizer=tokenizer, random_state=seed, verbose=0)
        new.fit(windows.datasets[0]).save(folder)
    return folder


def probes(out: Path, eeg: Path, only: list[str]) -> None:
    """Score linear probes on both tasks, without and with subject-wise centering.

    With ``only``, the scores of these variants are added to the stored ones.
    """
    windows = read(eeg)
    for name in QUESTIONS:
        task_windows, rows = TaskWindows.of(windows, name), []
        for half in range(2):
            for method, source in sources(out, half, windows).items():
                if only and method.partition(", seed ")[0] not in only:
                    continue
                plain = source.fit(task_windows.windows).transform(task_windows.windows)
                for row in scored(task_windows, half, plain, N_LABELED[name], N_DRAWS):
                    rows.append(dict(method=method, **row))
                for row in scored(
                    task_windows, half, centered(plain, task_windows.subjects), [4], N_DRAWS
                ):
                    rows.append(dict(method=method + CENTERED, **row))
            print(name, half, flush=True)
        table = joined_halves(rows, KEYS)
        if only:
            store_rows(table, name, f"probes OUT --eeg FOLDER --only {shlex.join(only)}")
        else:
            store(table, name, "probes")


KEYS = ["method", "n_train_subjects", "seed"]


def joined_halves(rows: list[dict[str, Any]], keys: list[str]) -> pd.DataFrame:
    """Return one row for the subjects of both halves."""
    return pd.DataFrame(rows).groupby(keys, sort=False, as_index=False).first()


def what_it_needs(out: Path, eeg: Path) -> None:
    """Score PARS, MAE and random encoders on control signals."""
    windows, rows = read(eeg), []
    for name in QUESTIONS:
        task_windows = TaskWindows.of(windows, name)
        for control in (UNCHANGED, "slow", "phase", "amplitude", "order"):
            changed = task_windows.windows
            if control != UNCHANGED:
                changed = ControlSignals(control, edge=EDGE).transform(task_windows.windows)
            for half in range(2):
                for method, source in sources(out, half, windows).items():
                    variant, _, seed = method.partition(", seed ")
                    if variant.removesuffix(LINEAR) not in CONTROLLED or seed not in ("", "0"):
                        continue
                    features = source.fit(changed).transform(changed)
                    for row in scored(task_windows, half, features, [4], CONTROL_DRAWS):
                        rows.append(dict(question=name, method=method, control=control, **row))
            print(name, control, flush=True)
    keys = ["question", "method", "control", "n_train_subjects", "seed"]
    store(joined_halves(rows, keys), "controls", "controls")


def losses(out: Path, eeg: Path) -> None:
    """Store the loss of PARS on held-out subjects, for pairs with and without shared samples."""
    windows, rows = read(eeg), []
    changes = {UNCHANGED: lambda x: x, "phase": random_phases}
    changes["slow"] = partial(high_passed, sfreq=128.0, edge=EDGE)
    changes["order"] = partial(shuffled_patches, patch_size=128)
    for seed, name, tokenizer, half in variants():
        if tokenizer == "linear" or name not in ("PARS", "PARS without overlap"):
            continue
        task = pretrained_task(out, seed, name, tokenizer, half)
        unseen = [windows.datasets[k] for k in halves(windows)[1 - half]]
        X, _, _ = as_sklearn(BaseConcatDataset(unseen))
        signals = np.stack([X[i] for i in range(0, len(X), 2)]).astype(float)
        for control, change in changes.items():
            x = torch.as_tensor(change(signals)[:, 0].copy()).float()
            torch.manual_seed(0)
            with torch.inference_mode():
                predicted, target = map(torch.cat, zip(*map(task, x.split(128)), strict=True))
            apart = target.abs() * task.n_times
            for pairs, chosen in (
                ("all", apart >= 0),
                ("in common", (apart > 0) & (apart < task.patch_size)),
                ("apart", apart >= task.patch_size),
            ):
                if chosen.any():
                    error = (predicted - target)[chosen].square().mean()
                    loss = float(error / target[chosen].square().mean())
                    rows.append((name, seed, half, control, pairs, loss))
    columns = ["method", "seed", "half", "control", "pairs", "loss"]
    store(pd.DataFrame(rows, columns=columns), "losses", "losses")


def pretrained_task(out: Path, seed: int, name: str, tokenizer: str, half: int) -> PretextTask:
    """Return a pretext task with its trained encoder and decoder."""
    folder, (task, params) = folder_of(out, seed, name, tokenizer, half), TASKS[name]
    encoder = load_encoder(folder).encoder
    found = find_task(task)(3840, encoder.patch_size, encoder=encoder, **params)
    found.load_state_dict(load_file(folder / "task.safetensors"))
    return found.eval()


def networks(out: Path, eeg: Path, jobs: int) -> None:
    """Train networks on stage 3 vs. 4 with the encoders of all seeds, and from scratch."""
    windows = read(eeg)
    for question, numbers in N_NETWORK.items():
        tables = []
        for half in range(2):
            task_windows = TaskWindows.of(windows, question)
            folds = [
                np.isin(task_windows.subjects, tested) for tested in task_windows.folds(half, 2)
            ]
            scores = label_efficiency(
                networks_of(question, out, windows, half),
                task_windows.windows.with_labels(task_windows.y, None),
                n_train_subjects=numbers,
                seeds=range(N_DRAWS),
                metrics=["balanced_accuracy"],
                cv=[(np.flatnonzero(~test), np.flatnonzero(test)) for test in folds],
                dataset=question,
                out=out / f"networks, {question}, half {half}",
                n_jobs=jobs,
            )
            tables.append(scores[scores["subject"] != "all"])
        rows = by_subject(pd.concat(tables).astype({"subject": str}))
        store(rows, f"networks_{question}", "networks")


def networks_of(
    question: str, out: Path, windows: BaseConcatDataset, half: int
) -> dict[str, PARSClassifier]:
    """Return the networks of a task by name and pretraining seed."""
    found = {"from scratch": PARSClassifier(None, verbose=0)}
    if question == "deep":
        for seed in range(N_SEEDS):
            of = {name: folder_of(out, seed, name, "spectral", half) for name in PAPER}
            of[UNTRAINED] = untrained(out, windows, "spectral", seed)
            for name, encoder in of.items():
                found[f"{name}, head trained, seed {seed}"] = _network(encoder, True)
            found[f"PARS, fine-tuned, seed {seed}"] = _network(of["PARS"], False)
    return found


def _network(encoder: Path, frozen: bool) -> PARSClassifier:
    return PARSClassifier(encoder=encoder, freeze_encoder=frozen, verbose=0)


def store(table: pd.DataFrame, name: str, step: str) -> None:
    command = f"python docs/experiments/sleep.py {step} OUT --eeg FOLDER"
    store_table(table, MEASURED / f"{name}.csv", command, index=False, float_format="%.4g")


def store_rows(rows: pd.DataFrame, name: str, arguments: str) -> None:
    command = f"python docs/experiments/sleep.py {arguments}"
    file = MEASURED / f"{name}.csv"
    add_rows(rows, file, command, ["method"], index=False, float_format="%.4g")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("pretrain", "probes", "networks", "controls", "losses"))
    parser.add_argument("out", type=Path, help="folder of the encoders and the scores")
    parser.add_argument("--eeg", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--only", nargs="*", default=[], choices=TASKS)
    parser.add_argument("--half", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--jobs", type=int, default=1, help="processes of the networks")
    options = parser.parse_args()
    if options.step == "pretrain":
        pretrain(options.out, options.eeg, options.only, options.half)
    else:
        steps = dict(controls=what_it_needs, losses=losses)
        steps["probes"] = partial(probes, only=options.only)
        steps["networks"] = partial(networks, jobs=options.jobs)
        steps[options.step](options.out, options.eeg)


if __name__ == "__main__":
    main()
