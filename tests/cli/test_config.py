"""Settings from the paper, from a TOML file and from options, which win in this order."""

from __future__ import annotations

import pytest

from braindecode_pars import paper
from braindecode_pars.baselines import make_methods
from braindecode_pars.cli.evaluation_report import load_arguments, settings_of

CONFIG = """
[set]
finetune_epochs = 20
label_smoothing = 0.1
augmentation = [{name = "GaussianNoise", std = 0.2}, "SignFlip"]

[load]
window_seconds = 10
subjects = ["P01", "P02"]
"""


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(CONFIG)
    return file


def test_options_win_over_the_file_and_the_file_over_the_paper(config):
    found = settings_of(["label_smoothing=0.3"], config, published=True)
    augmentation = [{"name": "GaussianNoise", "std": 0.2}, "SignFlip"]
    expected = dict(finetune_epochs=20, label_smoothing=0.3, augmentation=augmentation)
    assert found == {**paper.FINE_TUNING, **expected}
    assert settings_of(None, None, published=False) == {}
    assert load_arguments(["window_seconds=5"], config) == {
        "window_seconds": 5,
        "subjects": ["P01", "P02"],
    }


def test_eesm17_has_its_noise_in_the_paper():
    found = settings_of(None, None, published=True, dataset="eesm17")
    assert found == {**paper.FINE_TUNING, "augmentation": "ChannelNoise"}
    assert settings_of(None, None, published=False, dataset="eesm17") == {}


def test_a_classifier_that_pretrains_has_the_papers_sizes_too():
    found = settings_of(["embed_dim=64"], None, published=True, pretrains=True)
    (classifier,) = make_methods(["pars"], **found).values()
    params = classifier.get_params()
    expected = {**paper.CLASSIFIER, "embed_dim": 64}
    assert {name: params[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, FileNotFoundError, "settings.toml"),
        ("set = ", ValueError, "TOML"),
        ("finetune_epochs = 3", ValueError, "'finetune_epochs'"),
        ("[classifier]", ValueError, "'classifier'"),
        ("set = 3", ValueError, "'set'"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, content, error, message):
    file = tmp_path / "settings.toml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(error, match=message):
        settings_of(None, file, published=False)
