"""Sphinx configuration. The documentation builds offline, from files in the repository only."""

import configparser
import os
import socket
import sys
import warnings
from pathlib import Path

import braindecode_pars
from braindecode_pars import datasets, paper

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
import gallery

project = "braindecode_pars"
author = "the braindecode_pars developers"
copyright = "2026, " + author  # noqa: A001  Sphinx requires this name
release = version = braindecode_pars.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "reference",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "numpydoc",
    "measured",
    "names_table",
    "paper_tables",
    "form",
]
exclude_patterns = ["_build", "_templates", "measured"]
templates_path = ["_templates"]
autosummary_generate = True
autosummary_ignore_module_all = False  # modules document the names in their __all__
autodoc_typehints = "none"  # numpydoc shows the types
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"  # the table of contents is narrow
# Dataset cards and the settings of the paper are shown as tables.
autosummary_context = {
    "values": {
        module.__name__: {
            name: value
            for name in module.__all__
            if isinstance(value := getattr(module, name), dict)
        }
        for module in (paper, datasets.simulated, *(getattr(datasets, n) for n in datasets.RECIPES))
    }
}


def reachable(host: str) -> bool:
    try:
        socket.create_connection((host, 443), timeout=2).close()
    except OSError:
        return False
    return True


# Warnings on a page do not show the file path on the computer that built the page.
warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"

# Links to other projects need their inventories from the network; offline, there are no links.
intersphinx_mapping = {}
if reachable("docs.python.org"):
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "skorch": ("https://skorch.readthedocs.io/en/stable", None),
        "mne": ("https://mne.tools/stable", None),
        "braindecode": ("https://braindecode.org/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
    }

# Examples with real recordings run only if the recordings are available; others are only shown,
# because a build never downloads data.
examples = Path(__file__).parents[1] / "examples"
runnable = [
    page.name
    for page in sorted(examples.glob("*/plot_*.py"))
    if "BRAINDECODE_PARS_EEG" in os.environ
    or "BRAINDECODE_PARS_EEG" not in page.read_text(encoding="utf-8")
]
sphinx_gallery_conf = {
    "examples_dirs": str(examples),
    "gallery_dirs": "auto_examples",
    "filename_pattern": "|".join(runnable).replace(".", r"\."),
    "subsection_order": [f"../examples/{group}" for group in gallery.ORDER],
    "within_subsection_order": "gallery.PageOrder",
    "image_scrapers": ("gallery.scrape",),
    "thumbnail_size": (400, 280),
    "doc_module": ("braindecode_pars",),
    "backreferences_dir": "generated/backreferences",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 1,
    "write_computation_times": False,
}
# Plot directives read files relative to "docs", for pages in any folder.
plot_working_directory = str(Path(__file__).parent)
plot_html_show_formats = False
plot_html_show_source_link = False
plot_formats = [("png", 150)]

html_theme = "pydata_sphinx_theme"
html_title = "braindecode_pars"
html_static_path = ["_static"]
html_favicon = html_logo = "_static/favicon.svg"
html_css_files = ["site.css"]
html_show_sourcelink = False
# setup.cfg contains the address of the repository.
setup_cfg = configparser.ConfigParser()
setup_cfg.read(Path(__file__).parents[1] / "setup.cfg")
repository = setup_cfg["metadata"]["url"]
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": f"braindecode_pars {version}"},
    "github_url": repository,
    "navbar_persistent": ["search-button-named"],
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc", "edit-link"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {page: [] for page in ("index", "install", "paper", "project/*")}
