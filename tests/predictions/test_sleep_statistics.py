"""Sleep statistics against a plain count of windows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.datasets.simulated import stages_of_a_night
from braindecode_pars.predictions import sleep_statistics

NAMES = ["W", "N1", "N2", "N3", "R"]


def plain(night, minutes=0.5):
    """Count windows one after another; "?" is unscored."""
    sleep = [i for i, stage in enumerate(night) if stage not in ("W", "?")]
    count = {stage: sum(name == stage for name in night) * minutes for stage in [*NAMES, "?"]}
    tst = sum(count[stage] for stage in NAMES[1:])
    spt = (sleep[-1] - sleep[0] + 1) * minutes
    names = {"N1": "N1", "N2": "N2", "N3": "N3", "REM": "R"}
    result = {"TIB": len(night) * minutes, "SPT": spt, "TST": tst, "WAKE": count["W"]}
    result["WASO"] = sum(name == "W" for name in night[sleep[0] : sleep[-1]]) * minutes
    result["SOL"], result["UNS"] = sleep[0] * minutes, count["?"]
    for name, stage in names.items():
        result[name] = count[stage]
        result[f"%{name}"] = 100 * count[stage] / tst
        result[f"Lat_{name}"] = night.index(stage) * minutes if stage in night else np.nan
    result["NREM"] = count["N1"] + count["N2"] + count["N3"]
    result["%NREM"] = 100 * result["NREM"] / tst
    return result | {"SE": 100 * tst / result["TIB"], "SME": 100 * tst / spt}


def frame(night, minutes=0.5):
    labels = [None if stage == "?" else stage for stage in night]
    columns = {f"probability_{name}": 0.2 for name in NAMES}
    onset = 60 * minutes * np.arange(len(night))
    return pd.DataFrame(dict(onset=onset, duration=60 * minutes, label=labels, **columns))


@pytest.mark.parametrize("seed", range(2))
def test_against_a_plain_count(seed):
    rng = np.random.default_rng(seed)
    night = [NAMES[stage] for stage in stages_of_a_night(400, rng)]
    for i in rng.integers(0, 400, 30):
        night[i] = "?"
    expected = plain(night)
    for stages_argument in (night, frame(night), np.array(night)):
        result = sleep_statistics(stages_argument)
        assert result.keys() == expected.keys()
        for name, value in result.items():
            np.testing.assert_allclose(value, expected[name], err_msg=name)
    longer = sleep_statistics(night, window_seconds=20)
    assert longer["TIB"] == pytest.approx(400 / 3)
    assert longer["SE"] == pytest.approx(expected["SE"])


def test_the_example_of_yasa():
    """Its documentation has these numbers: 20 windows, 0 to 4 are W, N1, N2, N3 and REM."""
    codes = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 2, 3, 3, 4, 4, 4, 4, 0, 0]
    result = sleep_statistics([NAMES[code] for code in codes])
    known = dict(TIB=10, SPT=8, WASO=0, TST=8, N1=1.5, N2=2, N3=2.5, REM=2, NREM=6, SOL=1)
    known |= dict(Lat_N1=1, Lat_N2=2.5, Lat_N3=4, Lat_REM=7, SE=80, SME=100)
    known |= {"%N1": 18.75, "%N2": 25, "%N3": 31.25, "%REM": 25, "%NREM": 75}
    assert {name: result[name] for name in known} == known


def test_windows_without_a_row_are_unscored():
    night = ["W", "N1", "N2", "N2", "W", "N2"]
    with_gap = ["W", "N1", "?", "?", "W", "N2"]
    rows = frame(night).drop(index=[2, 3])
    assert sleep_statistics(rows) == pytest.approx(plain(with_gap), nan_ok=True)
    assert sleep_statistics(["W", "N1", None, np.nan, pd.NA])["UNS"] == 1.5


def test_stages_of_rechtschaffen_and_kales():
    names = ["W", "S1", "S2", "S3", "S4", "REM", "Movement time"]
    result = sleep_statistics(names)
    assert (result["N3"], result["TST"], result["UNS"]) == (1.0, 2.5, 0.5)
    with pytest.raises(ValueError, match="class_names_"):
        sleep_statistics([0, 1, 2, 3, 4, 5, 6])


def test_a_night_without_sleep():
    result = sleep_statistics(["W"] * 10)
    assert [result[name] for name in ("TIB", "TST", "SPT", "WASO", "SE")] == [5, 0, 0, 0, 0]
    assert all(np.isnan(result[name]) for name in ("SOL", "Lat_REM", "%N2", "SME"))


@pytest.mark.parametrize(
    ("night", "unknown"),
    [
        (["W", "light", "deep", "REM"], {"N1", "N2"}),
        (["Wake", "NREM", "REM", "REM"], {"N1", "N2", "N3"}),
        (["Wake", "Sleep", "Sleep", "Sleep"], {"N1", "N2", "N3", "REM", "NREM"}),
    ],
)
def test_stages_that_a_coarse_scoring_does_not_distinguish_are_nan(night, unknown):
    result = sleep_statistics(night)
    assert result["TST"] == 1.5
    stages = ("N1", "N2", "N3", "REM", "NREM")
    assert {name for name in stages if np.isnan(result[name])} == unknown


@pytest.mark.parametrize(
    ("stages_argument", "message"),
    [
        (["W", "left"], "'left'"),
        ([0, 1, 2, 3, 4], "'0', '1', '2', '3', '4'.* class_names_"),
        ([["W"]], "1-dimensional"),
        ([], "empty"),
    ],
)
def test_bad_input(stages_argument, message):
    with pytest.raises(ValueError, match=message):
        sleep_statistics(stages_argument)
