"""Figures of control analyses and probing analyses: values, cells, colors, rows and columns."""

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
        for container in ax.containers:
            [bars] = container.lines[2]
            x, _ = container.lines[0].get_data()
            for value, segment in zip(x, bars.get_segments(), strict=True):
                np.testing.assert_allclose(segment[:, 0], [value - 0.01, value + 0.02])
    texts = [text.get_text() for text in panels[0].get_yticklabels()]
    assert texts == ["original", "high-pass filtered", "permuted labels"]
    bottom, top = panels[0].get_ylim()
    assert bottom > top  # the original windows are on top
    with pytest.raises(ValueError, match="several values of dataset"):
        plotting.control_gains(gains.assign(dataset=["a", *"bbbbbbbb"]))
    with pytest.raises(ValueError, match="same key: method A"):
        plotting.control_gains(pd.concat([gains, gains.iloc[[0]].assign(gain=0.9)]))


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


def test_cells_have_scores_and_colors_are_above_chance():
    table = audits("one").assign(value=[0.9, -1.5, -0.001, 0.05, 0.999, 1.0])
    ax = plotting.audit_map(table)
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert rows == ["slope", "subject (chance level .25)"]
    assert [text.get_text() for text in ax.texts] == [".90", "-1.50", ".00", ".05", "1.00", "1.00"]
    np.testing.assert_allclose(ax.images[0].get_array(), [[0.9, 0, 0], [0, 0.749 / 0.75, 1]])
    assert ax.images[0].get_clim() == (0, 1)


def test_encoders_come_first_and_equal_columns_once():
    """A property that the second encoder lacks is blank."""
    table = audits("one", "two")
    table.loc[(table["encoder"] == "two") & (table["features"] == "tokens"), "value"] = 0.5
    ax = plotting.audit_map(table[(table["encoder"] == "one") | (table["property"] == "slope")])
    expected = ["one", "two", "tokens, one", "tokens, two", "random encoder, one"]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    assert columns == [*expected, "random encoder, two"]
    values = ax.images[0].get_array()
    np.testing.assert_allclose(values[0], [0.9, 0.9, 0, 0.5, 0.2, 0.2])
    assert values.mask[1].tolist() == [False, True] * 3
    columns = plotting.audit_map(table).get_xticklabels()
    assert [label.get_text() for label in columns] == [*expected[:4], "random encoder"]


# Subject information ------------------------------------------------------------------------------


def test_each_measure_has_a_panel_with_values_and_nulls():
    rows = [
        ("subject", "explained variance", "nothing", 0.5),
        ("class", "explained variance", "nothing", 0.2),
        ("subject", "balanced accuracy", "nothing", 0.9),
        ("subject", "balanced accuracy", "training subjects", 0.1),
    ]
    table = pd.DataFrame(rows, columns=["property", "measure", "erased", "value"]).assign(null=0.1)
    table = pd.concat([table.assign(features=name) for name in "ab"])
    panels = plotting.subjects_in_features(table)
    assert [ax.get_xlabel() for ax in panels] == ["explained variance", "balanced accuracy"]
    for ax, values in zip(panels, ((0.5, 0.2), (0.9, 0.1)), strict=True):
        lines = [line for line in ax.get_lines() if np.isfinite(line.get_xdata()).any()]
        assert [line.get_xdata().tolist() for line in lines[::2]] == [[v, v] for v in values]
        assert all(line.get_xdata().tolist() == [0.1, 0.1] for line in lines[1::2])
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["a", "b"]
