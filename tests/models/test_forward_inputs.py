"""Arguments of PARSNet.forward."""

from __future__ import annotations

import mne
import numpy as np
import pytest
import torch

from braindecode_pars.models.parsnet import check_windows, mask_of, positions_of

X = torch.zeros(2, 3, 600)
CHS_INFO = mne.create_info(["C3", "C4", "EOG"], 100.0, "eeg")["chs"]


def test_windows_of_a_patch_and_more_are_accepted():
    check_windows(X, 600)
    with pytest.raises(ValueError, match="600 samples is shorter than the model's patch of 601"):
        check_windows(X, 601)


def test_masks_are_booleans():
    assert mask_of(X, None) is None
    mask = mask_of(X, np.array([[1, 0, 1], [0, 0, 1]]))
    assert mask.tolist() == [[True, False, True], [False, False, True]]


def test_positions_are_given_or_looked_up():
    assert positions_of(X, None, None) is None
    assert positions_of(X, np.ones((3, 3)), None).dtype == torch.float32
    assert positions_of(X, torch.ones(2, 3, 3), None).shape == (2, 3, 3)
    left, right, unknown = positions_of(X, None, CHS_INFO)
    assert left[0] < 0 < right[0]
    assert unknown.isnan().all()


@pytest.mark.parametrize(
    ("pos", "chs_info", "error", "message"),
    [
        (np.ones((3, 3)), CHS_INFO, ValueError, "pos and chs_info are both given; pass pos"),
        (None, CHS_INFO[:2], ValueError, "chs_info describes 2 channels, but the windows have 3"),
        (None, [], ValueError, "chs_info describes 0 channels, but the windows have 3; pass one"),
        (None, ["C3", "C4", "Cz"], TypeError, "chs_info contains 'C3'; its entries are dicts with"),
        (None, 3, TypeError, "chs_info is a int; it must be a list of channels as in mne.Info"),
        (np.ones((5, 3, 3)), None, ValueError, r"pos has shape \(5, 3, 3\); .* with batch = 2"),
    ],
)
def test_positions_that_do_not_belong_to_the_windows(pos, chs_info, error, message):
    with pytest.raises(error, match=message):
        positions_of(X, pos, chs_info)
