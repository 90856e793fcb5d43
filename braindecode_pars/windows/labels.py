"""Labels and targets of windows: which are labeled, which are held out, and their weights.

Held-out windows are for internal validation, and are kept out of pretraining. Their subjects are
drawn, or fixed by the entry ``split`` of the recordings' descriptions.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from numbers import Number, Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import check_array, compute_class_weight, multiclass, validation

from braindecode_pars._common import checks, subjects
from braindecode_pars.windows.table import Windows, as_column


def labels_of(windows: Windows) -> np.ndarray:
    """Return the label of every window, shape (n_windows,).

    Raises
    ------
    ValueError
        When there are no labels, when a label is None or NaN, when a window has several labels,
        when a label is not hashable, or when labels of different types look the same.
    """
    if windows.y is None:
        raise ValueError(
            "There are no labels: pass y, or windows with a target. PARSEmbedder needs none."
        )
    if windows.y.dtype.hasobject and any(isinstance(label, np.ndarray) for label in windows.y[:1]):
        raise ValueError(f"A window has {len(windows.y[0])} labels; a classifier needs one.")
    missing = np.flatnonzero(pd.isna(windows.y.astype(object)))
    if len(missing):
        raise ValueError(
            f"{len(missing)} of {len(windows)} windows have no label (window {missing[0]}, for "
            "example); label them, or mark them with unlabeled_label."
        )
    if windows.y.dtype.kind in "OU":
        _check_distinct(windows.y.tolist())
    return windows.y


def _check_distinct(labels: Iterable[Any]) -> None:
    """Check that labels are hashable, and that no two look the same: 1 and "1", "é" of one or two.

    Characters without a width do not count either.
    """
    seen: dict[str, Any] = {}
    try:
        different = dict.fromkeys(labels)
    except TypeError as error:
        raise ValueError(f"Labels must be hashable ({error}); use strings or numbers.") from error
    for label in different:
        other = seen.setdefault(subjects.normalized(str(label)), label)
        if other is not label:
            raise ValueError(
                f"The labels {other!r} ({type(other).__name__}) and {label!r} "
                f"({type(label).__name__}) look the same; write them in one way and type, also "
                "for unlabeled_label."
            )


def check_class_labels(y: np.ndarray) -> None:
    """Check that labels are classes, not values of a continuous quantity such as an age in years.

    Raises
    ------
    ValueError
        When labels are neither text nor numbers, as sets, dates and durations; when they are
        complex, or numbers of which some are not integers, also in an array of objects; and as in
        :func:`labels_of`.
    """
    if y.dtype.kind in "OU":
        _check_distinct(y.tolist())
    if odd := [label for label in y if not is_of_kinds(label, str, bytes, Number, np.bool_)]:
        raise ValueError(f"Labels such as {odd[0]!r} are neither text nor numbers; pass text.")
    if all(isinstance(label, Number) for label in y.tolist()):
        y = np.asarray(y.tolist())
    if y.dtype.kind == "c":
        raise ValueError("The labels are complex numbers; pass one class for each window.")
    if y.dtype.kind == "f":
        multiclass.check_classification_targets(y)


def classes_and_codes(*labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of labels in order, and the number of the class of each label.

    Raises
    ------
    ValueError
        When labels cannot be sorted.
    """
    try:
        return np.unique(np.concatenate(labels), return_inverse=True)
    except TypeError as error:
        raise ValueError(f"Labels of different types cannot be sorted: {error}.") from error


def training_classes(
    y: np.ndarray, label_names: Mapping[str, Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return :func:`classes_and_codes` of the labels that a classifier is fitted to.

    Raises
    ------
    ValueError
        As in :func:`check_class_labels`, when labels cannot be sorted, and when all are the same.

    Warns
    -----
    UserWarning
        When classes, by their names if they have any, look the same.
    """
    check_class_labels(y)
    classes, codes = classes_and_codes(y)
    if len(classes) < 2:
        # scikit-learn's estimator checks expect "one class" in the message.
        raise ValueError(f"All labels are {y.tolist()[0]!r}, which is one class; pass two.")
    warn_of_similar_classes(classes.tolist(), label_names)
    return classes, codes


def targets_of(windows: Windows) -> np.ndarray:
    """Return the label of every window as a number, float of shape (n_windows,); NaN without one.

    Raises
    ------
    ValueError
        When there are no labels, when one is no real number, is infinite, or none is known.
    """
    y = windows.y
    if y is None:
        raise ValueError(
            "There are no targets: pass y, one number for each window. PARSEmbedder needs none."
        )
    targets = real_numbers(y, "targets")
    if np.isinf(targets).any():
        raise ValueError(f"{np.isinf(targets).sum()} targets are infinite; pass NaN if unknown.")
    if len(targets) and np.isnan(targets).all():
        raise ValueError("All targets are NaN, that is unknown; PARSEmbedder needs none.")
    return targets


def is_of_kinds(value: Any, *kinds: type) -> bool:
    """Whether a value has one of some types. To Python, a timedelta64 is an integer."""
    return isinstance(value, kinds) and not isinstance(value, np.timedelta64)


def real_numbers(values: Any, name: str) -> np.ndarray:
    """Return one real number for each window as floats, shape (n_windows,); None becomes NaN.

    Raises
    ------
    ValueError
        When the values have another shape, or one is no real number or a duration.
    """
    values = as_column(values)
    if values.ndim != 1 and values.shape != (len(values), 1):
        raise ValueError(f"{name} has shape {values.shape}; pass one number for each window.")
    values = values.ravel()
    numbers = [None if pd.isna(value) is True else value for value in values]
    if wrong := [v for v in numbers if not (v is None or is_of_kinds(v, Real, np.bool_))]:
        raise ValueError(
            f"{len(wrong)} {name} are no numbers, such as {str(wrong[0])!r}; pass one real number "
            "for each window, seconds for durations. PARSClassifier takes classes."
        )
    return np.array(numbers, dtype=float)


def are_equal(numbers: np.ndarray) -> bool:
    """Whether numbers are all the same, apart from rounding errors."""
    return bool(np.ptp(numbers) <= 1e-12 * np.abs(numbers).max())


def label_of_unlabeled(unlabeled_label: Any) -> tuple[Any, bool]:
    """Return the label that marks unlabeled windows, and whether "auto" chose it, which is -1."""
    # ``label == "auto"`` would be an array, if the label were one.
    is_auto = isinstance(unlabeled_label, str) and unlabeled_label == checks.AUTO
    return (-1 if is_auto else unlabeled_label), is_auto


def find_unlabeled(
    y: np.ndarray, unlabeled_label: Any = "auto", classes: Iterable[Any] = ()
) -> tuple[np.ndarray, Any]:
    """Return which windows are unlabeled, and the label that marks them.

    Parameters
    ----------
    y : ndarray, shape (n_windows,)
        Labels.
    unlabeled_label : Any
        Label that marks a window as unlabeled. ``"auto"`` means -1, as in scikit-learn, with a
        warning when there are such windows. None means that every window is labeled.
    classes : iterable
        Classes of a fitted classifier: with others than -1 and +1, -1 is none of them.

    Returns
    -------
    unlabeled : ndarray of bool, shape (n_windows,)
        True for unlabeled windows.
    label : Any
        ``unlabeled_label``, or -1 for ``"auto"``.

    Raises
    ------
    TypeError
        When ``unlabeled_label`` is not hashable, as a list of labels.
    ValueError
        When two labels look the same, such as "-1" and -1, and when ``unlabeled_label`` is text and
        no label is. With ``"auto"``, also when labels are exactly -1 and +1, so that -1 may be a
        class.

    Warns
    -----
    UserWarning
        With ``"auto"``, when windows have the label -1.
    """
    label, is_auto = label_of_unlabeled(unlabeled_label)
    if label is None:
        return np.zeros(len(y), dtype=bool), None
    if not isinstance(label, Hashable):
        raise TypeError(f"unlabeled_label must be one label or None, got {label!r}.")
    _check_distinct([*y.tolist(), label])
    if isinstance(label, str) and not any(isinstance(value, str) for value in y):
        raise ValueError(f"unlabeled_label is {label!r}, but no label is text: {y.tolist()[0]!r}.")
    # Compared one by one, because labels may have several types.
    unlabeled = np.asarray([bool(np.all(value == label)) for value in y], dtype=bool)
    if is_auto and unlabeled.any():
        if {*y.tolist(), *classes} == {-1, 1}:
            raise ValueError(
                "Labels are exactly -1 and +1, but -1 means 'unlabeled'; set unlabeled_label to "
                "None if -1 is a class, or to the value that marks unlabeled windows."
            )
        if not unlabeled.all():
            checks.warn_user(
                f"{unlabeled.sum()} of {len(y)} windows have label -1 and count as unlabeled: "
                "pass unlabeled_label=None if -1 is a class, or unlabeled_label=-1 if it is none."
            )
    return unlabeled, label


def where_labeled(
    windows: Windows, unlabeled_label: Any = "auto", classes: Iterable[Any] = ()
) -> np.ndarray:
    """Return whether each window is labeled, shape (n_windows,).

    Raises
    ------
    ValueError
        As in :func:`labels_of` and :func:`find_unlabeled`, and when no window is labeled.
    """
    unlabeled, label = find_unlabeled(labels_of(windows), unlabeled_label, classes)
    if len(unlabeled) and unlabeled.all():
        raise ValueError(f"No window is labeled (y == {label!r}); PARSEmbedder needs no labels.")
    return ~unlabeled


def to_score(
    windows: Windows,
    unlabeled_label: Any,
    classes: np.ndarray,
    sample_weight: Any = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the numbers of the labeled windows, their labels and their weights.

    A warning names labels that are not among the classes of ``fit``.

    Raises
    ------
    ValueError
        As in :func:`where_labeled` and :func:`check_weights`.
    """
    known = classes.tolist()
    labeled = np.flatnonzero(where_labeled(windows, unlabeled_label, known))
    y = windows.labels[labeled]
    if unseen := sorted(set(y.tolist()) - {*known}, key=str):
        names = checks.format_list(list(map(repr, unseen)))
        checks.warn_user(f"No window of fit has the label {names}; windows with it count as wrong.")
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, len(windows))[labeled]
        check_weights(sample_weight, len(labeled))  # they may all be 0
    return labeled, y, sample_weight


def cross_entropy_weights(
    codes: np.ndarray, classes: np.ndarray, class_weight: str | dict | None
) -> torch.Tensor | None:
    """Return the weight of each class in the loss.

    Parameters
    ----------
    codes : ndarray of int, shape (n_windows,)
        Training labels, as indices into ``classes``.
    classes : ndarray, shape (n_classes,)
        All labels.
    class_weight : "balanced" | dict | None
        Rule for the weights. ``"balanced"`` gives class c the weight n / (K n_c), with n training
        windows, n_c of them of class c, and K classes among them (section 2.5). A dict maps labels
        to weights; labels that it does not contain have weight 1. None means no weights.

    Returns
    -------
    Tensor, shape (n_classes,) | None
        Weights; 1 for a class without training windows.

    Raises
    ------
    ValueError
        When ``class_weight`` is none of the above, contains a label that is not in ``classes``, or
        a weight that is not a positive number.
    """
    if class_weight is None:
        return None
    weights, present = np.ones(len(classes)), np.unique(codes)
    if isinstance(class_weight, dict):
        known = classes.tolist()
        for label, weight in class_weight.items():
            if label not in known:
                raise ValueError(f"class_weight has {label!r}; the labels are {known}.")
            checks.positive().check(f"class_weight of {label!r}", weight)
        weights[present] = [class_weight.get(known[code], 1) for code in present]
    else:
        weights[present] = compute_class_weight(class_weight, classes=present, y=codes)
    return torch.as_tensor(weights, dtype=torch.float32)


def check_weights(sample_weight: Any, n_windows: int) -> np.ndarray:
    """Return ``sample_weight`` as an array of floats, shape (n_windows,).

    Raises
    ------
    ValueError
        When it is not one finite number of at least 0 for each window, or when all are 0.
    """
    name = "sample_weight"
    weights = check_array(sample_weight, dtype=float, ensure_2d=False, input_name=name)
    validation.check_non_negative(weights, name)
    if weights.shape != (n_windows,):
        raise ValueError(f"{name} has shape {weights.shape}; it must have shape ({n_windows},).")
    if not weights.any():
        raise ValueError("All numbers in sample_weight are zero; give some window a weight.")
    return weights


def names_of_classes(
    classes: np.ndarray, labels_of_names: Mapping[str, Any] | None
) -> dict[Any, str] | None:
    """Return the name of each class; None if none of them has one, or two would have the same.

    Several names of one label are joined, such as "Sleep stage 3 / Sleep stage 4".

    Parameters
    ----------
    classes : ndarray, shape (n_classes,)
        Labels.
    labels_of_names : mapping of str to label | None
        Label of each name.
    """
    names: dict[Any, list[str]] = {label: [] for label in classes.tolist()}
    for name, label in (labels_of_names or {}).items():
        if label in names and name != str(label):
            names[label].append(name)
    texts = {label: " / ".join(label_names) or str(label) for label, label_names in names.items()}
    # The name of one class may be the label of another, which has no name.
    return texts if any(names.values()) and len(set(texts.values())) == len(texts) else None


def similar_classes(names: Iterable[str]) -> str | None:
    """Return a sentence about classes that differ only in case, blanks or invisible characters.

    None if no classes do.

    Examples
    --------
    >>> from braindecode_pars.windows.labels import similar_classes
    >>> print(similar_classes(["Math", "math ", "rest"]))
    The classes 'Math' and 'math ' look the same; if they are one class, use one name.
    """
    by_look: dict[str, list[str]] = {}
    for name in names:
        by_look.setdefault("".join(subjects.visible(name).split()), []).append(ascii(name))
    similar = [" and ".join(texts) for texts in by_look.values() if len(texts) > 1]
    ending = "look the same; if they are one class, use one name."
    return f"The classes {checks.format_list(similar)} {ending}" if similar else None


def warn_of_similar_classes(
    classes: Iterable[Any], label_names: Mapping[str, Any] | None = None
) -> None:
    """Warn of classes that look the same, by their names if they have any."""
    classes = np.fromiter(classes, object)
    names = names_of_classes(classes, label_names) or {}
    if sentence := similar_classes(str(names.get(label, label)) for label in classes.tolist()):
        checks.warn_user(sentence)


def one_class_each(classes: Any, owners: Any) -> bool:
    """Whether subjects, or recordings, have one class each: 90 % of them, for one may be wrong.

    Parameters
    ----------
    classes : array-like, shape (n_windows,)
        Class of each window.
    owners : array-like, shape (n_windows,)
        Subject or recording of each window; those without one do not count.

    Examples
    --------
    >>> from braindecode_pars.windows.labels import one_class_each
    >>> one_class_each([0, 0, 1, 1], ["P1", "P1", "P2", "P2"]), one_class_each([0, 1], ["P1", "P1"])
    (True, False)
    """
    table = pd.DataFrame({"class": np.asarray(classes), "owner": np.asarray(owners)})
    return bool((table.groupby("owner")["class"].nunique() == 1).mean() >= 0.9)


# Held-out windows -------------------------------------------------------------------------------

#: Value of ``validation`` that uses the fixed validation subjects.
SPLIT = "split"

#: Random draws of the validation subjects before giving up: one may take a class out of training.
_DRAWS = 20


def hold_out(
    windows: Windows, share: float | str, seed: int, *, stratified: bool = True
) -> tuple[Windows, Windows | None]:
    """Hold out internal validation windows: by subject where known, else stratified by label.

    Parameters
    ----------
    windows : Windows
        Windows with labels.
    share : float | "split"
        Share of the subjects, or of the windows, in [0, 1); at least one is held out. With
        "split", the windows with the split "valid" are held out.
    seed : int
        Seed of the split.
    stratified : bool
        Whether labels are classes. If False, labels have no part in the split.

    Returns
    -------
    train : Windows
        The remaining windows; with every class, if the split is random.
    valid : Windows | None
        None for a share of 0, and where there are too few windows.

    Raises
    ------
    ValueError
        With "split", when a window has neither the split "train"
        nor "valid", and when a subject has windows of both.

    Warns
    -----
    UserWarning
        When subjects are unknown, of all windows or of some, when there is only one, when two names
        may be one subject, and when nothing can be held out.
    """
    if isinstance(share, str):
        is_valid = are_validation(windows.splits, windows.subjects, len(windows))
        return windows.take(np.flatnonzero(~is_valid)), windows.take(np.flatnonzero(is_valid))
    if share == 0:
        return windows, None
    y = labels_of(windows) if stratified else np.zeros(len(windows))
    classes, counts = np.unique(y, return_counts=True)
    n_classes = len(classes)
    groups = _subject_numbers(windows)
    splits: Iterable[tuple[np.ndarray, np.ndarray]] = ()
    if groups is not None and groups.max() > 0:
        n_subjects = groups.max() + 1
        n_valid = min(max(1, round(share * n_subjects)), n_subjects - 1)
        splitter = GroupShuffleSplit(n_splits=_DRAWS, test_size=n_valid, random_state=seed)
        splits = splitter.split(y, y, groups)
    else:  # stratified: both parts need at least one window of every class
        n_valid = math.ceil(share * len(windows))
        if min(n_valid, len(windows) - n_valid) >= n_classes and counts.min() > 1:
            splitter = StratifiedShuffleSplit(n_splits=1, test_size=n_valid, random_state=seed)
            splits = splitter.split(y, y)
    for train, valid in splits:
        # A split is useful only if every class remains in training.
        if len(set(y[train])) == n_classes:
            return windows.take(train), windows.take(valid)
    lost = f"one of the {n_classes} classes" if stratified else "all of them"
    checks.warn_user(
        f"Validation windows cannot be held out of {len(windows)} windows without taking {lost} "
        "out of training; training continues without validation."
    )
    return windows, None


def _subject_numbers(windows: Windows) -> np.ndarray | None:
    """Subjects as numbers, since subjects of mixed types cannot be ordered; None if unknown."""
    if windows.groups is None:
        n_known = int(windows.has_subject.sum())
        source = getattr(windows.recordings["reader"].iloc[0], "source", None)
        if n_known:
            checks.warn_user(
                f"{n_known} windows have a subject, {len(windows) - n_known} have none: validation "
                "may be on training subjects; add 'subject' to the description of every recording."
            )
        elif isinstance(source, list) and isinstance(source[0], tuple):
            checks.warn_user(
                "A list of tuples carries neither subjects nor sampling rate, so validation "
                "windows may be of training subjects; fit on as_sklearn's X, or pass groups=."
            )
        return None
    numbers, names = pd.factorize(windows.groups)
    subjects.warn_of_similar_names(names.tolist())
    if len(names) == 1:
        checks.warn_user(
            f"All windows are of one subject ({names[0]}), and so are the internal validation "
            "windows; validation=0 uses none."
        )
    return numbers


def without_held_out_splits(windows: Windows | None, share: float | str) -> Windows | None:
    """Drop windows of the splits "valid" and "test", if ``share`` is "split".

    Labels are not needed to be in one of them: an unlabeled window of a test subject must not be
    pretrained on either.
    """
    if share != SPLIT or windows is None or windows.splits is None:
        return windows
    keep = ~np.isin(windows.splits.astype(str), ("valid", "test"))
    return windows.take(np.flatnonzero(keep)) if keep.any() else None


def drop_held_out(windows: Windows | None, train: Windows, valid: Windows | None) -> Windows | None:
    """Drop windows that are held out, and all windows of held-out subjects.

    Parameters
    ----------
    windows : Windows | None
        Further windows to pretrain on.
    train, valid : Windows, Windows | None
        Result of :func:`hold_out`.

    Returns
    -------
    Windows | None
        None when nothing remains.

    Warns
    -----
    UserWarning
        When the subjects of ``windows`` are unknown and some subjects are held out.
    """
    if windows is None or valid is None:
        return windows
    held = set(valid.places())
    keep = np.array([place not in held for place in windows.places()], dtype=bool)
    trained_on = set(_corpus_subjects(train[train.has_subject]))
    held_out = [
        subject for subject in dict.fromkeys(_corpus_subjects(valid)) if subject not in trained_on
    ]
    known = np.flatnonzero(windows.has_subject)
    if held_out and len(known) < len(windows):
        checks.warn_user(
            f"{len(windows) - len(known)} of {len(windows)} unlabeled windows have no subject, so "
            "pretraining may use held-out ones; pass a dataset with 'subject' in its descriptions."
        )
    if held_out and len(known):
        keys = subjects.SubjectKeys(held_out)
        keep[known] &= [subject not in keys for subject in _corpus_subjects(windows.take(known))]
    return windows.take(np.flatnonzero(keep)) if keep.any() else None


def _corpus_subjects(windows: Windows) -> list:
    return [] if windows.corpus_subjects is None else windows.corpus_subjects.tolist()


def are_validation(
    splits: np.ndarray | None, groups: np.ndarray | None, n_windows: int
) -> np.ndarray:
    """Return which windows have the split "valid"; the others have the split "train".

    Parameters
    ----------
    splits, groups : ndarray, shape (n_windows,) | None
        Split and subject of each window, as in Windows; None or NaN where unknown.
    n_windows : int
        Number of windows.

    Returns
    -------
    ndarray of bool, shape (n_windows,)
        Whether a window is a validation window.

    Raises
    ------
    ValueError
        When a window has no split or another one, when there is no training or no validation
        window, and when a subject has windows of both.
    """
    names = np.full(n_windows, None) if splits is None else splits.astype(object)
    counts = Counter(None if pd.isna(name) else name for name in names.tolist())
    if set(counts) != {"train", "valid"}:
        raise ValueError(
            "validation='split' trains on windows of split 'train' and validates on 'valid', but "
            f"the {n_windows} labeled windows have the splits {dict(counts)}; give 'split' to the "
            "description of every recording, or hold out a random share, such as validation=0.2."
        )
    is_valid = names == "valid"
    if groups is not None:
        named = ~pd.isna(groups.astype(object))
        trained = subjects.SubjectKeys(groups[named & ~is_valid].tolist())
        both = [s for s in dict.fromkeys(groups[named & is_valid].tolist()) if s in trained]
        if both:
            who = checks.format_list([*map(str, both)])
            raise ValueError(
                f"Subjects in both splits, 'train' and 'valid': {who}; put all recordings of a "
                "subject in one split."
            )
    return is_valid
