"""FewLabelsClassifier: encoder, tangent space and band power vote, for few labeled people."""

import copy
import logging
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
    transformers,
    windows_classifier,
    windows_estimator,
)
from braindecode_pars.models import electrodes, embed_channels
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.windows import amplitudes, convert, labels, table, transitions
from braindecode_pars.windows.preprocessing import Preprocessing

log = logging.getLogger(__name__)

#: Feature sets that may be combined, and those that are by default.
VIEWS = ("encoder", "tangent_space", "band_power", "hand_crafted")
DEFAULT_VIEWS = VIEWS[:3]
#: What the standardization and the logistic regression of a view have learned.
_LEARNED = (("mean", "scale"), ("coef", "intercept"))

_ONE_CLASS = "Each subject has one class, which the mean of the subject would remove."
_NOT_CENTERED = "fit with recenter=None, in the command fit --set recenter=null"
_NOT_SEARCHED = "not searched, since it needs two known subjects and all classes in a fold"


@dataclass(kw_only=True, eq=False, repr=False)
class FewLabelsClassifier(saved.SavedEstimator, windows_classifier.WindowsClassifier):
    r"""Soft-voting ensemble of linear classifiers, for data with few labeled subjects.

    Each feature set (view) has a logistic regression of its own, after features are standardized.
    The probability of a class is the mean over the views,

    .. math::
        p(c \mid x) = \frac{1}{n_v} \sum_{v} p_v(c \mid x) .

    By default, the views are the features of a frozen pretrained encoder, channel by channel
    (:class:`~braindecode_pars.PARSEmbedder`); the tangent space of the covariance of the channels
    (:class:`~braindecode_pars.evaluation.SpatialCovariance` and pyriemann); and log band power
    (:class:`~braindecode_pars.evaluation.LogBandPower`). Nothing in the encoder is trained, so a
    fit takes seconds.

    **It is transductive when it centers by subject**, which it does by default where subjects are
    known: the mean over the windows of each subject is subtracted from the features, so that a
    prediction uses the other windows of the test subject in the call, without their labels. A
    label that all windows of a subject share, such as a diagnosis, would be removed with the mean,
    so that there it does not. Compare only with methods that are given the same
    (:class:`~braindecode_pars.SubjectCentering`).

    Parameters
    ----------
    encoder : path | str | fitted estimator, net or model
        Pretrained encoder, as in :class:`~braindecode_pars.PARSClassifier`. It stays as it is.
    recenter : "auto" | "subject" | None
        Whether the mean of each subject is subtracted from the features. Fit and prediction then
        need all windows of a subject together, at least ten of each. ``"auto"`` does so where the
        subject of every window of ``fit`` is known and has as many, unless each subject has one
        class; the log says what it chose. ``"subject"`` then gives a warning.
    views : list of str | None
        Feature sets whose probabilities are averaged: ``"encoder"``, ``"tangent_space"``,
        ``"band_power"`` and ``"hand_crafted"``, the features of
        :class:`~braindecode_pars.evaluation.ChannelFeatures`. If None, the first three. With
        ``["encoder"]`` it is a linear probe of the encoder.
    C : float | None
        Inverse strength of the regularization of all views, as in scikit-learn. With None it is
        searched for each view in 0.001, 0.01, 0.1 and 1, by the log loss of held-out subjects in
        up to five folds; with a single subject, or unknown ones, it is 0.01. With four and
        eight labeled people, 0.01 was better than the search on development subjects.
    prior_strength : float | None
        How strongly :meth:`adapt` shrinks the weights for a new person towards those of ``fit``, as
        in :class:`~braindecode_pars.estimators.LinearProbe`. None searches it for each view.
    class_weight : "balanced" | dict | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    sfreq : float | None
        Sampling rate in Hz, for windows without one (arrays, lists).
    preprocessing : Preprocessing | dict | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    channels : list of str | None
        As in :class:`~braindecode_pars.PARSClassifier`. Recordings with different channels are
        fitted on their common channels, and a warning lists the others.
    unlabeled_label : hashable | None
        Label of windows that are left out, as in :class:`~braindecode_pars.PARSClassifier`.
    device : str
        Name of a torch device for the encoder. ``"auto"`` uses CUDA, then MPS, then the CPU.
    verbose : int
        Verbosity: 0 logs nothing; 1 logs what ``recenter`` and ``C`` are.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, in the order of the columns of ``predict_proba``.
    class_names_ : dict of label to str | None
        As in :class:`~braindecode_pars.PARSClassifier`.
    recenter_ : "subject" | None
        What ``recenter`` is, or what ``"auto"`` has chosen; None in an adapted classifier.
    prior_strength_ : dict of str to float
        Strength of the prior of each view.
    one_class_recordings_ : bool
        Whether each recording of ``fit`` has one class; the mean of one alone then removes it.
    test_subject_data_ : TestSubjectData
        What a prediction is given of the test person, beside its window.
    C_ : dict of str to float
        C of each view.
    views_ : dict of str to Pipeline
        Standardization and logistic regression of each view. Their classes are indices into
        ``classes_``.
    tangent_space_ : pyriemann.tangentspace.TangentSpace
        Tangent space at the mean covariance of the training windows. Only present with that view.
    encoder_ : PatchEncoder
        The encoder, on the CPU.
    encoder_card_ : EncoderCard
        Training data and pretext task of the encoder, and the subjects of this fit as
        ``finetune_subjects``.
    load_report_ : LoadReport
        Tensors of the encoder that were loaded. Only present when it came from a folder.
    sfreq_, preprocessing_, amplitudes_, transitions_, n_chans_, n_times_, chs_info_
        As in :class:`~braindecode_pars.PARSClassifier`.

    Notes
    -----
    The fit has no random draws. Windows to predict need the unit of those of ``fit``: unlike the
    encoder, the tangent space and band power see amplitudes. They may have another length, but the
    power of a band in windows of less than two seconds is another one.

    When windows to predict lack channels, or some are flat, the others vote. A logistic regression
    adds up a part of each channel, and the features of a missing one are set to their mean in
    ``fit``, so that it adds nothing. For the tangent space, rows and columns of the covariance that
    are missing are those to expect by the channels that are there and the mean covariance of
    ``fit``.

    References
    ----------
    Barachant et al. 2012, IEEE Transactions on Biomedical Engineering 59, for the tangent space.
    Kittler et al. 1998, On combining classifiers, IEEE Transactions on Pattern Analysis and Machine
    Intelligence 20, for the mean of probabilities.

    Examples
    --------
    >>> from braindecode_pars import FewLabelsClassifier, as_sklearn, datasets
    >>> X, y, subjects = as_sklearn(datasets.mental_arithmetic())
    >>> labeled = subjects >= "Subject20"  # four people
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
    class_weight: str | dict | None = "balanced"
    sfreq: float | None = None
    preprocessing: Preprocessing | dict[str, Any] | None = None
    channels: list[str] | None = None
    unlabeled_label: Any = "auto"
    device: str = "auto"
    verbose: int = 1

    _kind = model_files.FEW_LABELS
    _own_rules = {  # noqa: RUF012
        "views": checks.optional(
            checks.ParameterRule(
                f"a list with some of {', '.join(VIEWS)}",
                (list,),
                lambda views: 0 < len(views) == len({*views} & {*VIEWS}),
            )
        )
    }

    @property
    def _view_names(self) -> list[str]:
        return list(DEFAULT_VIEWS) if self.views is None else self.views

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "views_")

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Embed the labeled windows once, and fit a logistic regression to each view of them.

        Parameters
        ----------
        X, y
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        groups : array-like, shape (n_windows,) | None
            Subject of each window, for ``recenter``, the search of ``C`` and the card of the
            encoder. None uses the subjects of the dataset.

        Returns
        -------
        FewLabelsClassifier
            The fitted classifier itself.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            For the same windows, labels and encoders as in PARSClassifier. With
            ``recenter="subject"`` also when the subject of a window is unknown or has fewer than
            ten windows.
        """
        windows_estimator.check_estimator(self)
        if self.encoder is None:
            raise ValueError('FewLabelsClassifier: encoder is None; pass "small" or another.')
        computing.find_device(self.device)
        with windows_estimator.fresh_fit(self):
            windows = windows_classifier.read_labeled(self, X, y, groups)
            windows = windows[windows.labels >= 0]
            encoder, card, _ = embedder.load_or_build_encoder(self, windows).given  # type: ignore[misc]  # not None
            self.encoder_ = copy.deepcopy(encoder).cpu().eval()
            self.encoder_card_ = cards.fine_tuned_card(card, self.sfreq_, windows.corpus_subjects)
            self.amplitudes_ = amplitudes.amplitude_range(windows, compare=True)
            self.recenter_ = self._chosen_recentering(windows)
            self.test_subject_data_ = (
                tables.TestSubjectData.ALL_UNLABELED
                if self.recenter_
                else tables.TestSubjectData.NONE
            )
            several = windows.table["recording"].duplicated(keep=False).to_numpy()
            parts = windows.labels[several], windows.table["recording"][several]
            self.one_class_recordings_ = labels.one_class_each(*parts)
            # Features, once
            measured = self._measured(windows)
            if "tangent_space" in self._view_names:
                tangentspace = extra_module("pyriemann.tangentspace")
                self.tangent_space_ = tangentspace.TangentSpace().fit(measured["tangent_space"])
            features = self._features(windows, measured)
            # A classifier of each view
            weight_args = windows.labels, self.classes_, self.class_weight
            weights = linear_probe.weights_of_codes(*weight_args)
            folds = linear_probe.folds_of_subjects(windows)
            unfitted = linear_probe.logistic_regression(self.C, weights)
            of_c = folds if self.C is None else []
            self.views_ = {
                view: linear_probe.fit_searched(unfitted, view_features, windows.labels, of_c)
                for view, view_features in features.items()
            }
            self.prior_strength_ = {
                view: self.prior_strength
                or new_subject.chosen_strength(self.views_[view], view_features, windows, folds)
                for view, view_features in features.items()
            }
            self.C_ = {view: float(clf[-1].C) for view, clf in self.views_.items()}
            if self.verbose and self.C is None:
                c_values = ", ".join(f"{c:g} ({view})" for view, c in self.C_.items())
                how = f"chosen in {len(folds)} folds of subjects" if folds else _NOT_SEARCHED
                log.info("C is %s: %s.", c_values, how)
        return self

    def _chosen_recentering(self, windows: table.Windows) -> str | None:
        """Return whether the means of subjects are subtracted, and log it."""
        if self.recenter is None:
            return None
        is_auto, against = self.recenter == checks.AUTO, ""
        try:
            if labels.one_class_each(windows.labels, _subjects_of(windows)):
                against = _ONE_CLASS
        except ValueError as error:
            if not is_auto:
                raise
            against = str(error)
        chosen = None if is_auto and against else "subject"
        if is_auto and self.verbose:
            reason = against or "The subject of every window is known."
            log.info("recenter='auto' is %r. %s", chosen, reason)
        elif against and not is_auto:
            checks.warn_user(f"{_ONE_CLASS} To learn it, {_NOT_CENTERED}.")
        return chosen

    def _measured(self, windows: table.Windows) -> dict[str, np.ndarray]:
        """Return embeddings, covariances and log band powers, and which channels are ``flat``."""
        setup = tuple(ch["ch_name"] for ch in self.chs_info_ or ()), self.sfreq_
        return windows_estimator.computed_once(
            lambda: (type(self), (*self._view_names,), saved.encoder_digest(self.encoder_), *setup),
            windows,
            self._measure_windows,
        )

    def _measure_windows(self, windows: table.Windows) -> dict[str, np.ndarray]:
        """Compute them; each window is read once. Those of missing channels are NaN."""
        device = computing.find_device(self.device)
        encoder = copy.deepcopy(self.encoder_).to(device)
        covariance = window_features.SpatialCovariance()
        measures = {
            "band_power": window_features.LogBandPower(),
            "hand_crafted": window_features.ChannelFeatures(),
        }
        parts: dict[str, list] = {name: [] for name in (*self._view_names, "flat")}
        fitted = [ch["ch_name"] for ch in self.chs_info_ or ()]
        n_fitted = int(self.n_chans_ or 0)
        with computing.usual_torch(gradients=False):
            for batch, montage in windows_estimator.batches(windows, encoder.patch_size, device):
                if not fitted or not montage.names:
                    windows_estimator.check_n_chans(self, batch.shape[1])
                    there = np.arange(batch.shape[1])
                elif set(montage.names) <= set(fitted):
                    there = np.array([fitted.index(name) for name in montage.names])
                else:  # all others, since none was found
                    raise ValueError(
                        f"The windows have none of the channels of fit ({checks.format_list(fitted)})."
                    )
                n = len(batch)
                signals = batch.cpu().numpy().astype(float)
                for view in (view for view in self._view_names if view != "tangent_space"):
                    if view == "encoder":
                        positions = electrodes.positions_of(montage.chs_info, batch)
                        features = embed_channels(encoder, batch, positions)
                        values = windows_estimator.check_finite(features).cpu().numpy()
                    else:
                        values = measures[view].measure(signals, self.sfreq_)
                    whole = np.full((n, n_fitted, values.size // (n * len(there))), np.nan)
                    whole[:, there] = values.reshape(n, len(there), -1)
                    parts[view].append(whole.reshape(n, -1))
                if "tangent_space" in self._view_names:
                    whole = np.full((n, n_fitted, n_fitted), np.nan)
                    whole[:, there[:, None], there] = covariance.measure(signals, None)
                    parts["tangent_space"].append(whole)
                flat = np.zeros((n, n_fitted), dtype=bool)
                flat[:, there] = amplitudes.flat_channels(signals)
                parts["flat"].append(flat)
        return {view: np.concatenate(arrays) for view, arrays in parts.items()}

    def _features(
        self, windows: table.Windows, measured: dict[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Return the features of each view, centered by subject if ``recenter_`` says so.

        Without ``measured``, which is that of ``fit``, flat channels count as missing.
        """
        if measured is None:
            measured = dict(self._measured(windows))
            for view in self._view_names:
                measured[view] = _without_channels(measured[view], measured["flat"])
        features = {view: measured[view] for view in self._view_names}
        if "tangent_space" in self._view_names:
            whole = impute_covariances(measured["tangent_space"], self.tangent_space_.reference_)
            tangents = self.tangent_space_.transform(whole)
            tangents[np.isnan(measured["tangent_space"]).all(axis=(1, 2))] = np.nan
            features["tangent_space"] = tangents
        if self.recenter_ is None:
            return features
        subjects = _subjects_of(windows)
        return {view: transformers.subtract_means(X, subjects) for view, X in features.items()}

    def adapt(self, X: Any, labels: Any = None) -> Self:
        """Return a classifier for one new person, from windows of this person.

        Without labels, the mean of the person's features takes the place of that of the training;
        predictions then do not depend on which windows are passed together. With labels, the
        weights of each view are also fitted to them, shrunk towards those of the other people
        (:func:`~braindecode_pars.baselines.new_subject.ridge_towards`). The mean is then left as it
        is, unless the classifier was fitted on centered features.

        Parameters
        ----------
        X : windows
            Windows of one subject. The mean of fewer than ten is imprecise, with a warning.
        labels : array-like, shape (n_windows,) | None
            Labels among ``classes_``; those of windows without one are ``unlabeled_label``. The
            labels of a dataset are not used unless they are passed.

        Returns
        -------
        FewLabelsClassifier
            The adapted classifier, which can be saved; this one stays as it is.

        Raises
        ------
        NotFittedError
            Before :meth:`fit`.
        ValueError
            When the windows are of several subjects, the labels have fewer than two classes, or a
            label is no class of ``fit``; also as in ``predict_proba``.

        Examples
        --------
        >>> from braindecode_pars import FewLabelsClassifier, as_sklearn, datasets
        >>> X, y, subjects = as_sklearn(datasets.mental_arithmetic())
        >>> new = subjects == "Subject20"
        >>> clf = FewLabelsClassifier(verbose=0).fit(X[~new], y[~new])
        >>> clf.adapt(X[new]).test_subject_data_.value
        'unlabeled windows of the test person'
        """
        check_is_fitted(self)
        adapted, windows = copy.copy(self), convert.as_windows(X, labels)
        adapted.recenter_ = None
        adapted.views_, adapted.test_subject_data_ = new_subject.adapted_views(
            self,
            windows_estimator.read_to_predict(self, windows, any_montage=bool(self.chs_info_)),
            labels,
            {view: (clf, self.prior_strength_[view]) for view, clf in self.views_.items()},
            adapted._features,
            is_centered=self.recenter_ is not None,
        )
        adapted.one_class_recordings_ &= windows.table["recording"].nunique() == 1
        return adapted

    def _outputs(self, X: Any, groups: Any = None) -> torch.Tensor:
        check_is_fitted(self)
        groups = groups if self.recenter_ else None
        windows = windows_estimator.read_to_predict(
            self, X, any_montage=bool(self.chs_info_), groups=groups
        )
        votes = []
        for view, view_features in self._features(windows).items():
            scaler, regression = self.views_[view]
            # Zero is the mean of fit: the vote of a missing channel.
            votes.append(regression.predict_proba(np.nan_to_num(scaler.transform(view_features))))
        # The soft vote, as in scikit-learn. The softmax of its logarithm is the vote again.
        logits = np.log(np.maximum(np.average(votes, axis=0), np.finfo(np.float32).tiny))
        return torch.from_numpy(logits).float()

    def n_encoder_parameters(self, X: Any) -> int:
        """Return the number of parameters of the encoder.

        Parameters
        ----------
        X : windows
            Not used.

        Returns
        -------
        int
            Number of parameters of the given encoder.
        """
        return computing.n_parameters(saved.load_encoder(self.encoder).encoder)

    def training_cost(self, X: Any, y: Any = None, *, groups: Any = None) -> embedder.TrainingCost:
        """Return what ``fit`` would cost, without fitting; logistic regressions do not count.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        TrainingCost
            That of the earlier pretraining of the encoder.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As :meth:`fit`, except the errors about labels.
        """
        params = self.get_params(deep=False)
        shared = {name: params[name] for name in ("encoder", "sfreq", "preprocessing", "channels")}
        return embedder.PARSEmbedder(pooling="channels", **shared).training_cost(X, groups=groups)

    def _to_save(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        description = saved.describe_encoder(self.encoder_, self.encoder_card_)
        channels = [
            {"ch_name": ch["ch_name"], **({"kind": int(ch["kind"])} if "kind" in ch else {})}
            for ch in self.chs_info_ or ()
        ]
        description["classifier"] = {
            "recenter": self.recenter_,
            "C": self.C_,
            "prior_strength": self.prior_strength_,
            "test_subject_data": self.test_subject_data_.value,
            "one_class_recordings": self.one_class_recordings_,
            "windows": self._windows_to_save() | {"channels": channels},
        }
        arrays = {}
        if "tangent_space" in self._view_names:
            arrays["tangent_space.reference"] = self.tangent_space_.reference_
        for view, steps in self.views_.items():
            for step, names in zip(steps, _LEARNED, strict=True):
                arrays |= {f"views.{view}.{name}": getattr(step, f"{name}_") for name in names}
        of_encoder = {f"encoder.{k}": value for k, value in self.encoder_.state_dict().items()}
        return description, of_encoder | {k: torch.from_numpy(v) for k, v in arrays.items()}

    def _restore(
        self, described: dict[str, Any], loaded: Any, tensors: dict[str, torch.Tensor]
    ) -> None:
        self.encoder_, self.encoder_card_, self.load_report_ = loaded
        self.encoder_.eval()
        windows = described["windows"]
        self.n_chans_, self.n_times_ = windows["n_chans"], windows["n_times"]
        self.chs_info_ = windows["channels"] or None
        self.recenter_, self.C_ = described["recenter"], described["C"]
        self.test_subject_data_ = tables.TestSubjectData(
            described.get("test_subject_data") or described["access"]  # of earlier versions
        )
        self.one_class_recordings_ = described.get("one_class_recordings", False)
        self.prior_strength_ = described["prior_strength"]
        self.transitions_ = transitions.Transitions.from_json(described["transitions"])
        if "tangent_space" in self._view_names:
            tangentspace = extra_module("pyriemann.tangentspace")
            self.tangent_space_ = tangentspace.TangentSpace()
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


def _without_channels(features: np.ndarray, is_missing: np.ndarray) -> np.ndarray:
    """Return features, or covariances, in which those of missing channels are NaN.

    Parameters
    ----------
    features : ndarray, shape (n_windows, n_chans * n_features) or (n_windows, n_chans, n_chans)
        Features channel by channel, or covariances.
    is_missing : ndarray of bool, shape (n_windows, n_chans)
        Missing channels of each window.
    """
    if features.ndim == 3:
        is_missing = is_missing[:, :, None] | is_missing[:, None, :]
        return np.where(is_missing, np.nan, features)
    of_channels = features.reshape(*is_missing.shape, -1)
    return np.where(is_missing[..., None], np.nan, of_channels).reshape(len(features), -1)


def _subjects_of(windows: table.Windows) -> np.ndarray:
    """Return the number of each window's subject, all of whose windows must be there."""
    return transformers.subject_numbers(
        windows, transformers.MIN_WINDOWS, "recenter='subject'", _NOT_CENTERED
    )


def impute_covariances(covariances: np.ndarray, reference: np.ndarray) -> np.ndarray:
    r"""Return covariances with what is to expect of missing channels.

    With the channels :math:`o` that are there and the missing ones :math:`m`, the expectation of
    the missing signals under the reference :math:`R` is :math:`W x_o` with
    :math:`W = R_{mo} R_{oo}^{-1}`, and what remains has the covariance
    :math:`R_{mm} - W R_{om}`.

    Parameters
    ----------
    covariances : ndarray, shape (n_windows, n_chans, n_chans)
        Covariances, with NaN in the rows and columns of missing channels.
    reference : ndarray, shape (n_chans, n_chans)
        Covariance of all channels.

    Returns
    -------
    ndarray, shape (n_windows, n_chans, n_chans)
        Covariances without NaN; entries that were there are unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.baselines.few_labels import impute_covariances
    >>> nan = np.nan
    >>> impute_covariances(np.array([[[2, nan], [nan, nan]]]), np.array([[1, 0.5], [0.5, 1]])).tolist()
    [[[2.0, 1.0], [1.0, 1.25]]]
    """
    filled = covariances.copy()
    present = ~np.isnan(np.diagonal(covariances, axis1=1, axis2=2))
    for there in np.unique(present[~present.all(axis=1)], axis=0):
        rows = np.flatnonzero((present == there).all(axis=1))
        within, across = reference[np.ix_(there, there)], reference[np.ix_(there, ~there)]
        expected = np.eye(len(there))[:, there]
        expected[~there] = np.linalg.solve(within, across).T
        observed = covariances[np.ix_(rows, there, there)]
        filled[rows] = expected @ observed @ expected.T
        filled[np.ix_(rows, ~there, ~there)] += (
            reference[np.ix_(~there, ~there)] - expected[~there] @ across
        )
    return filled
