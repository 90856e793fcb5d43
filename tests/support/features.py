"""All feature transformers of the package."""

from __future__ import annotations

from braindecode_pars import evaluation
from braindecode_pars.baselines.window_features import WindowFeatures

#: Public transformers that compute features of each window.
FEATURES = [
    thing
    for thing in map(evaluation.__dict__.get, evaluation.__all__)
    if isinstance(thing, type) and issubclass(thing, WindowFeatures)
]
