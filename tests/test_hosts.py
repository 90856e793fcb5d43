"""Host libraries: a torchaudio that does not match torch, and private names that are used."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import warnings
from importlib.metadata import version

import pytest
import skorch
from braindecode.datasets import BaseConcatDataset
from braindecode.models import util
from braindecode.models.base import EEGModuleMixin
from skorch.hf import AccelerateMixin
from support.structure import MODULES


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


def test_the_warnings_of_torchs_schedulers_are_not_silenced(monkeypatch):
    """accelerate adds a filter for these warnings when it is imported."""
    run = "braindecode_pars.runs.run"
    importlib.import_module(run)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "accelerate"]
    before = [*warnings.filters]
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    with warnings.catch_warnings():
        importlib.import_module("accelerate.scheduler")
        assert any("lr_scheduler" in str(entry[3]) for entry in warnings.filters)
    for name in [*(name for name in loaded if name in sys.modules), run]:
        monkeypatch.delitem(sys.modules, name)
    importlib.import_module(run)
    assert "accelerate.scheduler" in sys.modules
    assert warnings.filters == before


@pytest.mark.slow
def test_every_import_raises_the_error_about_torchaudio(mismatched):
    statements = (
        "from braindecode_pars.callbacks import Pretraining",
        "from braindecode_pars import PARSClassifier",
        "from braindecode_pars.models import PARSNet",
    )
    code = f"import sys\nsys.path.insert(0, {str(mismatched)!r})\n" + "".join(
        f"try:\n    {statement}\nexcept ImportError as error:\n    print(error)\n"
        for statement in statements
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = result.stdout.splitlines()
    assert len(lines) == len(statements), result.stderr
    assert all(re.search(ERROR_PATTERN, line) for line in lines)


#: Private methods that the package calls or overrides: library, last version that was checked,
#: class, name, and use.
INTERNALS = [
    ("skorch", "1.4.0", skorch.NeuralNet, "_default_callbacks", "PretrainingNet adds RelativeLoss"),
    ("skorch", "1.4.0", skorch.NeuralNet, "_validate_params", "TrainingNet checks its argument"),
    ("skorch", "1.4.0", skorch.NeuralNet, "_set_training", "RunNet trains in micro-batches"),
    ("skorch", "1.4.0", AccelerateMixin, "_initialize_accelerator", "RunNet hides the criterion"),
    ("skorch", "1.4.0", AccelerateMixin, "_unwrap_accelerator", "RunNet after Ctrl-C"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_set_n_outputs", "PARSNet.reset_head"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_deserialize_chs_info", "PARSNet.from_pretrained"),
    ("braindecode", "1.8.1", BaseConcatDataset, "_convert_to_zarr_inline", "SignalStore.to_zarr"),
    ("braindecode", "1.8.1", BaseConcatDataset, "_load_from_zarr_inline", "read_zarr"),
]
#: Private attributes that the constructors of these classes set, with the same entries.
ATTRIBUTES = [
    ("skorch", "1.4.0", skorch.NeuralNet, "_criteria", "RunNet hides the criterion"),
    ("braindecode", "1.8.1", util, "_braindecode_init_kwargs", "PARSNet saves NumPy numbers"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_n_times", "PARSNet.get_torchinfo_statistics"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_chs_info", "electrode positions of PARSNet"),
    ("braindecode", "1.8.1", EEGModuleMixin, "_sfreq", "card of a PARSNet without an estimator"),
]


def missing_name(library: str, checked_version: str, owner: type, name: str, use: str) -> str:
    return (
        f"{owner.__name__}.{name} is missing from {library} {version(library)}, but was present in "
        f"version {checked_version}. It is used for: {use}."
    )


@pytest.mark.parametrize("entry", INTERNALS, ids=lambda entry: entry[3])
def test_a_private_method_exists(entry):
    assert hasattr(entry[2], entry[3]), missing_name(*entry)


@pytest.mark.parametrize("entry", ATTRIBUTES, ids=lambda entry: entry[3])
def test_a_private_attribute_is_set(entry):
    assert f"self.{entry[3]} " in inspect.getsource(entry[2]), missing_name(*entry)


def test_all_private_methods_that_are_called_with_super_are_listed():
    listed = {name for _, _, _, name, _ in INTERNALS}
    code = [file.read_text(encoding="utf-8") for file in MODULES.values()]
    called = {name for text in code for name in re.findall(r"super\(\)\.(_[a-z]\w*)", text)}
    package_methods = {"_remember", "_restore"}  # of base classes of the package
    assert called - package_methods <= listed
