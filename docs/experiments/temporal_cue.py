"""Can PARS learn temporal order, with and without overlapping patches?

    python docs/experiments/temporal_cue.py

Each window of 10 s has pink noise and one temporal cue: the amplitude of the noise grows, or the
frequency of a rhythm rises. If it does so in every window, a patch alone indicates its position. If
windows grow or shrink, or rise or fall, the direction must be inferred from the patches that keep
their position. Noise alone has no cue. PARS has seven patches of 1 s, of which one or three keep
their position. Writes the relative training loss of the last of 6 epochs of 100 steps of 64 windows
to ``docs/measured/temporal_cue.csv``. The command takes a quarter of an hour on one core.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from stored_table import store_table
from tqdm import tqdm

from braindecode_pars import PatchEncoder
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder

MEASURED = Path(__file__).parents[1] / "measured"
SFREQ, SECONDS, N_WINDOWS, N_EPOCHS, N_SEEDS = 128, 10, 6400, 6, 2
CUES = ("none", "grows", "rises", "grows or shrinks", "rises or falls")


def main() -> None:
    rows = []
    for cue, overlap, ratio, seed in tqdm(
        [*product(CUES, (False, True), (0.8, 0.5), range(N_SEEDS))]
    ):
        if ratio == 0.5 and " or " not in cue:
            continue  # a patch alone indicates its position
        loss = train(cue, overlap, ratio, seed)
        rows.append(dict(cue=cue, overlap=overlap, mask_ratio=ratio, seed=seed, loss=loss))
    command = "python docs/experiments/temporal_cue.py"
    store_table(
        pd.DataFrame(rows),
        MEASURED / "temporal_cue.csv",
        command,
        index=False,
        float_format="%.4f",
    )


def train(cue: str, overlap: bool, mask_ratio: float, seed: int, epochs: int = N_EPOCHS) -> float:
    """Return the relative loss of PARS at the end of training."""
    signals = windows(cue, N_WINDOWS, np.random.default_rng(seed))
    torch.manual_seed(seed)
    encoder = PatchEncoder(SFREQ, 64, 2, 4, 128, tokenizer="spectral")
    placed = {} if overlap else dict(overlap=False, min_gap=12)
    task_params = dict(n_patches=7, position_mask_ratio=mask_ratio, **placed)
    settings = PretrainingSettings(
        "pars", task_params=task_params, epochs=epochs, lr=1e-3, batch_size=64, device="cpu"
    )
    net = pretrain_encoder(encoder, signals[:, None], settings, sfreq=SFREQ, seed=seed, verbose=0)
    return net.history[-1]["train_loss_relative"]


def windows(cue: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return windows with a temporal cue, float32 (n, n_times)."""
    n_times = SECONDS * SFREQ
    white = np.fft.rfft(rng.standard_normal((n, n_times)))
    noise = np.fft.irfft(white / np.sqrt(np.arange(white.shape[1]) + 1), n_times)
    noise /= noise.std(axis=1, keepdims=True)
    # Time from 0 to 1, reversed in half of the windows if both directions occur.
    time = np.tile(np.arange(n_times) / n_times, (n, 1))
    if " or " in cue:
        time[::2] = time[::2, ::-1]
    if cue.startswith("grows"):
        noise *= 0.1 + 1.9 * time
    elif cue.startswith("rises"):
        frequency = 10.5 + 4 * (time - 0.5) + rng.normal(0, 0.3, (n, 1))
        phase = rng.uniform(0, 2 * np.pi, (n, 1))
        noise += 0.75 * np.sin(2 * np.pi * np.cumsum(frequency, axis=1) / SFREQ + phase)
    return noise.astype(np.float32)


if __name__ == "__main__":
    main()
