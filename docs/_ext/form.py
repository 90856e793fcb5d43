"""Additions to the theme: links to sources, labels of buttons, alt texts, dark images."""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["source_of"]

ROOT = Path(__file__).parents[2]
#: Replacements in the HTML that docutils writes
REPLACED = {
    # The role "list" is wrong, because the children are not list items.
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    # Make scrollable elements accessible with the keyboard.
    '<div class="terminal docutils container">': '<div class="terminal docutils container" '
    'tabindex="0" role="region" aria-label="Recording of a terminal">',
}
#: HTML of a figure of an example, as written by sphinx-gallery
GALLERY_FIGURE = re.compile(
    r'<img src="([^"]*_images/(sphx_glr_[^"]+)\.png)"[^>]*"sphx-glr-\w+-img"/>'
)
#: Scale of figures on a phone, so that text of 9 points has 7.5 pixels.
ON_PHONE = 0.6


def source_of(page: str) -> str | None:
    """Return the source file of a page, relative to the repository.

    The sources of gallery pages are examples, and the sources of object pages are modules.
    """
    name = page.rpartition("/")[2]
    if "generated" in page.split("/"):
        return _file_of_object(name)
    folder, found = ROOT / "docs", [f"{page}.rst", f"{page}.md"]
    if page.startswith("auto_examples/"):
        page = page.removeprefix("auto_examples/")
        parent = page.removesuffix("index")
        folder = ROOT / "examples"
        found = [f"{page}.py", f"{parent}README.rst", f"{parent}GALLERY_HEADER.rst"]
    files = [folder / file for file in found if (folder / file).is_file()]
    return files[0].relative_to(ROOT).as_posix() if files else None


def _file_of_object(name: str) -> str | None:
    """Return the file of the class, function or module with this full name.

    For a value, such as a dictionary, return the file of its module.
    """
    try:
        found = pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None
    if not isinstance(found, ModuleType | type) and not inspect.isroutine(found):
        found = pkgutil.resolve_name(name.rpartition(".")[0])
    file = Path(inspect.getsourcefile(inspect.unwrap(found)))
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else None


def _finish_page(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Correct the HTML of a page, and pass the address of its source to edit-link.html."""
    for written, wanted in REPLACED.items():
        if written in context.get("body", ""):
            context["body"] = context["body"].replace(written, wanted)
    if page.startswith("auto_examples/"):
        context["body"] = GALLERY_FIGURE.sub(_linked_figure, context.get("body", ""))
    if (source := source_of(page)) is not None:
        options = app.config.html_theme_options
        context["edit_address"] = f"{options['github_url'].rstrip('/')}/edit/main/{source}"


def _linked_figure(found: re.Match[str]) -> str:
    """Return a figure that links to its file, with a width at which its text is legible."""
    [file] = (ROOT / "docs" / "auto_examples").glob(f"**/images/{found[2]}.png")
    width = int.from_bytes(file.read_bytes()[16:20], "big")  # of a PNG
    image = found[0].replace("<img", f'<img style="--phone-width: {ON_PHONE * width:.0f}px"', 1)
    return f'<a class="wide-figure" href="{found[1]}">{image}</a>'


def _name_buttons(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Label the buttons that open groups of pages in the sidebar, which the theme does not."""
    if (generate := context.get("generate_toctree_html")) is None:
        return

    def named(*args: Any, **kwargs: Any) -> Any:
        html = generate(*args, **kwargs)  # a string or a BeautifulSoup object
        if html is None or "raw" in (*args, kwargs.get("kind")):
            return html
        return re.sub(
            r"(>([^<>]+)</a><details[^>]*><summary)>", r'\1 aria-label="Pages of \2">', str(html)
        )

    context["generate_toctree_html"] = named


def _name_pictures(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Add alternative texts to images without one.

    The text of a thumbnail is the title of its example, and the text of a plot is the preceding
    paragraph.
    """
    before = ""
    for node in doctree.findall(lambda node: isinstance(node, nodes.paragraph | nodes.image)):
        if isinstance(node, nodes.paragraph):
            before = node.astext() or before
        elif not node.get("alt"):
            link = node.next_node(nodes.reference, siblings=True, descend=True)
            is_thumbnail = "/thumb/" in node["uri"] and link is not None
            node["alt"] = link.astext() if is_thumbnail else f"Figure: {before.rstrip(':')}"


class LightAndDark(SphinxDirective):
    """Figure with a light and a dark version: ``.. light-and-dark:: images/NAME-*.svg``."""

    required_arguments = 1
    has_content = True
    option_spec = dict.fromkeys(("alt", "figclass", "target", "width"), directives.unchanged)

    def run(self) -> list[nodes.Node]:
        lines = []
        for theme in ("light", "dark"):
            lines += [f".. figure:: {self.arguments[0].replace('*', theme)}"]
            lines += [
                f"   :{name}: {' '.join(text.split())}" for name, text in self.options.items()
            ]
            lines += [f"   :class: only-{theme}", "   :loading: lazy", ""]
            lines += [*(f"   {line}" for line in self.content), ""]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("light-and-dark", LightAndDark)
    app.connect("html-page-context", _finish_page)
    app.connect("html-page-context", _name_buttons, priority=900)  # after the theme
    app.connect("doctree-resolved", _name_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
