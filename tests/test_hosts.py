"""The error when torchaudio does not match torch."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "statement",
    [
        "from braindecode_pars import PARSClassifier",
        "from braindecode_pars.callbacks import Pretraining",
        "from braindecode_pars.models import PARSNet",
    ],
)
def test_a_torchaudio_that_does_not_match_torch_raises_one_sentence(tmp_path, statement):
    (tmp_path / "torchaudio.py").write_text(
        "raise RuntimeError('Detected that PyTorch and TorchAudio were compiled with different "
        "CUDA versions.\\nMore lines.')"
    )
    result = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        {statement}
        """
    )
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: torch ")
    assert "pip install --force-reinstall 'torch>=2.11,<2.15' 'torchaudio>=2.11,<2.12'" in last
    assert "torchaudio.py" not in result.stderr
