"""What the baseline features share: they read windows batch by batch, with the channels of fit."""

from __future__ import annotations

from abc import abstractmethod
from types import NoneType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._parameters import Rule, check_parameters, instance, optional, positive
from braindecode_pars.windows._picking import pick_as_fitted, pick_for_fit
from braindecode_pars.windows._window_set import WindowSet, as_window_set

__all__ = ["WindowFeatures", "check_rate"]


class WindowFeatures(TransformerMixin, BaseEstimator):
    """A transformer of windows that computes the features of each window by itself.

    A subclass has the parameters ``sfreq`` and ``channels``, adds rules for its other parameters
    to ``_rules``, and computes the features of a batch.
    """

    #: Parameter name -> rule.
    _rules: ClassVar[dict[str, Rule]] = dict(
        sfreq=optional(positive()),
        channels=instance("a list of channel names, or None", list, tuple, NoneType),
    )

    def fit(self, X: Any, y: Any = None) -> WindowFeatures:
        """Remember the channels of the windows; there is nothing else to learn.

        Parameters
        ----------
        X : windows
            Windows whose channels :meth:`transform` will use. No signal is read.
        y : Any
            Not used; scikit-learn passes it.

        Returns
        -------
        estimator
            The transformer itself.

        Raises
        ------
        TypeError, ValueError
            When a parameter has the wrong type or is out of range, there is no EEG channel, or a
            channel in ``channels`` is missing.
        """
        check_parameters(vars(self), self._rules, type(self).__name__)
        self._remember(as_window_set(X, sfreq=self.sfreq))
        return self

    def _remember(self, windows: WindowSet) -> None:
        """Keep what ``transform`` needs to know of the windows of ``fit``."""
        self.chs_info_ = pick_for_fit(windows, self.channels).chs_info

    def transform(self, X: Any) -> np.ndarray:
        """Compute the features of each window.

        Parameters
        ----------
        X : windows
            Windows of the same shape. Channels are matched to those of :meth:`fit` by name. Only
            windows without channel names, such as arrays, can be transformed without :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, ...)
            Features of each window.

        Raises
        ------
        NotFittedError
            When the windows have channel names and :meth:`fit` was not called.
        TypeError
            When a parameter has the wrong type.
        ValueError
            When a parameter is out of range, there are no windows, the sampling rate is needed and
            unknown, windows differ in shape or are too short, a window contains NaN, or a channel
            of :meth:`fit` is missing.
        """
        check_parameters(vars(self), self._rules, type(self).__name__)
        windows = as_window_set(X, sfreq=self.sfreq)
        windows.check_not_empty()
        if windows.chs_info is not None or self.channels is not None:
            check_is_fitted(self)  # otherwise each call would pick its own channels
            windows = pick_as_fitted(windows, self.chs_info_)
        batches = (batch.astype(float) for batch in windows.batches(256))
        return np.concatenate([self._features(batch, windows.sfreq) for batch in batches])

    @abstractmethod
    def _features(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        """Return the features of windows: (n_windows, n_chans, n_times) -> (n_windows, ...)."""


def check_rate(sfreq: float | None) -> None:
    """Check that the sampling rate is known.

    Raises
    ------
    ValueError
        When it is None.
    """
    if sfreq is None:
        raise ValueError("The sampling rate of the windows is unknown; pass sfreq (Hz).")
