"""Ctrl-C during training."""

from __future__ import annotations

from skorch.callbacks import Callback


class InterruptAt(Callback):
    """Raise KeyboardInterrupt at the start of an epoch."""

    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch_begin(self, net, **kwargs):
        if len(net.history) == self.epoch:
            raise KeyboardInterrupt
