"""Settings of a run: defaults, arguments and checks."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import PARSEmbedder, paper
from braindecode_pars.encoder import TOKENIZERS
from braindecode_pars.pretext.base import params_of
from braindecode_pars.runs import RunConfig


def test_defaults_are_the_settings_of_the_paper():
    config = RunConfig()
    for name, value in paper.ENCODER.items():
        assert getattr(config, name) == value
    assert config.epochs == paper.PRETRAINING["max_epochs"]
    assert (config.lr, config.batch_size, config.weight_decay) == (1e-4, 512, 1e-4)
    assert (config.window_seconds, config.patch_seconds, config.task) == (30, 1, "pars")


def test_settings_for_a_laptop_are_the_defaults_of_the_estimators():
    laptop, estimator = RunConfig.for_laptop(), PARSEmbedder()
    for name in ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer", "patch_seconds"):
        assert getattr(laptop, name) == getattr(estimator, name)
    for name in ("epochs", "max_steps", "minutes", "batch_size", "lr"):
        assert getattr(laptop, name) == getattr(estimator, f"pretrain_{name}")
    assert laptop.task_params == params_of(estimator.pretext, estimator.pretext_params)
    assert laptop.weight_decay == estimator.weight_decay
    config = RunConfig.for_laptop(epochs=7, lr=0.25)
    assert (config.epochs, config.lr, config.embed_dim) == (7, 0.25, 64)


def test_a_run_has_the_tokenizers_of_the_encoder():
    assert [RunConfig(tokenizer=name).tokenizer for name in TOKENIZERS] == [*TOKENIZERS]


def test_arguments_override_the_defaults():
    config = RunConfig(lr=0.01, epochs=7, exclude_subjects=[3, "S04"], task_params={"n_patches": 9})
    assert (config.lr, config.epochs, config.batch_size) == (0.01, 7, 512)
    assert config.exclude_subjects == ("3", "S04")
    assert config.task_params == {"n_patches": 9}
    with pytest.raises(TypeError, match="learning_rate"):
        RunConfig.for_laptop(learning_rate=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "parts"),
        ("window_seconds", 0),
        ("patch_seconds", "1"),
        ("batch_size", True),
        ("lr", float("nan")),
        ("warmup", 1.5),
        ("tokenizer", "wavelet"),
        ("exclude_subjects", "S01"),
        ("seed", -1),
        ("device", "cuda:1"),
        *(("window_seconds", lengths) for lengths in ([], [3, 3], [10, -1], [10, "3"], "10")),
    ],
)
def test_invalid_settings(name, value):
    with pytest.raises((ValueError, TypeError), match=f"{name} ") as error:
        RunConfig(**{name: value})
    assert repr(value) in str(error.value) or isinstance(value, list)


def test_numpy_numbers_and_the_order_of_subjects_do_not_matter():
    numpy = RunConfig(lr=np.float32(0.5), batch_size=np.int64(16), exclude_subjects=["b", "a", "b"])
    assert numpy == RunConfig(lr=0.5, batch_size=16, exclude_subjects=("a", "b"))
    assert type(numpy.lr) is float
    assert type(numpy.batch_size) is int


def test_of_a_task_in_a_file_a_configuration_keeps_the_name(own_task):
    assert RunConfig(task=f"{own_task}:Slope").task == "slope"
    assert RunConfig(task="slope").task == "slope"


def test_several_lengths_of_crops():
    config = RunConfig(window_seconds=[10, 3])
    assert config == RunConfig(window_seconds=(10.0, 3.0))
    assert config.lengths == (10.0, 3.0)
    assert RunConfig(window_seconds=(10,)).window_seconds == 10.0
