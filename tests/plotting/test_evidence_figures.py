"""Figures of control analyses and probing analyses: values, cells, colors, rows and columns."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting

GAIN = {"A": 0.05, "B": 0.02}
LEFT = {("A", "slow"): 0.01, ("A", "labels"): 0.0, ("B", "slow"): 0.03, ("B", "labels"): -0.01}


@pytest.fixture
def gains():
    rows = []
    for n, (method, control) in product((4, 16), LEFT):
        row = dict(method=method, against="from scratch", control=control, n_train_subjects=n)
        means = dict(gain=GAIN[method] + n / 1000, without=LEFT[method, control])
        for name, mean in means.items():
            row |= {name: mean, f"{name}_low": mean - 0.01, f"{name}_high": mean + 0.02}
        rows.append(row)
    # The baseline has a row for permuted labels, without differences.
    rows.append(dict(rows[-1], method="from scratch", gain=np.nan, without=np.nan))
    return pd.DataFrame(rows).assign(metric="balanced_accuracy")


def points(ax):
    """Return the value in each row, by method."""
    drawn = {}
    for container in ax.containers:
        x, y = container.lines[0].get_data()
        drawn[container.get_label()] = dict(zip(np.round(y).astype(int), x, strict=True))
    return drawn


def test_differences_are_in_their_rows_and_panels(gains):
    panels = plotting.control_gains(gains)
    for ax, n in zip(panels, (4, 16), strict=True):
        assert points(ax) == {
            "A": {0: pytest.approx(0.05 + n / 1000), 1: 0.01, 2: 0.0},
            "B": {0: pytest.approx(0.02 + n / 1000), 1: 0.03, 2: -0.01},
        }
        assert ax.get_title() == f"{n} labeled training subjects"
        assert ax.get_xlabel() == "difference in balanced accuracy\nto from scratch (95 % CI)"
        for container in ax.containers:
            [bars] = container.lines[2]
            x, _ = container.lines[0].get_data()
            for value, segment in zip(x, bars.get_segments(), strict=True):
                np.testing.assert_allclose(segment[:, 0], [value - 0.01, value + 0.02])
    texts = [text.get_text() for text in panels[0].get_yticklabels()]
    assert texts == ["original", "high-pass filtered", "permuted labels"]
    bottom, top = panels[0].get_ylim()
    assert bottom > top  # the original windows are on top
    [legend] = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda gains: gains.drop(columns="without_low"), "gains lacks without_low"),
        (
            lambda gains: gains.assign(dataset=["a", "b"] * 4 + ["a"]),
            "gains have several values of dataset",
        ),
        (lambda gains: pd.concat([gains, gains.iloc[[0]].assign(gain=0.9)]), "method A.*twice"),
    ],
)
def test_wrong_tables_are_named(gains, change, message):
    with pytest.raises(ValueError, match=message):
        plotting.control_gains(change(gains))


# Audits ---------------------------------------------------------------------------------------

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


def test_cells_have_scores_and_colors_are_above_chance():
    ax = plotting.audit_map(audits("one"))
    assert titles(ax.get_yticklabels()) == ["slope", "subject (chance level .25)"]
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


def test_missing_property_of_an_encoder_is_blank():
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
    with pytest.raises(ValueError, match=r"audits .*chance"):
        plotting.audit_map(table.drop(columns="chance"))
    with pytest.raises(ValueError, match="twice"):
        plotting.audit_map(pd.concat([table, table]))
    with pytest.raises(ValueError, match="empty"):
        plotting.audit_map(table[:0])


# Subject information ------------------------------------------------------------------------------


def subject_information():
    rows = [
        dict(features=name, property=prop, measure=measure, erased=erased, value=value, null=0.1)
        for name in ("a", "b")
        for prop, measure, erased, value in (
            ("subject", "explained variance", "nothing", 0.5),
            ("class", "explained variance", "nothing", 0.2),
            ("subject", "balanced accuracy", "nothing", 0.9),
            ("subject", "balanced accuracy", "training subjects", 0.1),
        )
    ]
    return pd.DataFrame(rows)


def test_each_measure_has_a_panel_with_values_and_nulls():
    panels = plotting.subjects_in_features(subject_information())
    assert [ax.get_xlabel() for ax in panels] == ["explained variance", "balanced accuracy"]
    for ax, values in zip(panels, ((0.5, 0.2), (0.9, 0.1)), strict=True):
        lines = [line for line in ax.get_lines() if np.isfinite(line.get_xdata()).any()]
        assert [line.get_xdata().tolist() for line in lines[::2]] == [[v, v] for v in values]
        assert {line.get_marker() for line in lines[1::2]} == {"|"}
        assert all(line.get_xdata().tolist() == [0.1, 0.1] for line in lines[1::2])
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["a", "b"]
    [legend] = panels[0].figure.legends
    texts = [text.get_text().replace("\n", " ") for text in legend.get_texts()]
    assert texts == ["subject", "class", "subject, LEACE fitted on training subjects"]


def test_subject_information_with_a_missing_column_raises():
    with pytest.raises(ValueError, match="null"):
        plotting.subjects_in_features(subject_information().drop(columns="null"))
