"""What corpora of recipes share: the splits that are held out, and the settings of a recipe."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["HELD_OUT", "divided"]

#: Splits of a corpus that are not trained on.
HELD_OUT = ("valid", "test")


def divided(
    recipe: Any, read: Callable[..., Any], settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide settings into arguments of a recipe's ``recordings`` and of its reading function.

    Raises
    ------
    TypeError
        When a setting is of neither function.
    """
    finding, reading = map(_parameters, (recipe.recordings, read))
    unknown = [name for name in settings if name not in finding | reading]
    if unknown:
        accepted = ", ".join(sorted(finding | reading)) or "none"
        raise TypeError(
            f"{recipe.CARD['name']} has no setting {unknown[0]}; its settings are {accepted}."
        )
    return (
        {name: value for name, value in settings.items() if name in finding},
        {name: value for name, value in settings.items() if name in reading},
    )


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"path", "subjects", "recording"}
