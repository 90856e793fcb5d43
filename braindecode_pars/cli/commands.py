"""The commands of ``braindecode-pars`` with their options; what they do is in the modules beside.

Nothing slow is imported before a command runs, so that ``--help`` is fast. The options of a run are
those of ``plan`` and of ``pretrain``; those of reading recordings are of ``study`` and of ``fit``.
"""

import logging
import os
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from braindecode_pars import runs
from braindecode_pars._common.checks import names_file
from braindecode_pars._common.names import TASKS
from braindecode_pars.cli.evaluate import ProtocolCommand, evaluate
from braindecode_pars.cli.terminal import (
    JOBS,
    SETTINGS,
    ConsoleHandler,
    documented,
    given_options,
    pairs,
    report_failures,
    values,
    with_options,
)
from braindecode_pars.runs.config import LAPTOP, RunConfig

log = logging.getLogger(__name__)

#: Types of the options of a run, and default values as they are shown.
_OF_RUNS: dict[str, Any] = {
    **{name: kind for name, kind in get_type_hints(RunConfig).items() if kind is not Any},
    **dict(paper=bool, settings=SETTINGS, window_seconds=list[float]),
    "exclude_subjects": Annotated[list[str], typer.Option("--exclude-subject")],
    "compile": Annotated[bool, typer.Option("--compile/--no-compile")],
    "sham": Annotated[bool, typer.Option("--sham")],
}
_DEFAULTS = {
    name: f"{LAPTOP[name]} on the CPU, else {default}" if name in LAPTOP else str(default)
    for name in get_type_hints(RunConfig)
    if type(default := getattr(RunConfig, name, None)) in (int, float, str)
}


def run_config(options: dict[str, Any]) -> RunConfig:
    """Return the configuration that options ask for; the defaults on the CPU are a laptop's.

    Without a value they are not in ``options``, so that the defaults apply.

    Options
    -------
    paper
        Start from the published settings on the CPU too, where the defaults are made for a laptop.
    task : NAME
        Pretext task: {TASKS}; or one of your own, FILE.py:CLASS, whose code is run.
    settings : KEY=VALUE
        Argument of the task, such as n_patches=240. May be repeated.
    encoder : FOLDER
        Encoder to continue with: a folder, a name in the package such as small, or a model id. Its
        sizes replace those below.
    window_seconds : X
        Length of the crops in seconds. Several lengths are used in turns: repeat the option.
    patch_seconds : X
        Length of a patch in seconds.
    embed_dim : N
        Size of a token.
    num_layers : N
        Number of transformer blocks.
    num_heads : N
        Number of attention heads in each block.
    mlp_dim : N
        Hidden size of the feed-forward layers.
    drop_prob : X
        Dropout rate on the residual branches.
    tokenizer : NAME
        Map from patches to tokens: linear or spectral.
    epochs : N
        Number of epochs; the schedule has the same length. Without it, a run on the CPU continues
        while the loss on held-out subjects falls.
    max_steps : N
        Maximum number of steps, without --epochs. Default: 2000.
    minutes : X
        Maximum number of minutes, without --epochs.
    sham
        Train on the targets of other windows, so that nothing can be learned: the control of a
        pretraining. With the same --max-steps it has as many steps.
    steps_per_epoch : N
        Number of steps in an epoch. Default: one pass over the data.
    batch_size : N
        Number of examples in a step, over all processes.
    micro_batch_size : N
        Number of examples that pass through the network at once. Smaller values need less memory.
        Default: batch size / number of processes.
    lr : X
        Learning rate of AdamW after the warm-up.
    weight_decay : X
        Weight decay on the weights of linear layers.
    warmup : X
        Share of all steps in which the learning rate rises.
    exclude_subjects : ID
        Subject to exclude. May be repeated.
    precision : NAME
        Precision: float32 or bfloat16.
    compile
        Compile the encoder.
    seed : N
        Seed of all random draws.
    device : NAME
        Device: auto, cpu, cuda or mps.
    num_workers : N
        Number of processes that load data ahead, for each training process. Default: up to 4 on a
        GPU, 0 on the CPU.
    """
    options = dict(options)
    paper = options.pop("paper", False)
    if "settings" in options:
        options["task_params"] = values(options.pop("settings"), "--set")
    if {"max_steps", "minutes"} & options.keys():
        options.setdefault("epochs", None)
    published = RunConfig(**options)
    if paper:
        return published
    small = RunConfig.for_laptop(**options)
    from braindecode_pars._common.computing import find_device  # imports torch

    if find_device(published.device).type != "cpu":
        return published
    other = [f"{k} {v}" for k, v in vars(small).items() if v not in (None, getattr(published, k))]
    if other and os.environ.get("RANK", "0") == "0":  # torchrun numbers processes
        log.info(
            "These are defaults for a laptop, because the device is the CPU: %s. --paper asks for "
            "the published ones.",
            ", ".join(other),
        )
    return small


#: Types of the options of reading, and of training.
_OF_READING: dict[str, Any] = {
    **dict.fromkeys(("window_seconds", "sfreq", "low", "high", "mains"), float),
    **dict(n_jobs=JOBS, classes=Annotated[list[str], typer.Option("--class")]),
    "channels": Annotated[list[str], typer.Option("--channel")],
}
_OF_TRAINING: dict[str, Any] = dict(
    settings=SETTINGS, random_state=Annotated[int, typer.Option("--seed")], device=str
)
#: What a classifier is pretrained on.
METHODS = (*TASKS, "scratch")


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``datasets.folder.load`` among given options.

    Options
    -------
    labels
        Table of files or subjects, such as participants.tsv. Default: annotations.
    labels_from : PATTERN
        Regular expression that finds the label, and optionally the subject, in the path of a file,
        such as '(?P<subject>[^_/]+)_(?P<label>[^_.]+)', instead of --labels.
    label_column
        Column of the table with the labels.
    classes
        Label to use, such as 'Sleep stage W=W'. Default: all. Of sleep, the sample in the package,
        windows with other labels are unlabeled.
    subject
        Pattern of the subject in the path of a file, as in store.
    window_seconds
        Length of a window in seconds. Default: 30, or that of all labels if it is shorter.
    sfreq
        Sampling rate in Hz. Default: the encoder's, or 200.
    low
        Lower edge of the band in Hz. Default: the encoder's, or 0.3.
    high
        Upper edge of the band in Hz. Default: the encoder's, or 75.
    mains
        Frequency of the notch in Hz. Default: 60.
    reference
        New reference: average, of the channels that are used. Default: the recordings' own.
    channels
        EEG channel to use; the average is over those. Default: all scalp electrodes that all
        recordings share.
    n_jobs
        Number of processes. Default: 1.
    on_error
        raise, or warn and skip a recording. Default: raise, in study warn.
    """
    reading = dict(options)
    if "classes" in reading:
        names = _class_of_each_label(reading.pop("classes"))
        reading["classes" if {"labels", "labels_from"} & reading.keys() else "labels"] = names
    return reading


def _class_of_each_label(options: list[str] | None) -> dict[str, str]:
    """Return the name of the class of each label from options LABEL=NAME, or LABEL alone."""
    split = [text.rpartition("=")[::2] for text in options or ()]
    return {label or name: name for label, name in split}


@with_options(_OF_READING, reading_of)
def study(
    folder: str,
    *,
    out: Path,
    quick: bool = False,
    thorough: bool = False,
    task: list[str] | None = None,
    encoder: list[str] | None = None,
    only: list[str] | None = None,
    without: list[str] | None = None,
    train_subjects: Annotated[int | None, typer.Option(min=1)] = None,
    draws: int = 12,
    minutes: float | None = None,
    in_spite_of: list[str] | None = None,
    plan_only: bool = False,
    options: dict[str, Any],
) -> None:
    """Find out whether pretraining on labeled recordings helps to classify them; write a report.

    The report is written while the study runs. An interrupted study continues with the same
    command. Options with NAME may be repeated, and so may --class and --channel.

    Options
    -------
    folder : FOLDER
        Folder of labeled recordings, a BIDS dataset, or a store with labels. The samples in the
        package are sleep (stage 3 vs. 4) and mental_arithmetic.
    out : STUDY
        Folder of the study.
    quick
        Only the primary comparison and the baselines, with short pretrainings.
    thorough
        Longer pretrainings, and published networks.
    task : NAME
        Pretext task; the first one is that of the primary comparison. Default: pars and features.
    encoder : NAME=FOLDER
        Encoder that was pretrained on other data, instead of small and pars-sleep.
    only : NAME
        Methods or groups that take part: primary, baselines, tasks, bundled, ensemble, networks,
        controls, published.
    without : NAME
        Methods or groups that do not take part.
    train_subjects : N
        Number of labeled subjects. Default: 4, or as many as make three disjoint sets.
    draws : N
        Number of draws of labeled subjects.
    minutes : N
        Maximum number of minutes of a pretraining. Default: 8; quick 5, thorough 60.
    in_spite_of : NAME
        confounds: continue although the classes follow the site, the channels, the reference or
        the sampling rate of the recordings.
    plan_only
        Check the data and print the plan, without running it.
    """
    if quick and thorough:
        raise typer.BadParameter("pass --quick or --thorough, not both.")
    advice = f"Finished steps are kept in {out}; run the same command to continue."
    with report_failures(advice):
        from braindecode_pars.cli import fitting

        study_options: dict[str, Any] = dict(
            effort="quick" if quick else "thorough" if thorough else "default",
            tasks=task,
            encoders=dict(pairs(encoder, "--encoder", "NAME=FOLDER")) or None,
            only=only,
            without=without,
            n_train_subjects=train_subjects,
            draws=draws,
            minutes=minutes,
            in_spite_of=in_spite_of,
        )
        study_options = {name: value for name, value in study_options.items() if value is not None}
        fitting.study_folder(folder, out, reading_of(options), study_options, plan_only=plan_only)


@with_options(
    dict(
        **dict.fromkeys(("sfreq", "low", "high", "mains"), float),
        **dict(settings=SETTINGS, n_jobs=JOBS),
        channels=Annotated[list[str], typer.Option("--channel")],
    )
)
def store(
    context: typer.Context,
    folders: list[Path],
    *,
    recipe: list[str] | None = None,
    labels: bool = False,
    exclude: list[Path] | None = None,
    share: list[str] | None = None,
    options: dict[str, Any],
) -> None:
    """Store recordings, for pretraining or with labels.

    The same command resumes where it was interrupted, and adds new files to a finished store.

    Options
    -------
    folders : [SOURCE] STORE
        Folder with EDF, BDF, FIF, WFDB, BrainVision or EEGLAB recordings at any depth, which is
        omitted with --recipe, and folder of the store.
    recipe : NAME=FOLDER
        Corpus and its folder, such as tueg=data/tuh_eeg, instead of SOURCE: its training subjects,
        with the recipe's channels, filters and rate. May be repeated. Recipes:
        {RECIPES}.
    labels
        Store the labeled windows of the recipes too, for evaluate --dataset STORE: of the subjects
        of all splits. Pretraining leaves out validation and test subjects.
    exclude : PATH
        Folder of TUAB or TUSZ, whose subjects are left out of tueg, or text file with a subject in
        each line. May be repeated.
    share : NAME=X
        Share of a recipe in the examples of pretraining, such as tueg=1. May be repeated. Default:
        every window once in a pass.
    settings : NAME.KEY=VALUE
        Setting of a recipe, such as physionet_mi.sfreq=128. May be repeated.
    sfreq
        Sampling rate of the store in Hz; recordings are resampled. Default: the recordings' own
        rate, which must be the same in all.
    low
        Lower edge of the band-pass in Hz.
    high
        Upper edge of the band-pass in Hz.
    mains
        Frequency of the notch in Hz.
    channels : NAME
        EEG channel to keep, in the recordings that have it. May be repeated. Default: all EEG
        channels.
    reference : NAME
        New reference: average, of the channels that are stored. Default: the recordings' own
        reference.
    subject : PATTERN
        Regular expression that finds the subject in the path of a file below SOURCE, such as
        'S(\\d+)R'. Its group is the subject. Default: as in BIDS, the corpora of Temple University
        or PhysioNet's challenges, else the first folder, or the name of a file without folder.
        Names that number the recordings of one person, such as Subject00_1 and Subject00_2, need
        it.
    dtype : NAME
        Type of the stored samples: int16 or float32. Default: int16.
    n_jobs
        Number of recordings to read in parallel. Default: 1.
    on_error : NAME
        Action for a recording that cannot be read: raise ends the command, warn skips the
        recording. Default: raise.
    """
    path = folders[-1]
    for applies, names, why in (
        (labels, ("--exclude", "--share"), "is for pretraining; --labels stores everyone"),
        (not recipe, ("--labels", "--exclude", "--set", "--share"), "needs --recipe"),
    ):
        refused = [name for name in names if name in given_options(context)]
        if applies and refused:
            raise typer.BadParameter(f"{refused[0]} {why}.")
    if len(folders) != (1 if recipe else 2):
        expected = "STORE after --recipe" if recipe else "SOURCE and STORE, or --recipe and STORE"
        raise typer.BadParameter(f"expected {expected}; got {len(folders)} folders.")
    advice = f"Finished recordings are kept in {path}; run the same command to resume."
    with report_failures(advice):
        from braindecode_pars.cli import describing

        source: Any = folders[0]
        settings = values(options.pop("settings", None), "--set")
        if recipe:
            corpora = pairs(recipe, "--recipe", "NAME=FOLDER")
            source = describing.find_corpora(corpora, exclude or [], settings, labels=labels)
        shares = values(share, "--share") or None
        describing.make_store(source, path, shares=shares, **options)


@with_options(_OF_RUNS, run_config, _DEFAULTS)
def plan(
    corpus: Path | None = None,
    *,
    n_windows: Annotated[int | None, typer.Option(min=1)] = None,
    sfreq: float | None = None,
    n_chans: Annotated[int, typer.Option(min=1)] = 1,
    options: dict[str, Any],
) -> None:
    """Print disk, steps and hours of a pretraining run. Nothing is started.

    Takes the options of pretrain, and measures a step on this machine for some seconds.

    Options
    -------
    corpus
        Folder of a SignalStore.
    n_windows : N
        Number of windows in a pass, for a corpus that is not here.
    sfreq
        Sampling rate in Hz of a corpus that is not here.
    n_chans : N
        Number of channels, for a corpus that is not here.
    """
    if (corpus is None) == (n_windows is None):
        raise typer.BadParameter("Pass the folder of a store, or --n-windows and --sfreq.")
    with report_failures():
        from braindecode_pars.cli import describing

        size: dict[str, Any] = dict(n_windows=n_windows, sfreq=sfreq, n_chans=n_chans)
        describing.show_plan(run_config(options), corpus, **size)


@with_options(_OF_RUNS, run_config, _DEFAULTS)
def pretrain(store: Path, *, out: Path, resume: bool = False, options: dict[str, Any]) -> None:
    """Pretrain an encoder on a store of recordings. The defaults are the paper's settings.

    On the CPU they are small enough for a laptop, unless --paper asks for the paper's there too.
    The command plan tells what a run takes.

    For several GPUs or processes on one machine: torchrun --nproc-per-node N -m braindecode_pars
    pretrain ...

    Options
    -------
    store
        Folder of a SignalStore.
    out
        Folder for the run and its encoder.
    resume
        Resume the run in --out from its last checkpoint.
    """
    with report_failures(f"The last checkpoint is in {out}; use --resume to continue."):
        runs.pretrain(store, out, run_config(options), resume=resume)


@with_options(_OF_READING | _OF_TRAINING, reading_of)
def fit(
    folder: str,
    *,
    out: Path,
    overwrite: bool = False,
    few_labels: bool = False,
    encoder: str | None = None,
    method: str | None = None,
    options: dict[str, Any],
) -> None:
    """Train a classifier on labeled recordings. The command predict uses it.

    --class, --channel and --set may be repeated.

    Options
    -------
    folder : FOLDER
        Folder of labeled recordings, a BIDS data set, or a store with labels. sleep and
        mental_arithmetic are samples in the package.
    out : MODEL
        Folder for the model.
    overwrite
        Replace a model in --out.
    few_labels
        Fit a FewLabelsClassifier, for fewer than about twenty people: a frozen encoder, the tangent
        space and band power vote. In seconds, without training a network.
    encoder
        Encoder to fine-tune: a folder, a name such as small, or a model id. With --few-labels it is
        small by default, and stays as it is.
    method
        Without an encoder: task to pretrain on, {TASKS}, FILE.py:CLASS; or scratch. Default: pars.
    settings
        KEY=VALUE: argument of PARSClassifier, or FewLabelsClassifier.
    random_state
        Seed of all random draws. Default: 0.
    device
        Device: auto, cpu, cuda or mps. Default: auto.
    """
    if method is not None and encoder is not None:
        raise typer.BadParameter("--method is for a new encoder; leave it or --encoder out.")
    for name, value in (("--method", method), ("--seed", options.get("random_state"))):
        if few_labels and value is not None:  # a vote has neither
            raise typer.BadParameter(
                f"{name} is for training a network; leave it or --few-labels out."
            )
    method = "few-labels" if few_labels else method or "pars"
    if not few_labels and method not in METHODS and not names_file(method):
        raise typer.BadParameter(f"Unknown method {method!r}; known are {', '.join(METHODS)}.")
    with report_failures("Nothing was written."):
        from braindecode_pars.cli import fitting

        chosen = {name: options.pop(name) for name in _OF_TRAINING if name in options}
        chosen |= values(chosen.pop("settings", None), "--set")
        reading = reading_of(options)
        fitting.fit_folder(folder, out, encoder, method, reading, chosen, overwrite=overwrite)


@documented
def predict(
    model: str,
    recordings: list[Path],
    *,
    out: Path,
    overlap: Annotated[float, typer.Option(min=0, max=0.99)] = 0.0,
    smooth: bool = False,
    rescale: bool = False,
    adapt: bool = False,
    labels: str | None = None,
    label_column: str = "label",
    classes: Annotated[list[str] | None, typer.Option("--class")] = None,
    device: str = "auto",
    overwrite: bool = False,
) -> None:
    """Predict recordings: a table, events and a figure of each, and one summary.

    Each recording gets a CSV table, an events file of BIDS with its JSON file, and a figure of its
    classes and probabilities over time, as an image and as a page to scroll along. summary.csv has
    the time in each class; for sleep stages also the sleep efficiency, latencies and the other
    statistics of YASA. Finished recordings are not predicted again.

    Options
    -------
    model : MODEL
        Folder of a classifier that fit, or save in Python, has written, or hf://owner/name.
    recordings : RECORDING
        EDF, BDF, FIF, WFDB, BrainVision or EEGLAB recordings, and folders with such recordings at
        any depth.
    out : FOLDER
        Folder for the results, and to resume from.
    overlap
        Share of a window that the next one repeats; predictions of windows that overlap are
        averaged.
    smooth
        Smooth over time by the transitions between labels in training. Tables have raw and smoothed
        predictions; events, figure and summary are of the smoothed ones.
    rescale
        Multiply each recording by one factor, which is printed, to the amplitudes of the training:
        for another unit or gain, as of wearables.
    adapt
        Adapt a model of fit --few-labels to each recording before: to the mean of its windows, and
        to annotations with the names of at least two of the model's classes, if it has any.
    labels
        With --adapt: table of files with labels instead of annotations, as in fit.
    label_column
        Column of the table with the labels.
    classes
        With --adapt: label to use, such as 'Sleep stage W=W', as in fit. May be repeated.
    device
        Torch device; auto uses CUDA, then MPS, then the CPU.
    overwrite
        Replace results of another state of a recording, another model or other options. Without it,
        nothing is written if there are such.
    """
    if not adapt and (labels or classes):
        raise typer.BadParameter("--labels and --class are for --adapt.")
    advice = f"Finished recordings are kept in {out}; run the same command to resume."
    with report_failures(advice):
        from braindecode_pars.cli import predicting

        named = _class_of_each_label(classes)
        adaptation = dict(labels=labels, column=label_column, classes=named) if adapt else None
        options = dict(overlap=overlap, smooth=smooth, rescale=rescale)
        n_failed = predicting.predict_recordings(
            model, recordings, out, device=device, overwrite=overwrite, adapt=adaptation, **options
        )
    if n_failed:
        raise typer.Exit(1)


@documented
def reproduce(
    dataset: str,
    *,
    out: Path = Path("braindecode-pars-reproduction"),
    epochs: Annotated[int, typer.Option(min=1)] = 50,
    seeds: Annotated[int, typer.Option(min=1)] = 3,
    settings: Annotated[list[str] | None, typer.Option("--set")] = None,
) -> None:
    """Compare scratch, MAE, MP3, DropPos and PARS as in the paper's table 1: reproduce sleep.

    Each task pretrains on half of the people without labels, in equal steps. With the labels of
    four people, its frozen encoder is tested on the other half; then the halves change places. The
    numbers of pretrainings and fits are printed first. The same command resumes.

    Options
    -------
    dataset
        sleep, the nights in the package, or another corpus as in evaluate --dataset.
    out
        Folder for scores.csv, and to resume from.
    epochs
        Number of epochs of each pretraining.
    seeds
        Number of repetitions; seeds are 0, 1, ...
    settings : KEY=VALUE
        Argument of PARSClassifier for all methods, such as embed_dim=128. May be repeated.
    """
    with report_failures(f"What is finished is kept in {out}; run the same command to resume."):
        from braindecode_pars.cli import evaluation_report

        options = dict(epochs=epochs, seeds=range(seeds), **values(settings, "--set"))
        evaluation_report.show_reproduction(dataset, out, options)


@documented
def encoders(name: str | None = None, *, audit: bool = False) -> None:
    """List the pretrained encoders in the package, or print the card or the audit of one.

    Options
    -------
    name
        Encoder whose card is printed: a name in the package, a folder or a model id. Default: a
        table of the encoders in the package.
    audit
        Print what its features hold, beside a random encoder: R2 of slope, band powers and other
        properties. It is stored for those in the package, and measured for others.
    """
    if audit and name is None:
        raise typer.BadParameter("--audit needs the name or the folder of an encoder.")
    with report_failures():
        from braindecode_pars.cli import describing

        if name is None:
            describing.show_encoders()
        elif audit:
            describing.show_audit(name)
        else:
            describing.show_card(name)


app = typer.Typer(no_args_is_help=True, add_completion=False)
for command in (study, store, plan, pretrain, fit, evaluate, predict, reproduce, encoders):
    app.command(cls=ProtocolCommand if command is evaluate else None)(command)
_echo = ConsoleHandler()


@app.callback()
def show_log(context: typer.Context) -> None:
    """Self-supervised pretraining for EEG."""
    package = logging.getLogger("braindecode_pars")
    package.setLevel(logging.INFO)
    package.addHandler(_echo)  # again has no effect
    context.call_on_close(_echo.end)
