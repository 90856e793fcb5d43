"""Figure of synthetic signals, for the page on pretrained encoders."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from braindecode_pars.datasets.synthetic_signals import noise
from braindecode_pars.plotting.style import series_style

__all__ = ["synthetic_signals"]

SFREQ, SECONDS, BAND = 128, 5, (0.5, 45)
#: Exponent and knee of each signal; signals of the spectrum of each.
NOISE, N_SIGNALS = {"0": (0, 0), "1": (1, 0), "2": (2, 0), "3": (3, 0), "3, knee 8 Hz": (3, 8)}, 400


def synthetic_signals() -> Figure:
    """Draw a signal and the mean spectrum of each exponent."""
    rng = np.random.default_rng(2)
    n_times = SFREQ * SECONDS
    t = np.arange(n_times) / SFREQ
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9, 3.9), width_ratios=[3, 2], layout="constrained"
    )
    for number, (name, (exponent, knee)) in enumerate(NOISE.items()):
        given = (np.full(N_SIGNALS, float(value)) for value in (exponent, knee))
        x = noise(n_times, SFREQ, *given, BAND, rng)
        color = series_style(number)["color"]
        left.plot(t, x[0] - 6 * number, color=color, lw=0.9)
        f, power = np.fft.rfftfreq(n_times, 1 / SFREQ), (np.abs(np.fft.rfft(x)) ** 2).mean(0)
        inside = (f >= BAND[0]) & (f <= BAND[1])
        style = dict(color=color, linestyle=series_style(number)["linestyle"])
        right.loglog(f[inside], 2 * power[inside] / n_times / SFREQ, label=name, **style)
    left.set_yticks(-6 * np.arange(len(NOISE)), NOISE)
    left.set(title="noise", xlabel="time (s)", ylabel="exponent")
    right.set(title="spectra", xlabel="frequency (Hz)", ylabel="power (SD² / Hz)")
    right.set_xticks([0.5, 1, 2, 5, 10, 20, 45], ["0.5", "1", "2", "5", "10", "20", "45"])
    right.minorticks_off()
    right.legend(title="exponent", frameon=False)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure
