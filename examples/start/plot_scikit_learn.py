"""
Which scikit-learn tools work with a pretrained transformer?
============================================================

This page shows five tools that work: cross-validation over subjects, pipelines, linear probes, grid
search and skorch callbacks. The scores are from eight subjects and seconds of training, so do not
draw conclusions from them; see :doc:`plot_arithmetic` instead.

:bdg-success:`real recordings` :bdg-secondary:`50 s`

The recordings are bundled with the package (Zyma et al. 2019; ODC-BY 1.0).
"""

# %%
# Windows as X, y and groups
# --------------------------
#
# ``as_sklearn`` converts a braindecode dataset to ``X``, ``y`` and ``groups`` without copying the
# windows: windows are read when they are used. The groups are the subjects, so any group splitter
# of scikit-learn, such as ``GroupKFold``, can hold out subjects.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets
from braindecode_pars.evaluation import LogBandPower

windows_ds = datasets.mental_arithmetic([f"Subject{number:02d}" for number in range(8)])
X, y, groups = as_sklearn(windows_ds)
print(f"X {X.shape}, y {y.shape}, {len(np.unique(groups))} subjects")

# %%
# Cross-validation over subjects
# ------------------------------
#
# ``small`` is an encoder that is bundled with the package and was pretrained on other subjects
# (:doc:`/guide/pretrained`). In each fold, a network with this encoder is trained on the training
# subjects; by default, the encoder stays frozen if there are so few subjects. If you omit
# ``encoder``, a new encoder is first pretrained on the training subjects of the fold. In both
# cases, the held-out subjects of a fold are not used for training, not even their unlabeled
# windows.

kappa = make_scorer(cohen_kappa_score)
by_subject = dict(groups=groups, cv=GroupKFold(n_splits=4), scoring=kappa)

clf = PARSClassifier(encoder="small", finetune_epochs=10, random_state=0, verbose=0)
print("Cohen's kappa of each fold:", *cross_val_score(clf, X, y, **by_subject).round(2))

# %%
# Pipelines and linear probes
# ---------------------------
#
# :class:`~braindecode_pars.PARSEmbedder` is a scikit-learn transformer that computes features with
# an encoder. ``fit`` pretrains an encoder, unless you pass a pretrained encoder; ``transform``
# returns one feature vector per window. A linear probe is a linear classifier on such features. The
# figure compares three pipelines that differ only in the first step: features of a pretrained
# encoder, features of an encoder with random weights, and log band power.

embedders = {
    "pretrained": PARSEmbedder(encoder="small", verbose=0),
    "random encoder": PARSEmbedder(pretext=None, random_state=0, verbose=0),
    "log band power": LogBandPower(),
}
probes = {
    name: make_pipeline(embedder, StandardScaler(), LogisticRegression(max_iter=1000))
    for name, embedder in embedders.items()
}
probe_scores = {name: cross_val_score(probe, X, y, **by_subject) for name, probe in probes.items()}

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
for row, scores in enumerate(probe_scores.values()):
    ax.plot(scores, np.full(len(scores), row), "o", color="C0", alpha=0.5)
    ax.plot(scores.mean(), row, "|", color="k", markersize=22)
ax.set(xlabel="Cohen's kappa of each fold (line: mean)", ylim=(2.5, -0.5))
ax.set_yticks(range(3), probe_scores)
# sphinx_gallery_alt = "Cohen's kappa of four folds for three kinds of features, with a line at"
# sphinx_gallery_alt = "each mean"
plt.show()

# %%
# Eight subjects and one seed are too few to rank the features. The random encoder is an important
# baseline: the input of both encoders contains the power spectrum of the signal, and even with
# random weights, the features preserve information about it.
#
# Grid search
# -----------
#
# As usual in scikit-learn, a parameter of a pipeline step is addressed by the name of the step, two
# underscores, and the name of the parameter. This search compares two regularization strengths and
# two ways of pooling channels, with cross-validation over subjects. The encoder is already
# pretrained, so nothing is pretrained in the search.

pipeline = make_pipeline(
    PARSEmbedder(encoder="small", verbose=0), StandardScaler(), LogisticRegression(max_iter=1000)
)
search = GridSearchCV(
    pipeline,
    {"parsembedder__pooling": ["channels", "mean_std"], "logisticregression__C": [0.01, 1.0]},
    cv=GroupKFold(n_splits=4),
    scoring=kappa,
)
search.fit(X, y, groups=groups)
print("best parameters:", search.best_params_)

# %%
# Callbacks of skorch
# -------------------
#
# Networks are fine-tuned with skorch, so you can pass skorch callbacks. Here, the callback
# ``EarlyStopping`` stops the training if the validation loss has not decreased for two epochs. With
# ``validation=0.2``, a fifth of the subjects is held out to compute this loss. The table
# ``history_`` has one row per epoch of pretraining (none here) and fine-tuning.

from skorch.callbacks import EarlyStopping

stopped = PARSClassifier(
    encoder="small",
    finetune_epochs=30,
    finetune_warmup=None,  # constant learning rate, because the number of epochs is not known
    validation=0.2,
    callbacks=[EarlyStopping(patience=2)],
    random_state=0,
    verbose=0,
).fit(X, y, groups=groups)
print(f"stopped after {len(stopped.net_.history)} of 30 epochs")
stopped.history_.tail(3).round(3)

# %%
# Pretraining is also available as a skorch callback, for your own networks or for the
# ``EEGClassifier`` of braindecode. Before the first epoch, the callback pretrains the encoder of
# the network on the training windows, here to predict the spectra of hidden patches:

from braindecode import EEGClassifier
from skorch.dataset import ValidSplit

from braindecode_pars.callbacks import Pretraining

net = EEGClassifier(
    "PARSNet",
    classes=[0, 1],
    module__sfreq=128.0,
    module__n_times=1280,
    module__n_chans=8,
    module__n_outputs=2,
    train_split=ValidSplit(0.2, random_state=0),
    callbacks=[Pretraining("spectral", epochs=10, batch_size=16, verbose=0)],
    batch_size=16,
    max_epochs=2,
    verbose=0,
)
net.fit(windows_ds, y=None)
print("training loss of the net:", *np.round(net.history[:, "train_loss"], 2))

# %%
# All of these tools are used as with any other scikit-learn classifier, but ``fit`` takes longer.

# sphinx_gallery_thumbnail_path = "images/thumbnails/scikit_learn.png"
