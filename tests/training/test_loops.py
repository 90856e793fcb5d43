"""What all trainings share: schedule, weight decay, progress bar, ends, and their table."""

from __future__ import annotations

import io
import math
import sys
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from skorch import NeuralNetRegressor
from skorch.callbacks import Callback, EarlyStopping
from skorch.history import History
from skorch.utils import noop
from support.interrupts import InterruptAt
from support.small_estimators import classifier, embedder
from tqdm import std as tqdm_std

from braindecode_pars import PARSClassifier, PatchEncoder
from braindecode_pars._common import training
from braindecode_pars._common.computing import TrainingNet
from braindecode_pars._common.tables import LOSSES, RELATIVE, loss_columns, part_of
from braindecode_pars._common.training import history_frame, history_row
from braindecode_pars.callbacks import WarmupCosine
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators.fine_tuning import n_epochs
from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet, PretrainingSettings, pretrain_encoder


def make(tiny, **arguments):
    task = PARS(600, 100, **tiny)
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 2, "verbose": 0, **arguments})


class Rates(Callback):
    """Store the learning rates of every training step."""

    def on_train_begin(self, net, **kwargs):
        self.rates_ = []

    def on_batch_end(self, net, training=False, **kwargs):
        if training:
            self.rates_.append({group["lr"] for group in net.optimizer_.param_groups})


def test_warmup_and_cosine_in_closed_form(tiny):
    """Ten epochs of three batches: a tenth of the steps is warm-up, from a tenth of the rate."""
    signals = np.zeros((12, 600), dtype=np.float32)
    callbacks = [("schedule", WarmupCosine()), ("rates", Rates())]
    net = make(tiny, lr=1e-3, max_epochs=10, batch_size=4, callbacks=callbacks).fit(signals)
    rates = dict(net.callbacks_)["rates"].rates_
    assert len(rates) == 30
    for step, step_rates in enumerate(rates):
        progress = step / 30
        if progress < 0.1:
            expected = 1e-3 * (0.1 + 0.9 * progress / 0.1)
        else:
            expected = 1e-3 * 0.5 * (1 + math.cos(math.pi * (progress - 0.1) / 0.9))
        assert len(step_rates) == 1
        assert step_rates.pop() == pytest.approx(expected)
    assert WarmupCosine().factor(0) == pytest.approx(0.1)
    assert WarmupCosine().factor(1) == pytest.approx(0)
    with pytest.raises(ValueError, match="warmup"):
        make(tiny, callbacks=[WarmupCosine(warmup=1.0)]).fit(signals)


def test_weight_decay_excludes_norms_biases_and_tokens(tiny):
    net = make(tiny, optimizer__weight_decay=0.3).initialize()
    names = {id(p): name for name, p in net.module_.named_parameters()}
    decayed = {
        names[id(p)]
        for group in net.optimizer_.param_groups
        if group["weight_decay"] > 0
        for p in group["params"]
    }
    assert decayed == {
        name for name in names.values() if name.endswith("weight") and "norm" not in name
    }
    assert all(g["weight_decay"] in (0.0, 0.3) for g in net.optimizer_.param_groups)


def test_the_progress_bar_counts_every_step(tiny, short, capsys):
    settings = PretrainingSettings(epochs=2, batch_size=32)
    pretrain_encoder(PatchEncoder(100, **tiny), short, settings)
    err = capsys.readouterr().err
    assert "pretraining (PARS): 100%" in err
    assert "relative loss=" in err


def test_the_bar_names_the_restored_epoch(short, capsys):
    clf = classifier(pretext=None, finetune_epochs=3, verbose=1).fit(short)
    restored = clf.history_.query("restored")["epoch"].item()
    assert f"restored epoch={restored}" in capsys.readouterr().err
    classifier(pretext=None, validation=0, verbose=1).fit(short)
    assert "restored" not in capsys.readouterr().err


class Output(io.StringIO):
    """A file or a terminal."""

    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_log_file_has_a_line_a_minute(is_terminal, monkeypatch):
    """Ten minutes of ten steps a second, whatever is shown next to the bar."""
    seconds = 0.0
    for clock in (training.time, tqdm_std):
        name = "monotonic" if clock is training.time else "time"
        monkeypatch.setattr(clock, name, lambda: seconds)
    out = Output(is_terminal)
    bar = training.ProgressBar(total=6000, desc="training", file=out)
    for step in range(6000):
        seconds += 0.1
        bar.update()
        if step % 100 == 0:
            bar.set_postfix(loss=step)
    bar.close()
    text = out.getvalue()
    if is_terminal:
        assert text.count("\r") > 1000
        return
    *lines, end = text.split("\n")
    assert end == ""
    assert "\r" not in text
    assert 10 <= len(lines) <= 12
    assert [line.startswith("training: ") for line in lines] == [True] * len(lines)
    assert "6000/6000 [10:00<00:00" in lines[-1]
    assert "loss=5900" in lines[-1]


def test_other_output_does_not_redraw_the_bar(capsys):
    bar = training.ProgressBar(range(3), desc="predicting")
    for i in bar:
        bar.write(f"warning {i}", file=sys.stderr)
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:-1] == ["warning 0", "warning 1", "warning 2"]
    training.ProgressBar(range(3), disable=True).close()
    assert capsys.readouterr().err == ""


def test_other_output_is_below_a_bar_in_a_terminal(monkeypatch):
    out = Output(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", out)
    for i in (bar := training.ProgressBar(range(3), desc="predicting")):
        bar.write(f"warning {i}", file=sys.stderr)
    lines = [line.split("\r")[-1] for line in out.getvalue().split("\n")]
    assert lines[:3] == ["warning 0", "warning 1", "warning 2"]


@pytest.fixture
def signals():
    return np.random.default_rng(0).normal(size=(24, 600)).astype(np.float32)


def test_ctrl_c_is_raised_again_after_training_has_ended(tiny, signals):
    net = make(tiny, max_epochs=5, callbacks=[InterruptAt(3)])
    before = [p.clone() for p in net.module.parameters()]
    with pytest.raises(KeyboardInterrupt):
        net.fit(signals)
    assert len(net.history) == 3
    assert any(not torch.equal(a, b) for a, b in zip(before, net.module_.parameters(), strict=True))


def test_ctrl_c_before_the_loop_begins_is_not_swallowed(monkeypatch):
    """skorch catches Ctrl-C as soon as it calls fit_loop, before any line of it."""

    class Interrupted(TrainingNet, NeuralNetRegressor):
        pass

    net = Interrupted(torch.nn.Linear(1, 1), max_epochs=1, train_split=None, verbose=0)
    x = np.ones((4, 1), "float32")
    net.fit(x, x)

    def interrupt(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Interrupted, "fit_loop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        net.partial_fit(x, x)


X = np.random.default_rng(0).normal(size=(32, 2, 300)).astype("float32") * 1e-5
Y = np.arange(32) % 2


class Scores(Callback):
    """Given values of a monitored number."""

    def __init__(self, values):
        self.values = values

    def on_epoch_end(self, net, **kwargs):
        net.history.record("score", self.values[len(net.history) - 1])


def fitted(scores, validation, load_best=True):
    best = EarlyStopping(
        "score", load_best=load_best, patience=100, sink=noop, lower_is_better=False, threshold=0
    )
    training = dict(sfreq=100.0, finetune_epochs=len(scores), finetune_lr=0.02)
    callbacks = [Scores(scores), best]
    clf = classifier(pretext=None, callbacks=callbacks, validation=validation, **training)
    return clf.fit(X, Y)


def restored(clf):
    return clf.history_.query("restored")["epoch"].tolist()


@pytest.mark.parametrize("validation", [0.25, 0])
def test_the_history_names_the_epoch_that_a_callback_of_the_user_restores(validation, tmp_path):
    clf = fitted([1, 2, 9, 0, 0, 0], validation)
    assert restored(clf) == [3]
    best = dict(clf.net_.callbacks_)["EarlyStopping"].best_model_weights_
    assert all(torch.equal(v, best[k]) for k, v in clf.net_.module_.state_dict().items())
    with pytest.warns(UserWarning, match="not saved"):
        loaded = PARSClassifier.load(clf.save(tmp_path / "clf"))
    assert restored(loaded) == [3]


def test_a_callback_whose_best_epoch_is_the_last_changes_nothing():
    """skorch restores nothing then, so that the state with the lowest loss stays."""
    clf = fitted([1, 2, 3, 4, 5, 6], 0.25)
    losses = clf.history_["valid_loss"]
    assert restored(clf) == [losses.idxmin() + 1]
    assert restored(fitted([1, 2, 3], 0)) == [3]
    assert restored(fitted([1, 3, 2], 0, load_best=False)) == []


@pytest.mark.parametrize(
    ("best_epochs", "expected"),
    [([2, 3], 3), ([2, 4], 2), ([4, 4], 4), ([3, 2, 4], 2), ([None, 1], 1), ([None], None)],
)
def test_of_several_callbacks_the_last_that_restores_an_earlier_epoch_decides(
    best_epochs, expected
):
    callbacks = [("stop", EarlyStopping())]
    for epoch in best_epochs:
        callbacks.append(("best", EarlyStopping(load_best=True)))
        callbacks[-1][1].best_epoch_ = epoch
    net = SimpleNamespace(
        callbacks_=callbacks, history=History([{"epoch": n} for n in range(1, 5)])
    )
    assert training.restored_by_callbacks(net) == expected


ROW = {
    "epoch": 1,
    "dur": 0.3,
    "batches": [],
    "train_loss": 0.5,
    "train_loss_best": True,
    "train_loss_relative": 0.9,
    "train_loss_relative_mae": 1.0,
}


@pytest.mark.parametrize(
    ("column", "part"),
    [
        ("train_loss_relative_mae", "mae"),
        ("train_loss_relative_two_words", "two_words"),
        (RELATIVE, None),
        ("train_loss", None),
        ("epoch", None),
    ],
)
def test_part_of_a_column(column, part):
    assert part_of(column) == part


def test_parts_come_after_the_losses_in_order():
    columns = ["epoch", "train_loss_relative_pars", "train_loss_relative_mae", "dur"]
    expected = [*LOSSES, "train_loss_relative_mae", "train_loss_relative_pars"]
    assert loss_columns(columns) == expected


def test_a_row_keeps_epoch_and_losses():
    assert history_row(ROW) == {
        "epoch": 1,
        "train_loss": 0.5,
        "train_loss_relative": 0.9,
        "train_loss_relative_mae": 1.0,
    }


def test_phases_are_joined():
    frame = history_frame({"pretraining": [ROW], "fine-tuning": [{"epoch": 1, "valid_loss": 2.0}]})
    assert list(frame) == [
        *("phase", "epoch", "restored", "train_loss", "valid_loss", "train_loss_relative"),
        "train_loss_relative_mae",
    ]
    assert frame["phase"].tolist() == ["pretraining", "fine-tuning"]
    assert frame["valid_loss"].isna().tolist() == [True, False]


@pytest.fixture
def few_steps(monkeypatch):
    """The same rule with fewer steps, to be fast."""
    monkeypatch.setattr("braindecode_pars._common.settings.MAX_STEPS", 12)
    monkeypatch.setattr("braindecode_pars.estimators.fine_tuning.EPOCHS", 2)
    monkeypatch.setattr("braindecode_pars.estimators.fine_tuning.STEPS", 12)


@pytest.mark.parametrize(
    ("n_windows", "expected"),
    [(0, 60), (1, 60), (32, 60), (33, 30), (64, 30), (100, 30), (10_000, 30)],
)
def test_at_least_thirty_epochs_and_at_least_60_steps(n_windows, expected):
    params = dict(finetune_epochs=None, finetune_batch_size=32)
    assert n_epochs(params, range(n_windows)) == expected
    assert expected * max(1, math.ceil(n_windows / 32)) >= 60


@pytest.mark.usefixtures("few_steps")
def test_the_estimators_have_the_same_budget(short):
    small = short[:24]
    clf = classifier(pretext="mae", pretrain_epochs=None, finetune_epochs=None, validation=0)
    cost = clf.training_cost(small)
    history = clf.fit(small).history_
    assert history.groupby("phase").size().to_dict() == {"fine-tuning": 12, "pretraining": 12}
    assert clf.encoder_card_.n_steps == cost.pretraining_steps == cost.finetuning_steps == 12
    assert len(embedder(pretext="mae", pretrain_epochs=None).fit(small).history_) == 12
    net = NetworkClassifier(verbose=0)
    assert net.training_cost(small).finetuning_steps == len(net.fit(small).history_) == 12


class Broken(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text):
        raise BrokenPipeError


class BrokenLater(io.StringIO):
    """A pipe that keeps texts until they are flushed."""

    def flush(self):
        raise BrokenPipeError


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (None, None),  # of a service
        (io.TextIOWrapper(io.BytesIO(), "cp1252"), b"\\u0141ukasz: "),
        (io.TextIOWrapper(io.BytesIO(), "ascii"), b"\\u0141ukasz: "),
        (Broken(), None),
        (BrokenLater(), None),
        (Output(is_terminal=True), None),
        ("closed", None),
    ],
)
@pytest.mark.parametrize("is_default", [True, False])
def test_progress_raises_no_error(stream, expected, is_default, monkeypatch):
    if stream == "closed":
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream if is_default else None)
    bar = training.ProgressBar(range(3), desc="Łukasz", file=None if is_default else stream)
    assert list(bar) == [0, 1, 2]
    bar.set_postfix(subject="Łukasz")
    with suppress(UnicodeEncodeError, OSError, ValueError, AttributeError):
        bar.write("", file=stream)
    bar.close()
    if expected is not None:
        stream.flush()
        assert expected in stream.buffer.getvalue()


def test_a_stream_that_only_writes_gets_lines():
    """Such as a log that takes the place of standard error."""

    class Log:
        text = ""

        def write(self, text):
            self.text += text

    log = Log()
    list(training.ProgressBar(range(3), desc="reading", file=log))
    assert "reading: 100%" in log.text
