"""Sort a case by its outcome, against the promise: a right result, or an error that explains."""

from __future__ import annotations

import dis
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import contextmanager
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
OPENING = "unsafe"


def judge(
    act: Callable[[Path], Any], problem: Callable[[Any], str | None], folder: Path
) -> tuple[str, str]:
    """Run a case and return its outcome, with a detail for the report.

    Parameters
    ----------
    act : callable
        Call of the package, with an empty folder to write in. Its errors are judged.
    problem : callable
        Oracle: what is wrong with the result; None when it is right.
    folder : Path
        The empty folder.
    """
    messages: list[str] = []
    with _watched(folder) as openings, _listening(messages):
        try:
            result, error = act(folder), None
        except Exception as raised:
            result, error = None, raised
    if openings:
        return OPENING, "; ".join(openings)
    if error is not None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        return (CLEAR if is_clear(error) else RAW), detail
    try:
        wrong = problem(result)
    except Exception as error:  # a result that cannot be used is not right
        wrong = f"the result cannot be used: {type(error).__name__}: {error}"
    if wrong is None:
        return RIGHT, ""
    return (WARNED, messages[0]) if messages else (WRONG, wrong)


def is_clear(error: Exception) -> bool:
    """Whether an error explains.

    It is of a type that callers can expect, its last frame is a ``raise`` statement of this
    package (so it is not the error of a library, nor of an operator in our own code), and its
    message is a sentence.
    """
    message = str(error).strip()
    is_sentence = len(message) >= 20 and len(message.split()) >= 4
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code
    raises = dis.opname[code.co_code[step.tb_lasti]] == "RAISE_VARARGS"
    is_ours = raises and any(part in code.co_filename for part in EXPLAINERS)
    return isinstance(error, CLEAR_ERRORS) and is_sentence and is_ours


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


def _hook(event: str, arguments: tuple) -> None:
    if _watching is None:
        return
    folder, openings = _watching
    if event in _FORBIDDEN:
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
