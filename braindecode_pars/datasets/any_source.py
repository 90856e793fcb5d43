"""Load windows from a folder, a signal store, a corpus, a sample dataset or a Python file."""

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
from braindecode_pars.recordings.braindecode_zarr import is_zarr, read_zarr
from braindecode_pars.recordings.recipe import Recipe
from braindecode_pars.windows import amplitudes
from braindecode_pars.windows.convert import as_windows

#: Recipes (:class:`~braindecode_pars.recordings.Recipe`) of all corpora that are read from files,
#: by name.
RECIPES: dict[str, Recipe] = {name: entry.load() for name, entry in names.RECIPES.items()}

#: Functions that load the bundled sample datasets and the simulated dataset, by name.
_WITHOUT_FOLDER: dict[str, Callable[..., BaseConcatDataset]] = {
    "sleep": sleep,
    "mental_arithmetic": mental_arithmetic,
    "simulated": partial(simulated.sleep, n_subjects=6, hours=1, random_state=0),
}


def load(source: str | Path, path: str | Path | None = None, **settings: Any) -> BaseConcatDataset:
    """Load labeled windows from a folder, a signal store, a corpus or a bundled sample dataset.

    The commands of the command-line interface load datasets with this function, too.

    Parameters
    ----------
    source : str | path
        Source of the windows, one of:

        - folder of recordings or BIDS dataset, see
          :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`;
        - signal store with labels (folder of preprocessed signals), see
          :class:`~braindecode_pars.signal_store.SignalStore`;
        - folder ``dataset.zarr`` of a windows dataset that braindecode saved in Zarr format;
        - name of a corpus in :data:`RECIPES`, with the folder of the corpus as ``path``;
        - ``"sleep"`` or ``"mental_arithmetic"`` for a bundled sample dataset, or ``"simulated"``
          for simulated sleep EEG;
        - Python file with a function ``load`` that returns labeled windows;
        - any other name, if ``path`` is a folder of recordings or a signal store. The name does not
          matter here; ``braindecode-pars evaluate`` uses it as the name of the dataset in results.
    path : str | path | None
        Folder of a corpus, folder of recordings or signal store. None if ``source`` is itself a
        folder or store, or a bundled or simulated dataset. For a Python file, ``path`` is optional:
        it is passed to the function ``load`` of the file as the first argument.
    **settings
        Further arguments of the function that loads the source, such as ``window_seconds``, or
        ``classes`` of :func:`sleep`. For a store, ``subjects`` is the list of subjects to load.

    Returns
    -------
    BaseConcatDataset
        Windows with targets. The description of each recording contains ``subject``.

    Raises
    ------
    TypeError
        If a setting is not an argument of the function that loads the source.
    ValueError
        If the source is unknown, if a corpus is loaded without ``path``, or if a store has no
        labels.

    Warns
    -----
    UserWarning
        If the amplitude of a recording differs from the amplitude of the other recordings by a
        factor of more than 20. If the amplitude of a channel differs from the amplitude of the
        other channels of its recording by a factor of more than 30.

    Examples
    --------
    The sample dataset contains two minutes of each of 24 subjects, which are 96 windows of 30 s:

    >>> from braindecode_pars import datasets
    >>> len(datasets.load("mental_arithmetic", window_seconds=30))
    96
    >>> windows = datasets.load("my-bids", window_seconds=4)  # doctest: +SKIP
    >>> windows = datasets.load("tuab", "tuh_eeg_abnormal/v3.0.1")  # doctest: +SKIP
    """
    source, place = str(source), Path(source if path is None else path)
    read: Callable[..., BaseConcatDataset]
    if source in _WITHOUT_FOLDER and path is not None:
        raise ValueError(
            f"The dataset {source!r} is not read from a folder, but path={path} was passed. Omit "
            "path (--data)."
        )
    if source in _WITHOUT_FOLDER:
        read = _WITHOUT_FOLDER[source]
    elif names.lazy("datasets.is_store")(place):
        read = partial(load_store, place)
    elif source in RECIPES and path is not None:
        read = partial(RECIPES[source].load, path)
    elif is_zarr(place):
        read = partial(read_zarr, place)
    elif place.is_dir() and source not in RECIPES and (path is None or source[-3:] != ".py"):
        read = partial(folder.load, place)
    elif source.endswith(".py"):
        function = getattr(import_file(Path(source)), "load", None)
        if function is None:
            raise ValueError(
                f"{source} does not define a function named load. Define one that returns labeled "
                "windows."
            )
        read = function if path is None else partial(function, Path(path))
    else:
        raise ValueError(
            f"Cannot load the dataset {source!r} with path={path}. Pass one of: the path of a "
            'folder of recordings, of a signal store (created by "braindecode-pars store") with '
            "labels, or of a Python file that defines a function named load; the name of a dataset "
            f"({', '.join(_WITHOUT_FOLDER)}); or the name of a corpus "
            f"({', '.join(sorted(RECIPES))}) with its folder as path (--data)."
        )
    windows = read(**settings)
    if not isinstance(read, partial) or read.func not in (folder.load, load_store):
        # folder.load issues this warning itself. For a store, fit issues it.
        amplitudes.warn_of_amplitude_outliers(as_windows(windows))
    return windows


def load_store(path: Path, subjects: Iterable | None = None) -> BaseConcatDataset:
    """Load the labeled windows of a signal store, of all subjects or of selected subjects.

    Parameters
    ----------
    path : Path
        Folder of the store.
    subjects : iterable | None
        Subjects to load. If None, load all subjects.
    """
    return names.lazy("datasets.SignalStore").open(path).select(subjects).labeled_windows()


def recipe_of(source: str) -> str:
    """Return the name of the corpus in a store with a single public corpus.

    All other sources are returned unchanged.
    """
    if not names.lazy("datasets.is_store")(source):
        return source
    store = names.lazy("datasets.SignalStore").open(source, verbose=0)
    corpora = set(store.recordings["corpus"])
    return corpora.pop() if len(corpora) == 1 and corpora <= RECIPES.keys() else source


def title(source: str) -> str:
    """Return the name of a source for tables and figures."""
    if (recipe := recipe_of(source)) in RECIPES:
        return RECIPES[recipe].card["name"]
    return Path(source).resolve().stem if Path(source).exists() else source
