"""The command study: data check, plan, errors and report."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from support import study_folders
from typer.testing import CliRunner

from braindecode_pars import PARSEmbedder
from braindecode_pars.cli.commands import app
from braindecode_pars.study import study_design, study_scores


def run(*arguments):
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


def options(arguments):
    """Return arguments of ``datasets.folder.load`` as options; the rate is that of the encoder."""
    named = {k: v for k, v in arguments.items() if k in ("labels", "label_column")}
    texts = [x for key, value in named.items() for x in (f"--{key.replace('_', '-')}", value)]
    return [*texts, "--window-seconds", "5"]


def untimed(*_):
    return 66.0


def test_the_plan_of_a_bundled_dataset_is_printed_and_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(study_design, "_seconds_of", untimed)
    out = tmp_path / "study"
    tasks = ("--task", "mae", "--task", "pars", "--without", "small (pretrained on other data)")
    result = run("mental_arithmetic", "--out", out, "--plan-only", "--jobs", 2, *tasks)
    assert result.exit_code == 0, result.output
    assert "Warning: Class is confounded with recording order: in all 24 subjects" in result.output
    assert "MAE pretraining" in result.output
    assert "small (pretrained" not in result.output
    assert "12 draws of 4 labeled subjects (3 disjoint draws" in result.output
    assert "at least" in result.output  # the duration of other methods is unknown
    assert "Networks use 3 draws" in result.output
    assert "control analyses" in result.output
    assert "The study was not run" in result.output
    assert sorted(file.name for file in out.iterdir()) == ["study.json"]


def test_an_unknown_method_is_an_error_before_recordings_are_read(tmp_path):
    result = run(tmp_path / "no folder", "--out", tmp_path / "study", "--only", "EEGNot")
    assert result.exit_code == 1
    assert "EEGNot" in result.output
    assert "fine-tuned" in result.output


@pytest.mark.slow
def test_the_quick_plan_of_the_bundled_sleep_dataset(tmp_path, monkeypatch):
    """Stages 3 and 4 are classified; wake is used for pretraining, but not scored."""
    monkeypatch.setattr(study_design, "_seconds_of", untimed)
    arguments = ("sleep", "--out", tmp_path / "study", "--plan-only", "--quick", "--jobs", 1)
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "sham pretraining" in result.output
    for absent in ("fine-tuned", "Networks", "control analyses"):
        assert absent not in result.output
    # 6 steps of a pretraining and its sham, 1.1 minutes each
    assert "at least 13 min (processes: 1)" in result.output
    assert run(*arguments, "--thorough").exit_code == 2
    for pattern in (r"Sleep stage 3\W+366 ", r"Sleep stage 4\W+653 ", "720 of 1739 windows"):
        assert re.search(pattern, result.output)
    assert "12 draws of 2 labeled subjects" in result.output


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Possible data leakage")  # as in "small"
def test_confounded_classes_are_a_stop_unless_they_are_accepted(tmp_path, monkeypatch):
    monkeypatch.setattr(study_design, "_seconds_of", untimed)
    arguments_of_load = study_folders.classes_of_sites(tmp_path / "recordings")
    arguments = (tmp_path / "recordings", "--out", tmp_path / "study", *options(arguments_of_load))
    stopped = run(*arguments)
    assert stopped.exit_code == 0, stopped.output
    assert "Stop: Class is confounded with the site" in " ".join(stopped.output.split())
    result = run(*arguments, "--in-spite-of", "confounds", "--plan-only", "--only", "baselines")
    assert result.exit_code == 0, result.output
    assert "Stop:" not in result.output
    assert "The study was not run" in result.output


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Possible data leakage")
def test_a_quick_study_of_a_folder_ends_in_a_report_and_a_model(tmp_path, monkeypatch):
    effort = study_design.Effort(3, 8.0, ("primary", "baselines"))
    monkeypatch.setitem(study_design.EFFORTS, "quick", effort)
    small = partial(PARSEmbedder, embed_dim=16, num_layers=1)
    monkeypatch.setattr(study_scores, "PARSEmbedder", small)
    arguments_of_load = study_folders.good(tmp_path / "recordings", n_subjects=8)
    out = tmp_path / "study"
    arguments = (tmp_path / "recordings", "--out", out, "--quick", "--draws", 4)
    result = run(*arguments, "--jobs", 1, *options(arguments_of_load))
    assert result.exit_code == 0, result.output
    stored = json.loads((out / "study.json").read_text())
    assert set(stored["comparisons"]) == {"primary", "initialization", "baseline"}
    for answer in stored["answers"]:
        assert answer.split()[0] in result.output
    assert "braindecode-pars predict" in result.output
    again = run(*arguments, "--plan-only", *options(arguments_of_load))
    assert "9 of 9 steps are already finished" in again.output
    recording = next((tmp_path / "recordings").rglob("*.fif"))
    arguments = ["predict", str(out / "model"), str(recording), "--out", str(tmp_path / "p")]
    predicted = CliRunner().invoke(app, arguments)
    assert predicted.exit_code == 0, predicted.output
    assert f"{stored['recommendation']['score']:.2f}" in predicted.output


def test_a_study_that_fails_the_data_check_ends_with_the_reason(tmp_path):
    """Labels of equal short duration define the length of windows."""
    data, out = tmp_path / "recordings", tmp_path / "study"
    data.mkdir()
    rows = ["file,subject,label,onset,duration"]
    for i in range(4):
        study_folders.recording(i, 0.0).save(data / f"P{i}_raw.fif", verbose="error")
        rows += [f"P{i}_raw,P{i},{'ab'[k % 2]},{5 * k},5" for k in range(4)]
    (data / "labels.csv").write_text("\n".join(rows))
    result = run(data, "--out", out, "--labels", "labels.csv")
    assert result.exit_code == 0, result.output
    assert "16 of 5 s" in result.output
    assert "encoder small: reference as recorded, but average in training" in result.output
    for text in (result.output, (out / "report.html").read_text()):
        assert "at least 6 are required" in " ".join(text.split())
    assert not (out / "model").exists()
