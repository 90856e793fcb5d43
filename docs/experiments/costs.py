"""Count the cost of one fit of each method of the results: docs/measured/costs.csv.

    python docs/experiments/costs.py --eeg FOLDER --out docs/measured/costs.csv

FOLDER contains PhysioNet's motor imagery recordings. Encoders that are not bundled are replaced by
random encoders, whose cards have the number of steps of the actual pretraining. The labeled
subjects are the first ones in alphabetical order, so the number of steps of single draws may differ
slightly.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import real_recordings
import simulated
from braindecode.datasets import BaseConcatDataset
from question import Question
from reproduce import MEASURED, RESULTS, ask_for
from stored_table import store_table

from braindecode_pars import PARSEmbedder
from braindecode_pars.evaluation import cost_table
from braindecode_pars.pretrained import load_encoder, save_encoder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--eeg", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    tables = []
    for result in RESULTS:
        with tempfile.TemporaryDirectory() as folder:
            encoders = Path(folder)
            simulates = hasattr(simulated, result)
            for method in simulated.TASKS if simulates else real_recordings.TASKS:
                if simulates:
                    _stand_in_simulated(method, encoders / result, result)
                else:
                    _stand_in(method, encoders)
            question = ask_for(result, encoders, options.eeg)(0)
            tables.append(_costs(result, question))
    costs = pd.concat(tables)
    command = "python docs/experiments/costs.py --eeg FOLDER --out docs/measured/costs.csv"
    store_table(costs, options.out, command, "counted", index=False, float_format="%.6g")
    print(costs.to_string())


def _costs(result: str, question: Question) -> pd.DataFrame:
    stored = pd.read_csv(MEASURED / f"{result}.csv", comment="#")
    tables = []
    for n, rows in stored.groupby("n_train_subjects"):
        methods = {name: question.classifier(name, n) for name in dict.fromkeys(rows["method"])}
        table = cost_table(methods, _first_subjects(question, n))
        table.insert(0, "n_train_subjects", n)
        table.insert(0, "result", result)
        tables.append(table)
    return pd.concat(tables)


def _first_subjects(question: Question, n: int) -> BaseConcatDataset:
    scored = question.split.get("test_subjects", [])
    of = [windows.description["subject"] for windows in question.windows.datasets]
    labeled = list(dict.fromkeys(subject for subject in of if subject not in scored))[:n]
    parts = zip(question.windows.datasets, of, strict=True)
    return BaseConcatDataset([windows for windows, subject in parts if subject in labeled])


def _stand_in(method: str, encoders: Path) -> None:
    """Save a bundled encoder of the same size with the card of the actual pretraining."""
    task = real_recordings.TASKS[method]
    settings = real_recordings.PRETRAINING
    n_steps = settings["epochs"] * settings["steps_per_epoch"]
    counts = dict(n_steps=n_steps, n_examples=n_steps * settings["batch_size"])
    encoder, card, _ = load_encoder("small")
    card = replace(card, task=task["task"], task_params=task.get("task_params", {}), **counts)
    save_encoder(encoder, card, encoders / method)


def _stand_in_simulated(method: str, encoders: Path, result: str) -> None:
    """Pretrain an encoder for one epoch, and save it with the card of all epochs."""
    task, arguments = simulated.TASKS[method]
    embedder = PARSEmbedder(task, pretext_params=arguments, pretrain_epochs=1, verbose=0)
    encoder, card, _ = load_encoder(embedder.fit(simulated.unlabeled(result, 0)))
    epochs, _ = simulated.EPOCHS[result]
    counts = dict(n_steps=card.n_steps * epochs, n_examples=card.n_examples * epochs)
    save_encoder(encoder, replace(card, **counts), encoders / f"{method}, seed 0")


if __name__ == "__main__":
    main()
