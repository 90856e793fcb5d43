"""
What can be done with a folder of unlabeled EDF files?
======================================================

Convert the files to a signal store (a folder from which windows are read quickly), pretrain an
encoder on this store, and inspect a recording with the encoder. On this page, the pretraining loss
decreases to .87 times the chance-level loss. After training with two labeled nights, a network with
this encoder does not score higher on a test night than the same network trained from scratch
(:doc:`plot_arithmetic` shows other tasks). All nights are simulated. To use your own files, set
``recordings`` to your folder.

:bdg-info:`simulated` :bdg-secondary:`50 s`
"""

# %%
# A folder of EDF files
# ---------------------
#
# The simulated nights imitate recordings of two laboratories: five subjects with three channels at
# 100 Hz, and three subjects with five channels at 128 Hz. The file of subject P05 is truncated, as
# after an incomplete download. The files of the first three subjects have annotated sleep stages.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import mne
import numpy as np
import pandas as pd
from scipy.ndimage import uniform_filter1d
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import summarize, transfer
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.runs import RunConfig, pretrain
from braindecode_pars.signal_store import SignalStore

STAGES = datasets.simulated.STAGES
temporary = tempfile.TemporaryDirectory()
root = Path(temporary.name)
recordings = root / "recordings"

first = datasets.simulated.sleep(n_subjects=5, hours=1, n_chans=3, sfreq=100, random_state=1)
second = datasets.simulated.sleep(n_subjects=3, hours=1, n_chans=5, sfreq=128, random_state=2)
for number, night in enumerate([*first.datasets, *second.datasets], start=1):
    raw = night.raw.copy().rename_channels(lambda name: f"EEG {name}")
    if number <= 3:
        stages = [f"Sleep stage {STAGES[stage]}" for stage in night.metadata["target"]]
        raw.set_annotations(mne.Annotations(30 * np.arange(len(stages)), 30, stages))
    file = recordings / f"P{number:02d}" / "night.edf"
    file.parent.mkdir(parents=True)
    raw.export(file, verbose="error")

damaged = recordings / "P05" / "night.edf"
damaged.write_bytes(damaged.read_bytes()[:500_000])
print(*sorted(file.relative_to(root).as_posix() for file in recordings.rglob("*.edf")))

# %%
# From files to a store
# ---------------------
#
# In a signal store, all recordings have the same sampling rate and frequency band, and windows are
# read from disk when they are needed. The following call creates the store, like the command
# ``braindecode-pars store recordings store --sfreq 100 --low 0.3 --high 35 --on-error warn``. By
# default, an unreadable file raises an error. Here, it is skipped (``store.skipped``).

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # store.skipped contains the same message
    store = SignalStore.create(
        root / "store", recordings, sfreq=100, low=0.3, high=35, on_error="warn", verbose=0
    )
print(f"{len(store.recordings)} recordings, {len(store)} signals, {store.n_bytes / 1e6:.0f} MB")
print("subjects:", *store.subjects)
print("skipped:", {name: reason.split(" (")[0] for name, reason in store.skipped.items()})
store.recordings[["subject", "ch_names", "n_times"]]

# %%
# Recordings of a store may have different channels. Check the column ``subject``: if it is wrong,
# recordings of one subject may be used both for training and for testing (data leakage). Here, the
# subject is the first folder in the path of a file. For other names, use the argument ``subject``.
#
# Pretrain on all subjects except one
# -----------------------------------
#
# Subject P03 is excluded from pretraining, to test the encoder on this subject later. The pretext
# task is PARS: predicting the time shift between patches of a signal. The encoder has one layer,
# and half of the patches keep their position, so that pretraining takes only seconds on one core.
# With the option ``--paper``, ``braindecode-pars pretrain`` uses the settings of the paper instead.

size = dict(patch_seconds=2, embed_dim=64, num_layers=1, num_heads=4, mlp_dim=128)
size["tokenizer"] = "spectral"
training = dict(epochs=7, steps_per_epoch=40, batch_size=64, lr=3e-3, warmup=0.3)
training |= dict(task="pars", task_params={"position_mask_ratio": 0.5}, exclude_subjects=("P03",))
config = RunConfig(**size, **training)
run = pretrain(store, root / "run", config, verbose=0)
losses = pd.read_csv(run / "metrics.csv")["train_loss_relative"]
card = load_encoder(run).card
print("relative loss:", *losses.round(2))
print(card.task, f"at {card.sfreq:g} Hz, {card.n_windows} windows of", *card.subjects)

# %%
# A relative loss of 1 is the chance level, and lower is better. The folder ``run`` now contains the
# encoder and its card (metadata), which lists the subjects on which the encoder was pretrained.
#
# Inspect a night without labels
# ------------------------------
#
# The encoder returns one feature vector per window. The next figure shows the true sleep stages of
# P03 (top) and the correlation between the feature vectors of each pair of windows (bottom), for
# the pretrained encoder and for an encoder with random weights. Feature vectors are averaged over
# two and a half minutes, so each matrix is bright along its diagonal.

night = store.select(["P03"]).windows(3000)
embedders = {
    "pretrained": PARSEmbedder(encoder=run, verbose=0),
    "random encoder": PARSEmbedder(None, **size, random_state=0, verbose=0),
}
hypnogram = first.datasets[2].metadata["target"].to_numpy()

fig, axes = plt.subplots(2, 2, height_ratios=[1, 3], figsize=(9, 6.2), layout="constrained")
for (top, bottom), (name, embedder) in zip(axes.T, embedders.items(), strict=True):
    pipeline = make_pipeline(embedder, StandardScaler(), PCA(8))
    vectors = uniform_filter1d(pipeline.fit_transform(night), 5, axis=0)
    plotting.hypnogram(hypnogram, stage_names=STAGES, ax=top)
    top.set(title=name, xlabel="", xticklabels=[])
    image = bottom.imshow(np.corrcoef(vectors), cmap="cividis", vmin=-1, extent=(0, 1, 1, 0))
    bottom.set(xlabel="hours", ylabel="hours", aspect="auto")
fig.colorbar(image, ax=axes[1], label="correlation")
# sphinx_gallery_alt = "Two hypnograms, and below each a correlation matrix with bright blocks"
plt.show()

# %%
# With both encoders, wake and deeper sleep have different features, although no labels were used.
# Pretraining is not the reason: the difference is even clearer with the random encoder. The input
# of both encoders contains the power spectrum of the signal, which depends on the stage.
#
# Fine-tune on a few labeled nights
# ----------------------------------
#
# A network with this encoder is trained on the nights of P01 and P02, and tested on the night of
# P03. With so few labeled subjects, the encoder stays frozen by default, and only the head of the
# network is trained. The labels are annotations in the files; they can also be read from tables
# (:doc:`/guide/recordings`). The frequency band and the sampling rate are as in the store. The
# table shows Cohen's kappa.

windows_ds = datasets.folder.load(
    recordings,
    ["P01", "P02", "P03"],
    labels={f"Sleep stage {name}": name for name in STAGES},
    sfreq=100,
    low=0.3,
    high=35,
    mains=None,
    verbose=0,
)

tuning = dict(finetune_epochs=8, validation=0, verbose=0)
scores = transfer(
    {
        "pretrained": PARSClassifier(encoder=run, **tuning),
        **make_methods(["scratch", "band-power"], **size, **tuning),
    },
    {"nights": windows_ds},
    test_subjects={"nights": ["P03"]},
    seeds=range(3),
    metrics=["kappa"],
    verbose=0,
)
print(summarize(scores, over="seeds")[["method", "mean", "sd", "n"]].round(2))

# %%
# One test night is not enough to rank the methods: the SD in the table is over random seeds. To
# continue, see :doc:`/guide/scale` (larger stores) and :doc:`/guide/pretrained` (uses of ``run``).

temporary.cleanup()

# sphinx_gallery_thumbnail_path = "images/thumbnails/own_edf_folder.png"
