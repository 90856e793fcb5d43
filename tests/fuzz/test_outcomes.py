"""The fuzz sorts cases as it should: otherwise it would find nothing."""

from __future__ import annotations

import pickle
import urllib.request
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from braindecode_pars import PatchEncoder
from braindecode_pars._common.checks import check_positive
from fuzz.outcomes import CLEAR, LOSS, OPENING, RAW, RIGHT, WARNED, WRONG, Case, judge


def sorted_as(folder, act, problem=lambda result: None, **oracles) -> str:
    return judge(Case("a case", act, problem, **oracles), folder)[0]


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (lambda folder: 3, RIGHT),
        (lambda folder: check_positive(rate=-1), CLEAR),
        (lambda folder: PatchEncoder(embed_dim="8"), CLEAR),
        # Errors of a library, of an operator, and of an unexpected type.
        (lambda folder: torch.zeros(2) @ torch.zeros(3), RAW),
        (lambda folder: PatchEncoder(100, 8, num_heads=2)(np.zeros(3)), RAW),
        (lambda folder: np.zeros(3)[5], RAW),
        (lambda folder: {}["a"], RAW),
    ],
)
def test_errors(act, outcome, tmp_path):
    assert sorted_as(tmp_path, act) == outcome


def test_a_violated_oracle_is_silent_without_a_warning(tmp_path):
    def warn(folder):
        warnings.warn("-1 was taken as unlabeled", stacklevel=2)

    assert sorted_as(tmp_path, lambda folder: 3, lambda result: "4 instead of 3") == WRONG
    assert sorted_as(tmp_path, warn, lambda result: "a class is lost") == WARNED
    assert sorted_as(tmp_path, lambda folder: None, lambda result: result.shape) == WRONG


def test_a_lost_file_counts_whatever_else_happens(tmp_path):
    def act(folder):
        check_positive(rate=-1)

    assert sorted_as(tmp_path, act, lost=lambda folder: "scores.csv was overwritten") == LOSS


def test_openings(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside.txt"
    inside.mkdir()
    content = pickle.dumps(Path("a"))
    assert sorted_as(inside, lambda folder: (folder / "a").write_text("a")) == RIGHT
    assert sorted_as(inside, lambda folder: outside.write_text("a")) == OPENING
    assert sorted_as(inside, lambda folder: pickle.loads(content)) == OPENING
    fetch = lambda folder: urllib.request.urlopen("http://127.0.0.1:1")  # noqa: E731
    assert sorted_as(inside, fetch) == OPENING


def test_tensors_of_a_data_worker_are_no_opening(tmp_path):
    """They come through a pipe of multiprocessing, pickled."""
    loader = torch.utils.data.DataLoader(torch.zeros(4, 2), num_workers=1)
    assert sorted_as(tmp_path, lambda folder: [len(batch) for batch in loader]) == RIGHT
