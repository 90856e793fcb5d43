"""Public names, their signatures, documentation and examples."""

from __future__ import annotations

import copy
import doctest
import functools
import importlib
import inspect
import pkgutil
from typing import Any

import matplotlib.pyplot as plt
import pytest

import braindecode_pars
from braindecode_pars import datasets


def parameters(callable_):
    return [name for name in inspect.signature(callable_).parameters if name != "self"]


def test_signatures():
    """Arguments that scripts pass by position, and parameters of one estimator only."""
    from braindecode_pars import PARSClassifier, PARSNet, PARSRegressor, PatchEncoder
    from braindecode_pars.callbacks import Pretraining
    from braindecode_pars.pretext import PARS

    for thing, first in (
        (PatchEncoder, "patch_size embed_dim num_layers num_heads mlp_dim drop_prob activation"),
        (PARS, "n_times patch_size"),
        (PARSNet, "n_outputs n_chans chs_info n_times input_window_seconds sfreq"),
        (PARSNet.forward, "x pos ch_mask return_features chs_info"),
        (Pretraining, "task epochs lr batch_size"),
        (datasets.simulated.sleep, "n_subjects hours n_chans sfreq random_state"),
    ):
        assert parameters(thing)[: len(first.split())] == first.split()
    of_classifier, of_regressor = map(set, map(parameters, (PARSClassifier, PARSRegressor)))
    assert of_regressor - of_classifier == {"loss"}
    assert of_classifier - of_regressor == {"class_weight", "label_smoothing", "unlabeled_label"}


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


def test_modules_are_documented():
    for name in public_modules():
        assert importlib.import_module(name).__doc__, name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(public_modules()))
def test_examples_of_public_names_run(name, request):
    if name != "braindecode_pars.datasets.simulated":  # doctest would not find its examples
        request.getfixturevalue("cached_datasets")
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    plt.close("all")
    assert results.failed == 0
