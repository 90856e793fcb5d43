"""
What has an encoder learned if its loss is below the chance level?
==================================================================

Mainly slow drifts, in the simulated nights of this page. An encoder is pretrained with PARS, the
task of predicting the time shift between patches of a signal. On held-out subjects, its relative
loss (loss divided by the chance-level loss; lower is better) is .75; if drifts are removed from the
signals, it is .92. The loss can also decrease although nothing is learned about EEG: on white
noise, overlapping patches alone decrease it to .78. All signals are simulated, so that their
content is known.

:bdg-info:`simulated` :bdg-secondary:`50 s`
"""

# %%
# Predicted shifts on held-out subjects
# -------------------------------------
#
# In PARS, the positions of some patches are hidden, and the shifts between them are predicted
# (:doc:`plot_recording_to_tokens`). Five subjects are used for pretraining, and three are held out.
# So that the loss decreases within seconds, patches last two seconds, and half keep their position.

import matplotlib.pyplot as plt
import mne
import numpy as np
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from scipy.signal import lfilter
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets, plotting
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.pretext import PARS

nights = datasets.simulated.sleep(n_subjects=8, hours=1, n_chans=2, sfreq=100, random_state=0)
training, held_out = nights.datasets[:5], nights.datasets[5:]
size = dict(patch_seconds=2, num_layers=1, random_state=0, verbose=0)
size["pretext_params"] = {"position_mask_ratio": 0.5}
embedder = PARSEmbedder(pretrain_epochs=8, pretrain_batch_size=32, **size)
task = embedder.fit(BaseConcatDataset(training)).task_.eval()


def signals(nights, low=None, high=None):
    """Return the first channel of every window, optionally filtered."""
    filtered = [night.raw.copy().filter(low, high, verbose="error") for night in nights]
    windows = map(EEGWindowsDataset, filtered, [night.metadata for night in nights])
    return torch.tensor(np.stack([window[0] for night in windows for window, *_ in night]))


def predict(task, x):
    """Return predicted and true shifts, and the relative loss of each window."""
    torch.manual_seed(0)
    with torch.no_grad():
        prediction, target = task(x)
    return prediction, target, (prediction - target).square().mean(dim=(1, 2)) / task.chance_loss()


# %%
# The figure shows predicted and true shifts for the held-out window with the median loss, with
# patches sorted by time. All predictions are close to zero.

prediction, target, error = predict(task, signals(held_out))
window = error.argsort()[len(error) // 2]
plotting.shift_matrices(prediction[window].numpy(), target[window].numpy())
# sphinx_gallery_alt = "Predicted shifts near zero, true shifts from dark to bright, and the errors"
plt.show()

# %%
# Which part of the signal is used?
# ---------------------------------
#
# The simulated recordings contain slow drifts, like real recordings without a high-pass filter. The
# same encoder is now tested on three versions of the held-out windows: unfiltered, without
# frequencies below 0.3 Hz (which are removed in the paper), and with only these frequencies.

bands = {"all": (None, None), "without drifts": (0.3, None), "drifts": (None, 0.3)}
for name, band in bands.items():
    print(f"{name}: relative loss {predict(task, signals(held_out, *band))[2].mean():.2f}")

# %%
# The improvement over the chance level is 1 minus the relative loss. With drifts only, about half
# of this improvement remains; without drifts, a third remains. Therefore, remove drifts with a
# high-pass filter before pretraining, as ``braindecode-pars store --low 0.3`` does.
#
# The overlap shortcut
# --------------------
#
# White noise has no temporal structure, so time shifts should not be predictable. However,
# overlapping patches share samples, from which their shift can be determined. To show this, PARS is
# trained on white noise with overlapping patches and, as a control, with two separate patches.


def train_on_noise(n_steps=250, **sampling):
    torch.manual_seed(0)
    task = PARS(24, 8, **sampling, embed_dim=32, num_layers=2, num_heads=4, mlp_dim=64)
    optimizer = torch.optim.AdamW(task.parameters(), lr=1e-3)
    for _ in range(n_steps):
        loss = task.criterion()(*task(torch.randn(64, 24)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return task


fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
samplings = {"overlap": dict(n_patches=12), "no overlap": dict(n_patches=2, overlap=False)}
for ax, (name, sampling) in zip(axes, samplings.items(), strict=True):
    prediction, target, error = predict(train_on_noise(**sampling), torch.randn(2000, 24))
    shifts, index = torch.unique(target, return_inverse=True)
    predicted = [prediction[index == i] for i in range(len(shifts))]
    ax.plot([-0.7, 0.7], [-0.7, 0.7], color="0.6", lw=1, label="truth")
    mean, sd = zip(*[(values.mean(), values.std()) for values in predicted], strict=True)
    ax.errorbar(shifts, mean, sd, fmt="o", label="mean ± SD")
    ax.set(title=f"{name}: relative loss {error.mean():.2f}", xlabel="true", ylabel="predicted")
axes[0].legend()
# sphinx_gallery_alt = "Predicted against true shifts: increasing with overlap, flat without it"
plt.show()

# %%
# The figure shows predicted against true shifts, in units of the window length. With overlap, the
# loss on noise is well below the chance level. Even some shifts longer than a patch (a third of the
# window) are partly predicted: if two patches do not overlap, a third patch may overlap with both.
# Without overlap, the loss is at the chance level. For this control in your own pretraining, use
# ``pretext_params={"overlap": False}``.
#
# Features by sleep stage
# -----------------------
#
# Each point of the next figure is a window of a held-out subject: the first two principal
# components of the features. Left: pretrained encoder, colored by sleep stage. Middle: the same
# points, colored by subject. Right: random encoder (random weights), colored by sleep stage. The
# printed numbers are balanced accuracies (mean ± SD) of linear probes, that is, linear classifiers
# on the features. Each held-out subject is predicted by a probe that was trained on the other two.

X, y, groups = as_sklearn(BaseConcatDataset(held_out))
stages = np.array(datasets.simulated.STAGES)[y]
encoders = {"pretrained": embedder, "random encoder": PARSEmbedder(None, **size).fit(X)}
encoders["log band power"] = LogBandPower().fit(X)
_, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
panels = [("pretrained", stages), ("pretrained", groups), ("random encoder", stages)]
for ax, (name, labels) in zip(axes, panels, strict=True):
    points = make_pipeline(StandardScaler(), PCA(2)).fit_transform(encoders[name].transform(X))
    for label in np.unique(labels):
        ax.scatter(*points[labels == label].T, s=12, alpha=0.75, lw=0, label=label)
    ax.set(title=name, xlabel="dimension 1", ylabel="dimension 2")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
# sphinx_gallery_alt = "Three scatter plots without clusters, colored by stage, subject and stage"
plt.show()

for name, encoder in encoders.items():
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    by_subject = dict(groups=groups, cv=LeaveOneGroupOut(), scoring="balanced_accuracy")
    scores = cross_val_score(probe, encoder.transform(X), y, **by_subject)
    print(f"{name}: balanced accuracy {scores.mean():.2f} ± {scores.std():.2f}")

# %%
# The features do not form clusters. The linear probe on the pretrained encoder scores well above
# the chance level (0.20), but so does the probe on the random encoder, because the input of both
# encoders contains the power spectrum of the signal. The drifts, which the pretrained encoder has
# learned to use, are hardly related to sleep stages.
#
# Attention on the scalp
# ----------------------
#
# To classify a window, the network combines the features of its channels with attention: a learned
# query assigns a weight to each channel. The following code simulates open and closed eyes: with
# closed eyes, a 10 Hz rhythm is added to six posterior channels of sixteen. Networks are trained
# from scratch to distinguish both states, with three random seeds. The maps show the mean weights.

montage = mne.channels.make_standard_montage("biosemi16")
info = mne.create_info(montage.ch_names, 100, "eeg").set_montage(montage)
posterior = [number for number, name in enumerate(info.ch_names) if name[0] in "PO"]
rng = np.random.default_rng(0)
closed = np.arange(240) % 2 == 1
X = lfilter([1], [1, -0.9], rng.normal(size=(240, 16, 400)))
alpha = np.sin(2 * np.pi * (10 * np.arange(400) / 100 + rng.uniform(size=(closed.sum(), 1, 1))))
X[np.ix_(closed, posterior)] += 2 * alpha
eyes = np.where(closed, "closed", "open")
weights = np.zeros((2, 16))
for seed in range(3):
    clf = PARSClassifier(None, sfreq=100, finetune_epochs=12, random_state=seed, verbose=0)
    net = clf.fit(X[:160], eyes[:160]).net_.module_
    attention = net.channel_attention(torch.tensor(X[160:], dtype=torch.float32)).mean(dim=1)
    means = np.stack([attention[eyes[160:] == state].mean(dim=0) for state in ("closed", "open")])
    print("posterior attention, eyes closed and open:", means[:, posterior].sum(axis=1).round(2))
    weights += means / 3

fig, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for ax, of_channels, state in zip(axes, weights, ("closed", "open"), strict=True):
    mne.viz.plot_topomap(of_channels, info, axes=ax, vlim=(0, weights.max()), show=False)
    ax.set_title(f"eyes {state}: up to {of_channels.max():.2f}")
# sphinx_gallery_alt = "Two scalp maps: attention is posterior with eyes closed, else uniform"
plt.show()

# %%
# The printed numbers are the sums of the weights of the six posterior channels. If all sixteen
# channels had the same weight, the sum would be 6/16 = 0.38, as with open eyes. With closed eyes,
# most of the attention is on the channels with the rhythm. The network does not receive electrode
# positions, so it identified these channels by their signals.

# sphinx_gallery_thumbnail_path = "images/thumbnails/inside_the_model.png"
