"""A folder of results belongs to one set of settings, to which runs can add methods."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from braindecode_pars._common.tables import SCORES
from braindecode_pars.evaluation.cache import FoldStore

SETTINGS = {"protocol": "compare", "datasets": {"d": {"n": 3}}, "methods": {"A": {"C": 1}}}
KEY = dict(dataset="d", method="A/ä b", subject=1, n_train_subjects=2, seed=0)
LISTS = dict(rows=[], true=[], predicted=[], probabilities={}, subjects=[])
RESULT = dict(key=KEY, seen={}, history=None, seconds=1, **LISTS)


def save_one_fold(folder) -> None:
    """Save a finished fold in a folder of results."""
    store = FoldStore.open(folder, SETTINGS)
    store.write(store.file_of(KEY, "content"), RESULT)


def test_settings_without_a_fold_may_change(tmp_path):
    FoldStore.open(tmp_path, SETTINGS)
    FoldStore.open(tmp_path, SETTINGS | {"methods": {"A": {"C": "mistyped"}}})
    assert "mistyped" in (tmp_path / "cache/settings.json").read_text()


def test_settings_can_be_added_but_not_changed(tmp_path):
    save_one_fold(tmp_path)
    FoldStore.open(tmp_path, SETTINGS | {"methods": {"B": {"C": 2}}})
    kept = json.loads((tmp_path / "cache/settings.json").read_text())
    assert kept["methods"] == {"A": {"C": 1}, "B": {"C": 2}}
    with pytest.raises(ValueError, match=r"methods\.A\.C .* 5, .* 1"):
        FoldStore.open(tmp_path, SETTINGS | {"methods": {"A": {"C": 5}}})
    with pytest.raises(ValueError, match=r"protocol .*'transfer'.*'compare'"):
        FoldStore.open(tmp_path, SETTINGS | {"protocol": "transfer"})


def test_file_names_are_readable_and_unique(tmp_path):
    store = FoldStore.open(tmp_path, SETTINGS)
    file = store.file_of(KEY, "content")
    assert file.parent == tmp_path / "cache"
    assert file.name.startswith("A-ä-b_d_subject-1_n2_seed0_")
    others = {store.file_of(KEY | {"method": "A-ä-b"}, "content"), store.file_of(KEY, "other")}
    assert file not in others
    assert len(others) == 2


def test_written_folds_are_read_and_no_temporary_files_remain(tmp_path):
    store = FoldStore.open(tmp_path, SETTINGS)
    file = store.file_of(KEY, "content")
    assert store.read(file) is None
    store.write(file, RESULT)
    store.write_table("scores.csv", pd.DataFrame({"a": [1]}))
    assert store.read(file) == RESULT
    assert {f.name for f in file.parent.iterdir()} == {file.name, "settings.json"}
    assert (tmp_path / "scores.csv").read_text() == "a\n1\n"
    for damaged in ("", '{"key": ', "[]", '{"key": 1}'):
        file.write_text(damaged)
        with pytest.raises(ValueError, match=file.name):
            store.read(file)


def test_an_edited_fold_is_refused(tmp_path):
    store = FoldStore.open(tmp_path, SETTINGS)
    file = store.file_of(KEY, "content")
    store.write(file, RESULT | {"predicted": [0, 1, 1]})
    content = file.read_text()
    for edited in (content.replace("0,", "1,", 1), re.sub(r'"checksum": ".*"', '"a": 1', content)):
        assert edited != content
        file.write_text(edited)
        with pytest.raises(ValueError, match="checksum"):
            store.read(file)
    # Another layout of the same content is no edit.
    file.write_text(json.dumps(json.loads(content)))
    assert store.read(file)["predicted"] == [0, 1, 1]


def test_the_file_of_another_fold_is_refused(tmp_path):
    store = FoldStore.open(tmp_path, SETTINGS)
    one, other = (store.file_of(KEY, content) for content in ("one", "other"))
    store.write(one, RESULT)
    one.rename(other)
    with pytest.raises(ValueError, match=rf"{other.name} .* {one.name}"):
        store.read(other)


def test_scores_of_another_version_are_refused(tmp_path):
    save_one_fold(tmp_path / "new")
    file = tmp_path / "new/cache/settings.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 4}))
    with pytest.raises(ValueError, match="format 4"):
        FoldStore.open(tmp_path / "new", SETTINGS)
    # Version 0.2.0 wrote the settings and a folder of folds beside the scores.
    (tmp_path / "old/folds").mkdir(parents=True)
    (tmp_path / "old/settings.json").write_text(json.dumps(SETTINGS | {"version": 2}))
    with pytest.raises(ValueError, match="another folder") as caught:
        FoldStore.open(tmp_path / "old", SETTINGS)
    assert str(caught.value).count(".\n") == 0


def test_a_cache_can_be_deleted(tmp_path):
    save_one_fold(tmp_path)
    scores = pd.DataFrame(columns=SCORES)
    FoldStore(tmp_path).write_table("scores.csv", scores)
    shutil.rmtree(tmp_path / "cache")
    store = FoldStore.open(tmp_path, SETTINGS | {"methods": {"A": {"C": 5}}})
    assert not store.finished()


def test_a_folder_of_other_files_is_not_used(tmp_path):
    (tmp_path / "scores.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"scores\.csv"):
        FoldStore.open(tmp_path, SETTINGS)
    assert not (tmp_path / "cache").exists()


def test_processes_that_open_a_folder_at_once_keep_the_settings_of_all(tmp_path):
    save_one_fold(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        for name in "BCDEFGHIJKLM":
            pool.submit(FoldStore.open, tmp_path, SETTINGS | {"methods": {name: {"C": 1}}})
    kept = json.loads((tmp_path / "cache/settings.json").read_text())
    assert sorted(kept["methods"]) == list("ABCDEFGHIJKLM")


def test_damaged_settings_and_a_file_instead_of_a_folder_raise(tmp_path):
    save_one_fold(tmp_path)
    damaged_methods = {"format": "braindecode_pars scores", "version": 3, "methods": 1}
    for damaged in ('{"protocol"', "[]", json.dumps(damaged_methods)):
        (tmp_path / "cache/settings.json").write_text(damaged)
        with pytest.raises(ValueError, match=r"settings\.json"):
            FoldStore.open(tmp_path, SETTINGS)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file is a file"):
        FoldStore.open(tmp_path / "file", SETTINGS)


@pytest.mark.parametrize("out", [3, True, b"folder", 3.5])
def test_the_folder_must_be_a_path(out):
    with pytest.raises(TypeError, match=f"out .* {out!r}"):
        FoldStore.open(out, SETTINGS)
