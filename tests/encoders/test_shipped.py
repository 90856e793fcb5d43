"""The encoders that are in the package. Without any, these tests are skipped."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from make_encoder import LARGEST
from support.stand_in import ABOUT

from braindecode_pars import PARSEmbedder, datasets
from braindecode_pars._common.model_files import ALIASES, FOLDER, bundled_folder, bundled_names
from braindecode_pars.pretrained import load_encoder, packaged_encoders

NAMES = bundled_names()
FILES = ["README.md", "encoder.json", "encoder.safetensors"]


@pytest.mark.skipif(not NAMES, reason="encoders in the package: there are none")
def test_aliases_name_encoders_in_the_package():
    assert "small" in ALIASES
    assert set(ALIASES.values()) <= set(NAMES)
    assert bundled_folder("small") == FOLDER / ALIASES["small"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_has_a_complete_card(name):
    folder = FOLDER / name
    assert sorted(file.name for file in folder.iterdir()) == FILES
    assert sum(file.stat().st_size for file in folder.iterdir()) <= LARGEST
    _, card, report = load_encoder(name)
    assert report.complete
    assert {*ABOUT, "audit"} <= set(card.about)
    assert card.about["name"] == name
    assert name.partition("-")[0] in {card.task, *card.task_params.get("tasks", ())}
    if name == "pars-sleep":
        assert len(card.subjects) == 12
        assert card.preprocessing.reference == card.about["reference"] == "as recorded"
        assert card.preprocessing.band is None  # the filter of the recorder is not known
    else:
        assert card.preprocessing.band == tuple(card.about["band"])
        assert len(card.subjects) == 50
        assert card.preprocessing.reference == card.about["reference"] == "average"
        assert 0 < card.about["held_out"]["loss_relative"] < 1
    assert packaged_encoders()[name] == card


@pytest.mark.skipif(not NAMES, reason="encoders in the package: there are none")
def test_it_embeds_the_sample_of_recordings():
    windows = datasets.mental_arithmetic(["Subject00"])
    features = PARSEmbedder(encoder="small", verbose=0).fit_transform(windows)
    assert len(features) == 12
    assert np.isfinite(features).all()
    assert features.std(axis=0).min() > 0


@pytest.mark.skipif(not NAMES, reason="encoders in the package: there are none")
@pytest.mark.parametrize("reference", ["as recorded", "average"])
def test_windows_with_another_reference_are_a_warning(reference):
    X = np.random.default_rng(0).standard_normal((4, 2, 256))
    given = dict(sfreq=128.0, band=(0.5, 45.0), reference=reference)
    embedder = PARSEmbedder(encoder="small", preprocessing=given, verbose=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        embedder.fit(X)
    texts = [str(each.message) for each in caught]
    differs = [f"reference {reference}, but average in pretraining." in text for text in texts]
    assert any(differs) == (reference != "average")
    # An average of the channels that recordings share was asked for.
    advised = any("--reference average" in text for text in texts)
    assert advised == (reference == "as recorded")
