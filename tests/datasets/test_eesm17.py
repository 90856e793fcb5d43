"""EESM17: recipe, with BIDS folders that the tests write with the file names of ds004348."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from support.ear_nights import LIGHTS_OFF, level, write
from support.recipe_contract import RecipeContract

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import eesm17


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Three sleep recordings, and a recording of the task wake for one subject."""
    root = tmp_path_factory.mktemp("ds004348")
    for subject in ("001", "002"):
        write(root, subject)
    write(root, "009", ("2", "3"), seconds=110)
    write(root, "001", task="wake", scoring=None, seconds=60)
    return root


@pytest.fixture(scope="module")
def windows(corpus):
    return eesm17.load(corpus, verbose=0)


def test_twelve_ear_channels_in_volts(windows):
    (recording, *_) = windows.datasets
    left, right = ["ELA", "ELB", "ELE", "ELG", "ELI", "ELK"], ["ERA", "ERB", "ERE", "ERG"]
    assert recording.raw.ch_names == [*left, *right, "ERI", "ERK"]
    assert recording.raw.info["sfreq"] == 200.0
    assert set(recording.raw.get_channel_types()) == {"eeg"}
    # The amplitude at 10 Hz is 40 µV times the factor of the channel; line noise is filtered out.
    expected = [40e-6 / np.sqrt(2) * level(name) for name in eesm17.CHANNELS]
    assert recording[2][0].shape == (12, 6000)
    np.testing.assert_allclose(recording[2][0].std(axis=1), expected, rtol=0.01)


def test_windows_agree_with_the_scoring(windows):
    """The scoring starts at lights off; windows with artifacts or unknown stages are excluded."""
    metadata = windows.datasets[1].metadata
    stages = [eesm17.CARD["classes"][target] for target in metadata["target"]]
    assert stages == ["W", "W", "N1", "N2", "N3", "R"]
    expected = [200 * (LIGHTS_OFF + 30 * i) for i in (0, 1, 3, 4, 5, 7)]
    assert metadata["i_start_in_trial"].tolist() == expected
    _, y, groups = as_sklearn(windows)
    assert len(y) == 2 * 6 + 2
    assert set(groups) == {"001", "002", "009"}


def test_only_sleep_recordings_are_read(corpus, windows):
    assert len(windows.datasets) == 3
    assert windows.description["session"].tolist() == ["001"] * 3
    (recording,) = eesm17.load(corpus, ["009"], verbose=0).datasets
    assert recording.description["subject"] == "009"


@pytest.mark.parametrize(("first", "onset"), [(0.4, 1.4), (0.6, 0.6), (0.9, 0.9)])
def test_the_first_onset_determines_the_origin_of_onsets(tmp_path, first, onset):
    """The origin is lights off if the first onset is closer to 0, else the recording start."""
    file = write(tmp_path, "001", first=first * LIGHTS_OFF, seconds=1)
    assert eesm17._read_scoring(file).onset[0] == pytest.approx(onset * LIGHTS_OFF)


@pytest.mark.parametrize("column", ["Staging1", "scoring"])
def test_stage_names_are_accepted(tmp_path, column):
    scoring = ("Wake", "REM", "N1", "N2", "N3", "Artifact", "W", "R")
    write(tmp_path, "001", scoring, column=column)
    (recording,) = eesm17.load(tmp_path, verbose=0).datasets
    assert recording.metadata["target"].tolist() == [0, 4, 1, 2, 3, 0, 4]


def test_gaps_are_interpolated(tmp_path, windows):
    """One channel has a gap of half a window, and another channel is NaN in all samples."""
    half_window = slice(round((LIGHTS_OFF + 30) * 200), round((LIGHTS_OFF + 45) * 200))
    write(tmp_path, "001", gaps={"ELG": half_window, "ERK": slice(None)})
    (recording,) = eesm17.load(tmp_path, verbose=0).datasets
    assert np.isfinite(recording.raw.get_data()).all()
    filled, complete = recording[1][0], windows.datasets[0][1][0]
    assert not filled[eesm17.CHANNELS.index("ERK")].any()
    np.testing.assert_allclose(filled[0], complete[0], atol=1e-9)
    gap = filled[eesm17.CHANNELS.index("ELG")]
    assert gap[600:2400].std() < 2e-6 < 3e-5 < gap[3600:].std()


def test_the_order_of_channels_in_the_table_does_not_matter(tmp_path, windows):
    file = write(tmp_path, "001")
    table = file.with_name(file.name.replace("_eeg.set", "_channels.tsv"))
    header, *rows = table.read_text().splitlines(keepends=True)
    table.write_text(header + "".join(reversed(rows)))
    (recording,) = eesm17.load(tmp_path, verbose=0).datasets
    np.testing.assert_array_equal(recording[1][0], windows.datasets[0][1][0])


def test_samples_in_a_separate_fdt_file(tmp_path, windows):
    """As on OpenNeuro."""
    file = write(tmp_path, "001")
    content = {k: v for k, v in scipy.io.loadmat(file).items() if not k.startswith("__")}
    samples = file.with_suffix(".fdt")
    samples.write_bytes(content["data"].astype("<f4").tobytes(order="F"))
    scipy.io.savemat(file, {**content, "data": samples.name}, appendmat=False)
    (recording,) = eesm17.load(tmp_path, verbose=0).datasets
    np.testing.assert_allclose(recording[4][0], windows.datasets[0][4][0], atol=1e-10)
    samples.write_bytes(samples.read_bytes()[:-400_000])
    with pytest.raises(ValueError, match=r"sub-001_.*\.set"):
        eesm17.load(tmp_path, verbose=0)


def test_a_recording_without_scoring(tmp_path):
    write(tmp_path, "001", scoring=None)
    with pytest.raises(ValueError, match=r"sleep_acq-scoring_events\.tsv does not exist"):
        eesm17.load(tmp_path, verbose=0)
    write(tmp_path, "001", ["7", "8"])
    with pytest.raises(ValueError, match="7, 8"):
        eesm17.load(tmp_path, verbose=0)


class TestContract(RecipeContract):
    name = "eesm17"
    example = r"sub-001_ses-001_task-sleep_eeg"

    def write(self, root):
        return tuple(write(root, name, ("1", "4"), seconds=110) for name in ("001", "002"))
