"""The host libraries: a torchaudio that does not match torch, and private methods in use."""

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
from braindecode.models import util
from braindecode.models.base import EEGModuleMixin
from skorch.hf import AccelerateMixin
from support.structure import MODULES


@pytest.fixture
def mismatched(tmp_path):
    """A folder with a torchaudio that cannot be imported."""
    (tmp_path / "torchaudio.py").write_text(
        "raise RuntimeError('Detected that PyTorch and TorchAudio were compiled with different "
        "CUDA versions.\\nMore lines.')"
    )
    return tmp_path


SENTENCE = (
    r"^torch .*pip install --force-reinstall 'torch>=2\.11,<2\.15' 'torchaudio>=2\.11,<2\.12'$"
)


def test_a_torchaudio_that_does_not_match_torch_raises_one_sentence(mismatched, monkeypatch):
    for name in ("torchaudio", "braindecode_pars._common.hosts"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(mismatched)
    with pytest.raises(ImportError, match=SENTENCE) as raised:
        importlib.import_module("braindecode_pars._common.hosts")
    assert raised.value.__suppress_context__
    assert raised.value.__cause__ is None


def test_the_warnings_of_torchs_schedulers_are_not_silenced(monkeypatch):
    """accelerate silences them when it is imported, as here."""
    run = "braindecode_pars.runs.run"
    importlib.import_module(run)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "accelerate"]
    before = [*warnings.filters]
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    with warnings.catch_warnings():
        importlib.import_module("accelerate.scheduler")
        assert any("lr_scheduler" in str(each[3]) for each in warnings.filters)
    for name in [*(name for name in loaded if name in sys.modules), run]:
        monkeypatch.delitem(sys.modules, name)
    importlib.import_module(run)
    assert "accelerate.scheduler" in sys.modules
    assert warnings.filters == before


@pytest.mark.slow
def test_every_way_in_raises_it(mismatched):
    statements = (
        "from braindecode_pars.callbacks import Pretraining",
        "from braindecode_pars import PARSClassifier",
        "from braindecode_pars.models import PARSNet",
    )
    code = f"import sys\nsys.path.insert(0, {str(mismatched)!r})\n" + "".join(
        f"try:\n    {each}\nexcept ImportError as error:\n    print(error)\n" for each in statements
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = found.stdout.splitlines()
    assert len(lines) == len(statements), found.stderr
    assert all(re.search(SENTENCE, line) for line in lines)


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
    code = [file.read_text(encoding="utf-8") for file in MODULES.values()]
    found = {name for text in code for name in re.findall(r"super\(\)\.(_[a-z]\w*)", text)}
    # Those of our own base classes.
    assert found - {"_remember", "_restore"} <= known
