"""The demo: data, pretraining, fine-tuning and scores, small enough for a laptop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from braindecode_pars import plotting
from braindecode_pars.cli import _demo_scenarios as scenarios
from braindecode_pars.cli._console import make_console
from braindecode_pars.cli._demo_losses import describe_losses, draw_losses, draw_shifts
from braindecode_pars.cli._demo_methods import classifiers, embedders
from braindecode_pars.cli._scores import save_figure, show_scores
from braindecode_pars.estimators import PARSEmbedder
from braindecode_pars.pretext import PARS
from braindecode_pars.storage._atomic import replace_file
from braindecode_pars.storage._folder import check_may_write
from braindecode_pars.storage._json import read_json, to_json

__all__ = ["run_demo"]

COMMAND = "braindecode-pars demo"


def run_demo(
    data: Path | None = None,
    out: Path = Path("braindecode-pars-demo"),
    *,
    simulated: bool = False,
    pretext: str | Sequence[str] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Pretrain without labels, fine-tune with few labels, and score on held-out subjects.

    Parameters
    ----------
    data : Path | None
        Folder in MNE's eegbci layout. None means the recordings in the package.
    out : Path
        Folder for the encoder, the figures and the scores.
    simulated : bool
        Whether to simulate nights of sleep instead. ``data`` is then None.
    pretext : str | sequence of str | None
        Pretext tasks of new encoders by name. All get the same size, windows, number of steps and
        seeds. None means PARS; on the recordings in the package, the encoder in the package is
        continued with its own task.
    seed : int
        Seed of the simulation, of the draws of labelled subjects and of all training.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, also written to ``scores.csv``.
    """
    if simulated and data is not None:
        raise ValueError(f"Simulated nights read no folder; omit {data}, or simulated=True.")
    console = make_console()
    settings = out / "demo.json"
    check_may_write(out, "a demo", is_ours=settings.is_file() and _is_demo(settings))

    # The headings below are the comments of the stages.
    console.rule("1  data")
    scenario = _scenario(data, simulated, seed)
    if pretext is not None:
        scenario = replace(scenario, encoder=None)
    to_pretrain = embedders(scenario, _names(pretext), seed)
    replace_file(settings, to_json(_settings(scenario, data, pretext, seed)))
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
    ).sort_values("subject", kind="stable", ignore_index=True)  # not in the order of the folds
    scores.to_csv(out / "scores.csv", index=False)

    console.rule("4  scores on held-out subjects")
    show_scores(console, scores, over="subjects")
    figures.append(save_figure(scores, out, plotting.paired_bars))
    written = [*(f"{folder.name}/" for folder in folders.values()), *(f.name for f in figures)]
    console.print(
        f"Written to {out}: {', '.join(written)}, scores.csv.\n"
        f'Fine-tune an encoder with PARSClassifier(encoder="{next(iter(folders.values()))}").'
    )
    return scores


def _names(pretext: str | Sequence[str] | None) -> list[str]:
    if pretext is None:
        return ["pars"]
    return [pretext] if isinstance(pretext, str) else list(pretext)


def _scenario(data: Path | None, simulated: bool, seed: int) -> scenarios.Scenario:
    if simulated:
        return scenarios.simulated_nights(seed)
    return scenarios.mental_arithmetic() if data is None else scenarios.motor_imagery(data)


def _settings(
    scenario: scenarios.Scenario,
    data: Path | None,
    pretext: str | Sequence[str] | None,
    seed: int,
) -> dict[str, Any]:
    """Return the content of ``demo.json``, which also marks the folder as that of a demo."""
    return {
        "command": COMMAND,
        "version": version("braindecode_pars"),
        "data": scenario.name if data is None else str(data),
        "encoder": scenario.encoder,
        "pretext": pretext,
        "seed": seed,
    }


def _is_demo(file: Path) -> bool:
    try:
        return read_json(file).get("command") == COMMAND
    except ValueError:
        return False


def _describe(console: Console, scenario: scenarios.Scenario) -> None:
    console.print(scenario.name)
    if scenario.notice:
        console.print(scenario.notice)
    for what, windows in (("without", scenario.unlabeled), ("with", scenario.labeled)):
        n_subjects = windows.description["subject"].nunique()
        n_chans, n_times = windows[0][0].shape
        sfreq = windows.datasets[0].raw.info["sfreq"]
        console.print(
            f"{n_subjects} subjects {what} labels: {len(windows)} windows, "
            f"{n_chans} channels x {n_times / sfreq:g} s at {sfreq:g} Hz"
        )


def _pretrain(
    console: Console,
    scenario: scenarios.Scenario,
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
