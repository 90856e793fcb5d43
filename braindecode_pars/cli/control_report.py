"""Behind ``evaluate controls``: methods and subjects, then a table, sentences and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from sklearn.base import BaseEstimator

from braindecode_pars import evaluation, plotting
from braindecode_pars._common.files import replace_file
from braindecode_pars.baselines import CENTRED
from braindecode_pars.cli.evaluation_report import (
    encoders_of,
    method_called,
    methods_of,
    show_scores,
)
from braindecode_pars.cli.terminal import make_console
from braindecode_pars.plotting.style import save_figure

#: Methods without ``--method``: they train no network, so that many draws take minutes.
METHODS = ("probe", "random-encoder", "band-power", "tangent-space", "classical-features")
#: What the others are compared with, if it is among the methods: the first one that is.
AGAINST = ("scratch", "random encoder")
#: Folds of whole subjects where a corpus has no test subjects and none are given.
N_FOLDS = 4


def control_methods(
    names: list[str] | None, encoders: list[str] | None, settings: Mapping[str, Any]
) -> dict[str, BaseEstimator]:
    """Return classifiers by method name; a given encoder is frozen if ``probe`` is a method."""
    by_name = encoders_of(encoders)
    names = names or (list(METHODS) if by_name else None)
    methods = methods_of(names, encoders, settings)
    if names is not None and "probe" in names:
        methods = {name: method for name, method in methods.items() if name not in by_name}
    return methods


def default_against(methods: Iterable[str]) -> str:
    """Return the name of the method from scratch, or else of the random encoder."""
    names = {name.removesuffix(CENTRED): name for name in methods}
    for name in AGAINST:
        if name in names:
            return names[name]
    raise ValueError(
        f"--against is missing: the method to compare with, of {', '.join(names.values())}."
    )


def run_controls(
    methods: Mapping[str, BaseEstimator],
    windows: BaseConcatDataset,
    *,
    against: str | None,
    controls: list[str] | None,
    out: Path,
    **arguments: Any,
) -> None:
    """Score the methods in each control; show and write scores, gains, sentences and figure."""
    against = default_against(methods) if against is None else method_called(against, methods)
    if arguments.get("n_train_subjects") and not arguments["test_subjects"]:
        split = windows.description.get("split", pd.Series(dtype=str))
        arguments["cv"] = None if (split == "test").any() else N_FOLDS
    if controls is not None:
        arguments["controls"] = controls
    scores = evaluation.controls(methods, windows, out=out, **arguments)
    gains = evaluation.control_gains(scores, against=against)
    console = make_console()
    metric = scores["metric"].iloc[0]
    of_metric = scores[scores["metric"] == metric]
    console.print(f"{metric.replace('_', ' ')} in each control")
    show_scores(console, of_metric.assign(metric=of_metric["control"]), "subjects")
    for note in scores.attrs["notes"].values():
        console.print(f"{note}.")
    sentences = evaluation.describe_controls(gains)
    console.print(sentences)
    replace_file(out / "gains.csv", gains.to_csv(index=False))
    replace_file(out / "gains.txt", sentences + "\n")
    save_figure(plotting.control_gains(gains)[0], out / "gains.png", dpi=150)
    console.print(f"Written to {out}: scores.csv, gains.csv, gains.txt, gains.png.")
