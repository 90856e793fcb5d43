"""``braindecode-pars encoders``: the table, a card, and errors."""

from __future__ import annotations

import pytest
from support.stand_in import NAME, ship
from typer.testing import CliRunner

from braindecode_pars.cli import app


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return ship(monkeypatch, tmp_path / "package")


def test_without_a_name_it_lists_and_with_one_it_prints_the_card(shipped):
    listed = CliRunner().invoke(app, ["encoders"])
    assert listed.exit_code == 0
    assert NAME in listed.output
    assert "Its archive" not in listed.output
    for name in (NAME, "small", str(shipped)):
        card = CliRunner().invoke(app, ["encoders", name])
        assert card.exit_code == 0
        assert "Another (2000): Its archive." in card.output


def test_an_unknown_name_is_one_line(shipped):
    result = CliRunner().invoke(app, ["encoders", "large"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: large is not the folder of a saved model")
    assert f"The encoders in the package are 'small', '{NAME}'." in result.output
    assert "Traceback" not in result.output


def test_a_damaged_encoder_is_one_line(shipped):
    (shipped / "encoder.safetensors").write_bytes(b"version https://git-lfs")
    result = CliRunner().invoke(app, ["encoders"])
    assert result.exit_code == 1
    assert "is damaged or not a safetensors file" in result.output
