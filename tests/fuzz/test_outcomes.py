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
from fuzz.outcomes import CLEAR, OPENING, RAW, RIGHT, WARNED, WRONG, judge


def warn(folder):
    warnings.warn("-1 was taken as unlabeled", stacklevel=2)


def accept(result):
    return None


@pytest.mark.parametrize(
    ("act", "problem", "outcome"),
    [
        (lambda folder: 3, accept, RIGHT),
        (lambda folder: check_positive(rate=-1), accept, CLEAR),
        # Errors of a library, of an operator, and of an unexpected type.
        (lambda folder: torch.zeros(2) @ torch.zeros(3), accept, RAW),
        (lambda folder: PatchEncoder(100, 8, num_heads=2)(np.zeros(3)), accept, RAW),
        (lambda folder: {}["a"], accept, RAW),
        (lambda folder: 3, lambda result: "4 instead of 3", WRONG),
        (lambda folder: None, lambda result: result.shape, WRONG),
        (warn, lambda result: "a class is lost", WARNED),
        (lambda folder: (folder / "a").write_text("a"), accept, RIGHT),
        (lambda folder: (folder.parent / "a").write_text("a"), accept, OPENING),
        (lambda folder: pickle.loads(pickle.dumps(Path("a"))), accept, OPENING),
        (lambda folder: urllib.request.urlopen("http://127.0.0.1:1"), accept, OPENING),
    ],
)
def test_cases_are_sorted_by_outcome(act, problem, outcome, tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    assert judge(act, problem, folder)[0] == outcome
