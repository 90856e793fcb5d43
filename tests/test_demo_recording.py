"""The recording of the demo in docs/images, and the program that makes it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from braindecode_pars.baselines import CENTRED

DOCS = Path(__file__).parents[1] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: ElementTree.Element, kind: str) -> list[str]:
    return ["".join(g.itertext()) for g in svg.iter(f"{SVG}g") if g.get("class") == kind]


def test_the_last_screen_is_that_of_the_text_file():
    svg = ElementTree.parse(DOCS / "images" / "demo.svg").getroot()
    lines = (DOCS / "images" / "demo.txt").read_text(encoding="utf-8").splitlines()
    stays = [text.replace(" ", "") for text in texts(svg, "stays")]
    assert stays == [line.replace(" ", "") for line in lines]
    assert svg.find(f"{SVG}title").text == "braindecode-pars demo in a terminal"
    assert (DOCS / "images" / "demo.svg").stat().st_size < 300_000


def test_the_first_frame_and_one_without_animation_are_the_last_screen():
    """The last screen waits only after a delay; what goes is hidden by an attribute of its own."""
    svg = ElementTree.parse(DOCS / "images" / "demo.svg").getroot()
    assert ".stays { animation: wait 0s 3s }" in svg.find(f"{SVG}style").text
    goes = [g for g in svg.iter(f"{SVG}g") if g.get("class") == "goes"]
    delays = [re.search(r"animation-delay:([\d.]+)s", g.get("style")).group(1) for g in goes]
    assert goes
    assert min(map(float, delays)) > 3
    assert {g.get("visibility") for g in goes} == {"hidden"}
    # The colours of letters do not need the style sheet, which some programs ignore.
    assert svg.find(f"{SVG}g").get("fill") == "#dfe2e7"


def test_the_recording_has_the_stored_scores():
    lines = (DOCS / "images" / "demo.txt").read_text(encoding="utf-8").splitlines()
    shown = {
        cells[0]: cells[1:]
        for line in lines
        if line.startswith("│") and (cells := [cell.strip() for cell in line.strip("│").split("│")])
    }
    stored = pd.read_csv(DOCS / "measured" / "demo" / "seed0.csv", comment="#")
    scores = stored[stored["subject"] != "all"].groupby(["method", "n_train_subjects"])["value"]
    means, spreads = scores.mean(), scores.std()
    assert shown.pop("chance level") == ["0.500"] * 6
    assert set(shown) == {name.removesuffix(CENTRED) for name in set(stored["method"])}
    for name, cells in shown.items():
        expected = []
        for n in (2, 4, 8):
            key = name + CENTRED, n
            expected.append(f"{means[key]:.3f} ± {spreads[key]:.3f}" if key in means else "")
        expected += [f"{means[name, n]:.3f}" if (name, n) in means else "" for n in (2, 4, 8)]
        assert cells == expected


def test_the_recording_names_no_folder_of_a_machine():
    for file in ("demo.svg", "demo.txt"):
        text = (DOCS / "images" / file).read_text(encoding="utf-8")
        assert [
            path for path in ("/home", "/root", "/tmp", "/work", "site-packages") if path in text
        ] == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminals")
def test_what_is_written_over_goes_and_the_rest_stays(tmp_path):
    file = DOCS / "experiments" / "record_demo.py"
    spec = importlib.util.spec_from_file_location("record_demo", file)
    recorder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorder)

    code = "import time; print('10 %', end='', flush=True); time.sleep(1); print('\\r99 %\\ndone')"
    kept = []
    events = recorder.record([sys.executable, "-c", code], 40, kept.append)
    assert len(kept) == 1
    screens = list(recorder.replay(events, 40, "$ program", 3))
    svg = ElementTree.fromstring(recorder.draw(screens, 40, "$ program", 1))
    assert texts(svg, "goes") == ["10 %"]
    assert texts(svg, "stays") == ["$ program", "99 %", "done"]
    with pytest.raises(SystemExit, match="no such thing"):
        recorder.record([sys.executable, "-c", "raise SystemExit('no such thing')"], 40)
