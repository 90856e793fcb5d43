"""The commands of ``braindecode-pars`` with their options.

Nothing slow is imported before a command runs, so that ``--help`` is fast. The options of a run are
those of ``plan`` and of ``pretrain``.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from braindecode_pars._common.settings import names_file
from braindecode_pars.cli.evaluate import evaluate
from braindecode_pars.cli.fitting import fit
from braindecode_pars.cli.studying import study
from braindecode_pars.cli.terminal import (
    CORPORA,
    TASKS,
    make_console,
    option,
    pairs,
    report_failures,
    values,
    with_options,
)
from braindecode_pars.runs import RunConfig
from braindecode_pars.runs.config import LAPTOP

if TYPE_CHECKING:
    from braindecode_pars.datasets import SyntheticSignals

log = logging.getLogger(__name__)


def _setting(name: str, text: str, shown: str = "") -> Any:
    """Return the type of the option for a setting of a run; help shows the default of a run."""
    default = getattr(RunConfig, name)
    kind = int if default is None else type(default)
    metavar = {int: "N", float: "X", str: "NAME"}[kind]
    kind = list[float] if name == "window_seconds" else kind
    shown = shown or str(default)
    if name in LAPTOP:
        shown = f"{LAPTOP[name]} on the CPU, else {shown}"
    return option(kind, text, show_default=shown, metavar=metavar)


#: Options by name. Without a value on the command line they are None, so that ``--config`` applies.
OPTIONS: dict[str, Any] = dict(
    config=option(
        Path,
        "TOML file with any of these settings; options on the command line override it.",
    ),
    paper=option(
        bool,
        "Start from the published settings on the CPU too, where the defaults are made for a "
        "laptop.",
        "--paper",
    ),
    task=f"Pretext task: {', '.join(TASKS)}; or one of your own, FILE.py:CLASS, whose code is run.",
    settings=option(
        list[str],
        "Argument of the task, such as n_patches=240. May be repeated.",
        "--set",
        metavar="KEY=VALUE",
    ),
    encoder=option(
        str,
        "Encoder to continue with: a folder, a name in the package such as small, or a model id. "
        "Its sizes replace those below.",
        metavar="FOLDER",
    ),
    window_seconds=_setting(
        "window_seconds",
        "Length of the crops in seconds. Several lengths are used in turns: repeat the option.",
    ),
    patch_seconds="Length of a patch in seconds.",
    embed_dim="Size of a token.",
    num_layers="Number of transformer blocks.",
    num_heads="Number of attention heads in each block.",
    mlp_dim="Hidden size of the feed-forward layers.",
    drop_prob="Dropout rate on the residual branches.",
    tokenizer="Map from patches to tokens: linear or spectral.",
    epochs="Number of epochs; the schedule has the same length.",
    steps_per_epoch=_setting(
        "steps_per_epoch", "Number of steps in an epoch.", "one pass over the data"
    ),
    batch_size="Number of examples in a step, over all processes.",
    micro_batch_size=_setting(
        "micro_batch_size",
        "Number of examples that pass through the network at once. Smaller values need less "
        "memory.",
        "batch size / number of processes",
    ),
    lr="Learning rate of AdamW after the warm-up.",
    weight_decay="Weight decay on the weights of linear layers.",
    warmup="Share of all steps in which the learning rate rises.",
    exclude_subject=option(list[str], "Subject to exclude. May be repeated.", metavar="ID"),
    precision="Precision: float32 or bfloat16.",
    compile=option(bool, "Compile the encoder.", "--compile/--no-compile"),
    seed="Seed of all random draws.",
    device="Device: auto, cpu, cuda or mps.",
    num_workers=_setting(
        "num_workers",
        "Number of processes that load data ahead, for each training process.",
        "up to 4 on a GPU, 0 on the CPU",
    ),
)
OPTIONS |= {name: _setting(name, text) for name, text in OPTIONS.items() if isinstance(text, str)}


with_run_options = with_options(OPTIONS)


def run_config(given: dict[str, Any], resumed: Path | None = None) -> RunConfig:
    """Return the configuration that options ask for; the defaults on the CPU are a laptop's.

    Parameters
    ----------
    given : dict
        Options of the command line, as :func:`with_options` passes them.
    resumed : path | None
        Folder of a run to resume. It keeps its defaults on another device.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        When an option or a setting in the file is wrong.
    """
    given = dict(given)
    file, paper = given.pop("config", None), given.pop("paper", False)
    if "settings" in given:
        given["task_params"] = values(given.pop("settings"), "--set")
    if "exclude_subject" in given:
        given["exclude_subjects"] = given.pop("exclude_subject")
    published = RunConfig(**given) if file is None else RunConfig.from_file(file, **given)
    if paper:
        return published
    small = RunConfig.for_laptop(file, **given)
    began = None if resumed is None else _configuration_of(resumed)
    if began is not None:
        same = [
            sum(began.get(name) == value for name, value in vars(config).items())
            for config in (published, small)
        ]
        return published if same[0] >= same[1] else small
    from braindecode_pars._common.computing import find_device  # imports torch

    if find_device(published.device).type != "cpu":
        return published
    other = [f"{k} {v}" for k, v in vars(small).items() if v != getattr(published, k)]
    if other and os.environ.get("RANK", "0") == "0":  # torchrun numbers processes
        log.info(
            "These are defaults for a laptop, because the device is the CPU: %s. --paper asks for "
            "the published ones.",
            ", ".join(other),
        )
    return small


def _configuration_of(run: Path) -> dict[str, Any] | None:
    """Return the settings that a run began with; None if they cannot be read."""
    try:
        return dict(json.loads((run / "run.json").read_text(encoding="utf-8"))["configuration"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # the run itself says what is wrong


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "braindecode-pars-demo"
    ),
    pretext: Annotated[
        str,
        typer.Option(
            help=f"Task of the pretraining: {', '.join(TASKS)}, or FILE.py:CLASS.", metavar="NAME"
        ),
    ] = "features",
    on: Annotated[
        Literal["noise", "sample"],
        typer.Option(help="Pretrain on noise, or on people of the sample who are not scored."),
    ] = "noise",
    seed: Annotated[int, typer.Option(help="Seed of the labelled people and of training.")] = 0,
) -> None:
    """Pretrain an encoder, and compare it on held-out people with the labels of few others."""
    if pretext not in TASKS and not names_file(pretext):
        raise typer.BadParameter(
            f"Unknown pretext task {pretext!r}; known are {', '.join(sorted(TASKS))}."
        )
    with report_failures():
        from braindecode_pars.cli.demo import run_demo

        run_demo(out, pretext=pretext, on=on, seed=seed)


#: Options of store by name.
_STORING: dict[str, Any] = dict(
    recipe=option(
        list[str],
        "Corpus and its folder, such as tueg=data/tuh_eeg, instead of SOURCE: its training "
        "subjects, with the recipe's channels, filters and rate. May be repeated. Recipes: "
        f"{', '.join(CORPORA)}.",
        metavar="NAME=FOLDER",
    ),
    labels=option(
        bool,
        "Store the labelled windows of the recipes too, for evaluate --dataset STORE: of the "
        "subjects of all splits. Pretraining leaves out validation and test subjects.",
        "--labels",
    ),
    exclude=option(
        list[Path],
        "Folder of TUAB or TUSZ, whose subjects are left out of tueg, or text file with a subject "
        "in each line. May be repeated.",
        metavar="PATH",
    ),
    share=option(
        list[str],
        "Share of a recipe in the examples of pretraining, such as tueg=1. May be repeated. "
        "Default: every window once in a pass.",
        metavar="NAME=X",
    ),
    set=option(
        list[str],
        "Setting of a recipe, such as physionet_mi.sfreq=128. May be repeated.",
        metavar="NAME.KEY=VALUE",
    ),
    sfreq=option(
        float,
        "Sampling rate of the store in Hz; recordings are resampled. Default: the recordings' own "
        "rate, which must be the same in all.",
    ),
    low=option(float, "Lower edge of the band-pass in Hz."),
    high=option(float, "Upper edge of the band-pass in Hz."),
    mains=option(float, "Frequency of the notch in Hz."),
    channel=option(
        list[str],
        "EEG channel to keep, in the recordings that have it. May be repeated. Default: all EEG "
        "channels.",
        metavar="NAME",
    ),
    reference=option(
        str,
        "New reference: average, of the channels that are stored. Default: the recordings' own "
        "reference.",
        metavar="NAME",
    ),
    subject=option(
        str,
        "Regular expression that finds the subject in the path of a file below SOURCE, such as "
        "'S(\\d+)R'. Its group is the subject. Default: as in BIDS, the corpora of Temple "
        "University or PhysioNet's challenges, else the first folder, or the name of a file "
        "without folder. Names that number the recordings of one person, such as Subject00_1 and "
        "Subject00_2, need it.",
        metavar="PATTERN",
    ),
    dtype=option(
        str,
        "Type of the stored samples: int16 or float32.",
        show_default="int16",
        metavar="NAME",
    ),
    jobs=option(int, "Number of recordings to read in parallel.", show_default="1"),
    on_error=option(
        str,
        "Action for a recording that cannot be read: raise ends the command, warn skips the "
        "recording.",
        show_default="raise",
        metavar="NAME",
    ),
)


@with_options(_STORING)
def store(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Folder with EDF, BDF, FIF or WFDB recordings at any depth, which is omitted with "
            "--recipe, and folder of the store.",
            metavar="[SOURCE] STORE",
        ),
    ],
    *,
    given: dict[str, Any],
) -> None:
    """Store recordings, for pretraining or with labels.

    The same command resumes where it was interrupted, and adds new files to a finished store.
    """
    path, recipe = folders[-1], given.get("recipe")
    for applies, options, why in (
        ("labels" in given, ("exclude", "share"), "is for pretraining; --labels stores everyone"),
        (not recipe, ("labels", "exclude", "set", "share"), "needs --recipe"),
    ):
        refused = [option for option in options if option in given]
        if applies and refused:
            raise typer.BadParameter(f"--{refused[0]} {why}.")
    if len(folders) != (1 if recipe else 2):
        expected = "STORE after --recipe" if recipe else "SOURCE and STORE, or --recipe and STORE"
        raise typer.BadParameter(f"expected {expected}; got {len(folders)} folders.")
    kept = f"Finished recordings are kept in {path}; run the same command to resume."
    with report_failures(kept):
        from braindecode_pars.cli.storing import find_corpora, make_store

        source: Any = folders[0]
        if recipe:
            corpora, settings = pairs(recipe, "--recipe", "NAME=FOLDER"), given.get("set")
            excluded, labels = given.get("exclude", []), "labels" in given
            source = find_corpora(corpora, excluded, values(settings, "--set"), labels=labels)
        names = ("sfreq", "low", "high", "mains", "reference", "subject")
        make_store(
            source,
            path,
            **{name: given.get(name) for name in names},
            channels=given.get("channel"),
            dtype=given.get("dtype", "int16"),
            shares=values(given.get("share"), "--share") or None,
            n_jobs=given.get("jobs", 1),
            on_error=given.get("on_error", "raise"),
        )


@with_run_options
def plan(
    corpus: Annotated[
        Path | None,
        typer.Argument(help="Folder of a SignalStore.", show_default=False),
    ] = None,
    n_windows: Annotated[
        int | None,
        typer.Option(
            help="Number of windows in a pass, for a corpus that is not here.", metavar="N", min=1
        ),
    ] = None,
    sfreq: Annotated[
        float | None,
        typer.Option(
            help="Sampling rate in Hz of a corpus that is not here, or of --synthetic, where it is "
            "128 by default."
        ),
    ] = None,
    n_chans: Annotated[
        int,
        typer.Option(help="Number of channels, for a corpus that is not here.", metavar="N", min=1),
    ] = 1,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Plan a run on signals without recordings.")
    ] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Print disk, memory, steps and hours of a pretraining run. Nothing is started.

    Takes the options of pretrain, and measures a step on this machine for some seconds.
    """
    if (corpus is not None) + (n_windows is not None) + synthetic != 1:
        raise typer.BadParameter(
            "Pass the folder of a store, or --n-windows and --sfreq, or --synthetic."
        )
    if n_windows is not None and sfreq is None:
        raise typer.BadParameter("--n-windows needs --sfreq, the sampling rate of the windows.")
    with report_failures():
        from braindecode_pars.cli.describing import show_plan
        from braindecode_pars.runs import CorpusSize
        from braindecode_pars.signal_store import SignalStore

        config = run_config(given)
        seconds = max(config.lengths)
        if synthetic:
            size = CorpusSize.of_store(_signals(sfreq))
        elif corpus is None:
            size = CorpusSize.of_numbers(
                n_windows, sfreq=sfreq, window_seconds=seconds, n_chans=n_chans
            )
        else:
            kept = SignalStore.open(corpus, verbose=0).select(exclude=config.exclude_subjects)
            size = CorpusSize.of_store(kept.without_held_out(), seconds)
        show_plan(size, config)


@with_run_options
def pretrain(
    store: Annotated[
        Path | None, typer.Argument(help="Folder of a SignalStore.", show_default=False)
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the run and its encoder.")],
    synthetic: Annotated[
        bool,
        typer.Option(
            "--synthetic",
            help="Pretrain on synthetic signals, which are drawn as they are needed, instead of a "
            "store: 1/f noise with random exponents. No recordings are used.",
        ),
    ] = False,
    sfreq: Annotated[
        float | None,
        typer.Option(help="Sampling rate of synthetic signals in Hz.", show_default="128"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run in --out from its last checkpoint.")
    ] = False,
    given: dict[str, Any],
) -> None:
    """Pretrain an encoder on a store of recordings. The defaults are the paper's settings.

    On the CPU they are small enough for a laptop, unless --paper asks for the paper's there too.
    The command plan tells what a run takes.

    For several GPUs or processes on one machine: torchrun --nproc-per-node N -m braindecode_pars
    pretrain ...
    """
    if (store is not None) == synthetic:
        raise typer.BadParameter(
            "Pass the folder of a store, or --synthetic for signals without recordings."
        )
    if sfreq is not None and not synthetic:
        raise typer.BadParameter("--sfreq is for --synthetic; a store has its own sampling rate.")
    with report_failures(f"The last checkpoint is in {out}; use --resume to continue."):
        from braindecode_pars import runs

        config = run_config(given, resumed=out if resume else None)
        data = _signals(sfreq) if store is None else store
        runs.pretrain(data, out, config, resume=resume)


def _signals(sfreq: float | None) -> SyntheticSignals:
    from braindecode_pars.datasets import SyntheticSignals

    return SyntheticSignals() if sfreq is None else SyntheticSignals(sfreq)


def predict(
    model: Annotated[
        str,
        typer.Argument(
            help="Folder of a classifier that fit, or save in Python, has written, or "
            "hf://owner/name.",
            metavar="MODEL",
        ),
    ],
    recordings: Annotated[
        list[Path],
        typer.Argument(
            help="EDF, BDF, FIF or WFDB recordings, and folders with such recordings at any depth.",
            metavar="RECORDING",
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the results, and to resume from.", metavar="FOLDER")
    ],
    overlap: Annotated[
        float,
        typer.Option(
            help="Share of a window that the next one repeats; predictions of windows "
            "that overlap are averaged.",
            min=0,
            max=0.99,
        ),
    ] = 0.0,
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth",
            help="Smooth over time by the transitions between labels in training. Tables have raw "
            "and smoothed predictions; events, figure and summary are of the smoothed ones.",
        ),
    ] = False,
    rescale: Annotated[
        bool,
        typer.Option(
            "--rescale",
            help="Multiply each recording by one factor, which is printed, to the amplitudes of "
            "the training: for another unit or gain, as of wearables.",
        ),
    ] = False,
    device: Annotated[
        str, typer.Option(help="Torch device; auto uses CUDA, then MPS, then the CPU.")
    ] = "auto",
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace results that were changed by hand, and a summary.csv of other "
            "recordings. Without it, nothing is written where one would be lost.",
        ),
    ] = False,
) -> None:
    """Predict recordings: a table, events and a figure of each, and one summary.

    Each recording gets a CSV table, an events file of BIDS with its JSON file, and a figure of its
    classes and probabilities over time, as an image and as a page to scroll along. summary.csv has
    the time in each class; for sleep stages also the sleep efficiency, latencies and the other
    statistics of YASA. Finished recordings are not predicted again, unless they, the model or the
    options have changed.
    """
    kept = f"Finished recordings are kept in {out}; run the same command to resume."
    with report_failures(kept):
        from braindecode_pars.cli.predicting import predict_recordings

        n_failed = predict_recordings(
            model,
            recordings,
            out,
            overlap=overlap,
            smooth=smooth,
            rescale=rescale,
            device=device,
            overwrite=overwrite,
        )
    if n_failed:
        raise typer.Exit(1)


def encoders(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Encoder whose card is printed: a name in the package, a folder or a model id. "
            "Default: a table of the encoders in the package.",
            show_default=False,
        ),
    ] = None,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit",
            help="Print what its features hold, beside a random encoder: R2 of slope, band powers "
            "and other properties. It is stored for those in the package, and measured for "
            "others.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Store of other recordings to audit it on. Default: the sample in the package.",
            metavar="STORE",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the pretrained encoders in the package, or print the card or the audit of one."""
    if audit and name is None:
        raise typer.BadParameter("--audit needs the name or the folder of an encoder.")
    if data is not None and not audit:
        raise typer.BadParameter("--data is for --audit.")
    with report_failures():
        from braindecode_pars.cli.describing import show_card, show_encoders

        if name is None:
            show_encoders(make_console())
        elif audit:
            from braindecode_pars.cli.auditing import show_audit

            show_audit(make_console(), name, data)
        else:
            show_card(make_console(), name)


app = typer.Typer(no_args_is_help=True, add_completion=False)
for command in (study, demo, store, plan, pretrain, fit, evaluate, predict, encoders):
    app.command()(command)


class _Echo(logging.Handler):
    """Print the package's log: information on the standard output, warnings on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record), err=record.levelno >= logging.WARNING)


@app.callback()
def show_log() -> None:
    """Self-supervised pretraining for EEG."""
    log = logging.getLogger("braindecode_pars")
    log.setLevel(logging.INFO)
    if not any(isinstance(handler, _Echo) for handler in log.handlers):
        log.addHandler(_Echo())
