"""Adapt a classifier to a recording before the recording is predicted."""

from pathlib import Path
from typing import Any

import numpy as np

from braindecode_pars._common import checks
from braindecode_pars.predictions.recording import (
    class_texts,
    prepare_recording,
    rescale_signals,
    usable_starts,
    windows_from,
)
from braindecode_pars.recordings import label_files, readers


def adapted_to(clf: Any, file: Path, *, rescale: bool) -> tuple[Any, str]:
    """Return a classifier adapted to one recording, and a description of the windows used.

    If the recording has annotations of at least two classes, the classifier is calibrated with
    these labels. Otherwise, only the mean of the features is adapted, as in
    ``FewLabelsClassifier.adapt`` without labels.

    Parameters
    ----------
    clf : fitted classifier
        Classifier with a method ``adapt``.
    file : Path
        The recording.
    rescale : bool
        As in ``predict_raw``.

    Returns
    -------
    adapted : fitted classifier
        Copy of the classifier for this recording.
    basis : str
        Description of the windows that were used, with the number of labeled windows per class.
    """
    raw, name = readers.open_recording(file)
    recording, length = prepare_recording(raw, name, clf), clf.n_times_
    if rescale:
        rescale_signals(recording, clf)
    code_of = {text: i for i, text in enumerate(class_texts(clf))}
    annotations = label_files.annotations_of(file, raw)
    texts = annotations.description.tolist()
    start = np.rint(annotations.onset * recording.sfreq).astype(int)
    stop = np.rint((annotations.onset + annotations.duration) * recording.sfreq).astype(int)
    # A label without a duration applies to the window that starts at its onset, as in fit.
    is_mark = (annotations.duration == 0) & np.isin(texts, [*code_of]) & (start >= 0)
    stop = np.where(is_mark, start + length, stop)
    marks = start[is_mark & (stop <= recording.signals.shape[1])]
    starts = usable_starts(recording, length)
    starts = np.union1d(starts, marks[recording.may_use(marks, length)])
    codes = np.full(len(starts), -1)
    for text, first, last in zip(texts, start, stop, strict=True):
        codes[(starts >= first) & (starts + length <= last)] = code_of.get(text, -1)
    counts = {text: int(np.sum(codes == i)) for text, i in code_of.items()}
    labels, basis = None, "its unlabeled windows"
    if np.count_nonzero([*counts.values()]) > 1:  # calibration requires at least two classes
        labels = np.array([*clf.classes_.tolist(), -1], object)[codes]
        counts_text = checks.format_list([f"{n} {text}" for text, n in counts.items()])
        basis = f"its labeled windows ({counts_text}), which are also predicted"
    windows = windows_from(recording, starts, length)
    return clf.adapt(windows, labels), basis
