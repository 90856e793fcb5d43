"""Command ``braindecode-pars evaluate PROTOCOL``: score classifiers on held-out subjects."""

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli.terminal import RESUME, values, with_options

_METHODS = ("--method", "--encoder", "--unequal-sizes")
#: Options that only some protocols have, by protocol. All other options apply to all protocols.
PROTOCOLS = {
    "compare": (*_METHODS, "--against"),
    "leave-one-subject-out": _METHODS,
    "label-efficiency": (*_METHODS, "--test-subject", "--n"),
    "transfer": (*_METHODS, "--test-subject"),
    "ablation": ("--test-subject", "--n", "--grid"),
    "controls": (*_METHODS, "--against", "--test-subject", "--n", "--control"),
}
#: Option that must be passed, for protocols that require one.
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
    """Score classifiers on held-out subjects, with one of several evaluation protocols.

    The protocol leave-one-subject-out holds out each subject in turn; compare does the same, and
    also tests the paired differences between methods. Three protocols have fixed test subjects:
    label-efficiency varies the number of labeled training subjects, transfer fine-tunes pretrained
    encoders on another corpus, and ablation varies settings of pretraining with PARS. The protocol
    controls repeats a comparison on control signals, such as high-pass filtered windows, to find
    out which signal properties a difference between methods depends on.

    To resume an interrupted command, run it again: finished fits are stored in --out. If you pass
    an option that the protocol does not use, an error message lists the protocols that use it.

    Options
    -------
    protocol
        compare, leave-one-subject-out, label-efficiency, transfer, ablation or controls.
    dataset : NAME
        Labeled windows, one of: a bundled dataset (sleep or mental_arithmetic); simulated
        (simulated sleep); a public corpus, whose folder is passed with --data ({RECIPES}); a folder
        of labeled recordings, a BIDS dataset, or a signal store with labels; or a Python file that
        defines a function named load, which returns labeled windows.
    data
        Folder of the public corpus named by --dataset, or of a signal store with labels of this
        corpus. For a Python file: folder that is passed to its function named load.
    load : KEY=VALUE
        Argument of the function that loads the dataset, such as window_seconds=10 or, for a folder
        of recordings, labels=labels.csv. May be repeated.
    method : NAME
        Method to score. May be repeated. With the name of a pretext task ({TASKS}), or with your
        own task FILE.py:CLASS (a class in a Python file, which is executed), a network is
        pretrained and fine-tuned in each fit. Other methods: {BASELINES}; or a published model with
        its weights, NAME:WEIGHTS, such as cbramod:FILE. Default: pars, scratch, band-power and
        tangent-space (without pars if encoders are passed with names, as in --encoder NAME=FOLDER).
        Default with --encoder for the protocol transfer: scratch and band-power. Default with
        --encoder for the protocol controls: probe, random-encoder, band-power, tangent-space and
        classical-features. The methods eegnet and shallow are trained for 500 epochs, as published,
        unless you pass --set finetune_epochs=N.
    encoder : [NAME=]FOLDER
        Pretrained encoder to score: a folder, the name of a bundled encoder such as small, or a
        model on the Hugging Face Hub (hf://owner/name). To pass several encoders, name them:
        --encoder PARS=run1 --encoder MAE=run2. Three methods are added: the frozen encoder with a
        trained head, the fine-tuned encoder (with the same training as the method scratch), and a
        frozen random encoder with a trained head. To add only frozen encoders, pass --set
        freeze_encoder=true; to add only fine-tuned encoders, pass --set freeze_encoder=false. In
        the protocol controls with the method probe, encoders are only used in linear probes.
    unequal_sizes
        Allow encoders with different numbers of parameters, and show these numbers in the table.
        With this option, new encoders (random encoders, and the encoders of the method scratch and
        of pretext tasks) have the sizes in --set, or the default sizes; without this option, they
        have the sizes of the first encoder passed with --encoder.
    settings : KEY=VALUE
        Argument of PARSClassifier for all methods that have this argument, such as
        pretrain_epochs=100. Further settings: subject_centering=true (subject-wise centering),
        smoothing=true (also score predictions that are smoothed over time), and C=0.01
        (regularization of logistic regressions; C=null selects C by cross-validation over
        subjects). May be repeated.
    published
        Use the published settings of fine-tuning, with 200 epochs (paper.FINE_TUNING). For the
        dataset eesm17, also use the published noise augmentation. For the protocol ablation, also
        use the published sizes and pretraining (paper.CLASSIFIER). To use the validation subjects
        of the paper, add --set validation=split. The methods eegnet and shallow ignore settings
        that they do not have.
    metric : NAME
        Metric: {METRICS}. May be repeated. The figure and the tests use the first metric.
    against : NAME
        For compare and controls: reference method, such as scratch, with which all other methods
        are compared. Default for compare: no reference method; all pairs of methods are compared.
        Default for controls: scratch, or random-encoder if scratch is not one of the methods.
    n
        Number of labeled training subjects. May be repeated for label-efficiency and controls; for
        ablation, only the last value is used. Default for controls and ablation: all training
        subjects.
    grid : NAME | KEY=VALUE,...
        For ablation: settings to vary. Pass the name of a predefined grid (masking, sampling,
        decoder, overlap or joint), or values of a parameter of PARS or PARSClassifier, such as
        n_patches=10,20,40. If the option is repeated, all combinations are scored.
    control : NAME
        For controls: control signal on which the comparison is repeated: {CONTROLS}. May be
        repeated. Default: all.
    test_subject : ID
        Test subject. May be repeated. Default for label-efficiency and transfer: the test split of
        the corpus. Default for ablation: the validation split of the corpus, or the test split if
        the corpus has no validation split. Default for controls with --n: the test split or, if the
        corpus has no test split, all subjects in four folds. Default for controls without --n: each
        subject in turn.
    seeds
        Number of random seeds. The seeds are 0, 1, ... Default: 5; 1 for compare,
        leave-one-subject-out, and controls without --n.
    n_jobs
        Number of fits that run in parallel. They are distributed over the GPUs. Default: 1.
    out
        Folder for the results.
    """
    if protocol not in PROTOCOLS:
        raise typer.BadParameter(
            f"Unknown protocol {protocol!r}. Use one of {', '.join(PROTOCOLS)}."
        )
    # Options that were passed on the command line, such as --metric.
    sources = {p.opts[0]: context.get_parameter_source(str(p.name)) for p in context.command.params}
    options = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    for option in options:
        if not _accepts(protocol, option):
            accepting = ", ".join(name for name in PROTOCOLS if _accepts(name, option))
            raise typer.BadParameter(
                f"The protocol {protocol} does not support {option}. Omit {option}, or use one of "
                f"the protocols that support it: {accepting}."
            )
    if (required := REQUIRED.get(protocol)) and required not in options:
        raise typer.BadParameter(f"The protocol {protocol} requires the option {required}.")
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
        # Create the methods first, so that unknown names raise an error before data are read.
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
    # Omit options that were not passed, so that the protocol uses its own defaults.
    arguments |= {name: value for name, value in option_values.items() if value}
    if is_ablation:
        report.show_ablation(classifier, windows, grid or [], **arguments)
    elif protocol == "controls":
        report.show_controls(methods, windows, against=against, **arguments)
    else:
        report.run(protocol, methods, windows, against=against, **arguments)


def _accepts(protocol: str, option: str) -> bool:
    return option in PROTOCOLS[protocol] or not any(option in names for names in PROTOCOLS.values())
