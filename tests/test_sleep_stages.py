"""Names of sleep stages in the spellings of AASM, R&K, EDF+ files and common software."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from braindecode_pars._common.sleep_stages import aasm_stages, are_stages, stage_of, top_to_bottom

#: Complete scorings, each from the top of a hypnogram to its bottom.
SCORINGS = [
    ["W", "R", "N1", "N2", "N3"],
    ["WAKE", "REM", "NREM1", "NREM2", "NREM3"],
    ["awake", "rem sleep", "nrem 1", "nrem-2", "NREM_3"],
    ["W", "R", "S1", "S2", "S3", "S4", "MT"],
    [f"Sleep stage {stage}" for stage in "WR1234?"],
    ["Sleep stage W", "Sleep stage 2", "Sleep stage 3 / Sleep stage 4", "Movement time"],
    ["SLEEP-S0", "SLEEP-REM", "SLEEP-S1", "SLEEP-S2", "SLEEP-S3", "SLEEP-S4", "SLEEP-MT"],
    ["Stage W", "Stage R", "Stage 1", "Stage 2", "Stage 3", "Unscored"],
    ["Wake", "REM", "Light", "Deep"],
    ["Wake", "REM", "NREM"],
    ["Wake", "Sleep", "unknown"],
]


@pytest.mark.parametrize("scoring", SCORINGS, ids=lambda s: " ".join(map(str, s)))
def test_every_scoring_is_in_order(scoring):
    for rotation in range(len(scoring)):
        assert top_to_bottom(scoring[rotation:] + scoring[:rotation]) == scoring
    assert top_to_bottom(scoring[::-1]) == scoring
    assert are_stages(scoring)


@pytest.mark.parametrize("name", ["left", "L", "rest", "seizure", "T1", "", "stage", "4", 4, None])
def test_other_names_are_no_stages(name):
    assert stage_of(name) is None


def test_numbers_may_be_of_any_convention():
    """In some, 4 is REM, in others 5. Sleep cannot be concluded from them either."""
    for names in ([0, 1, 2, 3, 4], ["W", "dozing", "N1"]):
        with pytest.raises(ValueError, match=f"{names[1]}.* order="):
            top_to_bottom(names)
    assert not are_stages(map(str, range(6)))


def test_unscored_alone_is_not_sleep():
    assert not are_stages(["?", "unknown"])
    assert not any(map(are_stages, itertools.combinations(["left", "right", "rest"], 2)))


def test_scores_of_rechtschaffen_and_kales_as_stages_of_the_aasm():
    """In such a scoring numbers are stages; what is no stage of the AASM is left out."""
    stages = ("W", "N1", "N2", "N3", "N3", "R")
    assert aasm_stages("W1234R", "rk") == dict(zip("W1234R", stages, strict=True))
    for spelling in ("S{}", "Sleep stage {}", "NREM{}", "stage {}", "Stage{}"):
        names = [spelling.format(number) for number in range(1, 5)]
        assert list(aasm_stages(names).values()) == ["N1", "N2", "N3", "N3"]
    for scoring in SCORINGS:
        with warnings.catch_warnings(action="ignore"):  # of coarser stages
            stages = aasm_stages(scoring)
        for name, stage in stages.items():
            assert str(stage_of(name)).replace("N4", "N3") == stage
    assert aasm_stages(["MT", "?", "Movement time", "", np.nan, "unscored"]) == {}


@pytest.mark.parametrize(
    ("scheme", "expected", "unscored"),
    [
        ("yasa", {0: "W", "1": "N1", 2.0: "N2", "3.0": "N3", 4: "R"}, [-1, "-2"]),
        ("nsrr", {0: "W", "1": "N1", 2: "N2", 3: "N3", "4": "N3", 5.0: "R"}, [6, "9"]),
        ("rk", {0: "W", "1": "N1", 2: "N2", 3: "N3", "4": "N3", "R": "R"}, []),
    ],
)
def test_numbers_are_stages_of_a_scheme_that_is_named(scheme, expected, unscored):
    assert aasm_stages([*expected, *unscored], scheme) == expected
    with pytest.warns(UserWarning, match=r"'1'.*scheme"):
        assert aasm_stages(expected) == {n: s for n, s in expected.items() if n == "R"}
    with pytest.warns(UserWarning, match="omits '7'"):
        assert aasm_stages([7, "N2"], scheme) == {"N2": "N2"}


@pytest.mark.parametrize("name", ["Wach", "Eveil", "Light", "NREM", "left", "Sleep stage 5"])
def test_a_name_that_is_no_known_stage_is_named(name):
    with pytest.warns(UserWarning, match=repr(name)):
        assert aasm_stages(["N2", name]) == {"N2": "N2"}
    with pytest.raises(ValueError, match="scheme"):
        aasm_stages(["N2"], "aasm")
