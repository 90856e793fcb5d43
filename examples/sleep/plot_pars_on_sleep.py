"""
What does PARS learn from real sleep?
=====================================

It learns approximately how far apart patches of a sleep recording are, without labels: after 20
epochs, its loss is below the chance level. This is too short for better features than those of a
random encoder; :doc:`/results/sleep` has longer pretraining, which improves the score. This page
pretrains on six subjects of the bundled dataset, and tests on six others with few labeled subjects.

:bdg-success:`real recordings` :bdg-secondary:`60 s`
"""

# %%
# Wake and deep sleep of twelve subjects
# --------------------------------------
#
# The dataset :func:`~braindecode_pars.datasets.sleep` has one channel and at most 60 windows of 30
# seconds of wake, stage 3 and stage 4 per subject. Half of the subjects are used for pretraining.

import matplotlib.pyplot as plt
import numpy as np
import torch

from braindecode_pars import PARSEmbedder, as_sklearn, datasets, plotting
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import ChannelFeatures, label_efficiency

names = datasets.sleep().description["subject"].tolist()
unlabeled, labeled = datasets.sleep(names[::2]), datasets.sleep(names[1::2])
print(f"{len(unlabeled)} windows for pretraining, {len(labeled)} windows of other subjects")

# %%
# Pretrain without labels
# -----------------------
#
# PARS cuts 40 patches of one second from every window, hides the positions of 32 patches, and
# predicts the shift between all pairs of these. The relative loss starts at 1, the chance level,
# and decreases once the model detects the first cue. Small batches result in enough steps with so
# few windows.

settings = dict(pretrain_batch_size=64, pretrain_epochs=20, random_state=0, verbose=0)
embedder = PARSEmbedder("pars", **settings).fit(unlabeled)
plotting.training_curves(embedder.history_)
# sphinx_gallery_alt = "The relative loss stays near 1 for ten epochs, then decreases slightly"
plt.show()

# %%
# Predicted shifts
# ----------------
#
# Shifts in windows of held-out subjects. After such short pretraining, the predictions in most
# windows are only slightly better than zeros. The figure shows the window with the lowest loss; the
# median over windows is relative to the loss of predicting zeros:

X, y, groups = as_sklearn(labeled)
windows = torch.as_tensor(np.concatenate([X[i] for i in range(len(X))]))
torch.manual_seed(0)
with torch.inference_mode():
    prediction, target = embedder.task_.eval()(windows)
losses = (prediction - target).square().mean(dim=(1, 2)) / target.square().mean(dim=(1, 2))
print(f"median loss relative to predicting zeros: {losses.median():.2f}")
best = int(losses.argmin())
plotting.shift_matrices(prediction[best], target[best])
# sphinx_gallery_alt = "Predicted and true shifts of 32 patches, their error, and a scatter plot"
plt.show()

# %%
# Linear probes on the features
# -----------------------------
#
# The task is stage 3 vs. stage 4, which current scoring rules combine into N3, so it is difficult.
# The methods are linear probes on frozen features, tested on subjects that were used neither for
# pretraining nor for the classifier. The random encoder has the same size.

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
# sphinx_gallery_alt = "Balanced accuracy of three methods against one and four labeled subjects"
plt.show()

# %%
# One draw with six subjects is not enough to distinguish small differences from chance.
# :doc:`/results/sleep` has twelve subjects, twenty draws, three pretraining seeds, the other
# pretext tasks and the tests.

# sphinx_gallery_thumbnail_path = "images/thumbnails/pars_on_sleep.png"
