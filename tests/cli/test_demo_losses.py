"""Losses of pretraining: sentences and figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest
import torch

from braindecode_pars import PARSEmbedder
from braindecode_pars.cli import demo as _demo_losses
from braindecode_pars.cli.demo import describe_losses, draw_losses, draw_shifts
from braindecode_pars.pretext import PRETEXT_TASKS


@pytest.fixture
def fitted(nights, tiny):
    def fit(task: str) -> PARSEmbedder:
        settings = dict(pretrain_epochs=2, random_state=0, verbose=0)
        return PARSEmbedder(task, **tiny, **settings).fit(nights)

    return fit


@pytest.mark.parametrize("task", sorted(PRETEXT_TASKS))
def test_losses_are_relative_to_chance(task, nights, fitted):
    embedder = fitted(task)
    lines = describe_losses(embedder, nights, seed=0).splitlines()
    last = embedder.pretraining_history_[-1]["train_loss_relative"]
    assert lines[0].startswith(f"Training loss relative to chance: {last:.2f}")
    held_out = float(lines[1].removeprefix("Loss relative to chance on held-out subjects: "))
    assert held_out == pytest.approx(last, abs=0.3)
    assert describe_losses(embedder, nights, seed=0).splitlines() == lines


def test_held_out_loss_of_pars_is_the_mean_squared_error_of_shifts(nights, fitted):
    task = fitted("pars").task_.eval()
    with _demo_losses.seeded(3), torch.inference_mode():
        x = _demo_losses._crops(nights, task.n_times)
        prediction, target = _demo_losses._shifts_by_time(task, x)
    expected = (prediction - target).square().mean().item() / task.chance_loss()
    assert _demo_losses._held_out_loss(task, nights, 3) == pytest.approx(expected, rel=1e-5)


def test_figures(nights, fitted, tmp_path, monkeypatch):
    drawn = []
    close = plt.close
    monkeypatch.setattr(plt, "close", lambda figure: (drawn.append(figure), close(figure)))
    encoders = {"PARS": fitted("pars"), "SpectralMAE": fitted("spectral")}
    draw_losses(encoders, tmp_path / "pretraining.png")
    draw_shifts(encoders["PARS"].task_, nights, tmp_path / "shifts.png", seed=0)
    for name in ("pretraining.png", "shifts.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    # One line for each encoder and the chance level; the bands are in the sentence.
    [losses, _] = drawn
    assert len(losses.axes[0].lines) == 3
