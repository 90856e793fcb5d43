"""The fuzz: no silent wrong, no loss, no opening, and fewer than one raw error in a hundred."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from fuzz import folders, sequences
from fuzz.outcomes import LOSS, OPENING, RAW, WRONG, Totals, judge

pytestmark = pytest.mark.slow

#: Sequences of calls -> (machine, number of sequences, steps of each).
SEQUENCES = {
    "sequences: models": (sequences.ModelFolders, 15, 12),
    "sequences: stores": (sequences.StoreFolder, 10, 10),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """One thread: the models are so small that threads only cost time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def reproducible(number: int) -> settings:
    return settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )


def run_cases(folder: Path, totals: Totals) -> None:
    @seed(0)
    @reproducible(450)
    @given(folders.cases)
    def run(case):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        outcome, detail = judge(case, folder)
        totals.add("folders", outcome, case.text, detail)

    run()


def check(totals: Totals) -> None:
    """Write the totals where the environment asks for them, and check the promise."""
    print("\n" + totals.table() + "\n" + totals.report())
    if file := os.environ.get("BRAINDECODE_PARS_FUZZ_TOTALS"):
        Path(file).write_text(totals.table(), encoding="utf-8")
    assert totals.number(WRONG) == 0, totals.report()
    assert totals.number(LOSS) == 0, totals.report()
    assert totals.number(OPENING) == 0, totals.report()
    assert totals.number(RAW) * 100 < len(totals), totals.report()


def test_damaged_and_exchanged_folders(tmp_path):
    totals = Totals()
    run_cases(tmp_path / "case", totals)
    for area, (machine, *sizes) in SEQUENCES.items():
        sequences.run(machine, area, *sizes, tmp_path / "sequence", totals, reproducible)
    assert len(totals) >= 550
    check(totals)
