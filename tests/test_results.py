"""Pages of results: stored scores, figures, and the command that reproduces them."""

from __future__ import annotations

import re
import shlex
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import new_subject
import numpy as np
import pandas as pd
import pytest
import real_recordings
import reproduce
import simulated
import stored_pretraining
import stored_rhythms
import stored_scores
import stored_subject_information
from costs import _first_subjects, _stand_in
from make_encoder import command_of
from real_recordings import pretrained
from rhythms import halves, planted
from stored_audits import audit_map, read_audits
from stored_controls import ENCODERS, control_scores, gains
from stored_few_labels import against_baselines, few_labels_scores, fine_tuned, larger, long_scores
from stored_networks import DIFFERENCE_FROM_SCRATCH, network_scores, networks_table
from stored_neuroatlas import FOLDER as NEUROATLAS
from stored_neuroatlas import neuroatlas_number, neuroatlas_scores
from stored_new_subject import FEATURES, TITLES, new_subject_scores, new_subject_table
from stored_numbers import stored, summary
from stored_pretraining import RANDOM, SCRATCH, difference_from, pretraining_table
from stored_rates import (
    by_design,
    by_variances,
    rates,
    study_rates,
    study_rates_by_subjects,
    study_rates_by_variances,
)
from stored_rhythms import smallest
from stored_scores import (
    DETECTABLE,
    DIFFERENCE,
    HIGHER,
    P_HOLM,
    RESULTS,
    provenance,
    result_scores,
)
from stored_sleep import (
    DIFFERENCE_FROM_PAPER,
    SHAM_TASKS,
    ablation_table,
    loss_table,
    sham_tests,
    sleep_scores,
    sleep_tests,
)
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
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.runs import RunConfig

#: These tests depend only on pages and scripts of the documentation.
pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[1] / "docs"
#: Tasks in the order of the pages.
TASKS = ("arithmetic", "imagery", "hands")
NAMES = ("control", "nights", "hands", "arithmetic", "imagery")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_a_page_is_known(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("FOLDER").mkdir()
    [command] = re.findall(r"reproduce\.py (.*)", (DOCS / "results" / f"{name}.rst").read_text())
    parsed = {}

    def stop(result, encoders, eeg):
        parsed.update(result=result, eeg=eeg)
        raise InterruptedError

    monkeypatch.setattr(reproduce, "ask_for", stop)
    with pytest.raises(InterruptedError):
        reproduce.main(shlex.split(command))
    assert parsed["result"] == name
    needs_recordings = name in ("hands", "arithmetic", "imagery")
    assert (parsed["eeg"] is not None) == needs_recordings


def test_the_page_has_the_command_of_the_pretraining():
    page = (DOCS / "results" / "arithmetic.rst").read_text(encoding="utf-8")
    (written,) = re.findall(r"   (braindecode-pars pretrain (?:.*\\\n)*.*)\n", page)
    words = shlex.split(written.replace("\\\n", " "))
    config = RunConfig(**real_recordings.PRETRAINING, **real_recordings.TASKS["SpectralMAE"])
    assert sorted(" ".join(words).split(" --")) == sorted(command_of(config).split(" --"))


def test_stored_scores_are_computed_again(tmp_path, capsys):
    """With one of the methods that take a second."""
    part = ["--only", "log band power", "--n", "2", "--seeds", "1"]
    reproduce.main(["arithmetic", "--out", str(tmp_path), *part])
    assert "12 of 12 scores of subjects are equal" in capsys.readouterr().out


def test_a_difference_is_named():
    same = dict(method="a", n_train_subjects=2, seed=0)
    stored = pd.DataFrame([dict(same, subject=str(i), value=0.5) for i in range(4)])
    new = stored.assign(value=[0.5, 0.5, 0.5, 0.7])
    text = reproduce.compare(stored, new)
    assert "3 of 4 scores of subjects are equal" in text
    assert "Largest difference of a score: 0.2000; of a mean: 0.0500" in text
    with pytest.raises(ValueError, match="1 scores"):
        reproduce.compare(stored, new[:3])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            ["--only", "log band power", "PASR"],
            "method PASR; there are log band power, .*without overlap",
        ),
        (["--n", "2", "3"], "n_train_subjects 3; there are 2, 4, 8"),
        (["--only", "EEGNet", "--n", "8"], "this combination"),
        (["--eeg", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_a_part_without_stored_scores_is_an_error(tmp_path, capsys, part, message):
    with pytest.raises(SystemExit):
        reproduce.main(["arithmetic", "--out", str(tmp_path / "out"), *part])
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_the_simulations_do_not_share_encoders(tmp_path, monkeypatch):
    """Their encoders have the same names, so they need different folders."""
    asked = []
    for name in ("control", "nights"):
        monkeypatch.setattr(simulated, name, lambda seed, encoders: asked.append(encoders))
        reproduce.ask_for(name, tmp_path, None)(0)
    assert len(set(asked)) == 2


def test_a_missing_encoder_needs_recordings(tmp_path):
    with pytest.raises(SystemExit, match="--eeg"):
        pretrained("MAE", tmp_path, None)


@pytest.mark.parametrize("name", NAMES)
def test_significant_differences_from_training_from_scratch_match_the_pages(name):
    tests = stored_scores.tests_against(result_scores(name), "from scratch")
    encoders = tests["method"].str.contains("PARS|MAE")
    gains = tests[encoders & tests[DIFFERENCE].str.startswith("+")]
    significant = gains.loc[gains[P_HOLM].astype(float) < 0.05, ["method", "labeled subjects"]]
    expected = {"control": [["SpectralMAE", "4"]], "hands": [["PARS without overlap", "4"]]}
    assert significant.to_numpy().tolist() == expected.get(name, [])


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_the_chance_level_and_alt_texts(name):
    chance = RESULTS[name].chance
    page = (DOCS / "results" / f"{name}.rst").read_text(encoding="utf-8")
    figures = re.findall(r"\.\. plot::\n((?: {3}.*\n|\n)+)", page)
    assert len(figures) == 2
    for text in figures:
        options, code = text.split("\n\n", 1)
        assert len(re.search(r":alt: ((?:.|\n)+?)\n {3}:", options)[1]) > 60
        exec(re.sub(r"(?m)^ {3}", "", code), {})
        for ax in plt.gcf().axes:
            assert [chance] * 2 in [list(np.atleast_1d(line.get_ydata())) for line in ax.lines]


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_method_has_a_cost(name):
    costs = pd.read_csv(DOCS / "measured" / "costs.csv", comment="#")
    scores = pd.read_csv(DOCS / "measured" / f"{name}.csv", comment="#")
    keys = ["method", "n_train_subjects"]
    counted = costs.loc[costs["result"] == name, keys].apply(tuple, axis=1)
    assert set(counted) == set(scores[keys].apply(tuple, axis=1))


def test_two_costs_are_those_of_today(tmp_path):
    _stand_in("SpectralMAE", tmp_path)
    question = real_recordings.arithmetic(tmp_path, None)
    methods = {name: question.classifier(name, 2) for name in ("from scratch", "SpectralMAE")}
    today = cost_table(methods, _first_subjects(question, 2)).set_index("method")
    stored = pd.read_csv(DOCS / "measured" / "costs.csv", comment="#")
    stored = stored[(stored["result"] == "arithmetic") & (stored["n_train_subjects"] == 2)]
    stored = stored.set_index("method").loc[today.index, today.columns]
    np.testing.assert_allclose(today.astype(float), stored.astype(float), rtol=1e-5)


def test_slope_and_curvature_are_decoded_best_from_pars():
    """R2 is higher than from tokens and a random encoder by more than 0.02, as on the page."""
    pars = "pars-eegmmidb"
    for audits in map(read_audits, ("imagery", "arithmetic", "both")):
        values = audits[audits["encoder"] == pars].pivot(
            index="property", columns="features", values="value"
        )
        gain = values["encoder"] - values[["tokens", "random encoder"]].max(axis=1)
        assert set(gain.index[gain > 0.02]) == {"slope", "curvature"}
    labels = [label.get_text() for label in audit_map("imagery").get_xticklabels()]
    assert labels == ["small", "noise", "spectral-eegmmidb", pars, "tokens", "random encoder"]


def test_a_stored_audit_is_reproduced():
    measured = audit_encoder("small", mental_arithmetic())
    stored = read_audits("arithmetic").query("encoder == 'small'")
    measured = measured[
        measured["property"].isin(stored["property"])
    ]  # the properties of subjects are newer
    assert measured["property"].tolist() == stored["property"].tolist()
    np.testing.assert_allclose(measured["value"], stored["value"], atol=0.01)


def test_a_stored_table_has_its_provenance(tmp_path):
    file = tmp_path / "table.csv"
    numbers = pd.DataFrame({"method": ["a", "b"], "value": [0.5, 0.25]})
    store_table(numbers, file, "python table.py", "one thread", index=False)
    command, origin = provenance([file])
    assert command == "python table.py"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d, \S.*, one thread", origin)
    pd.testing.assert_frame_equal(pd.read_csv(file, comment="#"), numbers)


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


def test_stored_shams_of_sleep_support_the_page():
    significant = set()
    for question in ("deep", "wake"):
        tests = sham_tests(question)
        significant |= {
            (question, row["labeled subjects"], row["pretext task"])
            for row in tests[tests[P_HOLM].astype(float) < 0.05].to_dict("records")
        }
        scores = sleep_scores(question)
        for task in SHAM_TASKS:
            shams = scores[scores["method"] == f"{task}, sham"]
            assert shams["pretraining_seed"].nunique() == 3
    assert significant == {("deep", "4", "PARS"), ("deep", "8", "PARS")}
    for task in SHAM_TASKS:
        interval = stored(f"sleep/deep | 4 | {task}, sham - random encoder | interval")
        low, high = map(float, interval.split(" to "))
        assert low < 0 < high


def test_stored_scores_of_sleep_support_the_page():
    """In the first lines of the page, of the summary and of the README."""
    tests = sleep_tests("deep").set_index(["labeled subjects", "PARS compared with"])
    p = tests[P_HOLM].astype(float)
    assert tests.loc[("4", "random encoder"), HIGHER] == "12 of 12"
    assert p["4", "random encoder"] < 0.05
    assert (
        p.loc[[("4", each) for each in ("MAE", "MP3", "DropPos", "hand-crafted features")]].min()
        > 0.05
    )
    for n in (4, 8):
        scores = sleep_scores("deep")
        means = scores[scores["n_train_subjects"] == n].groupby("method")["value"].mean()
        assert means.idxmax() == "PARS"
        assert (n == 8) or means["MP3"] > means["MAE"] > means["DropPos"]
    networks = sleep_tests("networks_deep").set_index(
        ["labeled subjects", "PARS, head trained compared with"]
    )
    p = networks[P_HOLM].astype(float)
    assert max(p["4", "random encoder, head trained"], p["4", "MAE, head trained"]) < 0.05
    assert min(p["4", "from scratch"], p["4", "PARS, fine-tuned"]) > 0.05
    assert networks.loc[("4", "from scratch"), HIGHER] == "10 of 12"
    losses = loss_table().set_index(["method", "pairs"])
    assert (
        losses.loc[("PARS", "all"), "unchanged"][:4]
        == losses.loc[("PARS", "without shared samples"), "unchanged"][:4]
    )
    assert losses.loc[("PARS without overlap", "all"), "high-pass filtered at 4 Hz"].startswith(
        "1.00"
    )


def test_stored_scores_of_waking_eeg_support_the_pages():
    """Order and significance with four labeled subjects, in the summary and on the page."""
    for task in TASKS:
        scores = few_labels_scores(task)
        assert scores["seed"].nunique() == 20
        means = scores[scores["centered"] & scores["n_train_subjects"].eq(4)]
        means = means.groupby("method")["value"].mean()
        assert means.idxmax() == "feature ensemble"
        assert means[["small", "hand-crafted features"]].min() > max(
            means[["log band power", "tangent space", "random encoder"]]
        )
        assert 0.01 <= means["small"] - means["noise"] < 0.03
        tests = against_baselines(task, centered=True)
        tests = tests.set_index(["labeled subjects", "small compared with"])
        assert float(tests.loc[("4", "hand-crafted features"), P_HOLM]) > 0.05
        assert float(fine_tuned(task).set_index("labeled subjects").loc["4", P_HOLM]) < 0.001
    table = summary(4).replace("", np.nan).set_index(["Task", "Used as"]).astype(float)
    of_waking = table[~table.index.get_level_values(0).str.contains("Stage")]
    features = of_waking.xs("features", level=1)
    assert (features[["``small``", "hand-crafted features"]].min(axis=1) > features["PARS"]).all()
    assert (of_waking["``small``"] > of_waking["no pretraining"]).all()


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


def test_stored_scores_of_larger_encoders_support_the_page():
    tasks = {task: task for task in TASKS}
    both = pd.concat(
        larger(tasks, centered=centered).assign(centered=centered) for centered in (False, True)
    )
    difference = both[DIFFERENCE].str.split().str[0].astype(float)
    detectable, p = both[DETECTABLE].astype(float), both[P_HOLM].astype(float)
    is_pars = both["encoder compared with small"].str.startswith("PARS")
    assert difference.max() == 0.023
    assert detectable[~is_pars].agg(["min", "max"]).tolist() == [0.006, 0.033]
    [gain] = both.index[(p < 0.05) & ~is_pars & both["centered"]]
    row = both[both["centered"]].loc[gain]
    assert (row["task"], row["encoder compared with small"]) == ("imagery", "small, longer")
    assert row[DIFFERENCE].startswith("+0.009")
    assert not ((p < 0.05) & ~is_pars & ~both["centered"]).any()
    behind = -difference[is_pars & both["centered"]]
    assert behind.round(2).agg(["min", "max"]).tolist() == [0.05, 0.12]


def test_the_page_has_the_stored_error_rates():
    table = by_design().set_index("subjects x draws x pretraining seeds")
    stored = rates()
    part = stored[stored["measured"] & stored["design"].eq("20 x 5")]["two_way"]
    assert table.loc["20 x 5", "subjects x draws"] == f"{part.min():.3f} to {part.max():.3f}"
    assert table.loc["12 x 1, cross-validation", "subjects x draws"] == ""
    assert "rest only" in by_variances()["variances"].tolist()


def test_the_test_of_a_study_keeps_its_error_rate():
    """Except with the two effects that it cannot estimate."""
    stored = study_rates()
    has_level = ~stored["variances"].str.contains("unlabeled|correlated")
    assert stored[has_level & stored["n_subjects"].ge(12)]["folds"].max() <= 0.06
    assert stored[stored["n_subjects"].eq(6)]["folds"].max() < 0.045
    powers = study_rates_by_subjects().set_index("number of subjects")
    assert powers.loc[["12", "16", "24"], "power, sleep"].tolist() == ["0.60", "0.79", "0.92"]
    in_groups = powers.loc[["12", "16", "24"], "power, sleep, labeled in groups"]
    assert in_groups.tolist() == ["0.40", "0.56", "0.74"]
    unlabeled = study_rates_by_variances().set_index("variances")
    unlabeled = unlabeled["error rate, crossed_mean_of_folds"]
    assert unlabeled["sleep, unlabeled 0.1 of subjects"] == "0.049 to 0.161"


def test_stored_control_analyses_support_the_page():
    """On left vs. right fist, improvements depend on low-frequency, frontal activity."""
    keys = ["n_train_subjects", "control", "method"]
    means = control_scores("hands").groupby(keys)["value"].mean().loc[16]
    assert means["none"]["low-frequency amplitude"] > means["none"]["small"]
    assert abs(means[["slow", "eyes"]].xs("low-frequency amplitude", level=1) - 0.5).max() < 0.01
    simple = means["slow"][["log band power", "tangent space 8-30 Hz"]].max()
    assert means["slow"][[*ENCODERS]].max() < simple
    table = gains("hands").set_index(["n_train_subjects", "method", "control"]).loc[16]
    assert (
        table.loc["small", "without"][["slow", "eyes"]].max() < table.loc["small", "gain"].min() / 2
    )
    assert table.loc[("pars-eegmmidb", "eyes"), "without_low"] < 0


def test_stored_scores_of_pretrainings_support_the_page():
    """PARS does not require EEG, and does not improve on features and spectra."""
    table = pretraining_table("hands", 16, centered=False).set_index("pretraining")
    gain = table[difference_from(RANDOM)].str.split().str[0].replace("", "nan").astype(float)
    p = pd.to_numeric(table[P_HOLM])
    alone = "PARS without overlap"
    made = [alone, f"{alone}, random phases", f"{alone}, synthetic noise", "slope"]
    assert p[made].max() < 0.05 < p[f"{alone}, detrended"]
    assert gain[f"{alone}, synthetic noise"] > 2 * gain[alone]
    for task in TASKS:
        scores = long_scores(stored_pretraining.FOLDER / f"{task}.csv")
        means = scores.groupby(["method", "n_train_subjects", "centered"])["value"].mean()
        added = means["features, spectra and PARS"] - means["features and spectra"]
        assert added.abs().max() < 0.0035


def test_stored_scores_of_fine_tuned_pretrainings_support_the_page():
    def p_values(task: str) -> pd.Series:
        """Return p-values in the order of the differences."""
        table = pretraining_table(f"{task}_fine_tuned", 4, centered=False, against=SCRATCH)
        table = table.set_index("pretraining").drop(index=SCRATCH)
        return table.sort_values(difference_from(SCRATCH))[P_HOLM].astype(float)

    hands = p_values("hands")
    assert hands.index.tolist() == ["PARS without overlap", "features and spectra", "slope"]
    assert hands.max() < 0.001
    assert p_values("arithmetic").min() > 0.05


@pytest.mark.parametrize("name", ["hands", "imagery"])
def test_stored_scores_of_networks_support_the_page(name):
    """EEGNet scores above scratch, and at chance level on the control signals of fists."""
    table = networks_table(name).set_index("method")
    eegnet, shallow = (table.loc[f"{net}, 15 epochs"] for net in ("EEGNet", "ShallowFBCSPNet"))
    assert eegnet[DIFFERENCE_FROM_SCRATCH].startswith("+")
    assert float(eegnet[P_HOLM]) < 0.05 < float(shallow[P_HOLM])
    if name == "imagery":
        return
    assert eegnet.filter(like="labeled subjects, ").astype(float).between(0.47, 0.53).all()
    scores = network_scores("hands")
    n_draws = scores.groupby("control")["seed"].nunique().to_dict()
    assert n_draws == {"none": 8, "eyes": 4, "slow": 4}


def test_stored_settings_of_pars_support_the_page():
    """Adjacent patches, an MLP, 20 patches and no positions score lower; 30 and 0.4 do not."""
    table = ablation_table()
    keys = table["number of patches"] + " " + table["position mask ratio"] + " " + table["decoder"]
    p = pd.to_numeric(table.set_index(keys)[P_HOLM])
    worse = table.set_index(keys)[DIFFERENCE_FROM_PAPER].str.startswith("-")
    significant = {"30, adjacent 0.8 attention", "40 0.8 MLP", "20 0.8 attention"}
    significant |= {f"{n} 1 attention" for n in (20, 30, 40)}
    assert set(p.index[p < 0.05]) == significant
    assert worse[list(significant)].all()
    assert p[["30 0.4 attention", "30 0.8 attention", "40 0.4 attention"]].min() > 0.5


def test_erasing_subject_information_helps_only_with_test_windows():
    """As on the page; the sham does not change the scores."""
    table = pd.read_csv(stored_subject_information.FILE, comment="#")
    keys = ["features", "property", "measure", "erased"]
    plain, sham = (table[table["control"] == name].set_index(keys) for name in ("none", "sham"))
    np.testing.assert_allclose(sham["value"], plain["value"], atol=0.01)
    scores = plain["value"].unstack("erased").xs(("class", "balanced accuracy"), level=[1, 2])
    assert (scores["training subjects"] - scores["nothing"] < 0.01).all()
    assert (scores["all subjects"] - scores["nothing"] > 0.01).sum() == 6
    shares = plain.xs("explained variance", level="measure")
    cosines = plain.xs("cosine", level="measure")
    for statistics in (shares, cosines):
        assert (statistics["value"] > statistics["null_high"]).all()
    assert plain.xs(("subject", "balanced accuracy", "training subjects"), level=[1, 2, 3])[
        "value"
    ].to_numpy() == pytest.approx(1 / 24, abs=1e-3)


def test_a_stored_audit_of_subject_information_is_reproduced():
    X, y, subjects = as_sklearn(mental_arithmetic())
    features = {"hand-crafted features": ChannelFeatures().fit_transform(X)}
    measured = audit_subjects(features, y, subjects, X.table["recording"].to_numpy())
    stored = pd.read_csv(stored_subject_information.FILE, comment="#")
    stored = stored[(stored["control"] == "none") & (stored["features"] == "hand-crafted features")]
    columns = ["value", "null", "p"]
    np.testing.assert_allclose(measured[columns], stored[columns], atol=2e-3)


def test_stored_scores_of_new_subjects_support_the_page():
    gains = {}
    for task in TITLES:
        means = new_subject_scores(task).mean(axis=1)
        shown = [features for features in FEATURES if features in means]
        assert new_subject_table(task).columns.tolist() == ["data of the new subject", *shown]
        nothing = means.xs(("nothing", 0), level=("method", "n_labeled"))
        for method in means.index.unique("method"):
            of_method = means.xs(method, level="method")
            gains[task, method] = of_method.unstack("n_labeled").sub(nothing, axis=0)
        alone, prior = gains[task, "own only"], gains[task, "prior"]
        assert (prior - alone).min(axis=None) > -0.01
        best = np.maximum(alone, 0)  # labels of the new subject only, or no data of the new subject
        assert (prior - best).min(axis=None) > -0.02
    assert gains["sleep", "prior, centered"].min(axis=None).round(2) == -0.04
    for task, low, high in (("arithmetic", 0.02, 0.07), ("sleep", -0.04, -0.03)):
        t3a = gains[task, "T3A"].round(2)
        assert (t3a.min(axis=None), t3a.max(axis=None)) == (low, high)


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


def test_stored_detection_thresholds_support_the_page():
    scores = smallest().groupby(["method", "frequency"]).mean().unstack()
    tasks = scores.loc[sorted({*PRETEXT_TASKS} & {*scores.index})]  # other tests may add one
    assert len(tasks) == 11
    assert (tasks.idxmax()[[3.3, 6.3, 10.3]] == "mae").all()
    high = [20.3, 38.3]
    assert (tasks[high] > scores.loc["random encoder", high]).all(axis=None)
    assert (tasks.idxmin()[high] == "mp3").all()
    assert (scores.loc["small"] < 2.8).all()
    assert scores.loc["noise"].max() < 3.2
    assert set(scores.index[(scores < 3).all(axis=1)]) == {"hand-crafted features", "small"}
    for name in ("log band power", "random encoder"):
        assert (scores.loc[name] > 3)[[3.3, 10.3]].all()
        assert (scores.loc[name] > 3).sum() == 2
    assert (scores[10.3] == scores.max(axis=1)).sum() > len(scores) / 2
    for name in ("features", "spectral"):
        assert scores.loc[name, 10.3] < scores.loc["pars", 10.3]
        assert scores.loc[name, 20.3] > scores.loc["pars", 20.3]
    assert (scores[38.3] == scores.min(axis=1)).all()
    # Thresholds are interpolated, and infinite if the largest amplitude is not detected.
    table = pd.read_csv(stored_rhythms.FILE, comment="#")
    rows = table[(table["method"] == "log band power") & (table["frequency"] == 10.3)]
    below, above = rows[rows["value"] < 0.75].iloc[-1], rows[rows["value"] >= 0.75].iloc[0]
    part = (0.75 - below["value"]) / (above["value"] - below["value"])
    expected = 1e6 * below["amplitude"] * 2**part
    assert smallest()["log band power", 10.3, 0] == pytest.approx(expected)


def test_a_planted_sine_has_its_amplitude_in_half_of_the_windows():
    X, _, subjects = as_sklearn(mental_arithmetic(["Subject00", "Subject01"]))
    added = np.stack(list(planted(X, 10.0, 2e-6))) - np.stack(list(X))
    assert added.std() == pytest.approx(2e-6 / 2**0.5, rel=1e-3)
    assert np.abs(np.fft.rfft(added)).argmax(axis=-1).tolist() == [[100] * 8] * 24
    np.testing.assert_allclose(added[:, 0], added[:, 7], atol=1e-10)
    assert np.ptp(added[:, 0, 0]) > 3e-6  # phases differ
    has_rhythm = halves(subjects, np.random.default_rng(0))
    assert [has_rhythm[subjects == name].sum() for name in ("Subject00", "Subject01")] == [6, 6]


def test_scores_are_equal_to_those_of_neuroatlas_bench():
    stored_values = pd.read_csv(NEUROATLAS / "equality.csv", comment="#")
    assert stored_values["n_folds"].eq(24).all()
    counts = stored_values[["n_different_splits", "n_different_c"]]
    assert counts.eq(0).all(axis=None)
    assert stored_values["largest_difference"].max() < 1e-6


def test_the_page_of_neuroatlas_states_what_is_significant():
    for band in ("4 to 40 Hz", "0.5 to 45 Hz"):
        assert float(neuroatlas_number(f"{band} mean", "small - random encoder", "p_holm")) < 0.05
    for tokens, reference in product(("mean", "concatenated"), ("PARS, sham", "random encoder")):
        difference = f"PARS - {reference}"
        assert float(neuroatlas_number(f"4 to 40 Hz {tokens}", difference, "p_holm")) > 0.05
    scores = neuroatlas_scores()
    pretrained = scores[scores["method"].str.startswith("PARS")]
    counts = pretrained.groupby(["control", "band", "tokens", "method", "subject"])
    n_seeds = counts["pretraining_seed"].nunique()
    assert n_seeds["none"].eq(3).all()
    assert n_seeds["added rhythm"].eq(2).all()
    assert scores["value"].notna().all()


def test_the_page_of_neuroatlas_states_which_pretrainings_learned():
    losses = pd.read_csv(NEUROATLAS / "losses.csv", comment="#")
    held_out = losses.groupby("method")["held_out_loss"]
    assert held_out.get_group("PARS, sham").round(3).tolist() == [1.018] * 9
    pars = held_out.get_group("PARS").sort_values()
    assert pars.round(2).iloc[[0, 7, 8]].tolist() == [0.86, 0.95, 1.02]
    is_earlier = losses["method"].str.contains("4 s")
    assert losses[is_earlier]["relative_loss"].min() > 0.95
