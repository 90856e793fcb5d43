"""Windows of any source, with their labels and subjects, for scikit-learn and for pretraining.

``_describe`` collects what is known of a source without reading its signals. ``_window_set`` is the
lazy dataset from which the estimators read. ``_channels`` lists the channels of every window, and
``_picking`` has the rules by which channels are picked. ``_single_channel`` and ``_sklearn`` are
views of windows. ``_labels`` separates unlabelled windows, and ``_held_out`` splits off validation
windows. A new type of source is registered with ``describe``, as SignalStore's windows are.
"""

import braindecode_pars._hosts  # noqa: F401
from braindecode_pars.windows._single_channel import SingleChannelWindows
from braindecode_pars.windows._sklearn import as_sklearn

__all__ = ["SingleChannelWindows", "as_sklearn"]
