"""Estimators that train in about a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from braindecode_pars import FewLabelsClassifier, PARSClassifier, PARSEmbedder

FAST = dict(
    embed_dim=16,
    num_layers=1,
    num_heads=2,
    mlp_dim=32,
    pretrain_epochs=1,
    finetune_epochs=1,
    validation=0.2,
    random_state=0,
    verbose=0,
)


def classifier(**arguments) -> PARSClassifier:
    """Return a very small classifier with the attention head of the paper."""
    # The same head for all inputs: by default, it depends on whether electrodes are known.
    return PARSClassifier(**{**FAST, "head": "attention", **arguments})


def embedder(**arguments) -> PARSEmbedder:
    """Return a very small embedder."""
    fine_tuning = ("finetune_epochs", "validation")
    sizes = {name: value for name, value in FAST.items() if name not in fine_tuning}
    return PARSEmbedder(**{**sizes, **arguments})


def save_ensemble(windows: Any, folder: Path) -> Path:
    """Fit a FewLabelsClassifier with a very small encoder, and return its folder."""
    embedder(pretext=None).fit(windows).save(folder / "encoder")
    ensemble = FewLabelsClassifier(str(folder / "encoder"), device="cpu", verbose=0)
    ensemble.fit(windows).save(folder / "ensemble")
    return folder / "ensemble"


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    """Check whether two modules have equal weights and buffers, on any device."""
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a.cpu(), b.cpu()) for a, b in pairs)
