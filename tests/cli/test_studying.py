"""The command study: what it looks at, plans and refuses."""

from __future__ import annotations

import json

import pytest
from support import study_folders
from typer.testing import CliRunner

from braindecode_pars.cli.commands import app
from braindecode_pars.evaluation import study_plan


def run(*arguments):
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


def options(arguments):
    """Return arguments of ``datasets.folder.load`` as options; the rate is that of the encoder."""
    named = {k: v for k, v in arguments.items() if k in ("labels", "label_column")}
    texts = [x for key, value in named.items() for x in (f"--{key.replace('_', '-')}", value)]
    return [*texts, "--window-seconds", "5"]


@pytest.mark.filterwarnings("ignore:Nothing is left", "ignore:Left out")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (study_folders.classes_of_sites, "No site has subjects of two classes"),
        (study_folders.few_labelled, "at least 6 are needed"),
    ],
)
def test_a_study_without_an_answer_ends_with_the_reason(tmp_path, make, reason):
    given = make(tmp_path / "recordings")
    out = tmp_path / "study"
    result = run(tmp_path / "recordings", "--out", out, *options(given))
    assert result.exit_code == 0, result.output
    assert reason in result.output.replace("\n", " ")
    assert reason in json.loads((out / "study.json").read_text())["answer"]
    assert reason in (out / "report.html").read_text()
    assert not (out / "model").exists()


def test_the_plan_of_the_sample_is_shown_and_nothing_is_run(tmp_path, monkeypatch):
    def seconds(method, *_):
        return (0.0, 20.0 if method.trains else 0.01)

    monkeypatch.setattr(study_plan, "_seconds_of", seconds)
    out = tmp_path / "study"
    result = run("mental_arithmetic", "--out", out, "--plan-only", "--jobs", 2)
    assert result.exit_code == 0, result.output
    assert "Warning: In all 24 subjects, the recordings come in the same order" in result.output
    assert "Left out: EEGNet: its fits would take too long; --hours" in result.output
    assert "Nothing was run" in result.output
    assert sorted(file.name for file in out.iterdir()) == ["plan.json", "study.json"]


def test_a_wrong_encoder_is_an_error_that_lists_the_known_ones(tmp_path):
    result = run("mental_arithmetic", "--out", tmp_path / "study", "--encoder", "mine=nowhere")
    assert result.exit_code == 1
    assert "features-eegmmidb" in result.output
    assert not (tmp_path / "study").exists()
