"""The comparison of the paper's table 1 on the windows at hand, as far as they go.

Frozen encoders of four tasks, pretrained in equal steps, against an untrained one and scratch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch.utils.data import Dataset

from braindecode_pars._common.checks import checked, integer, quiet
from braindecode_pars._common.files import check_may_write, replace_file
from braindecode_pars._common.progress import ProgressBar
from braindecode_pars.estimators import PARSClassifier
from braindecode_pars.evaluation.cache import describe_corpus, digest
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.evaluation.protocols import label_efficiency
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.pretrained import load_encoder

log = logging.getLogger(__name__)

#: Pretext tasks of table 1, in its order.
TASKS = ("mae", "mp3", "droppos", "pars")


@checked(epochs=integer(1), n_train_subjects=integer(1))
def reproduce(
    windows_ds: Dataset,
    out: str | Path,
    *,
    epochs: int = 50,
    n_train_subjects: int = 4,
    seeds: Sequence[int] = range(3),
    metrics: Sequence[str] = ("kappa", "balanced_accuracy"),
    dataset: str = "",
    verbose: int = 1,
    **settings: Any,
) -> pd.DataFrame:
    """Compare scratch, MAE, MP3, DropPos and PARS on people whom no pretraining has seen.

    Every other subject, in the order of the names, is in one half. An encoder of each task is
    pretrained on one half without labels, with the same sizes and numbers of steps, and frozen. The
    other half is tested, in two parts; the labelled subjects are drawn from all who are not tested,
    and are the same for all methods. Then the halves change places, so that every subject is tested
    once. A seed is a whole repetition, of the pretraining, the draw and the fine-tuning.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    out : path
        Folder for ``scores.csv``, and for encoders and finished fits: the same call resumes.
    epochs : int
        Number of epochs of each pretraining.
    n_train_subjects : int
        Number of labelled subjects.
    seeds : sequence of int
        Seeds of all random draws.
    metrics : sequence of str
        Names of metrics.
    dataset : str
        Value of the column ``dataset``.
    verbose : int
        Verbosity; 1 shows progress bars.
    **settings
        Arguments of :class:`~braindecode_pars.PARSClassifier` for all methods.

    Returns
    -------
    pandas.DataFrame
        Table as from :func:`~braindecode_pars.evaluation.label_efficiency`, with a further column
        ``pretraining_loss``: the last loss of the encoder's pretraining relative to chance.

    Raises
    ------
    ValueError
        When there are too few subjects, or ``out`` contains other files.
    FoldError
        When a fit fails.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import reproduce
    >>> scores = reproduce(datasets.sleep(), "table-1")  # doctest: +SKIP
    """
    corpus = Corpus.of(windows_ds, dataset, "auto")
    people, out = sorted(corpus.subjects, key=str), Path(out).expanduser()
    if len(people) < 4 or len(people) - -(-len(people) // 4) < n_train_subjects:
        raise ValueError(
            f"{len(people)} subjects are too few for {n_train_subjects} labelled ones and two "
            "halves, of which one part is tested at a time; use more subjects or fewer labels."
        )
    cache = out / "reproduction"
    check_may_write(out, "a reproduction", is_ours=cache.is_dir())
    settings = {"verbose": 0, **settings}
    cache /= digest(describe_corpus(corpus), epochs, sorted(settings.items()))
    runs = list(product(map(int, seeds), (0, 1)))
    if verbose:
        half, few = (corpus.windows_of(p) for p in (people[::2], people[:n_train_subjects]))
        minutes = len(runs) * _minutes(corpus, half, few, epochs, settings)
        log.info("About %.0f min here, from the beginning.", max(minutes, 1))
    tables = []
    for seed, half in runs:
        run = f"half{half}-seed{seed}"
        seen, unseen = people[half::2], people[1 - half :: 2]
        losses, frozen = {}, dict(freeze_encoder=True, **settings)
        methods = {
            "scratch": PARSClassifier(None, **settings),
            "untrained, frozen": PARSClassifier(None, **frozen),
        }
        for task in ProgressBar(TASKS, f"pretraining {run}", disable=not verbose):
            name, folder = f"{PRETEXT_TASKS[task].__name__}, frozen", cache / f"{task}-{run}"
            if not (folder / "encoder.json").exists():
                own = dict(pretrain_epochs=epochs, random_state=seed, **settings)
                with quiet():  # of losses, which are in the table
                    X = corpus.X[corpus.windows_of(seen)]
                    PARSClassifier(task, **own).pretrained(X).save(folder)
            losses[name] = load_encoder(folder).card.loss_relative
            methods[name] = PARSClassifier(encoder=str(folder), **frozen)
        tests = [corpus.windows_of(part) for part in (unseen[::2], unseen[1::2])]
        scores = label_efficiency(
            methods,
            windows_ds,
            n_train_subjects=[n_train_subjects],
            cv=[(np.setdiff1d(np.arange(len(corpus.y)), test), test) for test in tests],
            seeds=[seed],
            metrics=metrics,
            dataset=dataset,
            out=cache / run,
            verbose=verbose,
        )
        tables.append(scores.assign(pretraining_loss=scores["method"].map(losses)))
    found = pd.concat(tables, ignore_index=True)
    replace_file(out / "scores.csv", found.to_csv(index=False))
    return found


def _minutes(
    corpus: Corpus, half: np.ndarray, few: np.ndarray, epochs: int, settings: Mapping[str, Any]
) -> float:
    """Return the minutes of one half of one seed, from the operations and an epoch of PARS here."""
    X, y = corpus.X, corpus.y

    def flops(task: str | None, rows: np.ndarray, **own: Any) -> float:
        return PARSClassifier(task, **own, **settings).training_cost(X[rows], y[rows]).flops

    with quiet():  # of two epochs that are thrown away
        trial = PARSClassifier("pars", pretrain_epochs=2, **settings).pretrained(X[half])
        per_second = trial.training_cost(X[half]).flops / 2 / trial.pretraining_history_[-1]["dur"]
        frozen = dict(freeze_encoder=True)
        total = sum(flops(task, half, pretrain_epochs=epochs, **frozen) for task in TASKS)
        # Two parts of a half are tested; one fit of each task is in the sum.
        total += 2 * flops(None, few) + 6 * flops(None, few, **frozen)
    return total / per_second / 60
