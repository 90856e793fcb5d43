"""Transition probabilities between classes, and smoothing of predictions over time.

Predictions of consecutive windows are smoothed with a hidden Markov model (HMM).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from braindecode_pars.windows import labels
from braindecode_pars.windows.table import Windows


@dataclass(frozen=True, eq=False)
class Transitions:
    r"""Transition probabilities between the classes of consecutive windows, to smooth predictions.

    The classes are the hidden states of a hidden Markov model (HMM). The transition probabilities
    are estimated from training windows.

    Attributes
    ----------
    matrix : ndarray, shape (n_classes, n_classes)
        Transition probabilities: probability of the class of a window (column), given the class of
        the previous window (row). Estimated from pairs of consecutive windows of the same
        recording, with one added to each count.
    shares : ndarray, shape (n_classes,)
        Proportion of each class in the training windows, computed with one added to each count.
        Used as the class probabilities of the first window of a recording, because a recording may
        begin at any time.
    prior : ndarray, shape (n_classes,)
        Prior class probabilities that are implicit in the predictions of the classifier, see Notes.

    Notes
    -----
    With the class :math:`c_t` and the signals :math:`x_t` of window :math:`t`, the model is

    .. math::
        p(c, x) = p(c_1) \prod_{t>1} p(c_t \mid c_{t-1}) \prod_t p(x_t \mid c_t) .

    A classifier that minimizes the cross entropy with class weights :math:`w_c` learns :math:`p(c
    \mid x) \propto \pi_c \, p(x \mid c)`. Its prior is :math:`\pi_c \propto w_c n_c`, where
    :math:`n_c` is the number of training windows of class :math:`c`. With
    ``class_weight="balanced"``, this prior is uniform; without class weights, it is the proportion
    of each class in the training windows.

    Therefore, :math:`p(c \mid x) / \pi_c` is the likelihood :math:`p(x \mid c)` up to a factor that
    is the same for all classes (Bourlard and Morgan 1994). Smoothed predictions always use the
    class proportions of the training data as prior, even if the classifier was trained with
    balanced class weights. With balanced class weights, smoothed predictions therefore contain
    fewer windows of rare classes than unsmoothed predictions.

    References
    ----------
    Rabiner 1989, A tutorial on hidden Markov models and selected applications in speech
    recognition, Proceedings of the IEEE 77. Bourlard and Morgan 1994, Connectionist speech
    recognition: a hybrid approach.

    Examples
    --------
    The classifier predicts class 1 for the second window, but class 0 for both of its neighbors.
    After smoothing, class 0 is most probable in all windows:

    >>> import numpy as np
    >>> from braindecode_pars.windows.transitions import Transitions
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
        """Estimate transition probabilities from training windows.

        Parameters
        ----------
        windows : Windows
            Labeled windows, with indices into ``classes`` as labels. If the times of the windows
            are unknown, as in an array, each window of a recording is assumed to follow the
            previous window in the array.
        classes : ndarray, shape (n_classes,)
            Label of each class.
        class_weight : "balanced" | dict | None
            Class weights that the classifier was trained with.

        Returns
        -------
        Transitions | None
            Estimated transitions. None if there are no consecutive windows.
        """
        codes, table = windows.labels, windows.table
        columns = ("recording", "item", "start", "stop")
        recordings, items, starts, stops = (table[name].to_numpy() for name in columns)
        is_known = stops >= 0
        starts, stops = np.where(is_known, starts, items), np.where(is_known, stops, items + 1)
        # Numbers of the times at which windows start and stop, unique across recordings
        factor = max(starts.max(initial=0), stops.max(initial=0)) + 1
        starts, stops = starts + factor * recordings, stops + factor * recordings
        order = starts.argsort()
        first, last = (np.searchsorted(starts[order], stops, side) for side in ("left", "right"))
        n_next = last - first  # number of windows that start where a window stops
        if not n_next.any():
            return None
        offsets = np.arange(n_next.sum()) - np.repeat(n_next.cumsum() - n_next - first, n_next)
        counts = np.ones((len(classes), len(classes)))
        np.add.at(counts, (np.repeat(codes, n_next), codes[order[offsets]]), 1)
        shares = np.bincount(codes, minlength=len(classes)) + 1.0
        weights = labels.cross_entropy_weights(codes, classes, class_weight)
        prior = np.bincount(codes, minlength=len(classes)).astype(float)
        prior *= 1 if weights is None else weights.numpy()
        prior[prior == 0] = 1  # for classes without windows, or with weight 0
        return cls(
            counts / counts.sum(axis=1, keepdims=True), shares / shares.sum(), prior / prior.sum()
        )

    @classmethod
    def from_json(cls, described: dict[str, Any] | None) -> Self | None:
        """Create transitions from a dict returned by :meth:`to_json`. For None, return None."""
        if described is None:
            return None
        return cls(**{name: np.array(values) for name, values in described.items()})

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as a dict of lists, which is JSON serializable."""
        return {name: values.tolist() for name, values in vars(self).items()}

    def smooth(self, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Smooth the predictions of consecutive windows.

        Parameters
        ----------
        probabilities : ndarray, shape (n_windows, n_classes)
            Class probabilities predicted by the classifier, in chronological order. A row of NaN is
            a window without a prediction; its smoothed probabilities depend only on the predictions
            for the other windows.

        Returns
        -------
        smoothed : ndarray, shape (n_windows, n_classes)
            Class probabilities given all windows (forward-backward algorithm).
        path : ndarray of int, shape (n_windows,)
            Most probable sequence of classes, as class indices (Viterbi algorithm). The class of a
            window in this sequence may differ from its class with the highest smoothed probability.
        """
        with np.errstate(divide="ignore"):  # a probability of zero
            emissions = np.log(probabilities.astype(float)) - np.log(self.prior)
        emissions[np.isnan(emissions[:, 0])] = 0.0
        step = np.log(self.matrix)
        # Forward pass: sum over all paths that end in a class, and the most probable of them.
        best = total = np.log(self.shares) + emissions[0]
        forward, origins = [total], []
        for emission in emissions[1:]:
            total = emission + np.logaddexp.reduce(total[:, None] + step, axis=0)
            forward.append(total)
            origins.append((best[:, None] + step).argmax(axis=0))
            best = emission + (best[:, None] + step).max(axis=0)
        # Backward pass: sum over all paths that begin in a class. The best path is traced back.
        remaining = np.zeros(len(step))
        backward, path = [remaining], [int(best.argmax())]
        for emission, origin in zip(emissions[:0:-1], origins[::-1], strict=True):
            remaining = np.logaddexp.reduce(step + emission + remaining, axis=1)
            backward.append(remaining)
            path.append(int(origin[path[-1]]))
        smoothed = softmax(np.array(forward) + np.array(backward[::-1]), axis=1)
        return smoothed, np.array(path[::-1])
