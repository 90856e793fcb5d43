"""Command lines of any command with any options and values, on small odd files."""

from __future__ import annotations

from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import typer
from hypothesis import strategies as st
from support.edf_files import write_edf_records
from support.store_command import make_tree
from typer.testing import CliRunner, Result

from braindecode_pars.cli import app
from fuzz import folders
from fuzz.outcomes import Case, CommandError

COMMANDS = {name: c.params for name, c in typer.main.get_command(app).commands.items()}

TINY = [
    *("--embed-dim", 8, "--num-layers", 1, "--num-heads", 2, "--mlp-dim", 8, "--epochs", 1),
    *("--steps-per-epoch", 1, "--batch-size", 4, "--window-seconds", 3, "--device", "cpu"),
]
SIMULATED = ["--dataset", "simulated", "--load", "n_subjects=2", "--load", "hours=0.05"]
#: Long lines, control characters, other scripts, and what shells and formats give a meaning.
TEXTS = [
    "2",
    "",
    "-1",
    "0",
    "nan",
    "inf",
    "x",
    "1e400",
    "None",
    "[1]",
    "ä",
    "[bold]",
    "0.5",
    "99",
    "../..",
    "a" * 5000,
    "\x1b[31m",
    "{}",
    "{x}",
    "%s",
    "1,2",
    "=",
    "a=b",
    "a=[1",
    "-",
    "tueg=1",
    "1000000000000",
]
#: Places in the folder of a case.
PLACES = ("TREE", "STORE", "MODEL", "ENCODER", "RUN", "EMPTY", "NONE", "FILE", "TEXT.edf")
PLACES += ("CUT.edf", "VOID.edf", "VOID.fif", "VOID.hea", "JSON", "LOCKED", "LINK", "DEEP")


def run(*arguments: Any) -> Result:
    """Run a command in this process; its message becomes an error, to be judged like others."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if isinstance(result.exception, Exception):
        raise result.exception
    if result.exit_code == 0:
        return result
    message = " ".join(result.output.replace("│", " ").split())
    if result.exit_code not in (1, 2) or "Traceback" in message or len(message) < 20:
        raise RuntimeError(f"exit code {result.exit_code}: {message!r}")
    raise CommandError(message)


@cache
def _tree() -> Path:
    return make_tree(folders._home() / "tree")


@cache
def _edf() -> bytes:
    file = folders._home() / "whole.edf"
    write_edf_records(file, np.ones((2, 1000), int), range(10), kind="EDF+C")
    return file.read_bytes()


def make_places(folder: Path) -> dict[str, Path]:
    """Write folders and files that commands may meet, some of them damaged."""
    made = {name: folder / name for name in PLACES}
    kinds = dict(STORE="store", MODEL="classifier", ENCODER="encoder", RUN="run")
    made |= {name: folders._made(kind, 0) for name, kind in kinds.items()}
    made["TREE"] = _tree()
    for name in ("EMPTY", "JSON", "LOCKED", "DEEP"):
        made[name].mkdir()
    made["FILE"].write_bytes(b"a file")
    made["TEXT.edf"].write_text("no recording")
    made["CUT.edf"].write_bytes(_edf()[: len(_edf()) // 2])
    for name in ("VOID.edf", "VOID.fif", "VOID.hea"):
        made[name].touch()
    for name in ("model.json", "run.json", "store.json", "encoder.json", "predictions.json"):
        (made["JSON"] / name).write_text('{"version": [], "configuration": 3, "kind": null}')
    (made["DEEP"] / "a.json").write_text("[" * 10**5)
    (made["LOCKED"] / "night.edf").write_bytes(_edf())
    (made["LOCKED"] / "night.edf").chmod(0)
    made["LINK"].symlink_to(made["LINK"])
    return made


def _value(option: Any) -> st.SearchStrategy:
    return st.one_of(st.sampled_from(TEXTS), st.sampled_from(PLACES), st.text(max_size=4))


def _lost(folder: Path) -> str | None:
    return None if (folder / "FILE").read_bytes() == b"a file" else "FILE was overwritten"


#: Options of work that takes long, and other programs: a number of processes, and of epochs.
LONG = {"--epochs", "--steps-per-epoch", "--jobs", "--n-jobs", "--num-workers", "--seeds"}
LONG |= {"--compile", "--paper", "--help", "--batch-size"}


@st.composite
def cases(draw):
    command = draw(st.sampled_from(sorted(COMMANDS)))
    arguments = [p for p in COMMANDS[command] if p.param_type_name == "argument"]
    options = [p for p in COMMANDS[command] if not set(p.opts) & LONG and p not in arguments]
    words = [draw(st.sampled_from(PLACES)) for _ in arguments]
    if command == "evaluate":
        words[0] = draw(st.sampled_from(["compare", "transfer", "ablation", "label-efficiency"]))
        named = [["--dataset", name] for name in (*PLACES, "eegmat", "x=TREE")]
        # There are data, so that a line may be right; its work must be short.
        words += draw(st.sampled_from([*named, [*SIMULATED, "--method", "band-power"]]))
    if command in ("predict", "pretrain"):
        words += ["--out", draw(st.sampled_from(["OUT", "OUT", *PLACES]))]
    if command == "store":
        words += draw(st.sampled_from([[], ["OUT"], ["OUT"], ["EMPTY"], ["FILE"]]))
    if command == "pretrain":
        words += [str(word) for word in TINY]
    if command == "plan":
        words += ["--device", "cpu", "--embed-dim", "8", "--num-layers", "1", "--num-heads", "2"]
    picked = st.lists(st.sampled_from(options or [None]), max_size=3, unique_by=id)
    for option in filter(None, draw(picked)):
        words.append(option.opts[0])
        if not option.is_flag:
            words.append(draw(_value(option)))
    words = [word for word in words if "\0" not in word]

    def act(folder: Path) -> Any:
        places = make_places(folder) | {"OUT": folder / "OUT"}
        with chdir(folder):
            return run(command, *[str(places.get(word, word)) for word in words])

    def problem(result: Any) -> str | None:
        shown = result.output
        return "prints NaN" if " nan" in shown or "Traceback" in shown else None

    return Case(f"{command} {words}", act, problem, _lost)
