"""Recentring by subject in fine-tuning and in predictions, and the subject of every window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from braindecode.augmentation import AugmentedDataLoader
from torch import Tensor, nn
from torch.utils.data import Sampler, default_collate

from braindecode_pars.estimators.windows_estimator import batches, positions_for
from braindecode_pars.models import PARSNet
from braindecode_pars.windows.examples import Examples
from braindecode_pars.windows.table import Windows

#: Number of windows of a subject in a training batch.
_PER_BATCH = 8

#: Largest number of windows of a validation batch, which has windows of one subject.
_VALIDATION_BATCH = 64


class WithSubjects(Examples):
    """Examples as ``({"x": window, "subjects": number}, label)``."""

    def __init__(self, windows: Windows):
        super().__init__(windows)
        self.subjects = subjects_to_recentre(windows)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.__getitems__([i])[0]

    def __getitems__(self, positions: Sequence[int]) -> list[tuple[dict[str, Any], Any]]:
        examples = zip(positions, super().__getitems__(positions), strict=True)
        return [({"x": x, "subjects": self.subjects[i]}, y) for i, (x, y) in examples]


class SubjectLoader(AugmentedDataLoader):
    """Batches of :class:`WithSubjects`; transforms change the windows and keep the subjects.

    A training batch, which is shuffled, has windows of a few subjects, eight of each. A validation
    batch has up to 64 windows of one subject.
    """

    collate_fn: Callable[[list], Any]

    def __init__(
        self, dataset: WithSubjects, batch_size: int, shuffle: bool = False, **arguments: Any
    ):
        sizes = (
            (_PER_BATCH, max(1, batch_size // _PER_BATCH)) if shuffle else (_VALIDATION_BATCH, 1)
        )
        batches = SubjectBatches(dataset.subjects, *sizes, shuffle=shuffle)
        super().__init__(dataset, batch_sampler=batches, **arguments)
        augmented = self.collate_fn

        def collate(batch: list) -> tuple[dict[str, Tensor], Tensor]:
            x, y = augmented([(inputs["x"], label) for inputs, label in batch])
            subjects = default_collate([inputs["subjects"] for inputs, _ in batch])
            return {"x": x, "subjects": subjects}, y

        self.collate_fn = collate


class SubjectBatches(Sampler[list[int]]):
    """Batches of several windows of each of a few subjects.

    The windows of a subject are divided into groups of ``n_windows``, in random order; the last
    group is filled up with windows of the same subject. A batch has ``n_groups`` groups.

    Parameters
    ----------
    subjects : ndarray of int, shape (n_windows,)
        Subject of each window.
    n_windows, n_groups : int
        Windows in a group, and groups in a batch.
    shuffle : bool
        Whether windows and groups are drawn at random in every epoch. Otherwise every window occurs
        once, and the groups of a subject have nearly equal sizes and are each spread over all its
        windows: windows in a row often have one label, which their mean would remove.
    """

    def __init__(self, subjects: np.ndarray, n_windows: int, n_groups: int, *, shuffle: bool):
        self.members = [np.flatnonzero(subjects == s) for s in np.unique(subjects)]
        self.n_windows = n_windows
        self.n_groups = n_groups
        self.shuffle = shuffle

    def __len__(self) -> int:
        n_groups = sum(-(-len(windows) // self.n_windows) for windows in self.members)
        return -(-n_groups // self.n_groups)

    def __iter__(self) -> Iterator[list[int]]:
        groups = [group for windows in self.members for group in self._groups(windows)]
        order = torch.randperm(len(groups)).tolist() if self.shuffle else range(len(groups))
        for i in range(0, len(groups), self.n_groups):
            yield [window for j in order[i : i + self.n_groups] for window in groups[j]]

    def _groups(self, windows: np.ndarray) -> list[list[int]]:
        n_groups = -(-len(windows) // self.n_windows)
        if not self.shuffle:
            return [windows[i::n_groups].tolist() for i in range(n_groups)]
        drawn = windows[torch.randperm(len(windows)).numpy()]
        # The first windows once more, in groups as large as the others.
        return np.resize(drawn, (n_groups, self.n_windows)).tolist()


def recentres(module: nn.Module) -> bool:
    """Whether a network subtracts the mean of each subject."""
    return getattr(module, "recenter", None) is not None


def subjects_to_recentre(windows: Windows) -> np.ndarray:
    """Return the number of each window's subject, all of whose windows must be there."""
    remedy = "fit with recenter=None, in the command fit --set recenter=null"
    return subject_numbers(windows, MIN_WINDOWS, "recenter='subject'", remedy)


def recentred_logits(module: PARSNet, windows: Windows) -> Tensor:
    """Return the logits of windows, with the means over all windows of each subject.

    Parameters
    ----------
    module : PARSNet
        Model with ``recenter="subject"``, in evaluation mode.
    windows : Windows
        Windows of one montage, with all windows of each subject.

    Returns
    -------
    Tensor, shape (n_windows, n_outputs)
        Logits, on the CPU.

    Raises
    ------
    ValueError
        When the subject of a window is unknown, or a subject has too few windows.
    """
    device = module.final_layer.weight.device
    subjects = torch.from_numpy(subjects_to_recentre(windows))
    encoded = [
        module.encode_channels(batch, **positions_for(module, windows.chs_info, batch.shape[1]))
        for batch in batches(windows, module.encoder.patch_size, device)
    ]
    tokens = torch.cat([channels.tokens for channels in encoded])
    amplitudes = [channels.amplitudes for channels in encoded]
    channels = encoded[0]._replace(tokens=tokens, amplitudes=torch.cat(amplitudes))
    channels = channels.recentred(subjects.to(device))
    # The spatial filters need several times the memory of the tokens.
    return torch.cat([module.pool_channels(batch).cpu() for batch in channels.split(64)])


#: Smallest number of windows of a subject by default. The mean of n windows adds 1/n of the
#: variance within a subject to each feature.
MIN_WINDOWS = 10


def subject_numbers(
    windows: Windows, min_windows: int, owner: str, remedy: str = "lower min_windows"
) -> np.ndarray:
    """Return the number of each window's subject, counted from 0.

    Parameters
    ----------
    windows : Windows
        All windows of each subject.
    min_windows : int
        Smallest number of windows of a subject.
    owner : str
        Name of the class or parameter that needs the subjects, for the error message.
    remedy : str
        What else to do when a subject has too few windows, for the error message.

    Returns
    -------
    ndarray of int, shape (n_windows,)
        Windows with the same number are of one subject.

    Raises
    ------
    ValueError
        When there are no windows, the subject of a window is unknown, or a subject has fewer
        windows than ``min_windows``.
    """
    windows.check_not_empty()
    if windows.groups is None:
        n_unknown = int((~windows.known).sum())
        raise ValueError(
            f"{owner} needs the subject of every window, but that of {n_unknown} of "
            f"{len(windows)} is unknown; pass the X of as_sklearn, or groups=."
        )
    numbers, names = pd.factorize(windows.groups)
    counts = np.bincount(numbers)
    if counts.min() < min_windows:
        few = int((counts < min_windows).argmax())
        raise ValueError(
            f"Subject {names[few]} has {counts[few]} windows; {owner} needs at least {min_windows} "
            f"of each subject, for a mean of its own. Pass all of them together, or {remedy}."
        )
    return numbers


def subtract_means(features: np.ndarray, subjects: np.ndarray) -> np.ndarray:
    """Return features minus the mean of each subject.

    Parameters
    ----------
    features : ndarray, shape (n_windows, n_features)
        Features.
    subjects : ndarray of int, shape (n_windows,)
        Subject of each window, counted from 0.

    Returns
    -------
    ndarray, shape (n_windows, n_features)
        A copy, in a floating-point type.
    """
    centred = features.astype(np.result_type(features, np.float32))
    for subject in range(subjects.max() + 1):
        mine = subjects == subject
        centred[mine] -= centred[mine].mean(axis=0, dtype=float)
    return centred
