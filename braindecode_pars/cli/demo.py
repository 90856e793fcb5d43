"""The demo: an encoder in a minute, probes with few labels beside simple ones, and PARS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset
from pyriemann.tangentspace import TangentSpace
from rich.console import Console
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from torch import Tensor

from braindecode_pars import __version__, as_sklearn, datasets, plotting
from braindecode_pars._common.files import check_may_write, replace_file, to_json
from braindecode_pars._common.seeding import seeded
from braindecode_pars._common.tables import LOSSES, RELATIVE, part_of
from braindecode_pars.baselines import CENTRED
from braindecode_pars.cli.terminal import make_console, print_table
from braindecode_pars.datasets import eegmat
from braindecode_pars.estimators import (
    FewLabelsClassifier,
    PARSClassifier,
    PARSEmbedder,
    SubjectCentering,
)
from braindecode_pars.estimators.linear_probe import DEFAULT_C, LinearProbe
from braindecode_pars.evaluation import (
    ChannelFeatures,
    LogBandPower,
    SpatialCovariance,
    features_computed_once,
    label_efficiency,
    paired_tests,
    score_table,
    summarize,
)
from braindecode_pars.plotting.style import save_figure
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.windows import SingleChannelWindows

COMMAND = "braindecode-pars demo"
DATA = "rest or mental arithmetic"
METRIC, CHANCE = "balanced_accuracy", 0.5

#: The package's defaults were chosen on the first people of the sample, so no score is of them.
PEOPLE = [f"Subject{number:02}" for number in range(24)]
UNSCORED, SCORED = PEOPLE[:12], PEOPLE[12:]

#: Numbers of labelled people, and draws of them.
N_LABELLED, N_DRAWS = (2, 4, 8), 20
#: The number that is also fine-tuned with, and that the last sentence is about; draws for it.
N_COMPARED, N_FINE_TUNED = 4, 2

#: A new encoder, and its pretraining: 1,200 steps with crops of three seconds.
SIZES: dict[str, Any] = dict(embed_dim=128, num_layers=4, num_heads=8, mlp_dim=256)
PRETRAINING: dict[str, Any] = dict(**SIZES, pretrain_batch_size=64, pretrain_lr=1e-3)
SFREQ, SECONDS = 128.0, 3.0
#: The new encoder, the signals in an epoch of its pretraining on noise, and these epochs.
OURS, N_SIGNALS, EPOCHS = "features on noise", 3840, 20

#: Pretraining of PARS and fine-tuning, with the sizes of PARSClassifier.
PARS_PRETRAINING: dict[str, Any] = dict(pretrain_epochs=300, pretrain_lr=1e-3)
FINE_TUNING: dict[str, Any] = dict(finetune_epochs=30, recenter="subject", verbose=0)

#: The encoder in the package that is compared, also in the vote.
PACKAGED = "small"
BASELINES = ("band power", "tangent space", "classical features")
VOTE, FINE_TUNED, SCRATCH = "vote (few-labels)", "PARS, fine-tuned", "scratch"


def run_demo(out: Path, *, seed: int) -> None:
    """Pretrain an encoder, and score probes and PARS with the labels of few people.

    Parameters
    ----------
    out : Path
        Folder for the encoder, the figures and the scores.
    seed : int
        Seed of the draws of labelled people and of all training.
    """
    console = make_console()
    settings = out / "demo.json"  # also marks the folder as that of a demo
    is_demo = settings.is_file() and f'"{COMMAND}"' in settings.read_text()
    check_may_write(out, "a demo", is_ours=is_demo)

    # The headings below are the comments of the stages.
    console.rule("1  data")
    windows = datasets.mental_arithmetic()
    about = dict(command=COMMAND, version=__version__, data=DATA, seed=seed)
    replace_file(settings, to_json(about))
    _describe(console, windows)

    console.rule("2  pretraining without labels")
    # No signal is drawn twice, so all are held out.
    noise = datasets.SyntheticSignals(SFREQ, n_windows=N_SIGNALS).windows(int(SECONDS * SFREQ))
    embedder = PARSEmbedder("features", pretrain_epochs=EPOCHS, random_state=seed, **PRETRAINING)
    embedder.fit(noise).save(out / "encoder")
    scored = datasets.mental_arithmetic(SCORED)
    pars = PARSEmbedder("pars", random_state=seed, **PARS_PRETRAINING)
    pars.fit(datasets.mental_arithmetic(UNSCORED))
    console.print(
        f"{OURS}: {describe_losses(embedder, noise, seed)}\n"
        f"PARS on sample: {describe_losses(pars, scored, seed)}"
    )
    draw_losses({OURS: embedder, "PARS on sample": pars}, out / "pretraining.png")
    draw_shifts(pars, scored, out / "shifts.png", seed)

    console.rule("3  training with few labels")
    draws = range(seed * N_DRAWS, (seed + 1) * N_DRAWS)
    with features_computed_once():
        probed = _scores(make_probes(OURS, embedder), windows, N_LABELLED, draws)
    tuned = _scores(make_classifiers(pars), windows, [N_COMPARED], draws[:N_FINE_TUNED])
    scores = pd.concat([probed, tuned], ignore_index=True)
    scores.to_csv(out / "scores.csv", index=False)

    console.rule(f"4  balanced accuracy of the {len(SCORED)} scored people")
    show_scores(console, scores)
    console.print(conclusion(scores, OURS))
    draw_scores(probed, out / "balanced_accuracy.png")
    console.print(
        f"Written to {out}: encoder/, balanced_accuracy.png, pretraining.png, shifts.png, "
        f'scores.csv.\nFine-tune the encoder with PARSClassifier(encoder="{out / "encoder"}").'
    )


def _describe(console: Console, windows: BaseConcatDataset) -> None:
    n_chans, n_times = windows[0][0].shape
    sfreq = windows.datasets[0].raw.info["sfreq"]
    card = eegmat.CARD
    console.print(
        f"{DATA}, {len(PEOPLE)} people: {len(windows)} windows, {n_chans} channels x "
        f"{n_times / sfreq:g} s at {sfreq:g} Hz\n"
        f"From {card['name']} {card['version']}, {card['address']}, licence {card['licence']}.\n"
        f"Cite {card['reference']}.\n"
        f"{UNSCORED[0]} to {UNSCORED[-1]}: without labels, or as labelled people; never scored.\n"
        f"{SCORED[0]} to {SCORED[-1]}: scored, by halves; the other half may be labelled then."
    )


def _scores(
    methods: Mapping[str, BaseEstimator],
    windows: BaseConcatDataset,
    n_labelled: Sequence[int],
    draws: Sequence[int],
) -> pd.DataFrame:
    """Score each half of the people while the others, and those never scored, may be labelled."""
    _, _, people = as_sklearn(windows)
    halves = [np.isin(people, SCORED[::2]), np.isin(people, SCORED[1::2])]
    return label_efficiency(
        methods,
        windows,
        n_train_subjects=n_labelled,
        cv=[(np.flatnonzero(~half), np.flatnonzero(half)) for half in halves],
        metrics=[METRIC],
        seeds=draws,
        dataset=DATA,
        equal_sizes=False,
    )


def make_probes(ours: str, encoder: PARSEmbedder) -> dict[str, BaseEstimator]:
    """Return the probes by name, centred by subject and plain; the encoder has the name ours."""
    embedding: dict[str, Any] = dict(pooling="channels", verbose=0)
    simple = (LogBandPower(), make_pipeline(SpatialCovariance(), TangentSpace()), ChannelFeatures())
    features: dict[str, TransformerMixin] = {
        **dict(zip(BASELINES, simple, strict=True)),
        "random encoder": PARSEmbedder(None, **SIZES, **embedding),
        ours: PARSEmbedder(encoder=encoder, **embedding),
        "small": PARSEmbedder(encoder=PACKAGED, **embedding),
    }
    probes: dict[str, BaseEstimator] = {}
    for suffix, recenter in ((CENTRED, "subject"), ("", None)):
        for name, each in features.items():
            taken: Any = SubjectCentering(each) if recenter else each
            probes[name + suffix] = LinearProbe(taken, C=DEFAULT_C)
        probes[VOTE + suffix] = FewLabelsClassifier(PACKAGED, recenter=recenter, verbose=0)
    return probes


def make_classifiers(pars: PARSEmbedder) -> dict[str, BaseEstimator]:
    """Return the network that is fine-tuned from the encoder, and the same one from scratch."""
    return {
        FINE_TUNED + CENTRED: PARSClassifier(encoder=pars, **FINE_TUNING),
        SCRATCH + CENTRED: PARSClassifier(None, **FINE_TUNING),
    }


def describe_losses(embedder: PARSEmbedder, held_out: Any, seed: int) -> str:
    """Return the last training loss, that of its parts, and the loss of held-out windows.

    All are relative to chance.
    """
    last = embedder.pretraining_history_[-1]
    parts = [f"{part} {last[name]:.2f}" for name in last if (part := part_of(name)) is not None]
    task = embedder.task_.eval()
    with seeded(seed), torch.inference_mode():
        prediction, target = task(_crops(held_out, task.n_times))
        loss = (task.criterion()(prediction, target) / task.chance_loss()).item()
    by_part = f"\n  in training, by part: {', '.join(parts)}" if parts else ""
    return f"loss relative to chance {last[RELATIVE]:.2f} in training, {loss:.2f} held out{by_part}"


def _crops(windows: Any, n_times: int) -> Tensor:
    """Return one random channel of every window, of shape (n_windows, n_times)."""
    single = SingleChannelWindows(windows, n_times)
    return torch.stack([single[i][0] for i in range(len(single))])


def show_scores(console: Console, scores: pd.DataFrame) -> None:
    """Print a row for each method: centred by subject, and the means without that."""
    wide = score_table(scores)[METRIC].droplevel("dataset").unstack("n_train_subjects", sort=False)
    wide = wide[list(N_LABELLED)].fillna("")
    names = [name.removesuffix(CENTRED) for name in wide.index if name.endswith(CENTRED)]
    plain = wide.reindex(names).fillna("")
    rows = [["chance level"] + [f"{CHANCE:.3f}"] * (2 * len(N_LABELLED))]
    for name in names:
        means = [text.split(" ")[0] for text in plain.loc[name]]
        rows.append([name, *wide.loc[name + CENTRED], *means])
    header = ["method", *(f"{n} people" for n in N_LABELLED), *(f"plain, {n}" for n in N_LABELLED)]
    title = (
        f"{N_DRAWS} draws of the labelled people; mean ± SD over the scored; centred by subject "
        "(transductive)"
    )
    print_table(console, rows, header, title=title, text=header[:1])


def conclusion(scores: pd.DataFrame, ours: str) -> str:
    """Say which method is best, and how far ours and PARS are ahead of what they should beat."""
    compared = scores[scores["n_train_subjects"] == N_COMPARED]
    compared = compared[compared["method"].str.endswith(CENTRED)]
    compared = compared.assign(method=compared["method"].str.removesuffix(CENTRED))
    means = summarize(compared).set_index("method")["mean"]
    best = means.drop([FINE_TUNED, SCRATCH]).idxmax()
    baseline = means[list(BASELINES)].idxmax()

    def difference(method: str, other: str) -> str:
        pair = compared[compared["method"].isin([method, other])]
        [test] = paired_tests(pair, METRIC, against=other).itertuples()
        where = "ahead of" if test.mean_difference > 0 else "behind"
        return (
            f"{method} ({means[method]:.3f}) is {abs(test.mean_difference):.3f} {where} {other} "
            f"(95 % interval {test.ci_low:.3f} to {test.ci_high:.3f}, p = {test.p:.2g})"
        )

    return (
        f"With {N_COMPARED} labelled people, {best} is best ({means[best]:.3f}).\n"
        f"{difference(ours, baseline)}, the best of the simple baselines.\n"
        f"{difference(FINE_TUNED, SCRATCH)}, in {N_FINE_TUNED} draws."
    )


def draw_scores(probed: pd.DataFrame, file: Path) -> None:
    """Draw the scores of the centred probes by the number of labelled people."""
    centred = probed[probed["method"].str.endswith(CENTRED)]
    centred = centred.assign(method=centred["method"].str.removesuffix(CENTRED))
    label = "balanced accuracy, centred by subject"
    axes = plotting.label_efficiency(centred, metric=METRIC, label=label, chance=CHANCE)
    axes.set_xlabel("labelled people")
    save_figure(axes, file, dpi=150, bbox_inches="tight")


def draw_losses(pretrained: dict[str, PARSEmbedder], file: Path) -> None:
    """Draw the loss of each whole task by epoch."""
    tables = [each.history_.assign(method=name) for name, each in pretrained.items()]
    losses = pd.concat(tables, ignore_index=True)[["method", "phase", "epoch", *LOSSES]]
    save_figure(plotting.training_curves(losses)[0], file, dpi=150, bbox_inches="tight")


def draw_shifts(pars: PARSEmbedder, windows: BaseConcatDataset, file: Path, seed: int) -> None:
    """Draw the true and the predicted shifts of the held-out window with the median error."""
    task: Any = pars.task_.eval()
    with seeded(seed), torch.inference_mode():
        x = _crops(windows, task.n_times)
        starts = task.sample_starts(len(x))
        prediction = task.predict_shifts(x, starts)  # (n_windows, n_masked, n_masked)
    masked = starts[:, : task.n_masked]
    target = relative_shifts(masked, task.n_times)
    errors = (prediction - target).square().mean(dim=(1, 2))
    median = errors.argsort()[len(errors) // 2]
    shifts = prediction[median].numpy(), target[median].numpy()
    axes = plotting.shift_matrices(*shifts)
    axes[0].figure.suptitle("window with the median error, of a person who is held out")
    save_figure(axes[0], file, dpi=150)
