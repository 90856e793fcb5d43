"""Recentring: features minus their mean over the windows of each subject."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["recentred"]


def recentred(features: Tensor, subjects: Tensor, keep: Tensor | None = None) -> Tensor:
    r"""Return features minus their mean over the windows of the same subject, for each channel.

    With the windows :math:`W_s` of subject :math:`s` that have channel :math:`c`, window :math:`i`
    of this subject gets

    .. math:: f_{ic} - \frac{1}{|W_{sc}|} \sum_{j \in W_{sc}} f_{jc} .

    Parameters
    ----------
    features : Tensor, shape (batch, n_chans, n_features)
        Features of each channel.
    subjects : Tensor of int, shape (batch,)
        Subject of each window.
    keep : Tensor of bool, shape (batch, n_chans) | None
        Mask that is False for channels that do not count, which become zeros. None counts all.

    Returns
    -------
    Tensor, shape (batch, n_chans, n_features)
        Features whose mean over the windows of each subject is zero.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.models import recentred
    >>> features = torch.tensor([1.0, 3.0, 10.0, 12.0])[:, None, None]
    >>> recentred(features, torch.tensor([7, 7, 8, 8])).flatten()
    tensor([-1.,  1., -1.,  1.])
    """
    known, rows = torch.unique(subjects, return_inverse=True)
    counted = torch.ones_like(features[..., :1]) if keep is None else keep[..., None].to(features)
    # Sums and numbers of windows, (n_subjects, n_chans, ...).
    sums = features.new_zeros(len(known), *features.shape[1:]).index_add(
        0, rows, features * counted
    )
    numbers = counted.new_zeros(len(known), *counted.shape[1:]).index_add(0, rows, counted)
    return (features - (sums / numbers.clamp_min(1))[rows]) * counted
