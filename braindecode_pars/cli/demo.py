"""The demo: data, pretraining, fine-tuning and scores, small enough for a laptop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
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
from braindecode_pars.datasets import eegmat, physionet_mi, simulated
from braindecode_pars.estimators import PARSClassifier, PARSEmbedder
from braindecode_pars.evaluation import label_efficiency, leave_one_subject_out
from braindecode_pars.plotting.style import save_figure
from braindecode_pars.pretext import PARS, PRETEXT_TASKS, PretextTask
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.pretrained.saved import load_encoder
from braindecode_pars.windows import SingleChannelWindows

COMMAND = "braindecode-pars demo"


def run_demo(
    data: Path | None, out: Path, *, simulated: bool, tasks: Sequence[str] | None, seed: int
) -> None:
    """Pretrain without labels, fine-tune with few labels, and score on held-out subjects.

    Parameters
    ----------
    data : Path | None
        Folder in MNE's eegbci layout. None means the recordings in the package.
    out : Path
        Folder for the encoders, the figures and the scores.
    simulated : bool
        Whether to simulate nights of sleep instead. ``data`` is then None.
    tasks : sequence of str | None
        Pretext tasks of new encoders by name. All get the same size, windows, number of steps and
        seeds. None means PARS; on the recordings in the package, the encoder in the package is
        continued with its own task.
    seed : int
        Seed of the simulation, of the draws of labelled subjects and of all training.
    """
    console = make_console()
    settings = out / "demo.json"  # also marks the folder as that of a demo
    is_demo = settings.is_file() and f'"{COMMAND}"' in settings.read_text()
    check_may_write(out, "a demo", is_ours=is_demo)

    # The headings below are the comments of the stages.
    console.rule("1  data")
    if simulated:
        scenario = simulated_nights(seed)
    else:
        scenario = mental_arithmetic() if data is None else motor_imagery(data)
    if tasks is not None:
        scenario = replace(scenario, encoder=None)
    to_pretrain = embedders(scenario, tasks or ["pars"], seed)
    given = dict(encoder=scenario.encoder, pretext=tasks, seed=seed)
    source = dict(version=__version__, data=scenario.name if data is None else str(data))
    replace_file(settings, to_json(dict(command=COMMAND, **source, **given)))
    _describe(console, scenario)

    console.rule("2  pretraining without labels")
    folders = {
        method: out / ("encoder" if len(to_pretrain) == 1 else f"encoder-{embedder.pretext}")
        for method, embedder in to_pretrain.items()
    }
    figures = _pretrain(console, scenario, to_pretrain, folders, seed)

    console.rule(f"3  fine-tuning, {scenario.design}")
    scores = scenario.protocol(
        classifiers(scenario, folders), scenario.labeled, seeds=[seed], dataset=scenario.name
    ).sort_values("subject", kind="stable")  # not in the order of the folds
    scores.to_csv(out / "scores.csv", index=False)

    console.rule("4  scores on held-out subjects")
    show_scores(console, scores, over="subjects")
    figures.append(save_scores(scores, out, plotting.paired_bars))
    written = [*(f"{folder.name}/" for folder in folders.values()), *(f.name for f in figures)]
    console.print(
        f"Written to {out}: {', '.join(written)}, scores.csv.\n"
        f'Fine-tune an encoder with PARSClassifier(encoder="{next(iter(folders.values()))}").'
    )


def _describe(console: Console, scenario: Scenario) -> None:
    console.print(scenario.name)
    if scenario.notice:
        console.print(scenario.notice)
    for what, windows in (("without", scenario.unlabeled), ("with", scenario.labeled)):
        n_chans, n_times = windows[0][0].shape
        sfreq = windows.datasets[0].raw.info["sfreq"]
        console.print(
            f"{windows.description['subject'].nunique()} subjects {what} labels: {len(windows)} "
            f"windows, {n_chans} channels x {n_times / sfreq:g} s at {sfreq:g} Hz"
        )


def _pretrain(
    console: Console,
    scenario: Scenario,
    to_pretrain: Mapping[str, PARSEmbedder],
    folders: Mapping[str, Path],
    seed: int,
) -> list[Path]:
    """Pretrain and save every encoder, and return the figures of the losses."""
    out = next(iter(folders.values())).parent
    figures = [out / "pretraining.png"]
    for method, embedder in to_pretrain.items():
        if embedder.encoder is not None:
            console.print(
                f"The encoder {embedder.encoder!r} continues with its task {embedder.pretext!r}.\n"
                "The decoder is new, so that the loss starts near 1, the chance level."
            )
        embedder.fit(scenario.unlabeled).save(folders[method])
        console.print(describe_losses(embedder, scenario.held_out, seed))
        if isinstance(embedder.task_, PARS):
            figures.append(out / "shifts.png")
            draw_shifts(embedder.task_, scenario.held_out, figures[-1], seed)
    draw_losses(to_pretrain, figures[0])
    return figures


def describe_losses(embedder: PARSEmbedder, held_out: BaseConcatDataset, seed: int) -> str:
    """Return the last training loss, that of its parts, and the loss of held-out windows.

    All are relative to chance.
    """
    last = embedder.pretraining_history_[-1]
    parts = [f"{part} {last[name]:.2f}" for name in last if (part := part_of(name)) is not None]
    by_part = f"\nTraining loss by part: {', '.join(parts)}" if parts else ""
    loss = _held_out_loss(embedder.task_, held_out, seed)
    return (
        f"Training loss relative to chance: {last[RELATIVE]:.2f}\n"
        f"Loss relative to chance on held-out subjects: {loss:.2f}{by_part}"
    )


def _held_out_loss(task: PretextTask, windows: BaseConcatDataset, seed: int) -> float:
    """Return the loss of one crop of every window, relative to chance."""
    with seeded(seed), torch.inference_mode():
        prediction, target = task.eval()(_crops(windows, task.n_times))
        return (task.criterion()(prediction, target) / task.chance_loss()).item()


def _crops(windows: BaseConcatDataset, n_times: int) -> Tensor:
    """Return one random channel of every window, of shape (n_windows, n_times)."""
    single = SingleChannelWindows(windows, n_times)
    return torch.stack([single[i][0] for i in range(len(single))])


def draw_losses(embedders: Mapping[str, PARSEmbedder], file: Path) -> None:
    """Draw the loss of the whole task by epoch, one line for each encoder."""
    histories = pd.concat(
        [embedder.history_.assign(method=name) for name, embedder in embedders.items()]
    )
    axes = plotting.training_curves(histories[["method", "phase", "epoch", *LOSSES]])
    save_figure(axes[0], file, dpi=150, bbox_inches="tight")


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


def embedders(scenario: Scenario, tasks: Sequence[str], seed: int) -> dict[str, PARSEmbedder]:
    """Return the unfitted embedders of the demo by method name.

    Parameters
    ----------
    scenario : Scenario
        Data and settings. Its encoder, if it has one, is continued with its own task.
    tasks : sequence of str
        Pretext tasks of new encoders. Not used when the scenario has an encoder.
    seed : int
        Seed of pretraining.
    """
    shared: dict[str, Any] = dict(random_state=seed, verbose=1)
    if scenario.encoder is None:
        shared |= scenario.pretrain
        return {PRETEXT_TASKS[task].__name__: PARSEmbedder(task, **shared) for task in tasks}
    card = load_encoder(scenario.encoder).card
    shared |= dict(encoder=scenario.encoder, continue_pretraining=True, **scenario.continued)
    embedder = PARSEmbedder(str(card.task), pretext_params=dict(card.task_params), **shared)
    return {"continued": embedder}


def classifiers(scenario: Scenario, encoders: Mapping[str, Path]) -> dict[str, BaseEstimator]:
    """Return the unfitted classifiers of the demo by method name.

    Parameters
    ----------
    scenario : Scenario
        Data and settings. Its encoder, if it has one, is compared as it is: fine-tuned
        (``"pretrained"``) and frozen (``"pretrained probe"``).
    encoders : dict of str to Path
        Folders of the encoders that the demo has pretrained, by method name.
    """
    training: dict[str, Any] = dict(verbose=0, **scenario.finetune)
    fine_tuned = {
        method: PARSClassifier(encoder=folder, **training) for method, folder in encoders.items()
    }
    if scenario.encoder is None:
        return {**fine_tuned, **make_methods(["scratch", "band-power"], **training)}
    # The encoder in the package, fine-tuned and frozen, and one of its size from scratch.
    names = ["scratch", "probe", "band-power"]
    others = make_methods(names, encoder=scenario.encoder, **training)
    first = {"pretrained": others.pop("pretrained")}
    return {**first, **fine_tuned, **others}


#: The encoder in the package that pretraining on the sample of real EEG continues from.
ENCODER = "small"

#: Continued pretraining of that encoder. An epoch has one channel of each window.
CONTINUED = dict(pretrain_epochs=50, pretrain_lr=1e-3)

#: Fine-tuning on the sample of real EEG.
FINETUNE = dict(finetune_epochs=30)

#: Subjects of the sample without labels. The package's defaults were chosen on them, so no score is
#: of them.
N_UNLABELED = 12
#: Labelled subjects of a fit, and folds of the others.
N_LABELED, N_FOLDS = 4, 3


@dataclass
class Scenario:
    """Data and training settings of the demo.

    Attributes
    ----------
    name : str
        Name of the data, also in the scores.
    unlabeled, labeled : BaseConcatDataset
        Windows for pretraining, and windows for fine-tuning and scores, of other subjects.
    held_out : BaseConcatDataset
        Windows of the subjects in ``labeled``, with the length of the unlabelled windows.
    pretrain : dict
        Arguments of PARSEmbedder for a new encoder.
    finetune : dict
        Arguments of PARSClassifier.
    notice : str
        Licence and references of the data.
    encoder : str | None
        Encoder to continue with; None where every encoder is new.
    continued : dict
        Arguments of PARSEmbedder for the continued pretraining.
    protocol : callable
        Protocol of the scores, a function of estimators and windows.
    design : str
        The protocol in words.
    """

    name: str
    unlabeled: BaseConcatDataset
    labeled: BaseConcatDataset
    held_out: BaseConcatDataset
    pretrain: Mapping[str, Any]
    finetune: Mapping[str, Any]
    notice: str = ""
    encoder: str | None = None
    continued: Mapping[str, Any] = field(default_factory=dict)
    protocol: Callable[..., pd.DataFrame] = leave_one_subject_out
    design: str = "one subject held out at a time"


def mental_arithmetic() -> Scenario:
    """Read the recordings in the package: rest and mental arithmetic of 24 subjects."""
    subjects = [f"Subject{number:02}" for number in range(24)]
    labeled = datasets.mental_arithmetic(subjects[N_UNLABELED:])
    return Scenario(
        "mental arithmetic",
        unlabeled=datasets.mental_arithmetic(subjects[:N_UNLABELED]),
        labeled=labeled,
        held_out=labeled,
        pretrain=dict(pretrain_epochs=150),
        finetune=FINETUNE,
        notice=_notice(eegmat.CARD),
        encoder=ENCODER,
        continued=CONTINUED,
        protocol=partial(
            label_efficiency,
            n_train_subjects=[N_LABELED],
            cv=N_FOLDS,
            metrics=("kappa", "balanced_accuracy"),
        ),
        design=f"{N_LABELED} labelled subjects in each of {N_FOLDS} folds",
    )


def simulated_nights(seed: int) -> Scenario:
    """Simulate eight subjects for pretraining and six others with a quarter of windows labelled."""
    nights = simulated.sleep(n_subjects=14, hours=2, n_chans=3, sfreq=100, random_state=seed)
    labeled = BaseConcatDataset(
        [
            EEGWindowsDataset(night.raw, night.metadata.iloc[::4], dict(night.description))
            for night in nights.datasets[8:]
        ]
    )
    return Scenario(
        "simulated sleep",
        unlabeled=BaseConcatDataset(nights.datasets[:8]),
        labeled=labeled,
        held_out=labeled,
        pretrain=dict(pretrain_epochs=25),
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
    settings: dict[str, Any] = dict(
        runs=runs, picks="motor", sfreq=160.0, stride_seconds=15.0, verbose=0
    )
    return Scenario(
        physionet_mi.CARD["name"],
        unlabeled=physionet_mi.load(folder, subjects[n_labeled:], part="pretraining", **settings),
        labeled=physionet_mi.load(folder, subjects[:n_labeled], part="trials", **settings),
        held_out=physionet_mi.load(folder, subjects[:n_labeled], part="pretraining", **settings),
        pretrain=dict(pretrain_epochs=150),
        # Left and right hand differ in topography, so the model needs the electrode positions.
        finetune=dict(finetune_epochs=20, electrode_position=True),
        notice=_notice(physionet_mi.CARD),
    )


def _notice(card: Mapping[str, Any]) -> str:
    return (
        f"From {card['name']} {card['version']}, {card['address']}, licence {card['licence']}.\n"
        f"Cite {card['reference']}."
    )
