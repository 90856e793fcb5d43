"""Check labeled recordings for confounds, duplicates and implausible amplitudes before training.

Classification scores may not reflect brain activity if the dataset contains duplicate recordings,
or if the classes also differ in other properties of the recordings, such as the site, the amplifier
or the time of recording.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from braindecode_pars._common.checks import choice, format_list
from braindecode_pars._common.findings import Finding
from braindecode_pars.evaluation import confounds
from braindecode_pars.windows import Windows, amplitudes, convert, duplicates, labels
from braindecode_pars.windows.preprocessing import Preprocessing, agreed

#: Minimum number of subjects per class, if each subject has windows of one class only.
_MIN_SUBJECTS_PER_CLASS = 4
#: Minimum number of subjects with windows of several classes, if classes vary within subjects.
_MIN_SUBJECTS = 6
#: Maximum number of windows per recording whose samples are read.
_MAX_READ_PER_RECORDING = 8
#: Approximate maximum number of windows, over all recordings, whose samples are read.
_MAX_READ = 2000


@dataclass(frozen=True, eq=False)
class StudyData:
    """Windows of a study, with tables of the recordings and of the labeled windows.

    Attributes
    ----------
    windows : Windows
        All windows, labeled and unlabeled. Their samples are read only when they are needed.
    recordings : DataFrame
        One row per recording: ``name``, ``subject``, ``corpus``, ``channels``, ``date``, ``file``,
        ``site``, and sampling rate, reference and channels before preprocessing
        (``recorded_sfreq``, ``recorded_reference`` and ``recorded_channels``). Unknown values are
        None.
    labeled : DataFrame
        One row per labeled window: ``window`` (index of the window in ``windows``), ``recording``,
        ``start`` (first sample in the recording, -1 if unknown), ``subject`` and ``class``.
    """

    windows: Windows
    recordings: pd.DataFrame
    labeled: pd.DataFrame

    @classmethod
    def of(cls, windows_ds: Any) -> Self:
        """Convert labeled windows from any source, without reading their samples.

        Parameters
        ----------
        windows_ds : BaseConcatDataset | StudyData
            Labeled windows, in any format that the estimators accept. Windows with the label -1
            are unlabeled, unless -1 has a class name.

        Returns
        -------
        StudyData
            The windows with their tables. A StudyData is returned unchanged.
        """
        if isinstance(windows_ds, cls):
            return windows_ds
        windows = convert.as_windows(windows_ds)
        parts = getattr(windows_ds, "datasets", ())
        recordings = confounds.properties_of_recordings(windows, parts)
        return cls(windows, recordings, confounds.labeled_windows(windows, recordings))

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, in the order of their labels."""
        return list(self.labeled["class"].cat.categories)

    @cached_property
    def by_subject(self) -> bool:
        """Whether at least 90 % of the labeled subjects have windows of one class only."""
        classes = self.labeled["class"]
        return classes.nunique() > 1 and labels.one_class_each(classes, self.labeled["subject"])

    @cached_property
    def sampled(self) -> pd.DataFrame:
        """Amplitudes of a selection of labeled windows.

        From each recording and class, windows at equal intervals are selected, and their samples
        are read. The table has one row per selected window, the columns of ``labeled``, and:

        - ``log_amplitude``: decimal logarithm of the amplitude of the window, which is the median
          standard deviation of its channels.
        - ``channel_log_amplitudes``: log amplitude of each channel of the window, as returned by
          :func:`~braindecode_pars.windows.amplitudes.log_amplitudes_of`.
        """
        chosen = []
        n_classes = self.labeled.groupby("recording")["class"].nunique()
        n_max = min(_MAX_READ_PER_RECORDING, _MAX_READ // max(1, len(n_classes)))
        for (recording, _), rows in self.labeled.groupby(["recording", "class"], observed=True):
            n = max(2, n_max // n_classes[recording])
            chosen.append(rows.iloc[np.unique(np.linspace(0, len(rows) - 1, n).astype(int))])
        rows = pd.concat(chosen) if chosen else self.labeled
        # Windows are read one at a time, so that only one window is in memory.
        of_channels = [amplitudes.log_amplitudes_of(self.windows[i]) for i in rows["window"]]
        log_amplitudes = [np.log10(pd.Series(10 ** values[0]).median()) for values in of_channels]
        return rows.assign(
            log_amplitude=np.array(log_amplitudes, float),
            channel_log_amplitudes=pd.Series(of_channels, rows.index, object),
        )


@dataclass(frozen=True, eq=False)
class DataCheck:
    """Result of :func:`check_data`: properties of the dataset, and findings.

    Attributes
    ----------
    facts : dict of str to str
        Properties of the dataset by name, such as the number of subjects, recordings and windows.
    classes : pandas.DataFrame
        One row per class: ``class`` (name), and ``windows``, ``recordings`` and ``subjects``
        (number of each).
    by_subject : bool
        Whether at least 90 % of the labeled subjects have windows of one class only, for example
        because the class is a diagnosis. If False, the classes vary within subjects.
    findings : list of Finding
        Findings in order of severity. Findings of level "stop", which prevent the study, are first,
        followed by findings of level "warning" and "note".
    """

    facts: dict[str, str]
    classes: pd.DataFrame
    by_subject: bool
    findings: list[Finding]

    @property
    def stops(self) -> list[str]:
        """Messages of the findings that prevent a study. Empty if the study can be run."""
        return [finding.text for finding in self.findings if finding.level == "stop"]


def check_data(windows_ds: Any, *, in_spite_of: Collection[str] = ()) -> DataCheck:
    """Check labeled windows for confounds, duplicates, unusual amplitudes and order effects.

    Only the samples of about eight windows per recording are read. The site and other properties of
    the recordings are checked if they are known. :func:`braindecode_pars.datasets.folder.load`
    stores these properties in the description of each recording.

    Parameters
    ----------
    windows_ds : BaseConcatDataset | StudyData
        Labeled windows, in any format that the estimators accept. Windows with the label -1 are
        unlabeled, unless -1 has a class name.
    in_spite_of : collection of str
        Kinds of findings that get the level "warning" instead of "stop". The only supported kind is
        "confounds": the classes are confounded with the site, corpus, sampling rate, reference or
        channels of the recordings.

    Returns
    -------
    DataCheck
        Properties of the dataset, and findings.

    Raises
    ------
    ValueError
        If ``in_spite_of`` contains an unknown kind, if there are no windows, or if a window
        contains NaN or infinite samples.

    Examples
    --------
    In all subjects, rest was recorded before arithmetic, so that the order of the recordings is a
    confound:

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
    data = StudyData.of(windows_ds)
    data.windows.check_not_empty()
    findings = [
        *_too_few(data),
        *confounds.confounded_properties(data.recordings, data.labeled, in_spite_of),
        *_copies(data),
        *_separating_amplitudes(data),
        *_implausible_amplitudes(data),
        *confounds.order_of_recordings(data.recordings, data.labeled),
        *confounds.order_within_recordings(data.labeled),
    ]
    if finding := labels.similar_classes(data.class_names):
        findings.append(finding)
    n_windows = len(data.windows)
    if n := n_windows - len(data.labeled):
        findings.append(Finding("unlabeled_windows", dict(n=n, n_windows=n_windows), "note"))
    findings.sort(key=lambda finding: ("stop", "warning", "note").index(finding.level))
    of_class = data.labeled.groupby("class", observed=False)[["window", "recording", "subject"]]
    classes = of_class.nunique().add_suffix("s").reset_index().astype({"class": object})
    return DataCheck(_facts(data), classes, data.by_subject, findings)


# Properties of the dataset ----------------------------------------------------------------------


def _facts(data: StudyData) -> dict[str, str]:
    windows, recordings = data.windows, data.recordings
    sfreq = windows.sfreq or np.nan
    seconds = windows[0].shape[1] / sfreq
    names = windows.montages[0].names
    channels = f"{len(names)}: {format_list(names)}"
    if recordings["channels"].nunique() > 1:
        channels = "differ between recordings"
    steps = windows.recordings["preprocessing"].dropna()
    log_amplitude = data.sampled["log_amplitude"].median()
    facts = {
        "subjects": str(recordings["subject"].nunique()),
        "labeled subjects": str(data.labeled["subject"].nunique()),
        "recordings": str(len(recordings)),
        "hours": f"{len(windows) * seconds / 3600:.3g}",
        "windows": f"{len(windows)} of {seconds:g} s",
        "sampling rate": f"{sfreq:g} Hz",
        "channels": channels,
        "reference": _counted(steps.map(_reference)),
        **{
            name: _counted(recordings[column].dropna().map(confounds.shown))
            for column, name in confounds.PROPERTIES.items()
            if not column.endswith("channels")
        },
        "amplitude": f"{1e6 * 10**log_amplitude:.3g} µV (median standard deviation)",
        "classes": "one per subject" if data.by_subject else "vary within subjects",
    }
    return {name: text for name, text in facts.items() if text and "nan" not in text.split()}


def _reference(step: Preprocessing) -> str | None:
    n = 0 if step.reference is None else len(step.reference.split(", "))
    return f"average of {n} channels" if n > 3 else step.reference


def _counted(values: pd.Series) -> str:
    """List the distinct values. If they differ, state the number of recordings with each value."""
    counts = values.value_counts()
    if len(counts) == 1:
        return str(counts.index[0])
    return format_list([f"{value} ({n} recordings)" for value, n in counts.items()], max_items=6)


# The checks -------------------------------------------------------------------------------------


def _too_few(data: StudyData) -> Iterator[Finding]:
    """Yield a finding that stops the study: too few classes or subjects, or unknown subjects."""
    labeled, names = data.labeled, data.class_names
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


def _copies(data: StudyData) -> Iterator[Finding]:
    """Yield findings about duplicate recordings."""
    pairs: dict[bool, list[str]] = {True: [], False: []}
    for numbers in duplicates.find_duplicates(data.windows):
        rows = data.recordings.loc[list(numbers)]
        pairs[rows["subject"].nunique() > 1].append(" and ".join(rows["name"]))
    if pairs[True]:
        yield Finding("copies_across_subjects", dict(pairs=pairs[True]), "stop")
    if pairs[False]:
        yield Finding("copies_within_subject", dict(pairs=pairs[False]))


def _separating_amplitudes(data: StudyData) -> Iterator[Finding]:
    """Yield findings about classes that can be distinguished by their amplitudes."""
    sampled = data.sampled.dropna(subset="log_amplitude")
    by_recording = sampled.groupby("recording")["log_amplitude"].median()
    if confounds.has_one_class_per_recording(data.labeled):
        log_amplitude = sampled.drop_duplicates("recording")["recording"].map(by_recording)
    else:  # relative to the median amplitude of the recording
        log_amplitude = sampled["log_amplitude"] - sampled["recording"].map(by_recording)
    for name in data.class_names:
        is_class = sampled["class"][log_amplitude.index] == name
        auc = confounds.auc_of_class(is_class, log_amplitude)
        if max(auc, 1 - auc) > confounds.SEPARATING_AUC:
            difference = log_amplitude[is_class].median() - log_amplitude[~is_class].median()
            direction = "larger" if auc > 0.5 else "smaller"
            values = dict(name=name, factor=10 ** abs(difference), direction=direction)
            yield Finding("separating_amplitude", values)
            if len(data.class_names) == 2:  # the finding about the other class would be the same
                return


def _implausible_amplitudes(data: StudyData) -> Iterator[Finding]:
    """Yield findings about amplitudes that indicate a wrong unit, and about outliers."""
    checked = amplitudes.evenly_spaced(len(data.windows), amplitudes.N_WINDOWS)
    scale = agreed(data.windows.recordings["preprocessing"].tolist()).scale
    if problem := amplitudes.amplitude_problem(data.windows[checked], scale):
        yield problem
    sampled = data.sampled.set_index("window")["channel_log_amplitudes"].to_dict()
    yield from amplitudes.find_outliers(data.windows, sampled)
