"""Replace the bundled encoders by a very small encoder in a temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from braindecode_pars import PatchEncoder
from braindecode_pars._common import model_files as _packaged
from braindecode_pars.pretrained import EncoderCard, save_encoder

NAME = "features-eegmmidb"

#: Example values for all entries that the cards of the bundled encoders have.
ABOUT = {
    "name": NAME,
    "description": "An encoder that was pretrained on noise.",
    "license": "ODC-BY 1.0",
    "attribution": ["Author (2004): A corpus [1].", "Another (2000): Its archive."],
    "corpora": ["A corpus of noise 1.0.0"],
    "band": [0.5, 45],
    "reference": "average",
    "people": ["3 volunteers (subjects 1 to 3)"],
    "channels": ["C3", "Cz", "C4"],
    "held_out": {
        "people": "2 volunteers (subjects 4 to 5)",
        "loss_relative": 0.78125,
        "parts": {"band_1_3": 0.9, "band_4_7": 0.5},
        "n_crops": 64,
        "seed": 0,
    },
    "date": "2026-11-22",
    "command": "braindecode-pars pretrain STORE --out RUN --task spectral",
    "machine": "1 process on cpu, 1 minutes, Python 3.11.7, torch 2.14.1",
}


def ship(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str = NAME) -> Path:
    """Save a very small encoder for windows at 100 Hz as the only bundled encoder."""
    encoder = PatchEncoder(50, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
    card = EncoderCard(sfreq=100.0, task="spectral", subjects=[1, 2, 3], epochs=5, about=ABOUT)
    monkeypatch.setattr(_packaged, "FOLDER", folder)
    return save_encoder(encoder, card, folder / name)
