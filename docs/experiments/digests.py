"""Print checksums of what the package computes, to compare two commits on one machine.

    PYTHONPATH=BEFORE python docs/experiments/digests.py --save MODELS > before.txt
    PYTHONPATH=AFTER python docs/experiments/digests.py --saved MODELS --compare before.txt

BEFORE and AFTER are clones of two commits. The script is the same for both, since it uses public
names only. All data are simulated, or in the package. It takes about two minutes on one core.
Trainings have two steps, so that rounding does not grow in them.

A line is a name and a checksum, which has three parts: eight digits of all texts, whole numbers,
shapes and missing values; the norm of the other numbers; and their sum with fixed random weights,
which differs if a number changes or moves. With ``--compare``, a line differs if its digits differ,
or if norm or sum differ by more than one millionth of the norm. Names of such lines are printed,
with that proportion, and the script exits with 1. Texts of messages are in no checksum.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import simulated_files
import threadpoolctl
import torch
from braindecode import EEGClassifier
from braindecode.datasets import BaseConcatDataset

import braindecode_pars
from braindecode_pars import (
    FewLabelsClassifier,
    PARSClassifier,
    PARSEmbedder,
    PARSNet,
    PARSRegressor,
    PatchEncoder,
    SubjectCentering,
    as_sklearn,
    datasets,
    evaluation,
    predictions,
)
from braindecode_pars.baselines import METHODS, make_methods
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.estimators import LinearProbe, NetworkClassifier, RiemannianCentering
from braindecode_pars.models import SpaceTimeEncoder, electrode_positions
from braindecode_pars.pretext import PRETEXT_TASKS, AllChannelTask, make_task
from braindecode_pars.pretrained import load_encoder, packaged_encoders
from braindecode_pars.runs import RunConfig, pretrain
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import AllChannelWindows, SingleChannelWindows

#: Name and value, of which a line has the checksum.
Values = Iterator[tuple[str, Any]]

SIZES: dict[str, Any] = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
#: Two or three steps each of pretraining and fine-tuning.
TRAINING: dict[str, Any] = dict(pretrain_epochs=1, finetune_epochs=1, random_state=0, verbose=0)
TRAINING |= dict(device="cpu", **SIZES)
SFREQ, N_TIMES = 128, 30 * 128
STAGES = np.array(["W", "N1", "N2", "N3", "R"])


# Checksums ----------------------------------------------------------------------------------------


def pieces(value: Any) -> Iterator[str | np.ndarray]:
    """Yield the texts and the numbers in a value, which may be nested."""
    match value:
        case Exception():
            yield f"refused: {type(value).__name__}"
        case pd.DataFrame():
            yield from pieces(value.to_dict("list"))
        case Mapping():
            for name, part in value.items():
                yield str(name)
                yield from pieces(part)
        case list() | tuple() | pd.Series():
            for part in value:
                yield from pieces(part)
        case torch.Tensor():
            yield from pieces(value.detach().cpu().numpy())
        case float() | np.ndarray() if np.asarray(value).dtype.kind == "f":
            is_finite = np.isfinite(value)
            yield f"{np.shape(value)} {np.asarray(value)[~is_finite]} {np.flatnonzero(~is_finite)}"
            yield np.where(is_finite, value, 0.0).ravel()
        case np.ndarray():
            yield str(value.tolist())
        case _:
            yield str(value)


def checksum(value: Any) -> str:
    """Return the digits, the norm and the weighted sum of a value."""
    digits, numbers = hashlib.sha256(), [np.zeros(0)]
    for piece in pieces(value):
        if isinstance(piece, str):
            digits.update(piece.encode())
        else:
            numbers.append(piece)
    vector, rng = np.concatenate(numbers), np.random.default_rng(0)
    factors = rng.uniform(0.5, 1.5, len(vector)) * rng.choice([-1, 1], len(vector))
    return f"{digits.hexdigest()[:8]} {np.linalg.norm(vector):.7e} {factors @ vector:.7e}"


def difference(one: str, other: str) -> float:
    """Return by what proportion of the norm two checksums differ; infinity if digits do."""
    (digits, *numbers), (other_digits, *other_numbers) = one.split(), other.split()
    values = np.array([numbers, other_numbers], dtype=float)
    if digits != other_digits:
        return np.inf
    norm = values[:, 0].max()
    return float(np.abs(values[0] - values[1]).max() / norm) if norm else 0.0


def report_differences(lines: Mapping[str, str], before: Mapping[str, str]) -> bool:
    """Print the names of lines that differ; return whether there are any."""
    are_different = False
    for name in sorted({*lines, *before}):
        if name not in before or name not in lines:
            reason = "is new" if name in lines else "is missing"
        elif (proportion := difference(lines[name], before[name])) > 1e-6:
            reason = f"differs by {proportion:.0e}"
        else:
            continue
        are_different = True
        print(f"{name} {reason}")
    return are_different


def columns(name: str, table: pd.DataFrame) -> Values:
    """Yield each column of a table."""
    for column in table:
        yield f"{name}.{column}", table[column]


def weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the weights of a network.

    The bias of keys in attention has no effect, and its gradient is rounding, which Adam scales up.
    """
    state = module.state_dict()
    return {name: tensor for name, tensor in state.items() if not name.endswith("key.bias")}


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function, or its error."""
    try:
        return function(*arguments)
    except Exception as error:
        print(f"# {type(error).__name__}: {error}", file=sys.stderr)
        return error


# Data ---------------------------------------------------------------------------------------------


@cache
def nights() -> BaseConcatDataset:
    """Return four simulated subjects, each with 24 windows of 30 s, three channels, five stages."""
    return datasets.simulated.sleep(4, 0.2, n_chans=3, sfreq=SFREQ, random_state=3)


@cache
def arithmetic() -> BaseConcatDataset:
    """Return the sample of eight subjects: 96 windows of 10 s, eight channels, two classes."""
    return datasets.mental_arithmetic([f"Subject{number:02}" for number in range(8)])


def windows_of(name: str, windows: BaseConcatDataset) -> Values:
    """Yield signals, labels, subjects and channels of windows."""
    X, y, subjects = as_sklearn(windows)
    yield f"{name}.signals", list(X)
    yield f"{name}.labels", y
    yield f"{name}.subjects", subjects.astype(str)
    recordings = [getattr(part, "raw", None) or part.windows for part in windows.datasets]
    yield f"{name}.channels", [recording.ch_names for recording in recordings]


def samples(folder: Path, saved: Path) -> Values:
    """Yield windows of the samples, of simulated nights, and examples of pretraining."""
    yield from windows_of("nights", nights())
    yield from windows_of("arithmetic", arithmetic())
    yield from windows_of("sleep", datasets.load("sleep"))
    for kind in (SingleChannelWindows, AllChannelWindows):
        torch.manual_seed(0)
        examples = kind(nights(), n_times=1000)
        yield kind.__name__, [examples[number] for number in range(8)]


def folders(folder: Path, saved: Path) -> Values:
    """Yield windows of a folder of own recordings, and of small trees of published corpora."""
    own = simulated_files.write_folder(folder / "own")
    load = datasets.folder.load
    whole = load(own, window_seconds=30, mains=50.0, verbose=0)
    yield from windows_of("own", whole)
    options: dict[str, Any] = dict(window_seconds=5, sfreq=64.0, low=1, high=25, verbose=0)
    yield from windows_of("own-average", load(own, reference="average", **options))
    corpora = simulated_files.write_corpora(folder / "corpora")
    for name, place in simulated_files.CORPORA.items():
        if name == "tueg":  # has no labels
            corpus = datasets.RECIPES[name].continuous(corpora / place)
            yield from store_of(name, SignalStore.create(folder / name, corpus, verbose=0))
        else:
            yield from windows_of(name, datasets.load(name, corpora / place, verbose=0))


# Pretext tasks and estimators ---------------------------------------------------------------------


def tasks(folder: Path, saved: Path) -> Values:
    """Yield the prediction, target, losses, trained encoder and features of each pretext task."""
    X = as_sklearn(nights())[0]
    x = torch.as_tensor(np.stack([X[number] for number in range(8)])).float()
    positions = torch.as_tensor(electrode_positions(nights().datasets[0].raw.info["chs"])).float()
    for name, cls in sorted(PRETEXT_TASKS.items()):
        torch.manual_seed(0)
        sees_all = issubclass(cls, AllChannelTask)
        encoder = (SpaceTimeEncoder if sees_all else PatchEncoder)(SFREQ, **SIZES)
        task = make_task(name, n_times=N_TIMES, encoder=encoder, sfreq=float(SFREQ))
        task.prepare(lambda n: x[torch.arange(n) % 8, 0])
        given = (x, positions.expand(8, -1, -1)) if sees_all else (x[:, 0],)
        prediction, target = task(*given)
        yield f"{name}.prediction", prediction
        yield f"{name}.target", target
        yield f"{name}.sham_target", task.sham_target(target)
        yield f"{name}.loss", task.criterion()(prediction, target)
        yield f"{name}.part_losses", task.part_losses(prediction, target)
        yield f"{name}.chance_loss", float(task.chance_loss())
        fitted = make_embedder(name).fit(X)
        yield f"{name}.weights", weights(fitted.encoder_)
        yield f"{name}.features", fitted.transform(X)


def make_embedder(pretext: str = "pars", **settings: Any) -> PARSEmbedder:
    """Return an unfitted embedder with short training."""
    names = PARSEmbedder().get_params()
    shared = {name: value for name, value in TRAINING.items() if name in names}
    return PARSEmbedder(pretext, **shared | settings)


#: Name -> settings of PARSClassifier.
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "default": {},
    "scratch": dict(pretext=None, channel_drop_prob=0.0, drop_prob=0.1),
    "attention": dict(head="attention", tokenizer="linear", validation=0.25),
    "both": dict(head="both", augmentation="SignFlip", label_smoothing=0.1, class_weight=None),
    "sham": dict(sham=True, electrode_position=True, amplitude=False),
    "frozen": dict(encoder="small", freeze_encoder=True),
    "continued": dict(encoder="small", continue_pretraining=True, freeze_encoder=False),
    "held_out": dict(pretrain_epochs=None, pretrain_max_steps=2),
}


def estimators(folder: Path, saved: Path) -> Values:
    """Yield weights, losses and predictions of the estimators with an encoder."""
    X, y, subjects = as_sklearn(nights())
    for name, settings in CLASSIFIERS.items():
        fitted = PARSClassifier(**TRAINING | settings).fit(X, y, groups=subjects)
        yield f"PARSClassifier.{name}.weights", weights(fitted.net_.module_)
        yield f"PARSClassifier.{name}.losses", fitted.history_.filter(like="loss")
        yield f"PARSClassifier.{name}.probabilities", fitted.predict_proba(X)
    labels = np.where(np.arange(len(y)) % 2, STAGES[y], "unlabeled")
    fitted = PARSClassifier(unlabeled_label="unlabeled", **TRAINING).fit(X, labels)
    yield "PARSClassifier.unlabeled.probabilities", fitted.predict_proba(X)
    arrays = np.stack(list(X))
    fitted = PARSClassifier(sfreq=float(SFREQ), **TRAINING).fit(arrays, y, groups=subjects)
    yield "PARSClassifier.arrays.probabilities", fitted.predict_proba(arrays)
    fitted = PARSRegressor(**TRAINING).fit(X, y / 4)
    yield "PARSRegressor.weights", weights(fitted.net_.module_)
    yield "PARSRegressor.predictions", fitted.predict(X)
    for pooling in ("channels", "mean"):
        yield f"PARSEmbedder.{pooling}", make_embedder(pooling=pooling).fit(X).transform(X)
    for name in packaged_encoders():
        yield f"packaged.{name}", weights(load_encoder(name).encoder)
    torch.manual_seed(0)
    sizes = {f"module__{name}": value for name, value in SIZES.items()}
    net = EEGClassifier(
        PARSNet,
        module__sfreq=float(SFREQ),
        callbacks=[Pretraining("pars", epochs=1, verbose=0)],
        classes=[*range(5)],
        train_split=None,
        max_epochs=1,
        verbose=0,
        **sizes,
    )
    yield "EEGClassifier.weights", weights(net.fit(nights(), y=None).module_)


def methods(folder: Path, saved: Path) -> Values:
    """Yield probabilities of every method of comparisons, and costs."""
    X, y, _ = as_sklearn(nights())
    names = [name for name in METHODS if name != "slow-voltages"]  # there is no frontal channel
    classifiers = make_methods(names, **TRAINING)
    yield from columns("costs", evaluation.cost_table(classifiers, nights()))
    slow = evaluation.LowFrequencyAmplitude(channels=["C3", "F3"])
    classifiers["slow voltages"] = LinearProbe(slow, classifier="lda")
    for settings in (dict(subject_centering=True), dict(smoothing=True)):
        some = ["scratch", "few-labels", "band-power", "tangent-space"]
        classifiers |= make_methods(some, **settings, **TRAINING)
    for name, classifier in classifiers.items():
        yield name, classifier.fit(X, y).predict_proba(X)


def adaptation(folder: Path, saved: Path) -> Values:
    """Yield probabilities after adaptation to a new subject, and centered features."""
    X, y, subjects = as_sklearn(nights())
    is_new = subjects == 4
    few = np.flatnonzero(is_new)[:12]
    for name, classifier in (
        ("FewLabelsClassifier", FewLabelsClassifier(recenter="subject", verbose=0)),
        ("LinearProbe", LinearProbe(SubjectCentering(evaluation.LogBandPower()))),
    ):
        fitted = classifier.fit(X[~is_new], y[~is_new])
        yield f"{name}.windows", fitted.adapt(X[is_new]).predict_proba(X[is_new])
        yield f"{name}.labels", fitted.adapt(X[few], y[few]).predict_proba(X[is_new])
    searched = FewLabelsClassifier(recenter=None, C=None, prior_strength=None, verbose=0)
    fitted = searched.fit(X[~is_new], y[~is_new])
    yield "searched.labels", fitted.adapt(X[few], y[few]).predict_proba(X[is_new])
    running = SubjectCentering(evaluation.LogBandPower(), running=True)
    yield "running", running.fit(X[~is_new]).transform(X[is_new])
    riemannian = RiemannianCentering(evaluation.SpatialCovariance())
    yield "riemannian", riemannian.fit(X).transform(X)
    yield "classical", evaluation.ChannelFeatures().fit_transform(X)


# Folders on disk ----------------------------------------------------------------------------------


def save(folder: Path) -> None:
    """Write a model of each kind, a store, an unfinished run and an evaluation."""
    folder.mkdir(parents=True)  # an older run would end
    X, y, subjects = as_sklearn(nights())
    models: dict[str, Any] = {
        "PARSClassifier": PARSClassifier(**TRAINING),
        "PARSClassifier-all-channels": PARSClassifier("pars_space_time", **TRAINING),
        "PARSRegressor": PARSRegressor(**TRAINING),
        "PARSEmbedder": make_embedder(),
        "FewLabelsClassifier": FewLabelsClassifier(verbose=0),
    }
    for name, model in models.items():
        labels = y / 4 if name == "PARSRegressor" else STAGES[y]
        model.fit(X, labels, groups=subjects).save(folder / "models" / name)
    store = SignalStore.create(folder / "store", nights(), verbose=0)
    run_until_killed(store, folder / "run", step=5)
    compared(folder / "evaluation", ["band power"])


def saved_folders(folder: Path, saved: Path) -> Values:
    """Yield predictions of loaded models, and what comes of the other folders."""
    X = as_sklearn(nights())[0]
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    for place in sorted((saved / "models").iterdir()):
        name = place.name
        cls = getattr(braindecode_pars, name.partition("-")[0])
        model = attempt(cls.load, place)
        if isinstance(model, Exception):
            yield name, model
            continue
        for method in ("predict_proba", "predict", "transform"):
            if hasattr(model, method):
                yield f"{name}.{method}", getattr(model, method)(X)
        yield f"{name}.encoder", weights(load_encoder(place).encoder)
    yield from store_of("store", SignalStore.open(folder / "store", verbose=0))
    yield "run", attempt(run_to_the_end, folder / "store", folder / "run")
    yield "evaluation.kept", pd.read_csv(folder / "evaluation" / "scores.csv")
    yield "evaluation", attempt(compared, folder / "evaluation", list(probes()))


def compared(out: Path, names: Iterable[str]) -> pd.DataFrame:
    """Return scores of a comparison that keeps its fits in a folder."""
    chosen = {name: probes()[name] for name in names}
    return evaluation.compare(chosen, nights(), out=out, verbose=0)


def stores(folder: Path, saved: Path) -> Values:
    """Yield what is in stores of windows and of files, and their bytes."""
    tree = simulated_files.write_folder(folder / "files")
    prepared: dict[str, Any] = dict(sfreq=100.0, low=0.5, high=40.0, reference="average")
    for name, source, settings in (
        ("windows", nights(), {}),
        ("float32", nights(), dict(dtype="float32")),
        ("tree", tree, prepared),
    ):
        store = SignalStore.create(folder / name, source, verbose=0, **settings)
        yield from store_of(name, store)
        yield f"{name}.bytes", (folder / name / "samples.bin").read_bytes().hex()
    yield from store_of("selected", store.select(exclude=["1"]))


def store_of(name: str, store: SignalStore) -> Values:
    """Yield the recordings, random crops and labeled windows of a store."""
    yield from columns(f"{name}.recordings", store.recordings)
    yield f"{name}.preprocessing", str(store.preprocessing)
    rng = np.random.default_rng(0)
    yield f"{name}.crops", store.batch(np.arange(len(store)), n_times=1000, rng=rng)
    if store.n_labeled_windows:
        yield from windows_of(name, store.labeled_windows())


#: Six steps of two micro-batches, with a checkpoint after each second step.
RUN: dict[str, Any] = dict(epochs=3, steps_per_epoch=2, batch_size=8, micro_batch_size=4)
RUN |= dict(lr=1e-3, device="cpu", **SIZES)


def runs(folder: Path, saved: Path) -> Values:
    """Yield weights and losses of runs: uninterrupted, and killed and resumed."""
    store = SignalStore.create(folder / "store", nights(), verbose=0)
    for name, step in (("whole", None), ("killed in step 2", 2), ("killed in step 6", 6)):
        out = folder / name
        if step is not None:
            run_until_killed(store, out, step)
        yield f"{name}.weights", run_to_the_end(store, out)
        metrics = pd.read_csv(out / "metrics.csv")
        yield from columns(name, metrics.filter(regex="^epoch|^step|loss|^lr"))
    config = RunConfig(task="features_space_time", window_seconds=(10.0, 4.0), **RUN)
    out = pretrain(store, folder / "all channels", config, verbose=0)
    yield "all channels.weights", weights(load_encoder(out).encoder)


def run_to_the_end(store: Any, out: Path) -> dict[str, torch.Tensor]:
    """Start or resume a run; return the weights of the encoder."""
    config = RunConfig(window_seconds=10.0, **RUN)
    pretrain(store, out, config, resume=out.exists(), verbose=0)
    return weights(load_encoder(out).encoder)


def run_until_killed(store: Any, out: Path, step: int) -> None:
    """Run in a forked process, which kills itself in the second half of a step."""
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "The run was not killed."
        return
    task, calls = PRETEXT_TASKS["pars"], count(1)
    forward = task.forward

    def forward_or_kill(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == 2 * step:
            os.kill(os.getpid(), signal.SIGKILL)
        return forward(*args, **kwargs)

    task.forward = forward_or_kill  # type: ignore[method-assign]
    run_to_the_end(store, out)
    os._exit(1)


# Predictions --------------------------------------------------------------------------------------


def predicted_files(folder: Path, saved: Path) -> Values:
    """Yield predictions of files, and the kinds of their findings."""
    X, y, _ = as_sklearn(nights())
    steps = dict(band=(0.5, 30.0), notch=(45.0,), reference="average")
    models: dict[str, Any] = dict(
        average=PARSClassifier(preprocessing=steps, **TRAINING),
        plain=FewLabelsClassifier(recenter=None, verbose=0),
        network=NetworkClassifier("EEGNet", finetune_epochs=1, random_state=0, verbose=0),
        numbers=PARSRegressor(**TRAINING),
    )
    for name, model in models.items():
        model.fit(X, y / 4 if name == "numbers" else STAGES[y])
    for file, recording in simulated_files.write_files(folder / "files"):
        for name in models if file in ("edf", "raw") else ("average", "plain"):
            frame = attempt(models[name].predict_raw, recording)
            yield from predicted(f"{file}.{name}", frame)
    file = simulated_files.write_edf(folder / "whole.edf", simulated_files.recording())
    model = models["average"]
    frame = model.predict_raw(file, overlap=0.5, smooth=True, rescale=True)
    yield from predicted("overlap", frame)
    yield from predicted("smoothed", predictions.smoothed(frame))
    annotations = predictions.to_annotations(frame)
    yield "annotations", [annotations.onset, annotations.duration, list(annotations.description)]
    events = predictions.to_bids_events(frame, folder / "sub-01_task-sleep_events.tsv")
    yield "events", pd.read_csv(events, sep="\t")
    yield "sleep_statistics", predictions.sleep_statistics([*STAGES, None, *STAGES[::-1], "W"])
    yield "agreement", predictions.agreement(model.predict_raw(file), file)


def predicted(name: str, frame: Any) -> Values:
    """Yield a table of predictions, its channels, and a line for each kind of finding."""
    yield name, frame
    if not isinstance(frame, Exception):
        yield f"{name}.channels", frame.attrs["channels"]
        for kind in frame.attrs["findings"]:
            yield f"{name}.finding.{kind}", ""


# Evaluation ---------------------------------------------------------------------------------------


def probes() -> dict[str, Any]:
    """Return two fast classifiers."""
    return {
        "band power": LinearProbe(evaluation.LogBandPower()),
        "amplitude": LinearProbe(evaluation.LogAmplitude()),
    }


def protocols(folder: Path, saved: Path) -> Values:
    """Yield scores of each protocol, and what splitters split."""
    shared: dict[str, Any] = dict(verbose=0)
    shared["metrics"] = ["kappa", "balanced_accuracy", "accuracy", "f1", "f1_weighted"]
    draws: dict[str, Any] = dict(n_train_subjects=[1, 2], seeds=[0, 1, 2])
    scores = evaluation.leave_one_subject_out(probes(), nights(), seeds=[0, 1], **shared)
    yield from columns("leave_one_subject_out", scores)
    scores = evaluation.label_efficiency(probes(), nights(), cv=2, **draws, **shared)
    yield from columns("label_efficiency.folds", scores)
    scores = evaluation.label_efficiency(
        probes(), nights(), test_subjects=[3, 4], **draws, **shared
    )
    yield from columns("label_efficiency", scores)
    yield from columns("summarize.seeds", evaluation.summarize(scores, over="seeds"))
    both: dict[str, Any] = dict(nights=nights(), arithmetic=arithmetic())
    tested = dict(nights=[4], arithmetic=["Subject00", "Subject01"])
    scores = evaluation.transfer(probes(), both, test_subjects=tested, seeds=[0], **shared)
    yield from columns("transfer", scores)
    X, y, subjects = as_sklearn(nights())
    for splitter in (
        evaluation.LeaveOneSubjectOut(),
        evaluation.LabeledSubjects([1, 3], test_subjects=[4], seeds=[0, 1]),
        evaluation.LabeledWindows([0, 1]),
        evaluation.WithinSubject(3),
    ):
        name = type(splitter).__name__
        yield (
            f"{name}.splits",
            [[*train, "-", *test] for train, test in splitter.split(X, y, subjects)],
        )
        yield from columns(name, evaluation.evaluate(probes(), nights(), splitter, **shared))
    grid = {"position_mask_ratio": (0.4, 0.8), "n_patches": (10,)}
    given: dict[str, Any] = dict(test_subjects=[4], n_train_subjects=2, seeds=[0], **shared)
    table = evaluation.ablation(PARSClassifier(**TRAINING), nights(), grid, **given)
    yield from columns("ablation", table)


def tests(folder: Path, saved: Path) -> Values:
    """Yield tests and summaries of scores of the sample."""
    metrics = ["balanced_accuracy", "auroc", "average_precision"]
    shared: dict[str, Any] = dict(metrics=metrics, verbose=0)
    draws: dict[str, Any] = dict(n_train_subjects=[4], cv=2, seeds=range(4))
    three = probes() | {"lda": LinearProbe(evaluation.LogBandPower(), classifier="lda")}
    scores = evaluation.label_efficiency(three, arithmetic(), **draws, **shared)
    yield from columns("scores", scores)
    yield from columns("power", evaluation.power(scores, "balanced_accuracy"))
    single = evaluation.compare(three, arithmetic(), **shared)
    for name, table in (("draws", scores), ("subjects", single)):
        found = evaluation.paired_tests(table, "balanced_accuracy")
        yield from columns(f"paired_tests.{name}", found)
        yield from columns(f"summarize.{name}", evaluation.summarize(table))
    rng = np.random.default_rng(0)
    true, predicted, subjects = rng.random(60), rng.random(60), np.repeat(range(6), 10)
    yield "regression_scores", evaluation.regression_scores(true, predicted, subjects)


def controls(folder: Path, saved: Path) -> Values:
    """Yield changed signals, scores on them, and what is left of a gain."""
    X = as_sklearn(arithmetic())[0][:6]
    for name in ("slow", "detrended", "phase", "aperiodic", "amplitude", "order", "sham"):
        changed = evaluation.ControlSignals(name).fit_transform(X)
        yield f"signals.{name}", [changed[number] for number in range(6)]
    draws: dict[str, Any] = dict(n_train_subjects=[4], cv=2, seeds=[0, 1])
    scores = evaluation.controls(probes(), arithmetic(), **draws, verbose=0)
    yield from columns("scores", scores)
    yield from columns("gains", evaluation.control_gains(scores, against="amplitude"))


def audits(folder: Path, saved: Path) -> Values:
    """Yield audits of an encoder, and of the subject in features."""
    X, y, subjects = as_sklearn(arithmetic())
    fitted = make_embedder().fit(X)
    table = evaluation.audit_encoder({"one": fitted}, arithmetic(), n_windows=60)
    yield from columns("encoder", table)
    features = np.asarray(evaluation.LogBandPower().fit_transform(X)).reshape(len(y), -1)
    table = evaluation.audit_subjects(features, y, subjects, n_permutations=20)
    yield from columns("subject", table)
    erasure = evaluation.LinearErasure().fit(features, subjects)
    yield "LinearErasure", erasure.transform(features)


def reproduction(folder: Path, saved: Path) -> Values:
    """Yield scores of the comparison of table 1."""
    settings: dict[str, Any] = dict(SIZES, finetune_epochs=1, device="cpu", verbose=0)
    design: dict[str, Any] = dict(epochs=1, n_train_subjects=2, seeds=[0])
    scores = evaluation.reproduce(nights(), folder / "table-1", **design, **settings)
    yield from columns("scores", scores)


def study(folder: Path, saved: Path) -> Values:
    """Yield tables of a study; its pretrainings end after two epochs, whatever the speed."""
    limits: dict[str, Any] = dict(effort="quick", tasks=["pars"], encoders={}, minutes=1e-9)
    out = folder / "study"
    result = evaluation.study(arithmetic(), draws=2, out=out, n_jobs=1, verbose=0, **limits)
    for name, names in (
        ("scores", None),
        ("levels", None),
        ("secondary", None),
        ("confusion", None),
        ("pretrainings", ["task", "is_sham", "fold", "seed", "n_steps", "held_out_loss"]),
        ("plan", ["step", "group", "methods", "status"]),
        ("methods", ["method", "kind"]),
    ):
        table = getattr(result, name)
        yield from columns(name, table if names is None else table[names])
    for name in ("primary", "initialization", "baseline"):
        yield name, vars(getattr(result, name))
    yield "recommendation", vars(result.recommendation) | dict(folder=None)
    yield "files", sorted(path.name for path in out.iterdir())
    X = as_sklearn(arithmetic())[0]
    yield "model", FewLabelsClassifier.load(out / "model").predict_proba(X)


PARTS: dict[str, Callable[[Path, Path], Values]] = {
    part.__name__: part
    for part in (
        *(samples, folders, tasks, estimators, methods, adaptation, saved_folders, stores, runs),
        *(predicted_files, protocols, tests, controls, audits, reproduction, study),
    )
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, help="new folder for models, a store and a run")
    parser.add_argument("--saved", type=Path, help="such a folder, written at another commit")
    parser.add_argument("--compare", type=Path, help="output of this script at another commit")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS])
    options = parser.parse_args()
    print(f"# {braindecode_pars.__path__[0]}", file=sys.stderr)
    warnings.simplefilter("ignore")
    logging.disable()
    torch.set_num_threads(1)
    lines: dict[str, str] = {}
    with threadpoolctl.threadpool_limits(1), tempfile.TemporaryDirectory() as temporary:
        saved = options.saved or options.save or Path(temporary, "saved")
        if options.saved is None and "saved_folders" in options.only:
            save(saved)
        for name in options.only:
            begin, folder = time.process_time(), Path(temporary, name)
            folder.mkdir()
            for key, value in PARTS[name](folder, saved):
                lines[f"{name}.{key}".replace(" ", "-")] = checksum(value)
            print(f"# {name}: {time.process_time() - begin:.1f} s", file=sys.stderr)
    if options.compare is None:
        print(*(f"{name}  {lines[name]}" for name in sorted(lines)), sep="\n")
        return 0
    text = options.compare.read_text(encoding="utf-8")
    before = dict(line.split("  ") for line in text.splitlines())
    parts = tuple(f"{name}." for name in options.only)
    return report_differences(lines, {k: v for k, v in before.items() if k.startswith(parts)})


if __name__ == "__main__":
    sys.exit(main())
