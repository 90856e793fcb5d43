"""The pages of the results: their scores, figures and the command that measures them again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from make_encoder import command_of

from braindecode_pars.evaluation.random_effects import crossed_mean
from braindecode_pars.runs import RunConfig

DOCS = Path(__file__).parents[1] / "docs"
#: Tasks in the order of the pages.
TASKS = ("arithmetic", "imagery", "hands")
NAMES = ("control", "nights", "hands", "arithmetic", "imagery")


@pytest.fixture(autouse=True)
def own_modules(monkeypatch):
    for folder in ("_ext", "experiments"):
        monkeypatch.syspath_prepend(DOCS / folder)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_a_page_is_known(name, monkeypatch, tmp_path):
    import reproduce

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


def test_encoders_are_pretrained_as_the_page_says():
    from real_recordings import PRETRAINING, TASKS

    page = (DOCS / "results" / "arithmetic.rst").read_text(encoding="utf-8")
    (written,) = re.findall(r"   (braindecode-pars pretrain (?:.*\\\n)*.*)\n", page)
    words = shlex.split(written.replace("\\\n", " "))
    config = RunConfig(**PRETRAINING, **TASKS["SpectralMAE"])
    assert sorted(" ".join(words).split(" --")) == sorted(command_of(config).split(" --"))


def test_stored_scores_are_computed_again(tmp_path, capsys):
    """With one of the methods that take a second."""
    import reproduce

    part = ["--only", "band power", "--n", "2", "--seeds", "1"]
    reproduce.main(["arithmetic", "--out", str(tmp_path), *part])
    assert "12 of 12 scores of subjects are equal" in capsys.readouterr().out


def test_a_difference_is_named():
    import reproduce

    same = dict(method="a", n_train_subjects=2, seed=0)
    stored = pd.DataFrame([dict(same, subject=str(i), value=0.5) for i in range(4)])
    new = stored.assign(value=[0.5, 0.5, 0.5, 0.7])
    text = reproduce.compare(stored, new)
    assert "3 of 4 scores of subjects are equal" in text
    assert "Largest difference of one: 0.2000; of a mean: 0.0500" in text
    with pytest.raises(ValueError, match="1 scores"):
        reproduce.compare(stored, new[:3])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (["--only", "band power", "PASR"], "method PASR; there are band power, .*without overlap"),
        (["--n", "2", "3"], "n_train_subjects 3; there are 2, 4, 8"),
        (["--only", "EEGNet", "--n", "8"], "this combination"),
        (["--eeg", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_a_part_that_is_not_stored_is_refused(tmp_path, capsys, part, message):
    import reproduce

    with pytest.raises(SystemExit):
        reproduce.main(["arithmetic", "--out", str(tmp_path / "out"), *part])
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_the_simulations_do_not_share_encoders(tmp_path, monkeypatch):
    """Their encoders have the same names: one of another simulation would be taken."""
    import reproduce
    import simulated

    asked = []
    for name in ("control", "nights"):
        monkeypatch.setattr(simulated, name, lambda seed, encoders: asked.append(encoders))
        reproduce.ask_for(name, tmp_path, None)(0)
    assert len(set(asked)) == 2


def test_a_missing_encoder_needs_recordings(tmp_path):
    from real_recordings import pretrained

    with pytest.raises(SystemExit, match="--eeg"):
        pretrained("MAE", tmp_path, None)


def test_the_table_in_short_says_what_the_tests_say(monkeypatch):
    import stored_scores

    rng = np.random.default_rng(0)
    rows = [
        dict(method=method, n_train_subjects=4, subject=subject, value=value)
        for subject, noise in enumerate(rng.normal(0, 0.01, 12))
        for method, value in [
            ("scratch", 0.5),
            ("band power", 0.55),
            ("tangent space", 0.51),
            ("helps", 0.7 + noise),
            ("does not", 0.5 + noise),
        ]
    ]
    scores = pd.DataFrame(rows).assign(protocol="p", dataset="d", seed=0, metric="kappa")
    monkeypatch.setattr(stored_scores, "result_scores", lambda name: scores)
    helps, does_not = (stored_scores.in_short("any", m, 4) for m in ("helps", "does not"))
    assert helps["best simple baseline"] == "0.55 ± 0.00 (band power)"
    assert helps["scratch"] == "0.50 ± 0.00"
    assert "ahead in 12 of 12" in helps["difference to scratch"]
    assert re.fullmatch(r"significant, p = \S+", helps["test"])
    assert re.fullmatch(r"not significant; \.\d{3} would be detectable", does_not["test"])


@pytest.mark.parametrize("name", NAMES)
def test_the_significant_gains_over_scratch_are_those_of_the_pages(name):
    from stored_scores import differences, gain, result_scores

    tests = differences(result_scores(name), "scratch")
    encoders = tests["method"].str.contains("PARS|MAE")
    gains = tests[encoders & tests["difference"].str.startswith("+")]
    found = gains.loc[gains["p"].astype(float) < 0.05, ["method", "labelled subjects"]]
    expected = {"control": [["SpectralMAE", "4"]], "hands": [["PARS without overlap", "4"]]}
    assert found.to_numpy().tolist() == expected.get(name, [])
    # The first row of an encoder, as the text of a page shows it.
    row = tests[encoders].iloc[0].str.replace("0.", ".", regex=False)
    interval = row["difference"].replace("(", "(95 %: ").removesuffix(")")
    shown = gain(name, row["method"], int(row["labelled subjects"]))
    assert shown == f"{interval}; p = {row['p']}; detectable {row['detectable']})"


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_the_chance_level_and_alt_texts(name):
    import matplotlib.pyplot as plt
    from stored_scores import RESULTS

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
        plt.close("all")


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_method_has_a_cost(name):
    costs = pd.read_csv(DOCS / "measured" / "costs.csv", comment="#")
    scores = pd.read_csv(DOCS / "measured" / f"{name}.csv", comment="#")
    keys = ["method", "n_train_subjects"]
    counted = costs.loc[costs["result"] == name, keys].apply(tuple, axis=1)
    assert set(counted) == set(scores[keys].apply(tuple, axis=1))


def test_two_costs_are_those_of_today(tmp_path):
    import real_recordings
    from costs import _first_subjects, _stand_in

    from braindecode_pars.evaluation import cost_table

    _stand_in("SpectralMAE", tmp_path)
    question = real_recordings.arithmetic(tmp_path, None)
    methods = {name: question.classifier(name, 2) for name in ("scratch", "SpectralMAE")}
    today = cost_table(methods, _first_subjects(question, 2)).set_index("method")
    stored = pd.read_csv(DOCS / "measured" / "costs.csv", comment="#")
    stored = stored[(stored["result"] == "arithmetic") & (stored["n_train_subjects"] == 2)]
    stored = stored.set_index("method").loc[today.index, today.columns]
    np.testing.assert_allclose(today.astype(float), stored.astype(float), rtol=1e-5)


def test_the_page_on_audits_says_what_is_stored():
    import matplotlib.pyplot as plt
    from stored_audits import audit_map, read_audits

    page = (DOCS / "results" / "audits.rst").read_text(encoding="utf-8")
    imagery, arithmetic, both = map(read_audits, ("imagery", "arithmetic", "both"))

    def score(audits, encoder, name, features="encoder"):
        is_asked = (audits["encoder"] == encoder) & (audits["property"] == name)
        value = audits.loc[is_asked & (audits["features"] == features), "value"].item()
        return f"{value:.2f}".removeprefix("0")

    pars = "pars-eegmmidb"
    for sentence in (
        f"with an R2 of {score(imagery, pars, 'slope')} (random encoder "
        f"{score(imagery, pars, 'slope', 'random encoder')}, ``spectral-eegmmidb`` "
        f"{score(imagery, 'spectral-eegmmidb', 'slope')})",
        f"``{pars}`` has {score(both, pars, 'slope')} in windows of 3 s and "
        f"{score(arithmetic, pars, 'slope')} in windows of 10 s, tokens "
        f"{score(both, pars, 'slope', 'tokens')} and .00.",
        f"``small`` with {score(imagery, 'small', 'subject')} and ``spectral-eegmmidb`` with "
        f"{score(imagery, 'spectral-eegmmidb', 'subject')} among 20 people",
    ):
        assert sentence in " ".join(page.split())
    # PARS holds slope and curvature better than both others, and nothing else by more than .02.
    for audits in (imagery, arithmetic, both):
        own = audits[audits["encoder"] == pars].pivot(
            index="property", columns="features", values="value"
        )
        gain = own["encoder"] - own[["tokens", "random encoder"]].max(axis=1)
        assert set(gain.index[gain > 0.02]) == {"slope", "curvature"}
    labels = [label.get_text() for label in audit_map("imagery").get_xticklabels()]
    plt.close("all")
    assert labels == ["small", "noise", "spectral-eegmmidb", pars, "tokens", "random encoder"]


@pytest.mark.slow  # ten seconds
def test_a_stored_audit_is_measured_again():
    from stored_audits import read_audits

    from braindecode_pars.datasets import mental_arithmetic
    from braindecode_pars.evaluation import audit_encoder

    found = audit_encoder("small", mental_arithmetic())
    stored = read_audits("arithmetic").query("encoder == 'small'")
    assert found["property"].tolist() == stored["property"].tolist()
    np.testing.assert_allclose(found["value"], stored["value"], atol=0.01)


def test_a_stored_table_tells_its_origin(tmp_path):
    from stored_scores import provenance
    from stored_table import store_table

    file = tmp_path / "table.csv"
    numbers = pd.DataFrame({"method": ["a", "b"], "value": [0.5, 0.25]})
    store_table(numbers, file, "python table.py", "one thread", index=False)
    command, origin = provenance([file])
    assert command == "python table.py"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d, \S.*, one thread", origin)
    pd.testing.assert_frame_equal(pd.read_csv(file, comment="#"), numbers)


def test_the_readme_has_the_stored_scores_of_sleep():
    from stored_sleep import sleep_scores

    means = {}
    for question, n, networks in (
        ("deep", 1, "networks_deep"),
        ("deep", 4, "networks_deep"),
        ("wake", 1, "networks_wake"),
    ):
        scores = pd.concat([sleep_scores(question), sleep_scores(networks)])
        own = scores[scores["n_train_subjects"] == n]
        means[question, n] = own.groupby("method")["value"].mean()
    lines = (DOCS.parent / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| balanced accuracy"))
    shown = {}
    for line in lines[start + 2 : start + 9]:
        name, *cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        shown[name] = [float(cell) for cell in cells]
    named = ("scratch", "untrained", "MAE", "MP3", "DropPos", "PARS", "classical features")
    assert [*shown] == [*named]
    for name in named:
        assert shown[name] == [round(means[place][name], 2) for place in means], name


def test_what_is_said_of_sleep_is_in_the_stored_scores():
    """In the first lines of the page, and the limits of the README."""
    from stored_sleep import loss_table, sleep_scores, sleep_tests

    tests = sleep_tests("deep").set_index(["people", "against"])
    page = _text(DOCS / "results" / "sleep.rst")
    low, high = re.findall(r"[+-]\d\.\d+", tests.loc[("4", "untrained"), "difference (95 %)"])[1:]
    gain = tests.loc[("4", "untrained"), "difference (95 %)"][1:6]
    assert f"by {gain} ({low[1:]} to {high[1:]}), in all twelve people" in page
    assert tests.loc[("4", "untrained"), "ahead in"] == "12 of 12"
    assert float(tests.loc[("4", "untrained"), "p"]) < 0.05
    leads = [tests.loc[("4", other), "difference (95 %)"][1:6] for other in ("MP3", "DropPos")]
    assert f"by {leads[0]} to {leads[1]}" in page
    assert min(float(tests.loc[("4", each), "p"]) for each in ("MAE", "MP3", "DropPos")) > 0.05
    for n in (4, 8):
        scores = sleep_scores("deep")
        means = scores[scores["n_train_subjects"] == n].groupby("method")["value"].mean()
        assert means.idxmax() == "PARS"
    networks = sleep_tests("networks_deep").set_index(["people", "against"])
    shown = networks["difference (95 %)"]
    p = networks["p"].astype(float)
    untrained, mae, scratch = (
        ("4", name) for name in ("untrained, frozen", "MAE, frozen", "scratch")
    )
    assert f"by {shown[untrained][1:6]} and MAE by {shown[mae][1:6]}" in page
    assert max(p[untrained], p[mae]) < 0.05 < min(p[scratch], p["4", "PARS, all weights"])
    low, high = re.findall(r"[+-]\d\.\d+", shown[scratch])[1:]
    assert f"over scratch is {shown[scratch][1:6]} ({low[1:]} to {high[1:]}), in ten of" in page
    assert networks.loc[scratch, "ahead in"] == "10 of 12"
    losses = loss_table().set_index(["method", "pairs"])
    assert losses.loc[("PARS", "all"), "as it is"].startswith("0.84")
    assert losses.loc[("PARS", "apart"), "as it is"].startswith("0.84")
    assert losses.loc[("PARS", "all"), "phase"].startswith("0.97")
    assert losses.loc[("PARS without overlap", "all"), "as it is"].startswith("0.95")
    assert losses.loc[("PARS without overlap", "all"), "slow"].startswith("1.00")


def test_the_page_on_few_labels_begins_with_the_stored_scores():
    """Centred means with four people, and the same number of draws for each question."""
    from stored_few_labels import few_labels_scores

    def shown(task: str, *methods: str) -> list[str]:
        scores = few_labels_scores(task)
        assert scores["seed"].nunique() == 20
        scores = scores[scores["centred"] & scores["n_train_subjects"].eq(4)]
        means = scores.groupby("method")["value"].mean()
        return [f"{means[method]:.3f}".removeprefix("0") for method in methods]

    page = _text(DOCS / "results" / "few_labels.rst")
    methods = ("small", "classical features", "tangent space", "band power")
    small, *others = shown("arithmetic", *methods)
    assert f"{small} on arithmetic (classical features {others[0]}, tangent space" in page
    assert f"tangent space {others[1]}, band power {others[2]})" in page
    for task, name in (("imagery", "imagery"), ("hands", "fists")):
        small, *others = shown(task, *methods)
        assert f"{small} on {name} ({', '.join(others)})" in page
    votes = [shown(task, "few labels")[0] for task in TASKS]
    assert "the vote has {}, {} and {}.".format(*votes) in page


def test_what_the_page_says_of_larger_encoders_is_in_the_stored_scores():
    from stored_few_labels import larger

    tasks = {task: task for task in TASKS}
    both = pd.concat(
        larger(tasks, centred=centred).assign(centred=centred) for centred in (False, True)
    )
    difference = both["difference (95 %)"].str.split().str[0].astype(float)
    detectable, p = both["detectable"].astype(float), both["p"].astype(float)
    is_pars = both["encoder"].str.startswith("PARS")
    page = _text(DOCS / "results" / "few_labels.rst")
    found = [difference.max(), detectable[~is_pars].min(), detectable[~is_pars].max()]
    told = "gains more than {}, where differences of {} to {} could be found"
    assert told.format(*(f"{number:.3f}".removeprefix("0") for number in found)) in page
    [gain] = both.index[(p < 0.05) & ~is_pars & both["centred"]]
    row = both[both["centred"]].loc[gain]
    assert (row["question"], row["encoder"]) == ("imagery", "small, longer")
    assert f"gain is {row['difference (95 %)'][2:6]}, of the longer training on imagery" in page
    assert not ((p < 0.05) & ~is_pars & ~both["centred"]).any()
    behind = -difference[is_pars & both["centred"]]
    low, high = (f"{number:.2f}".removeprefix("0") for number in (behind.min(), behind.max()))
    assert f"by {low} to {high} when centred" in page


def test_gains_of_fine_tuned_networks_are_the_stored_ones():
    """Those of the first and of the later draws on the pages."""
    from stored_scores import differences, result_scores

    def gain(task: str, method: str, seeds: range = range(20)) -> tuple[str, str, str, str]:
        scores = result_scores(task)
        scores = scores[scores["n_train_subjects"].eq(4) & scores["seed"].isin(seeds)]
        row = differences(scores, "scratch").set_index("method").loc[method]
        assert row["draws"] == str(len(seeds))
        numbers = [*re.findall(r"[+-]?\d\.\d+", row["difference"]), row["detectable"]]
        return tuple(re.sub(r"^\+?(-?)0", r"\1", number) for number in numbers)

    pars, spectral = "PARS without overlap", "SpectralMAE"
    index, hands, arithmetic, tests = (
        _text(DOCS / "results" / f"{page}.rst")
        for page in ("index", "hands", "arithmetic", "tests")
    )
    mean, low, high, _ = gain("hands", pars, range(3, 20))
    assert f"in the other seventeen is {mean} ({low} to {high})" in index
    assert f"without them the gain is {mean} ({low} to {high})" in hands
    early, low, high, _ = gain("arithmetic", spectral, range(3))
    late = gain("arithmetic", spectral, range(3, 20))[0]
    assert f"first three draws the gain is {early}, in the other seventeen {late}" in arithmetic
    all_draws = gain("arithmetic", spectral)
    told = f"was {early} ahead of scratch in three draws ({low} to {high}); in twenty it is "
    assert told + "{} ({} to {})".format(*all_draws) in tests


def test_a_table_says_how_many_draws_a_score_has():
    from stored_scores import averaged_seeds, result_scores

    assert averaged_seeds(result_scores("hands")) == (
        "; the 3 seeds of each are averaged first, 20 of scratch and PARS without overlap with 4 "
        "subjects"
    )
    assert averaged_seeds(result_scores("control")) == ""  # each seed has subjects of its own


def test_pretraining_seeds_are_one_method_and_the_tests_are_those_of_the_package():
    from stored_few_labels import against_baselines, few_labels_scores, means

    scores = few_labels_scores("imagery")
    own = scores[
        scores["centred"] & scores["method"].eq("small") & scores["n_train_subjects"].eq(4)
    ]
    assert sorted(own["pretraining_seed"].unique()) == [0, 1, 2]
    assert scores.loc[scores["method"] == "tangent space", "pretraining_seed"].isna().all()
    of_seeds = own.groupby("pretraining_seed")["value"].mean()
    table = means("imagery", centred=True).set_index("method")
    cell = table.loc["small (3 pretrainings)", "4 people"]
    assert cell.startswith(f"{own['value'].mean():.3f} ± ")
    assert cell.endswith(f"({of_seeds.min():.3f} to {of_seeds.max():.3f})")
    tests = against_baselines("imagery", centred=True)
    row = tests[tests["people"].eq("4") & tests["against"].eq("tangent space")].iloc[0]
    other = scores[scores["centred"] & scores["method"].eq("tangent space")]
    cells = ["subject", "seed"]
    other = other[other["n_train_subjects"] == 4].set_index(cells)["value"]
    differences = np.stack(
        [
            (part.set_index(cells)["value"] - other).unstack()
            for _, part in own.groupby("pretraining_seed")
        ],
        axis=2,
    )
    test = crossed_mean(differences)
    interval = f"({test.ci_low:+.3f} to {test.ci_high:+.3f})"
    assert row["difference (95 %)"] == f"{test.mean:+.3f} {interval}"
    assert row["ahead in"] == f"{(differences.mean(axis=(1, 2)) > 0).sum()} of 20"


def test_the_page_of_rates_has_those_that_were_stored():
    import matplotlib.pyplot as plt
    from stored_rates import by_design, by_variances, rates, rates_figure

    table = by_design().set_index("subjects x draws x pretrainings")
    stored = rates()
    part = stored[stored["measured"] & stored["design"].eq("20 x 5")]["two_way"]
    low, high = (f"{value:.3f}".removeprefix("0") for value in (part.min(), part.max()))
    assert table.loc["20 x 5", "subjects x draws"] == f"{low} to {high}"
    assert table.loc["12 x 1, cross-validation", "subjects x draws"] == ""
    assert "rest only" in by_variances()["variances"].tolist()
    n_measured = (stored["measured"] & stored["kind"].eq("crossed")).sum()
    left, right = rates_figure().axes
    assert [len(line.get_xdata()) for line in left.lines] == [n_measured] * 3
    n_dots = len(left.lines[0].get_xdata()) + len(right.lines[0].get_xdata())
    assert n_dots == stored["kind"].eq("crossed").sum()
    plt.close("all")


def _text(path: Path) -> str:
    return " ".join(path.read_text(encoding="utf-8").split())


def test_what_the_gains_need_is_what_was_measured():
    """In the first lines of the page on controls."""
    from stored_controls import control_scores, gains

    keys = ["n_train_subjects", "method", "control"]
    means = control_scores("hands").groupby(keys)["value"].mean()
    page = _text(DOCS / "results" / "controls.rst")
    table = gains("hands").set_index(["n_train_subjects", "method", "control"])

    def shown(method: str, control: str, column: str) -> str:
        row = table.loc[(16, method, control)]
        ends = (row[column], row[f"{column}_low"], row[f"{column}_high"])
        mean, low, high = (f"{value:.3f}".replace("0.", ".") for value in ends)
        return f"{mean} ({low} to {high})"

    assert f"random encoder by {shown('pars-eegmmidb', 'slow', 'gain')}" in page
    assert f"from 7 Hz up by {shown('pars-eegmmidb', 'slow', 'without')}" in page
    assert f"predict by {shown('pars-eegmmidb', 'eyes', 'without')}" in page
    assert f"has {means[16, 'slow voltages', 'none']:.3f}, ``small``".replace("0.", ".") in page
    small = table.loc[(16, "small")]
    left = (small.loc["slow", "gain"], small.loc["slow", "without"], small.loc["eyes", "without"])
    whole, slow, eyes = (f"{value:.3f}".removeprefix("0") for value in left)
    assert f"gain of ``small``, {whole}, a third is left, {slow} and {eyes}." in page


def test_what_pretraining_needs_is_what_was_measured():
    """In the first lines of the page, and "PARS adds nothing"."""
    from stored_pretraining import pretraining_table

    table = pretraining_table("hands", 16, centred=False).set_index("pretraining")
    page = _text(DOCS / "results" / "pretraining.rst")

    def shown(name: str) -> str:
        text = table.loc[name, "minus random encoder (95 %)"]
        return text.replace("+0.", ".").replace("-0.", "-.")

    alone = "PARS without overlap"
    assert f"ahead of a random encoder by {shown(alone)}, on crops" in page
    assert f"random phases by {shown(f'{alone}, random phases')}" in page
    assert f"on 1/f noise by {shown(f'{alone}, synthetic noise')}" in page
    assert f"gains {shown('slope')}." in page
    assert float(table.loc[f"{alone}, detrended", "p"]) > 0.05
    for name in ("hands", "imagery", "arithmetic"):
        for n in (4, 16):
            for centred in (False, True):
                rows = pretraining_table(name, n, centred=centred).set_index("pretraining")
                scores = [
                    float(rows.loc[method, "balanced accuracy"].split()[0])
                    for method in ("features and spectra", "features, spectra and PARS")
                ]
                assert abs(scores[0] - scores[1]) < 0.0035


def test_what_is_said_of_fine_tuned_pretrainings_is_what_was_measured():
    from stored_pretraining import SCRATCH, pretraining_table

    def gains(task: str) -> pd.DataFrame:
        table = pretraining_table(f"{task}_fine_tuned", 4, centred=False, against=SCRATCH)
        table = table.set_index("pretraining").drop(index=SCRATCH)
        gain = table["minus scratch (95 %)"].str.replace(r"^\+0(\.\d+) .*", r"\1", regex=True)
        return table.assign(gain=gain, p=table["p"].astype(float)).sort_values("gain")

    page = _text(DOCS / "results" / "pretraining.rst")
    hands, arithmetic = gains("hands"), gains("arithmetic")
    assert (hands["p"] < 0.001).all()
    assert (arithmetic["p"] > 0.05).all()
    alone = "PARS without overlap"
    assert hands.index.tolist() == [alone, "features and spectra", "slope"]
    assert f"PARS by the least, {hands['gain'].iloc[0]}, and the slope by the most, " in page
    assert f"by the most, {hands['gain'].iloc[-1]}." in page
    detectable = arithmetic.loc[alone, "detectable"].lstrip("0")
    assert f"of PARS is {arithmetic.loc[alone, 'gain']}, where {detectable} would be" in page
    both = arithmetic.loc["features and spectra"]
    told = f"features and spectra {both['gain']} (p = {both['p']:.2g})"
    assert told.replace("0.", ".") in page


@pytest.mark.parametrize("name", ["hands", "imagery"])
def test_what_is_said_of_networks_with_few_epochs_was_measured(name):
    """EEGNet outperforms scratch; on fists it is at chance without slow or frontal voltages."""
    from stored_networks import network_scores, networks_table

    table = networks_table(name).set_index("method")
    eegnet, shallow = (table.loc[f"{net}, 15 epochs"] for net in ("EEGNet", "ShallowFBCSPNet"))
    gain, low, high = re.findall(r"[+-](\d\.\d+)", eegnet["over scratch (95 %)"])
    page = _text(DOCS / "results" / f"{name}.rst")
    assert f"scratch by {gain} ({low} to {high}) in balanced accuracy" in page
    assert float(eegnet["p"]) < 0.05 < float(shallow["p"])
    if name == "imagery":
        return
    assert eegnet.filter(like="labelled, ").astype(float).between(0.47, 0.53).all()
    scores = network_scores("hands")
    n_draws = scores.groupby("control")["seed"].nunique().to_dict()
    assert n_draws == {"none": 8, "eyes": 4, "slow": 4}


def test_what_is_said_of_the_settings_of_pars_was_measured():
    """Patches side by side, an MLP, 20 patches and no position at all are worse; 30 and 0.4 not."""
    from stored_sleep import ablation_table

    table = ablation_table()
    keys = table["patches"] + " " + table["position mask ratio"] + " " + table["decoder"]
    p = pd.to_numeric(table.set_index(keys)["p"])
    worse = table.set_index(keys).filter(like="from the").iloc[:, 0].str.startswith("-")
    significant = {"30, side by side 0.8 attention", "40 0.8 MLP", "20 0.8 attention"}
    significant |= {f"{n} 1 attention" for n in (20, 30, 40)}
    assert set(p.index[p < 0.05]) == significant
    assert worse[list(significant)].all()
    assert p[["30 0.4 attention", "30 0.8 attention", "40 0.4 attention"]].min() > 0.5
