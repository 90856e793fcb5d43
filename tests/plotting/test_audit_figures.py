"""The map of audits: cells, colours, rows and columns."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting

VALUES = {"slope": (0.0, [0.9, -0.3, 0.2]), "subject": (0.25, [0.4, 0.1, 1.0])}
FEATURES = ["encoder", "tokens", "random encoder"]


def audits(*encoders):
    rows = []
    for encoder, (name, (chance, values)) in product(encoders, VALUES.items()):
        for features, value in zip(FEATURES, values, strict=True):
            rows.append(
                dict(encoder=encoder, features=features, property=name, value=value, chance=chance)
            )
    return pd.DataFrame(rows)


def titles(labels):
    return [label.get_text() for label in labels]


def test_cells_have_scores_and_colours_are_above_chance():
    ax = plotting.audit_map(audits("one"))
    assert titles(ax.get_yticklabels()) == ["slope", "subject (chance .25)"]
    assert titles(ax.get_xticklabels()) == ["one", "tokens", "random encoder"]
    assert [text.get_text() for text in ax.texts] == [".90", "-.30", ".20", ".40", ".10", "1.00"]
    expected = [[0.9, 0, 0.2], [0.2, 0, 1]]
    np.testing.assert_allclose(ax.images[0].get_array(), expected)
    assert ax.images[0].get_clim() == (0, 1)


def test_encoders_come_first_and_equal_columns_once():
    table = audits("one", "two")
    table.loc[(table["encoder"] == "two") & (table["features"] == "tokens"), "value"] = 0.5
    ax = plotting.audit_map(table)
    expected = ["one", "two", "tokens, one", "tokens, two", "random encoder"]
    assert titles(ax.get_xticklabels()) == expected
    np.testing.assert_allclose(ax.images[0].get_array()[0], [0.9, 0.9, 0, 0.5, 0.2])


def test_a_property_that_one_encoder_lacks_is_blank():
    table = audits("one", "two").iloc[:-3]
    ax = plotting.audit_map(table)
    mask = ax.images[0].get_array().mask
    assert mask.sum() == 3
    assert len(ax.texts) == 2 * 6 - 3


def test_small_and_negative_scores_have_two_digits():
    table = audits("one").assign(value=[0.0, -0.001, -1.5, 0.05, 0.999, 0.25])
    shown = [text.get_text() for text in plotting.audit_map(table).texts]
    assert shown == [".00", ".00", "-1.50", ".05", "1.00", ".25"]


def test_tables_that_cannot_be_drawn():
    table = audits("one")
    with pytest.raises(ValueError, match="audits lacks chance"):
        plotting.audit_map(table.drop(columns="chance"))
    with pytest.raises(ValueError, match="twice"):
        plotting.audit_map(pd.concat([table, table]))
    with pytest.raises(ValueError, match="no row"):
        plotting.audit_map(table[:0])
