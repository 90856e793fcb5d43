"""``braindecode-pars demo``: its methods, its sentence, and the command with short training."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from braindecode_pars import PARSEmbedder, PatchEncoder, SubjectCentering
from braindecode_pars.baselines import CENTRED
from braindecode_pars.cli import app, demo
from braindecode_pars.cli.demo import (
    conclusion,
    describe_losses,
    draw_losses,
    draw_shifts,
    make_classifiers,
    make_probes,
)
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.pretrained import EncoderCard, load_encoder, save_encoder

runner = CliRunner()

PROBES = [*demo.BASELINES, "random encoder", "ours", "small", demo.VOTE]


def test_user_errors_end_without_a_traceback(tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "out"), "--data", "nowhere"])
    assert result.exit_code != 0
    assert "--data" in result.output
    assert "Traceback" not in result.output


@pytest.fixture
def fitted(nights, tiny):
    def fit(task: str) -> PARSEmbedder:
        settings = dict(pretrain_epochs=2, random_state=0, verbose=0)
        return PARSEmbedder(task, **tiny, **settings).fit(nights)

    return fit


def test_every_probe_is_centred_and_plain_and_has_the_same_regression(fitted):
    encoder = fitted("mae")
    probes = make_probes("ours", encoder)
    assert list(probes) == [name + CENTRED for name in PROBES] + PROBES
    for name in PROBES[:-1]:
        centred, plain = probes[name + CENTRED], probes[name]
        assert type(centred.transformer) is SubjectCentering
        assert centred.transformer.transformer is plain.transformer
    regressions = [probe for name, probe in probes.items() if demo.VOTE not in name]
    assert {(each.C, each.class_weight) for each in regressions} == {(0.01, "balanced")}
    assert {probes[demo.VOTE].C, probes[demo.VOTE + CENTRED].C} == {0.01}
    assert (probes[demo.VOTE].recenter, probes[demo.VOTE + CENTRED].recenter) == (None, "subject")
    assert probes["ours"].transformer.encoder is encoder
    assert probes["small"].transformer.encoder == "small"


def test_pars_and_scratch_differ_in_their_start_only(fitted):
    pars = fitted("pars")
    tuned, scratch = (each.get_params(deep=False) for each in make_classifiers(pars).values())
    assert (tuned.pop("encoder"), scratch.pop("encoder")) == (pars, None)
    assert (tuned.pop("pretext"), scratch.pop("pretext")) == ("pars", None)
    assert tuned == scratch
    assert tuned["recenter"] == "subject"


@pytest.mark.parametrize("task", sorted(PRETEXT_TASKS))
def test_losses_are_relative_to_chance(task, nights, fitted):
    embedder = fitted(task)
    text = describe_losses(embedder, nights, seed=0)
    last = embedder.pretraining_history_[-1]["train_loss_relative"]
    in_training, held_out = map(float, re.findall(r"([\d.]+) (?:in training|held out)", text))
    assert in_training == pytest.approx(last, abs=0.005)
    assert held_out == pytest.approx(last, abs=0.3)
    assert describe_losses(embedder, nights, seed=0) == text


def test_held_out_loss_of_pars_is_the_mean_squared_error_of_shifts(nights, fitted):
    embedder = fitted("pars")
    task = embedder.task_.eval()
    with demo.seeded(3), torch.inference_mode():
        prediction, target = task(demo._crops(nights, task.n_times))
    expected = (prediction - target).square().mean().item() / task.chance_loss()
    assert f"{expected:.2f} held out" in describe_losses(embedder, nights, 3)


def test_figures_of_pretraining(nights, fitted, tmp_path):
    pars = fitted("pars")
    draw_losses({"ours": fitted("mae"), "PARS": pars}, tmp_path / "losses.png")
    draw_shifts(pars, nights, tmp_path / "shifts.png", seed=0)
    for file in tmp_path.iterdir():
        assert file.read_bytes().startswith(b"\x89PNG")


def made_up(means: dict[str, float]) -> pd.DataFrame:
    """Return scores of six people; those of every method have these means."""
    names = [*PROBES, demo.FINE_TUNED, demo.SCRATCH]
    rows = [
        dict(
            protocol="label_efficiency",
            dataset=demo.DATA,
            method=name + suffix,
            subject=subject,
            n_train_subjects=n,
            seed=0,
            metric=demo.METRIC,
            value=(means.get(name, 0.5) if n == 4 and suffix else 0.9) + 0.01 * (subject % 3),
        )
        for name in names
        for suffix in (CENTRED, "")
        for n in (2, 4)
        for subject in range(6)
    ]
    return pd.DataFrame(rows)


def test_the_sentence_says_what_the_scores_say():
    scores = made_up({"ours": 0.8, "tangent space": 0.7, "PARS, fine-tuned": 0.6, "scratch": 0.65})
    rng = np.random.default_rng(0)
    noisy = scores.assign(value=scores["value"] + rng.normal(0, 0.01, len(scores)))
    best, ours, pars = conclusion(noisy, "ours").splitlines()
    assert re.fullmatch(r"With 4 labelled people, ours is best \(0\.8\d+\)\.", best)
    assert re.match(r"ours \(0\.8\d+\) is 0\.(09|10)\d ahead of tangent space \(95 % ", ours)
    assert re.match(r"PARS, fine-tuned \(0\.6\d+\) is 0\.0[45]\d behind scratch \(95 % ", pars)
    low, high, p = map(float, re.search(r"interval (.+) to (.+), p = (.+)\)", ours).groups())
    assert 0 < low < 0.1 < high + 0.01
    assert p < 0.05


def test_the_sentence_names_a_better_baseline():
    text = conclusion(made_up({"ours": 0.6, "band power": 0.75, demo.VOTE: 0.7}), "ours")
    assert text.startswith("With 4 labelled people, band power is best (0.760).")
    assert "ours (0.610) is 0.150 behind band power" in text


@pytest.fixture
def short(monkeypatch, tmp_path_factory):
    """Tiny encoders, few steps, one draw, and a tiny encoder in the package."""
    encoder = PatchEncoder(128, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
    folder = tmp_path_factory.mktemp("shipped") / "encoder"
    save_encoder(encoder, EncoderCard(sfreq=128.0, subjects=["S001"]), folder)
    monkeypatch.setattr(demo, "PACKAGED", str(folder))
    for name, value in dict(N_SIGNALS=64, N_LABELLED=(2, 4), N_DRAWS=1, N_FINE_TUNED=1).items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr(demo, "EPOCHS", 1)
    tiny = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
    monkeypatch.setattr(demo, "SIZES", tiny)
    monkeypatch.setattr(demo, "PRETRAINING", dict(tiny, pretrain_batch_size=64))
    monkeypatch.setitem(demo.PARS_PRETRAINING, "pretrain_epochs", 1)
    monkeypatch.setitem(demo.FINE_TUNING, "finetune_epochs", 1)


def test_demo_on_the_recordings_in_the_package(short, tmp_path):
    out = tmp_path / "out"
    result = runner.invoke(app, ["demo", "--out", str(out), "--seed", "5"])
    assert result.exit_code == 0, result.output
    assert "licence ODC-BY-1.0" in result.output
    assert "Zyma et al. 2019" in result.output
    assert "24 people: 288 windows, 8 channels x 10 s at 128 Hz" in result.output
    figures = {"balanced_accuracy.png", "pretraining.png", "shifts.png"}
    written = {"demo.json", "encoder", "scores.csv", *figures}
    assert {file.name for file in out.iterdir()} == written
    for name in figures:
        assert (out / name).read_bytes().startswith(b"\x89PNG")

    # Defaults were chosen on the first twelve people, so none of them is scored.
    scores = pd.read_csv(out / "scores.csv")
    each = scores[scores["subject"] != "all"].groupby(["method", "n_train_subjects"])["subject"]
    people = {f"Subject{number}" for number in range(12, 24)}
    assert all(len(s) == 12 and set(s) == people for _, s in each)
    assert set(scores["seed"]) == {5}
    probes = ["features on noise" if name == "ours" else name for name in PROBES]
    tuned = [demo.FINE_TUNED, demo.SCRATCH]
    expected = {(name + suffix, n) for name in probes for suffix in (CENTRED, "") for n in (2, 4)}
    assert {key for key, _ in each} == expected | {(name + CENTRED, 4) for name in tuned}

    # The table has the means over people, and the sentence is that of the scores.
    means = (
        scores[scores["subject"] != "all"].groupby(["method", "n_train_subjects"])["value"].mean()
    )
    for name in probes:
        [row] = [line for line in result.output.splitlines() if line.startswith(f"│ {name} ")]
        shown = [float(cell.split("±")[0]) for cell in row.strip("│").split("│")[1:]]
        found = [means[name + suffix, n] for suffix in (CENTRED, "") for n in (2, 4)]
        assert shown == pytest.approx(found, abs=0.0006)
    assert conclusion(scores, "features on noise") in result.output
    assert load_encoder(out / "encoder").card.subjects == []


def test_other_files_are_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(demo.datasets, "mental_arithmetic", pytest.fail)
    (tmp_path / "scores.csv").write_text("my own scores")
    for content in (None, "[]", '{"command": "another"}'):
        if content is not None:
            (tmp_path / "demo.json").write_text(content)
        result = runner.invoke(app, ["demo", "--out", str(tmp_path)])
        assert result.exit_code == 1
        assert "a demo" in " ".join(result.output.split())
    assert (tmp_path / "scores.csv").read_text() == "my own scores"
