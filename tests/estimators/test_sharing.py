"""Models for others: no names in the folder, and downloads."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.short_windows import first_samples
from support.small_estimators import classifier, embedder

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets
from braindecode_pars.evaluation import leave_one_subject_out
from braindecode_pars.evaluation.leaks import find_leaked_subjects
from braindecode_pars.windows.preprocessing import Preprocessing

#: One name has a colon, and is not of a corpus "Carla".
PEOPLE = ["Anna Ahlers", "Berta", "Carla:Conrad"]


@pytest.fixture(scope="module")
def windows(whole_nights):
    """Three nights of three subjects with names."""
    subjects = first_samples(whole_nights, 300).split("subject")
    named = [subjects[key] for key in sorted(subjects)[:3]]
    for windows, name in zip(named, PEOPLE, strict=True):
        windows.set_description({"subject": [name]}, overwrite=True)
    return type(whole_nights)(named)


@pytest.fixture(scope="module")
def pretrained(windows, tmp_path_factory):
    """An encoder in a folder whose path has a name."""
    folder = tmp_path_factory.mktemp("models") / "Dora" / "encoder"
    return embedder().fit(windows).save(folder)


@pytest.fixture(scope="module")
def fitted(windows, pretrained):
    clf = classifier(encoder=str(pretrained), checkpoint_dir=str(pretrained.parent / "kept"))
    clf.fit(windows)
    clf.encoder_card_.about = {"people": PEOPLE, "description": "A test."}
    return clf


def names_in(folder):
    content = b"".join(file.read_bytes() for file in Path(folder).rglob("*") if file.is_file())
    parts = [part for name in (*PEOPLE, "Dora") for part in name.split(":")]
    return [name for name in parts if name.encode().lower() in content.lower()]


def test_a_shared_classifier_has_no_names_and_is_the_same_model(fitted, windows, tmp_path):
    named = names_in(fitted.save(tmp_path / "own"))
    assert named == ["Anna Ahlers", "Berta", "Carla", "Conrad", "Dora"]
    folder = fitted.save(tmp_path / "shared", share=True)
    assert names_in(folder) == []
    with pytest.warns(UserWarning, match=r"encoder=\.\.\."):
        loaded = PARSClassifier.from_pretrained(folder, device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(windows), fitted.predict_proba(windows))


def test_the_subjects_of_a_shared_encoder_are_unknown(fitted, pretrained, windows, tmp_path):
    folder = PARSEmbedder.load(pretrained).save(tmp_path / "shared", share=True)
    assert names_in(folder) == []
    clf = classifier(encoder=folder, validation=0)
    with pytest.warns(UserWarning, match="unknown"):
        leave_one_subject_out({"shared": clf}, windows, seeds=[0], verbose=0)
    with pytest.warns(UserWarning, match="not restored"):
        shared = PARSClassifier.load(fitted.save(tmp_path / "clf", share=True))
    assert find_leaked_subjects(shared, {"Berta": "Berta"}) == {"subjects": [], "unknown": True}
    other = embedder(encoder=folder, continue_pretraining=True).fit(windows.split([[0]])["0"])
    assert names_in(other.save(tmp_path / "again", share=True)) == []


def test_from_pretrained_downloads(pretrained, monkeypatch):
    huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is absent")
    calls = []

    def download(repo_id, **options):
        calls.append((repo_id, options))
        return str(pretrained)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    PARSEmbedder.from_pretrained("hf://me/it", revision="v1", token="secret")
    PARSEmbedder.load("me/it")
    (name, given), (_, offline) = calls
    assert name == "me/it"
    options = dict(allow_patterns=["*.json", "*.safetensors"], revision="v1", token="secret")
    assert options.items() <= given.items()
    assert (given["local_files_only"], offline["local_files_only"]) == (False, True)


def test_an_embedder_of_any_encoder(fitted, windows, tmp_path):
    """Of the package, or of a classifier, without a fit: the columns of ``encoder=``."""
    model = PARSEmbedder.from_pretrained(fitted.save(tmp_path / "clf"))
    assert len(model.get_feature_names_out()) == 0  # the channels are not known yet
    vectors = model.transform(windows)
    by_encoder = PARSEmbedder(encoder=tmp_path / "clf/model.safetensors", verbose=0).fit(windows)
    np.testing.assert_array_equal(vectors, by_encoder.transform(windows))
    assert [*model.get_feature_names_out()] == [*by_encoder.get_feature_names_out()]
    assert vectors.shape[1] == len(model.get_feature_names_out())
    with pytest.warns(UserWarning, match="not restored"):
        loaded = PARSEmbedder.load(model.save(tmp_path / "copy", share=True))
    np.testing.assert_array_equal(loaded.transform(windows), vectors)
    small = PARSEmbedder.from_pretrained("small")
    assert (small.sfreq_, small.encoder_card_.task) == (128.0, "joint")
    with pytest.raises(ValueError, match="saved PatchEncoder"):
        PARSClassifier.from_pretrained("small")


def test_an_encoder_without_a_fit_compares_the_preprocessing_as_a_fit_does():
    """A common average over many channels is the average reference of the encoder."""
    X, _, _ = as_sklearn(datasets.simulated.sleep(n_subjects=1, hours=0.05, n_chans=2, sfreq=128))
    names = "Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2"
    average = Preprocessing(reference=names.replace(" ", ", "))
    X = replace(X, recordings=X.recordings.assign(preprocessing=[average] * len(X.recordings)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors = PARSEmbedder.from_pretrained("small", device="cpu").transform(X)
        fitted = PARSEmbedder(encoder="small", device="cpu", verbose=0).fit(X)
    np.testing.assert_array_equal(vectors, fitted.transform(X))
    linked = [Preprocessing(reference="M1, M2")] * len(X.recordings)
    other = replace(X, recordings=X.recordings.assign(preprocessing=linked))
    embedder = PARSEmbedder.from_pretrained("small", device="cpu")
    for _ in range(2):
        with pytest.warns(UserWarning, match="M1, M2, but average in "):
            embedder.transform(other)
