"""Record a command in a terminal, and draw it as an SVG that plays once: docs/images/demo.svg.

    python docs/experiments/record_demo.py
    python docs/experiments/record_demo.py --cast demo.cast        # keep the recording
    python docs/experiments/record_demo.py --cast demo.cast --draw # draw it once more
    python docs/experiments/record_demo.py --out x.svg braindecode-pars demo --seed 1

The command runs in an empty folder. The scores of the demo, averaged over its draws, become
docs/measured/demo/seed0.csv, unless --out names another folder. The last screen also becomes a text
file beside the SVG. The picture has system fonts and no scripts. It begins with the last screen,
for programs that draw the first frame only; a reader who wants no motion, and a program that draws
no animation or knows no style sheets, gets that screen too.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import fcntl
import itertools
import json
import os
import pty
import shlex
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import pandas as pd
import pyte
from stored_table import store_table

from braindecode_pars._common.files import replace_file
from braindecode_pars.evaluation.metrics import by_subject

IMAGES = Path(__file__).parents[1] / "images"
MEASURED = Path(__file__).parents[1] / "measured"
COMMAND = ["braindecode-pars", "demo"]
#: Seconds for which the last screen is shown first, and the command line stands alone, and seconds
#: between two screens of the SVG.
FIRST, PROMPT, STEP = 3.0, 1.0, 0.2
CELL, LINE, MARGIN, SIZE = 8.4, 19, 16, 14
#: Ground and ink have a contrast of 14, each colour one of at least 7 to the ground.
GROUND, INK, FRAME = "#14181e", "#dfe2e7", "#48566b"
COLORS = {
    "black": "#9aa4b2",
    "red": "#ff9a8d",
    "green": "#7fd88f",
    "brown": "#f0c56c",
    "blue": "#8ab8ff",
    "magenta": "#e3a6f0",
    "cyan": "#74d3dd",
}
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
STYLE = f"""
text {{ white-space: pre }}
@keyframes wait {{ from, to {{ visibility: hidden }} }}
@keyframes show {{ from, to {{ visibility: visible }} }}
.stays {{ animation: wait 0s {FIRST:g}s }}
.goes {{ animation: show 0s }}
@media (prefers-reduced-motion: reduce) {{ .stays, .goes {{ animation: none }} }}
"""

#: Seconds since the start, and what the terminal got.
Event = tuple[float, str]
#: Text of a cell, its colour and whether it is bold.
Cell = tuple[str, str, bool]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=IMAGES / "demo.svg")
    parser.add_argument("--cast", type=Path, help="file of the recording, as asciinema's")
    parser.add_argument("--draw", action="store_true", help="draw the recording in --cast")
    parser.add_argument("--columns", type=int, default=104)
    parser.add_argument("--seconds", type=float, default=15, help="for which the picture plays")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command or COMMAND
    if args.draw:
        events, n_columns = _read_cast(args.cast)
    else:
        is_kept = command == COMMAND and args.out.parent == IMAGES
        events = record(command, args.columns, _store_scores if is_kept else None)
        n_columns = args.columns
        if args.cast is not None:
            _write_cast(args.cast, events, n_columns)
    prompt = f"$ {shlex.join(command)}"
    screens = list(replay(events, n_columns, prompt, args.seconds))
    replace_file(args.out, draw(screens, n_columns, prompt, events[-1][0]))
    rows = ["".join(text for text, *_ in row).rstrip() for row in screens[-1][1]]
    replace_file(args.out.with_suffix(".txt"), "\n".join(rows) + "\n")
    print(f"{args.out}: {args.out.stat().st_size / 1000:.0f} kB, {events[-1][0]:.0f} s recorded")


def record(
    command: list[str], n_columns: int, keep: Callable[[Path], None] | None = None
) -> list[Event]:
    """Run a command in a pseudo terminal in an empty folder, and return what it wrote.

    ``keep`` is called with the folder after the command has ended well.
    """
    events = []
    terminal, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 1000, n_columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(n_columns)}
    decode = codecs.getincrementaldecoder("utf-8")().decode
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        streams = dict(stdin=program, stdout=program, stderr=program)
        with subprocess.Popen(command, cwd=folder, env=environment, **streams) as process:
            os.close(program)
            with contextlib.suppress(OSError):  # so the end of the output is reported on Linux
                while read := os.read(terminal, 65536):
                    events.append((time.monotonic() - start, decode(read)))
            os.close(terminal)
        if process.returncode:
            shown = "".join(text for _, text in events)
            raise SystemExit(f"{shlex.join(command)} failed:\n{shown}")
        if keep is not None:
            keep(Path(folder))
    return events


def _store_scores(folder: Path) -> None:
    """Store the scores of every person, averaged over the draws of labelled people."""
    scores = pd.read_csv(folder / "braindecode-pars-demo" / "scores.csv")
    table = by_subject(scores).assign(seed=0)
    command, origin = f"{shlex.join(COMMAND)} --seed 0", "each score is the mean over the draws"
    store_table(table, MEASURED / "demo" / "seed0.csv", command, origin, index=False)


def replay(
    events: list[Event], n_columns: int, prompt: str, seconds: float
) -> Iterator[tuple[float, list[list[Cell]]]]:
    """Yield the time and the rows of each screen that differs from the one before it."""
    screen = pyte.Screen(n_columns, 1000)
    stream = pyte.Stream(screen)
    stream.feed(f"\x1b[1m{prompt}\x1b[0m\r\n")
    yield 0.0, _rows(screen)
    speed = events[-1][0] / (seconds - PROMPT)
    for step, group in itertools.groupby(events, lambda event: int(event[0] / speed / STEP)):
        before = _rows(screen)
        stream.feed("".join(text for _, text in group))
        if (rows := _rows(screen)) != before:
            yield round(PROMPT + (step + 1) * STEP, 1), rows


def _rows(screen: pyte.Screen) -> list[list[Cell]]:
    """Return the rows down to the last one with text."""
    rows = []
    for y in range(screen.cursor.y + 1):
        cells = [screen.buffer[y][x] for x in range(screen.columns)]
        rows.append([(cell.data, _color(cell.fg), cell.bold) for cell in cells])
    while rows and not "".join(text for text, *_ in rows[-1]).strip():
        rows.pop()
    return rows


def _color(name: str) -> str:
    """Return the colour of the picture for one of the terminal."""
    return COLORS.get(name.removeprefix("bright"), INK)


def draw(
    screens: list[tuple[float, list[list[Cell]]]], n_columns: int, prompt: str, lasted: float
) -> str:
    """Return an SVG in which each text appears at its time, and goes where another one follows."""
    n_rows = len(screens[-1][1])
    width, height = n_columns * CELL + 2 * MARGIN, n_rows * LINE + 2 * MARGIN
    what = f"{prompt.removeprefix('$ ')} in a terminal"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-labelledby="what how">',
        f'<title id="what">{escape(what)}</title>',
        f'<desc id="how">The last screen, then a recording of {lasted:.0f} seconds, played in '
        f"{screens[-1][0]:.0f}. The last one stays; its text is in a file beside this.</desc>",
        f"<style>{STYLE}</style>",
        f'<rect x="1" y="1" width="{width - 2:g}" height="{height - 2:g}" rx="8" fill="{GROUND}" '
        f'stroke="{FRAME}"/>',
        f'<g fill="{INK}" font-family="{FONT}" font-size="{SIZE}" xml:space="preserve">',
    ]
    for y in range(n_rows):
        shown = [(when, rows[y] if y < len(rows) else []) for when, rows in screens]
        changes = [next(group) for _, group in itertools.groupby(shown, lambda item: item[1])]
        ends = [when for when, _ in changes[1:]] + [None]
        for (when, row), end in zip(changes, ends, strict=True):
            if text := _text(row, MARGIN + SIZE + y * LINE):
                kind, timing = 'class="stays"', f"animation-duration:{when:g}s"
                if end is not None:
                    kind = 'class="goes" visibility="hidden"'
                    delay, seconds = FIRST + when, end - when
                    timing = f"animation-delay:{delay:g}s;animation-duration:{seconds:.1f}s"
                parts.append(f'<g {kind} style="{timing}">{text}</g>')
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _text(row: list[Cell], y: int) -> str:
    """Return the texts of a row, each with the width that its number of characters has."""
    texts = []
    column = 0
    for (color, bold), group in itertools.groupby(row, lambda cell: cell[1:]):
        text = "".join(cell[0] for cell in group)
        start, column = column, column + len(text)
        if not (kept := text.strip()):
            continue
        start += len(text) - len(text.lstrip())
        style = ' font-weight="bold"' if bold else ""
        if color != INK:
            style += f' fill="{color}"'
        texts.append(
            f'<text x="{MARGIN + start * CELL:g}" y="{y}" textLength="{len(kept) * CELL:g}" '
            f'lengthAdjust="spacingAndGlyphs"{style}>{escape(kept, quote=False)}</text>'
        )
    return "".join(texts)


def _write_cast(file: Path, events: list[Event], n_columns: int) -> None:
    """Write a recording as asciinema does, version 2."""
    header = {"version": 2, "width": n_columns, "height": 50}
    lines = [header, *([when, "o", text] for when, text in events)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _read_cast(file: Path) -> tuple[list[Event], int]:
    header, *lines = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return [(when, text) for when, _, text in lines], header["width"]


if __name__ == "__main__":
    main()
