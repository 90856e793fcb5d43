"""
What can be done with a folder of unlabeled EDF files?
======================================================

Convert the files to a signal store (one folder from which recordings are read quickly), pretrain an
encoder on this store, and inspect a recording with the encoder. On this page, the pretraining loss
decreases to .87 times the chance-level loss. If the encoder is then fine-tuned with two labeled
nights, it does not score higher on a test night than the same network trained from scratch;
:doc:`plot_arithmetic` summarizes for which tasks pretraining helps.

:bdg-info:`simulated` :bdg-secondary:`50 s`

The page first writes a folder of simulated nights. To use your own files, set ``recordings`` to
your folder.
"""

# %%
# A folder of EDF files
# ---------------------
#
# The simulated nights imitate recordings of two laboratories: five subjects with three channels at
# 100 Hz, and three subjects with five channels at 128 Hz. The file of one subject (P05) is
# truncated, as after an incomplete download. The nights of the first three subjects have annotated
# sleep stages.

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
# read from disk when they are needed. On the command line, this command creates the store:
#
# .. code-block:: sh
#
#    braindecode-pars store recordings store --sfreq 100 --low 0.3 --high 35 --on-error warn
#
# The following call does the same in Python. By default, a file that cannot be read raises an
# error, which names the file. With ``on_error="warn"``, the file is skipped, and ``store.skipped``
# contains the reason.

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
# The table shows that recordings of a store may have different channels. Check the column
# ``subject``: if subjects are not recognized correctly, recordings of one subject may be used both
# for training and for testing (data leakage). Here, the subject is the first folder in the path of
# a file. If your files are named differently, use the argument ``subject`` (on the command line,
# ``--subject``).
#
# Pretrain on all subjects except one
# -----------------------------------
#
# Subject P03 is excluded from pretraining, to test the encoder on this subject later. The command
# ``braindecode-pars pretrain store --out run --exclude-subject P03 --paper`` would pretrain with
# the model and the settings of the paper. The settings below are chosen so that pretraining takes
# seconds on one core: one layer, patches of two seconds, a spectral patch embedding, and an easier
# version of the pretext task PARS, in which half of the patches keep their position.

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
# encoder and its encoder card (metadata of the encoder), which lists the subjects on which it was
# pretrained.
#
# Inspect a night without labels
# ------------------------------
#
# The encoder returns one feature vector per window. The next figure shows the true sleep stages of
# P03 at the top, and below the correlation between the feature vectors of each pair of windows.
# Feature vectors are averaged over two and a half minutes, so each matrix is bright along its
# diagonal. For comparison, the same figure is shown for an encoder with random weights.

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
# sphinx_gallery_alt = "Two hypnograms, and below each a correlation matrix with bright blocks on"
# sphinx_gallery_alt = "its diagonal"
plt.show()

# %%
# With both encoders, windows of wake and windows of deeper sleep have different features, although
# no labels were used. The difference is even clearer with the random encoder. The reason is that
# the input of both encoders (tokens) contains the power spectrum of the signal, which depends on
# the sleep stage.
#
# Fine-tune on a few labeled nights
# ----------------------------------
#
# The encoder is fine-tuned on the nights of P01 and P02, and tested on the night of P03. The labels
# are the annotations in the files; they could also be in a table (:doc:`/guide/recordings`). The
# recordings must have the same frequency band and sampling rate as in the store, so they are
# filtered in the same way; these three recordings already have the sampling rate of the store.

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
# One test night is not enough to rank the methods: the standard deviation in the table is over
# random seeds, not over subjects. To continue, see :doc:`/guide/scale` for larger stores and longer
# pretraining, and :doc:`/guide/pretrained` for other uses of an encoder such as ``run``.

temporary.cleanup()

# sphinx_gallery_thumbnail_path = "images/thumbnails/own_edf_folder.png"
