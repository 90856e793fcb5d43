"""Kinds of channels and electrodes, by name and by MNE type."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars._common.channel_names import (
    channel_keys,
    differing_references,
    electrode_name,
    electrode_pair,
    is_eeg,
    is_eog,
    is_other_kind,
    match_channels,
    why_no_electrode,
    with_types,
)
from braindecode_pars.datasets import eesm17
from braindecode_pars.models.electrodes import electrode_positions

OTHERS = [
    *("ECG", "ECG1", "ECGII", "EKG", "EEG EKG1-REF", "ECG EKG-REF"),
    *("EMG_chin", "EMG Chin1", "Chin1-Chin2", "EMG submental", "Leg/L", "Tib"),
    *("EOG1", "EOG(L)", "L-EOG", "EOGleft", "EOG horizontal", "HEOG", "VEOG", "HEO", "VEOU"),
    *("ROC", "LOC", "LOC-A2", "EEG ROC-REF", "LOC-ROC"),
    *("Resp nasal", "RESP1-REF", "Flow", "AirFlow", "Nasal Pressure", "NPRES", "THOR RES", "ABD"),
    *("Thorax", "Abdomen", "CHEST", "Snore", "Therm", "EtCO2"),
    *("SpO2", "SaO2", "OSAT", "OX stat", "HR", "DHR", "H.R.", "Pleth", "Plet", "PULSE RATE"),
    *("Temp rectal", "LIGHT", "POSITION", "Pos", "AccX", "GSR1"),
    *("TRIG", "Trigger", "STI 014", "STI101", "Status", "Event marker", "EDF Annotations"),
    *("PHOTIC-REF", "IBI", "BURSTS", "SUPPR", "DC01", "EXG1", "VNS"),
    *("ChinEMG", "LegEMG", "LeftEOG", "RightEOG", "RLEG", "LLeg", "LegL", "PLM", "LAT", "RAT"),
    *("THO", "Cannula", "DeltaPres", "PulseRate", "Rpulse", "Nose", "Nose-REF"),
    *("Accelerometer", "AUX", "aux1", "DIN1", "UserTrig"),
    *("TERMISTORE", "TORACE", "addome", "Flusso", "Canula", "Posizione", "deltoide", "milo"),
    *("STAT", "Dx1-DX2", "SX1-SX2", "NEW AIR", "EPMS", "Leak", "-", "--0"),
    *("Atmung", "Schnarchen", "Kinn", "Bein li", "Lage", "Licht", "Puls", "Druck", "PTT", "Mikro"),
]
EEG = [
    *("Fp1", "Fc5.", "C3-M2", "EEG Fpz-Cz", "EEG(sec)", "EEG1", "EEG 001", "EEG 26-REF"),
    *("A1", "M2", "CB1", "SP1", "PG1", "T10", "Iz", "X1", "DX1", "T8-P8-0"),
    *("E1", "E2", "E128"),  # an EGI net
    *("ELB1", "ERB1", *eesm17.CHANNELS),  # ear-EEG
    *("Cz-Nose", "EEG Cz-NOSE"),
    *("LOC1", "LAT2", "Tempo"),  # depth electrodes, and a word that begins with Temp
]


def test_other_signals_are_recognized_and_electrodes_not_taken_for_them():
    assert [name for name in OTHERS if not is_other_kind(name)] == []
    assert [name for name in EEG if is_other_kind(name)] == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("EOG", ["EOG left", "LOC-A2", "E1-M2", "E2:M1-EOG", "HEO"]),
        ("EMG", ["Chin1-Chin2", "LegL", "LAT", "EMG-REF"]),
        ("EEG", ["E1", "E2-Cz", "C3-M2", "EEG A1-REF", "FE1-A2"]),
    ],
)
def test_kinds_by_name(kind, names):
    assert [is_other_kind(name) for name in names] == [kind != "EEG"] * len(names)
    assert [is_eog(dict(ch_name=name)) for name in names] == [kind == "EOG"] * len(names)


def test_the_type_and_the_name_must_both_be_of_eeg():
    kinds = ["ecg", "eog", "emg", "resp", "misc", "stim", "misc", "seeg", "eeg", "eeg"]
    names = ["X1", "X2", "X3", "X4", "X5", "X6", "Chin", "ECG", "C3", "HEOG"]
    chs = mne.create_info(names, 100.0, kinds)["chs"]
    assert [ch["ch_name"] for ch in chs if is_eeg(ch)] == ["ECG", "C3"]
    assert [ch["ch_name"] for ch in chs if is_eog(ch)] == ["X2", "HEOG"]
    # Of channels without types, a trigger is no EEG.
    chs = mne.create_info(["C3", "x1"], 100.0, ["misc", "stim"])["chs"]
    assert [is_eeg(ch) for ch in with_types(chs)] == [True, False]
    chs = mne.create_info(["C3", "C4"], 100.0, ["eeg", "misc"])["chs"]  # the types are known
    assert [is_eeg(ch) for ch in with_types(chs)] == [True, False]


def test_channels_are_matched_by_electrode():
    assert match_channels(["FC5", "T3", "Cz"], ["EEG T7-LE", "Fc5.", "Pz"]) == [1, 0, None]
    # Two channels of one electrode: their names decide.
    assert match_channels(["C3", "Fpz-Cz"], ["EEG Fpz - Cz", "C3 - M2"]) == [1, 0]
    assert match_channels(["C3-M1", "C3-M2"], ["C3-M2", "C3-M1"]) == [1, 0]
    assert match_channels(["C3-M1", "C3-M2"], ["C3"]) == [None, None]
    assert match_channels(["C3"], ["C3-M1", "C3-M2"]) == [None]
    assert match_channels(["C3", "O1"], ["C3-M1", "C3", "O1-M2"]) == [1, 2]


@pytest.mark.parametrize("name", ["EEG C3-CLE", "C3-A1A2", "c3-Vref", "C3-A1-A2", "EEG A2-CLE"])
def test_any_reference_but_another_electrode_is_one(name):
    assert electrode_name(name) == electrode_pair(name)[0].replace("M2", "A2")
    assert differing_references([name, name.replace("-", "-x")]) is not None


def test_pairs_of_electrodes_keep_their_names():
    for name in ("T3-P3", "T8-P8-0", "F7-T1", "A2-C3"):
        assert electrode_name(name) == name
        assert why_no_electrode({"ch_name": name}) == "bipolar channel"


@pytest.mark.parametrize(
    ("channels", "expected"),
    [
        (["C3", "EEG C3-A1", "C3-M2"], ("EEG C3-A1", "C3-M2")),
        (["C3-M2", "EEG c3-m2", "C3"], None),
        (["C3-CAR", "C3-AVG", "C3-AVE"], None),
    ],
)
def test_different_references(channels, expected):
    assert differing_references(channels) == expected


CAPS = {
    n: [f"{letter}{i}" for letter in "ABCDEFGH"[: n // 32] for i in range(1, 33)]
    for n in (32, 128, 256)
}
#: Which have electrodes of 10-20 names, or only few other ones.
NOT_BIOSEMI = {
    "ears": ["C1", "C2", "C3", "C4", "A1", "A2"],
    "one input": ["C3", "C4", "A1", "A2", "B1"],
    "inputs": ["Fp1", "C3-A2", "A1", "A2", "B1", "B2", "D1", "D2"],
    "old names": ["T3", "C3", "A1", "D1", "D2"],
    "sleep": ["C3", "C4", "A1", "A2", "E1", "E2"],
    "EGI": [f"E{i}" for i in range(1, 129)],
}
WANTED = ["C1", "C3", "C4", "A1", "M2", "F3"]


@pytest.mark.parametrize("n", CAPS)
def test_names_of_biosemi_are_no_names_of_the_10_20_system(n):
    """There, C3 is not at C3, and A1 is at the vertex."""
    names = [*CAPS[n], "EXG1", "Status"]
    assert match_channels(WANTED, names) == [None] * len(WANTED)
    assert match_channels(names, WANTED) == [None] * len(names)
    # They are those of another such recording, in any order and writing.
    assert match_channels(names, [f"EEG {name.lower()}" for name in names][::-1]) == [
        len(names) - 1 - i for i in range(len(names))
    ]
    # Asked for by the system, or by names that no other system has
    assert match_channels(["BioSemi A2", "A5"], names) == [1, 4]
    assert set(map(len, map(set, channel_keys(names, WANTED)))) == {len(names), len(WANTED)}


def test_names_of_biosemi_have_no_positions_of_the_10_20_system():
    info = mne.create_info(CAPS[128], 100.0, "eeg")
    assert not np.isfinite(electrode_positions(info["chs"])).any()
    info.set_montage("biosemi128")
    positions = electrode_positions(info["chs"])
    np.testing.assert_allclose(positions, [ch["loc"][:3] for ch in info["chs"]], rtol=1e-6)


@pytest.mark.parametrize("names", NOT_BIOSEMI.values(), ids=NOT_BIOSEMI.keys())
def test_names_of_the_10_20_system_stay(names):
    places = {electrode_name(name): i for i, name in enumerate(names)}
    expected = [places.get("C3"), places.get("A1"), places.get("E1")]
    assert match_channels(["C3", "M1", "E1"], names) == expected


def test_biosemi_with_names_of_the_10_20_system_stays():
    names = mne.channels.make_standard_montage("biosemi64").ch_names
    assert match_channels(["C3", "F3"], names) == [names.index("C3"), names.index("F3")]
    info = mne.create_info(names, 100.0, "eeg")
    assert np.isfinite(electrode_positions(info["chs"])).all()
