"""A study: its plan, its folds, its answer, and that an interrupted one goes on."""

from __future__ import annotations

import importlib
import json
import logging
import re
import shutil
import time
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from support.study_folders import one_odd_recording, two_layouts, two_references

from braindecode_pars import FewLabelsClassifier, PARSEmbedder, datasets
from braindecode_pars.baselines import CENTRED
from braindecode_pars.evaluation import folds, study_plan
from braindecode_pars.evaluation.data_check import check_data
from braindecode_pars.evaluation.random_effects import mean_squares, variance_components
from braindecode_pars.evaluation.splitting import Corpus
from braindecode_pars.evaluation.study import study
from braindecode_pars.evaluation.study_plan import (
    METRIC,
    OWN,
    OWN_UNTRAINED,
    Method,
    channels_of_slow_voltages,
    folds_of,
    make_plan,
    numbers_of_people,
    plan_study,
    study_methods,
    unusable,
    usable_encoders,
)
from braindecode_pars.evaluation.study_report import (
    answer_of,
    decided_by_person,
    judged,
    weighted,
)
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.windows.door import as_windows

PARS = f"PARS{OWN}"
#: The module, which the package hides behind the function of the same name.
MODULE = importlib.import_module("braindecode_pars.evaluation.study")
SFREQ, N_SUBJECTS, N_WINDOWS = 128, 8, 12
QUICK = {"pretrain_epochs": 1, "embed_dim": 8, "num_heads": 2, "mlp_dim": 8, "num_layers": 1}


def simulated(gain=0.7, by_subject=False, n_subjects=N_SUBJECTS, seed=0):
    """Windows of noise whose first class has a rhythm of 10 Hz, not so clear that it is doubted."""
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


@pytest.fixture(scope="module")
def quick():
    """Few methods, and a pretraining of an instant."""

    def few(encoders, windows, **given):
        methods = study_methods(encoders, windows, **given)
        kept = [m for m in methods if m.name in ("band power", OWN_UNTRAINED, PARS)]
        kept += [Method(n, e, "simple") for n, e in given["further"].items()]
        for method in kept[1:3]:
            named = {f"transformer__{key}": value for key, value in QUICK.items()}
            method.estimator.set_params(**named)
        return kept

    def quick_encoder(task):
        return PARSEmbedder(task, random_state=0, verbose=0, **QUICK)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_plan, "study_methods", few)
        patch.setattr(study_plan, "own_encoder", quick_encoder)
        # Two draws are enough for a test of each difference.
        yield dict(encoders={}, draws=2, n_train_subjects=[2, 4], dataset="simulated", verbose=0)


@pytest.fixture(scope="module")
def finished(quick, tmp_path_factory):
    """A study, and its folder."""
    folder = tmp_path_factory.mktemp("whole")
    with warnings.catch_warnings(action="ignore"):
        return study(simulated(), out=folder, **quick), folder


@pytest.fixture
def untimed(monkeypatch):
    """A plan that fits nothing to say how long it takes."""
    monkeypatch.setattr(study_plan, "_seconds_of", lambda *_: (0.0, 0.0, 0.0))


@pytest.fixture
def undoubted(monkeypatch):
    """A study without controls, which take most of its time here."""
    monkeypatch.setattr(MODULE, "_doubt", lambda *_: (None, []))


pytestmark = [
    pytest.mark.filterwarnings("ignore:Pretraining"),
    pytest.mark.filterwarnings("ignore:The control"),
]


# The folds


@pytest.mark.parametrize("by_subject", [False, True])
def test_every_labelled_subject_is_tested_once_and_the_others_are_trained_on(by_subject):
    """So are people without labels, here subject 7, in every fold."""
    windows = simulated(by_subject=by_subject)
    corpus = corpus_of(windows.with_labels(np.where(windows.groups == 7, -1, windows.labels)))
    folds = folds_of(corpus, by_subject=by_subject)
    assert sorted(s for _, test in folds for s in corpus.subjects_of(test)) == [*range(7)]
    for train, test in folds:
        tested = corpus.subjects_of(test)
        assert corpus.subjects_of(train) == [s for s in range(8) if s not in tested]
        assert len(set(corpus.y[test].tolist())) == 2


def test_numbers_of_people_double_as_far_as_there_are_people():
    corpus = corpus_of(simulated(n_subjects=24))
    folds = folds_of(corpus, by_subject=False)
    assert numbers_of_people(corpus, folds, by_subject=False) == [2, 4, 8]
    assert numbers_of_people(corpus, folds, by_subject=True) == [4, 8]


# The methods and the plan


def test_every_pretrained_method_has_its_untrained_twin_of_the_same_size():
    windows = simulated()
    found = study_methods({"noise": "noise"}, windows, centred=True, further={})
    methods = {m.name: m for m in found}
    pretrained = [m for m in found if m.kind == "pretrained"]
    assert len(pretrained) == 8  # noise, PARS and features, plain and centred, and two networks
    for method in pretrained:
        twin = methods[method.twin]
        assert twin.kind == "untrained"
        assert twin.name.endswith("(transductive)") == method.name.endswith("(transductive)")
        assert method.given  # what the twin is not given is named
    for mark in ("", CENTRED):
        parts = [methods[n + mark].estimator.get_params() for n in ("noise", "untrained as noise")]
        embedders = [v for part in parts for v in part.values() if isinstance(v, PARSEmbedder)]
        sizes = [each.n_encoder_parameters(windows) for each in embedders]
        assert len(sizes) == 2
        assert sizes[0] == sizes[1]


def test_slow_voltages_are_frontal_where_there_is_such_a_channel():
    for names, chosen in ((["Fp1", "Cz"], None), (["C3", "Cz"], ["C3", "Cz"])):
        windows = SimpleNamespace(montages=[SimpleNamespace(names=names, bads=())])
        assert channels_of_slow_voltages(windows) == chosen


class Slow(ClassifierMixin, BaseEstimator):
    """Stands for a network; the clock of the plan is told what it takes."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


def test_tasks_name_their_methods_and_a_single_channel_has_no_spatial_method():
    windows = simulated()
    found = study_methods({}, windows, tasks=("mae", "features"), centred=False, further={})
    names = [method.name for method in found]
    assert [n for n in names if n.endswith(OWN)] == [f"MAE{OWN}", f"features{OWN}"]
    assert {"MAE network, frozen", "MAE network, all weights", "scratch"} <= set(names)
    assert {"tangent space", "ShallowFBCSPNet", "EEGNet"} <= set(names)
    signals = np.array(windows.read(range(len(windows))))[:, :1]
    one = as_windows(signals, windows.y, windows.groups, sfreq=SFREQ)
    single = {m.name for m in study_methods({}, one, centred=False, further={})}
    assert single.isdisjoint({"tangent space", "ShallowFBCSPNet"})
    assert "EEGNet" in single


def test_a_network_sees_a_bounded_number_of_windows():
    """None is 30 epochs or more, which are 60 steps; published networks need their 15 epochs."""
    for n_drawn, own, published in ((48, None, {15}), (200, 15, {15}), (600, 5, set())):
        found = study_methods({}, simulated(), n_drawn=n_drawn, centred=False, further={})
        epochs = {m.name: m.estimator.finetune_epochs for m in found if m.trains}
        assert epochs["scratch"] == epochs["PARS network, all weights"] == own
        assert {epochs.get(n) for n in ("EEGNet", "ShallowFBCSPNet")} - {None} == published
    assert unusable(4, 200) == {}
    assert "15 epochs would see more than 3,000 windows" in unusable(1, 201)["eegnet"]
    # Compared with scratch, and trained as scratch is.
    estimator = {m.name: m.estimator for m in found}["PARS network, all weights"]
    assert (estimator.head_epochs, estimator.encoder_lr_factor) == (0, 1.0)


def test_networks_have_a_quarter_of_the_draws_and_one_number_of_people(monkeypatch):
    corpus = corpus_of(simulated())
    folds = folds_of(corpus, by_subject=False)
    methods = [Method("simple", Slow(), "simple"), Method("net", Slow(), "network", trains=True)]
    monkeypatch.setattr(study_plan, "_seconds_of", lambda *_: (0.0, 60.0, 60.0))
    table = make_plan(corpus, methods, folds, [1, 2, 5], draws=12)
    assert table["people"].tolist() == [[1, 2, 5], [5]]
    assert table["draws"].tolist() == [12, 3]
    assert table["fits"].tolist() == [2 * 3 * 12, 2 * 3]
    # A fit takes as long as its people: 8 of 5 here. Features are computed once.
    assert table["minutes"].tolist() == pytest.approx([1 + 2 * 12 * 8 / 5, 1 + 2 * 3])


def test_seconds_are_scaled_from_few_windows_and_epochs():
    """The clock of this network is what it is told to read."""

    class Clock(Slow):
        def __init__(self, finetune_epochs=20, finetune_batch_size=32):
            self.finetune_epochs, self.finetune_batch_size = finetune_epochs, finetune_batch_size

        def fit(self, X, y):
            time.sleep(0.02 + 2e-4 * len(X) * self.finetune_epochs)
            seen.append(len(X) * self.finetune_epochs)
            return super().fit(X, y)

    seen = []
    corpus = corpus_of(simulated(n_subjects=30))
    method = Method("clock", Clock(), "network", trains=True)
    fold = folds_of(corpus, by_subject=False)[0]
    _, _, seconds = study_plan._seconds_of(method, corpus, fold, 12)
    assert sum(seen) <= 64 * 6  # not the 20 epochs of 144 windows
    assert seconds == pytest.approx(2e-4 * 20 * 144, rel=0.5)


def test_a_method_that_the_windows_do_not_allow_is_left_out_with_the_reason():
    class Refuses(Slow):
        def fit(self, X, y):
            raise ValueError("it needs two channels")

    corpus = corpus_of(simulated())
    folds = folds_of(corpus, by_subject=False)
    methods = [Method("simple", Slow(), "simple"), Method("refuses", Refuses(), "simple")]
    table = make_plan(corpus, methods, folds, [2], draws=2)
    assert table["left_out"].tolist() == ["", "it needs two channels"]
    with pytest.raises(ValueError, match="No method can be fitted: it needs two"):
        make_plan(corpus, methods[1:], folds, [2])


def test_encoders_that_fit_the_windows_take_part():
    """At another rate none does; that of sleep needs windows of 20 s; people must be others."""
    own = ["small", "noise"]
    assert usable_encoders(None, corpus_of(simulated())) == (dict(zip(own, own, strict=True)), [])
    night = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=1, sfreq=SFREQ)
    assert list(usable_encoders(None, corpus_of(night))[0]) == [*own, "pars-sleep"]
    slower = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=1, sfreq=100)
    usable, reasons = usable_encoders(None, corpus_of(slower))
    assert usable == {}
    assert all("128 Hz" in each and "100 Hz" in each for each in reasons)
    # Subject 1 of an unknown corpus is not the one of the encoder's corpus.
    windows = simulated()
    known = replace(windows, recordings=windows.recordings.assign(corpus="physionet_mi"))
    usable, [reason] = usable_encoders({"small": "small"}, corpus_of(known))
    assert usable == {}
    assert reason == "The encoder small was left out: it was pretrained on 7 of the people."


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


def compared(over_twin, over_simple, n=4):
    """Return tests of pars against both: mean difference and p."""
    pairs = [("pretraining", "untrained", over_twin), ("baseline", "band power", over_simple)]
    columns = ["question", "method_b", "mean_difference", "p_holm"]
    table = pd.DataFrame([(*names, *pair) for *names, pair in pairs], columns=columns)
    ends = dict(ci_low=table["mean_difference"] - 0.03, ci_high=table["mean_difference"] + 0.03)
    return table.assign(method_a="pars", n_train_subjects=n, detectable=0.042, **ends)


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
    answer = answer_of(pd.DataFrame(LEVELS), compared(over_twin, over_simple), 0.5)
    assert re.search(expected, answer), answer
    assert answer.endswith(
        "The best of all methods is other with 0.740 (95 % interval 0.690 to 0.790)."
    )


def test_other_numbers_of_people_are_told_where_they_say_something_else():
    levels = pd.DataFrame([*LEVELS, *(level("pars", 0.6, n=n) for n in (2, 3))])
    pairs = {2: (0.1, 0.5), 3: (0.1, 0.001), 4: (0.1, 0.001)}
    answer = answer_of(levels, pd.concat(compared(p, p, n=n) for n, p in pairs.items()), 0.5)
    assert "The answer is the same with 3." in answer
    assert "With 2 no difference from the untrained encoder was found." in answer


def test_a_score_below_chance_is_no_answer():
    levels = pd.DataFrame([level("pars", 0.4), level("band power", 0.52, p=0.3)])
    assert "no difference from chance level" in answer_of(levels, pd.DataFrame(), 0.5)


# The whole


@pytest.mark.slow
@pytest.mark.parametrize("by_subject", [False, True])
def test_labels_of_noise_end_in_no_difference_from_chance(monkeypatch, untimed, by_subject):
    """With range(100), 96 and 95 of 100 did. Of 20, fewer than 17 would in one of 60 runs."""

    def few(encoders, windows, **given):
        methods = study_methods(encoders, windows, **given)
        return [m for m in methods if m.name in ("band power", "untrained as noise", "noise")]

    monkeypatch.setattr(study_plan, "study_methods", few)
    n_subjects = 16 if by_subject else 10
    how = dict(by_subject=by_subject, n_subjects=n_subjects)
    given = dict(encoders={"noise": "noise"}, draws=3, verbose=0)
    answers = [study(simulated(gain=0, seed=n, **how), **given).answer for n in range(20)]
    assert sum("no difference from chance level" in answer for answer in answers) >= 17


def test_a_study_scores_every_method_on_the_same_people(finished):
    found, folder = finished
    assert set(found.scores["method"]) == {"band power", OWN_UNTRAINED, PARS}
    counts = found.scores.groupby("method").size()
    assert counts.nunique() == 1  # 8 subjects, 2 numbers, 2 draws
    assert counts.iloc[0] == 32
    # A plain re-computation of the means.
    means = found.scores.groupby(["method", "n_train_subjects"])["value"].mean()
    for _, row in found.levels.iterrows():
        assert row["mean"] == pytest.approx(means[row["method"], row["n_train_subjects"]])
    assert found.best == means[:, 4].idxmax()
    assert set(found.tests["question"]) == {"pretraining", "baseline"}
    assert len(found.confusion) == 2 * N_SUBJECTS * N_WINDOWS  # two draws
    stored = json.loads((folder / "study.json").read_text())
    assert stored["answer"] == found.answer
    assert found.report(folder).is_file()


def test_the_encoder_of_a_fold_has_not_seen_the_people_it_is_tested_on(finished):
    found, out = finished
    corpus = corpus_of(simulated())
    for k, (train, test) in enumerate(folds_of(corpus, by_subject=False)):
        # The digest keeps the encoders of other recordings apart.
        folder = out / "encoders" / f"{found.about['digest']}-pars-fold-{k}"
        seen = load_encoder(folder).card.subjects
        assert seen == corpus.subjects_of(train)
        assert not set(seen) & set(corpus.subjects_of(test))


def test_an_interrupted_study_goes_on_and_ends_the_same(
    quick, finished, untimed, tmp_path, monkeypatch
):
    windows, (whole, _) = simulated(), finished
    run, calls = folds._run, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) in (5, 16):
            raise KeyboardInterrupt
        return run(*given)

    monkeypatch.setattr(folds, "_run", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            study(windows, out=tmp_path / "parts", **quick)
    again = study(windows, out=tmp_path / "parts", **quick)
    assert len(calls) > 20
    pd.testing.assert_frame_equal(again.scores, whole.scores)
    pd.testing.assert_frame_equal(again.tests, whole.tests)
    assert again.answer == whole.answer
    # The finished one is read, not computed.
    calls.clear()
    study(windows, out=tmp_path / "parts", **quick)
    assert calls == []


class Fails(Slow):
    """Fails where it is trained on subject 0, which is in one of two folds."""

    def fit(self, X, y):
        if 0 in X.groups and len(X) > 2 * N_WINDOWS:
            raise ValueError("channel A1 is missing")
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore:vote was pretrained on")
def test_a_method_that_fails_is_named_and_the_others_go_on(
    quick, untimed, undoubted, tmp_path, monkeypatch
):
    """One method, and the pretraining of another in the second fold."""
    rates = iter([1e-4, -1.0])

    def broken(task):
        return PARSEmbedder(task, pretrain_lr=next(rates), verbose=0, **QUICK)

    monkeypatch.setattr(study_plan, "own_encoder", broken)
    given = {**quick, "n_train_subjects": [4]}
    further = {"bad": Fails(), "vote": FewLabelsClassifier()}
    found = study(simulated(), further, out=tmp_path, **given)
    assert set(found.scores["method"]) == {"band power", OWN_UNTRAINED, "vote"}
    reason = "failed (ValueError: channel A1 is missing)"
    assert found.plan.set_index("method")["left_out"]["bad"] == reason
    assert f"Failed, and without a score: bad, {PARS}." in found.answer
    page = found.report(tmp_path).read_text()
    assert page.count(reason) == 2  # in the table of scores and among what was left out
    assert found.about["model"] == "vote"
    assert FewLabelsClassifier.load(tmp_path / "model").predict(simulated()).shape == (96,)


def test_a_study_in_which_every_method_fails_ends_in_a_report(
    quick, untimed, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        study_plan, "study_methods", lambda *_, **__: [Method("x", Fails(), "simple")]
    )
    found = study(simulated(), out=tmp_path, **quick)
    assert found.answer.startswith("There is no answer. Every method failed: ValueError: channel")
    assert "failed (ValueError" in found.report(tmp_path).read_text()


def test_log_lines_and_warnings_are_shown_once_with_their_number(caplog):
    log = logging.getLogger("braindecode_pars.windows")
    told = []

    def speak():
        with MODULE._said_once(told):
            for n in range(3):
                log.info("Channels %d are not used.", n)
                warnings.warn(f"In 2 of 4 folds: it took {n} steps", UserWarning, stacklevel=1)
            assert caplog.messages == []

    caplog.set_level(logging.INFO)
    with pytest.warns(UserWarning, match=r"^it took 0 steps \(6 times\)$"):
        speak()
    assert caplog.messages == ["Channels 0 are not used. (3 times)"]
    assert told == ["it took 0 steps (6 times)"]


def test_people_are_decided_by_the_mean_of_their_windows(quick, untimed, undoubted):
    """All people are told apart by the rhythm, and few windows are wrong."""
    windows = simulated(by_subject=True, gain=0.5, n_subjects=12)
    found = study(windows, **{**quick, "n_train_subjects": [6]})
    table = found.people.set_index("method")
    assert set(table["people"]) == {12}
    assert "every subject has one class" in found.about["left_out"][-1]  # nothing is centred
    means = found.levels.set_index("method")["mean"]
    assert table["balanced_accuracy"]["band power"] > means["band power"]
    # One recording each, of equal lengths: the score of windows is the mean over people.
    assert table["by_recording"].tolist() == table["balanced_accuracy"].tolist()
    np.testing.assert_allclose(table["by_window"], means[table.index], atol=1e-6)
    # A plain computation from what is decided.
    right = (found.decided["true"] == found.decided["predicted"]).mean()
    assert right * 12 == pytest.approx(table["right"].iloc[0])
    assert "of 12 people are right" in found.answer
    assert (found.levels[["ci_low", "ci_high"]].stack().between(0, 1)).all()


def test_a_person_has_the_class_with_the_highest_mean_probability():
    """Of five windows, the first and three in all are wrong, but the right ones are sure."""
    y, groups = np.repeat([0, 1], 5), np.repeat([3, 4], 5)
    corpus = corpus_of(as_windows(np.zeros((10, 1, 8)), y, groups, sfreq=SFREQ))
    right = np.tile([0.4, 0.4, 0.4, 0.9, 0.9], 2)
    shares = np.where(y == 0, [right, 1 - right], [1 - right, right]).tolist()
    result = dict(
        key=dict(method="m", seed=0), subjects=groups.astype(str).tolist(), true=y.tolist()
    )
    result |= dict(predicted=(np.array(shares[1]) > 0.5).astype(int).tolist())
    result |= dict(probabilities=dict(classes=[0, 1], columns=shares))
    people, decided = decided_by_person([result], corpus)
    assert decided["predicted"].tolist() == decided["true"].tolist() == ["0", "1"]
    columns = ["right", "people", "balanced_accuracy", "auroc", "by_recording", "by_window"]
    assert people[columns].iloc[0].tolist() == pytest.approx([2, 2, 1, 1, 1, 0.4])


def test_a_simple_method_that_is_nearly_perfect_is_controlled(quick, untimed):
    found = study(simulated(gain=5), **{**quick, "n_train_subjects": [4]})
    assert found.levels["mean"].max() > 0.95
    rows = found.controls[found.controls["against"] == "chance level"]
    rows = rows[rows["method"] == "band power"]
    assert {"slow", "phase", "amplitude", "order"} <= set(rows["control"])
    assert rows["gain"].between(0.4, 0.5).all()  # over chance level, in the draws of the controls
    assert any("band power outperforms chance level" in text for text in found.doubts)


def test_a_group_whose_controls_fail_does_not_take_those_of_others(monkeypatch, tmp_path):
    """The others run again without it, and the doubts name the reason."""
    groups = {  # what a gain is over: the methods
        against: [Method(name, DummyClassifier(), "simple"), Method(against, None, "untrained")]
        for against, name in (("untrained", "PARS"), ("chance level", "band power"))
    }
    calls = []

    def controls(estimators, *_, **__):
        calls.append([*estimators])
        if "PARS" in estimators:
            raise folds.FoldError.of("a fold", ValueError("too few windows"), "PARS")
        return pd.DataFrame(dict(method=[*estimators], value=0.75))

    for name, found in dict(
        controls=controls,
        control_gains=lambda scores, against: scores.assign(against=against),
        _options=lambda *_: {},
        _with_own=lambda planned, method, k: method.estimator,
    ).items():
        monkeypatch.setattr(MODULE, name, found)
    check = SimpleNamespace(by_subject=False, classes=["a", "b"])
    runs = pd.DataFrame({"draws": {"PARS": 2, "band power": 2}})
    planned = SimpleNamespace(runs=runs, folds=[], folder=tmp_path, windows_ds=None, check=check)
    [gains], told = MODULE._controlled(planned, groups, False, 4, 0, [])
    assert calls == [
        ["PARS", "untrained", "band power", "chance level"],
        ["band power", "chance level"],
    ]
    assert gains.to_numpy().tolist() == [
        ["band power", 0.75, "chance level"],
        ["chance level", 0.5, "chance level"],  # what guesses give, whatever their draws say
    ]
    assert told == ["The controls of gains over untrained failed: ValueError: too few windows."]


def test_the_doubts_say_how_much_of_the_features_is_the_person(quick, untimed, undoubted):
    for by_subject in (False, True):
        given = {**quick, "n_train_subjects": [4]}
        windows = simulated(by_subject=by_subject, n_subjects=12)
        first, share, scores, *way = study(windows, **given).doubts
        assert first == MODULE.NO_GAIN
        assert share.startswith(f"Of the variance of the features of {PARS}, ")
        assert "a linear model of these features has a balanced accuracy of 0." in scores
        # Where a person has one class, there is no way from class to class.
        assert [text.split(" has ")[0] for text in way] == (
            [] if by_subject else ["The direction from class to class"]
        )


def test_an_answer_where_no_pretrained_method_could_be_fitted(
    quick, undoubted, tmp_path, monkeypatch
):
    def refuses(method, *_):
        if method.kind == "pretrained":
            raise ValueError("its windows are too short")
        return 0.0, 0.0, 0.0

    monkeypatch.setattr(study_plan, "_seconds_of", refuses)
    given = {**quick, "n_train_subjects": [2]}
    found = study(simulated(), out=tmp_path / "study", **given)
    assert found.answer.startswith("No pretrained encoder took part.")
    assert found.plan["left_out"].tolist() == ["", "", "its windows are too short"]
    assert found.tests.empty
    assert found.report(tmp_path / "study").is_file()


def test_a_centred_method_is_compared_with_centred_ones_only():
    """Also where a method that is not centred has the highest score."""
    centred = [f"{name}{CENTRED}" for name in ("simple", "pretrained")]
    means = dict(zip(("simple", "pretrained", *centred), (0.9, 0.6, 0.5, 0.7), strict=True))
    methods = {name: Method(name, None, name.split(",")[0]) for name in means}
    rows = [
        (name, str(subject), seed, mean + (subject + seed) % 3 / 100)
        for name, mean in means.items()
        for subject in range(8)
        for seed in range(2)
    ]
    scores = pd.DataFrame(rows, columns=["method", "subject", "seed", "value"])
    scores = scores.assign(n_train_subjects=4, metric=METRIC, dataset="", protocol="")
    pairs = judged(scores, methods, 0.5)[1][["method_a", "method_b"]].to_numpy().tolist()
    assert [set(pair) for pair in pairs] == [{"pretrained", "simple"}, set(centred)]


def test_where_each_subject_has_one_class_every_class_counts_the_same():
    """Twice as many subjects of one class do not make its score count twice."""
    windows = simulated(n_subjects=12)
    corpus = corpus_of(windows.with_labels((windows.groups % 3 > 0).astype(int)))  # 4 and 8
    rows = [dict(subject=s, value=1.0 if s % 3 else 0.0) for s in range(12)]  # the larger class
    assert weighted(pd.DataFrame(rows), corpus)["value"].mean() == pytest.approx(0.5)


def test_a_study_without_an_answer_says_what_is_needed(tmp_path):
    windows = simulated(n_subjects=3)
    found = study(windows, out=tmp_path, dataset="few")
    assert found.answer.startswith("There is no answer.")
    assert "3" in found.answer
    assert len(found.scores) == 0
    assert found.report(tmp_path).is_file()
    with pytest.raises(ValueError, match="draws"):  # also where there is no answer
        study(windows, draws=1)


@pytest.mark.filterwarnings("ignore:.*were skipped", "ignore:The 12 recordings share")
@pytest.mark.parametrize("write", [two_layouts, two_references, one_odd_recording])
def test_a_folder_of_a_laboratory_has_a_plan_and_ends_in_a_report(
    quick, untimed, undoubted, tmp_path, write
):
    """Half of the files with more inputs, two references in the names, one odd recording."""
    loading = write(tmp_path / "recordings")
    windows = datasets.folder.load(tmp_path / "recordings", **loading)
    check = check_data(windows)
    assert not check.stops
    planned = plan_study(windows, check, out=tmp_path, **{**quick, "n_train_subjects": [4]})
    assert len(planned.check.facts["channels"].split(", ")) == 4
    if write is two_layouts:
        found = MODULE.run_study(planned, verbose=0)
        assert found.scores["value"].between(0, 1).all()
        assert "PARS" in found.report(tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(n_train_subjects=[4, 7]), "n_train_subjects is 7; use 1 to 4"),
        (dict(n_train_subjects=[4, 4]), "n_train_subjects has an entry twice"),
        (dict(methods={"band power": Slow()}), "Two methods are called band power"),
        (dict(draws=1), "draws"),
        (dict(tasks=["parz"]), "parz"),
        (dict(out=Path(__file__)), "test_study.py"),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_anything_is_timed(
    quick, monkeypatch, given, message
):
    monkeypatch.setattr(study_plan, "_seconds_of", lambda *_: pytest.fail("it was timed"))
    monkeypatch.setattr(study_plan, "study_methods", study_methods)
    with pytest.raises(ValueError, match=message):
        study(simulated(), **{**quick, **given})


def test_the_confusion_matrix_has_the_draws_of_the_plan_only(
    quick, finished, untimed, undoubted, tmp_path
):
    """The folder of an earlier plan has more of them, and keeps their scores."""
    shutil.copytree(finished[1], tmp_path, dirs_exist_ok=True)
    found = study(simulated(), out=tmp_path, **{**quick, "draws": 3})
    assert len(found.confusion) == 3 * N_SUBJECTS * N_WINDOWS
    found = study(simulated(), out=tmp_path, **quick)
    assert len(found.confusion) == 2 * N_SUBJECTS * N_WINDOWS
