"""Stored numbers in the text of pages: mean scores, differences, losses and probing analyses.

A number is named ``FILE | SELECTION | VALUE | PART``. FILE is a file in ``docs/measured``, without
its ending. SELECTION is the number of labeled subjects, optionally with "centered", the name of a
control, or "draws 3-19". VALUE is a method, or two methods with " - " between them. PART is the
statistic of a difference.

``sleep/deep | 4 | PARS``
    Mean over subjects, draws and pretraining seeds.
``sleep/deep | 4 | PARS - random encoder | interval``
    Difference, its uncorrected 95 % confidence interval, or the minimum detectable difference
    ("detectable").
``controls/hands | 16 slow | small``, ``audits | both | pars-eegmmidb tokens | slope``
    Score on control signals; property decoded from the tokens or the features of an encoder.
``subjects | none | small | class balanced accuracy | all subjects``
    Value of ``audit_subjects``: property and measure, and which subject information is erased.
``sleep/losses | phase | PARS | all``
    Relative loss, of all pairs of patches or of pairs that are "apart".
``neuroatlas/scores | 4 to 40 Hz mean | PARS - random encoder | interval``
    Passband and token features; see :func:`~stored_neuroatlas.neuroatlas_number`.
``smoothing | 2 | simulated nights | raw``
    Kappa with its standard deviation, "raw" or "smoothed", or their "difference".
"""

from __future__ import annotations

import re
from functools import cache

import pandas as pd
from stored_audits import read_audits
from stored_controls import control_scores
from stored_few_labels import long_scores
from stored_networks import network_scores
from stored_neuroatlas import neuroatlas_number
from stored_scores import MEASURED, RESULTS, result_scores
from stored_subject_information import subject_number

from braindecode_pars.evaluation import paired_tests

__all__ = ["stored", "summary"]


@cache
def _scores(file: str) -> pd.DataFrame:
    folder, _, name = file.rpartition("/")
    if file in RESULTS:
        scores = result_scores(file)
        return scores[scores["subject"] != "all"]
    if folder == "controls":
        return control_scores(name)
    if folder == "networks":
        return _with_result(network_scores(name), name).fillna({"control": "none"})
    scores = long_scores(MEASURED / f"{file}.csv")
    if folder == "few_labels" and name.endswith("_fine_tuned"):
        scores = _with_result(scores, name.removesuffix("_fine_tuned"))
        return scores.fillna({"centered": False})
    return scores


def _with_result(scores: pd.DataFrame, name: str) -> pd.DataFrame:
    """Add the networks of a result that have the same draws."""
    networks = _scores(name)
    is_drawn = networks["seed"].isin(scores["seed"]) & networks["n_train_subjects"].eq(4)
    networks = networks[is_drawn]
    n_draws = networks.groupby("method")["seed"].transform("nunique")
    networks = networks[n_draws == scores["seed"].nunique()]
    both = pd.concat([scores, networks], ignore_index=True)
    return both.assign(dataset=name).astype({"subject": str})


def _selected(file: str, selection: str) -> pd.DataFrame:
    """Return scores by number of labeled subjects; the default is uncentered and unchanged."""
    scores = _scores(file)
    if draws := re.search(r" draws (\d+)-(\d+)$", selection):
        scores = scores[scores["seed"].between(*map(int, draws.groups()))]
        selection = selection[: draws.start()]
    n, _, condition = selection.partition(" ")
    scores = scores[scores["n_train_subjects"] == int(n)]
    if "centered" in scores:
        scores = scores[scores["centered"].eq(condition == "centered")]
    if "control" in scores:
        scores = scores[scores["control"] == (condition or "none")]
    return scores


def _mean(scores: pd.DataFrame, method: str) -> float:
    method_scores = scores[scores["method"] == method]
    if method_scores.empty:
        methods = sorted(scores["method"].unique())
        raise KeyError(f"no scores of method {method!r} are stored. Use one of {methods}.")
    return method_scores["value"].mean()


@cache
def stored(name: str) -> str:
    """Return a stored number as text. Raises KeyError if there is none."""
    file, selection, what, *part = (field.strip() for field in name.split("|"))
    if file == "audits":
        encoder, _, features = what.partition(" ")
        audits = read_audits(selection).set_index(["encoder", "features"]).sort_index()
        properties = audits.loc[(encoder, features or "encoder")].set_index("property")
        return f"{properties.loc[part[0], 'value']:z.2f}"
    if file == "subjects":
        return f"{subject_number(selection, what, *part):z.2f}"
    if file == "neuroatlas/scores":
        return neuroatlas_number(selection, what, *part)
    if file == "sleep/losses":
        losses = pd.read_csv(MEASURED / f"{file}.csv", comment="#")
        keys = ["control", "method", "pairs"]
        return f"{losses.groupby(keys)['loss'].mean().loc[(selection, what, *part)]:z.2f}"
    if file == "smoothing":
        kappa = pd.read_csv(MEASURED / f"{file}.csv", comment="#").query("metric == 'kappa'")
        row = kappa.set_index(["windows", "n_train_subjects"]).loc[(what, int(selection))]
        sign = "+" if part == ["difference"] else ""
        return f"{row[f'{part[0]}_mean']:{sign}.3f} ± {row[f'{part[0]}_std']:.3f}"
    scores = _selected(file, selection)
    if " - " not in what:
        return f"{_mean(scores, what):z.3f}"
    method, reference = what.split(" - ")
    for compared in (method, reference):
        _mean(scores, compared)  # raises KeyError if there are no scores
    pair = scores[scores["method"].isin([method, reference])]
    test = paired_tests(pair, scores["metric"].iloc[0], against=reference).iloc[0]
    if part == ["interval"]:
        return f"{test['ci_low']:z.3f} to {test['ci_high']:z.3f}"
    return f"{test[part[0] if part else 'mean_difference']:z.3f}"


#: Tasks of the summary, with the files of their linear probes and of their networks.
TASKS = {
    ":doc:`Stage 3 vs. 4 <sleep>`": ("sleep/deep", "sleep/networks_deep"),
    ":doc:`Rest vs. mental arithmetic <few_labels>`": (
        "few_labels/arithmetic",
        "few_labels/arithmetic_fine_tuned",
    ),
    ":doc:`Imagined movement vs. rest <few_labels>`": (
        "few_labels/imagery",
        "few_labels/imagery_fine_tuned",
    ),
    ":doc:`Left vs. right fist <hands>`": ("few_labels/hands", "few_labels/hands_fine_tuned"),
}
#: Columns of the summary, and the names of their methods in the files.
COLUMNS = {
    "no pretraining": ("random encoder", "from scratch"),
    "PARS": ("PARS", "PARS without overlap", "PARS, head trained"),
    "``small``": ("small", "small, fine-tuned"),
    "hand-crafted features": ("hand-crafted features",),
}


def summary(n: int) -> pd.DataFrame:
    """Return means with ``n`` labeled subjects, without centering, of features and networks."""
    rows = []
    for task, files in TASKS.items():
        for kind, file in zip(("features", "network"), files, strict=True):
            means = _selected(file, str(n)).groupby("method")["value"].mean()
            row = {"Task": task, "Used as": kind}
            for column, names in COLUMNS.items():
                stored_names = [name for name in names if name in means]
                row[column] = f"{means[stored_names[0]]:z.3f}" if stored_names else ""
            rows.append(row)
    return pd.DataFrame(rows)
