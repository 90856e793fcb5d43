"""``braindecode-pars pretrain``: settings from options, resuming, and errors."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from dataclasses import fields

import pandas as pd
import psutil
import pytest
import torch
from support.small_runs import make_store
from typer.testing import CliRunner

from braindecode_pars.cli import app
from braindecode_pars.cli.commands import run_config
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.runs import RunConfig
from braindecode_pars.runs.run import RunNet


def test_the_published_settings_on_request():
    assert run_config({"device": "cpu", "paper": True}) == RunConfig(device="cpu")
    assert run_config({"device": "cpu"}) == RunConfig.for_laptop(device="cpu")
    settings = ["n_patches=9", "overlap=false"]
    given = {"batch_size": 32, "device": "cpu", "settings": settings}
    config = run_config(given | {"exclude_subjects": ["S1"], "paper": True})
    assert (config.batch_size, config.epochs, config.exclude_subjects) == (32, 1000, ("S1",))
    assert config.task_params == {"n_patches": 9, "overlap": False}
    assert "settings" in given  # not changed


runner = CliRunner()

SMALL = [
    *("--window-seconds", "3", "--patch-seconds", "0.5", "--embed-dim", "16"),
    *("--num-layers", "1", "--num-heads", "2", "--mlp-dim", "16", "--device", "cpu"),
    *("--epochs", "2", "--steps-per-epoch", "3", "--batch-size", "8", "--paper"),
]


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path / "store").path


def pretrain(*arguments, code=0):
    result = runner.invoke(app, ["pretrain", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture
def interrupted(monkeypatch):
    """Function that starts a run, and interrupts it in its second epoch."""

    def interrupt(net, *args, **kwargs):
        if net.history[-1, "epoch"] == 2:
            raise KeyboardInterrupt

    def call(*arguments):
        with monkeypatch.context() as patched:
            patched.setattr(RunNet, "on_batch_end", interrupt)
            return pretrain(*arguments, code=130)

    return call


def configuration(out):
    return json.loads((out / "run.json").read_text())["configuration"]


def test_a_run_from_the_command_line(store, tmp_path):
    out = tmp_path / "run"
    printed = pretrain(
        *(store, "--out", out, *SMALL, "--lr", "0.002", "--warmup", "0.5"),
        *("--set", "n_patches=5", "--set", "overlap=false", "--exclude-subject", "subject-0"),
    )
    assert "3 recordings of 3 subjects" in printed
    assert "PARS with 4,193 parameters" in printed
    assert f"The encoder is in {out}" in printed.replace("\n", "")
    found = configuration(out)
    assert (found["lr"], found["warmup"], found["weight_decay"]) == (0.002, 0.5, 1e-4)
    assert found["task_params"] == {"n_patches": 5, "overlap": False}
    card = load_encoder(out).card
    assert card.subjects == ["subject-1", "subject-3"]
    # Fewer steps than the estimators' smallest number, which is for trainings without a number
    assert (len(pd.read_csv(out / "metrics.csv")), card.epochs, card.n_steps) == (2, 2, 6)


def test_the_task_on_features_takes_the_rate_of_the_store(store, tmp_path):
    """And crops of several lengths."""
    settings = ('features=["bands", "shape"]', "mask_ratio=0.3")
    options = ["--task", "features", *(word for each in settings for word in ("--set", each))]
    printed = pretrain(store, "--out", tmp_path / "run", *SMALL, *options, "--window-seconds", "2")
    assert "SignalFeatures on 300 and 200 samples with" in printed
    assert configuration(tmp_path / "run")["window_seconds"] == [3.0, 2.0]
    card = load_encoder(tmp_path / "run").card
    assert card.task_params == {"features": ["bands", "shape"], "mask_ratio": 0.3}
    metrics = (tmp_path / "run" / "metrics.csv").read_text()
    assert "train_loss_relative_bands" in metrics


def test_every_setting_has_an_option(store, tmp_path):
    given = {
        **dict(task="mae", task_params={"mask_ratio": 0.6}, window_seconds=2.0, patch_seconds=0.5),
        **dict(embed_dim=8, num_layers=2, num_heads=1, mlp_dim=12, drop_prob=0.1, epochs=1),
        **dict(tokenizer="spectral"),
        **dict(steps_per_epoch=1, batch_size=4, micro_batch_size=2, lr=0.002, weight_decay=0.1),
        **dict(warmup=0.2, exclude_subjects=["subject-2"], precision="bfloat16", compile=False),
        **dict(seed=3, device="cpu", num_workers=1, sham=True),
    }
    # The sizes of an encoder replace others, and epochs leave no room for other limits.
    given_elsewhere = {"encoder", "max_steps", "minutes"}
    assert set(given) | given_elsewhere == {field.name for field in fields(RunConfig)}
    options = [
        "--set",
        "mask_ratio=0.6",
        "--exclude-subject",
        "subject-2",
        "--no-compile",
        "--sham",
    ]
    for name, value in given.items():
        if name not in ("task_params", "exclude_subjects", "compile", "sham"):
            options += [f"--{name.replace('_', '-')}", value]
    pretrain(store, "--out", tmp_path / "run", *options)
    unset = dict.fromkeys(given_elsewhere)
    assert configuration(tmp_path / "run") == {**given, **unset}
    # A second run continues with the encoder of the first.
    first = tmp_path / "run"
    again = ["--window-seconds", 2, "--task", "pars", "--lr", "1e-30", "--epochs", 1]
    pretrain(store, "--out", tmp_path / "next", "--encoder", first, *again, "--steps-per-epoch", 1)
    names = ("patch_seconds", "embed_dim", "num_layers", "mlp_dim", "drop_prob", "tokenizer")
    found = configuration(tmp_path / "next")
    assert {name: found[name] for name in names} == {name: given[name] for name in names}
    start, end = load_encoder(first), load_encoder(tmp_path / "next")
    assert end.card.continued_from["task"] == "mae"
    for name, weight in end.encoder.state_dict().items():
        assert torch.equal(weight, start.encoder.state_dict()[name])


def test_ctrl_c_prints_advice_and_resume_continues(store, tmp_path, interrupted):
    out = tmp_path / "run"
    message = interrupted(store, "--out", out, *SMALL)
    assert "Interrupted." in message
    assert "Use --resume" in message
    output = pretrain(store, "--out", out, *SMALL, code=1)
    assert "already contains a run" in output
    output = pretrain(store, "--out", out, *SMALL, "--resume", "--lr", "0.5", code=1)
    assert "lr is 0.5, was 0.0001" in output
    assert "2 epochs (1 completed)" in pretrain(store, "--out", out, *SMALL, "--resume")
    assert "is already finished" in pretrain(store, "--out", out, *SMALL, "--resume")


def test_defaults_on_the_cpu_are_a_laptops_and_say_so(store, tmp_path):
    few = ["--window-seconds", 3, "--epochs", 1, "--steps-per-epoch", 1, "--batch-size", 4]
    printed = pretrain(store, "--out", tmp_path / "small", *few, "--mlp-dim", 24)
    assert "suitable for a laptop" in printed
    found = configuration(tmp_path / "small")
    assert (found["embed_dim"], found["mlp_dim"], found["lr"]) == (64, 24, 3e-3)


@pytest.fixture
def torchrun():
    """Start the agents of torchrun, each as on a machine of its own; all are ended at the end."""
    started: list[psutil.Popen] = []

    def start(n_nodes, n_processes, store, out, *options):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes", n_nodes),
            *("--nproc-per-node", n_processes, "--rdzv-backend", "c10d"),
            *("--rdzv-endpoint", f"localhost:{port}"),
            *("-m", "braindecode_pars", "pretrain", store, "--out", out),
            *(*SMALL, "--epochs", 20, *options),
        ]
        # With one process, torchrun would leave all threads to it, which sum in another order.
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        agents = []
        for node in range(n_nodes):
            with out.with_name(f"{out.name}-{node}.log").open("w") as log:
                words = list(map(str, command))
                agents.append(psutil.Popen(words, stdout=log, stderr=log, env=environment))
        started.extend(agents)
        return agents

    yield start
    for agent in started:
        end(agent)


def end(agent: psutil.Popen) -> None:
    """Kill an agent with its processes, as when a machine fails."""
    if agent.is_running():
        agent.suspend()  # otherwise it would end the others before they see why
        for process in agent.children(recursive=True):
            process.kill()
        time.sleep(1)
        agent.kill()
    agent.wait()


@pytest.mark.slow
def test_torchrun_on_one_node_and_on_two_of_which_one_is_lost(torchrun, store, tmp_path):
    """The resumed run of two nodes ends with the encoder of one node, to the bit."""
    together = tmp_path / "together"
    (agent,) = torchrun(1, 2, store, together)
    code = agent.wait(300)
    printed = (tmp_path / "together-0.log").read_text()
    assert code == 0, printed
    assert len(re.findall("on 2 cpu processes", printed)) == 1
    assert len(re.findall("The encoder is in", printed)) == 1
    assert configuration(together)["micro_batch_size"] == 4
    assert load_encoder(together).card.epochs == 20

    # Two nodes, of which one fails after the first checkpoint.
    out = tmp_path / "run"
    lost, other = torchrun(2, 1, store, out)
    deadline = time.monotonic() + 200
    while not list(out.glob("checkpoints/step-*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.05)
    end(lost)
    assert other.wait(300) == 1
    assert not (out / "encoder.safetensors").exists()

    # Both again.
    agents = torchrun(2, 1, store, out, "--resume")
    codes = [agent.wait(300) for agent in agents]
    # Rarely, gloo's threads abort a process that has finished its work, when it exits.
    printed = "".join((tmp_path / f"run-{node}.log").read_text() for node in (0, 1))
    assert codes == [0, 0] or "terminate called without an active exception" in printed, printed
    sessions = json.loads((out / "run.json").read_text())["sessions"]
    assert [session["processes"] for session in sessions] == [2, 2]
    assert 0 < sessions[1]["first_step"] < 60
    encoders = [(run / "encoder.safetensors").read_bytes() for run in (out, together)]
    assert encoders[0] == encoders[1]
