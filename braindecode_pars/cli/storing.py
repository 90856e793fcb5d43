"""Behind ``store``: the corpora that it finds, and the store that it makes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from braindecode_pars._common import checks
from braindecode_pars.cli.terminal import show
from braindecode_pars.datasets import RECIPES
from braindecode_pars.recordings.recipe import ContinuousCorpus, LabelledCorpus, without_left_out
from braindecode_pars.signal_store import SignalStore

#: Recipes of corpora that have the subjects of others.
_OVERLAPPING = [name for name, recipe in RECIPES.items() if recipe.leave_out]


def find_corpora(
    folders: Iterable[tuple[str, str]],
    exclude: list[Path],
    settings: Mapping[str, Any],
    *,
    labels: bool,
) -> list[ContinuousCorpus] | list[LabelledCorpus]:
    """Find the recordings of recipes, and print who is stored and who is left out.

    Parameters
    ----------
    folders : iterable of (str, str)
        Names of recipes and folders of their corpora.
    exclude : list of Path
        Folders of TUAB and TUSZ, whose subjects are left out of TUEG, and text files with a
        subject in each line, who are left out of every corpus.
    settings : mapping
        Settings of recipes, by names such as ``physionet_mi.sfreq``.
    labels : bool
        Whether to find the labelled recordings of all splits, instead of those to pretrain on.

    Returns
    -------
    list of ContinuousCorpus | list of LabelledCorpus
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
    folders = list(folders)
    names = [name for name, _ in folders]
    others = [path for path in exclude if path.is_dir()]
    _check_recipes(names, others, settings)
    texts = [path.read_text() for path in exclude if path not in others]
    lists = [[line.strip() for line in text.splitlines() if line.strip()] for text in texts]
    found: list[Any] = []
    for name, folder in folders:
        recipe = RECIPES[name]
        if not Path(folder).expanduser().is_dir():
            raise FileNotFoundError(
                f"--recipe {name}={Path(folder).expanduser()}: the folder does not exist. Nothing "
                f"is downloaded; {recipe.card['name']} is at {recipe.card['address']}"
            )
        parts = [(key.partition("."), value) for key, value in settings.items()]
        own = {key: value for (owner, _, key), value in parts if owner == name}
        excluded: list[Any] = [*(others * (name in _OVERLAPPING)), *lists]
        found.append(
            recipe.labelled(folder, **own)
            if labels
            else recipe.continuous(folder, exclude=excluded, **own)
        )
    corpora = found if labels else without_left_out(found)

    # Who is stored, and people in the lists who are in none of the corpora.
    for corpus in corpora:
        show(corpus.summary)
    absent = [] if labels else [x for x in found[0].absent if all(x in c.absent for c in corpora)]
    if absent:
        n_listed = len({subject for one in lists for subject in one})
        show(
            f"{len(absent)} of {n_listed} listed in --exclude have no recording here: "
            f"{checks.listed(absent)}. If a name is misspelt, its subject is trained on."
        )
    return corpora


def _check_recipes(names: list[str], folders: list[Path], settings: Mapping[str, Any]) -> None:
    for name in names:
        if name not in RECIPES:
            raise ValueError(f"Unknown recipe {name!r}; known are {', '.join(RECIPES)}.")
    for key in settings:
        if key.partition(".")[0] not in names or "." not in key:
            raise ValueError(
                f"--set {key} is of no recipe of this command; write NAME.KEY=VALUE with one of "
                f"{', '.join(names)}."
            )
    if folders and not set(names) & set(_OVERLAPPING):
        raise ValueError(
            f"--exclude {folders[0]} is a folder, but only {', '.join(_OVERLAPPING)} has the "
            "subjects of other corpora; pass a text file with a subject in each line."
        )


def make_store(
    source: Path | list[ContinuousCorpus] | list[LabelledCorpus], path: Path, **settings: Any
) -> None:
    """Store the recordings below a folder, or those of recipes, and print the content.

    Parameters
    ----------
    source : Path | list of ContinuousCorpus | list of LabelledCorpus
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
    if finished.n_labelled_windows:
        labels = ", ".join(f"{i} {name}" for i, name in enumerate(finished.classes))
        show(
            f"Labelled windows: {finished.n_labelled_windows:,}{labels and f' ({labels})'}; "
            f"evaluate them with --dataset {finished.path}."
        )
    if finished.shares:
        total = sum(finished.shares.values())
        mixture = ", ".join(f"{name} {s / total:.0%}" for name, s in finished.shares.items())
        show(f"Examples of pretraining: {mixture}.")
    # Subjects, so that the user can see whether they were recognised.
    subjects = list(map(str, finished.subjects))
    show(f"Subjects: {checks.listed(subjects, most=12)}.")
    if finished.skipped:
        show(f"{len(finished.skipped)} recordings were skipped:")
    for name, reason in finished.skipped.items():
        show(f"  {name}: {reason}")
