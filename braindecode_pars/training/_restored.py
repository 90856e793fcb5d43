"""The epoch whose state a training has restored at its end."""

from __future__ import annotations

from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping

__all__ = ["RESTORED", "RestoredEpoch", "restored_by_callbacks"]

#: Entry in the rows of a history: whether the state of this epoch was restored.
RESTORED = "restored"


class RestoredEpoch(Callback):
    """Mark the epoch that an ``EarlyStopping(load_best=True)`` before this callback restores."""

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        epoch = restored_by_callbacks(net)
        for row in net.history if epoch is not None else ():
            row[RESTORED] = row["epoch"] == epoch


def restored_by_callbacks(net: NeuralNet) -> int | None:
    """Return the epoch that the callbacks of a net restore at the end; None if they do not.

    The last callback decides. skorch's does nothing if its best epoch is the last one.
    """
    loading = [cb for _, cb in net.callbacks_ if isinstance(cb, EarlyStopping) and cb.load_best]
    epochs = [cb.best_epoch_ for cb in loading if cb.best_epoch_]
    restored = [epoch for epoch in epochs if epoch != net.history[-1, "epoch"]]
    return (restored or epochs or [None])[-1]
