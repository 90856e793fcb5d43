"""Sort a case by its outcome, against the promise: a right result, or an error that explains."""

from __future__ import annotations

import dis
import logging
import os
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import braindecode_pars

PACKAGE = str(Path(braindecode_pars.__file__).parent)
#: Modules of scikit-learn whose errors explain as well: they check types of targets.
EXPLAINERS = (PACKAGE, "sklearn/utils/_param_validation.py", "sklearn/utils/multiclass.py")
CLEAR_ERRORS = (TypeError, ValueError, OSError)

RIGHT = "right"
WARNED = "warning"
CLEAR = "clear error"
RAW = "raw error"
WRONG = "silent wrong"
LOSS = "loss"
OPENING = "opening"
OUTCOMES = (RIGHT, WARNED, CLEAR, RAW, WRONG, LOSS, OPENING)


class CommandError(ValueError):
    """The message that a command has printed before it ended with an error."""


@dataclass
class Case:
    """One call of the package, with an oracle.

    Attributes
    ----------
    text : str
        How to reproduce the case.
    act : callable
        Call of the package, with an empty folder to write in. Its errors are judged.
    problem : callable
        Oracle: what is wrong with the result; None when it is right.
    lost : callable
        What is missing in the folder after the call, whatever its outcome; None for nothing.
    """

    text: str
    act: Callable[[Path], Any]
    problem: Callable[[Any], str | None]
    lost: Callable[[Path], str | None] = lambda folder: None

    def __repr__(self) -> str:
        return self.text


def refused(why: str) -> Callable[[Any], str]:
    """Return the oracle of a call that must not return."""
    return lambda result: f"accepted: {why}"


@dataclass
class Totals:
    """Number of cases by area and outcome, and the cases that break the promise."""

    counts: Counter = field(default_factory=Counter)
    failures: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, area: str, outcome: str, text: str, detail: str) -> None:
        self.counts[area, outcome] += 1
        if outcome in (RAW, WRONG, LOSS, OPENING):
            self.failures.append((area, outcome, text, detail))

    def number(self, outcome: str) -> int:
        return sum(n for (_, kind), n in self.counts.items() if kind == outcome)

    def __len__(self) -> int:
        return self.counts.total()

    def table(self) -> str:
        """Return the numbers as a table in reStructuredText."""
        areas = sorted({area for area, _ in self.counts})
        rows = [["area", "cases", *OUTCOMES]]
        for area in [*areas, "all"]:
            counts = [
                self.number(outcome) if area == "all" else self.counts[area, outcome]
                for outcome in OUTCOMES
            ]
            rows.append([area, str(sum(counts)), *map(str, counts)])
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in rows:
            lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
        return "\n".join(lines) + "\n"

    def report(self) -> str:
        return "\n".join(
            f"[{area}] {outcome}: {text}\n    {detail}"
            for area, outcome, text, detail in self.failures
        )


def judge(case: Case, folder: Path) -> tuple[str, str]:
    """Run a case and return its outcome, with a detail for the report."""
    messages: list[str] = []
    with _watched(folder) as openings, _listening(messages):
        try:
            result, error = case.act(folder), None
        except Exception as raised:
            result, error = None, raised
    if openings:
        return OPENING, "; ".join(openings)
    if missing := case.lost(folder):
        return LOSS, missing
    if error is not None:
        if is_clear(error):
            return CLEAR, str(error)
        return RAW, f"{type(error).__name__}: {error} ({_place(error)})"
    problem = _problem(case, result)
    if problem is None:
        return RIGHT, ""
    return (WARNED, messages[0]) if messages else (WRONG, problem)


def _problem(case: Case, result: Any) -> str | None:
    with warnings.catch_warnings(action="ignore"):
        try:
            return case.problem(result)
        except Exception as error:  # a result that cannot be used is not right
            return f"the result cannot be used: {type(error).__name__}: {error}"


def is_clear(error: Exception) -> bool:
    """Whether an error explains.

    It is of a type that callers can expect, its last frame is a ``raise`` statement of this
    package (so it is not the error of a library, nor of an operator in our own code), and its
    message is a sentence.
    """
    if not isinstance(error, CLEAR_ERRORS):
        return False
    message = str(error).strip()
    is_sentence = len(message) >= 20 and len(message.split()) >= 4
    if isinstance(error, CommandError):
        return is_sentence
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code
    raises = dis.opname[code.co_code[step.tb_lasti]] == "RAISE_VARARGS"
    return is_sentence and raises and any(part in code.co_filename for part in EXPLAINERS)


def _place(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"


@contextmanager
def _listening(messages: list[str]):
    """Collect the warnings and the log of the package."""
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())
    log = logging.getLogger("braindecode_pars")
    log.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        messages += [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    finally:
        log.removeHandler(handler)


# What the audit hook has seen in the folder that is watched; an audit hook cannot be removed.
_watching: tuple[Path, list[str]] | None = None
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
#: Name of the folder of what all cases share: saved models and stores.
FOLDER_PREFIX = "braindecode-pars-fuzz-"
_FORBIDDEN = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "pickle.find_class")
#: Byte code of the interpreter, and caches of libraries in the user's home.
_ALLOWED = ("__pycache__", "/dev/null", "/.cache/", "/.config/", "/.mne", FOLDER_PREFIX)


#: Through these a process and those that it has started send objects to each other.
_BETWEEN_PROCESSES = ("multiprocessing/queues.py", "multiprocessing/connection.py")


def _is_of_own_process() -> bool:
    """Whether an event is of what a data worker of this process sends."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if frame.f_code.co_filename.endswith(_BETWEEN_PROCESSES):
            return True
    return False


def _hook(event: str, arguments: tuple) -> None:
    if _watching is None:
        return
    folder, openings = _watching
    if event in _FORBIDDEN and not _is_of_own_process():
        openings.append(f"{event}{arguments!r}"[:200])
    elif event == "open" and isinstance(arguments[0], (str, bytes)):
        path, mode, flags = arguments
        writes = flags & _WRITES if isinstance(flags, int) else set(mode or "") & set("wax+")
        path = os.path.abspath(os.fsdecode(path))
        if writes and not path.startswith(str(folder)) and not any(a in path for a in _ALLOWED):
            openings.append(f"wrote {path}")


@contextmanager
def _watched(folder: Path):
    """Watch for files outside the folder, connections, other programs and pickles."""
    global _watching
    openings: list[str] = []
    _watching = (folder, openings)
    try:
        yield openings
    finally:
        _watching = None


sys.addaudithook(_hook)
