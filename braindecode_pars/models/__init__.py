"""PARSNet, a multi-channel braindecode model around a single-channel encoder, and its parts."""

import braindecode_pars._common.hosts  # noqa: F401  before braindecode

# isort: split
from braindecode_pars._common.channel_names import template_montage
from braindecode_pars.models.electrodes import (
    AmplitudeCode,
    SpatialFilter,
    electrode_positions,
    relative_amplitude,
)
from braindecode_pars.models.foundation import FOUNDATION_MODELS, InputFormat
from braindecode_pars.models.parsnet import PARSNet, patch_size_for
from braindecode_pars.models.space_time import SpaceTimeEncoder, embed_channels, embed_signals

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
