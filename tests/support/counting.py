"""A dataset that counts what is read of it."""

from __future__ import annotations

from torch.utils.data import Dataset


class Counting(Dataset):
    """Remembers which windows were read."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.read = []

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, i):
        self.read.append(i)
        return self.dataset[i]
