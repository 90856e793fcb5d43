"""
From recording to tokens: what PARS sees
========================================

What does the model see of my EEG, and what is it asked? This page follows 30 seconds of one channel
from the file to the answer that PARS has to give. Nothing is trained.

The recording is run 4 of subject 1 of PhysioNet's motor imagery corpus (64 channels, imagined
left or right fist). It is read from the folder that the environment variable
``BRAINDECODE_PARS_EEG`` names, or else fetched from PhysioNet, once.
"""

# %%
# From recording to window
# ------------------------
#
# The run is filtered, brought to 200 Hz and cut into 30-second windows, without labels.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import mne
import torch

from braindecode_pars import PatchEncoder, datasets
from braindecode_pars.plotting._style import COLORS
from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.tokens import extract_patches, instance_norm, sinusoidal_positions

if "BRAINDECODE_PARS_EEG" in os.environ:
    folder = Path(os.environ["BRAINDECODE_PARS_EEG"])
else:  # from PhysioNet, once, into your home folder
    folder = Path.home() / "mne_data"
    folder.mkdir(exist_ok=True)
    mne.datasets.eegbci.load_data([1], [4], path=folder, update_path=False)

windows_ds = datasets.physionet_mi.load(folder, [1], runs=[4], part="pretraining", verbose=0)
window = windows_ds[2][0]
print(f"{len(windows_ds)} windows of shape {window.shape}")

# %%
# From window to one channel
# --------------------------
#
# In pretraining an example is **one** channel, so any montage will do. Training draws it at random;
# here it is Oz, where a burst of alpha stands out. Instance norm subtracts the mean and makes the
# variance one: the model cannot tell whether the amplifier wrote volts or microvolts.

sfreq = patch_size = 200
volts = torch.as_tensor(window[windows_ds.datasets[0].raw.ch_names.index("Oz")])[None]
x, n_times = instance_norm(volts), volts.shape[1]
print(f"{tuple(x.shape)}: SD {1e6 * volts.std():.0f} µV before, {x.std():.2f} after")
print("the same from microvolts:", torch.allclose(x, instance_norm(1e6 * volts), atol=1e-5))

# %%
# From channel to patches
# -----------------------
#
# PARS cuts 40 patches of one second. Each starts anywhere, independently of the others, so they
# overlap and leave gaps. Eight keep their position, the other 32 lose it. (The encoder is small.)

torch.manual_seed(0)
encoder = PatchEncoder(patch_size, embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128)
task = PARS(n_times, patch_size, encoder=encoder)
starts = task.sample_starts(1, generator=torch.Generator().manual_seed(91))
begins = (starts[0] / sfreq).tolist()
keeps = [False] * task.n_masked + [True] * (task.n_patches - task.n_masked)

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(10, 4.6), sharex=True, height_ratios=[3, 2], layout="constrained"
)
top.plot(torch.arange(n_times) / sfreq, x[0], lw=0.6, color="0.25")
ends = []  # of the last patch in each lane
for begin, keep in sorted(zip(begins, keeps, strict=True)):
    lane = next((i for i, end in enumerate(ends) if end <= begin), len(ends))
    ends[lane : lane + 1] = [begin + 1]
    look = dict(color=COLORS[0]) if keep else dict(facecolor="#fbe9dd", edgecolor=COLORS[6])
    bottom.broken_barh([(begin, 1)], (-lane - 0.8, 0.7), **look)
    if keep:
        top.axvspan(begin, begin + 1, color=COLORS[0], alpha=0.15, lw=0)
top.set(ylabel="Oz, standard deviations", xlim=(0, n_times / sfreq))
bottom.set(xlabel="seconds", ylabel="patches", yticks=[], ylim=(-len(ends), 0.2))
bottom.set_title("blue: position known, orange: position lost", fontsize="medium")
plt.show()

# %%
# That is our view. The model gets a bag of patches, and only eight of them come with a time (blue).
# Could you put the others in their places? Two in the fourth row swing with alpha, so they are from
# the burst near second four; but which came first?

patches = extract_patches(x, starts, patch_size)  # (1, 40, 200)
fig, axes = plt.subplots(5, 8, figsize=(10, 4.6), sharey=True, layout="constrained")
for ax, patch, begin, keep in zip(axes.flat, patches[0], begins, keeps, strict=True):
    ax.plot(patch, lw=0.9, color=COLORS[0 if keep else 6])
    ax.set_title(f"{begin:.1f} s" if keep else "?", fontsize="small")
    ax.axis("off")
plt.show()

# %%
# From patches to tokens
# ----------------------
#
# One linear layer turns the 200 samples of a patch into a token. A token says nothing about when,
# so a sinusoidal code of the start time is added to it. Times are real numbers in units of a patch;
# fine-tuning, with patches at 0, 1, 2, ... seconds, stays on the same curve. Left, the sines of the
# code, from -1 (dark) to 1: the upper entries turn within seconds, the lower ones hardly move.
# Right, how alike the codes of second 10 and of other times are: near means alike.

tokens = encoder.tokenize(patches)  # (1, 40, 64)
times = torch.arange(0, 29, 0.05)
codes = sinusoidal_positions(times, encoder.embed_dim)
likeness = codes @ sinusoidal_positions(torch.tensor(10.0), encoder.embed_dim)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
left.imshow(codes[:, ::2].T.numpy(), aspect="auto", extent=(0, 29, 63, -1), cmap="cividis")
left.set(xlabel="start of the patch, seconds", ylabel="entry of the code")
right.plot(times, likeness / likeness.max(), color=COLORS[0])
right.set(xlabel="start of the patch, seconds", ylabel="cosine similarity to 10 s", ylim=(0, 1.05))
plt.show()

# %%
# The tokens that lose their position all get the same learnable vector instead, the mask token,
# which says "somewhere". Patches are drawn in random order, so the first 32 are a random choice.
# Then the encoder runs, and the decoder compares every pair of those 32. By hand and in one call:

positions = sinusoidal_positions(starts[:, task.n_masked :] / patch_size, encoder.embed_dim)
masked = task.mask_token.expand(1, task.n_masked, -1)
features = encoder(tokens + torch.cat([masked, positions], dim=1))  # (1, 40, 64)
by_hand = task.decoder(features[:, : task.n_masked], features)
in_one_call = task.predict_shifts(volts, starts)  # (1, 32, 32)
print("the same:", torch.allclose(by_hand, in_one_call, atol=1e-5))

# %%
# The question: how far apart?
# ----------------------------
#
# The target of patches j and k is their shift in units of the window,
# :math:`\theta_{jk} = (t_j - t_k) / T`. Its rows come as the patches were drawn (left); sorted for
# our eyes, order appears (middle). Over many draws, small shifts are the common ones (right).

target = relative_shifts(starts[:, : task.n_masked], n_times)[0].numpy()
by_time = starts[0, : task.n_masked].argsort().numpy()
draws = task.sample_starts(2000, generator=torch.Generator().manual_seed(1))
shifts = relative_shifts(draws[:, : task.n_masked], n_times)
pairs = shifts[:, ~torch.eye(task.n_masked, dtype=bool)]  # of two different patches

fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
matrices = {"as drawn": target, "by time": target[by_time][:, by_time]}
for ax, (title, matrix) in zip(axes, matrices.items(), strict=False):
    image = ax.imshow(matrix, vmin=-1, vmax=1, cmap="cividis")
    ax.set(title=title, xlabel="patch k", ylabel="patch j")
fig.colorbar(image, ax=axes[:2], label=r"$\theta_{jk}$", shrink=0.8)
axes[2].hist(pairs.flatten(), 60, color=COLORS[0])
axes[2].set(title="2000 draws", xlabel=r"$\theta_{jk}$", ylabel="pairs", yticks=[])
plt.show()

# %%
# What a blind guesser gets
# -------------------------
#
# Without hearing the signal the best answer is zero for every pair. ``chance_loss`` has a formula
# for its mean squared error, and the draws agree. To guess the places at random is twice as bad; an
# untrained model does no better than zero.

chance = task.chance_loss()
at_random = (shifts - shifts.roll(1, 0)).square().mean()
untrained = task.criterion()(*task(volts.expand(500, -1)))
share = (pairs.abs() * n_times < patch_size).float().mean()
print(f"chance_loss {chance:.4f}, or an error of {chance**0.5 * n_times / sfreq:.1f} s")
print(f"zero {shifts.square().mean():.4f}, at random {at_random:.4f}, untrained {untrained:.4f}")
print(f"pairs of patches that share samples: {100 * share:.1f} %")

# %%
# So what does the model see of your EEG? Forty waveforms of a second, a clock on eight of them,
# and a question about the others. To beat chance it has to hear what changes slowly over half a
# minute, or cheat a little: patches that share samples fit together like pieces of a jigsaw. How
# far that goes is on :ref:`sphx_glr_auto_examples_plot_07_inside_the_model.py`.
