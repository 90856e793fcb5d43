"""Subject information in features: reference computations, permutations, simulated subjects."""

import itertools

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import ols

from braindecode_pars.evaluation import LinearErasure, audit_subjects, subject_information
from braindecode_pars.evaluation.changed_signals import permuted_labels
from braindecode_pars.evaluation.subject_information import (
    ACCURACY,
    COSINE,
    EXPLAINED,
    _blocks_of_time,
    _unit_codes,
    explained_variance,
    permuted_explained_variances,
)

N_SUBJECTS, N_WINDOWS, N_FEATURES = 12, 40, 30


def simulated(subject_effect=2.0, recording_effect=0.0, class_effect=1.0, own_way=0.0, seed=0):
    """Two recordings per subject, both with two classes; subjects are offsets of all features."""
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(N_SUBJECTS), N_WINDOWS)
    recordings = np.arange(len(subjects)) // (N_WINDOWS // 2)
    classes = np.arange(len(subjects)) // 5 % 2
    ways = np.zeros((N_SUBJECTS, N_FEATURES))
    ways[:, 0] = class_effect
    ways += own_way * rng.standard_normal(ways.shape)
    X = rng.standard_normal((len(subjects), N_FEATURES)) + classes[:, None] * ways[subjects]
    X += subject_effect * rng.standard_normal((N_SUBJECTS, N_FEATURES))[subjects]
    X += recording_effect * rng.standard_normal((2 * N_SUBJECTS, N_FEATURES))[recordings]
    return X, classes, subjects, recordings


def number(table, what, measure, erased="nothing"):
    rows = table[(table["property"] == what) & (table["measure"] == measure)]
    return rows.set_index("erased").loc[erased]


@pytest.fixture
def untrained(monkeypatch):
    """An audit without the accuracies of classifiers, which take most of its time."""
    monkeypatch.setattr(subject_information, "accuracies", lambda *_, **__: np.zeros(5))


# Shares of variance ------------------------------------------------------------------------------


def test_explained_variance_matches_an_anova():
    X, classes, subjects, _ = simulated()
    X = X[:, :9]
    X[:, 5] = 3.0  # a constant feature is left out
    X[:, 7] *= 1e-6  # volts
    for labels in (subjects, classes):
        expected = []
        for feature in np.delete(X, 5, axis=1).T:
            model = ols("x ~ C(k)", pd.DataFrame(dict(x=feature, k=labels))).fit()
            expected.append(model.rsquared)
        assert explained_variance(X, labels) == pytest.approx(np.mean(expected))


def test_permuted_explained_variances_match_a_plain_permutation():
    X, classes, subjects, recordings = simulated()
    one_class = classes == 0  # of each third recording
    selected = np.flatnonzero(one_class | (recordings % 3 > 0))
    X, classes, subjects, recordings = (
        each[selected] for each in (X, classes, subjects, recordings)
    )
    X[recordings % 3 == 0] += 10  # an offset shared by recordings of all subjects
    result = permuted_explained_variances(X, subjects, recordings, classes, n_permutations=40)
    rng = np.random.default_rng(0)
    plain = []
    for _ in range(200):
        permuted = subjects.copy()
        for wanted in ({0}, {0, 1}):
            same_classes = [
                r for r in range(2 * N_SUBJECTS) if {*classes[recordings == r]} == wanted
            ]
            of = [subjects[recordings == r][0] for r in same_classes]
            for recording, one in zip(same_classes, rng.permutation(of), strict=True):
                permuted[recordings == recording] = one
        plain.append(explained_variance(X, permuted))
    assert result.mean() == pytest.approx(np.mean(plain), rel=0.03)
    assert result.std() == pytest.approx(np.std(plain), rel=0.4)


@pytest.mark.slow
def test_p_values_are_uniform_without_an_effect(untrained):
    p = []
    for seed in range(25):
        X, classes, subjects, recordings = simulated(0.0, 1.0, 0.0, seed=seed)
        table = audit_subjects(X[:, :4], classes, subjects, recordings, n_permutations=19)
        p.append(table["p"].dropna().to_numpy())
    assert np.shape(p) == (25, 3)
    for each in np.transpose(p):
        assert 0.3 < each.mean() < 0.7
        assert (each <= 0.05).mean() < 0.15


def test_p_is_one_if_nothing_can_be_permuted(untrained):
    """No two recordings have the same classes, so recordings cannot be permuted."""
    subjects, recordings = np.repeat([0, 1], 40), np.repeat(range(4), 20)
    # The classes a; b, c; a, b; c of the recordings
    classes = np.concatenate([np.resize(values, 20) for values in ([0], [1, 2], [0, 1], [2])])
    X = np.random.default_rng(0).normal(size=(80, 3)) + 5 * subjects[:, None]
    result = number(
        audit_subjects(X, classes, subjects, recordings, n_permutations=19), "subject", EXPLAINED
    )
    assert result["p"] == 1
    assert result["value"] == pytest.approx(result["null"])


def test_one_subject_with_one_recording_means_time_blocks_are_permuted():
    X, classes, subjects, recordings = simulated()
    some = recordings.copy()
    some[subjects == 3] = recordings[subjects == 3].min()
    result = permuted_explained_variances(X, subjects, some, classes, n_permutations=5)
    expected = permuted_explained_variances(X, subjects, subjects, classes, n_permutations=5)
    np.testing.assert_array_equal(result, expected)
    # The first and the second half of the windows of each subject and class
    half = np.zeros(len(X), dtype=int)
    for cell in itertools.product(range(N_SUBJECTS), range(2)):
        rows = np.flatnonzero((subjects == cell[0]) & (classes == cell[1]))
        half[rows[(len(rows) + 1) // 2 :]] = 1
    cells = [*zip(subjects.tolist(), classes.tolist(), half.tolist(), strict=True)]
    blocks = sorted(set(cells))
    of_block = [blocks.index(cell) for cell in cells]
    block_subjects, block_classes, _ = np.transpose(blocks)
    for seed, value in enumerate(result):
        permuted = permuted_labels(block_subjects, block_classes, seed)
        assert value == pytest.approx(explained_variance(X, permuted[of_block]))
    assert not np.allclose(
        result, permuted_explained_variances(X, subjects, recordings, classes, n_permutations=5)
    )


@pytest.mark.parametrize(("class_effect", "low", "high"), [(0.0, 0.05, 0.999), (3.0, 0.0, 0.05)])
def test_a_class_that_is_frequent_in_some_subjects_is_not_significant(
    untrained, class_effect, low, high
):
    """Each recording has one class; half of the subjects have it in three of four recordings."""
    rng, n = np.random.default_rng(0), 5
    subjects = np.repeat(range(12), 4 * n)
    recordings = np.arange(len(subjects)) // n
    classes = (recordings % 4 == 0) ^ (subjects % 2 == 0)
    X = (
        rng.normal(size=(len(subjects), 4))
        + 3 * (subjects % 2)[:, None]
        + class_effect * classes[:, None]
    )
    result = number(
        audit_subjects(X, classes, subjects, recordings, n_permutations=99), "class", EXPLAINED
    )
    assert low < result["p"] <= high


@pytest.mark.parametrize("measure", [explained_variance, lambda X, y: LinearErasure().fit(X, y)])
def test_missing_values_are_refused(measure):
    X, classes, subjects, recordings = simulated()
    unknown = subjects.astype(object)
    unknown[:5] = None
    with pytest.raises(ValueError, match="5 of 480 rows"):
        measure(X, unknown)
    for arrays in ((classes, unknown, recordings), (unknown, subjects, recordings)):
        with pytest.raises(ValueError, match="5 of 480"):
            audit_subjects(X, *arrays)
    with pytest.raises(ValueError, match=r"5 of 480 .* recording"):
        permuted_explained_variances(X, subjects, unknown)
    with pytest.raises(ValueError, match="of classes: 1"):
        audit_subjects(X, classes * 0, subjects, recordings)
    with pytest.raises(ValueError, match=r"of classes: 2.* of a class: 1"):
        audit_subjects(X, classes, subjects * 0, recordings)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        measure(X, subjects)


# Erasure -----------------------------------------------------------------------------------------


def plain_leace(X, labels):
    """The equation of the paper, with matrix roots."""
    Z = np.stack([labels == one for one in np.unique(labels)], axis=1).astype(float)
    x, z = X - X.mean(0), Z - Z.mean(0)
    values, vectors = np.linalg.eigh(x.T @ x / len(X))
    keep = values > 1e-10 * values.max()
    root = vectors[:, keep] * np.sqrt(values[keep]) @ vectors[:, keep].T
    W = np.linalg.pinv(root, rcond=1e-8, hermitian=True)
    columns = W @ (x.T @ z / len(X))
    P = columns @ np.linalg.pinv(columns, rcond=1e-6)
    return np.array([row - np.linalg.pinv(W, rcond=1e-8) @ P @ W @ (row - X.mean(0)) for row in X])


@pytest.mark.parametrize("n_copies", [0, 3])
def test_erasure_matches_its_equation(n_copies):
    X, _, subjects, _ = simulated()
    X = np.concatenate([X, X[:, :n_copies] @ np.ones((n_copies, n_copies))], axis=1)
    X *= np.geomspace(0.1, 10, X.shape[1])
    erased = LinearErasure().fit(X, subjects).transform(X)
    np.testing.assert_allclose(erased, plain_leace(X, subjects), atol=1e-6 * np.abs(X).max())


def test_with_few_rows_erasure_is_centering():
    X, _, subjects, _ = simulated()
    X, subjects = X[::20], subjects[::20]  # 24 windows of 30 features
    centered = X - pd.DataFrame(X).groupby(subjects).transform("mean").to_numpy() + X.mean(0)
    np.testing.assert_allclose(LinearErasure().fit(X, subjects).transform(X), centered, atol=1e-9)


def test_completely_erased_features_are_constant():
    """Rounding would be features again for a classifier that standardizes them."""
    X, _, subjects, _ = simulated()
    erased = LinearErasure().fit(X[:, :4], subjects).transform(X[:, :4])
    assert np.ptp(erased, axis=0).tolist() == [0, 0, 0, 0]


# The table ---------------------------------------------------------------------------------------


def test_after_erasure_subjects_are_at_chance_level_and_classes_are_not():
    X, classes, subjects, recordings = simulated(subject_effect=3.0, class_effect=3.0)
    table = audit_subjects(X, classes, subjects, recordings, n_permutations=20)
    assert number(table, "subject", ACCURACY)["value"] > 0.95
    erased = number(table, "subject", ACCURACY, "training subjects")
    assert erased["value"] == pytest.approx(erased["null"], abs=0.01)
    assert number(table, "class", ACCURACY)["value"] < 0.8
    assert number(table, "class", ACCURACY, "all subjects")["value"] > 0.88
    assert set(table["held_out"]) == {"nothing", "time blocks", "subjects"}


def test_the_cosine_matches_a_plain_computation(untrained):
    X, classes, subjects, recordings = simulated(own_way=0.3)
    X = (X - X.mean(0)) / X.std(0)
    ways = []
    for one in range(N_SUBJECTS - 1):
        means = [X[(subjects == one) & (classes == k)].mean(0) for k in (0, 1)]
        ways.append((means[1] - means[0]) / np.linalg.norm(means[1] - means[0]))
    cosines = []
    for i, way in enumerate(ways):
        others = np.mean([w for j, w in enumerate(ways) if j != i], axis=0)
        cosines.append(way @ others / np.linalg.norm(others))
    # The last subject has one class, and no direction.
    selected = (subjects < N_SUBJECTS - 1) | (classes == 0)
    X = np.concatenate([X[selected], X[~selected] * 0])[: selected.sum()]
    arrays = [each[selected] for each in (classes, subjects, recordings)]
    result = number(audit_subjects(X, *arrays, n_permutations=50), "class", COSINE)
    assert result["value"] == pytest.approx(np.mean(cosines), abs=0.02)
    assert result["p"] < 0.05


def test_no_window_is_trained_on_next_to_a_test_window():
    _, classes, subjects, recordings = simulated()
    rows, tested = range(len(subjects)), []
    for train, test in _blocks_of_time(_unit_codes(subjects, classes, recordings)):
        tested += test.tolist()
        pairs = [(i, row) for row in test for i in (row - 1, row, row + 1) if i in rows]
        near = {i for i, row in pairs if recordings[i] == recordings[row]}
        assert {*train} == {*rows} - near
    assert sorted(tested) == [*rows]
