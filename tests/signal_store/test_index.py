"""The index: written completely or not at all, and protected by a checksum."""

from __future__ import annotations

import json

import pytest

from braindecode_pars.signal_store.index import INDEX, Index, StoredRecording


def index_of(n: int) -> Index:
    recordings = [
        StoredRecording(f"r{i}", {"subject": i}, ["C3"], 5, 5 * i, [0.1], [-2e-7], "ab", {"n": 1})
        for i in range(n)
    ]
    return Index(
        True, {"dtype": "int16"}, 100.0, 10 * n, 7, {"r9": 'NaN in "C4"'}, recordings=recordings
    )


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_written_index_is_read_back(tmp_path, n):
    index_of(n).write(tmp_path)
    assert Index.read(tmp_path) == index_of(n)
    assert [file.name for file in tmp_path.iterdir()] == [INDEX]
    assert len(json.loads((tmp_path / INDEX).read_text())["recordings"]) == n


def test_an_edit_raises(tmp_path):
    index_of(3).write(tmp_path)
    file = tmp_path / INDEX
    text = file.read_text()
    for before, after in (
        ('"subject": 1', '"subject": 2'),
        ("0.1", "0.2"),
        ('"complete": true', '"complete": 1'),
        ('"checksum": "ab"', '"checksum": "ac"'),
    ):
        assert before in text
        file.write_text(text.replace(before, after, 1))
        with pytest.raises(ValueError, match=r"store\.json"):
            Index.read(tmp_path)


@pytest.mark.parametrize("version", [4, 6])
def test_another_version_or_format_raises(tmp_path, version):
    index_of(1).write(tmp_path)
    file = tmp_path / INDEX
    text = file.read_text()
    file.write_text(text.replace('"version": 5', f'"version": {version}'))
    with pytest.raises(ValueError, match=rf"store\.json .* version {version}.*version 5"):
        Index.read(tmp_path)
    file.write_text('{"format": "zarr"}')
    with pytest.raises(ValueError, match="zarr"):
        Index.read(tmp_path)
    for damaged in (text[:-30], "[]", ""):
        file.write_text(damaged)
        with pytest.raises(ValueError, match=r"store\.json"):
            Index.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        Index.read(tmp_path / "nowhere")
