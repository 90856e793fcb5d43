"""Encoders that several folds share: each is pretrained once, on no test subject of these folds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from tqdm.auto import tqdm

from braindecode_pars.evaluation.folds._corpus import Corpus
from braindecode_pars.evaluation.folds._curves import curves_frame, history_of
from braindecode_pars.evaluation.folds._digest import digest, digest_array
from braindecode_pars.evaluation.folds._fingerprint import describe_corpus, describe_estimator
from braindecode_pars.evaluation.folds._fold_store import FoldStore
from braindecode_pars.evaluation.folds._running import Fold
from braindecode_pars.evaluation.folds._seed import with_seed
from braindecode_pars.storage._checked_json import read_checked, write_checked

__all__ = ["SharedEncoder", "pretrains", "share_encoders", "with_pretraining"]

#: Seed of the pretraining. The seeds of the folds only draw training subjects and fine-tune.
SEED = 0


class SharedEncoder(NamedTuple):
    """A pretrained encoder.

    Attributes
    ----------
    encoder : path | fitted estimator
        Value of the parameter ``encoder`` of the estimators that use it.
    history : list of dict | None
        Losses by epoch.
    """

    encoder: Any
    history: list[dict[str, Any]] | None


def pretrains(estimator: BaseEstimator) -> bool:
    """Whether a fit of this estimator pretrains a new encoder that another fit could use."""
    params = estimator.get_params(deep=False)
    is_new = params.get("encoder", "") is None and params.get("pretext") is not None
    return is_new and params["pretrain_epochs"] != 0 and hasattr(estimator, "pretrained")


def share_encoders(
    folds: Sequence[Fold],
    corpus: Corpus,
    *,
    out: str | Path | None = None,
    verbose: int = 1,
) -> tuple[list[Fold], list[SharedEncoder | None]]:
    """Pretrain one encoder for each method and set of test subjects, and give it to its folds.

    An encoder is pretrained on the windows ``pretrain`` of all its folds.

    Parameters
    ----------
    folds : sequence of Fold
        Folds of one dataset.
    corpus : Corpus
        Windows of the dataset.
    out : path | None
        Folder for the results. Encoders are saved in ``out/encoders`` and are not pretrained again.
    verbose : int
        Verbosity; 1 shows a progress bar.

    Returns
    -------
    folds : list of Fold
        Folds whose estimators have the encoder. A fold that does not pretrain is as before.
    encoders : list of SharedEncoder | None
        Encoder of each fold.

    Raises
    ------
    ValueError
        When folds have no window to pretrain on, or the folder contains results of other data or
        settings.
    """
    groups: dict[tuple, list[int]] = {}
    for i, fold in enumerate(folds):
        if pretrains(fold.estimator):
            groups.setdefault(_key(fold), []).append(i)
    windows = {key: _windows([folds[i] for i in members]) for key, members in groups.items()}
    folders: dict[tuple, Path] = {}
    if groups and out is not None:
        # The folder is checked, and becomes an evaluation, before hours of pretraining.
        described = describe_corpus(corpus)
        datasets = {corpus.name: described}
        store = FoldStore.open(
            out, {"protocol": folds[0].protocol, "datasets": datasets, "methods": {}}
        )
        for key, members in groups.items():
            folders[key] = _folder(store, folds[members[0]], windows[key], described)
        _check_methods(store, folds, folders)
    shared: list[Fold] = list(folds)
    encoders: list[SharedEncoder | None] = [None] * len(folds)
    for key in tqdm(groups, "pretraining", unit=" encoders", disable=not verbose):
        members = groups[key]
        encoder = _encoder(folds[members[0]], corpus, windows[key], folders.get(key))
        for i in members:
            estimator = clone(folds[i].estimator).set_params(encoder=encoder.encoder)
            shared[i], encoders[i] = replace(folds[i], estimator=estimator), encoder
    return shared, encoders


def _key(fold: Fold) -> tuple:
    """Return what the folds with one encoder have in common."""
    return fold.method, tuple(fold.test_subjects)


def _windows(folds: Sequence[Fold]) -> np.ndarray:
    """Return the windows that an encoder of these folds is pretrained on."""
    windows = np.unique(np.concatenate([fold.pretrain for fold in folds]))
    if not len(windows):
        raise ValueError(
            "There is no window to pretrain on: all training subjects are of split 'test'. Change "
            "'split' in the descriptions of the recordings, or use other training subjects."
        )
    return windows


def _folder(
    store: FoldStore, fold: Fold, windows: np.ndarray, described: Mapping[str, Any]
) -> Path:
    """Return the folder of the encoder of a fold; its name has a digest of its origin."""
    estimator = with_seed(clone(fold.estimator), SEED)
    content = digest(described, describe_estimator(estimator), digest_array(windows))
    readable = re.sub(r"[^\w.+=-]+", "-", fold.method)[:80]
    return store.folder / "encoders" / f"{readable}_{content}"


def _check_methods(store: FoldStore, folds: Sequence[Fold], folders: Mapping[tuple, Path]) -> None:
    """Check that the finished folds are of the same settings, before anything is pretrained."""
    before, methods = store.finished_methods(), {}
    for fold in folds:
        if fold.method in methods or fold.method not in before:
            continue
        settings = describe_estimator(fold.estimator)
        if (key := _key(fold)) in folders:
            # The weights are known only after the pretraining, the name of the folder already now.
            # Last, so that the message begins with the settings that another encoder comes from.
            del settings["encoder"]
            encoder = before[fold.method].get("encoder")
            known = encoder if isinstance(encoder, Mapping) else {}
            settings["encoder"] = {**known, "folder": folders[key].name}
        methods[fold.method] = settings
    store.check_methods(methods)


def _encoder(fold: Fold, corpus: Corpus, windows: np.ndarray, folder: Path | None) -> SharedEncoder:
    """Return the saved encoder of a fold, or pretrain it."""
    estimator = with_seed(clone(fold.estimator), SEED)
    if folder is None:
        fitted = _pretrain(estimator, corpus, windows)
        return SharedEncoder(fitted, history_of(fitted))
    history = folder.with_name(f"{folder.name}.json")  # written last
    if not history.exists():
        fitted = _pretrain(estimator, corpus, windows)
        folder.parent.mkdir(exist_ok=True)
        fitted.save(folder)
        write_checked(history, {"history": history_of(fitted)})
    return SharedEncoder(str(folder), read_checked(history)["history"])


def _pretrain(estimator: BaseEstimator, corpus: Corpus, windows: np.ndarray) -> Any:
    return estimator.pretrained(corpus.X[windows])  # which has the subjects


def with_pretraining(
    curves: pd.DataFrame, folds: Sequence[Fold], encoders: Sequence[SharedEncoder | None]
) -> pd.DataFrame:
    """Return the losses of the folds after those of the pretraining that they share."""
    shared = [{"history": None if encoder is None else encoder.history} for encoder in encoders]
    before = curves_frame(folds, shared)
    return pd.concat([before, curves], ignore_index=True) if len(before) else curves
