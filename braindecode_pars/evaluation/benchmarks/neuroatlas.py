"""Benchmark NeuroAtlas: linear probes, with leave-one-subject-out cross-validation on EEGMAT.

The functions compute the same splits and scores as the benchmark ``bci_cognitive`` of the package
neuroatlas-bench 0.1.1 (Kontras et al. 2026, arXiv 2605.14698). That package is not imported, and
none of its code is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import train_test_split

from braindecode_pars._common import tables
from braindecode_pars.baselines.linear_probe import LinearProbe, logistic_regression
from braindecode_pars.estimators import transformers, windows_estimator
from braindecode_pars.estimators.windows_classifier import LabelPredictor
from braindecode_pars.evaluation.protocols import leave_one_subject_out
from braindecode_pars.evaluation.splitting import in_order
from braindecode_pars.windows import convert
from braindecode_pars.windows.labels import training_classes, where_labeled

#: Arguments of ``datasets.eegmat.load`` that reproduce the preprocessing of NeuroAtlas with its
#: default frequency band, 4 to 40 Hz.
EEGMAT: dict[str, Any] = dict(
    sfreq=128.0, low=4.0, high=40.0, mains=50.0, reference="average", window_seconds=4.0
)
#: Values of C (inverse regularization strength) from which one is selected.
GRID = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)


@dataclass(eq=False, repr=False)
class NeuroAtlasProbe(LabelPredictor):
    """Linear probe of NeuroAtlas: logistic regression with C selected on validation subjects.

    One tenth of the subjects, rounded up, are selected at random as validation subjects, always
    with the same seed. For each value of C (inverse regularization strength) in :data:`GRID`, a
    logistic regression without class weights is fitted on the standardized features of all other
    subjects. The classifier with the highest Cohen's kappa on the validation subjects is used,
    without refitting it on all subjects; if several values of C have the same kappa, the smallest C
    is used.

    Parameters
    ----------
    transformer : transformer
        Required. Transformer of windows that computes the features, such as
        :class:`~braindecode_pars.PARSEmbedder` with ``pooling="mean"``, or
        :class:`~braindecode_pars.evaluation.LogBandPower`. A clone of the transformer is fitted on
        the subjects that are not validation subjects.
    unlabeled_label : hashable | None
        Label of unlabeled windows, which are not used; see
        :class:`~braindecode_pars.PARSClassifier`.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    transformer_ : transformer
        Fitted transformer.
    classifier_ : Pipeline
        StandardScaler and logistic regression. The classes of this pipeline are indices into
        ``classes_``.
    C_ : float
        Selected C.
    validation_subjects_ : list
        Validation subjects.
    test_subject_data_ : TestSubjectData
        ``TestSubjectData.NONE``: each window is predicted independently.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> from braindecode_pars.evaluation.benchmarks.neuroatlas import NeuroAtlasProbe
    >>> X, y, subjects = as_sklearn(datasets.simulated.sleep(n_subjects=4, hours=0.2, n_chans=2))
    >>> probe = NeuroAtlasProbe(LogBandPower()).fit(X[subjects < 4], y[subjects < 4])
    >>> probe.validation_subjects_
    [1]
    >>> probe.predict(X[subjects == 4]).shape
    (24,)
    """

    transformer: Any = None
    _: KW_ONLY
    unlabeled_label: Any = "auto"

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit the transformer and a classifier for each C, and select C.

        Parameters
        ----------
        X : windows
            Labeled windows of at least two subjects.
        y, groups : array-like, shape (n_windows,) | None
            Label and subject of each window. If None, the labels and subjects of the dataset are
            used.

        Returns
        -------
        NeuroAtlasProbe
            The fitted classifier itself.

        Raises
        ------
        TypeError, ValueError
            If a parameter has the wrong type, labels are missing, or the subject of a window is
            unknown. Errors of the transformer are also raised.
        """
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, y, groups)
        windows = windows[where_labeled(windows, self.unlabeled_label)]
        transformers.subject_numbers(windows, 1, type(self).__name__)  # checks subjects
        subjects = pd.Series(windows.groups)
        # The random selection depends on the order of the subjects.
        names = in_order(subjects.unique().tolist())
        _, valid = train_test_split(names, test_size=0.1, random_state=42)
        is_valid = subjects.isin(valid).to_numpy()
        classes, codes = training_classes(windows.labels, windows.label_names)
        with windows_estimator.fresh_fit(self):
            self.transformer_ = clone(self.transformer)
            features = self.transformer_.fit_transform(windows[~is_valid], codes[~is_valid])
            held_out = self.transformer_.transform(windows[is_valid])
            fits = [logistic_regression(C, None).fit(features, codes[~is_valid]) for C in GRID]
            kappas = [cohen_kappa_score(codes[is_valid], clf.predict(held_out)) for clf in fits]
            # Select the first of equal values. Kappa is NaN if all windows are of one class.
            best = int(np.argmax(np.nan_to_num(kappas, nan=-np.inf)))
            self.classifier_, self.C_ = fits[best], GRID[best]
            self.validation_subjects_ = valid
            self.test_subject_data_ = tables.TestSubjectData.NONE
            self.classes_ = classes
        return self

    _predictions = LinearProbe._predictions


def neuroatlas_scores(
    methods: Mapping[str, Any],
    windows_ds: Any,
    *,
    test_subjects: Sequence | None = None,
    seeds: Sequence[int] = (0,),
    verbose: int = 1,
) -> pd.DataFrame:
    """Score features with the leave-one-subject-out protocol of NeuroAtlas.

    Each subject is tested in turn. Of the other subjects, one tenth (rounded up) are validation
    subjects, on which the regularization is selected, and all others are training subjects; see
    :class:`NeuroAtlasProbe`.

    Parameters
    ----------
    methods : dict of str to transformer
        Transformers of windows by method name, such as frozen encoders or hand-crafted features.
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions, for example from
        ``datasets.eegmat.load(folder, **neuroatlas.EEGMAT)``, where ``EEGMAT`` contains the
        preprocessing of NeuroAtlas.
    test_subjects, seeds, verbose
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`. The seeds are used for
        random encoders and for pretraining in ``fit``; the splits do not depend on the seeds.

    Returns
    -------
    pandas.DataFrame
        Kappa and balanced accuracy, in the format of
        :func:`~braindecode_pars.evaluation.leave_one_subject_out`. The column ``n_train_subjects``
        includes the validation subjects.

    Raises
    ------
    ValueError, FoldError
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`.

    References
    ----------
    Kontras et al. 2026, NeuroAtlas, arXiv 2605.14698, appendix C.4.

    Examples
    --------
    >>> from braindecode_pars import PARSEmbedder, datasets
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> from braindecode_pars.evaluation.benchmarks import neuroatlas
    >>> windows = datasets.mental_arithmetic(["Subject00", "Subject01", "Subject02", "Subject03"])
    >>> methods = {
    ...     "small": PARSEmbedder(encoder="small", pooling="mean", verbose=0),
    ...     "log band power": LogBandPower(),
    ... }
    >>> scores = neuroatlas.neuroatlas_scores(methods, windows, verbose=0)
    >>> neuroatlas.neuroatlas_summary(scores)[["method", "n_subjects"]].to_numpy().tolist()
    [['small', 4], ['log band power', 4]]
    """
    probes = {name: NeuroAtlasProbe(transformer) for name, transformer in methods.items()}
    with windows_estimator.features_computed_once():
        return leave_one_subject_out(
            probes,
            windows_ds,
            test_subjects=test_subjects,
            seeds=seeds,
            verbose=verbose,
            equal_sizes=False,
        )


def neuroatlas_summary(scores: pd.DataFrame, metric: str = "balanced_accuracy") -> pd.DataFrame:
    """Summarize scores as NeuroAtlas does: mean and population standard deviation over subjects.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`neuroatlas_scores`.
    metric : str
        Metric to summarize.

    Returns
    -------
    pandas.DataFrame
        One row per dataset and method, with the columns ``dataset``, ``method``, ``mean``, ``sd``
        (population standard deviation: divided by the number of subjects, not by this number minus
        1) and ``n_subjects``.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation.benchmarks.neuroatlas import neuroatlas_summary
    >>> same = dict(dataset="", method="log band power", metric="balanced_accuracy")
    >>> scores = pd.DataFrame([dict(same, value=0.5), dict(same, value=0.7)])
    >>> neuroatlas_summary(scores)[["mean", "sd", "n_subjects"]].round(3).to_numpy().tolist()
    [[0.6, 0.1, 2.0]]
    """
    values = tables.rows_of(scores, metric).groupby(["dataset", "method"], sort=False)["value"]
    summary = values.agg(mean="mean", sd=lambda x: x.std(ddof=0), n_subjects="count")
    return summary.reset_index()
