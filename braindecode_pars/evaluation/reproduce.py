"""The comparison of the paper's table 1 on the windows at hand, as far as they go.

Frozen encoders of four tasks, pretrained in equal steps, against an untrained one and scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch.utils.data import Dataset

from braindecode_pars._common.checks import quiet
from braindecode_pars._common.files import check_may_write, replace_file
from braindecode_pars._common.training import ProgressBar
from braindecode_pars.estimators import PARSClassifier
from braindecode_pars.evaluation.cache import describe_corpus, digest
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.evaluation.protocols import label_efficiency
from braindecode_pars.pretrained import load_encoder

#: Pretext tasks of table 1, in its order.
TASKS = {"MAE": "mae", "MP3": "mp3", "DropPos": "droppos", "PARS": "pars"}


def reproduce(
    windows_ds: Dataset,
    out: str | Path,
    *,
    epochs: int = 50,
    n_train_subjects: int = 4,
    seeds: Sequence[int] = range(3),
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
    corpus = Corpus.of(windows_ds, "", "auto")
    people, place = sorted(corpus.subjects, key=str), Path(out).expanduser()
    if len(people) < 4 or 3 * len(people) // 4 < n_train_subjects:
        raise ValueError(
            f"{len(people)} subjects are too few: a quarter is tested at a time, and "
            f"{n_train_subjects} of the others have labels."
        )
    check_may_write(place, "a reproduction", is_ours=(place / "reproduction").is_dir())
    settings = {"verbose": 0, **settings}
    content = describe_corpus(corpus), epochs, sorted(settings.items())
    cache = place / "reproduction" / digest(*content)

    tables = []
    for seed, half in product(map(int, seeds), (0, 1)):
        run = f"half{half}-seed{seed}"
        seen, unseen = people[half::2], people[1 - half :: 2]
        losses: dict[str, float | None] = {}
        frozen: dict[str, Any] = dict(freeze_encoder=True, **settings)
        methods = {"scratch": PARSClassifier(None, **settings)}
        methods["untrained, frozen"] = PARSClassifier(None, **frozen)
        for name, task in ProgressBar(TASKS.items(), f"pretraining {run}", disable=not verbose):
            folder = cache / f"{task}-{run}"
            if not (folder / "encoder.json").exists():
                given = dict(pretrain_epochs=epochs, random_state=seed, **settings)
                with quiet():  # of losses, which are in the table
                    windows = corpus.X[corpus.windows_of(seen)]
                    PARSClassifier(task, **given).pretrained(windows).save(folder)
            losses[f"{name}, frozen"] = load_encoder(folder).card.loss_relative
            methods[f"{name}, frozen"] = PARSClassifier(encoder=str(folder), **frozen)
        tests = [corpus.windows_of(part) for part in (unseen[::2], unseen[1::2])]
        cv = [(np.setdiff1d(np.arange(len(corpus.y)), test), test) for test in tests]
        design: dict[str, Any] = dict(n_train_subjects=[n_train_subjects], cv=cv, seeds=[seed])
        design |= dict(metrics=["kappa", "balanced_accuracy"], out=cache / run, verbose=verbose)
        scores = label_efficiency(methods, windows_ds, **design)
        tables.append(scores.assign(pretraining_loss=scores["method"].map(losses)))
    found = pd.concat(tables, ignore_index=True)
    replace_file(place / "scores.csv", found.to_csv(index=False))
    return found
