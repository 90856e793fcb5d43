"""Training that neither swallows Ctrl-C nor trains on after a loss of NaN."""

from __future__ import annotations

from typing import Any

import torch
from skorch.callbacks import EarlyStopping

__all__ = ["NoSilentFailure"]


class NoSilentFailure:
    """Mixin for skorch nets: neither Ctrl-C nor a loss of NaN goes unnoticed.

    skorch swallows Ctrl-C, and whoever waits for the net (a pipeline, a cross-validation) would
    go on with half-trained weights. Here training ends in good order, and it is raised again.

    Raises
    ------
    KeyboardInterrupt
        From ``fit``, after Ctrl-C; the net keeps what it has learned.
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
            self.interrupted_ = not self._stopped_early()
            raise

    def _stopped_early(self) -> bool:
        """Whether skorch's EarlyStopping has ended training, which it does by KeyboardInterrupt."""
        return any(
            isinstance(callback, EarlyStopping) and callback.misses_ == callback.patience
            for _, callback in self.callbacks_
        )

    def partial_fit(self, *args: Any, **kwargs: Any) -> Any:
        super().partial_fit(*args, **kwargs)
        if self.interrupted_:
            raise KeyboardInterrupt
        return self
