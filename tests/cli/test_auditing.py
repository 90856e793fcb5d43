"""``braindecode-pars encoders --audit``: the audit of an encoder in a folder."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from braindecode_pars import PatchEncoder, datasets
from braindecode_pars.cli import app, describing
from braindecode_pars.pretrained import EncoderCard, save_encoder

PATCH = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)


def run(*words):
    result = CliRunner().invoke(app, ["encoders", *map(str, words)])
    assert result.exit_code == 0, result.output
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


@pytest.mark.slow
def test_an_encoder_in_a_folder_is_audited_on_bundled_data(tmp_path, three_subjects):
    """At its sampling rate, and if it continues an encoder of the package with another audit."""
    card = EncoderCard(
        sfreq=100.0, about={"audit": [dict(recordings="old", table={"property": []})]}
    )
    save_encoder(PatchEncoder(100, **PATCH), card, tmp_path)
    output = run(tmp_path, "--audit")
    assert "old" not in output
    assert "rest and mental arithmetic: 3 subjects, 288 signals from 36 windows of 10 s" in output
    rows = [line[:2] for line in cells(output)]
    assert rows[:3] == [["property", "measure"], ["slope", "R2"], ["curvature", "R2"]]
    accuracies = [[name, "balanced accuracy"] for name in ("subject", "channel", "subject, erased")]
    for row in (*accuracies, ["variance by subject", "explained variance"]):
        assert row in rows[-4:]
    assert "Measured" not in output
