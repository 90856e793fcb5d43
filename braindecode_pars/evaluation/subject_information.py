"""The person in features: how much of them is the person, and what is left without it.

Variance by person and by class beside permuted ones, accuracies before and after the linear
subspace of people is erased, and whether the classes differ in the same direction in all people.
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

#: What is measured: shares of variance, accuracies, and how well directions agree.
EXPLAINED, ACCURACY, COSINE = "explained variance", "balanced accuracy", "cosine"

#: Inverse penalty of the logistic regressions, and the largest number of folds.
_C, _FOLDS = 0.01, 5
Folds = Iterable[tuple[np.ndarray, np.ndarray]]


class LinearErasure(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Erase a concept, such as the person, from features: LEACE, the least change that does it.

    With the covariance :math:`\Sigma` of the features :math:`x`, their mean :math:`\mu`, the
    whitening :math:`W = (\Sigma^{1/2})^+`, and the orthogonal projection :math:`P` onto the columns
    of :math:`W \Sigma_{xz}`, where :math:`\Sigma_{xz}` is the covariance of features and one-hot
    labels,

    .. math::
        r(x) = x - W^+ P W (x - \mu) .

    All labels then have the same mean, so that no linear classifier, with any convex loss, is
    better than a constant on the rows of ``fit``. No other affine map with this property changes
    the features less, in mean squares. Of K labels at most K - 1 dimensions are lost.

    Attributes
    ----------
    mean_, sd_ : ndarray, shape (n_features,)
        Means and standard deviations of the features.
    projection_ : ndarray, shape (n_features, n_features)
        The matrix that takes ``x - mean_`` to what is subtracted from ``x``.

    Notes
    -----
    With fewer rows than features, what is left of a row of ``fit`` is the row minus the mean of its
    label, plus the mean: the same as centering. New rows lose only what the rows of ``fit`` show.

    References
    ----------
    Belrose et al. 2023, LEACE: Perfect linear concept erasure in closed form, arXiv:2306.03819.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LinearErasure
    >>> people = np.repeat([0, 1], 50)
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) + people[:, None] * [4, 0, 0]
    >>> erased = LinearErasure().fit(X, people).transform(X)
    >>> np.abs(erased[people == 0].mean(axis=0) - erased[people == 1].mean(axis=0)).max().round(9)
    np.float64(0.0)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Find what a linear model could know of the labels.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Features.
        y : array-like, shape (n,)
            Labels to erase, such as people.

        Returns
        -------
        LinearErasure
            The transformer itself.

        Raises
        ------
        ValueError
            When lengths differ, a feature is not finite, or a label is missing.
        """
        codes = _codes("y", y)
        X, codes = validate_data(self, X, codes, dtype=float)
        labels = np.eye(codes.max() + 1)[codes]
        self.mean_, self.sd_ = X.mean(axis=0), X.std(axis=0)
        # X - mean = U S V', so that rows of U are whitened features; the scale is of no account.
        white, spread, axes = np.linalg.svd(X - self.mean_, full_matrices=False)
        there = spread > spread.max(initial=0) * max(X.shape) * np.finfo(float).eps
        white, spread, axes = white[:, there], spread[there], axes[there]
        shared, strength, _ = np.linalg.svd(
            white.T @ (labels - labels.mean(axis=0)), full_matrices=False
        )
        shared = shared[:, strength > 1e-9 * np.sqrt(len(X))]
        self.projection_ = (axes.T / spread) @ shared @ shared.T @ (spread[:, None] * axes)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features without what is linear in the labels.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, reset=False)
        remainder = (X - self.mean_) - (X - self.mean_) @ self.projection_
        # A feature that is erased completely would be rounding, which a scaler would enlarge.
        return self.mean_ + np.where(np.abs(remainder) > 1e-9 * self.sd_, remainder, 0)


def explained_variance(X: Any, labels: Any) -> float:
    r"""Return the share of the variance of features that labels explain, the mean over features.

    For a feature with the values :math:`x_i`, and :math:`n_k` rows with label :math:`k` and mean
    :math:`\bar x_k`, it is the :math:`\eta^2` of a one-way analysis of variance,

    .. math::
        \eta^2 = \frac{\sum_k n_k (\bar x_k - \bar x)^2}{\sum_i (x_i - \bar x)^2} .

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        Features. Those that are constant are left out.
    labels : array-like, shape (n,)
        People or classes.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        When lengths differ, a feature is not finite, or a label is missing.

    Examples
    --------
    >>> from braindecode_pars.evaluation.subject_information import explained_variance
    >>> explained_variance([[0.0, 1.0], [0.0, 3.0], [2.0, 1.0], [2.0, 3.0]], [0, 0, 1, 1])
    0.5
    """
    scaled, codes = _scaled(X), _codes("labels", labels)
    check_consistent_length(scaled, codes)
    return _share(scaled, np.ones(len(scaled)), codes)


def permuted_explained_variances(
    X: Any,
    people: Any,
    recordings: Any,
    classes: Any | None = None,
    *,
    n_permutations: int = 200,
) -> np.ndarray:
    """Return shares of variance by person where whole recordings are given to other people.

    Windows of a recording are alike, so they stay together. Recordings change places with those
    that have the same classes. Where a person has one recording only, person and recording are one
    thing; blocks of time are then permuted instead, the first and the last half of each class.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        Features, in the order of time.
    people, recordings, classes : array-like, shape (n,)
        Person, recording and class of each row; without classes all are of one.
    n_permutations : int
        Number of permutations, with the seeds 0, 1, 2, ....

    Returns
    -------
    ndarray, shape (n_permutations,)

    Raises
    ------
    ValueError
        When lengths differ, a feature is not finite, or a subject, recording or class is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.subject_information import permuted_explained_variances
    >>> X, people = np.random.default_rng(0).normal(size=(80, 5)), np.repeat(range(8), 10)
    >>> permuted_explained_variances(X, people, np.repeat(range(16), 5)).mean().round(2)
    np.float64(0.09)
    """
    scaled = _scaled(X)
    rows = _rows(people, np.zeros(len(scaled)) if classes is None else classes, recordings)
    check_consistent_length(scaled, rows)
    if rows.groupby("subject")["recording"].nunique().min() > 1:
        blocks = rows["recording"]
        alike = rows.groupby(blocks)["class"].transform(lambda column: str(sorted(set(column))))
    else:
        cells = rows.groupby(["subject", "class"])
        half = 2 * cells.cumcount() // cells["class"].transform("size")
        blocks, alike = rows.groupby(["subject", "class", half]).ngroup(), rows["class"]
    _, first, inverse, sizes = np.unique(blocks, True, True, True)
    sums = _sums(scaled, inverse)
    block_subjects, alike = rows["subject"].to_numpy()[first], pd.factorize(alike)[0][first]
    permutations = (permuted_labels(block_subjects, alike, seed) for seed in range(n_permutations))
    return np.array([_share(sums, sizes, permutation) for permutation in permutations])


def audit_subjects(
    features: Any | Mapping[str, Any],
    classes: Any,
    people: Any,
    recordings: Any | None = None,
    *,
    n_permutations: int = 200,
) -> pd.DataFrame:
    r"""Measure how much of features is the person, and what is left when that is erased.

    Parameters
    ----------
    features : array-like, shape (n, n_features) | dict of str to these
        Features of windows, in the order of time within each recording: of an encoder, classical
        ones, a tangent space. Several are a dict of their names.
    classes, people : array-like, shape (n,)
        Class and person of each window.
    recordings : array-like, shape (n,) | None
        Recording of each window; None means one for each person.
    n_permutations : int
        Number of permutations for each null.

    Returns
    -------
    pandas.DataFrame
        One row for each number, with the columns:

        - ``features``: name of the features;
        - ``property``, ``measure`` and ``erased``, see below;
        - ``value``, ``sd``: the number, and its standard deviation over folds or people;
        - ``null``, ``null_high``, ``p``: mean, 95 % quantile and p-value of permutations; of an
          accuracy, chance level only;
        - ``held_out``: what the test windows have that no training window has.

        ============ ================= =================================================
        property     measure           what it is
        ============ ================= =================================================
        person,      share of variance :func:`explained_variance` by person and by class
        class
        person       balanced accuracy of a logistic regression, on later or earlier
                                       windows of the same people
        class        balanced accuracy of a logistic regression, on other people
        class        cosine            how well the direction from class to class agrees
                                       between people
        ============ ================= =================================================

        Accuracies are there once with ``erased="nothing"``, and again after
        :class:`LinearErasure` of people: ``"training subjects"``, fitted on training windows, and
        for classes also ``"all subjects"``. The last one uses the unlabeled windows of the test
        people, as centering does.

    Raises
    ------
    ValueError
        When lengths differ, there are fewer than two classes, or two subjects of one, a feature is
        not finite, or a subject, recording or class is missing.

    Notes
    -----
    Nulls keep windows of a recording together, because these are alike. Of the share by person,
    recordings are given to other people (:func:`permuted_explained_variances`). Of the share by class and the
    cosine, runs of windows of one class change their labels within a recording, or within a person
    where a recording has one class. Where each person has one class, people change theirs, and
    there is no direction within a person.

    People are told apart in five blocks of time of each class. The windows next to a test block are
    left out of training. Both regressions have standardized features, C = 0.01 and balanced
    classes.

    The direction of person :math:`s` is the matrix of class means, minus their mean over classes,
    scaled to length 1: with two classes, their difference :math:`d_s`. The cosine is the mean over
    people of :math:`\cos(d_s, \sum_{t \neq s} d_t)`.

    References
    ----------
    Lin et al. 2026, The identity trap in EEG foundation models, arXiv:2606.06647, for the question
    and the first such table. There, people are erased with the windows of all people.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import audit_subjects
    >>> rng, people, classes = np.random.default_rng(0), np.repeat(range(8), 20), np.arange(160) % 2
    >>> X = rng.normal(size=(160, 12)) + 3 * rng.normal(size=(8, 12))[people]
    >>> X[:, 0] += 2 * classes
    >>> table = audit_subjects(X, classes, people, n_permutations=50)
    >>> table[table["measure"] == "balanced accuracy"][["property", "erased", "value"]].round(2)
      property           erased  value
    2   person          nothing   1.00
    3   person  training people   0.12
    4    class          nothing   0.57
    5    class  training people   0.64
    6    class       all people   0.69
    """
    checks.integer(1).check("n_permutations", n_permutations)
    recording_names = people if recordings is None else recordings
    rows = _rows(people, classes, recording_names)
    of_class = rows.groupby("class")["subject"].nunique()
    if len(of_class) < 2 or of_class.min() < 2:
        raise ValueError(
            "An audit of the person needs at least two classes, and two people of each; it has "
            f"{len(of_class)} classes with {of_class.min()} people or more."
        )
    several = features if isinstance(features, Mapping) else {"features": features}
    table_rows = []
    for name, X in several.items():
        X = check_array(X, input_name=f"features {name!r}", dtype=float)
        check_consistent_length(X, rows)
        table_rows += [dict(features=name) | row for row in _numbers(X, rows, n_permutations)]
    return pd.DataFrame(table_rows)


def _numbers(X: np.ndarray, rows: pd.DataFrame, n_permutations: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table."""
    groups, classes = rows["subject"].to_numpy(), rows["class"].to_numpy()
    permuted = permuted_explained_variances(
        X, groups, rows["recording"], classes, n_permutations=n_permutations
    )
    yield _beside("subject", EXPLAINED, "nothing", explained_variance(X, groups), permuted)
    # Windows of a run keep one label, and runs of a recording change theirs; those of a person
    # where each recording has one class; and people where each person has one.
    of_recording, of_person = (rows.groupby(unit)["class"] for unit in ("recording", "subject"))
    varies = of_person.nunique().max() > 1
    runs = rows[["recording", "class"]].diff().ne(0).any(axis=1).cumsum() - 1 if varies else groups
    mixed = of_recording.transform("nunique") > 1
    strata = rows["recording"].where(mixed, -1 - groups) if varies else np.zeros(len(rows))
    first = np.unique(runs, return_index=True)[1]
    sums, sizes = _sums(_scaled(X), np.asarray(runs)), np.bincount(runs)
    within = np.asarray(strata)[first]
    null_classes = [permuted_labels(classes[first], within, seed) for seed in range(n_permutations)]
    shares = np.array([_share(sums, sizes, labels) for labels in null_classes])
    yield _beside("class", EXPLAINED, "nothing", explained_variance(X, classes), shares)

    n_folds = min(_FOLDS, rows.groupby("class")["subject"].nunique().min())
    folds = list(StratifiedGroupKFold(n_folds).split(X, classes, groups))
    in_time = list(_blocks_of_time(rows))
    of_all = LinearErasure().fit(X, groups).transform(X)
    for what, y, pairs, held_out, erased, features, concept in (
        ("subject", groups, in_time, "time blocks", "nothing", X, None),
        ("subject", groups, in_time, "time blocks", "training subjects", X, groups),
        ("class", classes, folds, "subjects", "nothing", X, None),
        ("class", classes, folds, "subjects", "training subjects", X, groups),
        ("class", classes, folds, "subjects", "all subjects", of_all, None),
    ):
        if pairs:
            scores = accuracies(features, y, pairs, erased=concept)
            row = dict(property=what, measure=ACCURACY, erased=erased, value=scores.mean())
            null = 1 / (y.max() + 1)
            yield row | dict(sd=scores.std(ddof=1), null=null, held_out=held_out)

    cosines = _agreement(sums, sizes, groups[first], classes[first])
    if len(cosines) > 1:
        nulls = [_agreement(sums, sizes, groups[first], labels).mean() for labels in null_classes]
        sd = cosines.std(ddof=1)
        yield _beside("class", COSINE, "subjects", cosines.mean(), np.array(nulls), sd)


def _beside(
    what: str, measure: str, held_out: str, value: float, permuted: np.ndarray, sd: float = np.nan
) -> dict[str, Any]:
    """Return the row of a number beside those of permutations."""
    row = dict(property=what, measure=measure, erased="nothing", value=value, sd=sd)
    p = (1 + (permuted >= value - 1e-12).sum()) / (1 + len(permuted))
    null = dict(null=permuted.mean(), null_high=float(np.quantile(permuted, 0.95)), p=float(p))
    return row | null | dict(held_out=held_out)


def accuracies(
    X: np.ndarray, y: np.ndarray, folds: Folds, *, erased: np.ndarray | None = None
) -> np.ndarray:
    """Return the balanced accuracy of a logistic regression in each fold.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        Features.
    y : ndarray, shape (n,)
        Labels.
    folds : iterable of (ndarray, ndarray)
        Training and test rows.
    erased : ndarray, shape (n,) | None
        Labels that :class:`LinearErasure` removes, fitted on the training rows.

    Returns
    -------
    ndarray, shape (n_folds,)

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
        known, other = X[train], X[test]
        if erased is not None:
            eraser = LinearErasure().fit(known, erased[train])
            known, other = eraser.transform(known), eraser.transform(other)
        classifier = linear_probe.logistic_regression(_C, "balanced").fit(known, y[train])
        options: Any = dict(labels=np.unique(y[test]), average="macro")
        scores.append(recall_score(y[test], classifier.predict(other), **options))
    return np.array(scores)


def _rows(subjects: Any, classes: Any, recordings: Any) -> pd.DataFrame:
    """Return numbers from 0 of the person, the class and the recording of each row."""
    named = {"subject": subjects, "class": classes, "recording": recordings}
    rows = pd.DataFrame({name: _codes(name, values) for name, values in named.items()})
    recording = rows.groupby(["subject", "recording"]).ngroup()
    return rows.assign(recording=pd.factorize(recording)[0])


def _codes(name: str, values: Any) -> np.ndarray:
    """Return numbers from 0 of the different values, in order of appearance."""
    return pd.factorize(known_column(name, values))[0]


def _blocks_of_time(rows: pd.DataFrame) -> Folds:
    """Yield training and test rows: a fifth of each person's windows of a class is tested."""
    cells = rows.groupby(["subject", "class"])
    block = _FOLDS * cells.cumcount() // cells["class"].transform("size")
    for fold in range(_FOLDS):
        tested = block == fold
        of_recording = tested.groupby(rows["recording"])
        near = of_recording.shift(1, fill_value=False) | of_recording.shift(-1, fill_value=False)
        train, test = np.flatnonzero(~tested & ~near), np.flatnonzero(tested)
        if len(test) and rows["subject"].iloc[train].nunique() > 1:
            yield train, test


def _scaled(X: Any) -> np.ndarray:
    """Return features with mean 0 and sum of squares 1, without constant ones."""
    X = check_array(X, dtype=float)
    centered = X - X.mean(axis=0)
    size = np.linalg.norm(centered, axis=0)
    there = size > 1e-12 * np.linalg.norm(X, axis=0)
    return centered[:, there] / size[there]


def _sums(X: np.ndarray, codes: np.ndarray, n_codes: int | None = None) -> np.ndarray:
    """Return the sum of the rows with each code."""
    shape = (n_codes or codes.max() + 1, len(X))
    return csr_array((np.ones(len(X)), (codes, np.arange(len(X)))), shape=shape) @ X


def _share(sums: np.ndarray, sizes: np.ndarray, codes: np.ndarray) -> float:
    """Return the share of variance by labels of blocks, from sums of scaled features in them."""
    squares = (_sums(sums, codes) ** 2).sum(axis=1) / np.bincount(codes, sizes)
    return float(squares.sum() / max(1, sums.shape[1]))


def _agreement(
    sums: np.ndarray, sizes: np.ndarray, subjects: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    """Return the cosine of each person's direction with the others'; of people with all classes."""
    n_classes, n_subjects = classes.max() + 1, subjects.max() + 1
    cells = subjects * n_classes + classes
    counts = np.bincount(cells, sizes, n_classes * n_subjects).reshape(n_subjects, n_classes, 1)
    has_all = counts.all(axis=(1, 2))
    means = _sums(sums, cells, counts.size).reshape(n_subjects, n_classes, sums.shape[1])[has_all]
    means /= counts[has_all]
    means -= means.mean(axis=1, keepdims=True)
    ways = means.reshape(len(means), n_classes * sums.shape[1])
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    others = ways.sum(axis=0) - ways
    return (ways * others).sum(axis=1) / np.linalg.norm(others, axis=1)
