"""Number of steps in an epoch, and of epochs where none is given: enough, also on few windows."""

from __future__ import annotations

import logging
import math

from skorch import NeuralNet
from torch.utils.data import Dataset

__all__ = ["STEPS", "default_epochs", "steps_in_epoch"]

log = logging.getLogger(__name__)

#: Fewest steps of a training whose number of epochs is None.
STEPS = 600


def steps_in_epoch(net: NeuralNet, dataset: Dataset) -> int:
    """Return the number of steps in which a net trains on a dataset once."""
    loader = net.get_iterator(dataset, training=True)
    # Nets of braindecode wrap the loader of torch in one without a length.
    return len(loader if hasattr(loader, "__len__") else loader.loader)


def default_epochs(at_least: int, steps_per_epoch: int, phase: str) -> int:
    """Return the number of epochs of a training for which none is given.

    What a training learns depends on its steps. A fixed number of epochs is enough only where an
    epoch has many steps: 50 epochs of 36 windows are 50 steps.

    Parameters
    ----------
    at_least : int
        Fewest epochs. There are as many more as :data:`STEPS` steps take.
    steps_per_epoch : int
        Number of steps in an epoch.
    phase : str
        Name of the training, for the log.

    Examples
    --------
    >>> from braindecode_pars.training._budget import default_epochs
    >>> default_epochs(50, 1, "Pretraining"), default_epochs(50, 100, "Pretraining")
    (600, 50)
    """
    epochs = max(at_least, math.ceil(STEPS / max(1, steps_per_epoch)))
    log.info("%s: %d steps in %d epochs.", phase, epochs * steps_per_epoch, epochs)
    return epochs
