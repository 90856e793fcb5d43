"""
What does PARS learn from real sleep?
=====================================

PARS pretrains an encoder without labels: the encoder learns to predict how far apart in time short
patches of a recording are. After 20 epochs on this page, the predictions are slightly better than
chance. This pretraining is too short to obtain better features than from an encoder with random
weights; longer pretraining improves the score (:doc:`/results/sleep`). The page pretrains on six
subjects of the bundled sleep dataset, and tests the encoder on the other six subjects, with the
labels of only a few of them.

:bdg-success:`real recordings` :bdg-secondary:`60 s`
"""

# %%
# Wake and deep sleep of twelve subjects
# --------------------------------------
#
# The bundled dataset :func:`~braindecode_pars.datasets.sleep` contains one channel of twelve
# subjects. For each subject, there are at most 60 windows of 30 seconds for each of three classes:
# wake, stage 3 and stage 4. Half of the subjects are used for pretraining.

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
# PARS cuts 40 patches of one second from every window and hides the positions of 32 patches. The
# model then predicts the time shift between each pair of these 32 patches. The relative loss (loss
# divided by the chance-level loss; lower is better) starts at about 1, and decreases as soon as the
# model can use a property of the signal. Batches are small, so that there are enough training steps
# with so few windows.

settings = dict(pretrain_batch_size=64, pretrain_epochs=20, random_state=0, verbose=0)
embedder = PARSEmbedder("pars", **settings).fit(unlabeled)
plotting.training_curves(embedder.history_)
# sphinx_gallery_alt = "The relative loss stays near 1 for ten epochs, then decreases slightly"
plt.show()

# %%
# Predicted shifts
# ----------------
#
# The model now predicts the time shifts in windows of held-out subjects. Because pretraining was
# short, these predictions are in most windows only slightly better than predicting zero for every
# pair. The printed number is the loss divided by the loss of predicting zeros (median over
# windows). The figure shows the window in which this ratio is lowest.

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
# The classes are now stage 3 and stage 4. They are difficult to distinguish: current scoring rules
# combine both into N3. The methods are linear probes, that is, linear classifiers on the features
# of an encoder that is not trained further, or on hand-crafted features. They are trained with the
# labels of one or four subjects, and tested on subjects that were used neither for pretraining nor
# for training the classifier. The random encoder has the same size as the pretrained encoder.

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
# The figure shows a single draw (random selection of labeled subjects) with six subjects, which is
# not enough to distinguish small differences from chance. :doc:`/results/sleep` has scores with
# twelve subjects, twenty draws, three pretraining seeds and other pretext tasks, and statistical
# tests.

# sphinx_gallery_thumbnail_path = "images/thumbnails/pars_on_sleep.png"
