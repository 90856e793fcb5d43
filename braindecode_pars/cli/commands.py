"""Commands of ``braindecode-pars`` with their arguments, options and help texts.

Other modules of this folder implement the commands. Slow packages are imported only when a command
runs, so that ``--help`` is fast. The commands ``plan`` and ``pretrain`` share the options of a
pretraining run (see :func:`run_config`). The commands ``study``, ``fit`` and ``audit-split`` share
the options for reading recordings (see :func:`reading_of`).
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

#: Types of the options of a pretraining run.
_TYPES: dict[str, Any] = {
    **{name: kind for name, kind in get_type_hints(RunConfig).items() if kind is not Any},
    "paper": bool,
    "window_seconds": list[float],
    "exclude_subjects": Annotated[list[str], typer.Option("--exclude-subject")],
    "compile": Annotated[bool, typer.Option("--compile/--no-compile")],
    "sham": Annotated[bool, typer.Option("--sham")],
}
#: Default values of the options of a pretraining run, as shown in the help.
_DEFAULTS = {
    name: f"{LAPTOP[name]} on the CPU, else {default}" if name in LAPTOP else str(default)
    for name in get_type_hints(RunConfig)
    if type(default := getattr(RunConfig, name, None)) in (int, float, str)
}


def run_config(options: dict[str, Any]) -> RunConfig:
    """Return the configuration of a pretraining run for the options of a command.

    Options that were not passed on the command line are not in ``options``. Their defaults are the
    settings of the paper, or, on the CPU without ``--paper``, settings for a laptop.

    Options
    -------
    paper
        Also use the published settings as defaults if the run is on the CPU. Without this option,
        the defaults on the CPU are smaller and suitable for a laptop.
    task : NAME
        Pretext task: {TASKS}; or your own task, as FILE.py:CLASS (a Python file and a class in this
        file; the file is executed).
    settings : KEY=VALUE
        Argument of the pretext task, such as n_patches=240. May be repeated.
    encoder : FOLDER
        Pretrained encoder from which the run starts: a folder, the name of a bundled encoder such
        as small, or a model on the Hugging Face Hub (hf://owner/name). The sizes of this encoder
        are used; the options --patch-seconds, --embed-dim, --num-layers, --num-heads, --mlp-dim,
        --drop-prob and --tokenizer are ignored. Default: a new encoder.
    window_seconds : X
        Length in seconds of the crops (random excerpts of recordings) on which the encoder is
        trained. Repeat the option to alternate between several lengths.
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
        Dropout probability of the residual branches.
    tokenizer : NAME
        Patch embedding, which converts patches to tokens: linear or spectral.
    epochs : N
        Number of epochs, over which the learning rate decays to zero. If None (the default with
        --max-steps or --minutes, and on the CPU without --paper), the run continues as long as the
        loss on held-out subjects decreases.
    max_steps : N
        Maximum number of steps of a run without --epochs. Default: 2000, or no maximum with
        --minutes.
    minutes : X
        Maximum duration in minutes of a run without --epochs.
    sham
        Sham pretraining, as a control for a pretraining run: the same training, but each window
        gets the targets of another window, so that there is nothing to learn. Pass the same
        --max-steps or --epochs as in the pretraining run.
    steps_per_epoch : N
        Number of steps per epoch. Default: one pass over the data; without --epochs, at most 250
        steps.
    batch_size : N
        Number of crops per training step, summed over all processes.
    micro_batch_size : N
        Number of crops per forward pass. Smaller values require less memory. Default: batch size /
        number of processes.
    lr : X
        Highest learning rate of the optimizer AdamW, which is reached at the end of the warm-up.
    weight_decay : X
        Weight decay of the weights of linear layers.
    warmup : X
        Fraction of all steps during which the learning rate increases linearly. If the number of
        epochs is not fixed, the warm-up always takes 100 steps.
    exclude_subjects : ID
        Subject to exclude from training, such as a future test subject. May be repeated.
    precision : NAME
        Numerical precision of training: float32 or bfloat16.
    compile
        Compile the encoder with torch.compile.
    seed : N
        Seed of all random numbers.
    device : NAME
        Device to train on: auto, cpu, cuda or mps. auto uses CUDA if available, then MPS, then the
        CPU.
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
        "The run is on the CPU, so the default settings are suitable for a laptop. Pass --paper to "
        "use the published settings instead."
    )
    return RunConfig.for_laptop(**options)


#: Exit code of the command audit-split if there is data leakage. The codes 1 and 2 indicate errors.
LEAK = 3


def reading_of(folder: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``datasets.load`` for the options of a command.

    Options
    -------
    labels
        Table with the labels of files or subjects, such as participants.tsv. Default: the labels
        are the annotations of the recordings.
    labels_from : PATTERN
        Regular expression that finds the label (group "label") and optionally the subject (group
        "subject") in the path of a file, such as '(?P<subject>[^_/]+)_(?P<label>[^_.]+)'. Use this
        option instead of --labels.
    label_column
        Column of the table in --labels that contains the labels.
    classes
        Label to use as a class. To rename the class, add its new name, as in 'Sleep stage W=W'. May
        be repeated. Default: all labels. Windows with other labels are not used; in the bundled
        dataset sleep, they remain as unlabeled windows.
    subject
        Regular expression whose group matches the subject in the path of a file, such as
        'S(\\d+)R'. Default: as described in braindecode-pars store --help.
    window_seconds
        Length of a window in seconds. Default: 30, or the duration of the labels if all labels have
        the same duration and this duration is shorter than 30 s.
    sfreq
        Sampling rate in Hz, to which recordings are resampled. Default: as in the pretraining data
        of the encoder, or 200 without an encoder.
    low
        Lower cutoff frequency of the band-pass filter in Hz. Default: as in the pretraining data of
        the encoder, or 0.3 without an encoder.
    high
        Upper cutoff frequency of the band-pass filter in Hz. Default: as in the pretraining data of
        the encoder, or 75 without an encoder.
    mains
        Line frequency in Hz, which a notch filter removes. Default: 60.
    reference
        New reference. The only supported value is average: the average of the selected channels.
        Default: reference as recorded.
    channels
        EEG channel to select. May be repeated. Default: all scalp electrodes that all recordings
        contain.
    n_jobs
        Number of parallel processes. Default: 1.
    on_error
        What to do if a recording cannot be read: raise (stop the command with an error), or warn
        (skip the recording with a warning). Default: raise; for braindecode-pars study, warn.
    """
    if "classes" not in options:
        return options
    # The option --class becomes the argument classes if the labels are from a table, from paths or
    # from a bundled dataset. If the labels are annotations, it becomes the argument labels.
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
    """Study whether pretraining improves classification of your recordings, and write a report.

    The command checks the data and prints a plan. It then trains classifiers on the labels of a few
    subjects, and scores these classifiers on held-out subjects. It compares a pretrained encoder
    with an encoder after sham pretraining (the same training, but each window gets the targets of
    another window, so that there is nothing to learn), and with baselines. At the end, it
    recommends a method, and saves a model of this method that was trained on all labeled subjects.
    The report is updated during the study. To resume an interrupted study, run the same command.

    Options
    -------
    folder : FOLDER
        Folder of labeled recordings, BIDS dataset, or signal store with labels (see
        braindecode-pars store); or a bundled dataset: sleep (stage 3 vs. 4) or mental_arithmetic
        (rest vs. arithmetic).
    out : STUDY
        Folder for the report, the scores and the recommended model.
    quick
        Run only the primary comparison (pretraining vs. sham pretraining) and the baselines, and
        pretrain for less time.
    thorough
        Pretrain for more time, and also run published networks (EEGNet and ShallowFBCSPNet).
    tasks : NAME
        Pretext task for pretraining on these recordings. May be repeated; the first task is used in
        the primary comparison. Default: pars and features.
    encoders : NAME=FOLDER
        Encoder that was pretrained on other data, with a name for tables. May be repeated. Default:
        the bundled encoders small and, for windows of 20 s or longer, pars-sleep.
    only : NAME
        Methods to run: the name of a method, or one of the groups primary (pretraining, sham
        pretraining and random encoder), baselines, tasks (further pretext tasks), bundled (encoders
        pretrained on other data), ensemble (feature ensemble), networks (fine-tuning and training
        from scratch), controls (control analyses) and published (published networks). May be
        repeated. Default: all groups; published is included only with --thorough. With --quick:
        primary and baselines.
    without : NAME
        Method, or group of methods as in --only, to exclude. May be repeated.
    n_train_subjects : N
        Number of labeled subjects on which each classifier is trained. Default: 4, or fewer if a
        fold has fewer than 12 training subjects. If each subject has windows of only one class, the
        default is 2 subjects per class (1 if there are too few subjects).
    draws : N
        Number of draws (random selections of labeled subjects) in each fold. Must be even. Default:
        12.
    minutes : N
        Maximum number of minutes for which each encoder is pretrained. Default: 8; with --quick 5,
        with --thorough 60.
    in_spite_of : NAME
        Finding of the data check that should not stop the study. The only supported name is
        confounds: the classes are confounded with the site, corpus, channels, reference or sampling
        rate of the recordings. Default: such a finding stops the study.
    plan_only
        Check the data and print the plan, without running the study.
    """
    if quick and thorough:
        raise typer.BadParameter("--quick and --thorough cannot be combined. Pass only one option.")
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
    """Convert recordings to a signal store: one folder from which recordings are read quickly.

    A store is used for pretraining on corpora larger than memory, and, with --recipe and --labels,
    to evaluate classifiers. To resume an interrupted conversion, or to add new files to a finished
    store, run the same command.

    Options
    -------
    folders : [SOURCE] STORE
        SOURCE: folder that contains EDF, BDF, FIF, WFDB, BrainVision or EEGLAB recordings, also in
        subfolders. Omit SOURCE if you pass --recipe. STORE: folder for the store.
    recipe : NAME=FOLDER
        Name and folder of a public corpus, such as tueg=data/tuh_eeg, instead of SOURCE. The
        recordings of training subjects are stored, with the channels, filters and sampling rate
        that the recipe of the package defines for this corpus. May be repeated. Names: {RECIPES}.
    labels
        Only with --recipe, and without --exclude and --share: also store the labeled windows of
        training, validation and test subjects, for use with braindecode-pars evaluate --dataset
        STORE. If you pretrain on this store, its validation and test subjects are excluded.
    exclude : PATH
        Only with --recipe: subjects to exclude. The folder of TUAB or TUSZ excludes the subjects of
        this corpus from tueg; a text file with one subject per line excludes these subjects from
        all corpora. May be repeated.
    share : NAME=X
        Only with --recipe: relative proportion of a corpus in the training data of pretraining,
        such as tueg=1. Only the ratios matter. Repeat the option, once for each corpus. Default:
        each window is used once per pass over the data.
    settings : NAME.KEY=VALUE
        Only with --recipe: setting of a recipe, such as physionet_mi.sfreq=128. May be repeated.
    sfreq
        Sampling rate of the store in Hz, to which recordings are resampled. Default: sampling rate
        of the recordings, which must then be the same in all recordings.
    low
        Lower cutoff frequency of the band-pass filter in Hz. Default: no high-pass filter.
    high
        Upper cutoff frequency of the band-pass filter in Hz. Default: no low-pass filter.
    mains
        Line frequency in Hz, which a notch filter removes. Default: no notch filter.
    channels : NAME
        EEG channel to store. Recordings may lack this channel. May be repeated. Default: all EEG
        channels.
    reference : NAME
        New reference. The only supported value is average: the average of the stored channels.
        Default: reference as recorded.
    subject : PATTERN
        Regular expression whose group matches the subject in the path of a file below SOURCE, such
        as 'S(\\d+)R'. Default: subjects are recognized in names as in BIDS, in the corpora of
        Temple University and in the PhysioNet challenges; for other names, the subject is the first
        folder in the path, or the file name if the file is not in a subfolder. This option is
        required if file names contain the subject and the number of the recording, as in
        Subject00_1 and Subject00_2.
    dtype : NAME
        Data type of the stored samples: int16, or float32 for single precision and a store of twice
        the size. Default: int16.
    n_jobs
        Number of recordings to read in parallel. Default: 1.
    on_error : NAME
        What to do if a recording cannot be read: raise (stop the command with an error), or warn
        (skip the recording with a warning). Default: raise.
    """
    if labels and (exclude or share):
        raise typer.BadParameter(
            "With --labels, all subjects are stored, so the options --exclude and --share, which "
            "are for pretraining, cannot be used. Omit these options, or omit --labels."
        )
    if not recipe and (labels or exclude or share or "settings" in options):
        raise typer.BadParameter(
            "--labels, --exclude, --share and --set require --recipe, because they only apply to "
            "corpora that are read with a recipe."
        )
    if len(folders) != (1 if recipe else 2):
        expected = "only STORE with --recipe" if recipe else "SOURCE and STORE, or --recipe"
        raise typer.BadParameter(f"Pass {expected}. Folders passed: {len(folders)}.")
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

    Pass the options that you would pass to braindecode-pars pretrain. The duration is estimated
    from one training step, which is timed on this machine and takes a few seconds. Specify the
    training data by the folder of a store, or by --n-windows, --sfreq and --n-chans.

    Options
    -------
    corpus
        Folder of a signal store, which "braindecode-pars store" creates.
    n_windows : N
        Number of windows in one pass over the data. Only without a store.
    sfreq
        Sampling rate in Hz. Only without a store.
    n_chans : N
        Number of channels. Only without a store.
    """
    if (corpus is None) == (n_windows is None):
        raise typer.BadParameter("Pass either the folder of a store, or --n-windows and --sfreq.")
    from braindecode_pars.cli import describing

    size: dict[str, Any] = dict(n_windows=n_windows, sfreq=sfreq, n_chans=n_chans)
    describing.show_plan(run_config(options), corpus, **size)


@with_options(run_config, _TYPES, _DEFAULTS, advice="Use --resume to continue the run.")
def pretrain(store: Path, *, out: Path, resume: bool = False, options: dict[str, Any]) -> None:
    """Pretrain an encoder on a signal store. The default settings are those of the paper.

    On the CPU, the default settings are smaller and suitable for a laptop, unless you pass --paper.
    "braindecode-pars plan" estimates the duration and the disk space of a run.

    To use several GPUs or processes on one machine: torchrun --nproc-per-node N -m braindecode_pars
    pretrain ...

    Options
    -------
    store
        Folder of a signal store, which "braindecode-pars store" creates.
    out
        Folder for the run: settings, losses, checkpoints and the pretrained encoder.
    resume
        Resume the interrupted run in --out from its last checkpoint. Pass the same options as
        before.
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
    """Train a classifier on labeled recordings and save it for braindecode-pars predict.

    By default, a network is pretrained on the recordings without their labels, and then fine-tuned
    with the labels. With --encoder, an encoder that was pretrained on other data is fine-tuned.
    With --few-labels, an ensemble of linear classifiers is trained instead of a network.

    Options
    -------
    folder : FOLDER
        Folder of labeled recordings, BIDS dataset, or signal store with labels (see
        braindecode-pars store); or a bundled dataset: sleep or mental_arithmetic.
    out : MODEL
        Folder in which the model is saved.
    overwrite
        Replace an existing model in --out.
    few_labels
        Train a FewLabelsClassifier (an ensemble of linear classifiers) instead of a network. This
        takes seconds and is recommended for fewer than about 20 labeled subjects.
    encoder
        Pretrained encoder to fine-tune: a folder, the name of a bundled encoder such as small, or a
        model on the Hugging Face Hub (hf://owner/name). With --few-labels, the encoder is frozen
        (not trained), and the default is small.
    method
        Pretext task with which a new encoder is pretrained: {TASKS}, or a class in a Python file
        (FILE.py:CLASS; the file is executed). Pass scratch to train without pretraining. Cannot be
        combined with --encoder or --few-labels. Default: pars.
    settings
        Argument KEY=VALUE of PARSClassifier, or of FewLabelsClassifier with --few-labels, such as
        random_state=1 or device=cpu. May be repeated.
    """
    if method is not None and (encoder is not None or few_labels):
        raise typer.BadParameter(
            "--method trains a new encoder, so it cannot be combined with --encoder or "
            "--few-labels. Omit --method, or omit the other options."
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
    """Check a training/test split of your own for data leakage and confounds.

    The command reports subjects and recordings that are in both sets, overlapping windows, and
    duplicate signals. It also reports if classes are confounded with recordings, channels or time.
    The exit code is 3 if there is data leakage, 1 if an input cannot be read, and 2 if an option is
    invalid.

    Options
    -------
    train : TRAIN
        Training windows: a table (.csv or .tsv) with one row per window and the columns recording,
        start, stop, subject and optionally label; or the recordings, as a folder of labeled
        recordings, a BIDS dataset, or a signal store with labels.
    test : TEST
        Test windows: a table if TRAIN is a table, recordings if TRAIN contains recordings.
        Duplicate signals are only detected in recordings, because tables do not contain signals.
    """
    from braindecode_pars import datasets, evaluation
    from braindecode_pars.recordings.side_tables import read_table

    tables = [side for side in (train, test) if Path(side).suffix.lower() in (".csv", ".tsv")]
    if tables and (len(tables) == 1 or options):  # before recordings are read
        raise ValueError(
            f"Got a table of windows ({', '.join(tables)}). A table can only be compared with "
            "another table, and options for reading recordings do not apply to tables. Pass two "
            "tables without these options, or two sources of recordings."
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
    """Predict the classes of windows in recordings, and write tables, figures and a summary.

    For each recording, the command writes a CSV table, a BIDS events file with its JSON file, and a
    figure of classes and probabilities over time, as an image and as an HTML page that can be
    scrolled. The file summary.csv contains the time in each class and, for sleep stages, the sleep
    statistics as defined by YASA, such as sleep efficiency and latencies. Each call writes this
    file again, with all recordings whose results are in the folder. To resume an interrupted
    command, run it again; finished recordings are skipped.

    Options
    -------
    model : MODEL
        Folder of a classifier that was saved with braindecode-pars fit, or with save() in Python;
        or hf://owner/name for a model on the Hugging Face Hub.
    recordings : RECORDING
        EDF, BDF, FIF, WFDB, BrainVision or EEGLAB recordings, or folders that contain recordings,
        also in subfolders.
    out : FOLDER
        Folder for the results.
    overlap
        Overlap of consecutive windows, as a fraction of the window length. Predictions of
        overlapping windows are averaged.
    smooth
        Smooth the predictions over time, with the probabilities of transitions between classes in
        the training data. The tables then contain raw and smoothed predictions; events, figures and
        summary contain the smoothed predictions.
    rescale
        Multiply the signals of each recording by one factor, so that its amplitude is the same as
        in the training data. The factor is printed. Use this option for recordings with a different
        unit or gain, for example from wearable devices.
    adapt
        Adapt the model to each recording before predicting this recording. Requires a model that
        was trained with braindecode-pars fit --few-labels. The features are centered with the mean
        over the windows of the recording. If the annotations of the recording contain at least two
        classes of the model, the classifier is also calibrated with these labels.
    device
        Device: auto, cpu, cuda or mps. auto uses CUDA if available, then MPS, then the CPU.
    overwrite
        Replace existing results, even if another model, other options or a different version of a
        recording was used for them. Without this option, the command stops with an error if there
        are such results.
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

    The subjects are divided into two halves. For each pretext task, an encoder is pretrained
    without labels on the first half and then frozen (not trained any further); the number of
    training steps is the same for all tasks. The second half is divided into two test sets. For
    each test set, a classifier on the frozen encoder is trained with the labels of four subjects,
    which are drawn from all subjects (of both halves) that are not in this test set. Then the two
    halves are swapped. To resume an interrupted command, run it again. Example:
    braindecode-pars reproduce sleep

    Options
    -------
    dataset
        sleep (bundled dataset), or another dataset as in braindecode-pars evaluate --dataset.
    out
        Folder for the scores (scores.csv) and the encoders.
    epochs
        Number of epochs for which each encoder is pretrained.
    seeds
        Number of repetitions, with the random seeds 0, 1, ...
    settings : KEY=VALUE
        Argument of PARSClassifier that is used for all methods, such as embed_dim=128. May be
        repeated.
    """
    from braindecode_pars.cli import evaluation_report

    options = dict(epochs=epochs, seeds=range(seeds), **values(settings, "--set"))
    evaluation_report.show_reproduction(dataset, out, options)


@with_options()
def encoders(name: str | None = None, *, audit: bool = False) -> None:
    """List the bundled pretrained encoders, or print details of one encoder.

    Options
    -------
    name
        Encoder: the name of a bundled encoder, a folder, or a model on the Hugging Face Hub
        (hf://owner/name). The encoder card is printed, which describes pretext task, pretraining
        data, preprocessing and losses. If no name is passed, a table of all bundled encoders is
        printed.
    audit
        Print a probing analysis instead of the encoder card: how well spectral slope, band power
        and other signal properties can be decoded from the features of the encoder (R2), compared
        with a random encoder. For bundled encoders, a stored analysis is printed; for other
        encoders, the analysis is computed on a bundled dataset.
    """
    if audit and name is None:
        raise typer.BadParameter("--audit requires the name or folder of an encoder. Pass NAME.")
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
