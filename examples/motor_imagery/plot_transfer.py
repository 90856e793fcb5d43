"""
Can an encoder be used on data from another laboratory?
=======================================================

Yes: each channel is encoded separately, so an encoder that was pretrained on 37 channels (Albany)
can be fine-tuned on 8 other channels (Kyiv). After seconds of pretraining, Cohen's kappa is 0.14
(mean over two seeds), compared with 0.22 for training from scratch and 0.22 for log band power
(chance level 0); this does not rank the methods. :doc:`/auto_examples/start/plot_arithmetic`
summarizes longer runs.

:bdg-success:`real recordings` :bdg-secondary:`25 s`

The encoder is pretrained without labels on run 4 of three subjects of the PhysioNet EEG Motor
Movement/Imagery Dataset (Schalk et al. 2004; Goldberger et al. 2000; ODC-BY 1.0), from the folder
in the environment variable ``BRAINDECODE_PARS_EEG``. Without that variable, the page downloads
these runs once. The other recordings are bundled with the package (Zyma et al. 2019; ODC-BY 1.0).
"""

# %%
# Two datasets, one sampling rate
# -------------------------------
#
# Pretraining and fine-tuning need the same sampling rate and the same frequencies, here 128 Hz and
# 0.5-45 Hz. Pretraining uses the windows of imagined movements, 4 seconds each, without their
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

preprocessing = dict(picks="motor and 10-20", sfreq=128, low=0.5, high=45, mains=None)
motor = datasets.physionet_mi.load(folder, SUBJECTS, runs=RUNS, **preprocessing, verbose=0)
names = [f"Subject{number:02d}" for number in [0, 1, 2, 3, *range(12, 18)]]
arithmetic = datasets.mental_arithmetic(names)
for name, windows in (("pretraining", motor), ("fine-tuning", arithmetic)):
    n_chans, n_times = windows[0][0].shape
    print(f"{name}: {len(windows)} windows, {n_chans} channels x {n_times / 128:g} s")

# %%
# Pretrain once
# -------------
#
# Each epoch uses one random channel of each window, so the number of channels can differ. The
# pretext task is to predict the power spectrum of hidden patches. The curve is the relative loss (1
# = chance level).

embedder = PARSEmbedder("spectral", pretrain_epochs=100, random_state=0, verbose=0).fit(motor)
plotting.training_curves(embedder.history_)
# sphinx_gallery_alt = "The relative pretraining loss over 100 epochs; the chance level is one"
plt.show()

# %%
# This pretraining has only 100 steps, as a demonstration. The package contains two encoders that
# were pretrained for 6,000 steps (:doc:`/guide/pretrained`).
#
# Fine-tune on the other dataset
# ------------------------------
#
# ``transfer`` trains every method on the same four subjects and tests it on the same six other
# subjects, once per seed. ``encoder=`` accepts a fitted embedder, or a folder saved by
# ``embedder.save``.

methods = {
    "pretrained": PARSClassifier(encoder=embedder, finetune_epochs=15, verbose=0),
    **make_methods(["scratch", "band-power"], finetune_epochs=15),
}
scores = transfer(
    methods,
    {"rest vs. arithmetic": arithmetic},
    test_subjects={"rest vs. arithmetic": names[4:]},
    seeds=range(2),
    verbose=0,
)
print(summarize(scores, over="seeds").round(2).to_string(index=False))

# %%
# Each dot is a held-out subject, averaged over both seeds.

plotting.subject_dots(scores, "kappa", "Cohen's kappa")
# sphinx_gallery_alt = "Cohen's kappa of three methods: a dot for each subject, and their means"
plt.show()

# sphinx_gallery_thumbnail_path = "images/thumbnails/transfer.png"
