"""Any command line ends with a right result, or with a sentence of ours."""

from __future__ import annotations

import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fuzz import lines
from fuzz.outcomes import RAW, Totals, judge
from fuzz.test_fuzz import check, one_thread  # noqa: F401

pytestmark = pytest.mark.slow

#: Errors of libraries that explain by themselves: what the last frame says -> why.
ACCEPTED = {
    r"os\.PathLike|embedded null byte|File name too long": "Python names what is a path",
    r"sklearn/utils/(validation|_array_api)\.py|sklearn/metrics/_scorer\.py": "weights and metrics",
    r"cannot be used to seed a numpy": "scikit-learn on random states",
    r"mne/filter\.py|mne/_fiff/(pick|reference)\.py|scipy/signal/": "frequencies and channels",
    r"braindecode/models/base\.py": "braindecode on n_chans and n_outputs",
    r"Invalid device string|NVIDIA driver|torch/nn/modules/module\.py": "torch on devices",
    r"allocate|Storage size calculation overflowed|Maximum allowed dimension": "out of memory",
    r"got an unexpected keyword argument|missing \d+ required": "Python on signatures",
    r"unhashable type": "Python on a subject or a name that is a list",
    r"iteration over a 0-d array|truth value of|value of (NA|Tensor)": "NumPy, pandas and torch",
    r"FoldError": "ours, of a fit in an evaluation, with the error of the fit",
}
#: Seconds after which a case counts as a hang.
DEADLINE = 60


class HangError(BaseException):
    """A case has passed its deadline; no case can catch it."""


def _hang(number, frame):
    raise HangError


def run_cases(area, strategy, number: int, folder: Path, totals: Totals) -> None:
    @settings(
        derandomize=True,
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(case):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        signal.alarm(DEADLINE)
        try:
            outcome, detail = judge(case, folder)
        except HangError:
            pytest.fail(f"{case.text} has not ended after {DEADLINE} s")
        finally:
            signal.alarm(0)
        if outcome == RAW and any(re.search(text, detail) for text in ACCEPTED):
            outcome = LIBRARY
            print(case.text[:80], detail[:150])
        totals.add(area, outcome, case.text, detail)

    before = signal.signal(signal.SIGALRM, _hang)
    try:
        run()
    finally:
        signal.signal(signal.SIGALRM, before)


LIBRARY = "library"


def test_any_command_line(tmp_path):
    """Which cases are drawn changes with every signature; one raw error in a hundred is printed."""
    totals, start = Totals(), time.monotonic()
    run_cases("command lines", lines.cases(), 400, tmp_path / "case", totals)
    print(f"\n{len(totals)} cases in {time.monotonic() - start:.0f} s: {dict(totals.counts)}")
    assert len(totals) >= 380
    check(totals)
