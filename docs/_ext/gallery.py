"""Order of the example pages, and alternative texts of their figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = ["ORDER", "PageOrder", "alternative_texts", "scrape"]

#: Groups and their pages, in the order of the gallery.
ORDER = {
    "start": ["arithmetic", "scikit_learn", "regression", "own_edf_folder"],
    "sleep": ["pars_on_sleep", "sleep_staging", "seizures"],
    "motor_imagery": ["motor_imagery", "label_efficiency", "transfer"],
    "inside": ["recording_to_tokens", "five_tasks", "inside_the_model"],
    "scale": ["folds_on_dask"],
}


class PageOrder:
    """Sort key for the pages of a group, by :data:`ORDER`.

    Parameters
    ----------
    src_dir : str
        Folder of the group.
    """

    def __init__(self, src_dir: str) -> None:
        self.pages = ORDER.get(Path(src_dir).name, [])

    def __call__(self, filename: str) -> int:
        """Return the index of a page."""
        return self.pages.index(Path(filename).stem.removeprefix("plot_"))


def alternative_texts(code: str) -> list[str]:
    """Return the texts of the comments ``# sphinx_gallery_alt = "..."`` of a code block.

    Adjacent lines are joined to one text.
    """
    line = r'^# sphinx_gallery_alt = "(.+)"\n'
    texts = re.finditer(f"(?:{line})+", code, re.MULTILINE)
    return [" ".join(re.findall(line, text[0], re.MULTILINE)) for text in texts]


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Return the figures of a code block as reStructuredText, with their alternative texts.

    Raises
    ------
    ValueError
        If the number of texts differs from the number of figures.
    """
    from sphinx_gallery.scrapers import matplotlib_scraper  # optional dependency

    rst = matplotlib_scraper(block, block_vars, gallery_conf)
    texts = alternative_texts(block.content)
    if len(texts) != rst.count(":alt:"):
        raise ValueError(
            f"{block_vars['src_file']}: the block at line {block.lineno} has "
            f"{rst.count(':alt:')} figures and {len(texts)} alternative texts. Add one comment "
            "# sphinx_gallery_alt = ... per figure."
        )
    remaining = iter(texts)
    return re.sub(r":alt: .*", lambda _: f":alt: {next(remaining)}", rst)
