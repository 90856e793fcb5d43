"""
How many labelled people does pretraining save?
===============================================

Recordings are plenty, scorers are not. So the question that matters is asked in people: with an
encoder that has heard many nights without labels, how many labelled nights fewer do I need for the
same score? The protocol is that of figure 3 of the paper: train on few and on many people, always
score on the same others.

The nights are simulated (:func:`~braindecode_pars.datasets.simulated.sleep`), so that everybody can
run this page. It runs twice: here for some seconds, to show every step, and once for longer, as

.. code-block:: sh

   cd examples && python plot_05_label_efficiency.py ../docs/measured/label_efficiency.csv

whose scores are stored with this page and drawn at its end.
"""

# %%
# Three groups of people
# ----------------------
#
# People without labels, to pretrain on; people of whom every fourth window was scored, to draw
# training people from; and people to test on. Nobody is in two groups.

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import label_efficiency, summarize

longer = len(sys.argv) > 1
if longer:
    n_unlabelled, n_scored, n_test, hours = 16, 24, 8, 2
    n_train = [2, 4, 8, 16]
    budget = dict(pretrain_epochs=50, finetune_epochs=15)
    seeds = range(5)
else:
    n_unlabelled, n_scored, n_test, hours = 4, 5, 3, 1
    n_train = [2, 4]
    budget = dict(pretrain_epochs=10, finetune_epochs=5)
    seeds = range(2)

people = datasets.simulated.sleep(
    n_unlabelled + n_scored + n_test, hours, n_chans=3, sfreq=100, random_state=2026
).datasets
unlabelled = BaseConcatDataset(people[:n_unlabelled])
scored = BaseConcatDataset(
    [
        EEGWindowsDataset(night.raw, night.metadata.iloc[::4], dict(night.description))
        for night in people[n_unlabelled:]
    ]
)
test_people = list(scored.description["subject"])[-n_test:]
print(f"{len(unlabelled)} windows of {n_unlabelled} people without labels")
print(f"{len(scored)} labelled windows: {n_scored} people to train on, {n_test} to test on")

# %%
# One encoder a seed
# ------------------
#
# A seed draws the encoder's first weights, the order in which people are added to the training set,
# and the fine-tuning; the nights and the people to test on stay the same. ``scratch`` is the same
# model with the same fine-tuning and no pretraining; band power with logistic regression is the
# dull baseline that needs neither.

scores = []
for seed in seeds:
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
            test_subjects=test_people,
            seeds=[seed],
            metrics=["kappa", "balanced_accuracy"],
            dataset="simulated sleep",
            verbose=int(longer),
        )
    )
scores = pd.concat(scores, ignore_index=True)
if longer:
    Path(sys.argv[1]).write_text(scores.to_csv(index=False))

# %%
# What a few seconds give
# -----------------------
#
# With so little of everything, this table says that the steps go together and nothing else.

summary = summarize(scores, over="seeds").query("metric == 'kappa'")
print(summary[["method", "n_train_subjects", "mean", "sd"]].round(2).to_string(index=False))

# %%
# What a longer run gave
# ----------------------
#
# The stored scores are of 16 people without labels for 50 epochs, 2 to 16 of 24 people to fine-tune
# on, 8 people to test on, five seeds.

stored = Path("../docs/measured/label_efficiency.csv")
print("".join(line for line in stored.open() if line.startswith("#")))
scores = pd.read_csv(stored, comment="#")
plotting.label_efficiency(scores, "kappa", "Cohen's kappa")
plt.show()

# %%
# Each seed has its own draw of people, the same for all methods, so methods can be compared seed by
# seed:

pooled = scores[(scores["subject"] == "all") & (scores["metric"] == "kappa")]
wide = pooled.pivot(index=["n_train_subjects", "seed"], columns="method", values="value")
gain = (wide["PARS"] - wide["scratch"]).groupby(level=0).agg(["mean", "std", "min", "max"])
gain.round(3)

# %%
# With eight people, pretraining was ahead of training from scratch in every seed, with sixteen in
# four of five. With two or four people, where one would need it most, it was behind in four of
# five. Scratch with eight people is no better than with four, so differences of this size are not
# far from the noise; and all seeds test on the same eight people. Band power with two labelled
# people beat both networks with sixteen.
#
# So the answer from these nights is: it may save people when there are already some, and a good
# feature saves more. Simulated stages *are* frequency bands, and 50 epochs of a small encoder are
# not the paper's 1000 of a large one; what real nights would say, this page cannot tell.
