"""
Which scikit-learn tools work with a pretrained transformer?
============================================================

All five that are shown here: cross-validation over subjects, pipelines, linear probes, grid search
and skorch callbacks. The scores are from eight subjects and seconds of training, and do not permit
conclusions; see :doc:`plot_arithmetic`.

:bdg-success:`real recordings` :bdg-secondary:`50 s`

The recordings are bundled with the package (Zyma et al. 2019; ODC-BY 1.0).
"""

# %%
# Windows as X, y and groups
# --------------------------
#
# ``as_sklearn`` returns lazy views of a braindecode dataset and does not copy the windows. The
# groups are the subjects, so any scikit-learn group splitter can hold out subjects.

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
# ``encoder="small"`` is a bundled encoder that was pretrained on other subjects, and each fold
# fine-tunes it. Without ``encoder=``, each fold would first pretrain a new encoder on its training
# subjects only; held-out subjects are not used for training, not even without labels.

kappa = make_scorer(cohen_kappa_score)
by_subject = dict(groups=groups, cv=GroupKFold(n_splits=4), scoring=kappa)

clf = PARSClassifier(encoder="small", finetune_epochs=10, random_state=0, verbose=0)
print("Cohen's kappa of each fold:", *cross_val_score(clf, X, y, **by_subject).round(2))

# %%
# Pipelines and linear probes
# ---------------------------
#
# A :class:`~braindecode_pars.PARSEmbedder` is a scikit-learn transformer. ``fit`` pretrains unless
# an encoder is passed, and ``transform`` returns one feature vector per window. The rows of the
# figure differ only in the first step of the pipeline: a pretrained encoder, a random encoder, and
# log band power.

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
# Eight subjects and one seed are too few for a ranking. The tokens of both encoders contain the
# power spectrum, so the random encoder is an important baseline.
#
# Grid search
# -----------
#
# Two underscores address the parameters of a step, as usual. This search covers the regularization
# strength and the pooling of channels, with held-out subjects in its folds. The encoder is already
# pretrained, so the search does not pretrain.

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
# Fine-tuning uses a skorch net, which accepts skorch callbacks. This callback stops the training if
# the validation loss has not decreased for two epochs; ``validation=0.2`` holds out subjects.
# ``history_`` has one row per epoch of pretraining and fine-tuning.

from skorch.callbacks import EarlyStopping

stopped = PARSClassifier(
    encoder="small",
    finetune_epochs=30,
    finetune_warmup=None,  # a constant rate: the number of epochs is not known in advance
    validation=0.2,
    callbacks=[EarlyStopping(patience=2)],
    random_state=0,
    verbose=0,
).fit(X, y, groups=groups)
print(f"stopped after {len(stopped.net_.history)} of 30 epochs")
stopped.history_.tail(3).round(3)

# %%
# Pretraining is also available as a callback for your own net, for example ``EEGClassifier`` of
# braindecode. It runs once, before the first epoch, on the training windows of the net:

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
# These tools work in the same way as for a logistic regression, but ``fit`` takes longer.

# sphinx_gallery_thumbnail_path = "images/thumbnails/scikit_learn.png"
