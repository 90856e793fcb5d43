"""A small corpus of text files, which ``support.recording_files.read`` reads."""

from __future__ import annotations

import pytest

from braindecode_pars.recordings.loading import Recording


@pytest.fixture
def recordings(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    made = []
    for subject, seconds in ((3, 10), (1, 6), (2, 8)):
        file = folder / f"s{subject}.txt"
        file.write_text(f"{subject} {seconds}")
        made.append(Recording(file, dict(subject=subject, split="train")))
    return made
