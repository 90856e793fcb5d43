"""
Does pretraining help on simulated nights?
==========================================

Does pretraining on five unlabelled nights improve sleep staging of held-out subjects? After the
seconds of training on this page, no gain is visible: the loss stays at chance level, and the
difference from training from scratch is not significant. The page pretrains, fine-tunes with one
subject held out at a time, and tests the differences. All nights are simulated. Nothing is
downloaded.
"""

# %%
# One subject, one night
# ----------------------
#
# :func:`~braindecode_pars.datasets.simulated.sleep` returns a braindecode dataset of 30-second
# windows. The description contains the subject, and the target is the sleep stage.

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
# The simulated hypnogram has cycles of about 90 minutes, with deep sleep early and REM sleep late.
# Below it is one window of each stage: alpha in wake, theta in REM and N1, spindles or a K-complex
# in N2, and slow waves in N3, which exceed the axis. The simulation is not a model of the brain.
# However, the amplitude of its rhythms changes over tens of seconds, as in real nights. A pretext
# task about time can learn from such slow changes within a window.
#
# Pretraining subjects and labelled subjects
# ------------------------------------------
#
# Eleven more subjects have one hour each. The first five are for pretraining, and their labels are
# not used. The other six are for fine-tuning and testing. Only every fifth of their windows is
# kept, so that the labelled set is small.

nights = datasets.simulated.sleep(n_subjects=11, hours=1, n_chans=2, random_state=0)
unlabelled = BaseConcatDataset(nights.datasets[:5])
staged = BaseConcatDataset(nights.datasets[5:])
labelled = Subset(staged, range(0, len(staged), 5))
print(f"{len(unlabelled)} unlabelled windows, {len(labelled)} labelled windows")

# %%
# Pretrain
# --------
#
# One example is one channel of one window. The curve is the loss relative to chance. Four epochs
# over 600 windows are very few; the encoder of the paper had 1000 epochs over 1.5 million windows.

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
# The loss stays at chance level. This encoder has not learned to predict time shifts yet, so
# fine-tuning has little to gain from it. Check the loss before you read any score.
#
# Fine-tune with one subject held out
# -----------------------------------
#
# ``compare`` holds out one labelled subject at a time. Two methods are the same network with the
# same fine-tuning: "PARS" starts from the encoder above, "scratch" from random weights. The third
# method is a baseline: logistic regression on the power in seven frequency bands. The held-out
# subject is in neither the pretraining nor the fine-tuning data.

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
# Are the differences significant?
# --------------------------------
#
# All methods are scored on the same subjects. The paired test therefore uses the six differences
# between two methods, one for each subject.

print(*describe_differences(paired_tests(scores)).split(". "), sep=".\n")

# %%
# The difference between PARS and scratch is smaller than the spread over subjects. With the loss at
# chance level, a difference of this size says nothing about pretraining unless other seeds show the
# same. Band power is ahead of both in five of six subjects, because the simulated stages are made
# of frequency bands. The tokens of both networks contain the power spectrum as well, but they have
# only six epochs to learn how to use it. No difference is significant: with six subjects and three
# pairs, the correction makes significance impossible, as the printed text states. All scores are
# from one seed, and the scores of both networks change with the seed.

# %%
# One more night
# --------------
#
# A hypnogram shows which errors a model makes. The pretrained model is fine-tuned on all six
# subjects. It then stages the night of the first figure, which is of a new subject.

classifier = PARSClassifier(encoder=embedder, random_state=0, **training).fit(labelled)
plotting.hypnogram(y, classifier.predict(night), STAGES)
plt.show()

# %%
# The prediction follows the outline of the night, but many windows are wrong. It changes often,
# because the model classifies each window on its own.
#
# So seconds of pretraining give no measurable gain on these six subjects. This result is about the
# short training, not about the method. :doc:`/results` has longer runs with several seeds.
