"""Warnings that point to the code of the user."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

__all__ = ["warn_user"]

#: Code that is not the user's: this package, and installed packages such as scikit-learn, which
#: call this one in a pipeline.
_PACKAGE = f"{Path(__file__).parent}{os.sep}"
_INSTALLED = f"{os.sep}site-packages{os.sep}"


def warn_user(message: str) -> None:
    """Issue a UserWarning that points to the innermost line of the user's own code.

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
    while frame.f_back is not None and _is_not_of_user(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _is_not_of_user(file: str) -> bool:
    return file.startswith(_PACKAGE) or _INSTALLED in file
