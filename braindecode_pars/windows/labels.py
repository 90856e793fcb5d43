"""Validate labels, find unlabeled windows, hold out validation windows, compute class weights.

Validation windows are only used for the internal validation in ``fit``, and are excluded from
pretraining. The validation subjects are drawn at random, or set by the entry ``split`` of the
dataset description.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import check_array, column_or_1d, compute_class_weight, multiclass, validation

from braindecode_pars._common import checks, findings, subjects
from braindecode_pars._common.findings import Finding
from braindecode_pars.windows.table import Windows, as_column


def labels_of(windows: Windows) -> np.ndarray:
    """Return the label of every window, shape (n_windows,), and check that no label is missing.

    Raises
    ------
    ValueError
        If there are no labels, if a label is None or NaN, if a label is not hashable (for example a
        list of several labels for one window), or if two different labels look the same when
        printed, such as 1 and "1".
    """
    y = windows.labels
    missing = np.flatnonzero(pd.isna(y.astype(object)))
    if len(missing):
        raise ValueError(
            f"The labels of {len(missing)} of {len(windows)} windows are missing (None or NaN), "
            f"for example the label of window {missing[0]}. Label these windows, or mark them as "
            "unlabeled with the label -1 (see the parameter unlabeled_label)."
        )
    if y.dtype.kind in "OU":
        _check_distinct(y.tolist())
    return y


def _check_distinct(labels: Iterable[Any]) -> None:
    """Check that labels are hashable, and that no two different labels look the same.

    Examples of different labels that look the same are 1 and "1", two Unicode forms of "é", and
    texts that differ only in zero-width characters.
    """
    label_of_text: dict[str, Any] = {}
    try:
        unique_labels = dict.fromkeys(labels)
    except TypeError as error:
        raise ValueError(
            f"Labels must be hashable ({error}). Use a single string or number as the label of "
            "each window."
        ) from error
    for label in unique_labels:
        first_label = label_of_text.setdefault(subjects.normalized(str(label)), label)
        if first_label is not label:
            raise ValueError(
                f"The labels {first_label!r} ({type(first_label).__name__}) and {label!r} "
                f"({type(label).__name__}) look the same but are different values. Use the same "
                "spelling and type in all labels and in unlabeled_label."
            )


def check_class_labels(y: np.ndarray) -> None:
    """Check that labels are classes instead of values of a continuous quantity, such as an age.

    Raises
    ------
    ValueError
        If a label is neither a string nor a number (for example a set, a date or a duration), if
        labels are complex or non-integer numbers, or if two different labels look the same when
        printed, such as 1 and "1".
    """
    if y.dtype.kind in "OU":
        _check_distinct(y.tolist())
    if invalid := [label for label in y if not is_of_kinds(label, str, bytes, Real, np.bool_)]:
        raise ValueError(
            f"Labels must be strings or numbers (but not complex numbers), got {invalid[0]!r}. "
            "Convert the labels to strings."
        )
    if all(isinstance(label, Real) for label in y.tolist()):
        y = np.asarray(y.tolist())
    if y.dtype.kind == "f":
        multiclass.check_classification_targets(y)


def classes_and_codes(*labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes, and the code of each label.

    The code of a label is the index of its class in the sorted classes.

    Raises
    ------
    ValueError
        If labels have different types and cannot be sorted.
    """
    try:
        return np.unique(np.concatenate(labels), return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"The labels have different types and cannot be sorted ({error}). Convert all labels "
            "to the same type."
        ) from error


def training_classes(
    y: np.ndarray, label_names: Mapping[str, Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Validate the labels in ``fit`` of a classifier, and return their classes and codes.

    Classes and codes are the results of :func:`classes_and_codes`.

    Raises
    ------
    ValueError
        As in :func:`check_class_labels`, if labels cannot be sorted, or if all labels are equal.

    Warns
    -----
    UserWarning
        If two class names, or two labels without names, differ only in case, white space or
        invisible characters.
    """
    check_class_labels(y)
    classes, codes = classes_and_codes(y)
    if len(classes) < 2:
        # scikit-learn's estimator checks expect "one class" in the message.
        raise ValueError(
            f"A classifier requires windows of at least two classes, got one class: all labels are "
            f"{y.tolist()[0]!r}. Add windows of at least one other class."
        )
    warn_of_similar_classes(classes.tolist(), label_names)
    return classes, codes


def targets_of(windows: Windows) -> np.ndarray:
    """Return the regression target of every window, float of shape (n_windows,).

    Unknown targets are NaN.

    Raises
    ------
    ValueError
        If all targets are missing or NaN, or if a target is infinite or not a real number.
    """
    targets = np.full(len(windows), np.nan)
    if windows.y is not None:
        targets = real_numbers(windows.y, "targets")
    if len(targets) and np.isnan(targets).all():
        raise ValueError(
            "There are no targets: the target of every window is missing or NaN. Pass y with one "
            "number for each window. To learn without targets, use PARSEmbedder."
        )
    return targets


def is_of_kinds(value: Any, *kinds: type) -> bool:
    """Whether a value is an instance of one of several types, but not a NumPy timedelta64.

    A timedelta64 is excluded because Python treats it as an integer.
    """
    return isinstance(value, kinds) and not isinstance(value, np.timedelta64)


def real_numbers(values: Any, name: str) -> np.ndarray:
    """Convert values to floats, one per window, shape (n_windows,). None becomes NaN.

    Raises
    ------
    ValueError
        If the shape is not (n_windows,), or if a value is infinite or not a real number.
    """
    values = column_or_1d(as_column(values), input_name=name)
    numbers = [math.nan if pd.isna(value) is True else value for value in values]
    if invalid := [v for v in numbers if not is_of_kinds(v, Real, np.bool_) or math.isinf(v)]:
        raise ValueError(
            f"{len(invalid)} of {len(values)} {name} are infinite or not real numbers, for example "
            f"{str(invalid[0])!r}. Pass one real number per window. Use NaN for unknown values. "
            "Convert durations to seconds. To predict classes, use PARSClassifier."
        )
    return np.array(numbers, dtype=float)


def are_equal(numbers: np.ndarray) -> bool:
    """Whether all numbers are equal up to rounding errors."""
    return bool(np.ptp(numbers) <= 1e-12 * np.abs(numbers).max())


def label_of_unlabeled(unlabeled_label: Any) -> tuple[Any, bool]:
    """Return the label that marks unlabeled windows, and whether ``unlabeled_label`` is "auto".

    If ``unlabeled_label`` is "auto", the label is -1.
    """
    # ``label == "auto"`` would be an array if the label were an array.
    is_auto = isinstance(unlabeled_label, str) and unlabeled_label == checks.AUTO
    return (-1 if is_auto else unlabeled_label), is_auto


def find_unlabeled(
    y: np.ndarray, unlabeled_label: Any = "auto", classes: Iterable[Any] = ()
) -> tuple[np.ndarray, Any]:
    """Return which windows are unlabeled, and the label that marks unlabeled windows.

    Parameters
    ----------
    y : ndarray, shape (n_windows,)
        Labels.
    unlabeled_label : Any
        Label that marks a window as unlabeled. If ``"auto"``, -1 marks unlabeled windows, as in
        scikit-learn, and a warning is issued if a window has the label -1. If None, all windows are
        labeled.
    classes : iterable
        Classes of a fitted classifier, only used with ``"auto"``. If the labels or ``classes``
        contain any other value than -1 and +1, -1 marks unlabeled windows. Otherwise, -1 may be a
        class, see Raises.

    Returns
    -------
    unlabeled : ndarray of bool, shape (n_windows,)
        True for unlabeled windows.
    label : Any
        Label that marks unlabeled windows: ``unlabeled_label``, or -1 if it is ``"auto"``.

    Raises
    ------
    ValueError
        In any of these cases:

        - ``unlabeled_label`` is not hashable, for example a list of labels.
        - Two different labels look the same when printed, such as "-1" and -1.
        - ``unlabeled_label`` is a string, but no label is a string.
        - ``unlabeled_label`` is ``"auto"``, and the labels and ``classes`` together contain exactly
          the values -1 and +1, because -1 may then be a class.

    Warns
    -----
    UserWarning
        With ``"auto"``, if windows have the label -1.
    """
    label, is_auto = label_of_unlabeled(unlabeled_label)
    if label is None:
        return np.zeros(len(y), dtype=bool), None
    _check_distinct([*y.tolist(), label])
    if isinstance(label, str) and not any(isinstance(value, str) for value in y):
        raise ValueError(
            f"unlabeled_label={label!r} is a string, but no label is a string (first label: "
            f"{y.tolist()[0]!r}). Set unlabeled_label to the value that marks unlabeled windows in "
            "y, or to None if all windows are labeled."
        )
    # Labels are compared one by one, because they may have different types.
    unlabeled = np.asarray([bool(np.all(value == label)) for value in y], dtype=bool)
    if is_auto and unlabeled.any():
        if {*y.tolist(), *classes} == {-1, 1}:
            raise ValueError(
                "The labels are exactly -1 and +1, so it is unclear whether -1 is a class or marks "
                "unlabeled windows (as it does with unlabeled_label='auto'). Set "
                "unlabeled_label=None if -1 is a class, or unlabeled_label=-1 if -1 marks "
                "unlabeled windows."
            )
        if not unlabeled.all():
            values = dict(n=int(unlabeled.sum()), n_windows=len(y))
            findings.warn(Finding("minus_one", values))
    return unlabeled, label


def where_labeled(
    windows: Windows, unlabeled_label: Any = "auto", classes: Iterable[Any] = ()
) -> np.ndarray:
    """Return which windows are labeled, bool of shape (n_windows,).

    Raises
    ------
    ValueError
        As in :func:`labels_of` and :func:`find_unlabeled`, or if no window is labeled.
    """
    unlabeled, label = find_unlabeled(labels_of(windows), unlabeled_label, classes)
    if len(unlabeled) and unlabeled.all():
        raise ValueError(
            f"All windows are unlabeled: every label is {label!r}, which marks unlabeled windows "
            "(see the parameter unlabeled_label). Label at least some of the windows. To learn "
            "without labels, use PARSEmbedder."
        )
    return ~unlabeled


def to_score(
    windows: Windows,
    unlabeled_label: Any,
    classes: np.ndarray,
    sample_weight: Any = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the indices, labels and sample weights of the labeled windows, to compute a score.

    Raises
    ------
    ValueError
        As in :func:`where_labeled` and :func:`check_weights`.

    Warns
    -----
    UserWarning
        If windows have labels that did not occur in ``fit``.
    """
    known = classes.tolist()
    labeled = np.flatnonzero(where_labeled(windows, unlabeled_label, known))
    y = windows.labels[labeled]
    if unknown := sorted(set(y.tolist()) - {*known}, key=str):
        names = checks.format_list(list(map(repr, unknown)))
        checks.warn_user(
            f"y contains labels that did not occur in fit: {names}. Predictions for windows with "
            "these labels are scored as wrong."
        )
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, len(windows), labeled)
    return labeled, y, sample_weight


def cross_entropy_weights(
    codes: np.ndarray, classes: np.ndarray, class_weight: str | dict | None
) -> torch.Tensor | None:
    """Return the weight of each class in the cross-entropy loss.

    Parameters
    ----------
    codes : ndarray of int, shape (n_windows,)
        Training labels, as indices into ``classes``.
    classes : ndarray, shape (n_classes,)
        Label of each class.
    class_weight : "balanced" | dict | None
        Class weights. If ``"balanced"``, class c has the weight n / (K n_c) (section 2.5 of the
        paper), where n is the number of training windows, n_c is the number of training windows of
        class c, and K is the number of classes with training windows. If a dict, it maps labels to
        weights; labels that are not in the dict have weight 1. If None, the loss is not weighted.

    Returns
    -------
    Tensor, shape (n_classes,) | None
        Weight of each class; 1 for classes without training windows. None if ``class_weight`` is
        None.

    Raises
    ------
    ValueError
        If ``class_weight`` is neither "balanced" nor a dict nor None, or if it contains a label
        that is not in ``classes``, or a weight that is not a positive number.
    """
    if class_weight is None:
        return None
    weights, present = np.ones(len(classes)), np.unique(codes)
    if isinstance(class_weight, dict):
        known = classes.tolist()
        for label, weight in class_weight.items():
            if label not in known:
                raise ValueError(
                    f"class_weight contains the label {label!r}, which is not a class. Use labels "
                    f"of the classes as keys: {known}."
                )
            checks.positive().check(f"class_weight of {label!r}", weight)
        weights[present] = [class_weight.get(known[code], 1) for code in present]
    else:
        weights[present] = compute_class_weight(class_weight, classes=present, y=codes)
    return torch.as_tensor(weights, dtype=torch.float32)


def check_weights(sample_weight: Any, n_windows: int, chosen: np.ndarray) -> np.ndarray:
    """Validate ``sample_weight``, and return the weights of the chosen windows.

    Parameters
    ----------
    sample_weight : array-like of float, shape (n_windows,)
        Weight of each window.
    n_windows : int
        Number of windows.
    chosen : ndarray of int or bool
        Labeled windows, as indices or as a mask.

    Raises
    ------
    ValueError
        If the shape is not (n_windows,), if a weight is negative or not finite, or if all chosen
        windows have weight zero.
    """
    name = "sample_weight"
    weights = check_array(sample_weight, dtype=float, ensure_2d=False, input_name=name)
    validation.check_non_negative(weights, name)
    if weights.shape != (n_windows,) or not weights[chosen].any():
        raise ValueError(
            f"{name} must have shape ({n_windows},), and at least one labeled window must have a "
            f"positive weight. Got shape {weights.shape}."
        )
    return weights[chosen]


def names_of_classes(
    classes: np.ndarray, labels_of_names: Mapping[str, Any] | None
) -> dict[Any, str] | None:
    """Return the name of each class.

    If several names have the same label, they are joined, as in "Sleep stage 3 / Sleep stage 4".

    Parameters
    ----------
    classes : ndarray, shape (n_classes,)
        Label of each class.
    labels_of_names : mapping of str to label | None
        Maps each class name to its label.

    Returns
    -------
    dict of label to str | None
        Class name of each label; the label as a string if the class has no name. None if no class
        has a name, or if two classes would have the same name.
    """
    names: dict[Any, list[str]] = {label: [] for label in classes.tolist()}
    for name, label in (labels_of_names or {}).items():
        if label in names and name != str(label):
            names[label].append(name)
    texts = {label: " / ".join(label_names) or str(label) for label, label_names in names.items()}
    # The name of a class may equal the label of another class that has no name.
    return texts if any(names.values()) and len(set(texts.values())) == len(texts) else None


def similar_classes(names: Iterable[str]) -> Finding | None:
    """Return a finding about class names that look the same, or None.

    Names look the same if they differ only in case, white space or invisible characters.

    Examples
    --------
    >>> from braindecode_pars.windows.labels import similar_classes
    >>> similar_classes(["Math", "math ", "rest"]).values["names"]
    ["'Math' and 'math '"]
    """
    by_appearance: dict[str, list[str]] = {}
    for name in names:
        by_appearance.setdefault("".join(subjects.visible(name).split()), []).append(ascii(name))
    similar = [" and ".join(texts) for texts in by_appearance.values() if len(texts) > 1]
    return Finding("similar_classes", dict(names=similar)) if similar else None


def warn_of_similar_classes(
    classes: Iterable[Any], label_names: Mapping[str, Any] | None = None
) -> None:
    """Warn of classes whose names look the same. Classes without names are compared by label."""
    classes = np.fromiter(classes, object)
    names = names_of_classes(classes, label_names) or {}
    if finding := similar_classes(str(names.get(label, label)) for label in classes.tolist()):
        findings.warn(finding)


def one_class_each(classes: Any, owners: Any) -> bool:
    """Whether at least 90 % of the subjects (or recordings) have windows of only one class.

    The threshold is below 100 %, because a few labels may be wrong.

    Parameters
    ----------
    classes : array-like, shape (n_windows,)
        Class of each window.
    owners : array-like, shape (n_windows,)
        Subject or recording of each window. Windows with an unknown owner (None or NaN) are
        ignored.

    Examples
    --------
    >>> from braindecode_pars.windows.labels import one_class_each
    >>> one_class_each([0, 0, 1, 1], ["P1", "P1", "P2", "P2"]), one_class_each([0, 1], ["P1", "P1"])
    (True, False)
    """
    table = pd.DataFrame({"class": np.asarray(classes), "owner": np.asarray(owners)})
    return bool((table.groupby("owner")["class"].nunique() == 1).mean() >= 0.9)


# Held-out windows -------------------------------------------------------------------------------

#: Value of the parameter ``validation`` that selects the validation subjects by the entry ``split``
#: of the dataset description.
SPLIT = "split"

#: Maximum number of random draws of the validation subjects. A draw is rejected if a class has no
#: windows in the remaining training windows.
_MAX_DRAWS = 20


def hold_out(
    windows: Windows, proportion: float | str, seed: int, *, stratified: bool = True
) -> tuple[Windows, Windows | None]:
    """Hold out windows for internal validation, by subject or stratified by label.

    If the subjects of all windows are known, and there are at least two subjects, whole subjects
    are held out. Otherwise, random windows are held out, stratified by label.

    Parameters
    ----------
    windows : Windows
        Windows with labels.
    proportion : float | "split"
        Proportion of the subjects, or of the windows, to hold out, in [0, 1). At least one subject
        or window is held out, unless the proportion is 0. If "split", the windows whose split is
        "valid" are held out.
    seed : int
        Seed of the random split.
    stratified : bool
        Whether labels are classes. If True, the training windows of a random split contain every
        class. If False, the split does not depend on the labels.

    Returns
    -------
    train : Windows
        Training windows.
    valid : Windows | None
        Validation windows. None if the proportion is 0, or if there are too few windows to hold out
        some of them.

    Raises
    ------
    ValueError
        With "split", if the split of a window is neither "train" nor "valid", if a split has no
        windows, or if a subject has windows in both splits.

    Warns
    -----
    UserWarning
        If the subjects of some windows are unknown, if there is only one subject, if two names may
        belong to the same subject, or if no windows can be held out.
    """
    if isinstance(proportion, str):
        is_valid = are_validation(windows.splits, windows.subjects, len(windows))
        return windows.take(np.flatnonzero(~is_valid)), windows.take(np.flatnonzero(is_valid))
    if proportion == 0:
        return windows, None
    y = labels_of(windows) if stratified else np.zeros(len(windows))
    n_classes = len(np.unique(y))
    groups = _subject_numbers(windows)
    splits: Iterable[tuple[np.ndarray, np.ndarray]] = ()
    if groups is not None and groups.max() > 0:
        n_subjects = groups.max() + 1
        n_valid = min(max(1, round(proportion * n_subjects)), n_subjects - 1)
        splitter = GroupShuffleSplit(n_splits=_MAX_DRAWS, test_size=n_valid, random_state=seed)
        splits = splitter.split(y, y, groups)
    else:  # stratified: training and validation windows must both contain every class
        n_valid = math.ceil(proportion * len(windows))
        splitter = StratifiedShuffleSplit(n_splits=1, test_size=n_valid, random_state=seed)
        with suppress(ValueError):  # raised if there are too few windows
            splits = [*splitter.split(y, y)]
    for train, valid in splits:
        # A split is accepted only if every class remains in the training windows.
        if len(set(y[train])) == n_classes:
            return windows.take(train), windows.take(valid)
    classes = f" that both contain all {n_classes} classes" if stratified else ""
    checks.warn_user(
        f"No validation windows were held out: {len(windows)} windows cannot be divided into "
        f"training and validation windows{classes}. Training continues without validation. Add "
        "windows or subjects, or set validation=0 to train without validation."
    )
    return windows, None


def _subject_numbers(windows: Windows) -> np.ndarray | None:
    """Return the subject of each window as an integer; None if the subject of a window is unknown.

    Integers are used because names of mixed types cannot be sorted.

    Warns
    -----
    UserWarning
        As in :func:`hold_out`.
    """
    if windows.groups is None:
        n_known = int(windows.has_subject.sum())
        if n_known:
            values = dict(n=len(windows) - n_known, n_windows=len(windows))
            findings.warn(Finding("unknown_subjects_in_fit", values))
        return None
    numbers, names = pd.factorize(windows.groups)
    subjects.warn_of_similar_names(names.tolist())
    if len(names) == 1:
        checks.warn_user(
            f"All windows come from one subject ({names[0]}), so the windows for internal "
            "validation come from the training subject. Add subjects, or set validation=0 to train "
            "without validation."
        )
    return numbers


def without_held_out_splits(windows: Windows | None, proportion: float | str) -> Windows | None:
    """Remove windows whose split is "valid" or "test", if ``proportion`` is "split".

    This includes unlabeled windows, because pretraining must not use windows of validation or test
    subjects. If ``proportion`` is a number, ``windows`` is returned unchanged. If no windows
    remain, None is returned.
    """
    if proportion != SPLIT or windows is None or windows.splits is None:
        return windows
    keep = ~np.isin(windows.splits.astype(str), ("valid", "test"))
    return windows.take(np.flatnonzero(keep)) if keep.any() else None


def drop_held_out(windows: Windows | None, train: Windows, valid: Windows | None) -> Windows | None:
    """Remove windows of validation subjects, and validation windows, from windows for pretraining.

    Parameters
    ----------
    windows : Windows | None
        Additional windows for pretraining.
    train, valid : Windows, Windows | None
        Result of :func:`hold_out`.

    Returns
    -------
    Windows | None
        The remaining windows. None if no windows remain.

    Warns
    -----
    UserWarning
        If whole subjects are held out, but the subjects of some of the ``windows`` are unknown.
    """
    if windows is None or valid is None:
        return windows
    valid_places = set(valid.places())
    keep = np.array([place not in valid_places for place in windows.places()], dtype=bool)
    train_subjects = set(_corpus_subjects(train[train.has_subject]))
    held_out_subjects = set(_corpus_subjects(valid)) - train_subjects
    known = np.flatnonzero(windows.has_subject)
    if held_out_subjects and len(known) < len(windows):
        values = dict(n=len(windows) - len(known), n_windows=len(windows))
        findings.warn(Finding("unknown_subjects_in_pretraining", values))
    if held_out_subjects and len(known):
        keys = subjects.SubjectKeys(held_out_subjects)
        keep[known] &= [subject not in keys for subject in _corpus_subjects(windows.take(known))]
    return windows.take(np.flatnonzero(keep)) if keep.any() else None


def _corpus_subjects(windows: Windows) -> list:
    return [] if windows.corpus_subjects is None else windows.corpus_subjects.tolist()


def are_validation(
    splits: np.ndarray | None, groups: np.ndarray | None, n_windows: int
) -> np.ndarray:
    """Return which windows are validation windows, according to their splits "train" and "valid".

    Parameters
    ----------
    splits, groups : ndarray, shape (n_windows,) | None
        Split and subject of each window, as in Windows. Unknown values are None or NaN.
    n_windows : int
        Number of windows.

    Returns
    -------
    ndarray of bool, shape (n_windows,)
        True for validation windows.

    Raises
    ------
    ValueError
        If the split of a window is missing or is neither "train" nor "valid", if there are no
        training or no validation windows, or if a subject has windows in both splits.
    """
    names = np.full(n_windows, None) if splits is None else splits.astype(object)
    counts = Counter(None if pd.isna(name) else name for name in names.tolist())
    if set(counts) != {"train", "valid"}:
        raise ValueError(
            f"With validation='split', each of the {n_windows} labeled windows must have the split "
            "'train' or 'valid', and both splits must occur. The number of windows per split is "
            f"{dict(counts)}. Add 'split' to the description of every recording, or hold out a "
            "random proportion, for example with validation=0.2."
        )
    is_valid = names == "valid"
    if groups is not None:
        named = ~pd.isna(groups.astype(object))
        train_subjects = subjects.SubjectKeys(groups[named & ~is_valid].tolist())
        valid_subjects = dict.fromkeys(groups[named & is_valid].tolist())
        if in_both := [subject for subject in valid_subjects if subject in train_subjects]:
            raise ValueError(
                "Some subjects have recordings in both splits ('train' and 'valid'): "
                f"{checks.format_list([*map(str, in_both)])}. Assign all recordings of a subject "
                "to the same split."
            )
    return is_valid
