"""PARSRegressor: pretraining and fine-tuning as one scikit-learn regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common.checks import listed
from braindecode_pars._common.model_files import REGRESSOR
from braindecode_pars.estimators.pars_estimator import PARSEstimator
from braindecode_pars.estimators.predict_raw import predict_raw
from braindecode_pars.estimators.windows_estimator import read_windows
from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.held_out import hold_out
from braindecode_pars.windows.labels import check_weights, targets_of
from braindecode_pars.windows.table import Windows


@dataclass(kw_only=True, eq=False, repr=False)
class PARSRegressor(RegressorMixin, PARSEstimator):
    """Pretrain an encoder without labels, then fine-tune it to predict a number.

    The number is one of each window, such as a reaction time, or one that all windows of a subject
    share, such as an age. Encoder, network and training are those of
    :class:`~braindecode_pars.PARSClassifier`; the network has one output, and another loss. The
    paper has no regression.

    Parameters
    ----------
    loss : "mse" | "huber"
        Loss of fine-tuning: the mean squared error, or Huber's, in which errors of more than one
        standard deviation of the training targets count linearly. Outliers then move the model
        less.
    pretext, pretext_params, encoder, continue_pretraining, freeze_encoder, sfreq, preprocessing, \
channels, patch_seconds, embed_dim, num_layers, num_heads, mlp_dim, tokenizer, channel_drop_prob, \
electrode_position, amplitude, head
        As in :class:`~braindecode_pars.PARSClassifier`.
    pretrain_epochs, pretrain_batch_size, pretrain_lr, finetune_epochs, finetune_batch_size, \
finetune_lr, finetune_warmup, head_epochs, encoder_lr_factor, gradient_clip, drop_prob, \
weight_decay, augmentation, callbacks, pretrain_callbacks
        As in :class:`~braindecode_pars.PARSClassifier`.
    validation : float | "split"
        As in :class:`~braindecode_pars.PARSClassifier`, but a share of the windows is not
        stratified.
    precision, compile, device, random_state, verbose, checkpoint_dir
        As in :class:`~braindecode_pars.PARSClassifier`.

    Attributes
    ----------
    target_mean_, target_scale_ : float
        Mean and standard deviation of the targets of the training windows. The network learns
        targets minus the mean, divided by the standard deviation.
    net_ : skorch.NeuralNetRegressor
        Fine-tuned net; its module is a PARSNet.
    encoder_, encoder_card_, fine_tuning_, history_, load_report_, sfreq_, preprocessing_, \
amplitudes_, n_chans_, n_times_, chs_info_
        As in :class:`~braindecode_pars.PARSClassifier`. The losses are those of standardised
        targets: with the mean squared error, 1 is about that of the mean of the training targets.

    Notes
    -----
    Compare it with a ridge regression on the features of the frozen encoder, which trains no
    network. For an age there are as many targets as subjects, so score subjects that are held out:
    :func:`~braindecode_pars.evaluation.regression_scores` has the scores over windows and over
    subjects.

    References
    ----------
    Huber 1964, Robust estimation of a location parameter, Annals of Mathematical Statistics 35.

    Examples
    --------
    A target of each window: the depth of simulated sleep.

    >>> import numpy as np
    >>> from braindecode_pars import PARSRegressor, as_sklearn, datasets
    >>> X, stages, subjects = as_sklearn(datasets.simulated.sleep(3, hours=0.2, n_chans=2))
    >>> depth = np.array([0.0, 1.0, 2.0, 3.0, 1.0])[stages]
    >>> regressor = PARSRegressor(pretrain_epochs=1, finetune_epochs=1, verbose=0)
    >>> regressor.fit(X, depth).predict(X).shape == depth.shape
    True

    The baseline:

    >>> from sklearn.linear_model import RidgeCV
    >>> from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import PARSEmbedder
    >>> ridge = make_pipeline(
    ...     PARSEmbedder(None, random_state=0, verbose=0),  # encoder="small" for yours
    ...     StandardScaler(),
    ...     RidgeCV(np.logspace(-2, 4, 13)),
    ... )
    >>> cross_val_predict(ridge, X, depth, groups=subjects, cv=LeaveOneGroupOut()).shape
    (72,)
    """

    loss: str = "mse"

    _kind = REGRESSOR

    # With scikit-learn's metadata routing, groups that are passed reach the predictions.
    __metadata_request__score = {"groups": True}  # noqa: RUF012
    __metadata_request__predict = {"groups": True}  # noqa: RUF012

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, unlabeled: Any = None
    ) -> PARSRegressor:
        """Pretrain on the training windows, then fine-tune on those with a target.

        Parameters
        ----------
        X, groups, unlabeled
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        y : array-like, shape (n_windows,) | None
            Targets, in any unit. NaN marks windows without one, which are used for pretraining
            only. None uses the labels of the dataset, unless they are codes of named classes.

        Returns
        -------
        PARSRegressor
            The fitted regressor itself.

        Raises
        ------
        TypeError, FileNotFoundError, KeyboardInterrupt
            As in :meth:`PARSClassifier.fit <braindecode_pars.PARSClassifier.fit>`.
        ValueError
            For the same windows and settings as there; when targets are missing, are no real
            numbers, are codes of the dataset's classes, are infinite, or are all the same.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            When pretraining or fine-tuning cannot have learned, or has learned nothing: too few
            steps, a pretraining loss at chance, or a validation loss that never fell, or was never
            below that of the mean of the training targets.
        """
        return self._fit(X, y, groups, unlabeled)

    def _read(
        self, X: Any, y: Any, groups: Any, *, any_montage: bool
    ) -> tuple[Windows, np.ndarray]:
        windows = read_windows(self, X, y, groups, any_montage=any_montage)
        targets = _targets(windows, y)
        return windows.with_labels(targets), ~np.isnan(targets)

    def _hold_out(self, windows: Windows, seed: int) -> tuple[Windows, Windows | None]:
        train, valid = hold_out(windows, self.validation, seed, stratified=False)
        targets = train.labels
        if np.ptp(targets) == 0:
            # scikit-learn's estimator checks expect "one sample" in the message.
            raise ValueError(
                f"All training targets are {targets[0]:g}, as if there were one sample; pass "
                "targets that differ."
            )
        self.target_mean_, self.target_scale_ = float(targets.mean()), float(targets.std())
        return self._standardised(train), None if valid is None else self._standardised(valid)

    def _standardised(self, windows: Windows) -> Windows:
        # In single precision, since some GPUs have no other.
        targets = (windows.labels - self.target_mean_) / self.target_scale_
        return windows.with_labels(targets.astype(np.float32))

    def predict(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the predicted number of each window.

        Parameters
        ----------
        X, groups
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`.

        Returns
        -------
        ndarray of float64, shape (n_windows,)
            Predictions, in the unit of the targets.

        Raises
        ------
        ValueError
            As in :meth:`PARSClassifier.predict_proba
            <braindecode_pars.PARSClassifier.predict_proba>`.
        """
        outputs = self._outputs(X)[:, 0].double().numpy()
        return self.target_mean_ + self.target_scale_ * outputs

    def predict_raw(
        self, raw: Any, *, overlap: float = 0.0, preprocess: bool = True, rescale: bool = False
    ) -> pd.DataFrame:
        """Predict a continuous recording, window after window.

        Parameters
        ----------
        raw, overlap, preprocess, rescale
            As in :meth:`PARSClassifier.predict_raw <braindecode_pars.PARSClassifier.predict_raw>`.

        Returns
        -------
        pandas.DataFrame
            One row for each window, with ``onset`` and ``duration`` in seconds, ``prediction`` in
            the unit of the targets, NaN in a window with a gap or a "BAD" annotation, and
            ``n_chans``. With ``overlap``, a prediction is the mean over the windows that share
            samples with the row. Its ``attrs`` are those of PARSClassifier, without classes.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError
            As in :meth:`PARSClassifier.predict_raw
            <braindecode_pars.PARSClassifier.predict_raw>`.
        """
        return predict_raw(self, raw, overlap=overlap, preprocess=preprocess, rescale=rescale)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> float:
        """Return the coefficient of determination, r2, of the windows with a target.

        Parameters
        ----------
        X, groups
            As in ``predict``.
        y : array-like, shape (n_windows,) | None
            Targets. Windows with NaN are ignored. None uses the labels of the dataset.
        sample_weight : array-like, shape (n_windows,) | None
            Weight of each window.

        Returns
        -------
        float
            1 for perfect predictions, 0 for the mean of ``y``, and less than 0 for worse ones.

        Raises
        ------
        ValueError
            When windows, targets or weights are malformed, or when no target is known.
        """
        check_is_fitted(self)
        given = as_windows(X, y, groups)
        targets = _targets(given, y)
        known = ~np.isnan(targets)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(given))[known]
        predicted = self.predict(given)[known]
        return float(r2_score(targets[known], predicted, sample_weight=sample_weight))


def _targets(windows: Windows, y: Any) -> np.ndarray:
    """Return the targets of windows: ``y``, or the labels of the dataset if they are quantities."""
    found = set() if windows.y is None else {*windows.y.tolist()}
    named = (windows.label_names or {}).items()
    names = [name for name, code in named if code in found and name != str(code)]
    if y is None and names:
        raise ValueError(
            f"The labels of these windows are codes of classes ({listed(names)}), not quantities; "
            "pass y, one number for each window. PARSClassifier takes classes."
        )
    return targets_of(windows)
