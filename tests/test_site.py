"""The built site in a real browser."""

from __future__ import annotations

import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
PAGES = {
    "index.html": "braindecode_pars",
    "auto_examples/inside/plot_recording_to_tokens.html": "What does PARS see of a recording",
    "generated/braindecode_pars.PARSClassifier.html": "PARSClassifier",
    "results.html": "Results",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address():
    if not (SITE / "index.html").is_file():
        pytest.skip(f"browser: no site in {SITE}; build it as CONTRIBUTING.md says")

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
    yield driver
    driver.quit()


def errors(browser) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_with_its_pictures_and_without_the_network(browser, address, page):
    browser.get(f"{address}/{page}")
    assert PAGES[page] in browser.find_element("css selector", "h1").text
    # Pictures below the fold are loaded when they come into sight.
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


def test_formulas_are_set_without_the_network(browser, address):
    browser.get(f"{address}/paper.html")
    wait(browser, "return document.querySelectorAll('mjx-container').length > 5")
    assert errors(browser) == []


def test_every_link_of_the_diagram_has_a_target(browser, address):
    browser.get(f"{address}/index.html")
    links = browser.execute_script(
        "return [...document.querySelectorAll('.data-flow a')].map(a => a.getAttribute('href'))"
    )
    assert len(links) == 12
    for link in set(links):
        page, _, anchor = link.partition("#")
        browser.get(f"{address}/{link}")
        assert (SITE / page).is_file()
        assert not anchor or browser.find_elements("id", anchor), link
    assert errors(browser) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_diagram_is_legible(browser, address, theme):
    browser.get(f"{address}/index.html")
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    for kind in ("title", "code", "shape"):
        assert contrast(browser, f".data-flow .{kind}", ".data-flow rect") > 4.5, kind


def test_search_finds_the_classifier(browser, address):
    browser.get(f"{address}/search.html?q=PARSClassifier")
    wait(browser, "return document.querySelectorAll('#search-results li a').length > 0")
    found = [
        a.get_attribute("href")
        for a in browser.find_elements("css selector", "#search-results li a")
    ]
    assert any("braindecode_pars.PARSClassifier.html" in link for link in found)
    assert errors(browser) == []


def wait(browser, script: str, seconds: float = 20) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, seconds).until(lambda driver: driver.execute_script(script))


def contrast(browser, text: str, ground: str) -> float:
    """Contrast of two fills as the Web Content Accessibility Guidelines define it."""
    fills = [
        browser.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0])).fill", selector
        )
        for selector in (text, ground)
    ]
    low, high = sorted(luminance(fill) for fill in fills)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    channels = [int(value) / 255 for value in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
