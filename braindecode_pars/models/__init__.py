"""PARSNet, a multi-channel braindecode model around a single-channel encoder, and its parts."""

from braindecode_pars.models._amplitude import AmplitudeCode, relative_amplitude
from braindecode_pars.models._parsnet import PARSNet
from braindecode_pars.models._patch_size import patch_size_for
from braindecode_pars.models._recentring import recentred
from braindecode_pars.models._signal_embedding import embed_signals
from braindecode_pars.models._spatial_filter import SpatialFilter

__all__ = [
    "AmplitudeCode",
    "PARSNet",
    "SpatialFilter",
    "embed_signals",
    "patch_size_for",
    "recentred",
    "relative_amplitude",
]
