"""Channels of a model in a recording, found or computed by the names of electrodes."""

from __future__ import annotations

import pytest

from braindecode_pars.recordings.as_trained import Derivation, find_derivations


def formulas(wanted, found, **arguments):
    return [d and d.formula for d in find_derivations(wanted, found, **arguments)]


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        # The same electrode under another name.
        ("Fpz-Cz", ["EEG Pz-Oz", "EEG Fpz-Cz"], "EEG Fpz-Cz"),
        ("EEG Fpz-Cz", ["FPZ-CZ"], "FPZ-CZ"),
        ("T3-P3", ["EEG T7-P3", "T7"], "EEG T7-P3"),
        ("C3-A2", ["C3-M1", "C3-M2"], "C3-M2"),
        ("A1", ["EEG M1-REF"], "EEG M1-REF"),
        ("T7", ["EEG T3-LE"], "EEG T3-LE"),
        # Several channels of one electrode: the name decides.
        ("T3", ["T3", "T7"], "T3"),
        ("Fp1", ["T3", "T7"], None),
        ("C3", ["C3-M1", "C3-M2"], None),
        # Computed channels.
        ("Fpz-Cz", ["Cz-Fpz"], "- Cz-Fpz"),
        ("Fpz-Cz", ["Fpz", "Cz"], "Fpz - Cz"),
        ("C3-M2", ["EEG C3-REF", "EEG A2-REF"], "EEG C3-REF - EEG A2-REF"),
        ("C3-M2", ["C3-M1", "M2-M1"], "C3-M1 - M2-M1"),
        ("Fpz-Cz", ["Fpz-M1", "Cz-M2"], None),
        ("Fpz-Cz", ["Fpz-M1", "Fpz-M2", "Cz-M2"], "Fpz-M2 - Cz-M2"),
        # A channel that names its reference is not the difference to another channel again.
        ("C3-M2", ["C3-M2", "M2"], "C3-M2"),
        # Another reference is better than nothing; predict warns.
        ("C3-M2", ["C3-M1"], "C3-M1"),
        ("C3-M2", ["C3"], "C3"),
        ("C3", ["C3-M2"], "C3-M2"),
        ("O1", ["C3", "C4"], None),
    ],
)
def test_one_channel(wanted, found, expected):
    assert formulas([wanted], found) == [expected]


def test_without_computing_channels_are_only_found():
    found = ["C3", "M2", "Cz-Fpz"]
    assert formulas(["C3-M2", "Fpz-Cz"], found, compute=False) == ["C3", None]


def test_the_order_is_that_of_the_model():
    assert formulas(["O1", "C3", "Fz"], ["C3", "Fz", "O1"]) == ["O1", "C3", "Fz"]


def test_formula_of_a_reference():
    names = tuple(f"E{i}" for i in range(19))
    assert Derivation("E0", (("E0", 1.0),), names).formula == "E0 - mean of 19 channels"
    assert Derivation("E0", (("E0", 1.0),), names[:2]).channels == ["E0", "E0", "E1"]
