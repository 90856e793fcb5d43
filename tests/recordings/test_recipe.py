"""Settings of a recipe."""

from __future__ import annotations

import pytest

from braindecode_pars.datasets import tusz
from braindecode_pars.recordings.continuous import divided


def test_settings_are_those_of_finding_or_of_reading():
    settings = dict(dev="valid", min_overlap=2)
    assert divided(tusz, tusz.cut, settings) == ({"dev": "valid"}, {"min_overlap": 2})
    with pytest.raises(TypeError, match="min_overlap"):
        divided(tusz, tusz.prepare, settings)
