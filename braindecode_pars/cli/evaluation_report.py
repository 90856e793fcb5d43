"""Implementation of the command ``evaluate``: run protocols, and print scores, costs and tests.

Settings come from the paper and from options. Data come from :func:`datasets.load
<braindecode_pars.datasets.load>`.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset

from braindecode_pars import baselines, datasets, evaluation, paper, plotting
from braindecode_pars._common import checks, files, model_files, subjects, tables
from braindecode_pars.baselines.methods import shown_name
from braindecode_pars.cli.terminal import named_pairs, print_frame, show, value_of, values
from braindecode_pars.datasets import any_source
from braindecode_pars.evaluation import splitting

#: Default methods without ``--method`` and ``--encoder``.
_DEFAULT = ("pars", "scratch", "band-power", "tangent-space")
#: Default methods of protocols with ``--encoder``. The methods of controls do not train networks.
_DEFAULT_OF = {
    "transfer": ("scratch", "band-power"),
    "controls": ("probe", "random-encoder", "band-power", "tangent-space", "classical-features"),
}
#: Default reference methods of controls; the first one that is among the methods is used.
_AGAINST = ("from scratch", "random encoder")
#: Number of folds of subjects for controls, if there are no fixed test subjects.
_FOLDS = 4


def methods_of(
    protocol: str, names: list[str] | None, encoders: list[str] | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the classifiers of a protocol by method name.

    For controls with the method probe, encoders are only used in linear probes, not in networks.
    """
    by_name = encoders_of(encoders)
    for encoder in by_name.values():
        model_files.model_folder(encoder)  # raises an error for unknown names
    if not names:
        names = [*(_DEFAULT_OF.get(protocol, _DEFAULT) if by_name else _DEFAULT)]
        if by_name.keys() - {"pretrained"}:  # named encoders are compared without pretraining
            names = [name for name in names if name != "pars"]
    methods = baselines.make_methods(names, encoder=by_name or None, **settings)
    if protocol == "controls" and "probe" in names:  # encoders are used in linear probes only
        networks = (baselines.FROZEN, baselines.ALL_WEIGHTS)
        return {k: method for k, method in methods.items() if not any(x in k for x in networks)}
    return methods


def encoders_of(options: list[str] | None) -> dict[str, str]:
    """Return encoders by name from options NAME=FOLDER. A single encoder needs no name.

    Raises
    ------
    ValueError
        If there are several encoders and an encoder has no name, or two have the same name.
    """
    options = options or []
    if len(options) == 1 and ("=" not in options[0] or Path(options[0]).is_dir()):
        return {"pretrained": options[0]}
    return named_pairs(options, "--encoder", "NAME=FOLDER")


def find_subjects(windows: BaseConcatDataset, names: list[str] | None) -> list | None:
    """Return the subject identifiers in the dataset for the values of ``--test-subject``.

    A name may start with the corpus, as in stores and encoder cards: "tuab:aaaaaaab". If there are
    no names, return None.
    """
    subject_of: dict[str, Any] = {}
    for recording in windows.datasets:
        subject, corpus = (recording.description.get(name) for name in ("subject", "corpus"))
        subject_of |= {str(subject): subject, str(subjects.in_corpus(corpus, subject)): subject}
    for name in names or ():
        checks.choice(*subject_of).check("--test-subject", name)
    return [subject_of[name] for name in names or ()] or None


def run(
    protocol: str,
    methods: Mapping[str, Any],
    windows: BaseConcatDataset,
    *,
    out: Path,
    against: str | None = None,
    **arguments: Any,
) -> None:
    """Run a protocol and print scores and costs; for compare, also tests of differences."""
    protocol = protocol.replace("-", "_")
    if against is not None:
        against = reference_method(against, methods)
    if protocol == "compare" and len(methods) < 2:
        raise ValueError(
            f"The protocol 'compare' requires at least two methods, got {', '.join(methods)}. Use "
            "the protocol 'leave-one-subject-out' to score a single method."
        )
    data: Any = windows
    if protocol == "transfer":
        data = {(name := arguments.pop("dataset")): windows}
        if "test_subjects" in arguments:
            arguments["test_subjects"] = {name: arguments["test_subjects"]}
    scores = getattr(evaluation, protocol)(methods, data, out=out, **arguments)
    is_curve = protocol == "label_efficiency"
    _report(scores, out, plotting.label_efficiency if is_curve else plotting.subject_dots)
    if protocol == "compare":
        show_differences(scores, against, out)
    show_costs(methods, windows, scores, out)


def show_controls(
    methods: Mapping[str, Any],
    windows: BaseConcatDataset,
    *,
    against: str | None,
    out: Path,
    **arguments: Any,
) -> None:
    """Score the methods on each control signal; print and write scores, differences and figure."""
    against = reference_method(against, methods)
    if "n_train_subjects" in arguments and "test_subjects" not in arguments:
        split = windows.description.get("split", pd.Series(dtype=str))
        arguments["cv"] = None if (split == "test").any() else _FOLDS
    scores = evaluation.controls(methods, windows, out=out, **arguments)
    metric = scores["metric"].iloc[0]
    gains = evaluation.control_gains(scores, metric, against=against)
    of_metric = tables.rows_of(scores, metric)
    show(f"{metric.replace('_', ' ')} by control signal")
    show_scores(of_metric.drop(columns="control").assign(metric=of_metric["control"]), "subjects")
    for note in scores.get("note", pd.Series()).dropna().unique():
        show(f"{note}.")
    show(evaluation.describe_controls(gains))
    files.replace_file(out / "gains.csv", gains.to_csv(index=False))
    plotting.style.save_figure(plotting.control_gains(gains)[0], out / "gains.png", dpi=150)
    show(f"Results written to {out}: scores.csv, gains.csv, gains.png.")


def reference_method(name: str | None, methods: Collection[str]) -> str:
    """Return the name of the reference method in tables.

    ``name`` is a name as in tables or in ``--method``. If None, the reference method is "from
    scratch", or the random encoder if "from scratch" is not a method.
    """
    names = [f"{method}{suffix}" for method in _AGAINST for suffix in ("", baselines.CENTERED)]
    if name is not None:
        names = [name, shown_name(name)]
    method_of = {method.casefold().replace("-", " "): method for method in methods}
    for key in (name.casefold().replace("-", " ") for name in names):
        if key in method_of:
            return method_of[key]
    problem = "--against is required" if name is None else f"Unknown method --against {name}"
    raise ValueError(f"{problem}; use one of {', '.join(methods)}.")


def show_ablation(
    settings: Mapping[str, Any],
    windows: BaseConcatDataset,
    grid: list[str],
    *,
    out: Path,
    **arguments: Any,
) -> None:
    """Run the protocol ablation with PARS, and print its scores.

    Entries of ``grid`` are names of predefined grids, or parameters with their values.
    """
    (estimator,) = baselines.make_methods(["pars"], **settings).values()
    varied: dict[str, Any] = {}
    for text in grid:
        key, equals, listing = text.partition("=")
        if equals:
            varied[key] = [value_of(value) for value in listing.split(",")]
        else:
            checks.choice(*evaluation.GRIDS).check("--grid", text)
            varied |= evaluation.GRIDS[text]
    scores: Any = evaluation.ablation(estimator, windows, varied, out=out, **arguments)
    # With two varied settings, one line per value of the first setting, as in the paper; with one
    # setting, its values are drawn like methods.
    axes = [name for name in varied if name in scores and scores[name].nunique() > 1]
    axes.sort(key=lambda name: pd.api.types.is_numeric_dtype(scores[name]))
    draw: Callable[..., Any] = plotting.subject_dots
    if len(axes) == 2:
        draw = partial(plotting.ablation_lines, lines=axes[0], x=axes[1])
    _report(scores, out, draw)


def show_reproduction(dataset: str, out: Path, arguments: Mapping[str, Any]) -> None:
    """Compare the methods of table 1 of the paper, and print their scores over seeds."""
    scores = evaluation.reproduce(datasets.load(dataset), out, **arguments)
    by = [name for name in tables.SCORES if name not in ("subject", "value")]
    means = scores.groupby(by, sort=False)["value"].mean().reset_index()
    pooled = means.assign(subject=tables.POOLED)
    table = evaluation.score_table(pooled, "seeds").droplevel(["dataset", "n_train_subjects"])
    table["pretraining_loss"] = scores.groupby("method")["pretraining_loss"].mean()
    n = scores["subject"].nunique()
    title = f"mean over {n} held-out subjects ± SD over seeds; relative loss (1 = chance level)"
    print_frame(table.reset_index(), title)
    show(f"Results written to {out}: scores.csv, and the encoders in reproduction/.")


def _report(scores: pd.DataFrame, out: Path, draw: Callable[..., Any]) -> None:
    """Print the scores, and save a figure of the first metric."""
    show_scores(scores, "seeds" if tables.POOLED in scores["subject"].tolist() else "subjects")
    metric = scores["metric"].iloc[0]
    label = "Cohen's kappa" if metric == "kappa" else None
    plotting.style.save_figure(
        draw(scores, metric=metric, label=label), out / f"{metric}.png", dpi=150
    )
    show(f"Results written to {out}: scores.csv, {metric}.png, cache/.")


def show_scores(scores: pd.DataFrame, over: str) -> None:
    """Print a table with the mean and the standard deviation of each method.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol.
    over : "subjects" | "seeds"
        Unit of the standard deviation: held-out subjects, or seeds (with fixed test subjects).
    """
    table = evaluation.score_table(scores, over)
    n = table.attrs["n"]
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    units = f"{n} held-out subjects" if over == "subjects" else f"{seeds}, over all test windows"
    title = f"mean ± SD over {units}"
    print_frame(table.fillna("").reset_index(), title, table.index.nlevels)


def show_differences(scores: pd.DataFrame, against: str | None, out: Path) -> None:
    """Print a table of differences between methods, and the significant differences.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol.
    against : str | None
        Reference method of the tests. If None, all pairs of methods are tested.
    out : Path
        Folder in which the table of tests, ``tests.csv``, is written.
    """
    metric = scores["metric"].iloc[0]
    tests = evaluation.paired_tests(scores, metric, against=against)
    hidden = ["n_train_subjects", "sd_difference", "wins", "df", "n_dropped", "test", "metric"]
    title = f"differences in {metric.replace('_', ' ')}, with uncorrected 95 % confidence intervals"
    print_frame(tests.drop(columns=hidden), title, 2)
    show(evaluation.describe_differences(tests))
    files.replace_file(out / "tests.csv", tests.to_csv(index=False))
    show(f"Tests written to {out / 'tests.csv'}.")


def show_costs(
    methods: Mapping[str, Any],
    windows: BaseConcatDataset,
    scores: pd.DataFrame,
    out: Path,
) -> None:
    """Print a table with the cost of one fit per method, and write it to ``costs.csv``.

    Parameters
    ----------
    methods : dict of str to estimator
        Estimators by method name.
    windows : BaseConcatDataset
        Windows of the protocol.
    scores : DataFrame
        Scores of the protocol, from which the training subjects of the largest fit are determined.
    out : Path
        Folder of the results.
    """
    subject = windows.description["subject"].astype(str)
    split = windows.description.get("split", pd.Series("", subject.index))
    tested = scores["subject"].astype(str)
    if tables.POOLED in tested.to_numpy():
        is_tested = subject.isin(tested) | (split == "test")
    else:  # one subject is held out at a time
        is_tested = subject == tested.iloc[0]
    # As in the protocols, fixed validation subjects are added to the training subjects.
    fixed = {name: splitting.validates_by_split(estimator) for name, estimator in methods.items()}
    is_valid = (split == "valid") & ~is_tested & any(fixed.values())
    chosen = subject[~is_tested & ~is_valid].unique()[: scores["n_train_subjects"].max()]
    is_training = subject.isin(chosen) & ~is_tested
    costs = []
    for name, estimator in methods.items():
        used = np.flatnonzero(is_training | (is_valid & fixed[name]))
        part = BaseConcatDataset([windows.datasets[i] for i in used])
        costs.append(evaluation.cost_table({name: estimator}, part))
    table = pd.concat(costs, ignore_index=True).assign(n_train_subjects=len(chosen))
    written = table.assign(dataset=scores["dataset"].iloc[0])
    files.replace_file(out / "costs.csv", written.to_csv(index=False))
    print_frame(table, "cost of one fit")
    show(f"Costs written to {out / 'costs.csv'}.")


def classifier_settings(
    options: list[str] | None, *, published: bool, dataset: str = "", pretrains: bool = False
) -> dict[str, Any]:
    """Return arguments of PARSClassifier; options override the settings of the paper.

    Parameters
    ----------
    options : list of str | None
        Options ``--set KEY=VALUE``.
    published : bool
        Whether to use the published settings of fine-tuning; for EESM17, with noise augmentation.
    dataset : str
        Name of the corpus, or folder of a store of the corpus.
    pretrains : bool
        Whether the classifier is pretrained. If True, the published sizes and pretraining are also
        used.
    """
    settings = dict(paper.CLASSIFIER if pretrains else paper.FINE_TUNING) if published else {}
    settings.pop("pretext", None)  # set by the method
    if published and any_source.recipe_of(dataset) == "eesm17":
        settings["augmentation"] = paper.EESM17["augmentation"]
    return settings | values(options, "--set")
