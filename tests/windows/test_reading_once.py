"""How often an evaluation asks its dataset: once for what is known, once for each test window."""

from __future__ import annotations

from collections import Counter

import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from support.small_estimators import classifier

from braindecode_pars import FewLabelsClassifier, PARSClassifier, PatchEncoder
from braindecode_pars.evaluation import LogBandPower, leave_one_subject_out


class CountedDataset(EEGWindowsDataset):
    """A recording that counts how often its description and each of its windows are read."""

    described: Counter
    read: Counter

    def __getattribute__(self, name):
        if name == "description":
            subject = super().__getattribute__("subject")
            super().__getattribute__("described")[subject] += 1
        return super().__getattribute__(name)

    def __getitem__(self, index):
        self.read[self.subject, index] += 1
        return super().__getitem__(index)


@pytest.fixture
def counted(nights):
    described, read, parts = Counter(), Counter(), []
    for night in nights.datasets:
        one = EEGWindowsDataset(night.raw, night.metadata, dict(night.description))
        vars(one).update(subject=night.description["subject"], described=described, read=read)
        one.__class__ = CountedDataset
        parts.append(one)
    windows = BaseConcatDataset(parts)
    described.clear()
    return windows, described, read


def test_a_recording_is_described_once(counted):
    windows, described, _ = counted
    pipe = make_pipeline(LogBandPower(), DummyClassifier())
    leave_one_subject_out({"power": pipe}, windows, unlabeled_label=None)
    assert described == {1: 1, 2: 1, 3: 1, 4: 1}


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(LogBandPower(), DummyClassifier()),
        GridSearchCV(make_pipeline(LogBandPower(), DummyClassifier()), {}, cv=KFold(2)),
        classifier(pretext=None, validation=0, finetune_epochs=2),
        FewLabelsClassifier(PatchEncoder(100, 16, num_layers=1, num_heads=2), C=0.1, verbose=0),
    ],
    ids=["pipeline", "search", "PARS", "few labels"],
)
@pytest.mark.filterwarnings("ignore:The training subjects of the encoder")
def test_a_test_window_is_predicted_once(counted, estimator):
    windows, _, read = counted
    # Estimators of this package look at the amplitudes of up to 32 windows before they predict
    looks = isinstance(estimator, (PARSClassifier, FewLabelsClassifier))
    leave_one_subject_out(
        {"one": estimator},
        windows,
        test_subjects=[2],
        metrics=["kappa", "auroc"],
        unlabeled_label=None,
    )
    # Four windows are compared with those of other subjects, to find duplicates; the first tells
    # features the shape
    is_of_features = isinstance(estimator, Pipeline)
    further = [looks + (i in (1, 3, 7, 15)) + (is_of_features and i == 0) for i in range(24)]
    expected = [1 + n for n in further]
    assert [read[2, i] for i in range(24)] == expected
