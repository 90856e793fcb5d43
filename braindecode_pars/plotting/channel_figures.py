"""Figures of features: embedded windows as points, and channel attention as maps of the scalp."""

from __future__ import annotations

from collections.abc import Sequence

import mne
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars._common.checks import checked
from braindecode_pars._common.tables import numbers_of
from braindecode_pars.plotting.class_figures import labels_of
from braindecode_pars.plotting.style import N_STYLES, axes_for, series_style


@checked()
def embedding(points: ArrayLike, labels: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw one point for each window, with a colour and a marker for each label or subject.

    Parameters
    ----------
    points : ndarray, shape (n_windows, 2)
        Embeddings projected to two dimensions, for example by
        :class:`sklearn.decomposition.PCA`.
    labels : array-like, shape (n_windows,)
        Labels or subjects, at most 70 different values.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with the points and a legend at the right.

    Raises
    ------
    ValueError
        If the points are not two-dimensional, the lengths differ, there are no points, or there are
        more than 70 different labels.

    Examples
    --------
    Synthetic points:

    .. plot::
        :include-source:
        :alt: Dots of three sleep stages in two dimensions; N3, N2 and W form three clouds.

        >>> import numpy as np
        >>> from braindecode_pars import plotting
        >>> labels = np.repeat(["W", "N2", "N3"], 60)
        >>> centres = np.repeat([[0, 0], [2, 1], [3, 3]], 60, axis=0)
        >>> rng = np.random.default_rng(0)
        >>> points = centres + 0.6 * rng.standard_normal((180, 2))
        >>> ax = plotting.embedding(points, labels)

    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['N2', 'N3', 'W']
    """
    xy = numbers_of("points", points)
    if xy.ndim != 2 or xy.shape[1] != 2 or not len(xy):
        raise ValueError(
            f"points have shape {xy.shape}; pass two coordinates per window, (n_windows, 2), "
            "for example sklearn.decomposition.PCA(2).fit_transform(embeddings)."
        )
    codes, values = pd.factorize(
        np.asarray(labels_of("labels", labels)), sort=True, use_na_sentinel=False
    )
    if len(xy) != len(codes):
        raise ValueError(f"There are {len(xy)} points and {len(codes)} labels.")
    if len(values) > N_STYLES:
        raise ValueError(
            f"There are {len(values)} different labels, but only {N_STYLES} different markers and "
            "colours. Select some of the labels, or use labels with fewer values."
        )

    # One series for each label; the legend has at most 18 rows.
    n_columns = 1 + (len(values) - 1) // 18
    [ax] = axes_for(ax, 1, 1, (5.2 + 0.7 * n_columns, 4.4))
    size = 26 if len(xy) < 300 else 12
    for number, value in enumerate(values):
        style = series_style(number)
        style.pop("linestyle")
        x, y = xy[codes == number].T
        ax.scatter(x, y, s=size, alpha=0.75, lw=0, label=str(value), **style)
    ax.legend(
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1, 1),
        ncols=n_columns,
        markerscale=1.5,
        handletextpad=0.2,
        columnspacing=0.8,
    )
    ax.set(xticks=[], yticks=[], xlabel="dimension 1", ylabel="dimension 2")
    return ax


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
