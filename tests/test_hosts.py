"""The host libraries: a torchaudio that does not match torch, and private interfaces in use."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
import textwrap
from importlib.metadata import version

import pytest
import skorch
from braindecode.models import util
from braindecode.models.base import EEGModuleMixin
from skorch.hf import AccelerateMixin
from support.structure import MODULES, tree


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
        "from braindecode_pars.callbacks import Pretraining",
        pytest.param("from braindecode_pars import PARSClassifier", marks=pytest.mark.slow),
        pytest.param("from braindecode_pars.models import PARSNet", marks=pytest.mark.slow),
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


#: Every private name that is used: of which library, where it is defined, and what for. It was
#: last seen in the version that is given.
INTERNALS = [
    ("skorch", "1.4.0", skorch.NeuralNet, "_default_callbacks", "PretrainingNet adds RelativeLoss"),
    ("skorch", "1.4.0", skorch.NeuralNet, "_validate_params", "TrainingNet checks its argument"),
    ("skorch", "1.4.0", skorch.NeuralNet, "_set_training", "RunNet trains in micro-batches"),
    ("skorch", "1.4.0", AccelerateMixin, "_initialize_accelerator", "RunNet hides the criterion"),
    ("skorch", "1.4.0", AccelerateMixin, "_unwrap_accelerator", "RunNet after Ctrl-C"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_set_n_outputs", "PARSNet.reset_head"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_deserialize_chs_info", "PARSNet.from_pretrained"),
]
#: Attributes that the constructors of these classes set.
ATTRIBUTES = [
    ("skorch", "1.4.0", skorch.NeuralNet, "_criteria", "RunNet hides the criterion"),
    ("braindecode", "1.8.1", util, "_braindecode_init_kwargs", "PARSNet saves NumPy's numbers"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_n_times", "PARSNet.get_torchinfo_statistics"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_chs_info", "electrode positions of PARSNet"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_sfreq", "the card of a bare PARSNet"),
]


def broken(library: str, last_seen: str, owner: type, name: str, use: str) -> str:
    return (
        f"{library} {version(library)} has no {owner.__name__}.{name}, which {last_seen} had; "
        f"it is used for: {use}"
    )


@pytest.mark.parametrize("entry", INTERNALS, ids=lambda entry: entry[3])
def test_a_private_method_is_still_there(entry):
    assert hasattr(entry[2], entry[3]), broken(*entry)


@pytest.mark.parametrize("entry", ATTRIBUTES, ids=lambda entry: entry[3])
def test_a_private_attribute_is_still_set(entry):
    assert f"self.{entry[3]} " in inspect.getsource(entry[2]), broken(*entry)


def test_there_are_no_others():
    """Private methods that are called through super() or overridden are in the list."""
    known = {name for _, _, _, name, _ in INTERNALS}
    found = set()
    for module in MODULES:
        for node in ast.walk(tree(module)):
            of_super = (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Call)
                and getattr(node.value.func, "id", "") == "super"
            )
            if of_super and node.attr.startswith("_") and not node.attr.startswith("__"):
                found.add(node.attr)
    # Those of our own base classes.
    assert found - {"_check", "_logits", "_remember", "_restore"} <= known


def test_nothing_private_is_imported():
    found = []
    for name in MODULES:
        for node in ast.walk(tree(name)):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            for module in modules:
                parts = module.split(".")
                if parts[0] in {"sklearn", "skorch", "braindecode", "mne", "torch"} and any(
                    part.startswith("_") and part != "__version__" for part in parts
                ):
                    found.append(module)
    assert found == []
