"""What no estimator should take in or give out silently."""

from __future__ import annotations

import mne
import torch
from torch import Tensor

__all__ = ["finite", "refuse_triggers"]


def finite(output: Tensor) -> Tensor:
    """A model's output, which a training that has diverged would have spoiled."""
    if not torch.isfinite(output).all():
        raise ValueError(
            "The model's output is not finite, so its training has diverged; fit it again with a "
            "lower learning rate."
        )
    return output


def refuse_triggers(chs_info: list[dict] | None) -> None:
    """A stimulus channel often holds the label itself."""
    kinds = [(ch["ch_name"], ch.get("kind")) for ch in chs_info or ()]
    triggers = [name for name, kind in kinds if kind == mne.io.constants.FIFF.FIFFV_STIM_CH]
    if triggers:
        raise ValueError(
            f"Channel {', '.join(triggers)} is a stimulus channel and may hold the labels; pick "
            "the EEG channels first, for example with braindecode's Preprocessor('pick', "
            "picks='eeg')."
        )
