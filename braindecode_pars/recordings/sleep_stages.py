"""Names of sleep stages in common spellings, and what they are by today's rules (AASM)."""

import re
from collections.abc import Iterable

from braindecode_pars.recordings.preparation import SLEEP_STAGES

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
#: From the top of a hypnogram to its bottom.
STAGES_IN_ORDER = tuple(_TEXTS)
_STAGE_OF_TEXT = {text: stage for stage, texts in _TEXTS.items() for text in texts}
#: Stages that a coarser stage includes; N3 of the AASM includes stage 4.
INCLUDED_STAGES = {
    "N3": ("N4",),
    "light": ("N1", "N2"),
    "NREM": ("N1", "N2", "N3", "N4", "light"),
    "sleep": ("R", "N1", "N2", "N3", "N4", "light", "NREM"),
}


def stage_of(name: object) -> str | None:
    """Return the stage that a name means.

    Parameters
    ----------
    name : object
        Name of a stage in any common spelling: ``"Wake"``, ``"Sleep stage R"``, ``"NREM2"``,
        ``"S4"``, ``"Movement time"``. Case, spaces, hyphens and the words "sleep" and "stage" do
        not matter. Of several names joined with a slash, all must mean the same stage. A number
        alone means nothing: 4 is stage 4 in one convention, and REM in another.

    Returns
    -------
    str | None
        ``"W"``, ``"R"``, ``"N1"``, ``"N2"`` or ``"N3"``; ``"N4"`` for stage 4 of Rechtschaffen and
        Kales; ``"light"``, ``"NREM"`` or ``"sleep"`` for coarser stages; ``"unscored"``; None
        when the name is not that of a stage.

    Examples
    --------
    >>> from braindecode_pars.predictions import stage_of
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
    if re.fullmatch(r"-?[\d.]+", text):
        return None
    if text != "sleep":
        text = re.sub(r"\b(sleep|stage)\b", "", text)
    text = re.sub(r"[\s.:+/&-]+", "", text).replace("nonrem", "nrem")
    return _STAGE_OF_TEXT.get(text)


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
    >>> from braindecode_pars.predictions import are_stages
    >>> are_stages(["Wake", "N1", "N2", "N3", "REM"]), are_stages(["left", "right"])
    (True, False)
    """
    found = set(map(stage_of, names))
    return None not in found and bool(found - {UNSCORED})


def absent_stages(names: Iterable[object]) -> list[str]:
    """Return the stages of the AASM that no class of a scoring is or includes.

    Parameters
    ----------
    names : iterable
        Names of the classes.

    Returns
    -------
    list of str
        Stages; empty if the classes are not called like sleep stages.

    Examples
    --------
    >>> from braindecode_pars.recordings.sleep_stages import absent_stages
    >>> absent_stages(["wake", "N3"]), absent_stages(["W", "NREM", "R"]), absent_stages(["left"])
    (['N1', 'N2', 'R'], [], [])
    """
    names = list(names)
    present = set(map(stage_of, names))
    present |= {fine for stage in present for fine in INCLUDED_STAGES.get(str(stage), ())}
    return [stage for stage in SLEEP_STAGES if stage not in present] if are_stages(names) else []


def aasm_stages(names: Iterable[str]) -> dict[str, str]:
    """Return the stages of the AASM by their names in a scoring of Rechtschaffen and Kales.

    Stages 3 and 4 are N3. It is for ``labels`` or ``classes`` of :mod:`datasets.folder
    <braindecode_pars.datasets.folder>`, where names without a stage get no window.

    Parameters
    ----------
    names : iterable of str
        Names in any spelling that :func:`stage_of` knows; here "1" to "4" alone are stages, too.

    Returns
    -------
    dict of str to str
        "W", "N1", "N2", "N3" or "R" by name, without names of other things, such as movement time.

    Examples
    --------
    >>> from braindecode_pars.recordings.sleep_stages import aasm_stages
    >>> aasm_stages(["Sleep stage W", "1", "S3", "Sleep stage 4", "REM", "MT"])
    {'Sleep stage W': 'W', '1': 'N1', 'S3': 'N3', 'Sleep stage 4': 'N3', 'REM': 'R'}
    """
    found = {name: stage_of(f"S{name}" if name in ("1", "2", "3", "4") else name) for name in names}
    merged = {name: "N3" if stage == "N4" else stage for name, stage in found.items()}
    return {name: stage for name, stage in merged.items() if stage in SLEEP_STAGES}
