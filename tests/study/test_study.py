"""Study: design, methods, steps, scores, and resuming after an interruption."""

from __future__ import annotations

import importlib
import json
import shutil
import warnings
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky.backend import reduction
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import FunctionTransformer
from support.study_folders import two_layouts

from braindecode_pars import FewLabelsClassifier, PARSClassifier, PARSEmbedder, datasets
from braindecode_pars.evaluation.controls import CONTROLS
from braindecode_pars.evaluation.splitting import Corpus
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.study import (
    study_design,
    study_report,
    study_results,
    study_scores,
    study_tests,
)
from braindecode_pars.study.data_check import StudyData, check_data
from braindecode_pars.study.study import run_study, study
from braindecode_pars.study.study_design import DRAWS, Settings, make_design
from braindecode_pars.study.study_methods import (
    HAND_CRAFTED,
    RANDOM,
    SHAM,
    TANGENT,
    Method,
    StudyStep,
    baseline_name,
    choose_steps,
    make_steps,
    usable_encoders,
)
from braindecode_pars.windows.convert import as_windows

PARS = "PARS pretraining"
#: The module, which the package hides behind the function of the same name.
MODULE = importlib.import_module("braindecode_pars.study.study")
SFREQ, N_SUBJECTS, N_WINDOWS, N_DRAWS = 128, 8, 10, 2

#: Estimates the duration of a method; tests of whole studies skip it.
SECONDS_OF = study_design._seconds_of


def simulated(gain=0.7, by_subject=False, n_subjects=N_SUBJECTS, seed=0, n_windows=N_WINDOWS):
    """Windows of noise. The first class contains a rhythm at 10 Hz."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_subjects), n_windows)
    y = groups % 2 if by_subject else np.tile([0, 1], len(groups) // 2)
    X = rng.normal(size=(len(y), 2, 3 * SFREQ))
    phases = rng.uniform(0, 2 * np.pi, (len(y), 2, 1))
    rhythm = np.sin(2 * np.pi * 10 * np.arange(3 * SFREQ) / SFREQ + phases)
    X += gain * (y == 0)[:, None, None] * rhythm
    return as_windows(1e-5 * X, y, groups, sfreq=SFREQ)


def corpus_of(windows):
    return Corpus.of(windows, "simulated", -1)


#: Subjects are numbers, and those of "small", too.
pytestmark = pytest.mark.filterwarnings("ignore:Possible data leakage")


@pytest.fixture(scope="module")
def short():
    """Short pretrainings, arguments of a short study, and plans without timing."""
    effort = study_design.Effort(3, 8.0, ("primary", "baselines"), n_pretrainings=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(study_design.EFFORTS, "quick", effort)
        patch.setattr(study_tests, "N_SPLITS", 4)
        patch.setattr(study_design, "_seconds_of", lambda *_: 0.0)
        small = partial(PARSEmbedder, embed_dim=16, num_layers=1)
        patch.setattr(study_scores, "PARSEmbedder", small)
        patch.setattr(MODULE, "REPORT_INTERVAL", np.inf)  # a report at the end
        # Figures are made, but not drawn, which takes seconds.
        image = dict(source="data:", alt="a figure")
        patch.setattr(study_report, "_image", lambda *_: plt.close("all") or image)
        settings = dict(draws=N_DRAWS, dataset="simulated", n_jobs=1, verbose=0, without=[TANGENT])
        yield dict(effort="quick", encoders={}, **settings)


@pytest.fixture(scope="module")
def finished(short, tmp_path_factory):
    """A study, and its folder."""
    folder = tmp_path_factory.mktemp("whole")
    return study(simulated(), out=folder, **short), folder


@pytest.fixture
def undrawn(monkeypatch):
    """A report without figures."""
    monkeypatch.setattr(study_report, "_figures", lambda *_: {})


class Constant(ClassifierMixin, BaseEstimator):
    """Predicts one class."""

    def __init__(self, label=0):
        self.label = label

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[self.label])


class StartsFromEncoder(Constant):
    def __init__(self, label=0, encoder=None):
        super().__init__(label)
        self.encoder = encoder

    def fit(self, X, y):
        assert self.encoder == "an encoder"
        return super().fit(X, y)


class Warns(Constant):
    def fit(self, X, y):
        warnings.warn("channel C9 is flat", UserWarning, stacklevel=2)
        return super().fit(X, y)


class Fails(Constant):
    def fit(self, X, y):
        raise ValueError("channel A1 is missing")


# The design


@pytest.mark.parametrize("by_subject", [False, True])
def test_every_labeled_subject_is_tested_once_and_trained_on_otherwise(by_subject):
    """Subject 9 without labels is in every training set, like two unlabeled windows."""
    windows = simulated(by_subject=by_subject, n_subjects=10, n_windows=12)
    is_unlabeled = (windows.groups == 9) | (np.arange(len(windows)) % 12 < 2)
    corpus = corpus_of(windows.with_labels(np.where(is_unlabeled, -1, windows.labels)))
    design = make_design(corpus, by_subject=by_subject)
    labeled = design.labeled
    tests = [labeled.subjects_of(fold.test) for fold in design.folds]
    assert sorted(subject for tested in tests for subject in tested) == [*range(9)]
    for (pretraining, _, test), tested in zip(design.folds, tests, strict=True):
        assert corpus.subjects_of(pretraining) == [s for s in range(10) if s not in tested]
        assert len(pretraining) == 12 * (10 - len(tested))
        assert len(set(labeled.y[test].tolist())) == 2


@pytest.mark.parametrize(
    ("n_subjects", "by_subject", "n_labeled", "n_sets"),
    [
        (8, False, 1, 4),
        (24, False, 4, 3),
        (60, False, 4, 6),  # seven sets, but twelve draws are two dealings of six
        (16, True, 2, 4),
    ],
)
def test_labeled_subjects_are_divided_into_disjoint_sets(n_subjects, by_subject, n_labeled, n_sets):
    windows = simulated(n_subjects=n_subjects, by_subject=by_subject, n_windows=10)
    design = make_design(corpus_of(windows), by_subject=by_subject)
    assert (design.n_labeled, design.n_sets) == (n_labeled, n_sets)
    assert design.is_centered == (not by_subject)
    pretraining, draws, _ = design.folds[1]
    drawn = [set(windows.groups[train].tolist()) for train in draws]
    pool = set(windows.groups[pretraining].tolist())
    for subjects in drawn:
        assert len(subjects) == n_labeled
        assert subjects <= pool
        if by_subject:
            assert sum(s % 2 for s in subjects) == n_labeled / 2
    for k in range(0, len(draws), n_sets):
        assert len(set.union(*drawn[k : k + n_sets])) == n_labeled * n_sets
    assert len({frozenset(subjects) for subjects in drawn}) > 1


def test_subjects_with_too_few_windows_are_excluded_unless_there_are_many():
    windows = simulated(n_subjects=10)
    # Half of the windows of a fifth of the subjects
    is_unlabeled = np.isin(windows.groups, (5, 6)) & (np.arange(len(windows)) % 2 == 0)
    corpus = corpus_of(windows.with_labels(np.where(is_unlabeled, -1, windows.labels)))
    design = make_design(corpus, by_subject=False)
    assert design.left_out == {"5": N_WINDOWS // 2, "6": N_WINDOWS // 2}
    assert design.is_centered
    assert 5 not in design.corpus.subjects_of(design.corpus.labeled)
    # Their windows are pretrained on in both folds.
    assert all(5 in corpus.subjects_of(fold.pretraining) for fold in design.folds)
    many = (windows.groups < 4) & (np.arange(len(windows)) % 2 == 0)
    corpus = corpus_of(windows.with_labels(np.where(many, -1, windows.labels)))
    design = make_design(corpus, by_subject=False)
    assert (design.left_out, design.is_centered) == ({}, False)


def test_subjects_with_several_classes_have_their_most_frequent_class():
    """As with a diagnosis, for which one of 20 subjects has a window of another class."""
    windows = simulated(n_subjects=24, by_subject=True, n_windows=10)
    y = windows.labels.copy()
    y[0] = 1  # of subject 0, whose class is 0
    design = make_design(corpus_of(windows.with_labels(y)), by_subject=True)
    assert design.class_of[0] == 0
    for train in design.folds[0].draws:
        drawn = set(windows.groups[train].tolist())
        assert sum(subject % 2 for subject in drawn) == len(drawn) / 2


# The methods and the steps


def test_every_pretraining_has_a_sham_and_the_first_task_a_random_initialization():
    steps = make_steps(2, ("mae", "features"), {"small": "small"}, {})
    primary = [step for step in steps if step.group == "primary"]
    assert [(s.fold, s.methods[0].pretraining) for s in primary] == [
        (fold, seed) for seed in range(3) for fold in range(2)
    ]
    assert [m.name for m in primary[0].methods] == ["MAE pretraining", SHAM, RANDOM]
    further = [step for step in steps if step.group == "tasks"]
    assert [m.kind for m in further[0].methods] == ["pretrained", "sham"]
    assert len({s.name for s in steps}) == len(steps)
    names = {m.name for s in steps for m in s.methods}
    references = {m.name: m.references for s in steps for m in s.methods if m.references}
    assert references == {
        "MAE pretraining": (SHAM, RANDOM),
        "features pretraining": (f"{SHAM} of features", RANDOM),
        "small (pretrained on other data)": (RANDOM,),
        "feature ensemble": (HAND_CRAFTED,),
        "MAE, fine-tuned": ("from scratch",),
    }
    assert {"MAE, fine-tuned", "from scratch", TANGENT, "EEGNet"} <= names
    single = {m.name for s in make_steps(1, ("pars",), {}, {}) for m in s.methods}
    assert single.isdisjoint({TANGENT, "ShallowFBCSPNet"})
    assert (baseline_name(7), baseline_name(8)) == (HAND_CRAFTED, TANGENT)


def test_groups_and_methods_can_be_chosen_by_name():
    steps = make_steps(2, ("pars", "features"), {"small": "small"}, {"mine": Constant()})
    groups = study_design.EFFORTS["quick"].groups

    def names(**selection):
        return {m.name for s in choose_steps(steps, groups, **selection) for m in s.methods}

    assert names() == {PARS, SHAM, RANDOM, "log band power", HAND_CRAFTED, TANGENT, "mine"}
    assert names(only=["Baselines", "feature ensemble"]) - names() == {"feature ensemble"}
    assert names(without=[RANDOM, "baselines"]) == {PARS, SHAM}
    with pytest.raises(ValueError, match="EEGNot"):
        names(only=["EEGNot"])
    assert SHAM in names(without=[PARS])  # has as many steps as PARS, which is then not scored
    with pytest.raises(ValueError, match="No method"):
        names(only=["mine"], without=["mine"])


def test_the_limits_follow_from_the_settings():
    default = study_design.EFFORTS["default"]
    assert Settings("default").limits == default
    assert Settings("default", minutes=2.5).limits == replace(default, minutes=2.5)
    for selection in (dict(only=["primary"]), dict(without=["Controls"])):
        assert Settings("default", **selection).limits == replace(default, controls=())


def test_encoders_that_match_the_windows_are_used():
    """Sampling rate, duration of windows (20 s for sleep) and subjects are checked."""
    with pytest.warns(UserWarning, match="1, 2, 3, 4, 5, 6, 7 have .* card of small, ") as caught:
        assert usable_encoders(None, corpus_of(simulated())) == ({"small": "small"}, [])
    assert len(caught) == 1
    night = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=1, sfreq=SFREQ)
    assert list(usable_encoders(None, corpus_of(night))[0]) == ["small", "pars-sleep"]
    slower = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=1, sfreq=100)
    usable, reasons = usable_encoders(None, corpus_of(slower))
    assert usable == {}
    assert all("128 Hz" in reason and "100 Hz" in reason for reason in reasons)
    # Subject 1 of an unknown corpus may not be the one of the encoder's corpus.
    windows = simulated()
    known = replace(windows, recordings=windows.recordings.assign(corpus="physionet_mi"))
    usable, [reason] = usable_encoders({"small": "small"}, corpus_of(known))
    assert usable == {}
    assert "7 of the subjects" in reason


@pytest.mark.parametrize(("minutes", "expected"), [(8.0, 400), (5.0, 300)])
def test_the_minutes_of_a_pretraining_end_at_the_limit(monkeypatch, minutes, expected):
    """Simulated durations: 100 s for a step."""
    durations = iter((0.0, 0.0, 300.0))
    monkeypatch.setattr(study_design, "timeit", lambda *_, **__: next(durations))
    monkeypatch.setattr(study_design, "TIMED_TRAINING_WINDOWS", 32)
    design = make_design(corpus_of(simulated()), by_subject=False)
    effort = study_design.Effort(4, minutes, ())
    assert SECONDS_OF("pars", design, effort) == expected


def test_the_plan_extrapolates_what_it_times(monkeypatch):
    """The duration of methods without pretraining is unknown."""
    monkeypatch.setattr(study_design, "_seconds_of", lambda *_: 90.0)
    design = make_design(corpus_of(simulated()), by_subject=False)
    steps = make_steps(2, ("pars",), {}, {})
    minutes = study_design.estimate_minutes(steps, design, study_design.EFFORTS["quick"])
    groups = [step.group for step in steps]
    assert minutes[groups.index("primary")] == 2 * 1.5
    assert np.isnan(minutes[groups.index("baselines")])
    assert np.isnan(minutes[groups.index("networks")])


# The scores


def test_scores_of_an_estimator_that_cannot_be_described_are_not_reused():
    """The digest is the same in worker processes, and different in another call."""
    unknown = FunctionTransformer(lambda x: x)
    first, second = (Method("mine", "baseline", estimator=unknown) for _ in range(2))
    with pytest.warns(UserWarning, match="mine.*<lambda> cannot be pickled"):
        assert first.digest != second.digest
    assert reduction.loads(reduction.dumps(first)).digest == first.digest


@pytest.mark.slow
def test_a_method_with_feature_sets_is_scored_as_its_saved_classifier():
    corpus = corpus_of(simulated())
    design = make_design(corpus, by_subject=False, n_draws=4)
    method = Method("m", "baseline", ("band_power", "tangent_space"))
    plan = SimpleNamespace(design=design)
    rows = pd.DataFrame(
        study_scores.score_method(method, StudyStep("m", "baselines", (method,), 0), plan)
    )
    train, test = design.folds[0].draws[3], design.folds[0].test
    windows, subjects = corpus.X[test], corpus.groups[test]
    for recenter in ("subject", None):
        clf = FewLabelsClassifier(views=[*method.views], recenter=recenter, C=None, verbose=0)
        expected = clf.fit(corpus.X[train]).predict_proba(windows)[:, 1]
        is_fit = (rows["draw"] == 3) & (rows["is_centered"] == (recenter is not None))
        means = pd.Series(expected).groupby(subjects).mean()
        np.testing.assert_allclose(rows["p_1"][is_fit], means, atol=1e-6)


def test_training_windows_of_one_class_predict_this_class():
    y = np.array([0, 1, 2, 1])
    probabilities = study_scores.predict(None, None, y, np.array([1, 3]), np.array([0, 2]))
    assert probabilities.tolist() == [[0, 1, 0]] * 2


def test_the_score_of_a_subject_is_averaged_over_its_classes():
    """Subject 0 has classes 0 and 1, and subject 1 class 2 only."""
    y, groups = np.array([0, 0, 1, 2, 2]), np.array([0, 0, 0, 1, 1])
    design = make_design(corpus_of(simulated()), by_subject=False)
    design = replace(design, classes={0: "a", 1: "b", 2: "c"})
    probabilities = np.eye(3)[[0, 1, 1, 2, 0]]
    rows = list(study_scores.count_predictions(y, probabilities, groups, design))
    assert [row["value"] for row in rows] == [0.75, 0.5]
    assert [row["chance"] for row in rows] == [0.5, 1.0]
    assert (rows[0]["n_0_1"], rows[1]["n_2_0"], rows[1]["p_2"]) == (1, 1, 0.5)
    by_subject = replace(design, by_subject=True)
    rows = list(study_scores.count_predictions(y, probabilities, groups, by_subject))
    assert [row["chance"] for row in rows] == [1 / 3, 1 / 3]


@pytest.mark.parametrize(
    ("group", "kind", "is_slow"),
    [
        ("baselines", "baseline", False),
        ("controls", "baseline", True),
        ("networks", "network", True),
    ],
)
def test_networks_and_control_analyses_use_one_shuffle_of_labeled_subjects(group, kind, is_slow):
    design = make_design(corpus_of(simulated()), by_subject=False)
    plan = SimpleNamespace(design=design)
    method = Method("m", kind, estimator=Constant())
    rows = study_scores.score_method(method, StudyStep("m", group, (method,)), plan)
    draws = {(row["fold"], row["draw"]) for row in rows}
    n_draws = design.n_sets if is_slow else DRAWS
    assert draws == set(product(range(2), range(n_draws)))
    assert design.n_sets < DRAWS


def test_a_fine_tuned_network_starts_from_the_encoder_of_its_fold(monkeypatch):
    design = make_design(corpus_of(simulated()), by_subject=False)
    folds = []
    monkeypatch.setattr(
        study_scores, "encoder_of", lambda m, plan, fold: folds.append(fold) or "an encoder"
    )
    method = Method("m", "network", task="pars", estimator=StartsFromEncoder())
    step, plan = StudyStep("m", "networks", (method,)), SimpleNamespace(design=design)
    assert list(study_scores.score_method(method, step, plan))
    assert folds == [0, 1]


# The whole


def test_a_study_scores_all_methods_on_the_same_subjects_and_draws(finished):
    result, folder = finished
    counts = result.scores.groupby(["method", "is_centered", "pretraining"]).size()
    assert set(counts) == {N_SUBJECTS * N_DRAWS}
    assert set(result.plan["status"]) == {"finished"}
    assert set(result.plan["reason"]) == {""}
    # One labeled subject of four in each draw
    assert (result.scores["shuffle"] == 0).all()
    assert (result.scores["stratum"] == 0).all()
    # A plain re-computation of the primary difference
    means = result.scores.groupby("method")["value"].mean()
    assert result.primary.difference == pytest.approx(means[PARS] - means[SHAM])
    assert result.primary.score == pytest.approx(means[PARS])
    assert result.initialization.reference == RANDOM
    assert result.baseline.reference == HAND_CRAFTED
    assert result.secondary.empty  # the primary comparison is not among them
    for row in result.levels.itertuples():
        rows = result.scores[
            (result.scores["method"] == row.method)
            & (result.scores["is_centered"] == row.is_centered)
        ]
        assert row.mean == pytest.approx(rows["value"].mean())
    assert len(result.confusion) == N_SUBJECTS * N_WINDOWS * N_DRAWS
    stored = json.loads((folder / "study.json").read_text())
    assert stored["answers"] == result.answers
    assert stored["comparisons"]["primary"]["difference"] == result.primary.difference
    assert (folder / "report.html").is_file()
    scores = pd.read_csv(folder / "scores.csv")
    assert scores["value"].tolist() == pytest.approx(result.scores["value"].tolist())


@pytest.mark.filterwarnings("ignore:The following parameters are not restored")
def test_the_saved_model_is_the_recommended_method(finished):
    result, folder = finished
    assert result.recommendation.folder == str(folder / "model")
    clf = FewLabelsClassifier.load(folder / "model")
    [views] = {
        m.views
        for s in make_steps(2, ("pars",), {}, {})
        for m in s.methods
        if m.name == result.recommendation.method
    }
    assert tuple(clf.views) == views
    assert (clf.recenter_ == "subject") == result.recommendation.is_centered
    assert clf.score(simulated()) > 0.7


@pytest.mark.filterwarnings("ignore:The following parameters are not restored")
def test_only_a_model_of_a_study_is_overwritten(short, undrawn, finished, tmp_path):
    shutil.copytree(finished[1], tmp_path, dirs_exist_ok=True)
    clf = FewLabelsClassifier.load(tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    other = PARSClassifier(None, embed_dim=8, num_heads=2, num_layers=1, finetune_epochs=1)
    other.set_params(verbose=0).fit(simulated()).save(tmp_path / "model")
    with pytest.raises(ValueError, match="model contains a PARSClassifier"):
        study(simulated(), out=tmp_path, **short)
    other.expected_score_ = clf.expected_score_  # an earlier recommendation
    other.save(tmp_path / "model")
    study(simulated(), out=tmp_path, **short)
    assert FewLabelsClassifier.load(tmp_path / "model").views == clf.views


def test_a_sham_has_as_many_steps_and_no_encoder_is_trained_on_test_subjects(finished):
    result, folder = finished
    steps = result.pretrainings.pivot(index=["fold", "seed"], columns="is_sham", values="n_steps")
    assert len(steps) == 4
    assert (steps[False] == steps[True]).all()
    corpus = corpus_of(simulated())
    encoders = sorted((folder / "encoders").glob("*-fold-*.json"))
    assert len(encoders) == 3 * 4
    digests = set()
    for k, (_, _, test) in enumerate(make_design(corpus, by_subject=False).folds):
        for file in encoders:
            if file.stem.endswith(f"fold-{k}"):
                encoder = load_encoder(file.with_suffix(""))
                assert not set(encoder.card.subjects or ()) & set(corpus.subjects_of(test))
                digests.add(sum(w.double().sum() for w in encoder.encoder.parameters()).item())
    # Random initializations are those of the pretrainings, so the two folds share them.
    assert len(digests) == 2 * 4 + 2


@pytest.fixture
def interrupted(monkeypatch):
    run, calls = study_scores.run_step, []  # names of the steps

    def run_one(step, *others):
        calls.append(step.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(step, *others)

    monkeypatch.setattr(study_scores, "run_step", run_one)
    return calls


@pytest.mark.slow
def test_an_interrupted_study_pretrains_again(short, finished, undrawn, tmp_path, interrupted):
    """A baseline and the last pretraining of a finished study are run again."""
    whole, folder = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for lost in ("log-band-power*", "pars-pretraining-2--fold-2*"):
        [file] = tmp_path.glob(f"steps/{lost}")
        file.unlink()
    for file in tmp_path.glob("encoders/*-1-*-fold-1.json"):  # of the second pretraining
        file.unlink()
        shutil.rmtree(file.with_suffix(""))
    with pytest.raises(KeyboardInterrupt):
        study(simulated(), out=tmp_path, **short)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "5 of 6 steps are finished" in page
    assert len([*tmp_path.glob("steps/*.csv")]) == 5
    again = study(simulated(), out=tmp_path, **short)
    assert len(interrupted) == len(set(interrupted)) + 1  # the interrupted step
    pd.testing.assert_frame_equal(again.scores, whole.scores)
    assert again.answers == whole.answers


@pytest.mark.slow
def test_an_interrupted_study_has_a_report_and_continues(short, undrawn, tmp_path, interrupted):
    methods, calls = {"a": Constant(), "b": Constant(1)}, interrupted
    settings = short | dict(methods=methods, only=["a", "b"], out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        study(simulated(), **settings)
    assert "1 of 2 steps are finished" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert sorted(study(simulated(), **settings).levels["method"]) == ["a", "b"]
    assert calls == ["a", "b", "b"]


def test_changed_methods_and_settings_are_computed_again(short, undrawn, tmp_path):
    """Another classifier of the same name, and other settings of the pretraining."""
    windows = simulated()
    for classifier, value in ((Constant(), 0.5), (Constant(1), 0.5)):
        result = study(windows, {"mine": classifier}, only=["mine"], out=tmp_path, **short)
        assert result.levels["mean"].tolist() == [value]
        predicted = result.scores[["n_0_0", "n_0_1"]].sum()
        assert predicted.idxmin() == ("n_0_0" if classifier.label else "n_0_1")
    assert len(list(tmp_path.glob("steps/*.csv"))) == 2


def test_a_failed_step_is_reported_and_the_study_continues(short, undrawn, tmp_path):
    methods = {"bad": Fails(), "constant": Warns()}
    result = study(simulated(), methods, only=["bad", "constant"], out=tmp_path, **short)
    assert set(result.levels["method"]) == {"constant"}
    plan = result.plan.set_index("step")
    assert plan["status"].to_dict() == {"bad": "failed", "constant": "finished"}
    assert plan["reason"].to_dict() == {"bad": "ValueError: channel A1 is missing", "constant": ""}
    assert result.primary is None
    assert result.about["warnings"] == ["channel C9 is flat"]
    levels = result.levels.set_index("method")
    assert levels["mean"]["constant"] == levels["chance"]["constant"] == 0.5


@pytest.mark.slow
def test_steps_in_two_processes_have_the_same_scores(short, undrawn, monkeypatch):
    monkeypatch.setattr(study_scores, "PARSEmbedder", PARSEmbedder)  # as in new processes
    whole, result = (study(simulated(), **short | dict(n_jobs=n)) for n in (1, 2))
    np.testing.assert_allclose(result.scores["value"], whole.scores["value"], atol=0.1)
    assert result.levels["mean"].tolist() == pytest.approx(whole.levels["mean"].tolist(), abs=0.02)


def test_subjects_with_one_class_are_classified_by_their_mean_probabilities(short, undrawn):
    windows = simulated(by_subject=True, gain=0.5, n_subjects=12)
    result = study(windows, only=["log band power"], **{**short, "draws": 4})
    assert not result.scores["is_centered"].any()
    assert (result.scores["stratum"] == result.scores["subject"].astype(int) % 2).all()
    # Two labeled subjects of six, so three sets of which the draws use two at a time
    draws = result.scores.groupby("shuffle")["draw"].unique().map(list)
    assert draws.tolist() == [[0, 1], [2, 3]]
    decisions = result.decisions.set_index("method")
    assert set(decisions["subjects"]) == {12}
    levels = result.levels.set_index("method")
    assert decisions["balanced_accuracy"]["log band power"] > levels["mean"]["log band power"]
    # Recompute the number of correctly classified subjects
    rows = result.scores[result.scores["method"] == "log band power"]
    is_right = (rows["p_1"] > rows["p_0"]) == (rows["subject"].astype(int) % 2 == 1)
    assert decisions["right"]["log band power"] == pytest.approx(12 * is_right.mean())
    # Each pretraining has its own decisions.
    twice = pd.concat([result.scores, result.scores.assign(pretraining=1)])
    pd.testing.assert_frame_equal(study_results.decisions_of(twice), result.decisions)


@pytest.mark.slow
def test_a_gain_is_followed_by_control_analyses(short, undrawn, tmp_path, monkeypatch):
    """The classifiers of the sham and of the random encoder predict one class."""
    classifier_of = study_scores.classifier_of

    def worse(method, *arguments, **options):
        if method.kind in ("sham", "random"):
            return Constant()
        return classifier_of(replace(method, views=("band_power",)), *arguments, **options)

    monkeypatch.setattr(study_scores, "classifier_of", worse)
    monkeypatch.setattr(study_results, "LEARNED", 2.0)
    monkeypatch.setattr(
        study_design,
        "EFFORTS",
        {"quick": study_design.Effort(6, 8.0, ("primary", "controls"), 2, CONTROLS)},
    )
    result = study(simulated(n_subjects=12), out=tmp_path, **short)
    assert result.primary.outcome == "gain"
    gains = result.controls.set_index(["method", "control"])
    assert {"slow", "phase", "order"} <= set(result.controls["control"])
    assert gains["gain"].loc[PARS].min() > 0.1
    assert abs(gains["score"].loc[PARS, "labels"] - 0.5) < 0.1
    description, *failures = result.control_notes
    assert "PARS" in description
    assert any("eyes" in note and "ValueError" in note for note in failures)  # no EOG channels


@pytest.mark.slow
def test_failed_control_analyses_are_notes_and_the_model_is_saved(undrawn, tmp_path, monkeypatch):
    monkeypatch.setattr(study_results.Study, "has_gain", True)
    effort = study_design.Effort(3, 8.0, ("baselines", "controls"), 2, ("slow", "phase"))
    monkeypatch.setitem(study_design.EFFORTS, "quick", effort)
    run_steps = MODULE.run_steps

    def fail_controls(plan, steps, *settings):
        if steps is plan.steps:
            yield from run_steps(plan, steps, *settings)
        else:
            yield from (SimpleNamespace(step=s, error="ValueError: no samples") for s in steps)

    monkeypatch.setattr(MODULE, "run_steps", fail_controls)
    settings = dict(effort="quick", encoders={}, draws=2, n_jobs=1, verbose=0)
    result = study(
        simulated(n_windows=4), out=tmp_path, only=["log band power", "controls"], **settings
    )
    assert result.controls is None
    assert len(result.control_notes) == 3
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report.count("no samples") == 3
    assert Path(result.recommendation.folder).is_dir()


@pytest.mark.parametrize("finished_controls", [["none"], ["slow", "phase"]])
def test_without_recorded_or_control_signals_there_are_no_gains(finished_controls, monkeypatch):
    def read(step, plan):
        return pd.DataFrame() if step.control in finished_controls else None

    monkeypatch.setattr(study_scores, "read_scores", read)
    steps = [SimpleNamespace(control=name) for name in ("none", "slow", "phase")]
    assert study_results.primary_control_gains(SimpleNamespace(control_steps=steps)) is None


@pytest.mark.slow
def test_a_folder_with_two_sets_of_channels_ends_in_a_report(short, undrawn, tmp_path):
    loading = two_layouts(tmp_path / "recordings")
    windows = datasets.folder.load(tmp_path / "recordings", **loading)
    data = StudyData.of(windows)
    check = check_data(data)
    assert not check.stops
    settings = Settings("quick", only=["log band power"], draws=2)
    plan = study_design.plan_study(data, check, settings, out=tmp_path)
    assert len(plan.check.facts["channels"].split(", ")) == 4
    result = run_study(plan, n_jobs=1, verbose=0)
    assert result.scores["value"].between(0, 1).all()
    assert "log band power" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(n_train_subjects=4), "n_train_subjects=4"),
        (dict(methods={"Log band power": Constant()}), "Log band power"),
        (dict(draws=1), "draws"),
        (dict(draws=7), "draws"),
        (dict(minutes=0), "minutes"),
        (dict(tasks=["parz"]), "parz"),
        (dict(without=["pars"]), "pars"),
        (dict(out=Path(__file__)), "test_study.py"),
    ],
)
def test_invalid_arguments_are_errors_before_anything_is_timed(
    short, monkeypatch, arguments, message
):
    monkeypatch.setattr(study_design, "_seconds_of", lambda *_: pytest.fail("it was timed"))
    with pytest.raises(ValueError, match=message):
        study(simulated(), **{**short, **arguments})
