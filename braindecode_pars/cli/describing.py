"""Implementation of the commands ``store``, ``plan`` and ``encoders``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from rich.filesize import decimal

from braindecode_pars import datasets, runs
from braindecode_pars._common import checks, model_files
from braindecode_pars.cli.terminal import print_frame, show
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.recordings import cutting
from braindecode_pars.recordings.recipe import without_left_out
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import preprocessing


def find_corpora(
    folders: list[tuple[str, str]],
    exclude: list[Path],
    settings: Mapping[str, Any],
    *,
    labels: bool,
) -> list[Any]:
    """Find the recordings of public corpora, and print the included and excluded subjects.

    A recipe is the module of the package that reads one public corpus.

    Parameters
    ----------
    folders : list of (str, str)
        Name of the recipe and folder of the corpus, for each corpus.
    exclude : list of Path
        Subjects to exclude: folders of TUAB or TUSZ, whose subjects are excluded from TUEG, and
        text files with one subject per line, who are excluded from every corpus.
    settings : mapping
        Settings of recipes, with keys such as ``physionet_mi.sfreq``.
    labels : bool
        If True, find the labeled recordings of all splits. If False, find the recordings for
        pretraining.

    Returns
    -------
    list of ContinuousCorpus
        Corpora with lists of recordings. The files have not been read yet.

    Raises
    ------
    ValueError
        If a recipe or a setting is unknown. If ``exclude`` contains the folder of a corpus, but
        ``folders`` does not contain TUEG, the only corpus that includes subjects of other corpora.
        If ``labels`` is True, but a corpus has no labels.
    FileNotFoundError
        If the folder of a corpus or a path in ``exclude`` does not exist, or if the folder of a
        corpus contains no recording of this corpus.
    """
    names = [name for name, _ in folders]
    for name in names:
        checks.choice(*datasets.RECIPES).check("--recipe", name)
    if unknown := [key for key in settings if "." not in key or key.partition(".")[0] not in names]:
        raise ValueError(
            f"Invalid key {unknown[0]!r} of --set: expected the form NAME.KEY=VALUE, where NAME is "
            f"a recipe that is passed with --recipe ({', '.join(names)})."
        )
    excluded_folders = [path for path in exclude if path.is_dir()]
    texts = [path.read_text() for path in exclude if not path.is_dir()]
    lists = [[line.strip() for line in text.splitlines() if line.strip()] for text in texts]
    # Folders are for recipes whose corpus shares subjects with other corpora. If there is none, all
    # recipes receive the folders, and raise an error.
    with_folders = [name for name in names if datasets.RECIPES[name].leave_out] or names
    corpora: list[Any] = []
    for name, folder in folders:
        prefix = f"{name}."
        options = {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}
        if labels:
            corpora.append(datasets.RECIPES[name].labeled(folder, **options))
        else:
            excluded: list[Any] = [*(excluded_folders if name in with_folders else ()), *lists]
            corpora.append(datasets.RECIPES[name].continuous(folder, exclude=excluded, **options))
    if not labels:
        corpora = without_left_out(corpora)
    for corpus in corpora:
        show(corpus.summary)  # numbers of included and excluded subjects
    absent = set() if labels else set.intersection(*(set(corpus.absent) for corpus in corpora))
    if absent:
        show(
            "The lists in --exclude contain subjects without any recording "
            f"({len(absent)}): {checks.format_list(sorted(absent))}. Check the spelling: a subject "
            "with a misspelled name is not excluded from training."
        )
    return corpora


def make_store(source: Path | list[Any], path: Path, **settings: Any) -> None:
    """Create a store from the recordings of a folder or of corpora, and print its summary.

    Parameters
    ----------
    source : Path | list of ContinuousCorpus
        Folder of recordings, or corpora as returned by :func:`find_corpora`.
    path : Path
        Folder of the store.
    **settings
        Further arguments of ``SignalStore.create``.
    """
    with checks.quiet("skipped_recordings"):  # skipped recordings are printed below
        finished = SignalStore.create(path, source, **settings)
    show(finished)
    # Print the subjects, so that users can check whether they were recognized.
    subjects = [*map(str, finished.subjects)]
    show(f"Subjects ({len(subjects)}): {checks.format_list(subjects, max_items=12)}.")
    if finished.n_labeled_windows:
        classes = checks.format_list(finished.classes) or "unknown"
        show(f"Labeled windows: {finished.n_labeled_windows:,} (classes: {classes}).")
    for name, reason in finished.skipped.items():
        show(f"Skipped recording {name}: {reason}")


# Runs and encoders -------------------------------------------------------------------------------


def show_plan(
    config: runs.RunConfig,
    store: Path | None,
    n_windows: int | None,
    sfreq: float | None,
    n_chans: int,
) -> None:
    """Print the estimated disk space, number of steps and duration of a pretraining run.

    Parameters
    ----------
    config : RunConfig
        Configuration of the run.
    store : Path | None
        Folder of the store to pretrain on. If None, the next arguments describe the data.
    n_windows, sfreq, n_chans
        Number of windows in one pass over the data, sampling rate in Hz, and number of channels.
        They are ignored if ``store`` is not None.
    """
    seconds = max(config.lengths)
    if store is not None:
        selection = SignalStore.open(store, verbose=0).select(exclude=config.exclude_subjects)
        corpus = runs.CorpusSize.of_store(selection.without_held_out(), seconds)
    else:
        size: Any = dict(sfreq=sfreq, window_seconds=seconds, n_chans=n_chans)
        corpus = runs.CorpusSize.of_numbers(n_windows, **size)
    run_plan = runs.plan(corpus, config)
    facts = {
        "parameters": run_plan.parameters,
        "windows per pass": corpus.n_windows,
        "disk space of the store": decimal(run_plan.store_bytes),
        "disk space of the run": decimal(run_plan.run_bytes),
        "steps" if config.epochs else "maximum number of steps": run_plan.n_steps,
        "steps per epoch": run_plan.steps_per_epoch,
        "devices": f"{run_plan.n_devices} ({run_plan.device}, {config.precision})",
        "windows per second and device": run_plan.windows_per_second,
        "duration (hours)": run_plan.hours,
    }
    print_frame(pd.DataFrame(facts.items()), header=False)
    show("No run was started. The estimate assumes that loading data is faster than training.")


def show_encoders() -> None:
    """Print a table of the bundled encoders."""
    short_names = {name: alias for alias, name in model_files.ALIASES.items()}
    rows = [
        {
            "name": short_names.get(name, name),
            "pretext task": card.task,
            "sampling rate": preprocessing.text_of("sfreq", card.sfreq),
            "subjects": ", ".join(card.about["people"]),
            "held-out loss": card.about["held_out"]["loss_relative"],
        }
        for name, card in saved.packaged_encoders().items()
    ]
    print_frame(pd.DataFrame(rows), n_text=4)
    show("The held-out loss is divided by the chance-level loss (below 1 is better than chance).")
    show("Encoder card: braindecode-pars encoders NAME. Probing analysis: add --audit.")


def show_card(name: str) -> None:
    """Print the encoder card (description of a pretrained encoder) without its metadata header.

    Parameters
    ----------
    name : str
        Name or folder of the encoder, or ``hf://owner/name`` on the Hugging Face Hub, as in
        :func:`~braindecode_pars.pretrained.load_encoder`.
    """
    encoder, card, _ = saved.load_encoder(name)
    described = saved.describe_encoder(encoder, card)
    text = cards.model_card(model_files.ENCODER, described, source=name).partition("---\n\n")[2]
    # Replace control characters, which could change the terminal, with spaces.
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    show(shown, end="")


# Audits ------------------------------------------------------------------------------------------

#: Length of the windows of a probing analysis, in seconds.
AUDIT_SECONDS = 10.0


def show_audit(name: str) -> None:
    """Print a probing analysis of an encoder.

    For a bundled encoder, the analysis is stored in the encoder card. For any other encoder, it is
    computed on a bundled dataset.

    Parameters
    ----------
    name : str
        Name or folder of the encoder, or ``hf://owner/name`` on the Hugging Face Hub, as in
        :func:`~braindecode_pars.pretrained.load_encoder`.
    """
    folder = model_files.model_folder(name)
    card = saved.load_encoder(folder).card
    stored = card.about.get("audit") if folder == model_files.bundled_folder(name) else None
    from braindecode_pars.evaluation import audits  # imported here: this takes seconds

    if not stored:
        # Resample the bundled dataset to the sampling rate of the encoder.
        sample = datasets.mental_arithmetic(window_seconds=AUDIT_SECONDS)
        for i, recording in enumerate(sample.datasets):
            raw = recording.raw
            raw.resample(card.sfreq or raw.info["sfreq"], verbose="error")
            windows: Any = cutting.fixed_windows(raw, AUDIT_SECONDS)
            windows.set_description(recording.description)
            sample.datasets[i] = windows
        windows = BaseConcatDataset(sample.datasets)
        audit = audits.audit_encoder({name: folder}, windows)
        title = "Bundled dataset, rest and mental arithmetic"
        text = recordings_text(title, audit, AUDIT_SECONDS)
        stored = [dict(recordings=text, table=audits.audit_table(audit))]
    for result in stored:
        show(result["recordings"])
        if "measured" in result:
            show(f"Measured: {result['measured']}")
        print_frame(pd.DataFrame(result["table"]).round(2), n_text=2)
    show(
        "R2: a ridge regression predicts the property from the features of one channel, and is "
        "tested on held-out subjects. 1 is a perfect prediction, 0 is as good as predicting the "
        "mean. If R2 is higher with features of the encoder than with tokens (input of the "
        "transformer) and with features of a random encoder, the difference is due to pretraining."
    )


def recordings_text(title: str, audit: pd.DataFrame, seconds: float) -> str:
    """Return a line that describes the data of a probing analysis, with numbers of windows.

    Parameters
    ----------
    title : str
        Name of the dataset.
    audit : DataFrame
        Probing analysis, whose ``attrs`` contain the numbers of subjects, signals and windows.
    seconds : float
        Length of a window in seconds.
    """
    numbers = "{n_subjects} subjects, {n_signals} signals from {n_windows} windows"
    return f"{title}: {numbers.format(**audit.attrs)} of {seconds:g} s"
