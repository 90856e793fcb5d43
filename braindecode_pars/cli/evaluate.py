"""``braindecode-pars evaluate PROTOCOL``: scores of the paper's protocols, tables and figures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli.terminal import (
    CONTROLS,
    CORPORA,
    GRIDS,
    METHODS,
    METRICS,
    option,
    report_failures,
    values,
    with_options,
)

_METHODS = ("--method", "--encoder", "--unequal-sizes")
#: Protocol -> options that not all of them take.
PROTOCOLS = {
    "compare": (*_METHODS, "--against"),
    "leave-one-subject-out": _METHODS,
    "label-efficiency": (*_METHODS, "--test-subject", "--n"),
    "transfer": (*_METHODS, "--test-subject"),
    "ablation": ("--test-subject", "--n", "--grid"),
    "controls": (*_METHODS, "--against", "--test-subject", "--n", "--control"),
}
REQUIRED = {"label-efficiency": "--n", "transfer": "--encoder", "ablation": "--grid"}
KAPPA = ("kappa", "balanced_accuracy")
METRICS_OF: dict[str, tuple[str, ...]] = {
    "label-efficiency": (*KAPPA, "f1"),
    "ablation": ("kappa",),
    "controls": ("balanced_accuracy",),
}
OUT = Path("braindecode-pars-evaluation")

_OPTIONS: dict[str, Any] = dict(
    data=option(
        Path,
        "Folder of a corpus with a name, or of a store of it with labels; mental_arithmetic and "
        "simulated need none.",
    ),
    load=option(
        list[str],
        "Argument of the corpus' load function, such as window_seconds=10, or, for a folder of own "
        "recordings, labels=labels.csv or 'labels={subject}_{label}'. May be repeated.",
        metavar="KEY=VALUE",
    ),
    method=option(
        list[str],
        f"Method: {', '.join(METHODS)}, or a pretext task FILE.py:CLASS, whose code is run. May be "
        "repeated. Default: pars, scratch, band-power and tangent-space; with encoders all but "
        "pars; for transfer scratch and band-power; for controls with encoders probe, "
        "random-encoder, band-power, tangent-space and classical-features. eegnet and shallow "
        "train for 500 epochs, as published, if finetune_epochs is not set.",
        metavar="NAME",
    ),
    encoder=option(
        list[str],
        "Pretrained encoder to fine-tune as an additional method: a folder, a name in the package "
        "such as small, or a model id. Several have names: --encoder PARS=run1 --encoder "
        "MAE=run2. For controls, frozen in a probe if probe is a method.",
        metavar="[NAME=]FOLDER",
    ),
    unequal_sizes=option(
        bool,
        "Compare encoders with different numbers of parameters, and show the numbers in the table: "
        "other methods have the sizes of --set or the defaults. Without it they have those of the "
        "encoder.",
        "--unequal-sizes",
    ),
    settings=option(
        list[str],
        "Argument of PARSClassifier, such as pretrain_epochs=100, subject_centering=true, or "
        "C=0.01 of logistic regressions (C=null: chosen by held-out subjects). May be repeated.",
        "--set",
        metavar="KEY=VALUE",
    ),
    published=option(
        bool,
        "Fine-tune as published, in 200 epochs: paper.FINE_TUNING, and for eesm17 its noise; for "
        "ablation also sizes and pretraining, paper.CLASSIFIER. For the paper's validation "
        "subjects add --set validation=split. As with --set, eegnet and shallow take the values "
        "that they share.",
        "--paper",
    ),
    metric=option(
        list[str],
        f"Metric: {', '.join(METRICS)}. May be repeated. The figure and the tests use the first.",
        metavar="NAME",
    ),
    against=option(
        str,
        "For compare and controls: method to test the others against, such as scratch. Default: "
        "all pairs; for controls scratch if it is a method, else random-encoder.",
        metavar="NAME",
    ),
    n=option(
        list[int],
        "For label-efficiency and controls: number of training subjects; may be repeated. For "
        "ablation: the same; the last one counts. Default: all.",
        min=1,
    ),
    grid=option(str, f"For ablation: settings to vary, {', '.join(GRIDS)}.", metavar="NAME"),
    control=option(
        list[str],
        f"For controls: what the windows lack, {', '.join(CONTROLS)}. May be repeated. Default: "
        "all.",
        metavar="NAME",
    ),
    test_subject=option(
        list[str],
        "Fixed test subject. May be repeated. Default: the corpus' own split; for controls of a "
        "corpus without one, four folds of subjects with --n, and each subject in turn without.",
        metavar="ID",
    ),
    seeds=option(
        int,
        "Number of seeds; seeds are 0, 1, ... Default: 5; for compare, leave-one-subject-out, and "
        "controls without --n, 1.",
        min=1,
    ),
    n_jobs=option(int, "Number of parallel fits, on the GPUs in turn. Default: 1."),
)
_DATASET = (
    f"Corpus: mental_arithmetic (in the package), simulated, {', '.join(CORPORA)}; a folder of own "
    "labelled recordings, a BIDS data set, or a store with labels; a Python file with a function "
    "load that returns labelled windows."
)


@with_options(_OPTIONS)
def evaluate(
    protocol: Annotated[str, typer.Argument(help=", ".join(PROTOCOLS) + ".")],
    dataset: Annotated[str, typer.Option(help=_DATASET, metavar="NAME")],
    out: Annotated[Path, typer.Option(help="Folder for the results, and to resume from.")] = OUT,
    *,
    given: dict[str, Any],
) -> None:
    """Score classifiers on held-out subjects.

    Two protocols hold out one subject at a time: leave-one-subject-out, and compare, which also
    tests the paired differences. Three have fixed test subjects: label-efficiency varies the number
    of training subjects, transfer fine-tunes encoders on a corpus, and ablation varies settings of
    pretraining with PARS. controls repeats a comparison on windows that lack one thing, such as
    slow voltages, and says what the gain of an encoder needs.

    Finished fits are kept in --out: after an interruption, the same command resumes.
    """
    _check_options(protocol, given)
    with report_failures(f"Finished fits are kept in {out}; run the same command to resume."):
        from braindecode_pars.cli import evaluation_report as report

        is_ablation, n = protocol == "ablation", given.get("n")
        settings = report.settings_of(
            given.get("settings"),
            published="published" in given,
            dataset=dataset,
            pretrains=is_ablation,
        )
        arguments: dict[str, Any] = dict(out=out, n_jobs=given.get("n_jobs"))
        methods = {}
        if not is_ablation:
            arguments["equal_sizes"] = settings["equal_sizes"] = "unequal_sizes" not in given
            # An unknown method ends the command before the corpus is read.
            names = given.get("method"), given.get("encoder")
            methods = report.methods_of(protocol, *names, settings)
        reading = values(given.get("load"), "--load")
        windows = report.load(dataset, given.get("data"), reading)
        once = protocol in ("compare", "leave-one-subject-out")
        n_seeds = given.get("seeds", 1 if once or (protocol == "controls" and not n) else 5)
        arguments |= dict(
            dataset=report.title(dataset),
            metrics=given.get("metric", METRICS_OF.get(protocol, KAPPA)),
            seeds=range(n_seeds),
        )
        if not once:
            arguments["test_subjects"] = report.subjects_of(windows, given.get("test_subject"))
        if protocol in ("label-efficiency", "controls"):
            arguments["n_train_subjects"] = n
        against = given.get("against")
        if is_ablation:
            arguments["n_train_subjects"] = n[-1] if n else None
            report.ablation(settings, windows, given["grid"], **arguments)
        elif protocol == "controls":
            controls = given.get("control")
            report.controls(methods, windows, against=against, controls=controls, **arguments)
        else:
            report.run(protocol, methods, windows, against=against, **arguments)


def _check_options(protocol: str, given: Mapping[str, Any]) -> None:
    """Refuse an unknown protocol, and options that it does not take or cannot do without."""
    _check_known("protocol", [protocol], PROTOCOLS)
    options = [f"--{name.replace('_', '-')}" for name in given]
    for each in options:
        takes = [name for name, own in PROTOCOLS.items() if each in own]
        if takes and protocol not in takes:
            raise typer.BadParameter(f"{protocol} takes no {each}; it is for {', '.join(takes)}.")
    needed = REQUIRED.get(protocol)
    if needed is not None and needed not in options:
        raise typer.BadParameter(f"{protocol} needs {needed}.")
    _check_known("grid", [given["grid"]] if "grid" in given else [], GRIDS)
    _check_known("control", given.get("control", []), CONTROLS)


def _check_known(what: str, names: list[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"Unknown {what} {name!r}; known are {', '.join(known)}.")
