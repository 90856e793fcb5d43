"""One rule for every folder that is written: what another program wrote is never overwritten."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from braindecode_pars.storage._atomic import is_leftover

__all__ = ["check_may_write"]


def check_may_write(
    folder: Path, kind: str, *, is_ours: bool, beside: Collection[str] = ()
) -> None:
    """Check that a folder is new, empty, or of the kind that is going to be written.

    Parameters
    ----------
    folder : Path
        Folder to write.
    kind : str
        What is going to be written, for the error message, such as "a saved PARSNet".
    is_ours : bool
        Whether the folder already is of this kind.
    beside : collection of str
        Names of files that may be there, because they are not written.

    Raises
    ------
    ValueError
        When the folder is a file, or contains anything else. The message names a file in the way.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.storage._folder import check_may_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_may_write(Path(folder), "a store", is_ours=False)  # empty
    """
    if is_ours or not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder} is a file; pass a folder for {kind}.")
    found = (file.name for file in folder.iterdir() if not is_leftover(file))
    others = sorted(name for name in found if name not in beside)
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise ValueError(
            f"{folder} contains {others[0]}{more}, and is not the folder of {kind}; pass an empty "
            "or new folder."
        )
