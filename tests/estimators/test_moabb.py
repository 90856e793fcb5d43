"""PARSClassifier as a step of a MOABB pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier

from braindecode_pars.estimators import PARSClassifier

# MOABB uses a montage name that MNE deprecates, and creates h5py datasets without a dtype.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Montage name:FutureWarning", "ignore:Creating a dataset without passing data or dtype"
)


class StoreSubjects(PARSClassifier):
    """A classifier that stores its pretraining subjects. MOABB returns scores, not estimators."""

    subjects: list = []  # noqa: RUF012  shared by all clones on purpose

    def fit(self, X, y=None, *, groups=None, unlabeled=None):
        super().fit(X, y, groups=groups, unlabeled=unlabeled)
        self.subjects.append(self.encoder_card_.subjects)
        return self


def test_epochs_provide_sampling_rate_electrodes_and_subjects(tmp_path, monkeypatch):
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

    evaluation = CrossSubjectEvaluation(
        paradigm=LeftRightImagery(resample=100),
        datasets=[dataset],
        overwrite=True,
        hdf5_path=str(tmp_path),
        return_epochs=True,
    )
    pars = StoreSubjects(**{**classifier().get_params(), "electrode_position": True})
    results = evaluation.process({"PARS": make_pipeline(pars)})
    assert np.isfinite(results["score"]).all()
    # One of the two training subjects is held out for validation, so one is left to pretrain on.
    assert [len(subjects) for subjects in StoreSubjects.subjects] == [1, 1, 1]
