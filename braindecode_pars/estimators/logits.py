"""Labels, probabilities and scores from logits, for all classifiers of windows.

scikit-learn's scorers see the labelled part of windows that are predicted together.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from braindecode_pars._common.checks import warn_user
from braindecode_pars.estimators.predict_raw import predict_raw
from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.labels import check_weights, where_labelled


class LogitClassifier(ClassifierMixin):
    """Base class: prediction from logits, for classifiers with ``classes_``.

    A subclass has the parameter ``unlabeled_label``, trains ``net_`` and defines ``_logits``.
    """

    # With scikit-learn's metadata routing, groups that are passed reach the predictions.
    __metadata_request__score = {"groups": True, "scoring": UNUSED}  # noqa: RUF012
    __metadata_request__predict = {"groups": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"groups": True}  # noqa: RUF012
    __metadata_request__decision_function = {"groups": True}  # noqa: RUF012

    def __sklearn_is_fitted__(self) -> bool:
        # After Ctrl-C in pretraining, the net exists but its head is untrained.
        return hasattr(self, "net_") and len(self.net_.history) > 0

    @property
    def _class_texts(self) -> list[str]:
        """Name of each class, or its label as text where there is none."""
        names = getattr(self, "class_names_", None) or {}
        return [str(names.get(label, label)) for label in self.classes_.tolist()]

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
        return self._predictions(X, groups)[1]

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
        return self._predictions(X, groups)[0]

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable labels and the probabilities; the windows are read once."""
        logits = self._logits(X, groups)
        return self.classes_[logits.argmax(dim=1).numpy()], logits.softmax(dim=1).numpy()

    def predict_raw(
        self, raw: Any, *, overlap: float = 0.0, preprocess: bool = True
    ) -> pd.DataFrame:
        """Predict a continuous recording, window after window.

        The channels of ``fit`` are found by the names of their electrodes (``T3`` and ``T7``,
        ``A1`` and ``M1``, ``EEG C3-REF`` and ``C3`` are the same). A channel with a named
        reference, or of two electrodes, is also computed as the difference of two channels of the
        recording. Windows lie side by side from the first sample on.

        Parameters
        ----------
        raw : mne.io.Raw | path
            Continuous recording in volts, which is not changed, or an EDF, BDF, FIF or WFDB file.
        overlap : float
            Share of a window, in [0, 1), that the next window repeats. With 0, windows do not
            overlap. Otherwise further windows are predicted in between, and each row is the mean
            of the probabilities of all windows that share time with it, weighted by that time.
        preprocess : bool
            Whether the recording is resampled, referenced, filtered and scaled as the training
            recordings were, by ``preprocessing_``. With False its samples are used as they are;
            its sampling rate must then be that of the model.

        Returns
        -------
        pandas.DataFrame
            One row for each window from the beginning of the recording; the rest at its end that is
            shorter than a window is left out. Columns:

            - ``onset``, ``duration``: in seconds from the first sample. In a resampled recording, a
              window is off by at most one sample, and by one and a half after a gap.
            - ``label``: name of the most probable class, or the label as text. None in a window
              that is not predicted, because it contains a gap or an annotation that begins with
              "BAD".
            - ``probability_LABEL``: one column for each class, in the order of ``classes_``. NaN in
              a window that is not predicted, as in ``entropy``.
            - ``entropy``: of these probabilities, in nats.

            ``frame.attrs`` has the name of the ``recording``, the texts of the ``classes``, how the
            ``channels`` were found, and ``findings``: what makes predictions doubtful.

        Raises
        ------
        TypeError
            When ``raw`` is neither a Raw nor a path.
        ValueError
            When a file cannot be read; when the recording has none of the channels of ``fit``, or
            not all of them and the model cannot do without; when no window can be predicted; when
            samples are NaN; when the sampling rate of ``fit`` is unknown. For
            ``recenter="subject"``, when fewer than ten windows can be predicted.

        Warns
        -----
        UserWarning
            When channels of ``fit`` are missing, and the others are used; when the recording has
            another reference, or differs in what cannot be restored; when the recordings of ``fit``
            had different bands or references, so that none is applied; when channels are flat or
            clipped for at least 1 % of the time and at least the length of a window; when
            amplitudes are far outside those of the training windows.

        Examples
        --------
        >>> from braindecode_pars import PARSClassifier, datasets
        >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.2, n_chans=2)
        >>> clf = PARSClassifier(None, finetune_epochs=1, verbose=0).fit(windows)
        >>> frame = clf.predict_raw(windows.datasets[0].raw)
        >>> len(frame), frame["onset"][1]
        (24, np.float64(30.0))
        """
        return predict_raw(self, raw, overlap=overlap, preprocess=preprocess)

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        scoring: Any = None,
    ) -> float:
        """Return the accuracy on the labelled windows, or another score.

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
        scoring : str | callable | list of str | None
            Another score: the name of a scorer of scikit-learn, such as ``"balanced_accuracy"``,
            ``"roc_auc_ovr"`` or ``"neg_log_loss"``, a function ``scorer(classifier, X, y)``, or
            several names. None means accuracy.

        Returns
        -------
        float
            Accuracy between 0 and 1, or the other score; a dict for several names.

        Raises
        ------
        ValueError
            When windows, labels or weights are malformed, when no window is labelled, or when
            ``scoring`` is unknown or not defined for these labels.
        """
        check_is_fitted(self)
        given = as_windows(X, y, groups)
        labelled = np.flatnonzero(where_labelled(given, self.unlabeled_label))
        windows = given.take(labelled)
        unseen = sorted(set(windows.labels.tolist()) - set(self.classes_.tolist()), key=str)
        if unseen:
            several = len(unseen) > 1
            warn_user(
                f"Label{'s' if several else ''} {', '.join(map(repr, unseen))} did not occur in "
                f"fit; windows with {'these labels' if several else 'this label'} count as wrong."
            )
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(given))[labelled]
            check_weights(sample_weight, len(windows))  # those of labelled windows may all be 0
        # All windows are predicted: recentring by subject uses the unlabelled ones too.
        if scoring is not None:
            labels = (labelled, windows.labels, sample_weight)
            return score_of_labelled(self, given, *labels, scoring)
        predicted = self.predict(given)[labelled]
        return float(np.average(predicted == windows.labels, weights=sample_weight))


class LabelledPart(ClassifierMixin, BaseEstimator):
    """A fitted classifier that predicts all windows and returns what it predicts for some.

    Parameters
    ----------
    classifier : LogitClassifier
        Fitted classifier.
    positions : ndarray of int
        Windows whose predictions are returned.
    """

    def __init__(self, classifier: Any, positions: np.ndarray):
        self.classifier = classifier
        self.positions = positions

    @property
    def classes_(self) -> np.ndarray:
        return self.classifier.classes_

    def fit(self, X: Any, y: Any = None) -> LabelledPart:
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classifier.predict(X)[self.positions]

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.classifier.predict_proba(X)[self.positions]

    def decision_function(self, X: Any) -> np.ndarray:
        return self.classifier.decision_function(X)[self.positions]


def score_of_labelled(
    classifier: Any,
    windows: Any,
    positions: np.ndarray,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    scoring: Any,
) -> Any:
    """Return the score of a scorer, such as "roc_auc", on the labelled windows.

    Parameters
    ----------
    classifier : LogitClassifier
        Fitted classifier.
    windows : Windows
        All windows.
    positions : ndarray of int, shape (n_labelled,)
        Labelled windows among them.
    y, sample_weight : ndarray, shape (n_labelled,)
        Labels and weights of the labelled windows.
    scoring : str | callable | list of str
        As in :func:`sklearn.metrics.check_scoring`.
    """
    part = LabelledPart(classifier, positions)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return check_scoring(part, scoring)(part, windows, y, **weights)
