"""Audit of a training/test split: shared subjects, recordings and samples, and confounds."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import factorial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch.utils.data import ConcatDataset

from braindecode_pars._common import subjects, tables
from braindecode_pars._common.findings import Finding
from braindecode_pars.evaluation import confounds
from braindecode_pars.windows import Windows, convert, duplicates, labels, table

#: Severity of findings, in the order of the table.
LEVELS = ("leak", "warning", "note")
#: Required columns of a table of windows.
COLUMNS = ("recording", "start", "stop", "subject")
#: Maximum p-value of a confound with the recording or the order of recordings.
ALPHA = 0.01
#: Maximum p-value of the chi-squared test of a confound with a property of recordings. Its
#: approximation is liberal for few subjects.
ALPHA_PROPERTY = 0.001
#: Overlap in time that is ignored because of rounding errors, as a fraction of a window.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class SplitAudit:
    """Result of :func:`audit_split`. As a string: the verdict, and one line per finding.

    Attributes
    ----------
    findings : list of Finding
        Findings in order of severity: level "leak", "warning" or "note".
    n_train, n_test : int
        Number of training and test windows.
    unchecked : list of str
        What could not be checked.
    n_related : int
        Number of test windows in at least one leak.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import audit_split
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=1))
    >>> audit_split(X[::2], X[1::2]).has_leak
    True
    """

    findings: list[Finding]
    n_train: int
    n_test: int
    unchecked: list[str]
    n_related: int

    @property
    def has_leak(self) -> bool:
        """Whether test windows are related to training windows."""
        return any(finding.level == "leak" for finding in self.findings)

    @property
    def table(self) -> pd.DataFrame:
        """One row per finding: ``level``, ``kind``, ``n``, ``example`` and all ``values``."""
        rows = [
            (f.level, f.kind, f.values["n"], f.values["names"][0], f.values) for f in self.findings
        ]
        return pd.DataFrame(rows, columns=["level", "kind", "n", "example", "values"])

    @property
    def verdict(self) -> str:
        """One sentence: whether there is a leak, and what was not checked."""
        values = dict(
            n=self.n_related,
            n_train=self.n_train,
            n_test=self.n_test,
            n_warnings=sum(finding.level == "warning" for finding in self.findings),
            names=self.unchecked or ["nothing"],
        )
        return Finding("split_with_leak" if self.has_leak else "split_without_leak", values).text

    def __str__(self) -> str:
        lines = [f"{finding.level.capitalize()}: {finding.text}" for finding in self.findings]
        return "\n".join([self.verdict, *lines])


class _Split(NamedTuple):
    """Training and test windows.

    Attributes
    ----------
    windows : DataFrame
        One row per window: ``is_test``, ``recording`` (row in ``recordings``; equal in training and
        test data if the recording is the same), ``start``, ``stop``, ``subject``, ``class``, and
        ``is_related``, which :meth:`leak` sets.
    recordings : DataFrame
        Properties of each recording, as in ``confounds.properties_of_recordings``.
    signals : Windows | None
        The windows; None for tables.
    """

    windows: pd.DataFrame
    recordings: pd.DataFrame
    signals: Windows | None = None

    def leak(self, kind: str, is_related: pd.Series, names: list[str]) -> Finding:
        """Return a leak with the number of related test windows, and the names of examples."""
        self.windows.loc[is_related.index[is_related], "is_related"] = True
        counts = dict(n=int(is_related.sum()), n_windows=int(self.windows["is_test"].sum()))
        return Finding(kind, counts | {"names": names}, "leak")


def audit_split(train: Any, test: Any) -> SplitAudit:
    """Audit a training/test split: shared subjects, recordings and samples, and confounds.

    Use it for a split that other code created: before training, or before you compare scores.
    :func:`~braindecode_pars.evaluation.evaluate` checks its splits itself.

    Parameters
    ----------
    train, test : windows dataset | tuple | DataFrame
        Training and test windows, both in the same form:

        - windows dataset, or any other source of windows that the estimators accept, with
          ``subject`` in the descriptions;
        - arrays ``(X, y, groups)`` or ``(X, y)``, where ``X`` has shape (n_windows, n_chans,
          n_times) and ``groups`` contains the subjects;
        - tables with one row per window and the columns ``recording``, ``start``, ``stop`` and
          ``subject``. Recordings of different subjects are different, even if their names are
          equal. Times may be in any unit that is the same in both tables. Optional columns:
          ``label``; ``corpus``, which distinguishes subjects with the same name; ``site``,
          ``channels``, ``recorded_sfreq``, ``recorded_reference`` and ``recorded_channels``; and
          ``date``, which sorts the recordings of a subject: numbers, or dates with the year or
          the month first.

    Returns
    -------
    SplitAudit
        Findings as a table, and the verdict as a sentence.

    Raises
    ------
    TypeError
        If only one of ``train`` and ``test`` is a table, or a time in a table is not a number.
    ValueError
        If a table has a missing column or value, or a window does not end after its start; if there
        are no windows; or if sampling rates differ.

    Notes
    -----
    Levels of findings, and their kinds:

    - *leak*: test windows are related to training windows. ``shared_subjects``: a subject is in
      both training and test data, under the same name or another spelling, such as S07 and 7.
      ``shared_recordings``: a recording is in both. ``overlapping_windows``: a training and a test
      window of a recording overlap in time. ``copied_recordings``: a training and a test recording
      have the same signals. ``copied_windows``: a training and a test window contain the same
      samples, possibly shifted. ``class_by_shared_recording``: each recording has one class, and
      recordings are in both training and test data.
    - *warning*: a score may have a cause other than brain activity. ``confounds``: the class varies
      with the channels, site, sampling rate, reference or corpus. ``order_of_recordings``: the
      class varies with the date of the recordings. ``order_within_recordings``: the class varies
      with time within recordings.
    - *note*: a property of the design. ``class_by_recording``: each recording has one class, but
      subjects have several classes, for example one recording of rest and one recording of a task.

    False alarms: names, recordings and times are compared exactly. Three datasets (76 subjects)
    were split by subject, and the comparison of signals found no copies. A confound with a property
    of recordings is reported if it is strong (the property identifies the class with a balanced
    accuracy of at least 0.9, or Cramér's V is above 0.5) and significant (p < 0.001 in a
    chi-squared test over subjects). The class by recording and the order of recordings are reported
    if they have a probability below 0.01 when classes are in random order. With at least three
    recordings, the order within recordings is reported if a class is earlier, or later, than the
    other classes in at least 90 % of the recordings. This has a probability of at most 1 % if the
    order of windows is random. In simulations with random classes, sites and dates, no finding had
    a false alarm rate significantly above 1 %.

    Limits: a table has no signals, so copies are not found. An array has neither recordings nor
    times, so only shared subjects and shared samples are found. Two parts of one recording are not
    found if they have no common samples and different subject names. Copies of complete recordings
    are found even if filters, reference or sampling rate differ; copies of windows are found only
    if they differ by no more than a factor and an offset. In each window, only the first channel
    that is not flat is compared, so copies with another order of channels are not found. Windows
    that share fewer than about 130 samples may not be found by their signals. Copies of a recording
    at another speed are not found.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import LeaveOneSubjectOut, audit_split
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=1))
    >>> print(audit_split(X[1:], X[:1]).table[["level", "kind", "n"]].to_string(index=False))
    level              kind  n
     leak   shared_subjects  1
     leak shared_recordings  1
    >>> train, test = next(LeaveOneSubjectOut().split(X, y, groups))
    >>> print(audit_split(X[train], X[test]))  # doctest: +ELLIPSIS
    No leak was found between 48 training windows and 24 test windows (0 warnings; ...
    """
    is_table = {isinstance(side, pd.DataFrame) for side in (train, test)}
    if len(is_table) > 1:
        raise TypeError(
            f"train is a {type(train).__name__} and test is a {type(test).__name__}. Pass two "
            "tables of windows, or two sources of windows with signals."
        )
    split = _of_tables(train, test) if is_table == {True} else _of_windows(train, test)
    windows = split.windows
    windows["is_related"] = False
    findings = [*_shared_subjects(split), *_shared_recordings(split), *_confounds(split)]
    if split.signals is not None:
        findings += _copies(split, split.signals)
    findings.sort(key=lambda finding: LEVELS.index(finding.level))
    properties = confounds.unknown_properties(split.recordings)
    has_classes = windows["class"].nunique() > 1
    unknown = {
        "copies, because tables have no signals": split.signals is None,
        "windows with unknown subjects": windows["subject"].isna().any(),
        "windows with unknown recordings and times": (windows["start"] < 0).any(),
        "confounds, because windows have fewer than two classes": not has_classes,
        f"confounds with unknown properties ({', '.join(properties)})": has_classes and properties,
    }
    n_test = int(windows["is_test"].sum())
    unchecked = [text for text, is_unknown in unknown.items() if is_unknown]
    n_related = int(windows["is_related"].sum())
    return SplitAudit(findings, len(windows) - n_test, n_test, unchecked, n_related)


# The tables -------------------------------------------------------------------------------------


def _of_tables(train: pd.DataFrame, test: pd.DataFrame) -> _Split:
    for name, side in (("train", train), ("test", test)):
        tables.check_table(side, name, COLUMNS)
    rows = pd.concat({"train": train.reset_index(drop=True), "test": test.reset_index(drop=True)})
    rows = tables.with_numbers(rows, ["start", "stop"])
    columns = ["recording", "subject", "label", "file", "date", *confounds.PROPERTIES]
    texts = rows.reindex(columns=columns).map(tables.label_text)
    texts = texts.where(texts != "", None)
    is_valid = texts["recording"].notna() & (rows["stop"] > rows["start"]) & (rows["start"] >= 0)
    if not is_valid.all():
        side, row = is_valid.idxmin()
        values = rows.loc[(side, row), [*COLUMNS]].to_dict()
        raise ValueError(
            f"{(~is_valid).sum()} windows have no recording, a start that is missing or negative, "
            f"or a stop that is missing or not after the start. The first is row {row} of {side}: "
            f"{values}. Correct or remove these rows."
        )
    names = texts["subject"].where(table.is_name(texts["subject"].to_numpy()), None)
    if texts["corpus"].nunique(dropna=False) > 1:  # as in Windows
        is_known = names.notna() & texts["corpus"].notna()
        names[is_known] = [*map(subjects.in_corpus, texts["corpus"][is_known], names[is_known])]
    files = texts["recording"].str.casefold().map(subjects.without_ending)
    texts["date"] = _dates(texts["date"])
    windows = rows[["start", "stop"]].assign(
        is_test=rows.index.get_level_values(0) == "test",
        recording=table.factorize_rows([files, names.map(subjects.subject_key)])[0],
        subject=names,
        **{"class": texts["label"].where(texts["label"] != "-1").astype("category")},
    )
    recordings = texts.assign(name=texts["recording"]).groupby(windows["recording"]).first()
    return _Split(windows.reset_index(drop=True), recordings)


def _dates(texts: pd.Series) -> pd.Series:
    """Return numbers or dates, which can be sorted; None if the format of dates is unknown."""
    numbers = pd.to_numeric(texts, errors="coerce")
    if (numbers.isna() == texts.isna()).all():
        return numbers
    try:
        with warnings.catch_warnings(action="ignore"):  # of dates with the day first
            return pd.to_datetime(texts, utc=True)
    except ValueError:
        return pd.Series(None, texts.index, dtype=object)


def _of_windows(train: Any, test: Any) -> _Split:
    inputs = [side if isinstance(side, tuple) else (side,) for side in (train, test)]
    sides: list[Any] = [convert.as_windows(*side) for side in inputs]
    for side in sides:
        side.check_not_empty()
    signals = convert.as_windows(ConcatDataset(sides))
    parts: Any = ConcatDataset([part for X, *_ in inputs for part in getattr(X, "datasets", [X])])
    recordings = confounds.properties_of_recordings(signals, parts)
    # Recordings with times are the same if their source and their subject are the same.
    has_times = signals.table.groupby("recording")["start"].min() >= 0
    keys = table.objects([reader.key for reader in signals.recordings["reader"]])
    rows = np.where(has_times, -1, np.arange(len(keys)))
    same, first = table.factorize_rows(
        [keys, signals.recordings["base"], recordings["subject"], rows]
    )
    times = signals.table[["start", "stop"]] / (signals.sfreq or 1)
    windows = times.assign(
        is_test=np.arange(len(signals)) >= len(sides[0]),
        recording=same[signals.table["recording"]],
        subject=recordings["subject"].to_numpy()[signals.table["recording"]],
        **{"class": confounds.labeled_windows(signals, recordings)["class"]},
    )
    return _Split(windows, recordings.iloc[first].reset_index(drop=True), signals)


# The checks -------------------------------------------------------------------------------------


def _shared_subjects(split: _Split) -> Iterator[Finding]:
    """Yield a leak if a subject is on both sides, by the keys of the names."""
    is_test, names = split.windows["is_test"], split.windows["subject"]
    seen = subjects.SubjectKeys(names[~is_test].dropna().unique())
    shared = [name for name in names[is_test].dropna().unique() if name in seen]
    if shared:
        yield split.leak("shared_subjects", is_test & names.isin(shared), [*map(str, shared)])


def _shared_recordings(split: _Split) -> Iterator[Finding]:
    """Yield leaks for recordings on both sides, and for windows that overlap in time."""
    windows, names = split.windows, split.recordings["name"]
    is_test, recordings = windows["is_test"], windows["recording"]
    is_shared = is_test & recordings.isin(recordings[~is_test])
    if is_shared.any():
        shared = names[recordings[is_shared].unique()].tolist()
        yield split.leak("shared_recordings", is_shared, shared)
    overlaps = _overlaps(windows)
    if overlaps.any():
        rows = windows[overlaps]
        times = rows["start"].map("{:g}".format) + " to " + rows["stop"].map("{:g}".format)
        places = rows["recording"].map(names) + ", " + times
        yield split.leak("overlapping_windows", overlaps, places.tolist())


def _overlaps(windows: pd.DataFrame) -> pd.Series:
    """Return whether a test window overlaps in time with a training window of its recording."""
    overlaps = pd.Series(False, windows.index)
    for _, rows in windows[windows["start"] >= 0].groupby("recording"):
        train, test = rows[~rows["is_test"]].sort_values("start"), rows[rows["is_test"]]
        tolerance = ROUNDING * (test["stop"] - test["start"])
        # Number of training windows that begin before the test window ends, and their latest end
        n_before = np.searchsorted(train["start"], test["stop"] - tolerance)
        latest = np.concatenate([[-np.inf], np.maximum.accumulate(train["stop"])])[n_before]
        overlaps[test.index] = latest > test["start"] + tolerance
    return overlaps


def _copies(split: _Split, signals: Windows) -> Iterator[Finding]:
    """Yield leaks for copied recordings, and for windows with the same samples."""
    windows, names = split.windows, split.recordings["name"]
    is_test, numbers = windows["is_test"], signals.table["recording"]
    recordings, of_test = (
        windows[name].groupby(numbers).first() for name in ("recording", "is_test")
    )
    copies = [
        (train, test)
        for train, test in duplicates.find_duplicates(signals)
        if of_test[train] != of_test[test] and recordings[train] != recordings[test]
    ]
    is_copy = numbers.isin([test for _, test in copies])
    if copies:
        pairs = [f"{names[recordings[a]]} and {names[recordings[b]]}" for a, b in copies]
        yield split.leak("copied_recordings", is_copy, pairs)
    shared = duplicates.find_shared_samples(signals, is_test.to_numpy())
    is_new = windows.index.isin([*shared]) & ~is_copy & ~_overlaps(windows)
    if is_new.any():
        n_train = (~is_test).sum()
        pairs = [
            f"training window {train} and test window {row - n_train}, shifted by {shift} samples"
            for row, (train, shift) in shared.items()
            if is_new[row]
        ]
        yield split.leak("copied_windows", is_new, pairs)


def _confounds(split: _Split) -> Iterator[Finding]:
    """Yield properties, recordings and times that classes are confounded with."""
    labeled, properties = split.windows.dropna(subset="class"), (confounds.CONFOUNDS,)
    findings = [
        *confounds.confounded_properties(split.recordings, labeled, properties),
        *confounds.order_of_recordings(split.recordings, labeled),
        # A window that is on both sides counts once.
        *confounds.order_within_recordings(labeled.drop_duplicates(["recording", "start"])),
    ]
    yield from _class_by_recording(split, labeled[labeled["start"] >= 0])
    for finding in findings:
        match finding.values:
            case {"p": p, "property": name, "counts": counts} if p < ALPHA_PROPERTY:
                extra = dict(n=sum(n for _, row in counts for n in row.values()), names=[name])
            case {"n_subjects": n, "classes": names, "sources": [confounds.BY_DATE]} if (
                factorial(len(names)) ** (1 - n) < ALPHA
            ):
                extra = dict(n=n, names=names)
            case {"n": n, "name": name}:
                extra = dict(n=n, names=[name])
            case _:
                continue
        yield replace(finding, values={**finding.values, **extra})


def _class_by_recording(split: _Split, labeled: pd.DataFrame) -> Iterator[Finding]:
    """Yield a finding if each recording has one class, and recordings or subjects are shared."""
    groups = labeled.groupby("recording")
    shares = labeled["class"].value_counts(normalize=True).to_numpy()
    # Probability that all windows of each recording have the same class, if classes are random
    p = np.prod((shares[:, None] ** groups.size().to_numpy()).sum(axis=0))
    if p >= ALPHA or not confounds.has_one_class_per_recording(labeled):
        return
    of_recording = groups["class"].first().astype(str)
    classes = split.recordings["name"][of_recording.index] + ": " + of_recording
    is_related = labeled["is_test"] & (groups["is_test"].transform("nunique") == 2)
    if is_related.any():
        leak = split.leak("class_by_shared_recording", is_related, classes.tolist())
        yield replace(leak, values={**leak.values, "n_recordings": len(classes)})
    elif not labels.one_class_each(labeled["class"], labeled["subject"]):
        values = dict(n=len(classes), names=classes.tolist())
        yield Finding("class_by_recording", values, "note")
