"""``braindecode-pars evaluate``: the paper's protocols from data to table and figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import failures_told
from braindecode_pars.cli._names import CORPORA, GRIDS, METHODS, METRICS
from braindecode_pars.cli._values import pairs, values

__all__ = ["evaluate"]

evaluate = typer.Typer(
    help="Score classifiers on held-out subjects. Finished fits are kept in --out, so that the "
    "same command resumes after an interruption.",
    no_args_is_help=True,
)

Dataset = Annotated[
    str,
    typer.Option(
        help=f"Corpus: simulated, {', '.join(CORPORA)}.",
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
        help=f"One of {', '.join(METHODS)}; may be repeated. Without it: pars, scratch, eegnet "
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
        help=f"One of {', '.join(METRICS)}; may be repeated. The first one is drawn and tested.",
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
Out = Annotated[Path, typer.Option(help="Folder to write to, and to resume from.")]
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
    """Hold out one subject at a time for several methods, with paired tests over subjects."""
    with failures_told(_kept(out)):
        from braindecode_pars.cli import _evaluation

        _evaluation.compare(
            _evaluation.methods_of(method, encoder, values(settings, "--set")),
            _evaluation.load(dataset, data, values(load, "--load")),
            _evaluation.title(dataset),
            metrics=metric or KAPPA,
            seeds=range(seeds),
            n_jobs=n_jobs,
            out=out,
        )


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
    with failures_told(_kept(out)):
        from braindecode_pars.cli import _evaluation

        _evaluation.leave_one_subject_out(
            _evaluation.methods_of(method, encoder, values(settings, "--set")),
            _evaluation.load(dataset, data, values(load, "--load")),
            _evaluation.title(dataset),
            metrics=metric or KAPPA,
            seeds=range(seeds),
            n_jobs=n_jobs,
            out=out,
        )


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
    with failures_told(_kept(out)):
        from braindecode_pars.cli import _evaluation

        windows = _evaluation.load(dataset, data, values(load, "--load"))
        _evaluation.label_efficiency(
            _evaluation.methods_of(method, encoder, values(settings, "--set")),
            windows,
            _evaluation.title(dataset),
            n_train_subjects=n,
            test_subjects=_evaluation.subjects_of(windows, test_subject),
            metrics=metric or (*KAPPA, "f1"),
            seeds=range(seeds),
            n_jobs=n_jobs,
            out=out,
        )


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
    with failures_told(_kept(out)):
        from braindecode_pars.cli import _evaluation

        folders = pairs(dataset, "--dataset", "NAME=FOLDER")
        names = [name for name, _ in folders]
        if len(set(names)) < len(names):
            raise ValueError(f"--dataset names a corpus twice: {', '.join(names)}.")
        arguments = _by_corpus(pairs(load, "--load", "NAME.KEY=VALUE"), names, ".")
        asked = _by_corpus(pairs(test_subject, "--test-subject", "NAME=ID"), names)
        windows, test_subjects = {}, {}
        for name, folder in folders:
            title = _evaluation.title(name)
            windows[title] = _evaluation.load(name, Path(folder), values(arguments[name], "--load"))
            if asked[name]:
                test_subjects[title] = _evaluation.subjects_of(windows[title], asked[name])
        methods = method or ["scratch", "band-power"]
        _evaluation.transfer(
            _evaluation.methods_of(methods, encoder, values(settings, "--set")),
            windows,
            test_subjects=test_subjects or None,
            metrics=metric or KAPPA,
            seeds=range(seeds),
            n_jobs=n_jobs,
            out=out,
        )


@evaluate.command()
def ablation(
    dataset: Dataset,
    grid: Annotated[str, typer.Option(help=f"One of {', '.join(GRIDS)}.", metavar="NAME")],
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
    """Vary a choice in pretraining, and score each setting."""
    if grid not in GRIDS:
        raise typer.BadParameter(f"Unknown grid {grid!r}; known are {', '.join(GRIDS)}.")
    with failures_told(_kept(out)):
        from braindecode_pars.cli import _evaluation

        windows = _evaluation.load(dataset, data, values(load, "--load"))
        _evaluation.ablation(
            values(settings, "--set"),
            windows,
            _evaluation.title(dataset),
            grid,
            test_subjects=_evaluation.subjects_of(windows, test_subject),
            n_train_subjects=n,
            metrics=metric or ["kappa"],
            seeds=range(seeds),
            n_jobs=n_jobs,
            out=out,
        )


def _kept(out: Path) -> str:
    return f"Finished fits are kept in {out}; the same command resumes from there."


def _by_corpus(
    pairs: list[tuple[str, str]], names: list[str], separator: str = ""
) -> dict[str, list[str]]:
    """What was given for each corpus: of NAME=TEXT the TEXT, of NAME.KEY=VALUE the KEY=VALUE."""
    said: dict[str, list[str]] = {name: [] for name in names}
    for key, value in pairs:
        name, _, inner = key.partition(separator) if separator else (key, "", "")
        if name not in said:
            raise ValueError(f"{key}={value} is for no --dataset; there are {', '.join(names)}.")
        said[name].append(f"{inner}={value}" if separator else value)
    return said
