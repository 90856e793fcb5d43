"""Tests of the built documentation in a real browser."""

from __future__ import annotations

import json
import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import braindecode_pars

ROOT = Path(__file__).parents[1]
#: Folder of the built documentation; override with the environment variable SITE
SITE = Path(os.environ.get("SITE", ROOT / "docs" / "_build" / "html"))
#: One page of each kind, and a part of its title
PAGES = {
    "index.html": "Does pretraining help",
    "install.html": "Install",
    "guide/index.html": "User guide",
    "guide/recordings.html": "recordings",
    "auto_examples/index.html": "Examples",
    "auto_examples/inside/plot_recording_to_tokens.html": "the input and the target of PARS",
    "generated/braindecode_pars.PARSClassifier.html": "PARSClassifier",
    "generated/braindecode_pars.PARSNet.html": "PARSNet",
    "results/index.html": "Results",
    "paper.html": "paper",
}
WIDE, PHONE = 1300, 420
AXE = Path(os.environ.get("AXE_CORE", ROOT / "node_modules" / "axe-core" / "axe.min.js"))

#: Elements whose images are intentionally small
SMALL = ".sphx-glr-thumbcontainer, .sd-card"
#: JavaScript that measures a page at full width, and then at phone width
MEASURE = """
const [small, done] = arguments, text = node => node.textContent.trim();
const shown = [...document.querySelectorAll("article img")];
Promise.all(shown.map(image => {
    image.loading = "eager";
    return image.decode().catch(() => null);
})).then(() => done({
    brand: text(document.querySelector(".navbar-brand")),
    edit: [...document.querySelectorAll(".editthispage a")].map(a => a.href),
    sections: document.querySelectorAll("article > section > section").length,
    contents: [...document.querySelectorAll("nav.page-toc a")].map(a => a.getAttribute("href")),
    anchors: [...document.querySelectorAll("article [id]")].map(node => "#" + node.id),
    alts: shown.map(image => [image.getAttribute("src"), image.alt]),
    sizes: shown.filter(image => image.width && !image.closest(small))
        .map(image => [image.getAttribute("src"), image.width, image.naturalWidth]),
}));
"""
NARROW = """
const styled = node => getComputedStyle(node);
return {
    width: document.documentElement.scrollWidth,
    clipped: [...document.querySelectorAll("h1, h2, h3, h4, dt, td, th, nav a, .navbar-brand")]
        .filter(node => node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0
            && styled(node).overflowX != "auto" && styled(node).display != "inline"
            && !node.querySelector("pre, table, .math, mjx-container, dl"))
        .map(node => node.textContent.trim().slice(0, 80)),
    outside: [...document.querySelectorAll("h1, h2, h3, h4")]
        .filter(node => node.getBoundingClientRect().right > arguments[0])
        .map(node => node.textContent.trim()),
    onPhone: [...document.querySelectorAll("article img")]
        .filter(image => image.getClientRects().length && !image.closest(arguments[1]))
        .map(image => [image.getAttribute("src"), image.width, image.naturalWidth]),
};
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address():
    if not (SITE / "index.html").is_file():
        pytest.skip(f"browser: no site in {SITE}; build it as described in CONTRIBUTING.md")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("localhost", 0), partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    programs = [shutil.which("chromium"), shutil.which("chromedriver")]
    if None in programs:
        pytest.skip("browser: chromium and chromedriver are not both on the PATH")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in (
        "headless",
        "no-sandbox",  # as root in a container
        "disable-gpu",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "no-first-run",
        "window-size=1300,1000",
        f"user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs[1]))
    driver.set_script_timeout(120)  # axe-core takes seconds for a long page, more on a busy machine
    yield driver
    driver.quit()


def errors(browser) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_with_its_pictures_and_without_the_network(browser, address, page):
    browser.get(f"{address}/{page}")
    assert PAGES[page] in browser.find_element("css selector", "h1").text
    # Images below the fold are loaded when they become visible.
    pictures = browser.execute_async_script(
        """
        const done = arguments[0], pictures = [...document.images];
        Promise.all(pictures.map(picture => {
            picture.loading = "eager";
            return picture.decode().then(() => null, () => picture.src);
        })).then(broken => done({number: pictures.length, broken: broken.filter(Boolean)}));
        """
    )
    assert pictures["number"] > 0
    assert pictures["broken"] == []
    requested = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert requested
    assert [url for url in requested if not url.startswith(address)] == []
    assert errors(browser) == []


@pytest.fixture(scope="module")
def pages(browser, address) -> dict[str, dict]:
    """Measurements of pages on a wide screen and on a phone.

    Indices are left out. Of the pages of the API reference, which are generated from the same
    template, every eighth is measured.
    """
    measurements = {}
    files = sorted(
        file.relative_to(SITE).as_posix()
        for file in SITE.rglob("*.html")
        if not file.relative_to(SITE).parts[0].startswith("_")
        and file.name not in ("genindex.html", "py-modindex.html", "search.html")
        and not file.name.startswith("sg_")
    )
    generated = [page for page in files if page.startswith("generated/")]
    for page in sorted({*files} - {*generated} | {*generated[::8]}):
        resize(browser, WIDE)
        browser.get(f"{address}/{page}")
        measurements[page] = browser.execute_async_script(MEASURE, SMALL)
        resize(browser, PHONE)
        measurements[page] |= browser.execute_script(NARROW, PHONE, SMALL) | {"page": page}
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return measurements


#: Problem -> function of the measurements of a page that returns what has the problem. At half of
#: its natural width, text of 9 points in a figure has 9 pixels, and at 0.4 of it 7.5 pixels.
PROBLEMS = {
    "another version": lambda m: m["brand"] != f"braindecode_pars {braindecode_pars.__version__}",
    "links to a source that does not exist": lambda m: [
        link for link in m["edit"] if not (ROOT / link.partition("/edit/main/")[2]).is_file()
    ],
    "sections without a table of contents": lambda m: m["sections"] and not m["contents"],
    "dead links in the table of contents": lambda m: {*m["contents"]} - {*m["anchors"], "#"},
    "sideways scrolling on a phone": lambda m: m["width"] > PHONE,
    "clipped names on a phone": lambda m: m["clipped"] + m["outside"],
    "pictures without an alternative text": lambda m: [
        (source, alt)
        for source, alt in m["alts"]
        if len(alt.split()) < 2 or alt.endswith((".png", ".svg"))
    ],
    "small figures": lambda m: [
        source for source, width, natural in m["sizes"] if width < natural / 2
    ],
    # Wider figures scroll. Figures in docstrings have the width of the page.
    "small figures on a phone": lambda m: [
        source
        for source, width, natural in m["onPhone"]
        if width < 0.4 * natural and not m["page"].startswith("generated/")
    ],
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_page_has_a_problem(pages, problem):
    having = {page: PROBLEMS[problem](measured) for page, measured in pages.items()}
    assert {page: value for page, value in having.items() if value} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_nothing_shuts_readers_out(browser, address, width, theme):
    """axe-core reports no serious or critical issue: contrast, labels, keyboard."""
    if not AXE.is_file():
        pytest.skip(f"browser: axe-core is not in {AXE}; AXE_CORE is the path of axe.min.js")
    resize(browser, width)
    page_violations = {page: violations(browser, f"{address}/{page}", theme) for page in PAGES}
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert {page: names for page, names in page_violations.items() if names} == {}


def wait(browser, script: str, seconds: float = 20) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, seconds).until(lambda driver: driver.execute_script(script))


def resize(browser, width: int) -> None:
    """Set the width of pages; a phone is emulated as a mobile viewport, not a narrow window."""
    size = dict(width=width, height=1000, deviceScaleFactor=1, mobile=width == PHONE)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def violations(browser, url: str, theme: str) -> list[str]:
    browser.get(url)
    browser.execute_script(
        "const page = document.documentElement.dataset; page.theme = page.mode = arguments[0]",
        theme,
    )
    wait(browser, "return !document.getAnimations().some(a => a instanceof CSSTransition)")
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    axe_violations = browser.execute_async_script(
        "axe.run(document, {resultTypes: ['violations']}).then(r => arguments[0](r.violations))"
    )
    return [
        f"{violation['id']}: {json.dumps([node['target'] for node in violation['nodes'][:3]])}"
        for violation in axe_violations
        if violation["impact"] in ("serious", "critical")
    ]
