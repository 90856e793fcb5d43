"""PARSClassifier as a step of a MOABB pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from support.small_estimators import classifier

from braindecode_pars.estimators import PARSClassifier

# MOABB asks MNE for a montage by a name that MNE retires, and h5py for a dataset without a type.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Montage name:FutureWarning", "ignore:Creating a dataset without passing data or dtype"
)


class Remembering(PARSClassifier):
    """Notes on which subjects it was fitted, since MOABB keeps only scores."""

    seen: list = []  # noqa: RUF012  shared by all clones on purpose

    def fit(self, X, y=None, **arguments):
        super().fit(X, y, **arguments)
        self.seen.append(self.encoder_card_.subjects)
        return self


@pytest.fixture
def evaluation(tmp_path, monkeypatch):
    """Leave one of three made-up subjects out; nothing is written outside the test's folder."""
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
        n_events=20,
        duration=60,
        channels=("C3", "Cz", "C4"),
        sfreq=128,
    )

    def evaluate(pipeline, **arguments):
        evaluation = CrossSubjectEvaluation(
            paradigm=LeftRightImagery(resample=100),
            datasets=[dataset],
            overwrite=True,
            hdf5_path=str(tmp_path),
            **arguments,
        )
        return evaluation.process({"PARS": pipeline})

    return evaluate


def test_arrays(evaluation):
    results = evaluation(make_pipeline(classifier(sfreq=100)))
    assert sorted(results["subject"].astype(int)) == [1, 2, 3]
    assert results["score"].between(0, 1).all()
    assert results["samples_test"].eq(20).all()


def test_epochs_bring_sampling_rate_electrodes_and_subjects(evaluation):
    Remembering.seen.clear()
    pars = Remembering(**{**classifier().get_params(), "electrode_position": True})
    results = evaluation(make_pipeline(pars), return_epochs=True)
    assert np.isfinite(results["score"]).all()
    # One of the two training subjects is the internal validation: pretraining sees the other.
    assert [len(subjects) for subjects in Remembering.seen] == [1, 1, 1]
