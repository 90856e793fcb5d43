"""Time of the estimators on the recordings in the package, relative to bare passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch.nn import functional as F

from braindecode_pars._warnings import quiet
from braindecode_pars.benchmarks._measuring import Row, fastest
from braindecode_pars.datasets import mental_arithmetic
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.tokens import grid_patches, instance_norm
from braindecode_pars.windows import as_sklearn

__all__ = ["estimators"]

#: Sizes of the encoder in the package.
SIZES = dict(embed_dim=128, num_layers=4, num_heads=8, mlp_dim=256)
BATCH_SIZE = 32


def estimators(n_epochs: int = 3, rounds: int = 2) -> Iterator[Row]:
    """Time fine-tuning on all subjects of the sample, and embedding their windows."""
    windows = mental_arithmetic()
    X, y, _ = as_sklearn(windows)
    x = torch.from_numpy(np.stack(list(X)).astype("float32"))
    labels = torch.from_numpy(np.asarray(y))

    # Fine-tuning: the same number of steps, without the estimator.
    clf = PARSClassifier(None, **SIZES, finetune_epochs=n_epochs, device="cpu", verbose=0)
    with quiet():  # such a short training learns little
        module = clf.fit(windows).net_.module_.train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)

    def bare_steps() -> None:
        for _ in range(n_epochs):
            batches = torch.randperm(len(x)).split(BATCH_SIZE)
            for chosen in batches:
                optimizer.zero_grad()
                F.cross_entropy(module(x[chosen]), labels[chosen]).backward()
                optimizer.step()

    with quiet():
        fit, bare = fastest(lambda: clf.fit(windows), bare_steps, rounds=rounds)
    what = "fine-tuning on 24 subjects of the sample / bare steps"
    yield Row(what, fit / bare, aim=1.2, over=1.5)

    # Embedding: the same windows through the encoder, without the estimator.
    embedder = PARSEmbedder(encoder="small", device="cpu", verbose=0).fit(windows)
    encoder = load_encoder("small").encoder.eval()

    def bare_encoding() -> None:
        with torch.inference_mode():
            for batch in x.flatten(0, 1).split(BATCH_SIZE * x.shape[1]):
                patches = grid_patches(instance_norm(batch), encoder.patch_size)
                encoder(encoder.tokenize(patches))

    embed, bare = fastest(lambda: embedder.transform(windows), bare_encoding, rounds=rounds)
    rate = x.shape[0] * x.shape[1] / embed
    yield Row("embedding channels of 10 s with the encoder in the package", rate, "per second")
    yield Row("embedding / bare encoder", embed / bare, aim=1.2, over=1.5)
