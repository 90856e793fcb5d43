"""The encoders that come with the package: a folder for each, found by name without a network."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ALIASES", "FOLDER", "packaged_folder", "packaged_names"]

#: Folder of the encoders; ``encoders/_make.py`` writes them.
FOLDER = Path(__file__).parents[1] / "encoders"

#: Further names of encoders. ``"small"`` was chosen on development subjects.
ALIASES = {"small": "spectral-eegmmidb"}


def packaged_names() -> list[str]:
    """Return the names of the encoders in the package, without aliases.

    Examples
    --------
    >>> from braindecode_pars.storage._packaged import packaged_names
    >>> "unknown" in packaged_names()
    False
    """
    return sorted(file.parent.name for file in FOLDER.glob("*/encoder.safetensors"))


def packaged_folder(name: str) -> Path | None:
    """Return the folder of an encoder in the package; None for an unknown name.

    Parameters
    ----------
    name : str
        Name of the encoder, or an alias.

    Examples
    --------
    >>> from braindecode_pars.storage._packaged import packaged_folder
    >>> packaged_folder("unknown") is None
    True
    """
    name = ALIASES.get(name, name)
    return FOLDER / name if name in packaged_names() else None
