"""Warnings that point to the code of the user."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["quiet", "warn_user"]

#: Whether warnings of this thread are left out.
_IS_QUIET: ContextVar[bool] = ContextVar("is_quiet", default=False)

#: Code that is not the user's: this package, and installed packages such as scikit-learn, which
#: call this one in a pipeline.
_PACKAGE = f"{Path(__file__).parent}{os.sep}"
_INSTALLED = f"{os.sep}site-packages{os.sep}"


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the innermost line of the user's own code.

    Parameters
    ----------
    message : str
        Text of the warning.
    category : type
        Class of the warning.

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
    if _IS_QUIET.get():
        return
    # Level 1 is this function, level 2 its caller, and so on.
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_not_of_user(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out the warnings of this package inside, for work that has been warned of before.

    Unlike :class:`warnings.catch_warnings`, this changes nothing in other threads.
    """
    token = _IS_QUIET.set(True)
    try:
        yield
    finally:
        _IS_QUIET.reset(token)


def _is_not_of_user(file: str) -> bool:
    return file.startswith(_PACKAGE) or _INSTALLED in file
