"""Different spellings of the same subject."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars.windows._subjects import subject_key


@pytest.mark.parametrize("same", [7, "7", "007", np.int64(7)])
def test_a_subject_number_may_be_written_in_several_ways(same):
    assert subject_key(same) == "7"


def test_other_names_are_different_subjects():
    names = ["P07", "P7", "7a", 7, "0.7", "\u0667", None, ""]
    assert len({subject_key(name) for name in names}) == len(names)
