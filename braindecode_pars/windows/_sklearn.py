"""A windows dataset as the X, y and groups of scikit-learn."""

from __future__ import annotations

import numpy as np
from skorch.helper import SliceDataset
from torch.utils.data import Dataset

from braindecode_pars.windows._labels import labels_of
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["as_sklearn"]


def as_sklearn(windows_ds: Dataset) -> tuple[SliceDataset, np.ndarray, np.ndarray]:
    """Return a braindecode windows dataset as the ``X, y, groups`` of scikit-learn.

    Parameters
    ----------
    windows_ds : BaseConcatDataset | EEGWindowsDataset | WindowsDataset | torch Subset of these
        Windows with targets in their metadata and ``subject`` in their description.

    Returns
    -------
    X : skorch.helper.SliceDataset, shape (n_windows,)
        View of the windows; no signal is read yet. Indexing it with an array gives a smaller view.
        The view keeps the sampling rate, channel names and subjects of its recordings.
    y : ndarray, shape (n_windows,)
        Targets.
    groups : ndarray, shape (n_windows,)
        Subjects.

    Raises
    ------
    TypeError
        When ``windows_ds`` contains continuous recordings, or is not a dataset.
    ValueError
        When targets are missing, when the subject of any window is missing, or when sampling
        rates differ.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> X, y, groups = as_sklearn(windows)
    >>> X.shape, y.shape, sorted(set(groups.tolist()))
    ((24,), (24,), [1, 2])
    """
    windows = as_window_set(windows_ds)
    y = labels_of(windows)
    if windows.groups is None:
        n_known = int(windows.known.sum())
        found = "The descriptions of the recordings"
        if n_known:
            found = f"{n_known} windows have a subject, but the recordings of another "
            found += f"{len(windows) - n_known}"
        raise ValueError(
            f"{found} have no entry 'subject', which is needed to hold out subjects; add it with "
            "windows_ds.set_description({'subject': [...]})."
        )
    return SliceDataset(windows_ds), y, windows.groups
