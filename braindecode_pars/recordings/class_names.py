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
    >>> from braindecode_pars import PARSClassifier, datasets
    >>> from braindecode_pars.recordings.class_names import name_classes
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> for recording in windows.datasets:
    ...     _ = name_classes(recording, ("wake", "light 1", "light 2", "deep", "REM"))
    >>> clf = PARSClassifier(pretrain_epochs=1, finetune_epochs=1, verbose=0).fit(windows)
    >>> clf.class_names_[0]
    'wake'
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
