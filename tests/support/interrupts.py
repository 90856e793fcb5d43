"""Ctrl-C during training, and forked processes that are killed."""

from __future__ import annotations

import threading

from skorch.callbacks import Callback

from braindecode_pars._common.training import ProgressBar


def draw_with_an_own_lock() -> None:
    """Give progress bars of this forked process a lock of their own.

    tqdm's lock is shared with forked processes: killed while it draws a bar, a child would keep it
    for ever, and this process would wait for it. The lock is replaced in the class that draws,
    since the first class that drew has made one, which its parents do not share.
    """
    ProgressBar.set_lock(threading.RLock())


class InterruptAt(Callback):
    """Raise KeyboardInterrupt at the start of an epoch."""

    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch_begin(self, net, **kwargs):
        if len(net.history) == self.epoch:
            raise KeyboardInterrupt
