"""Damaged folders: no silent wrong, no unsafe call, and fewer than one raw error in a hundred."""

from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import pytest
import torch

from fuzz import folders
from fuzz.outcomes import OPENING, RAW, WRONG, judge

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """One thread: the models are so small that threads only cost time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_damaged_and_exchanged_folders(tmp_path):
    counts, failures = Counter(), []
    for seed in range(450):
        folder = tmp_path / "case"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        text, act, problem = folders.damaged(np.random.default_rng(seed))
        outcome, detail = judge(act, problem, folder)
        counts[outcome] += 1
        if outcome in (RAW, WRONG, OPENING):
            failures.append(f"{outcome}: {text}, default_rng({seed})\n    {detail}")
    report = "\n".join(failures)
    print(f"\n{dict(counts)}\n{report}")
    assert counts[WRONG] == counts[OPENING] == 0, report
    assert counts[RAW] * 100 < counts.total(), report
