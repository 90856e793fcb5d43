"""What all classifiers of windows do with their logits: labels, probabilities, tables, scores."""

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from braindecode_pars._common import checks, names
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.windows import Windows, labels, transitions


class WindowsClassifier(windows_estimator.LabelPredictor):
    """A classifier with ``classes_`` that predicts windows and recordings from ``_outputs``."""

    __metadata_request__decision_function = {"groups": True}  # noqa: RUF012

    @abstractmethod
    def _outputs(self, X: Any, groups: Any = None) -> Tensor:
        """Return finite logits on the CPU, shape (n_windows, n_classes)."""

    def decision_function(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the logit of each class.

        Parameters
        ----------
        X, groups
            As in ``predict_proba``.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes) or (n_windows,)
            Logits. With two classes, the second logit minus the first: the value is positive when
            the second label in ``classes_`` is more probable.
        """
        logits = self._outputs(X, groups).numpy()
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable labels and the probabilities; the windows are read once."""
        logits = self._outputs(X, groups)
        return self.classes_[logits.argmax(dim=1).numpy()], logits.softmax(dim=1).numpy()

    def predict_raw(
        self,
        raw: Any,
        *,
        overlap: float = 0.0,
        preprocess: bool = True,
        smooth: bool = False,
        rescale: bool = False,
    ) -> pd.DataFrame:
        """Predict a continuous recording, window after window.

        The channels of ``fit`` are found by the names of their electrodes (``T3`` and ``T7``,
        ``A1`` and ``M1``, ``EEG C3-REF`` and ``C3`` are the same). A channel with a named
        reference, or of two electrodes, is also computed as the difference of two channels of the
        recording. Windows lie side by side from the first sample on.

        Parameters
        ----------
        raw : mne.io.Raw | path
            Continuous recording in volts, which is not changed, or an EDF, BDF, FIF or WFDB file.
        overlap : float
            Share of a window, in [0, 1), that the next window repeats. With 0, windows do not
            overlap. Otherwise further windows are predicted in between, and each row is the mean
            of the probabilities of all windows that share time with it, weighted by that time.
        preprocess : bool
            Whether the recording is resampled, referenced, filtered and scaled as the training
            recordings were, by ``preprocessing_``. With False its samples are used as they are;
            its sampling rate must then be that of the model.
        smooth : bool
            Whether the rows are also smoothed over time, by a hidden Markov model whose transitions
            are counted on the labels of ``fit``
            (:class:`~braindecode_pars.windows.transitions.Transitions`). It is for labels with
            an order in time, such as sleep stages and seizures.
        rescale : bool
            Whether the signals are multiplied by one factor, so that their median amplitude is in
            the middle of ``amplitudes_``: for recordings of another unit or gain, as those of
            wearables.

        Returns
        -------
        pandas.DataFrame
            One row for each window from the beginning of the recording; the rest at its end that is
            shorter than a window is left out. Columns:

            - ``onset``, ``duration``: in seconds from the first sample. In a resampled recording, a
              window is off by at most one sample, and by one and a half after a gap.
            - ``label``: name of the most probable class, or the label as text. None in a window
              that is not predicted, because it contains a gap or an annotation that begins with
              "BAD".
            - ``probability_LABEL``: one column for each class, in the order of ``classes_``. NaN in
              a window that is not predicted, as in ``entropy``.
            - ``entropy``: of these probabilities, in nats.
            - ``n_chans``: number of channels of ``fit`` that the recording has. The prediction is
              that of these channels.
            - With ``smooth``, ``label_smoothed``: the window's class in the most probable sequence;
              and ``smoothed_LABEL``: probability of each class, given all windows.
              :func:`~braindecode_pars.predictions.smoothed` returns the table of these predictions
              alone.

            ``frame.attrs`` has the name of the ``recording``, the texts of the ``classes``, how the
            ``channels`` were found, and ``findings``: what makes predictions doubtful.

        Raises
        ------
        TypeError
            When ``raw`` is neither a Raw nor a path.
        ValueError
            When a file cannot be read; when the recording has none of the channels of ``fit``, or
            not all of them and the model cannot do without; when no window can be predicted; when
            samples are NaN; when the sampling rate of ``fit`` is unknown. For a
            FewLabelsClassifier that subtracts the mean of a subject, when fewer than ten windows
            can be predicted. With ``smooth``, when the model knows no transitions.

        Warns
        -----
        UserWarning
            When channels of ``fit`` are missing, and the others are used; when the recording has
            another reference, or differs in what cannot be restored; when the recordings of ``fit``
            had different bands or references, so that none is applied; when channels are flat or
            clipped for at least 1 % of the time and at least the length of a window; when
            amplitudes are far outside those of the training windows; when the subject was in the
            training, by ``subject_info["his_id"]`` of MNE or the path of the file; when the mean of
            this recording alone is subtracted, and each recording of ``fit`` had one class.

        Examples
        --------
        >>> from braindecode_pars import PARSClassifier, datasets
        >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.2, n_chans=2)
        >>> clf = PARSClassifier(None, finetune_epochs=1, verbose=0).fit(windows)
        >>> frame = clf.predict_raw(windows.datasets[0].raw)
        >>> len(frame), frame["onset"][1]
        (24, np.float64(30.0))
        """
        return names.lazy("estimators.predict_raw")(
            self, raw, overlap=overlap, preprocess=preprocess, smooth=smooth, rescale=rescale
        )


def read_labeled(
    estimator: Any, X: Any, y: Any, groups: Any, *, any_montage: bool = False
) -> Windows:
    """Return the windows of ``fit`` of a classifier, and set what their labels tell.

    That is ``classes_``, ``class_names_`` and ``transitions_``. A label is the index of its class,
    and -1 in unlabeled windows.
    """
    windows = windows_estimator.read_windows(estimator, X, y, groups, any_montage=any_montage)
    labeled = labels.where_labeled(windows, estimator.unlabeled_label)
    codes = np.full(len(windows), -1)
    estimator.classes_, codes[labeled] = labels.training_classes(
        windows.labels[labeled], windows.label_names
    )
    estimator.class_names_ = labels.names_of_classes(estimator.classes_, windows.label_names)
    windows = windows.with_labels(codes)
    if windows.groups is not None:
        subjects = windows.groups[labeled].tolist()
        pairs = {*zip(codes[labeled].tolist(), subjects, strict=True)}
        if len(pairs) == len(estimator.classes_) == len({*subjects}):
            checks.warn_user(
                "Each class has one subject, so that a class cannot be told from the person; "
                "label more people. A number, such as an age, is for PARSRegressor."
            )
    estimator.transitions_ = transitions.Transitions.of(
        windows[codes >= 0], estimator.classes_, estimator.class_weight
    )
    return windows
