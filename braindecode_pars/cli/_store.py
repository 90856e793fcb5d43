"""``braindecode-pars store``: make a SignalStore from a folder of recordings, or from recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli._failures import report_failures
from braindecode_pars.cli._names import CORPORA
from braindecode_pars.cli._values import pairs, values

__all__ = ["store"]


def store(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Folder with EDF, BDF, FIF or WFDB recordings at any depth, which is omitted with "
            "--recipe, and folder of the store.",
            metavar="[SOURCE] STORE",
        ),
    ],
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            help="Corpus and its folder, such as tueg=data/tuh_eeg, instead of SOURCE: its "
            "training subjects, with the recipe's channels, filters and rate. May be repeated. "
            f"Recipes: {', '.join(CORPORA)}.",
            metavar="NAME=FOLDER",
        ),
    ] = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Store the labelled windows of the recipes too, for evaluate --dataset STORE: of "
            "the subjects of all splits. Pretraining leaves out validation and test subjects.",
        ),
    ] = False,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of TUAB or TUSZ, whose subjects are left out of tueg, or text file with a "
            "subject in each line. May be repeated.",
            metavar="PATH",
        ),
    ] = None,
    share: Annotated[
        list[str] | None,
        typer.Option(
            help="Share of a recipe in the examples of pretraining, such as tueg=1. May be "
            "repeated. Default: every window once in a pass.",
            metavar="NAME=X",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Setting of a recipe, such as physionet_mi.sfreq=128. May be repeated.",
            metavar="NAME.KEY=VALUE",
        ),
    ] = None,
    sfreq: Annotated[
        float | None,
        typer.Option(
            help="Sampling rate of the store in Hz; recordings are resampled. Default: the "
            "recordings' own rate, which must be the same in all."
        ),
    ] = None,
    low: Annotated[float | None, typer.Option(help="Lower edge of the band-pass in Hz.")] = None,
    high: Annotated[float | None, typer.Option(help="Upper edge of the band-pass in Hz.")] = None,
    mains: Annotated[float | None, typer.Option(help="Frequency of the notch in Hz.")] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            help="EEG channel to keep, in the recordings that have it. May be repeated. Default: "
            "all EEG channels.",
            metavar="NAME",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="New reference: average, of the channels that are stored. Default: the "
            "recordings' own reference.",
            metavar="NAME",
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            help="Regular expression that finds the subject in the path of a file below SOURCE, "
            "such as 'S(\\d+)R'. Its group is the subject. Default: as in BIDS, the corpora of "
            "Temple University or PhysioNet's challenges, else the first folder, or the name of a "
            "file without folder.",
            metavar="PATTERN",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            help="Type of the stored samples: int16, float16 or float32. Default: int16.",
            metavar="NAME",
        ),
    ] = None,
    add: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Add recordings to a finished store, with the store's filters, channels and type.",
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Number of recordings to read in parallel.")] = 1,
    on_error: Annotated[
        str,
        typer.Option(
            help="Action for a recording that cannot be read: raise ends the command, warn skips "
            "the recording.",
            metavar="NAME",
        ),
    ] = "raise",
) -> None:
    """Store recordings, for pretraining or with labels. An interrupted command resumes."""
    path = folders[-1]
    n_expected = 1 if recipe else 2
    if len(folders) != n_expected:
        expected = "STORE after --recipe" if recipe else "SOURCE and STORE, or --recipe and STORE"
        raise typer.BadParameter(f"expected {expected}; got {len(folders)} folders.")
    if not recipe and (exclude or share or setting or labels):
        raise typer.BadParameter("--exclude, --share, --set and --labels need --recipe.")
    if labels and (exclude or share):
        raise typer.BadParameter("--exclude and --share are for pretraining; omit --labels.")
    settings = dict(
        low=low, high=high, mains=mains, channels=channel, reference=reference, dtype=dtype
    )
    settings = {name: value for name, value in settings.items() if value is not None}
    if add and settings:
        option = "channel" if "channels" in settings else next(iter(settings))
        raise typer.BadParameter(f"--append uses the store's own settings; omit --{option}.")
    with report_failures(
        f"Finished recordings are kept in {path}; run the same command to resume."
    ):
        from braindecode_pars.cli._storing import corpora_of, labelled_of, make_store

        source: Any = folders[0]
        if recipe:
            chosen = pairs(recipe, "--recipe", "NAME=FOLDER")
            settings_of_recipes = values(setting, "--set")
            source = (
                labelled_of(chosen, settings_of_recipes)
                if labels
                else corpora_of(chosen, exclude or (), settings_of_recipes)
            )
        make_store(
            source,
            path,
            settings,
            add=add,
            sfreq=sfreq,
            subject=subject,
            shares=values(share, "--share") or None,
            n_jobs=jobs,
            on_error=on_error,
        )
