"""Errors after Ctrl-C or a NaN loss, which skorch ignores."""

from __future__ import annotations

from typing import Any

import torch
from skorch.callbacks import EarlyStopping

from braindecode_pars.training._time_budget import TimeBudget

__all__ = ["NoSilentFailure"]


class NoSilentFailure:
    """Mixin for skorch nets that raises an error after Ctrl-C or a NaN loss.

    skorch catches Ctrl-C and returns. A pipeline or a cross-validation would then continue with a
    partly trained net. This mixin lets skorch end training, with its callbacks, and then raises
    KeyboardInterrupt again.

    Raises
    ------
    KeyboardInterrupt
        From ``fit``, after Ctrl-C. The net keeps its current weights.
    ValueError
        From ``fit``, when the training loss is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from skorch import NeuralNetRegressor
    >>> from braindecode_pars.training import NoSilentFailure
    >>> class Net(NoSilentFailure, NeuralNetRegressor):
    ...     pass
    >>> net = Net(torch.nn.Linear(1, 1), lr=0.1, train_split=None, verbose=0)
    >>> net.fit(np.ones((4, 1), "float32"), np.full((4, 1), np.nan, "float32"))
    Traceback (most recent call last):
        ...
    ValueError: The training loss became nan in epoch 1 of Net at learning rate 0.1; lower ...
    """

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        step = super().train_step(batch, **fit_params)
        if not torch.isfinite(step["loss"]):
            raise ValueError(
                f"The training loss became {step['loss'].item()} in epoch {len(self.history)} of "
                f"{type(self).__name__} at learning rate {self.lr:g}; lower the learning rate."
            )
        return step

    def fit_loop(self, *args: Any, **kwargs: Any) -> Any:
        self.interrupted_ = False
        try:
            return super().fit_loop(*args, **kwargs)
        except KeyboardInterrupt:
            # partial_fit of skorch catches this error, so it is remembered here.
            self.interrupted_ = not self._stopped_early()
            raise

    def _stopped_early(self) -> bool:
        """Return whether a callback raised the KeyboardInterrupt."""
        return any(
            (isinstance(callback, EarlyStopping) and callback.misses_ == callback.patience)
            or (isinstance(callback, TimeBudget) and callback.is_over_)
            for _, callback in self.callbacks_
        )

    def partial_fit(self, *args: Any, **kwargs: Any) -> Any:
        super().partial_fit(*args, **kwargs)
        if self.interrupted_:
            raise KeyboardInterrupt
        return self
