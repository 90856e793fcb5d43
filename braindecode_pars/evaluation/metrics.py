"""Metrics of classification and regression, and the mean and standard deviation of scores."""

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from torchmetrics.functional import classification

from braindecode_pars._common import checks, names, tables
from braindecode_pars.windows import labels
from braindecode_pars.windows.table import known_column


def _balanced_accuracy(
    predicted: torch.Tensor, true: torch.Tensor, num_classes: int
) -> torch.Tensor:
    """Mean recall of the classes that occur among the true labels."""
    # The mean of torchmetrics counts the recall of an absent class as 0.
    recall = classification.multiclass_recall(
        predicted, true, num_classes=num_classes, average="none"
    )
    return recall[true.unique()].mean()


#: Metrics of predicted labels; each function has the arguments predicted and true class numbers.
_LABEL_METRICS: dict[str, Callable[..., torch.Tensor]] = {
    "kappa": classification.multiclass_cohen_kappa,
    "balanced_accuracy": _balanced_accuracy,
    "accuracy": partial(classification.multiclass_accuracy, average="micro"),
    "f1": partial(classification.multiclass_f1_score, average="macro"),
    "f1_weighted": partial(classification.multiclass_f1_score, average="weighted"),
}
#: Metrics of the probability of one class. The second argument of a function is 1 for windows of
#: this class, and 0 for other windows.
_BINARY_METRICS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "auroc": classification.binary_auroc,
    "average_precision": classification.binary_average_precision,
}

#: Names of the metrics that require the probability of each class.
PROBABILITY_METRICS = tuple(
    name for name, metric in names.METRICS.items() if metric.needs == "probabilities"
)

#: Names of all metrics, see :func:`~braindecode_pars.evaluation.score_predictions`.
METRICS = tuple(names.METRICS)


def undefined_because(y_true: np.ndarray, metric: str, classes: Sequence = ()) -> str | None:
    """Return why a metric is undefined for these true labels, or None if it is defined.

    Parameters
    ----------
    y_true : ndarray, shape (n_windows,)
        True labels.
    metric : str
        Name of the metric, as in :func:`~braindecode_pars.evaluation.score_predictions`.
    classes : sequence
        Classes for which a probability was predicted, used only for AUROC and average precision.

    Returns
    -------
    str | None
        Reason, as a clause without a period at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.metrics import undefined_because
    >>> undefined_because(np.array(["W", "W"]), "kappa")
    "all 2 true labels are 'W', and kappa requires at least two classes"
    >>> undefined_because(np.array(["W", "N1"]), "auroc", classes=["N2", "W"])
    "class 'N1' has no predicted probability, because it is not in the training data"
    """
    if len(y_true) == 0:
        return "there are no labeled windows"
    true_labels = list(dict.fromkeys(np.asarray(y_true).tolist()))
    name = metric.replace("_", " ")
    if names.METRICS[metric].several_classes and len(true_labels) == 1:
        return (
            f"all {len(y_true)} true labels are {true_labels[0]!r}, and {name} requires at least "
            "two classes"
        )
    absent = [label for label in true_labels if label not in list(classes)]
    if metric in PROBABILITY_METRICS and absent:
        return (
            f"class {absent[0]!r} has no predicted probability, because it is not in the training "
            "data"
        )
    return None


def score_predictions(
    y_true: Sequence | np.ndarray,
    y_pred: Sequence | np.ndarray,
    metric: str,
    *,
    probabilities: Any = None,
    classes: Sequence | None = None,
) -> float:
    """Compute a metric of predicted labels or predicted probabilities.

    Parameters
    ----------
    y_true, y_pred : ndarray, shape (n_windows,)
        True and predicted labels, as numbers or text.
    metric : str
        Name of the metric:

        - ``"kappa"``: Cohen's kappa;
        - ``"balanced_accuracy"``: mean recall of the classes that occur among the true labels;
        - ``"accuracy"``: proportion of correct labels;
        - ``"f1"``: macro F1, the mean over the classes that occur among true or predicted labels;
        - ``"f1_weighted"``: mean F1 over classes, weighted by the number of true labels of each
          class. The PARS paper reports an F1 score, but does not state how it is averaged over
          classes;
        - ``"auroc"``: area under the ROC curve. For more than two classes, the area for each class
          versus all other classes, averaged over the classes that occur among the true labels;
        - ``"average_precision"``: precision times increase in recall, summed over all thresholds.
          For two classes, the second class is the positive class. For more than two classes, the
          value for each class versus all other classes, averaged over the classes that occur among
          the true labels.
    probabilities : ndarray, shape (n_windows, n_classes) | None
        Probabilities from ``predict_proba``. Required for ``"auroc"`` and ``"average_precision"``.
    classes : sequence | None
        Class labels of the columns of ``probabilities``, as in ``classes_`` of a classifier.

    Returns
    -------
    float
        Score. NaN if the metric is undefined. All metrics are undefined if there are no windows.
        Kappa, AUROC and average precision are undefined if all true labels are of one class. AUROC
        and average precision are undefined if a true label is not in ``classes``.
        :func:`~braindecode_pars.evaluation.metrics.undefined_because` returns the reason.

    Raises
    ------
    ValueError
        If the metric is unknown, the arrays have different lengths, or a label is missing or is not
        a class label. For metrics that require probabilities, also if the shape of
        ``probabilities`` is not ``(n_windows, n_classes)``, or if a row is not a probability
        distribution.

    References
    ----------
    Detlefsen et al. 2022, TorchMetrics, Journal of Open Source Software 7(70). The PARS paper and
    this package compute their metrics with TorchMetrics.

    Examples
    --------
    >>> from braindecode_pars.evaluation import score_predictions
    >>> true, predicted = ["W", "W", "W", "N2"], ["W", "W", "N2", "N2"]
    >>> {name: round(score_predictions(true, predicted, name), 3)
    ...  for name in ("kappa", "balanced_accuracy", "accuracy", "f1", "f1_weighted")}
    {'kappa': 0.5, 'balanced_accuracy': 0.833, 'accuracy': 0.75, 'f1': 0.733, 'f1_weighted': 0.767}
    >>> of_columns = dict(probabilities=[[0.1, 0.9], [0.3, 0.7], [0.6, 0.4], [0.5, 0.5]],
    ...                   classes=["N2", "W"])
    >>> round(score_predictions(true, predicted, "auroc", **of_columns), 3)
    0.667
    """
    checks.choice(*METRICS).check("metric", metric)
    y_true, y_pred = checked_labels(y_true, "true"), checked_labels(y_pred, "predicted")
    check_consistent_length(y_true, y_pred)
    if metric in PROBABILITY_METRICS:
        classes = [] if classes is None else [*classes]
        values, expected_shape = np.asarray(probabilities), (len(y_true), len(classes))
        if values.shape != expected_shape:
            raise ValueError(
                f"metric={metric!r} requires probabilities of shape (n_windows, n_classes) = "
                f"{expected_shape}, got {values.shape}. Pass the output of predict_proba as the "
                "argument probabilities, and classes_ of the classifier as the argument classes."
            )
        checks.check_probabilities(values)
        if undefined_because(y_true, metric, classes):
            return float("nan")
        # torchmetrics treats values outside [0, 1] as logits, even 1 plus a rounding error.
        columns = torch.as_tensor(values).clamp(0, 1)
        code_of = {label: code for code, label in enumerate(classes)}
        numbers = torch.tensor([code_of[label] for label in y_true.tolist()])
        # One class versus the rest. For two classes, only the second class is scored.
        codes = [1] if len(classes) == 2 else numbers.unique().tolist()
        scores = [_BINARY_METRICS[metric](columns[:, c], (numbers == c).long()) for c in codes]
        return torch.stack(scores).mean().item()
    if undefined_because(y_true, metric):
        return float("nan")
    all_labels, codes = labels.classes_and_codes(y_true, y_pred)
    true, predicted = torch.from_numpy(codes).split(len(y_true))
    # torchmetrics requires at least two classes, but there may be only one. An additional class
    # does not change the score, because torchmetrics excludes classes that never occur from means.
    return _LABEL_METRICS[metric](predicted, true, num_classes=len(all_labels) + 1).item()


def checked_labels(values: Any, which: str) -> np.ndarray:
    """Convert true or predicted labels to an array of shape (n_windows,), and validate them.

    ``which`` is "true" or "predicted", for the error message.

    Raises
    ------
    ValueError
        If the labels have a different shape, a label is missing, or a value is not a class label.
    """
    column = column_or_1d(known_column(f"{which} labels", values))
    labels.check_class_labels(column)
    return column


def regression_scores(y_true: Any, y_pred: Any, subjects: Any) -> dict[str, float]:
    """Compute regression metrics over windows, over subjects, and within subjects.

    The evaluation protocols, such as :func:`~braindecode_pars.evaluation.leave_one_subject_out`,
    score one held-out subject at a time. This is not possible for a target that is constant within
    a subject, such as age. For such targets, predict each window with a model that was not trained
    on the subject of this window, and score all predictions together, as in the example.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n_windows,)
        True and predicted values of the target.
    subjects : array-like, shape (n_windows,)
        Subject of each window.

    Returns
    -------
    dict of str to float
        - ``r2``, ``spearman``, ``mae``: coefficient of determination, rank correlation and mean
          absolute error over windows. Subjects are weighted by their number of windows.
        - ``r2_subjects``, ``spearman_subjects``, ``mae_subjects``: the same metrics over subjects,
          computed from the mean prediction and the mean target of each subject. Report these scores
          for targets that are constant per subject, such as age.
        - ``spearman_within``: rank correlation over the windows of each subject, averaged over the
          subjects whose targets and predictions both vary.

        A score is NaN if it is undefined: ``r2`` is undefined if all targets are equal, and a
        correlation is undefined if all targets or all predictions are equal.

    Raises
    ------
    ValueError
        If the arrays have different lengths, a number or a subject is missing, or a value is not a
        real number.

    Notes
    -----
    In a cross-validation, uninformative predictions correlate negatively with the targets, because
    the mean of the training targets is lower if the held-out targets are higher. With one subject
    per fold, a model that always predicts the mean of the training targets has a rank correlation
    of -1 over subjects. Therefore, compare r2 and the mean absolute error with the scores of a
    ``DummyRegressor``, and compare correlations with those obtained for permuted targets.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import RidgeCV
    >>> from sklearn.model_selection import GroupKFold, cross_val_predict
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import LogBandPower, regression_scores
    >>> X, stages, subjects = as_sklearn(datasets.simulated.sleep(4, hours=0.4, n_chans=2))
    >>> depth = np.array([0.0, 1.0, 2.0, 3.0, 1.0])[stages]
    >>> ridge = make_pipeline(LogBandPower(), StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
    >>> predicted = cross_val_predict(ridge, X, depth, groups=subjects, cv=GroupKFold(4))
    >>> pd.Series(regression_scores(depth, predicted, subjects)).round(1)
    r2                   0.8
    spearman             0.8
    mae                  0.4
    r2_subjects          0.3
    spearman_subjects    0.8
    mae_subjects         0.2
    spearman_within      0.8
    dtype: float64
    """
    # Convert to arrays, because pandas would align Series by their index.
    true, predicted = labels.real_numbers(y_true, "y_true"), labels.real_numbers(y_pred, "y_pred")
    subjects = known_column("subjects", subjects)
    check_consistent_length(true, predicted, subjects)
    assert_all_finite(true, input_name="y_true")
    assert_all_finite(predicted, input_name="y_pred")
    windows = pd.DataFrame(dict(true=true, predicted=predicted, subject=subjects))
    scores = _errors(windows)
    of_subject = windows.groupby("subject", sort=False)
    # Compute exact means, so that means of equal numbers are equal for any order and number of
    # windows.
    means = of_subject.agg(lambda numbers: float(statistics.mean(numbers.tolist())))
    scores |= {f"{name}_subjects": value for name, value in _errors(means).items()}
    within = pd.Series([_spearman(subject_rows) for _, subject_rows in of_subject], dtype=float)
    return scores | {"spearman_within": float(within.mean())}


def _errors(rows: pd.DataFrame) -> dict[str, float]:
    true, predicted = rows["true"], rows["predicted"]
    mae = float(mean_absolute_error(true, predicted))
    r2 = float("nan") if labels.are_equal(true) else float(r2_score(true, predicted))
    return {"r2": r2, "spearman": _spearman(rows), "mae": mae}


def _spearman(rows: pd.DataFrame) -> float:
    pair = rows[["true", "predicted"]].to_numpy()
    is_defined = not any(map(labels.are_equal, pair.T))
    return float(spearmanr(pair)[0]) if is_defined else float("nan")


#: Grouping columns of scores: a mean is computed for each combination of their values.
GROUPS = ["protocol", "dataset", "method", "n_train_subjects", "metric"]


def test_subject_columns(scores: pd.DataFrame) -> list[str]:
    """Return the names of the columns that describe the use of test-subject data."""
    return [name for name in tables.TEST_SUBJECT_COLUMNS if name in scores]


def means_by_subject(scores: pd.DataFrame) -> pd.DataFrame:
    """Average the scores of each subject over seeds, without rows pooled over subjects."""
    unpooled = scores[scores["subject"] != tables.POOLED]
    keys = [*GROUPS, *test_subject_columns(unpooled), "subject"]
    return unpooled.groupby(keys, sort=False, dropna=False)["value"].mean().reset_index()


def summarize(scores: pd.DataFrame, over: str = "subjects") -> pd.DataFrame:
    """Compute the mean and standard deviation of the scores of every method and metric.

    Parameters
    ----------
    scores : DataFrame
        Scores of any evaluation protocol, such as
        :func:`~braindecode_pars.evaluation.leave_one_subject_out`.
    over : "subjects" | "seeds"
        Unit over which the mean and the standard deviation are computed. With ``"subjects"``, the
        scores of each subject are first averaged over seeds, as in the PARS paper for
        leave-one-subject-out. Pooled rows are excluded: rows with the subject ``"all"``, whose
        score is computed over the windows of all test subjects together. With ``"seeds"``, only
        pooled rows are used, as in the paper for fixed test subjects.

    Returns
    -------
    pandas.DataFrame
        Table with the columns ``protocol``, ``dataset``, ``method``, ``n_train_subjects``,
        ``metric``, ``mean``, ``sd`` (sample standard deviation with n - 1; NaN for n = 1) and ``n``
        (number of subjects or seeds with a defined score). If the scores contain
        ``test_subject_data``, ``n_windows`` or ``minutes``, the table also has these columns, with
        one row for each of their values.

    Raises
    ------
    ValueError
        If ``over`` is unknown, the scores contain no rows for this unit, two rows differ only in
        ``value``, or the scores contain several control analyses (see
        :func:`~braindecode_pars.evaluation.controls`).

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import summarize
    >>> same = dict(protocol="leave_one_subject_out", dataset="", n_train_subjects=1, seed=0)
    >>> scores = pd.DataFrame([
    ...     dict(same, method="PARS", subject="P01", metric="kappa", value=0.5),
    ...     dict(same, method="PARS", subject="P02", metric="kappa", value=0.7),
    ... ])
    >>> summarize(scores)[["method", "mean", "sd", "n"]].round(3)
      method  mean     sd  n
    0   PARS   0.6  0.141  2
    """
    checks.choice("subjects", "seeds").check("over", over)
    scores = tables.checked_scores(scores, [*GROUPS, "subject", "value"])
    if over == "subjects":
        units, other = means_by_subject(scores), "seeds"
    else:
        units, other = scores[scores["subject"] == tables.POOLED], "subjects"
    if units.empty:
        raise ValueError(
            f"scores has no rows for over={over!r}. Use {other!r}. ('subjects' averages rows of "
            "individual subjects, and 'seeds' averages rows with the subject 'all'.)"
        )
    keys = [*GROUPS, *test_subject_columns(units)]
    groups = units.groupby(keys, sort=False, dropna=False)["value"]
    return groups.agg(mean="mean", sd="std", n="count").reset_index()


def score_table(scores: pd.DataFrame, over: str = "subjects") -> pd.DataFrame:
    """Format scores as a table of mean ± standard deviation, with a column for each metric.

    Parameters
    ----------
    scores : DataFrame
        Scores of any evaluation protocol, such as
        :func:`~braindecode_pars.evaluation.leave_one_subject_out`.
    over : "subjects" | "seeds"
        Unit over which the mean and the standard deviation are computed, as in :func:`summarize`.

    Returns
    -------
    pandas.DataFrame
        Table of text such as "0.600 ± 0.141", with one column for each metric. The rows are indexed
        by dataset, number of training subjects and method, and by ``test_subject_data`` if any
        method uses data of the test subject. The mean of a single value is shown without a standard
        deviation. If encoders of different sizes were compared, the first column is
        ``encoder_parameters``, the number of parameters of the encoder. ``attrs["n"]`` is the
        largest number of subjects or seeds over which a mean was computed.

    Raises
    ------
    ValueError
        As in :func:`summarize`.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import score_table
    >>> same = dict(protocol="leave_one_subject_out", dataset="", n_train_subjects=1, seed=0)
    >>> scores = pd.DataFrame([
    ...     dict(same, method="PARS", subject="P01", metric="kappa", value=0.5),
    ...     dict(same, method="PARS", subject="P02", metric="kappa", value=0.7),
    ... ])
    >>> score_table(scores)["kappa"].tolist()
    ['0.600 ± 0.141']
    """
    # A single value has no standard deviation.
    summary = summarize(scores, over)
    sd_text = summary["sd"].map(" ± {:.3f}".format).where(summary["sd"].notna(), "")
    summary["score"] = summary["mean"].map("{:.3f}".format) + sd_text
    rows = ["dataset", "n_train_subjects", "method"]
    rows += [
        name
        for name in test_subject_columns(summary)
        if {*summary[name]} - {tables.TestSubjectData.NONE}
    ]
    table = summary.set_index([*rows, "metric"])["score"].unstack("metric", sort=False)
    if "encoder_parameters" in scores:
        named_scores = scores.assign(dataset=scores["dataset"].astype(object).fillna(""))
        sizes = named_scores.groupby(["dataset", "method"])["encoder_parameters"].first()
        numbers = [sizes.get((row[0], row[2])) for row in table.index]
        texts = ["-" if pd.isna(number) else f"{number:,.0f}" for number in numbers]
        table.insert(0, "encoder_parameters", texts)
    table.attrs["n"] = int(summary["n"].max())
    return table


def worst_subjects(
    scores: pd.DataFrame, reference: str, metric: str | None = None, *, proportion: float = 0.2
) -> pd.DataFrame:
    """Compute the mean score of each method on the subjects that are hardest to classify.

    These are the subjects with the lowest scores of a reference method. They are selected once, so
    that all methods are compared on the same subjects.

    Parameters
    ----------
    scores : DataFrame
        Scores of one evaluation protocol and one dataset, including the scores of the reference
        method. Pooled rows (subject ``"all"``, scored over the windows of all test subjects
        together) are excluded.
    reference : str
        Method whose scores select the subjects, such as ``"tangent space"``. Its scores are
        averaged over seeds and numbers of training subjects.
    metric : str | None
        Metric of the scores. If None, the only metric of the scores.
    proportion : float
        Proportion of the subjects to select. The number of selected subjects is rounded up.

    Returns
    -------
    pandas.DataFrame
        Table with the grouping columns (the columns of :func:`summarize` before ``mean``) and:

        - ``worst``, ``others``: mean score over the selected subjects, and over all other subjects;
        - ``n_worst``, ``n_others``: number of selected subjects, and number of other subjects. Only
          subjects with a score of every method are counted;
        - ``subjects``: names of the selected subjects, separated by commas.

    Raises
    ------
    ValueError
        If the scores do not contain the reference method. If no subject has a score of every
        method. If the scores are from several protocols or datasets. If the metric is unknown, or
        lower values of it are better. Also in the cases in which :func:`summarize` raises an error.

    Notes
    -----
    Do not compare the reference method with other methods on the selected subjects. The subjects
    were selected by low scores of the reference method, which are partly due to chance. The scores
    of the reference method on these subjects are therefore too low, and would regress to the mean
    if the evaluation were repeated. Compare the other methods with each other, and choose the
    reference method before you see the scores.

    References
    ----------
    Gnassounou et al. 2026, PSDNorm: Temporal normalization for deep learning in sleep staging,
    ICLR, arXiv:2503.04582 (the 20 % hardest subjects).

    ``compute_lowest_subject_scores`` of MOABB, pull request 1133.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import worst_subjects
    >>> same = dict(protocol="compare", dataset="", n_train_subjects=3, seed=0, metric="kappa")
    >>> values = {"tangent space": [0.1, 0.5, 0.6, 0.8], "PARS": [0.3, 0.5, 0.7, 0.9]}
    >>> scores = pd.DataFrame([
    ...     dict(same, method=method, subject=f"P{number}", value=value)
    ...     for method, of_subjects in values.items()
    ...     for number, value in enumerate(of_subjects)
    ... ])
    >>> table = worst_subjects(scores, "tangent space")
    >>> table[["method", "worst", "others", "n_worst", "subjects"]].round(2)
              method  worst  others  n_worst subjects
    0  tangent space    0.1    0.63        1       P0
    1           PARS    0.3    0.70        1       P0
    """
    checks.number("in (0, 1)", lambda x: 0 < x < 1).check("proportion", proportion)
    rows = tables.checked_scores(tables.rows_of(scores, metric), tables.SCORES)
    checks.choice(*METRICS).check("metric", rows["metric"].iloc[0])
    tables.check_one_value(rows, "scores", ["protocol", "dataset"])
    means = means_by_subject(rows)
    keys = [column for column in means if column != "value"]
    table = means.set_index(keys)["value"].unstack("subject", sort=False).dropna(axis=1)
    checks.choice(*means["method"].unique()).check("reference", reference)
    if table.empty:
        raise ValueError("No subject has scores of all methods. Pass scores of fewer methods.")
    subjects = table.xs(reference, level="method").mean().sort_values(kind="stable").index
    n_worst = math.ceil(round(proportion * len(subjects), 9))
    summary = {
        "worst": table[subjects[:n_worst]].mean(axis=1),
        "others": table[subjects[n_worst:]].mean(axis=1),
        "n_worst": n_worst,
        "n_others": len(subjects) - n_worst,
        "subjects": ", ".join(subjects[:n_worst]),
    }
    return pd.DataFrame(summary).reset_index()


def saved_probabilities(
    fitted: Any, probabilities: np.ndarray | None, n_windows: int
) -> tuple[list, dict[str, Any]]:
    """Convert predicted probabilities to numbers that can be saved as JSON.

    Parameters
    ----------
    fitted : estimator
        Fitted classifier.
    probabilities : ndarray, shape (n_windows, n_classes) | None
        Probabilities predicted by ``fitted``.
    n_windows : int
        Number of test windows.

    Returns
    -------
    classes : list
        Class labels of the columns; empty without probabilities.
    saved : dict
        Either ``columns``, a list of probabilities for each class, or ``missing``, the reason why
        there are no probabilities.
    """
    name = type(fitted).__name__
    if probabilities is None:
        return [], {"missing": f"{name} has no predict_proba, so there are no probabilities"}
    classes = np.asarray(getattr(fitted, "classes_", [])).tolist()
    if probabilities.shape != (n_windows, len(classes)):
        # For example, a network without classes_, or with an output for a class without training
        # data.
        shape = f"{probabilities.shape} for {n_windows} windows and {len(classes)} classes_"
        return [], {"missing": f"predict_proba of {name} returned an array of shape {shape}"}
    try:
        checks.check_probabilities(probabilities)
    except ValueError as error:
        reason = f"the output of predict_proba of {name} is not a probability. {error}"
        return [], {"missing": reason.rstrip(".")}
    # The shortest text of a float32 is half as long as the text of the same number as a float64.
    return classes, {"columns": probabilities.astype(str).astype(float).T.tolist()}
