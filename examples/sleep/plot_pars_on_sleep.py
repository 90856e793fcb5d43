"""
What does PARS learn from real sleep?
=====================================

It learns roughly how far apart patches of a night are, without a label: after 20 epochs its loss is
below chance. That is too short for better features than those of an untrained encoder;
:doc:`/results/sleep` has the longer trainings that give them. The page pretrains on six people of
the sample in the package, and scores six others with few labels.

:bdg-success:`real recordings` :bdg-secondary:`60 s`
"""

# %%
# Wake and deep sleep of twelve people
# ------------------------------------
#
# :func:`~braindecode_pars.datasets.sleep` has one channel and at most 60 windows of 30 seconds of
# wake, stage 3 and stage 4 of each person. Half of the people are for pretraining.

import matplotlib.pyplot as plt
import numpy as np
import torch

from braindecode_pars import PARSEmbedder, as_sklearn, datasets, plotting
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import ChannelFeatures, label_efficiency

people = datasets.sleep().description["subject"].tolist()
unlabeled, others = datasets.sleep(people[::2]), datasets.sleep(people[1::2])
print(f"{len(unlabeled)} windows to pretrain on, {len(others)} of other people")

# %%
# Pretrain without labels
# -----------------------
#
# PARS cuts 40 patches of one second from every window, hides the positions of 32, and predicts the
# shift of every pair of them. The loss relative to chance begins at 1, and stays there until the
# model has found the first cue. Small batches give so few windows enough steps.

settings = dict(pretrain_batch_size=64, pretrain_epochs=20, random_state=0, verbose=0)
embedder = PARSEmbedder("pars", **settings).fit(unlabeled)
plotting.training_curves(embedder.history_)
# sphinx_gallery_alt = "The loss relative to chance stays near 1 for ten epochs, then falls a bit"
plt.show()

# %%
# What it predicts
# ----------------
#
# Shifts in windows of held-out people. After so short a training most windows are
# predicted hardly better than by zeros. Here is the one with the lowest loss, and the median of
# all windows relative to that of zeros:

X, y, groups = as_sklearn(others)
windows = torch.as_tensor(np.concatenate([X[i] for i in range(len(X))]))
torch.manual_seed(0)
with torch.inference_mode():
    prediction, target = embedder.task_.eval()(windows)
losses = (prediction - target).square().mean(dim=(1, 2)) / target.square().mean(dim=(1, 2))
print(f"median loss relative to zeros: {losses.median():.2f}")
best = int(losses.argmin())
plotting.shift_matrices(prediction[best], target[best])
# sphinx_gallery_alt = "Predicted and true shifts of 32 patches, their error, and a scatter plot"
plt.show()

# %%
# What the features are worth
# ---------------------------
#
# Stage 3 or stage 4, which are one stage, N3, today: a hard question. Logistic regression on frozen
# features, of people held out from the encoder and the classifier. The untrained encoder
# has the same size.

methods = {
    "PARS": LinearProbe(PARSEmbedder(encoder=embedder, verbose=0), C=0.01),
    "random encoder": LinearProbe(PARSEmbedder(None, verbose=0), C=0.01),
    "hand-crafted features": LinearProbe(ChannelFeatures(), C=0.01),
}
scores = label_efficiency(
    methods,
    X[np.flatnonzero(y > 0)],
    n_train_subjects=[1, 4],
    cv=3,
    seeds=[0],
    metrics=["balanced_accuracy"],
    dataset="sleep",
    verbose=0,
)
plotting.label_efficiency(scores, "balanced_accuracy", "balanced accuracy", chance=0.5)
# sphinx_gallery_alt = "Balanced accuracy of three methods against one and four labeled people"
plt.show()

# %%
# One draw of six people cannot tell small differences from chance. :doc:`/results/sleep` has
# twelve people, twenty draws, three pretrainings, the other tasks and the tests.

# sphinx_gallery_thumbnail_path = "images/thumbnails/pars_on_sleep.png"
