"""Tables of ``docs/measured/neuroatlas``: the protocol of NeuroAtlas on EEGMAT."""

from __future__ import annotations

from functools import cache

import pandas as pd
from stored_scores import (
    DETECTABLE,
    DIFFERENCE,
    HIGHER,
    MEASURED,
    P_HOLM,
    difference_cell,
    n_higher_cell,
)

from braindecode_pars.evaluation import paired_tests
from braindecode_pars.evaluation.paired_tests import holm

__all__ = [
    *("FOLDER", "equality_table", "neuroatlas_losses", "neuroatlas_number"),
    *("neuroatlas_scores", "neuroatlas_table", "neuroatlas_tests"),
]

FOLDER = MEASURED / "neuroatlas"
RANDOM, PARS, SHAM = "random encoder", "PARS", "PARS, sham"
#: The earlier pretraining, in which PARS did not learn its pretext task.
PARS_4_S, SHAM_4_S = "PARS, windows of 4 s", "PARS, sham, windows of 4 s"
LOG_BAND_POWER = "log band power"
#: Methods in the order of the table.
METHODS = (
    *(LOG_BAND_POWER, "hand-crafted features", "tangent space"),
    *(RANDOM, SHAM, PARS, SHAM_4_S, PARS_4_S, "pars-sleep", "small"),
)
#: Stored names of token features, and their names in the table.
TOKENS = {"": "", "mean": "mean of tokens", "concatenated": "concatenated tokens"}
#: Comparisons within a band and with the same token features; the first is the primary one.
COMPARED = (
    *((PARS, SHAM), (PARS, RANDOM), (PARS_4_S, SHAM_4_S), (PARS_4_S, RANDOM)),
    *(("pars-sleep", RANDOM), ("small", RANDOM)),
)
#: Comparisons with a method without tokens.
ACROSS = (("small", LOG_BAND_POWER), ("small", "tangent space"))
#: Control of the scores that are not from the positive control.
NO_CONTROL = "none"
RHYTHM = "added rhythm"
KEYS = ["band", "control", "method", "tokens", "pretraining_seed"]


@cache
def neuroatlas_scores() -> pd.DataFrame:
    """Return tidy scores with the columns ``band``, ``control`` and ``tokens``."""
    wide = pd.read_csv(FOLDER / "scores.csv", comment="#", keep_default_na=False)
    wide["pretraining_seed"] = pd.to_numeric(wide["pretraining_seed"])
    scores = wide.melt(KEYS, var_name="subject")
    scores["value"] = pd.to_numeric(scores["value"])
    n_subjects = scores["subject"].nunique()
    design = dict(protocol="leave_one_subject_out", dataset="EEGMAT", seed=0)
    return scores.assign(n_train_subjects=n_subjects - 1, metric="balanced_accuracy", **design)


def neuroatlas_table(control: str = NO_CONTROL) -> pd.DataFrame:
    """Return mean ± population SD over subjects, and the range of means over seeds."""
    scores = neuroatlas_scores()
    scores = scores[scores["control"] == control]
    rows = []
    for method in METHODS:
        for tokens, title in TOKENS.items():
            part = scores[scores["method"].eq(method) & scores["tokens"].eq(tokens)]
            if not part.empty:
                row = {"method": method, "features": title}
                rows.append(row | {band: _cell(cells) for band, cells in part.groupby("band")})
    table = pd.DataFrame(rows).fillna("")
    bands = sorted(scores["band"].unique(), key=_lowest, reverse=True)
    return table[["method", "features", *bands]]


def _lowest(band: str) -> float:
    return float(band.split()[0])


def _cell(part: pd.DataFrame) -> str:
    subjects = part.groupby("subject")["value"].mean()
    text = f"{subjects.mean():.3f} ± {subjects.std(ddof=0):.3f}"
    if part["pretraining_seed"].nunique() > 1:
        seed_means = part.groupby("pretraining_seed")["value"].mean()
        text += f" ({seed_means.min():.3f} to {seed_means.max():.3f})"
    return text


@cache
def _tests() -> pd.DataFrame:
    """Return the tests of all comparisons of the page, with Holm-corrected p-values."""
    scores = neuroatlas_scores()
    scores = scores[scores["control"] == NO_CONTROL]
    rows = []
    for band in sorted(scores["band"].unique(), key=_lowest, reverse=True):
        for tokens in ("mean", "concatenated"):
            part = scores[scores["band"].eq(band) & scores["tokens"].isin([tokens, ""])]
            for method, reference in (*COMPARED, *ACROSS):
                pair = part[part["method"].isin([method, reference])]
                if pair["method"].nunique() == 2:
                    test = paired_tests(pair, "balanced_accuracy", against=reference).iloc[0]
                    rows.append(test.to_dict() | dict(band=band, tokens=tokens))
    tests = pd.DataFrame(rows)
    return tests.assign(p_holm=holm(tests["p"]))


def neuroatlas_tests() -> pd.DataFrame:
    """Format the tests of all comparisons."""
    return pd.DataFrame(
        [
            {
                "passband": str(test["band"]),
                "features": TOKENS[test["tokens"]],
                "compared methods": f"{test['method_a']} minus {test['method_b']}",
                DIFFERENCE: difference_cell(test),
                HIGHER: n_higher_cell(test),
                P_HOLM: f"{test['p_holm']:.2g}",
                DETECTABLE: f"{test['detectable']:.3f}",
            }
            for _, test in _tests().iterrows()
        ]
    )


def neuroatlas_number(selection: str, what: str, part: str = "mean_difference") -> str:
    """Return a number as text: ``4 to 40 Hz mean | PARS - random encoder | interval``.

    The selection is a band, and the token features or nothing; "added rhythm" after the band
    selects the positive control.
    """
    if " - " in what:
        method, reference = what.split(" - ")
        tests = _tests().set_index(["band", "tokens", "method_a", "method_b"]).sort_index()
        band, _, tokens = selection.rpartition(" ")
        test = tests.loc[(band, tokens, method, reference)]
        if part == "interval":
            return f"{test['ci_low']:z.3f} to {test['ci_high']:z.3f}"
        return f"{test[part]:z.2g}" if part == "p_holm" else f"{test[part]:z.3f}"
    scores = neuroatlas_scores()
    names = scores["band"] + scores["tokens"].radd(" ").str.rstrip()
    names = names.where(scores["control"].eq(NO_CONTROL), names + " " + scores["control"])
    part_scores = scores[names.eq(selection) & scores["method"].eq(what)]
    if part_scores.empty:
        raise KeyError(f"no score of {what!r} is stored for {selection!r}")
    return f"{part_scores['value'].mean():z.3f}"


def neuroatlas_losses() -> pd.DataFrame:
    """Return steps, time and relative losses of the pretrainings, by band and method."""
    stored = pd.read_csv(FOLDER / "losses.csv", comment="#")
    order = [*METHODS, *sorted({*stored["method"]} - {*METHODS})]
    stored["method"] = pd.Categorical(stored["method"], order)
    stored["band"] = pd.Categorical(stored["band"], sorted({*stored["band"]}, key=_lowest)[::-1])
    rows = []
    for (band, method), part in stored.groupby(["band", "method"], observed=True):
        rows.append(
            {
                "passband": str(band),
                "pretraining": str(method),
                "runs": str(len(part)),
                "steps": " and ".join(f"{n:,}" for n in sorted({*part["steps"]})),
                "CPU seconds": f"{part['cpu_seconds'].mean():.0f}",
                "relative training loss": _mean_and_range(part["relative_loss"]),
                "relative held-out loss": _mean_and_range(part["held_out_loss"]),
            }
        )
    return pd.DataFrame(rows)


def _mean_and_range(losses: pd.Series) -> str:
    if losses.isna().all():
        return ""
    return f"{losses.mean():.3f} ({losses.min():.3f} to {losses.max():.3f})"


def equality_table() -> pd.DataFrame:
    """Return the comparison of this package with neuroatlas-bench."""
    stored = pd.read_csv(FOLDER / "equality.csv", comment="#")
    return pd.DataFrame(
        [
            {
                "log band power of": row["features"],
                "braindecode_pars": f"{row['mean']:.6f} ± {row['sd']:.6f}",
                "neuroatlas-bench": f"{row['mean_neuroatlas']:.6f} ± {row['sd_neuroatlas']:.6f}",
                "folds": str(row["n_folds"]),
                "different splits": str(row["n_different_splits"]),
                "different C": str(row["n_different_c"]),
                "largest difference": f"{row['largest_difference']:.1e}",
            }
            for _, row in stored.iterrows()
        ]
    )
