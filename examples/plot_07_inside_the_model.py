"""
Inside the model: what was learned, and what only seems to be
=============================================================

A pretraining loss below chance says that something was learned. What did the encoder learn, and
what did it only seem to learn? All here is simulated and small, so that right answers are known.
"""

# %%
# Shifts of a stranger
# --------------------
#
# Five people are pretrained on, three others are looked at. Patches of two seconds, half of which
# keep their position, make a task that is learned in seconds.

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
people, strangers = nights.datasets[:5], nights.datasets[5:]
size = dict(patch_seconds=2, num_layers=1, random_state=0, verbose=0)
size["pretext_params"] = {"position_mask_ratio": 0.5}
embedder = PARSEmbedder(pretrain_epochs=8, pretrain_batch_size=32, **size)
task = embedder.fit(BaseConcatDataset(people)).task_.eval()


def signals(nights, low=None, high=None):
    """The first channel of every window, in a band if asked for."""
    filtered = [night.raw.copy().filter(low, high, verbose="error") for night in nights]
    windows = map(EEGWindowsDataset, filtered, [night.metadata for night in nights])
    return torch.tensor(np.stack([window[0] for night in windows for window, *_ in night]))


def ask(task, x):
    """Predicted and true shifts, and the error of each window in units of chance."""
    torch.manual_seed(0)
    with torch.no_grad():
        prediction, target = task(x)
    return prediction, target, (prediction - target).square().mean(dim=(1, 2)) / task.chance_loss()


# %%
# The window of median error, its patches in order of time: predictions stay close to zero.

prediction, target, error = ask(task, signals(strangers))
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
# Without the drift hardly anything is left; with the drift alone nothing is missing. The encoder
# seemed to learn sleep and learned how electrodes settle. So filter before pretraining, as the
# recipes of the corpora do, and ``braindecode-pars store --low 0.3``.
#
# The overlap shortcut
# --------------------
#
# White noise holds nothing to learn. But patches that overlap share samples, and whoever finds the
# same samples in two knows their shift. Without overlap, two patches fit and can still move.


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
    prediction, target, error = ask(train_on_noise(**sampling), torch.randn(2000, 24))
    shifts, place = torch.unique(target, return_inverse=True)
    told = [prediction[place == i] for i in range(len(shifts))]
    ax.plot([-0.7, 0.7], [-0.7, 0.7], color="0.6", lw=1, label="truth")
    mean, sd = zip(*[(values.mean(), values.std()) for values in told], strict=True)
    ax.errorbar(shifts, mean, sd, fmt="o", label="mean ± SD")
    ax.set(title=f"{name}: {error.mean():.2f} of chance", xlabel="true shift / T")
axes[0].set_ylabel("predicted shift / T")
axes[0].legend()
plt.show()

# %%
# With overlap the loss on noise is well below chance, also for shifts above a third of the window,
# a patch's length: patches between them make a chain. Without overlap, where only two fit and can
# still move, nothing is had. ``pretext_params={"overlap": False}`` is the control for a low loss.
#
# Embeddings by stage
# -------------------
#
# Windows of the strangers by stage, by person, and by stage with an encoder that was not trained;
# and how well a linear probe tells the five stages of one of them, fitted on the other two.

X, y, groups = as_sklearn(BaseConcatDataset(strangers))
stages = np.array(datasets.simulated.STAGES)[y]
untrained = PARSEmbedder(None, **size).fit(X)
_, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
views = [("pretrained", embedder, stages), ("pretrained", embedder, groups)]
for ax, (name, view, of) in zip(axes, [*views, ("untrained", untrained, stages)], strict=True):
    points = make_pipeline(StandardScaler(), PCA(2)).fit_transform(view.transform(X))
    plotting.embedding(points, of, ax=ax).set(title=name)
plt.show()

for name, view in {"pretrained": embedder, "untrained": untrained, "bands": LogBandPower()}.items():
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    held_out = dict(groups=groups, cv=LeaveOneGroupOut(), scoring="balanced_accuracy")
    scores = cross_val_score(probe, view.transform(X), y, **held_out)
    print(f"{name}: balanced accuracy {scores.mean():.2f} ± {scores.std():.2f}")

# %%
# No clusters, and a probe close to chance (0.20) and to the untrained encoder's, where band power
# does well. That fits: this encoder has learned about drift, and drift knows little of sleep.
#
# Attention on the scalp
# ----------------------
#
# A classifier's query attends to channels. Here the right answer is known: closed eyes differ by a
# 10 Hz rhythm at the back, in six of sixteen channels. Three seeds, trained from scratch.

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
    seen = np.stack([attention[eyes[160:] == state].mean(dim=0) for state in ("closed", "open")])
    shares = seen[:, posterior].sum(axis=1)
    print(f"attention at the back: eyes closed {shares[0]:.2f}, open {shares[1]:.2f}")
    weights += seen / 3

for ax, state in zip(plotting.spatial_attention(weights, info), ("closed", "open"), strict=True):
    ax.set_title(f"eyes {state}")
plt.show()

# %%
# Even attention would be 6/16 = 0.38. With closed eyes the query finds the channels that hold the
# rhythm, by what they record: this model is not told where electrodes are.
#
# So: the loss fell, and what was learned was drift and, in noise, overlap. The loss alone would not
# have told; signals whose content is known did.

# sphinx_gallery_thumbnail_number = 4
