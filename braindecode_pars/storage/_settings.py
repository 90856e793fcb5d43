"""Comparison of settings, such as those stored in a folder with those of a new call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from braindecode_pars.storage._json import as_read

__all__ = ["differences"]


def differences(
    before: Mapping[str, Any], now: Mapping[str, Any], *, ignore: Collection[str] = ()
) -> list[str]:
    """Return the differences between two sets of settings as phrases for a message.

    Parameters
    ----------
    before : mapping
        Stored settings, as read from JSON.
    now : mapping
        New settings.
    ignore : collection of str
        Names of settings that may differ.

    Returns
    -------
    list of str
        One phrase per difference, for example "lr is 0.001, was 0.0001".

    Examples
    --------
    >>> from braindecode_pars.storage._settings import differences
    >>> differences({"lr": 0.1, "task": {"name": "pars"}}, {"lr": 0.2, "task": {"name": "mae"}})
    ['lr is 0.2, was 0.1', "task.name is 'mae', was 'pars'"]
    """
    # Both as JSON values, so that tuples equal lists and NumPy numbers equal Python numbers.
    before, now = (
        {name: value for name, value in settings.items() if name not in ignore}
        for settings in (as_read(before), as_read(now))
    )
    return list(_differences(before, now, ""))


def _differences(before: Any, now: Any, path: str) -> Iterator[str]:
    # Only values that differ are named, by their path: "task.name", "channels[2]".
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in dict.fromkeys([*now, *before]):
            inner = f"{path}.{name}" if path else str(name)
            if name not in before:
                yield f"{inner} is {_short(now[name])}, was not set"
            elif name not in now:
                yield f"{inner} is not set, was {_short(before[name])}"
            else:
                yield from _differences(before[name], now[name], inner)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(old, new, f"{path}[{i}]")
    elif before != now:
        yield f"{path} is {_short(now)}, was {_short(before)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
