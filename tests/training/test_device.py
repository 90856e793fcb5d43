"""Devices by name."""

from __future__ import annotations

import pytest
import torch

from braindecode_pars._common.computing import find_device


def test_auto_takes_what_is_available():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    if torch.backends.mps.is_available():
        expected = "mps"
    assert find_device("auto").type == expected
    assert find_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "meta", "cpu:x"])
def test_a_device_that_cannot_be_used_is_refused(name):
    with pytest.raises(ValueError, match=f"device='{name}' cannot be used here .*device='auto'"):
        find_device(name)
