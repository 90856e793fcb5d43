"""Channel attention as maps of the scalp."""

from __future__ import annotations

from collections.abc import Sequence

import mne
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars._common.checks import checked
from braindecode_pars._common.tables import numbers_of
from braindecode_pars.plotting.style import axes_for

#: Interpolation needs an area, and two electrodes span only a line.
MIN_ELECTRODES = 3


@checked()
def spatial_attention(
    weights: ArrayLike, info: mne.Info, axes: Sequence[Axes] | Axes | None = None
) -> np.ndarray:
    """Draw the attention to each channel on the scalp, with one map for each head.

    Channels that are not EEG or have no position, such as bipolar channels, cannot be drawn. Their
    names are listed below the maps.

    Parameters
    ----------
    weights : ndarray, shape (n_chans,) or (n_heads, n_chans)
        Attention weights in the order of the channels of ``info``, from
        :meth:`PARSNet.channel_attention <braindecode_pars.PARSNet.channel_attention>`: the weights
        of one window, or their mean over windows.
    info : mne.Info
        Channels, with a montage.
    axes : sequence of Axes, one per head | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    ndarray of Axes, shape (n_heads,)
        Maps of the heads. All maps share one colour scale that starts at zero. If the weights of
        every head sum to one, a line in the colour bar marks uniform attention to all channels.

    Raises
    ------
    TypeError
        If ``info`` is not an mne.Info.
    ValueError
        If the numbers of channels differ, a weight is not finite, or fewer than three channels
        have a position.

    Examples
    --------
    Synthetic weights:

    .. plot::
        :include-source:
        :alt: Two heads from above; the attention of one is highest at the back, of the other at
            the front.

        >>> import mne
        >>> import numpy as np
        >>> from braindecode_pars import plotting
        >>> from braindecode_pars._common.channel_names import template_montage
        >>> names = "Fp1 Fp2 F3 Fz F4 C3 Cz C4 P3 Pz P4 O1 O2".split()
        >>> info = mne.create_info(names, 200.0, "eeg")
        >>> info = info.set_montage(template_montage())
        >>> weights = np.random.default_rng(0).dirichlet(np.ones(13), size=2)
        >>> axes = plotting.spatial_attention(weights, info)

    >>> [ax.get_title() for ax in axes]
    ['head 1', 'head 2']
    """
    heads = np.atleast_2d(numbers_of("weights", weights))  # (n_chans,) -> (1, n_chans)
    if heads.ndim != 2 or heads.shape[1] != len(info.ch_names):
        raise ValueError(
            f"weights have shape {np.shape(weights)} and info has {len(info.ch_names)} channels; "
            "pass one weight for each channel, (n_chans,) or (n_heads, n_chans)."
        )
    if not np.isfinite(heads).all():
        raise ValueError("weights contain NaN or infinite values; pass finite weights.")
    # MNE stores NaN or zeros for an unknown position.
    positions = np.array([ch["loc"][:3] for ch in info["chs"]], dtype=float)
    is_placed = np.isfinite(positions).all(axis=1) & positions.any(axis=1)
    drawn = [i for i in mne.pick_types(info, eeg=True, exclude=()) if is_placed[i]]
    not_drawn = ", ".join(name for i, name in enumerate(info.ch_names) if i not in drawn)
    if len(drawn) < MIN_ELECTRODES:
        raise ValueError(
            f"Only {len(drawn)} of {len(info.ch_names)} channels are EEG with a position; a map "
            f"needs {MIN_ELECTRODES}. Set a montage, raw.set_montage(...), for {not_drawn}."
        )

    # One map for each head, on the same colour scale
    panels = _axes_of_heads(axes, len(heads))
    located = mne.pick_info(info, drawn)
    limits = min(0.0, heads.min()), heads.max()
    for number, (ax, head) in enumerate(zip(panels, heads, strict=True), start=1):
        image, _ = mne.viz.plot_topomap(
            head[drawn], located, axes=ax, cmap="cividis", vlim=limits, contours=0, show=False
        )
        if np.ndim(weights) == 2:
            ax.set_title(f"head {number}")
    # Colour bar, with a line at uniform attention
    bar = panels[0].figure.colorbar(image, ax=list(panels), label="attention", shrink=0.7)
    if np.allclose(heads.sum(axis=1), 1, atol=1e-3):
        bar.ax.axhline(1 / heads.shape[1], color="white", lw=1.5)
        bar.set_label("attention (line: uniform)")
    if not_drawn:
        panels[0].figure.supxlabel(f"not drawn: {not_drawn}", fontsize="small")
    return panels


def _axes_of_heads(axes: Sequence[Axes] | Axes | None, n_heads: int) -> np.ndarray:
    """Return one Axes for each head, of a new figure with at most four columns if None is given."""
    if axes is not None:
        return axes_for(axes, 1, n_heads, (0, 0))
    n_columns = min(n_heads, 4)
    n_rows = -(-n_heads // n_columns)
    panels = axes_for(None, n_rows, n_columns, (1.2 + 2.4 * n_columns, 0.5 + 2.5 * n_rows))
    for ax in panels[n_heads:]:  # the empty panels of the last row
        ax.remove()
    return panels[:n_heads]
