"""Names of classes, kept with windows in the way of braindecode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from braindecode.datasets import EEGWindowsDataset

__all__ = ["name_classes"]


def name_classes(
    windows: EEGWindowsDataset, classes: Sequence[str] | Mapping[str, int]
) -> EEGWindowsDataset:
    """Keep the names of targets with windows.

    The names are written where braindecode's windowers write them: as the entry ``mapping`` of the
    last record in ``window_kwargs``. The estimators read them from there into ``class_names_``.

    Parameters
    ----------
    windows : EEGWindowsDataset
        Windows of a recording; changed in place.
    classes : sequence of str | mapping of str to int
        Names of the targets 0, 1, ..., or the target of each name. Without any, nothing is written.

    Returns
    -------
    EEGWindowsDataset
        The windows.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.class_names import name_classes
    >>> from braindecode_pars.recordings.cutting import fixed_windows
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 7500)), info, verbose="error")
    >>> windows = name_classes(fixed_windows(raw, target=1), ("rest", "task"))
    >>> windows.window_kwargs
    [('name_classes', {'mapping': {'rest': 0, 'task': 1}})]
    """
    mapping = (
        dict(classes)
        if isinstance(classes, Mapping)
        else {name: target for target, name in enumerate(classes)}
    )
    if mapping:
        earlier = getattr(windows, "window_kwargs", None) or []
        windows.window_kwargs = [*earlier, ("name_classes", dict(mapping=mapping))]
    return windows
