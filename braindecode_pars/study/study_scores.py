"""Score the methods of a study: pretrain encoders, fit classifiers, count predictions."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from braindecode_pars._common import files, held_out, model_files
from braindecode_pars.baselines.few_labels import FewLabelsClassifier
from braindecode_pars.estimators import PARSEmbedder, windows_estimator
from braindecode_pars.evaluation import cache, splitting
from braindecode_pars.evaluation.controls import UNCHANGED, changed_windows
from braindecode_pars.study.study_design import METRIC, MODEL_FOLDER, Design, StudyPlan
from braindecode_pars.study.study_methods import Method, StudyStep
from braindecode_pars.study.study_tests import Recommendation
from braindecode_pars.windows import Windows

log = logging.getLogger(__name__)


def run_step(step: StudyStep, plan: StudyPlan) -> None:
    """Score the methods of a step, and write the scores to the file of the step.

    The file has one row per combination of method, centering, pretraining seed, fold, draw and
    subject. The columns are:

    - The columns of ``Study.scores``, except ``stratum`` and ``shuffle``.
    - ``n_I_J``: number of windows of class I that were predicted as class J.
    - ``p_J``: mean predicted probability of class J.

    Parameters
    ----------
    step : StudyStep
        Step of the study.
    plan : StudyPlan
        Plan of the study.
    """
    rows = [row for method in step.methods for row in score_method(method, step, plan)]
    files.replace_file(scores_file(step, plan), pd.DataFrame(rows).to_csv(index=False))


def scores_file(step: StudyStep, plan: StudyPlan) -> Path:
    """Return the path of the file with the scores of a step."""
    name = "".join(c if c.isalnum() else "-" for c in step.name.lower())
    digest = cache.digest([method.digest for method in step.methods])
    return plan.folder / "steps" / f"{name}-{plan.about['digest']}-{digest}.csv"


def read_scores(step: StudyStep, plan: StudyPlan) -> pd.DataFrame | None:
    """Return the scores of a step, or None if the step is not finished."""
    file = scores_file(step, plan)
    return pd.read_csv(file, dtype={"subject": str}) if file.exists() else None


def score_method(method: Method, step: StudyStep, plan: StudyPlan) -> Iterator[dict[str, Any]]:
    """Yield the scores of a method, as rows for the file of a step.

    The method is scored in the folds of the step, with all draws of labeled subjects. Networks and
    control analyses, which take more time, use only the draws of the first shuffle.

    Parameters
    ----------
    method : Method
        Method to score.
    step : StudyStep
        Step of the study.
    plan : StudyPlan
        Plan of the study.

    Yields
    ------
    dict
        One row per combination of fold, draw, centering and test subject, with the columns of
        :func:`run_step`.
    """
    design, labeled = plan.design, plan.design.labeled
    windows, y = labeled.X, labeled.y
    if step.control != UNCHANGED:
        windows = changed_windows(step.control, labeled)
        y = windows.labels  # one of the controls permutes the labels
    is_slow = method.kind == "network" or step.group == "controls"
    centerings = (False, True) if method.views and design.is_centered else (False,)
    with windows_estimator.features_computed_once():
        for fold in range(len(design.folds)) if step.fold is None else [step.fold]:
            encoder = encoder_of(method, plan, fold)
            _, draws, test = design.folds[fold]
            draws = draws[: design.n_sets] if is_slow else draws
            for (draw, train), is_centered in product(enumerate(draws), centerings):
                classifier = classifier_of(method, design, encoder, is_centered=is_centered)
                if method.estimator is not None:
                    splitting.with_seed(classifier, draw)
                probabilities = predict(classifier, windows, y, train, test)
                key: dict[str, Any] = dict(method=method.name, is_centered=is_centered)
                key |= dict(kind=method.kind, pretraining=method.pretraining, fold=fold, draw=draw)
                subjects = labeled.groups[test]
                for row in count_predictions(y[test], probabilities, subjects, design):
                    yield key | row


# Pretraining --------------------------------------------------------------------------------------


def encoder_of(method: Method, plan: StudyPlan, fold: int | None) -> Any:
    """Return the encoder of a method, after pretraining and saving it if it does not exist yet.

    Pretraining uses labeled and unlabeled windows, without their labels. Sham pretraining runs for
    the same number of steps as the pretraining with the same seed. A random encoder is only
    initialized. A JSON file next to the encoder contains the number of steps, the held-out loss,
    and the reason why pretraining ended.

    Parameters
    ----------
    method : Method
        Method whose encoder is needed.
    plan : StudyPlan
        Plan of the study.
    fold : int | None
        Index of the fold whose test subjects are excluded from pretraining. If None, the encoder is
        pretrained on all subjects.

    Returns
    -------
    encoder
        Value that estimators accept as ``encoder``, such as the path of a folder.
    """
    windows = plan.design.corpus.X
    if method.encoder is not None:
        return method.encoder
    if method.task is None and "encoder" not in method.views:
        # FewLabelsClassifier requires an encoder, even if no feature set uses the encoder.
        return PARSEmbedder(None, random_state=0, verbose=0).fit(windows[:1])
    record_file = record_of(method, plan, fold)
    folder = record_file.with_suffix("")
    if record_file.exists():
        return str(folder)
    options: dict[str, Any] = dict(random_state=method.pretraining, pooling="channels", verbose=0)
    if method.kind == "sham":
        pretrained = replace(method, kind="pretrained")
        encoder_of(pretrained, plan, fold)
        n_steps = files.read_json(record_of(pretrained, plan, fold))["n_steps"]
        options |= dict(pretrain_max_steps=n_steps, sham=True)
    elif method.task is not None:
        max_steps = plan.effort.step_limit(method.task)
        options |= dict(pretrain_max_steps=max_steps, pretrain_minutes=plan.effort.minutes)
    train = np.arange(len(windows)) if fold is None else plan.design.folds[fold].pretraining
    embedder = PARSEmbedder(method.task, **options).fit(windows[train])
    embedder.save(folder)
    reasons = (row.get(held_out.DECAY_REASON) for row in embedder.pretraining_history_)
    record = dict(
        task=method.task,
        is_sham=method.kind == "sham",
        fold=fold,
        seed=method.pretraining,
        n_steps=embedder.encoder_card_.n_steps,
        held_out_loss=embedder.encoder_card_.held_out_loss_relative,
        reason=next(filter(None, reasons), ""),
    )
    files.replace_file(record_file, files.to_json(record))
    return str(folder)


def record_of(method: Method, plan: StudyPlan, fold: int | None) -> Path:
    """Return the path of the JSON file that describes how the encoder of a method was pretrained.

    The folder with the same name, but without ``.json``, contains the encoder. Networks are
    initialized with an encoder of the primary comparison, so the file of this encoder is returned.

    Parameters
    ----------
    method : Method
        Method with an encoder.
    plan : StudyPlan
        Plan of the study.
    fold : int | None
        Index of the fold, as in :func:`encoder_of`.
    """
    kind = "pretrained" if method.kind == "network" else method.kind
    name = f"{kind}-{method.pretraining}"
    digest = cache.digest(plan.about["digest"], replace(method, estimator=None).digest)
    part = "all" if fold is None else f"fold-{fold}"
    return plan.folder / "encoders" / f"{name}-{digest}-{part}.json"


# Classifiers --------------------------------------------------------------------------------------


def classifier_of(
    method: Method, design: Design, encoder: Any, *, is_centered: bool
) -> BaseEstimator:
    """Return the unfitted classifier of a method.

    Parameters
    ----------
    method : Method
        Method of the classifier.
    design : Design
        Design of the study.
    encoder : encoder
        Encoder of the method, as returned by :func:`encoder_of`.
    is_centered : bool
        Whether the features are centered subject-wise.

    Returns
    -------
    estimator
        Unfitted classifier.
    """
    if method.estimator is not None:
        estimator = clone(method.estimator)
        return estimator if method.task is None else estimator.set_params(encoder=encoder)
    return FewLabelsClassifier(
        encoder,
        recenter="subject" if is_centered else None,
        views=list(method.views),
        C=None,
        unlabeled_label=design.corpus.unlabeled_label,
        verbose=0,
    )


def predict(
    classifier: Any, windows: Windows, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """Fit a classifier on training windows, and return its class probabilities for test windows.

    If the training windows have only one class, no classifier is fitted, and the probability of
    this class is 1.

    Parameters
    ----------
    classifier : estimator
        Unfitted classifier. If it has no method ``predict_proba``, the probability of the predicted
        class is 1.
    windows : Windows
        Labeled windows.
    y : ndarray, shape (n_windows,)
        Labels of the windows.
    train, test : ndarray of int
        Indices of the training windows and of the test windows.

    Returns
    -------
    ndarray, shape (n_test, n_classes)
        Class probabilities. The columns are the classes in ``y``, sorted.
    """
    classes, codes = np.unique(y, return_inverse=True)
    present = np.unique(codes[train])
    if len(present) == 1:
        return np.tile(np.eye(len(classes))[present], (len(test), 1))
    fitted = classifier.fit(windows[train], y[train])
    if not hasattr(fitted, "predict_proba"):
        return np.eye(len(classes))[np.searchsorted(classes, fitted.predict(windows[test]))]
    probabilities = np.zeros((len(test), len(classes)))
    columns = np.searchsorted(classes, fitted.classes_)
    probabilities[:, columns] = fitted.predict_proba(windows[test])
    return probabilities


def count_predictions(
    true: np.ndarray, probabilities: np.ndarray, subjects: np.ndarray, design: Design
) -> Iterator[dict[str, Any]]:
    """Yield score, chance level, confusion counts and mean probabilities of each test subject.

    The score is the balanced accuracy over the classes of the windows of the subject. The chance
    level is 1 divided by the number of classes of the subject or, if each subject has only one
    class, by the number of all classes.

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        Label of each test window.
    probabilities : ndarray, shape (n_windows, n_classes)
        Predicted class probabilities.
    subjects : ndarray, shape (n_windows,)
        Subject of each test window.
    design : Design
        Design of the study.

    Yields
    ------
    dict
        Row of one test subject: ``subject``, ``value`` (score), ``chance``, and the columns
        ``n_I_J`` and ``p_J`` of :func:`run_step`.
    """
    n, true = len(design.classes), np.searchsorted([*design.classes], true)
    predicted, subjects = probabilities.argmax(axis=1), subjects.astype(str)
    for subject in np.unique(subjects):
        is_subject = subjects == subject
        cells = n * true[is_subject] + predicted[is_subject]
        counts = np.bincount(cells, minlength=n * n).reshape(n, n)
        of_class = counts.sum(axis=1)
        is_present = of_class > 0
        recall = counts.diagonal()[is_present] / of_class[is_present]
        # If each subject has one class, the subject could be assigned to any of the n classes.
        chance = 1 / (n if design.by_subject else is_present.sum())
        row = dict(subject=subject, value=recall.mean(), chance=chance)
        row |= {f"n_{i}_{j}": counts[i, j] for i in range(n) for j in range(n)}
        means = probabilities[is_subject].mean(axis=0)
        yield row | {f"p_{j}": means[j] for j in range(n)}


def save_model(plan: StudyPlan, chosen: Recommendation) -> str | None:
    """Train the recommended method on all labeled subjects, and save it.

    If the method pretrains an encoder on this dataset, a new encoder is pretrained on all subjects.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    chosen : Recommendation
        Recommended method.

    Returns
    -------
    str | None
        Folder of the saved classifier. None if the classifier has no method ``save``.
    """
    log.info("Training the recommended method on all labeled subjects.")
    design, folder = plan.design, plan.folder / MODEL_FOLDER
    method = next(m for step in plan.steps for m in step.methods if m.name == chosen.method)
    encoder = encoder_of(method, plan, None)
    classifier: Any = classifier_of(method, design, encoder, is_centered=chosen.is_centered)
    if not hasattr(classifier, "save"):
        return None
    classifier.fit(design.labeled.X, design.labeled.y)
    classifier.expected_score_ = dict(
        metric=METRIC.replace("_", " "), score=chosen.score, low=chosen.low, high=chosen.high
    )
    if {*model_files.kinds_in(folder)} - {type(classifier).__name__}:  # model of an earlier study
        shutil.rmtree(folder)
    classifier.save(folder)
    return str(folder)
