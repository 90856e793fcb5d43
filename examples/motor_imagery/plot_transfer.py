"""
Can an encoder be used on data from another laboratory?
=======================================================

Yes: each channel is encoded by itself, so an encoder of 37 channels (Albany) can be fine-tuned on 8
others (Kyiv). Whether it helps is another question. After seconds of pretraining, kappa is 0.14
(with both seeds), from scratch 0.22, and of band power 0.22 (chance is 0), which ranks nothing:
:doc:`/auto_examples/start/plot_arithmetic` says what is known from longer runs.

:bdg-success:`real recordings` :bdg-secondary:`25 s`

The encoder is pretrained without labels on run 4 of three subjects of the PhysioNet EEG Motor
Movement/Imagery Dataset (Schalk et al. 2004; Goldberger et al. 2000; ODC-BY 1.0), from the folder
in the environment variable ``BRAINDECODE_PARS_EEG``. Without that variable, the page downloads
these runs once. The other recordings come with the package (Zyma et al. 2019; ODC-BY 1.0).
"""

# %%
# Two data sets, one sampling rate
# --------------------------------
#
# The encoder and its later data need the same sampling rate and the same frequencies, here 128 Hz
# and 0.5-45 Hz. Pretraining uses the windows of imagined movements, 4 seconds each, without their
# labels. Fine-tuning uses windows of 10 seconds with two classes.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import mne

from braindecode_pars import PARSClassifier, PARSEmbedder, datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import summarize, transfer

SUBJECTS, RUNS = [1, 2, 3], [4]

if "BRAINDECODE_PARS_EEG" in os.environ:
    folder = Path(os.environ["BRAINDECODE_PARS_EEG"])
else:  # download once from PhysioNet into the home folder
    folder = Path.home() / "mne_data"
    folder.mkdir(exist_ok=True)
    mne.datasets.eegbci.load_data(SUBJECTS, RUNS, path=folder, update_path=False)

prepared = dict(picks="motor and 10-20", sfreq=128, low=0.5, high=45, mains=None)
motor = datasets.physionet_mi.load(folder, SUBJECTS, runs=RUNS, **prepared, verbose=0)
names = [f"Subject{number:02d}" for number in [0, 1, 2, 3, *range(12, 18)]]
arithmetic = datasets.mental_arithmetic(names)
for name, windows in (("pretraining", motor), ("fine-tuning", arithmetic)):
    n_chans, n_times = windows[0][0].shape
    print(f"{name}: {len(windows)} windows, {n_chans} channels x {n_times / 128:g} s")

# %%
# Pretrain once
# -------------
#
# Each epoch uses one random channel of each window, so the number of channels does not matter. The
# task is to predict the power spectrum of hidden patches. The curve is the loss relative to chance.

embedder = PARSEmbedder("spectral", pretrain_epochs=100, random_state=0, verbose=0).fit(motor)
plotting.training_curves(embedder.history_)
# sphinx_gallery_alt = "The pretraining loss over 100 epochs, relative to chance level"
plt.show()

# %%
# These are 100 steps, to show how it is done. The package contains two encoders of 6,000
# (:doc:`/guide/pretrained`).
#
# Fine-tune on the other data set
# -------------------------------
#
# ``transfer`` trains every method on the same four people and scores it on the same six others,
# once for each seed. ``encoder=`` takes a fitted embedder, or a folder from ``embedder.save``.

methods = {
    "pretrained": PARSClassifier(encoder=embedder, finetune_epochs=15, verbose=0),
    **make_methods(["scratch", "band-power"], finetune_epochs=15),
}
scores = transfer(
    methods,
    {"rest or arithmetic": arithmetic},
    test_subjects={"rest or arithmetic": names[4:]},
    seeds=range(2),
    verbose=0,
)
print(summarize(scores, over="seeds").round(2).to_string(index=False))

# %%
# Each dot is a held-out person, with the mean over both seeds.

plotting.subject_dots(scores, "kappa", "Cohen's kappa")
# sphinx_gallery_alt = "Cohen's kappa of three methods: a dot for each person, and their means"
plt.show()

# sphinx_gallery_thumbnail_path = "images/thumbnails/transfer.png"
