"""Command lines: options with wrong values, wrong folders, and small runs that must work."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from support.store_command import make_tree
from typer.testing import CliRunner, Result

from braindecode_pars.cli import app
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.signal_store import SignalStore
from fuzz import folders
from fuzz.outcomes import Case, CommandError


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


TINY = [
    *("--embed-dim", 8, "--num-layers", 1, "--num-heads", 2, "--mlp-dim", 8, "--epochs", 1),
    *("--steps-per-epoch", 1, "--batch-size", 4, "--window-seconds", 3, "--device", "cpu"),
]
ODD = [
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
]
NUMBERS = ("--embed-dim", "--num-layers", "--num-heads", "--mlp-dim", "--epochs", "--batch-size")
FLOATS = ("--lr", "--window-seconds", "--patch-seconds", "--drop-prob", "--warmup")
CHOICES = ("--task", "--precision", "--device", "--seed", "--num-workers", "--weight-decay")


@st.composite
def pretraining(draw):
    """One option of a small run has an odd value: it is refused, or the run gives an encoder."""
    option = draw(st.sampled_from([*NUMBERS, *FLOATS, *CHOICES, "--set", "--exclude-subject"]))
    value = draw(st.sampled_from(ODD))
    if option == "--set":
        key = draw(st.sampled_from(["overlap", "n_patches", "decoder", "nothing", "encoder", ""]))
        value = f"{key}={value}"
    small_values = {"--embed-dim", "--num-layers", "--mlp-dim", "--epochs", "--num-workers"}
    if value == "99" and option in small_values:
        value = "-99"

    def act(folder: Path) -> Any:
        store = folders._made("store", 0)
        run("pretrain", store, "--out", folder / "run", *TINY, option, value)
        return load_encoder(folder / "run").encoder

    def problem(encoder: Any) -> str | None:
        # Sensible values among the odd ones.
        fine = {"2", "0.5", "99", "0", "1e400"} & {value.partition("=")[2] or value}
        fine = fine or option in ("--seed", "--num-workers")
        return None if fine else f"{option} {value!r} was accepted"

    return Case(f"pretrain STORE --out run {option} {value!r}", act, problem)


OPTIONS = (
    *("--sfreq", "--low", "--high", "--mains", "--channel", "--subject", "--dtype", "--jobs"),
    "--on-error",
)


@st.composite
def storing(draw):
    """Small folders of recordings with sensible or odd options."""
    option = draw(st.sampled_from(OPTIONS))
    value = draw(st.sampled_from([*ODD, "64", "10", "E0", "float32", "warn", "(anna|bert)", "("]))
    if option == "--jobs" and value.removeprefix("-").isdigit():
        value = "1"  # several processes exchange pickles

    def act(folder: Path) -> Any:
        run("store", _tree(), folder / "store", option, value)
        return SignalStore.open(folder / "store", verbose=0)

    def problem(store: SignalStore) -> str | None:
        if len(store.recordings) != 2:
            return f"{len(store.recordings)} recordings instead of 2"
        if option == "--sfreq" and store.sfreq != float(value):
            return f"sfreq {store.sfreq} instead of {value}"
        if option == "--dtype" and store.dtype != value:
            return f"dtype {store.dtype} instead of {value}"
        if value in ("nan", "inf", "-1", "x", "", "None", "1e400") and option != "--on-error":
            return f"{option} {value!r} was accepted"
        return None

    return Case(f"store TREE store {option} {value!r}", act, problem)


SIMULATED = ["--dataset", "simulated", "--load", "n_subjects=2", "--load", "hours=0.05"]
#: Command lines that must end with a message, in a second.
REFUSED = [
    [],
    ["evaluate"],
    ["evaluates"],
    ["store"],
    ["store", "NOWHERE", "OUT"],
    ["store", "EMPTY", "OUT"],
    ["store", "FILE", "OUT"],
    ["store", "TREE", "FILE"],
    ["store", "TREE", "FOREIGN"],
    ["store", "TREE", "STORE"],
    ["store", "TREE", "STORE", "--low", "1"],
    ["pretrain", "NOWHERE", "--out", "OUT"],
    ["pretrain", "FILE", "--out", "OUT"],
    ["pretrain", "EMPTY", "--out", "OUT"],
    ["pretrain", "FOREIGN", "--out", "OUT"],
    ["pretrain", "STORE", "--out", "FOREIGN", *TINY],
    ["pretrain", "STORE", "--out", "FILE", *TINY],
    ["pretrain", "STORE", "--out", "OUT", "--resume", *TINY],
    *(
        ["evaluate", protocol, *rest, "--out", "OUT"]
        for protocol in ("compare", "leave-one-subject-out")
        for rest in (
            [],
            ["--dataset", "nothing"],
            ["--dataset", "tuab"],
            ["--dataset", "tuab", "--data", "NOWHERE"],
            ["--dataset", "eegmat", "--data", "EMPTY"],
            ["--dataset", "eegmat", "--data", "FILE"],
            [*SIMULATED, "--method", "nothing"],
            [*SIMULATED, "--method", "pars", "--set", "nothing=1"],
            [*SIMULATED, "--method", "pars", "--set", "embed_dim"],
            [*SIMULATED, "--method", "pars", "--method", "scratch", "--set", "embed_dim=x"],
            [*SIMULATED, "--metric", "nothing"],
            [*SIMULATED, "--load", "nothing=1"],
            [*SIMULATED, "--load", "hours=-1"],
            [*SIMULATED, "--load", "n_subjects=1"],
            [*SIMULATED, "--seeds", "0"],
            [*SIMULATED, "--encoder", "NOWHERE"],
            [*SIMULATED, "--encoder", "FOREIGN"],
            [*SIMULATED, "--n-jobs", "x"],
        )
    ),
    ["evaluate", "compare", *SIMULATED, "--method", "band-power", "--out", "OUT"],
    ["evaluate", "label-efficiency", *SIMULATED, "--n", "0", "--out", "OUT"],
    ["evaluate", "label-efficiency", *SIMULATED, "--n", "9", "--out", "OUT"],
    ["evaluate", "label-efficiency", *SIMULATED, "--n", "1", "--test-subject", "x", "--out", "OUT"],
    ["evaluate", "ablation", *SIMULATED, "--grid", "nothing", "--out", "OUT"],
    [
        "evaluate",
        "transfer",
        "--encoder",
        "NOWHERE",
        "--dataset",
        "eegmat",
        "--data",
        "EMPTY",
        "--out",
        "OUT",
    ],
    ["evaluate", "transfer", "--encoder", "ENCODER", "--dataset", "eegmat", "--out", "OUT"],
    [
        "evaluate",
        "transfer",
        "--encoder",
        "ENCODER",
        "--dataset",
        "x",
        "--data",
        "EMPTY",
        "--out",
        "OUT",
    ],
]
FOREIGN = {"config.json": b"{}", "store.json": b"{}", "settings.json": b"[1]", "notes": b"mine"}


@st.composite
def mistakes(draw):
    """A mistake ends with a message and without a result; no file of the user changes."""
    line = draw(st.sampled_from(REFUSED))

    def act(folder: Path) -> Any:
        for name in ("EMPTY", "FOREIGN"):
            (folder / name).mkdir()
        for name, content in FOREIGN.items():
            (folder / "FOREIGN" / name).write_bytes(content)
        (folder / "FILE").write_bytes(b"a file of the user")
        shutil.copytree(folders._made("store", 0), folder / "STORE")
        shutil.copytree(folders._made("encoder", 0), folder / "ENCODER")
        places = {"TREE": _tree()}
        for name in ("EMPTY", "FOREIGN", "FILE", "STORE", "ENCODER", "OUT", "NOWHERE"):
            places[name] = folder / name
        return run(*[_placed(word, places) for word in line])

    def lost(folder: Path) -> str | None:
        for name, content in FOREIGN.items():
            if (folder / "FOREIGN" / name).read_bytes() != content:
                return f"{name} was overwritten"
        if (folder / "FILE").read_bytes() != b"a file of the user":
            return "the file was overwritten"
        return None

    def problem(result: Any) -> str | None:
        return f"ended without an error: {result.output[-200:]}"

    text = " ".join(map(str, line))
    return Case(f"braindecode-pars {text}", act, problem, lost)


def _placed(word: Any, places: dict[str, Path]) -> str:
    before, _, last = str(word).rpartition("=")
    return (
        f"{before}={places[last]}"
        if before and last in places
        else str(places.get(str(word), word))
    )


cases = st.one_of(mistakes(), mistakes(), pretraining(), storing())
