"""Ablations: compare settings of one estimator on held-out subjects (appendix A.4 of the paper).

Several folds share an encoder, which is pretrained once, without the test subjects of these folds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone

from braindecode_pars._common import checks, files, names, training
from braindecode_pars.estimators import encoder_start, fine_tuning, windows_estimator
from braindecode_pars.evaluation import cache, protocols, splitting
from braindecode_pars.evaluation.splitters import LabeledSubjects

#: Number of validation subjects on which the paper evaluates its ablations.
N_VALIDATION = 200

#: Position mask ratios of the paper's grids, as proportions of patches.
_RATIOS = (0.2, 0.4, 0.6, 0.8, 1.0)

#: Grids of settings: three of the paper (masking, sampling, decoder), and overlap and joint.
GRIDS: dict[str, dict[str, Any]] = {
    "masking": {"n_patches": (20, 30, 40), "position_mask_ratio": _RATIOS},
    "sampling": {"sampling": ("random", "grid"), "position_mask_ratio": _RATIOS},
    "decoder": {"decoder": ("cross_attention", "mlp"), "position_mask_ratio": _RATIOS},
    # The number of patches is small enough to place them without overlap.
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
    paper (appendix A.4, figure 6). An encoder is pretrained once per setting, on the windows of all
    subjects available for training, without their labels. For each seed, training subjects are then
    drawn, and this encoder is fine-tuned on them. The pretraining does not depend on the seeds.
    Folds with different test subjects have different encoders.

    The seed of the pretraining is 0. The pretraining uses the training windows of all folds with
    the same test subjects, before subjects are drawn. It does not use subjects of split ``"test"``
    or the validation subjects of ``validation="split"``. A random proportion of validation windows,
    as with ``validation=0.2``, is drawn later in each fit, so the encoder was pretrained on these
    windows without their labels. The encoder is never pretrained on test windows.

    Parameters
    ----------
    estimator : estimator
        Estimator with the settings that do not vary, for example
        ``PARSClassifier(**paper.CLASSIFIER)``. An estimator that does not pretrain, or that has an
        ``encoder`` in its settings, is fitted without a shared encoder.
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions.
    grid : dict
        Settings to compare, in one of two forms. The first form maps names to settings:
        ``{"few": {"n_patches": 20}, "many": {"n_patches": 40}}``. The second form maps parameters
        to lists of values, and all combinations of the values are compared:
        ``{"n_patches": (20, 40), "decoder": ("mlp", "cross_attention")}``. :data:`GRIDS` contains
        the grids of the paper. A setting that is not a parameter of the estimator is passed in the
        ``pretext_params`` of the estimator.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that splits by subject, such as ``GroupKFold(5)``. An integer is the number
        of folds of whole subjects. If None, ``test_subjects`` are held out.
    test_subjects : sequence | None
        Held-out subjects. If None, the validation subjects of the corpus, as in the paper: the
        subjects whose recordings have ``"valid"`` as ``split`` in their description, or a random
        200 if there are more than 200. The remaining validation subjects and the subjects of split
        ``"test"`` are then not used. If the corpus has no validation subjects, its test subjects
        are held out.
    n_train_subjects : int | None
        Number of training subjects (100 in the paper), drawn at random for each seed. If None, all
        subjects available for training are used.
    seeds : sequence of int
        Seeds of the random draws and of every ``random_state`` of the fits.
    metrics, dataset, unlabeled_label, out, n_jobs, verbose
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`. A later run with the same
        ``out`` may add settings and seeds. ``out/encoders`` contains the encoders, which are not
        pretrained again.

    Returns
    -------
    pandas.DataFrame
        Table as from :func:`~braindecode_pars.evaluation.label_efficiency`. The column ``method``
        contains the name of the setting, and there is an additional column for each varied
        parameter.

    Raises
    ------
    TypeError
        If ``grid`` has neither of the two forms.
    ValueError
        If a setting is not a parameter. If there are no test subjects. If ``n_train_subjects`` is
        larger than the number of training subjects. If an estimator has ``validation="split"`` and
        the validation subjects are the test subjects.
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
    # Check the arguments before anything is trained.
    named = settings_of(grid)
    splitting.check_arguments({"the estimator": estimator}, metrics, seeds, n_jobs, out)
    checks.optional(checks.integer(1)).check("n_train_subjects", n_train_subjects)
    estimators = {name: configured(estimator, settings) for name, settings in named.items()}
    by_split = [name for name, clf in estimators.items() if splitting.validates_by_split(clf)]
    if by_split and cv is None and test_subjects is None:
        raise ValueError(
            f"{by_split[0]} has validation='split' and would validate on the test subjects: if "
            "test_subjects is None, ablation tests on the subjects of split 'valid'. Pass "
            "test_subjects, or use a proportion for validation, such as validation=0.2."
        )

    # Fit and score; each varied parameter becomes a column.
    columns = dict.fromkeys(column for settings in named.values() for column in settings)
    splitter = _ValidationSubjects(
        n_train_subjects, cv=cv, test_subjects=test_subjects, seeds=seeds
    )
    return protocols.run_protocol(
        "ablation",
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

    def fixed_subjects(self, corpus: splitting.Corpus) -> tuple[list, list]:
        is_valid = corpus.splits == "valid"
        labeled = corpus.subjects_of(is_valid & corpus.labeled)
        if self.test_subjects is not None or not labeled:
            return super().fixed_subjects(corpus)
        drawn = splitting.draw_subjects(labeled, min(N_VALIDATION, len(labeled)), seed=0)
        # Validation subjects that were not drawn are excluded from training, too.
        excluded = corpus.subjects_of(is_valid | (corpus.splits == "test"))
        return splitting.in_order(drawn), excluded


def settings_of(grid: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of a grid by name; a grid of values is expanded to all combinations.

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
    if not isinstance(grid, Mapping):
        raise TypeError(
            "grid must be a dict that maps names to settings, or parameters to lists of values, "
            f"got {type(grid).__name__}."
        )
    # A dict from name to settings, or from parameter to values
    if all(isinstance(value, Mapping) for value in grid.values()):
        named = {str(name): dict(settings) for name, settings in grid.items()}
    else:
        for name, values in grid.items():
            if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
                raise TypeError(f"grid[{name!r}] must be a list of values, got {values!r}.")
        combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        named = {", ".join(f"{k}={v}" for k, v in c.items()): c for c in combinations}
    if not named:
        raise ValueError("grid is empty. Pass at least one setting.")
    # A varied parameter becomes a column, which must not replace a column of the scores.
    if reserved := {name for settings in named.values() for name in settings} & {*names.SCORES}:
        raise ValueError(
            f"grid must not vary {min(reserved)!r}, because the scores have a column of this name. "
            "Remove the parameter from grid."
        )
    return named


def configured(estimator: BaseEstimator, settings: Mapping[str, Any]) -> BaseEstimator:
    """Return a clone of the estimator with the given settings.

    Settings that are not parameters of the estimator are added to its ``pretext_params``. If a
    setting changes the pretext task from ``"pars"`` or ``"mae"`` to ``"joint"``, the existing
    ``pretext_params`` are passed to the subtask of that name in the joint task.

    Raises
    ------
    ValueError
        If a setting is unknown and the estimator has no ``pretext_params``.
    """
    # Parameters of the estimator, and arguments of its pretext task
    params = estimator.get_params()
    args = {name: value for name, value in settings.items() if name in params}
    task_args = {name: value for name, value in settings.items() if name not in params}
    if "pretext_params" not in params:
        args |= task_args  # set_params raises an error that names them
    elif task_args:
        pretext_params = args.get("pretext_params", params["pretext_params"])
        args["pretext_params"] = {**(pretext_params or {}), **task_args}
    # The joint task has the arguments of each subtask by name.
    task = params.get("pretext")
    if args.get("pretext") == "joint" and task in ("pars", "mae") and "pretext_params" not in args:
        args["pretext_params"] = {"task_params": {task: params["pretext_params"] or {}}}
    return clone(estimator).set_params(**args)


#: Seed of the pretraining. The seeds of the folds affect only the draws and the fine-tuning.
SEED = 0


def pretrains(estimator: BaseEstimator) -> bool:
    """Return whether a fit of the estimator pretrains a new encoder that other fits could use."""
    params = estimator.get_params(deep=False)
    is_new = params.get("encoder", "") is None and params.get("pretext") is not None
    return is_new and params["pretrain_epochs"] != 0 and hasattr(estimator, "pretrained")


def share_encoders(
    folds: Sequence[splitting.Fold],
    corpora: Mapping[str, splitting.Corpus],
    store: cache.FoldStore | None,
    *,
    verbose: int = 1,
) -> list[splitting.Fold]:
    """Pretrain one encoder per method and set of test subjects, and return folds with this encoder.

    Parameters
    ----------
    folds : sequence of Fold
        Folds of one dataset.
    corpora : dict of str to Corpus
        The windows of this dataset.
    store : FoldStore | None
        Folder for the results. Encoders are saved in its subfolder ``encoders`` and are not
        pretrained again.
    verbose : int
        Verbosity; 1 shows a progress bar.

    Returns
    -------
    list of Fold
        Folds whose estimators have the pretrained encoder. A fold that does not pretrain is
        unchanged.

    Raises
    ------
    ValueError
        If there are no windows for pretraining, or a pretext task cannot be used with the windows.
    """
    members: dict[tuple, list[int]] = {}
    for i, fold in enumerate(folds):
        if pretrains(fold.estimator):
            members.setdefault((fold.method, *fold.test_subjects), []).append(i)
    first_folds = [folds[group[0]] for group in members.values()]
    # A pretext task that does not fit the windows fails before any encoder is pretrained.
    for fold in {fold.method: fold for fold in first_folds}.values():
        with windows_estimator.without_training(fold.estimator) as (unfitted, _):
            encoder_start.load_or_build_encoder(unfitted, corpora[fold.dataset].X).make_task()
    shared = list(folds)
    for group in training.ProgressBar(
        members.values(), "pretraining", unit=" encoders", disable=not verbose
    ):
        first = folds[group[0]]
        folder = None if store is None else store.encoder_of(first)
        encoder = _pretrained_once(first, corpora[first.dataset], folder)
        for i in group:
            # Fine-tune the encoder as if the fit had pretrained it, not as a pretrained encoder.
            params = fine_tuning.fine_tuning_of(folds[i].estimator.get_params(deep=False), None)
            estimator = clone(folds[i].estimator).set_params(encoder=encoder, **params)
            shared[i] = replace(folds[i], estimator=estimator)
    return shared


def _pretrained_once(fold: splitting.Fold, corpus: splitting.Corpus, folder: Path | None) -> Any:
    """Return a pretrained encoder, or the path of ``folder`` if the encoder is saved there."""
    if folder is None or not (folder / "encoder.json").exists():
        if not len(fold.pretrain):
            raise ValueError(
                "There are no windows for pretraining, because all windows are in split 'test'. "
                "Add recordings to split 'train', or pass test_subjects."
            )
        seeded: Any = splitting.with_seed(clone(fold.estimator), SEED)
        encoder = seeded.pretrained(corpus.X[fold.pretrain])
        if folder is None:
            return encoder
        encoder.save(folder)
    return str(folder)
