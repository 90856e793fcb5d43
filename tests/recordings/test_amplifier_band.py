"""The band of an amplifier is compared with those of the training, not with its filters."""

from __future__ import annotations

import edfio
import mne
import numpy as np
import pytest
from support.small_estimators import classifier

from braindecode_pars import PARSClassifier
from braindecode_pars.datasets import folder
from braindecode_pars.windows.preprocessing import Preprocessing, agreed
from braindecode_pars.windows.recorded_steps import recorded, remember_edges


def test_several_amplifiers_give_the_narrowest_band():
    bands = [(0.1, 100.0), (0.5, None), (None, 70.0)]
    assert agreed([Preprocessing(amplifier=band) for band in bands]).amplifier == (0.5, 70.0)
    assert agreed([Preprocessing(amplifier=(0.5, 70.0)), Preprocessing()]).amplifier == (0.5, 70.0)
    assert agreed([Preprocessing(sfreq=1)]).amplifier is None
    apart = [Preprocessing(amplifier=band) for band in ((0.1, 10.0), (20.0, 70.0))]
    assert agreed(apart).amplifier is None


def test_an_edge_is_that_of_the_eeg_channels():
    info = mne.create_info(["C3", "C4", "Airflow"], 200.0, ["eeg", "eeg", "misc"])
    remember_edges(info, {"C3": (0.1, 100.0), "C4": (0.2, 70.0), "Airflow": (5.0, 10.0)})
    assert recorded(info).amplifier == recorded(info).band == (0.2, 70.0)
    step = ("filter", dict(l_freq=0.5, h_freq=35.0))
    steps = recorded(info, [dict(fn=step[0], kwargs=step[1])])
    assert (steps.band, steps.amplifier) == ((0.5, 35.0), (0.2, 70.0))
    assert recorded(mne.pick_info(info, [0])).amplifier == (0.1, None)  # 100 Hz is no filter


def night(file, prefiltering, seed):
    """Write two labeled minutes of an amplifier whose header has these filters."""
    file.parent.mkdir(exist_ok=True)
    noise = 20 * np.random.default_rng(seed).standard_normal((3, 12000))
    signals = [
        edfio.EdfSignal(x, 200, label=f"EEG {name}", physical_dimension="uV", **prefiltering)
        for name, x in zip(("C3", "Cz", "C4"), noise, strict=True)
    ]
    marks = [edfio.EdfAnnotation(0, 30, "W"), edfio.EdfAnnotation(30, 30, "N2")]
    edfio.Edf(signals, annotations=marks).write(file)
    return file


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Data leakage")
@pytest.mark.filterwarnings("ignore:The model was trained on the classes W, N2")
def test_files_of_the_training_have_no_findings_of_their_amplifier(tmp_path):
    """From files to a saved model and its predictions; the asked band is wider than the files'."""
    header = dict(prefiltering="HP:0.5Hz LP:70Hz")
    files = [night(tmp_path / "data" / f"P0{i}.edf", header, i) for i in range(2)]
    filters = dict(sfreq=200, low=0.3, high=75, mains=None)
    windows = folder.load(
        tmp_path / "data", labels=["W", "N2"], window_seconds=10, verbose=0, **filters
    )
    classifier(pretext=None).fit(windows).save(tmp_path / "model")
    clf = PARSClassifier.load(tmp_path / "model")
    assert clf.preprocessing_.amplifier == (0.5, 70.0)
    new = night(tmp_path / "new" / "X1.edf", header, 8)
    for file in (*files, new):
        kinds = clf.predict_raw(file).attrs["findings"]
        expected = {"windows", "windows_not_predicted", "absent_stages"}
        assert kinds.keys() - {"subject_in_training"} == expected
    other = night(tmp_path / "new" / "X2.edf", dict(prefiltering="HP:1Hz LP:70Hz"), 9)
    with pytest.warns(UserWarning, match=r"band 1-70 Hz, but 0\.3-75 Hz in training"):
        clf.predict_raw(other)
