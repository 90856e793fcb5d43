"""``braindecode-pars evaluate``: options, protocols, and the tables, tests, costs and figures."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import cache

import pandas as pd
import pytest
from support.small_estimators import classifier
from support.subjects import with_split
from typer.testing import CliRunner

from braindecode_pars import PARSEmbedder, datasets, evaluation, paper
from braindecode_pars._common.tables import SCORES
from braindecode_pars.baselines import ALL_WEIGHTS, CENTERED, FROZEN, SMOOTHED, make_methods
from braindecode_pars.cli import app
from braindecode_pars.cli import evaluation_report as report
from braindecode_pars.cli.evaluation_report import (
    classifier_settings,
    encoders_of,
    find_subjects,
    methods_of,
    show_costs,
)
from braindecode_pars.datasets import any_source
from braindecode_pars.evaluation import LogBandPower, cost_table

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


SIMULATE_ONCE = cache(any_source._WITHOUT_FOLDER["simulated"])


@pytest.fixture(autouse=True)
def simulated_once(monkeypatch):
    monkeypatch.setitem(any_source._WITHOUT_FOLDER, "simulated", SIMULATE_ONCE)


def evaluate(*arguments) -> str:
    result = runner.invoke(app, ["evaluate", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def one_line(output: str) -> str:
    return " ".join(output.replace("│", " ").split())


#: Command line (SMALL: options of small data) -> exit code, and parts of the error message.
MISTAKES = {
    "compare --dataset tuhab": (1, "'tuhab'", "sleep, mental_arithmetic, simulated"),
    "compare SMALL --load reference=average": (1, "unexpected keyword argument 'reference'"),
    # Encoders are checked before a corpus is read.
    "compare --dataset tuab --data no --encoder nowhere": (1, "nowhere is not an existing folder"),
    "compare SMALL --method band-power --against scratch": (
        1,
        "scratch is not one of the methods. Use one of log band",
    ),
    "compare SMALL --method band-power": (1, "at least two methods, got only log band power"),
    "label-efficiency SMALL --n 1 --test-subject 9": (1, "--test-subject must be one of '1'"),
    "compare SMALL --grid sizes": (2, "--grid", "ablation"),
    "leave-one-subject-out SMALL --against scratch": (2, "--against", "compare"),
    "label-efficiency SMALL": (2, "--n"),
    "ablation SMALL": (2, "--grid"),
    "compare SMALL --control slow": (2, "--control", "controls"),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_user_errors_end_without_a_traceback(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, *words = MISTAKES[line]
    arguments = line.replace("SMALL", " ".join(SMALL)).split()
    result = runner.invoke(app, ["evaluate", *arguments, "--out", "out"])
    assert result.exit_code == code
    assert all(word in one_line(result.output) for word in words), result.output
    assert "Traceback" not in result.output
    assert not list((tmp_path / "out").rglob("*_*.json"))


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """An encoder of other people."""
    folder = tmp_path_factory.mktemp("encoders")
    pretrain("pars", folder)
    return folder


def pretrain(task, folder):
    nights = datasets.simulated.sleep(2, 0.1, n_chans=2, sfreq=100, random_state=9)
    nights.set_description({"subject": ["a", "b"]}, overwrite=True)
    sizes = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)
    PARSEmbedder(task, pretrain_epochs=1, verbose=0, **sizes).fit(nights).save(folder / task)


def test_leave_one_subject_out(tmp_path):
    output = evaluate("leave-one-subject-out", *SMALL, "--method", "band-power", "--out", tmp_path)
    assert "mean score ± SD over 4 held-out subjects" in output
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["protocol"]) == {"leave_one_subject_out"}
    mean, sd = re.search(r"log band power │ +(-?[\d.]+) ± ([\d.]+)", output).groups()
    kappa = scores[scores["metric"] == "kappa"]["value"]
    assert float(mean) == pytest.approx(kappa.mean(), abs=5e-4)
    assert float(sd) == pytest.approx(kappa.std(), abs=5e-4)


def test_a_task_of_the_user_is_a_method(own_task):
    [(name, estimator)] = methods_of("compare", [f"{own_task}:Slope"], None, {}).items()
    assert (name, estimator.pretext) == ("Slope", f"{own_task}:Slope")


def test_label_efficiency(tmp_path):
    output = evaluate(
        *("label-efficiency", *SMALL, "--method", "band-power", "--n", 1, "--n", 2),
        *("--test-subject", 4, "--seeds", 2, "--metric", "f1", "--out", tmp_path),
    )
    assert "n train subjects" in one_line(output)
    assert "over 2 seeds; each score is computed over all test windows" in output
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["subject"].astype(str)) <= {"4", "all"}
    pooled = scores[scores["subject"] == "all"].groupby("n_train_subjects")["value"]
    for n, mean, sd in zip((1, 2), pooled.mean(), pooled.std(), strict=True):
        assert f"simulated {n} log band power {mean:.3f} ± {sd:.3f}" in one_line(output)
    assert (tmp_path / "f1.png").exists()


@pytest.mark.slow
def test_transfer(encoders, tmp_path):
    output = evaluate(
        *("transfer", "--encoder", encoders / "pars", *SMALL, *TINY[-2:], "--test-subject", 3),
        *("--seeds", 1, "--method", "band-power", "--out", tmp_path / "out"),
    )
    assert "pretrained" in output
    assert "over 1 seed; each score is computed over all test windows" in output
    scores = pd.read_csv(tmp_path / "out/scores.csv")
    trained = {"pretrained, head trained", "pretrained, fine-tuned", "random encoder, head trained"}
    assert set(scores["method"]) == {"log band power", *trained}
    assert set(scores["dataset"]) == {"simulated"}


@pytest.mark.slow
def test_ablation(tmp_path):
    output = evaluate(
        *("ablation", *SMALL, *TINY, "--grid", "overlap", "--test-subject", 4),
        *("--seeds", 1, "--out", tmp_path),
    )
    assert "overlap=False" in output
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["overlap"]) == {True, False}
    assert len([each for each in (tmp_path / "encoders").iterdir() if each.is_dir()]) == 2


def test_reproduce_prints_means_over_people_and_their_spread_over_seeds(tmp_path, monkeypatch):
    calls = []

    def reproduced(windows, out, **arguments):
        calls.append((len(windows.datasets), out, arguments))
        rows = [
            ("label_efficiency", "sleep", method, subject, 4, seed, "kappa", level + subject + seed)
            for method, level in (("from scratch", 0.0), ("PARS, head trained", 0.25))
            for subject in (-0.5, 0.5)
            for seed in (0, 1)
        ]
        scores = pd.DataFrame(rows, columns=SCORES)
        return scores.assign(pretraining_loss=scores["method"].map({"PARS, head trained": 0.75}))

    monkeypatch.setattr(evaluation, "reproduce", reproduced)
    arguments = ["reproduce", "sleep", "--epochs", "2", "--seeds", "2", "--set", "num_layers=1"]
    result = runner.invoke(app, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    given = dict(epochs=2, seeds=range(2), num_layers=1)
    assert calls == [(12, tmp_path, given)]
    assert "mean score over 2 held-out subjects" in result.output
    found = one_line(result.output)
    assert "from scratch 0.500 ± 0.707 - " in found
    assert "PARS, head trained 0.750 ± 0.707 0.75 " in found


@pytest.mark.slow
def test_controls(encoders, tmp_path):
    arguments = [
        *("controls", *SMALL, "--encoder", f"PARS={encoders / 'pars'}", "--method", "probe"),
        *("--method", "random-encoder", "--method", "band-power", "--n", 1, "--n", 2),
        *("--test-subject", 3, "--test-subject", 4, "--seeds", 2, "--control", "slow"),
        *("--control", "labels", "--out", tmp_path / "out"),
    ]
    output = one_line(evaluate(*arguments))
    scores = pd.read_csv(tmp_path / "out/scores.csv")
    # The encoder is frozen in a probe, and not fine-tuned beside it.
    assert set(scores["method"]) == {"PARS, linear probe", "random encoder", "log band power"}
    assert list(dict.fromkeys(scores["control"])) == ["none", "slow", "labels"]
    gains = pd.read_csv(tmp_path / "out/gains.csv")
    assert set(gains["against"]) == {"random encoder"}
    assert len(gains) == 2 * (2 + 3)
    assert "4 of 4 recordings were high-pass filtered" in output
    assert (tmp_path / "out/gains.png").read_bytes().startswith(b"\x89PNG")
    # The same command resumes; another method to compare with needs no fit.
    folds = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").rglob("*_*.json")}
    output = evaluate(*arguments, "--against", "band-power")
    assert folds == {file: file.stat().st_mtime_ns for file in (tmp_path / "out").rglob("*_*.json")}
    assert "than log band power" in output.replace("\n", " ")


@pytest.mark.slow
def test_controls_without_test_subjects_hold_out_folds_of_subjects(tmp_path):
    output = evaluate(
        *("controls", *SMALL, "--method", "band-power", "--method", "amplitude"),
        *("--against", "band-power", "--n", 2, "--seeds", 1, "--control", "amplitude"),
        *("--out", tmp_path),
    )
    assert "than log band power" in output.replace("\n", " ")
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["subject"].astype(str)) == {"1", "2", "3", "4"}


@pytest.mark.slow
def test_several_encoders_in_one_table_and_one_test(encoders, tmp_path):
    pretrain("mae", encoders)
    evaluate(
        *("compare", *SMALL, "--set", "finetune_epochs=1", "--method", "scratch"),
        *("--encoder", f"PARS={encoders / 'pars'}", "--encoder", f"MAE={encoders / 'mae'}"),
        *("--against", "scratch", "--out", tmp_path),
    )
    scores = pd.read_csv(tmp_path / "scores.csv")
    given = [f"{name}{mark}" for mark in (FROZEN, ALL_WEIGHTS) for name in ("PARS", "MAE")]
    assert set(scores["method"]) == {"from scratch", f"random encoder{FROZEN}", *given}
    tests = pd.read_csv(tmp_path / "tests.csv")
    pairs = tests[["method_a", "method_b"]].to_numpy().tolist()
    assert pairs == [[name, "from scratch"] for name in (f"random encoder{FROZEN}", *given)]
    assert tests[["metric", "n_subjects"]].drop_duplicates().to_numpy().tolist() == [["kappa", 4]]
    assert tests[["p", "p_holm", "df"]].notna().all(axis=None)


@pytest.mark.slow
def test_sizes_differ_only_on_purpose_and_the_table_says_so(encoders, tmp_path):
    arguments = [
        *("evaluate", "label-efficiency", *SMALL, "--set", "finetune_epochs=1", "--n", "2"),
        *("--set", "freeze_encoder=true", "--set", "embed_dim=24", "--method", "scratch"),
        *("--encoder", str(encoders / "pars")),
        *("--test-subject", "3", "--seeds", "1", "--out", str(tmp_path)),
    ]
    refused = runner.invoke(app, arguments)
    assert refused.exit_code == 1
    assert "--unequal-sizes" in refused.output
    output = evaluate(*arguments[1:], "--unequal-sizes")
    found = re.search(
        r"encoder parameters.*from scratch +│ +([\d,]+) │.*pretrained, head trained +│ +([\d,]+) │",
        output,
        re.S,
    )
    assert len({*found.groups()}) == 2


def test_test_subjects_may_have_their_corpus_in_front(nights):
    windows = deepcopy(nights.split([[0, 1, 2]])["0"])  # other tests use the recordings, too
    windows.set_description({"corpus": ["clinic"] * 3})
    assert find_subjects(windows, ["2", "clinic:1"]) == [2, 1]
    with pytest.raises(ValueError, match=r"'1', 'clinic:1', .*'home:1'"):
        find_subjects(windows, ["home:1"])


def test_names_of_encoders(tmp_path):
    folder = tmp_path / "a=b"
    folder.mkdir()
    assert encoders_of(None) == {}
    assert encoders_of([str(folder)]) == {"pretrained": str(folder)}
    assert encoders_of(["small"]) == {"pretrained": "small"}
    assert encoders_of(["A=run1", "B=small"]) == {"A": "run1", "B": "small"}
    with pytest.raises(ValueError, match="small"):
        encoders_of(["A=run1", "small"])
    with pytest.raises(ValueError, match="A=run1 A=run2"):
        encoders_of(["A=run1", "A=run2"])


def test_named_encoders_replace_pretraining_in_every_fold():
    methods = methods_of("compare", None, ["PARS=small"], {})
    networks = [f"{name}{FROZEN}" for name in ("random encoder", "PARS")] + [f"PARS{ALL_WEIGHTS}"]
    assert list(methods) == ["from scratch", "log band power", "tangent space", *networks]
    assert f"pretrained{FROZEN}" in methods_of("compare", None, ["small"], {})
    # For controls, encoders are used in linear probes only, also with smoothed predictions.
    probes = methods_of("controls", ["probe"], ["PARS=small"], {"smoothing": True})
    assert list(probes) == ["PARS, linear probe", f"PARS, linear probe{SMOOTHED}"]


def test_values_of_a_grid_are_combined(tmp_path, monkeypatch):
    grids = []

    def stop(estimator, windows, grid, **options):
        grids.append(grid)
        raise InterruptedError

    monkeypatch.setattr(evaluation, "ablation", stop)
    for given in (["overlap", "n_patches=10,20", "detrend=true,null"], ["decoder"]):
        with pytest.raises(InterruptedError):
            report.show_ablation({}, None, given, out=tmp_path)
    values = {"overlap": (True, False), "n_patches": [10, 20], "detrend": [True, None]}
    assert grids == [values, evaluation.GRIDS["decoder"]]


def test_the_method_to_compare_with_has_either_of_its_names_or_is_scratch():
    methods = ["log band power", "random encoder", "PARS", "from scratch"]
    called = [
        report.reference_method(name, methods) for name in ("band-power", "log band power", "pars")
    ]
    assert called == ["log band power", "log band power", "PARS"]
    with pytest.raises(ValueError, match=r"mae.* log band power, random encoder"):
        report.reference_method("mae", methods)
    assert report.reference_method(None, methods) == "from scratch"
    centered = make_methods(["band-power", "random-encoder"], subject_centering=True)
    assert report.reference_method(None, centered) == f"random encoder{CENTERED}"
    with pytest.raises(ValueError, match="--against is required"):
        report.reference_method(None, ["log band power", "tangent space"])


def test_options_win_over_the_paper():
    augmentation = [{"name": "GaussianNoise", "std": 0.2}, "SignFlip"]
    options = ["label_smoothing=0.3", f"augmentation={json.dumps(augmentation)}"]
    found = classifier_settings(options, published=True)
    assert found == {**paper.FINE_TUNING, "label_smoothing": 0.3, "augmentation": augmentation}
    found = classifier_settings(None, published=True, dataset="eesm17")
    assert found == {**paper.FINE_TUNING, "augmentation": "ChannelNoise"}
    for dataset in ("", "eesm17"):
        assert classifier_settings(None, published=False, dataset=dataset) == {}


def test_a_classifier_that_pretrains_has_the_papers_sizes_too():
    found = classifier_settings(["embed_dim=64"], published=True, pretrains=True)
    (classifier,) = make_methods(["pars"], **found).values()
    params = classifier.get_params()
    expected = {**paper.CLASSIFIER, "embed_dim": 64}
    assert {name: params[name] for name in expected} == expected


def scores_on(tested, n_train_subjects, dataset="nights"):
    columns = dict(dataset=dataset, n_train_subjects=n_train_subjects)
    return pd.DataFrame([dict(subject=subject, **columns) for subject in tested])


def test_fixed_validation_subjects_come_beside_the_training_subjects(nights, tmp_path):
    windows = with_split(nights, {1: "valid", 2: "test", 3: "train", 4: "test"})
    methods = {
        "split": classifier(pretext=None, validation="split"),
        "none": classifier(pretext=None, validation=0),
        "log band power": LogBandPower(),
    }
    show_costs(methods, windows, scores_on([4, "all"], 2), tmp_path)
    written = pd.read_csv(tmp_path / "costs.csv")
    # Validation does not count, nor do all of the split test: both train on subject 3.
    part = nights.split([[2]])["0"]
    expected = cost_table({"none": methods["none"]}, part)["finetuning_steps"][0]
    assert written["finetuning_steps"].tolist()[:2] == [expected] * 2
    assert written["n_train_subjects"].tolist() == [1, 1, 1]
