"""Protocols: training and test subjects, and test subjects in the pretraining data."""

import warnings
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline, make_union
from support.small_estimators import classifier, embedder
from support.subjects import LoggingClassifier, fits, with_split, with_subject
from torch.utils.data import Subset

from braindecode_pars import PARSClassifier, PARSEmbedder, PARSNet, PatchEncoder, as_sklearn
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.estimators import HMMSmoothing
from braindecode_pars.evaluation import (
    LogBandPower,
    label_efficiency,
    leave_one_subject_out,
    score_table,
    transfer,
)
from braindecode_pars.evaluation.leaks import find_leaked_subjects
from braindecode_pars.evaluation.splitting import draw_subjects

TINY = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32, verbose=0)
SPLIT = {1: "train", 2: "train", 3: "valid", 4: "test"}
ALWAYS_2 = DummyClassifier(strategy="constant", constant=2)


def test_every_subject_is_held_out_once_for_each_seed(short_nights, tmp_path):
    methods = {"log": LoggingClassifier(tmp_path), "2": ALWAYS_2}
    wanted = dict(seeds=[3, 4], dataset="nights", metrics=["accuracy"], verbose=0)
    scores = leave_one_subject_out(methods, short_nights, **wanted)
    assert sorted((fit["subjects"], fit["seed"]) for fit in fits(tmp_path)) == [
        ([subject for subject in (1, 2, 3, 4) if subject != held_out], seed)
        for held_out in (4, 3, 2, 1)
        for seed in (3, 4)
    ]
    keys = scores[["subject", "seed", "method"]].itertuples(index=False, name=None)
    assert list(keys) == list(product((1, 2, 3, 4), (3, 4), ("log", "2")))
    _, y, groups = as_sklearn(short_nights)
    for _, row in scores[scores["method"] == "2"].iterrows():
        assert row["value"] == pytest.approx((y[groups == row["subject"]] == 2).mean())
    assert set(scores["n_train_subjects"]) == {3}
    assert set(scores["dataset"]) == {"nights"}


def test_all_methods_train_on_the_same_draws(short_nights, tmp_path):
    methods = {"A": LoggingClassifier(tmp_path), "B": LoggingClassifier(tmp_path, 2)}
    wanted = dict(n_train_subjects=[1, 3], seeds=[0, 1], metrics=["kappa"], verbose=0)
    scores = label_efficiency(methods, with_split(short_nights, SPLIT), **wanted)
    expected = [
        (seed, sorted(draw_subjects([1, 2, 3], n, seed))) for n in (1, 3) for seed in (0, 1)
    ] * 2
    assert sorted((fit["seed"], fit["subjects"]) for fit in fits(tmp_path)) == sorted(expected)
    keys = scores[["n_train_subjects", "seed", "method", "subject"]].to_numpy().tolist()
    assert keys == [list(row) for row in product((1, 3), (0, 1), "AB", (4, "all"))]


class Validating(LoggingClassifier):
    """Has the parameters validation and unlabeled_label, as PARSClassifier."""

    def __init__(self, folder, validation="split", unlabeled_label=-1, random_state=None):
        super().__init__(folder, random_state=random_state)
        self.validation = validation
        self.unlabeled_label = unlabeled_label

    def predict(self, X):
        return [2] * len(X)


def test_fixed_validation_subjects_come_beside_the_drawn_ones(short_nights, tmp_path):
    """Two windows of the validation subject have no label, and are not used."""
    parts = with_split(short_nights, {1: "train", 2: "valid", 3: "train", 4: "test"}).datasets
    some = parts[1].metadata.assign(target=[-1] * 2 + parts[1].y[2:])
    parts[1] = EEGWindowsDataset(parts[1].raw, some, parts[1].description)
    folders = [tmp_path / "split", tmp_path / "share"]
    for folder in folders:
        folder.mkdir()
    methods = {"A": Validating(folders[0]), "B": Validating(folders[1], 0.5)}
    wanted = dict(n_train_subjects=[1, 2], seeds=[0], unlabeled_label=-1, verbose=0)
    scores = label_efficiency(methods, BaseConcatDataset(parts), **wanted)
    for folder, beside in zip(folders, ([2], []), strict=True):
        first, second = sorted(fits(folder), key=lambda fit: len(fit["labels"]))
        assert first["subjects"] == sorted([*draw_subjects([1, 3], 1, 0), *beside])
        assert second["subjects"] == sorted([1, 3, *beside])
        assert len(second["labels"]) == 12 + 4 * len(beside)
    assert sorted(set(scores["n_train_subjects"])) == [1, 2]


def test_subjects_of_an_encoder_are_warned_of_once_for_each_method(short_nights):
    """The encoder was fine-tuned on subjects 2 and 3."""
    donor = PARSClassifier(None, finetune_epochs=1, validation=0, **TINY)
    seen = PARSEmbedder(encoder=donor.fit(Subset(short_nights, range(6, 18))), **TINY)
    unknown = PatchEncoder(100, 16, 1, 2, 32)
    methods = {
        "seen": make_pipeline(make_union(seen, LogBandPower()), DummyClassifier()),
        "unknown": make_pipeline(PARSEmbedder(encoder=unknown, verbose=0), DummyClassifier()),
    }
    wanted = dict(test_subjects=[1, 2, 3], equal_sizes=False, verbose=0)
    with pytest.warns(UserWarning, match="encoder") as w:
        leave_one_subject_out(methods, short_nights, **wanted)
    texts = [str(warning.message) for warning in w]
    assert sum("seen was pretrained on windows of test subjects 2, 3," in t for t in texts) == 1
    assert sum("the encoder of unknown are unknown" in text for text in texts) == 1


@pytest.mark.parametrize(("corpus", "n_warnings"), [("day", 1), (None, 0), ("other", 0)])
def test_the_same_name_in_another_corpus_is_no_data_leakage(short_nights, corpus, n_warnings):
    named = with_subject(short_nights, 1, corpus="day")
    donor = PARSEmbedder(pretrain_epochs=1, **TINY).fit(named.datasets[0])
    assert donor.encoder_card_.subjects == ["day:1"]
    probe = make_pipeline(PARSEmbedder(encoder=donor, **TINY), DummyClassifier())
    data = with_subject(with_subject(short_nights, 1, corpus=corpus), 2, corpus=corpus).datasets[:2]
    with warnings.catch_warnings(record=True, action="always") as caught:
        leave_one_subject_out({"probe": probe}, BaseConcatDataset(data), verbose=0)
    texts = [str(warning.message) for warning in caught]
    assert sum("probe was pretrained on windows" in text for text in texts) == n_warnings
    # If the corpus is unknown, there is one note.
    notes = [text for text in texts if "the test subjects 1 have the same numbers" in text]
    assert len(notes) == (corpus is None)


def test_unequal_sizes_raise_or_are_in_the_table(short_nights):
    methods = {"PARS": classifier(mlp_dim=48), "scratch": classifier(pretext=None)}
    sizes = {name: clf.n_encoder_parameters(short_nights) for name, clf in methods.items()}
    one, other = (f"{size:,}" for size in sizes.values())
    with pytest.raises(ValueError, match=f"{one} .*{other}|{other} .*{one}"):
        transfer(methods, {"a": short_nights}, test_subjects={"a": [4]}, seeds=[0], verbose=0)
    # Also a probe, whose encoder is inside a pipeline
    probe = make_pipeline(embedder(), DummyClassifier())
    with pytest.raises(ValueError, match="the encoder of probe has"):
        leave_one_subject_out({"PARS": methods["PARS"], "probe": probe}, short_nights, verbose=0)
    wanted = dict(test_subjects=[4], equal_sizes=False, verbose=0)
    scores = leave_one_subject_out({**methods, "2": ALWAYS_2}, short_nights, **wanted)
    assert scores.groupby("method")["encoder_parameters"].first().dropna().to_dict() == sizes
    assert score_table(scores)["encoder_parameters"].tolist() == [one, other, "-"]
    # Equal sizes need no column.
    del methods["PARS"]
    scores = leave_one_subject_out({**methods, "2": ALWAYS_2}, short_nights, **wanted)
    assert list(score_table(scores)) == ["kappa", "balanced_accuracy"]


def test_minus_one_is_not_scored_or_a_class(nights):
    masked = BaseConcatDataset(
        nights.datasets, target_transform=lambda label: label if label == 2 else -1
    )
    arguments = dict(metrics=["accuracy"], verbose=0)
    with pytest.warns(UserWarning, match="63"):
        scores = leave_one_subject_out({"2": ALWAYS_2}, masked, **arguments)
    assert (scores["value"] == 1).all()
    # A class, as in SEED, whose classes are -1, 0 and 1
    shifted = BaseConcatDataset(nights.datasets, target_transform=lambda label: label % 3 - 1)
    always = DummyClassifier(strategy="constant", constant=-1)  # -1 must occur in training
    arguments |= dict(test_subjects=[1], unlabeled_label=None)
    scores = leave_one_subject_out({"-1": always}, shifted, **arguments)
    share = np.mean([shifted[i][1] == -1 for i in range(24)])
    assert scores["value"].item() == pytest.approx(share)
    assert scores["chance"].isna().all()  # of the accuracy
    # The chance level is that of the labeled classes, here 0 and 1.
    arguments |= dict(metrics=["balanced_accuracy"], unlabeled_label=-1)
    scores = leave_one_subject_out({"a": DummyClassifier()}, shifted, **arguments)
    assert scores["chance"].item() == 0.5


def test_every_dataset_has_its_own_split(nights, tmp_path):
    corpora = {"given": with_split(nights, SPLIT), "named": BaseConcatDataset(nights.datasets[:3])}
    wanted = dict(test_subjects={"named": [1, 3]}, metrics=["accuracy"], verbose=0)
    scores = transfer({"A": LoggingClassifier(tmp_path)}, corpora, **wanted)
    keys = scores.groupby("dataset")["subject"].unique().map(list).to_dict()
    assert keys == {"given": [4, "all"], "named": [1, 3, "all"]}
    numbers = scores.groupby("dataset")["n_train_subjects"].unique().map(list).to_dict()
    assert numbers == {"given": [3], "named": [1]}
    trained_on = {(fit["seed"], tuple(fit["subjects"])) for fit in fits(tmp_path)}
    assert trained_on == set(product(range(5), ((1, 2, 3), (2,))))
    with pytest.raises(ValueError, match=r"'other'.* given"):
        transfer({"A": ALWAYS_2}, corpora, test_subjects={"other": [4]})
    with pytest.raises(ValueError, match="named"):
        transfer({"A": ALWAYS_2}, corpora)


# Encoders inside estimators -----------------------------------------------------------------------


def encoder(seen, subjects=(), finetune_subjects=()):
    card = SimpleNamespace(
        seen_subjects=set(seen), subjects=subjects, finetune_subjects=finetune_subjects
    )
    return SimpleNamespace(encoder_card_=card)


def network(module, unlabeled=None):
    callback = Pretraining("pars", epochs=1, unlabeled=unlabeled)
    return SimpleNamespace(module=module, callbacks_=[("pretraining", callback)])


PIPE = make_pipeline(make_union(encoder([1, 2])), encoder([3], subjects=None), "a classifier")
SMOOTHED = HMMSmoothing(DummyClassifier())
SMOOTHED.classifier_ = encoder([1])
CALIBRATED = SimpleNamespace(estimator=encoder([1]))


@pytest.mark.parametrize(
    ("fitted", "tested", "leaked", "unknown"),
    [
        (PIPE, [3, 2, 9], ["3", "2"], True),
        (DummyClassifier(), [1], [], False),
        (encoder([3]), [1], [], False),
        (encoder([3], finetune_subjects=None), [1], [], True),
        (SMOOTHED, [1, 2], ["1"], False),
        (SimpleNamespace(best_estimator_=SMOOTHED), [1], ["1"], False),
        (SimpleNamespace(calibrated_classifiers_=[CALIBRATED]), [1], ["1"], False),
        (SimpleNamespace(transformers_=[("a", encoder([1]), [0])]), [1], ["1"], False),
        # Subjects from file names are strings, subjects from tables are numbers, even floats.
        (encoder(["2", "P3", "007"]), [2, 3, 7], ["2", "7"], False),
        (encoder([2.0, "sub-P3", 7]), [2, "P3", "07"], ["2", "P3", "07"], False),
        (encoder(["physionet_mi:1"]), [1, "s01"], [], False),
        # A module or a callback that may have been pretrained elsewhere
        (network(PARSNet), [1], [], False),
        (network(PARSNet, unlabeled=["windows of anybody"]), [1], [], True),
        (network(PARSNet(2, 3, n_times=600, sfreq=100, embed_dim=16)), [1], [], True),
    ],
)
def test_leaked_test_subjects_of_all_encoders_are_returned(fitted, tested, leaked, unknown):
    result = find_leaked_subjects(fitted, {subject: subject for subject in tested})
    assert result == {"subjects": leaked, "unknown": unknown}


def test_subjects_of_the_pretraining_are_warned_of_once_for_each_method(short_nights, tmp_path):
    donor = PARSEmbedder(pretrain_epochs=1, **TINY).fit(Subset(short_nights, range(6)))
    donor.save(tmp_path / "encoder")
    seen = PARSEmbedder(encoder=tmp_path / "encoder", **TINY)
    unknown = PatchEncoder(100, 16, 1, 2, 32)
    methods = {
        "probe": make_pipeline(seen, DummyClassifier()),
        "both": make_pipeline(make_union(seen, LogBandPower()), DummyClassifier()),
        "unknown": make_pipeline(PARSEmbedder(encoder=unknown, verbose=0), DummyClassifier()),
    }
    with pytest.warns(UserWarning, match="encoder") as w:
        leave_one_subject_out(
            methods, short_nights, test_subjects=[1, 2], equal_sizes=False, verbose=0
        )
    texts = [str(warning.message) for warning in w]
    for name in ("probe", "both"):
        assert sum(f"{name} was pretrained on windows of test subjects 1," in t for t in texts) == 1
    assert sum("the encoder of unknown are unknown" in text for text in texts) == 1
