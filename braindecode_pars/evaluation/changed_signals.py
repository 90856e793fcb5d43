"""Windows that lack one thing: slow voltages, drifts, eyes, phases, 1/f, amplitudes, order, labels.

Each function removes one thing from arrays of shape (n, n_chans, n_times). :class:`ControlSignals`
applies them to windows of any source.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import Any, Self

import numpy as np
from scipy import fft, signal
from sklearn.base import TransformerMixin
from sklearn.utils import Tags

from braindecode_pars._common import channel_names, checks, names
from braindecode_pars.baselines import window_features
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.windows import convert, table

#: Order of the Butterworth filter, which is applied forwards and backwards.
ORDER = 4
#: Standard deviation of every channel of a window without amplitudes, in volts.
AMPLITUDE = 1e-5


def high_passed(X: np.ndarray, sfreq: float, edge: float = 7.0) -> np.ndarray:
    r"""Remove slow voltages with a Butterworth high-pass filter without phase shift.

    The filter of order :math:`n = 4` is applied forwards and backwards, so that a sine of frequency
    :math:`f` keeps the share

    .. math::
        |H(f)|^2 = \left(1 + \left(\frac{\tan(\pi f_c / f_s)}{\tan(\pi f / f_s)}\right)^{2n}
        \right)^{-1}

    of its amplitude: a half at the edge :math:`f_c`, 0.0002 at a third of it. At both ends the
    signal is continued by at most one second of its odd reflection. Near the ends of a short window
    slow voltages are therefore not removed completely, over about one period of the edge; filter
    the recording before it is cut where you can.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows, or whole recordings.
    sfreq : float
        Sampling rate :math:`f_s` in Hz.
    edge : float
        Edge :math:`f_c` in Hz, below half of the sampling rate.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import high_passed
    >>> times = np.arange(1000) / 100
    >>> sines = np.sin(2 * np.pi * np.outer([2, 20], times))[None]  # 2 Hz and 20 Hz
    >>> high_passed(sines, sfreq=100)[0, :, 300:700].std(axis=1).round(2).tolist()
    [0.0, 0.71]
    """
    sections = signal.butter(ORDER, edge, "highpass", fs=sfreq, output="sos")
    padding = min(round(sfreq), X.shape[-1] - 1)
    return signal.sosfiltfilt(sections, X, axis=-1, padlen=padding)


def detrended(X: np.ndarray, patch_size: int | None = None) -> np.ndarray:
    r"""Subtract from each channel of each patch the line that fits it best.

    The samples :math:`x_t` of a patch become :math:`x_t - a - b t`, where :math:`a` and :math:`b`
    minimize :math:`\sum_t (x_t - a - b t)^2`.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    patch_size : int | None
        Length of a patch in samples; the last one is shorter where it has to be. None subtracts one
        line from the whole window.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import detrended
    >>> detrended(np.array([[[0.0, 1.0, 2.0, 6.0]]]), patch_size=3).round(6).tolist()
    [[[0.0, 0.0, 0.0, 0.0]]]
    """
    n_times = X.shape[-1]
    breaks = np.arange(patch_size or n_times, n_times, patch_size or n_times)
    return signal.detrend(X, axis=-1, bp=breaks)


def eye_coefficients(X: np.ndarray, eyes: np.ndarray) -> np.ndarray:
    r"""Return how much of each eye signal is in each channel, by least squares.

    With the deviations :math:`\tilde x` and :math:`\tilde e` from the means over all windows,

    .. math::
        B = \Big(\sum_{i,t} \tilde x_{it} \tilde e_{it}^\top\Big)
            \Big(\sum_{i,t} \tilde e_{it} \tilde e_{it}^\top\Big)^{-1} .

    For one recording these are the coefficients of :class:`mne.preprocessing.EOGRegression`.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows or recordings of one subject.
    eyes : ndarray, shape (n, n_eyes, n_times)
        Signals of the eyes at the same times.

    Returns
    -------
    ndarray, shape (n_chans, n_eyes)

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import eye_coefficients
    >>> eyes = np.random.default_rng(0).normal(size=(1, 1, 500))
    >>> eye_coefficients(0.3 * eyes, eyes).round(6).tolist()
    [[0.3]]
    """
    flat = [np.moveaxis(signals, 1, 0).reshape(signals.shape[1], -1) for signals in (X, eyes)]
    x, e = (signals - signals.mean(axis=1, keepdims=True) for signals in flat)
    # The pseudo-inverse serves where a signal of the eyes is flat, or equal to another one.
    return x @ e.T @ np.linalg.pinv(e @ e.T, hermitian=True)


def without_eyes(
    X: np.ndarray,
    eyes: np.ndarray,
    coefficients: np.ndarray | None = None,
    mean: np.ndarray | None = None,
) -> np.ndarray:
    r"""Subtract what signals of the eyes predict: :math:`x_{it} - B (e_{it} - \bar e)`.

    The coefficients are those of a subject, not of a window: how eye movements spread over the
    scalp is a property of head and electrodes. Coefficients of a short window would also fit what
    the brain has in common with the frontal channels in these seconds.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    eyes : ndarray, shape (n, n_eyes, n_times)
        Signals of the eyes at the same times.
    coefficients : ndarray, shape (n_chans, n_eyes) | None
        Matrix :math:`B`; None takes that of these windows, see :func:`eye_coefficients`.
    mean : ndarray, shape (n_eyes, 1) | None
        Mean :math:`\bar e`; None takes that over these windows.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    References
    ----------
    Gratton et al. 1983, A new method for off-line removal of ocular artifact,
    Electroencephalography and Clinical Neurophysiology 55(4).

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import without_eyes
    >>> brain, eyes = np.random.default_rng(0).normal(size=(2, 1, 1, 5000))
    >>> mixed = brain + 3 * eyes
    >>> bool(np.abs(without_eyes(mixed, eyes) - brain).max() < 0.2)
    True
    """
    if coefficients is None:
        coefficients = eye_coefficients(X, eyes)
    if mean is None:
        mean = eyes.mean(axis=(0, 2))[:, None]
    return X - coefficients @ (eyes - mean)


def random_phases(X: np.ndarray, random_state: int = 0) -> np.ndarray:
    r"""Add random phases to the Fourier coefficients of each window, and keep their amplitudes.

    .. math::
        \hat x_{ck} \mapsto e^{\mathrm{i} \varphi_k} \hat x_{ck}, \qquad
        \varphi_k \sim \mathcal U(0, 2 \pi)

    The phase is the same for all channels :math:`c` of a window. Spectra, cross-spectra and the
    covariance of the channels are therefore kept exactly; waveform, timing and the sign of a slow
    shift are lost. Coefficients that are real, at zero and at half of the sampling rate, get a
    random sign. The random numbers depend on the samples of the window and on ``random_state``, not
    on the other windows.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    random_state : int
        Seed.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    References
    ----------
    Prichard and Theiler 1994, Generating surrogate data for time series with several simultaneously
    measured variables, Physical Review Letters 73.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import random_phases
    >>> X = np.random.default_rng(0).normal(size=(1, 2, 100))
    >>> changed = random_phases(X)
    >>> bool(np.allclose(changed[0] @ changed[0].T, X[0] @ X[0].T)), bool(np.allclose(changed, X))
    (True, False)
    """
    n_times = X.shape[-1]
    spectra = np.fft.rfft(X, axis=-1)
    are_real = [0, *([n_times // 2] if n_times % 2 == 0 else [])]
    for spectrum, rng in zip(spectra, _generators(X, random_state), strict=True):
        factors = np.exp(1j * rng.uniform(0, 2 * np.pi, spectrum.shape[-1]))
        factors[are_real] = np.where(factors[are_real].imag > 0, 1, -1)
        spectrum *= factors
    return np.fft.irfft(spectra, n_times, axis=-1)


def without_aperiodic(X: np.ndarray, sfreq: float, *, put_back: bool = False) -> np.ndarray:
    r"""Divide the spectrum of each channel by its aperiodic part, the power that falls as 1/f.

    The aperiodic part of a channel of a window is a line, fitted by the medians of Theil and Sen,

    .. math::
        \log P(f) \approx c - \chi \log f , \qquad 2 \le f \le 40 \text{ Hz and below } f_s / 2,

    where :math:`P` is the power spectral density by Welch's method, in segments of one second: a
    fit for each channel and window, and the exponent :math:`\chi` of
    :func:`~braindecode_pars.pretext.features.aperiodic`. Rhythms, in less than a third of these
    frequencies, hardly move it. The coefficients :math:`y_k` of the discrete cosine transform of
    the channel, of frequency :math:`f_k`, become

    .. math::
        y_k \mapsto y_k \, a \sqrt{2 / f_s} \, \bigl(e^{c} f_k^{-\chi}\bigr)^{-1/2} ,

    which changes no phase; the transform continues a window by its mirror image, so that its ends
    make no step. What is left is white, with the standard deviation :math:`a`, where there is no
    rhythm; a rhythm keeps its height over the line. The mean, to which 1/f gives no share, is lost.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows of one second or more.
    sfreq : float
        Sampling rate :math:`f_s` in Hz.
    put_back : bool
        Whether mean and line are put back afterwards: a sham, which shows what the procedure itself
        does.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        With :math:`a` = 10 microvolts. Channels without any change become zero.

    References
    ----------
    Donoghue et al. 2020, Parameterizing neural power spectra into periodic and aperiodic
    components, Nature Neuroscience 23, 1655.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import without_aperiodic
    >>> brown = np.random.default_rng(0).normal(size=(1, 1, 2000)).cumsum(axis=-1)
    >>> white = without_aperiodic(brown, sfreq=100)[0, 0]
    >>> np.corrcoef(white[1:], white[:-1])[0, 1].round(1), white.std().round(6)
    (np.float64(-0.0), np.float64(1e-05))
    """
    mean = X.mean(axis=-1, keepdims=True)
    frequencies, density = signal.welch(X, sfreq, nperseg=round(sfreq))
    fitted = (frequencies >= 2) & (frequencies <= 40) & (frequencies < sfreq / 2)
    # The smallest number avoids log(0) of flat channels.
    log_f, log_p = np.log(frequencies[fitted]), np.log(density[..., fitted] + np.finfo(float).tiny)
    lower, higher = np.triu_indices(len(log_f), 1)
    slopes = (log_p[..., higher] - log_p[..., lower]) / (log_f[higher] - log_f[lower])
    slope = np.median(slopes, axis=-1, keepdims=True)
    level = np.median(log_p - slope * log_f, axis=-1, keepdims=True)
    steps = np.maximum(np.arange(X.shape[-1]), 1)  # the mean is not there
    line = np.exp((level + slope * np.log(steps * sfreq / (2 * X.shape[-1]))) / 2)
    line /= AMPLITUDE * np.sqrt(2 / sfreq)
    white = fft.idct(fft.dct(X - mean, norm="ortho") / line, norm="ortho")
    return mean + fft.idct(fft.dct(white, norm="ortho") * line, norm="ortho") if put_back else white


def equal_amplitudes(X: np.ndarray, amplitude: float = AMPLITUDE) -> np.ndarray:
    r"""Give each channel of each window the same standard deviation: :math:`x_{ct} a / s_c`.

    The power of a window and of its channels is lost. The shares of frequencies in a channel, such
    as relative band power, are kept.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    amplitude : float
        Standard deviation :math:`a` of all channels, by default 10 microvolts.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        Channels without any change become zero.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import equal_amplitudes
    >>> equal_amplitudes(np.array([[[1.0, -1.0], [5.0, -5.0], [2.0, 2.0]]]), amplitude=1.0).tolist()
    [[[1.0, -1.0], [1.0, -1.0], [0.0, 0.0]]]
    """
    spread = X.std(axis=-1, keepdims=True)
    return X * np.divide(amplitude, spread, out=np.zeros_like(spread), where=spread > 0)


def shuffled_patches(X: np.ndarray, patch_size: int, random_state: int = 0) -> np.ndarray:
    r"""Put the patches of each window in a random order, the same for all its channels.

    Patch :math:`p` of a window becomes its patch :math:`\pi(p)`, where all permutations
    :math:`\pi` are equally likely. What is left after the last whole patch stays at the end. Where
    patches meet there are steps, which add power at all frequencies. The random numbers are those
    of :func:`random_phases`: they depend on the window itself.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows of at least two patches.
    patch_size : int
        Length of a patch in samples.
    random_state : int
        Seed.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    Raises
    ------
    ValueError
        When a window is shorter than two patches.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import shuffled_patches
    >>> shuffled_patches(np.arange(7.0)[None, None], patch_size=2).tolist()
    [[[4.0, 5.0, 2.0, 3.0, 0.0, 1.0, 6.0]]]
    """
    _, n_chans, n_times = X.shape
    n_patches = n_times // patch_size
    if n_patches < 2:
        raise ValueError(
            f"Windows of {n_times} samples have no two patches of {patch_size} samples to put in "
            "another order; use shorter patches (patch_seconds)."
        )
    shuffled, whole = X.copy(), n_patches * patch_size
    for window, rng in zip(shuffled, _generators(X, random_state), strict=True):
        patches = window[:, :whole].reshape(n_chans, n_patches, patch_size)
        window[:, :whole] = patches[:, rng.permutation(n_patches)].reshape(n_chans, whole)
    return shuffled


def permuted_labels(y: np.ndarray, subjects: np.ndarray, random_state: int = 0) -> np.ndarray:
    r"""Permute the labels of each subject: :math:`y_i` becomes :math:`y_{\pi_{s(i)}(i)}`.

    Each subject keeps the number of windows of each class, and no signal tells them apart any more.
    A score that is not at chance level then shows a leak.

    Parameters
    ----------
    y, subjects : ndarray, shape (n,)
        Labels and subjects.
    random_state : int
        Seed.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import permuted_labels
    >>> permuted_labels(np.array([0, 0, 1, 1, 2, 3]), np.array([1, 1, 1, 1, 2, 2])).tolist()
    [1, 0, 0, 1, 3, 2]
    """
    rng = np.random.default_rng(random_state)
    permuted = np.asarray(y).copy()
    for number in range(max(of_subject := table.factorize_rows([np.asarray(subjects)])[0]) + 1):
        subject_rows = np.flatnonzero(of_subject == number)
        permuted[subject_rows] = permuted[rng.permutation(subject_rows)]
    return permuted


def _generators(X: np.ndarray, random_state: int) -> Iterator[np.random.Generator]:
    """Yield the random numbers of each window, which depend on its samples and on the seed."""
    for window in X:
        samples = np.ascontiguousarray(window, dtype=np.float32)
        digest = hashlib.blake2b(samples.tobytes(), digest_size=8).digest()
        yield np.random.default_rng([random_state, int.from_bytes(digest)])


# Windows of any source ---------------------------------------------------------------------------

#: Changes of signals that :class:`ControlSignals` knows.
CHANGES = tuple(name for name in names.CONTROLS if name != "labels")
#: The same procedure as "aperiodic", with nothing removed at the end.
SHAM = "sham"


@dataclass(eq=False, repr=False)
class ControlSignals(TransformerMixin, windows_estimator.WindowsEstimator):
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
        - ``"aperiodic"``: the part of each channel's spectrum that falls as 1/f, with its scale;
        - ``"sham"``: nothing: the aperiodic part is divided out and put back;
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
    >>> from braindecode_pars.evaluation import ControlSignals, LogBandPower
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=2, hours=0.2, n_chans=2))
    >>> features = make_pipeline(ControlSignals("slow", edge=4), LogBandPower(), StandardScaler())
    >>> make_pipeline(features, LogisticRegression(C=0.01)).fit(X, y).predict(X).shape
    (48,)
    >>> [f"{x:.2g}" for x in ControlSignals("amplitude").transform(X)[0].std(axis=1)]
    ['1e-05', '1e-05']
    """

    control: str = "slow"
    _: KW_ONLY
    edge: float = 7.0
    patch_seconds: float | None = None
    sfreq: float | None = None
    random_state: int = 0

    _own_rules = {  # noqa: RUF012
        "control": checks.choice(*CHANGES, SHAM),
        "edge": checks.positive(),
        "patch_seconds": checks.optional(checks.positive()),
        "random_state": checks.integer(0),
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters. Nothing is learned.

        Parameters
        ----------
        X, y : Any
            Not used; scikit-learn passes them.

        Returns
        -------
        ControlSignals
            The transformer itself.

        Raises
        ------
        TypeError, ValueError
            When a parameter has the wrong type or is out of range.
        """
        windows_estimator.check_estimator(self)
        return self

    def transform(self, X: Any) -> table.Windows:
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
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, sfreq=self.sfreq)
        windows.check_not_empty()
        changed = [window.astype(np.float32) for window in self._changed(windows)]
        is_one_shape = len({window.shape for window in changed}) == 1
        return windows.read_by(np.stack(changed) if is_one_shape else changed)

    def _changed(self, windows: table.Windows) -> Iterator[np.ndarray]:
        """Return an iterator over the changed windows, each of shape (n_chans, n_times)."""
        change: Callable[[np.ndarray], np.ndarray] = equal_amplitudes
        match self.control:
            case "slow":
                sfreq = window_features.known_rate(windows.sfreq)
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
            case "aperiodic" | "sham":
                sfreq = window_features.known_rate(windows.sfreq)
                change = partial(without_aperiodic, sfreq=sfreq, put_back=self.control == SHAM)
            case "order":
                size = self._patch_size(windows)
                change = partial(shuffled_patches, patch_size=size, random_state=self.random_state)
        return (change(window[None].astype(float))[0] for window in windows)

    def _patch_size(self, windows: table.Windows) -> int:
        seconds = 1.0 if self.patch_seconds is None else self.patch_seconds
        return max(1, round(seconds * window_features.known_rate(windows.sfreq)))


def _filtered(
    windows: table.Windows, change: Callable[[np.ndarray], np.ndarray]
) -> Iterator[np.ndarray]:
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


def _without_eyes(windows: table.Windows) -> Iterator[np.ndarray]:
    """Yield windows without what the eyes' channels predict."""
    eyes = [eye_signals(montage) for montage in windows.montages]
    recordings = windows.table["recording"].to_numpy()
    subjects = recordings if windows.corpus_subjects is None else windows.corpus_subjects
    # One regression for each subject and montage
    numbers, _ = table.factorize_rows([subjects, windows.montage_numbers])

    @cache
    def fitted(number: int, montage: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.flatnonzero(numbers == number)
        whole = [whole_recording(windows, row) for row in dict.fromkeys(recordings[rows].tolist())]
        parts = [part for part in whole if part is not None]
        if len(parts) < len(whole):
            parts = [windows[i].astype(float) for i in rows.tolist()]
        signals = np.concatenate(parts, axis=1)[None]
        of_eyes = eyes[montage][0] @ signals
        return eye_coefficients(signals, of_eyes), of_eyes.mean(axis=(0, 2))[:, None]

    for window, number, montage in zip(windows, numbers, windows.montage_numbers, strict=True):
        matrix, eye_channels = eyes[montage]
        signals = window[None].astype(float)
        cleaned = without_eyes(signals, matrix @ signals, *fitted(number, montage))
        # What is left in the predicting channels is rounding, which an instance norm would enlarge.
        cleaned[:, eye_channels] = 0
        yield cleaned[0]


def whole_recording(windows: table.Windows, row: int) -> np.ndarray | None:
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


def eye_signals(montage: table.Montage) -> tuple[np.ndarray, np.ndarray]:
    """Return how signals of the eyes are made of all channels, and which channels show the eyes.

    Parameters
    ----------
    montage : Montage
        Channels of windows.

    Returns
    -------
    matrix : ndarray, shape (n_eyes, n_chans)
        Each row gives one signal: a channel of EOG, the difference or the sum of a frontal pair.
    eye_channels : ndarray of int
        Positions of the channels: those of EOG, or else pairs of frontal ones.

    Raises
    ------
    ValueError
        When there are no such channels.
    """
    channels = montage.chs_info or []
    unit = np.eye(len(channels))
    eog = [i for i, ch in enumerate(channels) if channel_names.is_eog(ch)]
    if eog:
        return unit[eog], np.array(eog)
    good = [i for i, name in enumerate(montage.names) if name not in montage.bads]
    places = channel_names.match_channels(window_features.FRONTAL, [montage.names[i] for i in good])
    # Differences and sums of Fp1 and Fp2, and of F7 and F8, show eye movements and blinks.
    pairs = [
        (good[left], good[right])
        for left, right in zip(places[::2], places[1::2], strict=True)
        if left is not None and right is not None
    ]
    if not pairs:
        listing = checks.format_list(montage.names, max_items=8) or "none with a name"
        raise ValueError(
            "Eye movements cannot be estimated: there is no EOG channel and no pair of frontal "
            f"ones, Fp1 and Fp2 or F7 and F8. The channels are {listing}. Keep such channels when "
            "you prepare the recordings."
        )
    rows = [row for a, b in pairs for row in (unit[a] - unit[b], unit[a] + unit[b])]
    return np.array(rows), np.array(sum(pairs, ()))
