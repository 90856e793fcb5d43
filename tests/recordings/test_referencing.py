"""The reference of a model, computed from the channels of a recording."""

from __future__ import annotations

import pytest

from braindecode_pars.recordings.as_trained import Derivation, rereferenced


@pytest.mark.parametrize(
    ("channel", "reference", "found", "expected"),
    [
        ("C3", None, ["C3", "C4"], "C3"),
        ("C3", "as recorded", ["C3", "C4"], "C3"),
        ("C3", "average", ["C3", "C4", "Fpz-Cz"], "C3 - mean of C3, C4"),
        ("C3-REF", "average", ["C3-REF", "C4-REF"], "C3-REF - mean of C3-REF, C4-REF"),
        ("C3", "average", ["C3", "C4", "A2-A1", "C4-M2"], "C3 - mean of C3, C4"),
        ("C3", "M1, M2", ["C3", "A1", "A2"], "C3 - mean of A1, A2"),
        ("C3", "M2", ["C3", "EEG M2"], "C3 - mean of EEG M2"),
        # It has this reference already, or none at all.
        ("C3-A2", "M2", ["C3-A2"], "C3-A2"),
        ("C3-LE", "M1,M2", ["C3-LE"], "C3-LE"),
        ("C3-CAR", "average", ["C3-CAR"], "C3-CAR"),
        ("Fpz-Cz", "M2", ["Fpz-Cz"], "Fpz-Cz"),
        # It cannot be computed.
        ("C3", "Cz", ["C3", "C4"], None),
        ("C3", "average", ["C3"], None),
        ("C3-M2", "average", ["C3-M2", "C4-M1"], None),
        ("C3", "M2", ["C3", "M2-M1"], None),
    ],
)
def test_reference(channel, reference, found, expected):
    changed = rereferenced(Derivation("C3", ((channel, 1.0),)), reference, found, found)
    assert (changed and changed.formula) == expected


def test_the_average_of_named_channels_has_any_of_them():
    """MNE averages what has the type EEG, also an ECG and a channel with another reference."""
    eeg, found = ["C3", "A2-A1"], ["C3", "A2-A1", "ECG"]
    c3 = Derivation("C3", (("C3", 1.0),))
    changed = rereferenced(c3, "C3, A2-A1, ECG", eeg, found)
    assert changed.formula == "C3 - mean of C3, A2-A1, ECG"
    assert rereferenced(c3, "C3, A2-A1, EOG", eeg, found) is None


def test_a_channel_that_is_not_eeg_keeps_its_reference():
    eog = Derivation("EOG", (("EOG", 1.0),), is_eeg=False)
    assert rereferenced(eog, "average", ["C3", "C4"], ["C3", "C4", "EOG"]) is eog


def test_a_computed_channel_stays_as_it_is():
    computed = Derivation("C3-M2", (("C3", 1.0), ("M2", -1.0)))
    assert rereferenced(computed, "average", *[["C3", "M2"]] * 2) is computed
