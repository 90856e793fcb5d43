"""
What do the pretext tasks predict, and which is best?
=====================================================

A pretext task is the task on which an encoder is pretrained, without labels: predicting time shifts
between patches of the signal (PARS), samples (MAE), or positions of patches (MP3 and DropPos);
Joint combines PARS and MAE. On this page, none of these five tasks is best: after seconds of
pretraining, the scores of linear classifiers on held-out subjects overlap. No pretrained encoder
scores higher than a random encoder, and log band power scores far higher. All tasks have the same
encoder, windows, number of steps and seeds, but such short runs cannot rank the tasks.

:bdg-info:`simulated` :bdg-secondary:`40 s`
"""

# %%
# Inputs and targets of the pretext tasks
# ---------------------------------------
#
# The figure shows four pretext tasks on the same window. The label on the left states what is
# predicted. The encoder receives blue patches with their position, and orange patches without their
# position. It does not receive the gray parts of the signal.

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
# sphinx_gallery_alt = "One signal in four rows; colors mark used, hidden and removed patches"
plt.show()

# %%
# The chance-level loss is the loss of the best prediction that does not use the signal.
#
# * :class:`~braindecode_pars.pretext.PARS` predicts the time shift between each pair of patches
#   without a position. The chance-level loss is the mean squared error of predicting zero.
# * :class:`~braindecode_pars.pretext.MAE` removes half of the patches and predicts the samples of
#   all patches. The chance-level loss is the mean squared error of predicting zero: 1, which is the
#   variance of the normalized signal.
# * :class:`~braindecode_pars.pretext.MP3` receives no positions and predicts the position of every
#   patch. Tokens can attend to half of the patches. The chance-level loss is log 30 (30 positions).
# * :class:`~braindecode_pars.pretext.DropPos` removes half of the patches, and predicts the
#   positions of most of the remaining patches. The chance-level loss is log 26, because 26 of the
#   30 positions remain possible: the positions of 4 patches are known.
# * :class:`~braindecode_pars.pretext.Joint` trains several pretext tasks on one encoder. Here, its
#   loss is the sum of the relative losses of PARS and MAE, so the chance-level loss is 2.
#
# Other pretext tasks are not shown: :class:`~braindecode_pars.pretext.SpectralMAE` is like MAE, but
# predicts the log power spectrum of the removed patches, and
# :class:`~braindecode_pars.pretext.SignalFeatures` predicts hand-crafted features of the window.

print({name: round(task.chance_loss(), 3) for name, task in tasks.items()})

# %%
# Relative training loss
# ----------------------
#
# The losses of the pretext tasks have different units, so each loss is divided by the chance-level
# loss of its task: 1 is the chance level, and lower is better. Each line is one random seed. With
# the same seed, all pretext tasks start from the same encoder weights.

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
# sphinx_gallery_alt = "Relative losses over three epochs; only the tasks with MAE decrease clearly"
plt.show()

# %%
# Only the losses of MAE and of Joint decrease clearly below the chance level. However, the loss of
# MAE on removed patches only (dashed line) stays near the chance level, so MAE only copies the
# visible patches. The losses of PARS and MP3 are close to the chance level. The loss of DropPos is
# near 1.04 (log 30 / log 26): all 30 positions are predicted with the same probability.
#
# A linear probe on held-out subjects
# -----------------------------------
#
# The encoders are now frozen (not trained any further). For each of six subjects that were not used
# for pretraining, a linear probe (a logistic regression on the features) is trained on the other
# five subjects and predicts the sleep stages. Cohen's kappa is computed over the windows of all six
# subjects. The baselines are a random encoder (random weights) and log band power.

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
# sphinx_gallery_alt = "Cohen's kappa of seven methods as dots; log band power is far higher"
plt.show()

# %%
# These results do not rank the pretext tasks. No pretrained encoder has a higher mean score than
# the random encoder: by default, the input of the encoder contains the power spectrum of each
# patch, so even random features distinguish the sleep stages, and seconds of pretraining do not
# improve them. The scores of the tasks overlap. The relative loss does not rank the tasks either:
# MAE has the lowest loss, because it copies visible patches, but one of the lowest scores. Log band
# power scores far higher, because the simulated stages are defined by frequency bands. See
# :doc:`/results/index` for more subjects, longer training and fine-tuning.

# sphinx_gallery_thumbnail_path = "images/thumbnails/five_tasks.png"
