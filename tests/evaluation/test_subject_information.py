"""The person in features: against plain computations, its nulls, and simulated people."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from braindecode_pars.evaluation import LinearErasure, audit_subjects, subject_information
from braindecode_pars.evaluation.subject_information import (
    ACCURACY,
    COSINE,
    EXPLAINED,
    _blocks_of_time,
    _rows,
    explained_variance,
    permuted_explained_variances,
)

N_PEOPLE, N_WINDOWS, N_FEATURES = 12, 40, 30


def simulated(of_person=2.0, of_recording=0.0, of_class=1.0, own_way=0.0, seed=0):
    """Two recordings a person, both with two classes; the person is an offset of all features."""
    rng = np.random.default_rng(seed)
    people = np.repeat(np.arange(N_PEOPLE), N_WINDOWS)
    recordings = np.arange(len(people)) // (N_WINDOWS // 2)
    classes = np.arange(len(people)) // 5 % 2
    ways = np.zeros((N_PEOPLE, N_FEATURES))
    ways[:, 0] = of_class
    ways += own_way * rng.standard_normal(ways.shape)
    X = rng.standard_normal((len(people), N_FEATURES)) + classes[:, None] * ways[people]
    X += of_person * rng.standard_normal((N_PEOPLE, N_FEATURES))[people]
    X += of_recording * rng.standard_normal((2 * N_PEOPLE, N_FEATURES))[recordings]
    return X, classes, people, recordings


def number(table, what, measure, erased="nothing"):
    rows = table[(table["property"] == what) & (table["measure"] == measure)]
    return rows.set_index("erased").loc[erased]


@pytest.fixture
def untrained(monkeypatch):
    """An audit without the accuracies of classifiers, which take most of its time."""
    monkeypatch.setattr(subject_information, "accuracies", lambda *_, **__: np.zeros(5))


# Shares of variance ------------------------------------------------------------------------------


def test_a_share_of_variance_is_that_of_an_anova():
    X, classes, people, _ = simulated()
    X[:, 5] = 3.0  # a constant feature is left out
    X[:, 7] *= 1e-6  # volts
    for labels in (people, classes):
        expected = []
        for feature in np.delete(X, 5, axis=1).T:
            model = ols("x ~ C(k)", pd.DataFrame(dict(x=feature, k=labels))).fit()
            squares = anova_lm(model)["sum_sq"]
            assert model.rsquared == pytest.approx(squares["C(k)"] / squares.sum())
            expected.append(model.rsquared)
        assert explained_variance(X, labels) == pytest.approx(np.mean(expected))


def test_a_recording_is_not_taken_for_a_person(untrained):
    """Recordings differ, and people do not: windows alone would be far above their permutations."""
    X, classes, people, recordings = simulated(of_person=0.0, of_recording=2.0)
    found = number(audit_subjects(X, classes, people, recordings), "subject", EXPLAINED)
    assert found["p"] > 0.05
    single = permuted_explained_variances(X, people, np.arange(len(X)))
    assert found["value"] > 5 * single.max()
    X, classes, people, recordings = simulated(of_person=1.0, of_recording=1.0)
    found = number(audit_subjects(X, classes, people, recordings), "subject", EXPLAINED)
    assert found["p"] == 1 / 201
    assert found["value"] > found["null_high"] > found["null"]


def test_permuted_shares_are_those_of_a_plain_permutation():
    X, classes, people, recordings = simulated()
    one_class = classes == 0  # of each third recording
    kept = np.flatnonzero(one_class | (recordings % 3 > 0))
    X, classes, people, recordings = (each[kept] for each in (X, classes, people, recordings))
    X[recordings % 3 == 0] += 10  # what all of these share is not of a person
    found = permuted_explained_variances(X, people, recordings, classes, n_permutations=40)
    rng = np.random.default_rng(0)
    plain = []
    for _ in range(400):
        given = people.copy()
        for wanted in ({0}, {0, 1}):
            own = [r for r in range(2 * N_PEOPLE) if {*classes[recordings == r]} == wanted]
            of = [people[recordings == r][0] for r in own]
            for recording, one in zip(own, rng.permutation(of), strict=True):
                given[recordings == recording] = one
        plain.append(explained_variance(X, given))
    assert found.mean() == pytest.approx(np.mean(plain), rel=0.03)
    assert found.std() == pytest.approx(np.std(plain), rel=0.4)


def test_the_p_values_of_shares_and_cosines_are_uniform_where_there_is_nothing(untrained):
    p = []
    for seed in range(40):
        X, classes, people, recordings = simulated(0.0, 1.0, 0.0, seed=seed)
        table = audit_subjects(X[:, :4], classes, people, recordings, n_permutations=19)
        p.append(table["p"].dropna().to_numpy())
    assert np.shape(p) == (40, 3)
    for each in np.transpose(p):
        assert 0.3 < each.mean() < 0.7
        assert (each <= 0.05).mean() < 0.15


def test_where_nothing_can_be_permuted_p_is_one(untrained):
    """No two recordings have the same classes, so no recording can be given to another person."""
    people, recordings = np.repeat([0, 1], 40), np.repeat(range(4), 20)
    # The classes a; b, c; a, b; c of the recordings
    classes = np.concatenate([np.resize(own, 20) for own in ([0], [1, 2], [0, 1], [2])])
    X = np.random.default_rng(0).normal(size=(80, 3)) + 5 * people[:, None]
    found = number(
        audit_subjects(X, classes, people, recordings, n_permutations=19), "subject", EXPLAINED
    )
    assert found["p"] == 1
    assert found["value"] == pytest.approx(found["null"])


def test_one_person_with_one_recording_makes_all_nulls_those_of_time():
    X, classes, people, recordings = simulated()
    some = recordings.copy()
    some[people == 3] = recordings[people == 3].min()
    found = permuted_explained_variances(X, people, some, classes, n_permutations=5)
    expected = permuted_explained_variances(X, people, people, classes, n_permutations=5)
    np.testing.assert_array_equal(found, expected)
    assert not np.allclose(
        found, permuted_explained_variances(X, people, recordings, classes, n_permutations=5)
    )


@pytest.mark.parametrize(("of_class", "low", "high"), [(0.0, 0.05, 0.999), (3.0, 0.0, 0.05)])
def test_a_class_that_is_frequent_in_some_people_is_not_significant(untrained, of_class, low, high):
    """Recordings of one class each, three of four of it in half of the people, who differ."""
    rng, n = np.random.default_rng(0), 5
    people = np.repeat(range(12), 4 * n)
    recordings = np.arange(len(people)) // n
    classes = (recordings % 4 == 0) ^ (people % 2 == 0)
    X = rng.normal(size=(len(people), 4)) + 3 * (people % 2)[:, None] + of_class * classes[:, None]
    found = number(
        audit_subjects(X, classes, people, recordings, n_permutations=99), "class", EXPLAINED
    )
    assert low < found["p"] <= high


@pytest.mark.parametrize("measure", [explained_variance, lambda X, y: LinearErasure().fit(X, y)])
def test_missing_values_are_refused(measure):
    X, classes, people, recordings = simulated()
    for missing in (np.nan, None):
        unknown = people.astype(object)
        unknown[:5] = missing
        with pytest.raises(ValueError, match="5 of 480 rows"):
            measure(X, unknown)
        for given in ((unknown, classes, recordings), (people, unknown, recordings)):
            with pytest.raises(ValueError, match="5 missing"):
                audit_subjects(X, given[1], given[0], given[2])
        with pytest.raises(ValueError, match="recording: 5 missing"):
            permuted_explained_variances(X, people, unknown)
    with pytest.raises(ValueError, match="inconsistent"):
        measure(X, people[:-1])
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        measure(X, people)


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
def test_erasure_is_that_of_the_equation(n_copies):
    X, _, people, _ = simulated()
    X = np.concatenate([X, X[:, :n_copies] @ np.ones((n_copies, n_copies))], axis=1)
    X *= np.geomspace(0.1, 10, X.shape[1])
    erased = LinearErasure().fit(X, people).transform(X)
    np.testing.assert_allclose(erased, plain_leace(X, people), atol=1e-6 * np.abs(X).max())


def test_after_erasure_no_linear_classifier_knows_the_person():
    X, _, people, _ = simulated(of_person=3.0)
    erased = LinearErasure().fit(X, people).transform(X)
    means = pd.DataFrame(erased).groupby(people).mean()
    np.testing.assert_allclose(means - means.mean(), 0, atol=1e-9)
    for classifier in (LogisticRegression(C=1e6, max_iter=2000), LinearSVC()):
        assert classifier.fit(X, people).score(X, people) > 0.95
    for C in (1e-2, 1e6):
        shares = LogisticRegression(C=C, max_iter=2000).fit(erased, people).predict_proba(erased)
        np.testing.assert_allclose(shares, 1 / N_PEOPLE, atol=1e-4)


def test_nothing_linear_that_changes_less_erases_as_much():
    """Centering by person is not linear in the features; projections onto the rest are."""
    X, _, people, _ = simulated()
    X = (
        X
        * np.linspace(1, 5, N_FEATURES)
        @ np.linalg.qr(np.random.default_rng(1).normal(size=(30, 30)))[0]
    )
    change = np.square(LinearErasure().fit(X, people).transform(X) - X).sum()
    means = pd.DataFrame(X).groupby(people).mean().to_numpy()
    axes = np.linalg.svd(means - X.mean(0), full_matrices=False)[2][: N_PEOPLE - 1]
    projected = X - (X - X.mean(0)) @ axes.T @ axes
    assert explained_variance(projected, people) < 1e-12
    assert change < np.square(projected - X).sum()


def test_erased_features_keep_their_names():
    X, _, people, _ = simulated()
    table = pd.DataFrame(X).add_prefix("x")
    found = LinearErasure().set_output(transform="pandas").fit(table, people).transform(table)
    assert [*found] == [*table]
    np.testing.assert_allclose(found, LinearErasure().fit(X, people).transform(X))


def test_with_few_rows_erasure_is_centering():
    X, _, people, _ = simulated()
    X, people = X[::20], people[::20]  # 24 windows of 30 features
    centered = X - pd.DataFrame(X).groupby(people).transform("mean").to_numpy() + X.mean(0)
    np.testing.assert_allclose(LinearErasure().fit(X, people).transform(X), centered, atol=1e-9)


def test_what_is_erased_completely_is_constant():
    """Rounding would be features again for a classifier that standardizes them."""
    X, _, people, _ = simulated()
    erased = LinearErasure().fit(X[:, :4], people).transform(X[:, :4])
    assert np.ptp(erased, axis=0).tolist() == [0, 0, 0, 0]


# The table ---------------------------------------------------------------------------------------


def test_people_are_at_chance_on_later_windows_and_the_class_stays():
    X, classes, people, recordings = simulated(of_person=3.0, of_class=3.0)
    table = audit_subjects(X, classes, people, recordings, n_permutations=20)
    assert number(table, "subject", ACCURACY)["value"] > 0.95
    erased = number(table, "subject", ACCURACY, "training subjects")
    assert erased["value"] == pytest.approx(erased["null"], abs=0.01)
    assert number(table, "class", ACCURACY)["value"] < 0.8
    assert number(table, "class", ACCURACY, "all subjects")["value"] > 0.88
    assert set(table["held_out"]) == {"nothing", "time blocks", "subjects"}


def test_directions_agree_where_people_have_the_same(untrained):
    for own_way, low, high in ((0.0, 0.8, 1.0), (3.0, -0.2, 0.3)):
        given = simulated(of_class=3.0 * (own_way == 0), own_way=own_way)
        found = number(audit_subjects(*given, n_permutations=50), "class", COSINE)
        assert low < found["value"] < high
        assert (found["p"] < 0.05) == (own_way == 0)


def test_the_cosine_is_that_of_a_plain_computation(untrained):
    X, classes, people, recordings = simulated(own_way=0.3)
    X = (X - X.mean(0)) / X.std(0)
    ways = []
    for one in range(N_PEOPLE - 1):
        own = [X[(people == one) & (classes == k)].mean(0) for k in (0, 1)]
        ways.append((own[1] - own[0]) / np.linalg.norm(own[1] - own[0]))
    cosines = []
    for i, way in enumerate(ways):
        others = np.mean([w for j, w in enumerate(ways) if j != i], axis=0)
        cosines.append(way @ others / np.linalg.norm(others))
    # The last person has one class, and no direction.
    kept = (people < N_PEOPLE - 1) | (classes == 0)
    X = np.concatenate([X[kept], X[~kept] * 0])[: kept.sum()]
    given = [each[kept] for each in (classes, people, recordings)]
    found = number(audit_subjects(X, *given, n_permutations=5), "class", COSINE)
    assert found["value"] == pytest.approx(np.mean(cosines), abs=0.02)


def test_no_window_is_trained_on_next_to_a_test_window():
    _, classes, people, recordings = simulated()
    tested = []
    for train, test in _blocks_of_time(_rows(people, classes, recordings)):
        tested += test.tolist()
        near = {i for row in test for i in (row - 1, row, row + 1) if 0 <= i < len(people)}
        near = {
            i for i in near if any(recordings[i] == recordings[j] for j in test if abs(i - j) < 2)
        }
        assert near.isdisjoint(train)
        assert {*range(len(people))} - near == {*train}
    assert sorted(tested) == [*range(len(people))]


def test_where_a_person_has_one_class():
    X, _, people, recordings = simulated()
    table = audit_subjects(X, people % 2, people, recordings, n_permutations=30)
    assert COSINE not in set(table["measure"])
    # With the people the class is gone, which is a trait of them.
    assert number(table, "class", ACCURACY, "all subjects")["value"] == pytest.approx(0.5)
    assert number(table, "class", EXPLAINED)["p"] > 0.05


def test_several_features_have_one_table():
    X, classes, people, _ = simulated()
    table = audit_subjects({"a": X, "b": X[:, :3]}, classes, people, n_permutations=3)
    assert table["features"].tolist() == ["a"] * 8 + ["b"] * 8
    alone = audit_subjects(X[:, :3], classes, people, n_permutations=3)
    columns = ["value", "null", "p"]
    np.testing.assert_allclose(table[8:][columns], alone[columns])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(classes=0), "at least two classes, and two people of each; it has 1 classes"),
        (dict(people=0), "it has 2 classes with 1 people"),
        (dict(features=np.nan), "features 'features' contains NaN"),
        (dict(features=None), "inconsistent numbers of samples"),
    ],
)
def test_what_cannot_be_audited(change, message):
    X, classes, people, _ = simulated()
    given = dict(features=X, classes=classes, people=people)
    for name, value in change.items():
        given[name] = X[1:] if value is None else given[name] * value
    with pytest.raises(ValueError, match=message):
        audit_subjects(**given)
