"""
Does pretraining help on simulated nights?
==========================================

Five people slept without labels, six others with a few. Is a sleep stager that was pretrained on
the five better on people it has never met? This page asks it in seconds: it pretrains, fine-tunes,
leaves one person out at a time, and reads the result with care. All nights are simulated, so
nothing is downloaded.
"""

# %%
# One person, one night
# ---------------------
#
# :func:`~braindecode_pars.datasets.simulated.sleep` returns an ordinary braindecode dataset of
# 30-second windows, with the person in the description and the sleep stage as target.

import matplotlib.pyplot as plt
import numpy as np
from braindecode.datasets import BaseConcatDataset
from torch.utils.data import Subset

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets, plotting
from braindecode_pars.baselines import make_methods
from braindecode_pars.evaluation import compare, describe_differences, paired_tests, summarize

STAGES = datasets.simulated.STAGES
night = datasets.simulated.sleep(n_subjects=1, hours=7, n_chans=2, random_state=4)
X, y, groups = as_sklearn(night)
plotting.night(np.asarray(X), y, STAGES, sfreq=100.0)
plt.show()

# %%
# The hypnogram walks through cycles of about 90 minutes, with deep sleep early and REM sleep late.
# Below it, one window of each stage: alpha in wake, theta in REM and N1, spindles or a K-complex in
# N2, and in N3 slow waves too large for the frame. It is no model of the brain. But rhythms wax and
# wane over tens of seconds, as in real nights, and that slow order within a window is what a task
# about time can learn from.
#
# Who is who
# ----------
#
# Eleven more people sleep for an hour. The first five are for pretraining, and their labels are
# never looked at. Of the other six a fifth of the windows is kept, as if labelling were dear.

nights = datasets.simulated.sleep(n_subjects=11, hours=1, n_chans=2, random_state=0)
unlabelled = BaseConcatDataset(nights.datasets[:5])
others = BaseConcatDataset(nights.datasets[5:])
labelled = Subset(others, range(0, len(others), 5))
print(f"{len(unlabelled)} windows without labels, {len(labelled)} with")

# %%
# Pretrain
# --------
#
# One example is one channel of one window. The loss is told relative to that of a blind guesser.
# Four passes over 600 windows are very few; the paper's encoder had 1000 over 1.5 million.

encoder_size = dict(embed_dim=64, num_layers=2, num_heads=2)
embedder = PARSEmbedder(
    "pars",
    **encoder_size,
    pretrain_epochs=4,
    pretrain_batch_size=32,
    pretrain_lr=1e-3,
    random_state=0,
    verbose=0,
).fit(unlabelled)
plotting.training_curves(embedder.history_)
plt.show()

# %%
# The line hardly leaves chance. Whatever comes next, this encoder has not learned to tell time yet,
# so there is little that fine-tuning could inherit. The loss is the first thing to look at.
#
# Fine-tune, one person left out
# ------------------------------
#
# Both networks are the same model with the same fine-tuning. One starts from the encoder above, the
# other from scratch. The third method is dull: power in five frequency bands, then logistic
# regression. The person left out was never seen before, by the pretraining either.

training = dict(finetune_epochs=6, finetune_batch_size=16, validation=0, verbose=0)
methods = {
    "PARS": PARSClassifier(encoder=embedder, **training),
    **make_methods(["scratch", "band-power"], **encoder_size, **training),
}
scores = compare(methods, labelled, verbose=0)
kappa = summarize(scores).query("metric == 'kappa'")
print(kappa[["method", "mean", "sd", "n"]].round(2).to_string(index=False))
plotting.paired_bars(scores, "kappa", "Cohen's kappa")
plt.show()

# %%
# What may be said
# ----------------
#
# Each person is their own control, so the test looks at the six differences between two methods.

print(*describe_differences(paired_tests(scores)).split(". "), sep=".\n")

# %%
# Pretrained and scratch lie within each other's spread. Whichever leads, remember the curve above:
# an encoder at chance deserves neither credit nor blame before other seeds show the same. Band
# power is ahead of both, for everybody: simulated stages are made of frequency bands. And six
# people are too few for any of it to count, as the sentence says by itself. The spread is over
# people, all from one seed; another seed moves both networks.

# %%
# One more night
# --------------
#
# A score is a number; a hypnogram shows what goes wrong. The pretrained model, fine-tuned on all
# six people, stages the night of the first picture, of a person it has never met.

classifier = PARSClassifier(encoder=embedder, random_state=0, **training).fit(labelled)
plotting.hypnogram(y, classifier.predict(night), STAGES)
plt.show()

# %%
# The outline of the night can be recognised, many single windows are wrong, and the prediction
# jumps about, for the model sees one window at a time.
#
# So, does pretraining help? Not after seconds of it, as far as six people can tell. That is a
# statement about this budget, not about the method. Longer runs, with more people and several
# seeds, are in :doc:`/results`.
