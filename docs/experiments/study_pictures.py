"""Take the images of the study report on the start page: docs/images/study-*.png.

    python docs/experiments/study_pictures.py

They show the top of docs/_static/study.html, for wide pages and for phones, light and dark, in a
headless Chromium browser that is controlled by ``selenium``. Text has its original size, with two
pixels per CSS pixel.
"""

from __future__ import annotations

import base64
import io
from pathlib import Path

from PIL import Image
from selenium import webdriver

DOCS = Path(__file__).parents[1]
#: Width of the page in pixels
SIZES = {"wide": 840, "phone": 360}
#: The image ends at the top of this element, below the first conclusion.
END = "#baseline"


def main() -> None:
    options = webdriver.ChromeOptions()
    for argument in ("headless", "no-sandbox", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    browser = webdriver.Chrome(options=options)
    browser.get((DOCS / "_static" / "study.html").as_uri())
    for theme in ("light", "dark"):
        media = [dict(name="prefers-color-scheme", value=theme)]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dict(features=media))
        for size, width in SIZES.items():
            screen = dict(width=width, height=800, deviceScaleFactor=2, mobile=False)
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            top = f"return document.querySelector('{END}').getBoundingClientRect().top"
            height = browser.execute_script(top)
            clip = dict(x=0, y=0, width=width, height=height, scale=1)
            shot = browser.execute_cdp_cmd(
                "Page.captureScreenshot", dict(clip=clip, captureBeyondViewport=True)
            )
            file = DOCS / "images" / f"study-{size}-{theme}.png"
            picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
            picture.quantize(64).save(file, optimize=True)  # a third of the bytes
    browser.quit()


if __name__ == "__main__":
    main()
