"""What the preprocessing of several recordings has in common."""

from __future__ import annotations

from collections import Counter

from braindecode_pars.recordings.preprocessing import Preprocessing, agreed, counted, disagreements

ONE = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=(50.0,))
OTHER = Preprocessing(sfreq=100.0, band=(0.5, 35.0))


def test_what_differs_or_is_unknown_in_one_is_unknown():
    assert agreed([ONE, OTHER, ONE]) == Preprocessing(sfreq=100.0)
    assert agreed([ONE, ONE]) == ONE
    assert agreed([ONE, None]) == Preprocessing()


def test_only_known_differences_are_named():
    assert disagreements(Counter({ONE: 3, OTHER: 2, None: 1})) == [
        "band 0.3-35 Hz in 3 windows, 0.5-35 Hz in 2 windows"
    ]
    assert disagreements(Counter({ONE: 3, None: 1})) == []
    many = Counter({Preprocessing(notch=(float(f),)): 1 for f in range(1, 7)})
    assert disagreements(many)[0].endswith(", ...")


def test_equal_descriptions_are_counted_together():
    equal = Preprocessing(sfreq=100.0, band=(0.3, 35.0), notch=(50.0,))
    assert counted([ONE, equal, None, OTHER, ONE]) == {ONE: 3, None: 1, OTHER: 1}
