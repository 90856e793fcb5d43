"""``braindecode-pars encoders``: the table, a card, and errors."""

from __future__ import annotations

import pytest
from support.stand_in import NAME, ship
from typer.testing import CliRunner

from braindecode_pars import PatchEncoder
from braindecode_pars.cli import app
from braindecode_pars.cli.describing import show_card, show_encoders
from braindecode_pars.pretrained import EncoderCard, save_encoder


@pytest.fixture
def printed(monkeypatch, capsys):
    """Function that returns what is printed in a terminal of some columns."""

    def call(show, *arguments, width=80):
        monkeypatch.setenv("COLUMNS", str(width))
        show(*arguments)
        return capsys.readouterr().out

    return call


def test_the_table_has_all_properties_without_truncation(printed, monkeypatch, tmp_path):
    ship(monkeypatch, tmp_path)
    text = printed(show_encoders, width=20)
    [row] = [line.strip("│ ").split("│") for line in text.splitlines() if line.startswith("│")]
    expected = ["small", "spectral", "100 Hz", "3 volunteers (subjects 1 to 3)", "0.781"]
    assert [value.strip() for value in row] == expected


@pytest.mark.parametrize(
    ("card", "lines", "share"),
    [
        (
            EncoderCard(subjects=["anna", "ben"], finetune_subjects=["carl"]),
            ["Pretraining: 2 subjects", "Fine-tuning: 1 subject"],
            True,
        ),
        (
            EncoderCard().continues(EncoderCard(task="mae", sfreq=None, subjects=None)),
            ["Pretraining: unknown subjects", "Sampling rate: unknown"],
            False,
        ),
        # A card cannot change the terminal.
        (
            EncoderCard(about=dict(description="a", attribution=["c\r\x1b[2Jd"], held_out=None)),
            ["Cite: c  [2Jd"],
            False,
        ),
    ],
    ids=["subjects are counted", "unknown", "control characters"],
)
def test_lines_of_a_card(printed, tiny, tmp_path, card, lines, share):
    folder = save_encoder(PatchEncoder(50, **tiny), card, tmp_path / "encoder", share=share)
    shown = printed(show_card, str(folder)).splitlines()
    for line in lines:
        assert f"- {line}" in shown


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return ship(monkeypatch, tmp_path / "package")


def test_without_a_name_it_lists_and_with_one_it_prints_the_card(shipped):
    listed = CliRunner().invoke(app, ["encoders"])
    assert listed.exit_code == 0
    assert "small" in listed.output
    assert "Its archive" not in listed.output
    for name in (NAME, "small", str(shipped)):
        card = CliRunner().invoke(app, ["encoders", name])
        assert card.exit_code == 0
        assert "- Cite: Another (2000): Its archive." in card.output


def test_a_damaged_encoder_is_one_line(shipped):
    (shipped / "encoder.safetensors").write_bytes(b"version https://git-lfs")
    result = CliRunner().invoke(app, ["encoders"])
    assert result.exit_code == 1
    assert "is not a valid safetensors file" in result.output
