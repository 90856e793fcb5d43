"""Export embeddings to a folder that the benchmark NeuroAtlas reads, as arrays and JSON files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_array, check_consistent_length

from braindecode_pars._common import files
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.estimators import PARSEmbedder, transformers
from braindecode_pars.evaluation import leaks
from braindecode_pars.windows import convert, preprocessing
from braindecode_pars.windows.labels import classes_and_codes, labels_of


def export_embeddings(encoder: Any, windows: Any, folder: str | Path) -> Path:
    """Export embeddings of windows, with labels and subjects, for the benchmark NeuroAtlas.

    The folder has the format of the embedding cache of NeuroAtlas (package ``neuroatlas-bench``),
    so that NeuroAtlas can train its probes on the embeddings of any encoder or transformer.

    Parameters
    ----------
    encoder : str | path | PARSEmbedder | transformer
        Name of a bundled encoder, such as ``"small"``, or folder of a saved encoder; a
        :class:`~braindecode_pars.PARSEmbedder` then computes the embeddings. Alternatively, a
        fitted PARSEmbedder, or any other fitted transformer of windows.
    windows : windows
        Windows of any type that the estimators accept in ``fit``, with the subject of every window.
    folder : path
        New or empty folder. NeuroAtlas searches for folders with the path
        ``ROOT/DATASET/ENCODER/all/NAME``, where you choose the four names in capitals.

    Returns
    -------
    Path
        The folder. If an error occurs, nothing is written. The folder contains:

        - ``features.npy``: output of the transformer, shape (n_windows, n_features), in the order
          of the windows;
        - ``labels.npy``: labels, shape (n_windows,). If labels are not numbers, a label is encoded
          as its index among the sorted classes. Unlabeled windows have the label -1;
        - ``items.json``: one entry per window, with null for unknown values: ``subject_id`` (with
          the corpus, if it is known), ``recording_id``, ``session_id``, ``epoch_index``,
          ``window_start_s`` (in seconds) and ``label``. ``epoch_index`` is the index of the window
          in its recording, in the order of start times or, if start times are unknown, in the order
          of the windows;
        - ``metadata.json``: name of the encoder (``checkpoint_id``), preprocessing of the windows
          (``filter_provenance``), and names of the classes (``label_names``).

    Raises
    ------
    ValueError
        If the folder is not empty, the subject of a window is unknown, a label is None or NaN, or
        the transformer does not return a row of finite numbers per window. Errors of the
        transformer are also raised.
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
    windows = convert.as_windows(windows)
    name, transformer = type(encoder).__name__, encoder
    if isinstance(encoder, str | Path):
        name = Path(encoder).name
        transformer = PARSEmbedder(encoder=encoder, verbose=0).fit(windows)  # trains nothing
    transformers.subject_numbers(windows, 1, "export_embeddings")  # checks subjects
    names = dict(zip(windows.groups, windows.corpus_subjects, strict=True))
    leaks.warn_of_leaks([(name, leaks.find_leaked_subjects(transformer, names))])
    features = check_array(transformer.transform(windows))
    labels, label_names = np.full(len(windows), -1), dict(windows.label_names or {})
    if windows.y is not None:
        labels = labels_of(windows)
    if labels.dtype.kind not in "biuf":
        classes, labels = classes_and_codes(labels)
        label_names = {str(label): code for code, label in enumerate(classes)}
    check_consistent_length(features, labels)
    start = windows.table["start"].to_numpy()
    rows = windows.table.groupby("recording")["start"]
    items = pd.DataFrame(
        {
            "subject_id": windows.corpus_subjects.astype(str),
            "recording_id": windows.table["recording"].to_numpy().astype(str),
            "session_id": windows.column("session"),
            # All unknown starts are equal, so the ranks follow the order of the windows.
            "epoch_index": rows.rank(method="first").to_numpy(int) - 1,
            "window_start_s": np.where(start < 0, np.nan, start / windows.column("sfreq")),
            "label": labels,
        }
    )
    metadata = {
        "checkpoint_id": name,
        "embedding_key": f"{type(transformer).__name__}.transform",
        "filter_provenance": str(preprocessing.agreed({*windows.column("preprocessing")})),
        "label_names": label_names,
    }
    with files.written_aside(folder) as new:
        np.save(new / "features.npy", features)
        np.save(new / "labels.npy", labels)
        items.to_json(new / "items.json", orient="records", double_precision=15)
        (new / "metadata.json").write_text(files.to_json(metadata), encoding="utf-8")
    return folder
