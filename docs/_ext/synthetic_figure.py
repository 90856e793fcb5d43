"""Figure of synthetic signals, for the page on pretrained encoders."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from braindecode_pars.datasets.synthetic_signals import drifts, noise, pulses, rhythms
from braindecode_pars.plotting.style import series_style

__all__ = ["synthetic_signals"]

SFREQ, SECONDS, BAND = 128, 5, (0.5, 45)
#: Exponent and knee of each signal; signals of the spectrum of each.
NOISE, N_SIGNALS = {"0": (0, 0), "1": (1, 0), "2": (2, 0), "3": (3, 0), "3, knee 8 Hz": (3, 8)}, 400


def synthetic_signals() -> Figure:
    """Draw a signal and the mean spectrum of each exponent, and the other parts below."""
    rng = np.random.default_rng(2)
    n_times = SFREQ * SECONDS
    t = np.arange(n_times) / SFREQ
    figure, axes = plt.subplots(
        2, 2, figsize=(9, 6.2), height_ratios=[5, 3], width_ratios=[3, 2], layout="constrained"
    )
    for number, (name, (exponent, knee)) in enumerate(NOISE.items()):
        given = (np.full(N_SIGNALS, float(value)) for value in (exponent, knee))
        x = noise(n_times, SFREQ, *given, BAND, rng)
        color = series_style(number)["color"]
        axes[0, 0].plot(t, x[0] - 6 * number, color=color, lw=0.9)
        f, power = np.fft.rfftfreq(n_times, 1 / SFREQ), (np.abs(np.fft.rfft(x)) ** 2).mean(0)
        inside = (f >= BAND[0]) & (f <= BAND[1])
        style = dict(color=color, linestyle=series_style(number)["linestyle"])
        axes[0, 1].loglog(f[inside], 2 * power[inside] / n_times / SFREQ, label=name, **style)
    axes[0, 0].set_yticks(-6 * np.arange(len(NOISE)), NOISE)
    axes[0, 0].set(title="noise", ylabel="exponent")
    axes[0, 1].set(title="spectra", xlabel="frequency (Hz)", ylabel="power (SD² / Hz)")
    axes[0, 1].set_xticks([0.5, 1, 2, 5, 10, 20, 45], ["0.5", "1", "2", "5", "10", "20", "45"])
    axes[0, 1].minorticks_off()
    axes[0, 1].legend(title="exponent", frameon=False)

    one = np.ones(1)
    parts = {
        "rhythm": rhythms(n_times, SFREQ, 3 * one, 10 * one, 0.4 * one, 0 * one, 3 * one),
        "drift": drifts(n_times, SFREQ, 3 * one, 0.2 * one, one),
        "pulse": pulses(n_times, SFREQ, 6 * one, 2 * one, 0.15 * one),
    }
    base = noise(n_times, SFREQ, one, 0 * one, BAND, rng)
    for number, part in enumerate(parts.values()):
        style = dict(color=series_style(number)["color"], lw=0.9)
        axes[1, 0].plot(t, part[0] - 10 * number, **style)
        axes[1, 1].plot(t, (base + part)[0] - 10 * number, **style)
    axes[1, 0].set_yticks(-10 * np.arange(len(parts)), parts)
    axes[1, 0].set(title="the parts that can be added", xlabel="time (s)")
    axes[1, 1].set(title="with noise of exponent 1", xlabel="time (s)", yticks=[])
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure
