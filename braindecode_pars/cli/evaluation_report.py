"""Behind ``evaluate``: settings, data, a protocol, then scores, costs and figures.

Settings come from a TOML file, from the paper, and from options. Data are a corpus by name, a store
with labels, own recordings, or a module with ``load``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table
from sklearn.base import BaseEstimator

from braindecode_pars import evaluation, paper, plotting
from braindecode_pars._common.files import replace_file
from braindecode_pars._common.model_files import model_folder
from braindecode_pars._common.subjects import in_corpus
from braindecode_pars._common.tables import POOLED
from braindecode_pars.baselines import make_methods
from braindecode_pars.cli.terminal import make_console, print_table, values
from braindecode_pars.datasets import RECIPES, folder, mental_arithmetic, simulated
from braindecode_pars.evaluation import cost_table, describe_differences, paired_tests, score_table
from braindecode_pars.evaluation.splitting import validates_by_split
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store.parts import is_store

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
    console.print(f"Written to {out}: scores.csv, {figure.name}, cache/.")


def show_scores(console: Console, scores: pd.DataFrame, over: str) -> None:
    """Print a table with the mean and the standard deviation of every method.

    Parameters
    ----------
    console : rich.console.Console
        Console to print to.
    scores : DataFrame
        Scores of one protocol.
    over : "subjects" | "seeds"
        Average over held-out subjects, or over seeds if the test subjects are fixed.
    """
    # Title.
    wide = score_table(scores, over)
    n = wide.attrs["n"]
    unit = f"held-out subject{'s' if n != 1 else ''}"
    if over == "seeds":
        unit = f"seed{'s' if n != 1 else ''}, over all test windows"
    title = f"mean ± SD over {n} {unit}"
    table = Table(title=title, min_width=len(title) + 2)  # wide enough for the title

    # Columns; dataset and number of subjects are omitted if they are the same in all rows.
    rows = wide.index.to_frame(index=False)
    keys = [key for key in ("dataset", "n_train_subjects") if rows[key].nunique() > 1]
    keys.append("method")
    for key in keys:
        table.add_column(key.replace("n_train_subjects", "training subjects"))
    for metric in wide:
        table.add_column(metric.replace("_", " "), justify="right")

    # Rows.
    for (_, row), (_, cells) in zip(rows.iterrows(), wide.iterrows(), strict=True):
        table.add_row(*(str(row[key]) for key in keys), *cells.fillna("").tolist())
    print_table(console, table)


def show_differences(
    console: Console, scores: pd.DataFrame, against: str | None = None, out: Path | None = None
) -> None:
    """Print which differences between methods are significant in the first metric.

    Parameters
    ----------
    console : rich.console.Console
        Console to print to.
    scores : DataFrame
        Scores of one protocol.
    against : str | None
        Method that the others are tested against; None tests all pairs.
    out : Path | None
        Folder for a table of the tests, ``tests.csv``; None writes nothing.
    """
    metric = scores["metric"].iloc[0]
    tests = paired_tests(scores, metric, against=against)
    console.print(describe_differences(tests))
    if out is not None:
        replace_file(out / "tests.csv", tests.assign(metric=metric).to_csv(index=False))
        console.print(f"Written to {out / 'tests.csv'}.")


def save_figure(
    scores: pd.DataFrame, folder: Path, draw: Callable[[pd.DataFrame, str, str | None], Axes]
) -> Path:
    """Draw the first metric and save the figure under the metric's name.

    Parameters
    ----------
    scores : DataFrame
        Scores of one protocol.
    folder : Path
        Existing folder for the figure.
    draw : callable
        Function of scores, metric and its label (None means the metric's name) that returns axes.

    Returns
    -------
    Path
        File of the figure.
    """
    metric = scores["metric"].iloc[0]
    ax = draw(scores, metric, "Cohen's kappa" if metric == "kappa" else None)
    file = folder / f"{metric}.png"
    ax.figure.savefig(file, dpi=150)
    plt.close(ax.figure)
    return file


#: Headings of the columns.
_LABELS = {
    "pretraining_steps": "pretraining steps",
    "finetuning_steps": "fine-tuning steps",
    "flops": "FLOPs",
    "n_train_subjects": "training subjects",
}


def show_costs(
    console: Console,
    methods: Mapping[str, BaseEstimator],
    corpora: Mapping[str, BaseConcatDataset],
    scores: pd.DataFrame,
    out: Path,
) -> None:
    """Print a table with the cost of one fit of each method, and write it to ``costs.csv``.

    Parameters
    ----------
    console : rich.console.Console
        Console to print to.
    methods : dict of str to estimator
        Estimators by method name.
    corpora : dict of str to BaseConcatDataset
        Windows of the protocol, by the name in the column ``dataset`` of the scores.
    scores : DataFrame
        Its scores. They say which subjects a fit is trained on.
    out : Path
        Folder of the results.
    """
    tables = [
        _costs(methods, corpora[name], of_dataset).assign(dataset=name)
        for name, of_dataset in scores.groupby("dataset", sort=False)
    ]
    costs = pd.concat(tables, ignore_index=True)
    replace_file(out / "costs.csv", costs.to_csv(index=False))
    title = "cost of one fit"
    table = Table(title=title, min_width=len(title) + 2)
    shown = costs.drop(columns="dataset") if len(tables) == 1 else costs
    for name in shown:
        is_text = name in ("dataset", "method")
        table.add_column(_LABELS.get(name, name), justify="left" if is_text else "right")
    for row in shown.itertuples(index=False):
        table.add_row(*map(_cell, row))
    print_table(console, table)
    console.print(f"Written to {out / 'costs.csv'}.")


def _costs(
    methods: Mapping[str, BaseEstimator], windows: BaseConcatDataset, scores: pd.DataFrame
) -> pd.DataFrame:
    # As in the protocols, fixed validation subjects come beside the training subjects.
    fixed = {name: validates_by_split(estimator) for name, estimator in methods.items()}
    train, valid = _recordings(windows, scores, with_validation=any(fixed.values()))
    tables = [
        cost_table({name: estimator}, BaseConcatDataset(train + valid * fixed[name]))
        for name, estimator in methods.items()
    ]
    n_subjects = len({recording.description["subject"] for recording in train})
    return pd.concat(tables, ignore_index=True).assign(n_train_subjects=n_subjects)


def _recordings(
    windows: BaseConcatDataset, scores: pd.DataFrame, *, with_validation: bool
) -> tuple[list[EEGWindowsDataset], list[EEGWindowsDataset]]:
    """Return the recordings of the largest fit, and those of the fixed validation subjects.

    There are as many training subjects as the largest fit of the protocol has.
    """
    tested = [str(subject) for subject in scores["subject"] if str(subject) != POOLED]
    # Either one subject is held out at a time, or all test subjects are.
    is_in_turn = POOLED not in scores["subject"].astype(str).to_numpy()
    held_out = {tested[0]} if is_in_turn else set(tested)
    train: dict[Any, list[EEGWindowsDataset]] = {}
    valid = []
    for recording in windows.datasets:
        subject, split = (recording.description.get(name) for name in ("subject", "split"))
        if str(subject) in held_out or (split == "test" and not is_in_turn):
            continue
        if with_validation and split == "valid":
            valid.append(recording)
        else:
            train.setdefault(subject, []).append(recording)
    chosen = list(train.values())[: scores["n_train_subjects"].max()]
    return [recording for of_subject in chosen for recording in of_subject], valid


def _cell(value: Any) -> str:
    """Return a text as it is, a number in a few digits, and "-" for a missing one."""
    if isinstance(value, str) or pd.isna(value):
        return value if isinstance(value, str) else "-"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"


def title(dataset: str) -> str:
    """Return the name of a corpus in tables and figures."""
    recipe = recipe_of(dataset)
    if recipe in RECIPES:
        return RECIPES[recipe].CARD["name"]
    is_path = Path(dataset).exists()
    return Path(dataset).resolve().stem if is_path else dataset


def load(dataset: str, data: Path | None, arguments: Mapping[str, Any]) -> BaseConcatDataset:
    """Read a corpus, own recordings or the recordings in the package, or simulate nights of sleep.

    Parameters
    ----------
    dataset : str
        Name of a corpus; path of a store with labels, or of a folder of own recordings, or any name
        for the one in ``data``; path of a Python file, or dotted name of an installed module, with
        a function ``load``.
    data : Path | None
        Folder of the corpus, or of a store of it; the first argument of ``load``.
    arguments : dict
        Further arguments of ``load``.

    Raises
    ------
    ValueError
        When the corpus or an argument is unknown, the folder is missing, or a store has no labels.
    """
    given = [] if data in (None, Path()) else [data]  # "simulated=" of transfer has an empty path
    if given and dataset in ("mental_arithmetic", "simulated"):
        raise ValueError(f"{dataset} reads no folder; omit {data}.")
    if dataset == "mental_arithmetic":
        return _load(mental_arithmetic, dataset, **arguments)
    if dataset == "simulated":
        defaults = dict(n_subjects=6, hours=1, random_state=0)
        return _load(simulated.sleep, dataset, **{**defaults, **arguments})
    found = given[0] if given else Path(dataset)
    if is_store(found):
        return _load(labelled_windows, dataset, found, **arguments)
    if dataset in RECIPES:
        if not given:
            raise ValueError(
                f"{dataset} needs --data, the folder of its files; there is no download."
            )
        return _load(RECIPES[dataset].load, dataset, *given, **arguments)
    if Path(dataset).is_dir() and not given:
        return _load(folder.load, dataset, Path(dataset), **arguments)
    module = _module(dataset)
    if module is not None:
        return _load(module.load, dataset, *given, **arguments)
    if given and given[0].is_dir():
        return _load(folder.load, dataset, *given, **arguments)
    known = ", ".join(["mental_arithmetic", "simulated", *sorted(RECIPES)])
    raise ValueError(
        f"Unknown corpus {dataset!r}; known are {known}, a folder of own recordings, a store with "
        "labels, and a Python file or module with a function load."
    )


def _load(
    loader: Callable[..., BaseConcatDataset], dataset: str, *given: Path, **arguments: Any
) -> BaseConcatDataset:
    # Checked here, because the loader's own TypeError does not list the known arguments.
    parameters = inspect.signature(loader).parameters
    known = list(parameters)[len(given) :]
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    unknown = [name for name in arguments if name not in known and not takes_any]
    if unknown:
        raise ValueError(f"{dataset} has no argument {unknown[0]!r}; it has {', '.join(known)}.")
    return loader(*given, **arguments)


def _module(dataset: str) -> ModuleType | None:
    """Import a Python file or an installed module with a function ``load``; None if it is neither.

    The code of the file is run.
    """
    file = Path(dataset).expanduser()
    if file.suffix == ".py":
        if not file.is_file():
            raise ValueError(f"{dataset} does not exist; pass the path of a Python file.")
        # Worker processes have the same path, and import the module for themselves.
        sys.path.append(str(file.resolve().parent))
        module = importlib.import_module(file.stem)
        if Path(module.__file__ or "").resolve() != file.resolve():
            raise ValueError(f"{dataset} has the name of another module; rename the file.")
    elif "." in dataset.strip("."):  # a single word is a mistyped corpus, or the name of a folder
        try:
            module = importlib.import_module(dataset)
        except (ImportError, ValueError):
            return None
    else:
        return None
    if not callable(getattr(module, "load", None)):
        raise ValueError(f"{dataset} has no function load, which returns labelled windows.")
    return module


#: Tables of the file: those of the options --set and --load.
_TABLES = ("set", "load")


def settings_of(
    options: list[str] | None,
    config: Path | None,
    *,
    published: bool,
    dataset: str = "",
    pretrains: bool = False,
) -> dict[str, Any]:
    """Return arguments of PARSClassifier; options win over the file, the file over the paper.

    Parameters
    ----------
    options : list of str | None
        Options ``--set KEY=VALUE``.
    config : Path | None
        TOML file with a table ``[set]``.
    published : bool
        Whether to begin with the paper's fine-tuning, for EESM17 with its noise.
    dataset : str
        Name of the corpus, or folder of a store of it.
    pretrains : bool
        Whether the classifier pretrains; the paper then has its sizes and its pretraining, too.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When the file is not valid TOML, or has another table.
    """
    settings = dict(paper.CLASSIFIER if pretrains else paper.FINE_TUNING) if published else {}
    settings.pop("pretext", None)  # is the method's
    if published and recipe_of(dataset) == "eesm17":
        settings["augmentation"] = paper.EESM17["augmentation"]
    return {**settings, **_read(config)["set"], **values(options, "--set")}


def load_arguments(options: list[str] | None, config: Path | None) -> dict[str, Any]:
    """Return arguments of a corpus' load function; options win over the table ``[load]``.

    Raises
    ------
    FileNotFoundError, ValueError
        As :func:`settings_of`.
    """
    return {**_read(config)["load"], **values(options, "--load")}


def _read(config: Path | None) -> Mapping[str, dict[str, Any]]:
    """Return the tables of a file; empty ones without a file."""
    tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES}
    if config is None:
        return tables
    try:
        found = tomllib.loads(config.expanduser().read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"--config {config} does not exist.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ValueError(f"--config {config} is not a TOML file: {error}.") from error
    for name, table in found.items():
        if name not in _TABLES or not isinstance(table, dict):
            raise ValueError(
                f"--config {config} has an entry {name!r}; put arguments of PARSClassifier into a "
                "table [set], and those of the corpus into [load]."
            )
    return {**tables, **found}


def labelled_windows(path: Path, subjects: Iterable | None = None) -> BaseConcatDataset:
    """Return the labelled windows of a store, of some subjects or all.

    Raises
    ------
    ValueError
        When the store has no labels, is damaged, or has no recording of a subject.
    """
    return SignalStore.open(path).select(subjects).labelled_windows()


def recipe_of(dataset: str) -> str:
    """Return the recipe of a store that was made of one corpus; another name as it is."""
    if not is_store(dataset):
        return dataset
    corpora = set(SignalStore.open(dataset, verbose=0).recordings["corpus"])
    name = corpora.pop()
    return name if not corpora and name in RECIPES else dataset
