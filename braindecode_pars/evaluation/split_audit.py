"""Audit of a training/test split: shared subjects, recordings and samples, and confounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from torch.utils.data import ConcatDataset

from braindecode_pars._common import subjects, tables
from braindecode_pars._common.findings import Finding
from braindecode_pars.evaluation import confounds
from braindecode_pars.windows import Windows, convert, duplicates, table

#: Required columns of a table of windows.
COLUMNS = ("recording", "start", "stop", "subject")
#: P-values below which a finding is reported. The limit for confounds is lower, because the
#: p-values of the chi-squared test are too small if there are only a few subjects.
ALPHA = {confounds.CONFOUNDS: 0.001, "order_of_recordings": 0.01, "class_by_recording": 0.01}
#: Decimal places to which times are rounded, so that rounding errors do not count as overlap.
DECIMALS = 6


@dataclass(frozen=True, eq=False)
class SplitAudit:
    """Result of :func:`audit_split`: findings about a split, and a verdict.

    ``print`` shows the verdict and one line per finding.

    Attributes
    ----------
    findings : list of Finding
        All findings: first the findings of the level "leak", then of the level "warning".
    verdict : str
        One sentence that says whether a leak was found, and which properties could not be checked.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import audit_split
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=1))
    >>> audit_split(X[::2], X[1::2]).has_leak  # windows of the same recordings in both sets
    True
    """

    findings: list[Finding]
    verdict: str

    @property
    def has_leak(self) -> bool:
        """Whether a leak was found: test windows that are related to training windows."""
        return any(finding.level == "leak" for finding in self.findings)

    @property
    def table(self) -> pd.DataFrame:
        """One row per finding: ``level``, ``kind`` and ``text``."""
        rows = [(finding.level, finding.kind, finding.text) for finding in self.findings]
        return pd.DataFrame(rows, columns=["level", "kind", "text"])

    def __str__(self) -> str:
        lines = [f"{finding.level.capitalize()}: {finding.text}" for finding in self.findings]
        return "\n".join([self.verdict, *lines])


def audit_split(train: Any, test: Any) -> SplitAudit:
    """Audit a training/test split: shared subjects, recordings and samples, and confounds.

    Use this function for a split that other code created, before training or before you compare
    scores. It is not required for :func:`~braindecode_pars.evaluation.evaluate`, which checks its
    own splits.

    Parameters
    ----------
    train, test : windows dataset | tuple | DataFrame
        Training and test windows, both in the same form:

        - a windows dataset, or any other windows that the estimators accept, with ``subject`` in
          the descriptions of the recordings;
        - a tuple of arrays, ``(X, y, groups)`` or ``(X, y)``: ``X`` has the shape (n_windows,
          n_chans, n_times), and ``groups`` contains the subject of each window;
        - a table with one row per window and the columns ``recording``, ``start``, ``stop`` and
          ``subject``. Recordings of different subjects count as different recordings, even if they
          have the same name. Times can be in any unit, which must be the same in both tables.
          Optional columns: ``label``, ``corpus``, ``site`` and ``channels`` of the window;
          ``recorded_sfreq``, ``recorded_reference`` and ``recorded_channels`` of the original file;
          and ``date``, a number or a date in the form YYYY-MM-DD, by which the recordings of a
          subject are sorted.

    Returns
    -------
    SplitAudit
        Result with the attributes ``findings`` (list), ``table`` (the findings as a DataFrame),
        ``verdict`` (one sentence that summarizes the findings) and ``has_leak`` (whether there is a
        leak).

    Raises
    ------
    TypeError
        If only one of ``train`` and ``test`` is a table, or a time in a table is not a number.
    ValueError
        If a required column or the recording of a window is missing. If a window does not end after
        it starts. If there are no windows. If training and test windows have different sampling
        rates.

    Notes
    -----
    Findings of the level *leak* mean that test windows are related to training windows:

    - ``shared_subjects``: a subject is in both training and test data, possibly with a different
      spelling of the name, such as S07 and 7.
    - ``shared_recordings``: a recording is in both training and test data.
    - ``overlapping_windows``: a training and a test window of a recording overlap in time.
    - ``copied_recordings``: a training and a test recording have the same signals.
    - ``copied_windows``: a training and a test window contain the same samples, possibly shifted.
    - ``class_by_recording``: each recording has windows of one class only, and some recordings are
      in both training and test data, so recognizing the recording is enough to predict the class.

    Findings of the level *warning* mean that scores may have a cause other than brain activity:

    - ``confounds``: the class is confounded with the channels, site, sampling rate, reference or
      corpus.
    - ``order_of_recordings``: the classes were recorded in the same order, by date, in all
      subjects.
    - ``order_within_recordings``: a class occurs early, or late, in most recordings.

    False alarms are unlikely. Recordings and times must match exactly, and names of subjects must
    match except for their spelling. In splits by subject of three datasets (76 subjects), the
    comparison of signals found no copies. A confound with a property of recordings is reported if
    it is strong and significant. It is strong if the property identifies the class with a balanced
    accuracy of at least 0.9, or if Cramér's V is above 0.5. It is significant if p < 0.001 in a
    chi-squared test over subjects. ``class_by_recording`` and ``order_of_recordings`` are reported
    if they would occur with a probability below 0.01 if the classes were in random order.
    ``order_within_recordings`` is reported if there are at least three recordings, and a class is
    earlier, or later, than the other classes in at least 90 % of them. If windows were in random
    order, this would occur with a probability of at most 1 %. In simulations with random classes,
    sites and dates, no finding had a false alarm rate significantly above 1 %.

    Limits:

    - ``class_by_recording`` is not reported if no recording is shared, as in a design with one
      recording of rest and one recording of a task for each subject.
    - In tables, copies are not found, because tables contain no signals. Write the name of a
      recording the same way in all rows: 'a.edf' and 'a' count as two recordings.
    - Subjects with the same name in two corpora are treated as the same subject; prefix their names
      with the corpus, for example 'tueg:S01'.
    - In arrays, only shared subjects and shared samples are found, because arrays contain neither
      recordings nor times.
    - A recording that was divided between training and test data is not found if the two parts have
      no common samples and different subject names.
    - Copies of complete recordings are found even if filters, reference or sampling rate were
      changed, but not if the copy was stretched in time.
    - Copies of windows are found if they have the same channels in the same order. They may differ
      by a factor, an offset and rounding to single precision. Copies that share fewer than about
      130 samples may not be found.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import LeaveOneSubjectOut, audit_split
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=1))
    >>> # The first window is a test window, and all other windows are training windows:
    >>> print(audit_split(X[1:], X[:1]).table[["level", "kind"]].to_string(index=False))
    level              kind
     leak   shared_subjects
     leak shared_recordings

    A split by subject has no leak. The printed verdict, which is shortened here, ends with the
    properties that are unknown, and therefore not checked:

    >>> train, test = next(LeaveOneSubjectOut().split(X, y, groups))
    >>> print(audit_split(X[train], X[test]))  # doctest: +ELLIPSIS
    No leak was found between 48 training and 24 test windows (unknown, and ...
    """
    is_table = isinstance(train, pd.DataFrame)
    if is_table != isinstance(test, pd.DataFrame):
        raise TypeError("train and test must both be tables, or both be windows with signals.")
    windows, signals = (_of_tables if is_table else _of_windows)(train, test)
    keys = windows["subject"].map(subjects.subject_key, na_action="ignore")
    same = [windows["recording"].to_numpy(object), keys.to_numpy(object)]
    windows["recording"] = table.factorize_rows(same)[0]
    findings = [*_leaks(windows, signals), *_confounds(windows)]
    return SplitAudit(findings, _verdict(windows, findings, has_signals=signals is not None))


def _verdict(windows: pd.DataFrame, findings: list[Finding], has_signals: bool) -> str:
    """Return one sentence that says whether a leak was found, and which properties are unknown."""
    n_test = int(windows["is_test"].sum())
    n_leaks = max((f.values["n"] for f in findings if f.level == "leak"), default=0)
    text = f"No leak was found between {len(windows) - n_test} training and {n_test} test windows"
    if n_leaks:
        text = f"Leak: at least {n_leaks} of {n_test} test windows are related to training windows"
    properties = windows[["start", "class", "subject", *confounds.PROPERTIES, "date"]].isna().any()
    unknown = [*([] if has_signals else ["signals"]), *properties.index[properties]]
    return f"{text} (unknown, and therefore not checked: {', '.join(unknown) or 'none'})."


# The tables -------------------------------------------------------------------------------------


def _of_tables(train: Any, test: Any) -> tuple[pd.DataFrame, Windows | None]:
    """Return a table of windows with the properties of their recordings."""
    for name, side in (("train", train), ("test", test)):
        tables.check_table(side, name, COLUMNS)
    rows = tables.with_numbers(pd.concat([train, test], ignore_index=True), ["start", "stop"])
    columns = ["recording", "subject", "label", *confounds.PROPERTIES]
    texts = rows.reindex(columns=columns).map(tables.label_text)
    texts = texts.where(texts != "", None)
    if not (texts["recording"].notna() & (rows["stop"] > rows["start"])).all():
        raise ValueError(
            "Each row of train and test must have a 'recording', and 'stop' must be above 'start'."
        )
    texts["class"] = texts["label"].where(texts["label"] != "-1").astype("category")
    texts = texts.assign(name=texts["recording"], date=rows.get("date"), file=None)
    return texts.assign(is_test=rows.index >= len(train)).join(rows[["start", "stop"]]), None


def _of_windows(train: Any, test: Any) -> tuple[pd.DataFrame, Windows | None]:
    """Return a table of windows with the properties of their recordings, and the windows."""
    inputs = [side if isinstance(side, tuple) else (side,) for side in (train, test)]
    sides: list[Any] = [convert.as_windows(*side) for side in inputs]
    for side in sides:
        side.check_not_empty()
    signals = convert.as_windows(ConcatDataset(sides))
    parts = [part for X, *_ in inputs for part in getattr(X, "datasets", [X])]
    recordings = confounds.properties_of_recordings(signals, parts)
    times = signals.table[["start", "stop"]]
    times = times.where(times >= 0) / (signals.sfreq or 1)
    # Two recordings with known times are the same recording if they have the same source.
    sources = zip(map(id, signals.column("reader")), signals.column("base"), strict=True)
    number = signals.table["recording"]
    windows = recordings.loc[number].reset_index(drop=True).join(times)
    windows["recording"] = number.where(times["start"].isna(), table.objects([*sources]))
    windows["class"] = confounds.labeled_windows(signals, recordings)["class"]
    return windows.assign(is_test=np.arange(len(signals)) >= len(sides[0])), signals


# The checks -------------------------------------------------------------------------------------


def _leaks(windows: pd.DataFrame, signals: Windows | None) -> Iterator[Finding]:
    """Yield a finding for each kind of leak, with the number and names of affected test windows."""
    is_test, subject, recording = (windows[c] for c in ("is_test", "subject", "recording"))
    seen = subjects.SubjectKeys(subject[~is_test].dropna().unique())
    shared = [name for name in subject.dropna().unique() if name in seen]
    is_shared, is_overlap = recording.isin(recording[~is_test]), _overlaps(windows)
    times = windows["start"].map(" at {:g}".format)
    # Kind of leak -> text of each window with this leak, such as the name of its recording
    leaks = {
        "shared_subjects": subject.where(subject.isin(shared)),
        "shared_recordings": windows["name"].where(is_shared),
        "overlapping_windows": (windows["name"] + times).where(is_overlap),
    }
    if signals is not None:
        leaks |= _copies(windows, signals, is_overlap)
    if _has_one_class_per_recording(windows):
        classes = windows["name"] + ": " + windows["class"].astype(object)
        leaks["class_by_recording"] = classes.where(is_shared)
    for kind, texts in leaks.items():
        texts_of_leak = texts[is_test].dropna()
        counts = dict(n=len(texts_of_leak), n_windows=int(is_test.sum()))
        if counts["n"]:
            yield Finding(kind, counts | {"names": [*texts_of_leak.unique()]}, "leak")


def _has_one_class_per_recording(windows: pd.DataFrame) -> bool:
    """Return whether each recording has one class only, and this is unlikely by chance."""
    labeled = windows.dropna(subset=["class", "start"])
    shares = windows["class"].value_counts(normalize=True)
    # Probability that all windows of each recording have the same class, if classes are random
    p = labeled.groupby("recording").size().map(lambda n: (shares**n).sum()).prod()
    return p < ALPHA["class_by_recording"] and confounds.has_one_class_per_recording(labeled)


def _confounds(windows: pd.DataFrame) -> Iterator[Finding]:
    """Yield findings for properties and times with which the class is confounded."""
    labeled = windows.dropna(subset="class")
    recordings = windows.groupby("recording").first()
    for finding in (
        *confounds.confounded_properties(recordings, labeled, (confounds.CONFOUNDS,)),
        *confounds.order_of_recordings(recordings, labeled),
        # A window that is in both training and test data counts once.
        *confounds.order_within_recordings(labeled.drop_duplicates(["recording", "start"])),
    ):
        is_by_date = finding.values.get("sources", [confounds.BY_DATE]) == [confounds.BY_DATE]
        if is_by_date and finding.values.get("p", 0) < ALPHA.get(finding.kind, 1):
            yield finding


def _overlaps(windows: pd.DataFrame) -> pd.Series:
    """Return whether a test window overlaps in time with a training window of its recording."""
    rows = windows[["recording", "start", "stop", "is_test"]].dropna().round(DECIMALS)
    train = rows[~rows["is_test"]].sort_values("start")
    latest = train[["recording", "start"]].assign(end=train.groupby("recording")["stop"].cummax())
    test = rows[rows["is_test"]].rename(columns={"start": "begin"}).sort_values("stop")
    # For each test window: the latest end of the training windows that begin before it ends
    options: Any = dict(left_on="stop", right_on="start", allow_exact_matches=False)
    matched = pd.merge_asof(test, latest, by="recording", **options).set_index(test.index)
    return (matched["end"] > matched["begin"]).reindex(windows.index, fill_value=False)


def _copies(windows: pd.DataFrame, signals: Windows, is_overlap: pd.Series) -> dict[str, pd.Series]:
    """Return the text of each test window whose recording or samples are copies."""
    numbers = signals.table["recording"]
    first, copies = windows.groupby(numbers).first(), {}
    for pair in duplicates.find_duplicates(signals):
        rows = first.loc[[*pair]]
        if rows["is_test"].nunique() == rows["recording"].nunique() == 2:
            copies[pair[1]] = " and ".join(rows["name"])
    n_train = int((~windows["is_test"]).sum())
    has_shared_samples = windows.index.isin(duplicates.find_shared_samples(signals, n_train))
    is_new = has_shared_samples & ~is_overlap & ~numbers.isin(copies)
    texts = pd.Series([f"test window {row - n_train}" for row in windows.index]).where(is_new)
    return {"copied_recordings": numbers.map(copies), "copied_windows": texts}
