"""Ablations: compare settings of one estimator on held-out subjects, as in the PARS paper.

For each setting, folds with the same test subjects share one encoder, which is pretrained once,
without these test subjects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid

from braindecode_pars._common import checks, files, names, training
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.estimators import encoder_start, fine_tuning, windows_estimator
from braindecode_pars.evaluation import cache, protocols, splitting
from braindecode_pars.evaluation.splitters import LabeledSubjects
from braindecode_pars.evaluation.splitting import Corpus, Fold

#: Number of validation subjects on which the PARS paper evaluates its ablations.
N_VALIDATION = 200

#: Position mask ratios in the paper's grids, as proportions of the patches.
_RATIOS = (0.2, 0.4, 0.6, 0.8, 1.0)

#: Grids of settings for :func:`ablation`. "masking", "sampling" and "decoder" are grids of the
#: paper; "overlap" and "joint" are additional grids.
GRIDS: dict[str, dict[str, Any]] = {
    "masking": {"n_patches": (20, 30, 40), "position_mask_ratio": _RATIOS},
    "sampling": {"sampling": ("random", "grid"), "position_mask_ratio": _RATIOS},
    "decoder": {"decoder": ("cross_attention", "mlp"), "position_mask_ratio": _RATIOS},
    # The number of patches is small enough that they can be placed without overlap.
    "overlap": {"overlap": (True, False), "n_patches": (20,)},
    "joint": {"PARS": {"pretext": "pars"}, "PARS + MAE": {"pretext": "joint"}},
}


def ablation(
    estimator: BaseEstimator,
    windows_ds: Any,
    grid: Mapping[str, Any],
    *,
    cv: Any = None,
    test_subjects: Sequence | None = None,
    n_train_subjects: int | None = None,
    seeds: Sequence[int] = range(5),
    metrics: Sequence[str] = ("kappa",),
    dataset: str = "",
    unlabeled_label: Any = "auto",
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> pd.DataFrame:
    """Ablation study: pretrain, fine-tune and score one estimator with different settings.

    All settings are scored on the same test subjects. This protocol reproduces the ablations of the
    PARS paper (appendix A.4, figure 6). For each setting, one encoder is pretrained with seed 0 on
    the windows of all subjects available for training, without their labels. For each seed in
    ``seeds``, training subjects are then drawn at random, and this encoder is fine-tuned on them.

    With ``cv``, each fold (training and test subjects of the cross-validation) has its own encoder
    for each setting. Pretraining does not use test windows, subjects whose recordings have
    ``"test"`` as ``split`` in their description or, if the estimator has ``validation="split"``,
    its validation subjects. If the estimator has a proportion instead, such as ``validation=0.2``,
    each fit draws its validation windows after the pretraining, so the encoder was pretrained on
    these windows, too, but without their labels.

    Parameters
    ----------
    estimator : estimator
        Estimator with the settings that do not vary, for example
        ``PARSClassifier(**paper.CLASSIFIER)``. An estimator that does not pretrain, or that has an
        ``encoder`` already, is fitted without a shared encoder.
    windows_ds : BaseConcatDataset
        Labeled windows, with ``subject`` in the descriptions of the recordings.
    grid : dict
        Settings to compare, in one of two forms. The first form maps names to settings:
        ``{"few": {"n_patches": 20}, "many": {"n_patches": 40}}``. The second form maps parameters
        to lists of values, and all combinations of the values are compared: ``{"n_patches": (20,
        40), "decoder": ("mlp", "cross_attention")}``. :data:`GRIDS` contains the grids of the
        paper, and two additional grids. A varied parameter that the estimator does not have,
        such as ``n_patches``, is added to its ``pretext_params``, the arguments of the pretext
        task.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that splits by subject, such as ``GroupKFold(5)``. An integer is the number
        of folds of whole subjects. If None, ``test_subjects`` are held out.
    test_subjects : sequence | None
        Held-out subjects. If None, the validation subjects of the dataset, as in the paper: the
        subjects whose recordings have ``"valid"`` as ``split`` in their description. If there are
        more than 200 validation subjects, 200 of them are drawn at random. Validation subjects that
        are not drawn, and subjects of split ``"test"``, are used neither for training nor for
        testing. If the dataset has no validation subjects, the subjects of split ``"test"`` are
        held out.
    n_train_subjects : int | None
        Number of training subjects (100 in the paper), drawn at random for each seed. If None, all
        subjects available for training are used.
    seeds : sequence of int
        Seeds of the random draws and of every ``random_state`` of the fits.
    metrics, dataset, unlabeled_label, out, n_jobs, verbose
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`. A later run with the same
        ``out`` may add settings and seeds. The pretrained encoders are saved in ``out/encoders``
        and reused.

    Returns
    -------
    pandas.DataFrame
        Table as returned by :func:`~braindecode_pars.evaluation.label_efficiency`. The column
        ``method`` contains the name of the setting, and there is an additional column for each
        varied parameter.

    Raises
    ------
    TypeError
        If ``grid`` has neither of the two forms.
    ValueError
        If a setting is unknown. If there are no test subjects. If ``n_train_subjects`` is larger
        than the number of training subjects. If the estimator has ``validation="split"``, and both
        ``cv`` and ``test_subjects`` are None: the validation subjects are then the test subjects,
        and no subject remains for validation.
    FoldError
        If a fit fails.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower, ablation
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> scores = ablation(
    ...     make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression()),
    ...     windows,
    ...     {"logisticregression__C": (0.1, 1.0)},
    ...     test_subjects=[3],
    ...     seeds=[0],
    ...     verbose=0,
    ... )
    >>> sorted(set(scores["method"]))
    ['logisticregression__C=0.1', 'logisticregression__C=1.0']
    """
    named = settings_of(grid)
    checks.optional(checks.integer(1)).check("n_train_subjects", n_train_subjects)
    estimators = {name: configured(estimator, settings) for name, settings in named.items()}
    # Each varied parameter becomes a column.
    columns = dict.fromkeys(column for settings in named.values() for column in settings)
    splitter = _ValidationSubjects(
        n_train_subjects, cv=cv, test_subjects=test_subjects, seeds=seeds
    )
    return protocols.run_protocol(
        estimators,
        {dataset: (windows_ds, splitter)},
        protocols.Shared(metrics, seeds, unlabeled_label, out, n_jobs, verbose, equal_sizes=False),
        varied={
            name: {column: files.plain(settings.get(column)) for column in columns}
            for name, settings in named.items()
        },
        prepare=partial(share_encoders, verbose=verbose),
    )


class _ValidationSubjects(LabeledSubjects):
    """Splitter that tests at most 200 validation subjects if ``test_subjects`` is None."""

    protocol = "ablation"

    def fixed_subjects(self, corpus: Corpus) -> tuple[list, list]:
        is_valid = corpus.splits == "valid"
        labeled = corpus.subjects_of(is_valid & corpus.labeled)
        if self.test_subjects is not None or not labeled:
            return super().fixed_subjects(corpus)
        drawn = splitting.draw_subjects(labeled, min(N_VALIDATION, len(labeled)), seed=0)
        # Validation subjects that were not drawn are excluded from training, too.
        excluded = corpus.subjects_of(is_valid | (corpus.splits == "test"))
        return splitting.in_order(drawn), excluded


def settings_of(grid: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of a grid by name; lists of values are expanded to all combinations.

    Raises
    ------
    TypeError
        If the grid is neither a dict of settings nor a dict of lists of values.
    ValueError
        If the grid is empty, or a parameter has the name of a column of the scores.

    Examples
    --------
    >>> from braindecode_pars.evaluation.ablation import settings_of
    >>> list(settings_of({"n_patches": (20, 40), "decoder": ("mlp",)}))
    ['n_patches=20, decoder=mlp', 'n_patches=40, decoder=mlp']
    """
    forms = "a dict that maps names to dicts of settings, or parameters to lists of values"
    checks.instance(forms, Mapping).check("grid", grid)
    if all(isinstance(value, Mapping) for value in grid.values()):
        named = {str(name): dict(settings) for name, settings in grid.items()}
    else:
        ParameterGrid(dict(grid))  # raises an error if a value is not a list
        combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        named = {", ".join(f"{k}={v}" for k, v in c.items()): c for c in combinations}
    if not named:
        raise ValueError("grid is empty. Pass at least one setting.")
    # A varied parameter becomes a column, which must not replace a column of the scores.
    if reserved := {name for settings in named.values() for name in settings} & {*names.SCORES}:
        raise ValueError(
            f"grid must not vary {min(reserved)!r}, because the table of scores has a column with "
            "this name. Remove the parameter from grid."
        )
    return named


def configured(estimator: BaseEstimator, settings: Mapping[str, Any]) -> BaseEstimator:
    """Return a clone of an estimator with the parameters of one setting of an ablation.

    Settings that are not parameters of the estimator are added to its ``pretext_params``. If a
    setting changes the pretext task from ``"pars"`` or ``"mae"`` to ``"joint"``, the existing
    ``pretext_params`` become those of the subtask with the name of the previous task.

    Raises
    ------
    ValueError
        If a setting is unknown and the estimator has no ``pretext_params``.
    """
    # Parameters of the estimator, and arguments of its pretext task
    params = estimator.get_params()
    task_args = {name: value for name, value in settings.items() if name not in params}
    if "pretext_params" not in params:
        task_args = {}  # set_params raises an error that names an unknown parameter
    args = {name: value for name, value in settings.items() if name not in task_args}
    if task_args:
        pretext_params = args.get("pretext_params", params["pretext_params"])
        args["pretext_params"] = {**(pretext_params or {}), **task_args}
    # The arguments of the joint task are the arguments of each subtask, by name.
    task = params.get("pretext")
    if args.get("pretext") == "joint" and task in ("pars", "mae") and "pretext_params" not in args:
        args["pretext_params"] = {"task_params": {task: params["pretext_params"] or {}}}
    return clone(estimator).set_params(**args)


#: Seed of the pretraining. The seeds of the folds affect only the draws and the fine-tuning.
SEED = 0


def pretrains(estimator: BaseEstimator) -> bool:
    """Return whether ``fit`` pretrains a new encoder, which several fits could share."""
    params = estimator.get_params(deep=False)
    is_new = params.get("encoder", "") is None and params.get("pretext") is not None
    return is_new and params["pretrain_epochs"] != 0 and hasattr(estimator, "pretrained")


def share_encoders(
    folds: Sequence[Fold], corpora: Mapping[str, Corpus], folder: ResultsFolder, verbose: int = 1
) -> list[Fold]:
    """Pretrain the encoders that several folds share, and return folds that use these encoders.

    One encoder is pretrained for each method and each set of pretraining windows.

    Parameters
    ----------
    folds : sequence of Fold
        Folds of one dataset.
    corpora : dict of str to Corpus
        The windows of this dataset.
    folder : ResultsFolder
        Folder for the results. Encoders are saved in its subfolder ``encoders``. Encoders that are
        already in this subfolder are loaded instead of pretrained.
    verbose : int
        Verbosity; 1 shows a progress bar.

    Returns
    -------
    list of Fold
        The same folds, in which the estimators have a pretrained ``encoder``. A fold whose
        estimator does not pretrain is unchanged.

    Raises
    ------
    ValueError
        If there are no windows for pretraining, or a pretext task cannot be used with the windows.
    """
    keys = [(fold.method, fold.pretrain.tobytes()) for fold in folds]
    pretraining = {
        k: fold for k, fold in zip(keys, folds, strict=True) if pretrains(fold.estimator)
    }
    # If a pretext task cannot be used with the windows, raise the error before any encoder is
    # pretrained.
    for fold in {fold.method: fold for fold in pretraining.values()}.values():
        with windows_estimator.without_training(fold.estimator) as (unfitted, _):
            encoder_start.load_or_build_encoder(unfitted, corpora[fold.dataset].X).make_task()
    bar = training.ProgressBar(
        pretraining.items(), "pretraining", unit=" encoders", disable=not verbose
    )
    encoders = {key: _encoder_for(fold, corpora[fold.dataset], folder) for key, fold in bar}
    shared = []
    for key, fold in zip(keys, folds, strict=True):
        estimator = fold.estimator
        if key in encoders:
            # Fine-tune the encoder as if it had been pretrained in the fit, not as an encoder from
            # elsewhere.
            params = fine_tuning.fine_tuning_of(estimator.get_params(deep=False), None)
            estimator = clone(estimator).set_params(encoder=encoders[key], **params)
        shared.append(replace(fold, estimator=estimator))
    return shared


def _encoder_for(fold: Fold, corpus: Corpus, folder: ResultsFolder) -> Any:
    """Return a pretrained encoder, or the path of the folder in which it is saved."""
    path = cache.encoder_of(fold, folder)
    if path is None or not (path / "encoder.json").exists():
        seeded: Any = splitting.with_seed(clone(fold.estimator), SEED)
        encoder = seeded.pretrained(corpus.X[fold.pretrain])
        if path is None:
            return encoder
        encoder.save(path)
    return str(path)
