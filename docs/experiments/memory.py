"""Measure the memory use of each stage on simulated subjects: docs/measured/memory.csv.

    python docs/experiments/memory.py FOLDER --subjects 1000

Each subject has ten minutes of 19 channels at 128 Hz, and windows of 30 s with one class. FOLDER
receives a store (2.8 MB per subject) and the output of the commands. Each stage runs in its own
process. Rows contain the peak of the memory of the process, and the peak including memory-mapped
files such as the store, whose pages the operating system can discard when memory is needed.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import mne
import numpy as np
import pandas as pd
import psutil
from braindecode.datasets import EEGWindowsDataset
from stored_table import store_table

from braindecode_pars.recordings.loading import Recording
from braindecode_pars.recordings.recipe import Recipe
from braindecode_pars.signal_store import SignalStore

CHANNELS = "Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2".split()  # noqa: SIM905
SFREQ, MINUTES, SECONDS = 128, 10, 30
CARD = dict(name="simulated", version="1", classes=("patient", "control"), sfreq=float(SFREQ))


def recordings(path: str | Path, subjects: list | None = None) -> list[Recording]:
    """Return one empty file per subject."""
    files = sorted(Path(path).glob("*.edf"))
    return [Recording(each, dict(subject=int(each.stem), corpus="simulated")) for each in files]


def prepare(recording: Recording) -> mne.io.BaseRaw:
    """Simulate ten minutes of noise whose power decreases with frequency, seeded by the subject."""
    rng, n_times = np.random.default_rng(recording.subject), MINUTES * 60 * SFREQ
    spectrum = rng.normal(size=(len(CHANNELS), n_times // 2 + 1, 2)).astype("float32")
    frequencies = np.fft.rfftfreq(n_times, 1 / SFREQ)
    spectrum *= (1 / np.maximum(frequencies, 0.5))[:, None]
    signals = np.fft.irfft(spectrum[..., 0] + 1j * spectrum[..., 1], n_times)
    signals *= 10e-6 / signals.std()
    info = mne.create_info(CHANNELS, SFREQ, "eeg")
    return mne.io.RawArray(signals, info, verbose="error").set_montage("colin27_1020")


def cut(recording: Recording) -> EEGWindowsDataset:
    """Cut the recording of a subject into windows of one class."""
    starts = np.arange(MINUTES * 60 // SECONDS) * SECONDS * SFREQ
    table = pd.DataFrame(
        dict(
            i_window_in_trial=range(len(starts)),
            i_start_in_trial=starts,
            i_stop_in_trial=starts + SECONDS * SFREQ,
            target=recording.subject % 2,
        )
    )
    return EEGWindowsDataset(prepare(recording), table, recording.description)


_SHORT = ["--epochs", "1", "--steps-per-epoch", "50"]
#: Stages, and their code or command. {store} and {out} are folders.
STAGES = {
    "import of torch, mne and braindecode": "import torch, mne, braindecode",
    "study --plan-only": ["study", "{store}", "--plan-only", "--out", "{out}/study"],
    "pretrain, 50 steps": ["pretrain", "{store}", "--out", "{out}/run", *_SHORT],
    "features of 1,000 windows, encoder small": (
        "from braindecode_pars import PARSEmbedder, as_sklearn\n"
        "from braindecode_pars.signal_store import SignalStore\n"
        "windows, *_ = as_sklearn(SignalStore.open('{store}').labeled_windows())\n"
        "PARSEmbedder(encoder='small').fit_transform(windows[:1000])"
    ),
}


def measured(stage: Any, **folders: Path) -> dict[str, float]:
    """Return seconds and peak memory of a process in MiB, without and with mapped files."""
    code = ["-c", stage] if isinstance(stage, str) else ["-m", "braindecode_pars", *stage]
    command = [sys.executable, *(part.format(**folders) for part in code)]
    begin, private, mapped = time.perf_counter(), 0, 0
    with psutil.Popen(command, stdout=DEVNULL, stderr=DEVNULL) as process:
        while process.poll() is None:
            with suppress(psutil.Error):  # the process ended in the meantime
                memory = process.memory_info()
                private, mapped = max(private, memory.rss - memory.shared), max(mapped, memory.rss)
            time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed.")
    seconds = time.perf_counter() - begin
    return dict(seconds=seconds, own_MiB=private / 2**20, with_files_MiB=mapped / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--subjects", type=int, required=True)
    options = parser.parse_args()
    source, store = options.folder / "subjects", options.folder / "store"
    source.mkdir(parents=True, exist_ok=True)
    for number in range(options.subjects):
        if not (file := source / f"{number:04}.edf").exists():
            file.touch()
    SignalStore.create(store, Recipe("simulated", CARD, recordings, prepare, cut).labeled(source))
    rows = [
        dict(stage=name, subjects=options.subjects)
        | measured(stage, store=store, out=options.folder)
        for name, stage in STAGES.items()
    ]
    command = f"python docs/experiments/memory.py FOLDER --subjects {options.subjects}"
    file = Path(__file__).parents[1] / "measured" / "memory.csv"
    store_table(pd.DataFrame(rows), file, command, index=False, float_format="%.0f")
    print(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    from memory import cut, prepare, recordings

    main()
