"""Settings of ``evaluate`` from a TOML file, from the paper, and from options."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from braindecode_pars import paper
from braindecode_pars.cli._labelled import recipe_of
from braindecode_pars.cli._values import values

__all__ = ["load_arguments", "settings_of"]

#: Tables of the file: those of the options --set and --load.
_TABLES = ("set", "load")


def settings_of(
    options: list[str] | None,
    config: Path | None,
    *,
    published: bool,
    dataset: str = "",
    pretrains: bool = False,
) -> dict[str, Any]:
    """Return arguments of PARSClassifier; options win over the file, the file over the paper.

    Parameters
    ----------
    options : list of str | None
        Options ``--set KEY=VALUE``.
    config : Path | None
        TOML file with a table ``[set]``.
    published : bool
        Whether to begin with the paper's fine-tuning, for EESM17 with its noise.
    dataset : str
        Name of the corpus, or folder of a store of it.
    pretrains : bool
        Whether the classifier pretrains; the paper then has its sizes and its pretraining, too.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When the file is not valid TOML, or has another table.
    """
    settings = dict(paper.CLASSIFIER if pretrains else paper.FINE_TUNING) if published else {}
    settings.pop("pretext", None)  # is the method's
    if published and recipe_of(dataset) == "eesm17":
        settings["augmentation"] = paper.EESM17["augmentation"]
    return {**settings, **_read(config)["set"], **values(options, "--set")}


def load_arguments(options: list[str] | None, config: Path | None) -> dict[str, Any]:
    """Return arguments of a corpus' load function; options win over the table ``[load]``.

    Raises
    ------
    FileNotFoundError, ValueError
        As :func:`settings_of`.
    """
    return {**_read(config)["load"], **values(options, "--load")}


def _read(config: Path | None) -> Mapping[str, dict[str, Any]]:
    """Return the tables of a file; empty ones without a file."""
    tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES}
    if config is None:
        return tables
    try:
        found = tomllib.loads(config.expanduser().read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"--config {config} does not exist.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ValueError(f"--config {config} is not a TOML file: {error}.") from error
    for name, table in found.items():
        if name not in _TABLES or not isinstance(table, dict):
            raise ValueError(
                f"--config {config} has an entry {name!r}; put arguments of PARSClassifier into a "
                "table [set], and those of the corpus into [load]."
            )
    return {**tables, **found}
