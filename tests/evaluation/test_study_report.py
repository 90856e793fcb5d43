"""The page of a study: what it says, that it stands alone, and that everybody can read it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.baselines import CENTRED
from braindecode_pars.evaluation import Study, control_gains, study_report
from braindecode_pars.evaluation.data_check import DataCheck, Finding
from braindecode_pars.evaluation.study_plan import Method
from braindecode_pars.evaluation.study_report import judged

#: A task of the user's own may have any name.
PARS = "PARS <&>, own pretraining"
#: Mean of each method above chance level, and what it is compared with.
METHODS = {
    "band power": (0.10, None),
    "untrained": (0.05, None),
    PARS: (0.16, "untrained"),
    "scratch": (0.02, None),
    f"band power{CENTRED}": (0.12, None),
    f"untrained{CENTRED}": (0.07, None),
    f"{PARS}{CENTRED}": (0.20, f"untrained{CENTRED}"),
}
SECTIONS = "answer curves methods tests controls people confusion data cost left-out use made words"
VOID = {"meta", "img", "br", "link", "input"}


def toy_scores(methods=METHODS, sizes=(2, 8)) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        dict(protocol="label_efficiency", dataset="d", method=method, subject=subject,
             n_train_subjects=n, seed=seed, metric="balanced_accuracy",
             value=0.5 + methods[method][0] + n / 100 + rng.normal(0, 0.02))
        for method in methods
        for n in sizes
        for subject in [*range(8), "all"]
        for seed in range(4)
    )  # fmt: skip


CLASSES = pd.DataFrame({"class": ["rest", "task"], "windows": [71, 72]})
CHECK = DataCheck(
    facts={"subjects": "8", "reference": "linked ears"},
    classes=CLASSES,
    by_subject=False,
    findings=[Finding("warning", "Two recordings are <equal>.")],
)


def toy_study() -> Study:
    scores, methods = toy_scores(), {}
    for name, (_, twin) in METHODS.items():
        simple = "simple" if name.startswith("band power") else "untrained"
        methods[name] = Method(name, None, "pretrained" if twin else simple, twin)
    levels, tests = judged(scores, methods, 0.5)
    controlled = pd.concat(
        toy_scores(list_of, sizes=[8]).assign(control=control)
        for control, list_of in [("none", METHODS), ("slow", dict.fromkeys(METHODS, (0.05, None)))]
    )
    plan = pd.DataFrame(
        dict(method=m.name, kind=m.kind, given="unlabelled windows of the test subject",
             people=[2, 8], draws=4, fits=32, minutes=1.25, left_out="")
        for m in methods.values()
    )  # fmt: skip
    plan.loc[len(plan)] = ["EEGNet", "network", "", [], 0, 0, 0.0, "it is too short"]
    plan.loc[len(plan)] = ["few labels", "vote", "", [2], 4, 8, 0.1, "failed (ValueError: <no>)"]
    classes = ["rest", "task"]
    return Study(
        dataset="rest & <task>",
        metric="balanced_accuracy",
        check=CHECK,
        plan=plan,
        scores=scores,
        tests=tests,
        levels=levels,
        controls=control_gains(controlled, against="untrained"),
        doubts=["The gain is slow.\nLook at the eyes."],
        answer="Yes, pretraining helps. With 8 labelled people, it does.",
        best=f"{PARS}{CENTRED}",
        confusion=(confusion := pd.DataFrame(dict(true=classes * 3, predicted=["rest"] * 6))),
        decided=confusion,
        about=dict(
            command="braindecode-pars study folder",
            versions={"torch": "2.11"},
            seeds=[0, 1, 2, 3],
            digest="abc123",
            model="small",
            warnings=["It was <slow>."],
            left_out=["One recording: too short."],
        ),
    )


@pytest.fixture(scope="module")
def study():
    return toy_study()


@pytest.fixture(scope="module")
def page(study, tmp_path_factory) -> str:
    return study.report(tmp_path_factory.mktemp("study")).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> str:
    stop = "All patients are of site A. Record both elsewhere."
    check = replace(CHECK, findings=[Finding("stop", stop)])
    study = Study("d", "balanced_accuracy", check, answer=f"There is no answer. {stop}")
    return study.report(tmp_path_factory.mktemp("stop") / "page.html").read_text("utf-8")


class Reader(HTMLParser):
    """Collects elements, and fails where one is closed that is not open."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()


def section(page: str, name: str) -> str:
    [found] = re.findall(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)
    return found


def test_every_section_is_there_in_order(page):
    assert re.findall(r'<section id="([\w-]+)"', page) == SECTIONS.split()
    assert re.findall(r'href="#([\w-]+)"', page) == SECTIONS.split()[1:]


def test_the_answer_is_above_the_numbers_that_carry_it(page, study):
    answer = section(page, "answer")
    assert '<p class="headline">Yes, pretraining helps.</p>' in answer
    last = study.levels[study.levels["n_train_subjects"] == 8].set_index("method")
    tests = study.tests[study.tests["n_train_subjects"] == 8].set_index(["method_a", "question"])
    differences = tests["mean_difference"][study.best]
    expected = [f"{last['mean'][study.best]:.3f}"]
    expected += [f"{differences[question]:+.3f}" for question in ("pretraining", "baseline")]
    assert re.findall(r'class="value">(.*?)<', answer) == expected


def test_the_table_has_means_spreads_and_marks(page, study):
    rows = study.scores[(study.scores["method"] == study.best) & (study.scores["subject"] != "all")]
    by_person = rows[rows["n_train_subjects"] == 8].groupby("subject")["value"].mean()
    cell = f"{by_person.mean():.3f} ± {by_person.std():.3f}"
    methods = section(page, "methods")
    assert f'<td class="best">{cell}<span class="marks">*†‡</span>' in methods
    assert methods.count("unlabelled windows of the test subject") == len(METHODS)
    assert '<th scope="row">few labels</th>' in methods
    assert "failed (ValueError: &lt;no&gt;)" in methods
    assert "chance level</th><td>0.500" in methods


def test_tests_have_interval_p_and_what_could_be_detected(page, study):
    first = study.tests.iloc[-1]
    tests = section(page, "tests").replace("\N{MINUS SIGN}", "-")
    assert f"{first['ci_low']:+.3f} to {first['ci_high']:+.3f}" in tests
    assert f"{first['detectable']:.3f}" in tests
    assert tests.count("<tr") == len(study.tests) + 3  # and three heads


def test_the_other_sections_have_what_the_study_found(page):
    for name, texts in {
        "controls": ["<p>The gain is slow.</p>", "<p>Look at the eyes.</p>", "<img"],
        "data": ["linked ears", "<td>72</td>", "Two recordings are &lt;equal&gt;."],
        "cost": ["<td>224</td><td>8.8</td>"],
        "left-out": ["EEGNet: it is too short", "One recording", "It was &lt;slow&gt;."],
        "use": ["braindecode-pars predict STUDY/model RECORDING --out predictions"],
        "made": [
            "braindecode-pars study folder",
            "torch 2.11",
            "0, 1, 2, 3",
            "abc123",
            "2511.11940",
        ],
    }.items():
        for text in texts:
            assert text in section(page, name), (name, text)


def test_a_stopped_study_says_why_and_shows_no_score(stopped):
    assert '<p class="headline">There is no answer.</p>' in stopped
    assert section(stopped, "answer").count("All patients are of site A. Record both") == 1
    assert re.findall(r'<section id="([\w-]+)"', stopped) == [
        *("answer", "data", "left-out", "made", "words")
    ]
    assert "<img" not in stopped
    Reader(stopped)


def test_the_page_is_well_formed_and_names_are_escaped(page):
    reader = Reader(page)
    assert reader.open == []
    assert "rest &amp; &lt;task&gt;" in page
    assert "PARS &lt;&amp;&gt;, own pretraining, centred" in page
    assert "<&>" not in page


def test_nothing_is_fetched_or_run(page):
    for tag, attributes in Reader(page).elements:
        assert tag not in ("script", "link", "iframe", "object")
        assert attributes.get("src", "data:").startswith("data:")
        assert tag == "a" or "href" not in attributes
    assert "url(" not in page
    assert "@import" not in page


def test_readers_of_a_screen_and_in_the_dark(page):
    elements = Reader(page).elements
    images = [attributes for tag, attributes in elements if tag == "img"]
    assert len(images) == 6
    assert all(len(image["alt"].split()) > 5 for image in images)
    assert ("html", {"lang": "en"}) in elements
    levels = [int(tag[1]) for tag, _ in elements if re.fullmatch(r"h\d", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all("scope" in attributes for tag, attributes in elements if tag == "th")
    assert "@media (prefers-color-scheme: dark)" in page


def test_the_same_study_has_the_same_page(page, study, tmp_path):
    file = study.report(tmp_path / "new" / "page.html")
    assert file == tmp_path / "new" / "page.html"
    assert file.read_text(encoding="utf-8") == page
    assert study.report(tmp_path) == tmp_path / "report.html"


def test_where_each_person_has_one_class_the_page_tells_how_many_are_right(study, tmp_path):
    decided = dict(right=36.5, people=40.0, balanced_accuracy=0.91, auroc=0.95)
    smaller = dict(by_recording=0.88, by_window=0.8)
    people = pd.DataFrame([dict(method=study.best, **decided, **smaller)])
    of_people = replace(study, people=people, check=replace(CHECK, by_subject=True))
    page = section(of_people.report(tmp_path).read_text("utf-8"), "people")
    assert "<td>36.5 of 40</td><td>0.910</td><td>0.950</td><td>0.880</td><td>0.800</td>" in page
    assert page.count("<img") == 2


def test_figures_have_what_was_pretrained_what_it_is_compared_with_and_scratch(study, monkeypatch):
    drawn = []
    monkeypatch.setattr(study_report, "_curve", lambda _, methods: drawn.append(methods))
    monkeypatch.setattr(study_report, "_image", lambda *_: None)
    means = study.levels.groupby("method")["mean"].max()
    tests = study.tests[study.tests["n_train_subjects"] == 8]
    study_report._front(study, means)
    assert drawn == [[PARS, "band power", "scratch"]]
    plain, centred = (study_report._few(study, means, tests, [panel]) for panel in (False, True))
    assert plain == [PARS, "untrained", "band power", "scratch"]
    assert centred == [f"{name}{CENTRED}" for name in plain[:3]]
