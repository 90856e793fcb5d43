"""Compare variants of fine-tuning on the development subjects of the bundled dataset.

    python docs/experiments/variants.py ENCODERS OUT.csv

ENCODERS is a folder with one run of ``braindecode-pars pretrain`` per encoder. Four of subjects 0
to 11 are labeled and the other eight are tested, in eight draws. A score is the mean balanced
accuracy over the test subjects of a draw.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset
from real_recordings import AS_FROM_SCRATCH
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stored_table import store_table

from braindecode_pars import PARSClassifier, PARSEmbedder, as_sklearn, datasets
from braindecode_pars.evaluation import LogBandPower

N_DRAWS, N_LABELED = 8, 4
SIZES = dict(embed_dim=128, num_layers=4, num_heads=8, mlp_dim=256)
DESCRIBED: dict[str, Any] = dict(
    **AS_FROM_SCRATCH,
    amplitude=True,
    finetune_epochs=30,
    finetune_warmup=0.1,
    gradient_clip=1.0,
    validation=0,
    verbose=0,
)
#: Changes of DESCRIBED, by suffix of the name.
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    ", no amplitudes": dict(amplitude=False),
    ", validation": dict(validation=0.2),
    ", constant rate, no clipping": dict(finetune_warmup=None, gradient_clip=None),
    ", constant rate, no clipping, validation, no amplitudes": dict(
        finetune_warmup=None, gradient_clip=None, validation=0.2, amplitude=False
    ),
    ", no clipping": dict(gradient_clip=None),
    ", spatial filter": dict(head="spatial_filter"),
    ", rate 0.0003": dict(finetune_lr=3e-4),
    ", rate 0.003": dict(finetune_lr=3e-3),
    ", label smoothing 0.1": dict(label_smoothing=0.1),
    ", dropout 0.1": dict(drop_prob=0.1),
    ", no channel dropout": dict(channel_drop_prob=0.0),
    ", batches of 16": dict(finetune_batch_size=16),
    # 48 windows are two steps of 32.
    ", 100 steps": dict(finetune_epochs=50),
    ", 200 steps": dict(finetune_epochs=100),
    ", 600 steps": dict(finetune_epochs=300),
}
#: Changes of DESCRIBED for pretrained encoders only, by suffix of the name.
PRETRAINED: dict[str, dict[str, Any]] = {
    ", encoder rate 0.1": dict(encoder_lr_factor=0.1),
    ", spatial filter, encoder rate 0.1": dict(encoder_lr_factor=0.1, head="spatial_filter"),
    ", head trained": dict(freeze_encoder=True),
    ", head trained, spatial filter": dict(freeze_encoder=True, head="spatial_filter"),
}


def classifiers(encoders: Path, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield names and classifiers."""
    for name, changes in VARIANTS.items():
        settings = dict(DESCRIBED, random_state=seed, **SIZES) | changes
        yield f"from scratch{name}", PARSClassifier(None, **settings)
    for run in sorted(path for path in encoders.iterdir() if (path / "encoder.json").exists()):
        for name, changes in (VARIANTS | PRETRAINED).items():
            settings = dict(DESCRIBED, random_state=seed) | changes
            yield f"{run.name}{name}", PARSClassifier(encoder=run, **settings)
        features = PARSEmbedder(encoder=run, verbose=0)
        yield f"{run.name}, linear probe", make_pipeline(features, *_regression())
    yield "log band power, relative and absolute", make_pipeline(LogBandPower(), *_regression())
    yield "log band power, absolute", make_pipeline(LogBandPower(power="absolute"), *_regression())


def _regression() -> tuple[StandardScaler, LogisticRegression]:
    return StandardScaler(), LogisticRegression(C=0.01, max_iter=500, class_weight="balanced")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoders", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    subjects = [f"Subject{number:02}" for number in range(12)]
    of = {subject: datasets.mental_arithmetic([subject]) for subject in subjects}
    rng, rows = np.random.default_rng(0), []
    for draw in range(N_DRAWS):
        labeled = sorted(rng.permutation(subjects)[:N_LABELED])
        X, y, groups = as_sklearn(BaseConcatDataset([w for s in labeled for w in of[s].datasets]))
        for name, classifier in classifiers(arguments.encoders, draw):
            if isinstance(classifier, PARSClassifier):
                classifier.fit(X, y, groups=groups)
            else:
                classifier.fit(X, y)
            scores = []
            for subject in sorted(set(subjects) - set(labeled)):
                test, truth, _ = as_sklearn(of[subject])
                scores.append(balanced_accuracy_score(truth, classifier.predict(test)))
            rows.append((name, N_LABELED, draw, np.mean(scores).round(4)))
            columns = ["variant", "n_train_subjects", "draw", "balanced_accuracy"]
            table = pd.DataFrame(rows, columns=columns)
            command = "python docs/experiments/variants.py ENCODERS OUT.csv"
            store_table(table, arguments.out, command, index=False)


if __name__ == "__main__":
    main()
