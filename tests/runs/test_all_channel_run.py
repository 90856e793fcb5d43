"""Runs of a task that compares channels: their data, resuming, several processes and their plan."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from support.small_runs import run, run_interrupted, same_checkpoint

from braindecode_pars.models import SpaceTimeEncoder, electrode_positions
from braindecode_pars.pretext import SpaceTimeFeatures
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.runs.steps import AllChannelSteps
from braindecode_pars.signal_store import SignalStore

MONTAGES = (
    ("C3", "C4"),
    ("Fp1", "Fp2", "F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2", "inner"),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Recordings of 20 and 12 s of 2 and 11 channels; a sample tells its channel and time."""
    recordings = []
    for subject, (names, n_times) in enumerate(zip(MONTAGES, (2000, 1200), strict=True)):
        code = np.arange(len(names))[:, None] * 10_000 + np.arange(n_times)
        info = mne.create_info(list(names), 100.0, "eeg")
        raw = mne.io.RawArray(1e-6 * (code + 1_000_000 * subject), info, verbose="error")
        recordings.append(RawDataset(raw, {"subject": subject}))
    folder = tmp_path_factory.mktemp("runs") / "store"
    return SignalStore.create(folder, BaseConcatDataset(recordings), dtype="float32", verbose=0)


pytestmark = pytest.mark.filterwarnings("ignore:The amplitude is implausible for EEG")


def test_an_example_is_a_crop_of_some_channels_at_their_places(store):
    steps = AllChannelSteps(store, 300, 16)
    where = [electrode_positions([{"ch_name": name} for name in names]) for names in MONTAGES]
    sizes = set()
    for step in range(20):
        examples, _ = steps[step]
        assert examples["x"].shape == (16, 11, 300)
        for recording, x, positions, keep in zip(
            steps.recordings_of(step), *examples.values(), strict=True
        ):
            n = int(keep.sum())
            sizes.add((int(recording), n))
            assert keep.tolist() == [True] * n + [False] * (11 - n)
            assert not x[n:].any()
            code = (1e6 * x[:n]).round().long()
            assert (code // 1_000_000 == recording).all()
            assert len((code[:, 0] % 10_000).unique()) == 1  # one time for all channels
            assert (code.diff() == 1).all()
            channels = code[:, 0] % 1_000_000 // 10_000
            assert len(channels.unique()) == n
            np.testing.assert_array_equal(positions[:n], where[recording][channels])
            assert positions[n:].isnan().all()
    assert sizes == {(0, 2), *((1, n) for n in range(8, 12))}


SPACE = dict(task="pars_space_time", drop_prob=0.1, micro_batch_size=4, epochs=2)


@pytest.mark.slow
def test_a_run_that_is_interrupted_ends_as_one_that_is_not(store, tmp_path):
    whole = run(store, tmp_path / "whole", **SPACE)
    # Two micro-batches a step, three steps an epoch
    stopped = run_interrupted(9, store, tmp_path / "stopped", **SPACE)
    assert same_checkpoint(run(store, stopped, resume=True, **SPACE), whole)
    encoder, card, _ = load_encoder(whole)
    assert type(encoder) is SpaceTimeEncoder
    assert (card.task, card.subjects) == ("pars_space_time", [0, 1])
    text = (whole / "metrics.csv").read_text()
    assert all(f"train_loss_relative_{axis}" in text for axis in "xyzt")
    # Another run goes on with its encoder.
    more = run(store, tmp_path / "more", encoder=str(whole), epochs=1, task="pars_space_time")
    assert type(load_encoder(more).encoder) is SpaceTimeEncoder


def test_a_task_measures_only_channels_that_are_there(store, tmp_path, monkeypatch):
    """Zeros stand for missing channels in a batch."""
    measured = []
    prepare = SpaceTimeFeatures.prepare
    monkeypatch.setattr(
        SpaceTimeFeatures,
        "prepare",
        lambda task, draw: (measured.append(draw(50)), prepare(task, draw)),
    )
    run(store, tmp_path / "run", task="features_space_time", epochs=1)
    (signals,) = measured
    assert signals.shape[0] == 50
    assert (signals != 0).any(dim=1).all()
