"""Common mistakes, one case each: every mistake raises an error with a helpful message."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

import mne
import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from sklearn.exceptions import NotFittedError
from skorch.callbacks import EarlyStopping
from torch import nn

from braindecode_pars import (
    PARSClassifier,
    PatchEncoder,
    as_sklearn,
)

RNG = np.random.default_rng(0)
ARRAY = RNG.normal(size=(8, 2, 600)).astype(np.float32)
LABELS = np.array([0, 1] * 4)
SIZES = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)


def clf(**arguments) -> PARSClassifier:
    defaults = dict(SIZES, sfreq=100, pretrain_epochs=1, finetune_epochs=1, verbose=0)
    return PARSClassifier(**{**defaults, "validation": 0, "random_state": 0, **arguments})


def fit(X=ARRAY, y=LABELS, groups=None, unlabeled=None, **arguments):
    return clf(**arguments).fit(X, y, groups=groups, unlabeled=unlabeled)


fitted = cache(fit)


def changed(index: tuple, value: float) -> np.ndarray:
    array = ARRAY.copy()
    array[index] = value
    return array


def epochs(array=ARRAY, sfreq=100.0, names=("C3", "C4"), kinds="eeg") -> mne.EpochsArray:
    info = mne.create_info(list(names), sfreq, kinds)
    return mne.EpochsArray(array, info, verbose="error")


def bad(windows: mne.EpochsArray) -> mne.EpochsArray:
    windows.info["bads"] = ["C4"]
    return windows


def recording(sfreq: float = 100.0, **arguments) -> BaseConcatDataset:
    from braindecode.preprocessing import create_fixed_length_windows

    info = mne.create_info(["C3", "C4"], sfreq, "eeg")
    signals = RNG.normal(size=(2, int(60 * sfreq))) * 1e-5
    raw = BaseConcatDataset([RawDataset(mne.io.RawArray(signals, info, verbose="error"))])
    return create_fixed_length_windows(
        raw, window_size_samples=600, window_stride_samples=600, drop_last_window=True
    )


#: Argument of fit -> rows of (value, pattern of the message, type of an error that is no
#: ValueError).
FIT: dict[str, list[tuple]] = {
    "X": [
        (mne.io.RawArray(ARRAY[0], epochs().info, verbose="error"), "Cut the rec", TypeError),
        (ARRAY[0], r"\(2, 600\)"),
        (ARRAY[:, :0], r"\(0, 600\)"),
        (changed((3, 1, 17), np.nan), r"Window 3 .*channel 1"),
        (changed((5, 0, 17), 1).astype(float) * 1e300, r"Window 0 .*0, 1"),
        (epochs(changed((2, 1, 0), np.nan)), r"Window 2 .*channel C4"),
        ([*ARRAY[:7], ARRAY[7, :, :500]], r"Window 7 .*\(2, 500\)"),
        (lambda: BaseConcatDataset([recording(), recording(200.0)]), r"100 Hz \(1\), 200 Hz \(1\)"),
        (epochs(names=["ECG1", "STI"], kinds=["eeg", "stim"]), r"ECG1, STI.*channels="),
        (ARRAY[:, :, :99], r"99 .*100 samples"),
        (ARRAY[:, :, :100], "one patch"),
    ],
    "y": [
        (None, r"no labels.* PARSEmbedder"),
        ([0, 1], r"y .*\(2,\)"),
        ([0, 1, None, 1] * 2, r"2 of 8 .*unlabeled_label"),
        ([0, 1, np.nan, 1] * 2, "NaN"),
        (np.linspace(0, 1, 8), "continuous"),
        ([-1] * 8, r"-1.*PARSEmbedder"),
        ([-1, 1] * 4, r"-1 .*unlabeled_label"),
    ],
    "groups": [
        (pd.DataFrame({"a": LABELS, "b": LABELS}), r"groups .*\(8, 2\)"),
    ],
    "unlabeled": [
        (changed((4, 1, 3), np.nan), r"Window 4 .*channel 1"),
        (epochs(names=["EOG1", "STI"], kinds=["eeg", "stim"]), r"EOG1, STI.*set_channel_types"),
        (epochs(sfreq=250.0), r"250 Hz.* 100 Hz.* Resample"),
    ],
}
#: Arguments that contradict the windows.
FIT_WITH = [
    (dict(X=ARRAY[:0], y=[]), "no windows"),
    (dict(X=epochs(), sfreq=250), r"100 Hz.* 250 Hz"),
    (dict(X=epochs(), channels=["C3", "Oz"]), r"Oz .*8 of 8 windows.* C3, C4"),
    (
        dict(X=[epochs()[0], epochs(names=["F3", "F4"])[0]] * 4, electrode_position=True),
        "C3, C4, F3, F4",
    ),
    (dict(pretrain_lr=1e30, pretrain_epochs=5), "PretrainingNet"),
]

#: Parameter, value, pattern of the message.
PARAMETERS = [
    ("pretext", nn.Linear, "PretextTask"),
    ("pretext_params", {"ratio": 0.5}, "'ratio'"),
    ("pretext_params", {"decoder": "gru"}, r"decoder .*'mlp'"),
    ("embed_dim", 15, "embed_dim"),
    ("electrode_position", True, "channel names"),
    ("preprocessing", {"low": 0.5}, "'low'"),
    ("encoder_lr_factor", (0.0, 0.1), "pair of positive numbers"),
    ("augmentation", "Mix", "'Mix'"),
    ("class_weight", {0: -5.0}, r"class_weight of 0 .*-5"),
    ("validation", 1.0, "validation"),
    ("validation", "split", "None: 8"),
    ("pretrain_callbacks", [EarlyStopping()], "EarlyStopping"),
    ("device", "cuda:77", "'cuda:77'"),
    ("encoder", str(Path(__file__).parent), r"encoder\.safetensors"),
    ("encoder", PatchEncoder(700, **SIZES), "600"),
    ("class_weight", {"N3": 2.0}, r"'N3'.*\[0, 1\]"),
    ("channels", ["C3"], r"channels=\['C3'\]"),
]
REFUSALS = [
    *((dict.fromkeys([name], row[0]), *row[1:]) for name, rows in FIT.items() for row in rows),
    *FIT_WITH,
    *(
        ({name: value}, message, (ValueError, TypeError, FileNotFoundError))
        for name, value, message in PARAMETERS
    ),
]


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: f"{next(iter(row[0]))}-{row[1]}")
@pytest.mark.filterwarnings("ignore")
def test_fit_refuses_with_a_helpful_error(row):
    arguments, message, *kind = row
    lazy = {name: v() if inspect.isfunction(v) else v for name, v in arguments.items()}
    with pytest.raises(*(kind or [ValueError]), match=message):
        fit(**lazy)


#: Name of the case -> (action, pattern of the message, type of an error that is no ValueError).
CASES = {
    "not fitted": (lambda: clf().predict(ARRAY), "not fitted", NotFittedError),
    "another sampling rate at predict": (
        lambda: fitted().predict(epochs(sfreq=250.0)),
        r"250 Hz.* 100 Hz.* Resample",
    ),
    "NaN at predict": (lambda: fitted().predict(changed((7, 0, 0), np.nan)), "Window 7"),
    "gaps to score against": (lambda: fitted().score(ARRAY, [None] * 8), "missing"),
    "as_sklearn without subjects": (lambda: as_sklearn(recording()), "'subject'"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_a_mistake_raises_a_helpful_error(case):
    mistake, message, *kind = CASES[case]
    with pytest.raises(*(kind or [ValueError]), match=message):
        mistake()


WARNINGS = {
    "a stimulus channel": (lambda: fit(epochs(names=["C3", "STI"], kinds=["eeg", "stim"])), "STI"),
    "a bad channel": (lambda: fit(bad(epochs())), r"C4 .*8 of 8 windows"),
    "the label -1": (lambda: fit(y=[-1, 0, 1, 1] * 2), "2 of 8 windows"),
    "no sampling rate": (lambda: fit(sfreq=None, patch_seconds=1.0), "sfreq"),
    "one subject": (lambda: fit(groups=[7] * 8, validation=0.5), r"one subject \(7\)"),
    "a class with one window": (
        lambda: fit(y=[0] * 7 + [1], validation=0.2),
        r"8 windows.* 2 classes",
    ),
    "a label first seen at score": (lambda: fitted().score(ARRAY, [0, 1, 2, 3] * 2), "2, 3"),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_a_doubtful_input_raises_a_warning(case):
    action, message = WARNINGS[case]
    with pytest.warns(UserWarning, match=message) as caught:
        action()
    # Warnings point to the line of the caller, not to a line of this package.
    in_package = [w for w in caught if "braindecode_pars" in str(w.filename)]
    assert in_package == []
