"""The commands of docs/guide/reproduce.rst: they parse, and end in the same table after kills."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pandas as pd
import pytest
import torch
from support.corpora import write_corpora
from support.page_commands import Command, commands_of, run, run_until_killed

from braindecode_pars.evaluation.metrics import METRICS
from braindecode_pars.signal_store import SignalStore

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "reproduce.rst"
COMMANDS = commands_of(PAGE)

# Options that come after those of the page, and replace them: tiny encoders and few steps.
SIZES = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)
RUN = dict(device="cpu", epochs=2, steps_per_epoch=2, batch_size=4, micro_batch_size=2, lr=0.01)
FIT = dict(device="cpu", finetune_epochs=2, finetune_lr=0.02, finetune_batch_size=8)


def small(command: Command) -> list[str]:
    """Return the arguments of a command of the page with the sizes of a test."""
    given = command.arguments
    if command.name in ("plan", "pretrain"):
        sizes = {**RUN, **SIZES}.items()
        return [*given, *(f"--{name.replace('_', '-')}={value}" for name, value in sizes)]
    if command.name == "store":
        return [*given, "--jobs=1"]
    # All metrics, not only those of the cell.
    added = [f"--metric={metric}" for metric in METRICS if metric not in given]
    added += [f"--set={name}={value}" for name, value in FIT.items()]
    if command.name == "transfer":
        added += ["--seeds=1"]
    elif command.name == "label-efficiency":  # numbers of subjects add up: the first stays
        first, last = given.index("--n"), len(given) - given[::-1].index("--n")
        given = [*given[:first], *given[last + 1 :]]
        added += ["--n=4", "--seeds=1"]
    elif command.name == "ablation":
        added += [f"--set={name}={value}" for name, value in SIZES.items()]
        given = [*given[: given.index("--grid")], *given[given.index("--grid") + 2 :]]
        added += ["--set=pretrain_epochs=1", "--grid=overlap", "--n=2", "--seeds=1"]
    return [*given, *added]


@pytest.fixture
def one_thread():
    """Use one thread: a process with several cannot be forked safely."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


#: Outputs whose command is killed, and when: at the nth call of a method.
_STORING = "braindecode_pars.signal_store.writing:_Writer.add"
_TRAINING = ("braindecode_pars.runs.run:RunNet.get_loss", 7)  # micro-batch 7 of 8, epoch 2 of 2
_SCORING = ("braindecode_pars._common.files:write_checked", 3)  # fit 3 of 5
KILLS = {
    "store-pretraining": (_STORING, 7),  # of 12 recordings
    "stores/tuab": (_STORING, 5),  # of 14
    "runs/pars": _TRAINING,
    "runs/mae": _TRAINING,
    "results/tuab": _SCORING,
    "results/physionet_mi": _SCORING,
}

#: The columns of Table 1, by the folder of their command.
CELLS = {
    "eesm17": {"balanced_accuracy", "kappa"},
    "tuab": {"balanced_accuracy", "auroc"},
    "tusz": {"balanced_accuracy", "auroc"},
    "physionet_mi": {"balanced_accuracy", "kappa"},
}


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings(
    "ignore:.*scores are undefined",
    "ignore:No validation windows",
    "ignore:Preprocessing of these windows differs",
)
def test_the_chain_ends_in_the_same_table_after_kills(tmp_path, monkeypatch):
    """Every command of the page on six small corpora, and again with SIGKILL in six of them."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    write_corpora(whole)
    shutil.copytree(whole, killed)
    commands = {_output(c): c for c in COMMANDS if c.program != "torchrun" and c.name != "plan"}

    monkeypatch.chdir(whole)
    for command in [COMMANDS[0], *commands.values()]:
        run(small(command))
    _check_cells(whole)

    monkeypatch.chdir(killed)
    for output, command in commands.items():
        if output in KILLS:
            _run_with_a_kill(command, output)
        elif command.name in ("store", "pretrain"):
            run(small(command))
    found, expected = _results(killed), _results(whole)
    assert {name.rpartition("/")[0] for name in found} == KILLS.keys()
    assert [name for name, content in found.items() if content != expected[name]] == []


def _output(command: Command) -> str:
    """Return the folder that a command writes."""
    given = command.arguments
    return given[given.index("--out") + 1] if "--out" in given else given[1]


def _run_with_a_kill(command: Command, output: str) -> None:
    """Run a command until it is killed, and again, without a second fit of what is finished."""
    arguments = small(command)
    assert run_until_killed(arguments, *KILLS[output]) == -signal.SIGKILL, arguments
    if command.name == "store":
        with pytest.raises(ValueError, match="incomplete"):
            SignalStore.open(output)
    kept = _written(output)
    assert len(kept) == (2 if command.name == "transfer" else 0)
    run([*arguments, *["--resume"] * (command.name == "pretrain")])
    assert kept.items() <= _written(output).items()


def _written(output: str) -> dict[str, int]:
    """Return the time of writing of each finished fit."""
    return {str(file): file.stat().st_mtime_ns for file in Path(output).glob("cache/*_*.json")}


def _results(folder: Path) -> dict[str, bytes]:
    """Return what must be the same after a kill."""
    names = ("encoder.safetensors", "samples.bin", "windows.csv", "scores.csv")
    files = [Path(output, name) for output in KILLS for name in names]
    return {str(f): (folder / f).read_bytes() for f in files if (folder / f).exists()}


def _check_cells(folder: Path) -> None:
    """Check that there is a score for each cell of Table 1, and in all other metrics."""
    for name, of_the_paper in CELLS.items():
        scores = pd.read_csv(folder / "results" / name / "scores.csv")
        cells = scores[(scores["subject"] == "all") | (name == "eesm17")]
        tasks = ("MAE", "MP3", "DropPos", "PARS")
        assert {*cells["method"]} == {"from scratch", *(f"{task}, fine-tuned" for task in tasks)}
        assert of_the_paper < {*cells["metric"]} == {*METRICS}
        assert cells["value"].notna().all()
        assert cells.loc[cells["metric"] == "auroc", "value"].nunique() > 1  # methods differ
