"""Splitters: training and test windows, as cross-validators and in protocols."""

import unicodedata
from dataclasses import replace

import mne
import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    check_cv,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.subjects import with_split, with_subject
from torch.utils.data import Subset

from braindecode_pars import PARSClassifier, SubjectCentering, as_sklearn
from braindecode_pars.baselines import make_methods
from braindecode_pars.datasets import mental_arithmetic
from braindecode_pars.estimators import HMMSmoothing
from braindecode_pars.evaluation import (
    LabeledSubjects,
    LabeledWindows,
    LeaveOneSubjectOut,
    LogBandPower,
    WithinSubject,
    evaluate,
    leave_one_subject_out,
    paired_tests,
    score_table,
    summarize,
)
from braindecode_pars.evaluation.splitters import make_folds
from braindecode_pars.evaluation.splitting import (
    Corpus,
    check_arguments,
    check_subjects,
    classes_of_subjects,
    draw_subjects,
)
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.windows.convert import as_windows

PROBE = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())
#: Each splitter, with values that suit four subjects of 24 windows.
SPLITTERS = [
    LeaveOneSubjectOut(),
    LabeledSubjects(1, cv=GroupKFold(2), seeds=[0, 1]),
    LabeledSubjects(test_subjects=[2, 3]),
    LabeledWindows([0, 1, 4]),
    WithinSubject(3),
]
SUBJECTS = np.repeat([1, 2, 3, 4], 24)
LABELS = np.tile([0, 0, 1], 32)


def simulated_windows(n_windows, n_times, sfreq):
    """Consecutive windows of noise of the subjects "a" and "b"."""
    raws = [
        mne.io.RawArray(
            np.random.default_rng(i).normal(size=(1, n_windows * n_times)),
            mne.create_info(["Cz"], sfreq, "eeg"),
            verbose="error",
        )
        for i in range(2)
    ]
    parts = [fixed_windows(raw, seconds=n_times / sfreq) for raw in raws]
    for part, subject in zip(parts, "ab", strict=True):
        part.set_description({"subject": subject})
    return as_windows(BaseConcatDataset(parts))


def pairs(splitter, y=LABELS, groups=SUBJECTS, X=None) -> list[tuple[list, list]]:
    return [(a.tolist(), b.tolist()) for a, b in splitter.split(X, y, groups)]


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_the_splitter_works_with_scikit_learn(splitter):
    X = np.random.default_rng(0).normal(size=(96, 2))
    assert check_cv(splitter) is splitter
    result = pairs(splitter, X=X)
    assert splitter.get_n_splits(X, LABELS, SUBJECTS) == len(result) == len(pairs(splitter))
    for train, test in result:
        assert len(train) * len(test) > 0
        assert {*train}.isdisjoint(test)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=splitter)
    search.fit(X, LABELS, groups=SUBJECTS)
    outer = [(np.arange(48), np.arange(48, 96)), (np.arange(48, 96), np.arange(48))]
    assert search.n_splits_ == len(result)
    if splitter.test_subjects is None:  # the outer folds have other subjects
        nested = cross_val_score(search, X, LABELS, cv=outer, params={"groups": SUBJECTS})
        assert np.isfinite(nested).all()


def test_groups_are_needed():
    with pytest.raises(ValueError, match="groups is required"):
        next(LeaveOneSubjectOut().split(np.zeros((4, 1)), np.zeros(4)))
    with pytest.raises(ValueError, match="test subjects are 5"):
        next(LeaveOneSubjectOut().split(np.zeros((4, 1)), groups=[5] * 4))


def test_one_subject_out_is_leave_one_group_out_and_its_scores_are_those_of_the_protocol(brief):
    X, y, groups = as_sklearn(brief)
    ours = LeaveOneSubjectOut()
    theirs = [(a.tolist(), b.tolist()) for a, b in LeaveOneGroupOut().split(y, y, groups)]
    assert pairs(ours, y, groups, X) == theirs
    assert pairs(LeaveOneSubjectOut([3, 1]), y, groups, X) == [theirs[2], theirs[0]]
    one_by_one = cross_val_score(PROBE, X, y, groups=groups, cv=ours, scoring="accuracy")
    metrics = ["accuracy"]
    table = leave_one_subject_out({"probe": PROBE}, brief, metrics=metrics, verbose=0)
    one_by_one = one_by_one.astype("float32")  # the precision of torchmetrics
    assert table["value"].tolist() == one_by_one.tolist()
    same = evaluate({"probe": PROBE}, brief, LeaveOneGroupOut(), metrics=metrics, verbose=0)
    assert same["value"].tolist() == one_by_one.tolist()
    assert set(same["protocol"]) == {"compare"}


def test_labeled_windows_are_the_first_of_each_class_and_the_test_is_the_same():
    y = np.tile([0, 0, 0, 1], 24)
    result = pairs(LabeledWindows([0, 1, 2], gap=1, test_subjects=[2]), y)
    others = [*range(24), *range(48, 96)]
    # Of subject 2, rows 24, 25 and 26 are of class 0, and row 27 is the first of class 1.
    added = [sorted({*train} - {*others}) for train, _ in result]
    assert added == [[], [24, 27], [24, 25, 27, 31]]
    assert all({*others} <= {*train} for train, _ in result)
    # Windows 26, 28, 30 and 32 are neighbors of labeled ones; 29 is not.
    expected = [29, *range(33, 48)]
    assert [test for _, test in result] == [expected] * 3
    (wider,) = pairs(LabeledWindows(2, gap=3, test_subjects=[2]), y)
    assert wider[1] == [*range(35, 48)]


def test_labeled_minutes_are_the_first_of_a_subject(nights):
    X, y, groups = as_sklearn(nights)  # windows of 30 s
    result = pairs(LabeledWindows(minutes=[0, 1.5], gap=0, test_subjects=[2]), y, groups, X)
    assert [sorted({*train} & {*range(24, 48)}) for train, _ in result] == [[], [24, 25, 26]]
    assert [test for _, test in result] == [[*range(27, 48)]] * 2
    with pytest.raises(ValueError, match="minutes"):
        pairs(LabeledWindows(minutes=[1]))
    unknown = replace(X, table=X.table.assign(start=-1, stop=-1))
    with pytest.raises(ValueError, match="minutes"):
        pairs(LabeledWindows(minutes=[1]), y, groups, unknown)


def test_a_window_that_ends_at_the_minute_is_within_it():
    """A hundred windows of 0.6 s are a minute, although their sum in binary numbers is not."""
    windows = simulated_windows(n_windows=120, n_times=60, sfreq=100.0)
    y, groups = np.tile([0, 1], 120), np.repeat(["a", "b"], 120)
    ((train, _),) = pairs(LabeledWindows(minutes=[1], test_subjects=["b"]), y, groups, windows)
    assert len(train) == 120 + 100


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_a_missing_subject_raises(splitter):
    groups = SUBJECTS.astype(object)
    for missing in (np.nan, None, pd.NA, "nan"):
        groups[:5] = missing
        with pytest.raises(ValueError, match="5 of 96"):
            pairs(splitter, groups=groups)
    with pytest.raises(ValueError, match="5 of 96"):
        splitter.get_n_splits(None, LABELS, groups)


def test_blocks_of_a_subject_have_a_gap():
    (first, middle, last) = pairs(WithinSubject(3, gap=2, test_subjects=[3]))
    assert middle == ([*range(48, 54), *range(66, 72)], [*range(56, 64)])
    assert first == ([*range(58, 72)], [*range(48, 56)])
    assert last == ([*range(48, 62)], [*range(64, 72)])


def test_recordings_of_a_subject_are_blocks(nights):
    two = BaseConcatDataset([with_subject(nights, 2, subject=1).datasets[i] for i in (0, 1)])
    X, y, groups = as_sklearn(two)
    assert pairs(WithinSubject(None), y, groups, X) == [
        ([*range(24, 48)], [*range(24)]),
        ([*range(24)], [*range(24, 48)]),
    ]
    # Recording after recording, though the times of both begin at 0
    halves = pairs(WithinSubject(2, gap=3), y, groups, X)
    assert halves == pairs(WithinSubject(None), y, groups, X)


def test_windows_out_of_order_are_taken_in_time(nights):
    X, y, groups = as_sklearn(nights)
    order = np.random.default_rng(0).permutation(len(y))
    expected = pairs(LabeledWindows([2]), y, groups, X)
    result = pairs(LabeledWindows([2]), y[order], groups[order], X[order])
    as_before = [(sorted(order[a].tolist()), sorted(order[b].tolist())) for a, b in result]
    assert as_before == expected


def test_overlapping_windows_raise(nights):
    ds = nights.datasets[0]
    half = ds.metadata.assign(
        i_start_in_trial=np.arange(24) * 1500, i_stop_in_trial=np.arange(24) * 1500 + 3000
    )
    parts = [EEGWindowsDataset(ds.raw, half, ds.description), nights.datasets[1]]
    X, y, groups = as_sklearn(BaseConcatDataset(parts))
    with pytest.raises(ValueError, match="gap=0"):
        pairs(WithinSubject(2, gap=0), y, groups, X)
    assert pairs(WithinSubject(2, gap=1), y, groups, X)


def test_duplicate_recordings_raise(nights):
    """Also if the first window differs."""
    copied = with_subject(nights, 2, subject=9)
    raw = copied.datasets[1].raw.copy()
    raw._data[:, :3000] = 1e-5 * np.random.default_rng(0).standard_normal((3, 3000))
    changed = EEGWindowsDataset(
        raw, copied.datasets[1].metadata, dict(copied.datasets[1].description)
    )
    for copy in (copied.datasets[1], changed):
        both = BaseConcatDataset([nights.datasets[1], copy, nights.datasets[2]])
        X, y, groups = as_sklearn(both)
        with pytest.raises(ValueError, match="Subjects 2 and 9"):
            pairs(LeaveOneSubjectOut(), y, groups, X)
        with pytest.raises(ValueError, match="Subjects 2 and 9"):
            leave_one_subject_out({"probe": PROBE}, both, verbose=0)


@pytest.mark.parametrize(
    ("splitter", "message"),
    [
        (LabeledWindows(2, minutes=[1]), "n_windows or minutes"),
        (LabeledWindows(20), "n_windows=20 and gap=1"),
        (LabeledWindows(1, gap=-1), "gap"),
        (LabeledSubjects(9, test_subjects=[1]), "n_train_subjects=9 .* 1 to 3"),
        (LabeledSubjects(), "There are no test subjects: "),
        (LabeledSubjects(test_subjects=[1, 2], train_subjects=[2, 3]), "train_subjects .* 2, 3"),
        (LabeledSubjects(test_subjects=[1, 2, 3, 4]), "remains .* 1, 2, 3, 4"),
        (LabeledSubjects(cv=KFold(2, shuffle=True, random_state=0)), "GroupKFold"),
        (LabeledSubjects(cv=GroupKFold(2), test_subjects=[1]), "cv .* test_subjects"),
        (WithinSubject(1), r"at least 2 blocks .* subject 1 has 1\."),
        (LeaveOneSubjectOut([7]), "test_subjects .* 7"),
    ],
)
def test_invalid_splits_raise(splitter, message):
    with pytest.raises(ValueError, match=message):
        pairs(splitter)


@pytest.mark.slow
@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_random_labels_stay_at_chance(splitter):
    """The mean of a subject, and a trend within each recording, do not predict random labels."""
    accuracies = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        drift = np.tile(np.linspace(-1, 1, 24), 4)
        X = np.c_[SUBJECTS + drift, drift] + rng.normal(0, 0.1, (96, 2))
        y = rng.integers(0, 2, 96)
        scores = []
        for train, test in splitter.split(X, y, SUBJECTS):
            if len(set(y[train])) == 2:
                centers = [X[train][y[train] == k].mean(axis=0) for k in (0, 1)]
                distances = [((X[test] - center) ** 2).sum(axis=1) for center in centers]
                scores.append(((distances[1] < distances[0]) == y[test]).mean())
        accuracies.append(np.mean(scores))
    assert stats.ttest_1samp(accuracies, 0.5).pvalue > 0.001
    assert abs(np.mean(accuracies) - 0.5) < 0.02


def test_test_subject_data_is_a_column(brief):
    methods = {
        "probe": PROBE,
        "centered": make_pipeline(SubjectCentering(LogBandPower(), min_windows=2), GaussianNB()),
    }
    wanted = dict(metrics=["balanced_accuracy"], verbose=0)
    scores = evaluate(methods, brief, LabeledWindows([0, 2]), **wanted)
    assert HMMSmoothing(PROBE).test_subject_data_ == "all unlabeled"
    used = scores.groupby(["method", "n_windows"])["test_subject_data"].unique().map(list)
    assert used["probe", 0] == ["none"]
    assert used["centered", 0] == ["all unlabeled"]
    assert used["probe", 2] == used["centered", 2] == ["labeled"]
    assert set(scores["n_train_subjects"]) == {3}
    assert len(summarize(scores)) == 4
    assert score_table(scores).index.names[2:] == ["method", "test_subject_data", "n_windows"]
    others = evaluate({"chance": DummyClassifier()}, brief, LeaveOneSubjectOut(), **wanted)
    assert len(score_table(pd.concat([scores, others]))) == 5  # without n_windows
    tests = paired_tests(scores, "balanced_accuracy")
    assert tests[["n_windows", "test"]].to_numpy().tolist() == [[0, "corrected"], [2, "corrected"]]


def test_methods_without_test_subject_data_predict_each_window_alone():
    windows = mental_arithmetic(["Subject00", "Subject01", "Subject02"])
    X, y, groups = as_sklearn(windows)
    new = groups == "Subject02"
    order = np.random.default_rng(0).permutation(new.sum())
    for name, method in make_methods(["classical-features", "tangent-space"]).items():
        scores = evaluate({name: method}, windows, LeaveOneSubjectOut(["Subject02"]), verbose=0)
        assert set(scores["test_subject_data"]) == {"none"}
        fitted = method.fit(X[~new], y[~new])
        alone = [fitted.predict(X[new][[i]])[0] for i in order.tolist()]
        assert alone == fitted.predict(X[new])[order].tolist()


@pytest.mark.slow
def test_within_subjects_the_test_is_an_ordinary_t_test(brief):
    methods = {"probe": PROBE, "guess": make_pipeline(LogBandPower(), DummyClassifier())}
    scores = evaluate(methods, brief, WithinSubject(3), metrics=["accuracy"], verbose=0)
    assert scores["block"].tolist()[:4] == [0, 0, 1, 1]
    assert set(scores["test_subject_data"]) == {"labeled"}
    (row,) = paired_tests(scores, "accuracy").to_dict("records")
    table = scores.pivot_table("value", "subject", "method")
    assert row["test"] == "within"
    assert row["p"] == pytest.approx(stats.ttest_rel(table["probe"], table["guess"]).pvalue)


# Folds of a corpus ------------------------------------------------------------------------------

SPLIT = {1: "train", 2: "valid", 3: "test", 4: "test"}


def folds_of(corpus, splitter, estimator=None):
    return make_folds({"A": estimator or DummyClassifier()}, corpus, splitter, [0])


def subjects_of_folds(windows, **arguments) -> list[tuple[list, list]]:
    """Training and test subjects of every fold of LabeledSubjects."""
    corpus = Corpus.of(windows, "nights", -1)
    folds = folds_of(corpus, LabeledSubjects(**arguments))
    return [(corpus.subjects_of(fold.train), corpus.subjects_of(fold.test)) for fold in folds]


def test_test_subjects_are_given_or_those_of_split_test(nights):
    assert subjects_of_folds(nights, test_subjects=[2]) == [([1, 3, 4], [2])]
    assert subjects_of_folds(nights, test_subjects=[2], train_subjects=[4, 1]) == [([1, 4], [2])]
    split = with_split(nights, SPLIT)
    assert subjects_of_folds(split) == [([1, 2], [3, 4])]
    assert subjects_of_folds(Subset(split, range(72))) == [([1, 2], [3])]
    # Subjects of split "test" are never used for training.
    assert subjects_of_folds(split, test_subjects=[2]) == [([1], [2])]
    with pytest.raises(ValueError, match=r"no test subjects in dataset nights.* test_subjects"):
        subjects_of_folds(nights)
    both = [*split.datasets, *with_subject(split, 3, split="train").datasets[2:3]]
    with pytest.raises(ValueError, match=r"'test'.*: 3\)"):
        subjects_of_folds(BaseConcatDataset(both))


def test_subjects_without_labels_are_trained_on_but_not_counted(nights):
    corpus = Corpus.of(with_subject(nights, 2, target=-1), "nights", -1)
    (fold,) = folds_of(corpus, LabeledSubjects(test_subjects=[4]))
    assert corpus.subjects_of(fold.train) == [1, 2, 3]
    assert fold.n_train_subjects == 2
    assert fold.pooled
    folds = folds_of(corpus, LabeledWindows([0, 1], test_subjects=[4]))
    assert [fold.n_train_subjects for fold in folds] == [2, 2]
    with pytest.raises(ValueError, match=r"labeled windows.*: 2"):
        folds_of(corpus, LabeledSubjects(test_subjects=[1, 2]))


@pytest.mark.parametrize("cv", [2, [(range(48), range(48, 96)), (range(48, 96), range(48))]])
def test_any_cross_validator_divides_whole_subjects(nights, cv):
    result = subjects_of_folds(nights, cv=cv)
    assert len(result) == 2
    for train, test in result:
        assert len(train) == len(test) == 2
        assert {*train, *test} == {1, 2, 3, 4}


def test_the_windows_of_a_cross_validator_are_kept(nights):
    """A cross-validator may use only some of the windows of a subject."""
    corpus = Corpus.of(nights, "nights", -1)
    (fold,) = folds_of(corpus, LabeledSubjects(cv=[(range(5), range(24, 31))]))
    assert fold.train.tolist() == list(range(5))
    assert fold.test.tolist() == list(range(24, 31))


def test_draws_are_nested_and_new_for_every_seed():
    subjects = list(range(30))
    class_of = {subject: "abc"[subject % 3] for subject in subjects}
    for seed in range(5):
        for given in (None, class_of):
            orders = [draw_subjects(subjects, n, seed, given) for n in (3, 6, 30)]
            assert orders[0] == orders[1][:3] == orders[2][:3]
            assert sorted(orders[2]) == subjects
        # If each subject has one class, a draw has all classes.
        assert sorted(class_of[s] for s in orders[1]) == [*"aabbcc"]
    for given in (None, class_of):
        assert len({tuple(draw_subjects(subjects, 3, seed, given)) for seed in range(5)}) == 5
    with pytest.raises(ValueError, match=r"31.* 30"):
        draw_subjects(subjects, 31, 0)


def test_draws_of_subjects_with_one_class_have_all_classes():
    groups, y = np.repeat(np.arange(9), 3), np.repeat([0, 0, 0, 1, 0, 0, 1, 0, 1], 3)
    splitter = LabeledSubjects(2, test_subjects=[7, 8], seeds=range(20))
    draws = [set(groups[train]) for train, _ in splitter.split(None, y, groups)]
    assert all(len(drawn & {3, 6}) == 1 for drawn in draws)
    # Windows without a label are no class.
    corpus = Corpus.of_arrays(None, np.where(np.arange(27) % 3, y, -1), groups)
    of_subjects = classes_of_subjects(replace(corpus, labeled=corpus.y >= 0))
    assert of_subjects == dict(enumerate(y[::3].tolist()))
    y[0] = 1  # a subject with two classes: any two subjects
    draws = [sorted(set(groups[train])) for train, _ in splitter.split(None, y, groups)]
    assert draws == [sorted(draw_subjects(range(7), 2, seed)) for seed in range(20)]


def test_blocks_within_a_subject_are_of_labeled_windows():
    """Windows 48 to 71 of subject 3, of which the first 10 have no label: 14 make two blocks."""
    corpus = Corpus.of_arrays(None, LABELS, SUBJECTS)
    rows = np.arange(96)
    corpus = replace(corpus, labeled=(rows < 48) | (rows > 57))
    first, second = WithinSubject(2, gap=0, test_subjects=[3]).splits_of(corpus)
    assert first.test.tolist() == second.train.tolist() == [*range(58, 65)]
    assert second.test.tolist() == first.train.tolist() == [*range(65, 72)]


def test_validation_subjects_without_labels_are_not_trained_on(nights):
    splits = {1: "train", 2: "valid", 3: "test", 4: "valid"}
    corpus = Corpus.of(with_split(with_subject(nights, 4, target=-1), splits), "nights", -1)
    splitter = LabeledSubjects(test_subjects=[3])
    (fold,) = folds_of(corpus, splitter, PARSClassifier(validation="split"))
    assert corpus.subjects_of(np.union1d(fold.train, fold.valid)) == [1, 2]
    for fold in folds_of(
        corpus, LabeledWindows(1, test_subjects=[3]), PARSClassifier(validation="split")
    ):
        assert corpus.subjects_of(fold.train) == [1, 3]
        assert corpus.subjects_of(fold.valid) == [2]
        assert fold.n_train_subjects == 1  # validation subjects are not counted
    with pytest.raises(ValueError, match=r"validation=0\.2"):
        folds_of(corpus, WithinSubject(2), PARSClassifier(validation="split"))


def test_a_pretraining_within_a_subject_does_not_see_the_test_block(nights):
    for fold in folds_of(Corpus.of(nights, "nights", -1), WithinSubject(2)):
        assert set(fold.pretrain.tolist()) == set(fold.train.tolist())


def test_only_labeled_windows_are_tested(nights):
    masked = BaseConcatDataset(
        nights.datasets, target_transform=lambda label: -1 if label == 2 else label
    )
    corpus = Corpus.of(masked, "nights", -1)
    assert corpus.subjects == corpus.subjects_of(corpus.labeled) == [1, 2, 3, 4]
    (fold,) = folds_of(corpus, LabeledSubjects(test_subjects=[2]))
    rows = np.arange(24, 48)
    np.testing.assert_array_equal(corpus.rows_of([2]), rows)
    assert fold.test.tolist() == rows[corpus.y[rows] != -1].tolist()


def test_names_of_subjects_are_checked(nights):
    with pytest.raises(ValueError, match="'all'"):
        Corpus.of(with_subject(nights, 3, subject="all"), "", -1)
    # They remain two subjects, so that one can be in the training and the other in the test set
    with pytest.warns(UserWarning, match="'03'") as caught:
        corpus = Corpus.of(with_subject(nights, 1, subject="03"), "", -1)
    assert set(corpus.subjects) == {"03", 2, 3, 4}
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(estimators={}), "estimators"),
        (dict(estimators={"A": DummyClassifier}), "'A'.*DummyClassifier"),
        (dict(metrics="kappa"), "'kappa'"),
        (dict(metrics=["f1", "f1"]), "metrics .* f1, f1"),
        (dict(seeds=[0.5]), r"seeds .* 0\.5"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    good = dict(estimators={"A": DummyClassifier()}, metrics=["kappa"], seeds=[0])
    with pytest.raises((TypeError, ValueError), match=message):
        check_arguments(**good | arguments)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([], "test_subjects"),
        ([1, 1], "test_subjects .* 1, 1"),
        (["1", 7], "test_subjects .* 1, 2.* '1', 7"),
    ],
)
def test_unknown_subjects_raise(asked, message):
    assert check_subjects((2, 1), [1, 2], "test_subjects") == [2, 1]
    decomposed = unicodedata.normalize("NFD", "Jörg")
    assert check_subjects([decomposed], ["Jörg"], "test_subjects") == ["Jörg"]
    with pytest.raises(ValueError, match=message):
        check_subjects(asked, [1, 2], "test_subjects")
