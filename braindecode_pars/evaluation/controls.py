"""A comparison once more on windows that lack one thing, to find out what a gain needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from torch.utils.data import Dataset

from braindecode_pars._common.checks import choice, positive, warn_user
from braindecode_pars._common.files import check_may_write, replace_file
from braindecode_pars.evaluation.changed_signals import permuted_labels
from braindecode_pars.evaluation.changed_windows import CHANGES, ChangedSignals, whole_recording
from braindecode_pars.evaluation.corpus import Corpus, check_arguments, check_list
from braindecode_pars.evaluation.protocols import compare, label_efficiency
from braindecode_pars.evaluation.splitting import classes_of_subjects
from braindecode_pars.windows.once import features_computed_once
from braindecode_pars.windows.table import Windows

__all__ = ["controls"]

#: Names of the controls; all but "labels" change signals.
CONTROLS = (*CHANGES, "labels")
#: Value of the column ``control`` for windows as they are.
UNCHANGED = "none"


# One name of the module, the function and an argument: the argument is a list of controls.
def controls(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Dataset,
    *,
    controls: Sequence[str] = CONTROLS,
    n_train_subjects: Sequence[int] | None = None,
    cv: Any = None,
    test_subjects: Sequence | None = None,
    seeds: Sequence[int] = range(5),
    metrics: Sequence[str] = ("balanced_accuracy",),
    dataset: str = "",
    unlabeled_label: Any = "auto",
    edge: float = 7.0,
    patch_seconds: float = 1.0,
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    equal_sizes: bool = True,
) -> pd.DataFrame:
    """Compare methods on windows as they are, and on windows that lack one thing.

    Methods, subjects, draws and seeds are the same each time: those of
    :func:`~braindecode_pars.evaluation.label_efficiency` with ``n_train_subjects``, else those of
    :func:`~braindecode_pars.evaluation.compare`. Training and test windows lack the same thing.

    ========== ================================================ ====================================
    Control    What the windows lack                            If a gain is not there any more
    ========== ================================================ ====================================
    slow       frequencies below ``edge``                       it needs slow voltages: of the eyes,
                                                                of sweat, movement or the brain
    detrended  a line in each window                            it needs the drift within a window
    eyes       what EOG or frontal channels predict             it needs what these channels record:
                                                                eyes, but also the frontal brain
    phase      phases, with power and covariance kept           it needs waveform or timing
    amplitude  scale of each channel and window                 it needs total power
    order      order of patches                                 it needs the time course
    labels     labels, which are permuted within each subject   expected: all scores are at chance
                                                                level, or there is a leak
    ========== ================================================ ====================================

    :func:`control_gains` makes a table of what is left of each gain, :func:`describe_controls` says
    it in sentences, and :func:`plotting.control_gains <braindecode_pars.plotting.control_gains>`
    draws it. The changes are those of :class:`ChangedSignals`.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name, at least two: the gain of one is over another one.
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    controls : sequence of str
        Names of controls. Those that the windows do not allow are left out with a warning, such as
        ``"eyes"`` without channels near the eyes.
    n_train_subjects : sequence of int | None
        Numbers of labelled training subjects, as in
        :func:`~braindecode_pars.evaluation.label_efficiency`. None trains on all that are not
        tested.
    cv, test_subjects, metrics, dataset, unlabeled_label, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.label_efficiency`, or in
        :func:`~braindecode_pars.evaluation.compare`.
    seeds : sequence of int
        Seeds, and with ``n_train_subjects`` draws of labelled subjects.
    edge : float
        Lowest frequency in Hz that the control ``"slow"`` keeps.
    patch_seconds : float
        Length in seconds of the patches of the control ``"order"``.
    out : path | None
        Folder for the scores, ``scores.csv``, and the finished folds, in a folder for each control.
        The same call resumes an interrupted run, also with more controls, seeds or methods.

    Returns
    -------
    pandas.DataFrame
        Scores with the columns of the protocols and ``control``, which is ``"none"`` for windows as
        they are. ``scores.attrs["notes"]`` says how slow voltages were removed.

    Raises
    ------
    ValueError
        When there are fewer than two methods, or a control is unknown or given twice. Also as in
        the protocols.
    FoldError
        When a fit fails.

    Warns
    -----
    UserWarning
        When a control is left out; and as the protocols.

    Notes
    -----
    The changed windows of one control at a time are in memory. Features are computed once for all
    draws, see :func:`features_computed_once`, in a single process.

    Examples
    --------
    Does the gain of absolute over relative band power need the amplitudes?

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower, control_gains, controls
    >>> regression = LogisticRegression(C=0.01)
    >>> methods = {
    ...     kind: make_pipeline(LogBandPower(power=kind), StandardScaler(), regression)
    ...     for kind in ("absolute", "relative")
    ... }
    >>> scores = controls(
    ...     methods,
    ...     datasets.mental_arithmetic(),
    ...     controls=["amplitude"],
    ...     n_train_subjects=[4],
    ...     cv=4,
    ...     seeds=[0, 1],
    ...     verbose=0,
    ... )
    >>> list(dict.fromkeys(scores["control"]))
    ['none', 'amplitude']
    >>> gains = control_gains(scores, against="relative")
    >>> gains[["method", "control", "n_subjects", "n_draws"]]
         method    control  n_subjects  n_draws
    0  absolute  amplitude          24        2
    """
    # Check the arguments before anything is computed
    check_list("controls", controls, choice(*CONTROLS))
    positive().check("edge", edge)
    positive().check("patch_seconds", patch_seconds)
    check_arguments(estimators, metrics, seeds, n_jobs, out)
    if len(estimators) < 2:
        only = ", ".join(estimators)
        raise ValueError(f"The gain of a method is over another one, but there is only {only}.")
    if out is not None:
        out = Path(out).expanduser()
        check_may_write(out, "controls", is_ours=(out / UNCHANGED).is_dir())
    settings: dict[str, Any] = dict(cv=cv, test_subjects=test_subjects, seeds=seeds)
    settings |= dict(metrics=metrics, dataset=dataset, unlabeled_label=unlabeled_label)
    settings |= dict(n_jobs=n_jobs, verbose=verbose, equal_sizes=equal_sizes)
    protocol: Callable[..., pd.DataFrame] = compare
    if n_train_subjects is not None:
        protocol, settings["n_train_subjects"] = label_efficiency, n_train_subjects

    tables: list[pd.DataFrame] = []
    notes: dict[str, str] = {}
    for control in (UNCHANGED, *controls):
        changed: Any = windows_ds
        if control != UNCHANGED:
            try:
                corpus = Corpus.of(windows_ds, dataset, unlabeled_label)
                changed = _changed(control, corpus, edge, patch_seconds)
            except ValueError as error:
                warn_user(f"The control {control!r} is left out: {error}")
                continue
            if control == "slow":
                notes[control] = _how_filtered(corpus.X)
        folder = None if out is None else out / control
        with features_computed_once():
            scores = protocol(estimators, changed, out=folder, **settings)
        tables.append(scores.assign(control=control))
    scores = pd.concat(tables, ignore_index=True)
    scores.attrs = {**tables[0].attrs, "notes": notes}
    scores.attrs["undefined"] = [each for table in tables for each in table.attrs["undefined"]]
    if out is not None:
        replace_file(out / "scores.csv", scores.to_csv(index=False))
    return scores


def _changed(control: str, corpus: Corpus, edge: float, patch_seconds: float) -> Windows:
    """Return the windows of a control, with changed samples in memory, or with other labels."""
    if control == "labels":
        if classes_of_subjects(corpus) is not None:
            raise ValueError(
                "every subject has windows of one class only, so there is nothing to permute."
            )
        labelled, y = corpus.labeled, corpus.y.copy()
        y[labelled] = permuted_labels(y[labelled], corpus.groups[labelled])
        return corpus.X.with_labels(y)
    patches = patch_seconds if control == "order" else None
    return ChangedSignals(control, edge=edge, patch_seconds=patches).transform(corpus.X)


def _how_filtered(windows: Windows) -> str:
    rows = range(len(windows.recordings))
    whole = sum(whole_recording(windows, row) is not None for row in rows)
    note = f"{whole} of {len(rows)} recordings were filtered before they were cut"
    if whole < len(rows):
        note += "; of the others each window was, which leaves slow voltages near its ends"
    return note
