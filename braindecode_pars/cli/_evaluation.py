"""The functions behind ``evaluate``: load data, run a protocol, print and draw its scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from matplotlib.axes import Axes
from sklearn.base import BaseEstimator

from braindecode_pars import evaluation, plotting
from braindecode_pars._subjects import in_corpus
from braindecode_pars.baselines import make_methods
from braindecode_pars.cli._console import make_console
from braindecode_pars.cli._costs import show_costs
from braindecode_pars.cli._scores import save_figure, show_differences, show_scores
from braindecode_pars.storage._hub import model_folder

__all__ = [
    "ablation",
    "compare",
    "label_efficiency",
    "leave_one_subject_out",
    "methods_of",
    "subjects_of",
    "transfer",
]

Draw = Callable[..., Axes]


def methods_of(
    names: list[str] | None,
    encoders: list[str] | None,
    settings: Mapping[str, Any],
    default: tuple[str, ...] = ("pars", "scratch", "band-power", "tangent-space"),
) -> dict[str, BaseEstimator]:
    """Return classifiers by method name."""
    by_name = encoders_of(encoders)
    for encoder in by_name.values():
        model_folder(encoder)  # an unknown name ends the command before methods are built
    if by_name.keys() - {"pretrained"}:  # encoders of several tasks are compared as they are
        default = tuple(name for name in default if name != "pars")
    return make_methods(names or default, encoder=by_name or None, **settings)


def encoders_of(options: list[str] | None) -> dict[str, str]:
    """Return encoders by name from options NAME=FOLDER; a single one may have no name.

    Raises
    ------
    ValueError
        When one of several encoders has no name, or two have the same.
    """
    options = options or []
    if len(options) == 1 and _is_nameless(options[0]):
        return {"pretrained": options[0]}
    nameless = [option for option in options if _is_nameless(option)]
    if nameless:
        raise ValueError(
            f"--encoder {nameless[0]} needs a name, as one of several encoders: "
            f"--encoder NAME={nameless[0]}."
        )
    by_name = dict(option.split("=", 1) for option in options)
    if len(by_name) < len(options):
        raise ValueError(f"--encoder uses a name twice: {' '.join(options)}.")
    return by_name


def _is_nameless(option: str) -> bool:
    """Whether an option is a folder or model without a name; the path of a folder may have "="."""
    return "=" not in option or Path(option).is_dir()


def subjects_of(windows: BaseConcatDataset, names: list[str] | None) -> list | None:
    """Return the corpus' own values for subjects given as text; None if no subjects are given.

    A name may have the corpus in front, as in stores and cards: "tuab:aaaaaaab".
    """
    if not names:
        return None
    known, people = {}, {}
    for recording in windows.datasets:
        subject = recording.description["subject"]
        known[str(subject)] = subject
        people[str(in_corpus(recording.description.get("corpus"), subject))] = subject
    unknown = [name for name in names if name not in {**people, **known}]
    if unknown:
        raise ValueError(f"Unknown subject {', '.join(unknown)}; known are {', '.join(known)}.")
    return [{**people, **known}[name] for name in names]


def compare(
    methods: Mapping[str, BaseEstimator],
    windows: BaseConcatDataset,
    dataset: str,
    *,
    out: Path,
    against: str | None = None,
    **arguments: Any,
) -> None:
    """Run the protocol of this name, and show its scores and tests of their differences."""
    if against is not None:
        against = _method_called(against, methods)
    scores = evaluation.compare(methods, windows, dataset=dataset, out=out, **arguments)
    _report(scores, out, "subjects", plotting.paired_bars)
    show_differences(make_console(), scores, against, out)
    show_costs(make_console(), methods, {dataset: windows}, scores, out)


def _method_called(name: str, methods: Mapping[str, BaseEstimator]) -> str:
    """Return the name in tables of a method, from this name or that of --method."""
    names = {_plain(method): method for method in methods}
    if _plain(name) not in names:
        raise ValueError(f"--against {name} is no method; methods are {', '.join(methods)}.")
    return names[_plain(name)]


def _plain(name: str) -> str:
    return name.casefold().replace("-", " ")


def leave_one_subject_out(
    methods: Mapping[str, BaseEstimator],
    windows: BaseConcatDataset,
    dataset: str,
    *,
    out: Path,
    **arguments: Any,
) -> None:
    """Run the protocol of this name and show its scores."""
    scores = evaluation.leave_one_subject_out(
        methods, windows, dataset=dataset, out=out, **arguments
    )
    _report(scores, out, "subjects", plotting.paired_bars)
    show_costs(make_console(), methods, {dataset: windows}, scores, out)


def label_efficiency(
    methods: Mapping[str, BaseEstimator],
    windows: BaseConcatDataset,
    dataset: str,
    *,
    out: Path,
    **arguments: Any,
) -> None:
    """Run the protocol of this name and show its scores."""
    scores = evaluation.label_efficiency(methods, windows, dataset=dataset, out=out, **arguments)
    _report(scores, out, "seeds", plotting.label_efficiency)
    show_costs(make_console(), methods, {dataset: windows}, scores, out)


def transfer(
    methods: Mapping[str, BaseEstimator],
    windows: Mapping[str, BaseConcatDataset],
    *,
    out: Path,
    **arguments: Any,
) -> None:
    """Run the protocol of this name and show its scores."""
    scores = evaluation.transfer(methods, windows, out=out, **arguments)
    _report(scores, out, "seeds", plotting.transfer)
    show_costs(make_console(), methods, windows, scores, out)


def ablation(
    settings: Mapping[str, Any],
    windows: BaseConcatDataset,
    dataset: str,
    grid: str,
    *,
    out: Path,
    **arguments: Any,
) -> None:
    """Run the protocol of this name with PARS and show its scores."""
    (estimator,) = make_methods(["pars"], **settings).values()
    varied = evaluation.GRIDS[grid]
    scores = evaluation.ablation(estimator, windows, varied, dataset=dataset, out=out, **arguments)

    # A line for each value of one setting over the values of another, as in the paper; a grid of
    # one setting like the methods of a transfer.
    axes = [name for name in varied if name in scores and scores[name].nunique() > 1]
    if len(axes) != 2:
        _report(scores, out, "seeds", plotting.transfer)
        return
    lines, x = axes

    def draw(scores: pd.DataFrame, metric: str, label: str | None) -> Axes:
        return plotting.ablation_lines(scores, x=x, lines=lines, metric=metric, label=label)

    _report(scores, out, "seeds", draw)


def _report(scores: pd.DataFrame, out: Path, over: str, draw: Draw) -> None:
    console = make_console()
    show_scores(console, scores, over)
    figure = save_figure(scores, out, draw)
    console.print(f"Written to {out}: scores.csv, {figure.name}, folds/.")
