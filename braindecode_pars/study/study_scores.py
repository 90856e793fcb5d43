"""Scores of a study: pretrain encoders, compute features, fit classifiers, count predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import skorch
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline

from braindecode_pars._common import files, held_out, tables
from braindecode_pars._common.names import extra_module
from braindecode_pars.baselines import linear_probe, window_features
from braindecode_pars.estimators import PARSEmbedder, transformers
from braindecode_pars.evaluation import cache, splitting
from braindecode_pars.evaluation.controls import UNCHANGED, changed_windows
from braindecode_pars.study.study_design import Design, StudyPlan
from braindecode_pars.study.study_methods import Method, StudyStep
from braindecode_pars.windows import Windows

#: Transformers of the feature sets without an encoder.
TRANSFORMERS = {
    "band_power": window_features.LogBandPower,
    "hand_crafted": window_features.ChannelFeatures,
    "tangent_space": window_features.SpatialCovariance,
}
#: Function that receives the progress of a training as text.
Report = Callable[[str], None]


def run_step(step: StudyStep, plan: StudyPlan, report: Report = lambda text: None) -> None:
    """Score the methods of a step, and write the scores to its file.

    The file has one row per method (with and without subject-wise centering), pretraining, fold,
    draw and subject. The columns are:

    - the columns of ``Study.scores``, except ``stratum`` and ``shuffle``,
    - ``n_I_J``: number of windows of class I that were predicted as class J,
    - ``p_J``: mean probability of class J.
    """
    rows = [row for method in step.methods for row in score_method(method, step, plan, report)]
    files.replace_file(scores_file(step, plan), pd.DataFrame(rows).to_csv(index=False))


def scores_file(step: StudyStep, plan: StudyPlan) -> Path:
    """Return the file with the scores of a step."""
    return plan.folder / "steps" / f"{step.slug}-{plan.digest}-{step.digest}.csv"


def read_scores(step: StudyStep, plan: StudyPlan) -> pd.DataFrame | None:
    """Return the scores of a step, or None if it is not finished."""
    file = scores_file(step, plan)
    return pd.read_csv(file, dtype={"subject": str}) if file.exists() else None


def score_method(
    method: Method, step: StudyStep, plan: StudyPlan, report: Report
) -> Iterator[dict[str, Any]]:
    """Yield the scores of a method in all folds and draws of a step."""
    design = plan.design
    labeled = np.flatnonzero(design.corpus.labeled)
    windows = design.corpus.X[labeled]
    if step.control != UNCHANGED:
        windows = control_windows(step.control, design)
        y = design.corpus.y.copy()
        y[labeled] = windows.labels  # permuted in one of the controls
        design = replace(design, corpus=replace(design.corpus, y=y))
    features: dict[str, np.ndarray] = {}
    for fold in range(len(design.folds)) if step.fold is None else [step.fold]:
        encoder = encoder_of(method, plan, fold, report) if needs_encoder(method) else None
        if method.estimator is None and (method.encoder is None or not features):
            features = features_of(method, windows, encoder)
        test = design.folds[fold][1]
        is_slow = method.kind == "network" or step.group == "controls"
        for draw in range(design.n_sets if is_slow else design.n_draws):
            train = design.labeled_rows(fold, draw)
            for is_centered in (False, True) if features and design.is_centered else (False,):
                probabilities = (
                    predict_linear(features, design, train, test, is_centered=is_centered)
                    if features
                    else predict_with(method, design, train, test, draw, encoder)
                )
                shared: dict[str, Any] = dict(method=method.name, is_centered=is_centered)
                shared |= dict(kind=method.kind, pretraining=method.pretraining)
                shared |= dict(fold=fold, draw=draw)
                for row in count_predictions(design, test, probabilities):
                    yield shared | row


def control_windows(control: str, design: Design) -> Windows:
    """Return the labeled windows of a control analysis."""
    corpus, labeled = design.corpus, design.corpus.labeled
    names = ("X", "y", "groups", "splits", "labeled")
    part = replace(corpus, **{name: getattr(corpus, name)[labeled] for name in names})
    return changed_windows(control, part)


def needs_encoder(method: Method) -> bool:
    """Whether a method uses an encoder, trained in the study or pretrained on other data."""
    return "encoder" in method.views or method.task is not None


# Pretraining --------------------------------------------------------------------------------------


def encoder_of(method: Method, plan: StudyPlan, fold: int | None, report: Report) -> Any:
    """Return the encoder of a method. An encoder that does not exist yet is pretrained and saved.

    It is pretrained on the training windows of the fold, or on all windows if ``fold`` is None. A
    sham pretraining has the same number of steps as the pretraining with the same seed. A JSON file
    next to the encoder contains the number of steps, the held-out loss, and the reason why the
    pretraining ended.
    """
    if method.encoder is not None:
        return method.encoder
    record_file = record_of(method, plan, fold)
    folder = record_file.with_suffix("")
    if record_file.exists():
        return str(folder)
    options: dict[str, Any] = dict(random_state=method.pretraining, pooling="channels", verbose=0)
    if method.task is not None:
        limits: dict[str, Any] = dict(
            pretrain_max_steps=plan.effort.step_limit(method.task),
            pretrain_minutes=plan.effort.minutes,
        )
        if method.kind == "sham":
            real_record = record_of(replace(method, kind="pretrained"), plan, fold)
            limits = dict(pretrain_max_steps=files.read_json(real_record)["n_steps"], sham=True)
        progress = Progress(lambda text: report(f"{method.name}: {text}"))
        options |= limits | dict(pretrain_callbacks=[progress])
    windows = plan.design.corpus.X
    train = np.arange(len(windows)) if fold is None else plan.design.folds[fold][0]
    embedder = PARSEmbedder(method.task, **options).fit(windows[train])
    embedder.save(folder)
    record: dict[str, Any] = dict(task=method.task, is_sham=method.kind == "sham", fold=fold)
    record |= dict(seed=method.pretraining, n_steps=embedder.encoder_card_.n_steps)
    record["held_out_loss"] = embedder.encoder_card_.held_out_loss_relative
    reasons = (row.get(held_out.DECAY_REASON) for row in embedder.pretraining_history_)
    record["reason"] = next(filter(None, reasons), "")
    files.replace_file(record_file, files.to_json(record))
    return str(folder)


def record_of(method: Method, plan: StudyPlan, fold: int | None) -> Path:
    """Return the JSON file of a pretraining. The folder of the same name contains the encoder.

    For a network, return the file of the pretraining in the primary comparison, whose encoder the
    network starts from.
    """
    kind = "pretrained" if method.kind == "network" else method.kind
    name = f"{kind}-{method.pretraining}"
    digest = cache.digest(plan.digest, replace(method, estimator=None).digest)
    part = "all" if fold is None else f"fold-{fold}"
    return plan.folder / "encoders" / f"{name}-{digest}-{part}.json"


class Progress(skorch.callbacks.Callback):
    """Report steps and loss of a pretraining after each epoch."""

    def __init__(self, report: Report):
        self.report = report
        self.n_steps = 0

    def on_batch_end(self, net: skorch.NeuralNet, training: bool, **kwargs: Any) -> None:
        self.n_steps += training

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        loss = net.history[-1].get(tables.RELATIVE, np.nan)
        self.report(f"{self.n_steps} steps, relative loss {loss:.2f}")


# Features and classifiers -------------------------------------------------------------------------


def features_of(method: Method, windows: Windows, encoder: Any) -> dict[str, np.ndarray]:
    """Return the feature sets of a method by name, computed from windows.

    An array has the shape (n_windows, n_features). The feature set "tangent_space" contains
    covariance matrices.
    """
    features = {}
    for view in method.views:
        transformer: Any = PARSEmbedder(encoder=encoder, pooling="channels", verbose=0)
        if view in TRANSFORMERS:
            transformer = TRANSFORMERS[view]()
        features[view] = np.asarray(transformer.fit_transform(windows), dtype=float)
    return features


def predict_linear(
    features: Mapping[str, np.ndarray],
    design: Design,
    train: np.ndarray,
    test: np.ndarray,
    *,
    is_centered: bool,
) -> np.ndarray:
    """Return class probabilities: the mean over one logistic regression per feature set.

    :class:`~braindecode_pars.FewLabelsClassifier` with ``C=None`` returns the same probabilities.

    Parameters
    ----------
    features : mapping of str to ndarray
        Feature sets of the labeled windows.
    design : Design
        Design of the study.
    train, test : ndarray
        Indices of the windows for training and of the windows to predict, all of them labeled.
    is_centered : bool
        Whether to subtract the mean of each subject.

    Returns
    -------
    ndarray, shape (n_test, n_classes)
    """
    labeled = np.flatnonzero(design.corpus.labeled)
    train, test = np.searchsorted(labeled, train), np.searchsorted(labeled, test)
    codes = np.searchsorted(design.classes, design.corpus.y[labeled])
    subjects = pd.factorize(design.corpus.groups[labeled])[0]
    present, labels = np.unique(codes[train], return_inverse=True)
    probabilities = np.zeros((len(test), len(design.classes)))
    if len(present) == 1:  # a single class in the training set
        probabilities[:, present] = 1.0
        return probabilities
    for view, values in features.items():
        if view == "tangent_space":
            tangentspace = extra_module("pyriemann.tangentspace")
            values = tangentspace.TangentSpace().fit(values[train]).transform(values)
        if is_centered:
            values = transformers.subtract_means(values, subjects)
        classifier = fit_classifier(values[train], labels, subjects[train])
        probabilities[:, present] += classifier.predict_proba(values[test]) / len(features)
    return probabilities


def fit_classifier(features: np.ndarray, labels: np.ndarray, subjects: np.ndarray) -> Pipeline:
    """Fit a logistic regression, with C selected by cross-validation over the subjects."""
    unfitted = linear_probe.logistic_regression(None, "balanced")
    folds = linear_probe.folds_by_subject(subjects, labels)
    return linear_probe.fit_searched(unfitted, features, labels, folds)


def predict_with(
    method: Method, design: Design, train: np.ndarray, test: np.ndarray, seed: int, encoder: Any
) -> np.ndarray:
    """Train a classifier of windows, and return its class probabilities for the test windows."""
    corpus = design.corpus
    estimator: BaseEstimator = splitting.with_seed(clone(method.estimator), seed)
    if encoder is not None:
        estimator.set_params(encoder=encoder)
    fitted: Any = estimator.fit(corpus.X[train], corpus.y[train])
    classes, windows = design.classes, corpus.X[test]
    if not hasattr(fitted, "predict_proba"):
        return np.eye(len(classes))[np.searchsorted(classes, fitted.predict(windows))]
    probabilities = np.zeros((len(test), len(classes)))
    probabilities[:, np.searchsorted(classes, fitted.classes_)] = fitted.predict_proba(windows)
    return probabilities


def count_predictions(
    design: Design, test: np.ndarray, probabilities: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Yield score, chance level, confusion counts and mean probabilities of each test subject.

    The score is the balanced accuracy over the classes of the subject. The chance level is 1
    divided by the number of these classes.
    """
    n, true = len(design.classes), np.searchsorted(design.classes, design.corpus.y[test])
    predicted, subjects = probabilities.argmax(axis=1), design.corpus.groups[test].astype(str)
    for subject in np.unique(subjects):
        is_subject = subjects == subject
        counts = confusion_matrix(true[is_subject], predicted[is_subject], labels=range(n))
        of_class = counts.sum(axis=1)
        is_present = of_class > 0
        recall = counts.diagonal()[is_present] / of_class[is_present]
        # A subject with one class is classified among all classes.
        chance = 1 / (n if design.by_subject else is_present.sum())
        row = dict(subject=subject, value=recall.mean(), chance=chance)
        row |= {f"n_{i}_{j}": counts[i, j] for i in range(n) for j in range(n)}
        means = probabilities[is_subject].mean(axis=0)
        yield row | {f"p_{j}": means[j] for j in range(n)}
