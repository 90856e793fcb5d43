"""Windows of any source by its name or place: a folder, a store, a corpus, a sample, a file."""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from braindecode.datasets import BaseConcatDataset

from braindecode_pars._common import names
from braindecode_pars._common.files import import_file
from braindecode_pars.datasets import folder, simulated
from braindecode_pars.datasets.eegmat import mental_arithmetic
from braindecode_pars.datasets.ucddb import sleep
from braindecode_pars.recordings.recipe import Recipe
from braindecode_pars.windows import amplitudes
from braindecode_pars.windows.convert import as_windows

#: The corpora that are read from files, by name: a :class:`~braindecode_pars.recordings.Recipe`
#: each.
RECIPES: dict[str, Recipe] = {name: entry.load() for name, entry in names.RECIPES.items()}

#: Recordings in the package, and nights that are simulated.
_WITHOUT_FOLDER: dict[str, Callable[..., BaseConcatDataset]] = {
    "sleep": sleep,
    "mental_arithmetic": mental_arithmetic,
    "simulated": partial(simulated.sleep, n_subjects=6, hours=1, random_state=0),
}


def load(source: str | Path, path: str | Path | None = None, **settings: Any) -> BaseConcatDataset:
    """Return labeled windows of a folder, a store, a corpus, or the recordings in the package.

    The commands read their data with this function.

    Parameters
    ----------
    source : str | path
        One of these:

        - a folder of own recordings, also a BIDS data set:
          :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`;
        - a store with labels: :class:`~braindecode_pars.signal_store.SignalStore`;
        - the name of a corpus in :data:`RECIPES`;
        - ``"sleep"`` or ``"mental_arithmetic"``, the samples in the package, or ``"simulated"``;
        - a Python file with a function ``load``;
        - any other name, for the recordings or the store in ``path``.
    path : str | path | None
        Folder of the corpus, or of a store of it; the first argument of ``load`` in a file.
    **settings
        Further arguments of the function that reads the source, such as ``window_seconds``, or
        ``classes`` of :func:`sleep`. A store has ``subjects``.

    Returns
    -------
    BaseConcatDataset
        Windows with their targets; descriptions have ``subject``.

    Raises
    ------
    TypeError
        When the source has no such setting.
    ValueError
        When the source is unknown, the folder of a corpus is missing, or a store has no labels.

    Warns
    -----
    UserWarning
        When the amplitude of recordings is 20 times larger or smaller than that of the others, or
        that of channels of a recording 30 times.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> len(datasets.load("mental_arithmetic", window_seconds=30))
    96
    >>> windows = datasets.load("my-bids", window_seconds=4)  # doctest: +SKIP
    >>> windows = datasets.load("tuab", "tuh_eeg_abnormal/v3.0.1")  # doctest: +SKIP
    """
    data_path = None if path is None else Path(path)
    source, folder_or_store = str(source), Path(source) if data_path is None else data_path
    read: Callable[..., BaseConcatDataset]
    if source in _WITHOUT_FOLDER:
        if data_path is not None:
            raise ValueError(f"{source} reads no folder; omit {data_path}.")
        read = _WITHOUT_FOLDER[source]
    elif names.lazy("datasets.is_store")(folder_or_store):
        read = partial(_labeled_windows, folder_or_store)
    elif source in RECIPES:
        if data_path is None:
            raise ValueError(
                f"{source} needs path= (--data), the folder of its files; there is no download."
            )
        read = partial(RECIPES[source].load, data_path)
    elif folder_or_store.is_dir() and (data_path is None or Path(source).suffix != ".py"):
        read = partial(folder.load, folder_or_store)
    elif Path(source).suffix == ".py":
        module = import_file(Path(source))
        if not callable(getattr(module, "load", None)):
            raise ValueError(f"{source} has no function load, which returns labeled windows.")
        read = module.load if data_path is None else partial(module.load, data_path)
    else:
        known = ", ".join([*_WITHOUT_FOLDER, *sorted(RECIPES)])
        raise ValueError(
            f"There is no folder and no corpus {source!r}; known are {known}, a folder of own "
            "recordings, a store with labels, and a Python file with a function load."
        )
    _check_arguments(read, source, settings)
    windows = read(**settings)
    if not isinstance(read, partial) or read.func not in (folder.load, _labeled_windows):
        amplitudes.warn_of_amplitude_outliers(
            as_windows(windows)
        )  # as a folder does, and fit on a store
    return windows


def _check_arguments(read: Callable, source: str, settings: Iterable[str]) -> None:
    """Check the names of settings: Python's own TypeError does not list the known ones."""
    parameters = inspect.signature(read).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())  # a recipe checks
    unknown = [name for name in settings if name not in parameters and not takes_any]
    if unknown:
        raise TypeError(f"{source} has no argument {unknown[0]!r}; it has {', '.join(parameters)}.")


def _labeled_windows(path: Path, subjects: Iterable | None = None) -> BaseConcatDataset:
    return names.lazy("datasets.SignalStore").open(path).select(subjects).labeled_windows()


def recipe_of(source: str) -> str:
    """Return the recipe of a store that was made of one corpus; another source as it is."""
    if not names.lazy("datasets.is_store")(source):
        return source
    store = names.lazy("datasets.SignalStore").open(source, verbose=0)
    corpora = set(store.recordings["corpus"])
    return corpora.pop() if len(corpora) == 1 and corpora <= RECIPES.keys() else source


def title(source: str) -> str:
    """Return the name of a source in tables and figures."""
    if (recipe := recipe_of(source)) in RECIPES:
        return RECIPES[recipe].card["name"]
    return Path(source).resolve().stem if Path(source).exists() else source
