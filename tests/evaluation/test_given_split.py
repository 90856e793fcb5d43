"""Who may be trained on where the test subjects are fixed."""

from __future__ import annotations

import pytest
from braindecode.datasets import BaseConcatDataset
from people import with_split, with_subject
from torch.utils.data import Subset

from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.evaluation.given_split import GivenSplit, draw_subjects

SPLIT = {1: "train", 2: "valid", 3: "test", 4: "test"}


def split_of(windows, *arguments):
    return GivenSplit.of(windows, Corpus.of(windows, "nights", -1), *arguments)


def test_the_recordings_say_who_is_tested(nights):
    assert split_of(with_split(nights, SPLIT)) == GivenSplit([1, 2], [], [3, 4])
    # Also inside a subset.
    assert split_of(Subset(with_split(nights, SPLIT), range(72))) == GivenSplit([1, 2], [], [3])


def test_test_subjects_may_be_named(nights):
    assert split_of(nights, [2]) == GivenSplit([1, 3, 4], [], [2])
    assert split_of(nights, [2], [4, 1]) == GivenSplit([1, 4], [], [2])


def test_those_set_apart_are_never_trained_on(nights):
    assert split_of(with_split(nights, SPLIT), [2]) == GivenSplit([1], [], [2])


def test_people_without_labels_are_not_counted(nights):
    windows = with_subject(nights, 2, target=-1)
    assert split_of(windows, [4]) == GivenSplit([1, 3], [2], [4])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Nobody of nights is set apart for testing.* name test_subjects"),
        (([9],), "test_subjects has subject 9, not in the data"),
        (([1, 2], [2, 3]), "Subject 2 would be trained on and tested"),
        (([1, 2, 3, 4],), "No labelled subject is left to train on"),
        (([1], []), "train_subjects is empty"),
    ],
)
def test_a_split_that_cannot_be_is_refused(nights, arguments, message):
    with pytest.raises(ValueError, match=message):
        split_of(nights, *arguments)


def test_a_person_on_both_sides_is_refused(nights):
    windows = with_split(nights, SPLIT)
    both = BaseConcatDataset(
        [*windows.datasets, *with_subject(windows, 3, split="train").datasets[2:3]]
    )
    with pytest.raises(ValueError, match="subject 3 are in split 'test' and in another one"):
        split_of(both)


def test_draws_are_nested_and_new_for_every_seed():
    people = list(range(30))
    for seed in range(5):
        orders = [draw_subjects(people, n, seed) for n in (3, 10, 30)]
        assert orders[0] == orders[1][:3] == orders[2][:3]
        assert sorted(orders[2]) == people
    assert len({tuple(draw_subjects(people, 3, seed)) for seed in range(5)}) == 5
    with pytest.raises(ValueError, match="31 training subjects were asked for, there are 30"):
        draw_subjects(people, 31, 0)
