"""
The estimator in the scikit-learn world
=======================================

I know scikit-learn; what of it still works when one ``fit`` pretrains and fine-tunes a transformer?
Cross-validation over people, pipelines, linear probes, grid search, skorch's callbacks: this page
tries them one after the other on simulated nights, with a budget of seconds.
"""

# %%
# Windows as X, y and groups
# --------------------------
#
# ``as_sklearn`` gives lazy views of a braindecode dataset: nothing is copied, and the groups are
# the people, so that any splitter of scikit-learn can hold people out.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets
from braindecode_pars.evaluation import LogBandPower

windows_ds = datasets.simulated.sleep(n_subjects=4, hours=0.5, n_chans=2, sfreq=100, random_state=8)
X, y, groups = as_sklearn(windows_ds)
print(f"X {X.shape}, y {y.shape}, people {np.unique(groups)}")

# %%
# Cross-validation over people
# ----------------------------
#
# Each fold pretrains anew on its own training people: nothing of the person left out is heard, not
# even without labels. To pretrain once and use the encoder in every fold, see
# :doc:`/pretrained`.

kappa = make_scorer(cohen_kappa_score)
people = dict(groups=groups, cv=LeaveOneGroupOut(), scoring=kappa)

clf = PARSClassifier(pretrain_epochs=3, finetune_epochs=3, random_state=0, verbose=0)
print("kappa of each person left out:", *cross_val_score(clf, X, y, **people).round(2))

# %%
# Pipelines and linear probes
# ---------------------------
#
# :class:`~braindecode_pars.PARSEmbedder` is a transformer in scikit-learn's sense: ``fit``
# pretrains, ``transform`` makes one vector of each window. What follows is ordinary. The rows of
# the figure differ in the first step only: pretrained features, those of the same encoder
# untrained, and band power.

embedders = {
    "pretrained": PARSEmbedder(pretrain_epochs=10, random_state=0, verbose=0),
    "untrained": PARSEmbedder(pretext=None, random_state=0, verbose=0),
    "band power": LogBandPower(),
}
probes = {
    name: make_pipeline(first, StandardScaler(), LogisticRegression(max_iter=1000))
    for name, first in embedders.items()
}
probed = {name: cross_val_score(probe, X, y, **people) for name, probe in probes.items()}

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
for row, scores in enumerate(probed.values()):
    ax.plot(scores, np.full(len(scores), row), "o", color="C0", alpha=0.5)
    ax.plot(scores.mean(), row, "|", color="k", markersize=22)
ax.set(xlabel="Cohen's kappa of each person left out (line: mean)", ylim=(2.5, -0.5))
ax.set_yticks(range(3), probed)
plt.show()

# %%
# With four people and one seed, the pretrained features are a little above those of chance weights,
# and far below band power, of which the simulated stages are made.
#
# Grid search
# -----------
#
# Parameters of the steps are reached with two underscores. Here the strength of the regularisation
# and the way in which channels are pooled are searched together, with people held out in the inner
# folds too. A fitted encoder is handed in, pretrained on other people, so that the search does not
# pretrain.

others = datasets.simulated.sleep(n_subjects=2, hours=1, n_chans=2, sfreq=100, random_state=88)
encoder = PARSEmbedder(pretrain_epochs=10, random_state=0, verbose=0).fit(others)
pipeline = make_pipeline(
    PARSEmbedder(encoder=encoder, verbose=0), StandardScaler(), LogisticRegression(max_iter=1000)
)
search = GridSearchCV(
    pipeline,
    {"parsembedder__pooling": ["mean", "mean_std"], "logisticregression__C": [0.01, 1.0]},
    cv=GroupKFold(n_splits=3),
    scoring=kappa,
)
search.fit(X, y, groups=groups)
print("best of the grid:", search.best_params_)

# %%
# Callbacks of skorch
# -------------------
#
# Fine-tuning is a skorch net, and takes skorch's callbacks: here it stops when the loss on the
# people held out inside ``fit`` has not fallen for two epochs. ``history_`` has a row an epoch of
# both phases.

from skorch.callbacks import EarlyStopping

stopped = PARSClassifier(
    encoder=encoder,
    finetune_epochs=30,
    callbacks=[EarlyStopping(patience=2)],
    random_state=0,
    verbose=0,
).fit(X, y, groups=groups)
print(f"stopped after {len(stopped.net_.history)} of 30 epochs")
stopped.history_.tail(3).round(3)

# %%
# The other way round, pretraining is a callback for a net that you build yourself, for instance
# with braindecode's ``EEGClassifier``. It runs once, before the first epoch, on the training
# windows of that net:

from braindecode import EEGClassifier
from skorch.dataset import ValidSplit

from braindecode_pars.callbacks import Pretraining

net = EEGClassifier(
    "PARSNet",
    classes=list(range(5)),
    module__sfreq=100.0,
    module__n_times=3000,
    module__n_chans=2,
    module__n_outputs=5,
    module__embed_dim=64,
    module__num_layers=2,
    module__num_heads=4,
    module__mlp_dim=128,
    train_split=ValidSplit(0.2, random_state=0),
    callbacks=[Pretraining("pars", epochs=3, verbose=0)],
    max_epochs=2,
    verbose=0,
)
net.fit(windows_ds, y=None)
print("train loss of the net:", *np.round(net.history[:, "train_loss"], 2))

# %%
# So all of it works as it does for a logistic regression, at the price of training time. Whether
# pretraining pays for that price is another question, which seconds of it do not settle: see
# :doc:`/results`.
