"""The data of the demo."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars.baselines import make_methods
from braindecode_pars.cli import demo as scenarios
from braindecode_pars.cli.demo import Scenario, mental_arithmetic, motor_imagery, simulated_nights


def subjects(windows) -> set:
    return set(windows.description["subject"])


def check_people(scenario: Scenario) -> None:
    assert subjects(scenario.unlabeled).isdisjoint(subjects(scenario.labeled))
    assert subjects(scenario.held_out) == subjects(scenario.labeled)
    assert scenario.held_out[0][0].shape == scenario.unlabeled[0][0].shape


def test_the_recordings_in_the_package():
    scenario = mental_arithmetic()
    check_people(scenario)
    # The package's defaults were chosen on the first twelve subjects, so none of them is scored.
    assert subjects(scenario.labeled) == {f"Subject{number}" for number in range(12, 24)}
    assert (len(scenario.unlabeled), len(scenario.labeled)) == (144, 144)
    assert "ODC-BY-1.0" in scenario.notice
    assert "Zyma et al. 2019" in scenario.notice


def test_every_scored_subject_is_tested_once_with_few_labelled_ones():
    scenario = mental_arithmetic()
    scores = scenario.protocol(
        make_methods(["band-power"]), scenario.labeled, seeds=[0], dataset="", verbose=0
    )
    kappa = scores[scores["metric"] == "kappa"]
    assert sorted(kappa["subject"]) == sorted(subjects(scenario.labeled))
    assert set(kappa["n_train_subjects"]) == {scenarios.N_LABELED}


def test_the_seed_simulates_other_nights(monkeypatch):
    sleep = scenarios.simulated.sleep
    monkeypatch.setattr(
        scenarios.simulated, "sleep", lambda **given: sleep(**{**given, "hours": 0.1})
    )
    first, same, other = (simulated_nights(seed) for seed in (0, 0, 1))
    check_people(first)
    assert (len(subjects(first.unlabeled)), len(subjects(first.labeled))) == (8, 6)
    assert np.array_equal(first.labeled[0][0], same.labeled[0][0])
    assert not np.array_equal(first.labeled[0][0], other.labeled[0][0])
    assert len(first.labeled) == 6 * 12 / 4  # windows of 30 s in six minutes, every fourth
    assert first.encoder is None


def test_a_folder_with_few_subjects(tmp_path):
    for subject in (1, 2, 3):
        (tmp_path / f"S{subject:03}R04.edf").touch()
    with pytest.raises(ValueError, match="3 subjects"):
        motor_imagery(tmp_path)
