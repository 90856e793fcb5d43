"""Labels in the names of files: templates and regular expressions."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from braindecode_pars.recordings.label_files import labels_in_names

ROOT = Path("data")


def found(pattern, *names):
    labels = labels_in_names(pattern, ROOT, [ROOT / name for name in names])
    assert all(stretch[:2] == (None, None) for one in labels for stretch in one.stretches)
    return [(one.description.get("subject"), one.stretches[0][2]) for one in labels]


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("{subject}_{label}", "Subject00_1.edf", ("Subject00", "1")),
        ("{subject}_{label}", "day1/Subject00_1.fif.gz", ("Subject00", "1")),
        ("{label}", "rest.edf", (None, "rest")),
        ("{subject}R{label}", "S001R03.edf", ("S001", "03")),
        ("{subject}-{label}_*", "P1-rest_2020.set", ("P1", "rest")),
        ("{subject}-{label}*", "P1-rest.set", None),
        ("{label}/{subject}", "normal/anna.edf", ("anna", "normal")),
        ("{label}/*/{subject}_*", "normal/v1/anna_1.edf", ("anna", "normal")),
        ("{subject}.{label}", "Müller.Anna.edf", ("Müller", "Anna")),
        (r"(?P<subject>S\d{3})R(?P<label>\d+)", "all/S001R03.edf", ("S001", "03")),
        (r"_(?P<label>[a-z]+)\.", "P_1_rest.edf", (None, "rest")),
    ],
)
def test_labels_and_subjects_in_names(pattern, name, expected):
    if expected is None:  # "*" may be any part of "rest"
        with pytest.raises(ValueError, match="may be"):
            found(pattern, name)
    else:
        assert found(pattern, name) == [expected]


def test_both_unicode_forms_of_a_name_are_one():
    decomposed = unicodedata.normalize("NFD", "Jörg_1.edf")
    assert found("{subject}_{label}", decomposed) == [("Jörg", "1")]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{subject}_{label}", r"S1\.edf .* label"),
        ("(?P<label>x)", "label"),
        ("(?P<subject>P)?.(?P<label>1)", "subject"),
        ("{subject}", "{subject}"),
        ("{label}_{label}", "{label}_{label}"),
        ("{label}_{run}", "{run}"),
        ("(?P<subject>.)", r"\?P<label>"),
        ("(?P<label>.", "regular expression"),
    ],
)
def test_patterns_that_cannot_be_used(pattern, message):
    with pytest.raises(ValueError, match=message):
        found(pattern, "S1.edf")


def test_a_name_that_can_be_read_in_two_ways_is_refused():
    with pytest.raises(ValueError, match=r"label .*'01_rest' or 'rest'"):
        found("{subject}_{label}", "P_01_rest.edf")


def test_the_error_names_the_field_that_is_unclear():
    with pytest.raises(ValueError, match=r"subject .*'S' or 'S_1'"):
        found("{label}/{subject}_*", "rest/S_1_2.edf")


def test_blanks_around_a_label_are_not_of_it():
    assert found("{subject}_{label}", "P1_rest .edf", "P2 _rest.edf") == [
        ("P1", "rest"),
        ("P2", "rest"),
    ]


def test_an_optional_subject_must_be_in_every_name():
    pattern = r"(?P<subject>P[0-9])?_(?P<label>[a-z]+)[.]"
    with pytest.raises(ValueError, match="subject"):
        found(pattern, "P1_rest.edf", "_task.edf")
