"""Commands of ``braindecode-pars`` with their arguments, options and help texts.

The other modules of this folder implement the commands. Slow packages are imported only when a
command runs, so that ``--help`` is fast. ``plan`` and ``pretrain`` share the options of a run;
``study`` and ``fit`` share the options for reading recordings.
"""

import logging
import sys
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from braindecode_pars import runs
from braindecode_pars._common.checks import choice, names_file
from braindecode_pars._common.names import TASKS
from braindecode_pars.cli.evaluate import evaluate
from braindecode_pars.cli.terminal import (
    RESUME,
    ConsoleHandler,
    named_pairs,
    pairs,
    show,
    values,
    with_options,
)
from braindecode_pars.runs.config import LAPTOP, RunConfig

log = logging.getLogger(__name__)

#: Types of the options of a run.
_TYPES: dict[str, Any] = {
    **{name: kind for name, kind in get_type_hints(RunConfig).items() if kind is not Any},
    "paper": bool,
    "window_seconds": list[float],
    "exclude_subjects": Annotated[list[str], typer.Option("--exclude-subject")],
    "compile": Annotated[bool, typer.Option("--compile/--no-compile")],
    "sham": Annotated[bool, typer.Option("--sham")],
}
#: Default values of the options of a run, as shown in the help.
_DEFAULTS = {
    name: f"{LAPTOP[name]} on the CPU, else {default}" if name in LAPTOP else str(default)
    for name in get_type_hints(RunConfig)
    if type(default := getattr(RunConfig, name, None)) in (int, float, str)
}


def run_config(options: dict[str, Any]) -> RunConfig:
    """Return the configuration of a run; on the CPU, the defaults are suitable for a laptop.

    Options without a value are not in ``options``, so that the defaults apply.

    Options
    -------
    paper
        Use the published settings as defaults on the CPU, too. Without it, the defaults on the CPU
        are suitable for a laptop.
    task : NAME
        Pretext task: {TASKS}; or a custom task FILE.py:CLASS, whose code is executed.
    settings : KEY=VALUE
        Argument of the pretext task, such as n_patches=240. May be repeated.
    encoder : FOLDER
        Encoder with which pretraining starts: a folder, the name of a bundled encoder such as
        small, or a model id. The sizes of this encoder are used instead of the size options below.
    window_seconds : X
        Length of the crops in seconds. Repeat the option to alternate between several lengths.
    patch_seconds : X
        Length of a patch in seconds.
    embed_dim : N
        Embedding dimension of a token.
    num_layers : N
        Number of transformer blocks.
    num_heads : N
        Number of attention heads per block.
    mlp_dim : N
        Hidden size of the feed-forward layers.
    drop_prob : X
        Dropout rate of the residual branches.
    tokenizer : NAME
        Patch embedding: linear or spectral.
    epochs : N
        Number of epochs; the learning rate schedule has the same length. If not set, a run on the
        CPU continues while the loss on held-out subjects decreases.
    max_steps : N
        Maximum number of steps, if --epochs is not set. Default: 2000.
    minutes : X
        Maximum duration in minutes, if --epochs is not set.
    sham
        Sham pretraining, as a control for a pretraining: it uses the targets of other windows, so
        that nothing can be learned. Pass the same --max-steps as for the pretraining.
    steps_per_epoch : N
        Number of steps per epoch. Default: one pass over the data.
    batch_size : N
        Number of crops per step, over all processes.
    micro_batch_size : N
        Number of crops per forward pass. Smaller values require less memory. Default: batch size /
        number of processes.
    lr : X
        Learning rate of AdamW after the warm-up.
    weight_decay : X
        Weight decay of the weights of linear layers.
    warmup : X
        Fraction of all steps in which the learning rate increases.
    exclude_subjects : ID
        Subject to exclude. May be repeated.
    precision : NAME
        Precision: float32 or bfloat16.
    compile
        Compile the encoder with torch.compile.
    seed : N
        Random seed.
    device : NAME
        Device: auto, cpu, cuda or mps.
    num_workers : N
        Number of processes that load data in advance, for each training process. Default: up to 4
        on a GPU, 0 on the CPU.
    """
    options = dict(options)
    paper = options.pop("paper", False)
    if "settings" in options:
        options["task_params"] = values(options.pop("settings"), "--set")
    if {"max_steps", "minutes"} & options.keys():
        options.setdefault("epochs", None)
    from braindecode_pars._common.computing import find_device  # imports torch

    if paper or find_device(options.get("device", RunConfig.device)).type != "cpu":
        return RunConfig(**options)
    log.info(
        "On the CPU, the defaults are suitable for a laptop. Pass --paper to use the published "
        "settings."
    )
    return RunConfig.for_laptop(**options)


#: Exit code of the command audit-split if there is a leak; 1 and 2 indicate errors.
LEAK = 3


def reading_of(folder: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``datasets.load`` for the options of a command.

    Options
    -------
    labels
        Table with the labels of files or subjects, such as participants.tsv. Default: the
        annotations of the recordings.
    labels_from : PATTERN
        Regular expression with groups for the label, and optionally the subject, in the path of a
        file, such as '(?P<subject>[^_/]+)_(?P<label>[^_.]+)'. Use it instead of --labels.
    label_column
        Column of the table that contains the labels.
    classes
        Label to use, optionally with a class name, as in 'Sleep stage W=W'. May be repeated.
        Default: all labels. In the bundled dataset sleep, windows with other labels are unlabeled.
    subject
        Regular expression for the subject in a file path, as in store --subject.
    window_seconds
        Length of a window in seconds. Default: 30, or the duration of the labels if all labels have
        the same duration below 30 s.
    sfreq
        Sampling rate in Hz. Default: value of the encoder, or 200 without an encoder.
    low
        Lower edge of the band-pass filter in Hz. Default: value of the encoder, or 0.3 without an
        encoder.
    high
        Upper edge of the band-pass filter in Hz. Default: value of the encoder, or 75 without an
        encoder.
    mains
        Line frequency for the notch filter in Hz. Default: 60.
    reference
        New reference: average (average reference over the selected channels). Default: reference
        as recorded.
    channels
        EEG channel to select. May be repeated. Default: all scalp electrodes shared by all
        recordings.
    n_jobs
        Number of processes. Default: 1.
    on_error
        Action for a recording that cannot be read: raise (stop the command), or warn (skip the
        recording). Default: raise (command study: warn).
    """
    if "classes" not in options:
        return options
    # The argument classes selects labels of a table, of paths or of a bundled dataset, and the
    # argument labels selects annotations.
    by_classes = {"labels", "labels_from"} & options.keys() or not Path(folder).exists()
    split = [text.rpartition("=")[::2] for text in options["classes"]]  # LABEL=NAME, or LABEL
    names = {label or name: name for label, name in split}
    others = {name: value for name, value in options.items() if name != "classes"}
    return others | {"classes" if by_classes else "labels": names}


#: Types of the options of a study.
_STUDY_TYPES: dict[str, Any] = {
    "tasks": Annotated[list[str], typer.Option("--task")],
    "encoders": Annotated[list[str], typer.Option("--encoder")],
    "only": list[str],
    "without": list[str],
    "n_train_subjects": Annotated[int, typer.Option("--train-subjects", min=1)],
    "draws": int,
    "minutes": float,
    "in_spite_of": list[str],
}


@with_options(reading_of, _STUDY_TYPES, advice=RESUME.format("steps"))
def study(
    folder: str,
    *,
    out: Path,
    quick: bool = False,
    thorough: bool = False,
    plan_only: bool = False,
    options: dict[str, Any],
) -> None:
    """Study whether pretraining improves classification of labeled recordings; write a report.

    Checks the data, prints the plan, compares pretraining with sham pretraining (targets of other
    windows) and with baselines on held-out subjects, and recommends a method. The report is
    updated while the study runs. To resume an interrupted study, run the same command.

    Options
    -------
    folder : FOLDER
        Folder of labeled recordings, a BIDS dataset, or a store with labels. Bundled datasets:
        sleep (stage 3 vs. 4) and mental_arithmetic (rest vs. arithmetic).
    out : STUDY
        Folder for the report, scores and model.
    quick
        Run only the primary comparison and the baselines, with short pretrainings.
    thorough
        Run longer pretrainings, and include published networks.
    tasks : NAME
        Pretext task. May be repeated; the first task is used in the primary comparison. Default:
        pars and features.
    encoders : NAME=FOLDER
        Encoder pretrained on other data, instead of small and pars-sleep. May be repeated.
    only : NAME
        Method or group of methods to run: primary, baselines, tasks, bundled, ensemble, networks,
        controls, published. May be repeated.
    without : NAME
        Method or group of methods to exclude. May be repeated.
    n_train_subjects : N
        Number of labeled subjects. Default: 4, or fewer if the training subjects of a fold are too
        few for three disjoint sets of 4.
    draws : N
        Number of draws (random subsets of labeled subjects). Must be even. Default: 12.
    minutes : N
        Maximum duration of a pretraining in minutes. Default: 8; with --quick 5, with --thorough
        60.
    in_spite_of : NAME
        confounds: continue although the classes are confounded with the site, corpus, channels,
        reference or sampling rate of the recordings.
    plan_only
        Check the data and print the plan, without running the study.
    """
    if quick and thorough:
        raise typer.BadParameter("--quick and --thorough exclude each other; pass only one.")
    from braindecode_pars.cli import fitting

    study_options = {name: options.pop(name) for name in _STUDY_TYPES if name in options}
    if "encoders" in study_options:
        encoders = named_pairs(study_options["encoders"], "--encoder", "NAME=FOLDER")
        study_options["encoders"] = encoders
    if quick or thorough:
        study_options["effort"] = "quick" if quick else "thorough"
    reading = reading_of(folder, options)
    fitting.study_folder(folder, out, reading, study_options, plan_only=plan_only)


@with_options(advice=RESUME.format("recordings"))
def store(
    folders: list[Path],
    *,
    recipe: list[str] | None = None,
    labels: bool = False,
    exclude: list[Path] | None = None,
    share: list[str] | None = None,
    options: dict[str, Any],
) -> None:
    """Convert recordings to a signal store, for pretraining or with labels.

    To resume an interrupted conversion, or to add new files to a finished store, run the same
    command.

    Options
    -------
    folders : [SOURCE] STORE
        SOURCE: folder with EDF, BDF, FIF, WFDB, BrainVision or EEGLAB recordings at any depth (omit
        it with --recipe). STORE: folder of the store.
    recipe : NAME=FOLDER
        Corpus and its folder, such as tueg=data/tuh_eeg, instead of SOURCE. Stores the training
        subjects with the channels, filters and sampling rate of the recipe. May be repeated.
        Recipes: {RECIPES}.
    labels
        Also store the labeled windows of training, validation and test subjects, for the command
        evaluate --dataset STORE. Validation and test subjects are excluded from pretraining.
    exclude : PATH
        Folder of TUAB or TUSZ whose subjects are excluded from tueg, or text file with one subject
        per line. May be repeated.
    share : NAME=X
        Sampling weight of a recipe in pretraining, such as tueg=1. May be repeated. Default: each
        window is used once per pass over the data.
    settings : NAME.KEY=VALUE
        Setting of a recipe, such as physionet_mi.sfreq=128. May be repeated.
    sfreq
        Sampling rate of the store in Hz, to which recordings are resampled. Default: sampling rate
        of the recordings, which must be the same in all recordings.
    low
        Lower edge of the band-pass filter in Hz.
    high
        Upper edge of the band-pass filter in Hz.
    mains
        Line frequency for the notch filter in Hz.
    channels : NAME
        EEG channel to store, if a recording contains it. May be repeated. Default: all EEG
        channels.
    reference : NAME
        New reference: average (average reference over the stored channels). Default: reference as
        recorded.
    subject : PATTERN
        Regular expression whose group matches the subject in the path of a file below SOURCE, such
        as 'S(\\d+)R'. Default: names as in BIDS, the corpora of Temple University or the PhysioNet
        challenges. For other names: the first folder in the path, or the file name if the file is
        not in a folder. Required if file names number the recordings of a subject, as in
        Subject00_1 and Subject00_2.
    dtype : NAME
        Data type of the stored samples: int16 or float32. Default: int16.
    n_jobs
        Number of recordings to read in parallel. Default: 1.
    on_error : NAME
        Action for a recording that cannot be read: raise (stop the command), or warn (skip the
        recording). Default: raise.
    """
    if labels and (exclude or share):
        raise typer.BadParameter(
            "--labels stores all subjects, so it cannot be combined with --exclude and --share, "
            "which apply to pretraining."
        )
    if not recipe and (labels or exclude or share or "settings" in options):
        raise typer.BadParameter("--labels, --exclude, --share and --set require --recipe.")
    if len(folders) != (1 if recipe else 2):
        expected = "STORE only" if recipe else "SOURCE and STORE, or --recipe and STORE"
        raise typer.BadParameter(f"got {len(folders)} folders, expected {expected}.")
    from braindecode_pars.cli import describing

    source: Any = folders[0]
    settings = values(options.pop("settings", None), "--set")
    if recipe:
        corpora = pairs(recipe, "--recipe", "NAME=FOLDER")
        source = describing.find_corpora(corpora, exclude or [], settings, labels=labels)
    shares = values(share, "--share") or None
    describing.make_store(source, folders[-1], shares=shares, **options)


@with_options(run_config, _TYPES, _DEFAULTS)
def plan(
    corpus: Path | None = None,
    *,
    n_windows: Annotated[int | None, typer.Option(min=1)] = None,
    sfreq: float | None = None,
    n_chans: Annotated[int, typer.Option(min=1)] = 1,
    options: dict[str, Any],
) -> None:
    """Estimate disk space, number of steps and duration of a pretraining run, without starting it.

    Accepts the options of the command pretrain. The duration of a step is measured on this machine,
    which takes a few seconds.

    Options
    -------
    corpus
        Folder of a SignalStore.
    n_windows : N
        Number of windows per pass over the data, if no store is available.
    sfreq
        Sampling rate in Hz, if no store is available.
    n_chans : N
        Number of channels, if no store is available.
    """
    if (corpus is None) == (n_windows is None):
        raise typer.BadParameter("Pass either the folder of a store, or --n-windows and --sfreq.")
    from braindecode_pars.cli import describing

    size: dict[str, Any] = dict(n_windows=n_windows, sfreq=sfreq, n_chans=n_chans)
    describing.show_plan(run_config(options), corpus, **size)


@with_options(run_config, _TYPES, _DEFAULTS, advice="Use --resume to continue the run.")
def pretrain(store: Path, *, out: Path, resume: bool = False, options: dict[str, Any]) -> None:
    """Pretrain an encoder on a store of recordings. The defaults are the settings of the paper.

    On the CPU, the defaults are suitable for a laptop, unless --paper is passed. The command plan
    estimates the duration and disk space of a run.

    To use several GPUs or processes on one machine: torchrun --nproc-per-node N -m braindecode_pars
    pretrain ...

    Options
    -------
    store
        Folder of a SignalStore.
    out
        Folder for the run, its checkpoints and the encoder.
    resume
        Resume the run in --out from its last checkpoint.
    """
    runs.pretrain(store, out, run_config(options), resume=resume)


@with_options(reading_of, advice="No files were written.")
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
    """Train a classifier on labeled recordings, for use with the command predict.

    Options
    -------
    folder : FOLDER
        Folder of labeled recordings, a BIDS dataset, or a store with labels. Bundled datasets:
        sleep and mental_arithmetic.
    out : MODEL
        Folder for the model.
    overwrite
        Replace an existing model in --out.
    few_labels
        Train a FewLabelsClassifier, an ensemble of linear classifiers, instead of a network. Takes
        seconds; recommended for fewer than about 20 labeled subjects.
    encoder
        Pretrained encoder to fine-tune: a folder, the name of a bundled encoder such as small, or a
        model id. With --few-labels, the encoder is frozen, and the default is small.
    method
        Pretext task of the pretraining: {TASKS}, FILE.py:CLASS; or scratch (no pretraining). Cannot
        be combined with --encoder. Default: pars.
    settings
        KEY=VALUE: argument of PARSClassifier, such as random_state=1 or device=cpu, or of
        FewLabelsClassifier. May be repeated.
    """
    if method is not None and (encoder is not None or few_labels):
        raise typer.BadParameter(
            "--method trains a new encoder, so it cannot be combined with --encoder or "
            "--few-labels. Omit --method."
        )
    method = "few-labels" if few_labels else method or "pars"
    if not names_file(method):
        choice(*TASKS, "scratch", "few-labels").check("--method", method)
    from braindecode_pars.cli import fitting

    settings = values(options.pop("settings", None), "--set")
    reading = reading_of(folder, options)
    fitting.fit_folder(folder, out, encoder, method, reading, settings, overwrite=overwrite)


@with_options(reading_of)
def audit_split(train: str, test: str, *, options: dict[str, Any]) -> None:
    """Audit a training/test split that was made elsewhere: data leakage and confounds.

    Reports subjects and recordings that are in both sets, overlapping windows, copied signals, and
    classes that vary with the recording, its channels or time. The exit code is 3 if there is a
    leak, 1 if an input cannot be read, and 2 if an option is invalid.

    Options
    -------
    train : TRAIN
        Training windows: a table with one row per window (.csv or .tsv) and the columns recording,
        start, stop, subject and optionally label; or a folder of labeled recordings, a BIDS
        dataset, or a store with labels.
    test : TEST
        Test windows, in the same form. Copies are only found in recordings, because tables have no
        signals.
    """
    from braindecode_pars import datasets, evaluation
    from braindecode_pars.recordings.side_tables import read_table

    tables = [side for side in (train, test) if Path(side).suffix.lower() in (".csv", ".tsv")]
    if tables and (len(tables) == 1 or options):  # before recordings are read
        raise ValueError(
            f"{', '.join(tables)}: a table of windows can only be compared with another table, and "
            "options for reading recordings do not apply to tables. Pass two tables without these "
            "options, or two sources of recordings."
        )

    def read(side: str) -> Any:
        return (
            read_table(side, Path()) if tables else datasets.load(side, **reading_of(side, options))
        )

    result = evaluation.audit_split(read(train), read(test))
    show(str(result))
    if result.has_leak:
        sys.exit(LEAK)


@with_options(advice=RESUME.format("recordings"))
def predict(
    model: str,
    recordings: list[Path],
    *,
    out: Path,
    overlap: Annotated[float, typer.Option(min=0, max=0.99)] = 0.0,
    smooth: bool = False,
    rescale: bool = False,
    adapt: bool = False,
    device: str = "auto",
    overwrite: bool = False,
) -> None:
    """Predict recordings: write a table, events and figures per recording, and a summary.

    Results per recording: a CSV table, a BIDS events file with its JSON file, and a figure of
    classes and probabilities over time, as an image and as a scrollable HTML page. summary.csv
    contains the time in each class and, for sleep stages, the sleep statistics of YASA, such as
    sleep efficiency and latencies. It is rewritten in every call. To resume, run the same command;
    finished recordings are skipped.

    Options
    -------
    model : MODEL
        Folder of a classifier that was saved by the command fit, or in Python by its method save;
        or hf://owner/name.
    recordings : RECORDING
        EDF, BDF, FIF, WFDB, BrainVision or EEGLAB recordings, and folders with recordings at any
        depth.
    out : FOLDER
        Folder for the results.
    overlap
        Overlap of consecutive windows, as a fraction of the window length. Predictions of
        overlapping windows are averaged.
    smooth
        Smooth predictions over time with the transition probabilities between classes in the
        training data. Tables contain raw and smoothed predictions; events, figures and summary
        contain the smoothed predictions.
    rescale
        Rescale each recording to the amplitude of the training data, by one factor, which is
        printed. For recordings with a different unit or gain, such as from wearable devices.
    adapt
        Adapt the model to each recording before predicting it. Requires a model that was trained
        with fit --few-labels. The features are centered with the windows of the recording. If the
        annotations of the recording contain at least two classes of the model, the classifier is
        also calibrated with these labels.
    device
        Device: auto, cpu, cuda or mps. auto uses CUDA if available, then MPS, then the CPU.
    overwrite
        Replace existing results, even if they were computed from a different version of the
        recording, another model or other options. Without it, the command stops.
    """
    from braindecode_pars.cli import predicting

    options = dict(overlap=overlap, smooth=smooth, rescale=rescale)
    n_failed = predicting.predict_recordings(
        model, recordings, out, device=device, overwrite=overwrite, adapt=adapt, **options
    )
    if n_failed:
        sys.exit(1)


@with_options(advice=RESUME.format("results"))
def reproduce(
    dataset: str,
    *,
    out: Path = Path("braindecode-pars-reproduction"),
    epochs: Annotated[int, typer.Option(min=1)] = 50,
    seeds: Annotated[int, typer.Option(min=1)] = 3,
    settings: Annotated[list[str] | None, typer.Option("--set")] = None,
) -> None:
    """Reproduce table 1 of the paper: compare PARS, DropPos, MP3, MAE and training from scratch.

    Two-fold design: for each pretext task, an encoder is pretrained without labels on half of the
    subjects, and frozen; the number of steps is the same for all tasks. A classifier with this
    encoder is trained with the labels of four subjects, and tested on the other half. Then the
    halves are swapped. To resume, run the same command. Example: braindecode-pars reproduce sleep

    Options
    -------
    dataset
        sleep (bundled dataset), or another corpus as in evaluate --dataset.
    out
        Folder for scores.csv and the encoders.
    epochs
        Number of epochs of each pretraining.
    seeds
        Number of repetitions, with seeds 0, 1, ...
    settings : KEY=VALUE
        Argument of PARSClassifier for all methods, such as embed_dim=128. May be repeated.
    """
    from braindecode_pars.cli import evaluation_report

    options = dict(epochs=epochs, seeds=range(seeds), **values(settings, "--set"))
    evaluation_report.show_reproduction(dataset, out, options)


@with_options()
def encoders(name: str | None = None, *, audit: bool = False) -> None:
    """List the bundled pretrained encoders, or print the encoder card or audit of one encoder.

    Options
    -------
    name
        Encoder whose card is printed: name of a bundled encoder, folder, or model id. If omitted, a
        table of all bundled encoders is printed.
    audit
        Print a probing analysis: how well spectral slope, band power and other signal properties
        can be decoded from the features (R2), compared with a random encoder. For bundled encoders,
        the stored analysis is printed; for other encoders, it is computed.
    """
    if audit and name is None:
        raise typer.BadParameter("--audit requires the name or folder of an encoder.")
    from braindecode_pars.cli import describing

    if name is None:
        describing.show_encoders()
    elif audit:
        describing.show_audit(name)
    else:
        describing.show_card(name)


app = typer.Typer(no_args_is_help=True, add_completion=False)
_COMMANDS = (study, store, plan, pretrain, fit, evaluate, audit_split, predict, reproduce, encoders)
for command in _COMMANDS:
    app.command()(command)
_handler = ConsoleHandler()


@app.callback()
def show_log(context: typer.Context) -> None:
    """Self-supervised pretraining for EEG."""
    package = logging.getLogger("braindecode_pars")
    package.setLevel(logging.INFO)
    package.addHandler(_handler)  # no effect if already added
    context.call_on_close(_handler.printed.clear)
