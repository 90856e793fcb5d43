"""Damaged, edited and exchanged files in every kind of folder."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import PARSClassifier, PARSEmbedder, PARSNet
from braindecode_pars.evaluation import LogBandPower, leave_one_subject_out
from braindecode_pars.models import embed_signals
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.runs import RunConfig, pretrain
from braindecode_pars.signal_store import SignalStore
from fuzz import small
from fuzz.outcomes import FOLDER_PREFIX

X = small.signals(5)


def _build_classifier(path: Path, seed: int) -> None:
    small.make("classifier", sfreq=small.SFREQ, random_state=seed).fit(
        small.signals(seed), np.array(["left", "right"])[small.LABELS]
    ).save(path)


def _open_classifier(path: Path) -> Any:
    model = PARSClassifier.load(path, device="cpu")
    return [small.output(model, X), model.classes_.tolist(), model.sfreq_, model.n_chans_]


def _build_embedder(path: Path, seed: int) -> None:
    windows = small.dataset()
    small.make("embedder", random_state=seed).fit(windows).save(path)


def _open_embedder(path: Path) -> Any:
    return [small.output(PARSEmbedder.load(path, device="cpu"), X)]


def _open_encoder(path: Path) -> Any:
    encoder, card, _ = load_encoder(path)
    with torch.inference_mode():
        features = embed_signals(encoder.eval(), torch.from_numpy(X[:, 0])).numpy()
    return [features, card.subjects, card.finetune_subjects, card.sfreq]


def _build_net(path: Path, seed: int) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sizes = dict(n_outputs=2, n_chans=2, n_times=small.N_TIMES, sfreq=small.SFREQ)
        PARSNet(**sizes, **small.ENCODER).save_pretrained(path)


def _open_net(path: Path) -> Any:
    with torch.inference_mode():
        return [PARSNet.from_pretrained(path)(torch.from_numpy(X)).numpy()]


def _build_store(path: Path, seed: int) -> None:
    parts = [small.windows_of(small.recording(seed + s), {"subject": s}) for s in range(3)]
    SignalStore.create(path, small.BaseConcatDataset(parts), verbose=0)


def _open_store(path: Path) -> Any:
    store = SignalStore.open(path, verbose=0)
    windows = store.windows(small.N_TIMES)
    return [np.stack([windows[i] for i in range(len(windows))]), store.subjects, store.sfreq]


def _run_folds(path: Path, seed: int = 0) -> Any:
    pipeline = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())
    scores = leave_one_subject_out(
        {"bands": pipeline}, small.dataset(3), seeds=[seed], out=path, verbose=0
    )
    return [scores["value"].to_numpy(), scores["subject"].tolist()]


def _config(seed: int = 0) -> RunConfig:
    sizes = dict(window_seconds=3.0, patch_seconds=0.5, epochs=3, steps_per_epoch=1)
    return RunConfig(**small.ENCODER, **sizes, batch_size=4, seed=seed, lr=1e-3, device="cpu")


def _build_run(path: Path, seed: int) -> None:
    pretrain(_made("store", 0), path, _config(seed), verbose=0)
    for file in path.glob("encoder.*"):  # as if killed before the end
        file.unlink()


def _resume_run(path: Path) -> Any:
    pretrain(_made("store", 0), path, _config(), resume=True, verbose=0)
    return _open_encoder(path)


#: Kind of folder -> (write it, with a seed; use it).
KINDS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], Any]]] = {
    "classifier": (_build_classifier, _open_classifier),
    "embedder": (_build_embedder, _open_embedder),
    "encoder of a classifier": (_build_classifier, _open_encoder),
    "encoder": (_build_embedder, _open_encoder),
    "net": (_build_net, _open_net),
    "store": (_build_store, _open_store),
    "folds": (_run_folds, _run_folds),
    "run": (_build_run, _resume_run),
}


@cache
def _home() -> Path:
    return Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))


#: Kinds whose folder is one model.
MODELS = ("classifier", "embedder", "encoder of a classifier", "encoder", "net")


@cache
def _made(kind: str, seed: int) -> Path:
    path = _home() / f"{kind}-{seed}"
    KINDS[kind][0](path, seed)
    return path


@cache
def _expected(kind: str, seed: int) -> Any:
    copy = _home() / f"{kind}-{seed}-copy"
    shutil.copytree(_made(kind, seed), copy, symlinks=True)
    return KINDS[kind][1](copy)


def _files(path: Path) -> list[Path]:
    paths = (file.relative_to(path) for file in path.rglob("*"))
    return sorted(f for f in paths if (path / f).is_file())


def _flip(file: Path, rng: np.random.Generator, other: Path) -> None:
    content = bytearray(file.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    file.write_bytes(content)


def _truncate(file: Path, rng: np.random.Generator, other: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: rng.integers(len(content))])


def _remove(file: Path, rng: np.random.Generator, other: Path) -> None:
    file.unlink()


def _exchange(file: Path, rng: np.random.Generator, other: Path) -> None:
    """The file of another folder of the same kind."""
    if other.is_file():
        shutil.copy(other, file)


def _garbage(file: Path, rng: np.random.Generator, other: Path) -> None:
    file.write_bytes(bytes(rng.integers(0, 256, 300, dtype="uint8")))


def _folder(file: Path, rng: np.random.Generator, other: Path) -> None:
    file.unlink()
    file.mkdir()


#: What a JSON value is replaced with.
ODD: list[Any] = [
    *(None, True, -1, 0, 3, 1e308, 2**80, "", "PARS", "../../etc", "hf://someone/model", [], {}),
    *([1], [[]], {"a": 1}, "int16", "float32", ["left"], ["right", "left"], 1e-300, "NaN", 20000),
]


def _edit(file: Path, rng: np.random.Generator, other: Path) -> None:
    """Replace, remove or add one entry of a JSON file at any depth."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError):
        return _flip(file, rng, other)
    places = []

    def walk(value: Any) -> None:
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(content)
    if places:
        parent, key = places[rng.integers(len(places))]
        action = rng.integers(5)
        if action == 0 and isinstance(parent, dict):
            del parent[key]
        elif action == 1 and isinstance(parent, dict):
            parent[f"{key}_2"] = ODD[rng.integers(len(ODD))]
        else:
            parent[key] = ODD[rng.integers(len(ODD))]
    file.write_text(json.dumps(content), encoding="utf-8")


DAMAGES = dict(
    flip=_flip,
    truncate=_truncate,
    remove=_remove,
    exchange=_exchange,
    garbage=_garbage,
    folder=_folder,
    edit=_edit,
)


def unlike(actual: Any, expected: Any) -> str | None:
    """Return how results of a folder differ from the expected ones; None when they are equal."""
    for one, other in zip(actual, expected, strict=True):
        if isinstance(other, np.ndarray):
            if text := small.differs(np.asarray(one), other, rtol=1e-5):
                return text
        elif one != other:
            return f"{one} instead of {other}"
    return None


def damaged(rng: np.random.Generator) -> tuple[str, Callable[[Path], Any], Callable[..., Any]]:
    """Draw a kind and a damage; return a text, the call to judge, and its oracle.

    A damaged folder is refused, repaired, or gives exactly what was saved. A model is one file. In
    the place of another model's file it is that model, complete.
    """
    kind = str(rng.choice(sorted(KINDS)))
    # Edited JSON and flipped bits have the most ways to go wrong.
    damage = str(rng.choice([*sorted(DAMAGES), "edit", "edit", "edit", "flip", "flip"]))

    def act(folder: Path) -> Any:
        copy = folder / "copy"
        shutil.copytree(_made(kind, 0), copy, symlinks=True)
        files = [file for file in _files(copy) if (copy / file).stat().st_size]
        if damage == "edit":
            files = [file for file in files if file.suffix == ".json"] or files
        file = files[rng.integers(len(files))]
        other_model = _made(kind, 1)
        other = other_model / file
        if not other.is_file():  # named by its content, such as a fold
            same_suffix = [f for f in _files(other_model) if f.suffix == file.suffix]
            other = other_model / same_suffix[rng.integers(len(same_suffix))]
        DAMAGES[damage](copy / file, rng, other)
        return KINDS[kind][1](copy)

    def problem(returned: Any) -> str | None:
        different = unlike(returned, _expected(kind, 0))
        if different and damage == "exchange" and kind in MODELS:
            return unlike(returned, _expected(kind, 1))
        return different

    return f"{kind}: {damage}", act, problem
