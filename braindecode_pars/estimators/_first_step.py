"""A fit up to its first step of fine-tuning: the network and the training windows."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator, clone
from skorch.callbacks import Callback

from braindecode_pars.estimators._fine_tuning import FineTuningNet
from braindecode_pars.training._budget import steps_in_epoch
from braindecode_pars.windows._window_set import WindowSet

__all__ = ["FirstStep", "first_step"]

#: Parameters that would take time or write files before that step.
_QUICK = dict(pretrain_epochs=0, checkpoint_dir=None, compile=False, device="cpu", verbose=0)


class FirstStep(NamedTuple):
    """What a fit would begin to train.

    Attributes
    ----------
    net : FineTuningNet
        Initialised net.
    windows : WindowSet
        Training windows.
    n_steps : int
        Number of steps in an epoch.
    """

    net: FineTuningNet
    windows: WindowSet
    n_steps: int


class _Ready(Exception):  # noqa: N818 it is no error
    """A fit has come to its first step of fine-tuning."""

    def __init__(self, first_step: FirstStep):
        self.first_step = first_step


class _BeforeTraining(Callback):
    """End a fit before its first step."""

    def on_train_begin(self, net: FineTuningNet, X: Any = None, **kwargs: Any) -> None:
        raise _Ready(FirstStep(net, getattr(X, "windows", X), steps_in_epoch(net, X)))


def first_step(estimator: BaseEstimator, X: Any, y: Any, groups: Any) -> FirstStep:
    """Return net and training windows of a fit, which ends before it trains.

    The fit itself holds out windows and builds the network, so that both are those of a real fit.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As the fit.
    """
    params = estimator.get_params(deep=False)
    quick = {name: value for name, value in _QUICK.items() if name in params}
    fitted = clone(estimator).set_params(**quick, callbacks=[_BeforeTraining()])
    try:
        with warnings.catch_warnings():  # the real fit warns
            warnings.simplefilter("ignore")
            fitted.fit(X, y, groups=groups)
    except _Ready as ready:
        return ready.first_step
    raise AssertionError("a fit notifies its callbacks before it trains")
