"""Numbers of ``docs/measured`` in a text: means, differences, losses and what features hold.

A number is named as ``FILE | SELECTION | WHAT | PART``: a file below ``docs/measured``, without its
ending; the number of labeled people, "centered", the name of a control or "draws 3-19"; a method,
or two with " - " between them; and, of a difference, another part of its test.

``sleep/deep | 4 | PARS``
    A mean over people, draws and pretrainings.
``sleep/deep | 4 | PARS - random encoder | interval``
    A difference, or its interval of 95 %, or the smallest one that could be found ("detectable").
``controls/hands | 16 slow | small``, ``audits | both | pars-eegmmidb tokens | slope``
    A score on changed windows; what features hold (the tokens, or those of an encoder).
``subjects | none | small | class balanced accuracy | all subjects``
    A number of ``audit_subjects``: what it is of, and what is erased.
``sleep/losses | phase | PARS | all``
    A loss relative to chance: of all pairs of patches, or of those that are apart.
"""

from __future__ import annotations

import re
from functools import cache

import pandas as pd
from stored_audits import read_audits
from stored_controls import control_scores
from stored_few_labels import long_scores
from stored_networks import network_scores
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
    others = _scores(name)
    others = others[others["seed"].isin(scores["seed"]) & others["n_train_subjects"].eq(4)]
    n_draws = others.groupby("method")["seed"].transform("nunique")
    others = others[n_draws == scores["seed"].nunique()]
    both = pd.concat([scores, others], ignore_index=True)
    return both.assign(dataset=name).astype({"subject": str})


def _selected(file: str, selection: str) -> pd.DataFrame:
    """Return the scores of a number of labeled people, plain and unchanged where not said."""
    scores = _scores(file)
    if found := re.search(r" draws (\d+)-(\d+)$", selection):
        scores = scores[scores["seed"].between(*map(int, found.groups()))]
        selection = selection[: found.start()]
    n, _, rest = selection.partition(" ")
    scores = scores[scores["n_train_subjects"] == int(n)]
    if "centered" in scores:
        scores = scores[scores["centered"].eq(rest == "centered")]
    if "control" in scores:
        scores = scores[scores["control"] == (rest or "none")]
    return scores


def _mean(scores: pd.DataFrame, method: str) -> float:
    own = scores[scores["method"] == method]
    if own.empty:
        raise KeyError(f"no scores of {method!r}, but of {sorted(scores['method'].unique())}")
    return own["value"].mean()


@cache
def stored(name: str) -> str:
    """Return a number as a text shows it; a KeyError tells that there is none."""
    file, selection, what, *part = (each.strip() for each in name.split("|"))
    if file == "audits":
        encoder, _, features = what.partition(" ")
        audits = read_audits(selection).set_index(["encoder", "features"]).sort_index()
        own = audits.loc[(encoder, features or "encoder")].set_index("property")
        return f"{own.loc[part[0], 'value']:z.2f}"
    if file == "subjects":
        return f"{subject_number(selection, what, *part):z.2f}"
    if file == "sleep/losses":
        losses = pd.read_csv(MEASURED / f"{file}.csv", comment="#")
        keys = ["control", "method", "pairs"]
        return f"{losses.groupby(keys)['loss'].mean().loc[(selection, what, *part)]:z.2f}"
    scores = _selected(file, selection)
    if " - " not in what:
        return f"{_mean(scores, what):z.3f}"
    method, other = what.split(" - ")
    for each in (method, other):
        _mean(scores, each)
    pair = scores[scores["method"].isin([method, other])]
    test = paired_tests(pair, scores["metric"].iloc[0], against=other).iloc[0]
    if part == ["interval"]:
        return f"{test['ci_low']:z.3f} to {test['ci_high']:z.3f}"
    return f"{test[part[0] if part else 'mean_difference']:z.3f}"


#: Questions of the summary: what is asked, and its files of features and of networks.
QUESTIONS = {
    "Stage 3 or 4 (:doc:`sleep`)": ("sleep/deep", "sleep/networks_deep"),
    "Rest or arithmetic (:doc:`few_labels`)": (
        "few_labels/arithmetic",
        "few_labels/arithmetic_fine_tuned",
    ),
    "Imagery or rest (:doc:`few_labels`)": (
        "few_labels/imagery",
        "few_labels/imagery_fine_tuned",
    ),
    "Left vs right fist (:doc:`hands`)": ("few_labels/hands", "few_labels/hands_fine_tuned"),
}
#: Columns of the summary, and the names of their methods in the files.
COLUMNS = {
    "no pretraining": ("random encoder", "from scratch"),
    "PARS": ("PARS", "PARS without overlap", "PARS, head trained"),
    "``small``": ("small", "small, fine-tuned"),
    "hand-crafted features": ("hand-crafted features",),
}


def summary(n: int) -> pd.DataFrame:
    """Return means with ``n`` labeled people, not centered: features and networks of questions."""
    rows = []
    for question, files in QUESTIONS.items():
        for kind, file in zip(("features", "network"), files, strict=True):
            means = _selected(file, str(n)).groupby("method")["value"].mean()
            row = {"Question": question, "Used as": kind}
            for column, names in COLUMNS.items():
                known = [name for name in names if name in means]
                row[column] = f"{means[known[0]]:z.3f}" if known else ""
            rows.append(row)
    return pd.DataFrame(rows)
