"""Where the patches of PARS are in the signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from braindecode_pars.tokens import nonoverlapping_starts, random_starts, shuffled

#: Ways to draw the starts of patches.
SAMPLINGS = ("random", "grid")


@dataclass(frozen=True)
class Placement:
    """Number and places of the patches in a signal.

    Attributes
    ----------
    n_times, patch_size, n_patches : int
        Number of samples in a signal and in a patch, and number of patches.
    sampling : str
        One of :data:`SAMPLINGS`.
    overlap : bool
        Whether patches may share samples; the patches of a grid never do.
    min_gap : int
        Smallest number of samples between neighbouring patches.

    Raises
    ------
    ValueError
        When the arguments contradict each other; from :meth:`draw`, when the patches do not fit
        into the signal.
    """

    n_times: int
    patch_size: int
    n_patches: int
    sampling: str = "random"
    overlap: bool = True
    min_gap: int = 0

    def __post_init__(self) -> None:
        if self.min_gap and self.may_overlap:
            raise ValueError(
                f"min_gap={self.min_gap} needs overlap=False or sampling='grid'; got "
                f"overlap={self.overlap} and sampling={self.sampling!r}."
            )
        if self.n_times == self.patch_size:
            raise ValueError(
                f"A window of {self.n_times} samples has only one patch, so all shifts are zero; "
                "use longer windows or a shorter patch."
            )
        n_grid = most_patches(self.n_times, self.patch_size, self.min_gap)
        if self.sampling == "grid" and self.n_patches != n_grid:
            gaps = f" with gaps of {self.min_gap}" if self.min_gap else ""
            raise ValueError(
                f"Grid sampling of {self.n_times} samples gives {n_grid} patches of "
                f"{self.patch_size}{gaps}; n_patches={self.n_patches} needs sampling='random'."
            )

    @property
    def may_overlap(self) -> bool:
        """Whether two patches may share samples."""
        return self.overlap and self.sampling != "grid"

    @property
    def shortest_lag(self) -> int:
        """Smallest number of samples between the starts of two patches."""
        return 0 if self.may_overlap else self.patch_size + self.min_gap

    def draw(
        self,
        batch_size: int,
        *,
        device: torch.device | str | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draw the first samples of the patches of a batch, in random order.

        Returns
        -------
        Tensor of int64, shape (batch_size, n_patches)
            First sample of each patch.
        """
        size = (batch_size, self.n_patches, self.n_times, self.patch_size)
        options: dict[str, Any] = dict(device=device, generator=generator)
        if self.sampling == "grid":
            grid = torch.arange(self.n_patches, device=device) * self.shortest_lag
            return shuffled(grid.expand(batch_size, -1), generator=generator)
        if self.overlap:
            return random_starts(*size, **options)
        return nonoverlapping_starts(*size, min_gap=self.min_gap, **options)


def most_patches(n_times: int, patch_size: int, min_gap: int) -> int:
    """Return the largest number of patches that fit without overlap."""
    return (n_times + min_gap) // (patch_size + min_gap)


def default_n_patches(
    n_times: int, patch_size: int, sampling: str, overlap: bool, min_gap: int
) -> int:
    """Return the number of patches when the user gives none."""
    most = most_patches(n_times, patch_size, min_gap)
    if sampling == "grid":
        return most
    # The paper's 40 patches for 30 s; without overlap fewer, so that there is space between them.
    length = n_times / patch_size
    return round(4 / 3 * length) if overlap else min(round(2 / 3 * length), most)
