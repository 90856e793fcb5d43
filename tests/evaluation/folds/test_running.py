"""Folds: kept at once, never repeated, the same in any order and number of processes."""

from __future__ import annotations

import json
import os
import time

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from support.subjects import Watched, fits, with_subject

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn
from braindecode_pars.evaluation import FoldError, leave_one_subject_out, score_predictions


def run(windows, folder, seeds=(0, 1), **arguments):
    estimators = arguments.pop("estimators", {"A": Watched(folder), "B": Watched(folder, 2)})
    return leave_one_subject_out(estimators, windows, seeds=seeds, verbose=0, **arguments)


@pytest.fixture
def watched(tmp_path):
    folder = tmp_path / "watched"
    folder.mkdir()
    return folder


def test_an_interrupted_run_goes_on_where_it_was(nights, watched, tmp_path):
    whole = run(nights, watched)
    assert len(fits(watched)) == 16
    for file in watched.iterdir():
        file.unlink()
    out = tmp_path / "out"
    (watched / "stop").write_text("7")
    with pytest.raises(KeyboardInterrupt):
        run(nights, watched, out=out)
    assert len(fits(watched)) == len(list((out / "folds").iterdir())) == 6
    assert not (out / "scores.csv").exists()
    (watched / "stop").unlink()
    continued = run(nights, watched, out=out)
    assert len(fits(watched)) == 16
    pd.testing.assert_frame_equal(continued, whole)
    pd.testing.assert_frame_equal(pd.read_csv(out / "scores.csv", keep_default_na=False), whole)
    run(nights, watched, out=out)
    assert len(fits(watched)) == 16


def test_a_fold_file_tells_everything(nights, watched, tmp_path):
    scores = run(nights, watched, seeds=[5], out=tmp_path / "out", dataset="nights")
    (file,) = (tmp_path / "out" / "folds").glob("A_nights_subject-2_n3_seed5_*.json")
    fold = json.loads(file.read_text())
    _, y, groups = as_sklearn(nights)
    assert fold["key"] == {
        "protocol": "leave_one_subject_out",
        "dataset": "nights",
        "method": "A",
        "subject": 2,
        "n_train_subjects": 3,
        "seed": 5,
    }
    assert fold["true"] == y[groups == 2].tolist()
    assert fold["subjects"] == ["2"] * 24
    of_fold = scores[(scores["subject"] == 2) & (scores["method"] == "A")]
    assert [row["value"] for row in fold["rows"]] == of_fold["value"].tolist()
    kappa = score_predictions(np.array(fold["true"]), np.array(fold["predicted"]), "kappa")
    assert kappa == of_fold["value"].iloc[0]
    assert fold["seconds"] >= 0


def test_more_seeds_methods_and_subjects_run_only_what_is_new(nights, watched, tmp_path):
    out, first = tmp_path / "out", {"A": Watched(watched)}
    run(nights, watched, estimators=first, seeds=[0], test_subjects=[1, 2], out=out)
    assert len(fits(watched)) == 2
    run(nights, watched, estimators=first, seeds=[0, 1], test_subjects=[1, 2], out=out)
    assert len(fits(watched)) == 4
    run(nights, watched, estimators=first, seeds=[0, 1], out=out)
    assert len(fits(watched)) == 8
    both = first | {"B": Watched(watched, 2)}
    grown = run(nights, watched, estimators=both, out=out)
    assert len(fits(watched)) == 16
    pd.testing.assert_frame_equal(grown, run(nights, watched))
    # A metric is computed of the stored predictions.
    n_fits = len(fits(watched))
    more = run(nights, watched, estimators=both, out=out, metrics=["f1"])
    assert set(more["metric"]) == {"f1"}
    assert len(fits(watched)) == n_fits


def test_another_estimator_of_the_same_name_is_refused(nights, watched, tmp_path):
    out = tmp_path / "out"
    run(nights, watched, out=out)
    with pytest.raises(ValueError, match=r"methods\.A\.strength is 3, was 1\. Name another"):
        run(nights, watched, out=out, estimators={"A": Watched(watched, 3)})
    with pytest.raises(ValueError, match=r"A\.class is .*, was 'support\.subjects\.Watched'"):
        run(nights, watched, out=out, estimators={"A": DummyClassifier()})


def test_other_data_are_refused(nights, watched, tmp_path):
    out = tmp_path / "out"
    run(nights, watched, out=out)
    fewer = BaseConcatDataset(nights.datasets[:3])
    with pytest.raises(ValueError, match=r"datasets\..*n_windows is 72, was 96"):
        run(fewer, watched, out=out)
    others = BaseConcatDataset(nights.datasets, target_transform=lambda label: label % 3)
    with pytest.raises(ValueError, match=r"labels is .*, was"):
        run(others, watched, out=out)


def test_a_truncated_fold_is_run_again(nights, watched, tmp_path):
    out = tmp_path / "out"
    whole = run(nights, watched, out=out)
    damaged, incomplete, *_ = sorted((out / "folds").iterdir())
    damaged.write_text(damaged.read_text()[:100])
    incomplete.write_text("{}")
    pd.testing.assert_frame_equal(run(nights, watched, out=out), whole)
    assert len(fits(watched)) == 18


def test_a_fit_that_fails_is_named_and_the_others_are_kept(nights, watched, tmp_path):
    (watched / "fail").write_text("4")
    with pytest.raises(FoldError, match=r"told to\. Nothing is kept; out= names a folder"):
        run(nights, watched, estimators={"A": Watched(watched)})
    for file in watched.glob("fit-*"):
        file.unlink()
    message = (
        r"A on nights, subject 2, 3 training subjects, seed 1 failed with ValueError: told to\. "
        r"3 of 8 folds are finished; they stay in .*out and are not repeated\."
    )
    with pytest.raises(FoldError, match=message):
        run(
            nights,
            watched,
            estimators={"A": Watched(watched)},
            dataset="nights",
            out=tmp_path / "out",
        )
    assert len(list((tmp_path / "out" / "folds").iterdir())) == 3


@pytest.fixture(scope="module")
def leaky(nights):
    tiny = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32, verbose=0)
    donor = PARSEmbedder(pretrain_epochs=1, random_state=0, **tiny).fit(nights)
    return make_pipeline(PARSEmbedder(encoder=donor, verbose=0), DummyClassifier())


def test_processes_give_the_same_table_and_warnings(nights, watched, leaky, tmp_path):
    estimators = {
        "A": Watched(watched),
        "leaky": leaky,
        "PARS": PARSClassifier(
            embed_dim=16,
            num_layers=1,
            num_heads=2,
            mlp_dim=32,
            pretrain_epochs=1,
            finetune_epochs=2,
            verbose=0,
        ),
    }
    tables = []
    for n_jobs in (1, 2):
        with pytest.warns(UserWarning, match="pretrained on") as caught:
            tables.append(
                run(
                    nights,
                    watched,
                    estimators=estimators,
                    seeds=[0],
                    test_subjects=[1, 2],
                    n_jobs=n_jobs,
                    out=tmp_path / str(n_jobs),
                )
            )
        leaks = [str(w.message) for w in caught if "pretrained on" in str(w.message)]
        assert leaks == [
            "leaky was pretrained on windows of test subjects 1, 2; its score there is not "
            "that of a new person, unless it was somebody else of the same name in another corpus."
        ]
    pd.testing.assert_frame_equal(*tables)
    # Two processes have half of the threads each, which sum in another order.
    curves = [pd.read_csv(tmp_path / n / "curves.csv") for n in "12"]
    pd.testing.assert_frame_equal(*curves, rtol=1e-3)


class Torch(ClassifierMixin, BaseEstimator):
    """Notes on torch's threads and random state, as skorch's nets would meet them."""

    def fit(self, X, y):
        before = torch.get_num_threads()
        for _ in range(20):
            draw = torch.rand(()).item()
            time.sleep(0.002)  # another thread would draw now
        self.answer_ = [os.getpid(), before, round(1e6 * draw)]
        return self

    def predict(self, X):
        return np.resize(self.answer_, len(X))


@pytest.mark.parametrize("where", ["sequential", "threading", "dask"])
def test_estimators_without_a_seed_follow_that_of_the_fold(nights, where, tmp_path):
    before = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(2)
    try:
        with parallel(where):
            run(nights, None, estimators={"torch": Torch()}, out=tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before[0])
    assert torch.equal(torch.random.get_rng_state(), before[1])
    answers = [json.loads(f.read_text()) for f in (tmp_path / "folds").iterdir()]
    for seed in (0, 1):
        of_seed = {a["predicted"][2] for a in answers if a["key"]["seed"] == seed}
        torch.manual_seed(seed)
        assert of_seed == {round(1e6 * [torch.rand(()).item() for _ in range(20)][-1])}
    n_threads = {a["predicted"][1] for a in answers}
    assert n_threads == {min(2, joblib.cpu_count() // (1 if where == "sequential" else 2) or 1)}


def parallel(where):
    if where == "sequential":
        return joblib.parallel_config(n_jobs=1)
    if where == "threading":
        return joblib.parallel_config("threading", n_jobs=2)
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    return _Dask(distributed)


class _Dask:
    """A cluster in this process, two threads."""

    def __init__(self, distributed):
        self.distributed = distributed

    def __enter__(self):
        self.client = self.distributed.Client(
            processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
        )
        self.config = joblib.parallel_config("dask")
        self.config.__enter__()

    def __exit__(self, *error):
        self.config.__exit__(*error)
        self.client.close()


@pytest.mark.parametrize("where", ["threading", "dask"])
def test_other_backends_give_the_same_table(nights, watched, where):
    whole = run(nights, watched)
    with parallel(where):
        pd.testing.assert_frame_equal(run(nights, watched), whole)


def test_a_backend_that_hands_everything_back_at_the_end(nights, watched, tmp_path):
    """As Ray's, which is joblib's multiprocessing."""
    whole = run(nights, watched, seeds=[0])
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        scores = run(nights, watched, seeds=[0], out=tmp_path / "out")
    pd.testing.assert_frame_equal(scores, whole)


def test_undefined_scores_are_nan_and_told(nights, watched, tmp_path):
    awake = with_subject(nights, 3, target=0)
    with pytest.warns(UserWarning, match=r"2 scores are undefined and NaN \(kappa of 3\)") as w:
        scores = run(awake, watched, seeds=[0], out=tmp_path / "out")
    assert sum("undefined" in str(warning.message) for warning in w) == 1
    kappa = scores[scores["metric"] == "kappa"].set_index("subject")["value"]
    assert kappa.isna().groupby(level=0).any().to_dict() == {1: False, 2: False, 3: True, 4: False}
    assert scores[scores["metric"] == "balanced_accuracy"]["value"].notna().all()
    first = scores.attrs["undefined"][0]
    assert (first["subject"], first["method"], first["metric"]) == (3, "A", "kappa")
    assert first["reason"].startswith("all 24 true labels are 0")
    (file,) = (tmp_path / "out" / "folds").glob("A_subject-3_*.json")
    row = json.loads(file.read_text())["rows"][0]
    assert row["value"] is None
    assert row["undefined"] == first["reason"]


class Constant(Watched):
    """Always the same answer; asks for the windows without label."""

    def __init__(self, folder, answer, random_state=None, unlabeled_label=-1):
        super().__init__(folder, random_state=random_state)
        self.answer = answer
        self.unlabeled_label = unlabeled_label

    def predict(self, X):
        return np.full(len(X), self.answer)


def test_windows_without_label_go_to_those_who_ask_for_them(nights, watched):
    masked = BaseConcatDataset(
        nights.datasets, target_transform=lambda label: -1 if label == 2 else label
    )
    run(masked, watched, estimators={"A": Watched(watched)}, seeds=[0])
    assert all(-1 not in fit["labels"] for fit in fits(watched))
    run(masked, watched, estimators={"asking": Constant(watched, 4)}, seeds=[1])
    assert all(-1 in fit["labels"] for fit in fits(watched) if fit["seed"] == 1)
    with pytest.raises(FoldError, match="it predicts -1, which marks windows without a label"):
        run(masked, watched, estimators={"A": Constant(watched, -1)}, seeds=[0])


def test_labels_may_be_text(nights, watched, tmp_path):
    text = BaseConcatDataset(nights.datasets, target_transform=lambda label: f"stage {label}")
    scores = run(text, watched, seeds=[0], out=tmp_path / "out")
    pd.testing.assert_frame_equal(scores, run(nights, watched, seeds=[0]))
    n_fits = len(fits(watched))
    pd.testing.assert_frame_equal(run(text, watched, seeds=[0], out=tmp_path / "out"), scores)
    assert len(fits(watched)) == n_fits


def test_progress_is_shown(nights, watched, capsys):
    leave_one_subject_out({"A": Watched(watched)}, nights)
    assert "leave one subject out" in (shown := capsys.readouterr().err)
    assert "4/4" in shown
    assert "method=A" in shown
