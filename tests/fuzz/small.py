"""Small data and models of the fuzz; the models are fitted once."""

from __future__ import annotations

from functools import cache
from typing import Any

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars import PARSClassifier, PARSEmbedder
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.recordings.cutting import fixed_windows

SFREQ = 100.0
N_TIMES = 300
NAMES = ("C3", "C4")
ENCODER = dict(embed_dim=8, num_layers=1, num_heads=2, mlp_dim=8)
QUIET = dict(random_state=0, verbose=0, device="cpu")
TRAINED = dict(finetune_epochs=1, validation=0.0)

MODELS: dict[str, tuple[type, dict[str, Any]]] = {
    "classifier": (PARSClassifier, {**ENCODER, **QUIET, **TRAINED, "pretrain_epochs": 1}),
    "embedder": (PARSEmbedder, {**ENCODER, **QUIET, "pretrain_epochs": 1}),
    "network": (NetworkClassifier, {**QUIET, **TRAINED}),
    "band power": (LogBandPower, {}),
}


def make(name: str, **arguments: Any) -> Any:
    """Return an unfitted model; arrays need ``sfreq``."""
    cls, defaults = MODELS[name]
    return cls(**{**defaults, **arguments})


def output(model: Any, X: Any) -> np.ndarray:
    """Return probabilities, or features."""
    compute = getattr(model, "predict_proba", None) or model.transform
    return np.asarray(compute(X))


def differs(actual: np.ndarray, expected: np.ndarray, rtol: float = 1e-3) -> str | None:
    """Return how an output differs from the expected one; None when they are equal."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if np.allclose(actual, expected, rtol=rtol, atol=1e-4, equal_nan=False):
        return None
    return f"outputs differ by up to {np.abs(actual - expected).max():.3g}"


def signals(seed: int, n: int = 12, n_chans: int = 2, n_times: int = N_TIMES) -> np.ndarray:
    """Return noise in volts with a rhythm in every second window; channels differ in level."""
    rng = np.random.default_rng(seed)
    windows = rng.normal(size=(n, n_chans, n_times))
    windows[1::2] += 2 * np.sin(2 * np.pi * 10 * np.arange(n_times) / SFREQ)
    return (windows * 1e-5 * (1 + 3 * np.arange(n_chans))[:, None]).astype(np.float32)


LABELS = np.arange(12) % 2


def recording(
    seed: int,
    names: tuple[str, ...] = NAMES,
    kinds: str | list[str] = "eeg",
    sfreq: float = SFREQ,
    n_windows: int = 3,
) -> mne.io.RawArray:
    """Return three windows of a recording; the samples of a channel depend on its name."""
    columns = []
    for name in names:
        number = NAMES.index(name) if name in NAMES else 2 + sum(map(ord, name)) % 50
        columns.append(signals(seed * 100 + number, n_windows, number + 1)[:, -1].ravel())
    info = mne.create_info(list(names), sfreq, kinds)
    return mne.io.RawArray(np.stack(columns), info, verbose="error")


def windows_of(
    raw: mne.io.BaseRaw, description: dict[str, Any] | None, targets: Any = None
) -> EEGWindowsDataset:
    """Cut a recording into windows of 300 samples with alternating targets."""
    cut = fixed_windows(raw, N_TIMES / raw.info["sfreq"], target=lambda start, stop: 0 * start)
    cut.metadata["target"] = np.arange(len(cut)) % 2 if targets is None else targets
    return EEGWindowsDataset(cut.raw, cut.metadata, description)


def dataset(n_subjects: int = 4, **arguments: Any) -> BaseConcatDataset:
    return BaseConcatDataset(
        [windows_of(recording(s, **arguments), {"subject": s}) for s in range(n_subjects)]
    )


def stacked(windows: Any) -> np.ndarray:
    return np.stack([windows[i][0] for i in range(len(windows))])


@cache
def fitted(name: str) -> Any:
    """Return a model that was fitted on arrays."""
    return make(name, sfreq=SFREQ).fit(signals(0), LABELS)


@cache
def fitted_on_recordings(name: str) -> Any:
    """Return a model that was fitted on recordings, so it knows the names of channels."""
    windows = dataset()
    return make(name).fit(windows, targets_of(windows))


def targets_of(windows: BaseConcatDataset) -> np.ndarray:
    return np.concatenate([part.metadata["target"].to_numpy() for part in windows.datasets])
