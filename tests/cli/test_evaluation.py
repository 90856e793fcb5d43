"""The protocols from the command line, from data to table and figure."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets, evaluation
from braindecode_pars.cli import app
from braindecode_pars.cli import evaluation_report as _evaluation
from braindecode_pars.cli.evaluation_report import encoders_of, methods_of, subjects_of
from braindecode_pars.estimators import NetworkClassifier

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


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Two encoders of other people."""
    folder = tmp_path_factory.mktemp("encoders")
    nights = datasets.simulated.sleep(2, 0.1, n_chans=2, sfreq=100, random_state=9)
    nights.set_description({"subject": ["a", "b"]}, overwrite=True)
    sizes = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)
    for name in ("pars", "mae"):
        PARSEmbedder(name, pretrain_epochs=1, verbose=0, **sizes).fit(nights).save(folder / name)
    return folder


def evaluate(*arguments) -> str:
    result = runner.invoke(app, ["evaluate", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def one_line(output: str) -> str:
    return " ".join(output.replace("│", " ").split())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Validation windows cannot", "ignore:kappa is not defined")
def test_compare_on_real_recordings_resumes_after_an_interruption(
    eeg_folder, tmp_path, monkeypatch
):
    """Four methods classify rest and arithmetic of three held-out subjects."""
    fits = []

    def counted(kind):
        fit = kind.fit

        def counting(self, *args, **kwargs):
            fits.append(self)
            if len(fits) == interrupt_at:
                raise KeyboardInterrupt
            return fit(self, *args, **kwargs)

        monkeypatch.setattr(kind, "fit", counting)

    for kind in (PARSClassifier, NetworkClassifier):
        counted(kind)
    subjects = json.dumps(["Subject00", "Subject01", "Subject02"])
    arguments = [
        *("evaluate", "compare", "--dataset", "eegmat", "--data", str(eeg_folder / "eegmat")),
        *("--load", f"subjects={subjects}", *TINY),
    ]
    for method in ("pars", "scratch", "eegnet", "band-power"):
        arguments += ["--method", method]
    out = tmp_path / "run"

    interrupt_at = 5
    result = runner.invoke(app, [*arguments, "--out", str(out)])
    assert result.exit_code == 130
    assert f"Finished fits are kept in {out}" in one_line(result.output).replace("\n", "")
    kept = sorted(file.name for file in (out / "cache").glob("*_*.json"))
    assert 4 <= len(kept) < 12

    interrupt_at = None
    fits.clear()
    result = runner.invoke(app, [*arguments, "--out", str(out)])
    assert result.exit_code == 0, result.output
    # Three subjects times three networks; four fits were kept. The table of costs begins one fit of
    # each network, and stops it before its first step.
    assert len(fits) == 9 - 4 + 3
    whole = runner.invoke(app, [*arguments, "--out", str(tmp_path / "whole")])
    assert whole.exit_code == 0, whole.output

    continued = pd.read_csv(out / "scores.csv")
    pd.testing.assert_frame_equal(continued, pd.read_csv(tmp_path / "whole/scores.csv"))
    assert set(continued["method"]) == {"PARS", "scratch", "EEGNet", "band power"}
    assert set(continued["subject"]) == {"Subject00", "Subject01", "Subject02"}
    assert (continued["n_train_subjects"] == 2).all()
    assert (out / "kappa.png").read_bytes().startswith(b"\x89PNG")
    for sentence in (
        "mean ± SD over 3 held-out subjects",
        "band power",
        "not established",
    ):
        assert sentence.lower() in one_line(result.output).lower()


def test_leave_one_subject_out(tmp_path):
    output = evaluate("leave-one-subject-out", *SMALL, "--method", "band-power", "--out", tmp_path)
    assert "mean ± SD over 4 held-out subjects" in output
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["protocol"]) == {"leave_one_subject_out"}
    mean, sd = re.search(r"band power │ +(-?[\d.]+) ± ([\d.]+)", output).groups()
    kappa = scores[scores["metric"] == "kappa"]["value"]
    assert float(mean) == pytest.approx(kappa.mean(), abs=5e-4)
    assert float(sd) == pytest.approx(kappa.std(), abs=5e-4)


def test_centred_baselines(tmp_path):
    output = evaluate(
        *("leave-one-subject-out", *SMALL, "--method", "band-power", "--method", "tangent-space"),
        *("--set", "subject_centering=true", "--out", tmp_path),
    )
    assert "subject-centred" in output
    methods = set(pd.read_csv(tmp_path / "scores.csv")["method"])
    centred = "subject-centred (transductive)"
    assert methods == {f"band power, {centred}", f"tangent space, {centred}"}


def test_label_efficiency(tmp_path):
    output = evaluate(
        *("label-efficiency", *SMALL, "--method", "band-power", "--n", 1, "--n", 2),
        *("--test-subject", 4, "--seeds", 2, "--metric", "f1", "--out", tmp_path),
    )
    assert "training subjects" in one_line(output)
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["n_train_subjects"]) == {1, 2}
    assert set(scores["subject"].astype(str)) <= {"4", "all"}
    assert (tmp_path / "f1.png").exists()


def test_transfer(encoders, tmp_path):
    output = evaluate(
        *("transfer", "--encoder", encoders / "pars", "--dataset", "simulated=", *TINY[-2:]),
        *("--load", "simulated.n_subjects=4", "--load", "simulated.hours=0.1"),
        *("--load", "simulated.n_chans=2", "--load", "simulated.sfreq=100"),
        *("--test-subject", "simulated=3", "--seeds", 1, "--method", "band-power"),
        *("--out", tmp_path / "out"),
    )
    assert "pretrained" in output
    assert "over 1 seed, over all test windows" in output
    scores = pd.read_csv(tmp_path / "out/scores.csv")
    assert set(scores["method"]) == {"band power", "pretrained"}
    assert set(scores["dataset"]) == {"simulated"}


def test_ablation(tmp_path):
    output = evaluate(
        *("ablation", *SMALL, *TINY, "--grid", "overlap", "--test-subject", 4),
        *("--seeds", 1, "--out", tmp_path),
    )
    assert "overlap=False" in output
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["overlap"]) == {True, False}
    curves = pd.read_csv(tmp_path / "curves.csv")
    pretraining = curves[curves["phase"] == "pretraining"]
    assert len(pretraining) == 2
    assert np.isfinite(pretraining["train_loss_relative"]).all()


def test_several_encoders_in_one_table_and_one_test(encoders, tmp_path):
    output = evaluate(
        *("compare", *SMALL, "--set", "finetune_epochs=1", "--method", "scratch"),
        *("--encoder", f"PARS={encoders / 'pars'}", "--encoder", f"MAE={encoders / 'mae'}"),
        *("--against", "scratch", "--out", tmp_path),
    )
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["method"]) == {"scratch", "PARS", "MAE"}
    assert "p-values after Holm's correction for 2 pairs" in one_line(output)
    assert "PARS and scratch" in one_line(output)
    # What is printed is written, too.
    tests = pd.read_csv(tmp_path / "tests.csv")
    assert tests[["method_a", "method_b"]].to_numpy().tolist() == [
        ["PARS", "scratch"],
        ["MAE", "scratch"],
    ]
    assert tests[["metric", "n_subjects"]].drop_duplicates().to_numpy().tolist() == [["kappa", 4]]
    assert tests[["p", "p_holm", "p_corrected", "p_corrected_holm"]].notna().all(axis=None)


def test_test_subjects_may_have_their_corpus_in_front(nights):
    windows = deepcopy(nights.split([[0, 1, 2]])["0"])  # other tests use the recordings, too
    windows.set_description({"corpus": ["clinic"] * 3})
    assert subjects_of(windows, ["2", "clinic:1"]) == [2, 1]
    with pytest.raises(ValueError, match="home:1; known are 1, clinic:1"):
        subjects_of(windows, ["home:1"])


def test_names_of_encoders(tmp_path):
    folder = tmp_path / "a=b"
    folder.mkdir()
    assert encoders_of(None) == {}
    assert encoders_of(["small"]) == {"pretrained": "small"}
    assert encoders_of([str(folder)]) == {"pretrained": str(folder)}
    assert encoders_of(["A=run1", "B=small"]) == {"A": "run1", "B": "small"}
    with pytest.raises(ValueError, match="small"):
        encoders_of(["A=run1", "small"])
    with pytest.raises(ValueError, match="A=run1 A=run2"):
        encoders_of(["A=run1", "A=run2"])


def test_named_encoders_replace_pretraining_in_every_fold():
    methods = methods_of(None, ["PARS=small"], {})
    assert list(methods) == ["scratch", "band power", "tangent space", "PARS"]
    assert "PARS" in methods_of(None, ["small"], {})


def test_a_file_of_settings(tmp_path):
    (tmp_path / "settings.toml").write_text(
        "[set]\nchannels = ['C3']\n[load]\nn_subjects = 3\nhours = 0.1\nn_chans = 2\nsfreq = 100\n"
    )
    evaluate(
        *("leave-one-subject-out", "--dataset", "simulated", "--load", "n_subjects=2"),
        *("--config", tmp_path / "settings.toml", "--method", "band-power"),
        *("--out", tmp_path / "out"),
    )
    settings = json.loads((tmp_path / "out/cache/settings.json").read_text())
    assert settings["datasets"]["simulated"]["n_windows"] == 24
    assert "C3" in json.dumps(settings["methods"]["band power"])


def test_two_settings_are_drawn_as_lines(tmp_path, monkeypatch):
    shared = dict(protocol="ablation", dataset="nights", subject="all")
    shared |= dict(n_train_subjects=1, seed=0, metric="kappa")

    def scored(estimator, windows, grid, **arguments):
        combinations = [dict(zip(grid, pair, strict=True)) for pair in product(*grid.values())]
        return pd.DataFrame([{**shared, **c, "method": str(c), "value": 0.5} for c in combinations])

    figures = []
    monkeypatch.setattr(evaluation, "ablation", scored)
    monkeypatch.setattr(_evaluation, "save_figure", lambda *a: figures.append(draw(*a)) or tmp_path)

    def draw(scores, folder, function):
        return function(scores, "kappa", None)

    _evaluation.ablation({}, None, "decoder", out=tmp_path)
    assert [line.get_label() for line in figures[0].get_lines()] == ["cross_attention", "mlp"]
    assert figures[0].get_xlabel() == "position mask ratio"
    plt.close("all")


def test_a_method_is_called_by_either_of_its_names():
    methods = dict.fromkeys(["scratch", "band power", "PARS"])
    called = [_evaluation._method_called(name, methods) for name in ("band-power", "band power")]
    assert called == ["band power", "band power"]
    assert _evaluation._method_called("pars", methods) == "PARS"
    with pytest.raises(ValueError, match=r"mae.* scratch, band power"):
        _evaluation._method_called("mae", methods)
