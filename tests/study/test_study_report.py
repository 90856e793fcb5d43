"""Report of a study: answers, content of the page, and accessibility."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from braindecode_pars._common.findings import Finding
from braindecode_pars.evaluation import control_gains
from braindecode_pars.study import study_answers, study_report
from braindecode_pars.study.data_check import DataCheck
from braindecode_pars.study.study_results import Study
from braindecode_pars.study.study_tests import Comparison, Outcome, Recommendation

PARS, SHAM, RANDOM, BAND = (
    "PARS pretraining",
    "sham pretraining",
    "random initialization",
    "log band power",
)
#: A method of the user may have any name.
USER_METHOD = "<b>my & network</b>"
#: Kind and mean score of each method; centered scores are 0.03 higher.
METHODS = {
    PARS: ("pretrained", 0.739),
    SHAM: ("sham", 0.692),
    RANDOM: ("random", 0.681),
    BAND: ("baseline", 0.715),
    "hand-crafted features": ("baseline", 0.702),
    "Riemannian tangent space": ("baseline", 0.724),
    "feature ensemble": ("ensemble", 0.751),
    "small (pretrained on other data)": ("bundled", 0.711),
    "from scratch": ("network", 0.589),
    USER_METHOD: ("baseline", 0.664),
}


def comparison(reference, difference, half_width, **values) -> Comparison:
    """A comparison of PARS with another method."""
    defaults = dict(
        method=PARS,
        reference=reference,
        score=0.754,
        reference_score=0.754 - difference,
        difference=difference,
        ci_low=difference - half_width,
        ci_high=difference + half_width,
        p=0.002 if abs(difference) > half_width else 0.4,
        upper=difference + 0.82 * half_width,
        detectable=1.43 * half_width,
        n_subjects=12,
        n_better=10,
        subjects_needed=97.2,
    )
    return Comparison(**defaults | values)


#: The outcomes of the primary comparison.
PRIMARY = {
    Outcome.GAIN: comparison(SHAM, 0.047, 0.023),
    Outcome.NO_GAIN: comparison(SHAM, 0.003, 0.013, n_better=6),
    Outcome.UNCLEAR: comparison(SHAM, 0.007, 0.021, n_better=7),
    Outcome.WORSE: comparison(SHAM, -0.081, 0.012, n_better=1),
}


def fabricated_study() -> Study:
    n_subjects = 12
    rng = np.random.default_rng(0)
    # Scores vary across subjects, and a method differs a little between subjects
    of_subject = rng.normal(0, 0.07, n_subjects)
    rows = []
    for method, (kind, mean) in METHODS.items():
        centerings = (False, True) if kind != "network" else (False,)
        true = mean + of_subject + rng.normal(0, 0.025, n_subjects)
        for is_centered, draw, i in product(centerings, range(2), range(n_subjects)):
            value = true[i] + 0.03 * is_centered + rng.normal(0, 0.02)
            rows.append((method, is_centered, kind, 0, i % 2, draw, f"S{i + 1:02}", value, 0.5))
    columns = ["method", "is_centered", "kind", "pretraining", "fold", "draw", "subject"]
    scores = pd.DataFrame(rows, columns=[*columns, "value", "chance"])
    keys = ["method", "is_centered", "kind"]
    subjects = scores.groupby([*keys, "subject"], sort=False)["value"].mean()
    levels = subjects.groupby(keys, sort=False).agg(["mean", "std"]).reset_index()
    levels = levels.rename(columns={"std": "sd"})
    half = 2.2 * levels["sd"] / n_subjects**0.5
    levels = levels.assign(ci_low=levels["mean"] - half, ci_high=levels["mean"] + half)
    levels = levels.assign(chance=0.5, p_chance=np.where(levels["mean"] > 0.65, 2e-5, 0.31))
    methods = levels[["method", "kind"]].drop_duplicates().assign(additional_data="")
    methods.loc[methods["method"] == PARS, "additional_data"] = "unlabeled windows"
    steps = [("data check", "", 0.2), ("baselines", "3 methods", 1.0), ("PARS, fold 1", PARS, 9.5)]
    steps += [("PARS, fold 2", PARS, 9.5), ("sham, fold 1", SHAM, 9.5), ("sham, fold 2", SHAM, 9.5)]
    plan = pd.DataFrame(steps, columns=["step", "methods", "minutes"])
    plan = plan.assign(status="finished", reason="")
    failed = ["failed", "ValueError: <no> windows"]
    plan.loc[len(plan)] = ["networks", USER_METHOD, np.nan, *failed]
    pretrainings = pd.DataFrame(
        dict(task="PARS", is_sham=is_sham, fold=fold, seed=seed, n_steps=2400,
             held_out_loss=1.0 if is_sham else 0.62, reason="loss no longer improved")
        for is_sham in (False, True) for fold in (0, 1) for seed in (0, 1, 2)
    )  # fmt: skip
    secondary = pd.DataFrame(
        [
            ("feature ensemble", BAND, 0.036, 0.004, 0.068, 0.021),
            (USER_METHOD, BAND, -0.051, -0.11, 0.008, 0.14),
        ],
        columns=["method", "reference", "difference", "ci_low", "ci_high", "p"],
    )
    classes = ["rest", "task"]
    counts = {"class": classes, "windows": [840, 835], "subjects": [n_subjects] * 2}
    return Study(
        dataset="rest & <task>",
        metric="balanced_accuracy",
        check=DataCheck(
            facts={"subjects": "12", "reference": "linked ears"},
            classes=pd.DataFrame(counts),
            by_subject=False,
            findings=[Finding("copies_within_subject", dict(pairs=["<a> and <b>"]))],
        ),
        plan=plan,
        methods=methods,
        scores=scores,
        levels=levels,
        primary=replace(PRIMARY[Outcome.GAIN], n_subjects=n_subjects, n_better=n_subjects - 2),
        initialization=comparison(RANDOM, 0.058, 0.025),
        baseline=comparison(BAND, 0.024, 0.03),
        secondary=secondary,
        recommendation=Recommendation(
            *("feature ensemble", True, 0.776, 0.601, 0.951),
            equivalent=(PARS, "Riemannian tangent space"),
            folder="study/model",
        ),
        pretrainings=pretrainings,
        controls=control_gains(controlled_scores(), against=SHAM),
        control_notes=["The gain is lost without <slow> voltages."],
        confusion=pd.DataFrame(
            dict(true=classes * 50, predicted=rng.permutation(classes * 50))
        ),
        about=dict(
            n_labeled_subjects=4,
            command="braindecode-pars study folder",
            versions={"torch": "2.11"},
            seeds="0, 1, 2",
            digest="abc123",
            left_out=["pars-sleep: windows are too short"],
            warnings=["Training was <slow>."],
        ),
    )  # fmt: skip


def controlled_scores() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    controls = {"none": 0.047, "slow": 0.006, "phase": 0.03, "order": 0.02}
    return pd.DataFrame(
        dict(protocol="label_efficiency", dataset="d", method=method, subject=subject,
             n_train_subjects=4, seed=seed, metric="balanced_accuracy", control=control,
             value=0.7 + gain * (method == PARS) + rng.normal(0, 0.02))
        for control, gain in controls.items()
        for method in (PARS, SHAM) for subject in range(8) for seed in range(4)
    )  # fmt: skip


def unfinished(study: Study) -> Study:
    """The study before the sham pretraining of the second fold has ended."""
    plan = study.plan.assign(status=["finished"] * 5 + ["to come"] * 2)
    missing = dict(primary=None, initialization=None, baseline=None)
    is_finished = study.levels["kind"] == "baseline"
    chosen = Recommendation(BAND, False, 0.71, 0.55, 0.87)
    return replace(
        study, **missing, plan=plan, levels=study.levels[is_finished], recommendation=chosen
    )


def stopped(study: Study) -> Study:
    """A study that failed the data check."""
    stop = Finding("too_few_subjects", dict(n=5, n_subjects=9, minimum=6), "stop")
    return Study(study.dataset, study.metric, replace(study.check, findings=[stop]))


def not_learned(study: Study) -> Study:
    """A study in which the primary task was not learned."""
    runs = study.pretrainings.assign(held_out_loss=0.99)
    other = runs.assign(task="features", held_out_loss=0.5, n_steps=10)
    return replace(study, has_learned=False, pretrainings=pd.concat([runs, other]))


def at_chance(study: Study, p=0.8) -> Study:
    """A study in which no method is above chance level."""
    shifted = {name: study.levels[name] - 0.35 for name in ("mean", "ci_low", "ci_high")}
    return replace(study, levels=study.levels.assign(p_chance=p, **shifted))


@pytest.fixture(scope="module")
def study() -> Study:
    return fabricated_study()


@pytest.fixture(scope="module")
def page(study, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("study")
    file = study.report(folder)
    assert file == folder / "report.html"
    return file.read_text(encoding="utf-8")


def written(study: Study, folder) -> str:
    """The page with placeholders for the figures, which take seconds to draw."""
    with pytest.MonkeyPatch.context() as patch:
        image = dict(source="data:", alt="a figure")
        for name in ("_paired_score_figure", "_mean_score_figure"):
            patch.setattr(study_report, name, lambda *_: image)
        study = replace(study, controls=None, confusion=pd.DataFrame())
        return study.report(folder / "page.html").read_text(encoding="utf-8")


# Answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "numbers"),
    [
        (
            Outcome.GAIN,
            ["0.754 with PARS", "0.707 with sham", "0.047", "0.024 to 0.070", "10 of 12"],
        ),
        (Outcome.NO_GAIN, ["0.003", "0.02", "CI of the difference is 0.014"]),
        (
            Outcome.UNCLEAR,
            ["0.007", "\N{MINUS SIGN}0.014 to 0.028", "0.030", "0.02", "about 97 subjects"],
        ),
        (Outcome.WORSE, ["0.754 with PARS", "0.835 with sham", "\N{MINUS SIGN}0.081", "1 of 12"]),
    ],
)
def test_the_first_answer_has_the_numbers_of_its_outcome(study, outcome, numbers):
    assert PRIMARY[outcome].outcome == outcome
    answer = replace(study, primary=PRIMARY[outcome]).answers[0]
    assert answer.startswith(study_answers.PRETRAINING[outcome][0])
    for number in numbers:
        assert number in answer
    more = replace(PRIMARY[outcome], subjects_needed=np.inf)
    assert "inf" not in replace(study, primary=more).answers[0]


@pytest.mark.parametrize("difference", [0.05, -0.05, 0.01])
def test_the_second_answer_has_the_result_of_the_test(study, difference):
    baseline = comparison(BAND, difference, 0.03)
    answer = replace(study, baseline=baseline).answers[1]
    words = {0.05: "significantly better", -0.05: "significantly worse", 0.01: "not significantly"}
    assert words[difference] in answer
    assert f"{baseline.ci_low:.3f} to".replace("-", "\N{MINUS SIGN}") in answer
    assert ("0.043" in answer) == (difference == 0.01)  # minimum detectable difference


def test_there_is_no_first_answer_if_the_task_was_not_learned(study, tmp_path):
    changed = not_learned(study)
    assert changed.answers[0].startswith("No answer")
    assert {"2400", "0.99"} <= set(re.findall(r"[\d.]*\d", changed.answers[0]))
    first = section(written(changed, tmp_path), "pretraining")
    assert "<img" not in first
    assert "0.047" not in first


@pytest.mark.parametrize("p", [0.8, 1e-5])
def test_there_is_no_answer_at_or_below_chance_level(study, tmp_path, p):
    changed = at_chance(study, p)
    assert all(answer.startswith("No answer") for answer in changed.answers)
    page = written(changed, tmp_path)
    assert ["<img" in section(page, name) for name in QUESTIONS] == [False, False, True]
    assert "yes (p" not in section(page, "methods")


def test_pretraining_helps_if_it_learned_and_gained(study):
    assert study.has_gain
    assert not replace(study, has_learned=False).has_gain
    assert not replace(study, primary=PRIMARY[Outcome.WORSE]).has_gain
    assert not replace(study, primary=None).has_gain


# The page ----------------------------------------------------------------------------------------

QUESTIONS = ["pretraining", "baseline", "method"]


def section(page: str, name: str) -> str:
    """A question, or a part of the details."""
    [content] = re.findall(
        rf'<(?:section|details) id="{name}".*?</(?:section|details)>', page, re.S
    )
    return content


def test_tables_have_the_values_of_the_study(page, study):
    best = study.levels.loc[study.levels["mean"].idxmax()]
    for name, texts in {
        "pretraining": ["<td>+0.058</td><td>0.033 to 0.083</td><td>0.002</td>"],
        "method": ["braindecode-pars predict study/model RECORDING"],
        "methods": [
            f"<td>{best['mean']:.3f} ± {best['sd']:.3f}</td>",
            f"<td>{best['ci_low']:.3f} to {best['ci_high']:.3f}</td><td>yes (p &lt; 0.001)</td>",
            "<td>no (p = 0.310)</td>",
            ">none<",
            ">unlabeled windows<",
            ">unlabeled windows of the test subject<",
            ">unlabeled windows; unlabeled windows of the test subject<",
            "&lt;b&gt;my &amp; network&lt;/b&gt;",
        ],
        "secondary": ["<td>+0.036</td><td>0.004 to 0.068</td><td>0.021</td>"],
        "pretrainings": ["PARS (sham)", "<td>2400</td><td>0.620</td>", "no longer improved"],
        "controls": ["<p>The gain is lost without &lt;slow&gt; voltages.</p>", "<img"],
        "confusion": ["<img"],
        "data": ["linked ears", "<td>835</td>", "signals: &lt;a&gt; and &lt;b&gt;."],
        "left-out": ["pars-sleep: windows are too short", "networks: ValueError: &lt;no&gt;"],
        "design": ["braindecode-pars study folder", "torch 2.11", "0, 1, 2", "abc123"],
        "plan": ["<td>9.5</td>", ">finished</td>", ">ValueError: &lt;no&gt; windows</td>"],
    }.items():
        for text in texts:
            assert text in section(page, name), (name, text)
    assert section(page, "methods").count("<tr") == len(study.levels) + 1
    assert "<b>my" not in page


def test_an_unfinished_study_says_what_is_finished_and_what_is_to_come(study, tmp_path):
    answers = unfinished(study).answers
    assert [answer.partition(".")[0] for answer in answers[:2]] == ["Not finished"] * 2
    assert answers[2].startswith("Preliminary recommendation: log band power.")
    page = written(unfinished(study), tmp_path)
    head = page[page.index("<header>") : page.index("</header>")]
    assert "5 of 7 steps" in head
    assert "Finished: data check; baselines; PARS, fold 1; PARS, fold 2" in head
    assert "Remaining: sham, fold 2; networks" in head
    assert ["<img" in section(page, name) for name in QUESTIONS] == [False, False, True]


def test_a_stopped_study_says_why_and_shows_no_score(study, tmp_path):
    changed = stopped(study)
    assert changed.check.stops[0] in changed.answers[0]
    assert all(answer.startswith("No answer") for answer in changed.answers)
    page = written(changed, tmp_path)
    assert "5 of 9 subjects" in section(page, "pretraining")
    assert "<img" not in page
