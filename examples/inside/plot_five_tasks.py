"""
What do the pretraining tasks predict, and which is best?
=========================================================

Time shifts (PARS), samples (MAE) or positions (MP3, DropPos). After seconds of pretraining none is
best: in a linear probe on held-out subjects their ranges overlap, no task is above an untrained
encoder, and band power is far ahead. All have the same encoder, windows, steps and seeds. This is
enough to show a fair comparison and far too little to rank the tasks.

:bdg-info:`simulated` :bdg-secondary:`40 s`
"""

# %%
# What each task predicts
# -----------------------
#
# The figure shows four tasks on one window, one row for each. The encoder gets blue patches with
# their position and orange patches without it. It does not get the gray parts.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.utils.data import Subset

from braindecode_pars import PARSEmbedder, as_sklearn, datasets, plotting
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.plotting.style import COLORS
from braindecode_pars.pretext import MAE, MP3, PARS, DropPos, Joint

nights = datasets.simulated.sleep(n_subjects=9, hours=1, n_chans=2, sfreq=100, random_state=0)
unlabeled = BaseConcatDataset(nights.datasets[:3])
staged = BaseConcatDataset(nights.datasets[3:])
labeled = Subset(staged, range(0, len(staged), 3))

patch = 100  # samples: one second
size = dict(embed_dim=32, num_layers=2, num_heads=2, mlp_dim=64)
tasks = {task.__name__: task(3000, patch, **size) for task in (PARS, MAE, MP3, DropPos, Joint)}
KNOWN, LOST, REMOVED = COLORS[0], COLORS[6], "0.85"
order = np.random.default_rng(0).permutation(30) * patch  # grid positions in random order
starts = tasks["PARS"].sample_starts(1, generator=torch.Generator().manual_seed(0))[0].numpy()
n_removed, drop = tasks["MAE"].n_masked, tasks["DropPos"]
rows = {
    "PARS: time shifts between\norange patches": [
        (starts, LOST),
        (starts[tasks["PARS"].n_masked :], KNOWN),
    ],
    "MAE: samples of\nall patches": [
        (order[:n_removed], REMOVED),
        (order[n_removed:], KNOWN),
    ],
    "MP3: position of\nevery patch": [(order, LOST)],
    "DropPos: position of\norange patches": [
        (order[: drop.n_dropped], LOST),
        (order[drop.n_dropped : drop.n_visible], KNOWN),
        (order[drop.n_visible :], REMOVED),
    ],
}
signal = unlabeled[40][0][0] * 1e6
fig, axes = plt.subplots(4, 1, figsize=(10, 5.6), sharex=True, sharey=True, layout="constrained")
for ax, (label, parts) in zip(axes, rows.items(), strict=True):
    ax.plot(np.arange(3000) / 100, signal, color="0.85", lw=0.5)
    for part_starts, color in parts:
        for start in part_starts:
            span = np.arange(start, start + patch)
            ax.plot(span / 100, signal[span], color=color, lw=0.8)
            ax.axvspan(start / 100, start / 100 + 0.96, ymax=0.05, color=color, lw=0)
    ax.set_ylabel(label, rotation=0, ha="right", va="center")
    ax.set(yticks=[], xlim=(0, 30))
    ax.spines[["top", "right", "left"]].set_visible(False)
axes[-1].set_xlabel("seconds")
# sphinx_gallery_alt = "One signal in four rows; colors mark the patches that each task gets,"
# sphinx_gallery_alt = "hides or removes"
plt.show()

# %%
# Each task has a chance loss, which a prediction without the signal reaches:
#
# * :class:`~braindecode_pars.pretext.PARS` predicts the time shift between any two patches without
#   a position. Chance is the mean squared error of predicting zero.
# * :class:`~braindecode_pars.pretext.MAE` removes half of the patches and predicts the samples of
#   all. Chance is the error of predicting zero: the variance of a normalized signal, one.
# * :class:`~braindecode_pars.pretext.MP3` gets no positions and predicts the position of every
#   patch. Patches attend to only half of the patches. Chance is log 30, for 30 positions.
# * :class:`~braindecode_pars.pretext.DropPos` removes half of the patches and predicts the position
#   of most of the others. Chance is log 26: 30 positions without the 4 that are shown.
# * :class:`~braindecode_pars.pretext.Joint` is PARS plus MAE here, each relative to its chance.
#   Chance is two.
#
# Two tasks are not on this page. :class:`~braindecode_pars.pretext.SpectralMAE` is MAE with the log
# power spectrum of the removed patches as its target.
# :class:`~braindecode_pars.pretext.SignalFeatures` predicts classical features of the window.

print({name: round(task.chance_loss(), 3) for name, task in tasks.items()})

# %%
# Training, relative to chance
# ----------------------------
#
# The losses have different units, so each is divided by its chance loss. Each line is one seed. All
# tasks start from the same encoder weights for the same seed.

embedders, histories = {}, []
for seed in range(3):
    for name, task in {**tasks, "random encoder": None}.items():
        embedder = PARSEmbedder(
            task and task.name,
            **size,
            pretrain_epochs=3,
            pretrain_batch_size=32,
            random_state=seed,
            verbose=0,
        ).fit(unlabeled)
        embedders[name, seed] = embedder
        histories.append(embedder.history_.assign(method=name, seed=seed))
history = pd.concat([h for h in histories if len(h)], ignore_index=True)
columns = ["phase", "epoch", "train_loss", "train_loss_relative", "train_loss_relative_masked"]
plotting.training_curves(history[[*columns, "method", "seed"]])
# sphinx_gallery_alt = "Losses relative to chance over three epochs; only the tasks with MAE fall"
# sphinx_gallery_alt = "clearly"
plt.show()

# %%
# Only the losses of MAE and of the sum of PARS and MAE fall clearly below chance. However, the
# dashed line, the loss of MAE on removed patches, stays near chance. So far MAE only copies the
# patches it gets. PARS and MP3 are close to chance. DropPos is near 1.04, which is log 30 / log 26.
# This is the loss of a uniform guess over all 30 positions, including the four that are shown.
#
# A linear probe on held-out subjects
# -----------------------------------
#
# Each encoder is frozen. Logistic regression on its features is trained on five subjects and
# predicts the stages of the sixth, for each of the six. None of the six was used in pretraining.
# Kappa is over all windows. The baselines are an untrained encoder and band power.

X, y, groups = as_sklearn(labeled)


def kappa(features):
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    return cohen_kappa_score(
        y, cross_val_predict(probe, features, y, groups=groups, cv=LeaveOneGroupOut())
    )


kappas = {key: kappa(embedder.transform(X)) for key, embedder in embedders.items()}
kappas["log band power", 0] = kappa(LogBandPower().fit_transform(X))
scores = pd.DataFrame(
    [
        dict(dataset="", method=name, subject="all", seed=seed, metric="kappa", value=value)
        for (name, seed), value in kappas.items()
    ]
)
print(scores.groupby("method", sort=False)["value"].agg(["mean", "std", "count"]).round(2))
_, ax = plt.subplots(layout="constrained")
ax.plot(scores["value"], scores["method"], "o")
ax.set_xlabel("Cohen's kappa")
# sphinx_gallery_alt = "Kappa of seven encoders and baselines as dots; band power is far ahead"
plt.show()

# %%
# This page cannot name a best task. On average no pretrained encoder is above the untrained one. By
# default, a token contains the power spectrum of its patch, so that a random encoder already tells
# much about the stages; seconds of pretraining do not add to this. The ranges of the tasks overlap,
# and the spread is over three seeds on the same six subjects. The loss does not rank the tasks
# either: MAE has the lowest loss, by copying, and the lowest kappa. Band power scores far higher
# than all, because the stages are simulated as frequency bands.
#
# :doc:`/results/index` has the same comparison with more subjects, longer training and fine-tuning.

# sphinx_gallery_thumbnail_path = "images/thumbnails/five_tasks.png"
