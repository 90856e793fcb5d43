"""The names that other work relies on, their signatures, and their examples."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import textwrap

import pytest

import braindecode_pars


def test_names():
    from braindecode_pars import (  # noqa: F401
        PARSClassifier,
        PARSEmbedder,
        PARSNet,
        PatchEncoder,
        as_sklearn,
        datasets,
        evaluation,
        paper,
        plotting,
    )
    from braindecode_pars.callbacks import Pretraining, WarmupCosine  # noqa: F401
    from braindecode_pars.pretext import PARS, PRETEXT_TASKS
    from braindecode_pars.pretext.pairwise import (  # noqa: F401
        CrossAttentionDecoder,
        PairwiseMLPDecoder,
    )
    from braindecode_pars.pretraining import PretrainingNet  # noqa: F401
    from braindecode_pars.windows import SingleChannelWindows  # noqa: F401

    assert PRETEXT_TASKS["pars"] is PARS


def parameters(callable_):
    return [name for name in inspect.signature(callable_).parameters if name != "self"]


def test_signatures():
    from braindecode_pars import PARSClassifier, PARSNet, PatchEncoder, datasets
    from braindecode_pars.callbacks import Pretraining
    from braindecode_pars.pretext import PARS

    assert parameters(PatchEncoder) == [
        "patch_size",
        "embed_dim",
        "num_layers",
        "num_heads",
        "mlp_dim",
        "drop_prob",
        "activation",
    ]
    assert parameters(PARS)[:2] == ["n_times", "patch_size"]
    assert parameters(PARSNet)[:6] == [
        "n_outputs",
        "n_chans",
        "chs_info",
        "n_times",
        "input_window_seconds",
        "sfreq",
    ]
    assert parameters(PARSNet.forward) == ["x", "pos", "ch_mask", "return_features"]
    assert parameters(Pretraining)[:4] == ["task", "epochs", "lr", "batch_size"]
    assert parameters(datasets.simulated.sleep) == [
        "n_subjects",
        "hours",
        "n_chans",
        "sfreq",
        "random_state",
    ]
    for parameter in list(inspect.signature(PARSClassifier).parameters.values())[1:]:
        assert parameter.kind is parameter.KEYWORD_ONLY


def public_modules():
    for module in pkgutil.walk_packages(braindecode_pars.__path__, "braindecode_pars."):
        if not module.name.endswith("__main__"):
            yield module.name


@pytest.mark.parametrize("name", sorted(public_modules()))
def test_every_public_thing_is_documented_and_its_examples_run(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for attribute in getattr(module, "__all__", []):
        thing = getattr(module, attribute)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, f"{name}.{attribute}"
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert results.failed == 0


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_torch_and_torchaudio_that_do_not_fit_end_in_one_sentence(tmp_path):
    (tmp_path / "torchaudio.py").write_text(
        "raise RuntimeError('Detected that PyTorch and TorchAudio were compiled with different "
        "CUDA versions.\\nMore lines.')"
    )
    result = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import braindecode_pars
        """
    )
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: torch ")
    assert "pip install --force-reinstall 'torch>=2.11,<2.15' 'torchaudio>=2.11,<2.12'" in last
    assert "torchaudio.py" not in result.stderr


def test_importing_says_and_changes_nothing():
    result = run_python(
        """
        import numpy, torch
        numpy_state = numpy.random.get_state()[1].tolist()
        before = torch.get_rng_state(), torch.get_num_threads()
        import braindecode_pars
        assert torch.equal(before[0], torch.get_rng_state())
        assert before[1] == torch.get_num_threads()
        assert numpy_state == numpy.random.get_state()[1].tolist()
        """
    )
    assert result.returncode == 0, result.stderr
    ours = [line for line in result.stderr.splitlines() if "braindecode" in line]
    assert ours == []
