"""Which labels follow each other, and predictions of windows in a row that are smoothed by that.

It is a hidden Markov model. Its states are the classes, its transitions are counted on the labels
of the training windows, and its emissions come from the probabilities of a classifier.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common.tables import Access
from braindecode_pars.estimators.windows_estimator import (
    LabelPredictor,
    fresh_fit,
    parameter_of_last,
)
from braindecode_pars.windows import Windows, door, labels


@dataclass(frozen=True, eq=False)
class Transitions:
    r"""Markov chain of the labels of the training windows, which smooths predictions.

    Attributes
    ----------
    matrix : ndarray, shape (n_classes, n_classes)
        Probability of the class of a window (column), given that of the window before (row). It is
        counted where two windows of one recording touch in time, with one added to each count.
    shares : ndarray, shape (n_classes,)
        Share of each class in the windows of ``fit``, with one added to each count: the
        probability of the first window of a recording, which may begin at any time.
    prior : ndarray, shape (n_classes,)
        Share of each class that the classifier has learned to expect, see Notes.

    Notes
    -----
    With the class :math:`c_t` and the signals :math:`x_t` of window :math:`t`, the model is

    .. math::
        p(c, x) = p(c_1) \prod_{t>1} p(c_t \mid c_{t-1}) \prod_t p(x_t \mid c_t) .

    A classifier that minimises the cross entropy with class weights :math:`w_c` learns
    :math:`p(c \mid x) \propto \pi_c \, p(x \mid c)` with the prior :math:`\pi_c \propto w_c n_c`,
    where :math:`n_c` training windows have class :math:`c`. It is uniform with
    ``class_weight="balanced"``, and the share of the class without weights. So
    :math:`p(c \mid x) / \pi_c` is the likelihood up to a factor that all classes share (Bourlard
    and Morgan 1994). Smoothed predictions have the shares of the classes in the training as their
    prior, also those of a balanced classifier: rare classes are then predicted less often.

    References
    ----------
    Rabiner 1989, A tutorial on hidden Markov models and selected applications in speech
    recognition, Proceedings of the IEEE 77. Bourlard and Morgan 1994, Connectionist speech
    recognition: a hybrid approach.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.estimators.smoothing import Transitions
    >>> half = np.array([0.5, 0.5])
    >>> chain = Transitions(np.array([[0.9, 0.1], [0.1, 0.9]]), shares=half, prior=half)
    >>> predicted = np.array([[0.9, 0.1], [0.4, 0.6], [0.9, 0.1]])
    >>> probabilities, path = chain.smooth(predicted)
    >>> probabilities[1].round(2).tolist(), path.tolist()
    ([0.93, 0.07], [0, 0, 0])
    """

    matrix: np.ndarray
    shares: np.ndarray
    prior: np.ndarray

    @classmethod
    def of(
        cls, windows: Windows, classes: np.ndarray, class_weight: str | dict | None
    ) -> Self | None:
        """Count the transitions of training windows.

        Parameters
        ----------
        windows : Windows
            Labelled windows, with indices into ``classes`` as labels. Where the place in a
            recording is unknown, as in an array, windows touch in the order in which they come.
        classes : ndarray, shape (n_classes,)
            Labels.
        class_weight : "balanced" | dict | None
            Class weights of the classifier.

        Returns
        -------
        Transitions | None
            None when no two windows touch in time.
        """
        codes, table = windows.labels, windows.table
        known = table["stop"] >= 0
        places = table[["recording"]].assign(
            code=codes,
            start=table["start"].where(known, table["item"]),
            stop=table["stop"].where(known, table["item"] + 1),
        )
        pairs = places.merge(places, left_on=["recording", "stop"], right_on=["recording", "start"])
        if pairs.empty:
            return None
        counts = np.ones((len(classes), len(classes)))
        np.add.at(counts, (pairs["code_x"].to_numpy(), pairs["code_y"].to_numpy()), 1)
        shares = np.bincount(codes, minlength=len(classes)) + 1.0
        weights = labels.cross_entropy_weights(codes, classes, class_weight)
        prior = np.bincount(codes, minlength=len(classes)).astype(float)
        prior *= 1 if weights is None else weights.numpy()
        prior[prior == 0] = 1  # a class without a window, or with weight 0
        return cls(
            counts / counts.sum(axis=1, keepdims=True), shares / shares.sum(), prior / prior.sum()
        )

    @classmethod
    def from_json(cls, described: dict[str, Any] | None) -> Self | None:
        """Return what :meth:`to_json` has described; None for None."""
        if described is None:
            return None
        return cls(**{name: np.array(own) for name, own in described.items()})

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as lists."""
        return {name: values.tolist() for name, values in vars(self).items()}

    def smooth(self, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Smooth the predictions of windows that follow each other.

        Parameters
        ----------
        probabilities : ndarray, shape (n_windows, n_classes)
            Probabilities by the classifier. A row of NaN is a window without a prediction, of
            which only its neighbours tell something.

        Returns
        -------
        smoothed : ndarray, shape (n_windows, n_classes)
            Probabilities given all windows, by the forward-backward algorithm.
        path : ndarray of int, shape (n_windows,)
            Most probable sequence of classes, as indices, by the Viterbi algorithm. It may differ
            from the most probable class of each window.
        """
        with np.errstate(divide="ignore"):  # a probability of zero
            emissions = np.log(probabilities.astype(float)) - np.log(self.prior)
        emissions[np.isnan(emissions[:, 0])] = 0.0
        step = np.log(self.matrix)
        # Forward: all paths to a class, for the sum and for the best one
        best = total = np.log(self.shares) + emissions[0]
        forward, origins = [total], []
        for emission in emissions[1:]:
            total = emission + np.logaddexp.reduce(total[:, None] + step, axis=0)
            forward.append(total)
            origins.append((best[:, None] + step).argmax(axis=0))
            best = emission + (best[:, None] + step).max(axis=0)
        # Backward: all paths from a class, and back along the best one
        rest = np.zeros(len(step))
        backward, path = [rest], [int(best.argmax())]
        for emission, origin in zip(emissions[:0:-1], origins[::-1], strict=True):
            rest = np.logaddexp.reduce(step + emission + rest, axis=1)
            backward.append(rest)
            path.append(int(origin[path[-1]]))
        smoothed = softmax(np.array(forward) + np.array(backward[::-1]), axis=1)
        return smoothed, np.array(path[::-1])


class HMMSmoothing(LabelPredictor):
    """Smooth the predictions of a classifier over time, by a hidden Markov model (transductive).

    For labels with an order in time, such as sleep stages. The transitions between labels are
    counted in ``fit``, see :class:`~braindecode_pars.estimators.smoothing.Transitions`. A
    protocol scores raw and smoothed predictions of one classifier when it is given both:
    ``{"band power": probe, "band power, smoothed": HMMSmoothing(probe)}``.

    **It is transductive.** A prediction uses the windows before and after, without their labels.
    Compare only with methods that are given the same.

    Parameters
    ----------
    classifier : classifier
        Required: a classifier of windows with ``predict_proba``, or a pipeline. A clone of it is
        fitted. Its ``class_weight``, or that of its last part that has one, tells the prior that
        it learns.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    classifier_ : classifier
        Fitted classifier.
    transitions_ : Transitions
        Transitions between the labels of the windows of ``fit``.
    access_ : Access
        What a prediction is given of the test person, beside its window.

    Notes
    -----
    A run of windows ends at the end of a recording, and where the next window does not touch the
    one before. Labels that a design has put in an order, as in trials of a task that alternates
    with rest, are predicted from that order: it is knowledge of the design, and not of the brain.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.estimators import HMMSmoothing, LinearProbe
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> X, y, subjects = as_sklearn(datasets.simulated.sleep(n_subjects=3, hours=1, n_chans=2))
    >>> probe = LinearProbe(LogBandPower())
    >>> smoothed = HMMSmoothing(probe).fit(X[subjects < 3], y[subjects < 3])
    >>> night = X[subjects == 3]
    >>> changes = lambda stages: int((stages[1:] != stages[:-1]).sum())
    >>> changes(smoothed.predict(night)) < changes(smoothed.classifier_.predict(night))
    True
    """

    access_ = Access.UNLABELLED

    def __init__(self, classifier: Any = None):
        self.classifier = classifier

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the classifier, and count the transitions.

        Parameters
        ----------
        X : windows
            Windows whose place in a recording is known: a dataset of braindecode, the X of
            ``as_sklearn``, or windows of a store.
        y : array-like, shape (n_windows,) | None
            Labels; None uses those of the dataset.

        Returns
        -------
        HMMSmoothing
            The fitted classifier itself.

        Raises
        ------
        TypeError
            When ``classifier`` has no ``predict_proba``.
        ValueError
            When the place of a window is unknown, as in arrays, or no two windows touch. Also all
            errors of the classifier.
        """
        if not hasattr(self.classifier, "predict_proba"):
            raise TypeError(
                f"{type(self.classifier).__name__} predicts no probabilities; pass a classifier "
                "with predict_proba."
            )
        windows = door.as_windows(X, y)
        _check_places(windows)
        with fresh_fit(self):
            self.classifier_ = clone(self.classifier).fit(windows, windows.labels)
            self.classes_ = self.classifier_.classes_
            code_of = {label: code for code, label in enumerate(self.classes_.tolist())}
            codes = np.array([code_of.get(label, -1) for label in windows.labels.tolist()])
            labelled = windows.with_labels(codes)[codes >= 0]
            class_weight = parameter_of_last("class_weight", self.classifier)
            found = Transitions.of(labelled, self.classes_, class_weight)
            if found is None:
                raise ValueError("No two labelled windows touch in time; pass windows in a row.")
            self.transitions_ = found
        return self

    @property
    def unlabeled_label(self) -> Any:
        """That of the classifier."""
        return parameter_of_last("unlabeled_label", self.classifier)

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        windows = door.as_windows(X, groups=groups)
        runs = _runs(windows)
        raw = np.asarray(self.classifier_.predict_proba(windows), dtype=float)
        smoothed, path = np.empty_like(raw), np.empty(len(raw), dtype=int)
        for run in runs:
            smoothed[run], path[run] = self.transitions_.smooth(raw[run])
        return self.classes_[path], smoothed


def _check_places(windows: Windows) -> None:
    if (windows.table["stop"] < 0).any():
        raise ValueError(
            "HMMSmoothing needs the place of every window in its recording, which arrays, lists "
            "and Epochs do not have; pass a dataset of braindecode, or the X of as_sklearn."
        )


def _runs(windows: Windows) -> list[np.ndarray]:
    """Return the positions of windows that follow each other, in the order of time."""
    _check_places(windows)
    table = windows.table[["recording", "start", "stop"]].reset_index(drop=True)
    table = table.sort_values(["recording", "start"])
    gaps = table["start"] - table["stop"].shift()
    gaps[table["recording"].diff() != 0] = np.inf
    if (gaps < 0).any():
        raise ValueError("Windows of a recording overlap; cut windows side by side.")
    return [run.to_numpy() for run in table.groupby((gaps != 0).cumsum()).groups.values()]
