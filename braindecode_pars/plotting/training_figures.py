"""Figures of trained models: training curves, predicted time shifts, and confusion matrices."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn.metrics
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars._common import tables
from braindecode_pars.plotting import style

#: Columns that identify a training run.
RUN = ("method", "dataset", "subject", "n_train_subjects", "seed")
#: Column of a loss -> its label in the legend, and its line style.
Lines = dict[str, tuple[str, dict[str, Any]]]


def training_curves(history: pd.DataFrame, axes: Sequence[Axes] | Axes | None = None) -> np.ndarray:
    """Plot training curves: the loss in each epoch, with one panel per training phase.

    Training phases are, for example, pretraining and fine-tuning. In phases with relative losses
    (losses divided by the chance-level loss), such as pretraining, the panel shows the relative
    training loss, and a dotted line at the chance level (1). If the pretext task has several
    losses, each of these losses is shown as a thinner line. In all other phases, such as
    fine-tuning, the panel shows the training loss and the validation loss. Each training run has
    its own lines.

    Parameters
    ----------
    history : DataFrame
        Losses with one row per epoch: ``history_`` of a :class:`~braindecode_pars.PARSClassifier`,
        or the histories of several classifiers, concatenated with ``pandas.concat`` after adding
        the columns ``method`` and ``seed``. Required columns are ``phase``, ``epoch`` and
        ``train_loss``. Optional columns are the other losses ``valid_loss``,
        ``train_loss_relative`` and ``train_loss_relative_NAME`` (for each loss NAME of a pretext
        task), and the columns that identify a training run: ``method``, ``dataset``, ``subject``,
        ``n_train_subjects`` and ``seed``.
    axes : sequence of Axes, one per phase | None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    ndarray of Axes, shape (n_phases,)
        Panels, in the order of the phases.

    Raises
    ------
    TypeError
        If ``history`` is not a DataFrame.
    ValueError
        If ``history`` is empty, a required column is missing, or an epoch of a run has several
        rows.

    Examples
    --------
    Synthetic losses, with the same columns as ``history_`` of an estimator:

    .. plot::
        :include-source:
        :alt: Two panels. Left: the relative pretraining loss decreases below the chance level.
            Right: training and validation loss in fine-tuning.

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

    panels = style.axes_for(axes, 1, len(phases), (1 + 4.2 * len(phases), 3.6))
    for ax, phase in zip(panels, phases, strict=True):
        rows = history[history["phase"] == phase]
        lines = _lines_of(rows, is_several=len(methods) > 1)
        relative = tables.RELATIVE in lines
        rows = rows.dropna(subset=list(lines), how="all")
        for number, method in enumerate(methods):
            _draw_runs(ax, rows[rows["method"] == method], lines, number)
        if relative:
            # The label of the y-axis explains the dotted line, because a text would cover curves.
            ax.axhline(1, color=style.shade(0.25), lw=1, ls=":", zorder=1.5)
            ax.set_ylim(0, max(1.12, ax.get_ylim()[1]))
        ylabel = "loss" if len(lines) > 1 else "training loss"
        ylabel = "relative training loss\n(dotted: chance level)" if relative else ylabel
        ax.set(xlabel="epoch", ylabel=ylabel)
        ax.set_title(str(phase), parse_math=False)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if drawn := style.named_artists(ax):
            style.named_legend(ax, drawn, handlelength=3)
        style.remove_frame(ax)
    return panels


def _lines_of(rows: pd.DataFrame, is_several: bool) -> Lines:
    """Return the losses of a phase that are drawn, and their line styles.

    With several methods, colors distinguish methods, and parts of a task differ in line style only.
    """
    drawn = rows.columns[rows.notna().any()]
    if tables.RELATIVE not in drawn:
        lines: Lines = {"train_loss": ("training", dict(linestyle="--", lw=1.2))}
        if "valid_loss" in drawn:
            lines["valid_loss"] = ("validation", dict(linestyle="-", lw=1.6))
        return lines
    # Draw the total loss, and the losses of the parts of the pretext task.
    lines = {tables.RELATIVE: ("total", dict(linestyle="-", lw=1.6))}
    parts = {name: part for name in drawn if (part := tables.part_of(str(name)))}
    for i, (name, part) in enumerate(parts.items()):
        look = dict(linestyle=style.LINES[1 + i % (len(style.LINES) - 1)], lw=1)
        color = {} if is_several else dict(color=style.series_style(i + 1)["color"])
        lines[name] = part, look | color
    return lines


def _draw_runs(ax: Axes, rows: pd.DataFrame, lines: Lines, number: int) -> None:
    """Draw one line for each training run and each loss of one method."""
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
                marker=look["marker"] if column == tables.RELATIVE else "",  # for grayscale prints
                markevery=max(1, len(scored) // 6),
                markersize=4,
                label=", ".join(filter(None, texts)),
                **{"color": look["color"], **line},
            )


def shift_matrices(
    prediction: ArrayLike, target: ArrayLike, axes: Sequence[Axes] | None = None
) -> np.ndarray:
    r"""Plot the relative time shifts that PARS predicts in one window, and the true shifts.

    The pretext task :class:`~braindecode_pars.pretext.PARS` predicts the time shift between pairs
    of patches (short segments of a window). The figure follows figure 7 of the PARS paper (appendix
    A.5), "Relative Time Shift Reconstructions". Three panels show the prediction, the target and
    the absolute error as matrices, with patches in chronological order. The fourth panel is a
    scatter plot of prediction against target. The title of the first panel contains the mean
    squared error of the prediction and, for comparison, the chance level: the mean squared error of
    predicting zero, which is the best prediction that ignores the signal. If the matrix of
    predictions has a uniform color, the model has not learned the task yet.

    Parameters
    ----------
    prediction, target : ndarray, shape (n_masked, n_masked)
        Predicted and true time shifts :math:`(t_j - t_k) / T` between the patches j and k whose
        position is masked, as a fraction of the window length :math:`T`. They are the outputs of
        the task for one window, such as ``prediction[0]`` and ``target[0]`` after ``prediction,
        target = task(x)``.
    axes : sequence of four Axes | None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    ndarray of Axes, shape (4,)
        Panels with the prediction, the target, the absolute error and the scatter plot.

    Raises
    ------
    ValueError
        If the shapes differ, or the arrays are not square matrices.

    Examples
    --------
    Synthetic predictions for 32 patches of one second, in a window of 30 s at 200 Hz:

    .. plot::
        :include-source:
        :alt: Three matrices (predicted time shifts, true time shifts and absolute errors of all
            pairs of patches), and a scatter plot of predicted against true shifts.

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
    >>> axes[1].images[0].get_array().round(1).tolist()  # target, with sorted starts
    [[0.0, -0.4, -0.8], [0.4, 0.0, -0.4], [0.8, 0.4, 0.0]]
    """
    arrays = [tables.numbers_of("prediction", prediction), tables.numbers_of("target", target)]
    shape = arrays[0].shape
    if shape != arrays[1].shape or len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            "prediction and target must be square matrices of the same shape (n_masked, n_masked), "
            f"got {shape} and {arrays[1].shape}. Pass the matrices of one window, for example "
            "prediction[0] and target[0]."
        )
    # A column of the target contains the starts of the patches, minus a constant.
    order = np.argsort(arrays[1][:, :1].ravel(), kind="stable")
    prediction, target = (matrix[np.ix_(order, order)] for matrix in arrays)

    # Three matrices and a scatter plot
    panels = style.axes_for(axes, 2, 2, (8, 6))
    shift = "time shift $t_j - t_k$ / window length"
    loss, chance = (np.mean(np.square(error)) for error in (prediction - target, target))
    title = f"prediction\nMSE {loss:.3f} (chance level: {chance:.3f})"
    matrices = {
        title: (prediction, shift, dict(vmin=-1, vmax=1)),
        "target": (target, shift, dict(vmin=-1, vmax=1)),
        "absolute error": (np.abs(prediction - target), "error / window length", dict(vmin=0)),
    }
    for ax, (name, (matrix, label, limits)) in zip(panels[:3], matrices.items(), strict=True):
        # The lightness of cividis increases linearly, so the figure is readable in grayscale.
        image = ax.imshow(matrix, cmap="cividis", **limits)
        ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
        ax.set(title=name, xlabel="patch k (sorted by time)", ylabel="patch j (sorted by time)")
    panels[3].plot([-1, 1], [-1, 1], color=style.shade(0.6), lw=1, zorder=0)
    panels[3].scatter(target, prediction, s=5, color=style.COLORS[0], alpha=0.35, lw=0)
    title = f"RMSE {np.sqrt(loss):.2f} (fraction of window length)"
    panels[3].set(xlabel="true shift / window length", ylabel="predicted shift / window length")
    panels[3].set(title=title, xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
    style.remove_frame(panels[3])
    return panels


def confusion_matrix(
    true: ArrayLike,
    predicted: ArrayLike,
    class_names: style.ClassNames | None = None,
    *,
    order: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a confusion matrix, with the percentage and number of windows in each cell.

    Percentages are relative to the number of windows of the true class. Colors show the
    percentages, so that rare classes are as visible as frequent classes.

    Parameters
    ----------
    true, predicted : ndarray, shape (n_windows,)
        True and predicted labels. Windows whose true or predicted label is missing are ignored.
        None and NaN are missing labels, and so is -1, with two exceptions: -1 is a class if it has
        a name in ``class_names``, or if ``class_names`` is None and -1 occurs in ``predicted`` (as
        with the classes -1 and 1).
    class_names : mapping of label to str | sequence of str | None
        Mapping of labels to class names, such as ``class_names_`` of a classifier, or sequence with
        the names of the labels 0, 1, .... All of these classes are shown. If None, the labels that
        occur in ``true`` or ``predicted`` are used as names.
    order : sequence of str | None
        Names of all classes from top to bottom. If None and all names are sleep stages (names that
        :func:`~braindecode_pars.predictions.stage_of` recognizes), the classes are sorted as wake,
        REM, N1, N2, N3. If None and any name is not a sleep stage, the classes are in the order of
        ``class_names`` or, without ``class_names``, of the sorted labels.
    ax : Axes | None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    Axes
        Axes with true classes in rows and predicted classes in columns. If no window has a class as
        its true class, the row of this class is blank.

    Raises
    ------
    ValueError
        If the lengths of ``true`` and ``predicted`` differ, if no window has both labels, if a
        label has no name, or if ``order`` does not contain each class exactly once.

    Examples
    --------
    Simulated sleep stages, and predictions that are correct except that N2 is predicted in a random
    quarter of the windows:

    .. plot::
        :include-source:
        :alt: Confusion matrix of five sleep stages, with percentages and numbers of windows in
            blue squares.

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
    sklearn.utils.check_consistent_length(*labels)
    if class_names is None:
        occurring = {x for x in labels[0] + labels[1] if not pd.isna(x)}
        occurring -= {-1} - set(labels[1])
        class_names = {label: str(label) for label in sorted(occurring, key=style.by_number)}
    names = style.names_by_label(class_names)
    order = style.in_figure_order(list(dict.fromkeys(names.values())), order)
    classes = [style.entries(values, names) for values in labels]
    pairs = [pair for pair in zip(*classes, strict=True) if None not in pair]
    if not pairs:
        raise ValueError(
            "No window has both a true and a predicted label, because None, NaN and -1 are treated "
            "as missing labels. Pass windows for which both labels are known."
        )
    counts = sklearn.metrics.confusion_matrix(*zip(*pairs, strict=True), labels=order)
    totals = counts.sum(axis=1, keepdims=True)
    percent = 100 * counts / np.where(totals > 0, totals, np.nan)
    texts = np.vectorize("{:.0f} %\n{}".format)(percent, counts)
    side = max(2.2, 0.75 * len(order))  # side length of the matrix in inches, without labels
    [ax] = style.axes_for(ax, 1, 1, (side + 2.5, side + 1.5))
    label = "windows of the true class (%)"
    style.draw_cells(ax, percent, texts, order, order, label=label, vmax=100)
    if max(map(len, order)) > 8:
        plt.setp(ax.get_xticklabels(), rotation=30, ha="right", rotation_mode="anchor")
    ax.set(xlabel="predicted class", ylabel="true class")
    ax.set_title(f"accuracy {np.trace(counts) / len(pairs):.2f} ({len(pairs)} windows)", size=10)
    return ax
