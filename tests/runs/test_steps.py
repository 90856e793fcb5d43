"""The data of a run: one visit per window in each pass, determined by seed and step."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support import own_recipe

from braindecode_pars.runs.steps import ORDER, AllChannelSteps, EpochLoader, Steps
from braindecode_pars.signal_store import SignalStore


@pytest.fixture(params=[Steps, AllChannelSteps])
def make(request, store):
    """Make steps of each kind: with one channel and with all channels."""
    return lambda n_times=300, size=12, **given: request.param(store, n_times, size, **given)


def equal(one, other) -> bool:
    """Whether two steps have the same signals, or parts of them the same values."""
    if isinstance(one, dict):
        return all(torch.equal(one[name].nan_to_num(), other[name].nan_to_num()) for name in one)
    return torch.equal(one, other)


def joined(parts):
    if isinstance(parts[0], dict):
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return torch.cat(parts)


def x_of(signals) -> torch.Tensor:
    return signals["x"] if isinstance(signals, dict) else signals


def test_a_step_depends_only_on_the_seed_and_its_number(make):
    forwards, backwards = make(), make()
    found = {step: backwards[step] for step in (40, 7, 0, 41)}
    for step in (0, 7, 40, 41):
        signals, seed = forwards[step]
        assert x_of(signals).dtype == torch.float32
        assert (len(x_of(signals)), x_of(signals).shape[-1]) == (12, 300)
        assert equal(signals, found[step][0])
        assert seed == found[step][1]
    assert len({seed for _, seed in found.values()}) == 4
    for other in (found[7][0], make(seed=1)[0][0], forwards.first_pass(12)):
        assert not (x_of(other) == x_of(found[0][0])).flatten(1).all(dim=1).any()


def test_the_shards_of_all_processes_make_up_the_step(make):
    for n_times in (300, (300, 1100, 500)):
        whole = make(n_times)
        shards = [make(n_times, process=process, n_processes=3) for process in range(3)]
        for step in (0, 5):
            parts = [shard[step] for shard in shards]
            assert all(len(x_of(part)) == 4 for part, _ in parts)
            assert equal(joined([part for part, _ in parts]), whole[step][0])
            assert {seed for _, seed in parts} == {whole[step][1]}
        assert all(equal(shard.first_pass(9), whole.first_pass(9)) for shard in shards)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_next_epoch_continues_with_the_next_step(make, num_workers):
    steps = make(size=4)
    state = torch.get_rng_state()
    loader = EpochLoader(steps, 6, 12, 3, num_workers=num_workers)
    assert len(loader) == 3
    epochs = [list(loader), list(loader)]
    assert [len(epoch) for epoch in epochs] == [3, 3]
    for step, (signals, seed) in enumerate([*epochs[0], *epochs[1]], start=6):
        assert equal(signals, steps[step][0])
        assert seed == steps[step][1]
    assert torch.equal(torch.get_rng_state(), state)


def test_steps_have_crops_of_several_lengths_in_turns(make):
    steps = make((300, 1100, 500), 6)
    lengths = [x_of(steps[step][0]).shape[-1] for step in range(5)]
    assert lengths == [300, 1100, 500, 300, 1100]
    assert steps.n_times == 1100
    assert steps.n_windows == make(1100, 6).n_windows
    assert x_of(steps.first_pass(7)).shape[-1] == 1100


def test_crops_of_no_use_are_refused(make, store):
    with pytest.raises(ValueError, match="window_seconds"):
        make(0)
    with pytest.raises(ValueError, match=r"2000 .* 2100"):
        Steps(store, 2100, 4)


def passes(steps: Steps, n_passes: int) -> np.ndarray:
    """Return the recordings of the examples of some passes, shape (n_passes, n_windows)."""
    n_steps = -(-n_passes * steps.n_windows // steps.batch_size)
    examples = np.concatenate([steps.recordings_of(step) for step in range(n_steps)])
    return examples[: n_passes * steps.n_windows].reshape(n_passes, steps.n_windows)


@pytest.mark.parametrize("batch_size", [1, 5, 50])
def test_a_pass_visits_each_recording_once_for_every_whole_window(store, batch_size):
    orders = passes(Steps(store, 300, batch_size), 4)
    for order in orders:
        assert np.bincount(order, minlength=4).tolist() == [6, 2, 0, 4]
    assert len({tuple(order) for order in orders}) == 4
    assert np.array_equal(orders, passes(Steps(store, 300, 7), 4))
    assert not np.array_equal(orders, passes(Steps(store, 300, batch_size, seed=1), 4))


def test_a_recording_as_long_as_a_crop_has_been_seen(store):
    assert Steps(store, 700, 8).subjects == store.recordings["subject"][[0, 1, 3]].tolist()
    assert Steps(store, 701, 8).subjects == store.recordings["subject"][[0, 3]].tolist()


def test_every_channel_and_many_starts_are_drawn(store):
    steps = Steps(store, 300, 64)
    crops = {tuple(crop[:3].tolist()) for step in range(100) for crop in steps[step][0]}
    whole = {}
    for signal, n_times in enumerate([2000, 700, 700, *[200] * 3, *[1200] * 4]):
        if n_times >= 300:
            starts = np.arange(n_times - 299)
            samples = store.crops(np.full(len(starts), signal), starts, 300)
            whole[signal] = {tuple(crop[:3].tolist()) for crop in samples}
    assert crops <= set.union(*whole.values())
    for signal, possible in whole.items():
        assert len(crops & possible) > 0.25 * len(possible), signal


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Return a function that stores two corpora: 12 windows of three seconds, and 4."""
    root = tmp_path_factory.mktemp("mixed")
    for name, folder, seconds in (("P1", "a", 20), ("P2", "a", 19), ("P3", "b", 14)):
        own_recipe.write(root / folder, f"{name}_train", seconds)
    corpora = [own_recipe.corpus_of(root / name, name) for name in "ab"]

    def make(**shares: float) -> SignalStore:
        folder = root / f"store-{'-'.join(map(str, shares.values()))}"
        return SignalStore.create(folder, corpora, shares=shares, verbose=0)

    return make


def test_shares_are_the_ratio_of_the_examples(mixed):
    steps = Steps(mixed(a=2, b=1), 300, 5)
    assert (steps.n_windows, steps.in_pass) == (12, {"a": 8, "b": 4})
    corpus = steps.store.recordings["corpus"].to_numpy()
    windows = [steps._windows_of_pass(number).tolist() for number in range(30)]
    for order, one in zip(passes(steps, 30), windows, strict=True):
        assert (corpus[order] == "a").sum() == 8
        assert len(set(one)) == 12  # no window twice
        assert {12, 13, 14, 15} <= set(one)  # every window of the smaller corpus
    # Each pass has another part of the larger corpus, in another order.
    assert {window for one in windows for window in one} == set(range(16))
    assert len(set(map(tuple, windows))) == 30
    again = Steps(steps.store, 300, 7)
    assert np.array_equal(passes(again, 4), passes(steps, 4))


def test_without_shares_the_order_is_that_of_all_windows(mixed):
    steps = Steps(mixed(), 300, 5, seed=3)
    assert (steps.n_windows, steps.in_pass) == (16, {})
    expected = np.random.default_rng([3, ORDER, 2]).permutation(16)
    assert np.array_equal(steps._windows_of_pass(2), expected)


def test_a_corpus_that_gives_no_window_has_no_share(mixed):
    store = mixed(a=1, b=1)
    with pytest.raises(ValueError, match=r"\bb\b"):
        Steps(store, 1500, 5)
    with pytest.raises(ValueError, match=r"\bb\b"):
        Steps(store.select(exclude=["P3"]), 300, 5)


def test_short_crops_reach_the_end_of_a_recording(store):
    steps = Steps(store.select(exclude=["subject-1", "subject-2", "subject-3"]), (100, 2000), 64)
    read = torch.cat([steps[step][0] for step in range(0, 40, 2)])
    end = torch.from_numpy(store.crops(np.zeros(1, int), np.array([1950]), 50))
    assert any(torch.equal(crop[k : k + 50], end[0]) for crop in read for k in range(51))
