"""The estimator checks of scikit-learn, through subclasses that accept two-dimensional data."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from braindecode_pars import (
    PARSClassifier,
    PARSEmbedder,
    PARSRegressor,
)
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.windows.table import Windows


class FlatData:
    """Mixin that turns every row into a window of one channel: (n, f) -> (n, 1, f)."""

    def fit(self, X, y=None, **weights):
        if y is None and not isinstance(self, PARSEmbedder):
            raise ValueError("requires y to be passed, but the target y is None")
        X = validate_data(self, X, **({} if y is None else {"y": y}))
        X, y = X if isinstance(X, tuple) else (X, None)
        super().fit(self.windows(X), y, **weights)
        self.n_features_in_ = X.shape[1]
        return self

    def windows(self, X):
        return X.astype(np.float32)[:, None]

    def as_fitted(self, X):
        if hasattr(self, "n_features_in_") and not isinstance(X, Windows):
            X = self.windows(validate_data(self, X, reset=False))
        return X


TINY = dict(sfreq=1.0, embed_dim=8, num_layers=1, num_heads=2, mlp_dim=8)
#: The embedder is pretrained, and stands for the others.
SHORT = dict(pretext=None, finetune_epochs=1, finetune_lr=1e-2, channel_drop_prob=0.0)
SHORT["validation"] = 0.0


class FlatClassifier(FlatData, PARSClassifier):
    def __init__(self, *, random_state=None, unlabeled_label=None, verbose=0):
        super().__init__(
            **TINY,
            **SHORT,
            random_state=random_state,
            unlabeled_label=unlabeled_label,
            verbose=verbose,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # scikit-learn's data have two features, hence windows of two samples. After instance
        # normalization only their order is left, which cannot separate three classes.
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X, y=None):
        return super().fit(X, y)

    def _outputs(self, X, groups):
        return super()._outputs(self.as_fitted(X), groups)

    def score(self, X, y, sample_weight=None):
        return super().score(validate_data(self, X, reset=False)[:, None], y, sample_weight)


class FlatRegressor(FlatData, PARSRegressor):
    def __init__(self, *, random_state=None, verbose=0):
        super().__init__(**TINY, **SHORT, random_state=random_state, verbose=verbose)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # as of FlatClassifier
        return tags

    def fit(self, X, y=None):
        return super().fit(X, y)

    def predict(self, X):
        return super().predict(self.as_fitted(X))

    def score(self, X, y, sample_weight=None):
        return super().score(validate_data(self, X, reset=False)[:, None], y, sample_weight)


class FlatEmbedder(FlatData, PARSEmbedder):
    def __init__(self, *, random_state=None, verbose=0):
        super().__init__(**TINY, pretrain_epochs=1, random_state=random_state, verbose=verbose)

    def transform(self, X):
        return super().transform(self.as_fitted(X))


class FlatProbe(FlatData, LinearProbe):
    def __init__(self, *, C=1.0, unlabeled_label=None):
        super().__init__(FunctionTransformer(samples), C=C, unlabeled_label=unlabeled_label)

    def fit(self, X, y=None):
        return super().fit(X, y)

    def _predictions(self, X, groups=None):
        return super()._predictions(self.as_fitted(X), groups)

    def predict(self, X):
        return super().predict(X)

    def predict_proba(self, X):
        return super().predict_proba(X)

    def score(self, X, y, sample_weight=None):
        return super().score(validate_data(self, X, reset=False)[:, None], y, sample_weight)


def samples(windows):
    return np.stack([window.ravel() for window in windows])


#: Checks that fail on purpose -> reason.
EXPECTED = {
    "check_fit2d_1feature": "a window of one sample has one patch and thus no shift to learn, so "
    "fit raises an error of this package",
}


CHECKS = parametrize_with_checks(
    [FlatClassifier(), FlatRegressor(), FlatEmbedder(), FlatProbe()],
    expected_failed_checks=lambda one: EXPECTED if isinstance(one, FlatEmbedder) else {},
).mark


#: Checks with many windows or fits. In the quick tests, LinearProbe, whose fit is the fastest and
#: whose base classes the others share, stands for all.
LONG = {
    *("check_classifiers_train", "check_methods_subset_invariance"),
    *("check_estimators_dtypes", "check_classifiers_classes"),
    *("check_regressor_data_not_an_array", "check_classifier_data_not_an_array"),
    *("check_transformer_data_not_an_array", "check_regressors_train", "check_regressors_int"),
    *("check_fit_idempotent", "check_dtype_object", "check_estimators_pickle"),
    *("check_methods_sample_order_invariance", "check_supervised_y_2d"),
    *("check_pipeline_consistency", "check_transformer_general"),
}
#: Checks of input and attributes, which PARSRegressor shares with PARSClassifier.
SHARED = "positive_only|score_takes|features_in|is_fitted|_nan_|contiguous|fit2d|overwrite|memmap"


def marked(case):
    """Mark what repeats a check on a memory map; check_readonly_memmap_input fits on one."""
    values, marks = getattr(case, "values", case), getattr(case, "marks", ())
    name = CHECKS.kwargs["ids"](values[1])
    if "(readonly_memmap" in name:
        marks = [*marks, pytest.mark.slow, pytest.mark.nightly]
    is_shared = isinstance(values[0], FlatRegressor) and re.search(SHARED, name)
    if is_shared or (name in LONG and not isinstance(values[0], FlatProbe)):
        marks = [*marks, pytest.mark.slow]
    return pytest.param(*values, marks=marks)


@pytest.mark.parametrize(CHECKS.args[0], map(marked, CHECKS.args[1]), **CHECKS.kwargs)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
