"""What each choice in pretraining is worth (appendix A.4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone
from torch.utils.data import Dataset

from braindecode_pars._columns import SCORES
from braindecode_pars.evaluation._arguments import check_arguments
from braindecode_pars.evaluation._splitting import given_split, make_folds, splitter
from braindecode_pars.evaluation.folds import Corpus, run_folds
from braindecode_pars.evaluation.label_efficiency import check_numbers
from braindecode_pars.storage._json import plain

__all__ = ["GRIDS", "ablation"]

_RATIOS = (0.2, 0.4, 0.6, 0.8, 1.0)

#: The paper's grids (masking, sampling, decoder), and two that it did not run.
GRIDS: dict[str, dict[str, Any]] = {
    "masking": {"n_patches": (20, 30, 40), "position_mask_ratio": _RATIOS},
    "sampling": {"sampling": ("random", "grid"), "position_mask_ratio": _RATIOS},
    "decoder": {"decoder": ("cross_attention", "mlp")},
    # As many patches in both, and few enough to be placed without overlap.
    "overlap": {"overlap": (True, False), "n_patches": (20,)},
    "joint": {"PARS": {"pretext": "pars"}, "PARS + MAE": {"pretext": "joint"}},
}


def ablation(
    estimator: BaseEstimator,
    windows_ds: Dataset,
    grid: Mapping[str, Any],
    *,
    cv: Any = None,
    test_subjects: Sequence | None = None,
    n_train_subjects: int | None = None,
    seeds: Sequence[int] = range(5),
    metrics: Sequence[str] = ("kappa",),
    dataset: str = "",
    unlabeled_label: Any = -1,
    out: str | Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    return_curves: bool = False,
) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
    """Vary settings of one estimator, pretrain and fine-tune each, score on the same subjects.

    The paper's ablations (appendix A.4, figure 6).

    Parameters
    ----------
    estimator : estimator
        With all that is not varied, for example ``PARSClassifier(**paper.CLASSIFIER)``. Each
        setting is pretrained inside each fit, on that fold's training subjects.
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    grid : dict
        Either names and their settings, ``{"few": {"n_patches": 20}, "many": {"n_patches":
        40}}``, or parameters and their values, ``{"n_patches": (20, 40), "decoder": ("mlp",
        "cross_attention")}``, of which all combinations are run; :data:`GRIDS` has the paper's.
        What is no parameter of the estimator goes into its ``pretext_params``.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Divides the subjects, such as ``GroupKFold(5)``; an integer is a number of folds of whole
        subjects. None uses ``test_subjects``.
    test_subjects : sequence | None
        None takes the recordings whose description ``split`` is ``"test"``. The paper scores
        ablations on validation subjects: name those here.
    n_train_subjects : int | None
        Train on so many, drawn anew for each seed (the paper: 100); None means on all.
    seeds : sequence of int
        Of the draws and of every ``random_state``.
    metrics, dataset, unlabeled_label, out, n_jobs, verbose
        As in :func:`~braindecode_pars.evaluation.leave_one_subject_out`; a later run in ``out``
        may add settings and seeds. ``out/curves.csv`` has the losses.
    return_curves : bool
        Also return the losses by epoch.

    Returns
    -------
    scores : pandas.DataFrame
        As that of :func:`~braindecode_pars.evaluation.label_efficiency`, ``method`` being the
        setting, and with one more column for each parameter that is varied.
    curves : pandas.DataFrame
        Only with ``return_curves=True``: the ``curves`` of a
        :class:`~braindecode_pars.evaluation.folds.Run`.

    Raises
    ------
    TypeError
        When the grid is neither of the two forms.
    ValueError
        When a setting is no parameter, nobody is there to test, or more training subjects are
        asked for than there are.
    FoldError
        When a fit fails.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import LogBandPower, ablation
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> scores = ablation(
    ...     make_pipeline(LogBandPower(), LogisticRegression(max_iter=1000)),
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
    check_arguments({"the estimator": estimator}, metrics, seeds, n_jobs)
    if n_train_subjects is not None:
        check_numbers([n_train_subjects])
    estimators = {name: configured(estimator, settings) for name, settings in named.items()}
    corpus = Corpus.of(windows_ds, dataset, unlabeled_label)
    default = given_split(windows_ds, corpus, test_subjects) if cv is None else None
    split = splitter(corpus, cv, default, test_subjects=test_subjects)
    columns = dict.fromkeys(column for settings in named.values() for column in settings)
    folds = make_folds(
        "ablation",
        estimators,
        corpus,
        split,
        seeds,
        None if n_train_subjects is None else [n_train_subjects],
        varied={
            name: {column: plain(settings.get(column)) for column in columns}
            for name, settings in named.items()
        },
    )
    run = run_folds(
        folds, {dataset: corpus}, metrics=metrics, out=out, n_jobs=n_jobs, verbose=verbose
    )
    return (run.scores, run.curves) if return_curves else run.scores


def settings_of(grid: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of a grid by name; all combinations, where it gives values.

    Raises
    ------
    TypeError
        When it is neither a dict of settings nor one of values.
    ValueError
        When it is empty, or a parameter has the name of a column.

    Examples
    --------
    >>> from braindecode_pars.evaluation.ablation import settings_of
    >>> list(settings_of({"n_patches": (20, 40), "decoder": ("mlp",)}))
    ['n_patches=20, decoder=mlp', 'n_patches=40, decoder=mlp']
    """
    if not isinstance(grid, Mapping):
        raise TypeError(
            f"grid is a {type(grid).__name__}; give a dict of names and settings, or of parameters "
            "and lists of values."
        )
    if all(isinstance(value, Mapping) for value in grid.values()):
        named = {str(name): dict(settings) for name, settings in grid.items()}
    else:
        for name, values in grid.items():
            if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
                raise TypeError(
                    f"{name} has the value {values!r} in the grid; give a list of values for each "
                    "parameter, or a dict of settings for each name."
                )
        combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        named = {", ".join(f"{k}={v}" for k, v in c.items()): c for c in combinations}
    if not named:
        raise ValueError("grid holds no setting; there would be nothing to report.")
    for name in (name for settings in named.values() for name in settings):
        if name in SCORES:
            raise ValueError(f"{name!r} cannot be varied, it is a column of the result.")
    return named


def configured(estimator: BaseEstimator, settings: Mapping[str, Any]) -> BaseEstimator:
    """A clone with these settings; those it does not know are for its ``pretext_params``.

    A joint task passes the arguments of the task before it on to its part of that name.

    Raises
    ------
    ValueError
        When a setting is unknown and the estimator has no ``pretext_params``.
    """
    params = estimator.get_params()
    own = {name: value for name, value in settings.items() if name in params}
    others = {name: value for name, value in settings.items() if name not in params}
    if others and "pretext_params" not in params:
        raise ValueError(
            f"{next(iter(others))!r} is no parameter of {type(estimator).__name__}, which has "
            f"{', '.join(estimator.get_params(deep=False))}."
        )
    if others:
        before = own.get("pretext_params", params["pretext_params"])
        own["pretext_params"] = {**(before or {}), **others}
    before = params.get("pretext")
    if own.get("pretext") == "joint" and before in ("pars", "mae") and "pretext_params" not in own:
        own["pretext_params"] = {"task_params": {before: params["pretext_params"] or {}}}
    return clone(estimator).set_params(**own)
