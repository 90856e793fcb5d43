"""Recognize sleep stages by their names in common spellings, and convert them to AASM stages.

AASM: American Academy of Sleep Medicine, whose scoring manual defines the stages W, N1, N2, N3, R.
"""

import re
from collections.abc import Iterable
from typing import Any

from braindecode_pars._common import checks
from braindecode_pars._common.tables import label_text

#: AASM stages, which are the classes of the sleep corpora, in the order of the targets 0 to 4.
SLEEP_STAGES = ("W", "N1", "N2", "N3", "R")

#: Target (integer code) of each stage.
SLEEP_TARGETS = {stage: target for target, stage in enumerate(SLEEP_STAGES)}

#: Result of :func:`stage_of` for artifacts, movement time and unscored windows.
UNSCORED = "unscored"

#: Spellings of each stage, without punctuation and without the words "sleep" and "stage". The order
#: of the stages is the order in a hypnogram, from top to bottom. "light", "NREM" and "sleep" are
#: classes of coarser scorings.
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
#: Stages in the order of a hypnogram from top to bottom.
STAGES_IN_ORDER = tuple(_TEXTS)
#: Stage of each number that has the same meaning in all schemes.
_DEPTH = {"0": "W", "1": "N1", "2": "N2", "3": "N3"}
#: Stage of each number, for each scheme.
_NUMBERS = {
    "yasa": {**_DEPTH, "4": "R", "-1": UNSCORED, "-2": UNSCORED},
    "nsrr": {**_DEPTH, "4": "N4", "5": "R", "6": UNSCORED, "9": UNSCORED},
    "rk": {**_DEPTH, "4": "N4"},
}
_KNOWN = (*SLEEP_STAGES, UNSCORED)
_STAGE_OF_TEXT = {text: stage for stage, texts in _TEXTS.items() for text in texts}
#: Stages that a coarser stage includes. N3 of the AASM includes stage 4.
INCLUDED_STAGES = {
    "N3": ("N4",),
    "light": ("N1", "N2"),
    "NREM": ("N1", "N2", "N3", "N4", "light"),
    "sleep": ("R", "N1", "N2", "N3", "N4", "light", "NREM"),
}


def stage_of(name: object) -> str | None:
    """Return the sleep stage with the given name, which may have any common spelling.

    Parameters
    ----------
    name : object
        Name of a stage, such as ``"Wake"``, ``"Sleep stage R"``, ``"NREM2"``, ``"S4"`` or
        ``"Movement time"``. Case, spaces, punctuation and the words "sleep" and "stage" are
        ignored. Several names can be joined with ``" / "`` if they are names of the same stage, or
        of stages 3 and 4. Numbers are not recognized, because their meaning depends on the scoring
        scheme: 4 may be stage 4 or REM.

    Returns
    -------
    str | None
        One of ``"W"``, ``"R"``, ``"N1"``, ``"N2"``, ``"N3"``; ``"N4"`` (stage 4 of Rechtschaffen
        and Kales); ``"light"``, ``"NREM"``, ``"sleep"`` (classes that include several stages); or
        ``"unscored"`` (artifacts, movement time, unscored windows). None if the name is not
        recognized.

    Examples
    --------
    >>> from braindecode_pars.predictions import stage_of
    >>> [stage_of(name) for name in ("Wake", "Sleep stage R", "NREM-2", "S4", "?", "left")]
    ['W', 'R', 'N2', 'N4', 'unscored', None]
    """
    if not isinstance(name, str):
        return None
    stages = {_stage_of_one(part) for part in name.split(" / ")}
    if stages == {"N3", "N4"}:  # Sleep stage 3 / Sleep stage 4
        return "N3"
    return stages.pop() if len(stages) == 1 else None


def _stage_of_one(name: str) -> str | None:
    text = name.strip().casefold().replace("_", " ")
    if re.fullmatch(r"-?[\d.]+", text):
        return None
    if text != "sleep":
        text = re.sub(r"\bsleep\b|\bstage", "", text)
    text = re.sub(r"[\s.:+/&-]+", "", text).replace("nonrem", "nrem")
    return _STAGE_OF_TEXT.get(text)


def are_stages(names: Iterable[object]) -> bool:
    """Whether class names are names of sleep stages. Numbers are not recognized.

    Parameters
    ----------
    names : iterable
        Names of the classes.

    Returns
    -------
    bool
        True if :func:`stage_of` recognizes every name, and at least one name is the name of a
        stage other than "unscored".

    Examples
    --------
    >>> from braindecode_pars._common.sleep_stages import are_stages
    >>> are_stages(["Wake", "N1", "N2", "N3", "REM"]), are_stages(["left", "right"])
    (True, False)
    """
    stages = set(map(stage_of, names))
    return None not in stages and bool(stages - {UNSCORED})


def absent_stages(names: Iterable[object]) -> list[str]:
    """Return the AASM stages that are not included in any of the classes.

    Parameters
    ----------
    names : iterable
        Names of the classes.

    Returns
    -------
    list of str
        AASM stages that are neither a class themselves nor included in a coarser class such as
        NREM. Empty if the classes are not sleep stages.

    Examples
    --------
    >>> from braindecode_pars._common.sleep_stages import absent_stages
    >>> absent_stages(["wake", "N3"]), absent_stages(["W", "NREM", "R"]), absent_stages(["left"])
    (['N1', 'N2', 'R'], [], [])
    """
    names = list(names)
    present = set(map(stage_of, names))
    present |= {fine for stage in present for fine in INCLUDED_STAGES.get(str(stage), ())}
    return [stage for stage in SLEEP_STAGES if stage not in present] if are_stages(names) else []


def aasm_stages(names: Iterable[Any], scheme: str | None = None) -> dict[Any, str]:
    """Map the names of sleep stages in a scoring to AASM stages.

    Stages 3 and 4 of Rechtschaffen and Kales are mapped to N3. The result can be passed as
    ``labels`` or ``classes`` to the functions of :mod:`~braindecode_pars.datasets.folder`, which
    create no windows for names that are not in the dict.

    Parameters
    ----------
    names : iterable of str or int
        Names in any spelling that :func:`stage_of` recognizes, or numbers that are defined in the
        scheme.
    scheme : "yasa" | "nsrr" | "rk" | None
        Scoring scheme that defines the meaning of numbers. In all schemes, 0 is W, and 1 to 3 are
        N1 to N3. In ``"yasa"`` (YASA [1]_), 4 is R. In ``"nsrr"`` (National Sleep Research Resource
        [2]_), 4 is stage 4, and 5 is R. In ``"rk"`` (Rechtschaffen and Kales), 4 is stage 4. If
        None, numbers are omitted.

    Returns
    -------
    dict of str or int to str
        AASM stage ("W", "N1", "N2", "N3" or "R") of each name. Names of unscored windows, such as
        "?", movement time and artifacts, are omitted.

    Raises
    ------
    ValueError
        If the scheme is unknown.

    Warns
    -----
    UserWarning
        If names are omitted that are not names of unscored windows, such as numbers without a
        scheme, or classes that include several stages.

    References
    ----------
    .. [1] R. Vallat and M. P. Walker, "An open-source, high-performance tool for automated sleep
       staging", eLife 10:e70092, 2021.
    .. [2] G.-Q. Zhang et al., "The National Sleep Research Resource: towards a sleep data commons",
       J. Am. Med. Inform. Assoc. 25(10):1351-1358, 2018.

    Examples
    --------
    >>> from braindecode_pars._common.sleep_stages import aasm_stages
    >>> aasm_stages(["Sleep stage W", "S3", "Sleep stage 4", "REM", "MT"])
    {'Sleep stage W': 'W', 'S3': 'N3', 'Sleep stage 4': 'N3', 'REM': 'R'}
    >>> aasm_stages([0, 1, 4, -1], "yasa")
    {0: 'W', 1: 'N1', 4: 'R'}
    """
    checks.choice(*_NUMBERS, None).check("scheme", scheme)
    texts = {name: label_text(name) for name in names}
    of_numbers = _NUMBERS.get(str(scheme), {})
    stages = {name: of_numbers.get(text, stage_of(text)) for name, text in texts.items() if text}
    merged = {name: "N3" if stage == "N4" else stage for name, stage in stages.items()}
    if unknown := [repr(texts[name]) for name, stage in merged.items() if stage not in _KNOWN]:
        checks.warn_user(
            f"aasm_stages omits {checks.format_list(unknown)}, because these names cannot be "
            "mapped to an AASM stage. To map numbers, set scheme to 'yasa', 'nsrr' or 'rk'. To map "
            "other names, add them to the returned dict."
        )
    return {name: stage for name, stage in merged.items() if stage in SLEEP_STAGES}


def known_stages(names: Iterable[object]) -> dict[object, str]:
    """Return a dict from each name to its standard sleep stage, see :func:`stage_of`.

    Parameters
    ----------
    names : iterable
        Names of the stages of a scoring.

    Raises
    ------
    ValueError
        If a name is not the name of a sleep stage. The message contains the name.
    """
    stages = {name: stage_of(name) for name in names}
    if unknown := [repr(name) for name, stage in stages.items() if stage is None]:
        raise ValueError(
            f"These names are not recognized as sleep stages: {', '.join(unknown)}. Use names such "
            "as W, N1, N2, N3 and R: set class_names_ of the classifier, or pass stage_names= to "
            "the plotting function. To plot other names, pass order=."
        )
    return {name: str(stage) for name, stage in stages.items()}


def top_to_bottom(names: Iterable[object]) -> list:
    """Sort names of stages from top to bottom of a hypnogram: wake, REM, N1 to N3, unscored.

    Parameters
    ----------
    names : iterable
        Unique names of the stages of a scoring.

    Returns
    -------
    list
        The sorted names. If several names have the same stage, their order is not changed.

    Raises
    ------
    ValueError
        If a name is not the name of a sleep stage. The message contains the name.

    Examples
    --------
    >>> from braindecode_pars._common.sleep_stages import top_to_bottom
    >>> top_to_bottom(["N1", "REM", "Wake", "N3", "N2"])
    ['Wake', 'REM', 'N1', 'N2', 'N3']
    """
    names = list(names)
    stage = known_stages(names)
    return sorted(names, key=lambda name: STAGES_IN_ORDER.index(stage[name]))
