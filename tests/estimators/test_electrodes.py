"""Electrode positions: on where they are known, and those of the windows at hand."""

from __future__ import annotations

import warnings

import mne
import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from support.montages import NAMES, concatenated, recording, windows_of
from support.small_estimators import classifier

from braindecode_pars import PARSClassifier
from braindecode_pars.models import electrode_positions


def chs_info(*names: str) -> list[dict]:
    return [{"ch_name": name, "loc": np.full(12, np.nan)} for name in names]


def renamed(seed: int, *names: str):
    """Windows of a recording under other names, and their labels."""
    raw, y = recording(seed)
    raw.rename_channels(dict(zip(NAMES, names, strict=True)))
    return windows_of(raw, y), y


def scratch(**arguments) -> PARSClassifier:
    return classifier(**{"pretext": None, "validation": 0, **arguments})


@pytest.mark.parametrize(
    ("names", "is_on"),
    [
        (["C3", "X1", "X2", "X3"], True),
        (["X1", "X2", "X3", "X4"], False),
        (["C3-A2"], False),  # the code would be the same in all windows of the training
    ],
)
def test_auto_is_on_where_an_electrode_of_several_is_known(names, is_on):
    signals = np.random.default_rng(0).standard_normal((8, len(names), 200))
    windows = mne.EpochsArray(signals, mne.create_info(names, 100.0, "eeg"), verbose="error")
    clf = scratch(finetune_epochs=1).fit(windows, [0, 1] * 4)
    assert clf.net_.module_.electrode_position is is_on


@pytest.mark.parametrize("head", ["attention", "both"])
def test_windows_of_another_montage_have_their_own_positions(head):
    clf = scratch(head=head, amplitude=True).fit(concatenated(1, 2))
    windows, _ = renamed(3, "F3", "Fz", "F4", "Oz")
    same, _ = renamed(3, *NAMES)
    with pytest.warns(UserWarning, match="C3, Cz, C4, Pz") as caught:
        found = clf.decision_function(BaseConcatDataset([windows, same]))
    assert len(caught) == 1
    x = torch.stack([torch.from_numpy(windows[i][0]) for i in range(len(windows))])
    pos = torch.from_numpy(electrode_positions(chs_info("F3", "Fz", "F4", "Oz")))
    with torch.inference_mode():
        logits = clf.net_.module_(x, pos=pos)
    n = len(x)
    np.testing.assert_allclose(found[:n], (logits[:, 1] - logits[:, 0]).numpy(), atol=1e-5)
    assert np.abs(found[:n] - found[n:]).max() > 1e-3  # the same signals at other places
    np.testing.assert_array_equal(found[n:], clf.decision_function(same))


def test_arrays_have_the_channels_of_the_fit_if_they_have_as_many():
    windows = concatenated(1)
    x = np.stack([window for window, *_ in windows])
    clf = scratch(head="spatial_filter").fit(windows)
    np.testing.assert_array_equal(clf.predict_proba(x), clf.predict_proba(windows))
    more = np.concatenate([x, x[:, :1]], axis=1)
    with pytest.warns(UserWarning, match=f"{len(x)} of {len(x)}"):
        found = clf.predict_proba(more)
    with torch.inference_mode():
        logits = clf.net_.module_(torch.from_numpy(more), pos=torch.full((5, 3), torch.nan))
    np.testing.assert_allclose(found, logits.softmax(dim=1).numpy(), atol=1e-6)


def test_a_filter_that_was_fitted_without_positions_never_gets_any():
    """The gains of known positions are then untrained."""
    train = concatenated(1)
    x = np.stack([train[i][0] for i in range(len(train))])
    _, y = recording(1)
    with pytest.warns(UserWarning, match="uses electrode positions"):
        clf = scratch(head="spatial_filter", sfreq=100).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(clf.predict_proba(train), clf.predict_proba(x))
