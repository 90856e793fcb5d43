"""Short windows of the simulated sleep, for tests in which any signals will do."""

from __future__ import annotations

from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

__all__ = ["first_samples"]


def first_samples(
    nights: BaseConcatDataset, n_times: int, rows: slice = slice(None)
) -> BaseConcatDataset:
    """Return the first samples of some windows of each recording, with their stages."""
    parts = []
    for night in nights.datasets:
        table = night.metadata[rows]
        table = table.assign(i_stop_in_trial=table["i_start_in_trial"] + n_times)
        part = EEGWindowsDataset(night.raw, table, dict(night.description))
        part.window_kwargs = night.window_kwargs  # with the names of the classes
        parts.append(part)
    return BaseConcatDataset(parts)
