"""Plugin of pytest: run the tests of the core in an environment without the optional packages.

``PYTHONPATH=tests pytest -p support.core_only`` selects the tests of the folders of the core, and
makes the import of the packages of all extras fail, as after ``pip install .``; so does the import
of torchmetrics, which only the evaluation requires.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

#: Packages that are not imported: of the extras, of tests of other parts, and torchmetrics.
BLOCKED = ("accelerate", "dask", "distributed", "edfio", "eeglabio")
BLOCKED += ("pyriemann", "rich", "selfeeg", "statsmodels", "torchmetrics", "typer")

#: Folders with tests of the core -> files in which tests also use other parts of the package.
OTHER_PARTS = {
    "encoders": {"test_held_out.py", "test_make_encoder.py", "test_shipped.py"},
    "estimators": {
        *("test_channels.py", "test_check_estimator.py", "test_flat_channels.py", "test_moabb.py"),
        *("test_sharing.py", "test_subject_centering.py"),
    },
    "models": {"test_foundation.py"},
    "plotting": {"test_evidence_figures.py", "test_scores.py"},
    "pretext": {"test_features.py"},
    "storage": {"test_files.py", "test_hub.py"},
    "training": {
        *("test_computing.py", "test_held_out.py", "test_learned.py", "test_step_graphs.py"),
    },
    "windows": {"test_labels.py", "test_once.py"},
}

#: Names of tests, or of their cases, that use other parts, in files of the core.
OTHER_TESTS = ("feature ensemble", "test_embedder_returns_one_vector_per_channel")

TESTS = Path(__file__).parents[1]

sys.modules.update(dict.fromkeys(BLOCKED))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.is_dir():
        is_part = collection_path.parent == TESTS
        return True if is_part and collection_path.name not in OTHER_PARTS else None
    other_parts = OTHER_PARTS.get(collection_path.parent.name)
    is_test_file = collection_path.match("test_*.py")
    is_other = other_parts is None or collection_path.name in other_parts
    return True if is_test_file and is_other else None


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    others = [item for item in items if any(name in item.name for name in OTHER_TESTS)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]
