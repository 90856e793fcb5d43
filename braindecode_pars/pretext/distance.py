"""Loss of PARS with ``target="distance"``: how far apart two patches are, and their order."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from braindecode_pars._common.checks import check_parameters, integer, positive

__all__ = ["DistanceLoss"]

_RULES = dict(n_bins=integer(2), shortest=positive(), longest=positive())

#: A distance on an edge belongs to the upper bin, also where rounding makes it slightly smaller.
_ROUNDING = 1e-4


class DistanceLoss(nn.Module):
    r"""Cross-entropy of the distance of two patches in bins, plus that of their order.

    The squared error of a shift is dominated by pairs far apart, and the best guess of a model
    that knows a distance but not the order is zero. Here the prediction for a pair
    :math:`(j, k)` has ``n_bins`` logits for the distance :math:`|\theta_{jk}|`, and one logit for
    patch :math:`j` being the later one.

    Bins are equally wide on a logarithmic scale from ``shortest`` to ``longest``; the first one
    also has all shorter distances. The diagonal is left out. Two patches with the same start have
    a distance but no order.

    Parameters
    ----------
    n_bins : int
        Number of bins, at least 2.
    shortest, longest : float
        Range of the bins, in the unit of the shifts; ``shortest < longest``.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.distance import DistanceLoss
    >>> shifts = torch.tensor([[[0.0, 0.1, -0.4], [-0.1, 0.0, -0.5], [0.4, 0.5, 0.0]]])
    >>> criterion = DistanceLoss(n_bins=3, shortest=0.1, longest=0.8)
    >>> criterion.bins(shifts)
    tensor([[[0, 0, 2],
             [0, 0, 2],
             [2, 2, 0]]])
    >>> logits = torch.zeros(1, 3, 3, 4)  # a uniform guess costs log 3 + log 2
    >>> round(criterion(logits, shifts).item(), 3)
    1.792
    """

    def __init__(self, n_bins: int, shortest: float, longest: float):
        super().__init__()
        check_parameters(locals(), _RULES, type(self).__name__)
        if not shortest < longest:
            raise ValueError(
                f"DistanceLoss: shortest must be less than longest, got {shortest} and {longest}."
            )
        self.n_bins = n_bins
        self.shortest = shortest
        self.longest = longest

    def bins(self, shifts: Tensor) -> Tensor:
        """Return the bin of each distance.

        Parameters
        ----------
        shifts : Tensor, shape (...)
            Shifts in the unit of ``shortest`` and ``longest``.

        Returns
        -------
        Tensor of int64, shape (...)
            Numbers of the bins, 0 to ``n_bins - 1``.
        """
        octaves = (shifts.abs() / self.shortest).log() / math.log(self.longest / self.shortest)
        bins = (octaves * self.n_bins + _ROUNDING).floor()
        return bins.clamp(0, self.n_bins - 1).long()

    def forward(self, prediction: Tensor, shifts: Tensor) -> Tensor:
        """Return the sum of both losses.

        Parameters
        ----------
        prediction : Tensor, shape (batch, n, n, n_bins + 1)
            Logits of the bins, then the logit of the order.
        shifts : Tensor, shape (batch, n, n)
            True shifts.

        Returns
        -------
        Tensor
            Cross-entropy in nats: mean over the ordered pairs of different patches.
        """
        batch, n, _ = shifts.shape
        prediction = prediction.float()
        logits, later = prediction[..., :-1], prediction[..., -1]
        distance = F.cross_entropy(logits.movedim(-1, 1), self.bins(shifts), reduction="none")
        order = F.binary_cross_entropy_with_logits(
            later, (shifts > 0).to(later.dtype), reduction="none"
        )
        is_pair = ~torch.eye(n, dtype=torch.bool, device=shifts.device)
        losses = distance * is_pair + order * (shifts != 0)  # (batch, n, n)
        return losses.sum() / (batch * n * (n - 1))

    def best_guess(self, shifts: Tensor) -> Tensor:
        """Return the best constant prediction.

        Parameters
        ----------
        shifts : Tensor, shape (batch, n, n)
            Shifts of many examples.

        Returns
        -------
        Tensor, shape (n_bins + 1,)
            Logarithm of the share of the pairs in each bin, and 0 for the order.
        """
        pairs = ~torch.eye(shifts.shape[-1], dtype=torch.bool, device=shifts.device)
        counts = self.bins(shifts[:, pairs]).flatten().bincount(minlength=self.n_bins)
        shares = (counts + 1) / (counts + 1).sum()  # a finite logarithm for an empty bin
        return F.pad(shares.log(), (0, 1))
