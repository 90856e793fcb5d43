"""A comparison once more on windows that lack one thing, to find out what a gain needs."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from braindecode_pars._common import checks, files, names, tables
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.evaluation import (
    changed_signals,
    paired_tests,
    protocols,
    random_effects,
    splitting,
)
from braindecode_pars.windows import Windows

#: Names of the controls; all but "labels" change signals.
CONTROLS = tuple(names.CONTROLS)
#: Value of the column ``control`` for windows as they are.
UNCHANGED = "none"


# One name of the module, the function and an argument: the argument is a list of controls.
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
    aperiodic  the part of each spectrum that falls as 1/f      it needs slope or level of 1/f, not
                                                                rhythms
    amplitude  scale of each channel and window                 it needs total power
    order      order of patches                                 it needs the time course
    labels     labels, which are permuted within each subject   expected: all scores are at chance
                                                                level, or there is a leak
    ========== ================================================ ====================================

    ``"sham"`` is not among the default ones: the aperiodic part is divided out and put back, which
    shows what that procedure costs by itself.

    :func:`control_gains` makes a table of what is left of each gain, :func:`describe_controls` says
    it in sentences, and :func:`plotting.control_gains <braindecode_pars.plotting.control_gains>`
    draws it. The changes are those of :class:`ControlSignals`.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name, at least two: the gain of one is over another one.
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions.
    controls : sequence of str
        Names of controls. Those that the windows do not allow are left out with a warning, such as
        ``"eyes"`` without channels near the eyes.
    n_train_subjects : sequence of int | None
        Numbers of labeled training subjects, as in
        :func:`~braindecode_pars.evaluation.label_efficiency`. None trains on all that are not
        tested.
    cv, test_subjects, metrics, dataset, unlabeled_label, n_jobs, verbose, equal_sizes
        As in :func:`~braindecode_pars.evaluation.label_efficiency`, or in
        :func:`~braindecode_pars.evaluation.compare`.
    seeds : sequence of int
        Seeds, and with ``n_train_subjects`` draws of labeled subjects.
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
        they are. The column ``note`` says how low frequencies were removed.

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
    splitting.check_list("controls", controls, checks.choice(*CONTROLS, changed_signals.SHAM))
    checks.positive().check("edge", edge)
    checks.positive().check("patch_seconds", patch_seconds)
    splitting.check_arguments(estimators, metrics, seeds, n_jobs, out)
    if len(estimators) < 2:
        only = ", ".join(estimators)
        raise ValueError(f"The gain of a method is over another one, but there is only {only}.")
    if out is not None:
        out = Path(out).expanduser()
        files.check_may_write(out, "controls", is_ours=(out / UNCHANGED).is_dir())
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
                changed = changed_windows(control, corpus, edge, patch_seconds)
            except ValueError as error:
                checks.warn_user(f"The control {control!r} is left out: {error}")
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
    """Return which windows were filtered together with their recordings, in words."""
    rows = range(len(windows.recordings))
    whole = sum(changed_signals.whole_recording(windows, row) is not None for row in rows)
    others = "; of the others each window was, which leaves low frequencies near its ends"
    text = f"{whole} of {len(rows)} recordings were filtered before they were cut"
    return text + others * (whole < len(rows))


def changed_windows(
    control: str, corpus: splitting.Corpus, edge: float = 7.0, patch_seconds: float = 1.0
) -> Windows:
    """Return the windows of a control, with changed samples in memory, or with other labels."""
    if control == "labels":
        if splitting.classes_of_subjects(corpus) is not None:
            raise ValueError(
                "every subject has windows of one class only, so there is nothing to permute."
            )
        labeled, y = corpus.labeled, corpus.y.copy()
        y[labeled] = changed_signals.permuted_labels(y[labeled], corpus.groups[labeled])
        return corpus.X.with_labels(y)
    patches = patch_seconds if control == "order" else None
    return changed_signals.ControlSignals(control, edge=edge, patch_seconds=patches).transform(
        corpus.X
    )


#: Level of all tests, of a study after Holm's correction; the intervals are of 95 %.
LEVEL = 0.05

_KEYS = ["dataset", "n_train_subjects", "method", "against", "control"]


def control_gains(
    scores: pd.DataFrame, metric: str | None = None, *, against: str = "scratch"
) -> pd.DataFrame:
    r"""Return the gain of each method on windows as they are, and what is left of it.

    The gain of a method for subject :math:`s` and draw :math:`d` is its score minus that of the
    method ``against``, :math:`g_{sd}`, and :math:`g'_{sd}` on the windows of a control. The table
    has the means of :math:`g`, of :math:`g'` and of what is lost, :math:`g - g'`, each with an
    interval of 95 %. The test is that of :func:`~braindecode_pars.evaluation.paired_tests`:
    subjects and draws are random; with one draw, and in a cross-validation, it is the corrected
    t-test. The share that remains is :math:`\bar g' / \bar g`.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`~braindecode_pars.evaluation.controls`.
    metric : str | None
        Metric of the gains; None means the only one of the scores.
    against : str
        Method that the others are compared with.

    Returns
    -------
    pandas.DataFrame
        One row for each dataset, number of training subjects, method and control:

        - ``dataset``, ``n_train_subjects``, ``method``, ``against``, ``control``;
        - ``n_subjects`` and ``n_draws``: subjects without a defined score are left out;
        - ``gain``, ``without`` and ``lost``, each with its interval and p-value: ``gain_low``,
          ``gain_high``, ``gain_p``, ...;
        - ``share``: the share that remains; NaN where the gain is not significantly above zero at
          the level of 5 %;
        - ``score``, ``score_low``, ``score_high``: mean score of the method in the control, and
          ``chance_p``, the p-value of its difference from chance level, where that is known.

        For the control ``"labels"`` there is also a row of the method ``against``, without gains.
        The last column is ``metric``.

    Raises
    ------
    ValueError
        When the scores lack a column, the metric or the method ``against``, have several metrics
        and none is named, have no control, or have rows that differ in their value alone.

    Notes
    -----
    The p-values are not corrected for several methods and controls.

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
    ...     for method, gain in [("PARS", 0.05), ("scratch", 0.0)]
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
    for column, wanted in (("method", against), ("control", UNCHANGED)):
        if wanted not in rows[column].tolist():
            known_names = ", ".join(map(str, dict.fromkeys(rows[column])))
            raise ValueError(f"The scores have no {column} {wanted!r}; they have {known_names}.")
    rows = rows[rows["subject"] != tables.POOLED]
    # Folds of a cross-validation may differ by one in their number of training subjects.
    in_folds = rows["protocol"].isin(paired_tests.CROSS_VALIDATION)
    smallest = rows.groupby("dataset")["n_train_subjects"].transform("min")
    rows = rows.assign(n_train_subjects=rows["n_train_subjects"].mask(in_folds, smallest))
    names = {column: list(dict.fromkeys(rows[column])) for column in ("method", "control")}
    gains = []
    for (dataset, n), group in rows.groupby(_KEYS[:2], sort=False):
        chance = tables.chance_level(group)
        averages = in_folds[group.index].any()
        values = group.pivot_table(
            "value", "subject", ["control", "method", "seed"], dropna=False, sort=False
        )
        for method, control in product(*names.values()):
            if control != UNCHANGED and (method != against or control == "labels"):
                key = dict(zip(_KEYS, (dataset, n, method, against, control), strict=True))
                gains.append(key | _measured(values, key, chance, averages))
    if not gains:
        raise ValueError(
            "The scores have no control and no other method to compare: they have the methods "
            f"{', '.join(map(str, names['method']))} and the controls "
            f"{', '.join(map(str, names['control']))}."
        )
    return pd.DataFrame(gains).assign(metric=rows["metric"].iloc[0])


def _measured(
    values: pd.DataFrame, key: Mapping[str, Any], chance: float | None, averages: bool
) -> dict[str, Any]:
    """Return the numbers of one row; ``values`` has subjects as rows."""

    def test(cells: np.ndarray) -> random_effects.MeanTest:
        """Test the mean of values of subjects and draws; of two subjects, too."""
        if averages or min(cells.shape) < 2:
            return random_effects.corrected_mean(cells.mean(axis=1), int(key["n_train_subjects"]))
        return random_effects.crossed_mean(cells)

    method, against = key["method"], key["against"]
    unchanged, changed = values[UNCHANGED], values[key["control"]]
    gains = unchanged[method] - unchanged[against], changed[method] - changed[against]
    complete = np.isfinite(pd.concat(gains, axis=1)).all(axis=1)
    gain, without, scores = (frame[complete].to_numpy() for frame in (*gains, changed[method]))
    score = test(scores)
    row: dict[str, Any] = dict(n_subjects=int(complete.sum()), n_draws=gain.shape[1])
    for name, differences in {"gain": gain, "without": without, "lost": gain - without}.items():
        mean = test(np.full_like(differences, np.nan) if method == against else differences)
        row |= {name: mean.mean, f"{name}_low": mean.ci_low, f"{name}_high": mean.ci_high}
        row[f"{name}_p"] = mean.p
    is_gain = row["gain_p"] < LEVEL and row["gain"] > 0
    row["share"] = row["without"] / row["gain"] if is_gain else math.nan
    row |= dict(score=score.mean, score_low=score.ci_low, score_high=score.ci_high)
    row["chance_p"] = math.nan if chance is None else test(scores - chance).p
    return row


# Sentences ------------------------------------------------------------------------------------

#: What the windows of a control lack.
_LACKS = {name: control.description for name, control in names.CONTROLS.items()}
_LACKS["sham"] = "what dividing by the aperiodic part costs"
_LIMITS = {
    "slow": "Low-frequency activity is of eyes, sweat, movement and brain; the control 'slow' does "
    "not tell which.",
    "aperiodic": "The control 'aperiodic' removes level and slope of 1/f together, and with the "
    "level the amplitude.",
    "eyes": "Frontal channels, which stand for the eyes where there is no EOG channel, record the "
    "brain, too, so a loss without them does not prove that it is the eyes.",
}


def describe_controls(gains: pd.DataFrame) -> str:
    """Describe in plain sentences what each gain needs.

    A gain is established when it is significantly above zero. A control removes it when the loss is
    significant, and what is left is not. The level is 5 %, without a correction for several
    controls. Whether the scores with permuted labels are at chance level is tested with Holm's
    correction.

    Parameters
    ----------
    gains : DataFrame
        Table of :func:`~braindecode_pars.evaluation.control_gains`.

    Returns
    -------
    str
        Sentences, one paragraph for each method and number of training subjects with a gain. Then
        follow the methods without one, the limits of the controls, and the permuted labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import describe_controls
    >>> same = dict(dataset="", n_train_subjects=4, method="PARS", against="scratch",
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
    With 4 training subjects, PARS outperforms scratch by +0.040 (0.020 to 0.060). The gain is not \
there without low-frequency activity (+0.003, -0.010 to 0.020). It remains without the order \
of patches (+0.041, 0.020 to 0.060).
    Low-frequency activity is of eyes, sweat, movement and brain; the control 'slow' does not tell \
which.
    """
    tables.check_table(gains, "gains", [*_KEYS, "gain", "without", "lost", "lost_low", "chance_p"])
    signals = gains[gains["control"] != "labels"]
    paragraphs, others, removing = [], [], set()
    for _, rows in signals.groupby(_KEYS[:3], sort=False, dropna=False):
        first = rows.iloc[0]
        if not (first["gain_p"] < LEVEL and first["gain"] > 0):
            n, gain = f"{first['n_train_subjects']:g}", f"{first['gain']:+.3f}"
            what = f"{first['method']} with {n} labeled subjects"
            others.append(f"{what} ({gain}, {_interval(first, 'gain')})")
            continue
        kinds = rows.apply(_kind, axis=1)
        removing |= {*rows["control"][kinds == "removed"]}
        paragraphs.append(_describe_gain(rows, kinds, signals["dataset"].nunique() > 1))
    if others:
        against = signals["against"].iloc[0]
        paragraphs.append(
            f"Not significant over {against} in these draws: {'; '.join(others)}; so the controls "
            "cannot say what the gain depends on."
        )
    paragraphs += [text for name, text in _LIMITS.items() if name in removing]
    return "\n".join([*paragraphs, *_describe_labels(gains[gains["control"] == "labels"])])


def _describe_gain(rows: pd.DataFrame, kinds: pd.Series, names_dataset: bool) -> str:
    """Return the sentences about one gain."""
    first = rows.iloc[0]
    where = f"On {first['dataset']}, with" if names_dataset else "With"
    text = (
        f"{where} {first['n_train_subjects']:g} training subjects, {first['method']} outperforms "
        f"{first['against']} by {first['gain']:+.3f} ({_interval(first, 'gain')})."
    )
    for kind, verb in _VERBS.items():
        control_texts = [
            f"{_LACKS[row['control']]} ({row['without']:+.3f}, {_interval(row, 'without')})"
            for _, row in rows[kinds == kind].iterrows()
        ]
        if control_texts:
            last = " nor without " if kind == "removed" else " and "
            text += f" {verb} without {joined(control_texts, last)}."
    guesses = rows[(kinds == "removed") & (rows["chance_p"] >= LEVEL)]["control"].map(_LACKS)
    if len(guesses):
        named = joined(guesses.tolist(), " or without ")
        text += f" {first['method']} itself is not above chance level without {named}."
    return text


#: Beginning of the sentence about each kind of control.
_VERBS = {
    "removed": "The gain is not there",
    "smaller": "It is smaller",
    "kept": "It remains",
    "larger": "It is larger",
    "unclear": "It is unclear whether it remains",
}


def _kind(row: pd.Series) -> str:
    """Return what a control shows of an established gain."""
    is_left = row["without_p"] < LEVEL and row["without"] > 0
    if row["lost_p"] < LEVEL:
        if row["lost"] < 0:
            return "larger"
        return "smaller" if is_left else "removed"
    return "kept" if is_left else "unclear"


def _interval(row: pd.Series, name: str) -> str:
    return f"{row[f'{name}_low']:.3f} to {row[f'{name}_high']:.3f}"


def joined(texts: Sequence[str], last: str) -> str:
    """Return texts in a row, with other words before the last one."""
    return last.join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def _describe_labels(rows: pd.DataFrame) -> list[str]:
    """Return the sentence about scores with permuted labels."""
    if rows.empty:
        return []
    if rows["chance_p"].isna().all():
        return ["The chance level is unknown, so the scores with permuted labels are not tested."]
    leaked = rows[paired_tests.holm(rows["chance_p"]) < LEVEL]
    if leaked.empty:
        return [
            "With labels permuted within each subject, the scores of all methods are at chance "
            f"level ({rows['score'].min():.3f} to {rows['score'].max():.3f})."
        ]
    named = [
        f"{row['method']} with {row['n_train_subjects']:g} training subjects "
        f"({row['score']:.3f}, {_interval(row, 'score')})"
        for _, row in leaked.iterrows()
    ]
    return [
        f"With labels permuted within each subject, not at chance level: {'; '.join(named)}. The "
        "other scores cannot be trusted: look for a leak."
    ]
