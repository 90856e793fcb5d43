"""Ablations: the effect of single settings on the scores (appendix A.4 of the paper).

Several folds share an encoder: it is pretrained once, on no test subject of these folds.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone

from braindecode_pars._common import checks, files, names, training
from braindecode_pars.estimators import embedder, fine_tuning, windows_estimator
from braindecode_pars.evaluation import cache, protocols, splitting
from braindecode_pars.evaluation.splitters import LabeledSubjects

#: Number of validation subjects that the paper scores its ablations on.
N_VALIDATION = 200

_RATIOS = (0.2, 0.4, 0.6, 0.8, 1.0)

#: The paper's grids (masking, sampling, decoder), and two more (overlap, joint).
GRIDS: dict[str, dict[str, Any]] = {
    "masking": {"n_patches": (20, 30, 40), "position_mask_ratio": _RATIOS},
    "sampling": {"sampling": ("random", "grid"), "position_mask_ratio": _RATIOS},
    "decoder": {"decoder": ("cross_attention", "mlp"), "position_mask_ratio": _RATIOS},
    # The same number of patches in both, small enough to place them without overlap.
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
    """Pretrain, fine-tune and score one estimator with different settings.

    All settings are scored on the same test subjects. This protocol reproduces the paper's
    ablations (appendix A.4, figure 6): each setting is pretrained once, on the windows of all
    subjects that may be trained on, with their labels unused; each seed then draws training
    subjects and fine-tunes the same encoder. Folds with different test subjects cannot share an
    encoder, so they have different ones. Seeds therefore vary the fine-tuning only.

    The seed of a pretraining is 0. It uses the training windows of all folds with the same test
    subjects, before subjects are drawn; not those of split ``"test"``, and not those that
    ``validation="split"`` validates on. A random share for internal validation, as
    ``validation=0.2``, is drawn later by each fit, so the encoder has seen these windows without
    their labels. Test windows are never seen.

    Parameters
    ----------
    estimator : estimator
        Estimator with the settings that do not vary, for example
        ``PARSClassifier(**paper.CLASSIFIER)``. One that does not pretrain, or whose settings have
        an ``encoder``, is fitted as it is.
    windows_ds : BaseConcatDataset
        Labeled windows with ``subject`` in the descriptions.
    grid : dict
        Settings to compare, in one of two forms. Names and their settings:
        ``{"few": {"n_patches": 20}, "many": {"n_patches": 40}}``. Or parameters and their values,
        of which all combinations are run:
        ``{"n_patches": (20, 40), "decoder": ("mlp", "cross_attention")}``. :data:`GRIDS` contains
        the paper's grids. A name that is not a parameter of the estimator is set in its
        ``pretext_params``.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that divides the subjects, such as ``GroupKFold(5)``; an integer is the
        number of folds of whole subjects. None uses ``test_subjects``.
    test_subjects : sequence | None
        Subjects to test on. None means the validation subjects of the corpus, as in the paper:
        those whose recordings have ``"valid"`` as ``split`` in their description, of more than 200
        a random 200. The other validation subjects and those of split ``"test"`` are then not used
        at all. A corpus without validation subjects is scored on its test subjects.
    n_train_subjects : int | None
        Number of training subjects (the paper: 100), drawn at random for each seed; None means
        all.
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
        contains the name of the setting, and each varied parameter has a column of its own.

    Raises
    ------
    TypeError
        When the grid has neither of the two forms.
    ValueError
        When a setting is not a parameter, there are no test subjects, ``n_train_subjects`` is
        larger than the number of training subjects, or an estimator has ``validation="split"`` and
        the validation subjects are the test subjects.
    FoldError
        When a fit fails.

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

    # Fit and score; each varied parameter becomes a column.
    columns = dict.fromkeys(column for settings in named.values() for column in settings)
    subjects: Any = dict(cv=cv, test_subjects=test_subjects, seeds=seeds)
    splitter = _ValidationSubjects(estimators, n_subjects=n_train_subjects, **subjects)
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
    """Test on the validation subjects, at most 200 of them, where nothing else is asked for."""

    def __init__(self, estimators: Mapping[str, BaseEstimator], **subjects: Any):
        super().__init__(**subjects)
        self.estimators = estimators

    def fixed_subjects(self, corpus: splitting.Corpus) -> tuple[list, list]:
        is_valid = corpus.splits == "valid"
        labeled = corpus.subjects_of(is_valid & corpus.labeled)
        if self.test_subjects is not None or not labeled:  # without them, the test subjects
            return super().fixed_subjects(corpus)
        for name, estimator in self.estimators.items():
            if splitting.validates_by_split(estimator):
                raise ValueError(
                    f"{name} has validation='split', but split 'valid' is what an ablation tests "
                    "on; pass test_subjects, or a share such as validation=0.2."
                )
        drawn = splitting.draw_subjects(labeled, min(N_VALIDATION, len(labeled)), seed=0)
        # Validation subjects that were not drawn are not trained on either.
        left_out = corpus.subjects_of(is_valid | (corpus.splits == "test"))
        return splitting.in_order(drawn), left_out


def settings_of(grid: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of a grid by name; a grid of values gives all combinations.

    Raises
    ------
    TypeError
        When the grid is neither a dict of settings nor a dict of lists of values.
    ValueError
        When the grid is empty, or a parameter has the name of a column of the scores.

    Examples
    --------
    >>> from braindecode_pars.evaluation.ablation import settings_of
    >>> list(settings_of({"n_patches": (20, 40), "decoder": ("mlp",)}))
    ['n_patches=20, decoder=mlp', 'n_patches=40, decoder=mlp']
    """
    if not isinstance(grid, Mapping):
        raise TypeError(f"grid must be a dict of settings or lists, not a {type(grid).__name__}.")
    # Names and settings, or parameters and values
    if all(isinstance(value, Mapping) for value in grid.values()):
        named = {str(name): dict(settings) for name, settings in grid.items()}
    else:
        for name, values in grid.items():
            if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
                raise TypeError(f"{name} is {values!r} in the grid; pass a list of values.")
        combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        named = {", ".join(f"{k}={v}" for k, v in c.items()): c for c in combinations}
    if not named:
        raise ValueError("grid is empty; pass at least one setting.")
    # A varied parameter becomes a column and must not replace one of the scores.
    if taken := {name for settings in named.values() for name in settings} & {*names.SCORES}:
        raise ValueError(f"{min(taken)!r} cannot be varied; the scores have a column of this name.")
    return named


def configured(estimator: BaseEstimator, settings: Mapping[str, Any]) -> BaseEstimator:
    """Return a clone of the estimator with these settings.

    Settings that are not parameters of the estimator are added to its ``pretext_params``. When a
    setting changes the pretext task from ``"pars"`` or ``"mae"`` to ``"joint"``, the joint task
    passes the ``pretext_params`` on to its part of that name.

    Raises
    ------
    ValueError
        When a setting is unknown and the estimator has no ``pretext_params``.
    """
    # Parameters of the estimator, and arguments of its pretext task
    params = estimator.get_params()
    args = {name: value for name, value in settings.items() if name in params}
    others = {name: value for name, value in settings.items() if name not in params}
    if "pretext_params" not in params:
        args |= others  # set_params names them
    elif others:
        pretext_params = args.get("pretext_params", params["pretext_params"])
        args["pretext_params"] = {**(pretext_params or {}), **others}
    # The joint task takes the arguments of each of its parts by name.
    task = params.get("pretext")
    if args.get("pretext") == "joint" and task in ("pars", "mae") and "pretext_params" not in args:
        args["pretext_params"] = {"task_params": {task: params["pretext_params"] or {}}}
    return clone(estimator).set_params(**args)


#: Seed of the pretraining. The seeds of the folds only draw training subjects and fine-tune.
SEED = 0


def pretrains(estimator: BaseEstimator) -> bool:
    """Whether a fit of this estimator pretrains a new encoder that another fit could use."""
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
    """Pretrain one encoder for each method and set of test subjects, and give it to its folds.

    Parameters
    ----------
    folds : sequence of Fold
        Folds of one dataset.
    corpora : dict of str to Corpus
        The windows of this dataset.
    store : FoldStore | None
        Folder for the results. Encoders are saved in ``encoders`` and are not pretrained again.
    verbose : int
        Verbosity; 1 shows a progress bar.

    Returns
    -------
    list of Fold
        Folds whose estimators have the encoder. A fold that does not pretrain is as before.

    Raises
    ------
    ValueError
        When folds have no window to pretrain on, or a task does not fit the windows.
    """
    members: dict[tuple, list[int]] = {}
    for i, fold in enumerate(folds):
        if pretrains(fold.estimator):
            members.setdefault((fold.method, *fold.test_subjects), []).append(i)
    # A task that does not fit the windows fails before any encoder is pretrained.
    for fold in {fold.method: fold for fold in folds if pretrains(fold.estimator)}.values():
        with windows_estimator.without_training(fold.estimator) as (unfitted, _):
            start = embedder.load_or_build_encoder(unfitted, corpora[fold.dataset].X)
            start.make_task(start.new_encoder())
    shared = list(folds)
    for group in training.ProgressBar(
        members.values(), "pretraining", unit=" encoders", disable=not verbose
    ):
        first = folds[group[0]]
        folder = None if store is None else store.encoder_of(first)
        encoder: Any = None
        if folder is not None and folder.is_dir():
            with suppress(FileNotFoundError):  # a killed process leaves an empty folder
                embedder.PARSEmbedder.load(folder)
                encoder = str(folder)
        if encoder is None:
            if not len(first.pretrain):
                raise ValueError("There is no window to pretrain on; all are of split 'test'.")
            seeded = splitting.with_seed(clone(first.estimator), SEED)
            encoder = seeded.pretrained(corpora[first.dataset].X[first.pretrain])
            encoder = encoder if folder is None else str(encoder.save(folder))
        for i in group:
            # Fine-tuned as the encoder of its own that it stands for, not as a given one.
            params = fine_tuning.fine_tuning_of(folds[i].estimator.get_params(deep=False), None)
            estimator = clone(folds[i].estimator).set_params(encoder=encoder, **params)
            shared[i] = replace(folds[i], estimator=estimator)
    return shared
