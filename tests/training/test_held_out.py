"""The length of a pretraining without epochs, and the held-out loss that decides on it."""

from __future__ import annotations

import itertools
import math
import time
from itertools import pairwise

import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from support.small_estimators import classifier, embedder, same_weights
from support.small_runs import interrupt, make_store, small_config

from braindecode_pars import PatchEncoder
from braindecode_pars._common import held_out
from braindecode_pars._common.held_out import HeldOutSchedule, choose, split_held_out
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.pretraining import PretrainingNet, PretrainingSettings, pretrain_encoder
from braindecode_pars.runs import pretrain
from braindecode_pars.windows import SingleChannelWindows, as_sklearn


def script(monkeypatch, losses):
    """Replace the measured losses by numbers relative to chance; the last one is repeated."""
    remaining = list(losses)

    def mean_loss(net, batches):
        value = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return value * net.task_.chance_loss()

    monkeypatch.setattr(PretrainingNet, "mean_loss", mean_loss)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Measure few examples, to be fast."""
    monkeypatch.setattr(held_out, "N_MEASURED", 40)


@pytest.fixture
def early(monkeypatch):
    """Measure from the first step on."""
    monkeypatch.setattr(held_out, "WARMUP_STEPS", 1)


def trained(windows, tiny, **settings):
    torch.manual_seed(0)
    encoder = PatchEncoder(100, **tiny)
    settings = PretrainingSettings("mae", **settings)
    return pretrain_encoder(encoder, windows, settings, seed=1, verbose=0)


def reason_of(net):
    (reason,) = [row["decay_reason"] for row in net.history if "decay_reason" in row]
    return reason


# Who is held out


@pytest.mark.parametrize(("n", "n_chosen"), [(1, 0), (2, 0), (3, 1), (14, 1), (16, 2), (40, 4)])
def test_one_of_ten_is_chosen_and_at_least_one_of_three(n, n_chosen):
    chosen = choose(n, seed=3)
    assert len(set(chosen)) == n_chosen
    assert chosen == choose(n, seed=3)
    assert n < 14 or chosen != choose(n, seed=4)


@pytest.mark.parametrize("n_subjects", [3, 4])
def test_subjects_are_held_out_as_a_whole(nights, n_subjects):
    windows, _, subjects = as_sklearn(BaseConcatDataset(nights.datasets[:n_subjects]))
    train, measured = split_held_out(SingleChannelWindows(windows), seed=0)
    of_train, of_measured = (set(subjects[part.indices].tolist()) for part in (train, measured))
    assert len(of_measured) == 1
    assert not of_train & of_measured
    assert len(train) + len(measured) == len(windows)


@pytest.mark.parametrize(("n", "n_measured"), [(1, 1), (2, 2), (3, 1), (96, 10)])
def test_windows_are_held_out_where_subjects_are_unknown(n, n_measured):
    examples = SingleChannelWindows(torch.randn(n, 2, 100).numpy())
    train, measured = split_held_out(examples, seed=0)
    assert len(measured) == n_measured
    if n > 2:
        assert not {*train.indices} & {*measured.indices}


def test_held_out_windows_are_not_trained_on(short, tiny, monkeypatch):
    read, step = [], PretrainingNet.train_step_single

    def train_step(net, batch, **kwargs):
        read.append(batch[0].clone())
        return step(net, batch, **kwargs)

    monkeypatch.setattr(PretrainingNet, "train_step_single", train_step)
    net = trained(short, tiny, max_steps=12)
    measured = dict(net.callbacks_)["HeldOutSchedule"].held_out
    _, of_seed = split_held_out(SingleChannelWindows(short), seed=1)
    assert measured.indices == of_seed.indices
    seen = {signal.numpy().tobytes() for batch in read for signal in batch}
    channels = [channel.tobytes() for i in measured.indices for channel in short[i]]
    assert not seen & set(channels)
    assert seen <= {channel.tobytes() for window in short for channel in window}


def test_validation_windows_of_a_classifier_are_measured(short, monkeypatch):
    counts = []
    monkeypatch.setattr(
        PretrainingNet, "mean_loss", lambda net, batches: counts.append(len(batches)) or 1.0
    )
    begun = HeldOutSchedule.on_train_begin

    def on_train_begin(self, net, X=None, **kwargs):
        counts.append((len(self.held_out), len(X)))
        begun(self, net, X=X, **kwargs)

    monkeypatch.setattr(HeldOutSchedule, "on_train_begin", on_train_begin)
    clf = classifier(pretrain_epochs=None, pretrain_max_steps=4, validation=0.25)
    clf.fit(short)
    assert counts[0] == (24, 72)  # one of four subjects, and all others are trained on
    assert clf.encoder_card_.n_windows == 72


# How long


def test_the_learning_rate_warms_up_stays_and_decays():
    schedule = HeldOutSchedule(None)
    schedule.n_batches_, schedule.decay_from_, schedule.end_ = 10, 20, 25
    factors = [schedule.factor(epoch) for epoch in (0, 5, 10, 19.9, 20, 22.5, 25)]
    assert factors == pytest.approx([0.1, 0.55, 1, 1, 1, 0.5, 0])
    schedule.decay_from_ = schedule.end_ = math.inf
    assert schedule.factor(1e6) == 1


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize(
    ("losses", "n_epochs"),
    [
        ([1.0, 0.9, 0.895], 3),  # measured after 1, 2 and 3 epochs; 3 / 2 has the loss of epoch 1
        ([0.9, 0.8, 0.85, 0.7999], 4),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5], 12),
    ],
)
def test_training_ends_when_the_held_out_loss_no_longer_falls(
    losses, n_epochs, short, tiny, monkeypatch
):
    script(monkeypatch, losses)
    net = trained(short, tiny, max_steps=300)
    (begin,) = [row["epoch"] for row in net.history if "decay_reason" in row]
    assert "no longer decreased" in reason_of(net)
    assert len(net.history) == begin + math.ceil(begin / 4)
    # The slow rule
    measured = {r["epoch"]: r["valid_loss_relative"] for r in net.history if "valid_loss" in r}
    for epoch in range(1, begin + 1):
        earlier = [loss for number, loss in measured.items() if number <= epoch / 2]
        so_far = [loss for number, loss in measured.items() if number <= epoch]
        ended = epoch in measured and earlier and min(earlier) - min(so_far) < 0.01
        assert bool(ended and min(so_far) < 0.98) == (epoch == begin)


@pytest.mark.slow
@pytest.mark.usefixtures("early")
def test_a_loss_at_chance_takes_the_whole_budget(short, tiny, monkeypatch):
    script(monkeypatch, [0.985])
    net = trained(short, tiny, max_steps=61)
    assert len(net.history) == 20  # epochs of three steps
    assert "61 steps" in reason_of(net)
    assert net.optimizer_.param_groups[0]["lr"] < 0.1 * net.lr


@pytest.mark.usefixtures("early")
def test_the_same_number_of_steps_has_the_same_schedule(short, tiny, monkeypatch):
    """So a sham, or a training that minutes have ended, can be given equal steps."""
    script(monkeypatch, [0.9, 0.8, 0.7, 0.7, 0.7])
    ended = trained(short, tiny, max_steps=300)
    n_steps = 3 * len(ended.history)
    assert n_steps < 100
    script(monkeypatch, [1.0])
    again = trained(short, tiny, max_steps=n_steps)
    assert len(again.history) == len(ended.history)
    assert same_weights(again.module_, ended.module_)


def test_minutes_end_training(short, tiny, monkeypatch):
    net = trained(short, tiny, minutes=1e-6)
    assert len(net.history) == 2  # one epoch before the decay, one with it
    assert "1e-06 minutes" in reason_of(net)
    now = itertools.count(0.0, 6.0)  # seconds between the end of two epochs
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    net = trained(short, tiny, minutes=1.0)
    assert len(net.history) == 10
    schedule = dict(net.callbacks_)["HeldOutSchedule"]
    schedule.on_train_begin(net, schedule.held_out)  # as a run that resumes: all epochs count
    assert next(now) - schedule.begin_ == pytest.approx(6 + sum(net.history[:, "dur"]), abs=1e-9)


def test_measurements_are_rare_and_the_last_epoch_has_one(short, tiny, monkeypatch):
    monkeypatch.setattr(held_out, "WARMUP_STEPS", 34)
    net = trained(short, tiny, max_steps=60)
    steps = [3 * row["epoch"] for row in net.history if "valid_loss" in row]
    assert steps[0] == 36
    assert steps[-1] == 60
    assert all(b >= 1.25 * a for a, b in pairwise(steps[:-1]))
    assert len(steps) == 4


def test_the_same_examples_and_draws_are_measured(short, tiny):
    net = trained(short, tiny, max_steps=6)
    schedule = dict(net.callbacks_)["HeldOutSchedule"]
    assert sum(map(len, schedule.batches_)) == held_out.N_MEASURED
    state = torch.get_rng_state()
    assert net.mean_loss(schedule.batches_) == net.mean_loss(schedule.batches_)
    assert torch.equal(torch.get_rng_state(), state)
    assert net.history[-1, "valid_loss"] == pytest.approx(net.mean_loss(schedule.batches_))


def test_an_epoch_has_a_part_of_many_windows(short, tiny, monkeypatch):
    """A budget can then end inside a pass: 72 windows are trained on, 64 in two steps."""
    monkeypatch.setattr(held_out, "EPOCH_STEPS", 2)
    net = trained(short, tiny, max_steps=10)
    assert len(net.history) == 5
    assert {len(row["batches"]) for row in net.history} == {2}


# What the user sees


def test_end_of_pretraining_is_logged(short, caplog):
    caplog.set_level("INFO")
    emb = embedder(pretext="mae", pretrain_epochs=None, pretrain_max_steps=9, verbose=1)
    card = emb.fit(short).encoder_card_
    assert "after 9 steps" in caplog.text
    assert "maximum of 9 steps" in caplog.text
    assert f"{card.held_out_loss_relative:.3f}" in caplog.text
    assert (card.n_steps, card.sham) == (9, False)
    assert card.subjects == [1, 2, 3, 4]  # includes the held-out subject


def test_sham_pretraining_is_logged(short, caplog, tmp_path):
    caplog.set_level("INFO")
    emb = embedder(pretext="mae", sham=True, pretrain_epochs=2, verbose=1).fit(short)
    assert "sham" in caplog.text.lower()
    assert load_encoder(emb.save(tmp_path / "sham")).card.sham


@pytest.mark.parametrize("arguments", [dict(pretext=None), dict(pretrain_epochs=0)])
def test_a_sham_without_pretraining_is_refused(short, arguments):
    with pytest.raises(ValueError, match="sham=True"):
        embedder(sham=True, **arguments).fit(short)


def test_limits_cannot_be_combined_with_epochs():
    for limit in (dict(max_steps=3), dict(minutes=1.0)):
        with pytest.raises(ValueError, match="epochs=5"):
            PretrainingSettings(epochs=5, **limit)
    with pytest.raises(ValueError, match="batch_size"):
        PretrainingSettings(batch_size=1, sham=True)
    with pytest.raises(ValueError, match="micro_batch_size"):
        small_config(micro_batch_size=1, sham=True)


def test_sham_ignores_batches_of_one_example(tiny):
    """Thirteen windows in batches of four: the last batch has one."""
    x = torch.randn(13, 1, 1000).numpy()
    net = pretrain_encoder(
        PatchEncoder(100, **tiny),
        x,
        PretrainingSettings("mae", sham=True, epochs=1, batch_size=4),
        seed=0,
        verbose=0,
    )
    losses = [batch["train_loss"] for batch in net.history[-1, "batches"]]
    assert min(losses[:3]) > 0.5
    assert losses[3] == 0


# Runs


def three_subjects(tmp_path):
    return make_store(tmp_path / "store", seconds=(20, 7, 12, 9))


@pytest.mark.parametrize(("seed", "number"), [(0, 2), (2, 3)])
def test_a_run_holds_out_a_subject(tmp_path, seed, number):
    """The seed of the run draws it among all subjects with at least one window."""
    store = make_store(tmp_path / "store", seconds=(20, 7, 12, 3))
    config = small_config(epochs=None, max_steps=12, seed=seed)
    card = load_encoder(pretrain(store, tmp_path / "run", config, verbose=0)).card
    assert card.subjects == store.subjects
    assert card.n_steps == 12
    assert card.held_out_loss_relative > 0
    assert choose(4, seed) == [number]
    assert card.n_windows == sum(store.recordings["n_times"].drop(number) // 300)


@pytest.mark.slow
def test_a_run_that_resumes_ends_with_the_same_weights(tmp_path, monkeypatch):
    store, config = three_subjects(tmp_path), small_config(epochs=None, max_steps=24)
    monkeypatch.setattr(held_out, "WARMUP_STEPS", 3)
    whole = load_encoder(pretrain(store, tmp_path / "whole", config, verbose=0))
    first = 0
    for step in (5, 20, 24):  # before the decay, in it, and in the last epoch
        with monkeypatch.context() as patched:
            interrupt(patched, step - first)
            with pytest.raises(KeyboardInterrupt):
                pretrain(store, tmp_path / "cut", config, resume=first > 0, verbose=0)
        first = 3 * ((step - 1) // 3)  # the last checkpoint
    resumed = load_encoder(pretrain(store, tmp_path / "cut", config, resume=True, verbose=0))
    assert same_weights(resumed.encoder, whole.encoder)
    assert resumed.card.held_out_loss_relative == whole.card.held_out_loss_relative


@pytest.mark.slow
@pytest.mark.usefixtures("early")
def test_a_run_that_ended_early_has_no_step_more_when_it_resumes(tmp_path, monkeypatch):
    store, config = three_subjects(tmp_path), small_config(epochs=None, max_steps=300)
    script(monkeypatch, [0.9, 0.8, 0.7])
    run = pretrain(store, tmp_path / "run", config, verbose=0)
    ended = load_encoder(run)
    assert ended.card.n_steps < 100
    for file in run.glob("encoder.*"):  # as if it had been killed after its last checkpoint
        file.unlink()
    again = load_encoder(pretrain(store, run, config, resume=True, verbose=0))
    assert same_weights(again.encoder, ended.encoder)
    assert again.card.n_steps == ended.card.n_steps


def test_few_subjects_are_measured_on_other_crops(tmp_path):
    store = make_store(tmp_path / "store", seconds=(20, 7))
    config = small_config(epochs=None, max_steps=6)
    run = pretrain(store, tmp_path / "run", config, verbose=0)
    assert load_encoder(run).card.n_windows == 8
    assert load_encoder(run).card.held_out_loss_relative > 0
