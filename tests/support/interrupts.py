"""Simulate Ctrl-C during training, and prepare forked processes that will be killed."""

from __future__ import annotations

import threading

from skorch.callbacks import Callback

from braindecode_pars._common.training import ProgressBar


def create_progress_bar_lock() -> None:
    """Create a new lock for the progress bars of this forked process.

    Forked processes share the lock of tqdm with the parent process. If a child process is killed
    while it draws a bar, it never releases the lock, and the parent process waits forever. The
    lock is set on ``ProgressBar`` and not on a parent class, because tqdm stores the lock on the
    first class that draws a bar.
    """
    ProgressBar.set_lock(threading.RLock())


class InterruptAt(Callback):
    """Raise KeyboardInterrupt at the start of an epoch."""

    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch_begin(self, net, **kwargs):
        if len(net.history) == self.epoch:
            raise KeyboardInterrupt
