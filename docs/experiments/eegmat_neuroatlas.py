"""NeuroAtlas's protocol on EEGMAT: encoders and baselines, with leave-one-subject-out.

    python docs/experiments/eegmat_neuroatlas.py pretrain OUT --eeg FOLDER
    python docs/experiments/eegmat_neuroatlas.py scores OUT --eeg FOLDER
    python docs/experiments/eegmat_neuroatlas.py features OUT --eeg FOLDER
    python docs/experiments/eegmat_neuroatlas.py equality OUT --eeg FOLDER

FOLDER contains the recordings of EEGMAT in any subfolder: all 36 subjects, or a part of them. The
first command pretrains PARS and its sham with the default settings of the estimators, without the
labels and without the recordings of one group of subjects, which is tested later. The pretraining
on windows of 10 s has the default number of epochs; the earlier pretraining on windows of 4 s has a
fixed number of epochs. An interrupted command resumes when it is run again. ``scores`` writes
``docs/measured/neuroatlas/scores.csv``. ``features`` writes features for ``neuroatlas_bench.py``,
and ``equality`` compares the scores of that script with the scores of this package.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset
from pyriemann.tangentspace import TangentSpace
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from stored_table import store_table

from braindecode_pars import PARSEmbedder, as_sklearn, datasets
from braindecode_pars._common import computing
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.evaluation import ChannelFeatures, LogBandPower, SpatialCovariance
from braindecode_pars.evaluation.benchmarks import neuroatlas
from braindecode_pars.models.space_time import signal_tokens
from braindecode_pars.windows import Windows
from braindecode_pars.windows.convert import as_windows

MEASURED = Path(__file__).parents[1] / "measured" / "neuroatlas"
#: Passbands in Hz: the default of NeuroAtlas, and the passband of the published files.
BANDS = {"4 to 40 Hz": (4.0, 40.0), "0.5 to 45 Hz": (0.5, 45.0)}
N_GROUPS, SEEDS = 3, (0, 1, 2)


class Pretraining(NamedTuple):
    """Settings of a pretraining that are not the same for all pretrainings."""

    is_sham: bool
    #: Duration of the pretraining windows; windows that are scored have 4 s.
    window_seconds: float
    #: If None, the default: at most 2,000 steps, and fewer if the held-out loss increases.
    epochs: int | None
    bands: tuple[str, ...]


#: The long pretraining is run once for each band and not scored. With windows of 4 s of 16
#: subjects, an epoch has 30 steps.
LONG = "PARS, windows of 4 s, 67 epochs"
KINDS = {
    "PARS": Pretraining(False, 10.0, None, (*BANDS,)),
    "PARS, sham": Pretraining(True, 10.0, None, (*BANDS,)),
    "PARS, windows of 4 s": Pretraining(False, 4.0, 10, (*BANDS,)),
    "PARS, sham, windows of 4 s": Pretraining(True, 4.0, 10, (*BANDS,)),
    LONG: Pretraining(False, 4.0, 67, (*BANDS,)),
}
SCORED = tuple(kind for kind in KINDS if kind != LONG)
#: Pretrainings and number of seeds of the positive control.
CONTROL_KINDS, N_CONTROL_SEEDS = ("PARS", "PARS, sham"), 2
BUNDLED = ("small", "pars-sleep")
RANDOM = "random encoder"
#: Added rhythm of the positive control: frequency in Hz, and amplitude as a multiple of the
#: standard deviation of a channel.
RHYTHM_HZ, RHYTHM_AMPLITUDE = 25.0, 0.5
#: Entry of the bundled sample dataset, and file of its expected values in the tests.
SAMPLE = "bundled sample, 0.5 to 45 Hz"
EXPECTED = Path(__file__).parents[2] / "tests" / "evaluation" / "neuroatlas_bench.json"
MEAN, CONCATENATED, NONE = "mean", "concatenated", ""
NO_CONTROL, ADDED_RHYTHM = "none", "added rhythm"


class ConcatenatedTokens(PARSEmbedder):
    """Embedder whose features are the concatenated tokens of all channels and patches of a window.

    NeuroAtlas calls these features "token flattening". The tokens are ordered by channel, and by
    time within a channel. ``pooling`` is not used.
    """

    def _embedded(self, windows: Windows) -> dict[str, np.ndarray]:
        tokens, encoder, device = [], self.encoder_.eval(), torch.device("cpu")
        with computing.usual_torch(gradients=False):
            for batch, _ in windows_estimator.batches(windows, encoder.patch_size, device):
                part = signal_tokens(encoder, batch.flatten(0, 1), self.layer)
                tokens.append(part.reshape(len(batch), -1))
        return {"features": windows_estimator.check_finite(torch.cat(tokens)).numpy()}


def read(eeg: Path, band: str, *, rhythm: bool = False, **settings: Any) -> BaseConcatDataset:
    """Return the windows in a passband; with ``rhythm``, of the positive control."""
    low, high = BANDS[band]
    settings = neuroatlas.EEGMAT | dict(low=low, high=high) | settings
    windows = datasets.eegmat.load(eeg, **settings)
    for recording in windows.datasets if rhythm else ():
        if recording.description["condition"] == "arithmetic":
            times = recording.raw.times
            wave = RHYTHM_AMPLITUDE * np.sin(2 * np.pi * RHYTHM_HZ * times)
            recording.raw.apply_function(lambda x, wave=wave: x + x.std() * wave, verbose="error")
    return windows


def groups_of(windows: BaseConcatDataset) -> list[list[str]]:
    """Return the subjects of each group that is excluded from a pretraining."""
    subjects = sorted({str(ds.description["subject"]) for ds in windows.datasets})
    return [subjects[k::N_GROUPS] for k in range(N_GROUPS)]


def folder_of(out: Path, band: str, kind: str, seed: int, group: int) -> Path:
    return out / "encoders" / f"{kind}, {band}, seed {seed}, group {group}"


def pretrain(out: Path, eeg: Path, bands: list[str]) -> None:
    for band, window_seconds in product(bands, (10.0, 4.0)):
        kinds = [
            kind
            for kind, settings in KINDS.items()
            if settings.window_seconds == window_seconds and band in settings.bands
        ]
        if not kinds:
            continue
        windows = read(eeg, band, window_seconds=window_seconds)
        for seed, group, kind in product(SEEDS, range(N_GROUPS), kinds):
            folder = folder_of(out, band, kind, seed, group)
            is_skipped = kind == LONG and (seed, group) != (0, 0)
            if not is_skipped and not (folder / "loss.json").exists():
                identity = dict(band=band, method=kind, pretraining_seed=seed, group=group)
                losses = pretrain_one(folder, windows, KINDS[kind], seed, group)
                (folder / "loss.json").write_text(json.dumps(identity | losses))
                loss = f"relative loss {losses['relative_loss']:.3f}"
                print(f"{folder.name}: {losses['steps']} steps, {loss}", flush=True)


def pretrain_one(
    folder: Path, windows: BaseConcatDataset, settings: Pretraining, seed: int, group: int
) -> dict[str, Any]:
    """Save an encoder that is pretrained without one group of subjects; return its losses."""
    excluded = groups_of(windows)[group]
    used = [ds for ds in windows.datasets if ds.description["subject"] not in excluded]
    design: dict[str, Any] = dict(sham=settings.is_sham, random_state=seed, verbose=0)
    embedder = PARSEmbedder("pars", pretrain_epochs=settings.epochs, **design)
    begin = time.process_time()
    embedder.fit(BaseConcatDataset(used)).save(folder)
    card = embedder.encoder_card_
    row: dict[str, Any] = dict(steps=card.n_steps, cpu_seconds=time.process_time() - begin)
    losses = dict(relative_loss=card.loss_relative, held_out_loss=card.held_out_loss_relative)
    return row | losses


def sources(
    out: Path, band: str, groups: list[list[str]], control: str
) -> Iterator[tuple[str, int | None, dict[str, Any], list[str] | None]]:
    """Yield method, pretraining seed, its encoder arguments, and the subjects to test."""
    kinds, seeds = SCORED, SEEDS
    if control == ADDED_RHYTHM:
        kinds, seeds = CONTROL_KINDS, SEEDS[:N_CONTROL_SEEDS]
    for name in BUNDLED:
        yield name, None, dict(encoder=name), None
    for seed in seeds:
        yield RANDOM, seed, dict(pretext=None), None
    for kind, seed, (k, group) in product(kinds, seeds, enumerate(groups)):
        folder = folder_of(out, band, kind, seed, k)
        if (folder / "loss.json").exists():
            yield kind, seed, dict(encoder=folder), group


def baselines() -> dict[str, Any]:
    return {
        "log band power": LogBandPower(),
        "hand-crafted features": ChannelFeatures(),
        "tangent space": make_pipeline(SpatialCovariance(), TangentSpace()),
    }


def score(out: Path, eeg: Path, band: str, tokens: str, control: str = NO_CONTROL) -> None:
    """Score all methods that are not scored; the control is "none" or "added rhythm".

    Baselines have no tokens; they are scored with the means of tokens.
    """
    folder = out / "scores"
    folder.mkdir(parents=True, exist_ok=True)
    windows = read(eeg, band, rhythm=control == ADDED_RHYTHM)

    def run(method: str, tokens: str, seed: int | None, part: int, source: Any, test: Any) -> None:
        file = folder / f"{band}, {control}, {method}, {tokens}, seed {seed}, part {part}.csv"
        if not file.exists():
            begin = time.process_time()
            design: dict[str, Any] = dict(test_subjects=test, seeds=[seed or 0], verbose=0)
            scores = neuroatlas.neuroatlas_scores({method: source}, windows, **design)
            scores = scores.assign(band=band, control=control, tokens=tokens, pretraining_seed=seed)
            scores["cpu_seconds"] = time.process_time() - begin
            scores.to_csv(file, index=False)
            print(file.stem, scores["value"].mean(), scores["cpu_seconds"].iloc[0], flush=True)

    for method, source in baselines().items() if tokens == MEAN else ():
        run(method, NONE, None, 0, source, None)
    groups = groups_of(windows)
    for method, seed, arguments, test in sources(out, band, groups, control):
        kind = PARSEmbedder if tokens == MEAN else ConcatenatedTokens
        pooling = "mean" if tokens == MEAN else "channels"
        source = kind(pooling=pooling, verbose=0, device="cpu", **arguments)
        part = groups.index(test) if test in groups else 0
        run(method, tokens, seed, part, source, test)


def store(out: Path) -> None:
    """Write one row per method, with one column per subject."""
    parts = [
        pd.read_csv(file, keep_default_na=False, na_values={"pretraining_seed": [""]})
        for file in sorted((out / "scores").glob("*.csv"))
    ]
    scores = pd.concat(parts)
    scores = scores[scores["metric"] == "balanced_accuracy"]
    keys = ["band", "control", "method", "tokens", "pretraining_seed"]
    scores["pretraining_seed"] = scores["pretraining_seed"].astype("Int64").astype(str)
    wide = scores.pivot(index=keys, columns="subject", values="value").reset_index()
    wide = wide.replace({"pretraining_seed": {"<NA>": ""}})
    command = "python docs/experiments/eegmat_neuroatlas.py scores OUT --eeg FOLDER"
    options: dict[str, Any] = dict(index=False, float_format="%.6f")
    store_table(wide, MEASURED / "scores.csv", command, "1 thread", **options)
    losses = [json.loads(file.read_text()) for file in sorted(out.glob("encoders/*/loss.json"))]
    if losses:
        command = command.replace("scores OUT", "pretrain OUT")
        options = dict(index=False, float_format="%.4g")
        table = pd.DataFrame(losses).sort_values(["band", "method", "pretraining_seed", "group"])
        store_table(table, MEASURED / "losses.csv", command, "1 thread", **options)


def features_of(out: Path, eeg: Path, band: str) -> Iterator[tuple[str, np.ndarray, Any, Any]]:
    """Yield log band power of our windows and, if they were written, of their windows."""
    X, y, subjects = as_sklearn(read(eeg, band))
    numbers = np.array([int(str(name)[-2:]) for name in subjects])
    yield "windows of braindecode_pars", LogBandPower().fit_transform(X), y, numbers
    if (file := out / f"{band}.windows.npz").exists():
        theirs = np.load(file)
        features = LogBandPower(sfreq=128.0).fit_transform(theirs["x"])
        yield "windows of neuroatlas-bench", features, theirs["y"], theirs["subjects"]


def sample_features() -> dict[str, np.ndarray]:
    """Return log band power, labels and numbers of the subjects of the bundled sample dataset."""
    X, y, subjects = as_sklearn(datasets.mental_arithmetic())
    numbers = np.array([int(str(name)[-2:]) for name in subjects])
    return dict(features=LogBandPower().fit_transform(X), y=y, subjects=numbers)


def write_features(out: Path, eeg: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    np.savez(out / f"{SAMPLE}.features.npz", **sample_features())
    for band in BANDS:
        for name, features, y, subjects in features_of(out, eeg, band):
            file = out / f"{band}, {name}.features.npz"
            np.savez(file, features=features, y=y, subjects=subjects)


class StoredFeatures(TransformerMixin, BaseEstimator):
    """Transformer of windows of one sample, which is the row of the stored features."""

    def __init__(self, features: np.ndarray):
        self.features = features

    def fit(self, X: Any, y: Any = None) -> StoredFeatures:
        return self

    def transform(self, X: Any) -> np.ndarray:
        rows = np.concatenate([*as_windows(X).batches(256)]).ravel()
        return self.features[rows.astype(int)]


def compared(features: np.ndarray, y: np.ndarray, subjects: np.ndarray, theirs: dict) -> dict:
    """Score features by this package, and compare each fold with neuroatlas-bench."""
    X = as_windows(np.arange(len(y))[:, None, None].astype(np.float32), y, subjects)
    values, n_splits, n_c = [], 0, 0
    for fold in theirs["folds"]:
        is_test = np.isin(subjects, fold["test"])
        probe = neuroatlas.NeuroAtlasProbe(StoredFeatures(features)).fit(X[~is_test])
        predicted = probe.predict(X[is_test])
        values.append(np.mean([(predicted[y[is_test] == k] == k).mean() for k in (0, 1)]))
        train = {*subjects[~is_test].tolist()} - {*probe.validation_subjects_}
        n_splits += probe.validation_subjects_ != fold["valid"] or train != {*fold["train"]}
        n_c += not np.isclose(probe.C_, fold["C"])
    differences = np.abs(np.array(values) - [fold["balanced_accuracy"] for fold in theirs["folds"]])
    means = dict(mean=np.mean(values), mean_neuroatlas=theirs["mean"])
    sds = dict(sd=np.std(values), sd_neuroatlas=theirs["sd"])
    counts = dict(n_folds=len(values), n_different_splits=n_splits, n_different_c=n_c)
    return means | sds | counts | dict(largest_difference=differences.max()) | theirs["versions"]


def equality(out: Path) -> None:
    """Compare splits, C and scores of neuroatlas-bench with those of this package."""
    rows = []
    for file in sorted(out.glob("*.features.npz")):
        name = file.name.removesuffix(".features.npz")
        theirs = json.loads((out / f"{name}.scores.json").read_text())
        rows.append(dict(features=name) | compared(**np.load(file), theirs=theirs))
        if name == SAMPLE:
            folds = theirs.pop("folds")
            columns = {key: [fold[key] for fold in folds] for key in ("C", "balanced_accuracy")}
            expected = theirs | columns | json.loads((out / "splits.json").read_text())
            lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in expected.items()]
            EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    command = "python docs/experiments/eegmat_neuroatlas.py equality OUT --eeg FOLDER"
    options: dict[str, Any] = dict(index=False, float_format="%.8f")
    store_table(pd.DataFrame(rows), MEASURED / "equality.csv", command, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["pretrain", "scores", "features", "equality"])
    parser.add_argument("out", type=Path, help="folder of the results")
    parser.add_argument("--eeg", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--bands", nargs="+", choices=[*BANDS], default=[*BANDS])
    options = parser.parse_args()
    torch.set_num_threads(1)
    MEASURED.mkdir(exist_ok=True)
    if options.step == "pretrain":
        pretrain(options.out, options.eeg, options.bands)
    elif options.step == "features":
        write_features(options.out, options.eeg)
    elif options.step == "equality":
        equality(options.out)
    else:
        for tokens, band in product((MEAN, CONCATENATED), options.bands):
            score(options.out, options.eeg, band, tokens)
            if tokens == MEAN and band == next(iter(BANDS)):
                score(options.out, options.eeg, band, tokens, ADDED_RHYTHM)
        store(options.out)


if __name__ == "__main__":
    main()
