"""
Inside the model: what was learned, and what only seems to be
=============================================================

A pretraining loss below chance says that something was learned. What did the encoder learn, and
what did it only seem to learn? This page looks at shifts, at what they are read from, at a shortcut,
at embeddings and at attention. All is simulated and small, so that the right answers are known.
"""

# %%
# Shifts of a stranger
# --------------------
#
# Five people are pretrained on, three others are for looking. Patches of two seconds, half of which
# keep their position, are an easier task than the paper's, and are learned in seconds.

import matplotlib.pyplot as plt
import mne
import numpy as np
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets, plotting
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.pretext import PARS

nights = datasets.simulated.sleep(n_subjects=8, hours=1, n_chans=2, sfreq=100, random_state=0)
people, strangers = nights.datasets[:5], nights.datasets[5:]

size = dict(patch_seconds=2, num_layers=1, random_state=0, verbose=0)
task_params = {"position_mask_ratio": 0.5}
training = dict(pretext_params=task_params, pretrain_epochs=14, pretrain_batch_size=32)
embedder = PARSEmbedder(**size, **training).fit(BaseConcatDataset(people))
task = embedder.task_.eval()


def signals(nights, low=None, high=None):
    """The first channel of every window, in a band if asked for."""
    chosen = []
    for night in nights:
        raw = night.raw.copy().filter(low, high, verbose="error")
        windows = EEGWindowsDataset(raw, night.metadata, {})
        chosen += [windows[i][0][0] for i in range(len(windows))]
    return torch.tensor(np.stack(chosen))


def ask(task, x):
    """Predicted and true shifts, and the error of each window in units of chance."""
    torch.manual_seed(0)
    with torch.no_grad():
        prediction, target = task(x)
    return prediction, target, (prediction - target).square().mean(dim=(1, 2)) / task.chance_loss()


prediction, target, error = ask(task, signals(strangers))
print(f"loss on strangers: {error.mean():.2f} of chance")

# %%
# Below is a window of median error, its patches in order of time: sorting the true shifts to the
# first patch sorts the patches.

window = error.argsort()[len(error) // 2]
order = target[window, :, 0].argsort()
by_time = np.ix_(order, order)
plotting.shift_matrices(prediction[window].numpy()[by_time], target[window].numpy()[by_time])
plt.show()

# %%
# Read from what?
# ---------------
#
# The simulated recordings drift slowly, as recordings do before a high-pass. Ask the same encoder
# once without what is slower than 0.3 Hz, which the paper filters out, and once with nothing else.

for name, band in {"all": (None, None), "without drift": (0.3, None), "drift": (None, 0.3)}.items():
    print(f"{name}: {ask(task, signals(strangers, *band))[2].mean():.2f} of chance")

# %%
# Hardly anything is left without the drift, and nothing is missing with the drift alone. The
# encoder seemed to learn sleep and learned how electrodes settle. Part of the fall may be that
# filtered signals are new to it; that the drift suffices is no matter of that. Filter
# first: recipes of the corpora do, and ``braindecode-pars store --low 0.3``.
#
# The overlap shortcut
# --------------------
#
# White noise holds nothing to learn. But patches that overlap share samples, and who finds the same
# samples in two patches knows their shift. Two small encoders, fresh noise in every step; without
# overlap, two patches are all that have room to move in a window as short as this.


def train_on_noise(**sampling):
    torch.manual_seed(0)
    task = PARS(24, 8, **sampling, embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
    optimizer = torch.optim.AdamW(task.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=500)
    for _ in range(500):
        loss = task.criterion()(*task(torch.randn(64, 24)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return task


fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
samplings = {"overlap": dict(n_patches=12), "no overlap": dict(n_patches=2, overlap=False)}
for ax, (name, sampling) in zip(axes, samplings.items(), strict=True):
    prediction, target, error = ask(train_on_noise(**sampling), torch.randn(2000, 24))
    shifts, place = torch.unique(target, return_inverse=True)
    groups = [prediction[place == i].numpy() for i in range(len(shifts))]
    ax.plot([-0.7, 0.7], [-0.7, 0.7], color="0.6", lw=1, label="truth")
    middle, spread = (np.array([f(group) for group in groups]) for f in (np.mean, np.std))
    ax.errorbar(shifts, middle, spread, fmt="o", ms=4, color="C0", label="mean ± SD")
    ax.set(title=f"{name}: {error.mean():.2f} of chance", xlabel="true shift / T")
axes[0].set(ylabel="predicted shift / T")
axes[0].legend(frameon=False)
plt.show()

# %%
# TEXT
#
# Embeddings by stage
# -------------------

X, y, groups = as_sklearn(BaseConcatDataset(strangers))
stages = np.array(datasets.simulated.STAGES)[y]
untrained = PARSEmbedder(None, **size).fit(BaseConcatDataset(people))
fig, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
views = [("pretrained", embedder, stages), ("pretrained", embedder, groups)]
views += [("untrained", untrained, stages)]
for ax, (name, view, labels) in zip(axes, views, strict=True):
    points = make_pipeline(StandardScaler(), PCA(2)).fit_transform(view.transform(X))
    plotting.embedding(points, labels, ax=ax)
    ax.set(title=name)
plt.show()

for name, view in {"pretrained": embedder, "untrained": untrained, "bands": LogBandPower()}.items():
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = dict(groups=groups, cv=LeaveOneGroupOut(), scoring="balanced_accuracy")
    scores = cross_val_score(probe, view.transform(X), y, **folds)
    print(f"{name}: balanced accuracy {scores.mean():.2f} ± {scores.std():.2f}")

# %%
# TEXT
#
# Attention on the scalp
# ----------------------

montage = mne.channels.make_standard_montage("biosemi16")
info = mne.create_info(montage.ch_names, 100, "eeg").set_montage(montage)
rng = np.random.default_rng(0)
eyes_closed = np.arange(240) % 2
X = rng.normal(size=(240, 16, 401)).cumsum(axis=-1)
X = np.diff(X - X.mean(axis=-1, keepdims=True)) + 0.1 * X[..., 1:]
