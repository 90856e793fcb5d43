"""
Can an encoder be used on data from another laboratory?
=======================================================

Yes. Each channel is encoded separately, so an encoder that was pretrained on recordings with 37
channels (from Albany) can be used for recordings with 8 channels (from Kyiv). After seconds of
pretraining, Cohen's kappa is .21 (mean over two seeds), compared with .14 for training from scratch
and .22 for log band power with a linear classifier (chance level 0). Such a short demonstration
cannot rank the methods; :doc:`/auto_examples/start/plot_arithmetic` summarizes longer runs.

:bdg-success:`real recordings` :bdg-secondary:`25 s`

The encoder is pretrained without labels on run 4 of three subjects of the PhysioNet EEG Motor
Movement/Imagery Dataset (Schalk et al. 2004; Goldberger et al. 2000; ODC-BY 1.0). The page reads
these recordings from the folder in the environment variable ``BRAINDECODE_PARS_EEG``. If this
variable is not set, the page downloads them once. The recordings for fine-tuning are bundled with
the package (Zyma et al. 2019; ODC-BY 1.0).
"""

# %%
# Two datasets, one sampling rate
# -------------------------------
#
# The sampling rate and the frequency band must be the same in pretraining and fine-tuning, here 128
# Hz and 0.5-45 Hz. The encoder is pretrained on windows of 4 seconds from recordings of imagined
# movements, without their labels. A network with this encoder is then trained on windows of 10
# seconds with two classes, rest and mental arithmetic.

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
# In each epoch, the encoder is trained on one random channel of each window, so recordings may have
# different numbers of channels. The pretext task ``"spectral"`` is to predict the power spectrum of
# hidden patches. The curve shows the relative loss: 1 is the chance level, and lower is better.

embedder = PARSEmbedder("spectral", pretrain_epochs=100, random_state=0, verbose=0).fit(motor)
plotting.training_curves(embedder.history_)
# sphinx_gallery_alt = "The relative pretraining loss over 100 epochs; the chance level is one"
plt.show()

# %%
# This pretraining has only 100 steps, as a demonstration. The bundled encoder ``small`` was
# pretrained for 3,000 steps, on recordings of 50 subjects (:doc:`/guide/pretrained`).
#
# Fine-tune on the other dataset
# ------------------------------
#
# ``transfer`` trains every method on the same four subjects, and tests it on the same six other
# subjects, once for each of two random seeds. The argument ``encoder`` of ``PARSClassifier``
# accepts a fitted embedder, or a folder in which ``embedder.save`` has saved it. With so few
# labeled subjects, the encoder stays frozen by default, and only the head of the network is
# trained.

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
# Each dot is the score of a held-out subject, averaged over both seeds.

plotting.subject_dots(scores, "kappa", "Cohen's kappa")
# sphinx_gallery_alt = "Cohen's kappa of three methods: a dot for each subject, and their means"
plt.show()

# sphinx_gallery_thumbnail_path = "images/thumbnails/transfer.png"
