"""
What are the input and the target of PARS?
==========================================

The input is 40 patches of one second from one channel. Eight of them have a start time; for the
other 32, PARS predicts the time shift between all pairs. Without using the signal, the best
prediction has an error of 11.7 seconds (root mean square). This page follows 30 seconds of one
channel, without training.

:bdg-success:`real recordings` :bdg-secondary:`10 s`

The recordings are bundled with the package (Zyma et al. 2019; ODC-BY 1.0).
"""

# %%
# From recording to window
# ------------------------
#
# The bundled dataset is filtered and has a sampling rate of 128 Hz. Here, it is cut into windows of
# 30 seconds.

import matplotlib.pyplot as plt
import torch

from braindecode_pars import PatchEncoder, datasets
from braindecode_pars.plotting.style import COLORS
from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.tokens import extract_patches, instance_norm, sinusoidal_positions

windows_ds = datasets.mental_arithmetic(["Subject05"], window_seconds=30)
window = windows_ds[0][0]
print(f"{len(windows_ds)} windows of shape {window.shape}")

# %%
# From window to one channel
# --------------------------
#
# In pretraining, a crop has **one** channel, so any montage can be used. The channel is drawn at
# random. This page uses P3, which has bursts of alpha. Instance normalization subtracts the mean
# and scales the variance to one, so the unit of the recording has no effect.

sfreq = patch_size = 128
volts = torch.as_tensor(window[windows_ds.datasets[0].raw.ch_names.index("P3")])[None]
x, n_times = instance_norm(volts), volts.shape[1]
print(f"{tuple(x.shape)}: SD {1e6 * volts.std():.0f} µV before, {x.std():.2f} after")
print("same result in microvolts:", torch.allclose(x, instance_norm(1e6 * volts), atol=1e-5))

# %%
# From channel to patches
# -----------------------
#
# PARS cuts 40 patches of one second. Each start time is drawn independently, so patches overlap and
# leave gaps. Eight patches keep their position, and the other 32 lose it. (This encoder is small.)

torch.manual_seed(0)
encoder = PatchEncoder(patch_size, embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128)
task = PARS(n_times, patch_size, encoder=encoder)
starts = task.sample_starts(1, generator=torch.Generator().manual_seed(91))
seconds = (starts[0] / sfreq).tolist()
is_known = [False] * task.n_masked + [True] * (task.n_patches - task.n_masked)

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(10, 4.6), sharex=True, height_ratios=[3, 2], layout="constrained"
)
top.plot(torch.arange(n_times) / sfreq, x[0], lw=0.6, color="0.25")
row_ends = []  # end of the last patch in each row; a patch goes into the first free row
for start, known in sorted(zip(seconds, is_known, strict=True)):
    row = next((i for i, end in enumerate(row_ends) if end <= start), len(row_ends))
    row_ends[row : row + 1] = [start + 1]
    style = dict(color=COLORS[0]) if known else dict(facecolor="#fbe9dd", edgecolor=COLORS[6])
    bottom.broken_barh([(start, 1)], (-row - 0.8, 0.7), **style)
    if known:
        top.axvspan(start, start + 1, color=COLORS[0], alpha=0.15, lw=0)
top.set(ylabel="P3, standard deviations", xlim=(0, n_times / sfreq))
bottom.set(xlabel="seconds", ylabel="patches", yticks=[], ylim=(-len(row_ends), 0.2))
bottom.set_title("blue: position known, orange: position lost", fontsize="medium")
# sphinx_gallery_alt = "Thirty seconds of one channel; below it 40 patches, eight of them with a"
# sphinx_gallery_alt = "known position"
plt.show()

# %%
# The next figure shows the input of the model: 40 patches without order, eight with a start time
# (blue). Several other patches contain alpha, but the waveforms alone do not indicate which patch
# was first.

patches = extract_patches(x, starts, patch_size)  # (1, 40, 128)
fig, axes = plt.subplots(5, 8, figsize=(10, 4.6), sharey=True, layout="constrained")
for ax, patch, start, known in zip(axes.flat, patches[0], seconds, is_known, strict=True):
    ax.plot(patch, lw=0.9, color=COLORS[0 if known else 6])
    ax.set_title(f"{start:.1f} s" if known else "?", fontsize="small")
    ax.axis("off")
# sphinx_gallery_alt = "Forty short waveforms in five rows; eight have a start time, the others a"
# sphinx_gallery_alt = "question mark"
plt.show()

# %%
# From patches to tokens
# ----------------------
#
# One linear layer maps the 128 samples of a patch to a token. A token does not contain the time of
# its patch, so a sinusoidal embedding of the start time is added. Start times are real numbers in
# units of one patch. Fine-tuning uses the same embedding for patches at 0, 1, 2, ... seconds. Left:
# the sine entries of the embedding, from -1 (dark) to 1. The upper entries change within seconds,
# the lower ones hardly change. Right: cosine similarity to the embedding of 10 seconds, which is
# highest for nearby times.

tokens = encoder.tokenize(patches)  # (1, 40, 64)
times = torch.arange(0, 29, 0.05)
codes = sinusoidal_positions(times, encoder.embed_dim)
similarity = codes @ sinusoidal_positions(torch.tensor(10.0), encoder.embed_dim)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
left.imshow(codes[:, ::2].T.numpy(), aspect="auto", extent=(0, 29, 63, -1), cmap="cividis")
left.set(xlabel="start of the patch, seconds", ylabel="entry of the embedding")
right.plot(times, similarity / similarity.max(), color=COLORS[0])
right.set(xlabel="start of the patch, seconds", ylabel="cosine similarity to 10 s", ylim=(0, 1.05))
# sphinx_gallery_alt = "Left: a striped image of the embedding. Right: similarity with a peak at"
# sphinx_gallery_alt = "ten seconds"
plt.show()

# %%
# The mask token, a learnable vector, is added to all tokens without a position. Patches are drawn
# in random order, so the first 32 are a random choice. After the encoder, the decoder compares all
# pairs of these 32 patches. The code does this step by step, and then in one call:

positions = sinusoidal_positions(starts[:, task.n_masked :] / patch_size, encoder.embed_dim)
masked = task.mask_token.expand(1, task.n_masked, -1)
features = encoder(tokens + torch.cat([masked, positions], dim=1))  # (1, 40, 64)
step_by_step = task.decoder(features[:, : task.n_masked], features)
in_one_call = task.predict_shifts(volts, starts)  # (1, 32, 32)
print("same prediction:", torch.allclose(step_by_step, in_one_call, atol=1e-5))

# %%
# Target: the time shift between two patches
# ------------------------------------------
#
# The target of patches j and k is their shift, :math:`\theta_{jk} = (t_j - t_k) / T`, in units of
# the window length. Left: patches in the order of the draw. Middle: the same patches sorted by
# time. Right: the shifts of 2000 draws; small shifts are the most frequent.

target = relative_shifts(starts[:, : task.n_masked], n_times)[0].numpy()
by_time = starts[0, : task.n_masked].argsort().numpy()
draws = task.sample_starts(2000, generator=torch.Generator().manual_seed(1))
shifts = relative_shifts(draws[:, : task.n_masked], n_times)
pairs = shifts[:, ~torch.eye(task.n_masked, dtype=bool)]  # of two different patches

fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
matrices = {"order of the draw": target, "order of time": target[by_time][:, by_time]}
for ax, (title, matrix) in zip(axes, matrices.items(), strict=False):
    image = ax.imshow(matrix, vmin=-1, vmax=1, cmap="cividis")
    ax.set(title=title, xlabel="patch k", ylabel="patch j")
fig.colorbar(image, ax=axes[:2], label=r"$\theta_{jk}$", shrink=0.8)
axes[2].hist(pairs.flatten(), 60, color=COLORS[0])
axes[2].set(title="2000 draws", xlabel=r"$\theta_{jk}$", ylabel="pairs", yticks=[])
# sphinx_gallery_alt = "A matrix of shifts in random order, the same matrix ordered by time, and a"
# sphinx_gallery_alt = "peaked histogram"
plt.show()

# %%
# Chance level
# ------------
#
# Without using the signal, the best prediction is zero for every pair. ``chance_loss`` computes the
# mean squared error of this prediction from a formula, and the 2000 draws agree with it. Random
# positions double the error. A randomly initialized model is slightly worse than predicting zero.

chance = task.chance_loss()
at_random = (shifts - shifts.roll(1, 0)).square().mean()
random_init = task.criterion()(*task(volts.expand(500, -1)))
proportion = (pairs.abs() * n_times < patch_size).float().mean()
print(f"chance_loss {chance:.4f}, an RMS error of {chance**0.5 * n_times / sfreq:.1f} s")
print(f"predicting zero {shifts.square().mean():.4f}, random positions {at_random:.4f}")
print(f"randomly initialized model {random_init:.4f}")
print(f"pairs of patches that share samples: {100 * proportion:.1f} %")

# %%
# To predict better than the chance level, the model needs features that change slowly over half a
# minute, or a shortcut: overlapping patches share samples and can be matched. The effect of this
# shortcut is measured in :ref:`sphx_glr_auto_examples_inside_plot_inside_the_model.py`.

# sphinx_gallery_thumbnail_path = "images/thumbnails/recording_to_tokens.png"
