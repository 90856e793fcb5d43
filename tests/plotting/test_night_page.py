"""The page of a night: its coordinates, texts, and that it needs nothing else."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from braindecode_pars import plotting
from braindecode_pars.plotting.style import area_styles

NAMES = ["N1", "W", "R"]
P = np.array([[0.1, 0.7, 0.2], [0.25, 0.5, 0.25], [np.nan] * 3, [0.6, 0.0, 0.4]])


def predictions():
    """Four windows of 20 s; one is not predicted, and there is no row for the time before it."""
    frame = pd.DataFrame(dict(onset=[0.0, 20, 60, 80], duration=20.0, label=["W", "W", None, "N1"]))
    for i, name in enumerate(NAMES):
        frame[f"probability_{name}"] = P[:, i]
    frame.attrs = dict(recording="night1.edf", findings={"missing_channels": ["C3", "C4"]})
    return frame


def parse(tmp_path, frame, **options):
    text = plotting.night_page(frame, tmp_path / "new" / "night.html", **options).read_text("utf-8")
    svg = re.search(r'<svg role="img".*?</svg>', text, re.DOTALL)[0]
    return text, ElementTree.fromstring(svg)


def paths(svg, name):
    return [path.get("d") for path in svg.iter("path") if name in (path.get("class") or "").split()]


def test_a_window_is_six_pixels_and_has_its_time_and_probabilities(tmp_path):
    _, svg = parse(tmp_path, predictions())
    windows = [element for element in svg.iter("rect") if element.find("title") is not None]
    assert [float(element.get("x")) for element in windows] == [0, 6, 18, 24]
    titles = [element.find("title").text for element in windows]
    assert titles[1] == "0:00:20 W: W 50 %, R 25 %, N1 25 %"
    assert titles[2] == "0:01:00 not predicted"


def test_hypnograms_have_gaps_at_unknown_stages(tmp_path):
    _, svg = parse(tmp_path, predictions())
    wake, n1 = 8.0 + 12, 8.0 + 12 + 2 * 24  # the rows are W, R and N1
    assert paths(svg, "steps") == [f"M0.0,{wake}H6.0V{wake}H12.0M24.0,{n1}H30.0"]


def test_areas_are_stacked_from_the_top(tmp_path):
    shown = ["N1", "R", "W"]
    _, svg = parse(tmp_path, predictions(), order=shown)
    [panel] = [g for g in svg.iter("g") if "translate" in (g.get("transform") or "")]
    areas = [path for path in panel.iter("path") if path.get("fill")]
    colors = [style["facecolor"] for style in area_styles(shown)]
    assert [path.get("fill") for path in areas] == colors
    heights = np.zeros((5, 3))
    for k, path in enumerate(areas):
        for x, top, bottom in re.findall(r"M([\d.]+),([\d.]+)H[\d.]+V([\d.]+)", path.get("d")):
            heights[round(float(x) / 6), k] = float(bottom) - float(top)
    expected = np.nan_to_num(P[:, [NAMES.index(name) for name in shown]])
    np.testing.assert_allclose(heights[[0, 1, 3, 4]], expected, atol=1e-3)
    assert not heights[2].any()


def test_the_page_needs_nothing_else_and_has_the_changes_as_text(tmp_path):
    text, _ = parse(tmp_path, predictions())
    assert not re.search(r"<script|https?://|<link|<img|@import|url\(", text)
    changes = re.findall(r'<tr><td>(.*?)</td><td>(.*?)</td><td class="word">(.*?)</td>', text)
    assert changes == [("0:00:00", "0:00:40", "W"), ("0:01:20", "0:01:40", "N1")]
    assert "<li>missing channels: C3, C4</li>" in text


def test_labels_are_drawn_verbatim(tmp_path):
    """The label of a sequence need not be the most probable class of its window."""
    frame = predictions().assign(label=["R", "W", None, "N1"])
    top, _ = plotting.hypnodensity(frame)
    assert top.patches[0].get_data().values.tolist()[:2] == [-1, 0]
    _, svg = parse(tmp_path, frame)
    assert paths(svg, "steps")[0].startswith(f"M0.0,{8.0 + 36}H6.0V{8.0 + 12}H12.0")
