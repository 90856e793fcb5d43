"""
What are the input and the target of PARS?
==========================================

The input is 40 patches of one second, cut from one channel. PARS receives the start times of eight
patches. For the other 32 patches, it predicts the time shift between the two patches of each pair.
If the signal is not used, the best prediction has an error of 11.7 seconds (root mean square, RMS).
This page shows each step for a bundled recording (Zyma et al. 2019; ODC-BY 1.0). No model is
trained.

:bdg-success:`real recordings` :bdg-secondary:`10 s`
"""

# %%
# From recording to window
# ------------------------
#
# The bundled recordings have a sampling rate of 128 Hz. They are cut into windows of 30 seconds.

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
# PARS receives crops (random excerpts) of **one** randomly drawn channel, so recordings can have
# any montage. This page uses channel P3, which contains bursts of alpha. Instance normalization
# subtracts the mean of the crop and scales its variance to one, so the unit has no effect.

sfreq = patch_size = 128
volts = torch.as_tensor(window[windows_ds.datasets[0].raw.ch_names.index("P3")])[None]
x, n_times = instance_norm(volts), volts.shape[1]
print(f"{tuple(x.shape)}: SD {1e6 * volts.std():.0f} µV before, {x.std():.2f} after")
print("same result in microvolts:", torch.allclose(x, instance_norm(1e6 * volts), atol=1e-5))

# %%
# From channel to patches
# -----------------------
#
# PARS cuts 40 patches of one second. Each start time is drawn independently, so some patches
# overlap. Eight patches keep their position (start time), and the positions of the other 32 patches
# are hidden. (The encoder on this page is smaller than in the paper.)

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
bottom.set_title("blue: position known, orange: position hidden", fontsize="medium")
# sphinx_gallery_alt = "Thirty seconds of one channel; below it 40 patches, eight of them blue"
plt.show()

# %%
# The next figure shows the input of the model: 40 patches in random order, eight of them with a
# start time (blue). From the waveforms, it is not clear which of the orange patches was first.

patches = extract_patches(x, starts, patch_size)  # (1, 40, 128)
fig, axes = plt.subplots(5, 8, figsize=(10, 4.6), sharey=True, layout="constrained")
for ax, patch, start, known in zip(axes.flat, patches[0], seconds, is_known, strict=True):
    ax.plot(patch, lw=0.9, color=COLORS[0 if known else 6])
    ax.set_title(f"{start:.1f} s" if known else "?", fontsize="small")
    ax.axis("off")
# sphinx_gallery_alt = "Forty short waveforms: eight with a start time, 32 with a question mark"
plt.show()

# %%
# From patches to tokens
# ----------------------
#
# One linear layer maps the 128 samples of a patch to a token, a vector of 64 numbers. A token does
# not contain the time of the patch, so a sinusoidal embedding of the start time (in units of the
# patch length) is added. In fine-tuning, patches start at 0, 1, 2, ... seconds.
#
# Left: the sine entries of the embedding (rows) against the start time, from -1 (dark) to 1. The
# upper entries change within seconds, and the lower entries hardly change. Right: the cosine
# similarity of each embedding to that of the start time 10 s is highest close to 10 s.

tokens = encoder.tokenize(patches)  # (1, 40, 64)
times = torch.arange(0, 29, 0.05)
codes = sinusoidal_positions(times, encoder.embed_dim)
similarity = codes @ sinusoidal_positions(torch.tensor(10.0), encoder.embed_dim)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
left.imshow(codes[:, ::2].T.numpy(), aspect="auto", extent=(0, 29, 63, -1), cmap="cividis")
left.set(xlabel="start of the patch, seconds", ylabel="entry of the embedding")
right.plot(times, similarity / similarity.max(), color=COLORS[0])
right.set(xlabel="start of the patch, seconds", ylabel="cosine similarity to 10 s", ylim=(0, 1.05))
# sphinx_gallery_alt = "Left: a striped image of the embedding. Right: similarity, highest at 10 s"
plt.show()

# %%
# If the position of a patch is hidden, a learnable vector (the mask token) is added instead of the
# embedding. The 32 patches with hidden positions are the first ones in the random order. The
# encoder processes all 40 tokens, and the decoder then predicts the time shift of each pair of the
# 32 patches. The code does this step by step, and then in one call:

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
# The target of two patches j and k is their time shift, :math:`\theta_{jk} = (t_j - t_k) / T`,
# where :math:`t_j` is the start time of patch j and :math:`T` the window length. Left: the shifts
# of all pairs, with patches in random order. Middle: the same, with patches sorted by time. Right:
# histogram of the shifts in 2000 draws of the patches. Small shifts are the most frequent.

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
# sphinx_gallery_alt = "A matrix of shifts in random order, one ordered by time, and a histogram"
plt.show()

# %%
# Chance level
# ------------
#
# The best prediction that does not use the signal is zero for every pair. ``chance_loss`` computes
# its mean squared error; the mean over the 2000 draws is almost the same. Predicting the shifts of
# random positions doubles the error. A randomly initialized model is slightly worse than predicting
# zero.

chance = task.chance_loss()
at_random = (shifts - shifts.roll(1, 0)).square().mean()
random_init = task.criterion()(*task(volts.expand(500, -1)))
proportion = (pairs.abs() * n_times < patch_size).float().mean()
print(f"chance_loss {chance:.4f}, an RMS error of {chance**0.5 * n_times / sfreq:.1f} s")
print(f"predicting zero {shifts.square().mean():.4f}, random positions {at_random:.4f}")
print(f"randomly initialized model {random_init:.4f}")
print(f"pairs of patches that share samples: {100 * proportion:.1f} %")

# %%
# To predict better than the chance level, the model can use properties of the signal that change
# slowly over half a minute. As a shortcut, it can also match patches that share samples.
# :doc:`plot_inside_the_model` measures the effect of this shortcut.

# sphinx_gallery_thumbnail_path = "images/thumbnails/recording_to_tokens.png"
