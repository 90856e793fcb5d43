"""Windows that lack one thing, for any estimator.

If a gain of pretraining disappears when all methods get such windows, it needs what they lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags

from braindecode_pars._common.channel_names import is_eog, match_channels
from braindecode_pars._common.checks import choice, integer, listed, optional, positive
from braindecode_pars.estimators.window_features import FRONTAL
from braindecode_pars.estimators.windows_estimator import WindowsEstimator
from braindecode_pars.evaluation.changed_signals import (
    detrended,
    equal_amplitudes,
    eye_coefficients,
    high_passed,
    random_phases,
    shuffled_patches,
    without_eyes,
)
from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.table import Montage, Windows, divided

#: Changes of signals that :class:`ChangedSignals` knows.
CHANGES = ("slow", "detrended", "eyes", "phase", "amplitude", "order")


@dataclass(eq=False, repr=False)
class ChangedSignals(TransformerMixin, WindowsEstimator):
    """Return windows that lack one thing, for any estimator of this package.

    Parameters
    ----------
    control : str
        What the windows will lack:

        - ``"slow"``: frequencies below ``edge``. The recording is filtered before it is cut where
          it is at hand, which is so for windows of braindecode that are cut from a ``Raw``. Other
          windows are filtered one by one, so that some slow voltages remain near their ends, over
          about one period of the edge;
        - ``"detrended"``: a line in each window, or in each patch of ``patch_seconds``;
        - ``"eyes"``: what EOG channels predict, which must be among the channels of the windows.
          Without EOG channels, frontal channels stand for them: Fp1 - Fp2, Fp1 + Fp2, F7 - F8 and
          F7 + F8, of which one pair must be there. They also record the brain, so more than eye
          movements is removed. The predicting channels themselves become zero. There is one set of
          coefficients for each subject, from the whole recordings where they are at hand, else from
          the windows that are passed together;
        - ``"phase"``: phases, and so waveform and timing;
        - ``"amplitude"``: scale of each channel and window;
        - ``"order"``: order of the patches of ``patch_seconds``.

        :mod:`~braindecode_pars.evaluation.changed_signals` has the functions, with equations.
    edge : float
        Lowest frequency that ``"slow"`` keeps, in Hz.
    patch_seconds : float | None
        Length of a patch in seconds. None means the whole window for ``"detrended"``, and 1 s for
        ``"order"``.
    sfreq : float | None
        Sampling rate in Hz, for windows without a known rate.
    random_state : int
        Seed of ``"phase"`` and ``"order"``. What becomes of a window does not depend on the other
        windows.

    See Also
    --------
    controls : A comparison on windows with each of these changes.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import ChangedSignals, LogBandPower
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=2, hours=0.2, n_chans=2))
    >>> features = make_pipeline(ChangedSignals("slow", edge=4), LogBandPower(), StandardScaler())
    >>> make_pipeline(features, LogisticRegression(C=0.01)).fit(X, y).predict(X).shape
    (48,)
    >>> [f"{x:.2g}" for x in ChangedSignals("amplitude").transform(X)[0].std(axis=1)]
    ['1e-05', '1e-05']
    """

    control: str = "slow"
    _: KW_ONLY
    edge: float = 7.0
    patch_seconds: float | None = None
    sfreq: float | None = None
    random_state: int = 0

    _own_rules = {  # noqa: RUF012
        "control": choice(*CHANGES),
        "edge": positive(),
        "patch_seconds": optional(positive()),
        "random_state": integer(0),
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def fit(self, X: Any, y: Any = None) -> ChangedSignals:
        """Check the parameters. Nothing is learned.

        Parameters
        ----------
        X, y : Any
            Not used; scikit-learn passes them.

        Returns
        -------
        ChangedSignals
            The transformer itself.

        Raises
        ------
        TypeError, ValueError
            When a parameter has the wrong type or is out of range.
        """
        self._check()
        return self

    def transform(self, X: Any) -> Windows:
        """Return the changed windows.

        Parameters
        ----------
        X : windows
            Windows of any source.

        Returns
        -------
        Windows
            The windows with their labels and subjects. All changed samples are in memory.

        Raises
        ------
        TypeError, ValueError
            As :meth:`fit`. Also when the sampling rate is needed and unknown, the edge is not below
            half of it, a window is shorter than two patches, or windows have neither EOG channels
            nor a pair of frontal ones.
        """
        self._check()
        windows = as_windows(X, sfreq=self.sfreq)
        windows.check_not_empty()
        changed = [window.astype(np.float32) for window in self._changed(windows)]
        is_one_shape = len({window.shape for window in changed}) == 1
        return windows.read_by(np.stack(changed) if is_one_shape else changed)

    def _changed(self, windows: Windows) -> Iterator[np.ndarray]:
        """Return an iterator over the changed windows, each of shape (n_chans, n_times)."""
        change: Callable[[np.ndarray], np.ndarray] = equal_amplitudes
        match self.control:
            case "slow":
                sfreq = self._rate_of(windows)
                if 2 * self.edge >= sfreq:
                    half = f"half of the sampling rate, {sfreq:g} Hz"
                    raise ValueError(f"edge={self.edge:g} Hz is not below {half}.")
                return _filtered(windows, partial(high_passed, sfreq=sfreq, edge=self.edge))
            case "eyes":
                return _without_eyes(windows)
            case "detrended":
                size = None if self.patch_seconds is None else self._patch_size(windows)
                change = partial(detrended, patch_size=size)
            case "phase":
                change = partial(random_phases, random_state=self.random_state)
            case "order":
                size = self._patch_size(windows)
                change = partial(shuffled_patches, patch_size=size, random_state=self.random_state)
        return (change(window[None].astype(float))[0] for window in windows)

    def _patch_size(self, windows: Windows) -> int:
        seconds = 1.0 if self.patch_seconds is None else self.patch_seconds
        return max(1, round(seconds * self._rate_of(windows)))

    def _rate_of(self, windows: Windows) -> float:
        if windows.sfreq is None:
            raise ValueError(
                f"The sampling rate of the windows is unknown, which {self.control!r} needs; pass "
                "sfreq."
            )
        return windows.sfreq


def _filtered(windows: Windows, change: Callable[[np.ndarray], np.ndarray]) -> Iterator[np.ndarray]:
    """Yield windows of recordings that are changed before they are cut, where they are at hand."""

    @cache
    def changed(row: int) -> np.ndarray | None:
        whole = whole_recording(windows, row)
        return None if whole is None else change(whole[None])[0]

    places = windows.table[["recording", "start", "stop"]].to_numpy().tolist()
    for window, (row, start, stop) in zip(windows, places, strict=True):
        recording = changed(row)
        if recording is None:
            yield change(window[None].astype(float))[0]
        else:
            yield recording[:, start:stop]


def _without_eyes(windows: Windows) -> Iterator[np.ndarray]:
    """Yield windows without what the eyes' channels predict."""
    eyes = [eye_signals(montage) for montage in windows.montages]
    recordings = windows.table["recording"].to_numpy()
    people = recordings if windows.people is None else windows.people
    # One regression for each subject and montage
    numbers, _ = divided([people, windows.montage_numbers])

    @cache
    def fitted(number: int, montage: int) -> tuple[np.ndarray, np.ndarray]:
        own = np.flatnonzero(numbers == number)
        whole = [whole_recording(windows, row) for row in dict.fromkeys(recordings[own].tolist())]
        parts = [part for part in whole if part is not None]
        if len(parts) < len(whole):
            parts = [windows[i].astype(float) for i in own.tolist()]
        signals = np.concatenate(parts, axis=1)[None]
        of_eyes = eyes[montage][0] @ signals
        return eye_coefficients(signals, of_eyes), of_eyes.mean(axis=(0, 2))[:, None]

    for window, number, montage in zip(windows, numbers, windows.montage_numbers, strict=True):
        matrix, own = eyes[montage]
        signals = window[None].astype(float)
        cleaned = without_eyes(signals, matrix @ signals, *fitted(number, montage))
        # What is left in the predicting channels is rounding, which an instance norm would enlarge.
        cleaned[:, own] = 0
        yield cleaned[0]


def whole_recording(windows: Windows, row: int) -> np.ndarray | None:
    """Return the signals of a whole recording, if the windows are its unchanged samples.

    Parameters
    ----------
    windows : Windows
        Windows of any source.
    row : int
        Row of ``windows.recordings``.

    Returns
    -------
    ndarray, shape (n_chans, n_samples) | None
        Channels as in the windows. None for windows of arrays, Epochs and stores, which do not have
        the recording, and for those that a function changes when they are read.
    """
    recording = windows.recordings.iloc[row]
    dataset: Any = getattr(recording["reader"], "source", None)
    raw = getattr(dataset, "raw", None)
    # Channels of type "misc" with targets are rows of the recording, but not of its windows.
    if raw is None or dataset.transform is not None or dataset.targets_from != "metadata":
        return None
    montage = recording["channels"]
    signals = raw.get_data()
    return signals if montage.rows is None else signals[montage.rows]


def eye_signals(montage: Montage) -> tuple[np.ndarray, np.ndarray]:
    """Return how signals of the eyes are made of all channels, and which channels show the eyes.

    Parameters
    ----------
    montage : Montage
        Channels of windows.

    Returns
    -------
    matrix : ndarray, shape (n_eyes, n_chans)
        Each row gives one signal: a channel of EOG, the difference or the sum of a frontal pair.
    own : ndarray of int
        Positions of the channels: those of EOG, or else pairs of frontal ones.

    Raises
    ------
    ValueError
        When there are no such channels.
    """
    channels = montage.chs_info or []
    unit = np.eye(len(channels))
    eog = [i for i, ch in enumerate(channels) if is_eog(ch)]
    if eog:
        return unit[eog], np.array(eog)
    good = [i for i, name in enumerate(montage.names) if name not in montage.bads]
    places = match_channels(FRONTAL, [montage.names[i] for i in good])
    # Differences and sums of Fp1 and Fp2, and of F7 and F8, show eye movements and blinks.
    pairs = [
        (good[left], good[right])
        for left, right in zip(places[::2], places[1::2], strict=True)
        if left is not None and right is not None
    ]
    if not pairs:
        found = listed(montage.names, most=8) or "none with a name"
        raise ValueError(
            "Eye movements cannot be estimated: there is no EOG channel and no pair of frontal "
            f"ones, Fp1 and Fp2 or F7 and F8. The channels are {found}. Keep such channels when "
            "you prepare the recordings."
        )
    rows = [row for a, b in pairs for row in (unit[a] - unit[b], unit[a] + unit[b])]
    return np.array(rows), np.array(sum(pairs, ()))
