"""Windows that lack one thing, for any estimator.

If a gain of pretraining disappears when all methods get such windows, it needs what they lack.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags

from braindecode_pars._common.channel_names import is_eog, match_channels
from braindecode_pars._common.checks import (
    check_parameters,
    choice,
    integer,
    listed,
    optional,
    positive,
)
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

__all__ = ["ChangedSignals"]

#: Changes of signals that :class:`ChangedSignals` knows.
CHANGES = ("slow", "detrended", "eyes", "phase", "amplitude", "order")


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

    def __init__(
        self,
        control: str = "slow",
        *,
        edge: float = 7.0,
        patch_seconds: float | None = None,
        sfreq: float | None = None,
        random_state: int = 0,
    ):
        self.control = control
        self.edge = edge
        self.patch_seconds = patch_seconds
        self.sfreq = sfreq
        self.random_state = random_state

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
            View of the windows with their labels and subjects. A window is changed when it is read;
            a filtered recording stays in memory.

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
        return windows.read_by(self._source(windows))

    def _check(self) -> None:
        check_parameters(self.get_params(), _RULES, type(self).__name__)

    def _source(self, windows: Windows) -> Any:
        """Return what reads the changed windows."""
        match self.control:
            case "slow":
                sfreq = self._rate_of(windows)
                if 2 * self.edge >= sfreq:
                    raise ValueError(
                        f"edge={self.edge:g} Hz is not below half of the sampling rate, "
                        f"{sfreq:g} Hz."
                    )
                return _Filtered(windows, partial(high_passed, sfreq=sfreq, edge=self.edge))
            case "detrended":
                size = None if self.patch_seconds is None else self._patch_size(windows)
                return _Changed(windows, partial(detrended, patch_size=size))
            case "eyes":
                return _EyesRemoved(windows)
            case "phase":
                return _Changed(windows, partial(random_phases, random_state=self.random_state))
            case "amplitude":
                return _Changed(windows, equal_amplitudes)
        change = partial(
            shuffled_patches,
            patch_size=self._patch_size(windows),
            random_state=self.random_state,
        )
        change(np.zeros((1, 1, windows.shortest())))  # raises where windows are too short
        return _Changed(windows, change)

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


_RULES = {
    "control": choice(*CHANGES),
    "edge": positive(),
    "patch_seconds": optional(positive()),
    "sfreq": optional(positive()),
    "random_state": integer(0),
}


# Sources of changed windows: item i is window i, shape (n_chans, n_times) ---------------------


class _Changed:
    """Windows that are changed one by one."""

    def __init__(self, windows: Windows, change: Callable[[np.ndarray], np.ndarray]):
        self.windows = windows
        self.change = change

    def __getitem__(self, i: int) -> np.ndarray:
        return self.change(self.windows[i][None].astype(float))[0]


class _Filtered(_Changed):
    """Windows of recordings that are changed before they are cut, where they are at hand."""

    def __init__(self, windows: Windows, change: Callable[[np.ndarray], np.ndarray]):
        super().__init__(windows, change)
        self.known: dict[int, np.ndarray | None] = {}  # by row of the recording

    def __getitem__(self, i: int) -> np.ndarray:
        row, start, stop = self.windows.windows[["recording", "start", "stop"]].iloc[i]
        if row not in self.known:
            whole = whole_recording(self.windows, int(row))
            changed = None if whole is None else self.change(whole[None])[0]
            self.known[row] = changed if changed is None else changed.astype(np.float32)
        recording = self.known[row]
        return super().__getitem__(i) if recording is None else recording[:, start:stop]


class _EyesRemoved:
    """Windows without what the eyes' channels predict, with one regression for each subject."""

    def __init__(self, windows: Windows):
        self.windows = windows
        self.eyes = [eye_signals(montage) for montage in windows.montages]
        people = windows.people
        subjects = windows.windows["recording"].to_numpy() if people is None else people
        # One regression for each subject and montage
        self.number, first = divided([subjects, windows.montage_numbers])
        self.fits = [self._fit(np.flatnonzero(self.number == k)) for k in range(len(first))]

    def _fit(self, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and mean of the signals of the eyes of a subject."""
        _, matrix, _ = self.eyes[self.windows.montage_numbers[own[0]]]
        rows = dict.fromkeys(self.windows.windows["recording"].iloc[own].tolist())
        whole = [whole_recording(self.windows, row) for row in rows]
        parts = [part for part in whole if part is not None]
        if len(parts) < len(whole):
            parts = [self.windows[i].astype(float) for i in own.tolist()]
        signals = np.concatenate(parts, axis=1)[None]
        eyes = matrix @ signals
        return eye_coefficients(signals, eyes), eyes.mean(axis=(0, 2))[:, None]

    def __getitem__(self, i: int) -> np.ndarray:
        _, matrix, own = self.eyes[self.windows.montage_numbers[i]]
        coefficients, mean = self.fits[self.number[i]]
        window = self.windows[i][None].astype(float)
        cleaned = without_eyes(window, matrix @ window, coefficients, mean)
        # What is left in the predicting channels is rounding, which an instance norm would enlarge.
        cleaned[:, own] = 0
        return cleaned[0]


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


def eye_signals(montage: Montage) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return which channels show the eyes, and how their signals are made of all channels.

    Parameters
    ----------
    montage : Montage
        Channels of windows.

    Returns
    -------
    names : list of str
        The channels: those of EOG, or else pairs of frontal ones.
    matrix : ndarray, shape (n_eyes, n_chans)
        Each row gives one signal: a channel of EOG, the difference or the sum of a frontal pair.
    own : ndarray of int, shape (n_names,)
        Positions of the channels.

    Raises
    ------
    ValueError
        When there are no such channels.
    """
    channels = montage.chs_info or []
    unit = np.eye(len(channels))
    eog = [i for i, ch in enumerate(channels) if is_eog(ch)]
    if eog:
        return [montage.names[i] for i in eog], unit[eog], np.array(eog)
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
    own = np.array(sum(pairs, ()))
    return [montage.names[i] for i in own], np.array(rows), own
