"""``braindecode-pars evaluate``: the paper's protocols, with a table and a figure of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli.terminal import (
    CORPORA,
    GRIDS,
    METHODS,
    METRICS,
    pairs,
    report_failures,
    values,
)

evaluate = typer.Typer(
    help="Score classifiers on held-out subjects. Finished fits are kept in --out: after an "
    "interruption, the same command resumes.",
    no_args_is_help=True,
)

# Options that several commands share.
Dataset = Annotated[
    str,
    typer.Option(
        help=f"Corpus: mental_arithmetic (in the package), simulated, {', '.join(CORPORA)}; a "
        "folder of own labelled recordings, a BIDS data set, or a store with labels; a Python "
        "file with a function load that returns labelled windows.",
        metavar="NAME",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder of a corpus with a name, or of a store of it with labels; mental_arithmetic "
        "and simulated need none."
    ),
]
Load = Annotated[
    list[str] | None,
    typer.Option(
        help="Argument of the corpus' load function, such as window_seconds=10, or, for a folder "
        "of own recordings, labels=labels.csv or 'labels={subject}_{label}'. May be repeated.",
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
Paper = Annotated[
    bool,
    typer.Option(
        "--paper",
        help="Fine-tune as published, in 200 epochs: paper.FINE_TUNING, and for eesm17 its noise. "
        "For the paper's validation subjects add --set validation=split. Sizes and pretraining are "
        "those of the encoder. As with --set, eegnet and shallow take the values that they share.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="TOML file with the tables 'set' and 'load' for many arguments of --set and --load; "
        "for transfer a table of each corpus, such as 'load.eegmat'. The "
        "options win over the file, and the file over --paper.",
        metavar="FILE",
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
Jobs = Annotated[
    int | None, typer.Option(help="Number of parallel fits, each on its own GPU. Default: 1.")
]
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
    published: Paper = False,
    config: Config = None,
    metric: Metrics = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Method to test the others against, such as scratch. Default: all pairs.",
            metavar="NAME",
        ),
    ] = None,
    seeds: Seeds = 1,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Compare methods with one subject held out at a time, and test the paired differences."""
    with report_failures(_what_is_kept(out)):
        from braindecode_pars.cli import evaluation_report
        from braindecode_pars.cli.evaluation_report import load_arguments, settings_of

        evaluation_report.compare(
            evaluation_report.methods_of(
                method, encoder, settings_of(settings, config, published=published, dataset=dataset)
            ),
            evaluation_report.load(dataset, data, load_arguments(load, config)),
            evaluation_report.title(dataset),
            metrics=metric or KAPPA,
            seeds=range(seeds),
            against=against,
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
    published: Paper = False,
    config: Config = None,
    metric: Metrics = None,
    seeds: Seeds = 1,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Score methods with one subject held out at a time."""
    with report_failures(_what_is_kept(out)):
        from braindecode_pars.cli import evaluation_report
        from braindecode_pars.cli.evaluation_report import load_arguments, settings_of

        evaluation_report.leave_one_subject_out(
            evaluation_report.methods_of(
                method, encoder, settings_of(settings, config, published=published, dataset=dataset)
            ),
            evaluation_report.load(dataset, data, load_arguments(load, config)),
            evaluation_report.title(dataset),
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
    published: Paper = False,
    config: Config = None,
    metric: Metrics = None,
    test_subject: TestSubjects = None,
    seeds: Seeds = 5,
    n_jobs: Jobs = None,
    out: Out = OUT,
) -> None:
    """Vary the number of training subjects, and score on fixed test subjects."""
    with report_failures(_what_is_kept(out)):
        from braindecode_pars.cli import evaluation_report
        from braindecode_pars.cli.evaluation_report import load_arguments, settings_of

        methods = evaluation_report.methods_of(
            method, encoder, settings_of(settings, config, published=published, dataset=dataset)
        )
        windows = evaluation_report.load(dataset, data, load_arguments(load, config))
        evaluation_report.label_efficiency(
            methods,
            windows,
            evaluation_report.title(dataset),
            n_train_subjects=n,
            test_subjects=evaluation_report.subjects_of(windows, test_subject),
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
            help="Corpus and its folder, such as eegmat=data/eegmat. Another name is that of a "
            "folder of own recordings. May be repeated.",
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
    published: Paper = False,
    config: Config = None,
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
        from braindecode_pars.cli import evaluation_report
        from braindecode_pars.cli.evaluation_report import load_arguments, settings_of

        # Options by corpus.
        folders = pairs(dataset, "--dataset", "NAME=FOLDER")
        names = [name for name, _ in folders]
        if len(set(names)) < len(names):
            raise ValueError(f"--dataset names a corpus twice: {', '.join(names)}.")
        by_corpus = _by_corpus(pairs(load, "--load", "NAME.KEY=VALUE"), names, ".")
        in_file = _by_table(load_arguments(None, config), names)
        subjects = _by_corpus(pairs(test_subject, "--test-subject", "NAME=ID"), names)

        default = ("scratch", "band-power")
        methods = evaluation_report.methods_of(
            method, encoder, settings_of(settings, config, published=published), default
        )

        # Load the corpora.
        windows, test_subjects = {}, {}
        for name, folder in folders:
            title = evaluation_report.title(name)
            if title in windows:
                raise ValueError(
                    f"Two of the data sets are called {title}; rename the folder of one of them."
                )
            arguments = {**in_file[name], **values(by_corpus[name], "--load")}
            windows[title] = evaluation_report.load(name, Path(folder), arguments)
            if subjects[name]:
                test_subjects[title] = evaluation_report.subjects_of(windows[title], subjects[name])

        # Run the protocol.
        evaluation_report.transfer(
            methods,
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
    published: Annotated[
        bool,
        typer.Option(
            "--paper",
            help="Sizes, pretraining and fine-tuning as published: paper.CLASSIFIER, and for "
            "eesm17 its noise.",
        ),
    ] = False,
    config: Config = None,
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
        from braindecode_pars.cli import evaluation_report
        from braindecode_pars.cli.evaluation_report import load_arguments, settings_of

        windows = evaluation_report.load(dataset, data, load_arguments(load, config))
        evaluation_report.ablation(
            settings_of(settings, config, published=published, dataset=dataset, pretrains=True),
            windows,
            evaluation_report.title(dataset),
            grid,
            test_subjects=evaluation_report.subjects_of(windows, test_subject),
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


def _by_table(arguments: dict[str, Any], names: list[str]) -> dict[str, dict[str, Any]]:
    """Return the tables [load.NAME] of a file by corpus."""
    for name, table in arguments.items():
        if name not in names or not isinstance(table, dict):
            raise ValueError(
                f"[load] in --config has an entry {name!r}; transfer takes a table of each corpus, "
                f"such as [load.{names[0]}]."
            )
    return {name: arguments.get(name, {}) for name in names}
