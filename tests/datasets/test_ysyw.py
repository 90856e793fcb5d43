"""YSYW: the tests write records in the format of the challenge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from support.challenge_records import write
from support.recipe_contract import RecipeContract

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import ysyw

#: Annotations of a recording of 75 seconds.
SHORT = ((10, "W"), (40, "N2"))


@pytest.fixture(scope="module")
def challenge(tmp_path_factory) -> Path:
    """Five subjects with stages and two without."""
    root = tmp_path_factory.mktemp("challenge-2018")
    write(root, "tr03-0001")
    for subject in [f"tr03-000{i}" for i in range(2, 6)]:
        write(root, subject, notes=SHORT, seconds=75)
    for subject in ("te03-0001", "te09-0094"):
        write(root, subject, seconds=30)
    return root


@pytest.fixture(scope="module")
def labeled(challenge):
    return ysyw.load(challenge, verbose=0)


def test_channels_rate_and_volts(labeled):
    (night, *_) = labeled.datasets
    assert night.raw.ch_names == ["F3", "F4", "C3", "C4", "O1", "O2"]
    assert night.raw.info["sfreq"] == 200.0
    window = night[3][0]
    assert window.shape == (6, 6000)
    # 40 uV at 10 Hz; each channel has 4 uV more than the one before.
    expected = 40e-6 / np.sqrt(2) * (1 + np.arange(6) / 10)
    np.testing.assert_allclose(window.std(axis=1), expected, rtol=0.01)


def test_windows_agree_with_the_annotations(labeled):
    """A stage lasts until the next one; annotations of arousals and breathing do not end it."""
    metadata = labeled.datasets[0].metadata
    written = [("W", 40), ("W", 70), ("N1", 100), ("N1", 130), ("N2", 160), ("N3", 220)]
    written += [("N3", 250), ("R", 280)]  # one window of the last stage, none of undefined
    stages = [ysyw.CARD["classes"][target] for target in metadata["target"]]
    assert list(zip(stages, metadata["i_start_in_trial"] / 200, strict=True)) == written
    assert len(labeled) == len(written) + 4 * 2
    _, y, groups = as_sklearn(labeled)
    assert sorted(set(y)) == [0, 1, 2, 3, 4]
    assert set(groups) == {f"tr03-000{i}" for i in range(1, 6)}


def test_a_stage_at_the_first_sample_is_kept(tmp_path):
    """wfdb takes a note at sample 0 for a definition, and removes it."""
    write(tmp_path, "tr03-0005", notes=[(0, "W"), (60, "N1"), (95, "undefined")], seconds=100)
    (night,) = ysyw.load(tmp_path, verbose=0).datasets
    assert night.metadata["i_start_in_trial"].tolist() == [0, 6000, 12000]
    assert night.metadata["target"].tolist() == [0, 0, 1]


def test_labeled_subjects_are_divided(challenge, labeled):
    assert Counter(labeled.description["split"]) == {"train": 3, "valid": 1, "test": 1}
    splits = dict(zip(labeled.description["subject"], labeled.description["split"], strict=True))
    # Another seed changes the division, but not the unlabeled subjects.
    others = [
        {r.subject: r.description["split"] for r in ysyw.recordings(challenge, split_seed=seed)}
        for seed in range(8)
    ]
    assert any({s: other[s] for s in splits} != splits for other in others)
    # The division does not depend on the chosen subjects.
    for subject in ("tr03-0002", "tr03-0005"):
        (alone,) = ysyw.RECIPE.labeled(challenge, [subject]).recordings
        assert alone.description["split"] == splits[subject]


@pytest.mark.parametrize("seed", range(2))
def test_pretraining_never_uses_validation_or_test_subjects(challenge, seed):
    labeled = ysyw.RECIPE.labeled(challenge, split_seed=seed).recordings
    splits = {recording.subject: recording.description["split"] for recording in labeled}
    held_out = {subject for subject, split in splits.items() if split != "train"}
    assert len(held_out) == 2
    corpus = ysyw.RECIPE.continuous(challenge, split_seed=seed)
    assert {recording.subject for recording in corpus.recordings} == (
        {"te03-0001", "te09-0094"} | splits.keys() - held_out
    )


def test_subjects_without_stages_are_not_labeled(challenge):
    message = r"te03-0001\. .* store --recipe ysyw=FOLDER"
    for call in (ysyw.load, ysyw.RECIPE.labeled):
        with pytest.raises(ValueError, match=message):
            call(challenge, ["tr03-0001", "te03-0001"])
    # Other unlabeled subjects in the folder are excluded without a warning.
    assert len(ysyw.RECIPE.labeled(challenge).recordings) == 5


def test_missing_stages_raise(tmp_path):
    write(tmp_path, "tr03-0001", notes=None, seconds=60)
    with pytest.raises(ValueError, match=r"tr03-0001\.arousal"):
        ysyw.load(tmp_path, verbose=0)
    write(tmp_path, "tr03-0002", notes=[(20, "(arousal_rera"), (30, "arousal_rera)")], seconds=60)
    with pytest.raises(ValueError, match=r"tr03-0002\.arousal"):
        ysyw.load(tmp_path, ["tr03-0002"], verbose=0)


class TestContract(RecipeContract):
    name = "ysyw"
    example = r"training/tr03-0005/tr03-0005\.mat"
    settings: ClassVar = dict(split_seed=3)

    def write(self, root):
        return tuple(write(root, name, SHORT, seconds=75) for name in ("tr03-0001", "tr03-0002"))
