"""FewLabelsClassifier: ensemble on encoder features, tangent space and log band power."""

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import checks, computing, model_files, tables
from braindecode_pars._common.names import extra_module
from braindecode_pars.baselines import linear_probe, new_subject, window_features
from braindecode_pars.estimators import (
    embedder,
    encoder_start,
    saved_estimator,
    transformers,
    windows_classifier,
    windows_estimator,
)
from braindecode_pars.models import electrodes, embed_channels
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.windows import amplitudes, convert, labels, table

log = logging.getLogger(__name__)

#: Feature sets that may be combined.
FEATURE_SETS = ("encoder", "tangent_space", "band_power", "hand_crafted")
#: Feature sets that are combined by default.
DEFAULT_FEATURE_SETS = FEATURE_SETS[:3]
#: Fitted attributes that are saved for each feature set: of the StandardScaler, and of the logistic
#: regression.
_LEARNED = (("mean", "scale"), ("coef", "intercept"))

_ONE_CLASS = (
    "At least 90 % of the subjects have windows of one class only, so subject-wise centering would "
    "remove the difference between the classes."
)
_NOT_CENTERED = "refit with recenter=None (braindecode-pars fit: --set recenter=null)"


@dataclass(kw_only=True, eq=False, repr=False)
class FewLabelsClassifier(windows_classifier.WindowsClassifier):
    r"""Soft-voting ensemble of linear classifiers, for data with few labeled subjects.

    Each member of the ensemble is a logistic regression on one set of standardized features. For a
    window :math:`x`, the probability of class :math:`c` is the mean of the probabilities
    :math:`p_v` that the :math:`n_v` members predict, one for each feature set :math:`v`,

    .. math::
        p(c \mid x) = \frac{1}{n_v} \sum_{v} p_v(c \mid x) .

    By default, there are three feature sets:

    - the features of each channel, computed by a frozen pretrained encoder
      (:class:`~braindecode_pars.PARSEmbedder`),
    - the Riemannian tangent space of the spatial covariance
      (:class:`~braindecode_pars.evaluation.SpatialCovariance` and pyRiemann),
    - log band power (:class:`~braindecode_pars.evaluation.LogBandPower`).

    The encoder is not trained, so fitting takes seconds.

    **With subject-wise centering, this classifier is transductive.** Centering subtracts the mean
    over the windows of each subject from the features. Each prediction therefore also uses the
    other windows of the test subject that are passed in the same call, without their labels. Scores
    with centering are comparable only with scores of methods that use the same data of the test
    subject (:class:`~braindecode_pars.SubjectCentering`). Centering is the default if the subjects
    are known and their windows have several classes. It is not used by default if the label is
    constant within each subject, such as a diagnosis, because it would remove the difference
    between the classes.

    Parameters
    ----------
    encoder : path | str | fitted estimator, net or model
        Pretrained encoder, as in :class:`~braindecode_pars.PARSClassifier`. It is not trained.
    recenter : "auto" | "subject" | None
        Whether to use subject-wise centering. ``"subject"`` subtracts the mean of each subject from
        the features. ``fit`` and predictions then require all windows of a subject in one call, and
        at least 10 windows per subject; ``fit`` issues a warning if at least 90 % of the subjects
        have windows of one class only. If None, the features are not centered. ``"auto"`` is
        ``"subject"`` if three conditions are met: the subject of every window of ``fit`` is known,
        each subject has at least 10 windows, and more than 10 % of the subjects have windows of two
        or more classes. Otherwise, ``"auto"`` is None. The choice is logged.
    views : list of str | None
        Feature sets of the ensemble: ``"encoder"``, ``"tangent_space"``, ``"band_power"`` and
        ``"hand_crafted"`` (:class:`~braindecode_pars.evaluation.ChannelFeatures`). If None, the
        first three are combined. With ``["encoder"]``, the classifier is a linear probe of the
        encoder.
    C : float | None
        Inverse regularization strength of all logistic regressions, as in scikit-learn. If None,
        one of 0.001, 0.01, 0.1 and 1 is selected for each feature set by cross-validation over the
        subjects of the training data (log loss, up to five folds). If there is only one subject, or
        if the subjects are unknown, None means 0.01. On development data with four and eight
        labeled subjects, ``C=0.01`` scored higher than ``C=None``.
    prior_strength : float | None
        Strength with which :meth:`adapt` shrinks the weights of a new subject toward the weights of
        ``fit``, as in :class:`~braindecode_pars.estimators.LinearProbe`. If None, the strength is
        selected for each feature set by cross-validation over subjects.
    class_weight : "balanced" | dict | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    sfreq : float | None
        Sampling rate in Hz, for inputs without a sampling rate (arrays, lists).
    preprocessing : Preprocessing | dict | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    channels : list of str | None
        As in :class:`~braindecode_pars.PARSClassifier`. If recordings have different channels,
        the channels shared by all recordings are used, and a warning lists the other channels.
    unlabeled_label : hashable | None
        Label that marks unlabeled windows, as in :class:`~braindecode_pars.PARSClassifier`.
        Unlabeled windows are not used.
    device : str
        Name of a torch device for the encoder. ``"auto"`` uses CUDA, then MPS, then the CPU.
    verbose : int
        Verbosity level. If 0, nothing is logged. If 1, the choice of ``recenter="auto"`` is logged.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    class_names_ : dict of label to str | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    recenter_ : "subject" | None
        Subject-wise centering that is used: ``recenter``, with ``"auto"`` replaced with the
        selected value. None in an adapted classifier.
    prior_strength_ : dict of str to float
        Prior strength that :meth:`adapt` uses for each feature set.
    one_class_recordings_ : bool
        Whether at least 90 % of the recordings in ``fit`` have windows of one class only.
        Recordings with a single window are not counted. If True, centering the windows of a
        single recording would remove the difference between the classes.
    test_subject_data_ : TestSubjectData
        Which data of the test subject a prediction uses in addition to the window itself, for
        example ``ALL_UNLABELED`` with subject-wise centering.
    C_ : dict of str to float
        Inverse regularization strength of each feature set.
    views_ : dict of str to Pipeline
        StandardScaler and logistic regression of each feature set. The classes of the pipelines
        are indices into ``classes_``.
    tangent_space_ : pyriemann.tangentspace.TangentSpace
        Tangent space at the mean covariance of the training windows. Only present if the ensemble
        has the feature set ``"tangent_space"``.
    encoder_ : PatchEncoder
        The pretrained encoder, on the CPU.
    encoder_card_ : EncoderCard
        Metadata of the encoder, such as its training data and pretext task. The entry
        ``finetune_subjects`` contains the labeled subjects of this fit.
    load_report_ : LoadReport
        Report of the tensors of the encoder that were loaded. Only present if the encoder was
        loaded from a folder.
    sfreq_, preprocessing_, amplitudes_, transitions_, n_chans_, n_times_, chs_info_
        As in :class:`~braindecode_pars.PARSClassifier`.

    Notes
    -----
    Fitting is deterministic. Windows to predict must have the same unit as the windows of ``fit``,
    because tangent space and band power, unlike the encoder features, depend on the amplitude.
    Windows to predict may have a different length from the windows of ``fit``, but band power in
    windows shorter than two seconds is computed at a lower frequency resolution.

    If channels are missing or flat in the windows to predict, the prediction uses the remaining
    channels. The features of a missing or flat channel are set to their mean in ``fit``, and
    therefore do not contribute to the logit. For the tangent space, the rows and columns of this
    channel in the covariance are replaced with their expected values, given the remaining channels
    and the mean covariance of ``fit``.

    References
    ----------
    Barachant et al. 2012, IEEE Transactions on Biomedical Engineering 59, for the tangent space.
    Kittler et al. 1998, On combining classifiers, IEEE Transactions on Pattern Analysis and Machine
    Intelligence 20, for the mean of class probabilities.

    Examples
    --------
    >>> from braindecode_pars import FewLabelsClassifier, as_sklearn, datasets
    >>> X, y, subjects = as_sklearn(datasets.mental_arithmetic())
    >>> labeled = subjects >= "Subject20"  # 4 labeled subjects
    >>> clf = FewLabelsClassifier(C=0.01, verbose=0).fit(X[labeled], y[labeled])
    >>> clf.predict_proba(X[~labeled]).shape
    (240, 2)
    >>> clf.recenter_
    'subject'
    """

    encoder: Any = field(default="small", kw_only=False)
    recenter: str | None = "auto"
    views: list[str] | None = None
    C: float | None = linear_probe.DEFAULT_C
    prior_strength: float | None = new_subject.DEFAULT_STRENGTH

    _kind = model_files.FEW_LABELS

    save = saved_estimator.save
    load = classmethod(saved_estimator.load)
    from_pretrained = classmethod(saved_estimator.from_pretrained)
    __sklearn_clone__ = saved_estimator.clone_with_encoder
    _pretrained_card = saved_estimator.pretrained_card
    _own_rules = {  # noqa: RUF012
        "views": checks.optional(
            checks.ParameterRule(
                f"a list of feature sets from {', '.join(FEATURE_SETS)}, without duplicates",
                (list,),
                lambda names: 0 < len(names) == len({*names} & {*FEATURE_SETS}),
            )
        )
    }

    @property
    def _feature_sets(self) -> list[str]:
        return list(DEFAULT_FEATURE_SETS) if self.views is None else self.views

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "views_")

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Compute the feature sets of the labeled windows, and fit one classifier per feature set.

        Parameters
        ----------
        X, y
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for subject-wise centering and for the selection of ``C`` and
            ``prior_strength``. The subjects are also stored in the encoder card (metadata). If
            None, the subjects of the dataset are used.

        Returns
        -------
        FewLabelsClassifier
            The fitted classifier itself.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            If the windows, the labels or the encoder are invalid, as in PARSClassifier. With
            ``recenter="subject"``, also if the subject of a window is unknown or a subject has
            fewer than 10 windows.
        """
        windows_estimator.check_estimator(self)
        if self.encoder is None:
            raise ValueError(
                "FewLabelsClassifier requires a pretrained encoder, got encoder=None. Pass the "
                'name of a bundled encoder, such as encoder="small", or the folder of an encoder.'
            )
        with windows_estimator.fresh_fit(self):
            windows = self._read_labeled(X, y, groups)
            windows = windows[windows.labels >= 0]
            start = encoder_start.load_or_build_encoder(self, windows)
            encoder, card, report = start.loaded_encoder  # type: ignore[misc]  # not None
            self.n_chans_, self.n_times_ = start.n_chans, start.n_times
            self.chs_info_, self.sfreq_ = windows.chs_info, start.sfreq
            self.preprocessing_ = start.preprocessing
            if report is not None:
                self.load_report_ = report
            self.encoder_ = copy.deepcopy(encoder).cpu().eval()
            self.encoder_card_ = cards.fine_tuned_card(card, self.sfreq_, windows.corpus_subjects)
            self.amplitudes_ = amplitudes.amplitude_range(windows, compare=True)
            self.recenter_ = self._chosen_recentering(windows)
            kinds = tables.TestSubjectData
            self.test_subject_data_ = kinds.ALL_UNLABELED if self.recenter_ else kinds.NONE
            has_several_windows = windows.table["recording"].duplicated(keep=False).to_numpy()
            recordings = windows.table["recording"][has_several_windows]
            self.one_class_recordings_ = labels.one_class_each(
                windows.labels[has_several_windows], recordings
            )
            measured = self._measured(windows)
            # The classifiers cannot be fitted on missing features, so flat channels are used in fit
            measured["flat"] = np.zeros_like(measured["flat"])
            if "tangent_space" in self._feature_sets:
                tangent_space = extra_module("pyriemann.tangentspace").TangentSpace()
                self.tangent_space_ = tangent_space.fit(measured["tangent_space"])
            self._fit_classifiers(self._features(windows, measured), windows)
        return self

    def _fit_classifiers(self, features: dict[str, np.ndarray], windows: table.Windows) -> None:
        """Fit one classifier per feature set; select C and the prior strength if they are None."""
        codes, folds = windows.labels, linear_probe.folds_by_subject(windows.groups, windows.labels)
        self.views_, self.prior_strength_ = {}, {}
        for name, values in features.items():
            clf = linear_probe.fit_logistic(
                values, codes, folds, self.C, self.class_weight, self.classes_
            )
            self.views_[name] = clf
            self.prior_strength_[name] = self.prior_strength or new_subject.chosen_strength(
                clf, values, windows, folds
            )
        self.C_ = {name: float(clf[-1].C) for name, clf in self.views_.items()}

    def _chosen_recentering(self, windows: table.Windows) -> str | None:
        """Return "subject" if subject means are subtracted, and None otherwise; log the choice."""
        if self.recenter is None:
            return None
        is_auto = self.recenter == checks.AUTO
        objection = ""
        try:
            if labels.one_class_each(windows.labels, _subjects_of(windows)):
                objection = _ONE_CLASS
        except ValueError as error:
            if not is_auto:
                raise
            objection = str(error)
        if not is_auto and objection:
            checks.warn_user(f"{_ONE_CLASS} To keep this difference, {_NOT_CENTERED}.")
        if is_auto and self.verbose:
            reason = objection or "The subject of every window is known."
            centering = "not centered" if objection else "centered by subject"
            log.info("recenter='auto': the features are %s. %s", centering, reason)
        return None if is_auto and objection else "subject"

    def _measured(self, windows: table.Windows) -> dict[str, np.ndarray]:
        """Return each feature set before centering, and a mask of ``flat`` channels.

        All arrays have the shape (n_windows, n_chans, ...), with the channels of ``fit``. For
        missing channels, the features and the rows and columns of covariances are NaN.
        """
        channel_names = tuple(ch["ch_name"] for ch in self.chs_info_ or ())

        def make_key() -> tuple:
            digest = saved.encoder_digest(self.encoder_)
            return type(self), (*self._feature_sets,), digest, channel_names, self.sfreq_

        return windows_estimator.computed_once(make_key, windows, self._measure_windows)

    def _measure_windows(self, windows: table.Windows) -> dict[str, np.ndarray]:
        """Compute all feature sets, reading each window once."""
        device = computing.find_device(self.device)
        encoder = copy.deepcopy(self.encoder_).to(device)
        transformers_by_name = {
            "tangent_space": window_features.SpatialCovariance(),
            "band_power": window_features.LogBandPower(),
            "hand_crafted": window_features.ChannelFeatures(),
        }
        parts: dict[str, list] = {name: [] for name in (*self._feature_sets, "flat")}
        with computing.usual_torch(gradients=False):
            for batch, montage in windows_estimator.batches(windows, encoder.patch_size, device):
                indices = self._indices_in_fit(montage.names, batch.shape[1])
                signals = batch.cpu().numpy().astype(float)
                for name in self._feature_sets:
                    if name == "encoder":
                        positions = electrodes.positions_of(montage.chs_info, batch)
                        features = embed_channels(encoder, batch, positions)
                        values = windows_estimator.check_finite(features).cpu().numpy()
                    else:
                        values = transformers_by_name[name].measure(signals, self.sfreq_)
                    values = values.reshape(*signals.shape[:2], -1)
                    values = self._with_all_channels(values, indices, np.nan)
                    if name == "tangent_space":  # columns of the covariances
                        values = self._with_all_channels(values.swapaxes(1, 2), indices, np.nan)
                    parts[name].append(values)
                is_flat = amplitudes.flat_channels(signals)
                parts["flat"].append(self._with_all_channels(is_flat, indices, False))
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

    def _with_all_channels(self, values: np.ndarray, indices: np.ndarray, fill: Any) -> np.ndarray:
        """Expand an array of shape (n_windows, n_indices, ...) to all channels of ``fit``."""
        filled = np.full((len(values), self.n_chans_, *values.shape[2:]), fill)
        filled[:, indices] = values
        return filled

    def _indices_in_fit(self, names: Sequence[str], n_chans: int) -> np.ndarray:
        """Return the index of each channel of a window among the channels of ``fit``."""
        fitted_names = [ch["ch_name"] for ch in self.chs_info_ or ()]
        if not fitted_names or not names:
            windows_estimator.check_n_chans(self, n_chans)
            return np.arange(n_chans)
        if not set(names) <= set(fitted_names):
            # names contains all EEG channels of the window, because it has none of the channels of
            # fit
            raise ValueError(
                f"X has none of the channels of fit ({checks.format_list(fitted_names)}). "
                "Pass windows with at least one of these channels, or rename the channels."
            )
        return np.array([fitted_names.index(name) for name in names])

    def _features(
        self, windows: table.Windows, measured: dict[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Return the features of each feature set, centered unless ``recenter_`` is None.

        Features of flat channels are NaN. ``measured`` is the result of ``_measured``; if it is
        None, it is computed.
        """
        measured = measured or self._measured(windows)
        features = {}
        for name in self._feature_sets:
            values = np.where(measured["flat"][:, :, None], np.nan, measured[name])
            if name == "tangent_space":
                values = np.where(measured["flat"][:, None], np.nan, values)
                covariances = impute_covariances(values, self.tangent_space_.reference_)
                tangents = self.tangent_space_.transform(covariances)
                tangents[np.isnan(values).all(axis=(1, 2))] = np.nan
                values = tangents
            features[name] = values.reshape(len(values), -1)
        if self.recenter_ is None:
            return features
        subjects = _subjects_of(windows)
        return {name: transformers.subtract_means(X, subjects) for name, X in features.items()}

    def adapt(self, X: Any, labels: Any = None) -> Self:
        """Adapt the classifier to a new subject, with or without labels of this subject.

        Without labels (test-time adaptation), the mean of the training features is replaced with
        the mean over the windows of the new subject. With labels of some windows (calibration), the
        weights of each logistic regression are refitted, with shrinkage toward the weights of the
        training subjects (:func:`~braindecode_pars.baselines.new_subject.ridge_towards`); the mean
        is replaced as well if the classifier was fitted on centered features.

        The adapted classifier does not center again: its prediction for a window does not depend on
        the other windows that are passed in the same call.

        Parameters
        ----------
        X : windows
            Windows of one subject. If the mean is estimated from fewer than 10 windows, a warning
            is issued, because the estimate is imprecise.
        labels : array-like, shape (n_windows,) | None
            Label of each window: one of ``classes_``, or ``unlabeled_label`` if the window is
            unlabeled. If None, the classifier is adapted without labels, even if the dataset
            contains labels.

        Returns
        -------
        FewLabelsClassifier
            The adapted classifier, which can be saved like any fitted classifier. The original
            classifier is not changed.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If the windows belong to several subjects, if ``labels`` contains fewer than two
            classes, or if a label did not occur in ``fit``. Also in the cases in which
            ``predict_proba`` raises an error.

        Examples
        --------
        >>> from braindecode_pars import FewLabelsClassifier, as_sklearn, datasets
        >>> X, y, subjects = as_sklearn(datasets.mental_arithmetic())
        >>> is_new = subjects == "Subject20"
        >>> clf = FewLabelsClassifier(verbose=0).fit(X[~is_new], y[~is_new])
        >>> clf.adapt(X[is_new]).test_subject_data_.value
        'all unlabeled'
        """
        check_is_fitted(self)
        adapted, is_centered = copy.copy(self), self.recenter_ is not None
        adapted.recenter_ = None
        windows = windows_estimator.read_to_predict(
            self, convert.as_windows(X, labels), any_montage=bool(self.chs_info_)
        )
        codes, adapted.test_subject_data_ = new_subject.codes_to_adapt(
            self, windows, labels, is_centered=is_centered
        )
        adapted.views_ = {}
        for name, features in adapted._features(windows).items():
            clf, strength = self.views_[name], self.prior_strength_[name]
            adapted.views_[name] = new_subject.adapted(
                self, clf, strength, features, codes, is_centered=is_centered
            )
        adapted.one_class_recordings_ &= windows.table["recording"].nunique() == 1
        return adapted

    def _outputs(self, X: Any, groups: Any = None) -> torch.Tensor:
        check_is_fitted(self)
        groups = groups if self.recenter_ else None
        windows = windows_estimator.read_to_predict(
            self, X, any_montage=bool(self.chs_info_), groups=groups
        )
        probabilities = []
        for name, features in self._features(windows).items():
            scaler, regression = self.views_[name]
            # Set the features of missing channels to zero, which is their mean in fit after
            # standardization.
            scaled = np.nan_to_num(scaler.transform(features))
            probabilities.append(regression.predict_proba(scaled))
        # Soft voting, as in scikit-learn. The softmax of the logarithm is the mean probability.
        logits = np.log(np.maximum(np.average(probabilities, axis=0), np.finfo(np.float32).tiny))
        return torch.from_numpy(logits).float()

    def n_encoder_parameters(self, X: Any) -> int:
        """Return the number of weights of the encoder.

        Parameters
        ----------
        X : windows
            Not used, present for API consistency.

        Returns
        -------
        int
            Number of weights.
        """
        return computing.n_parameters(saved.load_encoder(self.encoder).encoder)

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> embedder.TrainingCost:
        """Return the training cost of the encoder, without fitting.

        The encoder was pretrained earlier, and ``fit`` does not train it. The weights and the
        iterations of the logistic regressions are not counted.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            Number of weights of the encoder, and number of steps of its pretraining.
            ``finetuning_steps`` is 0.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As in :meth:`fit`, except for errors about labels.
        """
        params = self.get_params(deep=False)
        shared = {name: params[name] for name in ("encoder", "sfreq", "preprocessing", "channels")}
        return embedder.PARSEmbedder(pooling="channels", **shared).training_cost(X, groups=groups)

    def _to_save(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        description = saved.describe_encoder(self.encoder_, self.encoder_card_)
        channels = [  # names and types of the channels
            {"ch_name": ch["ch_name"], **({"kind": int(ch["kind"])} if "kind" in ch else {})}
            for ch in self.chs_info_ or ()
        ]
        description["classifier"] = {
            "recenter": self.recenter_,
            "C": self.C_,
            "prior_strength": self.prior_strength_,
            "test_subject_data": self.test_subject_data_.value,
            "one_class_recordings": self.one_class_recordings_,
            "windows": saved_estimator.windows_to_json(self) | {"channels": channels},
        }
        arrays = {}
        if "tangent_space" in self._feature_sets:
            arrays["tangent_space.reference"] = self.tangent_space_.reference_
        for view, steps in self.views_.items():
            for step, names in zip(steps, _LEARNED, strict=True):
                arrays |= {f"views.{view}.{name}": getattr(step, f"{name}_") for name in names}
        tensors = {f"encoder.{name}": x for name, x in self.encoder_.state_dict().items()}
        return description, tensors | {name: torch.from_numpy(x) for name, x in arrays.items()}

    def _restore(
        self, described: dict[str, Any], loaded: Any, tensors: dict[str, torch.Tensor]
    ) -> None:
        self.__dict__.update(saved_estimator.fitted_from_json(described))
        self.encoder_, self.encoder_card_, self.load_report_ = loaded
        self.encoder_.eval()
        windows = described["windows"]
        self.n_chans_, self.n_times_ = windows["n_chans"], windows["n_times"]
        self.chs_info_ = windows["channels"] or None
        self.recenter_, self.C_ = described["recenter"], described["C"]
        self.test_subject_data_ = tables.TestSubjectData(
            described.get("test_subject_data") or described["access"]  # key of earlier versions
        )
        self.one_class_recordings_ = described.get("one_class_recordings", False)
        self.prior_strength_ = described["prior_strength"]
        if "tangent_space" in self._feature_sets:
            self.tangent_space_ = extra_module("pyriemann.tangentspace").TangentSpace()
            self.tangent_space_.reference_ = tensors["tangent_space.reference"].numpy()
        self.views_ = {}
        for view, C in self.C_.items():
            scaler, regression = clf = linear_probe.logistic_regression(C, self.class_weight)
            for step, names in zip(clf, _LEARNED, strict=True):
                for name in names:
                    setattr(step, f"{name}_", tensors[f"views.{view}.{name}"].numpy())
            scaler.var_ = scaler.scale_**2
            scaler.n_features_in_ = regression.n_features_in_ = len(scaler.mean_)
            regression.classes_ = np.arange(len(self.classes_))
            self.views_[view] = clf


def _subjects_of(windows: table.Windows) -> np.ndarray:
    """Return the subject code of each window; each subject must have at least 10 windows."""
    return transformers.subject_numbers(
        windows, transformers.MIN_WINDOWS, "recenter='subject'", _NOT_CENTERED
    )


def impute_covariances(covariances: np.ndarray, reference: np.ndarray) -> np.ndarray:
    r"""Replace covariances of missing channels with their expectation under a reference covariance.

    Let :math:`o` be the set of observed channels and :math:`m` the set of missing channels. For
    signals with the covariance :math:`R`, in which :math:`R_{mo}` is the block with the rows
    :math:`m` and the columns :math:`o`, the expectation of the missing signals given the observed
    signals :math:`x_o` is :math:`W x_o` with :math:`W = R_{mo} R_{oo}^{-1}`, and the conditional
    covariance is :math:`R_{mm} - W R_{om}`. With the observed covariance :math:`C_{oo}`, the
    covariance of missing and observed channels becomes :math:`W C_{oo}`, and the covariance of
    missing channels :math:`W C_{oo} W^\top + R_{mm} - W R_{om}`.

    Parameters
    ----------
    covariances : ndarray, shape (n_windows, n_chans, n_chans)
        Covariances, with NaN in the rows and columns of missing channels.
    reference : ndarray, shape (n_chans, n_chans)
        Reference covariance :math:`R` of all channels.

    Returns
    -------
    ndarray, shape (n_windows, n_chans, n_chans)
        Covariances without NaN. Observed entries are unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.baselines.few_labels import impute_covariances
    >>> covariances = np.array([[[2, np.nan], [np.nan, np.nan]]])
    >>> impute_covariances(covariances, reference=np.array([[1, 0.5], [0.5, 1]])).tolist()
    [[[2.0, 1.0], [1.0, 1.25]]]
    """
    filled = covariances.copy()
    is_observed = ~np.isnan(np.diagonal(covariances, axis1=1, axis2=2))
    for observed in np.unique(is_observed[~is_observed.all(axis=1)], axis=0):
        rows = np.flatnonzero((is_observed == observed).all(axis=1))
        within = reference[np.ix_(observed, observed)]
        across = reference[np.ix_(observed, ~observed)]
        weights = np.eye(len(observed))[:, observed]
        weights[~observed] = np.linalg.solve(within, across).T
        filled[rows] = weights @ covariances[np.ix_(rows, observed, observed)] @ weights.T
        filled[np.ix_(rows, ~observed, ~observed)] += (
            reference[np.ix_(~observed, ~observed)] - weights[~observed] @ across
        )
    return filled
