"""Subjects and labels of the windows of a dataset."""

from __future__ import annotations

import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from support.subjects import with_subject

from braindecode_pars.evaluation.corpus import Corpus


def test_subjects_and_their_windows(nights):
    masked = BaseConcatDataset(
        nights.datasets, target_transform=lambda label: -1 if label == 2 else label
    )
    corpus = Corpus.of(masked, "nights", -1)
    assert corpus.subjects == corpus.labeled_subjects == [1, 2, 3, 4]
    np.testing.assert_array_equal(corpus.windows_of([2]), np.arange(24, 48))
    scored = corpus.test_windows([2])
    assert (corpus.y[scored] != -1).all()
    assert len(scored) == (corpus.y[24:48] != -1).sum()


def test_a_test_subject_without_labels_raises(nights):
    corpus = Corpus.of(with_subject(nights, 3, target=-1), "", -1)
    assert corpus.labeled_subjects == [1, 2, 4]
    with pytest.raises(ValueError, match="subject 3"):
        corpus.test_windows([1, 3])


def test_a_subject_called_all_raises(nights):
    with pytest.raises(ValueError, match="'all'"):
        Corpus.of(with_subject(nights, 3, subject="all"), "", -1)


def test_names_that_may_be_one_subject_are_reported(nights):
    """They stay two subjects, one of which may be trained on while the other is tested."""
    with pytest.warns(UserWarning, match="'03' and 3") as caught:
        corpus = Corpus.of(with_subject(nights, 1, subject="03"), "", -1)
    assert set(corpus.subjects) == {"03", 2, 3, 4}
    assert len(caught) == 1
