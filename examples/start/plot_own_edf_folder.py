"""
What can be done with a folder of unlabeled EDF files?
======================================================

Create a signal store, pretrain an encoder on it (the relative loss decreases to .87), and inspect a
recording. Fine-tuning with two labeled nights does not score higher than training from scratch on
one test night; :doc:`plot_arithmetic` summarizes for which tasks pretraining helps.

:bdg-info:`simulated` :bdg-secondary:`50 s`

The page first writes a folder of simulated nights. For your own files, change ``recordings``.
"""

# %%
# A folder of EDF files
# ---------------------
#
# The simulated nights are from two laboratories: five subjects with three channels at 100 Hz, and
# three subjects with five channels at 128 Hz. One file is truncated. Three nights have annotated
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
# A signal store contains all recordings at one sampling rate and in one frequency band. Windows are
# read from disk when they are needed. On the command line:
#
# .. code-block:: sh
#
#    braindecode-pars store recordings store --sfreq 100 --low 0.3 --high 35 --on-error warn
#
# The following call does the same in Python. By default, a file that cannot be read raises an error
# with its name. With ``on_error="warn"``, the file is skipped, and ``store.skipped`` contains the
# reason.

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
# Recordings may have different montages. Check the subjects: wrong names can cause data leakage.
# Here, the subject is the first folder in the path of a file. For other paths, use ``subject=`` (on
# the command line ``--subject``).
#
# Pretrain on all subjects except one
# -----------------------------------
#
# ``braindecode-pars pretrain store --out run --exclude-subject P03 --paper`` uses the model and the
# training of the paper. The settings below take seconds on one core: one layer, patches of two
# seconds of which half keep their position, and a spectral patch embedding. Subject P03 is held
# out.

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
# A relative loss of 1 is the chance level. The folder ``run`` now contains the encoder and its
# encoder card, which lists the pretraining subjects.
#
# Inspect a night without labels
# ------------------------------
#
# The encoder returns one feature vector per window. The matrices show the correlation between all
# pairs of windows of P03. Vectors are averaged over two and a half minutes, which makes each matrix
# bright along its diagonal.

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
# Features of both encoders separate wake from deeper sleep without labels, those of the random
# encoder even more clearly, because its tokens contain the power spectrum.
#
# Fine-tune on a few labeled nights
# ----------------------------------
#
# The encoder is fine-tuned on P01 and P02 and tested on P03. The labels are the annotations of the
# files; they can also be in a table (:doc:`/guide/recordings`). The three files are filtered to the
# frequency band of the store, and already have its sampling rate.

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
# One test night is not enough to rank the methods: the standard deviation is over seeds, not over
# subjects. Next: :doc:`/guide/scale` for larger stores and longer runs, :doc:`/guide/pretrained`
# for further uses of ``run``.

temporary.cleanup()

# sphinx_gallery_thumbnail_path = "images/thumbnails/own_edf_folder.png"
