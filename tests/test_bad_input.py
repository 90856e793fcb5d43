"""Common mistakes, one case each: every mistake raises an error with a helpful message."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import mne
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from braindecode.augmentation import Mixup
from braindecode.datasets import BaseConcatDataset, RawDataset
from sklearn.exceptions import NotFittedError
from skorch.callbacks import EarlyStopping, LRScheduler
from torch import nn
from torch.utils.data import IterableDataset, Subset, TensorDataset

from braindecode_pars import (
    PARSClassifier,
    PARSEmbedder,
    PARSNet,
    PatchEncoder,
    SubjectCentering,
    as_sklearn,
)
from braindecode_pars.baselines import make_methods
from braindecode_pars.callbacks import WarmupCosine
from braindecode_pars.estimators import EuclideanAlignment
from braindecode_pars.evaluation import (
    LogBandPower,
    ablation,
    leave_one_subject_out,
    score_predictions,
)
from braindecode_pars.pretext import PARS
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.windows import SingleChannelWindows

RNG = np.random.default_rng(0)
ARRAY = RNG.normal(size=(8, 2, 600)).astype(np.float32)
LABELS = np.array([0, 1] * 4)
SIZES = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)


def clf(**arguments) -> PARSClassifier:
    defaults = dict(SIZES, sfreq=100, pretrain_epochs=1, finetune_epochs=1, verbose=0)
    return PARSClassifier(**{**defaults, "validation": 0, "random_state": 0, **arguments})


def embedder(**arguments) -> PARSEmbedder:
    return PARSEmbedder(None, **SIZES, sfreq=100, verbose=0, **arguments)


def fit(X=ARRAY, y=LABELS, groups=None, unlabeled=None, **arguments):
    return clf(**arguments).fit(X, y, groups=groups, unlabeled=unlabeled)


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


class Endless(IterableDataset):
    def __iter__(self):
        yield torch.zeros(2, 600), 0


class OneWindow(TensorDataset):
    def __getitem__(self, i):
        return "not a window", 0


#: Name of the case -> (action, type of the error, pattern of its message).
WINDOWS = {
    "a string": (lambda: fit("windows"), TypeError, "X is a str; it must be a braindecode"),
    "a number": (lambda: fit(3), TypeError, "X is a int; it must be"),
    "nothing": (lambda: fit(None), TypeError, "X is a NoneType; it must be"),
    "a DataFrame": (lambda: fit(pd.DataFrame(ARRAY[0])), TypeError, "X is a DataFrame"),
    "a sparse matrix": (
        lambda: fit(scipy.sparse.csr_matrix(ARRAY[0])),
        TypeError,
        "X is a csr_matrix",
    ),
    "a raw recording": (
        lambda: fit(mne.io.RawArray(ARRAY[0], epochs().info, verbose="error")),
        TypeError,
        "X is a RawArray; it must be",
    ),
    "continuous recordings": (
        lambda: fit(BaseConcatDataset([RawDataset(mne.io.RawArray(ARRAY[0], epochs().info))])),
        TypeError,
        "continuous recordings; cut them into windows first",
    ),
    "an endless dataset": (lambda: fit(Endless()), TypeError, "without a length"),
    "two dimensions": (lambda: fit(ARRAY[0]), ValueError, r"X has shape \(2, 600\); windows have"),
    "four dimensions": (lambda: fit(ARRAY[None]), ValueError, r"X has shape \(1, 8, 2, 600\)"),
    "no windows": (lambda: fit(ARRAY[:0], []), ValueError, "dataset has length 0"),
    "an empty list": (lambda: fit([], []), ValueError, "dataset has length 0"),
    "no channels": (lambda: fit(ARRAY[:, :0]), ValueError, r"shape \(0, 600\), so they have no"),
    "no samples": (lambda: fit(ARRAY[:, :, :0]), ValueError, r"shape \(2, 0\), so they have no"),
    "complex samples": (
        lambda: fit(ARRAY * 1j),
        ValueError,
        "dtype complex64; EEG samples must be",
    ),
    "complex tensor": (lambda: fit(torch.tensor(ARRAY * 1j)), ValueError, "X has dtype complex64"),
    "objects": (lambda: fit(ARRAY.astype(object)), ValueError, "dtype object; EEG samples must be"),
    "strings": (lambda: fit(ARRAY[:, :, :3].astype(str)), ValueError, "EEG samples must be"),
    "booleans": (lambda: fit(ARRAY > 0), ValueError, "dtype bool; EEG samples must be real"),
    "complex in a list": (
        lambda: fit([window * 1j for window in ARRAY]),
        ValueError,
        "Window 0 has dtype complex64",
    ),
    "strings in a dataset": (
        lambda: fit(OneWindow(torch.zeros(8))),
        ValueError,
        "Window 0 has dtype .*; EEG samples must be real numbers",
    ),
    "NaN": (
        lambda: fit(changed((3, 1, 17), np.nan)),
        ValueError,
        "Window 3 contains NaN or infinite samples in channel 1; remove or repair",
    ),
    "infinity": (
        lambda: fit(changed((5, 0, 17), -np.inf)),
        ValueError,
        "Window 5 contains NaN or infinite samples in channel 0",
    ),
    "beyond float32": (
        lambda: fit(changed((5, 0, 17), 1).astype(float) * 1e300),
        ValueError,
        "Window 0 contains NaN or infinite samples in channels 0, 1",
    ),
    "NaN in a named channel": (
        lambda: fit(epochs(changed((2, 1, 0), np.nan))),
        ValueError,
        "Window 2 contains NaN or infinite samples in channel C4",
    ),
    "masked samples": (
        lambda: fit(np.ma.masked_where(ARRAY > 3, ARRAY)),
        ValueError,
        "contains NaN or infinite samples",
    ),
    "NaN among the unlabelled": (
        lambda: fit(unlabeled=changed((4, 1, 3), np.nan)),
        ValueError,
        "Window 4 contains NaN or infinite samples in channel 1",
    ),
    "ragged windows": (
        lambda: fit([*ARRAY[:7], ARRAY[7, :, :500]]),
        ValueError,
        r"Window 7 has shape \(2, 500\), window 0 has \(2, 600\)",
    ),
    "windows of other channels": (
        lambda: fit([*ARRAY[:7], ARRAY[7, :1]]),
        ValueError,
        r"Window 7 has shape \(1, 600\), window 0 has \(2, 600\); all windows must have the same",
    ),
    "items of two kinds": (
        lambda: fit([(ARRAY[0], 0), *ARRAY[1:]]),
        ValueError,
        "Item 1 of X is a ndarray, item 0 is a tuple of 2; all items must have the same type",
    ),
    "no unlabelled windows": (
        lambda: fit(unlabeled=ARRAY[:0]),
        ValueError,
        "unlabeled contains no windows; pass None instead",
    ),
    "unlabelled windows without channels": (
        lambda: fit(unlabeled=ARRAY[:, :0]),
        ValueError,
        r"Window 0 has shape \(0, 600\), so it has no samples",
    ),
    "unlabelled windows without EEG": (
        lambda: fit(unlabeled=epochs(names=["EOG1", "STI"], kinds=["eeg", "stim"])),
        ValueError,
        r"no EEG channel among EOG1, STI .*raw\.set_channel_types",
    ),
    "a flat list": (lambda: fit([1.0] * 8), ValueError, r"first item has shape \(\); its items"),
    "a list of datasets": (
        lambda: fit([recording(), recording()]),
        ValueError,
        r"X is a list of BaseConcatDataset; join them with .* BaseConcatDataset\(\[",
    ),
    "Epochs of several windows": (
        lambda: fit([epochs(), epochs()]),
        ValueError,
        "Item 0 is an Epochs of 8 windows; each Epochs in a list must have one window",
    ),
    "two sampling rates": (
        lambda: fit(BaseConcatDataset([recording(), recording(200.0)])),
        ValueError,
        r"different sampling rates: 100 Hz \(1\), 200 Hz \(1\)\. Resample them",
    ),
    "two sampling rates in a list": (
        lambda: fit([epochs()[0], epochs(sfreq=50.0)[0]] * 4),
        ValueError,
        r"different sampling rates: 100 Hz \(4\), 50 Hz \(4\)",
    ),
    "a sampling rate that contradicts": (
        lambda: fit(epochs(), sfreq=250),
        ValueError,
        "recordings are sampled at 100 Hz, the argument sfreq is at 250 Hz",
    ),
    "unlabelled windows of another rate": (
        lambda: fit(unlabeled=epochs(sfreq=250.0)),
        ValueError,
        "unlabelled windows are sampled at 250 Hz, the others at 100 Hz; resample",
    ),
    "a mask as indices": (
        lambda: fit(Subset(TensorDataset(torch.from_numpy(ARRAY)), LABELS == 0)),
        ValueError,
        "has bool indices; they must be integers",
    ),
    "no EEG channel": (
        lambda: fit(epochs(names=["ECG1", "STI"], kinds=["eeg", "stim"])),
        ValueError,
        "no EEG channel among ECG1, STI .*list the channels to use in channels=",
    ),
    "recordings without a common channel": (
        lambda: fit(
            [epochs(names=["C3", "C4"])[0], epochs(names=["F3", "F4"])[0]] * 4,
            electrode_position=True,
        ),
        ValueError,
        "no channel in common: C3, C4, F3, F4",
    ),
    "a channel that is missing": (
        lambda: fit(epochs(), channels=["C3", "Oz"]),
        ValueError,
        "Channel Oz is in channels=, but missing .* in 8 of 8 windows; the first window has C3, C4",
    ),
    "channels of an array": (
        lambda: fit(channels=["C3"]),
        ValueError,
        r"channels=\['C3'\] needs channel names, but the windows have none",
    ),
    "windows shorter than a patch": (
        lambda: fit(ARRAY[:, :, :99]),
        ValueError,
        r"99 samples is shorter than one patch of 100 samples \(1 s at 100 Hz\)",
    ),
    "windows of a single patch": (
        lambda: fit(ARRAY[:, :, :100]),
        ValueError,
        "has only one patch, so all shifts are zero; use longer windows",
    ),
}

LABEL_MISTAKES = {
    "no labels": (lambda: fit(y=None), ValueError, "There are no labels: pass y, .*PARSEmbedder"),
    "too few labels": (lambda: fit(y=[0, 1]), ValueError, r"y has shape \(2,\); it must have one"),
    "a DataFrame of labels": (
        lambda: fit(y=pd.DataFrame({"a": LABELS, "b": LABELS})),
        ValueError,
        r"y is a DataFrame with 2 columns \(a, b\); pass one column, such as y\['a'\]",
    ),
    "a DataFrame of subjects": (
        lambda: fit(groups=pd.DataFrame({"a": LABELS, "b": LABELS})),
        ValueError,
        "groups is a DataFrame with 2 columns",
    ),
    "labels of two types that look the same": (
        lambda: fit(y=[1, "1", 2, "2"] * 2),
        ValueError,
        "which look the same; use one type",
    ),
    "the text -1 as a label": (
        lambda: fit(y=["-1", "0", "1", "1"] * 2),
        ValueError,
        "Labels contain '-1' .*, but -1 .* marks unlabelled windows; pass unlabeled_label='-1' if",
    ),
    "labels without a hash": (
        lambda: fit(y=[{"a": 1}] * 8),
        ValueError,
        "Labels must be hashable",
    ),
    "lists of different lengths as labels": (
        lambda: fit(y=[[0], [1, 2]] * 4),
        ValueError,
        "Labels must be hashable",
    ),
    "several labels of unlabelled windows": (
        lambda: fit(unlabeled_label=[0, -1]),
        TypeError,
        r"unlabeled_label must be one label or None, got \[0, -1\]",
    ),
    "continuous numbers as objects": (
        lambda: fit(y=pd.Series(np.linspace(0, 1, 8), dtype=object)),
        ValueError,
        "continuous",
    ),
    "one number": (lambda: fit(y=1), ValueError, "y is 1; it must have one entry for each"),
    "several targets": (lambda: fit(y=np.eye(8)), ValueError, r"y has shape \(8, 8\)"),
    "some labels missing": (
        lambda: fit(y=[0, 1, None, 1] * 2),
        ValueError,
        "y contains None or NaN; every window needs an entry. Mark unlabelled windows",
    ),
    "NaN among labels": (
        lambda: fit(y=[0, 1, np.nan, 1] * 2),
        ValueError,
        "y contains None or NaN",
    ),
    "a continuous target": (lambda: fit(y=np.linspace(0, 1, 8)), ValueError, "continuous"),
    "labels of two types": (lambda: fit(y=["a", 1] * 4), ValueError, "Labels of different types"),
    "all unlabelled": (
        lambda: fit(y=[-1] * 8),
        ValueError,
        "All windows are unlabelled .*PARSEmbedder pretrains without labels",
    ),
    "-1 and +1": (
        lambda: fit(y=[-1, 1] * 4),
        ValueError,
        "Labels are exactly -1 and .*set unlabeled_label to None if -1 is a class",
    ),
    "one class": (lambda: fit(y=[2] * 8), ValueError, "All labels are 2, which is one class"),
    "one class and unlabelled": (lambda: fit(y=[-1, 2] * 4), ValueError, "All labels are 2, which"),
    "groups of another length": (
        lambda: fit(groups=[1, 2]),
        ValueError,
        r"groups has shape \(2,\); it must have one entry for each",
    ),
    "groups with gaps": (
        lambda: fit(groups=[1, None] * 4),
        ValueError,
        "groups contains None or NaN",
    ),
    "a weight for no class": (
        lambda: fit(class_weight={"N3": 2.0}),
        ValueError,
        "class_weight contains 'N3', which is not a label; the labels are 0, 1",
    ),
}

# Cases are named without addresses, so that the names are the same in every process.
PARAMETERS = {
    re.sub(r" (object )?at 0x\w+", "", f"{name}={value!r}", flags=re.IGNORECASE): (
        lambda name=name, value=value: fit(**{name: value}),
        (ValueError, TypeError, FileNotFoundError),
        message,
    )
    for name, value, message in [
        ("pretext", "parts", "Unknown pretext task 'parts'; known are .*'pars'"),
        ("pretext", 3, "PARSClassifier: pretext must be"),
        ("pretext", nn.Linear, "is a name, a subclass or an instance of PretextTask"),
        ("pretext_params", {"ratio": 0.5}, "PARS has no parameter 'ratio'; it takes decoder"),
        ("pretext_params", {"n_times": 5}, "PARS has no parameter 'n_times'"),
        ("pretext_params", {"position_mask_ratio": 2}, "position_mask_ratio"),
        (
            "pretext_params",
            {"position_mask_ratio": "x"},
            "mask_ratio must be a number in .*'x'",
        ),
        ("pretext_params", {"n_patches": 10.0}, "PARS: n_patches must be an integer of at least 1"),
        (
            "pretext_params",
            {"min_gap": 2.5, "overlap": False},
            "PARS: min_gap must be an integer",
        ),
        ("pretext_params", {"decoder": "gru"}, "decoder must be one of 'cross_attention', 'mlp'"),
        ("pretext_params", [1], "PARSClassifier: pretext_params must be a dict"),
        ("sfreq", 0, "PARSClassifier: sfreq must be"),
        ("sfreq", -100, "PARSClassifier: sfreq must be"),
        ("patch_seconds", 0, "PARSClassifier: patch_seconds must be"),
        ("patch_seconds", 9, "600 samples is shorter than one patch of 900"),
        ("embed_dim", 16.0, "PARSClassifier: embed_dim must be"),
        ("embed_dim", 15, "embed_dim"),
        ("num_heads", 3, "num_heads"),
        ("num_layers", 0, "PARSClassifier: num_layers must be"),
        ("channel_drop_prob", 1.0, "PARSClassifier: channel_drop_prob must be"),
        (
            "electrode_position",
            "yes",
            "electrode_position must be 'auto', True or False, got 'yes'",
        ),
        ("electrode_position", 1, "electrode_position must be 'auto', True or False, got 1"),
        ("amplitude", "auto", "PARSClassifier: amplitude must be True or False"),
        ("head", "filter", "head must be one of 'attention', 'spatial_filter', 'both', got 'filt"),
        ("electrode_position", True, "needs channel names.*these windows have no channel names"),
        ("pretrain_epochs", -1, "PARSClassifier: pretrain_epochs must be an integer of at least"),
        ("pretrain_batch_size", 0, "PARSClassifier: pretrain_batch_size must be"),
        ("pretrain_lr", 0, "PARSClassifier: pretrain_lr must be"),
        ("finetune_epochs", 0, "PARSClassifier: finetune_epochs must be"),
        ("finetune_batch_size", 2.5, "PARSClassifier: finetune_batch_size must be"),
        ("finetune_lr", -1, "finetune_lr must be a positive number, got -1"),
        ("finetune_warmup", 1.0, r"finetune_warmup must be a number in \[0, 1\), or None, got 1.0"),
        ("finetune_warmup", "cosine", "PARSClassifier: finetune_warmup must be"),
        (
            "preprocessing",
            "0.5-40 Hz",
            "preprocessing must be a Preprocessing, a dict of its entries",
        ),
        ("preprocessing", {"low": 0.5}, "has an entry 'low'; its entries are sfreq, band, notch, "),
        ("preprocessing", {"band": (40, 0.5)}, r"a lower and a higher .*, got \(40, 0.5\)"),
        ("head_epochs", -1, "PARSClassifier: head_epochs must be an integer of at least 0, got -1"),
        ("head_epochs", 0.5, "PARSClassifier: head_epochs must be an integer"),
        ("encoder_lr_factor", -0.1, "encoder_lr_factor must be a number of 0 or more, got -0.1"),
        ("encoder_lr_factor", None, "PARSClassifier: encoder_lr_factor must be"),
        ("gradient_clip", 0, "gradient_clip must be a positive number, or None, got 0"),
        ("label_smoothing", 1.0, r"label_smoothing must be a number in \[0, 1\), got 1.0"),
        ("drop_prob", 1.0, r"PARSClassifier: drop_prob must be a number in \[0, 1\), got 1.0"),
        ("weight_decay", -0.1, "PARSClassifier: weight_decay must be"),
        ("augmentation", 3, "PARSClassifier: augmentation must be a braindecode transform, its"),
        ("augmentation", ["noise"], "Unknown augmentation 'noise'; known are ChannelNoise, "),
        ("augmentation", [3], "augmentation contains an object of type int; pass braindecode"),
        ("augmentation", "Mixup", "Unknown augmentation 'Mixup'"),
        ("augmentation", {"name": "SignFlip", "std": 1}, "SignFlip cannot be made: .*'std'"),
        ("augmentation", Mixup(1.0), "augmentation contains Mixup, which also mixes labels"),
        ("class_weight", {0: -5.0}, "class_weight of 0 must be a positive number, got -5.0"),
        ("class_weight", {1: "x"}, "class_weight of 1 must be a positive number, got 'x'"),
        ("device", "meta", "device='meta' cannot be used here"),
        ("class_weight", "even", "PARSClassifier: class_weight must be"),
        ("validation", 1.0, "PARSClassifier: validation must be"),
        (
            "validation",
            "valid",
            r"validation must be a number in \[0, 1\), or 'split', got 'valid'",
        ),
        ("validation", "split", "needs the split of every window, but 8 of 8 have none"),
        ("callbacks", WarmupCosine(), "PARSClassifier: callbacks must be"),
        ("callbacks", ["stop"], "callbacks contains an object of type str; pass skorch"),
        ("callbacks", [("stop", 3)], "callbacks contains an object of type int; pass skorch"),
        (
            "pretrain_callbacks",
            [LRScheduler()],
            "pretrain_callbacks contains LRScheduler, but pretraining sets the learning rate",
        ),
        (
            "pretrain_callbacks",
            [EarlyStopping()],
            "pretrain_callbacks contains EarlyStopping, which monitors valid_loss, but pretraining",
        ),
        ("device", "abacus", "device='abacus' cannot be used here"),
        ("device", "cuda:77", "device='cuda:77' cannot be used here"),
        ("random_state", "zero", "PARSClassifier: random_state must be"),
        ("random_state", np.random.default_rng(0), "PARSClassifier: random_state must be"),
        ("checkpoint_dir", __file__, "checkpoint_dir=.* is not a folder"),
        ("encoder", "nowhere", "nowhere is not the folder of a saved model"),
        ("encoder", __file__, "is a file; pass the folder that contains it"),
        ("encoder", str(Path(__file__).parent), r"it has no encoder\.safetensors"),
        ("encoder", nn.Linear(2, 2), "A Linear has no pretrained encoder; pass a folder"),
        ("encoder", PARSEmbedder(), r"PARSEmbedder has no pretrained encoder \(is it fitted\?\)"),
        ("encoder", PatchEncoder(700, **SIZES), "600 samples is shorter than the encoder's patch"),
    ]
}
PARAMETERS["a learning rate that explodes in pretraining"] = (
    lambda: fit(pretrain_lr=1e30, pretrain_epochs=5),
    ValueError,
    "loss became .* PretrainingNet .*lower the learning rate",
)
PARAMETERS["a learning rate that explodes in fine-tuning"] = (
    lambda: fit(pretext=None, finetune_lr=1e30, finetune_epochs=5),
    ValueError,
    "loss became .* FineTuningNet .*lower the learning rate",
)

PREDICTION = {
    "not fitted": (lambda: clf().predict(ARRAY), NotFittedError, "not fitted yet"),
    "no model to save": (lambda: clf().save("folder"), NotFittedError, "not fitted yet"),
    "no history": (lambda: clf().history_, NotFittedError, "not fitted yet"),
    "no windows to predict": (lambda: fit().predict(ARRAY[:0]), ValueError, "dataset has length 0"),
    "shorter than a patch at predict": (
        lambda: fit().predict(ARRAY[:, :, :99]),
        ValueError,
        "99 samples is shorter than the model's patch of 100",
    ),
    "another sampling rate at predict": (
        lambda: fit().predict(epochs(sfreq=250.0)),
        ValueError,
        "250 Hz, the model at 100 Hz; resample",
    ),
    "two sampling rates at predict": (
        lambda: fit().predict(BaseConcatDataset([recording(), recording(200.0)])),
        ValueError,
        "different sampling rates",
    ),
    "NaN at predict": (
        lambda: fit().predict(changed((7, 0, 0), np.nan)),
        ValueError,
        "Window 7 contains NaN",
    ),
    "ragged at predict": (
        lambda: fit().predict([ARRAY[0], ARRAY[1, :, :500]]),
        ValueError,
        "Window 1 has shape",
    ),
    "nothing to score against": (
        lambda: fit().score(ARRAY),
        ValueError,
        "There are no labels: pass y",
    ),
    "gaps to score against": (
        lambda: fit().score(ARRAY, [None] * 8),
        ValueError,
        "y contains None or NaN",
    ),
    "unfitted embedder": (
        lambda: PARSEmbedder().transform(ARRAY),
        NotFittedError,
        "not fitted yet",
    ),
    "no names of an unfitted embedder": (
        lambda: PARSEmbedder().get_feature_names_out(),
        NotFittedError,
        "not fitted yet",
    ),
}

NET = dict(n_outputs=2, n_chans=2, n_times=600, sfreq=100.0, **SIZES)

MODULES = {
    "NumPy into PARSNet": (lambda: PARSNet(**NET)(ARRAY), TypeError, r"torch\.from_numpy\(x\)"),
    "one window into PARSNet": (
        lambda: PARSNet(**NET)(torch.zeros(2, 600)),
        ValueError,
        r"x has shape \(2, 600\); windows have shape \(batch, n_chans, n_times\)",
    ),
    "integers into PARSNet": (
        lambda: PARSNet(**NET)(torch.zeros(1, 2, 600, dtype=torch.int64)),
        ValueError,
        "x has dtype torch.int64; EEG samples are real numbers",
    ),
    "short windows into PARSNet": (
        lambda: PARSNet(**NET)(torch.zeros(1, 2, 60)),
        ValueError,
        "60 samples is shorter than the model's patch of 100",
    ),
    "flat positions": (
        lambda: PARSNet(**NET, electrode_position=True)(torch.zeros(1, 2, 600), pos=np.zeros(6)),
        ValueError,
        r"pos has shape \(6,\); these windows need shape \(n_chans, 3\)",
    ),
    "channels of other windows": (
        lambda: PARSNet(**NET)(torch.zeros(1, 2, 600), chs_info=[{"ch_name": "C3"}]),
        ValueError,
        "chs_info describes 1 channels, but the windows have 2; pass one entry for each",
    ),
    "names instead of channels": (
        lambda: PARSNet(**NET)(torch.zeros(1, 2, 600), chs_info=["C3", "C4"]),
        TypeError,
        "chs_info contains 'C3'; its entries are dicts with the key 'ch_name'",
    ),
    "positions twice": (
        lambda: PARSNet(**NET)(
            torch.zeros(1, 1, 600), torch.zeros(1, 3), chs_info=epochs().info["chs"]
        ),
        ValueError,
        "pos and chs_info are both given; pass pos for positions in metres, or chs_info",
    ),
    "attention of spatial filters": (
        lambda: PARSNet(**NET, head="spatial_filter").channel_attention(torch.zeros(1, 2, 600)),
        ValueError,
        "has no attention over channels; use head='attention' or head='both'",
    ),
    "PARS on longer signals": (
        lambda: PARS(600, 100, **SIZES)(torch.zeros(2, 700)),
        ValueError,
        r"x has shape \(2, 700\); this PARS was built for single channels, shape \(batch, 600\)",
    ),
    "PARS on several channels": (
        lambda: PARS(600, 100, **SIZES)(torch.zeros(2, 2, 600)),
        ValueError,
        "was built for single channels",
    ),
    "NumPy into PARS": (lambda: PARS(600, 100, **SIZES)(ARRAY[0]), TypeError, "x is a ndarray"),
    "crops longer than windows": (
        lambda: SingleChannelWindows(TensorDataset(torch.zeros(3, 2, 600)), 700)[0],
        ValueError,
        "Window 0 has 600 samples, but a crop has 700",
    ),
    "crops of no samples": (
        lambda: SingleChannelWindows(TensorDataset(torch.zeros(3, 2, 600)), 0),
        ValueError,
        "n_times must be a positive number of samples, got 0",
    ),
    "crops of half samples": (
        lambda: SingleChannelWindows(TensorDataset(torch.zeros(3, 2, 600)), 2.5),
        ValueError,
        "n_times must be a positive number of samples, got 2.5",
    ),
    "as_sklearn without subjects": (
        lambda: as_sklearn(recording()),
        ValueError,
        "no entry 'subject', which is needed to hold out subjects",
    ),
    "an encoder of nothing": (lambda: load_encoder(None), TypeError, "A NoneType has no"),
}

FEATURES = {
    "centring without subjects": (
        lambda: SubjectCentering(LogBandPower(sfreq=100)).fit(ARRAY),
        ValueError,
        "SubjectCentering needs the subject of every window, but that of 8 of 8 is unknown",
    ),
    "centring of two windows": (
        lambda: SubjectCentering(LogBandPower(sfreq=100)).fit(ARRAY, groups=[1] * 6 + [2] * 2),
        ValueError,
        "Subject 1 has 6 windows; SubjectCentering needs at least 10.*or lower min_windows",
    ),
    "centring of nothing": (
        lambda: SubjectCentering(None).fit(ARRAY, groups=LABELS),
        TypeError,
        "transformer is a NoneType; pass a transformer of windows",
    ),
    "power of another kind": (
        lambda: LogBandPower(sfreq=100, power="decibel").fit(ARRAY),
        ValueError,
        "LogBandPower: power must be one of 'both', 'absolute', 'relative', got 'decibel'",
    ),
    "alignment without subjects": (
        lambda: EuclideanAlignment().fit_transform(ARRAY),
        ValueError,
        "EuclideanAlignment needs the subject of every window",
    ),
    "a layer that is not there": (
        lambda: embedder(layer=2).fit(ARRAY),
        ValueError,
        r"layer=2 is not a layer of this encoder of 1 blocks; use 0 \(the tokens\) to 1",
    ),
    "half a layer": (
        lambda: embedder(layer=0.5).fit(ARRAY),
        TypeError,
        "PARSEmbedder: layer must be an integer, got 0.5",
    ),
    "an unknown pooling": (
        lambda: embedder(pooling="max").fit(ARRAY),
        ValueError,
        "pooling must be one of 'auto', 'channels', 'mean_std', 'mean', got 'max'",
    ),
    "fewer channels than side by side": (
        lambda: embedder().fit(ARRAY).transform(ARRAY[:, :1]),
        ValueError,
        "The windows have 1 channels, but the embedder keeps the 2 channels of its fit",
    ),
    "an unknown power": (
        lambda: LogBandPower(sfreq=100, power="total").fit_transform(ARRAY),
        ValueError,
        "LogBandPower: power must be one of 'both', 'absolute', 'relative', got 'total'",
    ),
    "too slow for a band": (
        lambda: LogBandPower(sfreq=4).fit(ARRAY),
        ValueError,
        "Windows at 4 Hz have no frequencies above 2 Hz, too few for any band",
    ),
    "an unknown baseline": (
        lambda: make_methods(["svm"]),
        ValueError,
        "Unknown method 'svm'; known are pars",
    ),
    "a baseline of another size than the encoder": (
        lambda: make_methods(["scratch"], encoder="small", embed_dim=64),
        ValueError,
        "embed_dim=64 makes encoders of .* parameters, but small has 554,880",
    ),
    "an encoder that is not there": (
        lambda: make_methods(["scratch"], encoder="run1"),
        FileNotFoundError,
        "run1 is not the folder of a saved model",
    ),
}

EVALUATION = {
    "no estimators": (
        lambda: leave_one_subject_out({}, recording()),
        ValueError,
        "estimators is empty",
    ),
    "a bare estimator": (
        lambda: leave_one_subject_out(clf(), recording()),
        TypeError,
        "estimators is a PARSClassifier; give a dict of method names and estimators",
    ),
    "no seeds": (
        lambda: leave_one_subject_out({"PARS": clf()}, recording(), seeds=()),
        ValueError,
        "seeds is empty",
    ),
    "a text for share_pretraining": (
        lambda: ablation(clf(), recording(), {"a": {}}, share_pretraining="no"),
        TypeError,
        "share_pretraining must be True or False, got 'no'",
    ),
    "an unknown metric": (
        lambda: leave_one_subject_out({"PARS": clf()}, recording(), metrics=["auc"]),
        ValueError,
        "'auc'",
    ),
    "scores of unequal lengths": (
        lambda: score_predictions([0, 1], [0, 1, 1], "kappa"),
        ValueError,
        "2 labels and 3 predictions",
    ),
    "a score of probabilities without probabilities": (
        lambda: score_predictions([0, 1], [0, 1], "auroc"),
        ValueError,
        "auroc needs the probability of each class; pass probabilities= from predict_proba",
    ),
    "band power of nothing": (
        lambda: LogBandPower(sfreq=100, segment_seconds=0).fit(ARRAY).transform(ARRAY),
        ValueError,
        "segment_seconds must be a positive number",
    ),
}

CASES = {
    **WINDOWS,
    **LABEL_MISTAKES,
    **PARAMETERS,
    **PREDICTION,
    **MODULES,
    **FEATURES,
    **EVALUATION,
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_raises_a_helpful_error(case):
    mistake, error, message = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=message):
            mistake()


def test_there_are_at_least_sixty_cases():
    assert len(CASES) >= 60


WARNINGS = {
    "a stimulus channel": (
        lambda: fit(epochs(names=["C3", "STI"], kinds=["eeg", "stim"])),
        "Channel STI is not EEG, by type or name, and not used",
    ),
    "a bad channel": (
        lambda: fit(bad(epochs())),
        r"Channel C4 is marked as bad in info\['bads'\] of 8 of 8 windows",
    ),
    "the label -1": (
        lambda: fit(y=[-1, 0, 1, 1] * 2),
        "2 of 8 windows are taken as unlabelled because their label is -1",
    ),
    "no sampling rate": (lambda: fit(sfreq=None, patch_seconds=1.0), r"Pass sfreq= \(in Hz\) to"),
    "one subject": (
        lambda: fit(groups=[7] * 8, validation=0.5),
        r"All windows are of one subject \(7\), so the internal validation",
    ),
    "a class with one window": (
        lambda: fit(y=[0] * 7 + [1], validation=0.2),
        "cannot be held out of 8 windows without taking one of the 2 classes out",
    ),
    "a label first seen at score": (
        lambda: fit().score(ARRAY, [0, 1, 2, 3] * 2),
        "Labels 2, 3 did not occur in fit; windows with these labels count as wrong",
    ),
    "unlabelled windows without pretraining": (
        lambda: fit(pretext=None, unlabeled=ARRAY),
        "are not used.*pretext is None",
    ),
    "unlabelled windows and an encoder": (
        lambda: fit(encoder=PatchEncoder(100, **SIZES), unlabeled=ARRAY),
        "are not used.*an encoder was given",
    ),
    "unknown electrodes": (
        lambda: fit(epochs(names=["E1", "E2"]), electrode_position=True, pretext=None),
        r"none of the channels \(E1, \.\.\.\) is an electrode",
    ),
    "unknown electrodes of a spatial filter": (
        lambda: fit(epochs(names=["E1", "E2"]), head="both", pretext=None),
        r"none of the channels \(E1, \.\.\.\) is an electrode",
    ),
    "a spatial filter without names": (
        lambda: fit(head="spatial_filter", pretext=None),
        "head='spatial_filter' without electrode positions has the same gains for all channels",
    ),
    "unknown electrodes at predict": (
        lambda: fit(epochs(), pretext=None).predict(ARRAY[:, [0, 1, 1]]),
        "in 8 of 8 windows: they have 3 channels without names, and the model was fitted on 2",
    ),
    "a list of tuples": (
        lambda: fit([(window, 0, (0, 0, 600)) for window in ARRAY], validation=0.5),
        "list of tuples carries neither subjects nor .* as_sklearn",
    ),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_a_doubtful_input_raises_a_warning(case):
    action, message = WARNINGS[case]
    with pytest.warns(UserWarning, match=message) as caught:
        action()
    # Warnings point to the line of the caller, not to a line of this package.
    in_package = [w for w in caught if "braindecode_pars" in str(w.filename)]
    assert in_package == []
