"""
Can EEG predict a number, such as sleep depth or age?
=====================================================

It depends on the number. Sleep depth in simulated recordings can be predicted: on held-out
subjects, ``PARSRegressor`` reaches an r² of .80, and a ridge regression on log band power .82. The
age of 24 subjects (16 to 26 years) cannot be predicted: no kind of features predicts it better than
the mean age does. As controls, permuted sleep depths are not predicted, and in the 24 subjects, a
number that is known to be encoded in the EEG is predicted with log band power.

:bdg-success:`real recordings` :bdg-secondary:`35 s`

The recordings are bundled with the package: the dataset of Zyma et al. (2019), ODC-BY 1.0.
"""

# %%
# One number per window: sleep depth
# ----------------------------------
#
# The sleep stages of simulated nights are converted to depths: 0 for wake, 1 for N1 and REM, 2 for
# N2, and 3 for N3. The simulated signals depend on the stage, so a prediction must be possible
# (positive control). Each window is predicted by a model that was trained on other subjects.
# ``PARSRegressor`` is a network, which is trained without pretraining here, to save time. The
# baselines are ridge regressions on log band power and on features of a random encoder (an encoder
# with random weights).

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


random_encoder = PARSEmbedder(None, random_state=0, verbose=0)
methods = {
    "PARSRegressor": PARSRegressor(None, finetune_epochs=20, random_state=0, verbose=0),
    "ridge, random encoder": ridge(random_encoder),
    "ridge, log band power": ridge(LogBandPower()),
    "mean": make_pipeline(LogBandPower(), DummyRegressor()),
}
folds = dict(groups=subjects, cv=GroupKFold(2))
predicted = {name: cross_val_predict(m, X, depth, **folds) for name, m in methods.items()}
scores = {name: regression_scores(depth, values, subjects) for name, values in predicted.items()}
pd.DataFrame(scores).T[["r2", "spearman", "mae", "spearman_within"]].round(2)

# %%
# The columns are r², the rank correlation (Spearman), the mean absolute error, and the rank
# correlation within subjects. In the last row, the prediction for every window is the mean depth of
# the training subjects, so r² cannot be above 0. The rank correlation of this row is negative,
# because the mean depth of the training subjects is lower if the held-out subjects sleep deeper.

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
wide = [predicted["PARSRegressor"][depth == true_depth] for true_depth in range(4)]
ax.boxplot(wide, positions=range(4), medianprops=dict(color=COLORS[0]))
ax.plot([-0.5, 3.5], [-0.5, 3.5], color="0.6", lw=1, ls=":")
ax.set(xlabel="sleep depth", ylabel="sleep depth predicted by PARSRegressor", xlim=(-0.5, 3.5))
# sphinx_gallery_alt = "Four box plots of predictions that increase with sleep depth, close to the"
# sphinx_gallery_alt = "diagonal"
plt.show()

# %%
# Negative control: permuted targets
# ----------------------------------
#
# If the depths are randomly permuted over all windows, r² is about 0 or negative:

permuted = np.random.default_rng(0).permutation(depth)
for name in ("PARSRegressor", "ridge, random encoder"):
    values = cross_val_predict(methods[name], X, permuted, **folds)
    print(f"{name}: r2 {regression_scores(permuted, values, subjects)['r2']:.2f}")

# %%
# One number per subject: age
# ---------------------------
#
# The bundled dataset of real recordings contains the ages of its 24 subjects. There is one age per
# subject, so the features of each subject are averaged over all windows, and a ridge regression is
# trained on these means. One subject is held out at a time. ``small`` is a pretrained encoder that
# is bundled with the package (:doc:`/guide/pretrained`); it is not trained further.
#
# In the positive control, the same procedure predicts the power of the alpha rhythm at rest. Its
# values are rescaled to the mean and SD of the ages. The features are from mental arithmetic, that
# is, from other windows of the same subject. The table shows r² and the mean absolute error (mae).

windows = datasets.mental_arithmetic()
X, arithmetic, names = as_sklearn(windows)
age = windows.description.groupby("subject")["age"].first().astype(float)


def subject_means(values, which):
    return pd.DataFrame(values[which]).groupby(names[which]).mean()


power = LogBandPower(power="absolute").fit_transform(X)  # seven frequency bands per channel
rest = subject_means(power[:, 2::7], arithmetic == 0).mean(axis=1)  # alpha is the third band
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
        predictions = cross_val_predict(
            ridge(), subject_means(table, which), target, cv=LeaveOneOut()
        )
        rows.append(dict(target=question, features=name, error=np.abs(predictions - target)))
        rows[-1] |= regression_scores(target, predictions, age.index)
results = pd.DataFrame(rows).set_index(["target", "features"])
results[["r2", "mae"]].round(2)

# %%
# Confidence intervals
# --------------------
#
# The figure shows by how much each kind of features reduces the absolute error, compared with
# predicting the mean of the training subjects. Dots are means over subjects, and lines are 95 %
# confidence intervals (bootstrap over subjects). Intervals that are completely above 0 are blue.

rng = np.random.default_rng(0)
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
places = [(question, name) for question in ("alpha at rest", "age") for name in tables]
for place, (question, name) in enumerate(places):
    gain = (results["error"][question, "mean"] - results["error"][question, name]).to_numpy()
    drawn = rng.choice(gain, size=(5000, len(gain))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    color = COLORS[0] if low > 0 else "0.5"
    ax.plot([low, high], [place, place], color=color, lw=2)
    ax.plot(gain.mean(), place, "o", color=color)
ax.axvline(0, color="0.6", lw=1)
ax.set_yticks(range(len(places)), [f"{question}, {name}" for question, name in places])
ax.set(xlabel="reduction of the absolute error (years; alpha on the same scale)")
ax.invert_yaxis()
# sphinx_gallery_alt = "Six error reductions with confidence intervals; only log band power on"
# sphinx_gallery_alt = "alpha is above zero"
plt.show()

# %%
# For age, no reduction of the error is significant, and no confidence interval extends above a
# fifth of a year. For the positive control, log band power reduces the error by most of a year; the
# reductions with the other features are not significant. Thus, 24 subjects are enough to detect a
# strong relation, but not enough to exclude a weak relation. Most of these subjects are 16 to 18
# years old, so the result may be different for a wider range of ages.
#
# Networks can be trained on ages in the same way, with the age of the subject as the target of each
# window: ``PARSRegressor(encoder="small").fit(X, age[names])``. With so few subjects, the encoder
# would stay frozen (not trained), as in the ridge regression.

# sphinx_gallery_thumbnail_path = "images/thumbnails/regression.png"
