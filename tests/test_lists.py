"""Lists of names in sentences."""

from __future__ import annotations

from braindecode_pars._common.checks import listed


def test_the_first_ones_and_how_many_more_there_are():
    names = [f"EEG {n}" for n in range(11)]
    assert listed(names[:2]) == "EEG 0, EEG 1"
    assert listed(names[:10]).endswith("EEG 9")
    assert listed(names).endswith("EEG 9 and 1 more")
    assert listed(names, most=2) == "EEG 0, EEG 1 and 9 more"
    assert listed([]) == ""
