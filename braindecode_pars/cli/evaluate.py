"""``braindecode-pars evaluate PROTOCOL``: scores of the paper's protocols, tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli.terminal import (
    CONTROLS,
    CORPORA,
    GRIDS,
    METHODS,
    METRICS,
    given_options,
    pairs,
    report_failures,
    values,
)

_METHODS = ("--method", "--encoder", "--unequal-sizes")
#: Protocol -> options that not all of them take.
PROTOCOLS = {
    "compare": ("--data", *_METHODS, "--against"),
    "leave-one-subject-out": ("--data", *_METHODS),
    "label-efficiency": ("--data", *_METHODS, "--test-subject", "--n"),
    "transfer": (*_METHODS, "--test-subject"),
    "ablation": ("--data", "--test-subject", "--n", "--grid"),
    "controls": ("--data", *_METHODS, "--against", "--test-subject", "--n", "--control"),
}
REQUIRED = {"label-efficiency": "--n", "transfer": "--encoder", "ablation": "--grid"}
KAPPA = ("kappa", "balanced_accuracy")
METRICS_OF: dict[str, tuple[str, ...]] = {
    "label-efficiency": (*KAPPA, "f1"),
    "ablation": ("kappa",),
    "controls": ("balanced_accuracy",),
}
OUT = Path("braindecode-pars-evaluation")


def evaluate(
    context: typer.Context,
    protocol: Annotated[str, typer.Argument(help=", ".join(PROTOCOLS) + ".")],
    dataset: Annotated[
        list[str],
        typer.Option(
            help=f"Corpus: mental_arithmetic (in the package), simulated, {', '.join(CORPORA)}; a "
            "folder of own labelled recordings, a BIDS data set, or a store with labels; a Python "
            "file with a function load that returns labelled windows. For transfer each corpus "
            "with its folder, such as eegmat=data/eegmat; may then be repeated.",
            metavar="NAME",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a corpus with a name, or of a store of it with labels; "
            "mental_arithmetic and simulated need none."
        ),
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(
            help="Argument of the corpus' load function, such as window_seconds=10, or, for a "
            "folder of own recordings, labels=labels.csv or 'labels={subject}_{label}'; for "
            "transfer with the corpus in front, eegmat.window_seconds=10. May be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="New reference of the recordings: average, of their EEG channels. Default: that "
            "of the corpus' load function, for own recordings their own.",
            metavar="NAME",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Method: {', '.join(METHODS)}, a published model NAME:WEIGHTS, such as "
            "cbramod:FILE, or a pretext task FILE.py:CLASS, whose code is run. May be repeated. "
            "Default: pars, scratch, band-power and tangent-space; with encoders all but pars; for "
            "transfer scratch and band-power; for controls with encoders probe, random-encoder, "
            "band-power, tangent-space and classical-features. "
            "eegnet and shallow train for 500 epochs, as published, if finetune_epochs is not set.",
            metavar="NAME",
        ),
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="Pretrained encoder to fine-tune as an additional method: a folder, a name in the "
            "package such as small, or a model id. Several have names: --encoder PARS=run1 "
            "--encoder MAE=run2. For controls, frozen in a probe if probe is a method.",
            metavar="[NAME=]FOLDER",
        ),
    ] = None,
    unequal_sizes: Annotated[
        bool,
        typer.Option(
            "--unequal-sizes",
            help="Compare encoders with different numbers of parameters, and show the numbers in "
            "the table: other methods have the sizes of --set or the defaults. Without it they "
            "have those of the encoder.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Argument of PARSClassifier, such as pretrain_epochs=100, subject_centering=true, "
            "or C=0.01 of logistic regressions (C=null: chosen by held-out subjects). May be "
            "repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--paper",
            help="Fine-tune as published, in 200 epochs: paper.FINE_TUNING, and for eesm17 its "
            "noise; for ablation also sizes and pretraining, paper.CLASSIFIER. For the paper's "
            "validation subjects add --set validation=split. As with --set, eegnet and shallow "
            "take the values that they share.",
        ),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with the tables 'set' and 'load' for many arguments of --set and "
            "--load; for transfer a table of each corpus, such as 'load.eegmat'. The options win "
            "over the file, and the file over --paper.",
            metavar="FILE",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Metric: {', '.join(METRICS)}. May be repeated. The figure and the tests use the "
            "first one.",
            metavar="NAME",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="For compare and controls: method to test the others against, such as scratch. "
            "Default: all pairs; for controls scratch if it is a method, else random-encoder.",
            metavar="NAME",
        ),
    ] = None,
    n: Annotated[
        list[int] | None,
        typer.Option(
            help="For label-efficiency and controls: number of training subjects; may be "
            "repeated. For ablation: the same; the last one counts. Default: all.",
            min=1,
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(help=f"For ablation: settings to vary, {', '.join(GRIDS)}.", metavar="NAME"),
    ] = None,
    control: Annotated[
        list[str] | None,
        typer.Option(
            help=f"For controls: what the windows lack, {', '.join(CONTROLS)}. May be repeated. "
            "Default: all.",
            metavar="NAME",
        ),
    ] = None,
    test_subject: Annotated[
        list[str] | None,
        typer.Option(
            help="Fixed test subject; for transfer with the corpus in front, eegmat=Subject07. May "
            "be repeated. Default: the corpus' own split; for controls of a corpus without one, "
            "four folds of subjects with --n, and each subject in turn without.",
            metavar="ID",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Number of seeds; seeds are 0, 1, ... Default: 5; for compare, "
            "leave-one-subject-out, and controls without --n, 1.",
            min=1,
        ),
    ] = None,
    n_jobs: Annotated[
        int | None, typer.Option(help="Number of parallel fits, on the GPUs in turn. Default: 1.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results, and to resume from.")] = OUT,
) -> None:
    """Score classifiers on held-out subjects.

    Two protocols hold out one subject at a time: leave-one-subject-out, and compare, which also
    tests the paired differences. Three have fixed test subjects: label-efficiency varies the number
    of training subjects, transfer fine-tunes encoders on several corpora, and ablation varies
    settings of pretraining with PARS. controls repeats a comparison on windows that lack one thing,
    such as slow voltages, and says what the gain of an encoder needs.

    Finished fits are kept in --out: after an interruption, the same command resumes.
    """
    _check_options(protocol, given_options(context), dataset, grid, control)
    once = protocol in ("compare", "leave-one-subject-out")
    is_control = protocol == "controls"
    n_seeds = seeds or (1 if once or (is_control and not n) else 5)
    arguments: dict[str, Any] = dict(
        metrics=metric or METRICS_OF.get(protocol, KAPPA),
        seeds=range(n_seeds),
        n_jobs=n_jobs,
        out=out,
    )
    with report_failures(f"Finished fits are kept in {out}; run the same command to resume."):
        from braindecode_pars.cli import evaluation_report as report

        given = {} if reference is None else {"reference": reference}
        is_transfer, is_ablation = protocol == "transfer", protocol == "ablation"
        name = "" if is_transfer else dataset[0]
        classifier = report.settings_of(
            settings, config, published=published, dataset=name, pretrains=is_ablation
        )
        if not is_ablation:
            arguments["equal_sizes"] = classifier["equal_sizes"] = not unequal_sizes
        if is_transfer:
            corpora = _corpora(dataset, load, config, test_subject, given)
            methods = report.methods_of(method, encoder, classifier, ("scratch", "band-power"))
            several = {title: report.load(*corpus[:3]) for title, corpus in corpora.items()}
            tested = {
                title: report.subjects_of(several[title], subjects)
                for title, (*_, subjects) in corpora.items()
                if subjects
            }
            report.run(protocol, methods, several, test_subjects=tested or None, **arguments)
            return
        if is_control:
            from braindecode_pars.cli.control_report import control_methods, run_controls

            methods = control_methods(method, encoder, classifier)
        else:
            methods = {} if is_ablation else report.methods_of(method, encoder, classifier)
        windows = report.load(name, data, {**report.load_arguments(load, config), **given})
        arguments["dataset"] = report.title(name)
        if not once:
            arguments["test_subjects"] = report.subjects_of(windows, test_subject)
        if is_ablation:
            last = n[-1] if n else None
            report.ablation(classifier, windows, grid or "", n_train_subjects=last, **arguments)
            return
        if not once:
            arguments["n_train_subjects"] = n
        if is_control:
            run_controls(methods, windows, against=against, controls=control, **arguments)
            return
        report.run(protocol, methods, windows, against=against, **arguments)


def _check_options(
    protocol: str,
    given: list[str],
    dataset: list[str],
    grid: str | None,
    controls: list[str] | None,
) -> None:
    """Refuse an unknown protocol, and options that it does not take or cannot do without."""
    if protocol not in PROTOCOLS:
        raise typer.BadParameter(
            f"Unknown protocol {protocol!r}; known are {', '.join(PROTOCOLS)}."
        )
    for option in given:
        takes = [name for name, options in PROTOCOLS.items() if option in options]
        if takes and protocol not in takes:
            raise typer.BadParameter(f"{protocol} takes no {option}; it is for {', '.join(takes)}.")
    needed = REQUIRED.get(protocol)
    if needed is not None and needed not in given:
        raise typer.BadParameter(f"{protocol} needs {needed}.")
    if grid is not None and grid not in GRIDS:
        raise typer.BadParameter(f"Unknown grid {grid!r}; known are {', '.join(GRIDS)}.")
    if unknown := [name for name in controls or () if name not in CONTROLS]:
        raise typer.BadParameter(
            f"Unknown control {unknown[0]!r}; known are {', '.join(CONTROLS)}."
        )
    if protocol != "transfer" and len(dataset) > 1:
        raise typer.BadParameter(f"{protocol} takes one --dataset; transfer takes several.")


def _corpora(
    dataset: list[str],
    load: list[str] | None,
    config: Path | None,
    test_subject: list[str] | None,
    given: dict[str, Any],
) -> dict[str, tuple[str, Path, dict[str, Any], list[str]]]:
    """Return name, folder, arguments of ``load`` and test subjects of each corpus, by title."""
    from braindecode_pars.cli.evaluation_report import load_arguments, title

    folders = pairs(dataset, "--dataset", "NAME=FOLDER")
    names = [name for name, _ in folders]
    tables = load_arguments(None, config)
    for name, table in tables.items():
        if name not in names or not isinstance(table, dict):
            raise ValueError(
                f"[load] in --config has an entry {name!r}; transfer takes a table of each corpus, "
                f"such as [load.{names[0]}]."
            )
    options, subjects = _by_corpus(load, names, "."), _by_corpus(test_subject, names, "=")
    corpora = {}
    for name, folder in folders:
        if title(name) in corpora:
            raise ValueError(
                f"Two of --dataset are called {title(name)}; rename the folder of one."
            )
        arguments = {**tables.get(name, {}), **values(options[name], "--load"), **given}
        corpora[title(name)] = name, Path(folder), arguments, subjects[name]
    return corpora


def _by_corpus(options: list[str] | None, names: list[str], separator: str) -> dict[str, list[str]]:
    """Group options such as NAME.KEY=VALUE or NAME=ID by the corpus in front."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for option in options or ():
        name, _, text = option.partition(separator)
        if name not in found:
            raise ValueError(
                f"{option} matches no --dataset; begin it with one of {', '.join(names)}."
            )
        found[name].append(text)
    return found
