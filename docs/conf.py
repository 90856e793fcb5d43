"""Sphinx configuration."""

import braindecode_pars

project = "braindecode_pars"
author = "the braindecode_pars developers"
copyright = "2026, " + author  # noqa: A001  the name that Sphinx reads
release = braindecode_pars.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
autosummary_generate = True
numpydoc_show_class_members = False
exclude_patterns = ["_build", "measured"]
html_theme = "pydata_sphinx_theme"
