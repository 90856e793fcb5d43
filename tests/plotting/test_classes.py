"""Names, order and colours of classes in figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.plotting.class_figures import (
    area_styles,
    entries,
    in_figure_order,
    is_unknown,
    names_by_label,
)


def test_names_by_label_by_number_and_of_names_themselves():
    names = names_by_label({7: "left", 9: "right"})
    given = np.array([9, -1, 7, "right", None], dtype=object)
    assert entries(given, names) == ["right", None, "left", "right", None]
    assert entries([1.0, np.nan], names_by_label(["left", "right"])) == ["right", None]
    assert entries([-1, 1], names_by_label({-1: "left", 1: "right"})) == ["left", "right"]
    with pytest.raises(ValueError, match="2; known are 'left', 'right', 0, 1"):
        entries([0, 2], names_by_label(["left", "right"]))


def test_only_sleep_stages_are_reordered():
    assert in_figure_order(["N1", "REM", "Wake"], None) == ["Wake", "REM", "N1"]
    assert in_figure_order(["right", "left"], None) == ["right", "left"]
    assert in_figure_order(["R", "L"], None) == ["R", "L"]
    assert in_figure_order(["N1", "Wake"], ["N1", "Wake"]) == ["N1", "Wake"]
    with pytest.raises(ValueError, match="'N1', 'N1', 'Wake'"):
        in_figure_order(["N1", "Wake"], ["N1", "N1", "Wake"])


def test_areas_differ():
    for names in (["W", "R", "N1", "N2", "N3", "S4", "?"], list(map(str, range(20)))):
        styles = area_styles(names)
        assert len({tuple(style.items()) for style in styles}) == len(names)


def test_missing_labels():
    assert all(map(is_unknown, [None, np.nan, pd.NA, -1]))
    assert not any(map(is_unknown, ["-1", 0, "W"]))
