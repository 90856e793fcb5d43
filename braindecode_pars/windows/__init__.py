"""Windows of EEG with labels and subjects, for scikit-learn and for pretraining.

The module ``table`` defines the class :class:`Windows`, and ``convert`` converts every supported
input to :class:`Windows`. ``picking`` picks channels, ``labels`` finds unlabeled windows and holds
out validation windows, and ``examples`` defines the torch datasets for training.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.windows.examples import AllChannelWindows, SingleChannelWindows, as_sklearn
from braindecode_pars.windows.table import Windows

__all__ = ["AllChannelWindows", "SingleChannelWindows", "Windows", "as_sklearn"]
