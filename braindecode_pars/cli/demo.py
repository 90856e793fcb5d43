"""The demo: data, pretraining, fine-tuning and scores, small enough for a laptop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from braindecode.datasets import BaseConcatDataset
from rich.console import Console
from sklearn.base import BaseEstimator
from torch import Tensor

from braindecode_pars import __version__, datasets, plotting
from braindecode_pars._common.files import check_may_write, replace_file, to_json
from braindecode_pars._common.seeding import seeded
from braindecode_pars._common.tables import LOSSES, RELATIVE, part_of
from braindecode_pars.baselines import make_methods
from braindecode_pars.cli.evaluation_report import save_figure as save_scores
from braindecode_pars.cli.evaluation_report import show_scores
from braindecode_pars.cli.terminal import make_console
from braindecode_pars.datasets import eegmat
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder
from braindecode_pars.evaluation import label_efficiency
from braindecode_pars.plotting.style import save_figure
from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.base import find_task
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.pretrained.saved import load_encoder
from braindecode_pars.windows import SingleChannelWindows

COMMAND = "braindecode-pars demo"
DATA = "mental arithmetic"

#: Subjects of the sample without labels. The package's defaults were chosen on them, so no score is
#: of them.
N_UNLABELED = 12
#: Labelled subjects of a fit, and folds of the others.
N_LABELED, N_FOLDS = 4, 3

#: The encoder in the package that pretraining continues from, unless a task is named.
ENCODER = "small"
#: Pretraining of that encoder, and of a new one. An epoch has one channel of each window.
CONTINUED: dict[str, Any] = dict(pretrain_epochs=50, pretrain_lr=1e-3)
NEW: dict[str, Any] = dict(pretrain_epochs=150)
FINETUNE: dict[str, Any] = dict(finetune_epochs=30)


def run_demo(out: Path, *, pretext: str | None, seed: int) -> None:
    """Pretrain without labels, fine-tune with few labels, and score on held-out subjects.

    Parameters
    ----------
    out : Path
        Folder for the encoder, the figures and the scores.
    pretext : str | None
        Pretext task of a new encoder by name. None means that the encoder in the package continues
        with its own task.
    seed : int
        Seed of the draws of labelled subjects and of all training.
    """
    console = make_console()
    settings = out / "demo.json"  # also marks the folder as that of a demo
    is_demo = settings.is_file() and f'"{COMMAND}"' in settings.read_text()
    check_may_write(out, "a demo", is_ours=is_demo)

    # The headings below are the comments of the stages.
    console.rule("1  data")
    subjects = [f"Subject{number:02}" for number in range(24)]
    unlabeled = datasets.mental_arithmetic(subjects[:N_UNLABELED])
    labeled = datasets.mental_arithmetic(subjects[N_UNLABELED:])
    embedder = make_embedder(pretext, seed)
    given = dict(data=DATA, encoder=embedder.encoder, pretext=pretext, seed=seed)
    replace_file(settings, to_json(dict(command=COMMAND, version=__version__, **given)))
    _describe(console, unlabeled, labeled)

    console.rule("2  pretraining without labels")
    if pretext is None:
        console.print(
            f"The encoder {ENCODER!r} continues with its task {embedder.pretext!r}.\n"
            "The decoder is new, so that the loss starts near 1, the chance level."
        )
    folder = out / "encoder"
    embedder.fit(unlabeled).save(folder)
    console.print(describe_losses(embedder, labeled, seed))
    figures = draw_pretraining(embedder, labeled, out, seed)

    console.rule(f"3  fine-tuning, {N_LABELED} labelled subjects in each of {N_FOLDS} folds")
    scores = label_efficiency(
        make_classifiers(pretext, folder),
        labeled,
        n_train_subjects=[N_LABELED],
        cv=N_FOLDS,
        metrics=("kappa", "balanced_accuracy"),
        seeds=[seed],
        dataset=DATA,
    ).sort_values("subject", kind="stable")  # not in the order of the folds
    scores.to_csv(out / "scores.csv", index=False)

    console.rule("4  scores on held-out subjects")
    show_scores(console, scores, over="subjects")
    figures.append(save_scores(scores, out, plotting.paired_bars))
    console.print(
        f"Written to {out}: encoder/, {', '.join(file.name for file in figures)}, scores.csv.\n"
        f'Fine-tune an encoder with PARSClassifier(encoder="{folder}").'
    )


def _describe(console: Console, unlabeled: BaseConcatDataset, labeled: BaseConcatDataset) -> None:
    card = eegmat.CARD
    console.print(
        f"{DATA}\n"
        f"From {card['name']} {card['version']}, {card['address']}, licence {card['licence']}.\n"
        f"Cite {card['reference']}."
    )
    for what, windows in (("without", unlabeled), ("with", labeled)):
        n_chans, n_times = windows[0][0].shape
        sfreq = windows.datasets[0].raw.info["sfreq"]
        console.print(
            f"{windows.description['subject'].nunique()} subjects {what} labels: {len(windows)} "
            f"windows, {n_chans} channels x {n_times / sfreq:g} s at {sfreq:g} Hz"
        )


def make_embedder(pretext: str | None, seed: int) -> PARSEmbedder:
    """Return the unfitted embedder of a new encoder, or of one that continues with its own task."""
    if pretext is not None:
        return PARSEmbedder(pretext, random_state=seed, verbose=1, **NEW)
    card = load_encoder(ENCODER).card
    return PARSEmbedder(
        str(card.task),
        pretext_params=dict(card.task_params),
        encoder=ENCODER,
        continue_pretraining=True,
        random_state=seed,
        verbose=1,
        **CONTINUED,
    )


def make_classifiers(pretext: str | None, folder: Path) -> dict[str, BaseEstimator]:
    """Return the unfitted classifiers by method name, one with the encoder in ``folder``.

    An encoder that continued is compared with the one in the package, fine-tuned
    (``"pretrained"``) and frozen (``"pretrained probe"``).
    """
    training: dict[str, Any] = dict(verbose=0, **FINETUNE)
    fine_tuned = PARSClassifier(encoder=folder, **training)
    if pretext is not None:
        others = make_methods(["scratch", "band-power"], **training)
        return {find_task(pretext).__name__: fine_tuned, **others}
    others = make_methods(["scratch", "probe", "band-power"], encoder=ENCODER, **training)
    return {"pretrained": others.pop("pretrained"), "continued": fine_tuned, **others}


def describe_losses(embedder: PARSEmbedder, held_out: BaseConcatDataset, seed: int) -> str:
    """Return the last training loss, that of its parts, and the loss of held-out windows.

    All are relative to chance.
    """
    last = embedder.pretraining_history_[-1]
    parts = [f"{part} {last[name]:.2f}" for name in last if (part := part_of(name)) is not None]
    by_part = f"\nTraining loss by part: {', '.join(parts)}" if parts else ""
    task = embedder.task_.eval()
    with seeded(seed), torch.inference_mode():
        prediction, target = task(_crops(held_out, task.n_times))
        loss = (task.criterion()(prediction, target) / task.chance_loss()).item()
    return (
        f"Training loss relative to chance: {last[RELATIVE]:.2f}\n"
        f"Loss relative to chance on held-out subjects: {loss:.2f}{by_part}"
    )


def _crops(windows: BaseConcatDataset, n_times: int) -> Tensor:
    """Return one random channel of every window, of shape (n_windows, n_times)."""
    single = SingleChannelWindows(windows, n_times)
    return torch.stack([single[i][0] for i in range(len(single))])


def draw_pretraining(
    embedder: PARSEmbedder, held_out: BaseConcatDataset, out: Path, seed: int
) -> list[Path]:
    """Draw the loss of the whole task by epoch and, for PARS, shifts; return the files."""
    figures = [out / "pretraining.png"]
    if isinstance(embedder.task_, PARS):
        figures.append(out / "shifts.png")
        draw_shifts(embedder.task_, held_out, figures[-1], seed)
    method = "continued" if embedder.encoder else type(embedder.task_).__name__
    losses = embedder.history_.assign(method=method)[["method", "phase", "epoch", *LOSSES]]
    save_figure(plotting.training_curves(losses)[0], figures[0], dpi=150, bbox_inches="tight")
    return figures


def draw_shifts(task: PARS, windows: BaseConcatDataset, file: Path, seed: int) -> None:
    """Draw the true and the predicted shifts of the held-out window with the median error."""
    with seeded(seed), torch.inference_mode():
        x = _crops(windows, task.n_times)
        starts = task.sample_starts(len(x))
        prediction = task.eval().predict_shifts(x, starts)  # (n_windows, n_masked, n_masked)
    masked = starts[:, : task.n_masked]
    target = relative_shifts(masked, task.n_times)
    errors = (prediction - target).square().mean(dim=(1, 2))
    median = errors.argsort()[len(errors) // 2]
    shifts = prediction[median].numpy(), target[median].numpy()
    axes = plotting.shift_matrices(*shifts, starts=masked[median].numpy())
    axes[0].figure.suptitle("window with the median error, from a held-out subject")
    save_figure(axes[0], file, dpi=150)
