"""PARSNet, a braindecode model with a pretrained encoder, and the modules of which it consists."""

from typing import TYPE_CHECKING

import braindecode_pars._common.hosts  # noqa: F401  must be imported before braindecode

# isort: split
from braindecode_pars._common import names
from braindecode_pars._common.channel_names import template_montage
from braindecode_pars.models.electrodes import (
    AmplitudeCode,
    SpatialFilter,
    electrode_positions,
    relative_amplitude,
)
from braindecode_pars.models.parsnet import PARSNet, patch_size_for
from braindecode_pars.models.space_time import SpaceTimeEncoder, embed_channels, embed_signals

if TYPE_CHECKING:
    from braindecode_pars.baselines.foundation import FOUNDATION_MODELS, InputFormat

__all__ = [
    "FOUNDATION_MODELS",
    "AmplitudeCode",
    "InputFormat",
    "PARSNet",
    "SpaceTimeEncoder",
    "SpatialFilter",
    "electrode_positions",
    "embed_channels",
    "embed_signals",
    "patch_size_for",
    "relative_amplitude",
    "template_montage",
]
__getattr__, __dir__ = names.facade(__name__, __all__)
