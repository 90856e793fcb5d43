"""Channels of windows of several recordings."""

from __future__ import annotations

import mne
import numpy as np

from braindecode_pars.windows.door import Channels, Montage


def chs(*names: str) -> list[dict]:
    return mne.create_info(list(names), 100.0, "eeg")["chs"]


def test_montages_are_joined_and_numbered_by_their_first_windows():
    one, two = chs("C3", "C4"), chs("Fz")
    parts = [
        Channels.of_recording(0, chs("Oz")),
        Channels.of_recording(2, one),
        Channels.of_recording(1, two),
        Channels.of_recording(2, chs("C3", "C4")),
        Channels.of_recording(1, chs("C3", "C4"), bads=["C4"]),
    ]
    joined = Channels.join(parts)
    assert joined.of_window.tolist() == [0, 0, 1, 0, 0, 2]
    assert [montage.names for montage in joined.montages] == [["C3", "C4"], ["Fz"], ["C3", "C4"]]
    assert joined.counts.tolist() == [4, 1, 1]
    assert joined.chs_info == []


def test_a_part_keeps_only_its_own_montages():
    joined = Channels.join(
        [Channels.of_recording(2, chs("C3")), Channels.of_recording(2, chs("Fz"))]
    )
    part = joined.take(np.array([3, 2]))
    assert [montage.names for montage in part.montages] == [["Fz"]]
    assert part.of_window.tolist() == [0, 0]
    assert part.chs_info[0]["ch_name"] == "Fz"
    assert joined.take(np.array([], dtype=int)).chs_info is None


def test_unknown_channels():
    unknown = Channels.of_recording(2)
    assert unknown.chs_info is None
    assert Channels.join([unknown, Channels.of_recording(1, chs("C3"))]).chs_info == []


def test_picks_of_picks_are_rows_of_the_source():
    montage = Montage(chs("C3", "C4", "Fz", "Oz"), n_rows=4)
    picked = montage.pick([3, 1, 0]).pick([2, 0])
    assert picked.names == ["C3", "Oz"]
    assert picked.rows.tolist() == [0, 3]
    assert montage.pick([0, 1, 2, 3]).rows is None
    renamed = montage.pick([0], chs("c3."))
    assert renamed.names == ["c3."]
