"""A dataset that records which windows are read."""

from __future__ import annotations

from torch.utils.data import Dataset


class Counting(Dataset):
    """Dataset that appends the index of each window that is read to the attribute ``read``."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.read = []

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, i):
        self.read.append(i)
        return self.dataset[i]
