"""Public names, their signatures, documentation and examples."""

from __future__ import annotations

import copy
import doctest
import functools
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from class_members import documented_names

import braindecode_pars
from braindecode_pars import datasets

DOCS = Path(__file__).parents[1] / "docs"


def parameters(callable_):
    return [name for name in inspect.signature(callable_).parameters if name != "self"]


def test_signatures():
    from braindecode_pars import PARSClassifier, PARSNet, PARSRegressor, PatchEncoder, datasets
    from braindecode_pars.callbacks import Pretraining
    from braindecode_pars.pretext import PARS

    for thing, names in (
        (
            PatchEncoder,
            "patch_size embed_dim num_layers num_heads mlp_dim drop_prob activation tokenizer",
        ),
        (PARS, "n_times patch_size ..."),
        (PARSNet, "n_outputs n_chans chs_info n_times input_window_seconds sfreq ..."),
        (PARSNet.forward, "x pos ch_mask return_features chs_info"),
        (Pretraining, "task epochs lr batch_size ..."),
        (datasets.simulated.sleep, "n_subjects hours n_chans sfreq random_state"),
    ):
        actual = parameters(thing)
        *expected, last = names.split()
        assert (actual[: len(expected)] if last == "..." else actual) == (
            expected if last == "..." else [*expected, last]
        )
    for estimator in (PARSClassifier, PARSRegressor):
        for parameter in list(inspect.signature(estimator).parameters.values())[1:]:
            assert parameter.kind is parameter.KEYWORD_ONLY
    shared = {*parameters(PARSClassifier)} & {*parameters(PARSRegressor)}
    assert {*parameters(PARSRegressor)} - shared == {"loss"}
    assert {*parameters(PARSClassifier)} - shared == {
        *("class_weight", "label_smoothing", "unlabeled_label")
    }


def public_modules():
    for module in pkgutil.walk_packages(braindecode_pars.__path__, "braindecode_pars."):
        if not module.name.endswith("__main__"):
            yield module.name


@pytest.fixture(scope="module")
def cached_datasets():
    """Create the datasets of the examples once; every example receives a copy."""

    def cached(function):
        results: dict[str, Any] = {}

        @functools.wraps(function)
        def call(*args, **kwargs):
            key = repr((args, kwargs))
            if key not in results:
                results[key] = function(*args, **kwargs)
            return copy.deepcopy(results[key])

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((datasets, "mental_arithmetic"), (datasets.simulated, "sleep")):
            patch.setattr(owner, name, cached(getattr(owner, name)))
        yield


@pytest.mark.parametrize("name", sorted(public_modules()))
def test_public_names_are_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for attribute in getattr(module, "__all__", []):
        thing = getattr(module, attribute)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, f"{name}.{attribute}"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(public_modules()))
def test_examples_of_public_names_run(name, request):
    if name != "braindecode_pars.datasets.simulated":  # doctest would not find its examples
        request.getfixturevalue("cached_datasets")
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    plt.close("all")
    assert results.failed == 0


def thing_of(name: str) -> Any:
    """Return the object, or the module, with a name in the package."""
    path = f"braindecode_pars.{name}"
    parent = importlib.import_module(path.rpartition(".")[0])
    last = name.rpartition(".")[2]
    return getattr(parent, last) if hasattr(parent, last) else importlib.import_module(path)


def public_names() -> Iterator[str]:
    """Yield the names in ``__all__`` of all public packages and modules."""
    for module in ("braindecode_pars", *public_modules()):
        path = module.removeprefix("braindecode_pars").removeprefix(".")
        if not any(part.startswith("_") for part in path.split(".")):
            for name in getattr(importlib.import_module(module), "__all__", ()):
                yield f"{path}.{name}".lstrip(".")


def reference() -> list[str]:
    """Return the names that the pages of docs/api list."""
    listed, current = [], ""
    entry = r"(?: {3}~?|\.\. (?:autodata|py:data):: )([\w.]+)"
    for page in sorted((DOCS / "api").glob("*.rst")):
        if page.name == "index.rst":
            continue  # it repeats names of other pages
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.fullmatch(r"\.\. currentmodule:: braindecode_pars\.?([\w.]*)", line):
                current = match[1]
            elif match := re.fullmatch(r"\.\. pages:: (\w+)", line):
                listed += documented_names(match[1])
            elif match := re.fullmatch(entry, line):
                listed.append(f"{current}.{match[1]}".lstrip("."))
    return listed


REFERENCE = reference()
#: Modules with a page that documents all names of the module.
WHOLE_MODULES = [name for name in REFERENCE if isinstance(thing_of(name), ModuleType)]
DOCUMENTED = [
    *(name for name in REFERENCE if name not in WHOLE_MODULES),
    *(f"{module}.{name}" for module in WHOLE_MODULES for name in thing_of(module).__all__),
]
#: Names that modules of the package share but users do not need; they are not in the reference.
INTERNAL = {
    *("cli.main", "encoder.MultiHeadAttention", "encoder.TransformerBlock"),
    *("models.AmplitudeCode", "models.SpatialFilter"),
    *("models.patch_size_for", "models.relative_amplitude"),
    *(
        "pretext.joint.SeveralLengths",
        "pretext.joint.WeightedSum",
        "pretext.spectral.frequency_bands",
    ),
    "pretraining.RelativeLoss",
    *("tokens.LogPowerSpectrum", "tokens.detrended_patches"),
}


def test_the_reference_has_every_public_name_and_nothing_internal():
    # Compare objects, because an object may be listed under another name.
    listed = [thing_of(name) for name in [*DOCUMENTED, *WHOLE_MODULES]]
    unlisted = {
        name
        for name in public_names()
        if not any(thing_of(name) is thing for thing in listed)
        and not isinstance(thing_of(name), ModuleType)
    }
    assert unlisted == INTERNAL


def test_a_name_is_listed_once():
    assert [name for name in REFERENCE if REFERENCE.count(name) > 1] == []


def test_internal_functions_are_in_no_public_module():
    """Functions that read and write files are shared between modules, but not public."""
    names = {name.rpartition(".")[2] for name in public_names()}
    assert names.isdisjoint({"as_rst", "draw_steps", "read_json", "write_folder", "write_json"})


def sections(thing: Any) -> dict[str, list[str]]:
    """Return the lines below each heading of a docstring."""
    parts = re.split(r"^(\w+)\n-+$", inspect.getdoc(thing), flags=re.MULTILINE)
    return {head: body.splitlines() for head, body in zip(parts[1::2], parts[2::2], strict=True)}


def test_listed_names_exist_with_parameters_and_an_example():
    for name in sorted({*DOCUMENTED, *INTERNAL}):
        thing = thing_of(name)
        if not callable(thing):
            continue
        body = sections(thing)
        assert any(line.lstrip().startswith(">>>") for line in body.get("Examples", [])), name
        if not (isinstance(thing, type) and issubclass(thing, Exception)):
            entries = [*body.get("Parameters", []), *body.get("Attributes", [])]
            heads = [line.partition(" : ")[0] for line in entries if not line.startswith(" ")]
            documented = {part.strip(" *") for head in heads for part in head.split(",")}
            assert set(parameters(thing)) - documented == set(), name


FIGURES = [name for name in REFERENCE if name.startswith("plotting.") and "page" not in name]


@pytest.mark.parametrize("name", FIGURES)
def test_a_plotting_function_has_an_example_figure_with_alternative_text(name):
    doc = inspect.getdoc(thing_of(name))
    assert ".. plot::" in doc
    assert re.search(r"^ +:alt: (\S+ ){5}", doc, re.MULTILINE)


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    return importlib.import_module("class_members")


def test_the_page_of_parsnet_shows_its_signature(pages):
    """By default, Sphinx shows the signature of the mixin class of braindecode models."""
    shown = pages.signature_of(braindecode_pars.PARSNet)
    real = inspect.signature(braindecode_pars.PARSNet).parameters.values()
    plain = inspect.Signature([p.replace(annotation=p.empty) for p in real])
    assert shown.replace("torch.nn.GELU", repr(torch.nn.GELU)) == str(plain)
    assert pages.signature_of(braindecode_pars.PARSClassifier) == ""


def test_the_page_of_a_class_shows_its_members_and_folds_inherited_members(pages):
    from braindecode_pars.pretraining import PretrainingNet

    members = pages.own_members(braindecode_pars.PARSClassifier)
    assert {"fit", "predict_raw", "save", "from_pretrained"} <= set(members)
    assert pages.inherited_members(braindecode_pars.PARSClassifier) == {
        "sklearn.base.BaseEstimator": ["get_metadata_routing", "get_params", "set_params"]
    }
    folded = pages.inherited_members(braindecode_pars.PARSNet)
    assert list(folded) == ["braindecode.models.EEGModuleMixin", "torch.nn.Module"]
    assert "forward" in pages.own_members(
        braindecode_pars.PARSNet
    )  # has a docstring in the package
    assert not any("forward" in members for members in folded.values())
    # Hooks that override hooks of skorch, without a docstring
    assert "train_step" not in pages.own_members(PretrainingNet)
    assert "train_step" in pages.inherited_members(PretrainingNet)["skorch.net.NeuralNet"]


def test_tests_do_not_import_a_package_from_the_current_folder(request, tmp_path):
    """A clone contains a folder of the same name, which would hide the installed package."""
    (tmp_path / "braindecode_pars").mkdir()
    (tmp_path / "braindecode_pars" / "__init__.py").write_text("__version__ = 'another'")
    code = "import braindecode_pars; print(braindecode_pars.__file__)"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == braindecode_pars.__file__
    lines = request.config.hook.pytest_report_header(config=request.config, start_path=tmp_path)
    assert f"testing {Path(braindecode_pars.__file__).parent}" in lines
