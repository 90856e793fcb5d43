"""A user-defined recipe: text files such as ``P01_train.txt`` with a seed and a duration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mne
import numpy as np

from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects
from braindecode_pars.recordings.recipe import ContinuousCorpus, Recipe

CARD: dict[str, Any] = dict(name="Own", version="1", subjects=20, classes=("rest", "task"))


def recordings(path: str | Path, subjects: Any = None) -> list[Recording]:
    files = [(file, *file.stem.split("_")) for file in sorted(Path(path).rglob("*.txt"))]
    if not files:
        raise FileNotFoundError(f"{path} has no file such as P01_train.txt.")
    described = [Recording(file, dict(subject=s, split=split)) for file, s, split in files]
    return choose_subjects(described, subjects, path)


def prepare(recording: Recording, *, level: float = 1e-5) -> mne.io.BaseRaw:
    seed, seconds = map(int, recording.file.read_text().split())
    noise = level * np.random.default_rng(seed).standard_normal((2, 100 * seconds))
    return mne.io.RawArray(noise, mne.create_info(["C3", "C4"], 100.0, "eeg"), verbose="error")


def cut(recording: Recording, *, seconds: float = 2.0, **preparation: Any) -> Any:
    return fixed_windows(prepare(recording, **preparation), seconds, target=1)


RECIPE = Recipe("own_recipe", CARD, recordings, prepare, cut)


def write(folder: Path, name: str, seconds: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    number = int("".join(filter(str.isdigit, name)))
    (folder / f"{name}.txt").write_text(f"{number} {seconds}")


def corpus_of(folder: Path, name: str = "own_recipe", **arguments: Any) -> ContinuousCorpus:
    """Return the corpus of the recipe with the name ``name``."""
    return replace(RECIPE, name=name).continuous(folder, **arguments)
