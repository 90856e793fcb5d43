"""Where labels are, by the type of the argument; tests/datasets/test_folder.py reads them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from braindecode_pars.recordings.label_files import classes_and_targets, labels_of_files


def test_labels_in_names_and_in_tables(tmp_path):
    file, table = tmp_path / "P01_rest.edf", pd.DataFrame({"file": ["P01_rest"], "label": ["W"]})
    table.to_csv(tmp_path / "labels.CSV", index=False)
    for labels in (table, "labels.CSV", Path("labels.CSV"), tmp_path / "labels.CSV"):
        (found,) = labels_of_files(labels, tmp_path, [file], 30.0)
        assert found.stretches == ((None, None, "W"),)
    (found,) = labels_of_files("{subject}_{label}", tmp_path, [file], 30.0)
    assert found.stretches == ((None, None, "rest"),)
    for labels in (None, ["W"], {"W": 0}):
        assert labels_of_files(labels, tmp_path, [file], 30.0) is None


@pytest.mark.parametrize("text", ["W", Path("W")])
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match=r"\['W'\]"):
        labels_of_files(text, Path("data"), [], 30.0)


def test_classes_of_listed_annotations():
    names, targets = classes_and_targets(["W", 1], None, None, [], 30.0)
    assert names == {"W": "W", "1": "1"}
    assert targets == {"W": 0, "1": 1}
    with pytest.raises(ValueError, match="classes"):
        classes_and_targets(None, ["W"], None, [], 30.0)


@pytest.mark.parametrize(("labels", "of_files"), [([], None), ("labels.csv", [])])
def test_no_labels_are_refused(labels, of_files):
    with pytest.raises(ValueError, match="labels"):
        classes_and_targets(labels, None, of_files, [], 30.0)
