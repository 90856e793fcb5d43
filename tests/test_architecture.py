"""Dependencies between the parts of the package: layers, no import cycles, no private names."""

from __future__ import annotations

import re
import subprocess
import sys
from graphlib import TopologicalSorter

from support.structure import MODULES, ROOT, imported_paths, imports, part_of

from braindecode_pars import PARSClassifier


def test_the_import_contracts_hold():
    """Check them in another process, because this changes loggers."""
    code = "from importlinter.cli import lint_imports_command as c; c()"
    command = [sys.executable, "-c", code, "--no-cache"]
    result = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_there_are_no_import_cycles():
    graph = {name: imports(name) for name in MODULES if name != "braindecode_pars"}
    graph = {name: {d for d in used if d != "braindecode_pars"} for name, used in graph.items()}
    assert list(TopologicalSorter(graph).static_order())


def test_parts_that_use_braindecode_import_hosts():
    """hosts silences a warning about montages, and shortens an error of torchaudio."""
    use_braindecode = {
        part_of(name)
        for name, path in MODULES.items()
        if re.search(r"^(from|import) braindecode[. ]", path.read_text("utf-8"), re.MULTILINE)
    }
    import_hosts = {
        part_of(name) for name in MODULES if "braindecode_pars._common.hosts" in imports(name)
    }
    assert len(use_braindecode) >= 6
    assert use_braindecode - {"cli", "_common"} <= import_hosts


def test_no_private_names_of_host_libraries_are_imported():
    hosts = {"sklearn", "skorch", "braindecode", "mne", "torch"}
    private_names = [
        path
        for path in set().union(*map(imported_paths, MODULES))
        if path.partition(".")[0] in hosts
        and any(part.startswith("_") and part != "__version__" for part in path.split("."))
    ]
    assert private_names == []


def test_a_classifier_has_at_most_five_own_classes():
    modules = [kind.__module__ for kind in PARSClassifier.__mro__]
    assert sum(module.startswith("braindecode_pars") for module in modules) <= 5
