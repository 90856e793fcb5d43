"""Windows of any source, with their labels and subjects, for scikit-learn and for pretraining.

``table`` is the value that stands for windows, and ``door`` makes it of any source. ``picking`` has
the rules for channels. ``labels`` separates unlabeled windows and splits off validation windows,
and ``examples`` gives windows to torch.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.windows.examples import AllChannelWindows, SingleChannelWindows, as_sklearn
from braindecode_pars.windows.table import Windows

__all__ = ["AllChannelWindows", "SingleChannelWindows", "Windows", "as_sklearn"]
