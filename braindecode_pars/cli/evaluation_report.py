"""Behind ``evaluate``: settings, data, a protocol, then scores, costs and figures.

Settings come from the paper and from options, data from :func:`datasets.load
<braindecode_pars.datasets.load>`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset

from braindecode_pars import baselines, datasets, evaluation, paper, plotting
from braindecode_pars._common import files, model_files, subjects, tables
from braindecode_pars.baselines.methods import shown_name
from braindecode_pars.cli.terminal import print_frame, show, values
from braindecode_pars.datasets import any_source
from braindecode_pars.evaluation import protocols, splitting

#: Methods without ``--method``. Those of controls train no network, and many draws take minutes.
_DEFAULT = ("pars", "scratch", "band-power", "tangent-space")
_DEFAULT_OF = {
    "transfer": ("scratch", "band-power"),
    "controls": ("probe", "random-encoder", "band-power", "tangent-space", "classical-features"),
}
#: What controls compare the others with, if it is among the methods: the first one that is.
_AGAINST = ("from scratch", "random encoder")
#: Folds of whole subjects for controls, where a corpus has no test subjects and none are given.
_FOLDS = 4


def methods_of(
    protocol: str, names: list[str] | None, encoders: list[str] | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return classifiers by method name; controls freeze a given encoder if probe is a method."""
    by_name = encoders_of(encoders)
    for encoder in by_name.values():
        model_files.model_folder(encoder)  # an unknown name ends the command here
    default = _DEFAULT_OF.get(protocol, _DEFAULT) if by_name else _DEFAULT
    if by_name.keys() - {"pretrained"}:  # encoders of several tasks are compared as they are
        default = tuple(name for name in default if name != "pars")
    methods = baselines.make_methods(names or default, encoder=by_name or None, **settings)
    if protocol == "controls" and "probe" in (names or default):
        networks = baselines.FROZEN, baselines.ALL_WEIGHTS
        return {name: method for name, method in methods.items() if not name.endswith(networks)}
    return methods


def encoders_of(options: list[str] | None) -> dict[str, str]:
    """Return encoders by name from options NAME=FOLDER; a single one may have no name.

    Raises
    ------
    ValueError
        When one of several encoders has no name, or two have the same.
    """
    options = options or []
    nameless = [text for text in options if "=" not in text or Path(text).is_dir()]
    if len(options) == 1 and nameless:
        return {"pretrained": options[0]}
    if nameless:
        raise ValueError(
            f"--encoder {nameless[0]} needs a name, as one of several encoders: "
            f"--encoder NAME={nameless[0]}."
        )
    by_name = dict(option.split("=", 1) for option in options)
    if len(by_name) < len(options):
        raise ValueError(f"--encoder uses a name twice: {' '.join(options)}.")
    return by_name


def given_subjects(windows: BaseConcatDataset, names: list[str] | None) -> list | None:
    """Return the corpus' own values for subjects given as text; None if no subjects are given.

    A name may have the corpus in front, as in stores and cards: "tuab:aaaaaaab".
    """
    by_text: dict[str, Any] = {}
    for recording in windows.datasets:
        subject, corpus = (recording.description.get(name) for name in ("subject", "corpus"))
        by_text |= {str(subject): subject, str(subjects.in_corpus(corpus, subject)): subject}
    unknown = [name for name in names or () if name not in by_text]
    if unknown:
        raise ValueError(f"Unknown subject {', '.join(unknown)}; known are {', '.join(by_text)}.")
    return [by_text[name] for name in names or ()] or None


def run(
    protocol: str,
    methods: Mapping[str, Any],
    windows: BaseConcatDataset,
    *,
    out: Path,
    against: str | None = None,
    **arguments: Any,
) -> None:
    """Run a protocol, show its scores and costs, and for compare the tests of differences."""
    protocol = protocol.replace("-", "_")
    if against is not None:
        against = compared_with(against, methods)
    if protocol == "compare" and len(methods) < 2:
        raise ValueError(
            f"compare needs at least two methods, got only {', '.join(methods)}; use "
            "leave-one-subject-out to score one."
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
    """Score the methods in each control; show and write scores, gains, sentences and figure."""
    against = compared_with(against, methods)
    if "n_train_subjects" in arguments and "test_subjects" not in arguments:
        split = windows.description.get("split", pd.Series(dtype=str))
        arguments["cv"] = None if (split == "test").any() else _FOLDS
    scores = evaluation.controls(methods, windows, out=out, **arguments)
    metric = scores["metric"].iloc[0]
    gains = evaluation.control_gains(scores, metric, against=against)
    of_metric = tables.rows_of(scores, metric)
    show(f"{metric.replace('_', ' ')} in each control")
    show_scores(of_metric.drop(columns="control").assign(metric=of_metric["control"]), "subjects")
    for note in scores.get("note", pd.Series()).dropna().unique():
        show(f"{note}.")
    show(sentences := evaluation.describe_controls(gains))
    files.replace_file(out / "gains.csv", gains.to_csv(index=False))
    files.replace_file(out / "gains.txt", sentences + "\n")
    plotting.style.save_figure(plotting.control_gains(gains)[0], out / "gains.png", dpi=150)
    show(f"Written to {out}: scores.csv, gains.csv, gains.txt, gains.png.")


def compared_with(name: str | None, methods: Iterable[str]) -> str:
    """Return the name in tables of the method that others are compared with.

    ``name`` is this name, or the value of --method. None selects training from scratch if it is one
    of the methods, otherwise the random encoder.
    """
    if name is None:
        plain = {method.removesuffix(baselines.CENTERED): method for method in methods}
        if candidates := [plain[candidate] for candidate in _AGAINST if candidate in plain]:
            return candidates[0]
        named = ", ".join(methods)
        raise ValueError(f"--against is missing: the method to compare with, of {named}.")
    names = {text.casefold().replace("-", " ") for text in (name, shown_name(name))}
    for method in methods:
        if method.casefold().replace("-", " ") in names:
            return method
    raise ValueError(f"--against {name} is no method; methods are {', '.join(methods)}.")


def show_ablation(
    settings: Mapping[str, Any],
    windows: BaseConcatDataset,
    grid: list[str],
    *,
    out: Path,
    **arguments: Any,
) -> None:
    """Run the protocol of this name with PARS, and show its scores.

    The entries of the grid are names of those of the package, and parameters with their values.
    """
    (estimator,) = baselines.make_methods(["pars"], **settings).values()
    varied: dict[str, Any] = {}
    for text in grid:
        key, equals, listed = text.partition("=")
        grid_values = [values([f"{key}={value}"], "--grid")[key] for value in listed.split(",")]
        varied |= {key: grid_values} if equals else evaluation.GRIDS[text]
    scores: Any = evaluation.ablation(estimator, windows, varied, out=out, **arguments)
    # A line for each value of one setting over the values of another, as in the paper; the values
    # of a single setting as methods.
    axes = [name for name in varied if name in scores and scores[name].nunique() > 1]
    axes.sort(key=lambda name: pd.api.types.is_numeric_dtype(scores[name]))
    draw: Callable[..., Any] = plotting.subject_dots
    if len(axes) == 2:
        draw = partial(plotting.ablation_lines, lines=axes[0], x=axes[1])
    _report(scores, out, draw)


def show_reproduction(dataset: str, out: Path, arguments: Mapping[str, Any]) -> None:
    """Compare the methods of the paper's table 1, and show their scores over seeds."""
    windows, n_halves = datasets.load(dataset), 2 * len(arguments["seeds"])
    n_tasks = len(protocols.PAPER_TASKS)
    n_encoders, n_fits = n_halves * n_tasks, 2 * n_halves * (n_tasks + 2)
    show(f"{n_encoders} encoders of {arguments['epochs']} epochs, {n_fits} fits.")
    scores = evaluation.reproduce(windows, out, **arguments)
    by = [name for name in tables.SCORES if name not in ("subject", "value")]
    means = scores.groupby(by, sort=False)["value"].mean().reset_index()
    pooled = means.assign(subject=tables.POOLED)
    table = evaluation.score_table(pooled, "seeds").droplevel(["dataset", "n_train_subjects"])
    table["pretraining_loss"] = scores.groupby("method")["pretraining_loss"].mean()
    n = scores["subject"].nunique()
    about = f"mean over {n} held-out subjects, ± SD over seeds; loss relative to chance"
    print_frame(table.reset_index(), about)
    show(f"Written to {out}: scores.csv, and the encoders in reproduction/.")


def _report(scores: pd.DataFrame, out: Path, draw: Callable[..., Any]) -> None:
    """Show the scores, over seeds if the test subjects are fixed, and draw the first metric."""
    show_scores(scores, "seeds" if tables.POOLED in scores["subject"].tolist() else "subjects")
    metric = scores["metric"].iloc[0]
    label = "Cohen's kappa" if metric == "kappa" else None
    plotting.style.save_figure(
        draw(scores, metric=metric, label=label), out / f"{metric}.png", dpi=150
    )
    show(f"Written to {out}: scores.csv, {metric}.png, cache/.")


def show_scores(scores: pd.DataFrame, over: str) -> None:
    """Print a table with the mean and the standard deviation of every method.

    Parameters
    ----------
    scores : DataFrame
        Scores of one protocol.
    over : "subjects" | "seeds"
        Average over held-out subjects, or over seeds if the test subjects are fixed.
    """
    wide = evaluation.score_table(scores, over)
    n = wide.attrs["n"]
    unit = f"held-out subject{'s' if n != 1 else ''}"
    if over == "seeds":
        unit = f"seed{'s' if n != 1 else ''}, over all test windows"
    # Dataset and number of subjects are omitted if they are the same in all rows.
    rows = wide.fillna("").reset_index()
    keys = [key for key in ("dataset", "n_train_subjects") if rows[key].nunique() > 1]
    keys.append("method")
    shown = rows[[*keys, *wide]].rename(columns={"n_train_subjects": "training subjects"})
    print_frame(shown, f"mean ± SD over {n} {unit}", len(keys))


def show_differences(scores: pd.DataFrame, against: str | None, out: Path) -> None:
    """Print a table of the differences between methods, and which are significant.

    Parameters
    ----------
    scores : DataFrame
        Scores of one protocol.
    against : str | None
        Method that the others are tested against; None tests all pairs.
    out : Path
        Folder for a table of the tests, ``tests.csv``.
    """
    metric = scores["metric"].iloc[0]
    tests = evaluation.paired_tests(scores, metric, against=against)
    hidden = ["n_train_subjects", "sd_difference", "wins", "df", "n_dropped", "test", "metric"]
    title = f"differences in {metric.replace('_', ' ')}, with intervals of 95 %"
    print_frame(tests.drop(columns=hidden), title, 2)
    show(evaluation.describe_differences(tests))
    files.replace_file(out / "tests.csv", tests.to_csv(index=False))
    show(f"Written to {out / 'tests.csv'}.")


def show_costs(
    methods: Mapping[str, Any],
    windows: BaseConcatDataset,
    scores: pd.DataFrame,
    out: Path,
) -> None:
    """Print a table with the cost of one fit of each method, and write it to ``costs.csv``.

    Parameters
    ----------
    methods : dict of str to estimator
        Estimators by method name.
    windows : BaseConcatDataset
        Windows of the protocol.
    scores : DataFrame
        Its scores. They say which subjects the largest fit is trained on.
    out : Path
        Folder of the results.
    """
    subject_of_part = windows.description["subject"].astype(str)
    split = windows.description.get("split", pd.Series("", subject_of_part.index))
    # Either one subject is held out at a time, or all test subjects are.
    tested = scores["subject"].astype(str)
    is_in_turn = tables.POOLED not in tested.to_numpy()
    is_tested = subject_of_part.isin(tested.iloc[:1] if is_in_turn else tested)
    is_tested |= (split == "test") & (not is_in_turn)
    # As in the protocols, fixed validation subjects come beside the training subjects.
    fixed = {name: splitting.validates_by_split(estimator) for name, estimator in methods.items()}
    is_valid = (split == "valid") & ~is_tested & any(fixed.values())
    chosen = subject_of_part[~is_tested & ~is_valid].unique()[: scores["n_train_subjects"].max()]
    costs = []
    for name, estimator in methods.items():
        is_used = (subject_of_part.isin(chosen) & ~is_tested) | (is_valid & fixed[name])
        used = [windows.datasets[i] for i in np.flatnonzero(is_used)]
        costs.append(evaluation.cost_table({name: estimator}, BaseConcatDataset(used)))
    table = pd.concat(costs, ignore_index=True).assign(n_train_subjects=len(chosen))
    written = table.assign(dataset=scores["dataset"].iloc[0])
    files.replace_file(out / "costs.csv", written.to_csv(index=False))
    print_frame(table, "cost of one fit")
    show(f"Written to {out / 'costs.csv'}.")


def classifier_settings(
    options: list[str] | None, *, published: bool, dataset: str = "", pretrains: bool = False
) -> dict[str, Any]:
    """Return arguments of PARSClassifier; options win over the paper.

    Parameters
    ----------
    options : list of str | None
        Options ``--set KEY=VALUE``.
    published : bool
        Whether to begin with the paper's fine-tuning, for EESM17 with its noise.
    dataset : str
        Name of the corpus, or folder of a store of it.
    pretrains : bool
        Whether the classifier pretrains; the paper then has its sizes and its pretraining, too.
    """
    settings = dict(paper.CLASSIFIER if pretrains else paper.FINE_TUNING) if published else {}
    settings.pop("pretext", None)  # is the method's
    if published and any_source.recipe_of(dataset) == "eesm17":
        settings["augmentation"] = paper.EESM17["augmentation"]
    return settings | values(options, "--set")
