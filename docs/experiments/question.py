"""What an experiment asks: windows, who is scored, and the classifiers by name."""

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

#: Names in tables of the methods without an encoder, and those that ``make_methods`` knows.
BASELINES = {
    "log band power": "band-power",
    "tangent space": "tangent-space",
    "EEGNet": "eegnet",
    "ShallowFBCSPNet": "shallow",
}
#: The networks with few epochs, which take seconds a fit; the published 500 take minutes.
SHORT = {f"{name}, 15 epochs": BASELINES[name] for name in ("EEGNet", "ShallowFBCSPNet")}
#: Those that are logistic regressions.
CLASSICAL = ("log band power", "tangent space")


@dataclass
class Question:
    """Labeled windows, and all that a fit needs.

    Attributes
    ----------
    name : str
        Column ``dataset`` of the scores.
    windows : BaseConcatDataset
        Labeled windows.
    metric : str
        Metric of the scores.
    split : dict
        Arguments of ``label_efficiency`` that say who may be labeled and who is scored.
    fitted_by : callable
        Function of the name of a method and the number of labeled subjects. It returns the
        classifier, and pretrains its encoder first if that is missing.
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
            # The stored scores of the classical methods were computed without class weights, and
            # those of tangent space without standardization.
            weights = {"class_weight": None} if method in CLASSICAL else {}
            clf = make_methods([BASELINES[method]], **weights)[method]
            if method == "tangent space":
                return make_pipeline(clf.transformer, LogisticRegression(max_iter=1000))
            return clf
        return self.fitted_by(method, n_labeled)
