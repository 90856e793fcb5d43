"""From files to windows: what recipes in ``datasets/`` are made of.

``readers`` opens files, ``preparation`` picks channels, filters and resamples, ``cutting`` makes
windows, ``loading`` does all of it for a corpus, in parallel and cached, ``splits`` divides
subjects.
"""

import braindecode_pars._hosts  # noqa: F401

__all__: list[str] = []
