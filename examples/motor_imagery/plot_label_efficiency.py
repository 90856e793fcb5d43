"""
How many labeled subjects does pretraining save?
================================================

On left vs. right fist (imagined): with 2 labeled subjects, a network fine-tuned from a PARS encoder
reaches .59, similar to the same network trained from scratch with 8 labeled subjects (.60; chance
level .5). With a second pretraining seed, it reaches .61. On other tasks, no significant difference
was found (:doc:`/auto_examples/start/plot_arithmetic`).

:bdg-success:`real recordings` :bdg-secondary:`30 s`

The page first runs the protocol in seconds, on recordings that are bundled with the package (Zyma
et al. 2019). It then plots the stored scores of a longer run on the PhysioNet EEG Motor
Movement/Imagery Dataset (Schalk et al. 2004; Goldberger et al. 2000; both ODC-BY 1.0).
"""

# %%
# The protocol
# ------------
#
# The protocol is the same as in figure 3 of the paper: the number of labeled subjects varies, and
# the test subjects are fixed. The seed determines the labeled subjects, the initial weights and the
# random draws of training. ``scratch`` is the same network with the same fine-tuning and random
# initial weights.

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from braindecode_pars import datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import label_efficiency, summarize

windows_ds = datasets.mental_arithmetic([f"Subject{number:02d}" for number in range(8, 20)])
encoder = {"pretrained": "small"}
same_training = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0, head="attention")
methods = make_methods(
    ["scratch", "band-power"], encoder=encoder, finetune_epochs=10, **same_training
)
scores = label_efficiency(
    methods,
    windows_ds,
    n_train_subjects=[2, 4],
    test_subjects=[f"Subject{number:02d}" for number in range(12, 20)],
    seeds=[0],
    metrics=["balanced_accuracy"],
    verbose=0,
)
summary = summarize(scores)
print(summary[["method", "n_train_subjects", "mean", "sd"]].round(2).to_string(index=False))

# %%
# Eight test subjects and one seed only demonstrate the code. The pretrained encoder is ``small``,
# which is bundled with the package.
#
# Scores of the longer run
# ------------------------
#
# Here, 2 to 16 labeled subjects are drawn from 50 subjects, three times, and 20 other subjects are
# held out. The encoder, PARS without overlap, was pretrained without labels on the recordings of
# these 50 subjects. "Seed 1" is the second pretraining seed. With four labeled subjects, training
# from scratch and the first pretraining seed have seventeen further draws, which are not shown
# here: over all twenty draws, their difference is significant (:doc:`/results/hands`).

stored = Path("../../docs/measured/hands.csv")
print("".join(line for line in stored.open() if line.startswith("#")))
scores = pd.read_csv(stored, comment="#")
shown = ["log band power", "from scratch", "PARS without overlap", "PARS without overlap, seed 1"]
scores = scores[scores["method"].isin(shown) & (scores["n_train_subjects"] <= 16)]
scores = scores[scores["seed"] < 3]
ax = plotting.label_efficiency(scores, "balanced_accuracy", "balanced accuracy")
ax.axhline(0.5, color="0.6", lw=1, ls=":")
# sphinx_gallery_alt = "Balanced accuracy increases with the number of labeled subjects; both"
# sphinx_gallery_alt = "pretrained curves are above training from scratch, and log band power is"
# sphinx_gallery_alt = "lowest"
plt.show()

# %%
# All methods have the same labeled and test subjects. The table shows the difference between the
# second pretraining seed and training from scratch for the 20 test subjects: it is positive in 19
# of them, but in 14 with 8 labeled subjects.

is_subject = scores["subject"] != "all"
means = (
    scores[is_subject].groupby(["n_train_subjects", "subject", "method"])["value"].mean().unstack()
)
gain = means["PARS without overlap, seed 1"] - means["from scratch"]
table = gain.groupby(level=0).agg(["mean", "std", "min", "max"])
table["subjects with a higher score"] = (gain > 0).groupby(level=0).sum()
table.round(3)

# %%
# The difference probably depends mostly on low-frequency activity, such as eye movements
# (:doc:`plot_motor_imagery`). :doc:`/results/hands` has all methods, tests and the command.

# sphinx_gallery_thumbnail_path = "images/thumbnails/label_efficiency.png"
