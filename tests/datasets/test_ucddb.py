"""UCDDB: the tests write nights in the format of the corpus."""

from __future__ import annotations

import numpy as np
import pytest
from support.apnea_nights import SIGNALS, write
from support.recipe_contract import RecipeContract

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import ucddb


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("ucddb")
    for subject in ("ucddb002", "ucddb003"):
        write(root / "files", subject)
    (root / "files/ucddb002_lifecard.edf").touch()  # the Holter recorder's
    return root


def test_windows_agree_with_the_codes(folder):
    """Artifacts, indeterminate windows and unknown codes have none; stages 3 and 4 are N3."""
    windows = ucddb.load(folder, verbose=0)
    night = windows.datasets[0]
    assert (night.raw.ch_names, night.raw.info["sfreq"]) == (["C3", "C4"], 128)
    assert night[0][0].shape == (2, 3840)
    stages = [ucddb.CARD["classes"][target] for target in night.metadata["target"]]
    starts = (night.metadata["i_start_in_trial"] // 3840).tolist()
    assert list(zip(starts, stages, strict=True)) == [
        *[(0, "W"), (2, "R"), (3, "N1"), (4, "N2"), (5, "N3"), (6, "N3"), (9, "W")]
    ]
    kept = night.raw.annotations.description.tolist()
    assert kept == ["W", "unscored", "R", "N1", "N2", "N3", "N3", "unscored", "unscored", "W"]
    assert set(as_sklearn(windows)[2]) == {"ucddb002", "ucddb003"}
    one = ucddb.cut(ucddb.recordings(folder)[0])
    assert one.window_kwargs[-1][1]["mapping"] == dict(W=0, N1=1, N2=2, N3=3, R=4)


@pytest.mark.parametrize("unit", ["", "mV"])
def test_signals_are_volts_without_the_mains(tmp_path, unit):
    """50 uV; without a unit in the file, a value of .5 is as much."""
    write(tmp_path, "ucddb002", unit=unit)
    (found,) = ucddb.recordings(tmp_path)
    middle = ucddb.prepare(found).get_data()[:, 3840:-3840]
    spectrum = np.abs(np.fft.rfft(middle[:, :3840])) / 1920
    np.testing.assert_allclose(spectrum[:, 300], [50e-6, 100e-6], rtol=0.01)
    assert spectrum[:, 1500].max() < 2e-6


def test_faults_name_the_file(tmp_path):
    write(tmp_path, "ucddb002", codes=None)
    with pytest.raises(ValueError, match=r"ucddb002\.rec.*ucddb002_stage\.txt"):
        ucddb.load(tmp_path, verbose=0)
    write(tmp_path, "ucddb003", signals=[name.replace("C4A1", "C4") for name in SIGNALS[:5]])
    assert len(ucddb.load(tmp_path, ["ucddb003"], verbose=0)) == 7


def test_codes_after_the_end_of_a_recording_have_no_window(tmp_path):
    write(tmp_path, "ucddb002", codes=[0, 1, 2, 3], n_seconds=100)
    assert ucddb.load(tmp_path, verbose=0).datasets[0].metadata["target"].tolist() == [0, 4, 1]


class TestContract(RecipeContract):
    name = "ucddb"
    example = r"ucddb002\.rec"

    def write(self, root):
        return write(root, "ucddb002"), write(root, "ucddb003")
