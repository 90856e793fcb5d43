"""Pages of results: their commands, and stored numbers that are computed again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import new_subject
import numpy as np
import pandas as pd
import pytest
import real_recordings
import reproduce
import stored_subject_information
from costs import _first_subjects, _stand_in
from rhythms import halves, planted
from stored_audits import read_audits
from stored_new_subject import new_subject_scores
from stored_numbers import stored
from stored_scores import P_HOLM, provenance
from stored_sleep import sleep_scores, sleep_tests
from stored_table import add_rows, store_table

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import mental_arithmetic
from braindecode_pars.evaluation import (
    ChannelFeatures,
    LogBandPower,
    audit_encoder,
    audit_subjects,
    cost_table,
    features_computed_once,
)

#: These tests depend only on pages and scripts of the documentation.
pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[1] / "docs"
NAMES = ("control", "nights", "hands", "arithmetic", "imagery")


@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_a_page_is_known(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("FOLDER").mkdir()
    [command] = re.findall(r"reproduce\.py (.*)", (DOCS / "results" / f"{name}.rst").read_text())
    asked = []
    monkeypatch.setattr(reproduce, "ask_for", lambda result, *_: asked.append(result) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        reproduce.main(shlex.split(command))
    assert asked == [name]


def test_stored_scores_are_computed_again(tmp_path, capsys):
    """With one of the methods that take a second."""
    part = ["--only", "log band power", "--n", "2", "--seeds", "1"]
    reproduce.main(["arithmetic", "--out", str(tmp_path), *part])
    assert "12 of 12 scores of subjects are equal" in capsys.readouterr().out


def test_two_costs_are_those_of_today(tmp_path):
    _stand_in("SpectralMAE", tmp_path)
    question = real_recordings.arithmetic(tmp_path, None)
    methods = {name: question.classifier(name, 2) for name in ("from scratch", "SpectralMAE")}
    today = cost_table(methods, _first_subjects(question, 2)).set_index("method")
    stored = pd.read_csv(DOCS / "measured" / "costs.csv", comment="#")
    stored = stored[(stored["result"] == "arithmetic") & (stored["n_train_subjects"] == 2)]
    stored = stored.set_index("method").loc[today.index, today.columns]
    np.testing.assert_allclose(today.astype(float), stored.astype(float), rtol=1e-5)


def test_a_stored_audit_is_reproduced():
    measured = audit_encoder("small", mental_arithmetic())
    stored = read_audits("arithmetic").query("encoder == 'small'")
    measured = measured[
        measured["property"].isin(stored["property"])
    ]  # the properties of subjects are newer
    assert measured["property"].tolist() == stored["property"].tolist()
    np.testing.assert_allclose(measured["value"], stored["value"], atol=0.01)


def test_added_rows_have_their_own_provenance(tmp_path):
    file = tmp_path / "table.csv"
    numbers = pd.DataFrame({"method": ["a", "b"], "value": [0.5, 0.25]})
    store_table(numbers, file, "python table.py", "one thread", index=False)
    first = provenance([file])
    new = pd.DataFrame({"method": ["b", "c"], "value": [0.1, 0.2]})
    for _ in range(2):  # the second time replaces the same rows
        add_rows(new, file, "python table.py --only b c", ["method"], index=False)
    commands = [line for line in provenance([file]) if line.startswith("python")]
    assert commands == ["python table.py", "python table.py --only b c"]
    assert first[1] in provenance([file])
    assert file.read_text().count("#") == 4
    stored_values = pd.read_csv(file, comment="#").set_index("method")["value"]
    assert stored_values.to_dict() == {"a": 0.5, "b": 0.1, "c": 0.2}


def test_the_readme_has_the_stored_scores_of_sleep():
    means = {}
    for question, n, networks in (
        ("deep", 1, "networks_deep"),
        ("deep", 4, "networks_deep"),
        ("wake", 1, "networks_wake"),
    ):
        scores = pd.concat([sleep_scores(question), sleep_scores(networks)])
        rows = scores[scores["n_train_subjects"] == n]
        means[question, n] = rows.groupby("method")["value"].mean()
    lines = (DOCS.parent / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| Task"))
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines[start : lines.index("", start)]
    ]
    stored_names = {
        "From scratch": "from scratch",
        "Random encoder": "random encoder",
        **{name: name for name in ("PARS, sham", "MAE", "MP3", "DropPos", "PARS")},
        "Hand-crafted features": "hand-crafted features",
    }
    assert table[0][1:] == [*stored_names]
    for scores, (_, *cells) in zip(means.values(), table[2:], strict=True):
        assert [*map(float, cells)] == [round(scores[name], 2) for name in stored_names.values()]
    assert round(means["deep", 4]["PARS, head trained"], 2) == 0.63  # in the limits, with its test
    networks = sleep_tests("networks_deep").set_index(
        ["labeled subjects", "PARS, head trained compared with"]
    )
    assert float(networks.loc[("4", "from scratch"), P_HOLM]) > 0.05
    assert stored("sleep/deep | 4 | PARS - PARS, sham")[:4] == "0.04"


def test_a_number_in_a_text_is_the_stored_one(tmp_path):
    """Compare with an independent computation; a missing number is an error."""
    sleep = pd.read_csv(DOCS / "measured" / "sleep" / "deep.csv", comment="#")
    subjects = [column for column in sleep if column.startswith("ucddb")]
    means = sleep[sleep["n_train_subjects"] == 4].set_index("method")[subjects].mean(axis=1)
    pars, random = (
        means[[f"{name}, seed {seed}" for seed in range(3)]].mean()
        for name in ("PARS", "random encoder")
    )
    assert stored("sleep/deep | 4 | PARS") == f"{pars:.3f}"
    assert stored("sleep/deep | 4 | PARS - random encoder") == f"{pars - random:.3f}"
    hands = pd.read_csv(DOCS / "measured" / "hands.csv", comment="#").query(
        "n_train_subjects == 4 and 3 <= seed <= 19 and subject != 'all'"
    )
    means = hands.groupby("method")["value"].mean()
    gain = f"{means['PARS without overlap'] - means['from scratch']:.3f}"
    assert stored("hands | 4 draws 3-19 | PARS without overlap - from scratch") == gain
    for name in (
        "sleep/deep | 3 | PARS",
        "sleep/deep | 4 | PARS - PRS",
        "audits | both | small | x",
    ):
        with pytest.raises(KeyError):
            stored(name)


def test_a_stored_audit_of_subject_information_is_reproduced():
    X, y, subjects = as_sklearn(mental_arithmetic())
    features = {"hand-crafted features": ChannelFeatures().fit_transform(X)}
    measured = audit_subjects(features, y, subjects, X.table["recording"].to_numpy())
    stored = pd.read_csv(stored_subject_information.FILE, comment="#")
    stored = stored[(stored["control"] == "none") & (stored["features"] == "hand-crafted features")]
    columns = ["value", "null", "p"]
    np.testing.assert_allclose(measured[columns], stored[columns], atol=2e-3)


def test_stored_scores_of_a_new_subject_are_reproduced():
    X, y, subjects = new_subject.sleep()
    is_new = subjects == "ucddb002"
    with features_computed_once():
        scores = [
            *new_subject.scores_of(LogBandPower(), X[~is_new], y[~is_new], X[is_new], y[is_new])
        ]
    stored = new_subject_scores("sleep")["ucddb002"]
    for method, _, n, value in scores:
        assert abs(value - stored["log band power", method, n]) < 1e-3, (method, n)
    assert len(scores) == len(stored["log band power"])


def test_a_planted_sine_has_its_amplitude_in_half_of_the_windows():
    X, _, subjects = as_sklearn(mental_arithmetic(["Subject00", "Subject01"]))
    added = np.stack(list(planted(X, 10.0, 2e-6))) - np.stack(list(X))
    assert added.std() == pytest.approx(2e-6 / 2**0.5, rel=1e-3)
    assert np.abs(np.fft.rfft(added)).argmax(axis=-1).tolist() == [[100] * 8] * 24
    np.testing.assert_allclose(added[:, 0], added[:, 7], atol=1e-10)
    assert np.ptp(added[:, 0, 0]) > 3e-6  # phases differ
    has_rhythm = halves(subjects, np.random.default_rng(0))
    assert [has_rhythm[subjects == name].sum() for name in ("Subject00", "Subject01")] == [6, 6]
