"""TUEG: the tests write folders in the layout of the corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.recipe_contract import RecipeContract
from support.temple_trees import level, write_recording

from braindecode_pars.datasets import tueg
from braindecode_pars.recordings.preparation import COMMON_CHANNELS

RECORDINGS = {
    "000/aaaaaaaa/s001_2015_12_30/01_tcp_ar/aaaaaaaa_s001_t000": dict(sfreq=250),
    "000/aaaaaaaa/s002_2016_01_02/02_tcp_le/aaaaaaaa_s002_t003": dict(sfreq=256, reference="LE"),
    "000/aaaaaaab/s001_2003/03_tcp_ar_a/aaaaaaab_s001_t000": dict(sfreq=400, drop=("A1", "A2")),
    "001/aaaaaadd/s001_2003/01_tcp_ar/aaaaaadd_s001_t000": dict(sfreq=512),
}
ignore_missing_exclusion = pytest.mark.filterwarnings("ignore:.*TUEG contains the subjects of TUAB")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tueg") / "v2.0.1"
    for name, arguments in RECORDINGS.items():
        write_recording(path / "edf" / f"{name}.edf", seconds=32, **arguments)
    return path


def touch(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


@ignore_missing_exclusion
def test_windows(written):
    windows = tueg.load(written, verbose=0)
    assert len(windows) == len(RECORDINGS)
    for dataset in windows.datasets:
        assert dataset.raw.ch_names == [*COMMON_CHANNELS]
        assert dataset.raw.info["sfreq"] == 200
        assert list(dataset.metadata["target"]) == [-1]
    for x, y, _ in windows:
        assert x.shape == (19, 6000)
        assert y == -1
        amplitude = np.sqrt(2) * x[:, 1500:4500].std(axis=1)
        levels = [1e-6 * level(name.upper()) for name in COMMON_CHANNELS]
        np.testing.assert_allclose(amplitude, levels, rtol=0.02)  # volts
    assert list(windows.description["subject"]) == ["aaaaaaaa"] * 2 + ["aaaaaaab", "aaaaaadd"]


def test_names_are_read_without_opening_files(tmp_path):
    new = tmp_path / "v2.0.1/edf/000/aaaaaaaa/s001_2015_12_30/01_tcp_ar/aaaaaaaa_s001_t002.edf"
    old = tmp_path / "v1.2.0/edf/01_tcp_ar/002/00000254/s005_2010_11_15/00000254_s005_t000.edf"
    others = (
        "tuab/v3/edf/train/normal/01_tcp_ar/aaaaaaab_s001_t000.edf",
        "tuab/v2/edf/train/normal/01_tcp_ar/078/00007871/s001_2011_07_05/00007871_s001_t001.edf",
        "tusz/edf/train/aaaaaaac/s001_2003/02_tcp_le/aaaaaaac_s001_t000.edf",
        "v2.0.1/edf/000/aaaaaaaa/s001_2015_12_30/01_tcp_ar/._aaaaaaaa_s001_t002.edf",
    )
    for file in (new, old, *(tmp_path / other for other in others)):
        touch(file)
    first, second = tueg.recordings(tmp_path)  # no recording of the other corpora
    assert (first.file, second.file) == (old, new)
    assert first.description == dict(
        subject="00000254", corpus="tueg", montage="01_tcp_ar", session=5, token=0
    )
    assert second.description == dict(
        subject="aaaaaaaa", corpus="tueg", montage="01_tcp_ar", session=1, token=2
    )


@pytest.fixture
def others(tmp_path) -> tuple[Path, Path]:
    """Folders of TUAB and TUSZ; only the names of their recordings matter."""
    tuab, tusz = tmp_path / "tuab", tmp_path / "tusz"
    touch(tuab / "edf/eval/normal/01_tcp_ar/aaaaaaaa_s009_t000.edf")
    touch(tuab / "edf/train/normal/01_tcp_ar/zzzzzzzz_s001_t000.edf")
    touch(tusz / "edf/dev/aaaaaadd/s001_2003/02_tcp_le/aaaaaadd_s001_t001.edf")
    return tuab, tusz


def test_subjects_of_other_corpora_are_removed_and_counted(written, others, caplog):
    caplog.set_level("INFO")
    windows = tueg.load(written, exclude=others)
    assert set(windows.description["subject"]) == {"aaaaaaab"}
    assert caplog.messages == [
        "Excluded from TUEG: 2 subjects (3 recordings). Total: 3 subjects (4 recordings). "
        "Remaining: 1 subject (1 recording)."
    ]


def test_numbers_exclude_subjects_that_are_named_by_numbers(tmp_path):
    """A table of subjects may have been read as numbers, even as floats."""
    for subject in ("00000001", "00000002", "00000013"):
        name = f"edf/01_tcp_ar/000/{subject}/s001_2010_11_15/{subject}_s001_t000.edf"
        touch(tmp_path / name)
    recordings = tueg.recordings(tmp_path)
    included, _ = tueg.leave_out(recordings, [[1, 2.0]])
    assert [recording.subject for recording in included] == ["00000013"]
    with pytest.raises(TypeError, match="not iterable"):
        tueg.leave_out(recordings, [1, 2])


def test_subjects_of_a_list_may_have_a_corpus(written):
    """As on the card of an encoder; the corpora of the hospital share subjects."""
    recordings = tueg.recordings(written)
    others = ["tuab:aaaaaaab", "TUEG:aaaaaadd", "eegmat:5", "tusz:zzzzzzzz"]
    included, excluded = tueg.leave_out(recordings, [others])
    assert {recording.subject for recording in included} == {"aaaaaaaa"}
    assert {recording.subject for recording in excluded} == {"aaaaaaab", "aaaaaadd"}
    with pytest.raises(ValueError, match="tuab:00000254"):
        tueg.leave_out(recordings, [["tuab:00000254"]])
    chosen = ["aaaaaaab", "aaaaaadd"]

    windows = tueg.load(written, chosen, exclude=[["tuab:aaaaaaab"]], verbose=0)
    assert set(windows.description["subject"]) == {"aaaaaadd"}


def test_without_exclusion_a_warning_explains_the_leakage(written):
    with pytest.warns(UserWarning, match="TUAB and TUSZ"):
        tueg.load(written, ["aaaaaaab"], verbose=0)


def test_an_exclusion_without_matching_subjects_raises(written, tmp_path):
    recordings = tueg.recordings(written)
    touch(tmp_path / "old/edf/01_tcp_ar/002/00000254/s005_2010_11_15/00000254_s005_t000.edf")
    with pytest.raises(FileNotFoundError, match="aaaaaaaa"):
        tueg.leave_out(recordings, ["aaaaaaaa"])  # a subject instead of a list of subjects
    with pytest.raises(ValueError, match=r"00000254.*aaaaaadd"):
        tueg.leave_out(recordings, [["00000254"]])
    with pytest.raises(ValueError, match=r"00000254.*aaaaaadd"):
        tueg.RECIPE.continuous(written, exclude=[["00000254"]])
    mixed = [*recordings, *tueg.recordings(tmp_path / "old")]
    with pytest.raises(ValueError, match="aaaaaaaa"):
        tueg.leave_out(mixed, [["aaaaaaaa"]])


@ignore_missing_exclusion
class TestContract(RecipeContract):
    name = "tueg"
    example = r"aaaaaaaa_s001_t000"

    def write(self, root):
        return tuple(
            write_recording(root / f"edf/{name}.edf", seconds=32) for name in [*RECORDINGS][::2]
        )
