"""Tests that every recipe of a corpus must pass; the test class of a corpus inherits from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from braindecode_pars import datasets
from braindecode_pars.recordings.loading import choose_subjects
from braindecode_pars.signal_store import SignalStore
from support.labeled_stores import check_equal


class RecipeContract:
    """Contract of the recipe of a corpus.

    Subclasses define ``name``, ``example`` and :meth:`write`, and may override the rest.
    """

    name: str
    #: Settings for the recordings that :meth:`write` creates.
    settings: ClassVar[dict[str, Any]] = {}
    #: Part of the name of a file of the corpus, which error messages mention.
    example: str
    #: Class names with these settings. If None, the class names of the card.
    classes: ClassVar[tuple[str, ...] | None] = None

    def write(self, root: Path) -> tuple[Path, Path]:
        """Write recordings of two subjects with labels, and return one file of each subject."""
        raise NotImplementedError

    @property
    def module(self) -> Any:
        return getattr(datasets, self.name)

    @property
    def recipe(self) -> Any:
        return datasets.RECIPES[self.name]

    @pytest.fixture(scope="class")
    def corpus(self, tmp_path_factory) -> Path:
        root = tmp_path_factory.mktemp(self.name)
        self.write(root)
        return root

    def test_recordings_are_listed_and_selected_by_subject(self, corpus):
        recordings = self.recipe.recordings(corpus)
        subjects = list(dict.fromkeys(recording.subject for recording in recordings))
        assert len(subjects) == 2
        assert {recording.description["corpus"] for recording in recordings} == {self.name}
        for chosen in (subjects[1], f"{self.name}:{subjects[1]}"):
            selected = choose_subjects(recordings, [chosen], corpus)
            assert {recording.subject for recording in selected} == {subjects[1]}
        with pytest.raises(FileNotFoundError, match=rf"nobody.* {subjects[0]}"):
            self.module.load(corpus, ["nobody"])
        with pytest.raises(TypeError, match="list"):
            self.module.load(corpus, "nobody")

    def test_a_folder_without_recordings(self, tmp_path):
        for folder in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(FileNotFoundError, match=rf"{folder}.*{self.example}"):
                self.module.load(folder)

    def test_unknown_settings_raise_an_error_before_a_file_is_opened(self, corpus):
        calls = (self.module.load, self.recipe.continuous, self.recipe.labeled)
        for call in calls if self.recipe.cut else calls[:2]:
            with pytest.raises(TypeError, match=r"has no setting seconds"):
                call(corpus, seconds=3)

    @pytest.fixture(scope="class")
    def loaded(self, corpus):
        return self.module.load(corpus, verbose=0, **self.settings)

    def test_windows_have_volts_channels_and_class_names(self, loaded):
        classes = self.recipe.card["classes"] if self.classes is None else self.classes
        assert len(loaded.datasets) >= 2
        for part in loaded.datasets:
            assert part.description["corpus"] == self.name
            assert {ch["kind"] for ch in part.raw.info["chs"]} == {2}  # EEG
            assert set(part.metadata["target"]) <= {*range(len(classes))} | {-1}
            if classes:
                mapping = part.window_kwargs[-1][1]["mapping"]
                assert mapping == {name: target for target, name in enumerate(classes)}
            signals = part[0][0]
            assert np.isfinite(signals).all()
            assert 1e-7 < np.median(signals.std(axis=1)) < 1e-3

    def test_a_damaged_or_missing_file_is_named_or_skipped(self, tmp_path):
        """A missing file is a broken link of git-annex, as in a partly downloaded corpus."""
        first, second = self.write(tmp_path)
        content, message = second.read_bytes(), rf"(?s)1 of \d .*{second.name}"
        for is_link in (False, True):
            if is_link:
                second.unlink()
                second.symlink_to("absent")
            else:
                second.write_bytes(content[: len(content) // 2])
            with pytest.raises(ValueError, match=rf"{second.name}.*{'link' if is_link else ''}"):
                self.module.load(tmp_path, verbose=0, **self.settings)
        with pytest.warns(UserWarning, match=message):
            windows = self.module.load(tmp_path, on_error="warn", verbose=0, **self.settings)
        [subject] = [r.subject for r in self.recipe.recordings(tmp_path) if r.file == first]
        assert set(windows.description["subject"]) == {subject}

    @pytest.mark.filterwarnings("ignore:Duplicate recordings")
    def test_a_store_has_the_same_labeled_windows(self, corpus, loaded, tmp_path):
        if self.recipe.cut is None:
            with pytest.raises(ValueError, match=rf"{self.recipe.card['name']} has no labels"):
                self.recipe.labeled(corpus)
            return
        labeled = self.recipe.labeled(corpus, **self.settings)
        store = SignalStore.create(tmp_path / "store", labeled, dtype="float32", verbose=0)
        check_equal(store.labeled_windows(), loaded)
        assert store.classes == (self.classes or self.recipe.card["classes"])
