"""Windows of any source, with their labels and subjects, for scikit-learn and for pretraining.

``door`` collects what is known of a source without reading its signals. ``table`` is the lazy
dataset from which the estimators read, ``picking`` has the rules for its channels. ``examples`` are
views of windows. ``labels`` separates unlabelled windows, and ``held_out`` splits off validation
windows. A new type of source is registered with ``describe``, as SignalStore's windows are.
"""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.windows.examples import SingleChannelWindows, as_sklearn

__all__ = ["SingleChannelWindows", "as_sklearn"]
