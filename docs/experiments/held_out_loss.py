"""Compute the loss of a finished pretraining run on held-out subjects, for encoder cards."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from braindecode_pars._common.checks import (
    check_parameters,
    check_same_rate,
    choice,
    format_list,
    integer,
)
from braindecode_pars._common.computing import find_device, seeded
from braindecode_pars._common.files import read_json
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.pretext.base import PretextTask
from braindecode_pars.pretrained.cards import EncoderCard, unique_subjects
from braindecode_pars.pretrained.saved import load_encoder
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.runs.config import RunConfig
from braindecode_pars.runs.run import build_task
from braindecode_pars.runs.run_folder import RunFolder
from braindecode_pars.signal_store import SignalStore

_RULES = dict(
    crops_per_recording=integer(1), seed=integer(0), device=choice("auto", "cpu", "cuda", "mps")
)


class HeldOutLoss(NamedTuple):
    """Loss of a pretraining run on held-out subjects, as returned by :func:`held_out_loss`.

    Attributes
    ----------
    loss_relative : float
        Relative loss; 1 is the chance level.
    parts : dict of str to float
        Relative loss of each part of the pretext task, such as a frequency band. Empty if the task
        has no parts.
    subjects : list
        Held-out subjects with recordings that are long enough for a crop.
    n_crops : int
        Number of random crops.

    Examples
    --------
    >>> from held_out_loss import HeldOutLoss
    >>> HeldOutLoss(0.8, {}, subjects=[51, 52], n_crops=64).loss_relative
    0.8
    """

    loss_relative: float
    parts: dict[str, float]
    subjects: list
    n_crops: int


def held_out_loss(
    run: str | Path,
    store: SignalStore | str | Path,
    *,
    crops_per_recording: int = 32,
    seed: int = 0,
    device: str = "auto",
) -> HeldOutLoss:
    """Return the loss of a finished run on held-out subjects.

    The loss includes the decoder, which is loaded from the last checkpoint of the run, because
    ``encoder.safetensors`` does not contain it. The task is in evaluation mode.

    Parameters
    ----------
    run : path
        Folder of a finished run of :func:`pretrain`.
    store : SignalStore | path
        Recordings of held-out subjects, with the same preprocessing as for the run.
    crops_per_recording : int
        Number of random crops of random channels per recording.
    seed : int
        Seed of the crops and of the draws of the task.
    device : "auto" | "cpu" | "cuda" | "mps"
        Device to compute on.

    Returns
    -------
    HeldOutLoss
        Relative loss, in total and of each part of the task, the subjects and the number of crops.

    Raises
    ------
    ValueError
        If the run is not finished, or its last checkpoint is missing or damaged. If a subject of
        the store was used in the run, or subjects are unknown. If sampling rates differ, or all
        recordings are shorter than a crop.
    TypeError
        If an argument has the wrong type.

    Notes
    -----
    Crops have the length of the longest crops of the run, in random order and in batches of the
    size of its micro-batches, because some tasks standardize their targets over a batch. The loss
    is the mean over crops.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.runs import RunConfig, pretrain
    >>> from held_out_loss import held_out_loss
    >>> from braindecode_pars.signal_store import SignalStore
    >>> nights = datasets.simulated.sleep(n_subjects=3, hours=0.1, n_chans=2)
    >>> sizes = dict(embed_dim=16, num_layers=1, mlp_dim=16)
    >>> small = RunConfig(**sizes, epochs=1, steps_per_epoch=1, batch_size=8, device="cpu")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SignalStore.create(Path(folder, "store"), nights, verbose=0)
    ...     run = pretrain(store.select(exclude=[3]), Path(folder, "run"), small, verbose=0)
    ...     loss = held_out_loss(run, store.select(exclude=[1, 2]), device="cpu")
    >>> loss.subjects, loss.n_crops, 0 < loss.loss_relative < 2
    ([3], 32, True)
    """
    check_parameters(locals(), _RULES, "held_out_loss")
    folder = RunFolder(Path(run).expanduser())
    if not folder.is_finished:
        raise ValueError(f"The run in {folder.path} is not finished. Resume it first.")
    config = RunConfig(**read_json(folder.description)["configuration"])
    store = store if isinstance(store, SignalStore) else SignalStore.open(store)
    _check_held_out(store, load_encoder(folder.path).card, folder.path)

    task = _trained_task(folder, config, store.sfreq)
    recordings = store.recordings
    table = recordings[recordings["n_times"] >= task.n_times]
    if table.empty:
        raise ValueError(
            f"A crop of the run has {task.n_times} samples, the longest recording only "
            f"{recordings['n_times'].max()}."
        )
    crops = _crops(store, table, task.n_times, crops_per_recording, seed)
    batch_size = config.micro_batch_size or config.batch_size
    net = PretrainingNet(task, precision=config.precision, device=find_device(device), verbose=0)
    net.initialize()
    # Batches have nearly equal sizes, so that the last batch is not much smaller.
    batches = np.array_split(crops, -(-len(crops) // batch_size))
    with seeded(seed, net.compute_device):
        rows = pd.DataFrame([_losses(net, torch.from_numpy(batch)) for batch in batches])
    sizes = rows.pop("n")
    means: dict[str, Any] = {
        str(name): float(np.average(column, weights=sizes)) for name, column in rows.items()
    }
    subjects = unique_subjects(table["subject"]) or []
    return HeldOutLoss(means.pop("loss_relative"), means, subjects, len(crops))


def _check_held_out(store: SignalStore, card: EncoderCard, run: Path) -> None:
    remedy = "make the store with sfreq={expected:g}"
    check_same_rate(
        store.sfreq, card.sfreq, "The store is", f"the run in {run} was trained", remedy
    )
    if card.subjects is None or store.recordings["subject"].isna().any():
        raise ValueError(
            f"Subjects of {run if card.subjects is None else store.path} are unknown, so the store "
            "may contain subjects of the run. Set the subject of every recording."
        )
    seen = SubjectKeys(card.seen_subjects)
    both = [str(subject) for subject in store.subjects if subject in seen]
    if both:
        raise ValueError(
            f"{run} was trained on {format_list(both)} of this store. Exclude these subjects with "
            "store.select(exclude=...)."
        )


def _trained_task(folder: RunFolder, config: RunConfig, sfreq: float) -> PretextTask:
    """Return the pretext task of a finished run with the weights of its last checkpoint."""
    task = build_task(config, sfreq)
    checkpoint = folder.newest()
    last_step = config.epochs * (config.steps_per_epoch or 0)
    if checkpoint is None or checkpoint.step != last_step:
        raise ValueError(f"{folder.path} lacks the checkpoint of its last step, {last_step}.")
    checkpoint.restore_weights(task)
    return task


def _crops(
    store: SignalStore, table: pd.DataFrame, n_times: int, per_recording: int, seed: int
) -> np.ndarray:
    """Return random crops of random channels, in random order: float32 (n_crops, n_times)."""
    rng = np.random.default_rng(seed)
    drawn = table.iloc[rng.permutation(np.repeat(np.arange(len(table)), per_recording))]
    channels = rng.integers(drawn["ch_names"].map(len).to_numpy())
    starts = rng.integers(drawn["n_times"].to_numpy() - n_times + 1)
    return store.crops(drawn["first_signal"].to_numpy() + channels, starts, n_times)


def _losses(net: PretrainingNet, batch: Tensor) -> dict[str, float]:
    """Return the size of a batch, and its relative losses."""
    step = net.validation_step((batch, None))
    parts = net.task_.part_losses(*step["y_pred"])
    loss = float(step["loss"]) / net.task_.chance_loss()
    return {"n": len(batch), "loss_relative": loss, **{name: float(p) for name, p in parts.items()}}
