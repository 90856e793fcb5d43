"""Labels from outside of a recording: as annotations, and their checksum."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.label_files import (
    LabelledFile,
    checksum_of_labels,
    to_annotations,
)

RAW = mne.io.RawArray(np.zeros((1, 6000)), mne.create_info(["C3"], 100.0, "eeg"), verbose="error")


def test_stretches_are_annotations_of_their_classes():
    stretches = [(0, 30, "3"), (30, None, "4"), (40, 20, "?")]
    found = to_annotations(stretches, {"3": "N3", "4": "N3"}, RAW, 10.0)
    assert found.description.tolist() == ["N3", "N3"]
    assert [found.onset.tolist(), found.duration.tolist()] == [[0, 30], [30, 10]]
    whole = to_annotations([(None, None, "3")], {"3": "N3"}, RAW, 10.0)
    assert [*whole.onset, *whole.duration] == [0, 60]
    assert len(to_annotations([], {}, RAW, 10.0)) == 0


def test_a_label_after_the_end_is_refused_but_not_one_by_a_rounded_sample():
    to_annotations([(30, 30.01, "W")], {"W": "W"}, RAW, 10.0)
    for stretch in ((30, 31, "W"), (51, None, "W"), (70, 30, "?")):
        with pytest.raises(ValueError, match="60 s"):
            to_annotations([stretch], {"W": "W"}, RAW, 10.0)


def test_the_checksum_changes_with_each_label_and_class():
    def checksum(stretch=(0, 30, "W"), name="a.edf", classes=(("W", "W"),)):
        labelled = LabelledFile(Path("root", name), {}, (stretch,))
        return checksum_of_labels([labelled], dict(classes), Path("root"))

    others = [
        checksum((1, 30, "W")),
        checksum((0, 31, "W")),
        checksum((0, 30, "R")),
        checksum(name="b.edf"),
        checksum(classes=(("W", "wake"),)),
    ]
    assert checksum() == checksum()
    assert len({checksum(), *others}) == 6


def test_a_labelled_file_is_a_recording():
    file = LabelledFile(Path("a.edf"), {"subject": "a", "corpus": "mine"}, ((0, 1, "W"),))
    assert file.person == "mine:a"
