"""
Does pretraining improve classification of rest vs. mental arithmetic?
======================================================================

No significant difference: after training on four subjects, the mean accuracy on twelve held-out
subjects is .68 for a pretrained network, .62 for the same network trained from scratch, and .67 for
log band power (chance level .5), with a standard deviation across subjects of .17. This page shows
the scores and likely reasons, and summarizes for which tasks pretraining improved the score.

:bdg-success:`real recordings` :bdg-secondary:`30 s`

The recordings are bundled with the package: the dataset of Zyma et al. (2019), ODC-BY 1.0.
"""

# %%
# Train on four subjects, test on twelve held-out subjects
# --------------------------------------------------------
#
# The dataset has 24 subjects, each with one minute of rest and one minute of mental arithmetic in
# windows of ten seconds. The last twelve subjects are held out; no default setting was chosen on
# them. ``encoder="small"`` is a bundled encoder, which was pretrained without labels on motor
# imagery recordings of 50 other subjects. ``scratch`` is the same network with random initial
# weights; all weights of both networks are trained in the same way. For linear probes on frozen
# encoders, see :doc:`/results/few_labels`.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import CalibrationDisplay
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import PARSEmbedder, as_sklearn, datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import LogBandPower, paired_tests
from braindecode_pars.plotting.style import COLORS

X, y, subjects = as_sklearn(datasets.mental_arithmetic())
names = np.unique(subjects)
train, test = np.isin(subjects, names[:4]), np.isin(subjects, names[12:])

encoder = {"pretrained": "small"}
same_training = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0, head="attention")
methods = make_methods(["band-power", "scratch"], encoder=encoder, random_state=0, **same_training)
right = {name: m.fit(X[train], y[train]).predict(X[test]) == y[test] for name, m in methods.items()}
accuracy = pd.DataFrame(right).groupby(subjects[test]).mean()
accuracy.describe().loc[["mean", "std", "min", "max"]].round(2)

# %%
# Each line is a subject. The lines cross: no method is better for most subjects. (Each subject has
# equal numbers of windows of rest and arithmetic, so accuracy equals balanced accuracy.)

long = accuracy.rename_axis("subject").melt(ignore_index=False, var_name="method").reset_index()
long = long.assign(n_train_subjects=4, metric="accuracy")
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
plotting.subject_dots(long, "accuracy", ax=ax)
ax.axhline(0.5, color="0.6", lw=1, ls=":")
# sphinx_gallery_alt = "Accuracies of twelve subjects with three methods, joined by lines that"
# sphinx_gallery_alt = "cross"
plt.show()

# %%
# Confusion matrix and calibration
# --------------------------------
#
# Left: the pretrained network misclassifies arithmetic more often than rest. Right: its
# probabilities are too high; if it predicts a probability close to 1, seven of ten windows are
# correct.

network = methods["pretrained, fine-tuned"]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plotting.confusion_matrix(y[test], network.predict(X[test]), ["rest", "arithmetic"], ax=left)
probabilities = network.predict_proba(X[test])
is_right = probabilities.argmax(axis=1) == y[test]
CalibrationDisplay.from_predictions(is_right, probabilities.max(axis=1), n_bins=10, ax=right)
# sphinx_gallery_alt = "A confusion matrix with .75 and .61 on its diagonal; a calibration curve"
# sphinx_gallery_alt = "below the diagonal"
plt.show()

# %%
# One reason: log band power is sufficient
# ----------------------------------------
#
# Linear probes measure the linearly decodable information in features. Features of the pretrained
# encoder are as good as log band power, but not better. The random encoder also scores above the
# chance level, because its tokens contain the power spectrum of their patch.

embedders = {
    "log band power": LogBandPower(),
    "random encoder": PARSEmbedder(None, random_state=0, verbose=0),
    "pretrained encoder": PARSEmbedder(encoder="small", verbose=0),
}
for name, embedder in embedders.items():
    probe = make_pipeline(embedder, StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
    print(f"{name}: {probe.fit(X[train], y[train]).score(X[test], y[test]):.2f}")

# %%
# Another reason: subjects differ more than methods
# -------------------------------------------------
#
# The improvement by pretraining is a mean over subjects. Its standard deviation across subjects
# determines how many subjects a paired t-test needs to detect it with 80 % power (two-sided, level
# .05):

gain = accuracy["pretrained, fine-tuned"] - accuracy["from scratch"]
needed = (2.8 * gain.std() / gain.mean()) ** 2
print(f"{gain.mean():+.3f} ± {gain.std():.3f} (SD): about {needed:.0f} subjects; here {len(gain)}")

# %%
# For which tasks does pretraining help?
# --------------------------------------
#
# The stored scores of longer runs have four labeled subjects in three to twenty draws. Each row is
# a task and a pretraining, with the difference from training from scratch in balanced accuracy.
# Error bars are uncorrected 95 % confidence intervals, with crossed random effects of subjects and
# draws. Blue rows are significant after Bonferroni correction.

PARS = "PARS without overlap"
rows = [
    ("simulated rhythm, PARS", "control", "PARS"),
    ("simulated rhythm, SpectralMAE", "control", "SpectralMAE"),
    ("left vs. right fist, PARS", "hands", PARS),
    ("left vs. right fist, PARS (seed 1)", "hands", f"{PARS}, seed 1"),
    ("left vs. right fist, SpectralMAE", "hands", "SpectralMAE"),
    ("rest vs. arithmetic, PARS", "arithmetic", PARS),
    ("rest vs. arithmetic, SpectralMAE", "arithmetic", "SpectralMAE"),
    ("imagined movement vs. rest, PARS", "imagery", PARS),
    ("imagined movement vs. rest, SpectralMAE", "imagery", "SpectralMAE"),
]
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for place, (_, file, method) in enumerate(rows):
    scores = pd.read_csv(f"../../docs/measured/{file}.csv", comment="#")
    scores = scores[(scores["n_train_subjects"] == 4) & (scores["subject"] != "all")]
    if file == "control":  # each seed simulates other subjects
        scores["subject"] = scores["seed"].astype(str) + "-" + scores["subject"].astype(str)
    pair = scores[scores["method"].isin([method, "from scratch"])]
    test_result = paired_tests(pair, "balanced_accuracy", against="from scratch").iloc[0]
    gain = test_result["mean_difference"]
    half = (test_result["ci_high"] - test_result["ci_low"]) / 2
    color = COLORS[0] if test_result["p"] * len(rows) < 0.05 else "0.5"
    ax.errorbar(gain, place, xerr=half, fmt="o", color=color, capsize=4)
ax.axvline(0, color="0.6", lw=1)
ax.set_yticks(range(len(rows)), [label for label, _, _ in rows])
ax.set(xlabel="difference from training from scratch (balanced accuracy, 95 % CI)")
ax.invert_yaxis()
# sphinx_gallery_alt = "Nine differences with confidence intervals; blue are SpectralMAE on the"
# sphinx_gallery_alt = "simulated rhythm and PARS on left vs. right fist"
plt.show()

# %%
# Pretraining improved the score on the simulated task, in which the power spectrum does not differ
# between classes, and on left vs. right fist, where the improvement probably depends mostly on
# low-frequency activity, such as eye movements
# (:doc:`/auto_examples/motor_imagery/plot_motor_imagery`). No difference is significant on rest vs.
# arithmetic and on imagined movement vs. rest: with twenty draws, the difference of SpectralMAE is
# below .01. All weights are fine-tuned here. Networks with the frozen encoder ``small`` score
# significantly higher than training from scratch on all three tasks with real recordings
# (:doc:`/results/few_labels`). All encoders are small, and were pretrained for minutes on at most
# 50 subjects; it is unknown whether larger encoders score higher. On simulated nights, log band
# power scores higher with many labels, because the stages are defined by frequency bands.
# :doc:`/results/index` has all numbers of labeled subjects, the tests, and the commands.

# sphinx_gallery_thumbnail_path = "images/thumbnails/arithmetic.png"
