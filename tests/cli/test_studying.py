"""The command study: what it looks at, plans and refuses."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest
from support import study_folders
from typer.testing import CliRunner

from braindecode_pars.cli import fitting
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
        (study_folders.classes_of_sites, "The classes are confounded with the site"),
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


@pytest.mark.parametrize(
    ("p", "mean", "warned"), [(0.01, 0.8, False), (0.2, 0.8, True), (0.01, 0.2, True)]
)
def test_a_model_that_is_not_above_chance_level_is_said_to_be_none(
    p, mean, warned, capsys, tmp_path
):
    found = SimpleNamespace(
        scores=[], people=None, answer="", doubts=[], report=str, about={"model": "few labels"}
    )
    found.levels = pd.DataFrame([dict(method="few labels", p_holm=p, mean=mean)])
    found.check, found.plan = SimpleNamespace(classes="ab"), pd.DataFrame({"left_out": []})
    fitting._show_study(found, tmp_path)
    assert ("few labels, which is not above chance level" in capsys.readouterr().out) == warned


def test_the_plan_of_the_sample_is_shown_and_nothing_is_run(tmp_path, monkeypatch):
    def seconds(method, *_):
        if method.name == "EEGNet":
            raise ValueError("it is too short.")
        return 0.0, 0.0, 0.01

    monkeypatch.setattr(study_plan, "_seconds_of", seconds)
    out = tmp_path / "study"
    tasks = ("--task", "mae", "--task", "pars", "--draws", 20)
    result = run("mental_arithmetic", "--out", out, "--plan-only", "--jobs", 2, *tasks)
    assert result.exit_code == 0, result.output
    assert "Warning: In all 24 subjects, the recordings come in the same order" in result.output
    assert "Left out: EEGNet: it is too short.\n" in result.output
    assert "MAE network, all weights" in result.output
    assert "PARS, own pretraining" in result.output
    assert "Nothing was run" in result.output
    rows = pd.DataFrame(json.loads((out / "plan.json").read_text())["plan"]).set_index("method")
    assert rows["draws"][["band power", "scratch"]].tolist() == [20, 5]
    assert sorted(file.name for file in out.iterdir()) == ["plan.json", "study.json"]


def test_a_wrong_encoder_is_an_error_that_lists_the_known_ones(tmp_path):
    result = run("mental_arithmetic", "--out", tmp_path / "study", "--encoder", "mine=nowhere")
    assert result.exit_code == 1
    assert "features-eegmmidb" in result.output
    assert not (tmp_path / "study").exists()


def test_the_sample_of_sleep_is_named_like_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(study_plan, "_seconds_of", lambda *_: (0.0, 0.0, 0.01))
    result = run("sleep", "--out", tmp_path / "study", "--plan-only")
    assert result.exit_code == 0, result.output
    assert "The method tangent-space was left out: it needs at least two channels." in result.output
    assert "eegnet was left out: its 15 epochs would see more than 3,000" in result.output
    plan = json.loads((tmp_path / "study" / "plan.json").read_text())["plan"]
    assert plan[0]["draws"] == study_plan.DRAWS  # the default of the command is that of Python


@pytest.mark.filterwarnings("ignore:720 of 1739 windows have label -1")
def test_classes_of_the_sample_are_stages_and_the_others_are_unlabeled(tmp_path, monkeypatch):
    monkeypatch.setattr(study_plan, "_seconds_of", lambda *_: (0.0, 0.0, 0.01))
    stages = ("--class", "Sleep stage 3", "--class", "Sleep stage 4")
    result = run("sleep", "--out", tmp_path / "study", "--plan-only", *stages)
    assert result.exit_code == 0, result.output
    for found in (r"Sleep stage 3\W+366 ", r"Sleep stage 4\W+653 ", "720 of 1739 windows have no"):
        assert re.search(found, result.output)
    result = run("mental_arithmetic", "--out", tmp_path / "other", "--class", "rest")
    assert result.exit_code == 1
    assert "no argument 'classes'" in result.output


def test_labels_of_one_short_length_need_no_length_of_windows(tmp_path):
    data, said = tmp_path / "recordings", "All labels last 5 s, and so do the windows."
    data.mkdir()
    rows = ["file,subject,label,onset,duration"]
    for i in range(4):
        study_folders.recording(i, 0.0).save(data / f"P{i}_raw.fif", verbose="error")
        rows += [f"P{i}_raw,P{i},{'ab'[k % 2]},{5 * k},5" for k in range(4)]
    (data / "labels.csv").write_text("\n".join(rows))
    result = run(data, "--out", tmp_path / "study", "--labels", "labels.csv")
    assert result.exit_code == 0, result.output
    assert said in result.output
    assert "16" in result.output  # windows
    assert "Encoder small: reference as recorded, but average in training" in result.output
