"""Number of steps in an epoch, and of epochs where none is given: enough, also on few windows."""

from __future__ import annotations

import logging
import math

from skorch import NeuralNet
from torch.utils.data import Dataset

__all__ = ["default_epochs", "steps_in_epoch"]

log = logging.getLogger(__name__)


def steps_in_epoch(net: NeuralNet, dataset: Dataset) -> int:
    """Return the number of steps in which a net trains on a dataset once."""
    loader = net.get_iterator(dataset, training=True)
    # Nets of braindecode wrap the loader of torch in one without a length.
    return len(loader if hasattr(loader, "__len__") else loader.loader)


def default_epochs(at_least: int, fewest_steps: int, steps_per_epoch: int, phase: str) -> int:
    """Return the number of epochs of a training for which none is given.

    What a training learns depends on its steps. A fixed number of epochs is enough only where an
    epoch has many steps: 50 epochs of 36 windows are 50 steps.

    Parameters
    ----------
    at_least, fewest_steps : int
        Fewest epochs and fewest steps. There are as many epochs as both take.
    steps_per_epoch : int
        Number of steps in an epoch.
    phase : str
        Name of the training, for the log.

    Examples
    --------
    >>> from braindecode_pars.training._budget import default_epochs
    >>> default_epochs(50, 600, 1, "Pretraining"), default_epochs(50, 600, 100, "Pretraining")
    (600, 50)
    """
    epochs = max(at_least, math.ceil(fewest_steps / max(1, steps_per_epoch)))
    log.info("%s: %d steps in %d epochs.", phase, epochs * steps_per_epoch, epochs)
    return epochs
