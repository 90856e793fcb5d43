"""Windows as the estimators read them."""

from __future__ import annotations

from types import SimpleNamespace

import mne
import numpy as np
import pytest
import torch

from braindecode_pars import PARSEmbedder
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators.embedder import further_windows
from braindecode_pars.estimators.windows_estimator import (
    batches,
    check_finite,
    read_to_predict,
    read_windows,
)
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.preprocessing import Preprocessing

ARRAY = np.random.default_rng(0).normal(size=(6, 2, 50)).astype(np.float32)


def fitted(sfreq, chs_info=None, channels=None):
    """What is read of a fitted estimator."""
    return SimpleNamespace(
        sfreq_=sfreq,
        n_times_=50,
        chs_info_=chs_info,
        channels=channels,
        preprocessing_=Preprocessing(),
        pretext="pars",
        encoder=None,
    )


def read_further(estimator, windows):
    (further,) = further_windows(estimator, windows, as_windows(ARRAY, sfreq=estimator.sfreq_))
    return further


def test_labels_become_indices_of_the_sorted_classes():
    clf = NetworkClassifier(sfreq=100.0, unlabeled_label="?")
    windows = clf._read_labeled(ARRAY, ["W", "N", "?", "W", "N", "?"], None)
    assert clf.classes_.tolist() == ["N", "W"]
    assert windows.y.tolist() == [1, 0, -1, 1, 0, -1]
    assert windows.sfreq == 100.0


def test_channels_that_are_not_eeg_are_not_read():
    info = mne.create_info(["C3", "STI 014"], 100.0, ["eeg", "stim"])
    epochs = mne.EpochsArray(ARRAY, info, verbose="error")
    with pytest.warns(UserWarning, match="STI 014"):
        windows = read_windows(PARSEmbedder(), epochs)
    np.testing.assert_array_equal(windows[2], ARRAY[2, :1])
    with pytest.warns(UserWarning, match="STI 014"):
        assert read_further(fitted(100.0), epochs)[2].shape == (1, 50)
    # At predict, the channels of fit are picked by name, and an extra channel is only logged.
    read = read_to_predict(fitted(100.0, windows.chs_info), epochs)
    np.testing.assert_array_equal(read[2], ARRAY[2, :1])


def test_listed_channels_are_also_those_of_further_windows():
    def epochs(*names):
        info = mne.create_info(list(names), 100.0, "eeg")
        return mne.EpochsArray(ARRAY, info, verbose="error")

    listed = read_windows(PARSEmbedder(channels=["C4"]), epochs("C3", "C4")).chs_info
    of_c4 = fitted(100.0, listed, channels=["C4"])
    same = read_further(of_c4, epochs("Cz", "C4"))
    np.testing.assert_array_equal(same[0], ARRAY[0, 1:])
    with pytest.warns(UserWarning, match="C4"):
        others = read_further(of_c4, epochs("Fz", "Cz"))
    np.testing.assert_array_equal(others[0], ARRAY[0])


def test_another_sampling_rate_is_refused():
    windows = as_windows(ARRAY, sfreq=100.0)
    with pytest.raises(ValueError, match=r"100 Hz.* 200 Hz"):
        read_to_predict(fitted(200.0), windows)
    with pytest.raises(ValueError, match=r"100 Hz.* 200 Hz"):
        read_further(fitted(200.0), windows)


def test_batches_are_tensors_in_order():
    given = batches(as_windows(ARRAY), 50, torch.device("cpu"), batch_size=4)
    read = [batch for batch, _ in given]
    assert [len(batch) for batch in read] == [4, 2]
    np.testing.assert_array_equal(torch.cat(read), ARRAY)
    with pytest.raises(ValueError, match="51"):
        next(batches(as_windows(ARRAY), 51, torch.device("cpu")))


def test_an_output_that_is_not_finite_is_refused():
    assert check_finite(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(ValueError, match="finite"):
        check_finite(torch.tensor([1.0, float("nan")]))
