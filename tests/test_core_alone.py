"""A missing optional dependency raises an error with the command that installs it.

``support.core_only`` runs the tests of the core without optional dependencies, and
``tests/test_architecture.py`` checks the imports.
"""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from braindecode_pars._common.names import extra_module
from braindecode_pars.evaluation import SpatialCovariance

#: Module of an optional package -> the extra that installs it.
EXTRAS = {"typer": "commands", "accelerate": "scale", "pyriemann.estimation": "evaluation"}


def extra_in(message: str) -> str:
    """Return the extra in the command that a message contains."""
    return re.search(r"pip install 'braindecode_pars\[(\w+)\] @", message)[1]


@pytest.mark.parametrize("module", EXTRAS)
def test_the_error_about_a_missing_package_names_the_extra_to_install(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as error:
        extra_module(module)
    assert extra_in(str(error.value)) == EXTRAS[module]


def test_features_that_require_an_extra_name_it(monkeypatch):
    for name in ("pyriemann", "pyriemann.estimation"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as error:
        SpatialCovariance().fit_transform(np.random.default_rng(0).normal(size=(2, 3, 9)))
    assert extra_in(str(error.value)) == "evaluation"
