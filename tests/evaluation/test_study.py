"""A study: its plan, its folds, its answer, and that an interrupted one goes on."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from braindecode_pars.evaluation import study_plan
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.evaluation.random_effects import mean_squares, variance_components
from braindecode_pars.evaluation.study import begin_study, study
from braindecode_pars.evaluation.study_answer import answer_of
from braindecode_pars.evaluation.study_plan import (
    OWN,
    Method,
    channels_of_slow_voltages,
    folds_of,
    make_plan,
    numbers_of_people,
    study_methods,
)
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.windows.door import as_windows

#: The module, which the package hides behind the function of the same name.
MODULE = importlib.import_module("braindecode_pars.evaluation.study")
SFREQ, N_SUBJECTS, N_WINDOWS = 128, 8, 12
QUICK = {"pretrain_epochs": 1, "embed_dim": 8, "num_heads": 2, "mlp_dim": 8, "num_layers": 1}


def simulated(gain=1.5, by_subject=False, n_subjects=N_SUBJECTS, seed=0):
    """Windows of noise whose first class has a rhythm of 10 Hz."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_subjects), N_WINDOWS)
    y = groups % 2 if by_subject else np.tile([0, 1], len(groups) // 2)
    X = rng.normal(size=(len(y), 2, 3 * SFREQ))
    phases = rng.uniform(0, 2 * np.pi, (len(y), 2, 1))
    rhythm = np.sin(2 * np.pi * 10 * np.arange(3 * SFREQ) / SFREQ + phases)
    X += gain * (y == 0)[:, None, None] * rhythm
    return as_windows(1e-5 * X, y, groups, sfreq=SFREQ)


def corpus_of(windows):
    return Corpus.of(windows, "simulated", -1)


@pytest.fixture
def quick(monkeypatch):
    """Few methods, and a pretraining of an instant."""

    def few(encoders, channels, *, centred, further):
        methods = study_methods(encoders, channels, centred=centred, further=further)
        kept = [m for m in methods if m.name in ("band power", "own, untrained", OWN)]
        for method in kept[1:]:
            params = method.estimator.get_params()
            (name,) = (n for n in params if n.endswith("pretrain_epochs"))
            prefix = name.removesuffix("pretrain_epochs")
            method.estimator.set_params(**{prefix + key: value for key, value in QUICK.items()})
        return kept

    monkeypatch.setattr(MODULE, "study_methods", few)
    # Two draws are enough for a test of each difference.
    return dict(encoders={}, n_draws=2, n_train_subjects=[2, 4], dataset="simulated")


pytestmark = [
    pytest.mark.filterwarnings("ignore:Pretraining"),
    pytest.mark.filterwarnings("ignore:The control"),
]


# The folds


@pytest.mark.parametrize("by_subject", [False, True])
def test_every_labelled_subject_is_tested_once_and_never_trained_on(by_subject):
    corpus = corpus_of(simulated(by_subject=by_subject))
    folds = folds_of(corpus, by_subject=by_subject)
    tested = [subject for _, test in folds for subject in corpus.subjects_of(test)]
    assert sorted(tested) == corpus.subjects
    for train, test in folds:
        assert not set(corpus.subjects_of(train)) & set(corpus.subjects_of(test))
        if by_subject:
            assert len(set(corpus.y[test].tolist())) == 2


def test_people_without_labels_are_trained_on_in_every_fold():
    windows = simulated()
    labels = np.where(windows.groups == 7, -1, windows.labels)
    corpus = corpus_of(windows.with_labels(labels))
    folds = folds_of(corpus, by_subject=False)
    assert 7 not in [s for _, test in folds for s in corpus.subjects_of(test)]
    assert all(7 in corpus.subjects_of(train) for train, _ in folds)


def test_numbers_of_people_double_as_far_as_there_are_people():
    corpus = corpus_of(simulated(n_subjects=24))
    folds = folds_of(corpus, by_subject=False)
    assert numbers_of_people(corpus, folds, by_subject=False) == [2, 4, 8, 16]
    assert numbers_of_people(corpus, folds, by_subject=True) == [4, 8, 16]


# The methods and the plan


def test_every_pretrained_method_has_its_untrained_twin_of_the_same_size():
    methods = {m.name: m for m in study_methods({"noise": "noise"}, centred=True, further={})}
    pretrained = [m for m in methods.values() if m.kind == "pretrained"]
    assert len(pretrained) == 5  # noise and own, plain and centred, and a network
    for method in pretrained:
        twin = methods[method.twin]
        assert twin.kind == "untrained"
        assert twin.name.endswith("(transductive)") == method.name.endswith("(transductive)")
        assert method.given  # what the twin is not given is named
    windows = simulated()
    for mark in ("", ", subject-centred (transductive)"):
        probe, twin = (methods[name + mark].estimator for name in ("noise", "random encoder"))
        found = [_embedder(each).n_encoder_parameters(windows) for each in (probe, twin)]
        assert found[0] == found[1]


def _embedder(probe):
    return next(v for v in probe.get_params().values() if hasattr(v, "n_encoder_parameters"))


def test_slow_voltages_are_frontal_where_there_is_such_a_channel():
    class Stand:
        def __init__(self, names):
            self.montages = [type("Montage", (), dict(names=names, bads=()))()]

    assert channels_of_slow_voltages(Stand(["Fp1", "Cz"])) is None
    assert channels_of_slow_voltages(Stand(["C3", "Cz"])) == ["C3", "Cz"]


class Slow(ClassifierMixin, BaseEstimator):
    """Stands for a network; the clock of the plan is told what it takes."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


@pytest.mark.parametrize(
    ("hours", "seconds", "expected"),
    [
        (None, 1, ([4], 3)),  # three draws of one number: 4 folds x 2 methods x 3 s
        (None, 10, None),
        (1, 10, ([2, 4], 20)),  # 4 x 2 x 2 x 20 x 10 s are 53 minutes
        (0.5, 10, ([2, 4], 11)),
        (0.1, 10, ([4], 4)),
        (0.05, 10, None),
    ],
)
def test_networks_take_the_time_that_is_left(monkeypatch, hours, seconds, expected):
    corpus = corpus_of(simulated())
    folds = folds_of(corpus, by_subject=False)
    methods = [
        Method("simple", Slow(), "simple"),
        Method("scratch", Slow(), "untrained", trains=True),
        Method("network", Slow(), "pretrained", "scratch", trains=True),
    ]
    monkeypatch.setattr(
        study_plan, "_seconds_of", lambda method, *_: (0.0, seconds if method.trains else 0.001)
    )
    plan = make_plan(corpus, methods, folds, [2, 4], n_draws=None, hours=hours)
    rows = plan.set_index("method")
    if expected is None:
        assert rows["left_out"].str.contains("--hours").tolist() == [False, True, True]
    else:
        assert not rows["left_out"].any()
        assert tuple(rows.loc["network", ["people", "draws"]]) == expected
        assert rows["people"]["scratch"] == rows["people"]["network"]
        if hours:
            assert rows["minutes"].sum() <= hours * 60
    assert rows["draws"]["simple"] == (8 if hours is None else 20)


def test_a_method_that_the_windows_do_not_allow_is_left_out_with_the_reason():
    class Refuses(Slow):
        def fit(self, X, y):
            raise ValueError("it needs two channels")

    corpus = corpus_of(simulated())
    folds = folds_of(corpus, by_subject=False)
    methods = [Method("simple", Slow(), "simple"), Method("refuses", Refuses(), "simple")]
    plan = make_plan(corpus, methods, folds, [2], n_draws=2, hours=None)
    assert plan["left_out"].tolist() == ["", "it needs two channels"]


def test_the_typical_variances_are_those_of_the_stored_scores(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "_ext")
    from stored_few_labels import few_labels_scores

    scores = few_labels_scores("arithmetic")
    scores = scores[~scores["centred"] & (scores["n_train_subjects"] == 4)]
    scores = scores[scores["pretraining_seed"].fillna(0) == 0]
    wide = scores.pivot_table("value", ["subject", "seed"], "method")
    gain = (wide["small"] - wide["random encoder"]).unstack().to_numpy()
    found = variance_components(mean_squares(gain))
    assert {key: round(value, 4) for key, value in found.items()} == study_plan.TYPICAL


# The answer


def level(method, mean, p=0.001, n=4):
    ends = dict(ci_low=mean - 0.05, ci_high=mean + 0.05)
    return dict(method=method, n_train_subjects=n, mean=mean, p=p, p_holm=p, **ends)


def difference(question, a, b, value, p, n=4):
    ends = dict(ci_low=value - 0.03, ci_high=value + 0.03, detectable=0.042)
    return dict(
        question=question, method_a=a, method_b=b, n_train_subjects=n, mean_difference=value,
        p=p, p_holm=p, **ends,
    )  # fmt: skip


LEVELS = [level("pars", 0.72), level("other", 0.74), level("band power", 0.65)]


@pytest.mark.parametrize(
    ("over_twin", "over_simple", "expected"),
    [
        ((0.1, 0.001), (0.07, 0.001), r"^Yes, pretraining helps\. With 4 .* pars has .*0\.720"),
        ((0.1, 0.001), (0.01, 0.4), r"no better than a simple method.*0\.042 with a prob"),
        ((0.1, 0.001), (-0.08, 0.001), r"worse than a simple method.*0\.080 less"),
        ((0.01, 0.4), (0.07, 0.001), r"^No effect of pretraining is established.*0\.042 with"),
        ((-0.1, 0.001), (0.07, 0.001), r"^No effect of pretraining is established"),
    ],
)
def test_the_answer_follows_from_the_tests(over_twin, over_simple, expected):
    tests = pd.DataFrame(
        [
            difference("pretraining", "pars", "random encoder", *over_twin),
            difference("baseline", "pars", "band power", *over_simple),
        ]
    )
    answer = answer_of(pd.DataFrame(LEVELS), tests, 0.5)
    assert pd.Series([answer]).str.contains(expected).item(), answer
    assert answer.endswith(
        "The best of all methods is other with 0.740 (95 % interval 0.690 to 0.790)."
    )


def test_other_numbers_of_people_are_told_where_they_say_something_else():
    levels = pd.DataFrame([*LEVELS, *(level("pars", 0.6, n=n) for n in (2, 3))])
    tests = pd.DataFrame(
        [
            difference(question, "pars", "b", 0.1, 0.001 if n > 2 else 0.5, n=n)
            for n in (2, 3, 4)
            for question in ("pretraining", "baseline")
        ]
    )
    answer = answer_of(levels, tests, 0.5)
    assert "The answer is the same with 3." in answer
    assert "With 2 no difference from the untrained encoder was found." in answer


def test_a_score_below_chance_is_no_answer():
    levels = pd.DataFrame([level("pars", 0.4), level("band power", 0.52, p=0.3)])
    assert "no difference from chance level" in answer_of(levels, pd.DataFrame(), 0.5)


# The whole


@pytest.mark.slow
@pytest.mark.parametrize("by_subject", [False, True])
def test_labels_of_noise_end_in_no_difference_from_chance(monkeypatch, by_subject):
    """With range(100), 96 and 95 of 100 did. Of 20, fewer than 17 would in one of 60 runs."""

    def few(encoders, channels, *, centred, further):
        methods = study_methods(encoders, channels, centred=centred, further=further)
        return [m for m in methods if m.name in ("band power", "random encoder", "noise")]

    monkeypatch.setattr(MODULE, "study_methods", few)
    monkeypatch.setattr(study_plan, "_seconds_of", lambda *_: (0.0, 0.0))
    n_subjects = 16 if by_subject else 10
    answers = [
        study(
            simulated(gain=0, by_subject=by_subject, n_subjects=n_subjects, seed=seed),
            encoders={"noise": "noise"},
            n_draws=3,
            verbose=0,
        ).answer
        for seed in range(20)
    ]
    assert sum("no difference from chance level" in answer for answer in answers) >= 17


def test_a_study_scores_every_method_on_the_same_people(quick, tmp_path):
    windows = simulated()
    found = study(windows, out=tmp_path / "study", verbose=0, **quick)
    assert set(found.scores["method"]) == {"band power", "own, untrained", OWN}
    counts = found.scores.groupby("method").size()
    assert counts.nunique() == 1  # 8 subjects, 2 numbers, 2 draws
    assert counts.iloc[0] == 32
    # A plain re-computation of the means.
    means = found.scores.groupby(["method", "n_train_subjects"])["value"].mean()
    for _, row in found.levels.iterrows():
        assert row["mean"] == pytest.approx(means[row["method"], row["n_train_subjects"]])
    assert found.best == means[:, 4].idxmax()
    assert set(found.tests["question"]) == {"pretraining", "baseline"}
    assert len(found.confusion) == 2 * len(windows)  # two draws
    stored = json.loads((tmp_path / "study" / "study.json").read_text())
    assert stored["answer"] == found.answer
    assert found.report(tmp_path / "study").is_file()


def test_the_encoder_of_a_fold_has_not_seen_the_people_it_is_tested_on(quick, tmp_path):
    windows = simulated()
    found = study(windows, out=tmp_path, verbose=0, **quick)
    corpus = corpus_of(windows)
    for k, (train, test) in enumerate(folds_of(corpus, by_subject=False)):
        # The digest keeps the encoders of other recordings apart.
        folder = tmp_path / "encoders" / f"{found.about['digest']}-fold-{k}"
        seen = load_encoder(folder).card.subjects
        assert seen == corpus.subjects_of(train)
        assert not set(seen) & set(corpus.subjects_of(test))


def test_an_interrupted_study_goes_on_and_ends_the_same(quick, tmp_path, monkeypatch):
    windows = simulated()
    whole = study(windows, out=tmp_path / "whole", verbose=0, **quick)
    from braindecode_pars.evaluation import folds

    run, calls = folds._run, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) % 7 == 0:
            raise KeyboardInterrupt
        return run(*given)

    monkeypatch.setattr(folds, "_run", interrupted)
    for _ in range(30):
        try:
            again = study(windows, out=tmp_path / "parts", verbose=0, **quick)
            break
        except KeyboardInterrupt:
            continue
    assert len(calls) > 20
    pd.testing.assert_frame_equal(again.scores, whole.scores)
    pd.testing.assert_frame_equal(again.tests, whole.tests)
    assert again.answer == whole.answer
    # The finished one is read, not computed.
    calls[:] = [None] * 6
    study(windows, out=tmp_path / "parts", verbose=0, **quick)
    assert len(calls) == 6


def test_an_answer_where_no_pretrained_method_could_be_fitted(quick, tmp_path, monkeypatch):
    timed = study_plan._seconds_of

    def refuses(method, *given):
        if method.kind == "pretrained":
            raise ValueError("its windows are too short")
        return timed(method, *given)

    monkeypatch.setattr(study_plan, "_seconds_of", refuses)
    found = study(simulated(), out=tmp_path / "study", verbose=0, **quick)
    assert found.answer.startswith("No pretrained encoder took part.")
    assert found.plan["left_out"].tolist() == ["", "", "its windows are too short"]
    assert found.tests.empty
    assert found.report(tmp_path / "study").is_file()


def test_where_each_subject_has_one_class_every_class_counts_the_same(quick):
    """Twice as many subjects of one class do not make its score count twice."""
    windows = simulated(by_subject=True, n_subjects=12)
    labels = (windows.groups % 3 > 0).astype(int)  # 4 and 8 subjects
    windows = windows.with_labels(labels)
    begun = begin_study(windows, **{**quick, "n_train_subjects": [4]})
    assert begun.check.by_subject
    rows = pd.DataFrame(
        [
            dict(subject=s, value=1.0 if s % 3 else 0.0)  # always the larger class
            for s in range(12)
        ]
    )
    assert begun._weighted(rows)["value"].mean() == pytest.approx(0.5)
    assert not any("centred" in name for name in begun.runs.index)


def test_a_study_without_an_answer_says_what_is_needed(tmp_path):
    windows = simulated(n_subjects=3)
    found = study(windows, out=tmp_path, dataset="few")
    assert found.answer.startswith("There is no answer.")
    assert "3" in found.answer
    assert len(found.scores) == 0
    assert found.report(tmp_path).is_file()


def test_an_encoder_of_another_rate_is_left_out_with_both_rates(quick):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), N_WINDOWS)
    windows = as_windows(
        1e-5 * rng.normal(size=(96, 2, 300)), np.tile([0, 1], 48), groups, sfreq=100
    )
    begun = begin_study(windows, **{**quick, "encoders": {"noise": "noise"}})
    assert any("128 Hz" in each and "100 Hz" in each for each in begun.about["left_out"])


def test_an_encoder_that_knows_the_people_is_left_out(quick, monkeypatch):
    """Subject 1 of an unknown corpus is not the one of the encoder's corpus."""
    windows = simulated()
    given = {**quick, "encoders": {"small": "small"}}
    assert begin_study(windows, **given).about["left_out"] == []
    known = replace(windows, recordings=windows.recordings.assign(corpus="physionet_mi"))
    (reason,) = begin_study(known, **given).about["left_out"]
    assert reason == "The encoder small was left out: it was pretrained on 7 of the people."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(n_train_subjects=[4, 7]), "n_train_subjects is 7; use 1 to 6"),
        (dict(n_train_subjects=[4, 4]), "n_train_subjects has an entry twice"),
        (dict(methods={"band power": Slow()}), "Two methods are called band power"),
        (dict(n_draws=1), "n_draws"),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_anything_is_timed(
    quick, monkeypatch, given, message
):
    monkeypatch.setattr(study_plan, "_seconds_of", lambda *_: pytest.fail("it was timed"))
    monkeypatch.setattr(MODULE, "study_methods", study_methods)
    with pytest.raises(ValueError, match=message):
        begin_study(simulated(), **{**quick, **given})


def test_windows_that_no_method_takes_are_an_error(quick, monkeypatch):
    def refuse(*_):
        raise ValueError("there are samples that are not finite")

    monkeypatch.setattr(study_plan, "_seconds_of", refuse)
    with pytest.raises(ValueError, match="No method can be fitted: there are samples"):
        begin_study(simulated(), **quick)


def test_the_confusion_matrix_has_the_draws_of_the_plan_only(quick, tmp_path):
    """The folder of an earlier plan has more of them."""
    windows = simulated()
    study(windows, out=tmp_path, verbose=0, **{**quick, "n_draws": 3})
    found = study(windows, out=tmp_path, verbose=0, **quick)
    assert len(found.confusion) == 2 * len(windows)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ValueError, match=r"mine\.txt"):
        study(simulated(), out=tmp_path)
