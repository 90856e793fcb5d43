"""Names of sleep stages: which stage a text means, and the usual order from wake to deep sleep.

The rules of the American Academy of Sleep Medicine (AASM) have the stages W, R, N1, N2 and N3;
those of Rechtschaffen and Kales (R&K) have S1 to S4, of which S3 and S4 together are N3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["STAGES", "UNSCORED", "are_stages", "stage_of", "stages_of", "top_to_bottom"]

#: Stages by the AASM, in the order of a hypnogram from top to bottom.
STAGES = ("W", "R", "N1", "N2", "N3")

#: What :func:`stage_of` returns for artefacts, movement time and windows without a score.
UNSCORED = "unscored"

#: Texts of each stage, without punctuation and the words "sleep" and "stage"; from the top of a
#: hypnogram to its bottom. "light", "NREM" and "sleep" are the classes of coarser scorings.
_TEXTS: dict[str, tuple[str, ...]] = {
    "W": ("w", "wake", "awake", "wakefulness", "waking", "0", "s0"),
    "R": ("r", "rem"),
    "N1": ("1", "n1", "s1", "nrem1"),
    "light": ("light", "n1n2", "nrem12"),
    "N2": ("2", "n2", "s2", "nrem2"),
    "NREM": ("nrem",),
    "N3": ("3", "n3", "s3", "nrem3", "deep", "sws", "slowwave", "n3n4", "s3s4", "34"),
    "N4": ("4", "n4", "s4", "nrem4"),
    "sleep": ("s", "asleep", "sleep"),
    UNSCORED: (
        *("?", "u", "uns", "unscored", "unknown", "undefined", "notscored", "na", "none", "nan"),
        *("m", "mt", "movement", "movementtime", "mvt", "art", "artefact", "artifact"),
    ),
}
_STAGE_OF_TEXT = {text: stage for stage, texts in _TEXTS.items() for text in texts}

#: The numbers of R&K, where 5 is REM; 6 is movement time, and 9 and negative numbers are unscored.
_NUMBERS = {0: "W", 1: "N1", 2: "N2", 3: "N3", 4: "N4", 5: "R", 6: UNSCORED, 9: UNSCORED}


def stage_of(name: object) -> str | None:
    """Return the stage that a name means.

    Parameters
    ----------
    name : object
        Name of a stage in any common spelling: ``"Wake"``, ``"Sleep stage R"``, ``"NREM2"``,
        ``"S4"``, ``"Movement time"``. Case, spaces, hyphens and the words "sleep" and "stage" do
        not matter. Of several names joined with a slash, all must mean the same stage. A number
        alone means nothing, see :func:`stages_of`.

    Returns
    -------
    str | None
        One of :data:`STAGES`; ``"N4"`` for stage 4 of R&K; ``"light"``, ``"NREM"`` or ``"sleep"``
        for coarser stages; ``"unscored"``; None when the name is not that of a stage.

    Examples
    --------
    >>> from braindecode_pars.sleep_stages import stage_of
    >>> [stage_of(name) for name in ("Wake", "Sleep stage R", "NREM-2", "S4", "?", "left")]
    ['W', 'R', 'N2', 'N4', 'unscored', None]
    """
    if not isinstance(name, str):
        return None
    found = {_stage_of_one(part) for part in name.split(" / ")}
    if found == {"N3", "N4"}:  # Sleep stage 3 / Sleep stage 4
        return "N3"
    return found.pop() if len(found) == 1 else None


def _stage_of_one(name: str) -> str | None:
    text = name.strip().casefold().replace("_", " ")
    if _number(text) is not None:
        return None
    if text != "sleep":
        text = re.sub(r"\b(sleep|stage)\b", "", text)
    text = re.sub(r"[\s.:+/&-]+", "", text).replace("nonrem", "nrem")
    return _STAGE_OF_TEXT.get(text)


def stages_of(names: Sequence[object]) -> list[str | None]:
    """Return the stage of each of the classes of one scoring.

    Numbers are read as those of R&K, where 4 is stage 4 and 5 is REM, if one of them is 5. Without
    a 5, they may also be those of another convention, where 4 is REM.

    Parameters
    ----------
    names : sequence
        All names of a scoring, texts or numbers.

    Returns
    -------
    list of str | None
        As from :func:`stage_of`.

    Examples
    --------
    >>> from braindecode_pars.sleep_stages import stages_of
    >>> stages_of([0, 1, 2, 3, 4, 5])
    ['W', 'N1', 'N2', 'N3', 'N4', 'R']
    >>> stages_of([0, 1, 2, 3, 4])
    [None, None, None, None, None]
    """
    numbers = [_number(name) for name in names]
    if 5 not in numbers or None in numbers:
        return [stage_of(name) for name in names]
    return [UNSCORED if number < 0 else _NUMBERS.get(number) for number in numbers]


def _number(name: object) -> int | None:
    """Return a whole number that is given as a number or as text."""
    try:
        value = float(name)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return int(value) if value.is_integer() else None


def are_stages(names: Iterable[object]) -> bool:
    """Whether the classes of a scoring are called like sleep stages. Numbers alone are not.

    Parameters
    ----------
    names : iterable
        Names of the classes.

    Returns
    -------
    bool
        True if each name is that of a stage or means "unscored", and one is that of a stage.

    Examples
    --------
    >>> from braindecode_pars.sleep_stages import are_stages
    >>> are_stages(["Wake", "N1", "N2", "N3", "REM"]), are_stages(["left", "right"])
    (True, False)
    """
    found = set(map(stage_of, names))
    return None not in found and bool(found - {UNSCORED})


def known_stages(names: Sequence[object], remedy: str) -> list[str]:
    """Return the stages of :func:`stages_of`, all of which must be known.

    Parameters
    ----------
    names : sequence
        All names of a scoring, texts or numbers.
    remedy : str
        What to do about an unknown name, for the error message.

    Raises
    ------
    ValueError
        When a name is not that of a sleep stage. The message names it.
    """
    stages = stages_of(names)
    unknown = [name for name, stage in zip(names, stages, strict=True) if stage is None]
    if unknown:
        raise ValueError(
            f"{', '.join(map(repr, unknown))} {'is' if len(unknown) == 1 else 'are'} not known as "
            f"{'a sleep stage' if len(unknown) == 1 else 'sleep stages'}; {remedy}."
        )
    return [stage for stage in stages if stage is not None]


def top_to_bottom(names: Iterable[object]) -> list:
    """Return stages in the order of a hypnogram: wake, REM, N1 to N3, then unscored.

    Parameters
    ----------
    names : iterable
        Names of the stages of one scoring, each once.

    Returns
    -------
    list
        The names, unchanged; those of the same stage in the given order.

    Raises
    ------
    ValueError
        When a name is not that of a sleep stage. The message names it.

    Examples
    --------
    >>> from braindecode_pars.sleep_stages import top_to_bottom
    >>> top_to_bottom(["N1", "REM", "Wake", "N3", "N2"])
    ['Wake', 'REM', 'N1', 'N2', 'N3']
    """
    names = list(names)
    example = [str(name) for name in names]
    stages = known_stages(names, f"give the order from top to bottom, such as order={example}")
    rank = {stage: number for number, stage in enumerate(_TEXTS)}
    order = sorted(range(len(names)), key=lambda i: rank[stages[i]])
    return [names[i] for i in order]
