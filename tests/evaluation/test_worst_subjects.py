"""Scores on the worst subjects, against a plain computation."""

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.evaluation import worst_subjects


def rows_of(values, **columns):
    """Scores of one method: subject -> values of the seeds."""
    columns |= dict(protocol="compare", dataset="d", n_train_subjects=4, metric="kappa")
    return [
        dict(columns, subject=subject, seed=seed, value=value)
        for subject, of_seeds in values.items()
        for seed, value in enumerate(of_seeds)
    ]


def random_scores(n_subjects):
    rng, rows = np.random.default_rng(0), []
    for method in ("reference", "A", "B"):
        rows += rows_of({f"P{i:02d}": rng.random(3) for i in range(n_subjects)}, method=method)
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("n_subjects", "proportion", "n_worst"), [(11, 0.2, 3), (3, 0.1, 1), (25, 0.28, 7)]
)
def test_against_a_plain_computation(n_subjects, proportion, n_worst):
    scores = random_scores(n_subjects)
    result = worst_subjects(scores, "reference", proportion=proportion)
    means: dict = {}
    for row in scores.itertuples():
        means.setdefault((row.method, row.subject), []).append(row.value)
    means = {key: sum(values) / 3 for key, values in means.items()}
    subjects = sorted({subject for _, subject in means}, key=lambda s: means["reference", s])
    worst, others = subjects[:n_worst], subjects[n_worst:]
<<<<<<< HEAD
    assert result["is_reference"].tolist() == [True, False, False]
=======
    assert result["method"].tolist() == ["reference", "A", "B"]
>>>>>>> s62
    for row in result.itertuples():
        assert (row.n_worst, row.n_others) == (n_worst, len(others))
        assert row.subjects == ", ".join(worst)
        assert row.worst == pytest.approx(sum(means[row.method, s] for s in worst) / n_worst)
        assert row.others == pytest.approx(sum(means[row.method, s] for s in others) / len(others))


def test_the_subjects_of_a_dataset_are_the_same_for_all_numbers_of_training_subjects():
    """Selected by the mean over numbers."""
    few = pd.DataFrame(rows_of({"a": [0.0], "b": [0.3], "c": [0.4]}, method="reference"))
    many = few.assign(n_train_subjects=8, value=[0.9, 0.1, 0.8])
<<<<<<< HEAD
    other = few.assign(dataset="e", subject=["x", "y", "z"], value=[0.5, 0.6, 0.1])
    result = worst_subjects(pd.concat([few, many, other]), "reference")
    assert result["subjects"].tolist() == ["b", "b", "z"]
    assert result["worst"].tolist() == [0.3, 0.1, 0.1]
    # Subjects with equal scores are in the order of the scores.
    equal = few.assign(subject=["c", "a", "b"], value=[0.5, 0.5, 0.9])
    assert worst_subjects(equal, "reference", proportion=0.5)["subjects"].item() == "c, a"
=======
    result = worst_subjects(pd.concat([few, many]), "reference")
    assert result["subjects"].tolist() == ["b", "b"]
    assert result["worst"].tolist() == [0.3, 0.1]
>>>>>>> s62


def test_pooled_scores_and_subjects_without_a_score_of_each_method_are_excluded():
    """The amount of labeled data, NaN here for one method, distinguishes rows."""
    scores = random_scores(6).assign(n_windows=np.nan, test_subject_data="none")
    pooled = scores[scores["subject"] == "P00"].assign(subject="all", value=-1.0)
    is_missing = (scores["method"] == "A") & (scores["subject"] == "P03")
    missing = scores[~is_missing | (scores["seed"] > 5)]
    result = worst_subjects(pd.concat([missing, pooled]), "reference", proportion=0.5)
    expected = worst_subjects(scores[scores["subject"] != "P03"], "reference", proportion=0.5)
<<<<<<< HEAD
    assert result["n_dropped"].tolist() == [1, 1, 1]
    pd.testing.assert_frame_equal(result.assign(n_dropped=0), expected)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match=r"mae.*kappa"):
        worst_subjects(random_scores(4).assign(metric="mae"), "reference")
    with pytest.raises(ValueError, match="1 subjects"):
        worst_subjects(random_scores(1), "reference")
    with pytest.raises(ValueError, match="proportion"):
        worst_subjects(random_scores(4), "reference", proportion=1.0)
=======
    pd.testing.assert_frame_equal(result, expected)


def test_what_cannot_be_compared_is_refused():
    scores = random_scores(4)
    with pytest.raises(ValueError, match="tangent space"):
        worst_subjects(scores, "tangent space")
    with pytest.raises(ValueError, match="mae"):
        worst_subjects(scores.assign(metric="mae"), "reference")
    with pytest.raises(ValueError, match="dataset"):
        worst_subjects(pd.concat([scores, scores.assign(dataset="e")]), "reference")
    for proportion in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="proportion"):
            worst_subjects(scores, "reference", proportion=proportion)
>>>>>>> s62
