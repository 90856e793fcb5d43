"""
Does EEG tell a number: the depth of sleep, or an age?
======================================================

The depth of simulated sleep, yes: on people who were not in the training, ``PARSRegressor`` has an
r² of .83, a ridge regression on band power .82, and the former is below 0 where the depths are
permuted. The age of 24 real people between 16 and 26, no: no features come closer than the mean of
the ages, though the same people and folds find a number that the EEG does carry.

:bdg-success:`real recordings` :bdg-secondary:`35 s`

The recordings come with the package: the data set of Zyma et al. (2019), ODC-BY 1.0.
"""

# %%
# A number of each window: the depth of sleep
# -------------------------------------------
#
# The stages of simulated nights become depths: 0 awake, 1 in N1 and REM, 2 in N2, 3 in N3. The
# signals carry this number, so that it is a positive control. Each window is predicted by a fit
# without its subject. ``PARSRegressor`` is not pretrained here, to train in seconds. The baseline
# is a ridge regression, on band power and on features of an encoder that nothing has trained.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import PARSEmbedder, PARSRegressor, as_sklearn, datasets
from braindecode_pars.evaluation import ChannelFeatures, LogBandPower, regression_scores
from braindecode_pars.plotting.style import COLORS

X, stages, subjects = as_sklearn(datasets.simulated.sleep(n_subjects=6, hours=0.4, n_chans=2))
depth = np.array([0, 1, 2, 3, 1])[stages]


def ridge(*features):
    return make_pipeline(*features, StandardScaler(), RidgeCV(np.logspace(-2, 6, 17)))


untrained = PARSEmbedder(None, random_state=0, verbose=0)
methods = {
    "PARSRegressor": PARSRegressor(None, finetune_epochs=20, random_state=0, verbose=0),
    "ridge, random encoder": ridge(untrained),
    "ridge, log band power": ridge(LogBandPower()),
    "mean": make_pipeline(LogBandPower(), DummyRegressor()),
}
folds = dict(groups=subjects, cv=GroupKFold(2))
predicted = {name: cross_val_predict(m, X, depth, **folds) for name, m in methods.items()}
scores = {name: regression_scores(depth, values, subjects) for name, values in predicted.items()}
pd.DataFrame(scores).T[["r2", "spearman", "mae", "spearman_within"]].round(2)

# %%
# The last column is the rank correlation within a subject. A mean knows nothing, so that its r² is
# at most 0. Its correlation is negative: the mean of the other subjects is lower, the deeper the
# sleep of those that are held out.

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
wide = [predicted["PARSRegressor"][depth == level] for level in range(4)]
ax.boxplot(wide, positions=range(4), medianprops=dict(color=COLORS[0]))
ax.plot([-0.5, 3.5], [-0.5, 3.5], color="0.6", lw=1, ls=":")
ax.set(xlabel="depth of sleep", ylabel="predicted by PARSRegressor", xlim=(-0.5, 3.5))
# sphinx_gallery_alt = "Four boxes of predictions that rise with the depth of sleep, near the line"
plt.show()

# %%
# And where there is nothing to learn?
# ------------------------------------
#
# The same with permuted depths:

permuted = np.random.default_rng(0).permutation(depth)
for name in ("PARSRegressor", "ridge, random encoder"):
    values = cross_val_predict(methods[name], X, permuted, **folds)
    print(f"{name}: r2 {regression_scores(permuted, values, subjects)['r2']:.2f}")

# %%
# A number of each person: age
# ----------------------------
#
# The sample has the ages of its 24 people. There are as many targets as people, whatever the number
# of windows, so each person becomes one row: the mean of the features of the windows. One person
# is held out at a time. ``small`` is an encoder in the package, which stays frozen.
#
# Before the ages comes a control with the same people and folds: the power of their alpha rhythm at
# rest, on the scale of the ages, predicted from the other minute, of arithmetic.

windows = datasets.mental_arithmetic()
X, arithmetic, names = as_sklearn(windows)
age = windows.description.groupby("subject")["age"].first().astype(float)


def of_people(values, which):
    return pd.DataFrame(values[which]).groupby(names[which]).mean()


power = LogBandPower(power="absolute").fit_transform(X)  # seven bands of each channel
rest = of_people(power[:, 2::7], arithmetic == 0).mean(axis=1)  # alpha is the third
rest = age.mean() + age.std() * (rest - rest.mean()) / rest.std()

encoder = PARSEmbedder(encoder="small", verbose=0)
tables = {
    "log band power": LogBandPower(),
    "hand-crafted features": ChannelFeatures(),
    "small": encoder,
}
tables = {name: features.fit(X).transform(X) for name, features in tables.items()}
rows = []
for question, target, which in (
    ("alpha at rest", rest, arithmetic == 1),
    ("age", age, arithmetic >= 0),
):
    for name, table in {**tables, "mean": np.zeros((len(X), 1))}.items():
        own = cross_val_predict(ridge(), of_people(table, which), target, cv=LeaveOneOut())
        rows.append(dict(question=question, features=name, error=np.abs(own - target)))
        rows[-1] |= regression_scores(target, own, age.index)
found = pd.DataFrame(rows).set_index(["question", "features"])
found[["r2", "mae"]].round(2)

# %%
# How sure is that?
# -----------------
#
# How much nearer than the mean of the others each prediction comes: the mean over the people, and
# its interval of 95 % by drawing people again (bootstrap). Only a blue interval is above 0.

rng = np.random.default_rng(0)
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
places = [(question, name) for question in ("alpha at rest", "age") for name in tables]
for place, (question, name) in enumerate(places):
    gain = (found["error"][question, "mean"] - found["error"][question, name]).to_numpy()
    drawn = rng.choice(gain, size=(5000, len(gain))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    color = COLORS[0] if low > 0 else "0.5"
    ax.plot([low, high], [place, place], color=color, lw=2)
    ax.plot(gain.mean(), place, "o", color=color)
ax.axvline(0, color="0.6", lw=1)
ax.set_yticks(range(len(places)), [f"{question}, {name}" for question, name in places])
ax.set(xlabel="gain over the mean, in years (alpha on the same scale)")
ax.invert_yaxis()
# sphinx_gallery_alt = "Six gains with intervals; only that of band power on alpha is above zero"
plt.show()

# %%
# On age no gain is established: the intervals end below a fifth of a year. On the control, band
# power gains most of a year, and the gains of the others are not established either. So 24 people
# are enough to see a strong relation, and not enough to exclude a weak one. Most of these people
# are 16 to 18 years old; of a wider range of ages this says nothing.
#
# The network takes the windows: ``PARSRegressor(encoder="small").fit(X, age[names])``. It keeps the
# encoder frozen with so few people, as the ridge regression does.

# sphinx_gallery_thumbnail_path = "images/thumbnails/regression.png"
