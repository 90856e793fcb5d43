"""Labels, probabilities and accuracy from logits, for all classifiers of windows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from braindecode_pars._warnings import warn_user
from braindecode_pars.windows._labels import split_unlabeled
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["LogitClassifier"]


class LogitClassifier(ClassifierMixin):
    """Base class: prediction from logits, for classifiers with ``classes_``.

    A subclass has the parameter ``unlabeled_label`` and defines ``_logits``.
    """

    # With scikit-learn's metadata routing, groups that are passed reach the predictions.
    __metadata_request__score = {"groups": True}  # noqa: RUF012
    __metadata_request__predict = {"groups": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"groups": True}  # noqa: RUF012
    __metadata_request__decision_function = {"groups": True}  # noqa: RUF012

    @abstractmethod
    def _logits(self, X: Any, groups: Any) -> Tensor:
        """Return finite logits on the CPU, shape (n_windows, n_classes)."""

    def decision_function(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the logit of each class.

        Parameters
        ----------
        X, groups
            As in ``predict_proba``.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes) or (n_windows,)
            Logits. With two classes, the second logit minus the first: the value is positive when
            the second label in ``classes_`` is more probable.
        """
        logits = self._logits(X, groups).numpy()
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : windows
            Windows of any type that ``fit`` accepts, with the channels and length of those of
            ``fit``.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for a classifier that recentres by subject; ignored otherwise.
            None uses the subjects of the windows.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes)
            Probabilities; the columns are in the order of ``classes_``.
        """
        return self._logits(X, groups).softmax(dim=1).numpy()

    def predict(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the most probable label of each window.

        Parameters
        ----------
        X, groups
            As in ``predict_proba``.

        Returns
        -------
        ndarray, shape (n_windows,)
            Predicted labels, in the form passed to ``fit``.
        """
        codes = self._logits(X, groups).argmax(dim=1).numpy()
        return self.classes_[codes]

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> float:
        """Return the accuracy on the labelled windows.

        Parameters
        ----------
        X : windows
            As in ``predict_proba``.
        y : array-like, shape (n_windows,) | None
            Labels; None uses the labels of the dataset. Windows with ``unlabeled_label`` are
            ignored. Windows with a label that did not occur in ``fit`` count as wrong, and a
            warning names the label.
        sample_weight : array-like, shape (n_windows,) | None
            Weight of each window.
        groups : array-like, shape (n_windows,) | None
            As in ``predict_proba``.

        Returns
        -------
        float
            Accuracy between 0 and 1.
        """
        check_is_fitted(self)
        given = as_window_set(X, y, groups)
        windows, _ = split_unlabeled(given, self.unlabeled_label)
        unseen = sorted(set(windows.y.tolist()) - set(self.classes_.tolist()), key=str)
        if unseen:
            several = len(unseen) > 1
            warn_user(
                f"Label{'s' if several else ''} {', '.join(map(repr, unseen))} did not occur in "
                f"fit; windows with {'these labels' if several else 'this label'} count as wrong."
            )
        if sample_weight is not None:  # without the weights of unlabelled windows
            sample_weight = _weights(sample_weight, len(given))[windows.indices]
        # All windows are predicted: recentring by subject uses the unlabelled ones too.
        predicted = self.predict(given)[windows.indices]
        return float(np.average(predicted == windows.y, weights=sample_weight))


def _weights(sample_weight: Any, n_windows: int) -> np.ndarray:
    """Return the weights of windows, after checks."""
    weights = np.asarray(sample_weight, dtype=float)
    if weights.shape != (n_windows,) or not np.isfinite(weights).all():
        raise ValueError(
            f"sample_weight has shape {weights.shape}; it must have one finite number for each of "
            f"the {n_windows} windows."
        )
    return weights
