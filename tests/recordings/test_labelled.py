"""Recordings of a corpus with their labels, of all splits."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
from support import own_recipe

from braindecode_pars.datasets import RECIPES, physionet_mi, tueg
from braindecode_pars.recordings.continuous import ContinuousCorpus
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.labelled import LabelledCorpus
from braindecode_pars.signal_store import SignalStore


def cut(recording, *, seconds=2.0):
    return fixed_windows(own_recipe.prepare(recording), seconds, target=1)


RECIPE = SimpleNamespace(
    __name__="mine.own",
    CARD={**own_recipe.CARD, "classes": ("rest", "task")},
    recordings=own_recipe.recordings,
    cut=cut,
    prepare=own_recipe.prepare,
)


@pytest.fixture
def folder(tmp_path):
    for name, seconds in (
        ("P01_train", 5),
        ("P02_valid", 1),
        ("P03_test", 4),
        ("P04_unlabeled", 9),
    ):
        own_recipe.write(tmp_path / "corpus", name, seconds)
    return tmp_path / "corpus"


def test_all_splits_are_kept_except_unpublished_labels(folder):
    corpus = LabelledCorpus.of(RECIPE, folder)
    assert [r.subject for r in corpus.recordings] == ["P01", "P02", "P03"]
    assert corpus.classes == ("rest", "task")
    assert corpus.settings == {"corpus": "Own", "version": "1", "classes": ["rest", "task"]}
    assert corpus.people_left_out == []
    chosen = LabelledCorpus.of(RECIPE, folder, ["P03"])
    assert [r.subject for r in chosen.recordings] == ["P03"]


def test_recordings_without_a_window_are_listed(folder, tmp_path):
    corpus = LabelledCorpus.of(RECIPE, folder, seconds=1.5)
    with pytest.warns(UserWarning, match=r"P02_valid\.txt"):
        store = SignalStore.create(
            tmp_path / "store", LabelledCorpus.of(RECIPE, folder, seconds=1.5), verbose=0
        )
    assert list(store.skipped.values()) == ["it has no labelled window."]
    assert [len(part) for part in store.labelled_windows().datasets] == [3, 2]
    assert corpus.settings["seconds"] == 1.5


def test_new_labels_are_another_recording(folder, tmp_path):
    """Also if the file of the signals is the same."""
    corpus = LabelledCorpus.of(RECIPE, folder, ["P01"])
    SignalStore.create(tmp_path / "store", corpus, verbose=0)
    (folder / "P01_train.tsv").write_text("onset\n")
    with pytest.raises(ValueError, match=r"P01_train\.txt"):
        SignalStore.create(tmp_path / "store", corpus, verbose=0)


def test_corpora_with_and_without_labels_are_not_mixed(folder, tmp_path):
    labelled = LabelledCorpus.of(RECIPE, folder)
    others = own_recipe.corpus_of(folder, "others")
    with pytest.raises(ValueError, match=r"own .* others"):
        SignalStore.create(tmp_path / "store", [labelled, others], verbose=0)
    other_classes = SimpleNamespace(
        **{**vars(RECIPE), "__name__": "two", "CARD": {**RECIPE.CARD, "classes": ("W", "N1")}}
    )
    two = LabelledCorpus.of(other_classes, folder)
    with pytest.raises(ValueError, match=r"own .*rest, task.* two .*W, N1"):
        SignalStore.create(tmp_path / "b", [labelled, two], verbose=0)


def test_settings_and_corpora_that_have_no_labels(folder, tmp_path):
    with pytest.raises(TypeError, match="tmin"):
        LabelledCorpus.of(RECIPE, folder, tmin=1)
    with pytest.raises(ValueError, match="TUEG"):
        LabelledCorpus.of(tueg, folder)
    (tmp_path / "S001R04.edf").touch()
    rest = LabelledCorpus.of(physionet_mi, tmp_path, contrast="rest", tmin=1)
    assert rest.classes == ("rest", "imagined movement")
    assert isinstance(rest, ContinuousCorpus)


@pytest.mark.parametrize("recipe", RECIPES.values())
def test_load_names_what_it_passes_on(recipe):
    names = list(inspect.signature(recipe.load).parameters)
    assert names[:2] == ["path", "subjects"]
    assert names[-3:] == ["n_jobs", "on_error", "verbose"]


def test_load_refuses_an_argument_that_no_function_of_the_recipe_takes(tmp_path):
    (tmp_path / "Subject00_1.edf").touch()
    with pytest.raises(TypeError, match="window"):
        RECIPES["eegmat"].load(tmp_path, window=3)
