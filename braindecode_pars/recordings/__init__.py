"""Building blocks of the datasets: from files to windows.

``readers`` opens files. ``preparation`` picks channels, filters and resamples. ``cutting`` cuts
recordings into windows without gaps. ``loading`` does this for a whole corpus, in parallel and with
a cache. ``continuous`` finds the whole recordings of a corpus, for a store. ``splits`` divides
subjects into training, validation and test subjects.
"""

import braindecode_pars._hosts  # noqa: F401

__all__: list[str] = []
