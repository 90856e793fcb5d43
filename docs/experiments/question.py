"""Classification tasks of the experiments: windows, train-test split, and classifiers by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from braindecode.datasets import BaseConcatDataset
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from braindecode_pars.baselines import make_methods

__all__ = ["BASELINES", "SHORT", "Question"]

#: Names of methods without an encoder in tables, and their keys of ``make_methods``.
BASELINES = {
    "log band power": "band-power",
    "tangent space": "tangent-space",
    "EEGNet": "eegnet",
    "ShallowFBCSPNet": "shallow",
}
#: Networks with 15 epochs, which take seconds per fit; the published 500 epochs take minutes.
SHORT = {f"{name}, 15 epochs": BASELINES[name] for name in ("EEGNet", "ShallowFBCSPNet")}
#: Methods with a logistic regression.
LOGISTIC_REGRESSIONS = ("log band power", "tangent space")


@dataclass
class Question:
    """Labeled windows, split and methods of a classification task.

    Attributes
    ----------
    name : str
        Column ``dataset`` of the scores.
    windows : BaseConcatDataset
        Labeled windows.
    metric : str
        Metric of the scores.
    split : dict
        Arguments of ``label_efficiency`` that define labeled and test subjects.
    fitted_by : callable
        Function of a method name and the number of labeled subjects. It returns the classifier,
        after pretraining its encoder if it does not exist.
    """

    name: str
    windows: BaseConcatDataset
    metric: str
    split: dict[str, Any]
    fitted_by: Callable[[str, int], BaseEstimator]

    def classifier(self, method: str, n_labeled: int) -> BaseEstimator:
        """Return the classifier of a method for this number of labeled subjects."""
        if method in SHORT:
            (clf,) = make_methods([SHORT[method]], finetune_epochs=15).values()
            return clf
        if method in BASELINES:
            # The stored scores of these methods were computed without class weights, and the scores
            # of tangent space without standardization.
            weights = {"class_weight": None} if method in LOGISTIC_REGRESSIONS else {}
            clf = make_methods([BASELINES[method]], **weights)[method]
            if method == "tangent space":
                return make_pipeline(clf.transformer, LogisticRegression(max_iter=1000))
            return clf
        return self.fitted_by(method, n_labeled)
