"""The preprocessing of the windows of ``fit``, compared with that of an encoder and of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from braindecode_pars._sampling_rate import check_same_rate
from braindecode_pars._warnings import warn_user
from braindecode_pars.preprocessing import Difference, Preprocessing, differences
from braindecode_pars.preprocessing._agreed import agreed, counted, disagreements
from braindecode_pars.preprocessing._preprocessing import FIELDS
from braindecode_pars.windows._window_set import WindowSet

__all__ = [
    "preprocessing_of",
    "pretraining_of",
    "rate_given",
    "warn_of_differences",
    "warn_of_encoder",
]


#: Entries that matter to an encoder: it normalises each window, and sees one channel at a time. A
#: notch filter is not one: 50 and 60 Hz are the mains of two countries.
_OF_ENCODERS = ("band", "reference")


def rate_given(estimator: Any) -> float | None:
    """Return the sampling rate in Hz among the parameters of an estimator; None without one.

    Raises
    ------
    ValueError
        When ``sfreq`` and ``preprocessing`` have different rates.
    """
    given = Preprocessing.of(estimator.preprocessing).sfreq
    whose = "The recordings of the argument preprocessing are", "the argument sfreq is"
    check_same_rate(given, estimator.sfreq, *whose, "leave one of them out")
    return given if estimator.sfreq is None else estimator.sfreq


def preprocessing_of(estimator: Any, windows: WindowSet) -> Preprocessing:
    """Return the preprocessing of the windows of ``fit``: what is given, else what they tell.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameter ``preprocessing`` and the attributes ``sfreq_``, ``n_times_``
        and ``chs_info_``.
    windows : WindowSet
        Windows of ``fit``.

    Warns
    -----
    UserWarning
        When the recordings were prepared differently, or otherwise than ``preprocessing`` states.
    """
    found = _counted(windows)
    differing = disagreements(found)
    if differing:
        warn_user(
            f"The recordings were prepared differently: {'; '.join(differing)}. Prepare all of "
            "them alike, so that no difference between them is one of their filters."
        )
    sfreq, names = estimator.sfreq_, [ch["ch_name"] for ch in estimator.chs_info_ or ()]
    told = replace(
        agreed(found),
        sfreq=sfreq,
        channels=names or None,
        window_seconds=None if sfreq is None else estimator.n_times_ / sfreq,
    )
    given = Preprocessing.of(estimator.preprocessing)
    wrong = differences(given, told)
    if wrong:
        warn_user(
            "The argument preprocessing contradicts the records of the windows, and is used: "
            f"{_listed(wrong, 'in the argument')}. Correct the argument, or leave this entry out."
        )
    return replace(
        told, **{name: value for name, value in vars(given).items() if value is not None}
    )


def pretraining_of(trained: Preprocessing, further: list[WindowSet]) -> Preprocessing:
    """Return the preprocessing of all windows of pretraining: those of ``fit`` and further ones.

    Warns
    -----
    UserWarning
        When further windows have another band or reference.
    """
    beginning = "The unlabelled windows were prepared otherwise than the others"
    parts = [replace(trained, channels=None)]  # an encoder sees one channel at a time
    for windows in further:
        _warn(trained, windows, beginning, _OF_ENCODERS)
        parts.append(agreed(_counted(windows)))
    return agreed(parts)


def warn_of_encoder(trained: Preprocessing, found: Preprocessing) -> None:
    """Warn when the windows of ``fit`` have another band or reference than those of an encoder."""
    differing = [each for each in differences(trained, found) if each.name in _OF_ENCODERS]
    if differing:
        warn_user(
            "The windows were prepared otherwise than the recordings that the encoder was "
            f"pretrained on: {_listed(differing, 'in pretraining')}. {_advice(differing)}"
        )


def warn_of_differences(trained: Preprocessing, windows: WindowSet) -> None:
    """Warn once when windows to predict were prepared otherwise than those of ``fit``."""
    _warn(trained, windows, "These windows were prepared otherwise than those of fit", FIELDS)


def _counted(windows: WindowSet) -> Counter[Preprocessing | None]:
    """Return the number of windows of each preprocessing."""
    column = windows.preprocessings
    return Counter({None: len(windows)}) if column is None else counted(column)


def _warn(
    trained: Preprocessing, windows: WindowSet, beginning: str, names: Collection[str]
) -> None:
    """Warn when windows differ in some of these entries."""
    counts: Counter[Difference] = Counter()
    for found, n in _counted(windows).items():
        for each in differences(trained, found or Preprocessing()):
            counts[each] += n if each.name in names else 0
    some = {
        each: "" if n == len(windows) else f" ({n} of {len(windows)} windows)"
        for each, n in counts.items()
        if n
    }
    if some:
        phrases = "; ".join(f"{each}{share}" for each, share in some.items())
        warn_user(f"{beginning}: {phrases}. {_advice(list(some))}")


def _listed(found: list[Difference], where: str) -> str:
    return "; ".join(str(each).replace("in training", where) for each in found)


def _advice(found: list[Difference]) -> str:
    """Return what to do about differences: prepare again, or do not trust the model."""
    lost = [each for each in found if each.repair is None]
    if not lost:
        return "Prepare the recordings as in training, before cutting windows."
    names = ", ".join(dict.fromkeys(each.name for each in lost))
    return (
        f"Prepare the recordings as in training. For the {names}, start from the original "
        "recordings: what a filter or a reference has removed cannot be restored."
    )
