"""``braindecode-pars evaluate PROTOCOL``: scores of the paper's protocols, tables and figures."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from braindecode_pars._common.names import CONTROLS
from braindecode_pars.cli.terminal import documented, given_options, report_failures, values

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
#: Names are repeated here, because importing the registries takes seconds.
GRIDS = ("masking", "sampling", "decoder", "overlap", "joint")
REQUIRED = {"label-efficiency": "--n", "transfer": "--encoder", "ablation": "--grid"}


class ProtocolCommand(TyperCommand):
    """Command whose help shows the options of a protocol, where one stands before --help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--help" in args:
            ctx.meta["protocol"] = next((name for name in args if name in PROTOCOLS), None)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        protocol, params = ctx.meta.get("protocol"), super().get_params(ctx)
        return [param for param in params if not protocol or _takes(protocol, param.opts[0])]


@documented
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

    Two protocols hold out one subject at a time: leave-one-subject-out, and compare, which also
    tests the paired differences. Three have fixed test subjects: label-efficiency varies the number
    of training subjects, transfer fine-tunes encoders on a corpus, and ablation varies settings of
    pretraining with PARS. controls repeats a comparison on windows that lack one thing, such as
    slow voltages, and says what the gain of an encoder needs.

    Finished fits are kept in --out: after an interruption, the same command resumes. With a
    protocol before --help, its own options are shown.

    Options
    -------
    protocol
        compare, leave-one-subject-out, label-efficiency, transfer, ablation, controls.
    dataset : NAME
        Corpus: sleep and mental_arithmetic (in the package), simulated, {RECIPES};
        a folder of own labeled recordings, a BIDS
        data set, or a store with labels; a Python file with a function load that returns labeled
        windows.
    data
        Folder of a corpus with a name, or of a store of it with labels; sleep, mental_arithmetic
        and simulated need none.
    load : KEY=VALUE
        Argument of the corpus' load function, such as window_seconds=10, or, for a folder of own
        recordings, labels=labels.csv. May be repeated.
    method : NAME
        Method: {TASKS}, {BASELINES}, a published model NAME:WEIGHTS, such as
        cbramod:FILE, or a pretext task FILE.py:CLASS, whose code is run. May be repeated. Default:
        pars, scratch, band-power and tangent-space; with encoders all but pars; for transfer
        scratch and band-power; for controls with encoders probe, random-encoder, band-power,
        tangent-space and classical-features. eegnet and shallow train for 500 epochs, as published,
        if finetune_epochs is not set.
    encoder : [NAME=]FOLDER
        Pretrained encoder: a folder, a name in the package such as small, or a model id. Several
        have names: --encoder PARS=run1 --encoder MAE=run2. It adds the methods "NAME, head
        trained" (frozen encoder) and "NAME, fine-tuned" (trained in the same way as scratch), and
        "random encoder, head trained". With --set freeze_encoder=true or false, only one kind is
        added. For controls, the encoder is frozen in a linear probe if probe is a method.
    unequal_sizes
        Compare encoders with different numbers of parameters, and show the numbers in the table:
        other methods have the sizes of --set or the defaults. Without it they have those of the
        encoder.
    settings : KEY=VALUE
        Argument of PARSClassifier, such as pretrain_epochs=100, subject_centering=true,
        smoothing=true (of every method also the predictions smoothed over time), or C=0.01 of
        logistic regressions (C=null: chosen by held-out subjects). May be repeated.
    published
        Fine-tune as published, in 200 epochs: paper.FINE_TUNING, and for eesm17 its noise; for
        ablation also sizes and pretraining, paper.CLASSIFIER. For the paper's validation subjects
        add --set validation=split. As with --set, eegnet and shallow take the values that they
        share.
    metric : NAME
        Metric: {METRICS}. May be repeated. The figure and the tests use the first one.
    against : NAME
        For compare and controls: method to test the others against, such as scratch. Default: all
        pairs; for controls scratch if it is a method, else random-encoder.
    n
        For label-efficiency and controls: number of training subjects; may be repeated. For
        ablation: the same; the last one counts. Default: all.
    grid : NAME | KEY=VALUE,...
        For ablation: settings to vary, masking, sampling, decoder, overlap, joint; or values of a
        parameter of PARS or PARSClassifier, such as n_patches=10,20,40. May be repeated, for all
        combinations.
    control : NAME
        For controls: what the windows lack, {CONTROLS}. May be repeated. Default: all.
    test_subject : ID
        Fixed test subject. May be repeated. Default: the corpus' own split; for controls of a
        corpus without one, four folds of subjects with --n, and each subject in turn without.
    seeds
        Number of seeds; seeds are 0, 1, ... Default: 5; for compare, leave-one-subject-out, and
        controls without --n, 1.
    n_jobs
        Number of parallel fits, on the GPUs in turn. Default: 1.
    out
        Folder for the results, and to resume from.
    """
    _check_choice("protocol", [protocol], PROTOCOLS)
    option_names = given_options(context)
    for option in option_names:
        if not _takes(protocol, option):
            takes = ", ".join(name for name in PROTOCOLS if _takes(name, option))
            raise typer.BadParameter(f"{protocol} takes no {option}; it is for {takes}.")
    needed = REQUIRED.get(protocol)
    if needed is not None and needed not in option_names:
        raise typer.BadParameter(f"{protocol} needs {needed}.")
    _check_choice("grid", [name for name in grid or () if "=" not in name], GRIDS)
    _check_choice("control", control or [], CONTROLS)
    with report_failures(f"Finished fits are kept in {out}; run the same command to resume."):
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
            # An unknown method ends the command before the corpus is read.
            methods = report.methods_of(protocol, method, encoder, classifier)
        windows = datasets.load(dataset, data, **values(load, "--load"))
        if seeds is None and protocol == "controls" and not n:
            seeds = 1
        option_values = dict(
            metrics=metric,
            seeds=seeds and range(seeds),
            n_train_subjects=n[-1] if n and is_ablation else n,
            controls=control,
            test_subjects=report.given_subjects(windows, test_subject),
        )
        # What is not given is the protocol's default.
        arguments |= {name: value for name, value in option_values.items() if value}
        if is_ablation:
            report.show_ablation(classifier, windows, grid or [], **arguments)
        elif protocol == "controls":
            report.show_controls(methods, windows, against=against, **arguments)
        else:
            report.run(protocol, methods, windows, against=against, **arguments)


def _takes(protocol: str, option: str) -> bool:
    return option in PROTOCOLS[protocol] or not any(option in names for names in PROTOCOLS.values())


def _check_choice(what: str, names: list[str], choices: Collection[str]) -> None:
    for name in names:
        if name not in choices:
            raise typer.BadParameter(f"Unknown {what} {name!r}; known are {', '.join(choices)}.")
