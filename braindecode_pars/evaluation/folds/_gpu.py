"""One GPU for each worker: folds that run at the same time use different ones."""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sklearn.base import BaseEstimator, clone

from braindecode_pars.evaluation.folds._digest import digest
from braindecode_pars.storage._atomic import locked

__all__ = ["free_gpu", "on_device"]


@contextmanager
def free_gpu(n_gpus: int) -> Iterator[str]:
    """Choose a GPU of this machine that no other worker uses, until the end of the block.

    Workers have no numbers, and may be processes of several programs, so a lock file marks a GPU
    that is in use. When all are, the worker shares one. The lock of a killed worker is released.

    Parameters
    ----------
    n_gpus : int
        Number of GPUs, at least 1.

    Yields
    ------
    str
        Name of the device, such as ``"cuda:1"``.

    Examples
    --------
    >>> from braindecode_pars.evaluation.folds._gpu import free_gpu
    >>> with free_gpu(8) as one, free_gpu(8) as other:
    ...     one != other
    True
    """
    # The numbers mean other GPUs in a process that sees only some of them.
    visible = digest(getpass.getuser(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    folder = Path(tempfile.gettempdir(), f"braindecode_pars-gpus-{visible}")
    with ExitStack() as stack:
        for number in range(n_gpus):
            try:
                stack.enter_context(locked(folder / str(number), "this GPU is in use"))
                break
            except BlockingIOError:
                continue
        else:
            number = os.getpid() % n_gpus
        yield f"cuda:{number}"


def on_device(estimator: BaseEstimator, device: str) -> BaseEstimator:
    """Return a clone in which every ``device="auto"`` is the given device.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier
    >>> from braindecode_pars.evaluation.folds._gpu import on_device
    >>> on_device(PARSClassifier(), "cuda:1").device
    'cuda:1'
    """
    changed = clone(estimator)
    names = [
        name
        for name, value in changed.get_params().items()
        if name.split("__")[-1] == "device" and isinstance(value, str) and value == "auto"
        # An estimator passed as ``encoder`` is fitted already.
        if "encoder" not in name.split("__")
    ]
    changed.set_params(**dict.fromkeys(names, device))  # FrozenEstimator returns None
    return changed
