"""Figures of a training: losses, shifts of patches, what features hold, and confused classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import sklearn.metrics
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars._common import tables
from braindecode_pars.plotting import style

#: Columns that identify a run.
RUN = ("method", "dataset", "subject", "n_train_subjects", "seed")
#: Columns of losses to draw, with label and line style.
Lines = dict[str, tuple[str, dict[str, Any]]]


def training_curves(history: pd.DataFrame, axes: Sequence[Axes] | Axes | None = None) -> np.ndarray:
    """Draw the losses of each training phase in a panel of its own.

    A phase with losses relative to chance, such as pretraining, is drawn with a line at 1 for the
    chance level. The losses of the parts of its task are thinner lines. Any other phase is drawn
    with its training and validation loss. Each run has a line of its own.

    Parameters
    ----------
    history : DataFrame
        Losses with one row per epoch: the ``history_`` of a
        :class:`~braindecode_pars.PARSClassifier`; several of them, joined with ``pandas.concat``
        after adding ``method`` and ``seed``. Required columns are ``phase``, ``epoch`` and
        ``train_loss``. Optional columns are ``valid_loss``,
        ``train_loss_relative``, ``train_loss_relative_NAME``, ``method``, and the columns that
        identify a run: ``dataset``, ``subject``, ``n_train_subjects`` and ``seed``.
    axes : sequence of Axes, one per phase | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    ndarray of Axes, shape (n_phases,)
        Panels, in the order of the phases.

    Raises
    ------
    TypeError
        If ``history`` is not a DataFrame.
    ValueError
        If ``history`` is empty, lacks a column, or has several rows for one epoch of a run.

    Examples
    --------
    Synthetic losses, with the columns of an estimator's ``history_``:

    .. plot::
        :include-source:
        :alt: Two panels: a pretraining loss that falls below chance, and training and validation
            loss of fine-tuning.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> epochs = np.arange(1, 31)
        >>> loss = 0.15 * np.exp(-epochs / 40)
        >>> pretraining = pd.DataFrame(dict(
        ...     phase="pretraining", epoch=epochs,
        ...     train_loss=loss, train_loss_relative=loss / 0.15,
        ... ))
        >>> fine_tuning = pd.DataFrame(dict(
        ...     phase="fine-tuning", epoch=epochs,
        ...     train_loss=1.6 * np.exp(-epochs / 15),
        ...     valid_loss=0.9 + 0.001 * (epochs - 15) ** 2,
        ... ))
        >>> axes = plotting.training_curves(pd.concat([pretraining, fine_tuning]))

    >>> [ax.get_title() for ax in axes]
    ['pretraining', 'fine-tuning']
    """
    tables.check_table(history, "history", ("phase", "epoch", "train_loss"))
    losses = [name for name in history if str(name).startswith(("train_loss", "valid_loss"))]
    history = tables.with_numbers(history, ["epoch", *losses])
    keys = [name for name in (*RUN, "phase", "epoch") if name in history]
    tables.check_once(history, "history", keys)
    if "method" not in history:
        history = history.assign(method="")
    phases, methods = (list(dict.fromkeys(history[name])) for name in ("phase", "method"))

    # With several methods, the legend is at the right, because it would cover the lines.
    is_several = len(methods) > 1
    panels = style.axes_for(axes, 1, len(phases), (1 + 4.2 * len(phases), 3.6))
    for ax, phase in zip(panels, phases, strict=True):
        rows = history[history["phase"] == phase]
        lines = _lines_of(rows, is_several)
        relative = tables.RELATIVE in lines
        rows = rows.dropna(subset=list(lines), how="all")
        shown = {name: n for n, name in enumerate(methods) if name in rows["method"].to_numpy()}
        for method, number in shown.items():
            _draw_runs(ax, rows[rows["method"] == method], lines, number)
        if relative:
            # Without a name, which the axis has, and which would cover lines
            ax.axhline(1, color=style.shade(0.25), lw=1, ls=":", zorder=1.5)
            ax.set_ylim(0, max(1.12, ax.get_ylim()[1]))
        ylabel = "loss" if len(lines) > 1 else "training loss"
        ylabel = "training loss relative to chance (dotted)" if relative else ylabel
        ax.set(xlabel="epoch", ylabel=ylabel)
        ax.set_title(str(phase), parse_math=False)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if drawn := style.named_artists(ax):
            where: dict[str, Any] = dict(loc="lower left" if relative else "best")
            if is_several:
                where = dict(loc="upper left", bbox_to_anchor=(1, 1))
            legend = style.named_legend(ax, drawn, handlelength=3, **where)
            if is_several and axes is None:
                style.make_room(legend)
        style.remove_frame(ax)
    return panels


def _lines_of(rows: pd.DataFrame, is_several: bool) -> Lines:
    """Return the losses of a phase to draw; with several methods, colors distinguish these."""
    drawn = rows.columns[rows.notna().any()]
    if tables.RELATIVE not in drawn:
        lines: Lines = {"train_loss": ("training", dict(linestyle="--", lw=1.2))}
        if "valid_loss" in drawn:
            lines["valid_loss"] = ("validation", dict(linestyle="-", lw=1.6))
        return lines
    # The whole task, and its parts
    lines = {tables.RELATIVE: ("whole task", dict(linestyle="-", lw=1.6))}
    parts = {name: part for name in drawn if (part := tables.part_of(str(name)))}
    for i, (name, part) in enumerate(parts.items()):
        look = dict(linestyle=style.LINES[1 + i % (len(style.LINES) - 1)], lw=1)
        color = {} if is_several else dict(color=style.series_style(i + 1)["color"])
        lines[name] = part, look | color
    return lines


def _draw_runs(ax: Axes, rows: pd.DataFrame, lines: Lines, number: int) -> None:
    """Draw a line for each run and loss of one method."""
    look = style.series_style(number)
    runs = [run for _, run in rows.groupby([name for name in RUN if name in rows], dropna=False)]
    for run in runs:
        run = run.sort_values("epoch")
        for column, (name, line) in lines.items():
            scored = run.dropna(subset=column)
            texts = rows["method"].iloc[0], name if len(lines) > 1 else ""
            ax.plot(
                scored["epoch"],
                scored[column],
                alpha=0.9 if len(runs) == 1 else 0.6,
                marker=look["marker"] if column == tables.RELATIVE else "",  # differs in gray print
                markevery=max(1, len(scored) // 6),
                markersize=4,
                label=", ".join(filter(None, texts)),
                **{"color": look["color"], **line},
            )


def shift_matrices(
    prediction: ArrayLike, target: ArrayLike, axes: Sequence[Axes] | None = None
) -> np.ndarray:
    r"""Draw the predicted and true relative time shifts of one window.

    The figure follows the paper's figure 7 (appendix A.5), "Relative Time Shift Reconstructions".
    It shows the prediction, the target and the absolute error as matrices, and the prediction
    against the target as a scatter plot. Rows and columns are in chronological order. The title
    has the loss, the mean squared error, and that of zeros, the best guess without the signal: a
    prediction of one gray has learned nothing yet.

    Parameters
    ----------
    prediction, target : ndarray, shape (n_masked, n_masked)
        Shifts :math:`(t_j - t_k) / T` in units of the window's length.
    axes : sequence of four Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    ndarray of Axes, shape (4,)
        Panels with the prediction, the target, the absolute error and the scatter plot.

    Raises
    ------
    ValueError
        If the shapes do not match.

    Examples
    --------
    Synthetic predictions for 32 patches:

    .. plot::
        :include-source:
        :alt: Three square maps, the predicted and true shifts of all pairs of patches and their
            error, and a scatter plot.

        >>> import numpy as np
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> starts = rng.integers(0, 5800, 32)
        >>> target = (starts[:, None] - starts) / 6000
        >>> prediction = 0.8 * target + 0.1 * rng.standard_normal((32, 32))
        >>> axes = plotting.shift_matrices(prediction, target)

    >>> starts = np.array([900, 100, 500])
    >>> target = (starts[:, None] - starts) / 1000
    >>> axes = plotting.shift_matrices(0.5 * target, target)
    >>> axes[1].images[0].get_array().round(1).tolist()
    [[0.0, -0.4, -0.8], [0.4, 0.0, -0.4], [0.8, 0.4, 0.0]]
    """
    arrays = [tables.numbers_of("prediction", prediction), tables.numbers_of("target", target)]
    shape = arrays[0].shape
    if shape != arrays[1].shape or len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"prediction has shape {shape} and target {arrays[1].shape}; pass both matrices of one "
            "window, (n_masked, n_masked)."
        )
    # A column of the target has the starts, up to a constant.
    order = np.argsort(arrays[1][:, :1].ravel(), kind="stable")
    prediction, target = (matrix[np.ix_(order, order)] for matrix in arrays)

    # Three matrices and a scatter plot
    panels = style.axes_for(axes, 2, 2, (8, 6))
    shift = "$(t_j - t_k) / T$"
    loss, chance = (np.mean(np.square(error)) for error in (prediction - target, target))
    title = f"prediction, loss {loss:.3f} (of zeros: {chance:.3f})"
    matrices = {
        title: (prediction, shift, dict(vmin=-1, vmax=1)),
        "target": (target, shift, dict(vmin=-1, vmax=1)),
        "absolute error": (np.abs(prediction - target), "$T$", dict(vmin=0)),
    }
    for ax, (name, (matrix, label, limits)) in zip(panels[:3], matrices.items(), strict=True):
        # The lightness of cividis increases evenly: the order of values is visible in gray print.
        image = ax.imshow(matrix, cmap="cividis", **limits)
        ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
        ax.set(title=name, xlabel="patch k, by time", ylabel="patch j, by time")
    panels[3].plot([-1, 1], [-1, 1], color=style.shade(0.6), lw=1, zorder=0)
    panels[3].scatter(target, prediction, s=5, color=style.COLORS[0], alpha=0.35, lw=0)
    panels[3].set(title=f"RMSE {np.sqrt(loss):.2f} T", xlabel="target", ylabel="prediction")
    panels[3].set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
    style.remove_frame(panels[3])
    return panels


# What features hold ------------------------------------------------------------------------------


# Classes -----------------------------------------------------------------------------------------


def confusion_matrix(
    true: ArrayLike,
    predicted: ArrayLike,
    class_names: style.ClassNames | None = None,
    *,
    order: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each true class was predicted as which class.

    A cell shows the percentage of the windows of its true class, and their number. Colors are the
    percentages, so that rare classes are as visible as frequent ones.

    Parameters
    ----------
    true, predicted : ndarray, shape (n_windows,)
        True and predicted labels. Windows in which one is None, NaN or -1 do not count. For labels
        of -1 and 1, -1 is a class if it has a name, or if it is predicted and there are no names.
    class_names : mapping of label to str | sequence of str | None
        Names of the labels, such as ``class_names_`` of a classifier, or the names of 0, 1, ....
        All of them are drawn. None uses the labels that occur.
    order : sequence of str | None
        Names of all classes from top to bottom. None means wake, REM, N1 to N3 if all names are
        those of sleep stages (:func:`~braindecode_pars.predictions.stage_of`), and otherwise the
        order of ``class_names``, or of sorted labels.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with true classes from top to bottom and predicted ones from left to right. The row of
        a class without windows is blank.

    Raises
    ------
    ValueError
        If the lengths differ, if there is no window with both labels, if a label has no name, or if
        ``order`` does not have each class once.

    Examples
    --------
    Simulated stages, and a prediction with N2 in a quarter of the windows:

    .. plot::
        :include-source:
        :alt: Five by five table of true and predicted sleep stages, with percentages and numbers
            of windows as blue squares.

        >>> import numpy as np
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.stages_of_a_night(720, rng)
        >>> predicted = np.where(rng.random(720) < 0.25, 2, true)
        >>> ax = plotting.confusion_matrix(true, predicted, datasets.simulated.STAGES)

    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['W', 'R', 'N1', 'N2', 'N3']
    """
    labels = [style.label_list("true", true), style.label_list("predicted", predicted)]
    if len(labels[0]) != len(labels[1]):
        raise ValueError(
            f"There are {len(labels[0])} true and {len(labels[1])} predicted labels; pass one of "
            "each for every window."
        )
    if class_names is None:
        occurring = {x for x in labels[0] + labels[1] if not pd.isna(x)}
        occurring -= {-1} - set(labels[1])
        class_names = {label: str(label) for label in sorted(occurring, key=style.by_number)}
    names = style.names_by_label(class_names)
    order = style.in_figure_order(list(dict.fromkeys(names.values())), order)
    classes = [style.entries(values, names) for values in labels]
    pairs = [pair for pair in zip(*classes, strict=True) if None not in pair]
    if not pairs:
        raise ValueError("No window has a true and a predicted label.")
    counts = sklearn.metrics.confusion_matrix(*zip(*pairs, strict=True), labels=order)
    totals = counts.sum(axis=1, keepdims=True)
    percent = 100 * counts / np.where(totals > 0, totals, np.nan)
    texts = np.vectorize("{:.0f} %\n{}".format)(percent, counts)
    letters = max(map(len, order))
    is_turned = letters > 8
    side, height = max(2.2, 0.75 * len(order)), 0.09 * letters  # inches
    size = (side + height + 1.7, side + (0.5 * height if is_turned else 0) + 0.9)
    [ax] = style.axes_for(ax, 1, 1, size)
    style.draw_cells(ax, percent, texts, order, order, label="% of the true class", vmax=100)
    if is_turned:
        turned: dict[str, Any] = dict(rotation=30, ha="right", rotation_mode="anchor")
        ax.set_xticks(ax.get_xticks(), order, parse_math=False, **turned)
    ax.set(xlabel="predicted", ylabel="true")
    ax.set_title(f"accuracy {np.trace(counts) / len(pairs):.2f} of {len(pairs)} windows", size=10)
    return ax
