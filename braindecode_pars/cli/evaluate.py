"""Command ``braindecode-pars evaluate PROTOCOL``: score classifiers on held-out subjects."""

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli.terminal import RESUME, values, with_options

_METHODS = ("--method", "--encoder", "--unequal-sizes")
#: Options of each protocol that are not options of all protocols.
PROTOCOLS = {
    "compare": (*_METHODS, "--against"),
    "leave-one-subject-out": _METHODS,
    "label-efficiency": (*_METHODS, "--test-subject", "--n"),
    "transfer": (*_METHODS, "--test-subject"),
    "ablation": ("--test-subject", "--n", "--grid"),
    "controls": (*_METHODS, "--against", "--test-subject", "--n", "--control"),
}
#: Required option of a protocol.
REQUIRED = {"label-efficiency": "--n", "transfer": "--encoder", "ablation": "--grid"}


@with_options(advice=RESUME.format("fits"))
def evaluate(
    context: typer.Context,
    protocol: str,
    *,
    dataset: str,
    data: Path | None = None,
    load: list[str] | None = None,
    method: list[str] | None = None,
    encoder: list[str] | None = None,
    unequal_sizes: bool = False,
    settings: Annotated[list[str] | None, typer.Option("--set")] = None,
    published: Annotated[bool, typer.Option("--paper")] = False,
    metric: list[str] | None = None,
    against: str | None = None,
    n: Annotated[list[int] | None, typer.Option(min=1)] = None,
    grid: list[str] | None = None,
    control: list[str] | None = None,
    test_subject: list[str] | None = None,
    seeds: Annotated[int | None, typer.Option(min=1)] = None,
    n_jobs: int | None = None,
    out: Path = Path("braindecode-pars-evaluation"),
) -> None:
    """Score classifiers on held-out subjects.

    Protocols that hold out one subject at a time: leave-one-subject-out and compare (also tests the
    paired differences between methods). Protocols with fixed test subjects: label-efficiency
    (varies the number of labeled training subjects), transfer (fine-tunes pretrained encoders on a
    corpus) and ablation (varies settings of pretraining with PARS). The protocol controls repeats a
    comparison on control signals, such as high-pass filtered windows, to show which signal
    properties a difference depends on.

    To resume after an interruption, run the same command; finished fits are stored in --out. An
    option that the protocol does not use raises an error, which lists the protocols that use it.

    Options
    -------
    protocol
        compare, leave-one-subject-out, label-efficiency, transfer, ablation, controls.
    dataset : NAME
        Dataset: sleep and mental_arithmetic (bundled), simulated, {RECIPES};
        a folder of labeled recordings, a BIDS dataset, or a store with labels; or a Python file
        with a function load that returns labeled windows.
    data
        Folder of the corpus named by --dataset, or of a store of this corpus with labels. Not
        required for sleep, mental_arithmetic and simulated.
    load : KEY=VALUE
        Argument of the load function of the dataset, such as window_seconds=10, or, for a folder of
        recordings, labels=labels.csv. May be repeated.
    method : NAME
        Method: {TASKS}, {BASELINES}; a published model NAME:WEIGHTS, such as cbramod:FILE; or a
        pretext task FILE.py:CLASS, whose code is executed. May be repeated. Default: pars, scratch,
        band-power and tangent-space; without pars if encoders are passed with names (--encoder
        NAME=FOLDER). Default of the protocol transfer with --encoder: scratch and band-power.
        Default of the protocol controls with --encoder: probe, random-encoder, band-power,
        tangent-space and classical-features. The methods eegnet and shallow are trained for 500
        epochs, as published, unless finetune_epochs is set.
    encoder : [NAME=]FOLDER
        Pretrained encoder: a folder, the name of a bundled encoder such as small, or a model id. To
        pass several encoders, name them: --encoder PARS=run1 --encoder MAE=run2. Adds three
        methods: the frozen encoder with a trained head, the fine-tuned encoder (trained in the same
        way as scratch), and a frozen random encoder with a trained head. To use only frozen or only
        fine-tuned encoders, pass --set freeze_encoder=true or false. In the protocol controls with
        the method probe, encoders are only used in linear probes.
    unequal_sizes
        Allow encoders with different numbers of parameters; the numbers are shown in the table.
        Other networks then have the sizes in --set, or the default sizes. Without this option, all
        networks have the size of the encoder.
    settings : KEY=VALUE
        Argument of PARSClassifier, such as pretrain_epochs=100, subject_centering=true,
        smoothing=true (also score predictions smoothed over time), or C=0.01 for logistic
        regressions (C=null: selected by cross-validation over subjects). May be repeated.
    published
        Use the published settings of fine-tuning, with 200 epochs (paper.FINE_TUNING). For the
        dataset eesm17, also use the published noise augmentation. For the protocol ablation, also
        use the published sizes and pretraining (paper.CLASSIFIER). To use the validation subjects
        of the paper, add --set validation=split. The methods eegnet and shallow ignore settings
        that they do not have.
    metric : NAME
        Metric: {METRICS}. May be repeated. The figure and the tests use the first metric.
    against : NAME
        For compare and controls: reference method of the tests, such as scratch. Default for
        compare: all pairs of methods are tested. Default for controls: scratch, or random-encoder
        if scratch is not a method.
    n
        Number of labeled training subjects. May be repeated for label-efficiency and controls; for
        ablation, the last value is used. Default: all training subjects.
    grid : NAME | KEY=VALUE,...
        For ablation, the grid of settings to vary: masking, sampling, decoder, overlap, joint; or
        values of a parameter of PARS or PARSClassifier, such as n_patches=10,20,40. If repeated,
        all combinations are run.
    control : NAME
        For controls, the control signals: {CONTROLS}. May be repeated. Default: all.
    test_subject : ID
        Fixed test subject. May be repeated. Default: the test split of the corpus. If the corpus
        has no test split, controls tests four folds of subjects (with --n), or one subject at a
        time (without --n).
    seeds
        Number of seeds; seeds are 0, 1, ... Default: 5; 1 for compare, leave-one-subject-out, and
        controls without --n.
    n_jobs
        Number of parallel fits, which are distributed over the GPUs. Default: 1.
    out
        Folder for the results.
    """
    if protocol not in PROTOCOLS:
        raise typer.BadParameter(
            f"Unknown protocol {protocol!r}; use one of {', '.join(PROTOCOLS)}."
        )
    # Options that were passed on the command line, such as --metric
    sources = {p.opts[0]: context.get_parameter_source(str(p.name)) for p in context.command.params}
    options = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    for option in options:
        if not _accepts(protocol, option):
            accepting = ", ".join(name for name in PROTOCOLS if _accepts(name, option))
            raise typer.BadParameter(
                f"The protocol {protocol} does not support {option}. Omit {option}, or use one of "
                f"these protocols: {accepting}."
            )
    if (required := REQUIRED.get(protocol)) and required not in options:
        raise typer.BadParameter(f"The protocol {protocol} requires {required}.")
    from braindecode_pars import datasets
    from braindecode_pars.cli import evaluation_report as report
    from braindecode_pars.datasets import any_source

    is_ablation = protocol == "ablation"
    classifier = report.classifier_settings(
        settings, published=published, dataset=dataset, pretrains=is_ablation
    )
    arguments: dict[str, Any] = dict(out=out, n_jobs=n_jobs, dataset=any_source.title(dataset))
    methods = {}
    if not is_ablation:
        arguments["equal_sizes"] = classifier["equal_sizes"] = not unequal_sizes
        # Unknown methods raise an error before the corpus is read.
        methods = report.methods_of(protocol, method, encoder, classifier)
    windows = datasets.load(dataset, data, **values(load, "--load"))
    if seeds is None and protocol == "controls" and not n:
        seeds = 1
    option_values = dict(
        metrics=metric,
        seeds=seeds and range(seeds),
        n_train_subjects=n[-1] if n and is_ablation else n,
        controls=control,
        test_subjects=report.find_subjects(windows, test_subject),
    )
    # Options that are not set have the default of the protocol.
    arguments |= {name: value for name, value in option_values.items() if value}
    if is_ablation:
        report.show_ablation(classifier, windows, grid or [], **arguments)
    elif protocol == "controls":
        report.show_controls(methods, windows, against=against, **arguments)
    else:
        report.run(protocol, methods, windows, against=against, **arguments)


def _accepts(protocol: str, option: str) -> bool:
    return option in PROTOCOLS[protocol] or not any(option in names for names in PROTOCOLS.values())
