"""``braindecode-pars evaluate``: every protocol with small data, and resuming."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from braindecode_pars.cli import app

runner = CliRunner()

#: Four simulated subjects, and very small models.
SMALL = [
    *("--dataset", "simulated", "--load", "n_subjects=4", "--load", "hours=0.1"),
    *("--load", "n_chans=2", "--load", "sfreq=100"),
]
TINY = [
    *("--set", "embed_dim=16", "--set", "num_layers=1", "--set", "mlp_dim=16"),
    *("--set", "pretrain_epochs=1", "--set", "finetune_epochs=1"),
]


def evaluate(*arguments) -> str:
    result = runner.invoke(app, ["evaluate", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def one_line(output: str) -> str:
    return " ".join(output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "tuhab"], "Unknown corpus 'tuhab'; known are mental_arithmetic, simulated"),
        (["--dataset", "tuab"], "tuab needs --data, the folder of its files"),
        (["--dataset", "tuab", "--data", "nowhere"], "nowhere"),
        ([*SMALL, "--data", "nowhere"], "simulated reads no folder; omit nowhere"),
        ([*SMALL, "--method", "bands"], "Unknown method 'bands'; known are pars"),
        ([*SMALL, "--set", "epochs"], "--set 'epochs' is not of the form KEY=VALUE"),
        ([*SMALL, "--set", "epochs=3"], "PARSClassifier has no parameter 'epochs'"),
        ([*SMALL, "--load", "size=3"], "simulated has no argument 'size'; it has n_subjects"),
        ([*SMALL, "--encoder", "nowhere"], "nowhere is not the folder of a saved model"),
        (
            [*SMALL, "--method", "band-power", "--against", "scratch"],
            "--against scratch is no method; methods are band power",
        ),
        ([*SMALL, "--metric", "auc"], "Unknown metric 'auc'"),
    ],
)
def test_user_errors_end_without_a_traceback(arguments, message, tmp_path):
    result = runner.invoke(app, ["evaluate", "compare", *arguments, "--out", str(tmp_path / "o")])
    assert result.exit_code == 1
    assert message in one_line(result.output)
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["label-efficiency", "--dataset", "tuab", "--data", "nowhere", "--n", "1"],
        ["transfer", "--dataset", "tuab=nowhere"],
    ],
)
def test_methods_are_checked_before_a_corpus_is_read(arguments, tmp_path):
    encoder = tmp_path / "absent"
    result = runner.invoke(app, ["evaluate", *arguments, "--encoder", str(encoder)])
    assert result.exit_code == 1
    assert "absent is not the folder of a saved model" in one_line(result.output)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "eegmat"], "--dataset 'eegmat' is not of the form NAME=FOLDER"),
        (["--dataset", "eegmat=a", "--dataset", "eegmat=b"], "EEGMAT"),
        (["--dataset", "eegmat=a", "--test-subject", "tuab=1"], "tuab=1 matches no --dataset"),
        (["--dataset", "eegmat=a", "--load", "sfreq=100"], "sfreq=100 matches no --dataset"),
    ],
)
def test_user_errors_in_transfer(arguments, message, tmp_path):
    result = runner.invoke(app, ["evaluate", "transfer", "--encoder", str(tmp_path), *arguments])
    assert result.exit_code == 1
    assert message in one_line(result.output)


def test_a_file_of_settings_for_transfer_has_a_table_of_each_corpus(tmp_path):
    (tmp_path / "settings.toml").write_text("[load]\nwindow_seconds = 10\n")
    arguments = ["--encoder", str(tmp_path), "--dataset", "eegmat=a"]
    arguments += ["--config", str(tmp_path / "settings.toml")]
    result = runner.invoke(app, ["evaluate", "transfer", *arguments])
    assert result.exit_code == 1
    assert "entry 'window_seconds'; transfer takes a table of each corpus" in one_line(
        result.output
    )


def test_unknown_subjects_and_grids(tmp_path):
    output = runner.invoke(
        app,
        ["evaluate", "label-efficiency", *SMALL, "--n", "1", "--test-subject", "9"],
    ).output
    assert "Unknown subject 9; known are 1, 2, 3, 4." in one_line(output)
    output = runner.invoke(app, ["evaluate", "ablation", *SMALL, "--grid", "size"]).output
    assert "Unknown grid 'size'; known are masking" in one_line(output)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["compare", "--grid", "sizes"], ["--grid", "ablation"]),
        (["leave-one-subject-out", "--against", "scratch"], ["--against", "compare"]),
        (["transfer", "--data", "x"], ["--data"]),
        (["transfer"], ["--encoder"]),
        (["label-efficiency"], ["--n"]),
        (["ablation"], ["--grid"]),
        (["compare", "--dataset", "eegmat"], ["--dataset", "transfer"]),
        (["cross-validation"], ["cross-validation", "leave-one-subject-out"]),
    ],
)
def test_an_option_that_a_protocol_does_not_take_is_refused(arguments, named):
    result = runner.invoke(app, ["evaluate", *arguments, "--dataset", "simulated"])
    assert result.exit_code == 2
    assert all(word in result.output for word in named)
