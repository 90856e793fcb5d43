"""``braindecode-pars evaluate``: the paper's protocols from data to table and figure."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from braindecode.datasets import BaseConcatDataset
from rich.console import Console

from braindecode_pars import evaluation
from braindecode_pars.cli.failures import told
from braindecode_pars.cli.values import pairs, values
from braindecode_pars.contenders import CONTENDERS, contenders
from braindecode_pars.datasets import RECIPES, simulated
from braindecode_pars.evaluation import GRIDS
from braindecode_pars.evaluation.metrics import METRICS
from braindecode_pars.reports import draw, show_scores

__all__ = ["evaluate"]

evaluate = typer.Typer(
    help="Score classifiers on people they have never seen. Finished fits are kept in --out, so "
    "that the same command goes on after an interruption.",
    no_args_is_help=True,
)

Dataset = Annotated[
    str,
    typer.Option(
        help=f"Corpus: simulated, {', '.join(sorted(RECIPES))}.",
        metavar="NAME",
    ),
]
Data = Annotated[Path | None, typer.Option(help="Folder that holds the corpus.")]
Load = Annotated[
    list[str] | None,
    typer.Option(
        help="Argument of the corpus' load, such as window_seconds=10; may be repeated.",
        metavar="KEY=VALUE",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        help=f"Of {', '.join(CONTENDERS)}; may be repeated. Without it: pars, scratch, eegnet "
        "and band-power.",
        metavar="NAME",
    ),
]
Encoder = Annotated[
    Path | None, typer.Option(help="Pretrained encoder to fine-tune as one more method.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Argument of PARSClassifier, such as pretrain_epochs=100; may be repeated.",
        metavar="KEY=VALUE",
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help=f"Of {', '.join(METRICS)}; may be repeated. The first is drawn and tested.",
        metavar="NAME",
    ),
]
TestSubjects = Annotated[
    list[str] | None,
    typer.Option(
        "--test-subject", help="Instead of the corpus' own split; may be repeated.", metavar="ID"
    ),
]
Seeds = Annotated[int, typer.Option(help="Number of seeds: 0, 1, ...", min=1)]
Jobs = Annotated[int | None, typer.Option(help="Fits at a time; 1 if not given.")]
Out = Annotated[Path, typer.Option(help="Where to write, and to go on from.")]
OUT = Path("braindecode-pars-evaluation")
KAPPA = ("kappa", "balanced_accuracy")


@evaluate.command()
def compare(
    dataset: Dataset,
    data: Data = None,
    load: Load = None,
    method: Methods = None,
    encoder: Encoder = None,
    settings: Settings = None,
    metric: Metrics = None,
    seeds: Seeds = 1,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Leave one subject out for several methods, with paired tests over subjects."""
    _left_out(evaluation.compare, **locals())


@evaluate.command()
def leave_one_subject_out(
    dataset: Dataset,
    data: Data = None,
    load: Load = None,
    method: Methods = None,
    encoder: Encoder = None,
    settings: Settings = None,
    metric: Metrics = None,
    seeds: Seeds = 1,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Train on all subjects but one, score on that one."""
    _left_out(evaluation.leave_one_subject_out, **locals())


def _left_out(
    protocol: Any, *, dataset: str, out: Path, seeds: int, n_jobs: int, **options
) -> None:
    with told(_kept(out)):
        scores = protocol(
            _contenders(options["method"], options["encoder"], options["settings"]),
            _windows(dataset, options["data"], options["load"]),
            metrics=options["metric"] or KAPPA,
            seeds=range(seeds),
            dataset=_title(dataset),
            n_jobs=n_jobs,
            out=out,
        )
        _finish(scores, out)


@evaluate.command()
def label_efficiency(
    dataset: Dataset,
    n: Annotated[
        list[int], typer.Option(help="Number of training subjects; may be repeated.", min=1)
    ],
    data: Data = None,
    load: Load = None,
    method: Methods = None,
    encoder: Encoder = None,
    settings: Settings = None,
    metric: Metrics = None,
    test_subject: TestSubjects = None,
    seeds: Seeds = 5,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Train on few and on many subjects, score on the same others."""
    with told(_kept(out)):
        windows = _windows(dataset, data, load)
        scores = evaluation.label_efficiency(
            _contenders(method, encoder, settings),
            windows,
            n_train_subjects=n,
            test_subjects=_subjects(windows, test_subject),
            metrics=metric or (*KAPPA, "f1"),
            seeds=range(seeds),
            dataset=_title(dataset),
            n_jobs=n_jobs,
            out=out,
        )
        _finish(scores, out)


@evaluate.command()
def transfer(
    encoder: Annotated[Path, typer.Option(help="Pretrained encoder.")],
    dataset: Annotated[
        list[str],
        typer.Option(
            help="Corpus and its folder, NAME=FOLDER; may be repeated.", metavar="NAME=FOLDER"
        ),
    ],
    load: Annotated[
        list[str] | None,
        typer.Option(
            help="Argument of a corpus' load, such as eegmat.window_seconds=10; may be repeated.",
            metavar="NAME.KEY=VALUE",
        ),
    ] = None,
    method: Methods = None,
    settings: Settings = None,
    metric: Metrics = None,
    test_subject: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of the corpus' own split, such as eegmat=Subject07; may be repeated.",
            metavar="NAME=ID",
        ),
    ] = None,
    seeds: Seeds = 5,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Fine-tune one pretrained encoder on several corpora with fixed test subjects."""
    with told(_kept(out)):
        folders = pairs(dataset, "--dataset", "NAME=FOLDER")
        names = [name for name, _ in folders]
        if len(set(names)) < len(names):
            raise ValueError(f"--dataset names a corpus twice: {', '.join(names)}.")
        arguments = _by_corpus(pairs(load, "--load", "NAME.KEY=VALUE"), names, ".")
        people = _by_corpus(pairs(test_subject, "--test-subject", "NAME=ID"), names)
        windows = {
            _title(name): _windows(name, Path(folder), arguments[name]) for name, folder in folders
        }
        asked = {_title(name): _subjects(windows[_title(name)], people[name]) for name in names}
        scores = evaluation.transfer(
            _contenders(method or ["scratch", "band-power"], encoder, settings),
            windows,
            test_subjects={name: people for name, people in asked.items() if people} or None,
            metrics=metric or KAPPA,
            seeds=range(seeds),
            n_jobs=n_jobs,
            out=out,
        )
        _finish(scores, out)


@evaluate.command()
def ablation(
    dataset: Dataset,
    grid: Annotated[str, typer.Option(help=f"Of {', '.join(GRIDS)}.", metavar="NAME")],
    data: Data = None,
    load: Load = None,
    settings: Settings = None,
    metric: Metrics = None,
    test_subject: TestSubjects = None,
    n: Annotated[int | None, typer.Option(help="Number of training subjects.", min=1)] = None,
    seeds: Seeds = 5,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Vary a choice of the pretraining, and score what comes of it."""
    if grid not in GRIDS:
        raise typer.BadParameter(f"{grid!r} is no grid; known are {', '.join(GRIDS)}.")
    with told(_kept(out)):
        windows = _windows(dataset, data, load)
        (estimator,) = contenders(["pars"], **values(settings, "--set")).values()
        scores = evaluation.ablation(
            estimator,
            windows,
            GRIDS[grid],
            test_subjects=_subjects(windows, test_subject),
            n_train_subjects=n,
            metrics=metric or ["kappa"],
            seeds=range(seeds),
            dataset=_title(dataset),
            n_jobs=n_jobs,
            out=out,
        )
        varied = [name for name in GRIDS[grid] if name in scores and scores[name].nunique() > 1]
        rows, columns = varied if len(varied) == 2 else ("", "")
        _finish(scores, out, rows=rows, columns=columns)


def _finish(scores: pd.DataFrame, out: Path, **grid: str) -> None:
    console = Console()
    show_scores(console, scores)
    figure = draw(scores, out, **grid)
    console.print(f"Written to [bold]{out}[/]: scores.csv, {figure.name}, folds/.")


def _kept(out: Path) -> str:
    return f"Finished fits are kept in {out}; the same command goes on from there."


def _title(dataset: str) -> str:
    return RECIPES[dataset].CARD["name"] if dataset in RECIPES else dataset


def _windows(dataset: str, data: Path | None, load: Iterable[str] | None) -> BaseConcatDataset:
    arguments = dict(values(load, "--load"))
    if dataset == "simulated":
        defaults = dict(n_subjects=6, hours=1, random_state=0)
        return _load(simulated.sleep, dataset, **{**defaults, **arguments})
    if dataset not in RECIPES:
        known = ", ".join(["simulated", *sorted(RECIPES)])
        raise ValueError(f"{dataset!r} is no corpus; known are {known}.")
    if data is None:
        raise ValueError(f"Where is {dataset}? Give its folder with --data; nothing is downloaded.")
    return _load(RECIPES[dataset].load, dataset, data, **arguments)


def _load(load: Any, dataset: str, *folder: Path, **arguments: Any) -> BaseConcatDataset:
    known = list(inspect.signature(load).parameters)[len(folder) :]
    foreign = [name for name in arguments if name not in known]
    if foreign:
        raise ValueError(f"{dataset} has no argument {foreign[0]!r}; it has {', '.join(known)}.")
    return load(*folder, **arguments)


def _contenders(
    names: list[str] | None, encoder: Path | None, settings: list[str] | None
) -> dict[str, Any]:
    if encoder is not None and not encoder.is_dir():
        raise ValueError(f"--encoder {encoder} is no folder.")
    names = names or ["pars", "scratch", "eegnet", "band-power"]
    return contenders(names, encoder=encoder, **values(settings, "--set"))


def _by_corpus(
    pairs: list[tuple[str, str]], names: list[str], separator: str = ""
) -> dict[str, list[str]]:
    """What is said of each corpus: NAME=TEXT, or with a separator NAME.KEY=VALUE as KEY=VALUE."""
    said: dict[str, list[str]] = {name: [] for name in names}
    for key, value in pairs:
        name, _, inner = key.partition(separator) if separator else (key, "", "")
        if name not in said:
            raise ValueError(f"{key}={value} is for no --dataset; there are {', '.join(names)}.")
        said[name].append(f"{inner}={value}" if separator else value)
    return said


def _subjects(windows: BaseConcatDataset, asked: list[str] | None) -> list | None:
    """Subjects as the corpus writes them."""
    if not asked:
        return None
    there = {str(subject): subject for subject in windows.description["subject"]}
    absent = [name for name in asked if name not in there]
    if absent:
        raise ValueError(f"There is no subject {', '.join(absent)}; there are {', '.join(there)}.")
    return [there[name] for name in asked]
