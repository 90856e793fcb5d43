"""
Can an encoder go from one laboratory to another?
=================================================

PARS learns one channel at a time, so an encoder goes wherever there are channels. Here it is
pretrained without labels on PhysioNet's motor imagery (64 channels, 160 Hz, Albany) and
fine-tuned to tell rest from mental arithmetic on other people (19 channels, 500 Hz, Kyiv). Both are
brought to 200 Hz when they are read.

The recordings come from the folder in the environment variable ``BRAINDECODE_PARS_EEG``. It holds
``MNE-eegbci-data``, as ``mne.datasets.eegbci`` lays it out, and ``eegmat``, the files of
`physionet.org/content/eegmat <https://physionet.org/content/eegmat/1.0.0/>`_ (Zyma et al. 2019;
both ODC-BY 1.0). MNE knows no download of the second, so this page does not offer one.
"""

# %%
# Two corpora, one sampling rate
# ------------------------------
#
# For pretraining, 30-second windows without labels; for fine-tuning, 10-second windows with two
# classes. Three people of the second corpus are for testing, five for training: far too few for a
# result, enough to see every step.

import os
from pathlib import Path

import matplotlib.pyplot as plt

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import summarize, transfer

folder = Path(os.environ["BRAINDECODE_PARS_EEG"])
motor = datasets.physionet_mi.load(
    folder, subjects=[1, 2], part="pretraining", stride_seconds=15, verbose=0
)
people = [f"Subject0{number}" for number in range(8)]
arithmetic = datasets.eegmat.load(folder / "eegmat", people, verbose=0)
for name, windows in (("pretraining", motor), ("fine-tuning", arithmetic)):
    n_chans, n_times = windows[0][0].shape
    print(f"{name}: {len(windows)} windows, {n_chans} channels x {n_times / 200:g} s")

# %%
# Pretrain once
# -------------
#
# Each step takes a random channel of each window, so the number of channels does not matter. The
# loss is told relative to that of the best guesser who hears nothing.

embedder = PARSEmbedder(pretrain_epochs=25, random_state=0, verbose=0).fit(motor)
plotting.training_curves(embedder.history_)
plt.show()

# %%
# Fine-tune on the other corpus
# -----------------------------
#
# ``transfer`` trains every method on the same people and scores it on the same others, once for
# each seed. A fitted embedder is an encoder, as a folder written by ``embedder.save`` would be.

methods = {
    "PARS": PARSClassifier(encoder=embedder, finetune_epochs=6, verbose=0),
    **make_methods(["scratch", "band-power"], finetune_epochs=6),
}
scores = transfer(
    methods,
    {"EEGMAT": arithmetic},
    test_subjects={"EEGMAT": ["Subject05", "Subject06", "Subject07"]},
    seeds=range(2),
    verbose=0,
)
print(summarize(scores, over="seeds").round(2).to_string(index=False))

# %%
# Each small dot is one seed, over all windows of the people tested. The encoder went from 64
# channels to 19 without a change, both at 200 Hz by then, so it can. That it was worth it, this
# page does not show: it is no better than scratch here, and band power is ahead of both. Seeds are
# not people, and three people to test on are too few to tell methods apart.

ax = plotting.transfer(scores, "kappa", "Cohen's kappa")
ax.axvline(0, color="0.7", lw=0.8)
plt.show()
