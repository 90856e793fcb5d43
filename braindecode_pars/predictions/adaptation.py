"""Adapt a classifier to a new recording before predicting this recording."""

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

    If the recording has annotations with at least two of the classes of the classifier, the
    classifier is calibrated with the annotated windows. Otherwise, only the mean of the features is
    adapted to the recording, as ``FewLabelsClassifier.adapt`` does without labels.

    Parameters
    ----------
    clf : fitted classifier
        Classifier that has a method ``adapt``.
    file : Path
        File of the recording.
    rescale : bool
        Whether to rescale the signals to the amplitude of the training data, as in ``predict_raw``.

    Returns
    -------
    adapted : fitted classifier
        Copy of the classifier for this recording.
    basis : str
        Phrase that describes the windows to which the classifier was adapted, such as "its
        unlabeled windows". For labeled windows, it contains the number of windows per class.
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
    # As in fit, an annotation without a duration labels the window that starts at its onset.
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
