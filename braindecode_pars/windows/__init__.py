"""Windows of any source, as scikit-learn and as pretraining take them; labels and subjects.

``_describe`` says what a source holds, ``_window_set`` is the one lazy dataset that everything else
reads, ``_single_channel`` and ``_sklearn`` are views, ``_labels`` and ``_subjects`` decide what is
unlabelled and held out. A source registers itself with ``describe``, as a SignalStore does.
"""

import braindecode_pars._hosts  # noqa: F401
from braindecode_pars.windows._single_channel import SingleChannelWindows
from braindecode_pars.windows._sklearn import as_sklearn

__all__ = ["SingleChannelWindows", "as_sklearn"]
