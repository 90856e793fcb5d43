"""Host libraries: a torchaudio that does not match torch."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.fixture
def mismatched(tmp_path):
    """Folder with a torchaudio module that cannot be imported."""
    (tmp_path / "torchaudio.py").write_text(
        "raise RuntimeError('Detected that PyTorch and TorchAudio were compiled with different "
        "CUDA versions.\\nMore lines.')"
    )
    return tmp_path


ERROR_PATTERN = (
    r"^torch .*pip install --force-reinstall 'torch>=2\.11,<2\.15' 'torchaudio>=2\.11,<2\.12'$"
)


def test_a_torchaudio_that_does_not_match_torch_raises_a_short_error(mismatched, monkeypatch):
    for name in ("torchaudio", "braindecode_pars._common.hosts"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(mismatched)
    with pytest.raises(ImportError, match=ERROR_PATTERN) as raised:
        importlib.import_module("braindecode_pars._common.hosts")
    assert raised.value.__suppress_context__
    assert raised.value.__cause__ is None
