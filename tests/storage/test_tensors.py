"""Loading of tensors into modules."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from braindecode_pars._common.model_files import LoadReport, build_and_load, load_tensors


def test_a_partial_match_is_loaded_only_without_strict():
    linear = nn.Linear(3, 2)
    bias = linear.bias.detach().clone()
    given = {"weight": torch.ones(2, 3), "bias": torch.ones(7), "scale": torch.ones(1)}
    message = r"tensors of somewhere do not match the Linear: 1 of 2 tensors loaded; 1 of "
    with pytest.raises(ValueError, match=message):
        load_tensors(linear, given, "somewhere")
    assert not (linear.weight == 1).all()
    report = load_tensors(linear, given, "somewhere", strict=False)
    assert report == LoadReport(("weight",), (), ("bias",), ("scale",))
    assert (linear.weight == 1).all()
    assert torch.equal(linear.bias, bias)
    with pytest.raises(ValueError, match="0 of 2 tensors loaded; 2 missing"):
        load_tensors(linear, {}, "somewhere", strict=False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.ones(2, 3, dtype=torch.int64), "weight of a file has type torch.int64"),
        (torch.ones(2, 3, dtype=torch.bool), "weight of a file has type torch.bool"),
        (torch.ones(2, 3, dtype=torch.complex64), "weight of a file has type torch.complex64"),
        (torch.full((2, 3), torch.nan), "weight of a file contains NaN or infinite values"),
    ],
)
def test_tensors_that_torch_would_convert(value, message):
    linear = nn.Linear(3, 2)
    with pytest.raises(ValueError, match=message):
        load_tensors(linear, {"weight": value, "bias": torch.ones(2)}, "a file")


def test_a_large_description_is_not_built():
    """Two billion numbers would take 8 GB; each build is counted."""
    tensors = nn.Linear(3, 2).state_dict()
    devices = []

    def build(size: int) -> nn.Module:
        linear = nn.Linear(3, size)
        devices.append(linear.weight.device.type)
        return linear

    module, report = build_and_load(lambda: build(2), tensors, "a file", num_layers=1)
    assert devices == ["meta", "cpu"]
    assert report.complete
    assert torch.equal(module.weight, tensors["weight"])
    with pytest.raises(ValueError, match=r"0 of 2 tensors loaded; 2 of another shape"):
        build_and_load(lambda: build(10**9), tensors, "a file", num_layers=1, strict=False)
    # One tensor matches, so that only the size shows that the description is another one.
    partly = {"0.weight": torch.ones(3, 3), "0.bias": torch.ones(3)}
    with pytest.raises(ValueError, match=r"contains 12 numbers, but its description is of a model"):
        build_and_load(
            lambda: nn.Sequential(nn.Linear(3, 3), build(10**9)),
            partly,
            "a file",
            num_layers=1,
            strict=False,
        )
    assert devices == ["meta", "cpu", "meta", "meta"]


@pytest.mark.parametrize("num_layers", [20_000, None, "many"])
def test_more_layers_than_tensors(num_layers):
    with pytest.raises(ValueError, match="has 2 tensors, too few for the"):
        build_and_load(pytest.fail, nn.Linear(3, 2).state_dict(), "a file", num_layers=num_layers)


def test_a_description_that_cannot_be_built():
    def build() -> nn.Module:
        raise TypeError("unexpected keyword 'hidden'")

    with pytest.raises(ValueError, match="a file does not describe a model: unexpected keyword"):
        build_and_load(build, nn.Linear(3, 2).state_dict(), "a file", num_layers=1)
