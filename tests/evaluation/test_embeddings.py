"""Exported embeddings: equal to the bit, in the form that NeuroAtlas reads."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer
from support.montages import concatenated
from support.small_estimators import embedder

from braindecode_pars import as_sklearn
from braindecode_pars.evaluation.benchmarks.embeddings import export_embeddings
from braindecode_pars.pretrained import EncoderCard

#: What the reader of NeuroAtlas requires: dimensions of arrays, types of the entries of items, and
#: entries of the metadata. Change it only for a new version of NeuroAtlas.
FORMAT = json.loads((Path(__file__).parent / "neuroatlas_embeddings.json").read_text("utf-8"))
windows = cache(lambda: concatenated(0, 1, 2))


def first_samples(X) -> np.ndarray:
    """Features that differ between all windows."""
    return np.asarray(X)[:, :, :2].reshape(len(X), -1)


TRANSFORMER = FunctionTransformer(first_samples)


def read(folder: Path) -> tuple[np.ndarray, np.ndarray, list[dict], dict]:
    """Read the folder like NeuroAtlas, without pickle."""
    features, labels = (np.load(folder / name) for name in FORMAT["arrays"])
    items, metadata = (
        json.loads((folder / name).read_text("utf-8")) for name in ("items.json", "metadata.json")
    )
    return features, labels, items, metadata


def test_the_folder_has_the_form_of_neuroatlas(tmp_path):
    folder = export_embeddings(TRANSFORMER, windows(), tmp_path / "root/data/encoder/all/1")
    arrays, items = dict(zip(FORMAT["arrays"], read(folder), strict=False)), read(folder)[2]
    assert {name: array.ndim for name, array in arrays.items()} == FORMAT["arrays"]
    assert {len(array) for array in arrays.values()} == {len(items)}
    for item in items:
        assert item.keys() == FORMAT["items"].keys()
        for name, value in item.items():
            assert type(value).__name__ in FORMAT["items"][name], name
    assert read(folder)[3].keys() >= {*FORMAT["metadata"]}
    # NeuroAtlas searches the parent for a folder with both arrays, and must find only one.
    assert [file.parent for file in tmp_path.rglob("features.npy")] == [folder]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["1"]


def test_embeddings_labels_and_subjects_are_equal_to_the_bit(tmp_path):
    X, y, subjects = as_sklearn(windows())
    order = np.random.default_rng(0).permutation(len(X))
    fitted = embedder(pretext=None).fit(X)
    for transformer, name in ((fitted, "PARSEmbedder"), (TRANSFORMER, "FunctionTransformer")):
        folder = export_embeddings(transformer, X[order], tmp_path / name)
        features, labels, items, metadata = read(folder)
        assert features.dtype == np.float32
        assert features.tobytes() == transformer.transform(X[order]).tobytes()
        np.testing.assert_array_equal(labels, y[order])
        assert [item["label"] for item in items] == labels.tolist()
        assert [item["subject_id"] for item in items] == [str(s) for s in subjects[order]]
        starts = X.table["start"].to_numpy()[order] / 100.0
        assert [item["window_start_s"] for item in items] == starts.tolist()
        assert metadata["checkpoint_id"] == name
    for recording in {item["recording_id"] for item in items}:
        rows = [item for item in items if item["recording_id"] == recording]
        rows.sort(key=lambda item: item["window_start_s"])
        assert [item["epoch_index"] for item in rows] == list(range(40))


@pytest.mark.parametrize(
    "output", [np.zeros((3, 4)), np.zeros(120), np.full((120, 2), np.nan), np.full((120, 2), None)]
)
def test_the_output_of_the_transformer_is_checked(output, tmp_path):
    with pytest.raises(ValueError, match=r"2D|NaN|samples"):
        export_embeddings(FunctionTransformer(lambda X: output), windows(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_name_and_the_folder_of_an_encoder(tmp_path):
    fitted = embedder(pretext=None).fit(windows())
    fitted.save(tmp_path / "my_encoder")
    *_, metadata = read(export_embeddings(tmp_path / "my_encoder", windows(), tmp_path / "out"))
    features = np.load(tmp_path / "out" / "features.npy")
    assert metadata["checkpoint_id"] == "my_encoder"
    assert features.tobytes() == fitted.transform(windows()).tobytes()
    with pytest.raises(FileNotFoundError, match="tiny"):
        export_embeddings("tiny", windows(), tmp_path / "tiny")
    with pytest.raises(ValueError, match="contains other files"):
        export_embeddings("small", windows(), tmp_path / "out")


def test_class_names_and_windows_without_labels(tmp_path):
    X, y, _ = as_sklearn(windows())
    names = np.array(["rest", "move"])[y]
    _, labels, _, metadata = read(
        export_embeddings(TRANSFORMER, X.with_labels(names), tmp_path / "names")
    )
    np.testing.assert_array_equal(labels, 1 - y)
    assert metadata["label_names"] == {"move": 0, "rest": 1}
    unlabeled = replace(X[:5], table=X[:5].table.drop(columns="label"))
    _, labels, _, _ = read(export_embeddings(TRANSFORMER, unlabeled, tmp_path / "unlabeled"))
    assert labels.tolist() == [-1] * 5


def test_windows_without_subjects_are_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown for 6 of 6 windows"):
        export_embeddings(TRANSFORMER, np.ones((6, 2, 300), np.float32), tmp_path / "out")


def test_subjects_of_the_pretraining_are_warned_of(tmp_path):
    fitted = embedder(pretext=None).fit(windows())
    fitted.encoder_card_ = EncoderCard(100.0, subjects=("0", "1", "2"))
    with pytest.warns(UserWarning, match=r"leakage.* 0, 1, 2\b"):
        export_embeddings(fitted, windows(), tmp_path / "out")
