"""Protocols: training and test subjects, and test subjects in the pretraining data."""

import warnings
from itertools import product
from types import SimpleNamespace
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline, make_union
from support.subjects import LoggingClassifier, fits, with_split
from torch.utils.data import Subset

from braindecode_pars import (
    PARSClassifier,
    PARSEmbedder,
    PARSNet,
    PatchEncoder,
    as_sklearn,
    plotting,
)
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.estimators import HMMSmoothing
from braindecode_pars.evaluation import (
    FoldError,
    LogBandPower,
    leave_one_subject_out,
    transfer,
)
from braindecode_pars.evaluation.leaks import find_leaked_subjects, warn_of_leaks
from braindecode_pars.windows.convert import as_windows

TINY = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32, verbose=0)


class Spy(ClassifierMixin, BaseEstimator):
    """Log the seed, the training subjects and the labels of each fit; always predict 2."""

    fits: ClassVar[list] = []

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        groups = as_windows(X).groups
        Spy.fits.append((self.random_state, sorted(set(groups.tolist())), y))
        return self

    def predict(self, X):
        return np.full(len(X), 2)


def test_every_subject_is_held_out_once_for_each_seed(nights):
    Spy.fits.clear()
    scores = leave_one_subject_out(
        {"spy": Spy()}, nights, seeds=[3, 4], dataset="nights", metrics=["accuracy"], verbose=0
    )
    assert [(seed, subjects) for seed, subjects, _ in Spy.fits] == [
        (seed, [s for s in (1, 2, 3, 4) if s != held_out])
        for held_out in (1, 2, 3, 4)
        for seed in (3, 4)
    ]
    assert " ".join(scores) == (
        "protocol dataset method subject n_train_subjects seed metric value test_subject_data "
        "chance"
    )
    assert len(scores) == 8
    _, y, groups = as_sklearn(nights)
    for _, row in scores.iterrows():
        assert row["value"] == pytest.approx((y[groups == row["subject"]] == 2).mean())
        assert row["n_train_subjects"] == 3
        assert row["dataset"] == "nights"


@pytest.fixture(scope="module")
def donor(nights):
    """An encoder that was pretrained on subject 1."""
    return PARSEmbedder(pretrain_epochs=1, **TINY).fit(Subset(nights, range(24)))


def test_subjects_of_the_pretraining_are_warned_of_once_for_each_method(nights, donor, tmp_path):
    donor.save(tmp_path / "encoder")
    seen = PARSEmbedder(encoder=tmp_path / "encoder", **TINY)
    unknown = PatchEncoder(100, 16, 1, 2, 32)
    methods = {
        "probe": make_pipeline(seen, DummyClassifier()),
        "both": make_pipeline(make_union(seen, LogBandPower()), DummyClassifier()),
        "unknown": make_pipeline(PARSEmbedder(encoder=unknown, verbose=0), DummyClassifier()),
    }
    with pytest.warns(UserWarning, match="encoder") as w:
        leave_one_subject_out(methods, nights, test_subjects=[1, 2], equal_sizes=False, verbose=0)
    texts = [str(warning.message) for warning in w]
    for name in ("probe", "both"):
        assert sum(f"{name} was pretrained on windows of test subjects 1," in t for t in texts) == 1
    assert sum("the encoder of unknown are unknown" in text for text in texts) == 1


def test_the_figure_of_scores_has_the_chance_level_of_the_labeled_classes(nights):
    halved = type(nights)(nights.datasets, target_transform=lambda label: label // 2 - 1)  # -1 to 1
    scores = leave_one_subject_out(
        {"a": make_pipeline(LogBandPower(), DummyClassifier())},
        halved,
        metrics=["balanced_accuracy"],
        unlabeled_label=-1,
        verbose=0,
    )
    ax = plotting.subject_dots(scores, "balanced_accuracy")
    assert [0.5, 0.5] in [list(line.get_ydata()) for line in ax.lines]
    plt.close(ax.figure)


def test_data_leakage_is_warned_of_before_the_first_fit(nights, donor):
    class Failing(DummyClassifier):
        def fit(self, X, y):
            raise RuntimeError("no fit")

    probe = make_pipeline(PARSEmbedder(encoder=donor, **TINY), Failing())
    with pytest.warns(UserWarning, match="test subjects 1,"), pytest.raises(FoldError):
        leave_one_subject_out({"probe": probe}, nights, verbose=0)


@pytest.mark.parametrize(("corpus", "n_warnings"), [("day", 1), (None, 0), ("other", 0)])
def test_the_same_name_in_another_corpus_is_no_data_leakage(nights, corpus, n_warnings):
    parts = {
        name: EEGWindowsDataset(part.raw, part.metadata, description)
        for name, part, description in (
            ("seen", nights.datasets[0], dict(subject=1, corpus="day")),
            ("test", nights.datasets[0], dict(subject=1, corpus=corpus)),
            ("train", nights.datasets[1], dict(subject=2, corpus=corpus)),
        )
    }
    donor = PARSEmbedder(pretrain_epochs=1, **TINY).fit(parts["seen"])
    assert donor.encoder_card_.subjects == ["day:1"]
    probe = make_pipeline(PARSEmbedder(encoder=donor, **TINY), DummyClassifier())
    data = BaseConcatDataset([parts["test"], parts["train"]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        leave_one_subject_out({"probe": probe}, data, verbose=0)
    texts = [str(warning.message) for warning in caught]
    assert sum("probe was pretrained on windows" in text for text in texts) == n_warnings
    # If the corpus is unknown, there is one note.
    notes = [text for text in texts if "corpus of the test subjects 1 is unknown" in text]
    assert len(notes) == (corpus is None)


def test_data_leakage_is_detected_inside_searches_and_after_fine_tuning(nights, tmp_path):
    donor = PARSClassifier(None, finetune_epochs=1, validation=0, **TINY)
    donor.fit(Subset(nights, range(24, 72)))
    search = GridSearchCV(
        make_pipeline(PARSEmbedder(encoder=donor, **TINY), DummyClassifier()),
        {"dummyclassifier__strategy": ["prior"]},
        cv=KFold(2),
    )
    with pytest.warns(UserWarning, match="was pretrained on") as caught:
        leave_one_subject_out({"search": search}, nights, verbose=0)
    leaks = [str(w.message) for w in caught if "was pretrained on" in str(w.message)]
    assert len(leaks) == 1
    assert "test subjects 2, 3," in leaks[0]


def test_minus_one_is_not_scored_or_a_class(nights):
    masked = BaseConcatDataset(
        nights.datasets, target_transform=lambda label: label if label == 2 else -1
    )
    with pytest.warns(UserWarning, match="63"):
        scores = leave_one_subject_out({"spy": Spy()}, masked, metrics=["accuracy"], verbose=0)
    assert (scores["value"] == 1).all()  # Spy predicts 2
    # A class, as in SEED, whose classes are -1, 0 and 1.
    shifted = BaseConcatDataset(nights.datasets, target_transform=lambda label: label % 3 - 1)
    always = DummyClassifier(strategy="constant", constant=-1)  # -1 must occur in training
    arguments = dict(metrics=["accuracy"], test_subjects=[1], verbose=0)
    scores = leave_one_subject_out({"-1": always}, shifted, unlabeled_label=None, **arguments)
    share = np.mean([shifted[i][1] == -1 for i in range(24)])
    assert scores["value"].item() == pytest.approx(share)


SPLIT = {1: "train", 2: "train", 3: "valid", 4: "test"}


def test_every_dataset_has_its_own_split(nights, tmp_path):
    corpora = {
        "given": with_split(nights, SPLIT),
        "named": BaseConcatDataset(nights.datasets[:3]),
    }
    scores = transfer(
        {"A": LoggingClassifier(tmp_path), "B": LoggingClassifier(tmp_path, 2)},
        corpora,
        test_subjects={"named": [1, 3]},
        metrics=["accuracy"],
        verbose=0,
    )
    assert set(scores["protocol"]) == {"transfer"}
    keys = scores.groupby("dataset")["subject"].unique().map(list).to_dict()
    assert keys == {"given": [4, "all"], "named": [1, 3, "all"]}
    assert scores.groupby("dataset")["n_train_subjects"].unique().map(list).to_dict() == {
        "given": [3],
        "named": [1],
    }
    trained_on = {(fit["seed"], tuple(fit["subjects"])) for fit in fits(tmp_path)}
    assert trained_on == set(product(range(5), ((1, 2, 3), (2,))))


@pytest.mark.parametrize(
    ("corpora", "test_subjects", "error", "message"),
    [
        ({}, None, TypeError, "datasets"),
        ([1], None, TypeError, "datasets .* list"),
        ("nights", [4], TypeError, r"test_subjects .* \[4\]"),
        ("nights", {"other": [4]}, ValueError, "'other'.* nights"),
        ("nights", None, ValueError, "nights"),
    ],
)
def test_invalid_arguments_raise(nights, tmp_path, corpora, test_subjects, error, message):
    corpora = {"nights": nights} if corpora == "nights" else corpora
    with pytest.raises(error, match=message):
        transfer({"A": LoggingClassifier(tmp_path)}, corpora, test_subjects=test_subjects)


# Encoders inside estimators -----------------------------------------------------------------------


def encoder(seen, subjects=(), finetune_subjects=()):
    card = SimpleNamespace(
        seen_subjects=set(seen), subjects=subjects, finetune_subjects=finetune_subjects
    )
    return SimpleNamespace(encoder_card_=card)


def names_of(*subjects):
    return {subject: subject for subject in subjects}


def test_leaked_test_subjects_of_all_encoders_are_returned():
    pipe = make_pipeline(make_union(encoder([1, 2])), encoder([3], subjects=None), "a classifier")
    assert find_leaked_subjects(pipe, names_of(3, 2, 9)) == {
        "subjects": ["3", "2"],
        "unknown": True,
    }
    assert find_leaked_subjects(DummyClassifier(), names_of(1)) == {
        "subjects": [],
        "unknown": False,
    }
    assert find_leaked_subjects(encoder([3], finetune_subjects=None), names_of(1))["unknown"]
    assert not find_leaked_subjects(encoder([3]), names_of(1))["unknown"]
    smoothed = HMMSmoothing(DummyClassifier())
    smoothed.classifier_ = encoder([1])
    assert find_leaked_subjects(smoothed, names_of(1, 2))["subjects"] == ["1"]


def test_each_method_gets_one_warning():
    seen = [{"subjects": [], "unknown": unknown} for unknown in (0, 0, 0, 1, 1, 0)]
    seen[0]["subjects"], seen[1]["subjects"] = ["2"], ["3", "2"]
    with pytest.warns(UserWarning, match="encoder") as caught:
        leak, unknown = warn_of_leaks("AABBBC", seen)
    assert [str(w.message) for w in caught] == [leak, unknown]
    assert "A was pretrained on windows of test subjects 2, 3," in leak
    assert "encoder of B" in unknown
    assert warn_of_leaks("AABBBC", seen, [leak, unknown]) == [leak, unknown]


def test_subjects_match_as_numbers_and_as_text():
    """Subjects from file names are strings, subjects from tables are numbers, even floats."""
    assert find_leaked_subjects(encoder(["2", "P3", "007"]), names_of(2, 3, 7))["subjects"] == [
        "2",
        "7",
    ]
    assert find_leaked_subjects(encoder([2.0, "P3", 7]), names_of(2, 3, "07"))["subjects"] == [
        "2",
        "07",
    ]
    assert find_leaked_subjects(encoder(["2", "sub-P3"]), names_of(2.0, "P3"))["subjects"] == [
        "2.0",
        "P3",
    ]
    assert find_leaked_subjects(encoder(["physionet_mi:1"]), names_of(1, "s01"))["subjects"] == []


def test_a_net_that_may_have_been_pretrained_elsewhere_is_unknown(tiny):
    network = PARSNet(2, 3, n_times=600, sfreq=100, **tiny)
    assert not find_leaked_subjects(SimpleNamespace(module=PARSNet, callbacks_=[]), names_of(1))[
        "unknown"
    ]
    assert find_leaked_subjects(SimpleNamespace(module=network, callbacks_=[]), names_of(1))[
        "unknown"
    ]
    for unlabeled, unknown in ((None, False), (["windows of anybody"], True)):
        callback = Pretraining("pars", epochs=1, unlabeled=unlabeled)
        net = SimpleNamespace(module=PARSNet, callbacks_=[("pretraining", callback)])
        assert find_leaked_subjects(net, names_of(1))["unknown"] == unknown
