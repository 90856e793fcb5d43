"""Subject information in features: measure it, and remove it with linear concept erasure (LEACE).

There are three kinds of measures: the variance explained by subject and by class, compared with
permutations; balanced accuracies before and after removing subject information; and the agreement
between subjects in the direction from class to class in feature space.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.metrics import recall_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from braindecode_pars._common import checks
from braindecode_pars.baselines import linear_probe
from braindecode_pars.evaluation.changed_signals import permuted_labels
from braindecode_pars.windows.table import known_column

#: Name of a measure: proportion of variance explained by labels (subjects or classes).
EXPLAINED = "explained variance"
#: Name of a measure: balanced accuracy of a logistic regression.
ACCURACY = "balanced accuracy"
#: Name of a measure: cosine similarity, between subjects, of the direction from class to class.
COSINE = "cosine"

#: Inverse regularization strength of the logistic regressions.
_C = 0.01
#: Maximum number of folds.
_FOLDS = 5
Folds = Iterable[tuple[np.ndarray, np.ndarray]]


class LinearErasure(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Remove linear information about a label such as the subject: linear concept erasure (LEACE).

    The features :math:`x` are transformed to

    .. math::
        r(x) = x - W^+ P W (x - \mu) .

    Here :math:`\mu` and :math:`\Sigma` are the mean and the covariance of the features, and
    :math:`W = (\Sigma^{1/2})^+` is a whitening matrix, where :math:`^+` is the pseudoinverse.
    :math:`P` is the orthogonal projection onto the columns of :math:`W \Sigma_{xz}`, where
    :math:`\Sigma_{xz}` is the covariance of features and one-hot labels.

    After the transformation, the mean of the rows that were passed to ``fit`` is the same for all
    labels. On these rows, the best linear classifier for any convex loss therefore makes the same
    prediction for every row. Among all affine maps with this property, this map changes the
    features least (in mean squared difference). For K labels, at most K - 1 dimensions are removed.

    Attributes
    ----------
    mean_, sd_ : ndarray, shape (n_features,)
        Means and standard deviations of the features.
    projection_ : ndarray, shape (n_features, n_features)
        Matrix that maps ``x - mean_`` to the component that is subtracted from ``x``.

    Notes
    -----
    If there are fewer rows than features, the transformation subtracts, from each row passed to
    ``fit``, the mean of the rows with the same label, and adds the overall mean. From rows that
    were not passed to ``fit``, it removes only the subspace that was estimated in ``fit``.

    References
    ----------
    Belrose et al. 2023, LEACE: Perfect linear concept erasure in closed form, arXiv:2306.03819.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LinearErasure
    >>> subjects = np.repeat([0, 1], 50)
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) + subjects[:, None] * [4, 0, 0]
    >>> erased = LinearErasure().fit(X, subjects).transform(X)
    >>> means = [erased[subjects == subject].mean(axis=0) for subject in (0, 1)]
    >>> np.abs(means[0] - means[1]).max().round(9)
    np.float64(0.0)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the linear subspace that contains information about the labels.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Features.
        y : array-like, shape (n,)
            Labels to erase, such as subjects.

        Returns
        -------
        LinearErasure
            The transformer itself.

        Raises
        ------
        ValueError
            If lengths differ, a feature is not finite, or a label is missing.
        """
        codes = _codes("y", y)
        X, codes = validate_data(self, X, codes, dtype=float)
        labels = np.eye(codes.max() + 1)[codes]
        self.mean_, self.sd_ = X.mean(axis=0), X.std(axis=0)
        # X - mean = U S V', so the rows of U are whitened features. Their scale does not affect the
        # projection.
        white, scales, axes = np.linalg.svd(X - self.mean_, full_matrices=False)
        is_nonzero = scales > scales.max(initial=0) * max(X.shape) * np.finfo(float).eps
        white, scales, axes = white[:, is_nonzero], scales[is_nonzero], axes[is_nonzero]
        directions, strengths, _ = np.linalg.svd(
            white.T @ (labels - labels.mean(axis=0)), full_matrices=False
        )
        directions = directions[:, strengths > 1e-9 * np.sqrt(len(X))]
        unwhitened = (axes.T / scales) @ directions
        self.projection_ = unwhitened @ directions.T @ (scales[:, None] * axes)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Remove the linearly decodable label information from features.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n, n_features)
            Features from which the linear information about the labels of ``fit`` was removed.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, reset=False)
        remainder = (X - self.mean_) - (X - self.mean_) @ self.projection_
        # Only rounding errors remain of a feature that was removed, and scaling would amplify them.
        return self.mean_ + np.where(np.abs(remainder) > 1e-9 * self.sd_, remainder, 0)


def explained_variance(X: Any, labels: Any) -> float:
    r"""Compute the proportion of feature variance explained by labels, averaged over features.

    For a feature with the values :math:`x_i`, and :math:`n_k` rows with label :math:`k` and mean
    :math:`\bar x_k`, this is :math:`\eta^2` of a one-way analysis of variance,

    .. math::
        \eta^2 = \frac{\sum_k n_k (\bar x_k - \bar x)^2}{\sum_i (x_i - \bar x)^2} .

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        Features. Constant features are ignored.
    labels : array-like, shape (n,)
        Label of each row, such as its subject or class.

    Returns
    -------
    float
        Proportion of explained variance, from 0 to 1.

    Raises
    ------
    ValueError
        If lengths differ, a feature is not finite, or a label is missing.

    Examples
    --------
    >>> from braindecode_pars.evaluation.subject_information import explained_variance
    >>> explained_variance([[0.0, 1.0], [0.0, 3.0], [2.0, 1.0], [2.0, 3.0]], [0, 0, 1, 1])
    0.5
    """
    scaled, codes = _scaled(X), _codes("labels", labels)
    check_consistent_length(scaled, codes)
    return _explained_proportion(scaled, np.ones(len(scaled)), codes)


def permuted_explained_variances(
    X: Any,
    subjects: Any,
    recordings: Any,
    classes: Any | None = None,
    *,
    n_permutations: int = 200,
) -> np.ndarray:
    """Compute the variance explained by subject after permuting recordings between subjects.

    The permutations show how much explained variance to expect by chance. Windows of a recording
    are similar, so whole recordings are permuted, among recordings with the same set of classes. If
    any subject has only one recording, subject and recording cannot be distinguished. Time blocks
    are then permuted instead of recordings, for all subjects: the first half and the second half of
    the windows of each subject and class.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        Features, in chronological order.
    subjects, recordings, classes : array-like, shape (n,)
        Subject, recording and class of each row. If ``classes`` is None, all rows have one class.
    n_permutations : int
        Number of permutations. Their seeds are 0, 1, 2, ....

    Returns
    -------
    ndarray, shape (n_permutations,)
        Explained variance of each permutation.

    Raises
    ------
    ValueError
        If the arrays have different lengths, a feature is not finite, or a subject, recording or
        class is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.subject_information import permuted_explained_variances
    >>> X, subjects = np.random.default_rng(0).normal(size=(80, 5)), np.repeat(range(8), 10)
    >>> permuted_explained_variances(X, subjects, np.repeat(range(16), 5)).mean().round(2)
    np.float64(0.09)
    """
    scaled = _scaled(X)
    classes = np.zeros(len(scaled)) if classes is None else classes
    rows = _unit_codes(subjects, classes, recordings)
    check_consistent_length(scaled, rows)
    if rows.groupby("subject")["recording"].nunique().min() > 1:
        blocks = rows["recording"]
        strata = rows.groupby(blocks)["class"].transform(lambda column: str(sorted(set(column))))
    else:
        cells = rows.groupby(["subject", "class"])
        half = 2 * cells.cumcount() // cells["class"].transform("size")
        blocks, strata = rows.groupby(["subject", "class", half]).ngroup(), rows["class"]
    _, first, inverse, sizes = np.unique(blocks, True, True, True)
    sums = _sums(scaled, inverse)
    block_subjects, strata = rows["subject"].to_numpy()[first], pd.factorize(strata)[0][first]
    permutations = (permuted_labels(block_subjects, strata, seed) for seed in range(n_permutations))
    return np.array([_explained_proportion(sums, sizes, subjects) for subjects in permutations])


def audit_subjects(
    features: Any | Mapping[str, Any],
    classes: Any,
    subjects: Any,
    recordings: Any | None = None,
    *,
    n_permutations: int = 200,
) -> pd.DataFrame:
    r"""Measure subject information in features, and class decoding with and without it.

    Parameters
    ----------
    features : array-like, shape (n, n_features) | dict of str to array-like
        Features of windows, in chronological order within each recording. Examples are features of
        an encoder, hand-crafted features and tangent-space features. Pass several kinds of features
        as a dict with their names as keys.
    classes, subjects : array-like, shape (n,)
        Class and subject of each window.
    recordings : array-like, shape (n,) | None
        Recording of each window. If None, one recording per subject.
    n_permutations : int
        Number of permutations with which each null distribution is estimated.

    Returns
    -------
    pandas.DataFrame
        One row for each measurement, with the columns:

        - ``features``: name of the features;
        - ``property``, ``measure``: what was measured, see the table below;
        - ``erased``: subjects on which the erasure of subject information was fitted, see below;
        - ``value``, ``sd``: the measurement, and its standard deviation over folds or subjects;
        - ``null``, ``null_high``, ``p``: mean and 95 % quantile of the measure over permutations,
          and p-value; for a balanced accuracy, ``null`` is the chance level, and ``null_high`` and
          ``p`` are NaN;
        - ``held_out``: unit that is held out for testing.

        ========= ================== ======================================================
        property  measure            description
        ========= ================== ======================================================
        subject,  explained variance :func:`explained_variance` by subject and by class
        class
        subject   balanced accuracy  subject decoding with a logistic regression, tested on
                                     other time blocks of the same subjects
        class     balanced accuracy  class decoding with a logistic regression, tested on
                                     held-out subjects
        class     cosine             agreement between subjects in the direction from class
                                     to class, see Notes
        ========= ================== ======================================================

        Balanced accuracies are computed without removing anything (``erased="nothing"``), and after
        removing subject information with :class:`LinearErasure`. With
        ``erased="training subjects"``, the transformation is fitted on training windows. For class
        decoding, there is also ``erased="all subjects"``, which is transductive: like centering, it
        uses the unlabeled windows of the test subjects.

    Raises
    ------
    ValueError
        If the arrays have different lengths. If there are fewer than two classes, or fewer than two
        subjects of a class. If a feature is not finite. If a subject, recording or class is
        missing.

    Notes
    -----
    Windows of a recording are similar, so the permutations keep windows of a recording together.
    For the variance explained by subject, recordings are permuted between subjects
    (:func:`permuted_explained_variances`). For the variance explained by class and for the cosine,
    labels are permuted between blocks of consecutive windows of one class: within a recording or,
    if the recording has one class only, within a subject. If each subject has one class only,
    classes are permuted between subjects, and the cosine is not computed.

    Subject decoding has five folds. Each fold tests one time block of each subject and class, which
    contains a fifth of the windows. The windows next to a test block are excluded from training.
    Both logistic regressions use standardized features, C = 0.01 and balanced class weights.

    The direction :math:`d_s` of subject :math:`s` is computed from the class means of this subject:
    their mean over classes is subtracted, and the result is scaled to length 1. For two classes,
    the direction is the difference between the class means. The cosine is the mean over subjects of
    :math:`\cos(d_s, \sum_{t \neq s} d_t)`.

    References
    ----------
    Lin et al. 2026, The identity trap in EEG foundation models, arXiv:2606.06647, introduced this
    analysis. In their analysis, the erasure is fitted on the windows of all subjects.

    Examples
    --------
    Removing information about eight subjects reduces subject decoding to chance level (1/8). Class
    decoding increases, because in these features the subjects differ more than the classes:

    >>> import numpy as np
    >>> from braindecode_pars.evaluation import audit_subjects
    >>> rng, classes = np.random.default_rng(0), np.arange(160) % 2
    >>> subjects = np.repeat(range(8), 20)
    >>> X = rng.normal(size=(160, 12)) + 3 * rng.normal(size=(8, 12))[subjects]
    >>> X[:, 0] += 2 * classes
    >>> table = audit_subjects(X, classes, subjects, n_permutations=50)
    >>> table[table["measure"] == "balanced accuracy"][["property", "erased", "value"]].round(2)
      property             erased  value
    2  subject            nothing   1.00
    3  subject  training subjects   0.12
    4    class            nothing   0.57
    5    class  training subjects   0.64
    6    class       all subjects   0.69
    """
    checks.integer(1).check("n_permutations", n_permutations)
    recording_names = subjects if recordings is None else recordings
    rows = _unit_codes(subjects, classes, recording_names)
    n_subjects = rows.groupby("class")["subject"].nunique()
    if len(n_subjects) < 2 or n_subjects.min() < 2:
        raise ValueError(
            "audit_subjects requires at least 2 classes and at least 2 subjects per class. Number "
            f"of classes: {len(n_subjects)}. Smallest number of subjects of a class: "
            f"{n_subjects.min()}. Add subjects or classes."
        )
    features_by_name = features if isinstance(features, Mapping) else {"features": features}
    table_rows = []
    for name, X in features_by_name.items():
        X = check_array(X, input_name=f"features {name!r}", dtype=float)
        check_consistent_length(X, rows)
        table_rows += [dict(features=name) | row for row in _audit_rows(X, rows, n_permutations)]
    return pd.DataFrame(table_rows)


def _audit_rows(X: np.ndarray, rows: pd.DataFrame, n_permutations: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of ``audit_subjects`` for one kind of features."""
    groups, classes = rows["subject"].to_numpy(), rows["class"].to_numpy()
    permuted = permuted_explained_variances(
        X, groups, rows["recording"], classes, n_permutations=n_permutations
    )
    yield _permutation_row("subject", EXPLAINED, "nothing", explained_variance(X, groups), permuted)
    # Permute the classes of blocks of consecutive windows of one class: within recordings; within
    # subjects, if a recording has one class only; or between subjects, if each subject has one
    # class only.
    by_recording, by_subject = (rows.groupby(unit)["class"] for unit in ("recording", "subject"))
    varies = by_subject.nunique().max() > 1
    blocks = rows[["recording", "class"]].diff().ne(0).any(axis=1).cumsum() - 1
    blocks = blocks if varies else groups
    mixed = by_recording.transform("nunique") > 1
    strata = rows["recording"].where(mixed, -1 - groups) if varies else np.zeros(len(rows))
    first = np.unique(blocks, return_index=True)[1]
    sums, sizes = _sums(_scaled(X), np.asarray(blocks)), np.bincount(blocks)
    block_strata, seeds = np.asarray(strata)[first], range(n_permutations)
    null_classes = [permuted_labels(classes[first], block_strata, seed) for seed in seeds]
    null_values = [_explained_proportion(sums, sizes, labels) for labels in null_classes]
    value = explained_variance(X, classes)
    yield _permutation_row("class", EXPLAINED, "nothing", value, np.array(null_values))

    n_folds = min(_FOLDS, rows.groupby("class")["subject"].nunique().min())
    folds = list(StratifiedGroupKFold(n_folds).split(X, classes, groups))
    in_time = list(_blocks_of_time(rows))
    erased_in_all = LinearErasure().fit(X, groups).transform(X)
    for target, y, pairs, held_out, erased, features, concept in (
        ("subject", groups, in_time, "time blocks", "nothing", X, None),
        ("subject", groups, in_time, "time blocks", "training subjects", X, groups),
        ("class", classes, folds, "subjects", "nothing", X, None),
        ("class", classes, folds, "subjects", "training subjects", X, groups),
        ("class", classes, folds, "subjects", "all subjects", erased_in_all, None),
    ):
        if pairs:
            scores = accuracies(features, y, pairs, erased=concept)
            row = dict(property=target, measure=ACCURACY, erased=erased, value=scores.mean())
            null = 1 / (y.max() + 1)
            yield row | dict(sd=scores.std(ddof=1), null=null, held_out=held_out)

    cosines = _cosines(sums, sizes, groups[first], classes[first])
    if len(cosines) > 1:
        nulls = [_cosines(sums, sizes, groups[first], labels).mean() for labels in null_classes]
        sd = cosines.std(ddof=1)
        yield _permutation_row("class", COSINE, "subjects", cosines.mean(), np.array(nulls), sd)


def _permutation_row(
    target: str, measure: str, held_out: str, value: float, permuted: np.ndarray, sd: float = np.nan
) -> dict[str, Any]:
    """Return the row of a measurement with its permutation test."""
    row = dict(property=target, measure=measure, erased="nothing", value=value, sd=sd)
    p = (1 + (permuted >= value - 1e-12).sum()) / (1 + len(permuted))
    null = dict(null=permuted.mean(), null_high=float(np.quantile(permuted, 0.95)), p=float(p))
    return row | null | dict(held_out=held_out)


def accuracies(
    X: np.ndarray, y: np.ndarray, folds: Folds, *, erased: np.ndarray | None = None
) -> np.ndarray:
    """Train and test a logistic regression in each fold, and return the balanced accuracies.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        Features.
    y : ndarray, shape (n,)
        Labels.
    folds : iterable of (ndarray, ndarray)
        Training and test rows.
    erased : ndarray, shape (n,) | None
        Labels, such as subjects, whose information is removed with :class:`LinearErasure`, fitted
        on the training rows. If None, nothing is removed.

    Returns
    -------
    ndarray, shape (n_folds,)
        Balanced accuracy of each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.subject_information import accuracies
    >>> y = np.repeat([0, 1], 20)
    >>> accuracies(y[:, None] + 0.0, y, [(np.arange(0, 40, 2), np.arange(1, 40, 2))])
    array([1.])
    """
    scores = []
    for train, test in folds:
        X_train, X_test = X[train], X[test]
        if erased is not None:
            eraser = LinearErasure().fit(X_train, erased[train])
            X_train, X_test = eraser.transform(X_train), eraser.transform(X_test)
        classifier = linear_probe.logistic_regression(_C, "balanced").fit(X_train, y[train])
        options: Any = dict(labels=np.unique(y[test]), average="macro")
        scores.append(recall_score(y[test], classifier.predict(X_test), **options))
    return np.array(scores)


def _unit_codes(subjects: Any, classes: Any, recordings: Any) -> pd.DataFrame:
    """Return integer codes of the subject, class and recording of each row."""
    columns = {"subject": subjects, "class": classes, "recording": recordings}
    rows = pd.DataFrame({name: _codes(name, values) for name, values in columns.items()})
    recording = rows.groupby(["subject", "recording"]).ngroup()
    return rows.assign(recording=pd.factorize(recording)[0])


def _codes(name: str, values: Any) -> np.ndarray:
    """Return integer codes of values, numbered in order of appearance."""
    return pd.factorize(known_column(name, values))[0]


def _blocks_of_time(rows: pd.DataFrame) -> Folds:
    """Yield training and test rows; each fold tests 20 % of the windows per subject and class."""
    cells = rows.groupby(["subject", "class"])
    block = _FOLDS * cells.cumcount() // cells["class"].transform("size")
    for fold in range(_FOLDS):
        is_test = block == fold
        by_recording = is_test.groupby(rows["recording"])
        is_next = by_recording.shift(1, fill_value=False) | by_recording.shift(-1, fill_value=False)
        train, test = np.flatnonzero(~is_test & ~is_next), np.flatnonzero(is_test)
        if len(test) and rows["subject"].iloc[train].nunique() > 1:
            yield train, test


def _scaled(X: Any) -> np.ndarray:
    """Scale features to mean 0 and sum of squares 1, and drop constant features."""
    X = check_array(X, dtype=float)
    centered = X - X.mean(axis=0)
    size = np.linalg.norm(centered, axis=0)
    varies = size > 1e-12 * np.linalg.norm(X, axis=0)
    return centered[:, varies] / size[varies]


def _sums(X: np.ndarray, codes: np.ndarray, n_codes: int | None = None) -> np.ndarray:
    """Return the sum of the rows with the same code, for each code."""
    shape = (n_codes or codes.max() + 1, len(X))
    return csr_array((np.ones(len(X)), (codes, np.arange(len(X)))), shape=shape) @ X


def _explained_proportion(sums: np.ndarray, sizes: np.ndarray, codes: np.ndarray) -> float:
    """Return the proportion of variance explained by block labels, from feature sums per block."""
    squares = (_sums(sums, codes) ** 2).sum(axis=1) / np.bincount(codes, sizes)
    return float(squares.sum() / max(1, sums.shape[1]))


def _cosines(
    sums: np.ndarray, sizes: np.ndarray, subjects: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    """Return the cosine between the direction of each subject and of all other subjects together.

    Only subjects with all classes are included.
    """
    n_classes, n_subjects = classes.max() + 1, subjects.max() + 1
    cells = subjects * n_classes + classes
    counts = np.bincount(cells, sizes, n_classes * n_subjects).reshape(n_subjects, n_classes, 1)
    has_all = counts.all(axis=(1, 2))
    means = _sums(sums, cells, counts.size).reshape(n_subjects, n_classes, sums.shape[1])[has_all]
    means /= counts[has_all]
    means -= means.mean(axis=1, keepdims=True)
    directions = means.reshape(len(means), n_classes * sums.shape[1])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    other_sums = directions.sum(axis=0) - directions
    return (directions * other_sums).sum(axis=1) / np.linalg.norm(other_sums, axis=1)
