"""A user-defined pretext task, in a file outside of the package."""

from __future__ import annotations

import sys

from braindecode_pars.pretext import PRETEXT_TASKS

SOURCE = """
from torch import nn

from braindecode_pars.pretext.base import register
from braindecode_pars.pretext.grid import GridTask


@register("slope")
class Slope(GridTask):
    criterion = nn.MSELoss

    def __init__(self, n_times, patch_size=200, *, encoder=None, **sizes):
        super().__init__(n_times, patch_size, encoder=encoder, **sizes)
        self.head = nn.Linear(self.encoder.embed_dim, 1)

    def forward(self, x):
        first, last = self.normalized(x).chunk(2, dim=1)
        tokens = self.encoder.tokenize(self.patches(x))
        slope = last.mean(dim=1) - first.mean(dim=1)
        return self.head(self.encoder(tokens).mean(dim=1)), slope[:, None]

    def chance_loss(self):
        return 1.0
"""


def forget() -> None:
    """Unregister the task, and remove its module, so that the state is that of a new process."""
    PRETEXT_TASKS.pop("slope", None)
    sys.modules.pop("my_task", None)
