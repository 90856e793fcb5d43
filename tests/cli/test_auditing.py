"""``braindecode-pars encoders --audit``: stored audits, new ones, and errors."""

from __future__ import annotations

import re

import pytest
from support.stand_in import ABOUT, NAME, ship
from typer.testing import CliRunner

from braindecode_pars import PatchEncoder, datasets
from braindecode_pars.cli import app, describing
from braindecode_pars.evaluation import audits
from braindecode_pars.pretrained import EncoderCard, load_encoder, save_encoder

PATCH = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
TABLE = {
    "property": ["slope", "subject"],
    "measure": ["R2", "balanced accuracy"],
    "encoder": [0.42, 0.5],
    "tokens": [0.1, 0.2],
    "random encoder": [-0.001, 0.25],
    "chance": [0.0, 0.125],
    "held_out": ["subjects", "recordings"],
}


def run(*words, code=0):
    result = CliRunner().invoke(app, ["encoders", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


def cells(output):
    """Return the cells of each line of the tables."""
    lines = [re.split(r"[│┃]", line)[1:-1] for line in output.splitlines()]
    return [[cell.strip() for cell in line] for line in lines if line]


@pytest.fixture
def three_subjects(monkeypatch):
    """The bundled dataset with three subjects."""
    sample = datasets.mental_arithmetic
    monkeypatch.setattr(
        describing.datasets,
        "mental_arithmetic",
        lambda **options: sample(["Subject12", "Subject13", "Subject14"], **options),
    )


def test_a_bundled_encoder_has_a_stored_audit(monkeypatch, tmp_path):
    folder = ship(monkeypatch, tmp_path)
    encoder, card, _ = load_encoder(folder)
    audit = dict(recordings="Noise of 3 subjects", measured="2026-11-25, a machine", table=TABLE)
    card.about = {**ABOUT, "audit": [audit, audit]}
    save_encoder(encoder, card, folder)
    monkeypatch.setattr(audits, "audit_encoder", None)  # nothing is measured
    for name in (NAME, "small"):
        output = run(name, "--audit")
        assert output.count("Noise of 3 subjects\nMeasured: 2026-11-25, a machine\n") == 2
        assert cells(output)[:4] == [
            ["R2", "encoder", "tokens", "random encoder"],
            ["slope", "0.42", "0.10", "-0.00"],
            ["balanced accuracy", "encoder", "tokens", "random encoder", "chance"],
            ["subject", "0.50", "0.20", "0.25", "0.12"],
        ]
    assert "audit" not in run(NAME)  # the card


def test_an_encoder_in_a_folder_is_audited_on_bundled_data(tmp_path, three_subjects):
    """At its sampling rate, and if it continues an encoder of the package with another audit."""
    card = EncoderCard(sfreq=100.0, about={"audit": [dict(recordings="old", table=TABLE)]})
    save_encoder(PatchEncoder(100, **PATCH), card, tmp_path)
    output = run(tmp_path, "--audit")
    assert "old" not in output
    assert "rest and mental arithmetic: 3 subjects, 288 signals from 36 windows of 10 s" in output
    names = [line[0] for line in cells(output)]
    assert names[:3] == ["R2", "slope", "curvature"]
    targets = ["balanced accuracy", "subject", "channel", "subject, erased"]
    assert names[-6:] == [*targets, "explained variance", "variance by subject"]
    assert "Measured" not in output
