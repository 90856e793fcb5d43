"""Electrode positions: on where they are known, and those of the windows at hand."""

from __future__ import annotations

import logging
import warnings

import mne
import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from support.montages import NAMES, concatenated, recording, windows_of
from support.small_estimators import classifier

from braindecode_pars import PARSClassifier, paper
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
    ("names", "n_known"), [(["C3", "X1", "X2", "X3"], 1), (["X1", "X2", "X3", "X4"], 0)]
)
def test_auto_is_on_where_an_electrode_is_known_and_the_log_says_so(names, n_known, caplog):
    caplog.set_level("INFO")
    windows, _ = renamed(1, *names)
    for verbose in (0, 1):
        assert f"{n_known} of 4" not in caplog.text
        clf = scratch(head="attention", finetune_epochs=1, verbose=verbose).fit(windows)
        assert clf.net_.module_.electrode_position is (n_known > 0)
    records = [record for record in caplog.records if f"{n_known} of 4" in record.getMessage()]
    assert [record.levelno for record in records] == [logging.INFO]


def test_one_channel_has_no_position(caplog):
    """Its code would be the same in all windows of the training."""
    caplog.set_level("INFO")
    signals = np.random.default_rng(0).standard_normal((8, 1, 200))
    windows = mne.EpochsArray(signals, mne.create_info(["C3-A2"], 100.0, "eeg"), verbose="error")
    clf = scratch(finetune_epochs=1, verbose=1).fit(windows, [0, 1] * 4)
    assert not clf.net_.module_.electrode_position
    assert "electrode_position='auto'" in caplog.text
    assert "1 of 1" in caplog.text


def test_positions_on_demand_need_names():
    x, y = np.random.default_rng(0).standard_normal((4, 2, 100)), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="electrode_position"):
        scratch(electrode_position=np.True_, sfreq=100.0).fit(x, y)
    windows, _ = renamed(1, "X1", "X2", "X3", "X4")
    with pytest.warns(UserWarning, match="X1"):
        clf = scratch(electrode_position=True, finetune_epochs=1).fit(windows)  # no electrode
    assert clf.net_.module_.electrode_position is True


def test_the_published_classifier_has_no_positions():
    small = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16, verbose=0)
    short = dict(pretrain_epochs=0, finetune_epochs=1, validation=0)
    clf = PARSClassifier(**{**paper.CLASSIFIER, **small, **short}).fit(concatenated(1))
    module = clf.net_.module_
    assert (module.electrode_position, module.amplitude, module.head) == (False, False, "attention")
    assert module.positions is None


def test_recordings_of_different_channels_are_accepted_as_they_are():
    raw, y = recording(2)
    other = raw.copy().rename_channels({"C3": "F3", "Pz": "Oz"})
    both = BaseConcatDataset([windows_of(recording(1)[0], y, 1), windows_of(other, y, 2)])
    clf = scratch().fit(both)
    assert clf.n_chans_ == 4
    assert not clf.net_.module_.electrode_position
    # Positions are asked for: only the common channels are used.
    with pytest.warns(UserWarning, match="Cz, C4"):
        filters = scratch(head="spatial_filter").fit(both)
    assert filters.n_chans_ == 2
    assert filters.net_.module_.positions is not None


@pytest.mark.parametrize("head", ["attention", "spatial_filter", "both"])
def test_windows_of_another_montage_have_their_own_positions(head, tmp_path):
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
    loaded = PARSClassifier.load(clf.save(tmp_path))
    assert loaded.get_params() == clf.get_params()
    np.testing.assert_array_equal(loaded.decision_function(same), found[n:])


def test_unknown_electrodes_warn_at_predict_too():
    clf = scratch(head="spatial_filter").fit(concatenated(1))
    unknown, _ = renamed(3, "E1", "E2", "E3", "E4")
    same, _ = renamed(3, *NAMES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.predict(BaseConcatDataset([unknown, same]))
    missing, positions = (str(warning.message) for warning in caught)
    assert "C3, Cz, C4, Pz are missing" in missing
    assert "40 of 80" in positions
    assert "E1" in positions
    assert caught[1].filename == __file__


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
    with pytest.warns(UserWarning, match="head='spatial_filter' uses electrode positions"):
        clf = scratch(head="spatial_filter", sfreq=100).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(clf.predict_proba(train), clf.predict_proba(x))
