"""Names of sleep stages in common spellings, and what they are by today's rules (AASM)."""

import re
from collections.abc import Iterable
from typing import Any

from braindecode_pars._common import checks
from braindecode_pars._common.tables import label_text

#: Classes of the sleep corpora, in the order of the targets 0 to 4.
SLEEP_STAGES = ("W", "N1", "N2", "N3", "R")

#: Label of each stage.
SLEEP_TARGETS = {stage: target for target, stage in enumerate(SLEEP_STAGES)}

#: What :func:`stage_of` returns for artifacts, movement time and windows without a score.
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
_DEPTH = {"0": "W", "1": "N1", "2": "N2", "3": "N3"}
#: Stages of numbers in a scheme.
_NUMBERS = {
    "yasa": {**_DEPTH, "4": "R", "-1": UNSCORED, "-2": UNSCORED},
    "nsrr": {**_DEPTH, "4": "N4", "5": "R", "6": UNSCORED, "9": UNSCORED},
    "rk": {**_DEPTH, "4": "N4"},
}
_KNOWN = (*SLEEP_STAGES, UNSCORED)
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
    >>> from braindecode_pars._common.sleep_stages import are_stages
    >>> are_stages(["Wake", "N1", "N2", "N3", "REM"]), are_stages(["left", "right"])
    (True, False)
    """
    stages = set(map(stage_of, names))
    return None not in stages and bool(stages - {UNSCORED})


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
    >>> from braindecode_pars._common.sleep_stages import absent_stages
    >>> absent_stages(["wake", "N3"]), absent_stages(["W", "NREM", "R"]), absent_stages(["left"])
    (['N1', 'N2', 'R'], [], [])
    """
    names = list(names)
    present = set(map(stage_of, names))
    present |= {fine for stage in present for fine in INCLUDED_STAGES.get(str(stage), ())}
    return [stage for stage in SLEEP_STAGES if stage not in present] if are_stages(names) else []


def aasm_stages(names: Iterable[Any], scheme: str | None = None) -> dict[Any, str]:
    """Return the stages of the AASM by the names of a scoring, also one of Rechtschaffen and Kales.

    Stages 3 and 4 are N3. It is for ``labels`` or ``classes`` of :mod:`datasets.folder
    <braindecode_pars.datasets.folder>`, where names without a stage get no window.

    Parameters
    ----------
    names : iterable of str or int
        Names in any spelling that :func:`stage_of` knows, or numbers of the scheme.
    scheme : "yasa" | "nsrr" | "rk" | None
        What numbers mean. All have 0 (W) and 1 to 3; 4 is R in YASA [1]_, and stage 4 in the
        National Sleep Research Resource [2]_, which has 5 as R, and in Rechtschaffen and Kales.
        None: nothing.

    Returns
    -------
    dict of str to str
        "W", "N1", "N2", "N3" or "R" by name; without windows that are not scored, such as "?",
        movement time and artifacts.

    Raises
    ------
    ValueError
        When the scheme is unknown.

    Warns
    -----
    UserWarning
        When other names are left out, such as numbers without a scheme, or coarser stages.

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
    if odd := [repr(texts[name]) for name, stage in merged.items() if stage not in _KNOWN]:
        checks.warn_user(
            f"aasm_stages leaves out {checks.format_list(odd)}: no known stage of the AASM. Pass the "
            "scheme of numbers ('yasa', 'nsrr' or 'rk'); add other names to the dict yourself."
        )
    return {name: stage for name, stage in merged.items() if stage in SLEEP_STAGES}


def known_stages(names: Iterable[object]) -> dict[object, str]:
    """Return the stage of each name, as from :func:`stage_of`; all of them must be known.

    Parameters
    ----------
    names : iterable
        All names of a scoring.

    Raises
    ------
    ValueError
        When a name is not that of a sleep stage. The message names it.
    """
    stages = {name: stage_of(name) for name in names}
    if unknown := [repr(name) for name, stage in stages.items() if stage is None]:
        raise ValueError(
            f"{', '.join(unknown)} not known as sleep stages. Pass names such as W, N1, N2, N3, R, "
            f"by class_names_ of a classifier; to a figure, also order={[*map(str, stages)]}."
        )
    return {name: str(stage) for name, stage in stages.items()}


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
    >>> from braindecode_pars._common.sleep_stages import top_to_bottom
    >>> top_to_bottom(["N1", "REM", "Wake", "N3", "N2"])
    ['Wake', 'REM', 'N1', 'N2', 'N3']
    """
    names = list(names)
    stage = known_stages(names)
    return sorted(names, key=lambda name: STAGES_IN_ORDER.index(stage[name]))
