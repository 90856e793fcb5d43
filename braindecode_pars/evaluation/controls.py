"""Control analyses: repeat a comparison on control signals, each without one signal property."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from braindecode_pars._common import checks, files, names, tables
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.evaluation import (
    changed_signals,
    paired_tests,
    protocols,
    random_effects,
    splitting,
)
from braindecode_pars.windows import Windows

#: Names of the controls; all except "labels" change the signals.
CONTROLS = tuple(names.CONTROLS)
#: Value of the column ``control`` for the original windows.
UNCHANGED = "none"


# The module, the function and its argument have the same name; the argument is a list of controls.
def controls(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Any,
    *,
    controls: Sequence[str] = CONTROLS,
    n_train_subjects: Sequence[int] | None = None,
    cv: Any = None,
    test_subjects: Sequence | None = None,
    seeds: Sequence[int] = range(5),
    metrics: Sequence[str] = ("balanced_accuracy",),
    dataset: str = "",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    equal_sizes: bool = True,
) -> pd.DataFrame:
    """Repeat a comparison of methods on control signals, each of which lacks one property.

    Use these control analyses to find out which signal properties the difference between two
    methods depends on. The methods are scored on the original windows, and again on the windows of
    each control, with the same subjects, seeds and draws (random subsets of labeled subjects). Each
    control changes both training and test windows. With ``n_train_subjects``, the protocol is
    :func:`~braindecode_pars.evaluation.label_efficiency`, otherwise
    :func:`~braindecode_pars.evaluation.compare`.

    ========== ============================================ ========================================
    Control    Change of the windows                        If the difference disappears, it ...
    ========== ============================================ ========================================
    slow       high-pass filtered at 7 Hz                   depends on low-frequency activity of the
                                                            eyes, sweat, movement or the brain
    detrended  linear trend subtracted from each window     depends on linear trends within windows
    eyes       EOG regressed out, or frontal channels if    depends on ocular activity, or on
               there is no EOG channel                      activity of the frontal brain
    phase      phase-randomized; power and covariance are   depends on waveform or timing
               unchanged
    aperiodic  1/f removed from the spectra                 depends on the slope or offset of 1/f,
                                                            not on rhythms
    amplitude  amplitude-normalized per channel and window  depends on total power
    order      time-shuffled: patches of one second are     depends on the time course
               put in random order
    labels     labels permuted within each subject          (in this control, scores above chance
                                                            level indicate data leakage)
    ========== ============================================ ========================================

    An additional control, ``"sham"``, runs only if ``controls`` contains it. It removes and
    restores 1/f, to measure the effect of the procedure of ``"aperiodic"`` itself.

    :func:`control_gains` returns a table with the difference that remains in each control,
    :func:`describe_controls` describes this table in sentences, and :func:`plotting.control_gains
    <braindecode_pars.plotting.control_gains>` draws it. :class:`ControlSignals` computes the
    control signals, also with a different high-pass frequency or patch length.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name. At least two are required.
    windows_ds : BaseConcatDataset
        Labeled windows, with ``subject`` in the descriptions of the recordings.
    controls : sequence of str
        Names of controls from the table above, or ``"sham"``. A control that cannot be computed for
        the windows, such as ``"eyes"`` without EOG or frontal channels, is skipped with a warning.
    n_train_subjects : sequence of int | None
        Numbers of labeled training subjects, as in
        :func:`~braindecode_pars.evaluation.label_efficiency`. If None, each fit is trained on all
        subjects that it does not test.
    cv, test_subjects, metrics, dataset, unlabeled_label, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.label_efficiency`, or in
        :func:`~braindecode_pars.evaluation.compare`.
    seeds : sequence of int
        Random seeds. If ``n_train_subjects`` is given, each seed also determines a draw of labeled
        subjects.
    out : path | None
        Folder for the scores (``scores.csv``) and the finished folds, with a subfolder for each
        control. If a run was interrupted, the same call resumes it. A later call may add controls,
        seeds or methods.

    Returns
    -------
    pandas.DataFrame
        Scores with the columns of the protocol and the column ``control``, which is ``"none"`` for
        the original windows. For the control ``"slow"``, the column ``note`` states how many
        recordings were high-pass filtered before windowing. In the remaining recordings, each
        window was filtered separately, which leaves low frequencies near both ends of the window.

    Raises
    ------
    ValueError
        If there are fewer than two methods, or a control is unknown or listed twice. Also in the
        cases in which the protocol raises an error.
    FoldError
        If a fit fails.

    Warns
    -----
    UserWarning
        If a control is skipped. Also in the cases in which the protocol issues a warning.

    Notes
    -----
    The control signals of only one control at a time are in memory. In a single process, the
    features of each window are computed once for all draws, see :func:`features_computed_once`.

    Examples
    --------
    Compare absolute with relative band power, on the original and amplitude-normalized windows:

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
    splitting.check_list("controls", controls, checks.choice(*CONTROLS, changed_signals.SHAM))
    if len(estimators) < 2:  # control_gains would fail, after all methods were fitted
        raise ValueError(
            "controls() compares methods and requires at least 2 estimators, got "
            f"{len(estimators)}. Add an estimator to compare with, such as a random encoder."
        )
    if out is not None:
        out = Path(out).expanduser()
        ResultsFolder(out, "controls", marks=(f"{UNCHANGED}/",)).check()
    settings: dict[str, Any] = dict(cv=cv, test_subjects=test_subjects, seeds=seeds)
    settings |= dict(metrics=metrics, dataset=dataset, unlabeled_label=unlabeled_label)
    settings |= dict(n_jobs=n_jobs, verbose=verbose, equal_sizes=equal_sizes)
    protocol: Callable[..., pd.DataFrame] = protocols.compare
    if n_train_subjects is not None:
        protocol, settings["n_train_subjects"] = protocols.label_efficiency, n_train_subjects

    scored: list[pd.DataFrame] = []
    for control in (UNCHANGED, *controls):
        changed: Any = windows_ds
        if control != UNCHANGED:
            try:
                corpus = splitting.Corpus.of(windows_ds, dataset, unlabeled_label)
                changed = changed_windows(control, corpus)
            except ValueError as error:
                checks.warn_user(f"The control {control!r} was skipped: {error}")
                continue
        folder = None if out is None else out / control
        with windows_estimator.features_computed_once():
            scores = protocol(estimators, changed, out=folder, **settings)
        scored.append(scores.assign(control=control))
        if control == "slow":
            scored[-1]["note"] = _filtering(corpus.X)
    scores = pd.concat(scored, ignore_index=True)
    if out is not None:
        files.replace_file(out / "scores.csv", scores.to_csv(index=False))
    return scores


def _filtering(windows: Windows) -> str:
    """Return a note with the number of recordings that were filtered before windowing."""
    n = len(windows.recordings)
    n_filtered = sum(changed_signals.whole_recording(windows, i) is not None for i in range(n))
    return f"{n_filtered} of {n} recordings were high-pass filtered before windowing"


def changed_windows(control: str, corpus: splitting.Corpus) -> Windows:
    """Return windows to which a control was applied: changed samples, or permuted labels.

    The changed samples are in memory.
    """
    if control == "labels":
        if splitting.classes_of_subjects(corpus) is not None:
            raise ValueError(
                "each subject has windows of one class only, so permuting labels within subjects "
                "has no effect."
            )
        labeled, y = corpus.labeled, corpus.y.copy()
        y[labeled] = changed_signals.permuted_labels(y[labeled], corpus.groups[labeled])
        return corpus.X.with_labels(y)
    return changed_signals.ControlSignals(control).transform(corpus.X)


#: Significance level of all tests. The confidence intervals have 1 - LEVEL (95 %) coverage.
LEVEL = 0.05

#: Columns that identify a row of the table of :func:`control_gains`.
_KEYS = ["dataset", "n_train_subjects", "method", "against", "control"]


def control_gains(
    scores: pd.DataFrame, metric: str | None = None, *, against: str = "from scratch"
) -> pd.DataFrame:
    r"""Test how much of the difference between methods remains in each control analysis.

    Let :math:`g_{sd}` be the score of a method minus the score of the method ``against``, for test
    subject :math:`s` and draw :math:`d` (random subset of labeled subjects), on the original
    windows. Let :math:`g'_{sd}` be the same difference on the windows of a control. The table
    contains the means of :math:`g` (column ``gain``), of :math:`g'` (``without``) and of the
    reduction :math:`g - g'` (``lost``), each with a 95 % confidence interval. The proportion of the
    difference that remains (``share``) is :math:`\bar g' / \bar g`.

    The tests are the same as in :func:`~braindecode_pars.evaluation.paired_tests`: subjects and
    draws are crossed random effects. With a single draw, or if all seeds have the same training
    subjects (protocol ``compare``), the corrected resampled t-test is used. With one or two
    subjects, the differences are not tested.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`~braindecode_pars.evaluation.controls`.
    metric : str | None
        Metric of the differences. If None, the only metric of the scores.
    against : str
        Name of the method with which all other methods are compared.

    Returns
    -------
    pandas.DataFrame
        One row for each dataset, number of training subjects, method and control:

        - ``dataset``, ``n_train_subjects``, ``method``, ``against``, ``control``;
        - ``n_subjects`` and ``n_draws``: numbers of subjects and of draws; a subject with an
          undefined score is excluded;
        - ``gain``, ``without`` and ``lost`` (see above), each with its 95 % confidence interval and
          p-value: ``gain_low``, ``gain_high``, ``gain_p``, and so on;
        - ``share``: proportion of the difference that remains in the control; NaN if the original
          difference is not significantly above zero (p < 0.05, uncorrected);
        - ``score``, ``score_low``, ``score_high``: mean score of the method in the control, with
          its 95 % confidence interval; ``chance_p``: p-value of the difference between this score
          and the chance level, NaN if the chance level is unknown.

        For the control ``"labels"``, whose scores are compared with chance level, the table also
        has a row for the method ``against`` itself, in which the differences are NaN. The last
        column is ``metric``.

    Raises
    ------
    ValueError
        If a column, the metric or the method ``against`` is missing from the scores. If the scores
        have several metrics and ``metric`` is None. If the scores contain no control. If two rows
        differ only in ``value``.

    Notes
    -----
    The p-values and confidence intervals are not corrected for the number of methods and controls.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import control_gains
    >>> same = dict(protocol="label_efficiency", dataset="", n_train_subjects=4)
    >>> scores = pd.DataFrame([
    ...     dict(same, method=method, subject=subject, seed=seed, metric="balanced_accuracy",
    ...          value=0.6 + gain * (control == "none") + 0.01 * (subject + seed) * gain,
    ...          control=control)
    ...     for control in ("none", "slow")
    ...     for method, gain in [("PARS", 0.05), ("from scratch", 0.0)]
    ...     for subject in range(6)
    ...     for seed in range(4)
    ... ])
    >>> gains = control_gains(scores)
    >>> gains[["method", "control", "gain", "without", "share"]].round(3)
      method control   gain  without  share
    0   PARS    slow  0.052    0.002  0.038
    """
    columns = [*tables.SCORES, "control"]
    rows = tables.checked_scores(tables.rows_of(scores, metric), columns)
    for column, required in (("method", against), ("control", UNCHANGED)):
        if required not in rows[column].tolist():
            available = ", ".join(map(str, dict.fromkeys(rows[column])))
            raise ValueError(
                f"control_gains() requires scores with {column}={required!r}, but the column "
                f"{column!r} contains only: {available}. Add these scores (the control "
                f"{UNCHANGED!r} is the original windows), or pass a different method as against."
            )
    rows = rows[rows["subject"] != tables.POOLED]
    # Folds of a cross-validation can differ by one in their number of training subjects.
    in_folds = rows["protocol"].isin(paired_tests.CROSS_VALIDATION)
    smallest = rows.groupby("dataset")["n_train_subjects"].transform("min")
    rows = rows.assign(n_train_subjects=rows["n_train_subjects"].mask(in_folds, smallest))
    names = {column: list(dict.fromkeys(rows[column])) for column in ("method", "control")}
    gains = []
    for (dataset, n), group in rows.groupby(_KEYS[:2], sort=False):
        chance = tables.chance_level(group)
        values = group.pivot_table(
            "value", "subject", ["control", "method", "seed"], dropna=False, sort=False
        )
        for method, control in product(*names.values()):
            if control != UNCHANGED and (method != against or control == "labels"):
                key = dict(zip(_KEYS, (dataset, n, method, against, control), strict=True))
                gains.append(key | _gain_row(values, key, chance, group))
    if not gains:
        raise ValueError(
            "control_gains() requires scores of at least one control and of a method other than "
            f"against={against!r}, got the methods {names['method']} and the controls "
            f"{names['control']}. Add the missing scores."
        )
    return pd.DataFrame(gains).assign(metric=rows["metric"].iloc[0])


def _gain_row(
    values: pd.DataFrame, key: Mapping[str, Any], chance: float | None, rows: pd.DataFrame
) -> dict[str, Any]:
    """Return one row of the table; ``values`` contains the scores of ``rows``, by subject."""

    def test(cells: np.ndarray) -> random_effects.MeanTest:
        """Test the mean of values of shape (n_subjects, n_draws)."""
        return paired_tests.tested_mean(cells[:, :, None], rows)[0]

    method, against = key["method"], key["against"]
    unchanged, changed = values[UNCHANGED], values[key["control"]]
    gains = unchanged[method] - unchanged[against], changed[method] - changed[against]
    complete = np.isfinite(pd.concat(gains, axis=1)).all(axis=1)
    gain, without, scores = (frame[complete].to_numpy() for frame in (*gains, changed[method]))
    score = test(scores)
    row: dict[str, Any] = dict(n_subjects=int(complete.sum()), n_draws=gain.shape[1])
    for name, differences in {"gain": gain, "without": without, "lost": gain - without}.items():
        # A method is not compared with itself.
        mean = random_effects.MeanTest.of(math.nan) if method == against else test(differences)
        row |= {name: mean.mean, f"{name}_low": mean.ci_low, f"{name}_high": mean.ci_high}
        row[f"{name}_p"] = mean.p
    is_improvement = row["gain_p"] < LEVEL and row["gain"] > 0
    row["share"] = row["without"] / row["gain"] if is_improvement else math.nan
    row |= dict(score=score.mean, score_low=score.ci_low, score_high=score.ci_high)
    row["chance_p"] = math.nan if chance is None else test(scores - chance).p
    return row


# Sentences ------------------------------------------------------------------------------------

#: Limitations of controls in which a difference is no longer significantly above zero.
_LIMITATIONS = {
    "slow": "Low-frequency activity can come from the eyes, sweat, movement or the brain; the "
    "control 'slow' does not distinguish these sources.",
    "aperiodic": "The control 'aperiodic' removes the slope and the offset of 1/f together. This "
    "also removes differences in overall amplitude.",
    "eyes": "If there is no EOG channel, the control 'eyes' uses frontal channels, which also "
    "record brain activity. A reduced difference therefore does not prove that ocular artifacts "
    "contribute to it.",
}


def describe_controls(gains: pd.DataFrame) -> str:
    """Describe the results of control analyses in sentences.

    Controls are described only where a method scores significantly higher than the method
    ``against`` on the original windows (p < 0.05, uncorrected), separately for each number of
    training subjects. The sentences state for each control whether the difference between the two
    methods is significantly smaller than on the original windows, and whether the remaining
    difference is significantly above zero. These tests (p < 0.05) are not corrected for the number
    of controls. Scores with permuted labels are tested against chance level, with Holm's correction
    for multiple comparisons.

    Parameters
    ----------
    gains : DataFrame
        Table of :func:`~braindecode_pars.evaluation.control_gains`.

    Returns
    -------
    str
        One paragraph for each method and number of training subjects, followed by paragraphs about
        the limitations of the controls and about the permuted labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import describe_controls
    >>> same = dict(dataset="", n_train_subjects=4, method="PARS", against="random encoder",
    ...             gain=0.04, gain_low=0.02, gain_high=0.06, gain_p=0.001, chance_p=0.01)
    >>> gains = pd.DataFrame([
    ...     dict(same, control="slow", without=0.003, without_low=-0.01, without_high=0.02,
    ...          without_p=0.6, lost=0.037, lost_low=0.02, lost_high=0.05, lost_p=0.001,
    ...          share=0.075),
    ...     dict(same, control="order", without=0.041, without_low=0.02, without_high=0.06,
    ...          without_p=0.001, lost=-0.001, lost_low=-0.02, lost_high=0.02, lost_p=0.9,
    ...          share=1.0),
    ... ])
    >>> print(describe_controls(gains))
    With 4 training subjects, PARS scores significantly higher than random encoder: difference \
+0.040 (uncorrected 95 % CI 0.020 to 0.060). Differences on the control signals: high-pass \
filtered +0.003 (CI -0.010 to 0.020; significantly reduced, not significantly above zero); \
time-shuffled +0.041 (CI 0.020 to 0.060; not significantly reduced, significantly above zero).
    Low-frequency activity can come from the eyes, sweat, movement or the brain; the control \
'slow' does not distinguish these sources.
    """
    tables.check_table(gains, "gains", [*_KEYS, "gain", "without", "lost", "lost_low", "chance_p"])
    signals = gains[gains["control"] != "labels"]
    paragraphs = [
        _describe_gain(rows, signals["dataset"].nunique() > 1)
        for _, rows in signals.groupby(_KEYS[:3], sort=False, dropna=False)
    ]
    is_removed = _is_above_zero(signals, "gain") & _is_above_zero(signals, "lost")
    is_removed &= ~_is_above_zero(signals, "without")
    removing = signals["control"][is_removed].tolist()
    paragraphs += [text for name, text in _LIMITATIONS.items() if name in removing]
    permuted = gains[gains["control"] == "labels"]
    if len(permuted):
        paragraphs.append(_describe_labels(permuted))
    return "\n".join(paragraphs)


def _is_above_zero(gains: pd.DataFrame, name: str) -> pd.Series:
    """Return whether the mean of each row is significantly above zero."""
    return (gains[f"{name}_p"] < LEVEL) & (gains[name] > 0)


def _describe_gain(rows: pd.DataFrame, names_dataset: bool) -> str:
    """Return the sentences about the difference between two methods in all controls."""
    first = rows.iloc[0]
    beginning = f"On {first['dataset']}, with" if names_dataset else "With"
    n = first["n_train_subjects"]
    beginning = f"{beginning} {n:g} training subject{'' if n == 1 else 's'}, {first['method']}"
    difference = f"{first['gain']:+.3f} (uncorrected 95 % CI {_interval(first, 'gain')})"
    if not _is_above_zero(rows, "gain").iloc[0]:
        return (
            f"{beginning} does not score significantly higher than {first['against']}: difference "
            f"{difference}. The control analyses therefore cannot show which signal properties an "
            "improvement depends on."
        )
    remaining = np.where(_is_above_zero(rows, "without"), "", "not ")
    change = np.where(
        _is_above_zero(rows, "lost"), "significantly reduced", "not significantly reduced"
    )
    change = np.where((rows["lost_p"] < LEVEL) & (rows["lost"] < 0), "significantly larger", change)
    texts = [
        f"{changed_signals.DESCRIPTIONS[row['control']]} {row['without']:+.3f} (CI "
        f"{_interval(row, 'without')}; {change[i]}, {remaining[i]}significantly above zero)"
        for i, (_, row) in enumerate(rows.iterrows())
    ]
    return (
        f"{beginning} scores significantly higher than {first['against']}: difference "
        f"{difference}. Differences on the control signals: {'; '.join(texts)}."
    )


def _interval(row: pd.Series, name: str) -> str:
    if math.isnan(row[f"{name}_low"]):
        return "requires at least 3 subjects"
    return f"{row[f'{name}_low']:.3f} to {row[f'{name}_high']:.3f}"


def _describe_labels(rows: pd.DataFrame) -> str:
    """Return sentences about the scores with permuted labels."""
    is_leaked = paired_tests.holm(rows["chance_p"]) < LEVEL
    text = (
        f"With labels permuted within each subject, {is_leaked.sum()} of "
        f"{rows['chance_p'].notna().sum()} tested scores differ significantly from chance level "
        "(Holm-corrected). Scores with an unknown chance level, or of fewer than 3 subjects, are "
        "not tested."
    )
    if not is_leaked.any():
        return text
    leaked = [
        f"{row['method']} with n_train_subjects={row['n_train_subjects']:g} "
        f"({row['score']:.3f}, uncorrected 95 % CI {_interval(row, 'score')})"
        for _, row in rows[is_leaked].iterrows()
    ]
    return (
        f"{text} Significant: {'; '.join(leaked)}. This indicates data leakage, so the scores with "
        "the original labels cannot be trusted. Check whether the methods have access to labels of "
        "test windows."
    )
