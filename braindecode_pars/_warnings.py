"""Warnings that point to the code of the user."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

__all__ = ["warn_user"]

_PACKAGE = str(Path(__file__).parent)


def warn_user(message: str) -> None:
    """Issue a UserWarning that points to the innermost line outside this package.

    Parameters
    ----------
    message : str
        Text of the warning.

    Examples
    --------
    >>> import warnings
    >>> from braindecode_pars._warnings import warn_user
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("Channel C3 is flat.")
    >>> str(caught[0].message), caught[0].category.__name__
    ('Channel C3 is flat.', 'UserWarning')
    """
    # Level 1 is this function, level 2 its caller, and so on.
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
