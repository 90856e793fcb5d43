"""The fuzz: no silent wrong, no loss, no opening, and fewer than one raw error in a hundred."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from fuzz import arrays, folders, labels, parameters, recordings, sequences
from fuzz.outcomes import LOSS, OPENING, RAW, WRONG, Totals, judge

#: Area -> (strategy of its cases, number of cases).
AREAS = {
    "arrays": (arrays.cases, 420),
    "recordings": (recordings.cases, 350),
    "labels": (labels.cases, 300),
    "parameters": (parameters.cases, 500),
    "folders": (folders.cases, 300),
}
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


def run_area(area: str, number: int, folder: Path, totals: Totals) -> None:
    strategy = AREAS[area][0]

    @seed(0)
    @reproducible(number)
    @given(strategy)
    def run(case):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        totals.add(area, *_outcome(case, folder))

    run()


def _outcome(case, folder: Path) -> tuple[str, str, str]:
    outcome, detail = judge(case, folder)
    return outcome, case.text, detail


def check(totals: Totals) -> None:
    """Write the totals where the environment asks for them, and check the promise."""
    print("\n" + totals.table() + "\n" + totals.report())
    if file := os.environ.get("BRAINDECODE_PARS_FUZZ_TOTALS"):
        Path(file).write_text(totals.table(), encoding="utf-8")
    assert totals.number(WRONG) == 0, totals.report()
    assert totals.number(LOSS) == 0, totals.report()
    assert totals.number(OPENING) == 0, totals.report()
    assert totals.number(RAW) * 100 < len(totals), totals.report()


@pytest.mark.slow
def test_two_thousand_cases(tmp_path):
    totals = Totals()
    for area, (_, number) in AREAS.items():
        run_area(area, number, tmp_path / "case", totals)
    for area, (machine, *sizes) in SEQUENCES.items():
        sequences.run(machine, area, *sizes, tmp_path / "sequence", totals, reproducible)
    assert len(totals) >= 2000
    check(totals)
