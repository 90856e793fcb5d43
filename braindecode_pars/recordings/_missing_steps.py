"""The preprocessing of a model that a recording does not have yet."""

from __future__ import annotations

import math
from dataclasses import replace

from braindecode_pars.preprocessing import Preprocessing
from braindecode_pars.preprocessing._differences import is_same_reference

__all__ = ["missing_steps"]


def missing_steps(trained: Preprocessing, found: Preprocessing) -> Preprocessing:
    """Return what to apply to a recording, so that it is like those that a model was trained on.

    Parameters
    ----------
    trained : Preprocessing
        Preprocessing of the recordings of the training.
    found : Preprocessing
        Preprocessing of the recording, as far as its records tell.

    Returns
    -------
    Preprocessing
        ``trained`` without the edges of the band, the notch filters and the reference that the
        recording has; ``scale`` is the factor that is left.

    Examples
    --------
    >>> from braindecode_pars.preprocessing import Preprocessing
    >>> from braindecode_pars.recordings._missing_steps import missing_steps
    >>> trained = Preprocessing(band=(0.3, 35.0), notch=[50.0], scale=1e6)
    >>> print(missing_steps(trained, Preprocessing(band=(0.3, 70.0))))
    band up to 35 Hz, notch 50 Hz, factor from volts 1e+06
    """
    band, had = trained.band or (None, None), found.band or (None, None)
    references = trained.reference, found.reference
    edges = [None if _is_same(*pair) else pair[0] for pair in zip(band, had, strict=True)]
    return replace(
        trained,
        band=tuple(edges),
        notch=[
            freq
            for freq in trained.notch or ()
            if not any(_is_same(freq, other) for other in found.notch or ())
        ],
        reference=None if is_same_reference(*references) else trained.reference,
        scale=None if trained.scale is None else trained.scale / (found.scale or 1.0),
    )


def _is_same(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-3)
