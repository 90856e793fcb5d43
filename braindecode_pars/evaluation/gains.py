"""What is left of a gain in each control: a table with intervals, and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._common.checks import checked
from braindecode_pars._common.tables import POOLED, SCORES, chance_level, check_table, of_metric
from braindecode_pars.evaluation.controls import UNCHANGED
from braindecode_pars.evaluation.paired_tests import CROSS_VALIDATION, holm
from braindecode_pars.evaluation.random_effects import MeanTest, corrected_mean, crossed_mean

__all__ = ["control_gains", "describe_controls"]

#: Level of all tests, of a study after Holm's correction; the intervals are of 95 %.
LEVEL = 0.05

_KEYS = ["dataset", "n_train_subjects", "method", "against", "control"]


@checked()
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
        Metric of the gains; None means the first one of the scores.
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
        The metric is in ``attrs["metric"]``.

    Raises
    ------
    ValueError
        When the scores lack a column, the metric or the method ``against``, or have no control.

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
    check_table(scores, "scores", [*SCORES, "control"])
    metric = scores["metric"].iloc[0] if metric is None else metric
    rows = of_metric(scores, metric, SCORES)
    for column, wanted in (("method", against), ("control", UNCHANGED)):
        if wanted not in rows[column].tolist():
            found = ", ".join(map(str, dict.fromkeys(rows[column])))
            raise ValueError(f"The scores have no {column} {wanted!r}; they have {found}.")
    table = pd.DataFrame(_rows(rows, scores, metric, against))
    if table.empty:
        raise ValueError(
            "The scores have no control and no other method to compare: they have the methods "
            f"{', '.join(map(str, dict.fromkeys(rows['method'])))} and the controls "
            f"{', '.join(map(str, dict.fromkeys(rows['control'])))}."
        )
    table.attrs = {"metric": metric}
    return table


def _rows(
    rows: pd.DataFrame, scores: pd.DataFrame, metric: str, against: str
) -> Iterator[dict[str, Any]]:
    rows = rows[rows["subject"] != POOLED]
    # Folds of a cross-validation may differ by one in their number of training subjects.
    in_folds = rows["protocol"].isin(CROSS_VALIDATION)
    smallest = rows.groupby("dataset", dropna=False)["n_train_subjects"].transform("min")
    rows = rows.assign(n_train_subjects=rows["n_train_subjects"].mask(in_folds, smallest))
    controls = [name for name in dict.fromkeys(rows["control"]) if name != UNCHANGED]
    methods = list(dict.fromkeys(rows["method"]))
    # The name "" of a dataset is NaN in a file that was read.
    for (dataset, n), group in rows.groupby(_KEYS[:2], sort=False, dropna=False):
        chance = chance_level(scores, metric, dataset)
        test = partial(_tested, n_train=int(n), averages=in_folds[group.index].any())
        values = group.pivot_table(
            "value", "subject", ["control", "method", "seed"], dropna=False, sort=False
        )
        for method, control in product(methods, controls):
            if method != against or control == "labels":
                key = dict(zip(_KEYS, (dataset, n, method, against, control), strict=True))
                yield key | _measured(values, key, chance, test)


def _tested(values: np.ndarray, n_train: int, averages: bool) -> MeanTest:
    """Test the mean of values of subjects and draws as ``paired_tests`` does."""
    if averages or min(values.shape) < 2:
        return corrected_mean(values.mean(axis=1), n_train)
    return crossed_mean(values)


def _measured(
    values: pd.DataFrame,
    key: Mapping[str, Any],
    chance: float | None,
    test: Callable[[np.ndarray], MeanTest],
) -> dict[str, Any]:
    """Return the numbers of one row; ``values`` has subjects as rows."""
    method, against = key["method"], key["against"]
    unchanged, changed = values[UNCHANGED], values[key["control"]]
    gains = unchanged[method] - unchanged[against], changed[method] - changed[against]
    complete = np.isfinite(pd.concat([*gains, changed[method]], axis=1)).all(axis=1)
    gain, without, own = (each[complete].to_numpy() for each in (*gains, changed[method]))
    score = test(own)
    row: dict[str, Any] = dict(n_subjects=int(complete.sum()), n_draws=gain.shape[1])
    for name, each in {"gain": gain, "without": without, "lost": gain - without}.items():
        mean = test(np.full_like(each, np.nan) if method == against else each)
        row |= {name: mean.mean, f"{name}_low": mean.ci_low, f"{name}_high": mean.ci_high}
        row[f"{name}_p"] = mean.p
    is_gain = row["gain_p"] < LEVEL and row["gain"] > 0
    row["share"] = row["without"] / row["gain"] if is_gain else math.nan
    row |= dict(score=score.mean, score_low=score.ci_low, score_high=score.ci_high)
    row["chance_p"] = math.nan if chance is None else test(own - chance).p
    return row


# Sentences ------------------------------------------------------------------------------------

#: What the windows of a control lack.
_LACKS = {
    "slow": "slow voltages",
    "detrended": "a line in each window",
    "eyes": "what channels near the eyes predict",
    "phase": "waveform and timing",
    "amplitude": "the amplitudes of channels and windows",
    "order": "the order of patches",
}
_LIMITS = {
    "slow": "Slow voltages come from eyes, sweat, movement and the brain; the control 'slow' does "
    "not tell which.",
    "eyes": "Frontal channels, which stand for the eyes where there is no EOG channel, record the "
    "brain, too, so a loss without them does not prove that it is the eyes.",
}


@checked()
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
    With 4 training subjects, PARS is ahead of scratch by +0.040 (0.020 to 0.060). The gain is not \
there without slow voltages (+0.003, -0.010 to 0.020). It remains without the order \
of patches (+0.041, 0.020 to 0.060).
    Slow voltages come from eyes, sweat, movement and the brain; the control 'slow' does not tell \
which.
    """
    check_table(gains, "gains", [*_KEYS, "gain", "without", "lost", "lost_low", "chance_p"])
    signals = gains[gains["control"] != "labels"]
    paragraphs, others, removing = [], [], set()
    for _, rows in signals.groupby(_KEYS[:3], sort=False, dropna=False):
        first = rows.iloc[0]
        if not (first["gain_p"] < LEVEL and first["gain"] > 0):
            n, gain = f"{first['n_train_subjects']:g}", f"{first['gain']:+.3f}"
            others.append(f"{first['method']} with {n} ({gain}, {_interval(first, 'gain')})")
            continue
        kinds = rows.apply(_kind, axis=1)
        removing |= {*rows["control"][kinds == "removed"]}
        paragraphs.append(_of_gain(rows, kinds, signals["dataset"].nunique() > 1))
    if others:
        against = signals["against"].iloc[0]
        paragraphs.append(
            f"No gain over {against} is established for {'; '.join(others)}; so there is nothing "
            "to explain."
        )
    paragraphs += [text for name, text in _LIMITS.items() if name in removing]
    return "\n".join([*paragraphs, *_of_labels(gains[gains["control"] == "labels"])])


def _of_gain(rows: pd.DataFrame, kinds: pd.Series, names_dataset: bool) -> str:
    """Return the sentences about one gain."""
    first = rows.iloc[0]
    where = f"On {first['dataset']}, with" if names_dataset else "With"
    text = (
        f"{where} {first['n_train_subjects']:g} training subjects, {first['method']} is ahead of "
        f"{first['against']} by {first['gain']:+.3f} ({_interval(first, 'gain')})."
    )
    for kind, verb in _VERBS.items():
        if left := [_left(row) for _, row in rows[kinds == kind].iterrows()]:
            last = " nor without " if kind == "removed" else " and "
            text += f" {verb} without {joined(left, last)}."
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


def _left(row: pd.Series) -> str:
    """Return what the windows of a control lack, and what is left of the gain."""
    return f"{_LACKS[row['control']]} ({row['without']:+.3f}, {_interval(row, 'without')})"


def _interval(row: pd.Series, name: str) -> str:
    return f"{row[f'{name}_low']:.3f} to {row[f'{name}_high']:.3f}"


def joined(texts: Sequence[str], last: str) -> str:
    """Return texts in a row, with other words before the last one."""
    return last.join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def _of_labels(rows: pd.DataFrame) -> list[str]:
    """Return the sentence about scores with permuted labels."""
    if rows.empty:
        return []
    if rows["chance_p"].isna().all():
        return ["The chance level is unknown, so the scores with permuted labels are not tested."]
    leaked = rows[holm(rows["chance_p"]) < LEVEL]
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
