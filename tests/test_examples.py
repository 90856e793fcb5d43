"""Every example runs from beginning to end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_it_runs(path, tmp_path, request):
    if "BRAINDECODE_PARS_EEG" in path.read_text():
        request.getfixturevalue("eeg_folder")  # skips where there are no recordings
    result = subprocess.run(
        [sys.executable, "-W", "error:FigureCanvasAgg:UserWarning", str(path)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.iterdir()) == []
