"""The paper's metrics, those of regression, scores of a fold, and their mean and spread."""

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from sklearn.metrics import mean_absolute_error, r2_score
from torchmetrics.functional import classification

from braindecode_pars._common import checks, names, tables
from braindecode_pars.windows import labels
from braindecode_pars.windows.table import known_column


def _balanced_accuracy(
    predicted: torch.Tensor, true: torch.Tensor, num_classes: int
) -> torch.Tensor:
    """Mean recall of the classes that occur among the true labels."""
    # torchmetrics' own mean counts the recall of an absent class as 0.
    recall = classification.multiclass_recall(
        predicted, true, num_classes=num_classes, average="none"
    )
    return recall[true.unique()].mean()


#: Metrics of predicted labels; each takes predicted and true class numbers.
_OF_LABELS: dict[str, Callable[..., torch.Tensor]] = {
    "kappa": classification.multiclass_cohen_kappa,
    "balanced_accuracy": _balanced_accuracy,
    "accuracy": partial(classification.multiclass_accuracy, average="micro"),
    "f1": partial(classification.multiclass_f1_score, average="macro"),
    "f1_weighted": partial(classification.multiclass_f1_score, average="weighted"),
}
#: Metrics of the probability of one class, and whether it is the true one.
_OF_PROBABILITIES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "auroc": classification.binary_auroc,
    "average_precision": classification.binary_average_precision,
}

#: Names of the metrics that need the probability of each class.
PROBABILITY_METRICS = tuple(
    name for name, metric in names.METRICS.items() if metric.needs == "probabilities"
)

#: Names of all metrics, see :func:`~braindecode_pars.evaluation.score_predictions`.
METRICS = tuple(names.METRICS)


def undefined_because(y_true: np.ndarray, metric: str, classes: Sequence = ()) -> str | None:
    """Return the reason why a metric is undefined for these labels, or None if it is defined.

    Parameters
    ----------
    y_true : ndarray, shape (n_windows,)
        True labels.
    metric : str
        Name of the metric, as in :func:`~braindecode_pars.evaluation.score_predictions`.
    classes : sequence
        Labels that have a probability. Only AUROC and average precision use them.

    Returns
    -------
    str | None
        Reason, as a clause without a full stop.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.metrics import undefined_because
    >>> undefined_because(np.array(["W", "W"]), "kappa")
    "all 2 true labels are 'W', and kappa needs two classes"
    >>> undefined_because(np.array(["W", "N1"]), "auroc", classes=["N2", "W"])
    "'N1' has no probability, because it was not in the training"
    """
    if len(y_true) == 0:
        return "there are no labeled windows"
    true_labels = list(dict.fromkeys(np.asarray(y_true).tolist()))
    name = metric.replace("_", " ")
    if names.METRICS[metric].several_classes and len(true_labels) == 1:
        return f"all {len(y_true)} true labels are {true_labels[0]!r}, and {name} needs two classes"
    absent = [label for label in true_labels if label not in list(classes)]
    if metric in PROBABILITY_METRICS and absent:
        return f"{absent[0]!r} has no probability, because it was not in the training"
    return None


def score_predictions(
    y_true: Sequence | np.ndarray,
    y_pred: Sequence | np.ndarray,
    metric: str,
    *,
    probabilities: Any = None,
    classes: Sequence | None = None,
) -> float:
    """Score predicted labels, or predicted probabilities.

    Parameters
    ----------
    y_true, y_pred : ndarray, shape (n_windows,)
        True and predicted labels, as numbers or text.
    metric : str
        Name of the metric:

        - ``"kappa"``: Cohen's kappa;
        - ``"balanced_accuracy"``: mean recall of the classes that occur among the true labels;
        - ``"accuracy"``: share of correct labels;
        - ``"f1"``: macro F1, the mean over the classes that occur among true or predicted labels;
        - ``"f1_weighted"``: the mean of F1 with the number of true labels of each class as weight.
          The paper has a column F1 and does not state its average;
        - ``"auroc"``: area under the ROC curve. Of more than two classes, the mean over the classes
          that occur among the true labels, each against the others;
        - ``"average_precision"``: sum of precision times gain in recall over all thresholds, for
          the second of two classes. Of more than two classes, the same mean.
    probabilities : ndarray, shape (n_windows, n_classes) | None
        Probabilities from ``predict_proba``. Only ``"auroc"`` and ``"average_precision"`` use them.
    classes : sequence | None
        Labels of the columns of ``probabilities``, as in ``classes_`` of a classifier.

    Returns
    -------
    float
        Score. NaN where the metric is undefined: kappa, AUROC and average precision when all true
        labels are of one class; AUROC and average precision when a true label is not in
        ``classes``; any metric without windows.
        :func:`~braindecode_pars.evaluation.metrics.undefined_because` returns the reason.

    Raises
    ------
    ValueError
        When the metric is unknown, when lengths differ, when a label is missing or no class; and
        when the metric needs probabilities and there are none, their shape differs from
        ``(n_windows, n_classes)``, or the values of a row are not in [0, 1] with the sum 1.

    References
    ----------
    Detlefsen et al. 2022, TorchMetrics, Journal of Open Source Software 7(70). The paper and this
    package compute their metrics with TorchMetrics.

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
    if len(y_true) != len(y_pred):
        raise ValueError(f"There are {len(y_true)} labels, but {len(y_pred)} predictions.")
    if metric in PROBABILITY_METRICS:
        if probabilities is None or classes is None:
            raise ValueError(f"{metric} needs probabilities= of predict_proba, and classes=.")
        values, needed = np.asarray(probabilities), (len(y_true), len(classes))
        if values.shape != needed:
            raise ValueError(f"The probabilities have shape {values.shape}, not {needed}.")
        checks.check_probabilities(values)
        if undefined_because(y_true, metric, classes):
            return float("nan")
        # torchmetrics takes values outside of [0, 1] for logits, also 1 plus a rounding error.
        columns = torch.as_tensor(values).clamp(0, 1)
        code_of = {label: code for code, label in enumerate(classes)}
        numbers = torch.tensor([code_of[label] for label in y_true.tolist()])
        # One class against the others; of two, the curve of the first follows from the second.
        chosen = [1] if len(classes) == 2 else numbers.unique().tolist()
        scores = [_OF_PROBABILITIES[metric](columns[:, c], (numbers == c).long()) for c in chosen]
        return torch.stack(scores).mean().item()
    if probabilities is not None and np.asarray(probabilities).shape[:1] != y_true.shape:
        raise ValueError(f"The probabilities are not those of {len(y_true)} windows, in rows.")
    if undefined_because(y_true, metric):
        return float("nan")
    all_labels, codes = labels.classes_and_codes(y_true, y_pred)
    true, predicted = torch.from_numpy(codes).split(len(y_true))
    # torchmetrics requires at least two classes, but there may be only one. One additional class
    # changes no score, because torchmetrics' means exclude classes that never occur.
    return _OF_LABELS[metric](predicted, true, num_classes=len(all_labels) + 1).item()


def checked_labels(values: Any, which: str) -> np.ndarray:
    """Return true or predicted labels as an array, shape (n_windows,).

    Raises
    ------
    ValueError
        When they have another shape, when one is missing, or when they are no classes.
    """
    column = known_column(f"{which} labels", values)
    if column.ndim != 1:
        raise ValueError(f"The {which} labels have shape {column.shape}; pass one for each window.")
    labels.check_class_labels(column)
    return column


def regression_scores(y_true: Any, y_pred: Any, subjects: Any) -> dict[str, float]:
    """Score predicted numbers, over windows and over subjects.

    The protocols score one held-out subject at a time, whose age does not vary. So predict each
    window by a fit without its subject, and score all predictions together, as below.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n_windows,)
        True and predicted numbers.
    subjects : array-like, shape (n_windows,)
        Subject of each window.

    Returns
    -------
    dict of str to float
        - ``r2``, ``spearman``, ``mae``: coefficient of determination, rank correlation and mean
          absolute error over windows. They count subjects by their windows.
        - ``r2_subjects``, ``spearman_subjects``, ``mae_subjects``: the same of the mean prediction
          and the mean target of each subject. For an age these are the scores to report.
        - ``spearman_within``: mean over subjects of the rank correlation of the subject's windows,
          where targets and predictions vary.

        A score is NaN where it is undefined: r2 if all targets are the same, a correlation if all
        targets or all predictions are.

    Raises
    ------
    ValueError
        When lengths differ, a number or a subject is missing, or a value is no real number.

    Notes
    -----
    In a cross-validation, predictions that know nothing correlate negatively with the targets: the
    mean of the others is lower, the higher the target that is held out. With one subject in a fold,
    the mean of the training targets has a rank correlation over subjects of -1. Compare r2 and the
    error with those of ``DummyRegressor``, and correlations with those of permuted targets.

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
    # As arrays, because pandas would match the rows of Series by their index.
    true, predicted = labels.real_numbers(y_true, "y_true"), labels.real_numbers(y_pred, "y_pred")
    subjects = known_column("subjects", subjects)
    if not len(true) == len(predicted) == len(subjects):
        lengths = f"{len(true)}, {len(predicted)} and {len(subjects)}"
        raise ValueError(f"y_true, y_pred and subjects must have the same length, got {lengths}.")
    for name, values in (("y_true", true), ("y_pred", predicted)):
        if n_missing := int((~np.isfinite(values)).sum()):
            raise ValueError(f"{n_missing} {name} are NaN or infinite; leave these windows out.")
    windows = pd.DataFrame(dict(true=true, predicted=predicted, subject=subjects))
    scores = _errors(windows)
    of_subject = windows.groupby("subject", sort=False)
    # Exact means: those of equal numbers are equal too, in any order and number.
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


#: Columns with one mean for each combination of values.
GROUPS = ["protocol", "dataset", "method", "n_train_subjects", "metric"]


def test_subject_columns(scores: pd.DataFrame) -> list[str]:
    """Return the columns of scores with what a method uses of the test subject."""
    return [name for name in tables.TEST_SUBJECT_COLUMNS if name in scores]


def means_by_subject(scores: pd.DataFrame) -> pd.DataFrame:
    """Average the scores of each subject over seeds; pooled rows are excluded."""
    single = scores[scores["subject"] != tables.POOLED]
    keys = [*GROUPS, *test_subject_columns(single), "subject"]
    return single.groupby(keys, sort=False, dropna=False)["value"].mean().reset_index()


def summarize(scores: pd.DataFrame, over: str = "subjects") -> pd.DataFrame:
    """Return the mean and standard deviation of every method and metric.

    Parameters
    ----------
    scores : DataFrame
        Scores of any protocol.
    over : "subjects" | "seeds"
        Unit of the mean and the standard deviation. ``"subjects"``: the scores of each subject are
        first averaged over seeds, and pooled rows are excluded; the paper reports this for
        leave-one-subject-out. ``"seeds"``: only the pooled rows are used; the paper reports this
        for fixed test subjects.

    Returns
    -------
    pandas.DataFrame
        Table with the columns ``protocol``, ``dataset``, ``method``, ``n_train_subjects``,
        ``metric``, ``mean``, ``sd`` (sample standard deviation with n - 1; NaN for n = 1) and ``n``
        (number of subjects or seeds with a defined score).

    Raises
    ------
    ValueError
        When ``over`` is unknown, the scores have no row of that kind, rows differ in their value
        alone, or the scores are of several controls.

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
    units = (
        means_by_subject(scores)
        if over == "subjects"
        else scores[scores["subject"] == tables.POOLED]
    )
    if len(units) == 0:
        which = "not" if over == "subjects" else "only"
        raise ValueError(f"over={over!r} needs rows whose subject is {which} {tables.POOLED!r}.")
    keys = [*GROUPS, *test_subject_columns(units)]
    groups = units.groupby(keys, sort=False, dropna=False)["value"]
    return groups.agg(mean="mean", sd="std", n="count").reset_index()


def score_table(scores: pd.DataFrame, over: str = "subjects") -> pd.DataFrame:
    """Return mean ± standard deviation as text: methods as rows, metrics as columns.

    Parameters
    ----------
    scores : DataFrame
        Scores of any protocol.
    over : "subjects" | "seeds"
        As in :func:`summarize`.

    Returns
    -------
    pandas.DataFrame
        Table indexed by dataset, number of training subjects and method, and by what a method was
        given of the test subject, where any was given something. A single value is shown
        without a standard deviation. Where encoders of different sizes were compared, the first
        column is ``encoder_parameters``. ``attrs["n"]`` is the largest number of subjects or seeds
        that a mean is taken over.

    Raises
    ------
    ValueError
        In the cases of :func:`summarize`.

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
    spread = summary["sd"].map(" ± {:.3f}".format).where(summary["sd"].notna(), "")
    summary["score"] = summary["mean"].map("{:.3f}".format) + spread
    rows = ["dataset", "n_train_subjects", "method"]
    rows += [
        name
        for name in test_subject_columns(summary)
        if {*summary[name]} - {tables.TestSubjectData.NONE}
    ]
    table = summary.set_index([*rows, "metric"])["score"].unstack("metric", sort=False)
    if "encoder_parameters" in scores:
        of_method = scores.assign(dataset=scores["dataset"].astype(object).fillna(""))
        sizes = of_method.groupby(["dataset", "method"])["encoder_parameters"].first()
        numbers = [sizes.get((row[0], row[2])) for row in table.index]
        texts = ["-" if pd.isna(number) else f"{number:,.0f}" for number in numbers]
        table.insert(0, "encoder_parameters", texts)
    table.attrs["n"] = int(summary["n"].max())
    return table


def saved_probabilities(
    fitted: Any, probabilities: np.ndarray | None, n_windows: int
) -> tuple[list, dict[str, Any]]:
    """Return predicted probabilities as numbers that can be saved as JSON.

    Parameters
    ----------
    fitted : estimator
        Fitted classifier.
    probabilities : ndarray, shape (n_windows, n_classes) | None
        What it predicts.
    n_windows : int
        Number of test windows.

    Returns
    -------
    classes : list
        Labels of the columns; empty without probabilities.
    saved : dict
        ``columns``, a list of probabilities for each class; or ``missing``, the reason why there
        are none.

    Raises
    ------
    ValueError
        When the number of probabilities is not that of windows.
    """
    name = type(fitted).__name__
    if probabilities is None:
        return [], {"missing": f"{name} has no predict_proba, and so no probabilities"}
    classes = np.asarray(getattr(fitted, "classes_", [])).tolist()
    shape = f"{probabilities.shape} for {n_windows} windows and {len(classes)} classes_"
    if len(probabilities) != n_windows:
        raise ValueError(f"predict_proba returns shape {shape}")
    if probabilities.shape[1:] != (len(classes),):
        # As a net with a unit for a class that no training subject has, or without classes_.
        return [], {"missing": f"predict_proba of {name} returns shape {shape}"}
    try:
        checks.check_probabilities(probabilities)
    except ValueError as error:
        reason = f"predict_proba of {name} returns no probabilities. {error}"
        return [], {"missing": reason.rstrip(".")}
    # The shortest text of a float32 is half as long as that of the same number as a float64.
    return classes, {"columns": probabilities.astype(str).astype(float).T.tolist()}
