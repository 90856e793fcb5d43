"""Different numbers of training subjects with the same test subjects."""

from itertools import product

import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from support.subjects import LoggingClassifier, fits, with_split

from braindecode_pars.evaluation import label_efficiency
from braindecode_pars.evaluation.splitting import draw_subjects

SPLIT = {1: "train", 2: "valid", 3: "train", 4: "test"}


def run(windows, folder, **arguments):
    estimators = {"A": LoggingClassifier(folder), "B": LoggingClassifier(folder, 2)}
    arguments = dict(n_train_subjects=[1, 3], seeds=[0, 1], verbose=0) | arguments
    return label_efficiency(estimators, windows, **arguments)


def test_all_methods_train_on_the_same_draws(short_nights, tmp_path):
    scores = run(with_split(short_nights, SPLIT), tmp_path, dataset="nights")
    expected = [
        (seed, sorted(draw_subjects([1, 2, 3], n, seed))) for n in (1, 3) for seed in (0, 1)
    ] * 2
    assert sorted((fit["seed"], fit["subjects"]) for fit in fits(tmp_path)) == sorted(expected)
    rows = list(product((1, 3), (0, 1), "AB", (4, "all")))
    keys = scores[["n_train_subjects", "seed", "method", "subject"]].drop_duplicates()
    assert list(keys.itertuples(index=False, name=None)) == rows
    assert scores["metric"].tolist() == ["kappa", "f1", "balanced_accuracy"] * len(rows)


class Validating(LoggingClassifier):
    """Has the parameters validation and unlabeled_label, as PARSClassifier."""

    def __init__(self, folder, validation="split", unlabeled_label=-1, random_state=None):
        super().__init__(folder, random_state=random_state)
        self.validation = validation
        self.unlabeled_label = unlabeled_label

    def predict(self, X):
        return [2] * len(X)


@pytest.mark.parametrize(
    ("cls", "splits", "arguments", "message"),
    [
        (LoggingClassifier, SPLIT, dict(n_train_subjects=3), "n_train_subjects .* 3"),
        (LoggingClassifier, SPLIT, dict(n_train_subjects=[2, 2]), "n_train_subjects"),
        (Validating, dict.fromkeys(SPLIT), dict(test_subjects=[4]), "None: 18"),
        (Validating, dict.fromkeys(SPLIT, "train"), dict(test_subjects=[4]), "'valid'"),
    ],
)
def test_invalid_arguments_raise_before_training(
    short_nights, tmp_path, cls, splits, arguments, message
):
    arguments = dict(n_train_subjects=[1], verbose=0) | arguments
    with pytest.raises((TypeError, ValueError), match=message):
        label_efficiency({"A": cls(tmp_path)}, with_split(short_nights, splits), **arguments)
    assert fits(tmp_path) == []


def test_fixed_validation_subjects_come_beside_the_drawn_ones(short_nights, tmp_path):
    folders = {name: tmp_path / name for name in ("split", "share", "none")}
    for folder in folders.values():
        folder.mkdir()
    estimators = {
        "split": Validating(folders["split"]),
        "share": Validating(folders["share"], 0.5),
        "none": LoggingClassifier(folders["none"]),
    }
    scores = label_efficiency(
        estimators, with_split(short_nights, SPLIT), n_train_subjects=[1, 2], seeds=[0], verbose=0
    )
    (drawn,) = draw_subjects([1, 3], 1, 0)
    for name, beside in (("split", [2]), ("share", []), ("none", [])):
        result = sorted((fit["subjects"] for fit in fits(folders[name])), key=len)
        assert result == [sorted([drawn, *beside]), sorted([1, 3, *beside])]
    assert sorted(set(scores["n_train_subjects"])) == [1, 2]
    # Without such an estimator, the subjects of split "valid" are training subjects.
    run(with_split(short_nights, SPLIT), folders["none"], n_train_subjects=[3])
    assert [1, 2, 3] in [fit["subjects"] for fit in fits(folders["none"])]


def test_unlabeled_windows_of_validation_subjects_are_not_used(short_nights, tmp_path):
    first, *others = with_split(short_nights, SPLIT | {1: "valid"}).datasets
    some = first.metadata.assign(target=[-1] * 2 + first.y[2:])
    windows = BaseConcatDataset([EEGWindowsDataset(first.raw, some, first.description), *others])
    wanted = dict(n_train_subjects=[1], seeds=range(4), unlabeled_label=-1, verbose=0)
    label_efficiency({"A": Validating(tmp_path)}, windows, **wanted)
    for fit in fits(tmp_path):  # subject 3, and the labeled windows of 1 and 2
        assert (fit["subjects"], -1 in fit["labels"], len(fit["labels"])) == ([1, 2, 3], False, 16)
