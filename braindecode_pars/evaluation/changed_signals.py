"""Control signals: high-pass filtering, detrending, EOG regression, phase randomization, and more.

A control analysis repeats a comparison of methods on control signals, from which one signal
property was removed, to find out whether the result depends on this property. Each function of this
module removes one property from arrays of shape (n, n_chans, n_times). :class:`ControlSignals`
applies these functions to windows.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import Any, Self

import numpy as np
from scipy import fft, signal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from braindecode_pars._common import channel_names, checks, names
from braindecode_pars.baselines import window_features
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.windows import convert, table

#: Order of the Butterworth filter. It is applied forward and backward.
ORDER = 4
#: Standard deviation of each channel of an amplitude-normalized window, in volts.
AMPLITUDE = 1e-5


def high_passed(X: np.ndarray, sfreq: float, edge: float = 7.0) -> np.ndarray:
    r"""Remove low-frequency activity with a zero-phase Butterworth high-pass filter.

    The filter of order :math:`n = 4` is applied forward and backward. The amplitude of a sine with
    frequency :math:`f` is multiplied by

    .. math::
        |H(f)|^2 = \left(1 + \left(\frac{\tan(\pi f_c / f_s)}{\tan(\pi f / f_s)}\right)^{2n}
        \right)^{-1}

    which is 0.5 at :math:`f_c`, and 0.0002 at a third of :math:`f_c`. Before filtering, both ends
    of the signal are padded with at most one second of its odd reflection. In a short window, some
    low-frequency activity therefore remains near both ends, over about one period of the frequency
    :math:`f_c`. If possible, filter the recording before windowing.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows, or whole recordings.
    sfreq : float
        Sampling rate :math:`f_s` in Hz.
    edge : float
        Lower edge :math:`f_c` of the passband in Hz, below half of the sampling rate.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        Filtered signals.

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
    r"""Subtract the linear trend from each channel of each window or patch.

    A patch is a segment of ``patch_size`` samples. Its samples :math:`x_t` become
    :math:`x_t - a - b t`, where :math:`a` and :math:`b` minimize :math:`\sum_t (x_t - a - b t)^2`.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    patch_size : int | None
        Length of a patch in samples; the last patch may be shorter. If None, one linear trend is
        subtracted from the whole window.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        Windows without linear trends.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import detrended
    >>> # A patch of 3 samples and an incomplete patch of 1 sample:
    >>> detrended(np.array([[[0.0, 1.0, 2.0, 6.0]]]), patch_size=3).round(6).tolist()
    [[[0.0, 0.0, 0.0, 0.0]]]
    """
    n_times = X.shape[-1]
    breaks = np.arange(patch_size or n_times, n_times, patch_size or n_times)
    return signal.detrend(X, axis=-1, bp=breaks)


def eye_coefficients(X: np.ndarray, eyes: np.ndarray) -> np.ndarray:
    r"""Estimate regression coefficients of the EOG for each channel by least squares.

    Let :math:`\tilde x` and :math:`\tilde e` be the signals of the channels and of the EOG after
    subtracting their means over all windows. The coefficients are

    .. math::
        B = \Big(\sum_{i,t} \tilde x_{it} \tilde e_{it}^\top\Big)
            \Big(\sum_{i,t} \tilde e_{it} \tilde e_{it}^\top\Big)^{-1} .

    For a single recording, these are the coefficients of
    :class:`mne.preprocessing.EOGRegression`.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows or recordings of one subject.
    eyes : ndarray, shape (n, n_eyes, n_times)
        EOG signals at the same times.

    Returns
    -------
    ndarray, shape (n_chans, n_eyes)
        Matrix :math:`B` of regression coefficients.

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
    # The pseudo-inverse also works if an EOG signal is flat, or equal to another EOG signal.
    return x @ e.T @ np.linalg.pinv(e @ e.T, hermitian=True)


def without_eyes(
    X: np.ndarray, eyes: np.ndarray, coefficients: np.ndarray, mean: np.ndarray
) -> np.ndarray:
    r"""Remove ocular activity by EOG regression: :math:`x_{it} - B (e_{it} - \bar e)`.

    Estimate the coefficients :math:`B` for each subject, not for each window, for two reasons. The
    propagation of eye movements over the scalp is a property of head and electrodes, which does not
    change between windows. Coefficients estimated from a short window would also remove brain
    activity that correlates with the EOG in this window.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    eyes : ndarray, shape (n, n_eyes, n_times)
        EOG signals at the same times.
    coefficients : ndarray, shape (n_chans, n_eyes)
        Matrix :math:`B`, see :func:`eye_coefficients`.
    mean : ndarray, shape (n_eyes, 1)
        Mean :math:`\bar e` of the EOG over all windows of the subject.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        Windows after EOG regression.

    References
    ----------
    Gratton et al. 1983, A new method for off-line removal of ocular artifact,
    Electroencephalography and Clinical Neurophysiology 55(4).

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import eye_coefficients, without_eyes
    >>> brain, eyes = np.random.default_rng(0).normal(size=(2, 1, 1, 5000))
    >>> mixed = brain + 3 * eyes
    >>> mean = eyes.mean(axis=(0, 2))[:, None]
    >>> changed = without_eyes(mixed, eyes, eye_coefficients(mixed, eyes), mean)
    >>> bool(np.abs(changed - brain).max() < 0.2)
    True
    """
    return X - coefficients @ (eyes - mean)


def random_phases(X: np.ndarray, random_state: int = 0) -> np.ndarray:
    r"""Randomize the phases of the Fourier coefficients of each window (phase-randomized signals).

    .. math::
        \hat x_{ck} \mapsto e^{\mathrm{i} \varphi_k} \hat x_{ck}, \qquad
        \varphi_k \sim \mathcal U(0, 2 \pi)

    The random phase :math:`\varphi_k` of frequency :math:`k` is the same for all channels :math:`c`
    of a window. Power spectra, cross-spectra and the covariance of the channels are therefore
    unchanged, whereas the waveform, the timing and the sign of slow shifts are lost. The real
    coefficients, at 0 Hz and at half of the sampling rate, are multiplied by a random sign. The
    random numbers depend on the samples of the window and on ``random_state``, but not on other
    windows.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    random_state : int
        Seed.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        Phase-randomized windows.

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
    r"""Remove 1/f: divide the spectrum of each channel by its aperiodic component.

    The aperiodic component is a line in the log-log spectrum, fitted with the Theil-Sen estimator
    for each channel of each window:

    .. math::
        \log P(f) \approx c - \chi \log f , \qquad 2 \le f \le 40 \text{ Hz and below } f_s / 2,

    where :math:`P` is the power spectral density, estimated with Welch's method in segments of one
    second. The exponent :math:`\chi` is the same as in
    :func:`~braindecode_pars.pretext.features.aperiodic`. The fit is robust to rhythms that occupy
    less than a third of the frequency range. The coefficients :math:`y_k` of the discrete cosine
    transform of the channel, with frequency :math:`f_k`, become

    .. math::
        y_k \mapsto y_k \, a \sqrt{2 / f_s} \, \bigl(e^{c} f_k^{-\chi}\bigr)^{-1/2} ,

    which does not change phases. The cosine transform implicitly extends a window by its mirror
    image, so that there are no steps at the ends of the window. A signal without rhythms becomes
    white noise with the standard deviation :math:`a` = 10 µV. The power of a rhythm relative to the
    aperiodic component is unchanged. The mean of the window is removed.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows of one second or more.
    sfreq : float
        Sampling rate :math:`f_s` in Hz.
    put_back : bool
        Whether to restore the mean and the aperiodic component afterwards. Scores on the restored
        signals show the effect of the procedure itself (control ``"sham"``).

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        Signals without the aperiodic component (flat channels become zero) or, with ``put_back``,
        signals with the restored component.

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
    is_fitted = (frequencies >= 2) & (frequencies <= 40) & (frequencies < sfreq / 2)
    # The smallest positive number avoids log(0) for flat channels.
    log_f = np.log(frequencies[is_fitted])
    log_p = np.log(density[..., is_fitted] + np.finfo(float).tiny)
    lower, higher = np.triu_indices(len(log_f), 1)
    slopes = (log_p[..., higher] - log_p[..., lower]) / (log_f[higher] - log_f[lower])
    slope = np.median(slopes, axis=-1, keepdims=True)
    offset = np.median(log_p - slope * log_f, axis=-1, keepdims=True)
    steps = np.maximum(np.arange(X.shape[-1]), 1)  # the mean was subtracted, so avoid log(0)
    line = np.exp((offset + slope * np.log(steps * sfreq / (2 * X.shape[-1]))) / 2)
    line /= AMPLITUDE * np.sqrt(2 / sfreq)
    white = fft.idct(fft.dct(X - mean, norm="ortho") / line, norm="ortho")
    return mean + fft.idct(fft.dct(white, norm="ortho") * line, norm="ortho") if put_back else white


def equal_amplitudes(X: np.ndarray, amplitude: float = AMPLITUDE) -> np.ndarray:
    r"""Normalize the amplitude of each channel of each window: :math:`x_{ct} a / s_c`.

    Here :math:`s_c` is the standard deviation of channel :math:`c`. The total power is lost. The
    proportions of power at different frequencies in a channel, such as relative band power, are
    unchanged.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    amplitude : float
        Standard deviation :math:`a` of all channels after normalization, by default 10 µV.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        Normalized windows. Flat channels become zero.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import equal_amplitudes
    >>> equal_amplitudes(np.array([[[1.0, -1.0], [5.0, -5.0], [2.0, 2.0]]]), amplitude=1.0).tolist()
    [[[1.0, -1.0], [1.0, -1.0], [0.0, 0.0]]]
    """
    sd = X.std(axis=-1, keepdims=True)
    return X * np.divide(amplitude, sd, out=np.zeros_like(sd), where=sd > 0)


def shuffled_patches(X: np.ndarray, patch_size: int, random_state: int = 0) -> np.ndarray:
    r"""Shuffle the patches of each window in time (time-shuffled signals).

    A patch is a segment of ``patch_size`` samples. Patch :math:`p` is replaced with patch
    :math:`\pi(p)` of the same window, where all permutations :math:`\pi` are equally likely. The
    permutation is the same for all channels of a window. Samples after the last complete patch are
    not moved. Steps at the borders of patches add power at all frequencies. As in
    :func:`random_phases`, the random numbers depend on the samples of the window and on
    ``random_state``.

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
        Windows with shuffled patches.

    Raises
    ------
    ValueError
        If a window is shorter than two patches.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import shuffled_patches
    >>> # Three patches; the last sample is in no patch.
    >>> shuffled_patches(np.arange(7.0)[None, None], patch_size=2).tolist()
    [[[4.0, 5.0, 2.0, 3.0, 0.0, 1.0, 6.0]]]
    """
    _, n_chans, n_times = X.shape
    n_patches = n_times // patch_size
    if n_patches < 2:
        raise ValueError(
            "Shuffling patches requires windows of at least 2 patches, but the windows have "
            f"{n_times} samples, and a patch has {patch_size} samples. Use a smaller "
            "patch_seconds."
        )
    shuffled, stop = X.copy(), n_patches * patch_size
    for window, rng in zip(shuffled, _generators(X, random_state), strict=True):
        patches = window[:, :stop].reshape(n_chans, n_patches, patch_size)
        window[:, :stop] = patches[:, rng.permutation(n_patches)].reshape(n_chans, stop)
    return shuffled


def permuted_labels(y: np.ndarray, subjects: np.ndarray, random_state: int = 0) -> np.ndarray:
    r"""Permute labels within each subject: :math:`y_i` becomes :math:`y_{\pi_{s(i)}(i)}`.

    Here :math:`s(i)` is the subject of window :math:`i`, and :math:`\pi_s` is a random permutation
    of the windows of subject :math:`s`.

    The number of windows per class and subject is unchanged, but the labels are independent of the
    signals. A score that differs significantly from chance level then indicates data leakage.

    Parameters
    ----------
    y, subjects : ndarray, shape (n,)
        Labels and subjects.
    random_state : int
        Seed.

    Returns
    -------
    ndarray, shape (n,)
        Permuted labels.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import permuted_labels
    >>> permuted_labels(np.array([0, 0, 1, 1, 2, 3]), np.array([1, 1, 1, 1, 2, 2])).tolist()
    [1, 0, 0, 1, 3, 2]
    """
    rng = np.random.default_rng(random_state)
    permuted = np.asarray(y).copy()
    subject_numbers, _ = table.factorize_rows([np.asarray(subjects)])
    for number in range(max(subject_numbers) + 1):
        subject_rows = np.flatnonzero(subject_numbers == number)
        permuted[subject_rows] = permuted[rng.permutation(subject_rows)]
    return permuted


def _generators(X: np.ndarray, random_state: int) -> Iterator[np.random.Generator]:
    """Yield one random generator per window, seeded by the samples of the window and the seed."""
    for window in X:
        samples = np.ascontiguousarray(window, dtype=np.float32)
        digest = hashlib.blake2b(samples.tobytes(), digest_size=8).digest()
        yield np.random.default_rng([random_state, int.from_bytes(digest)])


# Transformer of windows --------------------------------------------------------------------------

#: Names of the controls that change signals, which are values of ``ControlSignals.control``.
CHANGES = tuple(name for name in names.CONTROLS if name != "labels")
#: Name of the control that removes and restores 1/f, to measure the effect of the procedure of the
#: control "aperiodic" itself.
SHAM = "sham"
#: Short description of the windows of each control, used in figures and sentences.
DESCRIPTIONS = {name: control.description for name, control in names.CONTROLS.items()}
DESCRIPTIONS[SHAM] = "1/f removed and restored"


@dataclass(eq=False, repr=False)
class ControlSignals(TransformerMixin, BaseEstimator):
    """Transform windows into control signals, from which one signal property was removed.

    If a difference between methods disappears on control signals, it depends on the removed
    property. Use this transformer as the first step of a pipeline with estimators of this package.

    Parameters
    ----------
    control : str
        Kind of control signals:

        - ``"slow"``: high-pass filtered at ``edge``. If the recording is available, as for
          braindecode windows of a ``Raw``, the recording is filtered before windowing. Otherwise,
          each window is filtered separately, which leaves some low-frequency activity near both
          ends, over about one period of the frequency ``edge``;
        - ``"detrended"``: linear trend subtracted from each window, or from each patch of
          ``patch_seconds``;
        - ``"eyes"``: EOG regressed out. The EOG channels must be channels of the windows. Without
          EOG channels, the difference and the sum of each available pair of frontal channels (Fp1
          and Fp2, F7 and F8) are used instead. At least one pair is required. Frontal channels also
          record brain activity, so some brain activity is removed as well. The EOG or frontal
          channels themselves are set to zero. The regression coefficients are estimated for each
          subject, from whole recordings if they are available, otherwise from the windows of the
          subject in the same call;
        - ``"phase"``: phase-randomized, which removes waveform and timing;
        - ``"aperiodic"``: slope and offset of 1/f removed from the spectrum of each channel; the
          offset includes the amplitude;
        - ``"sham"``: 1/f removed and restored, to measure the effect of the procedure of
          ``"aperiodic"`` itself;
        - ``"amplitude"``: amplitude-normalized: each channel of each window is scaled to the same
          standard deviation;
        - ``"order"``: time-shuffled: each window is cut into patches of ``patch_seconds``, which
          are put in random order.

        The equations are in the functions of :mod:`~braindecode_pars.evaluation.changed_signals`.
    edge : float
        High-pass frequency of ``"slow"``, in Hz.
    patch_seconds : float | None
        Length of a patch in seconds. If None, a patch is the whole window for ``"detrended"``, and
        1 s long for ``"order"``.
    sfreq : float | None
        Sampling rate in Hz, for windows without a sampling rate, such as arrays.
    random_state : int
        Seed of ``"phase"`` and ``"order"``. The random numbers of a window do not depend on other
        windows.

    See Also
    --------
    controls : Repeat a comparison of methods on each kind of control signals.

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
        """Check the parameters. The transformer has no fitted state.

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
            If a parameter has a wrong type or is out of range.
        """
        windows_estimator.check_estimator(self)
        return self

    def transform(self, X: Any) -> table.Windows:
        """Compute the control signals.

        Parameters
        ----------
        X : windows
            Windows in any supported format.

        Returns
        -------
        Windows
            Control signals, with the labels and subjects of ``X``. All samples are in memory.

        Raises
        ------
        TypeError, ValueError
            As in :meth:`fit`. Also if the control cannot be computed for these windows:

            - the sampling rate is required and unknown;
            - ``edge`` is not below half of the sampling rate;
            - a window is shorter than two patches;
            - windows have neither EOG channels nor a pair of frontal channels.
        """
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, sfreq=self.sfreq)
        windows.check_not_empty()
        changed = [window.astype(np.float32) for window in self._changed(windows)]
        # joblib shares a single array between processes, but copies a list of windows.
        have_one_shape = len({window.shape for window in changed}) == 1
        return windows.read_by(np.stack(changed) if have_one_shape else changed)

    def _changed(self, windows: table.Windows) -> Iterator[np.ndarray]:
        """Return an iterator over the changed windows, each of shape (n_chans, n_times)."""
        change: Callable[[np.ndarray], np.ndarray] = equal_amplitudes
        match self.control:
            case "slow":
                sfreq = window_features.known_rate(windows.sfreq)
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
    """Yield windows cut from the filtered recording or, without a recording, filtered windows."""

    @cache
    def changed(row: int) -> np.ndarray | None:
        signals = whole_recording(windows, row)
        return None if signals is None else change(signals[None])[0]

    positions = windows.table[["recording", "start", "stop"]].to_numpy().tolist()
    for window, (row, start, stop) in zip(windows, positions, strict=True):
        recording = changed(row)
        if recording is None:
            yield change(window[None].astype(float))[0]
        else:
            yield recording[:, start:stop]


def _without_eyes(windows: table.Windows) -> Iterator[np.ndarray]:
    """Yield windows with the EOG regressed out."""
    eyes = [eye_signals(montage) for montage in windows.montages]
    recordings = windows.table["recording"].to_numpy()
    subjects = recordings if windows.corpus_subjects is None else windows.corpus_subjects
    # One regression for each subject and montage
    numbers, _ = table.factorize_rows([subjects, windows.montage_numbers])

    @cache
    def fitted(number: int, montage: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.flatnonzero(numbers == number)
        recording_rows = dict.fromkeys(recordings[rows].tolist())
        segments: list[Any] = [whole_recording(windows, row) for row in recording_rows]
        if any(segment is None for segment in segments):
            segments = [windows[i].astype(float) for i in rows.tolist()]
        signals = np.concatenate(segments, axis=1)[None]
        eog = eyes[montage][0] @ signals
        return eye_coefficients(signals, eog), eog.mean(axis=(0, 2))[:, None]

    for window, number, montage in zip(windows, numbers, windows.montage_numbers, strict=True):
        matrix, eye_channels = eyes[montage]
        signals = window[None].astype(float)
        cleaned = without_eyes(signals, matrix @ signals, *fitted(number, montage))
        # Only rounding errors remain in the EOG channels, and the instance normalization of
        # encoders would amplify them.
        cleaned[:, eye_channels] = 0
        yield cleaned[0]


def whole_recording(windows: table.Windows, row: int) -> np.ndarray | None:
    """Return the whole recording from which windows were cut, if the windows are unmodified.

    Parameters
    ----------
    windows : Windows
        Windows.
    row : int
        Row of ``windows.recordings``.

    Returns
    -------
    ndarray, shape (n_chans, n_samples) | None
        Signals of the whole recording, with the channels of the windows. None for windows from
        arrays, Epochs and signal stores (``SignalStore``), which do not contain the recording, and
        for windows with a transform.
    """
    recording = windows.recordings.iloc[row]
    dataset: Any = getattr(recording["reader"], "source", None)
    raw = getattr(dataset, "raw", None)
    # Channels of type "misc" that contain targets are in the recording, but not in its windows.
    if raw is None or dataset.transform is not None or dataset.targets_from != "metadata":
        return None
    montage = recording["channels"]
    signals = raw.get_data()
    return signals if montage.rows is None else signals[montage.rows]


def eye_signals(montage: table.Montage) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix that maps the channels to EOG signals, and the indices of EOG channels.

    Parameters
    ----------
    montage : Montage
        Channels of windows.

    Returns
    -------
    matrix : ndarray, shape (n_eyes, n_chans)
        Each row defines one EOG signal: an EOG channel, or the difference or the sum of a frontal
        pair of channels.
    eye_channels : ndarray of int
        Indices of the EOG channels, or of the frontal channels if there are no EOG channels.

    Raises
    ------
    ValueError
        If there are neither EOG channels nor a pair of frontal channels.
    """
    channels = montage.chs_info or []
    unit = np.eye(len(channels))
    eog = [i for i, ch in enumerate(channels) if channel_names.is_eog(ch)]
    if eog:
        return unit[eog], np.array(eog)
    usable_names = ["" if name in montage.bads else name for name in montage.names]
    positions = channel_names.match_channels(window_features.FRONTAL, usable_names)
    # Differences and sums of Fp1 and Fp2, and of F7 and F8, show eye movements and blinks.
    candidates = zip(positions[::2], positions[1::2], strict=True)
    pairs = [pair for pair in candidates if None not in pair]
    if not pairs:
        listing = checks.format_list(montage.names, max_items=8) or "unnamed"
        raise ValueError(
            "Regressing out eye movements requires an EOG channel or a pair of frontal channels "
            f"(Fp1 and Fp2, or F7 and F8), but the channels are {listing}. Keep EOG or frontal "
            "channels in preprocessing."
        )
    rows = [row for a, b in pairs for row in (unit[a] - unit[b], unit[a] + unit[b])]
    return np.array(rows), np.array(sum(pairs, ()))
