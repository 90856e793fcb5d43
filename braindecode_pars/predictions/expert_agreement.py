"""Agreement of predictions with an expert: kappa, confusion matrix and sleep statistics.

For several nights, the bias (mean difference between predictions and expert) and the limits of
agreement are computed for each sleep statistic.
"""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from braindecode_pars._common import checks
from braindecode_pars._common.sleep_stages import (
    INCLUDED_STAGES,
    UNSCORED,
    are_stages,
    stage_of,
    top_to_bottom,
)
from braindecode_pars.predictions.night import check_predictions, classes_of, sleep_statistics
from braindecode_pars.recordings import label_files, readers

#: Minimum number of nights for which limits of agreement are computed.
MIN_NIGHTS = 3


def agreement(frame: Any, expert: Any) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """Compare the predictions of one or several recordings with the labels of an expert.

    The expert label of a window is the label at the center of the window. Windows without an expert
    label, and windows without a prediction, are ignored. Windows in a sleep stage that the model
    cannot predict count as errors: if the classes of the model are wake and N3, every window that
    the expert labeled N2 is an error.

    Parameters
    ----------
    frame : DataFrame | mapping of str to DataFrame
        Predictions of one recording, as returned by ``predict_raw`` of a classifier. For several
        nights, a mapping from the name of each night to its predictions.
    expert : path | Annotations | mapping of str to path or Annotations
        Labels of the expert:

        - path: The labels are read from the file of the recording, or from a BIDS ``_events.tsv``
          or a hypnogram in the same folder.
        - Annotations: The onsets must be in seconds from the first sample of the recording. For
          stages of consecutive windows of 30 s, pass
          ``mne.Annotations(30 * np.arange(len(stages)), 30, stages)``.
        - mapping: For several nights, a mapping from the name of each night to its path or
          Annotations. The names must be the same as in ``frame``.

        A label without a duration applies to the length of one window. If the classes of the model
        are sleep stages, labels may have any usual spelling
        (:func:`~braindecode_pars.predictions.stage_of`), and stages that are included in a class of
        the model are converted to this class; for example, stage 4 is converted to N3. If the
        classes are not sleep stages, labels must be spelled like the class names.

    Returns
    -------
    kappa : float | Series
        Cohen's kappa. If several nights were passed, a Series with one value per night.
    confusion : DataFrame
        Number of windows by expert label (rows) and predicted label (columns), summed over nights.
    statistics : DataFrame
        Sleep statistics such as the total sleep time (rows), computed by
        :func:`~braindecode_pars.predictions.sleep_statistics` from the predictions (column
        ``predicted``) and from the expert labels (column ``expert``). Windows that are not scored
        by both the model and the expert count as unscored in both columns. The table is empty if
        the classes of the model are not sleep stages.

        If several nights were passed, ``statistics["predicted"]`` and ``statistics["expert"]`` have
        one column per night, and ``statistics["limits"]`` has the columns:

        - ``n_nights``: number of nights for which both the predicted and the expert value are
          defined;
        - ``bias``: mean over nights of the difference, predicted minus expert;
        - ``lower_limit``, ``upper_limit``: 95 % limits of agreement, ``bias`` ± 1.96 standard
          deviations of the differences;
        - ``bias_ci_low``, ``bias_ci_high``, ``lower_limit_ci_low``, ``lower_limit_ci_high``,
          ``upper_limit_ci_low``, ``upper_limit_ci_high``: 95 % confidence intervals of the bias and
          of both limits (t distribution).

        If ``n_nights`` is less than three, the bias and the limits are NaN.

    Raises
    ------
    TypeError, ValueError
        If ``frame`` is not a table of predictions, if the expert labels cannot be read, if no
        window has both an expert label and a prediction, or if ``frame`` and ``expert`` contain
        different nights.

    Warns
    -----
    UserWarning
        If annotations are neither names of classes nor sleep stages. These annotations are ignored,
        and the message lists them.

    Notes
    -----
    The confidence intervals assume that nights are independent, so pass one night per subject. The
    limits of agreement assume that the differences do not depend on the size of the sleep
    statistic. To check this, plot the difference of each night against the mean of the predicted
    and the expert value.

    References
    ----------
    Cohen 1960, A coefficient of agreement for nominal scales, Educational and Psychological
    Measurement 20; computed by scikit-learn.

    Bland and Altman 1986, Statistical methods for assessing agreement between two methods of
    clinical measurement, The Lancet 327(8476).

    Examples
    --------
    The expert scored the second window as N2, which the model cannot predict, so that this window
    counts as an error:

    >>> import mne
    >>> import pandas as pd
    >>> from braindecode_pars.predictions import agreement
    >>> onset, label = [0.0, 30.0, 60.0, 90.0], ["W", "W", "N3", "N3"]
    >>> frame = pd.DataFrame(dict(onset=onset, duration=30.0, label=label))
    >>> expert = mne.Annotations([0, 30, 60], [30, 30, 60], ["Sleep stage W", "N2", "stage 4"])
    >>> kappa, confusion, statistics = agreement(frame, expert)
    >>> round(kappa, 2), confusion.loc["N2"].to_dict()
    (0.6, {'W': 1, 'N2': 0, 'N3': 0})
    >>> statistics.loc["TST"].to_dict()  # total sleep time in minutes
    {'predicted': 1.0, 'expert': 1.5}

    Several nights:

    >>> kappa, confusion, statistics = agreement(
    ...     dict.fromkeys(["P1", "P2", "P3"], frame), dict.fromkeys(["P1", "P2", "P3"], expert)
    ... )
    >>> kappa.round(2).tolist(), float(statistics["limits"].loc["TST", "bias"])
    ([0.6, 0.6, 0.6], -0.5)
    """
    if not isinstance(frame, Mapping):
        return _agreement_of_night(frame, expert)
    if not isinstance(expert, Mapping) or not frame or frame.keys() != expert.keys():
        raise ValueError(
            "Pass frame and expert as non-empty dicts with the same keys, the names of the nights."
        )
    nights = [_agreement_of_night(frame[night], expert[night]) for night in frame]
    kappas, confusions, tables = zip(*nights, strict=True)
    statistics = pd.concat(dict(zip(frame, tables, strict=True)), axis=1)
    labels = [*dict.fromkeys(chain.from_iterable(confusions))]
    if not statistics.empty:
        labels = top_to_bottom(labels)
        statistics = statistics.swaplevel(axis=1)[["predicted", "expert"]]
        limits = limits_of_agreement(statistics["predicted"] - statistics["expert"])
        statistics = statistics.join(pd.concat({"limits": limits}, axis=1))
    confusion = sum(c.reindex(index=labels, columns=labels, fill_value=0) for c in confusions)
    return pd.Series(kappas, index=[*frame], name="kappa"), confusion, statistics


def _agreement_of_night(frame: Any, expert: Any) -> tuple[float, pd.DataFrame, pd.DataFrame]:
    rows = check_predictions(frame)
    classes = classes_of(rows)
    is_sleep, stages = are_stages(classes), {*map(stage_of, classes)}

    def name_of(label: Any) -> str | None:
        if not is_sleep:
            return label if label in classes else None
        stage = stage_of(label)
        coarser = [c for c, fine in INCLUDED_STAGES.items() if stage in fine]
        return stage if stage in stages else next((c for c in coarser if c in stages), stage)

    if not isinstance(expert, mne.Annotations):
        raw, _ = readers.open_recording(expert)
        expert = label_files.annotations_of(Path(expert), raw)
    labels = expert.to_data_frame(time_format=None)
    labels["name"] = labels["description"].map(name_of)
    if unknown := sorted({*labels["description"][labels["name"].isna()]}):
        expected = "names of sleep stages" if is_sleep else f"one of {checks.format_list(classes)}"
        checks.warn_user(
            f"Annotations {checks.format_list(unknown, max_items=5)} were ignored: "
            f"expected {expected}. Rename these annotations if they are labels."
        )
    durations = labels["duration"].mask(labels["duration"] == 0, rows["duration"].iloc[0])
    segments = labels.assign(stop=labels["onset"] + durations).dropna().sort_values("onset")
    centers = pd.DataFrame({"onset": rows["onset"] + rows["duration"] / 2})
    matched = pd.merge_asof(centers, segments[["onset", "stop", "name"]], on="onset")
    expert_labels = matched["name"].where(matched["onset"] < matched["stop"])
    pairs = pd.DataFrame({"predicted": rows["label"].map(name_of), "expert": expert_labels})
    is_scored = (pairs.notna() & (pairs != UNSCORED)).all(axis=1)
    scored = pairs[is_scored]
    if scored.empty:
        raise ValueError(
            "No window has both an expert label and a prediction. Check that the labels and the "
            "predictions belong to the same recording, and that the onsets of both are in seconds "
            "from the first sample of the recording."
        )
    names = [*set(scored.to_numpy().ravel())]
    order = top_to_bottom(names) if is_sleep else sorted(names, key=classes.index)
    counts = pd.crosstab(scored["expert"], scored["predicted"])
    confusion = counts.reindex(index=order, columns=order, fill_value=0)
    kappa = float(cohen_kappa_score(scored["expert"], scored["predicted"]))
    pairs = pairs.where(is_scored, None)
    statistics = {k: sleep_statistics(rows.assign(label=pairs[k])) for k in pairs if is_sleep}
    return kappa, confusion, pd.DataFrame(statistics)


def limits_of_agreement(differences: pd.DataFrame) -> pd.DataFrame:
    r"""Compute the bias and the 95 % limits of agreement of each sleep statistic over nights.

    Let :math:`\bar d` be the mean and :math:`s` the sample standard deviation of the differences
    between predicted and expert values over :math:`n` nights. The bias is :math:`\bar d`, and the
    limits of agreement are :math:`\bar d \pm 1.96 s`. The standard error of the bias is
    :math:`s / \sqrt n`, and the standard error of each limit is :math:`\sqrt{3 s^2 / n}`. The
    confidence intervals use the t distribution with :math:`n - 1` degrees of freedom.

    Parameters
    ----------
    differences : DataFrame
        Predicted minus expert value of each sleep statistic (rows) and night (columns).

    Returns
    -------
    DataFrame
        One row per sleep statistic, with the same columns as ``statistics["limits"]`` in
        :func:`~braindecode_pars.predictions.agreement`.

    References
    ----------
    Bland and Altman 1986, Statistical methods for assessing agreement between two methods of
    clinical measurement, The Lancet 327(8476).

    Examples
    --------
    Differences in total sleep time (TST) of three nights, in minutes:

    >>> import pandas as pd
    >>> from braindecode_pars.predictions.expert_agreement import limits_of_agreement
    >>> limits = limits_of_agreement(pd.DataFrame([[10.0, 20.0, 30.0]], index=["TST"]))
    >>> limits.loc["TST", ["bias", "lower_limit", "upper_limit"]].round(1).tolist()
    [20.0, 0.4, 39.6]
    """
    n = differences.count(axis=1)
    usable = differences.where(n >= MIN_NIGHTS, axis=0)
    bias, sd = usable.mean(axis=1), usable.std(axis=1)
    error = stats.t.ppf(0.975, n - 1) * sd / np.sqrt(n)
    limits = pd.DataFrame({"n_nights": n})
    for name, distance in (("bias", 0), ("lower_limit", -1.96), ("upper_limit", 1.96)):
        half_width = error if name == "bias" else np.sqrt(3) * error
        limits[name] = bias + distance * sd
        limits[f"{name}_ci_low"] = limits[name] - half_width
        limits[f"{name}_ci_high"] = limits[name] + half_width
    return limits
