"""
How many labelled subjects does pretraining save?
=================================================

With a pretrained encoder, how many fewer labelled subjects are needed for the same score? On these
simulated nights the spectral task saves about half of them: with 2, 4 or 8 labelled subjects its
kappa is about that of training from scratch with 4, 8 or 16. PARS saves some with 2 subjects, and
band power is best with 8 and 16. The protocol is that of figure 3 of the paper: the number of
training subjects varies, and the test subjects stay the same.

The nights come from :func:`~braindecode_pars.datasets.simulated.sleep`, so nothing is downloaded.
The page trains for seconds to show every step. It then draws the stored scores of a longer run,
which this repeats in about half an hour on one core:

.. code-block:: sh

   python docs/experiments/simulated.py nights nights.csv
"""

# %%
# Three groups of subjects
# ------------------------
#
# The first group has no labels and is for pretraining. The training subjects are drawn from the
# second group. The third group has the test subjects. In the last two groups, every fourth window
# is kept with its label. No subject is in two groups.

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import label_efficiency, summarize

n_unlabelled, n_scored, n_test, hours = 4, 5, 3, 1
n_train = [2, 4]
budget = dict(pretrain_epochs=10, finetune_epochs=5)

nights = datasets.simulated.sleep(
    n_unlabelled + n_scored + n_test, hours, n_chans=3, sfreq=100, random_state=2026
).datasets
unlabelled = BaseConcatDataset(nights[:n_unlabelled])
scored = BaseConcatDataset(
    [
        EEGWindowsDataset(night.raw, night.metadata.iloc[::4], dict(night.description))
        for night in nights[n_unlabelled:]
    ]
)
test_subjects = list(scored.description["subject"])[-n_test:]
print(f"{len(unlabelled)} unlabelled windows of {n_unlabelled} subjects")
print(f"{len(scored)} labelled windows: {n_scored} training subjects, {n_test} test subjects")

# %%
# One encoder for each seed
# -------------------------
#
# The seed determines the initial weights, the order in which training subjects are added, and the
# random draws of training. The nights and the test subjects do not change. ``scratch`` is the same
# model with the same fine-tuning and without pretraining. The baseline is logistic regression on
# band power.

scores = []
for seed in range(2):
    embedder = PARSEmbedder(pretrain_epochs=budget["pretrain_epochs"], random_state=seed, verbose=0)
    fine_tuning = dict(finetune_epochs=budget["finetune_epochs"], verbose=0)
    methods = {
        "PARS": PARSClassifier(encoder=embedder.fit(unlabelled), **fine_tuning),
        **make_methods(["scratch", "band-power"], **fine_tuning),
    }
    scores.append(
        label_efficiency(
            methods,
            scored,
            n_train_subjects=n_train,
            test_subjects=test_subjects,
            seeds=[seed],
            metrics=["kappa", "balanced_accuracy"],
            dataset="simulated sleep",
            verbose=0,
        )
    )
scores = pd.concat(scores, ignore_index=True)

# %%
# Scores after seconds of training
# --------------------------------
#
# This run is too small for conclusions. It only shows that all steps work together.

summary = summarize(scores, over="seeds").query("metric == 'kappa'")
print(summary[["method", "n_train_subjects", "mean", "sd"]].round(2).to_string(index=False))

# %%
# Scores of the longer run
# ------------------------
#
# The longer run pretrains for 16 epochs on 16 subjects, with each of four tasks. It fine-tunes on
# 2 to 16 of 16 other subjects and tests on 12 more. Each seed simulates other subjects, and all
# nights are filtered to 0.3-35 Hz.

stored = Path("../docs/measured/nights.csv")
print("".join(line for line in stored.open() if line.startswith("#")))
scores = pd.read_csv(stored, comment="#")
plotting.label_efficiency(scores, "kappa", "Cohen's kappa")
plt.show()

# %%
# Within one seed, all methods have the same training and test subjects. The table shows the
# difference in kappa between the spectral task and scratch, over test subjects:

each = scores[scores["subject"] != "all"]
wide = each.pivot(index=["n_train_subjects", "seed", "subject"], columns="method", values="value")
gain = (wide["SpectralMAE"] - wide["scratch"]).groupby(level=0).agg(["mean", "std", "min", "max"])
gain.round(3)

# %%
# The spectral task is ahead on average with every number of subjects; :doc:`/results/index` has the
# tests, and the same for real recordings. Band power is hard to beat here, because the simulated
# stages *are* frequency bands.
