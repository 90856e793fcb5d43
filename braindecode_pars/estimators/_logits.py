"""What every classifier of windows does with logits: labels, probabilities, a score."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from braindecode_pars.windows._labels import split_unlabeled
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["LogitClassifier"]


class LogitClassifier(ClassifierMixin):
    """A classifier with ``classes_``, ``unlabeled_label`` and logits for windows of any kind."""

    @abstractmethod
    def _logits(self, X: Any) -> Tensor:
        """Logits of windows, shape (n_windows, n_classes), finite, on the CPU."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits of each class.

        Parameters
        ----------
        X : windows
            As in ``predict_proba``.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes) or (n_windows,)
            For two classes the difference, positive where the second of ``classes_`` is the more
            probable.
        """
        logits = self._logits(X).numpy()
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : windows
            As in ``fit``, of the same channels and length.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes)
            Columns as in ``classes_``.
        """
        return self._logits(X).softmax(dim=1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each window.

        Parameters
        ----------
        X : windows
            As in ``predict_proba``.

        Returns
        -------
        ndarray, shape (n_windows,)
            Labels as they were given to ``fit``.
        """
        codes = self._logits(X).argmax(dim=1).numpy()
        return self.classes_[codes]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on the labelled windows.

        Parameters
        ----------
        X : windows
            As in ``predict_proba``.
        y : array-like, shape (n_windows,) | None
            Labels; None takes those of the dataset. One that was not there in ``fit`` counts as
            wrong, with a warning; windows marked as unlabelled do not count.
        sample_weight : array-like, shape (n_windows,) | None
            Weight of each window.

        Returns
        -------
        float
            Between 0 and 1.
        """
        check_is_fitted(self)
        windows, _ = split_unlabeled(as_window_set(X, y), self.unlabeled_label)
        unseen = sorted(set(windows.y.tolist()) - set(self.classes_.tolist()), key=str)
        if unseen:
            warnings.warn(
                f"Label{'s' if len(unseen) > 1 else ''} {', '.join(map(repr, unseen))} "
                "did not occur in fit; windows that have it count as wrong.",
                stacklevel=2,
            )
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)[windows.indices]
        return float(np.average(self.predict(windows) == windows.y, weights=sample_weight))
