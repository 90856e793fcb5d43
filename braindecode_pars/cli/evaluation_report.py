"""Run protocols for the commands ``evaluate`` and ``reproduce``, and print the results.

The results are scores, tests of differences, and costs of a fit.
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

#: Methods that are scored if the option ``--method`` is not passed.
_DEFAULT = ("pars", "scratch", "band-power", "tangent-space")
#: Other default methods of some protocols, if ``--encoder`` is passed. For the protocol controls,
#: these are methods that do not train networks.
_DEFAULT_OF = {
    "transfer": ("scratch", "band-power"),
    "controls": ("probe", "random-encoder", "band-power", "tangent-space", "classical-features"),
}
#: Default reference methods of the protocol controls: the first of them that is scored is used.
_AGAINST = ("from scratch", "random encoder")
#: Number of folds of subjects in the protocol controls with ``--n`` without a test split.
_FOLDS = 4


def methods_of(
    protocol: str, names: list[str] | None, encoders: list[str] | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the classifiers to score in a protocol, by method name.

    In the protocol controls with the method probe, encoders are only used in linear probes, not in
    networks.

    Parameters
    ----------
    protocol : str
        Name of the protocol, as on the command line.
    names : list of str | None
        Values of the option ``--method``. If None, the default methods of the protocol are used.
    encoders : list of str | None
        Values of the option ``--encoder``.
    settings : mapping
        Arguments of the classifiers.
    """
    by_name = encoders_of(encoders)
    for encoder in by_name.values():
        model_files.model_folder(encoder)  # raises an error for unknown names
    if not names:
        names = [*(_DEFAULT_OF.get(protocol, _DEFAULT) if by_name else _DEFAULT)]
        if by_name.keys() - {"pretrained"}:  # with named encoders, do not pretrain another encoder
            names = [name for name in names if name != "pars"]
    methods = baselines.make_methods(names, encoder=by_name or None, **settings)
    if protocol == "controls" and "probe" in names:  # use encoders only in linear probes
        networks = (baselines.FROZEN, baselines.ALL_WEIGHTS)
        return {k: method for k, method in methods.items() if not any(x in k for x in networks)}
    return methods


def encoders_of(options: list[str] | None) -> dict[str, str]:
    """Return the encoders of the options ``--encoder NAME=FOLDER`` by name.

    A single encoder may be passed without a name. Its name is then "pretrained".

    Raises
    ------
    ValueError
        If there are several encoders, and one has no name or two have the same name.
    """
    options = options or []
    if len(options) == 1 and ("=" not in options[0] or Path(options[0]).is_dir()):
        return {"pretrained": options[0]}
    return named_pairs(options, "--encoder", "NAME=FOLDER")


def find_subjects(windows: BaseConcatDataset, names: list[str] | None) -> list | None:
    """Find the test subjects that were passed with ``--test-subject`` in the dataset.

    A name on the command line may start with the corpus, as in stores and encoder cards, such as
    "tuab:aaaaaaab".

    Parameters
    ----------
    windows : BaseConcatDataset
        Windows of the dataset.
    names : list of str | None
        Values of the option ``--test-subject``.

    Returns
    -------
    list | None
        Subjects as in the descriptions of the recordings. None if the option was not passed.
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
    """Run a protocol, and print scores and costs. For ``compare``, also print significance tests.

    Parameters
    ----------
    protocol : str
        Name of the protocol, as on the command line.
    methods : mapping of str to estimator
        Methods to score, by name.
    windows : BaseConcatDataset
        Labeled windows.
    out : Path
        Folder for the results.
    against : str | None
        For the protocol ``compare``: reference method. If None, all pairs of methods are tested.
    **arguments
        Further arguments of the function in :mod:`braindecode_pars.evaluation` that runs the
        protocol.
    """
    protocol = protocol.replace("-", "_")
    if against is not None:
        against = reference_method(against, methods)
    if protocol == "compare" and len(methods) < 2:
        raise ValueError(
            "The protocol 'compare' requires at least two methods, got only "
            f"{', '.join(methods)}. Add a method with --method, or use the protocol "
            "'leave-one-subject-out' to score a single method."
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
    """Score methods on control signals, and print and write scores, differences and a figure.

    Parameters
    ----------
    methods : mapping of str to estimator
        Methods to score, by name.
    windows : BaseConcatDataset
        Labeled windows.
    against : str | None
        Reference method, as in :func:`reference_method`.
    out : Path
        Folder for the results.
    **arguments
        Further arguments of the function in :mod:`braindecode_pars.evaluation` that runs the
        protocol.
    """
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
    """Return the name of the reference method as in ``methods`` and in tables.

    ``name`` may be spelled as in tables or as in ``--method``. If None, the reference method is
    "from scratch", or the random encoder if "from scratch" is not in ``methods``.
    """
    names = [f"{method}{suffix}" for method in _AGAINST for suffix in ("", baselines.CENTERED)]
    if name is not None:
        names = [name, shown_name(name)]
    method_of = {method.casefold().replace("-", " "): method for method in methods}
    for key in (name.casefold().replace("-", " ") for name in names):
        if key in method_of:
            return method_of[key]
    problem = f"--against {name} is not one of the methods"
    if name is None:
        problem = "--against is required, because neither scratch nor random-encoder is scored"
    raise ValueError(f"{problem}. Use one of {', '.join(methods)}.")


def show_ablation(
    settings: Mapping[str, Any],
    windows: BaseConcatDataset,
    grid: list[str],
    *,
    out: Path,
    **arguments: Any,
) -> None:
    """Run the protocol ablation with PARS, and print the scores.

    Parameters
    ----------
    settings : mapping
        Arguments of the classifier.
    windows : BaseConcatDataset
        Labeled windows.
    grid : list of str
        Values of the option ``--grid``: names of predefined grids, or parameters with their values
        (``KEY=VALUE,...``).
    out : Path
        Folder for the results.
    **arguments
        Further arguments of the function in :mod:`braindecode_pars.evaluation` that runs the
        protocol.
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
    # If two settings vary, plot one line per value of the first setting, as in the paper. If one
    # setting varies, plot its values like methods.
    axes = [name for name in varied if name in scores and scores[name].nunique() > 1]
    axes.sort(key=lambda name: pd.api.types.is_numeric_dtype(scores[name]))
    draw: Callable[..., Any] = plotting.subject_dots
    if len(axes) == 2:
        draw = partial(plotting.ablation_lines, lines=axes[0], x=axes[1])
    _report(scores, out, draw)


def show_reproduction(dataset: str, out: Path, arguments: Mapping[str, Any]) -> None:
    """Run the comparison of table 1 of the paper, and print mean scores and SD over seeds.

    Parameters
    ----------
    dataset : str
        Dataset, as in ``datasets.load``.
    out : Path
        Folder for the scores and the encoders.
    arguments : mapping
        Further arguments of :func:`~braindecode_pars.evaluation.reproduce`.
    """
    scores = evaluation.reproduce(datasets.load(dataset), out, **arguments)
    by = [name for name in tables.SCORES if name not in ("subject", "value")]
    means = scores.groupby(by, sort=False)["value"].mean().reset_index()
    pooled = means.assign(subject=tables.POOLED)
    table = evaluation.score_table(pooled, "seeds").droplevel(["dataset", "n_train_subjects"])
    table["pretraining_loss"] = scores.groupby("method")["pretraining_loss"].mean()
    n = scores["subject"].nunique()
    title = f"mean score over {n} held-out subjects ± SD over seeds; relative loss (1 = chance)"
    print_frame(table.reset_index(), title)
    show(f"Results written to {out}: scores.csv; the encoders are in the folder reproduction.")


def _report(scores: pd.DataFrame, out: Path, draw: Callable[..., Any]) -> None:
    """Print the scores of all metrics, and save a figure of the first metric."""
    show_scores(scores, "seeds" if tables.POOLED in scores["subject"].tolist() else "subjects")
    metric = scores["metric"].iloc[0]
    label = "Cohen's kappa" if metric == "kappa" else None
    plotting.style.save_figure(
        draw(scores, metric=metric, label=label), out / f"{metric}.png", dpi=150
    )
    show(f"Results written to {out}: scores.csv, {metric}.png, and finished fits in cache/.")


def show_scores(scores: pd.DataFrame, over: str) -> None:
    """Print a table with the mean score of each method and its standard deviation.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol.
    over : "subjects" | "seeds"
        Whether mean and standard deviation are computed over held-out subjects, or over seeds (if
        test subjects are fixed).
    """
    table = evaluation.score_table(scores, over)
    n = table.attrs["n"]
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    units = f"{n} held-out subjects"
    if over == "seeds":
        units = f"{seeds}; each score is computed over all test windows"
    title = f"mean score ± SD over {units}"
    print_frame(table.fillna("").reset_index(), title, table.index.nlevels)


def show_differences(scores: pd.DataFrame, against: str | None, out: Path) -> None:
    """Print a table of differences between methods, and a sentence on significant differences.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol.
    against : str | None
        Reference method with which all other methods are compared. If None, all pairs of methods
        are compared.
    out : Path
        Folder in which the tests are written, as the table ``tests.csv``.
    """
    metric = scores["metric"].iloc[0]
    tests = evaluation.paired_tests(scores, metric, against=against)
    hidden = ["n_train_subjects", "sd_difference", "wins", "df", "n_dropped", "test", "metric"]
    name = metric.replace("_", " ")
    title = f"differences in {name} between methods, with uncorrected 95 % confidence intervals"
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
    """Print the numbers of parameters and training steps of each method, and write ``costs.csv``.

    The numbers are computed for one fit with the largest number of training subjects.

    Parameters
    ----------
    methods : dict of str to estimator
        Estimators by method name.
    windows : BaseConcatDataset
        Windows of the protocol.
    scores : DataFrame
        Scores of the protocol, from which the training subjects of a fit are determined.
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
    # As in the protocols, the subjects of split "valid" are added to the training subjects of
    # estimators that use them for validation.
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
    """Return arguments of PARSClassifier from the options ``--set`` and ``--paper``.

    If both options set an argument, the value of ``--set`` is used.

    Parameters
    ----------
    options : list of str | None
        Values ``KEY=VALUE`` of the option ``--set``.
    published : bool
        Whether ``--paper`` was passed: use the published settings of fine-tuning, and the published
        noise augmentation for EESM17.
    dataset : str
        Name of the corpus, or folder of a store that contains the corpus.
    pretrains : bool
        Whether the classifier is pretrained in each fit. If True, the published sizes and the
        published settings of pretraining are also used.
    """
    settings = dict(paper.CLASSIFIER if pretrains else paper.FINE_TUNING) if published else {}
    settings.pop("pretext", None)  # the method determines the pretext task
    if published and any_source.recipe_of(dataset) == "eesm17":
        settings["augmentation"] = paper.EESM17["augmentation"]
    return settings | values(options, "--set")
