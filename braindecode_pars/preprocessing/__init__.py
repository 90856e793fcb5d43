"""What was done with recordings before they were cut into windows, and whether two agree.

``_preprocessing`` is the description, ``_steps`` and ``_recorded`` read it from the records of MNE
and braindecode. ``_agreed`` joins those of several recordings, and ``_differences`` compares those
of a model and of a recording.
"""

from braindecode_pars.preprocessing._differences import Difference, differences
from braindecode_pars.preprocessing._preprocessing import Preprocessing

__all__ = ["Difference", "Preprocessing", "differences"]
