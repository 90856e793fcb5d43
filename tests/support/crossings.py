"""Files of the package that a ``fit`` and a ``predict`` cross: run this file.

A move is a function of one file that calls a function of another, counted once however often it
happens; calls through other libraries count for the nearest function of the package. A move goes up
where the called file is in a higher layer than the caller, see ``structure.py``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import structure

import braindecode_pars
from braindecode_pars import PARSClassifier, datasets

ROOT = str(Path(braindecode_pars.__file__).parent)


def crossings(function: Callable[[], Any]) -> tuple[set[str], Counter[str], int]:
    """Return the files that a call crosses, the moves into each, and how many moves go up."""
    moves: set[tuple[str, str, str, str]] = set()
    files: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name == "<module>":
            return
        files.add(code.co_filename)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(ROOT):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            outer = caller.f_code
            moves.add((outer.co_filename, outer.co_qualname, code.co_filename, code.co_qualname))

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    into = Counter(file.removeprefix(f"{ROOT}/") for _, _, file, _ in moves)
    up = sum(_layer(callee) > _layer(caller) for caller, _, callee, _ in moves)
    return files, into, up


def _layer(file: str) -> int:
    part = Path(file).relative_to(ROOT).parts[0].removesuffix(".py")
    return structure.layers().get(part, 0)


def show(name: str, function: Callable[[], Any]) -> None:
    """Print the number of files and moves, and where most moves go."""
    files, into, up = crossings(function)
    most = ", ".join(f"{file} {n}" for file, n in into.most_common(4))
    print(f"{name}: {len(files)} files, {sum(into.values())} moves, {up} up, most into {most}")


if __name__ == "__main__":
    structure.read(Path(ROOT))
    windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    clf = PARSClassifier(pretrain_epochs=1, finetune_epochs=1, verbose=0)
    show("fit", lambda: clf.fit(windows))
    show("predict", lambda: clf.predict(windows))
