"""TUSZ: recipe, with folders that the tests write in the layout of the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import mne
import numpy as np
import pytest
from support.recipe_contract import RecipeContract
from support.temple_trees import annotate, level, write_recording

from braindecode_pars.datasets import tusz
from braindecode_pars.recordings.preparation import COMMON_CHANNELS


def write(path: Path, folder: str, subject: str, rows: list[tuple], **arguments) -> Path:
    montage = "02_tcp_le" if arguments.get("reference") == "LE" else "01_tcp_ar"
    name = f"edf/{folder}/{subject}/s001_2003/{montage}/{subject}_s001_t000.edf"
    file = write_recording(path / name, **{"seconds": 32, **arguments})
    annotate(file, rows)
    return file


BACKGROUND = [("TERM", 0, 32, "bckg")]
#: Ten windows: a seizure in windows 3 and 4, and two overlapping seizures in window 7.
LONG = [
    ("TERM", 0, 85.5, "bckg"),
    ("TERM", 200, 205, "seiz"),
    ("TERM", 85.5, 91.25, "seiz"),
    ("TERM", 91.25, 190, "bckg"),
    ("TERM", 190, 203, "seiz"),
    ("TERM", 205, 302, "bckg"),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tusz") / "v2.0.3"
    file = write(path, "train", "aaaaaajy", LONG, seconds=302, sfreq=256, reference="LE")
    channels = [
        ("FP1-F7", 0, 10, "bckg"),
        ("F7-T3", 62, 63, "fnsz"),
        ("T3-T5", 61, 62.5, "cpsz"),
        ("FP1-F7", 291, 293, "gnsz"),
        ("FP1-F7", 293, 302, "bckg"),
    ]
    annotate(file, channels, "csv")
    for number, subject in enumerate(("aaaaaajz", "aaaaaaka", "aaaaaakb")):
        write(path, "train", subject, BACKGROUND, sfreq=(250, 400, 512)[number])
    write(path, "dev", "aaaaaakc", BACKGROUND)
    write(path, "eval", "aaaaaakd", [("TERM", 31, 32, "seiz")])
    return path


def targets(windows, subject: str) -> list[int]:
    (dataset,) = windows.split("subject")[subject].datasets
    return dataset.metadata["target"].tolist()


def test_windows_and_targets(written):
    windows = tusz.load(written, verbose=0)
    assert len(windows) == 10 + 5
    for dataset in windows.datasets:
        assert dataset.raw.ch_names == [*COMMON_CHANNELS]
    x, _, _ = windows[windows.cumulative_sizes[-1] - 1]
    assert x.shape == (19, 6000)
    amplitude = np.sqrt(2) * x[:, 1500:4500].std(axis=1)
    expected = [1e-6 * level(name.upper()) for name in COMMON_CHANNELS]
    np.testing.assert_allclose(amplitude, expected, rtol=0.02)  # volts
    assert targets(windows, "aaaaaajy") == [0, 0, 1, 1, 0, 0, 1, 0, 0, 0]
    assert targets(windows, "aaaaaakd") == [0]  # the seizure is after the last window
    np.testing.assert_array_equal(
        [y for _, y, _ in windows], windows.get_metadata()["target"].to_numpy()
    )


@pytest.mark.parametrize(
    ("settings", "seizures"),
    [
        # Overlaps: 4.5 s and 1.25 s with the first seizure, 15 s with the union of the next two.
        (dict(min_overlap=1.25), [2, 3, 6]),
        (dict(min_overlap=1.26), [2, 6]),
        (dict(min_overlap=15.01), []),
        # Single channels: 61 to 63 s and 291 to 293 s
        (dict(annotations="csv", min_overlap=2), [2, 9]),
        (dict(annotations="csv", min_overlap=2.1), []),
    ],
)
def test_minimal_overlap(written, settings, seizures, monkeypatch):
    (recording,) = tusz.RECIPE.labeled(written, ["aaaaaajy"]).recordings
    monkeypatch.setattr(tusz, "prepare", lambda recording: silence(302))
    windows = tusz.cut(recording, **settings)
    assert np.flatnonzero(windows.metadata["target"]).tolist() == seizures


def silence(seconds: int) -> mne.io.RawArray:
    """Return a recording of zeros, for tests of targets."""
    info = mne.create_info(["C3"], 200.0, "eeg")
    return mne.io.RawArray(np.zeros((1, 200 * seconds)), info, verbose="error")


def test_overlap_agrees_with_counting_on_a_fine_grid():
    rng = np.random.default_rng(0)
    step = 0.01
    grid = (np.arange(30_000) + 0.5) * step  # 300 s
    start = np.arange(10) * 30.0
    for _ in range(20):
        # Unsorted segments on the grid; some are nested, empty, or after the recording.
        begin = rng.integers(0, 31_000, rng.integers(0, 12)) * step
        segments = np.column_stack([begin, begin + rng.integers(0, 6000, len(begin)) * step])
        inside = ((grid >= segments[:, :1]) & (grid < segments[:, 1:])).any(axis=0)
        counted = inside.reshape(10, 3000).sum(axis=1) * step
        np.testing.assert_allclose(tusz.overlap(start, start + 30, segments), counted, atol=1e-9)


def test_use_of_the_folder_dev(written):
    def splits(dev):
        return {r.subject: r.description["split"] for r in tusz.recordings(written, dev=dev)}

    pooled = splits("train")
    assert sorted(pooled.values()) == ["test", "train", "train", "train", "train", "valid"]
    as_published = splits("valid")
    assert as_published.pop("aaaaaakc") == "valid"
    assert as_published.pop("aaaaaakd") == "test"
    assert set(as_published.values()) == {"train"}
    with pytest.raises(ValueError, match=r"'train'.*'valid'"):
        splits("test")


def test_a_subject_of_eval_in_dev_is_named(tmp_path):
    for part in ("dev", "eval"):
        write(tmp_path, part, "aaaaaakd", BACKGROUND)
    with pytest.raises(ValueError, match=r"two recordings named aaaaaakd"):
        tusz.load(tmp_path)
    (file,) = tmp_path.glob("edf/dev/**/*.edf")
    for part in (file, file.with_suffix(".csv_bi")):
        part.rename(part.with_name(part.name.replace("t000", "t001")))
    with pytest.raises(ValueError, match=r"aaaaaakd \(test and (train|valid)\)"):
        tusz.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("channel,start_time,stop_time,label,confidence\n", "empty"),
        ("channel,start_time,stop_time,label,confidence\nTERM,5,0,seiz,1\n", "before it starts"),
        ("channel,start_time,stop_time,label,confidence\nTERM,0,5,seiz,1\nTERM,5", "truncated"),
        ("channel,start_time,stop_time,label,confidence\nTERM,0,,seiz,1\n", "before it starts"),
    ],
)
def test_damaged_annotations_raise(tmp_path, content, problem):
    file = tmp_path / "aaaaaajy_s001_t000.csv_bi"
    file.write_text(content)
    with pytest.raises(ValueError, match=rf"{file.name} .*{problem}"):
        tusz.read_seizures(file)


def test_invalid_arguments_raise(written):
    with pytest.raises(ValueError, match=r"annotations .*'tse'"):
        tusz.load(written, annotations="tse")
    for min_overlap in (0, 30.5, np.nan):
        with pytest.raises(ValueError, match=r"min_overlap .*30"):
            tusz.load(written, min_overlap=min_overlap)


class TestContract(RecipeContract):
    name = "tusz"
    example = r"aaaaaaaa_s001_t000"
    settings: ClassVar = dict(min_overlap=2, dev="valid")

    def write(self, root):
        rows = [("TERM", 4.5, 8, "seiz")]
        return write(root, "train", "aaaaaajy", rows), write(root, "dev", "aaaaaakd", BACKGROUND)
