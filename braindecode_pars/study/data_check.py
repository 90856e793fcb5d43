"""Check labeled recordings for confounds, duplicates and implausible amplitudes before training.

A score does not reflect brain activity if the classes differ in other properties, such as the site,
the amplifier or the time of recording, or if recordings are duplicated.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._common.checks import choice, format_list
from braindecode_pars._common.findings import Finding
from braindecode_pars.evaluation import confounds
from braindecode_pars.windows import Windows, amplitudes, convert, duplicates, labels
from braindecode_pars.windows.preprocessing import agreed

#: Minimum number of subjects of each class, if each subject has one class.
_MIN_SUBJECTS_PER_CLASS = 4
#: Minimum number of subjects with several classes, if classes vary within subjects.
_MIN_SUBJECTS = 6
#: Maximum number of windows that are read per recording.
_MAX_READ_PER_RECORDING = 8
#: Approximate maximum number of windows that are read over all recordings.
_MAX_READ = 2000


@dataclass(frozen=True, eq=False)
class DataCheck:
    """Result of the data check.

    Attributes
    ----------
    facts : dict of str to str
        Properties of the dataset, such as the numbers of subjects, recordings, hours and windows.
    classes : pandas.DataFrame
        One row per class: ``class``, ``windows``, ``recordings``, ``subjects``.
    by_subject : bool
        Whether at least 90 % of the labeled subjects have one class, such as a diagnosis. Otherwise
        classes vary within subjects.
    findings : list of Finding
        Findings in order of severity, stops first.
    """

    facts: dict[str, str]
    classes: pd.DataFrame
    by_subject: bool
    findings: list[Finding]

    @property
    def stops(self) -> list[str]:
        """Messages of the findings that stop a study; empty if it can be run."""
        return [finding.text for finding in self.findings if finding.level == "stop"]


@dataclass(frozen=True, eq=False)
class _Data:
    """Tables that the checks use.

    Attributes
    ----------
    windows : Windows
        All windows.
    recordings : DataFrame
        One row per recording.
    labeled : DataFrame
        One row per labeled window.
    sampled : DataFrame
        One row per window that was read, with its ``log_amplitude`` (decimal logarithm of the
        standard deviation, median over channels) and the array ``channel_log_amplitudes``.
    by_subject : bool
        Whether each subject has one class.
    """

    windows: Windows
    recordings: pd.DataFrame
    labeled: pd.DataFrame
    sampled: pd.DataFrame
    by_subject: bool

    @property
    def names(self) -> list[str]:
        """Names of the classes, in the order of their labels."""
        return list(self.labeled["class"].cat.categories)

    @property
    def has_one_class_per_recording(self) -> bool:
        """Whether every labeled recording has one class."""
        return confounds.has_one_class_per_recording(self.labeled)


def check_data(windows_ds: Any, *, in_spite_of: Collection[str] = ()) -> DataCheck:
    """Check labeled windows for confounds, duplicates, amplitudes and order of recording.

    At most eight windows per recording and class are read. Checks of unknown properties, such as
    the site, are skipped; :func:`braindecode_pars.datasets.folder.load` stores the known properties
    in the descriptions of the recordings.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labeled windows, or any other source of windows that the estimators accept. The label -1
        means unlabeled, unless a class name is assigned to -1.
    in_spite_of : collection of str
        Kinds of findings whose stops become warnings. Supported: ``("confounds",)``, for classes
        that are confounded with the site, sampling rate, reference or channels of the recordings.

    Returns
    -------
    DataCheck

    Raises
    ------
    ValueError
        If ``in_spite_of`` contains another kind, there are no windows, or a window contains
        samples that are not finite.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.study.data_check import check_data
    >>> check = check_data(datasets.mental_arithmetic())
    >>> check.facts["subjects"], check.by_subject, check.stops
    ('24', False, [])
    >>> [(finding.level, finding.kind) for finding in check.findings]
    [('warning', 'order_of_recordings')]
    """
    for kind in in_spite_of:
        choice(confounds.CONFOUNDS).check("in_spite_of", kind)
    windows = convert.as_windows(windows_ds)
    windows.check_not_empty()
    recordings = confounds.properties_of_recordings(windows, windows_ds)
    labeled = confounds.labeled_windows(windows, recordings)
    several = labeled["class"].nunique() > 1
    by_subject = several and labels.one_class_each(labeled["class"], labeled["subject"])
    data = _Data(windows, recordings, labeled, _sampled(windows, labeled), by_subject)
    findings = [
        *_too_few(data),
        *confounds.confounded_properties(recordings, labeled, in_spite_of),
        *_copies(data),
        *_amplitudes(data),
        *confounds.order_of_recordings(recordings, labeled),
        *confounds.order_within_recordings(labeled),
    ]
    if finding := labels.similar_classes(data.names):
        findings.append(finding)
    if n := len(windows) - len(labeled):
        findings.append(Finding("unlabeled_windows", dict(n=n, n_windows=len(windows)), "note"))
    findings.sort(key=lambda finding: ("stop", "warning", "note").index(finding.level))
    of_class = labeled.groupby("class", observed=False)[["window", "recording", "subject"]]
    classes = of_class.nunique().add_suffix("s").reset_index().astype({"class": object})
    return DataCheck(_facts(data), classes, by_subject, findings)


def check_confounds(windows_ds: Any) -> list[Finding]:
    """Check whether classes are confounded with site, sampling rate, reference or channels.

    This part of :func:`check_data` does not read samples. Use it before training a classifier
    without a study. All findings are warnings.

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
    recordings = confounds.properties_of_recordings(windows, windows_ds)
    labeled = confounds.labeled_windows(windows, recordings)
    return [*confounds.confounded_properties(recordings, labeled, (confounds.CONFOUNDS,))]


# The tables -------------------------------------------------------------------------------------


def _sampled(windows: Windows, labeled: pd.DataFrame) -> pd.DataFrame:
    """Read windows of each recording and class, at equal intervals, and add their amplitudes."""
    chosen = []
    n_classes = labeled.groupby("recording")["class"].nunique()
    n_max = min(_MAX_READ_PER_RECORDING, _MAX_READ // max(1, len(n_classes)))
    for (recording, _), rows in labeled.groupby(["recording", "class"], observed=True):
        n = max(2, n_max // n_classes[recording])
        chosen.append(rows.iloc[np.unique(np.linspace(0, len(rows) - 1, n).astype(int))])
    table = pd.concat(chosen) if chosen else labeled
    # Only one window is in memory at a time.
    of_channels = [
        amplitudes.log_amplitudes_of(windows[i].astype(float)) for i in table["window"].tolist()
    ]
    log_amplitudes = [np.log10(pd.Series(10 ** values[0]).median()) for values in of_channels]
    return table.assign(
        log_amplitude=np.array(log_amplitudes, float),
        channel_log_amplitudes=pd.Series(of_channels, table.index, object),
    )


def _facts(data: _Data) -> dict[str, str]:
    windows, recordings, labeled = data.windows, data.recordings, data.labeled
    sfreq, length = windows.sfreq or np.nan, windows[0].shape[1]
    names = [montage.names for montage in windows.montages]
    is_one_set = len({tuple(sorted(ch_names)) for ch_names in names}) == 1
    channels = (
        f"{len(names[0])}: {format_list(names[0])}" if is_one_set else "differ between recordings"
    )
    steps = windows.recordings["preprocessing"].dropna()
    log_amplitude = data.sampled["log_amplitude"].median()
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
            what: _counted(map(confounds.shown, recordings[column].dropna()))
            for column, what in confounds.PROPERTIES.items()
            if not column.endswith("channels")
        },
        "amplitude": f"{1e6 * 10**log_amplitude:.3g} µV (median standard deviation)",
        "classes": "one per subject" if data.by_subject else "vary within subjects",
    }
    return {name: text for name, text in facts.items() if text and "nan" not in text.split()}


def _reference(reference: str | None) -> str | None:
    n = 0 if reference is None else len(reference.split(", "))
    return f"average of {n} channels" if n > 3 else reference


def _counted(values: Any) -> str:
    """Return the distinct values, with numbers of recordings if there is more than one value."""
    counts = pd.Series(list(values), dtype=object).dropna().value_counts()
    if len(counts) == 1:
        return str(counts.index[0])
    return format_list([f"{value} ({n} recordings)" for value, n in counts.items()], max_items=6)


# The checks -------------------------------------------------------------------------------------


def _too_few(data: _Data) -> Iterator[Finding]:
    """Yield stops for too few classes or subjects."""
    labeled, names = data.labeled, data.names
    if len(names) < 2:
        yield Finding("too_few_classes", dict(classes=names), "stop")
        return
    subjects = labeled.groupby("class", observed=False)["subject"].nunique()
    if n := int(labeled["subject"].isna().sum()):
        yield Finding("unknown_subjects", dict(n=n, n_windows=len(labeled)), "stop")
    elif data.by_subject and (too_few := subjects[subjects < _MIN_SUBJECTS_PER_CLASS]).size:
        values = dict(counts=too_few.to_dict(), minimum=_MIN_SUBJECTS_PER_CLASS)
        yield Finding("too_few_of_class", values, "stop")
    elif not data.by_subject:
        n = int((labeled.groupby("subject")["class"].nunique() > 1).sum())
        total = data.recordings["subject"].nunique()
        if n < _MIN_SUBJECTS:
            values = dict(n=n, n_subjects=total, minimum=_MIN_SUBJECTS)
            yield Finding("too_few_subjects", values, "stop")


def _copies(data: _Data) -> Iterator[Finding]:
    """Yield findings for duplicate recordings."""
    pairs: dict[bool, list[str]] = {True: [], False: []}
    for numbers in duplicates.find_duplicates(data.windows):
        rows = data.recordings.loc[list(numbers)]
        pairs[rows["subject"].nunique() > 1].append(" and ".join(rows["name"]))
    if pairs[True]:
        yield Finding("copies_across_subjects", dict(pairs=pairs[True]), "stop")
    if pairs[False]:
        yield Finding("copies_within_subject", dict(pairs=pairs[False]))


def _amplitudes(data: _Data) -> Iterator[Finding]:
    """Yield findings for separating, outlying and implausible amplitudes."""
    sampled = data.sampled.dropna(subset="log_amplitude")
    by_recording = sampled.groupby("recording")["log_amplitude"].median()
    # Amplitude of a recording, or of a window relative to its recording
    median_amplitude = sampled["recording"].map(by_recording)
    relative_amplitude = sampled["log_amplitude"] - median_amplitude
    rows = sampled.assign(
        log_amplitude=(median_amplitude if data.has_one_class_per_recording else relative_amplitude)
    )
    if data.has_one_class_per_recording:
        rows = rows.drop_duplicates("recording")
    for name in data.names:
        is_class = rows["class"] == name
        auc = confounds.auc_of_class(is_class, rows["log_amplitude"])
        if max(auc, 1 - auc) > confounds.SEPARATING_AUC:
            medians = rows.groupby(is_class)["log_amplitude"].median()
            factor = 10 ** abs(medians[True] - medians[False])
            direction = "larger" if auc > 0.5 else "smaller"
            values = dict(name=name, factor=factor, direction=direction)
            yield Finding("separating_amplitude", values)
            if len(data.names) == 2:
                break
    checked = amplitudes.evenly_spaced(len(data.windows), amplitudes.N_WINDOWS)
    scale = agreed(data.windows.recordings["preprocessing"].tolist()).scale
    if problem := amplitudes.amplitude_problem((data.windows[int(i)] for i in checked), scale):
        yield problem
    name = data.recordings["name"]
    if len(outliers := amplitudes.find_outlier_recordings(by_recording)):
        yield amplitudes.outlier_finding(name[outliers].tolist(), len(by_recording))
    montages, channels = data.windows.recordings["channels"], []
    for number, values in sampled.groupby("recording")["channel_log_amplitudes"]:
        _, outliers = amplitudes.find_outlier_channels([*values], montages[number].names)
        channels += [(name[number], outliers)] if outliers else []
    if channels:
        yield amplitudes.outlier_channels_finding(channels)
