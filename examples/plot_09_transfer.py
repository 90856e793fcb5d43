"""
Can an encoder be used on data from another laboratory?
=======================================================

Can an encoder be pretrained on one corpus and fine-tuned on another with a different montage? Yes,
because PARS encodes one channel at a time. Whether it helps is another question, which the few
subjects and two seeds of this page cannot answer. The encoder is pretrained without labels on the
motor imagery corpus of PhysioNet (64 channels, 160 Hz, Albany). It is then fine-tuned to classify
rest against mental arithmetic in other subjects (19 channels, 500 Hz, Kyiv). Both are resampled to
200 Hz.

The page reads the recordings from the folder in the environment variable ``BRAINDECODE_PARS_EEG``.
The folder contains ``MNE-eegbci-data`` in the layout of ``mne.datasets.eegbci``, and ``eegmat``,
the files of `physionet.org/content/eegmat <https://physionet.org/content/eegmat/1.0.0/>`_ (Zyma et
al. 2019; both ODC-BY 1.0). MNE cannot download the second corpus, so this page downloads nothing.
"""

# %%
# Two corpora, one sampling rate
# ------------------------------
#
# Pretraining uses unlabelled windows of 30 seconds. Fine-tuning uses windows of 10 seconds with two
# classes, from five training subjects and three test subjects. This is enough to show every step,
# and far too few subjects for a result.

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
subjects = [f"Subject0{number}" for number in range(8)]
arithmetic = datasets.eegmat.load(folder / "eegmat", subjects, verbose=0)
for name, windows in (("pretraining", motor), ("fine-tuning", arithmetic)):
    n_chans, n_times = windows[0][0].shape
    print(f"{name}: {len(windows)} windows, {n_chans} channels x {n_times / 200:g} s")

# %%
# Pretrain once
# -------------
#
# Each epoch uses one random channel of each window, so the number of channels does not matter. The
# curve is the loss relative to chance.

embedder = PARSEmbedder(pretrain_epochs=25, random_state=0, verbose=0).fit(motor)
plotting.training_curves(embedder.history_)
plt.show()

# %%
# The loss ends at chance level, so this encoder has learned little.
#
# Fine-tune on the other corpus
# -----------------------------
#
# ``transfer`` trains every method on the same subjects and scores it on the same test subjects,
# once for each seed. ``encoder=`` takes a fitted embedder, or a folder from ``embedder.save``.

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
# Each small dot is one seed, with the kappa over all windows of the test subjects. The same encoder
# works with 64 and with 19 channels, at one sampling rate. On average PARS is ahead of scratch, and
# band power is ahead of both. But the two seeds of PARS differ by more than the methods do, and the
# loss of their encoder is at chance level. The spread is over seeds, not over subjects, and three
# test subjects are too few to rank the methods.

ax = plotting.transfer(scores, "kappa", "Cohen's kappa")
ax.axvline(0, color="0.7", lw=0.8)
plt.show()
