"""Export of embeddings to a folder that NeuroAtlas reads: arrays and JSON files, no pickle."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._common import files
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.estimators import PARSEmbedder
from braindecode_pars.evaluation import cache, leaks
from braindecode_pars.windows import Windows, convert, preprocessing
from braindecode_pars.windows.labels import classes_and_codes, labels_of


def export_embeddings(encoder: Any, windows: Any, folder: str | Path) -> Path:
    """Export embeddings of windows, with labels and subjects, for other benchmarks.

    The folder has the format of the embedding cache of NeuroAtlas (package ``neuroatlas-bench``),
    so that NeuroAtlas can train its probes on the embeddings of any encoder or transformer.

    Parameters
    ----------
    encoder : str | path | PARSEmbedder | transformer
        Name of a bundled encoder, such as ``"small"``, or folder of a saved encoder, which are
        passed to :class:`~braindecode_pars.PARSEmbedder`; or any fitted transformer of windows.
    windows : windows
        Windows of any type that ``fit`` accepts, with the subject of every window.
    folder : path
        New or empty folder. NeuroAtlas searches for folders ``ROOT/DATASET/ENCODER/all/NAME``; you
        can choose the names in capitals.

    Returns
    -------
    Path
        The folder, which is written completely or not at all. It contains:

        - ``features.npy``: output of the transformer, shape (n_windows, n_features), in the order
          of the windows;
        - ``labels.npy``: labels, shape (n_windows,). A class that is not a number is encoded as its
          index among the sorted classes. Unlabeled windows have -1;
        - ``items.json``: for each window ``subject_id`` (with the corpus, if it is known),
          ``recording_id``, ``session_id``, ``epoch_index`` (number of the window in its recording,
          by start, or in the order of the windows if starts are unknown), ``window_start_s`` (in
          seconds) and ``label``; null if unknown;
        - ``metadata.json``: name of the encoder (``checkpoint_id``), channels, sampling rate in Hz,
          preprocessing (``filter_provenance``), names of the classes, and versions of packages.

    Raises
    ------
    TypeError
        If ``encoder`` has no method ``transform``.
    ValueError
        If the folder is not empty or the current directory, the subject of a window is unknown, a
        label is missing, or the transformer does not return one row of finite numbers per window.
        Errors of the transformer are also raised.
    FileNotFoundError
        If the encoder does not exist.
    OSError
        If the folder cannot be written.

    Warns
    -----
    UserWarning
        If the encoder was pretrained on one of the subjects, or if its training subjects are
        unknown.

    Examples
    --------
    >>> import tempfile
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation.benchmarks.embeddings import export_embeddings
    >>> windows = datasets.mental_arithmetic(["Subject12", "Subject13"])
    >>> with tempfile.TemporaryDirectory() as root:
    ...     folder = export_embeddings("small", windows, f"{root}/eegmat/small/all/1")
    ...     sorted(file.name for file in folder.iterdir())
    ['features.npy', 'items.json', 'labels.npy', 'metadata.json']
    """
    folder = Path(folder).expanduser()
    ResultsFolder(folder, "exported embeddings").check()
    if folder.resolve() == Path.cwd():
        raise ValueError(
            f"{folder} is the current directory, which cannot be replaced. Pass a new folder."
        )
    windows = convert.as_windows(windows)
    name, transformer = type(encoder).__name__, encoder
    if isinstance(encoder, str | Path):
        name, embedder = Path(encoder).name, PARSEmbedder(encoder=encoder, verbose=0)
        transformer = embedder.fit(windows)  # trains nothing
    if not callable(getattr(transformer, "transform", None)):
        raise TypeError(
            f"encoder must be a name, a folder or a fitted transformer of windows, got {name}. "
            "Pass, for example, a fitted PARSEmbedder."
        )
    if (subjects := windows.corpus_subjects) is None:
        n_unknown = int((~windows.has_subject).sum())
        raise ValueError(
            f"The subjects of {n_unknown} of {len(windows)} windows are unknown, but the folds of "
            "a benchmark hold out subjects. Pass a windows dataset with 'subject' in the "
            "descriptions of its recordings."
        )
    names = zip(windows.column("subject").tolist(), subjects.tolist(), strict=True)
    leaks.warn_of_leaks([name], [leaks.find_leaked_subjects(transformer, dict(names))])
    features = np.asarray(transformer.transform(windows))
    is_numeric = features.dtype.kind in "biuf" and bool(np.isfinite(features).all())
    if not is_numeric or features.ndim != 2 or len(features) != len(windows):
        raise ValueError(
            f"transform of {name} returned {features.dtype} of shape {features.shape}, expected "
            f"finite numbers of shape ({len(windows)}, n_features)."
        )
    labels, label_names = _coded_labels(windows)
    items = _described_windows(windows, subjects, labels)
    metadata = {
        "checkpoint_id": name,
        "split": "all",
        "embedding_key": f"{type(transformer).__name__}.transform",
        "channels": [ch["ch_name"] for ch in windows.chs_info or ()],
        "sampling_rate": windows.sfreq,
        "filter_provenance": str(
            preprocessing.agreed(preprocessing.counted(windows.column("preprocessing")))
        ),
        "label_names": label_names,
        "versions": cache.versions(),
    }
    # A benchmark never reads a part of the files, because the folder is moved as a whole.
    with files.written_aside(folder.parent) as aside:
        new = aside / folder.name
        new.mkdir()
        np.save(new / "features.npy", features, allow_pickle=False)
        np.save(new / "labels.npy", labels, allow_pickle=False)
        (new / "items.json").write_text(files.to_json(items), encoding="utf-8")
        (new / "metadata.json").write_text(files.to_json(metadata), encoding="utf-8")
    return folder


def _coded_labels(windows: Windows) -> tuple[np.ndarray, dict[str, Any]]:
    """Return labels as numbers, and the label of each class name."""
    if windows.y is None:
        return np.full(len(windows), -1), {}
    if windows.y.ndim == 1 and windows.y.dtype.kind in "biuf":
        return windows.y, dict(windows.label_names or {})
    classes, codes = classes_and_codes(labels_of(windows))
    return codes, {str(label): code for code, label in enumerate(classes.tolist())}


def _described_windows(
    windows: Windows, subjects: np.ndarray, labels: np.ndarray
) -> list[dict[str, Any]]:
    """Return the description of each window, as values that JSON supports."""
    recording, start = windows.table["recording"], windows.table["start"].to_numpy()
    ranks = windows.table.groupby("recording")["start"].rank(method="first")
    items = pd.DataFrame(
        {
            "subject_id": [str(subject) for subject in subjects],
            "recording_id": recording.astype(str).to_numpy(),
            "session_id": windows.column("session"),
            # Unknown starts are equal, so their ranks are the order of the windows.
            "epoch_index": ranks.to_numpy(int) - 1,
            "window_start_s": np.where(start < 0, np.nan, start / windows.column("sfreq")),
            "label": labels,
        }
    ).astype(object)
    return items.where(items.notna(), None).to_dict("records")  # JSON has no NaN
