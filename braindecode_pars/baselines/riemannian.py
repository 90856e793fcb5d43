"""RiemannianCentering: Riemannian recentering and rescaling of the covariances of each subject."""

from typing import Any

import numpy as np

from braindecode_pars._common.names import extra_module
from braindecode_pars.estimators.transformers import MIN_WINDOWS, SubjectCentering


class RiemannianCentering(SubjectCentering):
    r"""Riemannian recentering: recenter and rescale the covariances of each subject (transductive).

    Let :math:`M` be the Riemannian mean of the covariances :math:`C_i` of a subject. Each
    covariance becomes :math:`M^{-1/2} C_i M^{-1/2}` (recentering). If ``rescale`` is True, all
    recentered covariances of the subject are then raised to the same power, which is chosen so that
    their mean squared distance from the identity is 1 (rescaling). The computations are the same as
    in pyRiemann.

    Use this transformer before the Riemannian tangent space, as in
    ``make_pipeline(RiemannianCentering(SpatialCovariance()), TangentSpace())``.

    **This method is transductive.** Each prediction also uses the other windows of the test
    subject, without their labels; see :class:`~braindecode_pars.SubjectCentering`.

    Parameters
    ----------
    transformer : transformer
        Required: a transformer that computes the covariance of each window, such as
        :class:`~braindecode_pars.evaluation.SpatialCovariance`.
    min_windows : int
        Minimum number of windows per subject. If a subject has fewer windows, ``fit`` and
        ``transform`` raise a ValueError.
    rescale : bool
        Whether to rescale the covariances of each subject after recentering.

    Attributes
    ----------
    transformer_, test_subject_data_
        As in :class:`~braindecode_pars.SubjectCentering`.

    References
    ----------
    Zanini et al. 2018, IEEE Transactions on Biomedical Engineering 65, for recentering
    (``TLCenter`` of pyRiemann); Rodrigues et al. 2019, IEEE Transactions on Biomedical Engineering
    66, for rescaling (``TLScale`` of pyRiemann).

    Examples
    --------
    >>> from pyriemann.tangentspace import TangentSpace
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.estimators import LinearProbe, RiemannianCentering
    >>> from braindecode_pars.evaluation import SpatialCovariance
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=3))
    >>> features = make_pipeline(RiemannianCentering(SpatialCovariance()), TangentSpace())
    >>> LinearProbe(features).fit(X, y).predict(X).shape
    (72,)
    """

    running = False

    def __init__(
        self, transformer: Any = None, *, min_windows: int = MIN_WINDOWS, rescale: bool = True
    ):
        self.transformer = transformer
        self.min_windows = min_windows
        self.rescale = rescale

    def _centered(self, features: np.ndarray, subjects: np.ndarray) -> np.ndarray:
        transfer = extra_module("pyriemann.transfer")

        texts = subjects.astype(str)
        _, domains = transfer.encode_domains(features, texts, texts)
        centered = transfer.TLCenter("").fit_transform(features, domains)
        scale = transfer.TLScale("", centered_data=True)
        return scale.fit_transform(centered, domains) if self.rescale else centered
