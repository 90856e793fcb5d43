"""Digests change with every bit, also of types that NumPy does not have."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from braindecode_pars.evaluation.cache import digest, digest_array


def test_a_digest_changes_with_every_part():
    assert digest(1, "a") == digest(1, "a") != digest(1, "b")
    assert len(digest(1)) == 12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64])
def test_the_last_bit_of_a_tensor_counts(dtype):
    one = torch.full((2, 3), 2**30 if dtype is torch.int64 else 1.0, dtype=dtype)
    other = one.clone()
    other.view(torch.uint8)[0, 0] ^= 1
    assert digest_array(one) == digest_array(one.clone()) != digest_array(other)


def test_type_and_shape_of_an_array_count():
    array = np.zeros((2, 6), np.float32)
    others = [array.reshape(3, 4), array.view(np.int32), array.astype(object)]
    assert len({digest_array(array), *map(digest_array, others)}) == 4
    assert digest_array(np.arange(6).reshape(2, 3).T) == digest_array(
        np.arange(6).reshape(2, 3).T.copy()
    )
    assert digest_array(torch.ones(())) != digest_array(torch.zeros(()))
