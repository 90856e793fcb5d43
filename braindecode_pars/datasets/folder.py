"""A folder of own labeled recordings, also a BIDS data set, as windows.

The label of a window comes from the annotation that the window lies in, in the file (EDF+, FIF,
BrainVision, EEGLAB) or in the table ``_events.tsv`` that BIDS puts beside it; or from a row in a
table of all files or of all subjects; or from the path of the file.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import mne
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._common import channel_names, checks
from braindecode_pars._common.subjects import (
    normalized,
    public_corpora,
    public_subject,
    subject_key,
)
from braindecode_pars.recordings import (
    as_trained,
    cutting,
    first_look,
    folders,
    label_files,
    loading,
    preparation,
    readers,
    search,
)
from braindecode_pars.windows import (
    amplitudes,
    convert,
    duplicates,
    marks,
    preprocessing,
    recorded_steps,
)
from braindecode_pars.windows.picking import check_channels

__all__ = ["load", "recordings"]

#: Columns of participants.tsv that say where a subject was recorded.
_SITES = ("site", "center", "center", "scanner", "hospital", "lab", "device")


def recordings(path: str | Path, *, subject: search.Subject = None) -> list[loading.Recording]:
    """Return the recordings in a folder, without opening the files.

    Parameters
    ----------
    path : path
        Folder of recordings (.edf, .bdf, .fif, .hea, .vhdr or .set), at any depth. The folders
        ``derivatives`` and ``sourcedata`` of a BIDS data set are left out.
    subject : callable | str | None
        Function that returns the subject of a file from its path relative to the folder; or a
        regular expression that is searched for in this path, whose only group is the subject. None
        takes the BIDS label, else the first folder, else the name of the file.

    Returns
    -------
    list of Recording
        The description has ``subject``.

    Raises
    ------
    FileNotFoundError
        When the folder does not exist or contains no recording.
    ValueError
        When it is unclear which subject a recording is of: also when files or folders have names
        that obviously number the recordings of one person, such as ``Subject00_1`` and
        ``Subject00_2``, or when one or two first folders, such as ``train`` and ``test``, would be
        the subjects of ten or more recordings; or when two data sets of BIDS have one name, such as
        ``sub-01``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "sub-01", "eeg", "sub-01_task-rest_eeg.edf")
    ...     file.parent.mkdir(parents=True)
    ...     file.touch()
    ...     [recording] = datasets.folder.recordings(folder)
    >>> recording.subject
    '01'
    """
    root = Path(path).expanduser()
    files = folders.recordings_below(root)
    named = _with_subjects(root, [loading.Recording(file, {}) for file in files], subject)
    if subject is None:
        search.check_guessed_subjects(root, [r.file.relative_to(root) for r in named])
    return named


def _with_subjects(
    root: Path, all_recordings: Iterable[loading.Recording], subject: search.Subject
) -> list[loading.Recording]:
    """Return recordings with the subject in one Unicode form: by their labels, or their paths."""
    subject_of, named = _subject_of(root, subject), []
    for recording in all_recordings:
        name = recording.description.get("subject")
        name = subject_of(recording.file) if name is None else normalized(name)
        named.append(replace(recording, description={"subject": name}))
    return named


def _subject_of(root: Path, subject: search.Subject) -> Callable[[Path], Any]:
    """Return a function that finds the subject of a file, with the file in its error message."""
    find = search.subject_finder(subject)

    def subject_of(file: Path) -> Any:
        try:
            return normalized(find(file.relative_to(root)))
        except ValueError as error:
            raise ValueError(f"The subject of {file} is unknown: {error}") from error

    return subject_of


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    labels: label_files.Labels = None,
    labels_from: str | None = None,
    label_column: str = "label",
    classes: Sequence[str] | Mapping[str, str] | None = None,
    subject: search.Subject = None,
    window_seconds: float | None = None,
    sfreq: float = preparation.SFREQ,
    low: float | None = 0.3,
    high: float | None = 75.0,
    mains: float | None = 60.0,
    reference: str | None = None,
    channels: Sequence[str] | None = None,
    splits: Mapping[str, str] | str | Path | None = None,
    n_jobs: int = 1,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Return labeled windows of the EEG channels that all recordings in a folder share.

    A labeled stretch is cut into windows that do not overlap; one without a duration gives the
    window that starts with it. Other parts of a recording are not used, nor windows that overlap an
    annotation that begins with "BAD". Labels are in one of three places:

    =============  ============================================  ===================================
    labels are in  argument                                      such as
    =============  ============================================  ===================================
    annotations    ``labels``: None, a list, or a dict           ``{"Sleep stage W": "W"}``
    a table        ``labels``: its path, or a data frame         ``"participants.tsv"``
    file names     ``labels_from``: a regular expression         ``"_(?P<label>rest|task)"``
    =============  ============================================  ===================================

    Of a BIDS data set, the annotations are the column ``trial_type`` of ``_events.tsv``, the types
    of channels are those of ``_channels.tsv``, and a column ``split`` of ``participants.tsv``
    becomes the split.

    The headers of all files decide which channels are used: the electrodes of the scalp that all
    recordings have, whatever the form of their names (``EEG T3-LE``, ``T7``), see
    :func:`~braindecode_pars.recordings.first_look.shared_channels`. Ears, mastoids, unused inputs
    and signals that are not EEG are left out, and one table says so. If no channel has the name of
    an electrode, all EEG channels that the recordings share are used. A recording without half of
    the channels of the others is an error, or is left out with ``on_error="warn"``.

    Parameters
    ----------
    path : path
        Folder of recordings, see :func:`recordings`.
    subjects : iterable of str | None
        Subjects to read; None reads all.
    labels : list | dict | str | path | DataFrame | None
        Where labels are.

        - A list of descriptions of annotations: those that are labels, in the order of the targets
          0, 1, ....
        - A dict of them: the class of each description, and the classes are in the order of the
          targets; or the target of each description, an integer.
        - None uses all annotations in the folder that are as long as a window, or, if there are
          none, all without a duration; targets are in alphabetical order, whatever ``subjects``
          are read. Annotations of gaps, and those that begin with "BAD" or "EDGE", are no labels.
        - Path of a ``.csv`` or ``.tsv`` file, as it is or below the folder; or a DataFrame. Its
          columns are ``file``, the name or the path below the folder, and ``label``, and perhaps
          ``subject``, ``onset`` and ``duration``, in seconds. An onset counts from the first
          sample. Without an onset, the label is that of the whole recording. Names of columns may
          be in any case; another column that looks like a time, such as ``start``, is an error
          where one of the two is missing. A row with an empty label, as "n/a" and "NaN", is
          ignored; a file without a row is left out with a warning.
        - Such a table of subjects, without the column ``file``, such as ``"participants.tsv"`` of
          BIDS. It has a column ``subject`` or ``participant_id``, where "sub-01" and "01" are one
          subject, and ``label_column``; others are ignored. The label is that of all recordings of
          the subject. An empty label leaves the subject out; a subject without a row is left out
          with a warning.
    labels_from : str | None
        Regular expression, instead of ``labels``, that is searched for in the path of a file below
        the folder. Its named group ``label`` is the label of the whole recording, and its named
        group ``subject``, if it has one, the subject. A file in which it finds none is left out
        with a warning.
    label_column : str
        Column of a table that has the labels, such as ``"diagnosis"``.
    classes : list of str | dict of str to str | None
        For labels in a table or in file names: those that are used, in the order of the targets; or
        the class of each, such as ``{"1": "rest", "2": "arithmetic"}``. None uses all labels, in
        alphabetical order, or sorted by value if they are numbers.
    subject : callable | str | None
        As in :func:`recordings`. Omit it if the labels name the subjects.
    window_seconds : float | None
        Length of a window in seconds. None is 30 s; but where no label is as long, and all have one
        length, it is that length, and a line in the log says so.
    sfreq, low, high, mains
        As in :func:`~braindecode_pars.recordings.preparation.filter_and_resample`. A warning says
        when the spectra of some recordings show that the mains have another frequency.
    reference : "average" | None
        New reference of a recording: the average of the channels that are used, which are the same
        in all recordings. None keeps the recording's own.
    channels : list of str | None
        EEG channels to use instead, in this order; the average is over them. They are found by
        their electrodes. A recording that lacks one is an error, or is left out with
        ``on_error="warn"``.
    splits : mapping | path | None
        As in :func:`~braindecode_pars.recordings.loading.set_splits`.
    n_jobs, on_error, verbose
        As in :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Signals in volts. Descriptions have ``subject``, ``file`` (path below the folder),
        ``recorded_sfreq``, ``recorded_reference`` and ``recorded_channels`` (of the file, before
        preprocessing), and ``split`` and ``site`` where they are known: the site is a column
        ``site``, ``center``, ``scanner``, ``hospital``, ``lab`` or ``device`` of
        ``participants.tsv``. The targets of the classes are in the ``window_kwargs`` of each
        recording, as in braindecode; the classifiers read their ``class_names_`` there.

    Raises
    ------
    FileNotFoundError
        When the folder contains no recording, or no recording of a requested subject; or when the
        table does not exist.
    TypeError
        When ``labels`` or ``classes`` are a set, which has no order, or nothing of the above.
    ValueError
        When a recording is damaged, when no annotation is a label, or when no label is as long as a
        window. When nothing is left of a subject or of a class, or a recording lacks channels of
        the others, unless ``on_error="warn"``. When the recordings share no channel. When labels
        overlap, or a time of a table cannot be read. When a table has no column of labels, names a
        file that is not in the folder, or has labels that contradict each other, or does not name a
        subject. When ``label_column`` is given for labels that are in no
        table, or ``labels_from`` in addition to ``labels``, or without a group ``label``. When no
        file has a label. When the subject of a file is unclear, see :func:`recordings`.

    Warns
    -----
    UserWarning
        When tables such as ``_events.tsv`` belong to no recording, or ``participants.tsv`` cannot
        be read. Once, with a table, when recordings lack an electrode that others have, and once,
        with a table, when recordings or labels are left out. When the mains have another frequency.
        When the amplitude of recordings is 20 times larger or smaller than that of the others, or
        that of channels of a recording 30 times. When two recordings contain the same signals.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> windows = datasets.folder.load("my-bids", window_seconds=4)  # doctest: +SKIP

    Labels in the names of files, here of two recordings of each subject:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import mne
    >>> import numpy as np
    >>> rng, info = np.random.default_rng(0), mne.create_info(["C3"], 100.0, "eeg")
    >>> pattern = "(?P<subject>[^_/]+)_(?P<label>[^_.]+)"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("P01_rest", "P01_task", "P02_rest", "P02_task"):
    ...         noise = 1e-5 * rng.standard_normal((1, 2000))
    ...         raw = mne.io.RawArray(noise, info, verbose="error")
    ...         _ = raw.save(Path(folder, f"{name}.fif"), verbose="error")
    ...     windows = datasets.folder.load(
    ...         folder, labels_from=pattern, window_seconds=20, sfreq=100, verbose=0
    ...     )
    >>> windows.description["subject"].tolist(), [target for _, target, _ in windows]
    (['P01', 'P01', 'P02', 'P02'], [0, 1, 0, 1])
    >>> windows.datasets[0].window_kwargs[-1][1]["mapping"]
    {'rest': 0, 'task': 1}
    """
    filters: dict[str, Any] = dict(sfreq=sfreq, low=low, high=high, mains=mains)
    preparation.check_filters(**filters)
    checks.optional(checks.positive()).check("window_seconds", window_seconds)
    checks.choice(preprocessing.AVERAGE, None).check("reference", reference)
    channels = None if channels is None else check_channels(channels)
    root = Path(path).expanduser()
    files = folders.recordings_below(root)
    labeled, left_out = _labeled_files(root, files, labels, labels_from, label_column, subject)
    are_named = labeled is not None and all("subject" in r.description for r in labeled)
    if are_named and subject is not None:
        raise ValueError(f"The labels name the subjects; omit subject={subject!r}.")
    named = _with_subjects(
        root, labeled or [loading.Recording(file, {}) for file in files], subject
    )
    chosen = loading.choose_subjects(named, subjects, path)
    if subject is None and not are_named:
        search.check_guessed_subjects(root, [r.file.relative_to(root) for r in chosen])
    # Of all files: the length of windows, and the targets, are the same for all subjects.
    is_open = labeled is None and (labels is None or window_seconds is None)
    durations = label_files.durations_in(files) if is_open else {}
    names, targets, window_seconds = label_files.classes_and_targets(
        labels, classes, labeled, durations, window_seconds
    )
    chosen = _with_origin(root, chosen)
    read_kwargs: dict[str, Any] = dict(names=names, window_seconds=window_seconds)
    average_of: str | list[str] | None = reference and channels
    if channels is None:
        channels, average_of = _first_look(chosen, reference, filters, verbose, **read_kwargs)
    preprocessing.warn_of_average(reference, channels)
    read_kwargs |= dict(targets=targets, channels=channels, reference=average_of, **filters)
    windows = loading.read_corpus(
        chosen,
        partial(_read, **read_kwargs),
        "own folder",
        targets,
        set(targets) if subjects is None else set(),
        left_out=left_out,
        n_jobs=n_jobs,
        on_error=on_error,
        verbose=verbose,
    )
    table = convert.as_windows(windows)
    amplitudes.warn_of_amplitude_outliers(table)
    duplicates.warn_of_duplicates(table, [part.description["file"] for part in windows.datasets])
    return windows if splits is None else loading.set_splits(windows, splits)


def _labeled_files(
    root: Path,
    files: Sequence[Path],
    labels: label_files.Labels,
    labels_from: str | None,
    column: str,
    subject: search.Subject,
) -> tuple[list[label_files.LabeledFile] | None, dict[Path, str]]:
    """Return files with labels of a table or of paths, and why the other files are left out."""
    if labels_from is None:
        labeled = label_files.labels_of_files(
            labels, root, files, column, _subject_of(root, subject)
        )
    elif labels is None and column == "label":
        labeled = label_files.labels_in_paths(labels_from, root, files)
    else:
        raise ValueError(
            f"labels_from={labels_from!r} reads the labels from file names, but "
            f"labels={labels!r} and label_column={column!r}. Pass either labels_from "
            "(--labels-from), or a table as labels (--labels)."
        )
    if labeled is None:
        return None, {}
    left_out = {file.file: file.why_unlabeled for file in labeled if file.why_unlabeled}
    if len(left_out) == len(labeled):
        file, why = next(iter(left_out.items()))
        raise ValueError(f"No recording in {root} has a label, such as {file.name}: {why}.")
    return [file for file in labeled if file.file not in left_out], left_out


def _with_origin(root: Path, chosen: Iterable[loading.Recording]) -> list[loading.Recording]:
    """Return recordings with their path below the folder, and site and split of the subject.

    The corpus is added where all names of files are those of one public corpus.
    """
    participants, entries = _corpus_subjects(root), {}
    site = next((name for name in participants if name in _SITES), None)
    for entry, column in {"site": site, "split": "split"}.items():
        if {column, "participant_id"} <= {*participants}:
            known = participants.dropna(subset=[column]).drop_duplicates()
            of_key = known.groupby(known["participant_id"].map(subject_key))[column]
            entries[entry] = of_key.agg(lambda values: ", ".join(dict.fromkeys(values))).to_dict()
    public = [public_subject(r.file.name) for r in chosen]
    corpora = public_corpora(public) if all(public) else []
    with_origin = []
    for recording in chosen:
        origin: dict[str, Any] = {"file": recording.file.relative_to(root).as_posix()}
        if len(corpora) == 1:
            origin["corpus"] = corpora[0]
        key = subject_key(recording.subject)
        origin |= {entry: of_subject.get(key) for entry, of_subject in entries.items()}
        with_origin.append(replace(recording, description={**recording.description, **origin}))
    return with_origin


def _corpus_subjects(root: Path) -> pd.DataFrame:
    """Return the table of subjects of a BIDS data set; an empty one if it cannot be read."""
    table = root / "participants.tsv"
    try:
        return loading.read_table(table, root) if table.is_file() else pd.DataFrame()
    except ValueError as error:
        checks.warn_user(f"Sites and splits of subjects are not used: {error}")
        return pd.DataFrame()


def _first_look(
    chosen: Sequence[loading.Recording],
    reference: str | None,
    filters: Mapping[str, Any],
    verbose: int,
    **labels: Any,
) -> tuple[list[str], str | list[str] | None]:
    """Return the channels and the reference of all recordings, by their headers."""
    infos, peaks, every = {}, [], -(-len(chosen) // first_look.N_LOOKED_AT)
    for i, recording in enumerate(chosen):
        is_looked_at = i % every == 0
        # Without its signals, a WFDB record is zeros.
        preload = is_looked_at and recording.file.suffix.lower() == ".hea"
        # What is wrong with a recording is said when it is read.
        with suppress(Exception), cutting.collected_omissions(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if (raw := _labeled(recording, preload=preload, **labels)) is not None:
                infos[recording.description["file"]] = raw.info
                peaks += [first_look.line_noise_peaks(raw)] if is_looked_at else []
    if not infos:
        return [], reference
    if filters["mains"] is not None:
        first_look.warn_of_line_frequency(peaks, filters["mains"], filters["sfreq"])
    average = reference is not None
    names, are_all = first_look.shared_channels(infos, average=average, verbose=verbose)
    # By name if a recording to predict may have further channels.
    return names, reference if are_all else reference and names


def _labeled(
    recording: loading.Recording,
    *,
    names: Mapping[str, str],
    window_seconds: float,
    preload: bool = True,
) -> mne.io.BaseRaw | None:
    """Open a recording, with its labels as annotations; None if it has none as long as a window.

    Channels have the types that BIDS lists beside it.
    """
    segments = recording.stretches if isinstance(recording, label_files.LabeledFile) else None
    if segments is not None and not any(label in names for *_, label in segments):
        cutting.omit("recordings", "without a label that is used", 1, 1, is_asked=True)
        return None
    raw = readers.read_with_tables(recording.file, preload=preload)
    if not cutting.holds_a_window(raw.duration, window_seconds):
        cutting.omit("recordings", f"shorter than a window of {window_seconds:g} s", 1, 1)
        return None
    # The labels are annotations with the names of their classes; gaps and bad times stay marked.
    gaps = marks.marks_of(raw)
    annotations = label_files.annotations_of(recording.file, raw, segments)
    labeled = label_files.labels_within(annotations, names, raw, window_seconds)
    if not len(labeled):
        return None
    labeled.append(gaps.onset, gaps.duration, gaps.description, ch_names=gaps.ch_names)
    return raw.set_annotations(labeled, verbose="error")


def _read(
    recording: loading.Recording,
    *,
    names: Mapping[str, str],
    targets: Mapping[str, int],
    window_seconds: float,
    channels: Sequence[str],
    reference: str | list[str] | None,
    **filters: float,
) -> EEGWindowsDataset | None:
    """Read one recording: the chosen channels, and the windows within its labels."""
    raw = _labeled(recording, names=names, window_seconds=window_seconds)
    if raw is None:
        return None
    origin = dict(
        recorded_sfreq=float(raw.info["sfreq"]),
        recorded_reference=recorded_steps.recorded(raw.info).reference,
        recorded_channels=", ".join(sorted(raw.ch_names)),
    )
    _pick(raw, channels, is_referenced=reference is not None)
    # An average reference hides a flat channel.
    held = as_trained.flat_clipped_channels(raw, raw.ch_names)
    origin |= (
        {amplitudes.FLAT_CLIPPED_CHANNELS: ", ".join(held)}
        if 0 < len(held) < len(raw.ch_names)
        else {}
    )
    preparation.filter_and_resample(raw, **filters)
    if reference is not None:
        preparation.set_reference(raw, reference)
    windows = cutting.event_windows(raw, targets, window_seconds)
    if windows is not None:
        windows.set_description(origin)
    return windows


def _pick(raw: mne.io.BaseRaw, channels: Sequence[str], *, is_referenced: bool) -> None:
    """Pick channels by their electrodes, in this order and with these names.

    Names that tell another reference stay as they are, unless the reference is replaced.
    """
    eeg = readers.good_eeg(raw.info["chs"], raw.info["bads"])
    places = channel_names.match_channels(channels, eeg)
    lacking = [name for name, place in zip(channels, places, strict=True) if place is None]
    if lacking:
        raise ValueError(
            f"{len(lacking)} of the {len(channels)} channels to use ({checks.format_list(lacking)}) are "
            "missing, marked as bad or without a known unit of voltage; its EEG channels are "
            f"{checks.format_list(eeg) or 'none'}. Leave the recording out, or name the channels to use "
            "in channels=."
            f"{channel_names.other_system(channels, raw.ch_names)}"
        )
    picked_names = [eeg[place] for place in places if place is not None]
    raw.pick(picked_names, verbose="error").reorder_channels(picked_names)
    pairs = [*zip(picked_names, channels, strict=True)]
    if is_referenced or all(
        channel_names.electrode_pair(a)[1] == channel_names.electrode_pair(b)[1] for a, b in pairs
    ):
        recorded_steps.rename_channels(raw, dict(pairs))
