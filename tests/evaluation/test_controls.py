"""Control analyses of simulated windows, in which the informative signal property is known."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from braindecode_pars.evaluation import (
    ControlSignals,
    LogBandPower,
    compare,
    control_gains,
    controls,
    describe_controls,
    label_efficiency,
    paired_tests,
)
from braindecode_pars.evaluation.controls import CONTROLS
from braindecode_pars.evaluation.random_effects import corrected_mean, crossed_mean
from braindecode_pars.windows.convert import as_windows

SFREQ, N_SUBJECTS, N_WINDOWS = 100, 12, 16


def slopes(X):
    signals = np.array(X)
    times = np.linspace(-1, 1, signals.shape[-1])
    return signals @ times / (signals @ signals.transpose(0, 2, 1)).trace(axis1=1, axis2=2)[:, None]


def powers(X):
    return np.log(np.array(X).var(axis=-1))


def classifier(features):
    return make_pipeline(FunctionTransformer(features), StandardScaler(), LogisticRegression())


METHODS = {
    "slopes": classifier(slopes),
    "powers": classifier(powers),
    "chance": make_pipeline(FunctionTransformer(powers), DummyClassifier(strategy="uniform")),
}


def simulated():
    """Windows whose class is in the direction of a linear trend."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], N_SUBJECTS * N_WINDOWS // 2)
    groups = np.repeat(np.arange(N_SUBJECTS), N_WINDOWS)
    X = rng.normal(size=(len(y), 2, 3 * SFREQ))
    times = np.linspace(-1, 1, 3 * SFREQ)
    X += (2 * y - 1)[:, None, None] * np.stack([times, -times])
    return as_windows(1e-5 * X, y, groups, sfreq=SFREQ)


TESTED = dict(test_subjects=range(6), n_train_subjects=[3], seeds=range(2), verbose=0)


@pytest.mark.slow
def test_a_difference_in_linear_trends_needs_low_frequencies():
    methods = {name: METHODS[name] for name in ("slopes", "chance")}
    with pytest.warns(UserWarning, match="'eyes'.*EOG"):
        scores = controls(methods, simulated(), **TESTED)
    gains = control_gains(scores, against="chance")
    shares = gains[gains["control"] != "labels"].set_index("control")["share"]
    assert shares.loc[["slow", "detrended", "phase"]].abs().max() < 0.25
    assert shares["amplitude"] > 0.9
    first, limitation, permuted = describe_controls(gains).splitlines()
    outcomes = first.partition("control signals: ")[2].split("); ")
    outcomes = {text.partition(" +")[0].partition(" -")[0]: text for text in outcomes}
    for name in ("high-pass filtered", "detrended"):
        assert "; significantly reduced, not significantly above zero" in outcomes[name]
    assert "not significantly reduced, sig" in outcomes["amplitude-normalized"]
    assert "slow" in limitation
    assert "leakage" not in permuted
    assert [*scores["control"].unique()] == ["none", *(c for c in CONTROLS if c != "eyes")]
    assert set(scores["chance"]) == {0.5}
    assert scores["note"].dropna().iloc[0].startswith("0 of 12 recordings")


def test_scores_are_those_of_the_protocols(brief):
    probe = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression(C=0.01))
    methods = {"probe": probe, "chance": METHODS["chance"]}
    settings = dict(cv=2, n_train_subjects=[2], seeds=[1], metrics=["kappa"], verbose=0)
    result = controls(methods, brief, controls=["slow"], dataset="d", **settings)
    for control, rows in result.groupby("control", sort=False):
        changed = brief if control == "none" else ControlSignals(control).transform(brief)
        expected = label_efficiency(methods, changed, dataset="d", **settings)
        rows = rows.drop(columns=["control", "note"]).reset_index(drop=True)
        pd.testing.assert_frame_equal(rows, expected, check_like=True)
    assert result["note"].dropna().iloc[0].startswith("4 of 4 recordings")
    # Without numbers of training subjects: one held-out subject at a time
    methods = {name: METHODS[name] for name in ("powers", "chance")}
    once = controls(methods, brief, controls=["order"], metrics=["kappa"], seeds=[0], verbose=0)
    expected = compare(methods, brief, metrics=["kappa"], verbose=0)
    result = once[once["control"] == "none"].drop(columns="control")
    pd.testing.assert_frame_equal(result.reset_index(drop=True), expected)
    with pytest.raises(ValueError, match="controls must be one of 'slow'"):
        controls(methods, brief, controls=["blinks"])
    with pytest.raises(ValueError, match="at least 2 estimators"):
        controls({"probe": probe}, brief)


@pytest.mark.slow
def test_a_run_resumes_and_grows(tmp_path, monkeypatch):
    fits, fit = [], LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", lambda *a: fits.append(1) or fit(*a))
    run = dict(TESTED, out=tmp_path / "run")
    methods = {name: METHODS[name] for name in ("slopes", "powers")}
    first = controls(methods, simulated(), controls=["phase"], **run)
    assert len(fits) == 2 * 2 * 2
    again = controls(methods, simulated(), controls=["phase", "labels"], **run)
    assert len(fits) == 2 * 3 * 2
    pd.testing.assert_frame_equal(again[again["control"] != "labels"], first)
    stored = pd.read_csv(tmp_path / "run" / "scores.csv")
    np.testing.assert_allclose(stored["value"], again["value"])


def test_labels_of_subjects_with_one_class_cannot_be_permuted():
    windows = simulated()
    windows = windows.with_labels(windows.subjects % 2)
    with pytest.warns(UserWarning, match="'labels'.*one class"):
        scores = controls(REMEMBERED, windows, controls=["labels"], **TESTED)
    with pytest.raises(ValueError, match=r"against='chance'.*controls \['none'\]"):
        control_gains(scores, against="chance")


# Gains ----------------------------------------------------------------------------------------


def scores_of(values, **more):
    """Return scores from arrays of shape (n_subjects, n_draws) by control and method."""
    same = dict(protocol="label_efficiency", dataset="d", n_train_subjects=4, metric="kappa")
    return pd.DataFrame(
        [
            dict(same, method=method, subject=s, seed=d, value=value, control=control, **more)
            for (control, method), array in values.items()
            for (s, d), value in np.ndenumerate(array)
        ]
    )


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    levels = {("none", "A"): 0.3, ("none", "B"): 0.1, ("slow", "A"): 0.2, ("slow", "B"): 0.1}
    return {key: level + rng.normal(0, 0.05, (8, 5)) for key, level in levels.items()}


def test_gains_are_means_of_crossed_differences(values):
    [row] = control_gains(scores_of(values), "kappa", against="B").to_dict("records")
    gain = values["none", "A"] - values["none", "B"]
    without = values["slow", "A"] - values["slow", "B"]
    for name, array in dict(gain=gain, without=without, lost=gain - without).items():
        test = crossed_mean(array)
        result = [row[f"{name}{end}"] for end in ("", "_low", "_high", "_p")]
        assert result == pytest.approx([test.mean, test.ci_low, test.ci_high, test.p])
    assert row["share"] == pytest.approx(without.mean() / gain.mean())
    assert (row["n_subjects"], row["n_draws"]) == (8, 5)
    expected = crossed_mean(values["slow", "A"])
    assert [row["score"], row["score_low"]] == pytest.approx([expected.mean, expected.ci_low])
    assert row["chance_p"] == pytest.approx(expected.p)  # chance level of kappa is zero
    # The share requires a difference that is significantly above zero.
    for shift in (-0.2, -0.4):
        shifted = values | {("none", "A"): values["none", "A"] + shift}
        assert control_gains(scores_of(shifted), against="B")["share"].isna().item()


@pytest.mark.parametrize(
    ("protocol", "n_draws"), [("label_efficiency", 5), ("label_efficiency", 1), ("compare", 5)]
)
def test_a_gain_has_the_test_of_paired_tests(values, protocol, n_draws):
    scores = scores_of({key: array[:, :n_draws] for key, array in values.items()})
    scores["protocol"] = protocol
    # The folds of a cross-validation may have one training subject less.
    if protocol == "compare":
        scores.loc[scores["subject"] < 4, "n_train_subjects"] = 3
    [row] = control_gains(scores, against="B").to_dict("records")
    for name, control in (("gain", "none"), ("without", "slow")):
        control_scores = scores[scores["control"] == control].drop(columns="control")
        [test] = paired_tests(control_scores, against="B").to_dict("records")
        result = [row[name], row[f"{name}_low"], row[f"{name}_p"]]
        assert result == pytest.approx([test["mean_difference"], test["ci_low"], test["p"]])
    if protocol == "compare":
        expected = corrected_mean(values["slow", "A"].mean(axis=1), 3)
        assert row["chance_p"] == pytest.approx(expected.p)


def test_scores_and_gains_that_were_read_from_a_file_are_the_same(values, tmp_path):
    scores = scores_of(values).assign(dataset="")
    expected = control_gains(scores, against="B")
    scores.to_csv(tmp_path / "scores.csv", index=False)
    result = control_gains(pd.read_csv(tmp_path / "scores.csv"), against="B")
    pd.testing.assert_frame_equal(result.assign(dataset=""), expected)
    result.to_csv(tmp_path / "gains.csv", index=False)
    assert describe_controls(pd.read_csv(tmp_path / "gains.csv")) == describe_controls(expected)
    with pytest.raises(ValueError, match=r"'C'.* A, B"):
        control_gains(scores, against="C")


def test_subjects_without_a_score_and_pooled_rows_are_left_out(values):
    values["slow", "B"][2, 3] = np.nan
    scores = scores_of(values)
    pooled = scores[scores["subject"] == 0].assign(subject="all", value=9.0)
    [row] = control_gains(pd.concat([scores, pooled]), against="B").to_dict("records")
    differences = np.delete(values["none", "A"] - values["none", "B"], 2, axis=0)
    assert (row["n_subjects"], row["gain"]) == (7, pytest.approx(differences.mean()))


def gain_of(control, without, lost, p_without, p_lost, chance_p=0.001):
    """Return a row of a gain of 0.1 in one control."""
    row = dict(dataset="d", n_train_subjects=4, method="A", against="B", control=control)
    named = ("gain", 0.1, 0.001), ("without", without, p_without), ("lost", lost, p_lost)
    for name, mean, p in named:
        row |= {name: mean, f"{name}_low": mean - 0.01, f"{name}_high": mean + 0.01}
        row |= {f"{name}_p": p}
    return row | dict(chance_p=chance_p)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (gain_of("eyes", 0.0, 0.1, 0.9, 0.001), "; significantly reduced, not significantly a"),
        (gain_of("eyes", 0.05, 0.05, 0.001, 0.001), "; significantly reduced, significantly a"),
        (gain_of("eyes", 0.1, 0.0, 0.001, 0.9), "not significantly reduced, significantly a"),
        (gain_of("eyes", 0.2, -0.1, 0.001, 0.001), "; significantly larger, significantly a"),
        (gain_of("eyes", 0.05, 0.05, 0.2, 0.2), "not significantly reduced, not significantly"),
        # Significantly below zero in the control
        (
            gain_of("eyes", -0.05, 0.15, 0.001, 0.001),
            "; significantly reduced, not significantly a",
        ),
    ],
)
def test_each_kind_of_result_has_its_sentence(row, sentence):
    text = describe_controls(pd.DataFrame([row]))
    assert sentence in text
    is_removed = "; significantly reduced, not" in text
    assert ("ocular artifacts" in text) == is_removed


def test_methods_without_an_improvement_have_no_controls():
    row = gain_of("eyes", 0.0, 0.1, 0.9, 0.001) | dict(gain_p=0.3)
    text = describe_controls(pd.DataFrame([row]))
    assert "A does not score significantly higher than B" in text
    assert "EOG" not in text


@pytest.mark.parametrize(("chance_p", "is_leak"), [([0.02, 0.2], True), ([0.025, 0.2], False)])
def test_data_leakage_is_significant_after_correction(chance_p, is_leak):
    score = dict(score=0.4, score_low=0.3, score_high=0.5)
    rows = [gain_of("labels", 0.0, 0.0, 1.0, 1.0, chance_p=p) | score for p in chance_p]
    text = describe_controls(pd.DataFrame(rows))
    assert ("leakage" in text) == is_leak
    assert text.count("A with n_train_subjects=4") == is_leak
    unknown = pd.DataFrame(rows).assign(chance_p=np.nan)
    assert "0 of 0 tested scores" in describe_controls(unknown)


class Remembers(ClassifierMixin, BaseEstimator):
    fits: ClassVar[list[tuple]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.fits.append((np.array(X.groups).astype(int), np.array(y), np.array(list(X))))
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


REMEMBERED = {"m": Remembers(), "chance": METHODS["chance"]}


def test_labels_are_permuted_within_each_subject():
    """Subject s has s + 1 windows of class 1 of its 20, with the real labels and the permuted.

    Its last two windows are unlabeled, and stay so.
    """
    windows = simulated()
    number = np.arange(len(windows)) % N_WINDOWS
    y = (number <= np.repeat(np.arange(N_SUBJECTS), N_WINDOWS)) * 1
    y[number >= N_WINDOWS - 2] = 5
    wanted = dict(controls=["labels"], unlabeled_label=5, **TESTED)
    Remembers.fits.clear()
    scores = controls(REMEMBERED, windows.with_labels(y), **wanted)
    assert set(scores["chance"]) == {0.5}
    half = len(Remembers.fits) // 2
    plain, permuted = Remembers.fits[:half], Remembers.fits[half:]
    for (subjects, labels, X), (subjects_, labels_, X_) in zip(plain, permuted, strict=True):
        np.testing.assert_array_equal(X, X_)
        assert len(subjects) == 3 * (N_WINDOWS - 2)
        for subject in set(subjects):
            assert labels_[subjects_ == subject].sum() == subject + 1
        assert (labels != labels_).any()
