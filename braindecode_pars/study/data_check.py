"""What labeled recordings can tell before anything is trained: what is there, and what is odd.

A score means little where the classes differ in something that is not brain activity: the site, the
amplifier, the time of the recording, or a file that is there twice.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import contingency
from sklearn.metrics import roc_auc_score
from torch.utils.data import ConcatDataset

from braindecode_pars._common.checks import choice, format_list
from braindecode_pars.windows import Windows, amplitudes, convert, duplicates, labels, table
from braindecode_pars.windows.preprocessing import agreed

#: Fewest subjects of each class, where a subject has one class; and of all, where it has several.
_FEWEST_OF_A_CLASS, _FEWEST = 4, 6
#: Windows that are read of each recording, of many recordings fewer: about so many in all.
_READ, _READ_IN_ALL = 8, 2000
#: Probability that a window of one class has more of something than a window of another class, from
#: which the two hardly overlap.
_APART = 0.95
#: Balanced accuracy of the classes that a property of the recordings identifies, from which a
#: method could reach its score by this property alone.
_CONFOUNDED = 0.9
#: Topic of findings that a study can continue in spite of.
CONFOUNDS = "confounds"
#: Properties of recordings that classes should not follow, and what one of their values is called.
_PROPERTIES = {
    "site": "site",
    "recorded_sfreq": "recorded sampling rate",
    "recorded_reference": "recorded reference",
    "channels": "set of channels",
    "recorded_channels": "set of channels in the files",
    "corpus": "corpus",
}
#: Columns by which recordings are ordered, and what they are called.
_ORDERS = {"date": "their dates", "file": "their file names", None: "the data set"}
#: What a recording's description may tell besides.
_DESCRIBED = ("file", "site", "recorded_sfreq", "recorded_reference", "recorded_channels")


class Finding(NamedTuple):
    """Something in the data that a reader of the scores has to know.

    Attributes
    ----------
    kind : "stop" | "warning" | "note"
        Whether no answer is possible, the scores are to be distrusted, or neither.
    text : str
        What was found, why it matters, and what would be needed.
    topic : str
        Subject matter: "labels", "subjects", "confounds" (classes that follow a property of the
        recordings), "copies", "amplitudes", or "order".
    """

    kind: str
    text: str
    topic: str = ""


_stop, _warning, _note = (partial(Finding, kind) for kind in ("stop", "warning", "note"))


@dataclass(frozen=True, eq=False)
class DataCheck:
    """What was found in labeled recordings.

    Attributes
    ----------
    facts : dict of str to str
        What there is, in the order of a table: subjects, recordings, hours, windows, and others.
    classes : pandas.DataFrame
        One row a class: ``class``, ``windows``, ``recordings``, ``subjects``.
    by_subject : bool
        Whether a subject has one class, such as a diagnosis. Otherwise classes change within
        subjects. It is true if this holds for 90 % of the labeled subjects.
    findings : list of Finding
        What is odd, the gravest first.
    """

    facts: dict[str, str]
    classes: pd.DataFrame
    by_subject: bool
    findings: list[Finding]

    @property
    def stops(self) -> list[str]:
        """Why no answer is possible; empty if one is."""
        return [finding.text for finding in self.findings if finding.kind == "stop"]


@dataclass(frozen=True, eq=False)
class _Data:
    """The tables that the checks look at.

    ``recordings`` has one row a recording, ``labeled`` one row a labeled window, and ``sampled``
    one row a window that was read, with its ``level`` (decimal logarithm of the standard deviation,
    the median of its channels) and the ``levels`` of the channels.
    """

    windows: Windows
    recordings: pd.DataFrame
    labeled: pd.DataFrame
    sampled: pd.DataFrame
    by_subject: bool

    @property
    def names(self) -> list[str]:
        """Names of the classes in their order."""
        return list(self.labeled["class"].cat.categories)

    @property
    def one_class_each(self) -> bool:
        """Whether every labeled recording has one class."""
        return bool((self.labeled.groupby("recording")["class"].nunique() == 1).all())


def check_data(windows_ds: Any, *, in_spite_of: Collection[str] = ()) -> DataCheck:
    """Look at labeled windows before methods are compared on them.

    At most eight windows of each recording and class are read. A check of what is not known, such
    as the site, is left out; :func:`braindecode_pars.datasets.folder.load` tells what it knows in
    the descriptions of the recordings.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labeled windows, or another source of windows as the estimators take it. The label -1 means
        unlabeled, unless it is the label of a name.
    in_spite_of : collection of str
        Topics whose stops become warnings: ``("confounds",)``, for classes that follow the site,
        sampling rate, reference or channels of the recordings.

    Returns
    -------
    DataCheck

    Raises
    ------
    ValueError
        When ``in_spite_of`` has another topic, there are no windows, or a window that is read has
        samples that are not finite.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.study.data_check import check_data
    >>> check = check_data(datasets.mental_arithmetic())
    >>> check.facts["subjects"], check.by_subject, check.stops
    ('24', False, [])
    >>> [finding.text[:48] for finding in check.findings]
    ['In all 24 subjects, the recordings come in the s']
    """
    for topic in in_spite_of:
        choice(CONFOUNDS).check("in_spite_of", topic)
    windows = convert.as_windows(windows_ds)
    windows.check_not_empty()
    recordings = _recordings(windows, windows_ds)
    labeled = _labeled(windows, recordings)
    several = labeled["class"].nunique() > 1
    by_subject = several and labels.one_class_each(labeled["class"], labeled["subject"])
    data = _Data(windows, recordings, labeled, _sampled(windows, labeled), by_subject)
    findings = [
        *_too_few(data),
        *_confounds(recordings, labeled, in_spite_of),
        *_copies(data),
        *_amplitudes(data),
        *_order_of_recordings(data),
        *_order_within_recordings(data),
    ]
    if sentence := labels.similar_classes(data.names):
        findings.append(_warning(sentence, "labels"))
    if n := len(windows) - len(labeled):
        findings.append(
            _note(
                f"{n} of {len(windows)} windows have no label. They are not scored, and are used "
                "to pretrain without labels.",
                "labels",
            )
        )
    findings.sort(key=lambda finding: ("stop", "warning", "note").index(finding.kind))
    of_class = labeled.groupby("class", observed=False)[["window", "recording", "subject"]]
    classes = of_class.nunique().add_suffix("s").reset_index().astype({"class": object})
    return DataCheck(_facts(data), classes, by_subject, findings)


def check_confounds(windows_ds: Any) -> list[Finding]:
    """Return whether the classes follow the site, rate, reference or channels of the recordings.

    This part of :func:`check_data` reads no signal, and is for those who only fit a classifier: all
    findings are warnings.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        As in :func:`check_data`.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.study.data_check import check_confounds
    >>> check_confounds(datasets.mental_arithmetic())
    []
    """
    windows = convert.as_windows(windows_ds)
    recordings = _recordings(windows, windows_ds)
    return [*_confounds(recordings, _labeled(windows, recordings), (CONFOUNDS,))]


# The tables -------------------------------------------------------------------------------------


def _recordings(windows: Windows, windows_ds: Any) -> pd.DataFrame:
    """Return what is known of each recording, None where it is unknown."""
    rows = windows.recordings
    has_name = table.is_name(rows["subject"].to_numpy())
    parts: list[Any] = windows_ds.datasets if isinstance(windows_ds, ConcatDataset) else []
    parts = [part for part in parts if len(part)]  # as in the table of Windows
    parts = parts if len(parts) == len(rows) else [None] * len(rows)
    metadata = [getattr(part, "description", None) for part in parts]
    infos = [getattr(getattr(part, "raw", None), "info", {}) for part in parts]
    recordings = pd.DataFrame(
        {
            "subject": rows["subject"].astype(object).where(has_name, None),
            "corpus": rows["corpus"],
            "channels": [", ".join(sorted(montage.names)) or None for montage in rows["channels"]],
            "date": [info.get("meas_date") for info in infos],
            **{name: [None if d is None else d.get(name) for d in metadata] for name in _DESCRIBED},
        },
        index=rows.index,
        dtype=object,
    )
    numbers = [f"recording {i + 1} (subject {s})" for i, s in enumerate(recordings["subject"])]
    recordings["name"] = recordings["file"].where(recordings["file"].notna(), numbers)
    return recordings


def _labeled(windows: Windows, recordings: pd.DataFrame) -> pd.DataFrame:
    """Return the labeled windows, with their recording, subject, class and position."""
    targets = pd.Series(windows.y, range(len(windows)), dtype=object)
    if -1 not in (windows.label_names or {}).values():
        targets = targets.mask(targets == -1)
    targets = targets.dropna()
    classes = np.array(sorted(set(targets), key=lambda y: (str(type(y)), y)), object)
    names = labels.names_of_classes(classes, windows.label_names) or {}
    texts = [str(names.get(label, label)) for label in classes]
    rows = windows.table[["recording", "start"]].iloc[targets.index]
    rows = rows.assign(subject=recordings["subject"].reindex(rows["recording"]).to_numpy())
    of_class = pd.Categorical(targets, classes).rename_categories(texts)
    return rows.assign(**{"window": targets.index, "class": of_class})


def _sampled(windows: Windows, labeled: pd.DataFrame) -> pd.DataFrame:
    """Read some windows of each recording and class, spread over its time."""
    chosen = []
    n_classes = labeled.groupby("recording")["class"].nunique()
    most = min(_READ, _READ_IN_ALL // max(1, len(n_classes)))
    for (recording, _), rows in labeled.groupby(["recording", "class"], observed=True):
        n = max(2, most // n_classes[recording])
        chosen.append(rows.iloc[np.unique(np.linspace(0, len(rows) - 1, n).astype(int))])
    table = pd.concat(chosen) if chosen else labeled
    # One window at a time in memory
    levels = [
        amplitudes.log_amplitudes_of(windows[i].astype(float)) for i in table["window"].tolist()
    ]
    level = [np.log10(pd.Series(10 ** window_levels[0]).median()) for window_levels in levels]
    return table.assign(level=np.array(level, float), levels=pd.Series(levels, table.index, object))


def _facts(data: _Data) -> dict[str, str]:
    windows, recordings, labeled = data.windows, data.recordings, data.labeled
    sfreq, length = windows.sfreq or np.nan, windows[0].shape[1]
    names = [montage.names for montage in windows.montages]
    is_one_set = len({tuple(sorted(ch_names)) for ch_names in names}) == 1
    channels = (
        f"{len(names[0])}: {format_list(names[0])}" if is_one_set else "differ between recordings"
    )
    steps = windows.recordings["preprocessing"].dropna()
    level = data.sampled["level"].median()
    facts = {
        "subjects": str(recordings["subject"].nunique()),
        "labeled subjects": str(labeled["subject"].nunique()),
        "recordings": str(len(recordings)),
        "hours": f"{len(windows) * length / sfreq / 3600:.3g}",
        "windows": f"{len(windows)} of {length / sfreq:g} s",
        "sampling rate": f"{sfreq:g} Hz",
        "channels": channels,
        "reference": _counted(_reference(step.reference) for step in steps),
        **{
            what: _counted(map(_shown, recordings[column].dropna()))
            for column, what in _PROPERTIES.items()
            if not column.endswith("channels")
        },
        "amplitude": f"{1e6 * 10**level:.3g} µV (median standard deviation)",
        "classes": "one a subject" if data.by_subject else "change within subjects",
    }
    return {name: text for name, text in facts.items() if text and "nan" not in text.split()}


def _reference(reference: str | None) -> str | None:
    n = 0 if reference is None else len(reference.split(", "))
    return f"average of {n} channels" if n > 3 else reference


def _shown(value: Any) -> str:
    return f"{value:g} Hz" if isinstance(value, float) else str(value)


def _counted(values: Any) -> str:
    """Return different values, with the number of recordings where there are several."""
    counts = pd.Series(list(values), dtype=object).dropna().value_counts()
    if len(counts) == 1:
        return str(counts.index[0])
    return format_list([f"{value} ({n} recordings)" for value, n in counts.items()], max_items=6)


# The checks -------------------------------------------------------------------------------------


def _too_few(data: _Data) -> Iterator[Finding]:
    """Yield why there are too few classes or subjects."""
    labeled, names = data.labeled, data.names
    if len(names) < 2:
        problem = f"one class, {names[0]!r}" if names else "no label"
        yield _stop(
            f"The windows have {problem}, but two classes are needed to tell them apart. Check "
            "where the labels are read from; the label -1 means unlabeled.",
            "labels",
        )
        return
    subjects = labeled.groupby("class", observed=False)["subject"].nunique()
    if n := int(labeled["subject"].isna().sum()):
        yield _stop(
            f"The subject of {n} of {len(labeled)} labeled windows is not known. Scores are of "
            "subjects that a method has not seen, so every recording needs its subject: name it in "
            "the files, or pass subject=.",
            "subjects",
        )
    elif data.by_subject and (few := subjects[subjects < _FEWEST_OF_A_CLASS]).size:
        shown = format_list([f"{name!r} has {n}" for name, n in few.items()])
        yield _stop(
            f"Each subject has one class, and too few subjects are of one: {shown}, and at least "
            f"{_FEWEST_OF_A_CLASS} subjects of every class are needed, so that there are some to "
            "learn from and others to test on. Record more, or leave the class out.",
            "subjects",
        )
    elif not data.by_subject:
        n = int((labeled.groupby("subject")["class"].nunique() > 1).sum())
        total = data.recordings["subject"].nunique()
        if n < _FEWEST:
            yield _stop(
                f"{n} of {total} subjects have labels of at least two classes, and at least "
                f"{_FEWEST} are needed: with fewer, no difference between methods can be told from "
                "chance. Label the recordings of more subjects.",
                "subjects",
            )


def _confounds(
    recordings: pd.DataFrame, labeled: pd.DataFrame, in_spite_of: Collection[str]
) -> Iterator[Finding]:
    """Yield properties of recordings that classes are confounded with."""
    # The channels that each recording has beside those that all have
    sets = recordings["recorded_channels"].dropna().str.split(", ").map(set)
    shared = set.intersection(*sets) if len(sets) else set()
    beside = sets.map(lambda channels: ", ".join(sorted(channels - shared)) or "no channel more")
    recordings = recordings.assign(recorded_channels=beside.reindex(recordings.index))
    for column, what in _PROPERTIES.items():
        values = recordings[column].reindex(labeled["recording"]).to_numpy()
        table = labeled[["subject", "class"]].assign(value=values).drop_duplicates()
        n_values = table["value"].nunique()
        # A value for each subject tells who it is, as the subject's name does.
        if table["value"].isna().any() or not 1 < n_values < table["subject"].nunique():
            continue
        counts = pd.crosstab(table["value"], table["class"])
        if counts.shape[1] < 2:
            continue
        strength = contingency.association(counts, method="cramer")
        p = contingency.chi2_contingency(counts, correction=False).pvalue
        texts = []
        for value, row in counts.iterrows():
            name = _shown(value) if len(_shown(value)) <= 40 else f"{_shown(value)[:37]}..."
            class_counts = ", ".join(f"{n} of {label!r}" for label, n in row.items() if n)
            texts.append(f"{name} has {class_counts}")
        shown = format_list(texts, max_items=4)
        # The best guess of the class from the value, with equal weight of each class
        accuracy = (counts / counts.sum()).max(axis=1).sum() / counts.shape[1]
        is_stop = round(accuracy, 6) >= _CONFOUNDED and p < 0.05
        if not is_stop and (strength <= 0.5 or p >= 0.01):
            continue
        text = (
            f"The classes are confounded with the {what}, which alone identifies the class with a "
            f"balanced accuracy of {accuracy:.2f} (Cramér's V {strength:.2f}, p {p:.2g}): {shown}. "
            f"A score may come from the {what} instead of brain activity"
        )
        if column == "recorded_channels" and recordings["channels"].nunique() == 1:
            text += ": the channels in use are the same, but the files may be of two amplifiers"
        text += f". Add recordings of all classes with the same {what}"
        if is_stop and CONFOUNDS not in in_spite_of:
            advice = f"or pass in_spite_of={CONFOUNDS!r} (--in-spite-of {CONFOUNDS})"
            yield _stop(f"{text}, {advice}.", CONFOUNDS)
        else:
            yield _warning(f"{text}, or compare the classes within one {what}.", CONFOUNDS)


def _copies(data: _Data) -> Iterator[Finding]:
    """Yield recordings that contain the same signals."""
    pairs: dict[bool, list[str]] = {True: [], False: []}
    for numbers in duplicates.find_duplicates(data.windows):
        rows = data.recordings.loc[list(numbers)]
        pairs[rows["subject"].nunique() > 1].append(" and ".join(rows["name"]))
    if pairs[True]:
        yield _stop(
            f"Recordings of different subjects contain the same signals: {format_list(pairs[True])}. "
            "Remove one, or give both one subject: training and test data would overlap.",
            "copies",
        )
    if pairs[False]:
        yield _warning(
            f"Recordings of one subject contain the same signals: {format_list(pairs[False])}. They "
            "count twice, and if their labels differ, one of them is wrong. Remove the duplicates.",
            "copies",
        )


def _auc(is_class: pd.Series, values: pd.Series) -> float:
    """Return the probability that a class has the larger value; NaN without two classes."""
    return float(roc_auc_score(is_class, values)) if is_class.nunique() == 2 else np.nan


def _amplitudes(data: _Data) -> Iterator[Finding]:
    """Yield classes, recordings or channels of another amplitude, and what EEG cannot have."""
    sampled = data.sampled.dropna(subset="level")
    by_recording = sampled.groupby("recording")["level"].median()
    # The level of a recording, or of a window relative to its recording
    median_level = sampled["recording"].map(by_recording)
    rows = sampled.assign(
        level=median_level if data.one_class_each else sampled["level"] - median_level
    )
    if data.one_class_each:
        rows = rows.drop_duplicates("recording")
    for name in data.names:
        is_class = rows["class"] == name
        auc = _auc(is_class, rows["level"])
        if max(auc, 1 - auc) > _APART:
            medians = rows.groupby(is_class)["level"].median()
            factor = 10 ** abs(medians[True] - medians[False])
            yield _warning(
                f"The amplitude alone tells the class {name!r} from the others: it is "
                f"{factor:.2g} times {'larger' if auc > 0.5 else 'smaller'}, with hardly an "
                "overlap. This may be physiology, as in deep sleep, but also another amplifier, "
                "unit or cap. Look at scores with equal amplitudes too.",
                "amplitudes",
            )
            if len(data.names) == 2:
                break
    looked_at = amplitudes.evenly_spaced(len(data.windows), amplitudes.N_WINDOWS)
    scale = agreed(data.windows.recordings["preprocessing"].tolist()).scale
    if problem := amplitudes.amplitude_problem((data.windows[int(i)] for i in looked_at), scale):
        yield _warning(problem, "amplitudes")
    name = data.recordings["name"]
    if len(far := amplitudes.find_outlier_recordings(by_recording)):
        text = amplitudes.outlier_recordings_message(name[far].tolist(), len(by_recording))
        yield _warning(text, "amplitudes")
    montages, channels = data.windows.recordings["channels"], []
    for number, levels in sampled.groupby("recording")["levels"]:
        _, far = amplitudes.find_outlier_channels([*levels], montages[number].names)
        channels += [f"{format_list(far)} of {name[number]}"] if len(far) else []
    if channels:
        text = amplitudes.OUTLIER_CHANNELS_MESSAGE.format(format_list(channels, max_items=5))
        yield _warning(text, "amplitudes")


def _order_of_recordings(data: _Data) -> Iterator[Finding]:
    """Yield a finding where the classes of recordings come in the same order in every subject."""
    if not data.one_class_each:
        return
    first = data.labeled.drop_duplicates("recording")[["recording", "subject", "class"]]
    rows = first.merge(data.recordings[["file", "date"]], left_on="recording", right_index=True)
    orders, sources = [], set()
    for _, files in rows.groupby("subject"):
        if files["class"].nunique() < 2:
            continue
        by = next(
            (c for c in ("date", "file") if files[c].notna().all() and files[c].is_unique), None
        )
        sources.add(_ORDERS[by])
        ordered = files if by is None else files.sort_values(by)
        orders.append(tuple(name for name, _ in groupby(ordered["class"].tolist())))
    # An order in which a class comes again, such as A B A, balances what changes with time.
    if len(orders) >= 3 and len({*orders}) == 1 and len({*orders[0]}) == len(orders[0]):
        order, source = ", then ".join(map(repr, orders[0])), " and ".join(sorted(sources))
        yield _warning(
            f"In all {len(orders)} subjects, the recordings come in the same order of classes: "
            f"{order} (by the order of {source}). If they were recorded so, fatigue or drying "
            "electrodes tell the classes apart as well as what is studied. Needed are subjects "
            "with the other order.",
            "order",
        )


def _order_within_recordings(data: _Data) -> Iterator[Finding]:
    """Yield classes that come early, or late, in nine of ten recordings."""
    table = data.labeled[data.labeled["start"] >= 0]
    for name in data.names:
        rows = table.assign(is_class=table["class"] == name)
        aucs = np.array(
            [
                _auc(recording_windows["is_class"], recording_windows["start"])
                for _, recording_windows in rows.groupby("recording")
                if 2 <= recording_windows["is_class"].sum() <= len(recording_windows) - 2
            ]
        )
        for when, are in (("late", aucs > _APART), ("early", aucs < 1 - _APART)):
            if len(aucs) >= 3 and are.mean() >= 0.9:
                yield _warning(
                    f"In {are.sum()} of {len(aucs)} recordings, the class {name!r} comes {when}, "
                    "apart from the others. Fatigue or drying electrodes tell it from them as well "
                    "as what is studied. Needed are recordings in which the classes alternate.",
                    "order",
                )
