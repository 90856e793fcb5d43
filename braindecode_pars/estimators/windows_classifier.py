"""Base classes of classifiers of windows.

LabelPredictor provides predict, predict_proba and score. Its subclass WindowsClassifier also
validates the windows and labels of ``fit``, and predicts windows and continuous recordings from the
logits of a subclass.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import validation
from torch import Tensor

from braindecode_pars._common import checks, names
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.windows import Windows, convert, labels, transitions
from braindecode_pars.windows.preprocessing import Preprocessing


class LabelPredictor(ClassifierMixin, BaseEstimator):
    """Base class of classifiers of windows: predict, predict_proba and score."""

    unlabeled_label: Any

    # scikit-learn's metadata routing may pass groups (the subjects) to these methods, because
    # subject-wise centering requires the subjects.
    __metadata_request__score = {"groups": True}  # noqa: RUF012
    __metadata_request__predict = {"groups": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"groups": True}  # noqa: RUF012

    @abstractmethod
    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return labels, shape (n_windows,), and probabilities, (n_windows, n_classes)."""

    def predict_proba(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : windows
            Windows of any type that ``fit`` accepts. The channels are matched by name to the
            channels of ``fit``, and are used in the order of ``fit``. Windows without channel names
            are assumed to have the channels of ``fit``, in the same order.

            PARSClassifier accepts windows of any length that are at least as long as one patch (see
            ``patch_seconds``). If channels of ``fit`` are missing in ``X``, PARSClassifier and
            FewLabelsClassifier use the remaining channels, and issue a warning. If all channels of
            ``fit`` are missing, PARSClassifier uses all EEG channels of ``X``, and issues a
            warning. A model with electrode positions uses the positions of the channels in ``X``,
            and issues a warning if all of these positions are unknown.

            A FewLabelsClassifier with subject-wise centering subtracts the mean over the windows of
            each subject, so all windows of a subject must be passed in one call.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for a FewLabelsClassifier; ignored by other classifiers. If
            None, the subjects that are stored with the windows are used.

        Returns
        -------
        ndarray of float32, shape (n_windows, n_classes)
            Class probabilities; the columns are in the order of ``classes_``.

        Raises
        ------
        ValueError
            In any of these cases:

            - There are no windows, a window is too short, or windows contain NaN.
            - The sampling rate or the channels of the windows do not match the model.
            - A FewLabelsClassifier uses subject-wise centering, and the subject of a window is
              unknown, or a subject has fewer than 10 windows.
        """
        return self._predictions(X, groups)[1]

    def predict(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the most probable label of each window.

        Parameters
        ----------
        X, groups
            As in ``predict_proba``.

        Returns
        -------
        ndarray, shape (n_windows,)
            Predicted labels. Their values are the labels that were passed to ``fit``.
        """
        return self._predictions(X, groups)[0]

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> float:
        """Return the accuracy on the labeled windows.

        For a different metric, remove the unlabeled windows, and use a scorer of scikit-learn:
        ``get_scorer("balanced_accuracy")(clf, X, y)``.

        Parameters
        ----------
        X : windows
            As in ``predict_proba``.
        y : array-like, shape (n_windows,) | None
            True labels. If None, the labels of the dataset are used. Windows with the label
            ``unlabeled_label`` are ignored. Windows with a label that did not occur in ``fit`` are
            counted as errors, and a warning lists these labels.
        sample_weight : array-like, shape (n_windows,) | None
            Weight of each window.
        groups : array-like, shape (n_windows,) | None
            As in ``predict_proba``.

        Returns
        -------
        float
            Accuracy between 0 and 1.

        Raises
        ------
        ValueError
            If windows, labels or weights are malformed, or if no window is labeled.
        """
        validation.check_is_fitted(self)
        windows = convert.as_windows(X, y, groups)
        labeled, y, sample_weight = labels.to_score(
            windows, self.unlabeled_label, self.classes_, sample_weight
        )
        # Predict all windows, because unlabeled windows contribute to the subject means.
        return float(np.average(self.predict(windows)[labeled] == y, weights=sample_weight))


@dataclass(kw_only=True, eq=False, repr=False)
class WindowsClassifier(LabelPredictor):
    """Base class of classifiers that classify windows and recordings, based on logits.

    A subclass implements ``_outputs``, which returns the logits. The parameters are described in
    PARSClassifier.
    """

    __metadata_request__decision_function = {"groups": True}  # noqa: RUF012

    class_weight: str | dict | None = "balanced"
    sfreq: float | None = None
    preprocessing: Preprocessing | dict[str, Any] | None = None
    channels: list[str] | None = None
    unlabeled_label: Any = "auto"
    device: str = "auto"
    verbose: int = 1

    def _read_labeled(self, X: Any, y: Any, groups: Any, *, any_montage: bool = False) -> Windows:
        """Validate X and y of ``fit``, and set classes_, class_names_ and transitions_.

        The labels of the returned windows are class indices, and -1 for unlabeled windows.
        """
        windows = windows_estimator.read_windows(self, X, y, groups, any_montage=any_montage)
        labeled = labels.where_labeled(windows, self.unlabeled_label)
        codes = np.full(len(windows), -1)
        self.classes_, codes[labeled] = labels.training_classes(
            windows.labels[labeled], windows.label_names
        )
        self.class_names_ = labels.names_of_classes(self.classes_, windows.label_names)
        windows = windows.with_labels(codes)
        if windows.groups is not None:
            subjects = windows.groups[labeled].tolist()
            pairs = {*zip(codes[labeled].tolist(), subjects, strict=True)}
            if len(pairs) == len(self.classes_) == len({*subjects}):
                checks.warn_user(
                    "Class and subject are confounded: each class has windows of only one subject, "
                    "and each subject has windows of only one class, so the classifier may "
                    "distinguish subjects instead of classes. Add labeled subjects to each class. "
                    "To predict a number such as age, use PARSRegressor."
                )
        self.transitions_ = transitions.Transitions.of(
            windows[codes >= 0], self.classes_, self.class_weight
        )
        return windows

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
            With three or more classes, the logits, with one column for each class in ``classes_``.
            With two classes, one value per window: the second logit minus the first logit, which is
            positive if the second label in ``classes_`` is more probable.
        """
        logits = self._outputs(X, groups).numpy()
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def _predictions(self, X: Any, groups: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable labels and the probabilities, reading the windows once."""
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
        """Classify consecutive windows of a continuous recording.

        The recording is preprocessed like the training recordings and divided into consecutive
        windows, starting at the first sample. The channels of the recording are matched to the
        channels of ``fit`` by the names of their electrodes: for example, ``T3`` matches ``T7``,
        ``A1`` matches ``M1``, and ``EEG C3-REF`` matches ``C3``. If ``fit`` used a bipolar channel,
        or a channel with a named reference, that is not in the recording, this channel is computed
        as the difference of two channels of the recording.

        Parameters
        ----------
        raw : mne.io.Raw | path
            Continuous recording in volts (it is not modified), or the path of an EDF, BDF, FIF,
            WFDB, BrainVision or EEGLAB file.
        overlap : float
            Overlap of consecutive windows, as a proportion of the window length in [0, 1). If 0,
            the windows do not overlap. With overlap, additional windows are predicted, but the
            table has the same rows: the probabilities in a row are the average over all windows
            that overlap with the window of this row, weighted by the duration of the overlap.
        preprocess : bool
            Whether to resample, re-reference, filter and scale the recording like the training
            recordings, according to ``preprocessing_``. If False, the recording is not
            preprocessed and must have the sampling rate of the model.
        smooth : bool
            Whether to add predictions that are smoothed over time by a hidden Markov model, whose
            transition probabilities are estimated from the labels of ``fit``
            (:class:`~braindecode_pars.windows.transitions.Transitions`). Use it for labels with
            temporal structure, such as sleep stages or seizures.
        rescale : bool
            Whether to multiply the recording by a constant, so that the median amplitude of the
            recording is in the middle of ``amplitudes_``, the range of the training data. Use it
            for recordings with a different unit or gain than the training recordings, such as
            recordings of wearable devices.

        Returns
        -------
        pandas.DataFrame
            One row for each window, from the beginning of the recording. An incomplete window at
            the end is not predicted. Columns:

            - ``onset``, ``duration``: onset and duration of the window in seconds. Onsets are
              relative to the first sample. In a resampled recording, onsets are accurate to one
              sample (1.5 samples after a gap).
            - ``label``: name of the most probable class or, without class names, label of this
              class as text. None if the window is not predicted, because it contains a gap or
              overlaps with an annotation that begins with "BAD".
            - ``probability_LABEL``: probability of the class LABEL; one column for each class, in
              the order of ``classes_``. NaN if the window is not predicted.
            - ``entropy``: entropy of the class probabilities, in nats. NaN if the window is not
              predicted.
            - ``n_chans``: number of channels of ``fit`` that are available in the recording and are
              used for the prediction.
            - ``label_smoothed`` (only with ``smooth=True``): class of the window in the most
              probable sequence of classes over the recording.
            - ``smoothed_LABEL`` (only with ``smooth=True``): probability of the class LABEL, given
              all windows of the recording. :func:`~braindecode_pars.predictions.smoothed` returns a
              table that contains only the smoothed predictions.

            The attribute ``attrs`` of the table contains the name of the ``recording``, the names
            of the ``classes``, the ``channels`` of the recording that were used for each channel of
            ``fit``, and ``findings`` (possible problems with the predictions).

        Raises
        ------
        TypeError
            If ``raw`` is neither a Raw nor a path.
        ValueError
            In any of these cases:

            - A file cannot be read, or samples are NaN.
            - All channels of ``fit`` are missing in the recording, or some are missing and the
              model requires all channels.
            - No window can be predicted. For a FewLabelsClassifier with subject-wise centering,
              also if fewer than 10 windows can be predicted.
            - The sampling rate of ``fit`` is unknown.
            - With ``smooth=True``, the model has no transition probabilities.

        Warns
        -----
        UserWarning
            In any of these cases:

            - Channels of ``fit`` are missing, and only the remaining channels are used.
            - The reference or another preprocessing step of the recording differs from the training
              recordings, and the difference cannot be corrected.
            - The recordings of ``fit`` were filtered to different frequency bands (so this
              recording is not filtered) or had different references (so this recording is not
              re-referenced).
            - Channels are flat or clipped for at least 1 % of the time, and for at least the length
              of a window.
            - The amplitudes of the recording are far outside the range of the training windows.
            - The subject of the recording was in the training data, according to
              ``subject_info["his_id"]`` of MNE or the path of the file.
            - A FewLabelsClassifier subtracts the mean of this recording from the features, but most
              recordings of ``fit`` contained windows of one class only, so centering may remove the
              difference between the classes.

        Examples
        --------
        >>> from braindecode_pars import PARSClassifier, datasets
        >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.2, n_chans=2)
        >>> clf = PARSClassifier(None, finetune_epochs=1, verbose=0).fit(windows)
        >>> frame = clf.predict_raw(windows.datasets[0].raw)
        >>> len(frame), frame["onset"][1]  # 0.2 hours in windows of 30 seconds
        (24, np.float64(30.0))
        """
        return names.lazy("estimators.predict_raw")(
            self, raw, overlap=overlap, preprocess=preprocess, smooth=smooth, rescale=rescale
        )
