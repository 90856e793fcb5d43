"""``braindecode-pars evaluate``: the paper's protocols, with a table and a figure of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import report_failures
from braindecode_pars.cli._names import CORPORA, GRIDS, METHODS, METRICS
from braindecode_pars.cli._values import pairs, values

__all__ = ["evaluate"]

evaluate = typer.Typer(
    help="Score classifiers on held-out subjects. Finished fits are kept in --out: after an "
    "interruption, the same command resumes.",
    no_args_is_help=True,
)

# Options that several commands share.
Dataset = Annotated[
    str,
    typer.Option(
        help=f"Corpus: mental_arithmetic (in the package), simulated, {', '.join(CORPORA)}.",
        metavar="NAME",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder of the corpus; mental_arithmetic and simulated need none."),
]
Load = Annotated[
    list[str] | None,
    typer.Option(
        help="Argument of the corpus' load function, such as window_seconds=10. May be repeated.",
        metavar="KEY=VALUE",
    ),
]
_METHOD_HELP = f"Method: {', '.join(METHODS)}. May be repeated. Default: "
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        help=f"{_METHOD_HELP}pars, scratch, band-power and tangent-space. eegnet and shallow train "
        "for 500 epochs, as published, if finetune_epochs is not set.",
        metavar="NAME",
    ),
]
Encoder = Annotated[
    list[str] | None,
    typer.Option(
        help="Pretrained encoder to fine-tune as an additional method: a folder, a name in the "
        "package such as small, or a model id. Several have names: --encoder PARS=run1 --encoder "
        "MAE=run2. Then the default methods are scratch, band-power and tangent-space.",
        metavar="[NAME=]FOLDER",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Argument of PARSClassifier, such as pretrain_epochs=100, or subject_centering=true. "
        "May be repeated.",
        metavar="KEY=VALUE",
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help=f"Metric: {', '.join(METRICS)}. May be repeated. The figure and the tests use the "
        "first one.",
        metavar="NAME",
    ),
]
TestSubjects = Annotated[
    list[str] | None,
    typer.Option(
        "--test-subject",
        help="Test subject. May be repeated. Default: the corpus' own split.",
        metavar="ID",
    ),
]
Seeds = Annotated[int, typer.Option(help="Number of seeds; seeds are 0, 1, ...", min=1)]
Jobs = Annotated[int | None, typer.Option(help="Number of parallel fits. Default: 1.")]
Out = Annotated[Path, typer.Option(help="Folder for the results, and to resume from.")]
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
    """Compare methods with one subject held out at a time, and test the paired differences."""
    with report_failures(_what_is_kept(out)):
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
    """Score methods with one subject held out at a time."""
    with report_failures(_what_is_kept(out)):
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
        list[int], typer.Option(help="Number of training subjects. May be repeated.", min=1)
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
    """Vary the number of training subjects, and score on fixed test subjects."""
    with report_failures(_what_is_kept(out)):
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
    encoder: Annotated[
        list[str],
        typer.Option(
            help="Pretrained encoder: a folder, a name in the package such as small, or a model "
            "id. Several have names: --encoder PARS=run1 --encoder MAE=run2.",
            metavar="[NAME=]FOLDER",
        ),
    ],
    dataset: Annotated[
        list[str],
        typer.Option(
            help="Corpus and its folder, such as eegmat=data/eegmat. May be repeated.",
            metavar="NAME=FOLDER",
        ),
    ],
    load: Annotated[
        list[str] | None,
        typer.Option(
            help="Argument of a corpus' load function, such as eegmat.window_seconds=10. May be "
            "repeated.",
            metavar="NAME.KEY=VALUE",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help=f"{_METHOD_HELP}scratch and band-power.", metavar="NAME"),
    ] = None,
    settings: Settings = None,
    metric: Metrics = None,
    test_subject: Annotated[
        list[str] | None,
        typer.Option(
            help="Test subject of a corpus, such as eegmat=Subject07. May be repeated. Default: "
            "the corpus' own split.",
            metavar="NAME=ID",
        ),
    ] = None,
    seeds: Seeds = 5,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Fine-tune pretrained encoders on several corpora, and score on fixed test subjects."""
    with report_failures(_what_is_kept(out)):
        from braindecode_pars.cli import _evaluation

        # Options by corpus.
        folders = pairs(dataset, "--dataset", "NAME=FOLDER")
        names = [name for name, _ in folders]
        if len(set(names)) < len(names):
            raise ValueError(f"--dataset names a corpus twice: {', '.join(names)}.")
        arguments = _by_corpus(pairs(load, "--load", "NAME.KEY=VALUE"), names, ".")
        subjects = _by_corpus(pairs(test_subject, "--test-subject", "NAME=ID"), names)

        # Load the corpora.
        windows, test_subjects = {}, {}
        for name, folder in folders:
            title = _evaluation.title(name)
            windows[title] = _evaluation.load(name, Path(folder), values(arguments[name], "--load"))
            if subjects[name]:
                test_subjects[title] = _evaluation.subjects_of(windows[title], subjects[name])

        # Run the protocol.
        default = ("scratch", "band-power")
        _evaluation.transfer(
            _evaluation.methods_of(method, encoder, values(settings, "--set"), default),
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
    grid: Annotated[
        str, typer.Option(help=f"Settings to vary: {', '.join(GRIDS)}.", metavar="NAME")
    ],
    data: Data = None,
    load: Load = None,
    settings: Settings = None,
    metric: Metrics = None,
    test_subject: TestSubjects = None,
    n: Annotated[
        int | None, typer.Option(help="Number of training subjects. Default: all.", min=1)
    ] = None,
    seeds: Seeds = 5,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Vary one or two settings of pretraining with PARS, and score each combination."""
    if grid not in GRIDS:
        raise typer.BadParameter(f"Unknown grid {grid!r}; known are {', '.join(GRIDS)}.")
    with report_failures(_what_is_kept(out)):
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


def _what_is_kept(out: Path) -> str:
    return f"Finished fits are kept in {out}; run the same command to resume."


def _by_corpus(
    pairs: list[tuple[str, str]], names: list[str], separator: str = ""
) -> dict[str, list[str]]:
    """Group option values by corpus.

    NAME=TEXT gives TEXT; with a separator, NAME.KEY=VALUE gives KEY=VALUE.
    """
    found: dict[str, list[str]] = {name: [] for name in names}
    for key, value in pairs:
        name, _, inner = key.partition(separator) if separator else (key, "", "")
        if name not in found:
            raise ValueError(
                f"{key}={value} matches no --dataset; begin it with one of {', '.join(names)}."
            )
        found[name].append(f"{inner}={value}" if separator else value)
    return found
