"""Behind ``store``, ``plan`` and ``encoders``: what is stored, what a run takes, and cards."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from rich.filesize import decimal

from braindecode_pars import datasets, runs
from braindecode_pars._common import checks, computing, model_files
from braindecode_pars.cli.terminal import print_frame, show
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.recordings import cutting
from braindecode_pars.recordings.recipe import without_left_out
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows import preprocessing

#: Recipes of corpora that have the subjects of others.
_OVERLAPPING = [name for name, recipe in datasets.RECIPES.items() if recipe.leave_out]


def find_corpora(
    folders: list[tuple[str, str]],
    exclude: list[Path],
    settings: Mapping[str, Any],
    *,
    labels: bool,
) -> list[Any]:
    """Find the recordings of recipes, and print who is stored and who is left out.

    Parameters
    ----------
    folders : list of (str, str)
        Names of recipes and folders of their corpora.
    exclude : list of Path
        Folders of TUAB and TUSZ, whose subjects are left out of TUEG, and text files with a
        subject in each line, who are left out of every corpus.
    settings : mapping
        Settings of recipes, by names such as ``physionet_mi.sfreq``.
    labels : bool
        Whether to find the labeled recordings of all splits, instead of those to pretrain on.

    Returns
    -------
    list of ContinuousCorpus
        The recordings, which are not opened yet.

    Raises
    ------
    ValueError
        When a recipe or a setting is unknown, a folder is excluded without TUEG, or a corpus has no
        labels.
    FileNotFoundError
        When a folder or a file in ``exclude`` does not exist, or a folder has no recording of its
        recipe.
    """
    names = [name for name, _ in folders]
    others = [path for path in exclude if path.is_dir()]
    for name in names:
        if name not in datasets.RECIPES:
            raise ValueError(f"Unknown recipe {name!r}; known are {', '.join(datasets.RECIPES)}.")
    for key in settings:
        if key.partition(".")[0] not in names or "." not in key:
            raise ValueError(
                f"--set {key} is of no recipe of this command; write NAME.KEY=VALUE with one of "
                f"{', '.join(names)}."
            )
    if others and not set(names) & set(_OVERLAPPING):
        raise ValueError(
            f"--exclude {others[0]} is a folder, but only {', '.join(_OVERLAPPING)} has the "
            "subjects of other corpora; pass a text file with a subject in each line."
        )
    texts = [path.read_text() for path in exclude if path not in others]
    lists = [[line.strip() for line in text.splitlines() if line.strip()] for text in texts]
    sources: list[Any] = []
    for name, folder in folders:
        recipe = datasets.RECIPES[name]
        if not Path(folder).expanduser().is_dir():
            raise FileNotFoundError(
                f"--recipe {name}={Path(folder).expanduser()}: the folder does not exist. Nothing "
                f"is downloaded; {recipe.card['name']} is at {recipe.card['address']}"
            )
        named = f"{name}."
        options = {k.removeprefix(named): v for k, v in settings.items() if k.startswith(named)}
        excluded: list[Any] = [*(others * (name in _OVERLAPPING)), *lists]
        sources.append(
            recipe.labeled(folder, **options)
            if labels
            else recipe.continuous(folder, exclude=excluded, **options)
        )
    corpora = sources if labels else without_left_out(sources)

    # Who is stored, and people in the lists who are in none of the corpora.
    for corpus in corpora:
        show(corpus.summary)
    absent = [] if labels else [x for x in sources[0].absent if all(x in c.absent for c in corpora)]
    if absent:
        n_listed = len({subject for subjects in lists for subject in subjects})
        show(
            f"{len(absent)} of {n_listed} listed in --exclude have no recording here: "
            f"{checks.format_list(absent)}. If a name is misspelt, its subject is trained on."
        )
    return corpora


def make_store(source: Path | list[Any], path: Path, **settings: Any) -> None:
    """Store the recordings below a folder, or those of recipes, and print the content.

    Parameters
    ----------
    source : Path | list of ContinuousCorpus
        Folder of recordings, or result of :func:`find_corpora`.
    path : Path
        Folder of the store.
    **settings
        Arguments of ``SignalStore.create``.
    """
    with warnings.catch_warnings():
        # The command lists skipped recordings itself, below.
        warnings.filterwarnings("ignore", r".* recordings were skipped", UserWarning)
        finished = SignalStore.create(path, source, **settings)
    table = finished.recordings
    hours = table["n_times"].sum() / finished.sfreq / 3600
    channels = sorted(table["ch_names"].map(len).unique())
    show(
        f"{finished.path}: {len(table)} recordings of {len(finished.subjects)} subjects, "
        f"{hours:.1f} hours, {'-'.join(map(str, dict.fromkeys((channels[0], channels[-1]))))} "
        f"channels at {finished.sfreq:g} Hz as {finished.dtype}, "
        f"{finished.n_bytes / 1e9:.2f} GB."
    )
    if finished.n_labeled_windows:
        labels = ", ".join(f"{i} {name}" for i, name in enumerate(finished.classes))
        show(
            f"Labeled windows: {finished.n_labeled_windows:,}{labels and f' ({labels})'}; "
            f"evaluate them with --dataset {finished.path}."
        )
    if finished.shares:
        total = sum(finished.shares.values())
        mixture = ", ".join(f"{name} {s / total:.0%}" for name, s in finished.shares.items())
        show(f"Examples of pretraining: {mixture}.")
    # Subjects, so that the user can see whether they were recognized.
    subjects = list(map(str, finished.subjects))
    show(f"Subjects: {checks.format_list(subjects, max_items=12)}.")
    if finished.skipped:
        show(f"{len(finished.skipped)} recordings were skipped:")
    for name, reason in finished.skipped.items():
        show(f"  {name}: {reason}")


# Runs and encoders -------------------------------------------------------------------------------


def show_plan(
    config: runs.RunConfig,
    store: Path | None,
    n_windows: int | None,
    sfreq: float | None,
    n_chans: int,
) -> None:
    """Plan a run and print what it takes, one fact a line.

    Parameters
    ----------
    config : RunConfig
        Configuration of the run.
    store : Path | None
        Folder of a store.
    n_windows, sfreq, n_chans
        Number of windows in a pass, sampling rate and number of channels of a corpus that is not
        here.
    """
    seconds = max(config.lengths)
    if store is not None:
        selection = SignalStore.open(store, verbose=0).select(exclude=config.exclude_subjects)
        corpus = runs.CorpusSize.of_store(selection.without_held_out(), seconds)
    else:
        size: Any = dict(sfreq=sfreq, window_seconds=seconds, n_chans=n_chans)
        corpus = runs.CorpusSize.of_numbers(n_windows, **size)
    planned = runs.plan(corpus, config)
    hours, days = planned.hours, f" ({planned.hours / 24:,.3g} days)" if planned.hours >= 48 else ""
    time = f"{hours:,.0f} h{days}" if hours >= 10 else f"{hours:.2g} h"
    time = f"{hours * 60:.2g} min" if hours < 1 else time
    length = f"at most {planned.n_steps:,}, in epochs of"
    if config.epochs is not None:
        length = f"{planned.n_steps:,}: {config.epochs:,} epochs of"
    facts = {
        "windows in a pass": f"{corpus.n_windows:,} at {corpus.sfreq:g} Hz",
        "network": f"{config.task} with {planned.parameters:,} parameters",
        "disk of the store": decimal(planned.store_bytes),
        "disk of the run": decimal(planned.run_bytes),
        "steps": f"{length} {planned.steps_per_epoch:,} steps of {config.batch_size:,} windows",
        "devices": f"{planned.n_devices} ({planned.device})",
        "speed": f"{planned.windows_per_second:,.4g} windows/s on each, measured on steps of "
        f"{planned.measured_windows} in {config.precision}",
        "time": time,
    }
    print_frame(pd.DataFrame(facts.items()), n_text=2, header=False)
    show("Nothing was started. The hours hold if data arrive as fast as they are used.")


def show_encoders() -> None:
    """Print a table with one column for each encoder in the package.

    There are few encoders and many facts, so the facts are the rows: a terminal has 80 columns.
    """
    names = model_files.bundled_names()
    if not names:
        show("This installation has no encoders of the package.")
        return
    columns = []
    for name in names:
        encoder, card, _ = saved.load_encoder(model_files.bundled_folder(name))
        about, config, held_out = card.about, encoder.config, card.about["held_out"]
        others = [alias for alias, of in model_files.ALIASES.items() if of == name]
        facts = {
            "name": name,
            "also called": ", ".join(others) or "-",
            "task": card.task,
            **{fact: config[fact] for fact in ("num_layers", "embed_dim")},
            "parameters": f"{computing.n_parameters(encoder):,}",
            "sampling rate": preprocessing.text_of("sfreq", card.sfreq),
            **{fact: config[fact] for fact in ("patch_size", "tokenizer")},
            "band": preprocessing.text_of("band", about["band"]),
            "reference": about["reference"],
            **{fact: ", ".join(about[fact]) for fact in ("corpora", "people")},
            "held-out loss": f"{held_out['loss_relative']:.3f} of chance on {held_out['people']}",
            **{fact: about[fact] for fact in ("license", "date")},
        }
        columns.append(facts)
    table = pd.DataFrame(columns).astype(str).set_index("name").T.reset_index(names="name")
    print_frame(table, n_text=table.shape[1])
    show(f'Use one: PARSClassifier(encoder="{names[0]}")')
    show(f"The whole card: braindecode-pars encoders {names[0]}")
    show(f"What its features hold: braindecode-pars encoders {names[0]} --audit")


def show_card(name: str) -> None:
    """Print the model card of an encoder, without its header.

    Parameters
    ----------
    name : str
        Source of the encoder, as in :func:`~braindecode_pars.pretrained.load_encoder`.
    """
    encoder, card, _ = saved.load_encoder(name)
    described = saved.describe_encoder(encoder, card)
    text = cards.model_card(model_files.ENCODER, described, source=name).partition("---\n\n")[2]
    # Without control characters, which could change the terminal.
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    show(shown, end="")


# Audits ------------------------------------------------------------------------------------------

#: Length of the windows in seconds.
AUDIT_SECONDS = 10.0


def show_audit(name: str) -> None:
    """Print what the features of an encoder hold: as stored on its card, or in the sample.

    Parameters
    ----------
    name : str
        Source of the encoder, as in :func:`~braindecode_pars.pretrained.load_encoder`.
    """
    folder = model_files.model_folder(name)
    card = saved.load_encoder(folder).card
    stored = card.about.get("audit") if folder == model_files.bundled_folder(name) else None
    from braindecode_pars.evaluation import audits  # takes seconds

    if not stored:
        # At the sampling rate of the encoder
        sample = datasets.mental_arithmetic(window_seconds=AUDIT_SECONDS)
        for i, recording in enumerate(sample.datasets):
            raw = recording.raw
            raw.resample(card.sfreq or raw.info["sfreq"], verbose="error")
            windows: Any = cutting.fixed_windows(raw, AUDIT_SECONDS)
            windows.set_description(recording.description)
            sample.datasets[i] = windows
        windows = BaseConcatDataset(sample.datasets)
        audit = audits.audit_encoder({name: folder}, windows)
        title = "The sample in the package, rest and mental arithmetic"
        text = recordings_text(title, audit, AUDIT_SECONDS)
        stored = [dict(recordings=text, table=audits.audit_table(audit))]
    for result in stored:
        show(result["recordings"])
        if "measured" in result:
            show(f"Measured: {result['measured']}")
        for measure, rows in pd.DataFrame(result["table"]).groupby("measure", sort=False):
            # Only the chance level of accuracies differs.
            columns = [*audits.FEATURES, *(["chance"] if measure == audits.ACCURACY else [])]
            shown = rows[columns].map("{:.2f}".format)
            shown.insert(0, measure, rows["property"])
            print_frame(shown)
    show(
        "R2 of a ridge regression on the features of one channel, on other people: 1 is read "
        "without an error, 0 not at all. Above tokens and random encoder, it was learned."
    )


def recordings_text(title: str, audit: pd.DataFrame, seconds: float) -> str:
    """Return a line that says on which recordings an audit was measured."""
    numbers = "{n_subjects} people, {n_signals} signals of {n_windows} windows"
    return f"{title}: {numbers.format(**audit.attrs)} of {seconds:g} s"
