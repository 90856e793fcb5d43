"""PARSClassifier as a step of a MOABB pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier

from braindecode_pars import PatchEncoder
from braindecode_pars.estimators import PARSClassifier
from braindecode_pars.pretrained import EncoderCard, save_encoder

# MOABB uses a montage name that MNE deprecates, and creates h5py datasets without a dtype.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Montage name:FutureWarning", "ignore:Creating a dataset without passing data or dtype"
)


class StoreSubjects(PARSClassifier):
    """A classifier that stores its pretraining subjects. MOABB returns scores, not estimators."""

    subjects: list = []  # noqa: RUF012  shared by all clones on purpose
    unlabeled: list = []  # noqa: RUF012

    def fit(self, X, y=None, *, groups=None, unlabeled=None):
        super().fit(X, y, groups=groups, unlabeled=unlabeled)
        self.subjects.append(self.encoder_card_.subjects)
        self.unlabeled.append(unlabeled)
        return self


@pytest.fixture
def evaluation(tmp_path, monkeypatch):
    """Leave one of three synthetic subjects out. All files are written to the test folder."""
    for name in ("MNE_DATA", "_MNE_FAKE_HOME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    from moabb.datasets.fake import FakeDataset
    from moabb.evaluations import CrossSubjectEvaluation
    from moabb.paradigms import LeftRightImagery

    dataset = FakeDataset(
        ["left_hand", "right_hand"],
        n_sessions=1,
        n_runs=1,
        n_subjects=3,
        n_events=10,
        duration=30,
        channels=("C3", "Cz", "C4"),
        sfreq=128,
        seed=0,
    )

    def evaluate(pipeline, **arguments):
        evaluation = CrossSubjectEvaluation(
            paradigm=LeftRightImagery(resample=100),
            datasets=[dataset],
            overwrite=True,
            hdf5_path=str(tmp_path),
            **arguments,
        )
        evaluate.paradigm = evaluation.paradigm
        return evaluation.process({"PARS": pipeline})

    evaluate.dataset = dataset
    return evaluate


def test_epochs_provide_sampling_rate_electrodes_and_subjects(evaluation):
    StoreSubjects.subjects.clear()
    pars = StoreSubjects(**{**classifier().get_params(), "electrode_position": True})
    results = evaluation(make_pipeline(pars), return_epochs=True)
    assert np.isfinite(results["score"]).all()
    # One of the two training subjects is held out for validation, so one is left to pretrain on.
    assert [len(subjects) for subjects in StoreSubjects.subjects] == [1, 1, 1]


def adapted(folder) -> StoreSubjects:
    """A classifier that continues the pretraining of an encoder on the windows of the target."""
    card = EncoderCard(sfreq=100.0, subjects=["someone"])
    encoder = save_encoder(PatchEncoder(100, 16, 1, 2, 32), card, folder / "encoder")
    changed = dict(encoder=encoder, continue_pretraining=True, validation=0)
    StoreSubjects.subjects.clear()
    StoreSubjects.unlabeled.clear()
    with config_context(enable_metadata_routing=True):
        pars = StoreSubjects(**{**classifier().get_params(), **changed})
        return pars.set_fit_request(unlabeled="X_target_unlabeled")


def test_unlabeled_windows_of_the_target_subject(evaluation, tmp_path):
    """Transductive: MOABB hands out the test subject's windows, to continue pretraining."""
    from moabb.evaluations.protocols import CrossSubjectMode

    results = evaluation(
        make_pipeline(adapted(tmp_path)),
        return_epochs=True,
        cs_mode=CrossSubjectMode.TRAIN_AND_TARGET_UNLABELED_FULL,
    )
    assert np.isfinite(results["score"]).all()
    assert [set(map(str, subjects)) for subjects in StoreSubjects.subjects] == [
        {"1", "2", "3", "someone"}
    ] * 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_calibration_windows_are_the_unlabeled_data_of_the_target(evaluation, tmp_path):
    """Not transductive: in folds of three parts, the calibration windows are not tested."""
    from moabb.evaluations.splitters import CrossSubjectSplitter

    three_parts = dict(calibration_size=0.2, calibration_labeled=False)
    pars = adapted(tmp_path)
    results = evaluation(make_pipeline(pars), return_epochs=True, cv_kwargs=three_parts)
    assert results["samples_test"].tolist() == [8, 8, 8]  # of 10 windows of the target
    given = list(StoreSubjects.unlabeled)

    # The same folds by hand: MOABB's splitter, fit and score of this package.
    X, y, metadata = evaluation.paradigm.get_data(evaluation.dataset, return_epochs=True)
    folds = list(CrossSubjectSplitter(**three_parts).split(y, metadata))
    assert len(folds) == len(given) == 3
    for (_, calibration, test), unlabeled in zip(folds, given, strict=True):
        np.testing.assert_array_equal(unlabeled.get_data(), X[calibration].get_data())
        assert not {*calibration} & {*test}
        (target,) = metadata["subject"].iloc[test].unique()
        assert set(metadata["subject"].iloc[calibration]) == {target}
    train = folds[-1][0]
    clf = clone(pars).fit(X[train], y[train], unlabeled=X[calibration])
    score = get_scorer("roc_auc")(clf, X[test], y[test])
    expected = results.set_index(results["subject"].astype(str))["score"][str(target)]
    assert score == pytest.approx(expected)
