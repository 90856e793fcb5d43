"""Tables and figure of ``test_rates.csv`` and ``study_rates.csv``: error rates and power."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from stored_scores import MEASURED

from braindecode_pars.plotting.style import remove_frame, series_style

__all__ = [
    "by_design",
    "by_variances",
    "rates",
    "rates_figure",
    "study_rates",
    "study_rates_by_subjects",
    "study_rates_by_variances",
]

#: Stored columns of error rates and the names of the tests.
TESTS = {
    "two_way": "crossed random effects",
    "corrected": "corrected t-test of means",
    "wilcoxon": "Wilcoxon's test of means",
}
#: Parts of names in ``test_rates.csv`` and ``study_rates.csv`` that are displayed differently.
_DISPLAYED = {r"\brest\b": "residual", "own subjects of": "different subjects in"}
_DISPLAYED_OF_STUDY = {"labeled in groups": "second estimate"}
#: Pattern of variances that were measured in stored scores; all other variances are extreme.
_MEASURED = r"^(?:arithmetic|imagery|hands|development|control|nights)"
_CROSSED = "crossed"


def rates() -> pd.DataFrame:
    """Return the stored error rates, with the columns ``design`` and ``measured``."""
    stored = pd.read_csv(MEASURED / "test_rates.csv", comment="#").replace(regex=_DISPLAYED)
    sizes = [stored[name].astype(str) for name in ("n_subjects", "n_draws", "n_pretrainings")]
    design = (sizes[0] + " x " + sizes[1] + " x " + sizes[2]).str.removesuffix(" x 1")
    kind = stored["kind"].where(stored["kind"] != _CROSSED, "")
    stored["design"] = (design + ", " + kind).str.removesuffix(", ")
    stored["measured"] = stored["variances"].str.contains(_MEASURED)
    return stored


def by_design() -> pd.DataFrame:
    """Return the lowest and the highest error rate by design, for measured variances."""
    stored = rates()
    shown = stored[stored["measured"] | stored["kind"].eq("cross-validation")]
    return _table(shown.groupby("design", sort=False), "subjects x draws x pretraining seeds")


def by_variances() -> pd.DataFrame:
    """Return the lowest and the highest error rate by extreme variances, over all designs."""
    stored = rates()
    shown = stored[~stored["measured"] & stored["kind"].eq(_CROSSED)]
    return _table(shown.groupby("variances", sort=False), "variances")


def _table(groups: pd.core.groupby.DataFrameGroupBy, title: str) -> pd.DataFrame:
    columns = {column: f"error rate, {name}" for column, name in TESTS.items()}
    columns["power"] = "power, crossed random effects"
    return pd.DataFrame(
        [
            {title: name, **{shown: _range(part[column]) for column, shown in columns.items()}}
            for name, part in groups
        ]
    )


def _range(values: pd.Series) -> str:
    if values.isna().all():
        return ""
    low, high = (f"{value:.3f}" for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def study_rates() -> pd.DataFrame:
    """Return the stored error rates of studies with two folds."""
    return pd.read_csv(MEASURED / "study_rates.csv", comment="#").replace(regex=_DISPLAYED_OF_STUDY)


def study_rates_by_subjects() -> pd.DataFrame:
    """Return error rates over all variances, and power for measured ones, by number of subjects."""
    stored = study_rates()
    is_extra = stored["variances"].str.contains("unlabeled|correlated")
    stored = stored[~is_extra & stored["n_pretrainings"].eq(3)]
    rows = []
    for n_subjects, part in stored.groupby("n_subjects"):
        power = part.set_index("variances")["power_folds"]
        row = {
            "number of subjects": str(n_subjects),
            "error rate, crossed_mean_of_folds": _range(part["folds"]),
            "error rate, crossed_mean, one pretraining seed": _range(part["crossed"]),
        }
        for name in ("sleep", "sleep, second estimate", "arithmetic"):
            row[f"power, {name}"] = f"{power[name]:.2f}"
        rows.append(row)
    return pd.DataFrame(rows)


def study_rates_by_variances() -> pd.DataFrame:
    """Return the error rates of each set of variances, over 12 to 100 subjects."""
    stored = study_rates()
    stored = stored[stored["n_subjects"].ge(12) & stored["n_pretrainings"].eq(3)]
    return pd.DataFrame(
        [
            {
                "variances": name,
                "error rate, crossed_mean_of_folds": _range(part["folds"]),
                "error rate, crossed_mean, one pretraining seed": _range(part["crossed"]),
            }
            for name, part in stored.groupby("variances", sort=False)
        ]
    )


def rates_figure() -> Figure:
    """Plot error rates by design, for measured variances (left) and extreme variances (right)."""
    stored = rates()
    stored = stored[stored["kind"] == _CROSSED]
    designs = list(dict.fromkeys(stored["design"]))
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 4.8), sharey=True, layout="constrained")
    for ax, is_measured in zip(axes, (True, False), strict=True):
        part = stored[stored["measured"] == is_measured]
        ax.axvspan(0.03, 0.07, color="0.9", label="0.03 to 0.07")
        for number, (column, name) in enumerate(TESTS.items()):
            y = part["design"].map(designs.index) + 0.22 * (number - 1)
            style = {**series_style(number), "linestyle": "none", "markersize": 5}
            ax.plot(part[column], y, label=name, alpha=0.8, clip_on=False, **style)
        remove_frame(ax, grid="x")
        ax.set(title="measured variances" if is_measured else "extreme variances")
    axes[0].set_xlim(0, 0.12)
    axes[1].set_xlim(0, 1)
    axes[0].set_yticks(np.arange(len(designs)), designs)
    axes[0].invert_yaxis()
    axes[0].set_ylabel("subjects x draws (x pretraining seeds)")
    figure.supxlabel("proportion of significant tests without a true difference", fontsize="medium")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return figure
