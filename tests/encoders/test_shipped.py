"""The encoders that are in the package. Without any, these tests are skipped."""

from __future__ import annotations

import configparser
import re
import warnings
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from audit import MEASURED, stored_audits
from make_encoder import LARGEST
from support.stand_in import ABOUT

from braindecode_pars import PARSEmbedder, datasets
from braindecode_pars._common.model_files import ALIASES, FOLDER, bundled_folder, bundled_names
from braindecode_pars.pretrained import load_encoder, packaged_encoders
from braindecode_pars.recordings.preparation import COMMON_CHANNELS
from braindecode_pars.windows.preprocessing import Preprocessing

NAMES = bundled_names()
FILES = ["README.md", "encoder.json", "encoder.safetensors"]


def test_files_are_declared_as_package_data():
    setup = configparser.ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    patterns = setup["options.package_data"]["braindecode_pars.pretrained"].split(",")
    for file in FILES:
        assert any(fnmatch(f"shipped/any-name/{file}", pattern.strip()) for pattern in patterns)


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
    loaded, card, report = load_encoder(name)
    assert report.complete
    assert card.sfreq * loaded.patch_size > 0
    assert {*ABOUT, "audit"} <= set(card.about) <= {*ABOUT, "limits", "development", "audit"}
    assert all(card.about.values())
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
    assert set(card.about["held_out"]) == set(ABOUT["held_out"])
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", card.about["date"])
    assert packaged_encoders()[name] == card


@pytest.mark.parametrize("name", NAMES)
def test_its_audit_is_the_stored_one(name):
    audit = load_encoder(name).card.about["audit"]
    if name == "pars-sleep":
        assert audit == stored_audits(name, MEASURED.parent / "sleep" / "audit.csv")
        assert [len(each["table"]["property"]) for each in audit] == [19]
    else:
        assert audit == stored_audits(name)
        assert [len(each["table"]["property"]) for each in audit] == [17, 18, 18]


@pytest.mark.parametrize("name", NAMES)
def test_its_readme_has_license_and_attribution(name):
    text = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    about = load_encoder(name).card.about
    assert about["license"] == "ODC-BY 1.0"
    assert "opendatacommons.org/licenses/by/1-0" in text
    assert all(reference in text for reference in about["attribution"])
    for piece in (about["command"], about["date"], about.get("limits", "")):
        assert piece in text
    assert not re.search(r"/(work|home|tmp|root)/", text + str(about))


@pytest.mark.skipif(not NAMES, reason="encoders in the package: there are none")
def test_it_embeds_the_sample_of_recordings():
    windows = datasets.mental_arithmetic(["Subject00"])
    features = PARSEmbedder(encoder="small", verbose=0).fit_transform(windows)
    assert len(features) == 12
    assert np.isfinite(features).all()
    assert features.std(axis=0).min() > 0


@pytest.mark.skipif(not NAMES, reason="encoders in the package: there are none")
@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("as recorded", ["reference as recorded, but average in training"]),
        ("A1, A2", ["reference A1, A2, but average in training"]),
        ("average", []),
        (", ".join(COMMON_CHANNELS), []),  # the average of the sample's 19 channels
        (None, []),
        ("changed", []),  # to what is unknown
    ],
)
def test_its_reference_is_compared_with_that_of_windows(reference, expected):
    found = load_encoder("small").card.differences(Preprocessing(reference=reference, notch=[50]))
    assert list(map(str, found)) == expected


@pytest.mark.skipif(not NAMES, reason="encoders in the package: there are none")
@pytest.mark.parametrize("reference", ["as recorded", "average", "C3, T7"])
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
