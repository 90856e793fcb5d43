"""Where on the scalp a model looks."""

from __future__ import annotations

from collections.abc import Sequence

import mne
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._style import axes_for

__all__ = ["spatial_attention"]

#: Fewer electrodes span no area to interpolate over.
FEWEST = 3


def spatial_attention(
    weights: ArrayLike, info: mne.Info, axes: Sequence[Axes] | None = None
) -> np.ndarray:
    """Attention to each channel on the scalp, one map for each head.

    Channels that are no EEG or have no position, such as bipolar ones, cannot be drawn; they are
    named below the maps.

    Parameters
    ----------
    weights : ndarray, shape (n_chans,) or (n_heads, n_chans)
        In the order of the channels of ``info``; those of one window, or their mean over windows,
        from :meth:`PARSNet.channel_attention <braindecode_pars.PARSNet.channel_attention>`.
    info : mne.Info
        Of the channels, with a montage.
    axes : one Axes a head | None
        Made when not given.

    Returns
    -------
    ndarray of Axes, shape (n_heads,)
        All maps share one colour scale from zero; the line in the colour bar is attention spread
        evenly over all channels, where the weights of every head sum to one.

    Raises
    ------
    TypeError
        If ``info`` is no mne.Info.
    ValueError
        If the numbers of channels differ, a weight is not finite, or fewer than three channels
        have a position.

    Examples
    --------
    Made-up weights:

    .. plot::
        :include-source:

        >>> import mne
        >>> import numpy as np
        >>> from braindecode_pars import plotting
        >>> from braindecode_pars.electrodes import template_montage
        >>> names = "Fp1 Fp2 F3 Fz F4 C3 Cz C4 P3 Pz P4 O1 O2".split()
        >>> info = mne.create_info(names, 200.0, "eeg")
        >>> info = info.set_montage(template_montage())
        >>> weights = np.random.default_rng(0).dirichlet(np.ones(13), size=2)
        >>> axes = plotting.spatial_attention(weights, info)

    >>> [ax.get_title() for ax in axes]
    ['head 1', 'head 2']
    """
    if not isinstance(info, mne.Info):
        raise TypeError(
            f"info is a {type(info).__name__}; give the mne.Info of the recording, such as "
            "raw.info."
        )
    heads = np.atleast_2d(np.asarray(weights, dtype=float))
    if heads.ndim != 2 or heads.shape[1] != len(info.ch_names):
        raise ValueError(
            f"weights have shape {np.shape(weights)} and info has {len(info.ch_names)} channels; "
            "accepted is one weight a channel, (n_chans,) or (n_heads, n_chans)."
        )
    if not np.isfinite(heads).all():
        raise ValueError("weights hold values that are not finite; attention is from 0 to 1.")
    drawn = [i for i, ch in enumerate(info["chs"]) if _is_on_the_scalp(ch)]
    left_out = [name for i, name in enumerate(info.ch_names) if i not in drawn]
    if len(drawn) < FEWEST:
        raise ValueError(
            f"Only {len(drawn)} of {len(info.ch_names)} channels are EEG with a position, a map "
            f"needs {FEWEST}; without are {', '.join(left_out)}. Set a montage first: "
            "raw.set_montage(...)."
        )

    n_heads = len(heads)
    n_columns = min(n_heads, 4)
    n_rows = -(-n_heads // n_columns)
    spare = axes is None and n_rows * n_columns - n_heads
    if axes is None:
        size = 1.2 + 2.4 * n_columns, 0.5 + 2.5 * n_rows
        axes = axes_for(None, n_rows, n_columns, size)
        for ax in axes[n_heads:]:
            ax.remove()
        axes = axes[: len(axes) - spare]
    else:
        axes = axes_for(axes, 1, n_heads, (0, 0))
    located = mne.pick_info(info, drawn)
    limits = min(0.0, heads.min()), heads.max()
    for number, (ax, head) in enumerate(zip(axes, heads, strict=True), start=1):
        image, _ = mne.viz.plot_topomap(
            head[drawn], located, axes=ax, cmap="cividis", vlim=limits, contours=0, show=False
        )
        if np.ndim(weights) == 2:
            ax.set_title(f"head {number}")
    bar = axes[0].figure.colorbar(image, ax=list(axes), label="attention", shrink=0.7)
    if np.allclose(heads.sum(axis=1), 1, atol=1e-3):
        bar.ax.axhline(1 / heads.shape[1], color="white", lw=1.5)
        bar.set_label("attention (line: if even)")
    if left_out:
        axes[-1].figure.supxlabel(f"not drawn: {', '.join(left_out)}", fontsize="small")
    return axes


def _is_on_the_scalp(ch: dict) -> bool:
    """Whether a channel is EEG and its position is known; MNE writes NaN or zeros where not."""
    position = np.asarray(ch["loc"][:3], dtype=float)
    is_eeg = ch["kind"] == mne.io.constants.FIFF.FIFFV_EEG_CH
    return bool(is_eeg and np.isfinite(position).all() and position.any())
