"""Find classes that are confounded with properties of recordings or with temporal order.

These functions are used in the data check of a study and in the audit of a split. They evaluate
tables of recordings and of labeled windows, and do not read samples.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from math import factorial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.stats import contingency

from braindecode_pars._common.findings import Finding
from braindecode_pars.windows import Windows, labels, table

#: AUC above which a single variable is considered to separate two classes.
SEPARATING_AUC = 0.95
#: Balanced accuracy at or above which a property of the recordings alone is considered to identify
#: the classes.
CONFOUNDED = 0.9
#: Kind of finding that does not stop a study if it is listed in ``in_spite_of``.
CONFOUNDS = "confounds"
#: Properties of recordings that may be confounded with the classes, with their names in messages.
PROPERTIES = {
    "site": "site",
    "recorded_sfreq": "recorded sampling rate",
    "recorded_reference": "recorded reference",
    "channels": "set of channels",
    "recorded_channels": "set of channels in the files",
    "corpus": "corpus",
}
#: Name of the order by recording date, in messages.
BY_DATE = "recording dates"
#: Columns by which recordings are ordered, with their names in messages.
_ORDERS = {"date": BY_DATE, "file": "file names", None: "order in the dataset"}
#: Optional properties in the description of a recording.
_DESCRIBED = ["file", "site", "recorded_sfreq", "recorded_reference", "recorded_channels"]


def properties_of_recordings(windows: Windows, parts: Sequence[Any] = ()) -> pd.DataFrame:
    """Return a table of the properties of recordings, such as site and channels.

    There is one row per recording; unknown values are None. The properties are read from ``parts``,
    the datasets of the recordings. If ``parts`` lacks the dataset of any recording, all properties
    are read from the datasets from which ``windows`` was created, as far as these are known.
    """
    rows = windows.recordings
    parts = [part for part in parts if len(part)]  # as in the table of Windows
    if len(parts) != len(rows) or not all(hasattr(part, "description") for part in parts):
        parts = [getattr(reader, "source", None) for reader in rows["reader"]]
    known = [getattr(part, "description", None) for part in parts]
    recordings = pd.DataFrame([{} if d is None else dict(d) for d in known], rows.index)
    infos = [getattr(getattr(part, "raw", None), "info", {}) for part in parts]
    recordings = recordings.reindex(columns=_DESCRIBED).assign(
        subject=rows["subject"].where(table.is_name(rows["subject"].to_numpy())),
        corpus=rows["corpus"],
        channels=[", ".join(sorted(montage.names)) or None for montage in rows["channels"]],
        date=[info.get("meas_date") for info in infos],
    )
    recordings = recordings.astype(object).where(recordings.notna(), None)
    numbers = [f"recording {i + 1} (subject {s})" for i, s in enumerate(recordings["subject"])]
    return recordings.assign(name=recordings["file"].where(recordings["file"].notna(), numbers))


def labeled_windows(windows: Windows, recordings: pd.DataFrame) -> pd.DataFrame:
    """Return a table of the labeled windows: recording, start, subject, window index and class."""
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


def has_one_class_per_recording(labeled: pd.DataFrame) -> bool:
    """Return whether every labeled recording has one class."""
    return bool((labeled.groupby("recording")["class"].nunique() == 1).all())


def shown(value: Any) -> str:
    """Format the value of a property of a recording; a number is a sampling rate in Hz."""
    return f"{value:g} Hz" if isinstance(value, float) else str(value)


def confounded_properties(
    recordings: pd.DataFrame, labeled: pd.DataFrame, in_spite_of: Collection[str]
) -> Iterator[Finding]:
    """Yield a finding for each property of recordings with which the classes are confounded.

    A finding has the level "stop" if the property alone identifies the classes (balanced accuracy
    of at least 0.9), and otherwise the level "warning". If ``in_spite_of`` contains "confounds",
    all findings are warnings.
    """
    # Channels of each recording that are not shared by all recordings
    sets = recordings["recorded_channels"].dropna().str.split(", ").map(set)
    shared = set.intersection(*sets) if len(sets) else set()
    further = sets.map(lambda channels: ", ".join(sorted(channels - shared)))
    further = further.map(lambda text: f"with {text}" if text else "shared channels only")
    recordings = recordings.assign(recorded_channels=further.reindex(recordings.index))
    for column, property_name in PROPERTIES.items():
        values = recordings[column].reindex(labeled["recording"]).to_numpy()
        table = labeled[["subject", "class"]].assign(value=values).drop_duplicates()
        n_values = table["value"].nunique()
        # If each subject has a different value, the value identifies only the subject, not the
        # class.
        if table["value"].isna().any() or not 1 < n_values < table["subject"].nunique():
            continue
        counts = pd.crosstab(table["value"], table["class"])
        if counts.shape[1] < 2:
            continue
        strength = contingency.association(counts, method="cramer")
        p = contingency.chi2_contingency(counts, correction=False).pvalue
        # Balanced accuracy of the best prediction of the class from the value
        accuracy = (counts / counts.sum()).max(axis=1).sum() / counts.shape[1]
        is_stop = round(accuracy, 6) >= CONFOUNDED and p < 0.05
        if not is_stop and (strength <= 0.5 or p >= 0.01):
            continue
        is_stop = is_stop and CONFOUNDS not in in_spite_of
        is_hidden = column == "recorded_channels" and recordings["channels"].nunique() == 1
        values = dict(
            property=property_name,
            accuracy=accuracy,
            strength=strength,
            p=p,
            counts=[(shown(value), row.to_dict()) for value, row in counts.iterrows()],
            is_same_selection=is_hidden,
            is_stop=is_stop,
        )
        yield Finding(CONFOUNDS, values, "stop" if is_stop else "warning")


def auc_of_class(is_class: pd.Series, values: pd.Series) -> float:
    """Return the AUC with which a value separates one class from all other classes.

    NaN if there are no windows of this class, or no windows of other classes.
    """
    n, n_other = int(is_class.sum()), int((~is_class).sum())
    if not n or not n_other:
        return np.nan
    # The Mann-Whitney statistic, which is faster than sklearn.metrics.roc_auc_score
    ranks = stats.rankdata(values)[is_class.to_numpy()]
    return float((ranks.sum() - n * (n + 1) / 2) / (n * n_other))


def order_of_recordings(recordings: pd.DataFrame, labeled: pd.DataFrame) -> Iterator[Finding]:
    """Yield a finding if the classes were recorded in the same order in all subjects.

    The finding requires that each recording has one class only, and that at least three subjects
    have recordings of several classes.
    """
    if not has_one_class_per_recording(labeled):
        return
    classes = labeled.drop_duplicates("recording")[["recording", "subject", "class"]]
    rows = classes.merge(recordings[["file", "date"]], left_on="recording", right_index=True)
    orders, sources = [], set()
    for _, files in rows.groupby("subject"):
        if files["class"].nunique() < 2:
            continue
        column = next(
            (c for c in ("date", "file") if files[c].notna().all() and files[c].is_unique), None
        )
        sources.add(_ORDERS[column])
        ordered = files if column is None else files.sort_values(column)
        orders.append(tuple(name for name, _ in groupby(ordered["class"].tolist())))
    # An order with repeated classes, such as A B A, partly balances the effects of time.
    if len(orders) >= 3 and len({*orders}) == 1 and len({*orders[0]}) == len(orders[0]):
        # Probability of equal orders if the order of classes is random
        p = factorial(len(orders[0])) ** (1 - len(orders))
        values = dict(n_subjects=len(orders), classes=[*orders[0]], sources=sorted(sources), p=p)
        yield Finding("order_of_recordings", values)


def order_within_recordings(labeled: pd.DataFrame) -> Iterator[Finding]:
    """Yield findings for classes that occur early, or late, in at least 90 % of the recordings.

    A class occurs early (late) in a recording if almost all of its windows start before (after) the
    windows of the other classes. At least three recordings are required.
    """
    rows = labeled[labeled["start"] >= 0]
    for name in labeled["class"].cat.categories:
        of_class = (rows["class"] == name).groupby(rows["recording"])
        parts = [part for _, part in of_class if 2 <= part.sum() <= len(part) - 2]
        aucs = np.array([auc_of_class(part, rows["start"][part.index]) for part in parts])
        is_late, is_early = aucs > SEPARATING_AUC, aucs < 1 - SEPARATING_AUC
        for position, is_separate in (("late", is_late), ("early", is_early)):
            if len(aucs) >= 3 and is_separate.mean() >= 0.9:
                counts = dict(n=int(is_separate.sum()), n_recordings=len(aucs))
                values = {**counts, "name": name, "position": position}
                yield Finding("order_within_recordings", values)
