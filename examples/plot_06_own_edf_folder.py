"""
Your own EDF folder: from files to a store to a pretrained encoder
==================================================================

I have a folder of EDF files and no labels. What now? So that everybody can run this page, it first
writes such a folder, of simulated nights. With files of your own, point ``recordings`` at them.
"""

# %%
# A folder as folders are
# -----------------------
#
# Two laboratories: five people with three channels at 100 Hz, three with five at 128 Hz. One file
# is only half copied. Three nights were scored, as annotations that the last section alone reads.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import create_windows_from_events
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
home = Path(temporary.name)
recordings = home / "recordings"

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
print(*sorted(file.relative_to(home).as_posix() for file in recordings.rglob("*.edf")))

# %%
# From files to a store
# ---------------------
#
# A store brings all recordings to one sampling rate and one band, and keeps them in one file that
# is read without loading it. On the command line:
#
# .. code-block:: sh
#
#    braindecode-pars store recordings store --sfreq 100 --low 0.3 --high 35 --on-error warn
#
# In Python it is the call below. A file that cannot be read ends it, by name; with
# ``on_error="warn"`` it is left out with a warning, and ``store.skipped`` remembers why.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says what store.skipped says
    store = SignalStore.create(
        home / "store", recordings, sfreq=100, low=0.3, high=35, on_error="warn", verbose=0
    )
print(f"{len(store.recordings)} recordings, {len(store)} signals, {store.n_bytes / 1e6:.0f} MB")
print("people:", *store.subjects)
print("left out:", {name: why.split(" (")[0] for name, why in store.skipped.items()})
store.recordings[["subject", "ch_names", "n_times"]]

# %%
# Montages differ, and may. Look at the people, since on them depends what a leak is: here they are
# the first folder; with ``subject=`` (on the command line ``--subject``) whatever your paths say.
#
# Pretrain on everybody but one
# -----------------------------
#
# ``braindecode-pars pretrain store --out run --exclude-subject P03`` has the paper's size and
# length. The settings below are for seconds on one core: one layer, patches of two seconds, and
# half of the patches keep their position. P03 is left out, to be looked at as a stranger.

size = dict(patch_seconds=2, embed_dim=64, num_layers=1, num_heads=4, mlp_dim=128)
training = dict(epochs=7, steps_per_epoch=40, batch_size=64, lr=3e-3, warmup=0.3)
task = dict(task="pars", task_params={"position_mask_ratio": 0.5})
config = RunConfig(**task, **size, **training, exclude_subjects=("P03",))
run = pretrain(store, home / "run", config, verbose=0)
losses = pd.read_csv(run / "metrics.csv")["train_loss_relative"]
card = load_encoder(run).card
print("loss in units of chance:", *losses.round(2))
print(card.task, f"at {card.sfreq:g} Hz, {card.n_windows} windows of", *card.subjects)

# %%
# A loss of 1 is that of a guesser who hears nothing. The folder ``run`` now holds the encoder and
# its card, with everybody it has seen.
#
# Look without labels
# -------------------
#
# An encoder makes one vector of each window. How alike are any two windows of P03's night? Beside
# it the same with an encoder that learned nothing. Vectors are averaged over two and a half
# minutes, which is why each matrix is bright along its diagonal.

night = store.select(["P03"]).windows(3000)
embedders = {
    "pretrained": PARSEmbedder(encoder=run, verbose=0),
    "untrained": PARSEmbedder(None, **size, random_state=0, verbose=0),
}
hypnogram = first.datasets[2].metadata["target"].to_numpy()

fig, axes = plt.subplots(2, 2, height_ratios=[1, 3], figsize=(9, 6.2), layout="constrained")
for (above, below), (name, embedder) in zip(axes.T, embedders.items(), strict=True):
    view = make_pipeline(embedder, StandardScaler(), PCA(8))
    vectors = uniform_filter1d(view.fit_transform(night), 5, axis=0)
    plotting.hypnogram(hypnogram, stage_names=STAGES, ax=above)
    above.set(title=name, xlabel="", xticklabels=[])
    image = below.imshow(np.corrcoef(vectors), cmap="cividis", vmin=-1, extent=(0, 1, 1, 0))
    below.set(xlabel="hours", ylabel="hours", aspect="auto")
fig.colorbar(image, ax=axes[1], label="correlation")
plt.show()

# %%
# Left, windows of wake tend to be alike wherever they are in the night, and unlike those of deeper
# sleep; nobody told the encoder of stages. Right there is less of that. The blocks are blurred, and
# this is one encoder of one seed: others show more of them, or hardly any.
#
# When somebody has scored a few nights
# -------------------------------------
#
# The encoder is fine-tuned on P01 and P02 and stages P03. Their files need the store's band; its
# sampling rate they have.


def scored(person):
    raw = mne.io.read_raw_edf(recordings / person / "night.edf", preload=True, verbose="error")
    return RawDataset(raw.filter(0.3, 35, verbose="error"), {"subject": person})


windows_ds = create_windows_from_events(
    BaseConcatDataset([scored(person) for person in ("P01", "P02", "P03")]),
    window_size_samples=3000,
    window_stride_samples=3000,
    mapping={f"Sleep stage {name}": target for target, name in enumerate(STAGES)},
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
# One night cannot say which method is better; seeds are not people. Band power is hard to beat
# here, because the simulated stages are made of frequency bands. What pretraining is worth is asked
# in :ref:`sphx_glr_auto_examples_plot_05_label_efficiency.py`.
#
# So, without labels: a folder becomes a store, a store an encoder, and the encoder a first look at
# nights that nobody has scored. With a few labels, a classifier begins there. Next: :doc:`/scale`
# for larger stores and longer runs, :doc:`/pretrained` for the use of the folder ``run``.

temporary.cleanup()
