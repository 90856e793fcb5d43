"""The demo: data, pretraining, fine-tuning and scores, small enough for a laptop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from rich.console import Console
from torch import Tensor

from braindecode_pars import plotting
from braindecode_pars._columns import RELATIVE, part_of
from braindecode_pars.baselines import make_methods
from braindecode_pars.cli._console import make_console
from braindecode_pars.cli._scores import save_figure, show_scores
from braindecode_pars.datasets import physionet_mi, simulated
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder
from braindecode_pars.evaluation import leave_one_subject_out
from braindecode_pars.pretext import PARS, PRETEXT_TASKS
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.storage._atomic import replace_file
from braindecode_pars.storage._folder import check_may_write
from braindecode_pars.storage._json import read_json, to_json
from braindecode_pars.training._seeding import seeded
from braindecode_pars.windows import SingleChannelWindows

__all__ = ["run_demo"]

COMMAND = "braindecode-pars demo"


@dataclass
class Scenario:
    """Data and training settings of the demo.

    ``unlabeled`` are the windows for pretraining, ``labeled`` those for fine-tuning and scores.
    ``held_out`` are windows of the subjects in ``labeled``, with the length of the unlabelled
    windows.
    """

    name: str
    unlabeled: BaseConcatDataset
    labeled: BaseConcatDataset
    held_out: BaseConcatDataset
    pretrain_epochs: int
    finetune: dict[str, Any]


def simulated_nights(seed: int) -> Scenario:
    """Simulate eight subjects for pretraining and six others with a quarter of windows labelled."""
    nights = simulated.sleep(n_subjects=14, hours=2, n_chans=3, sfreq=100, random_state=seed)
    labeled = BaseConcatDataset([_every_fourth(night) for night in nights.datasets[8:]])
    return Scenario(
        "simulated sleep",
        unlabeled=BaseConcatDataset(nights.datasets[:8]),
        labeled=labeled,
        held_out=labeled,
        pretrain_epochs=25,
        finetune=dict(finetune_epochs=15),
    )


def motor_imagery(folder: Path) -> Scenario:
    """Read 30-second windows of some subjects for pretraining, and trials of the others."""
    runs = (4, 8, 12)  # left or right fist
    subjects = sorted({r.subject for r in physionet_mi.recordings(folder, runs=runs)})
    if len(subjects) < 4:
        raise ValueError(
            f"{folder} has {len(subjects)} subjects; the demo needs at least four, two for "
            "pretraining and two for scores."
        )
    # At most eight subjects have labels, so that cross-validation takes minutes.
    n_labeled = min(len(subjects) // 2, 8)

    def read(chosen: list[int], part: str) -> BaseConcatDataset:
        return physionet_mi.load(
            folder,
            chosen,
            part=part,
            runs=runs,
            picks="motor",
            sfreq=160.0,
            stride_seconds=15.0,
            verbose=0,
        )

    return Scenario(
        physionet_mi.CARD["name"],
        unlabeled=read(subjects[n_labeled:], "pretraining"),
        labeled=read(subjects[:n_labeled], "trials"),
        held_out=read(subjects[:n_labeled], "pretraining"),
        pretrain_epochs=150,
        # Left and right hand differ in topography, so the model needs the electrode positions.
        finetune=dict(finetune_epochs=20, electrode_position=True),
    )


def run_demo(
    data: Path | None = None,
    out: Path = Path("braindecode-pars-demo"),
    *,
    pretext: str | Sequence[str] = "pars",
    seed: int = 0,
) -> pd.DataFrame:
    """Pretrain without labels, fine-tune with few labels, and score on held-out subjects.

    Parameters
    ----------
    data : Path | None
        Folder in MNE's eegbci layout. None simulates nights of sleep.
    out : Path
        Folder for the encoder, the figures and the scores.
    pretext : str | sequence of str
        Pretext tasks by name. All get the same encoder size, windows, number of steps and seeds.
    seed : int
        Seed of the simulation and of all training.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, also written to ``scores.csv``.
    """
    console = make_console()
    settings = out / "demo.json"
    check_may_write(out, "a demo", is_ours=settings.is_file() and _is_demo(settings))

    # The headings below are the comments of the stages.
    console.rule("1  data")
    scenario = simulated_nights(seed) if data is None else motor_imagery(data)
    replace_file(settings, to_json(_settings(data, pretext, seed)))
    console.print(scenario.name)
    _describe(console, scenario)

    console.rule("2  pretraining without labels")
    names = [pretext] if isinstance(pretext, str) else list(pretext)
    folders = {
        PRETEXT_TASKS[name].__name__: out / ("encoder" if len(names) == 1 else f"encoder-{name}")
        for name in names
    }
    written = [*(f"{folder.name}/" for folder in folders.values()), "kappa.png", "scores.csv"]
    for name, folder in zip(names, folders.values(), strict=True):
        embedder = PARSEmbedder(
            name, pretrain_epochs=scenario.pretrain_epochs, random_state=seed, verbose=1
        ).fit(scenario.unlabeled)
        embedder.save(folder)
        _report_losses(console, embedder)
        if isinstance(embedder.task_, PARS):
            _draw_shifts(console, embedder.task_, scenario.held_out, out / "shifts.png", seed)
            written.append("shifts.png")

    console.rule("3  fine-tuning, one subject held out at a time")
    training = dict(verbose=0, **scenario.finetune)
    estimators = {
        **{
            method: PARSClassifier(encoder=folder, **training) for method, folder in folders.items()
        },
        "scratch": PARSClassifier(pretext=None, **training),
        **make_methods(["band-power"]),
    }
    scores = leave_one_subject_out(
        estimators, scenario.labeled, seeds=[seed], dataset=scenario.name
    )
    scores.to_csv(out / "scores.csv", index=False)

    console.rule("4  scores on held-out subjects")
    show_scores(console, scores, over="subjects")
    save_figure(scores, out, plotting.paired_bars)
    console.print(
        f"Written to {out}: {', '.join(written)}.\n"
        f'Fine-tune an encoder with PARSClassifier(encoder="{next(iter(folders.values()))}").'
    )
    return scores


def _settings(data: Path | None, pretext: str | Sequence[str], seed: int) -> dict[str, Any]:
    """Return the content of ``demo.json``, which also marks the folder as that of a demo."""
    return {
        "command": COMMAND,
        "version": version("braindecode_pars"),
        "data": "simulated sleep" if data is None else str(data),
        "pretext": pretext,
        "seed": seed,
    }


def _is_demo(file: Path) -> bool:
    try:
        return read_json(file).get("command") == COMMAND
    except ValueError:
        return False


def _report_losses(console: Console, embedder: PARSEmbedder) -> None:
    """Print the last training loss relative to chance, for the task and for each of its parts."""
    last = embedder.pretraining_history_[-1]
    parts = [f"{part} {last[name]:.2f}" for name in last if (part := part_of(name)) is not None]
    details = f" ({', '.join(parts)})" if parts else ""
    console.print(f"Training loss relative to chance: {last[RELATIVE]:.2f}{details}")


def _describe(console: Console, scenario: Scenario) -> None:
    for what, windows in (("without", scenario.unlabeled), ("with", scenario.labeled)):
        n_subjects = windows.description["subject"].nunique()
        n_chans, n_times = windows[0][0].shape
        sfreq = windows.datasets[0].raw.info["sfreq"]
        console.print(
            f"{n_subjects} subjects {what} labels: {len(windows)} windows, "
            f"{n_chans} channels x {n_times / sfreq:g} s at {sfreq:g} Hz"
        )


def _every_fourth(night: EEGWindowsDataset) -> EEGWindowsDataset:
    return EEGWindowsDataset(night.raw, night.metadata.iloc[::4], dict(night.description))


def _draw_shifts(
    console: Console, task: PARS, windows: BaseConcatDataset, file: Path, seed: int
) -> None:
    """Report the loss over all held-out windows, and draw the window with the median error."""
    # Predict all held-out windows.
    with seeded(seed), torch.inference_mode():
        single = SingleChannelWindows(windows, task.n_times)
        x = torch.stack([single[i][0] for i in range(len(single))])  # (n_windows, n_times)
        prediction, target = _shifts_by_time(task.eval(), x)  # (n_windows, n_masked, n_masked)
    errors = (prediction - target).square().mean(dim=(1, 2))
    relative = errors.mean().item() / task.chance_loss()
    console.print(f"Loss relative to chance on held-out subjects: {relative:.2f}")

    # Draw the window with the median error.
    median = errors.argsort()[len(errors) // 2]
    axes = plotting.shift_matrices(prediction[median].numpy(), target[median].numpy())
    axes[0].figure.suptitle("window with the median error, from a held-out subject")
    axes[0].figure.savefig(file, dpi=150)
    plt.close(axes[0].figure)


def _shifts_by_time(task: PARS, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return predicted and true shifts with the masked patches in chronological order."""
    starts = task.sample_starts(len(x))
    masked = starts[:, : task.n_masked].sort(dim=1).values
    starts = torch.cat([masked, starts[:, task.n_masked :]], dim=1)
    return task.predict_shifts(x, starts), relative_shifts(masked, task.n_times)
