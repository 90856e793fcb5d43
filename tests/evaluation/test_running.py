"""Folds are saved when finished, are not repeated, and do not depend on order and processes."""

import json
import pickle
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from support.subjects import LoggingClassifier, fits, with_subject

from braindecode_pars._common.computing import seeded
from braindecode_pars._common.findings import Finding, FindingWarning, collected, warn_once
from braindecode_pars.evaluation import FoldError, leave_one_subject_out
from braindecode_pars.windows.convert import as_windows


@pytest.fixture
def nights(short_nights):
    return short_nights


@pytest.fixture
def log_folder(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    return folder


def run(windows, folder, seeds=(0, 1), **arguments):
    methods = {"A": LoggingClassifier(folder), "B": LoggingClassifier(folder, 2)}
    estimators = arguments.pop("estimators", methods)
    return leave_one_subject_out(estimators, windows, seeds=seeds, verbose=0, **arguments)


def saved_folds(out):
    return [json.loads(file.read_text()) for file in (out / "cache").glob("*_*.json")]


def test_an_interrupted_run_resumes(nights, log_folder, tmp_path):
    # Reference: a run without interruption
    whole = run(nights, log_folder)
    assert len(fits(log_folder)) == 16
    for file in log_folder.iterdir():
        file.unlink()
    # Interrupt the seventh fit
    out = tmp_path / "out"
    (log_folder / "stop").write_text("7")
    with pytest.raises(KeyboardInterrupt):
        run(nights, log_folder, out=out)
    assert len(fits(log_folder)) == len(list((out / "cache").glob("*_*.json"))) == 6
    assert not (out / "scores.csv").exists()
    # Resume
    (log_folder / "stop").unlink()
    continued = run(nights, log_folder, out=out)
    assert len(fits(log_folder)) == 16
    pd.testing.assert_frame_equal(continued, whole)
    pd.testing.assert_frame_equal(pd.read_csv(out / "scores.csv", keep_default_na=False), whole)


def test_added_seeds_methods_and_subjects_run_only_new_folds(nights, log_folder, tmp_path):
    first = dict(estimators={"A": LoggingClassifier(log_folder)})
    for arguments, n_fits in (
        (first | dict(seeds=[0], test_subjects=[1, 2]), 2),
        (first, 8),
        (dict(metrics=["f1"]), 16),
        (dict(), 16),  # computed from the saved predictions
    ):
        scores = run(nights, log_folder, out=tmp_path / "out", **arguments)
        assert len(fits(log_folder)) == n_fits
        assert set(scores["metric"]) == {*arguments.get("metrics", ("kappa", "balanced_accuracy"))}
    pd.testing.assert_frame_equal(scores, run(nights, log_folder))


def test_damaged_and_edited_folds_and_those_of_others_are_run_again(nights, log_folder, tmp_path):
    out = tmp_path / "out"
    whole = run(nights, log_folder, out=out)
    truncated, empty, edited, one, other, *_ = sorted((out / "cache").glob("*_*.json"))
    truncated.write_text(truncated.read_text()[:100])
    empty.write_text("{}")
    fold = json.loads(edited.read_text())
    edited.write_text(json.dumps(fold | {"predicted": fold["true"]}))
    one.write_text(other.read_text())
    with pytest.warns(UserWarning, match="checksum|JSON") as caught:
        pd.testing.assert_frame_equal(run(nights, log_folder, out=out), whole)
    for warning, file in zip(caught, (truncated, empty, edited), strict=True):
        assert file.name in str(warning.message)
    assert len(fits(log_folder)) == 20


def test_a_failed_fit_is_named_and_finished_folds_are_saved(nights, log_folder, tmp_path):
    (log_folder / "fail").write_text("4")
    methods = {"A": LoggingClassifier(log_folder)}
    message = "A on nights, subject 2, n_train_subjects=3, seed=1 .* 3 of 8 .*out"
    with pytest.raises(FoldError, match=message) as caught:
        run(nights, log_folder, estimators=methods, dataset="nights", out=tmp_path / "out")
    error = pickle.loads(pickle.dumps(caught.value))  # as in a process of the user
    assert "ValueError: on purpose" in str(error)
    assert len(list((tmp_path / "out/cache").glob("*_*.json"))) == 3


class Calling(ClassifierMixin, BaseEstimator):
    """Calls a function of itself and the training windows, and predicts what it returned."""

    def __init__(self, function, device="auto", other=None):
        self.function = function
        self.device = device
        self.other = other

    def fit(self, X, y):
        self.values_ = self.function(self, as_windows(X))
        return self

    def predict(self, X):
        return np.resize(self.values_, len(X))


def draw_slowly(clf, windows):
    """Return a random draw of torch."""
    for _ in range(20):
        draw = torch.rand(()).item()
        time.sleep(0.002)  # a fold in another thread would draw here
    return [round(1e6 * draw)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_estimators_without_random_state_follow_the_seed_of_the_fold(nights, n_jobs, tmp_path):
    before = torch.random.get_rng_state()
    with joblib.parallel_config("threading", n_jobs=n_jobs), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "manual_seed_all", None)  # no GPU is seeded
        methods = {"torch": Calling(draw_slowly)}
        run(nights, None, estimators=methods, test_subjects=[1, 2], out=tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before)
    answers = saved_folds(tmp_path)
    for seed in (0, 1):
        of_seed = {a["predicted"][0] for a in answers if a["key"]["seed"] == seed}
        torch.manual_seed(seed)
        assert of_seed == {round(1e6 * [torch.rand(()).item() for _ in range(20)][-1])}


def draw_in_threads(clf, windows):
    """Draw in other threads, as a search that fits in joblib's threads."""

    def draw(_):
        with seeded(5):
            return torch.rand(()).item()

    threads = ThreadPoolExecutor(2)
    try:
        return [round(1e6 * x) for x in threads.map(draw, range(4), timeout=5)]
    finally:
        threads.shutdown(wait=False)  # a thread that waits for the fold would never end


def test_a_fold_does_not_wait_for_its_own_threads(nights, tmp_path):
    run(nights, None, estimators={"search": Calling(draw_in_threads)}, seeds=[0], out=tmp_path)
    with seeded(5):
        expected = round(1e6 * torch.rand(()).item())
    assert {x for fold in saved_folds(tmp_path) for x in fold["predicted"]} == {expected}


def test_backends_that_return_all_results_at_the_end_give_the_same_table(nights, log_folder):
    """As Ray's backend, which is a subclass of joblib's multiprocessing."""
    whole = run(nights, log_folder, seeds=[0])
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        pd.testing.assert_frame_equal(run(nights, log_folder, seeds=[0]), whole)


def test_undefined_scores_are_nan_with_a_warning(nights, log_folder, tmp_path):
    awake = with_subject(nights, 3, target=0)
    with pytest.warns(UserWarning, match=r"2 of .* scores .* kappa of subject 3"):
        scores = run(awake, log_folder, seeds=[0], out=tmp_path / "out")
    kappa = scores[scores["metric"] == "kappa"].set_index("subject")["value"]
    assert kappa.isna().groupby(level=0).any().to_dict() == {1: False, 2: False, 3: True, 4: False}
    assert scores[scores["metric"] == "balanced_accuracy"]["value"].notna().all()
    assert scores["why"].dropna().iloc[0].startswith("all 6 true labels are 0")
    assert pd.read_csv(tmp_path / "out" / "scores.csv")["why"].notna().sum() == 2


class Constant(LoggingClassifier):
    def __init__(self, folder, label, random_state=None, unlabeled_label=-1):
        super().__init__(folder, random_state=random_state)
        self.label = label
        self.unlabeled_label = unlabeled_label

    def predict(self, X):
        return np.full(len(X), self.label)


def test_unlabeled_windows_go_only_to_estimators_with_unlabeled_label(nights, log_folder):
    masked = BaseConcatDataset(
        nights.datasets, target_transform=lambda label: -1 if label == 2 else label
    )
    methods = {
        0: LoggingClassifier(log_folder),
        1: Constant(log_folder, 4),
        2: Constant(log_folder, 4, unlabeled_label="auto"),  # the label of the protocol
    }
    arguments = dict(test_subjects=[3, 4], metrics=["accuracy"], unlabeled_label=-1)
    for seed, method in methods.items():
        run(masked, log_folder, estimators={"A": method}, seeds=[seed], **arguments)
    has_unlabeled = {(fit["seed"], -1 in fit["labels"]) for fit in fits(log_folder)}
    assert has_unlabeled == {(0, False), (1, True), (2, True)}
    with pytest.raises(FoldError, match="-1"):
        run(masked, log_folder, estimators={"A": Constant(log_folder, -1)}, **arguments)


def test_labels_may_be_text(nights, log_folder, tmp_path):
    text = BaseConcatDataset(nights.datasets, target_transform=lambda label: f"stage {label}")
    scores = run(text, log_folder, seeds=[0], out=tmp_path / "out")
    pd.testing.assert_frame_equal(scores, run(nights, log_folder, seeds=[0]))
    pd.testing.assert_frame_equal(run(text, log_folder, seeds=[0], out=tmp_path / "out"), scores)
    assert len(fits(log_folder)) == 16


@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(1, ["auto"] * 4), (2, ["cuda:0", "cuda:0", "cuda:1", "cuda:1"])]
)
def test_folds_take_a_gpu_when_several_workers_run(nights, monkeypatch, n_jobs, expected):
    """No GPU is needed to test it."""
    used = []

    def note_devices(clf, windows, used=used):
        used.append((clf.device, clf.other.device))
        return [0]

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    estimator = Calling(note_devices, other=Calling(note_devices, "cpu"))
    with joblib.parallel_config("threading"):
        run(nights, None, seeds=[0], estimators={"A": estimator}, n_jobs=n_jobs)
    assert sorted(used) == [(device, "cpu") for device in expected]
    assert estimator.device == "auto"


def fold(n):
    result = []
    with collected(result):
        finding = Finding("bad_channels", dict(channels=["C3"], n=n, n_windows=9))
        warnings.warn(FindingWarning(finding), stacklevel=2)
        warnings.warn(f"Channel C{n} is flat.", RuntimeWarning, stacklevel=2)
    return pickle.loads(pickle.dumps(result))


def shown(of_folds):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_once(of_folds)
    return [(str(w.message), w.category, w.filename) for w in caught]


def test_warnings_that_differ_in_numbers_only_are_shown_once():
    with warnings.catch_warnings(action="always"):
        one, other = fold(3), fold(4)
    (text, category, file), *others = shown([one, [*other, *other], []])
    assert text.startswith("In 2 of 3 folds: Channels that are marked as bad")
    assert "C3 (in 3 of 9 windows)" in text
    assert (category, file) == (FindingWarning, __file__)
    assert others == [
        ("In 1 of 3 folds: Channel C3 is flat.", RuntimeWarning, __file__),
        ("In 1 of 3 folds: Channel C4 is flat.", RuntimeWarning, __file__),
    ]
    of_libraries = [[(f"{n} iterations", ConvergenceWarning, __file__, 1)] for n in (7, 8)]
    assert shown(of_libraries)[0][0] == "In 2 of 2 folds: 7 iterations"


def warn_or_fail(clf, windows):
    """Warn where subject 1 is among the training windows; fail without subject 4."""
    subjects = {*windows.groups.tolist()}
    if 1 in subjects:
        warnings.warn("subject 1 is odd", UserWarning, stacklevel=2)
    if 4 not in subjects:
        raise ValueError("no fit")
    return [0]


ODD = {"A": Calling(warn_or_fail)}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_warning_of_several_folds_comes_once_with_their_number(nights, n_jobs):
    texts = []
    with (
        joblib.parallel_config("threading", n_jobs=n_jobs),
        warnings.catch_warnings(action="always"),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(warnings, "warn_explicit", lambda text, *where: texts.append(text))
        run(nights, None, seeds=[0], estimators=ODD, test_subjects=[1, 2, 3])
    assert texts == ["In 2 of 3 folds: subject 1 is odd"]


def test_the_warnings_of_finished_folds_are_shown_before_an_error(nights):
    with (
        pytest.warns(UserWarning, match="odd") as caught,
        pytest.raises(FoldError, match=r"no fit.* 2 of 3 .*not saved"),
    ):
        run(nights, None, seeds=[0], estimators=ODD, test_subjects=[2, 3, 4])
    assert str(caught[-1].message) == "In 2 of 2 folds: subject 1 is odd"
