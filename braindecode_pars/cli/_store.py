"""``braindecode-pars store``: make a SignalStore of a folder of recordings, recipes or stores."""

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
            "--recipe, and folder of the store. With --join, folders of stores before it.",
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
            "file without folder. Names that number the recordings of one person, such as "
            "Subject00_1 and Subject00_2, need it.",
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
    part: Annotated[
        str | None,
        typer.Option(
            help="Part of the recordings to store, such as 3/8 for the third of eight. Jobs of a "
            "cluster store one part each, in folders of their own; --join makes one store of them.",
            metavar="N/PARTS",
        ),
    ] = None,
    join: Annotated[
        bool,
        typer.Option(
            "--join",
            help="Join stores, such as the parts of a corpus, to one: --join STORE/part-* "
            "STORE/all. Nothing is copied.",
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
    settings = dict(
        low=low, high=high, mains=mains, channels=channel, reference=reference, dtype=dtype
    )
    settings = {name: value for name, value in settings.items() if value is not None}
    given = ["channel" if name == "channels" else name for name in settings]
    given += ["part"] if part else []
    if join:
        sources = dict(recipe=recipe, exclude=exclude, set=setting, sfreq=sfreq, subject=subject)
        given += [
            name for name, value in {**sources, "append": add, "labels": labels}.items() if value
        ]
        _join(folders, share, given)
        return
    n_expected = 1 if recipe else 2
    if len(folders) != n_expected:
        expected = "STORE after --recipe" if recipe else "SOURCE and STORE, or --recipe and STORE"
        raise typer.BadParameter(f"expected {expected}; got {len(folders)} folders.")
    if not recipe and (exclude or share or setting or labels):
        raise typer.BadParameter("--exclude, --share, --set and --labels need --recipe.")
    if labels and (exclude or share):
        raise typer.BadParameter("--exclude and --share are for pretraining; omit --labels.")
    if add and given:
        raise typer.BadParameter(f"--append uses the store's own settings; omit --{given[0]}.")
    with report_failures(
        f"Finished recordings are kept in {path}; run the same command to resume."
    ):
        from braindecode_pars.cli._storing import corpora_of, labelled_of, make_store

        if part:
            settings["part"] = _part(part)
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


def _join(folders: list[Path], share: list[str] | None, given: list[str]) -> None:
    """Join stores; ``given`` are the options that are only for new recordings."""
    if given:
        raise typer.BadParameter(f"--join reads no recording; omit --{given[0]}.")
    if len(folders) < 2:
        raise typer.BadParameter("expected the folders of stores, and STORE, after --join.")
    with report_failures("Nothing was written; run the same command again."):
        from braindecode_pars.cli._storing import join_stores

        join_stores(folders[:-1], folders[-1], values(share, "--share") or None)


def _part(text: str) -> tuple[int, int]:
    """Return the number of a part, and the number of parts, from a text such as 3/8."""
    number, _, n_parts = text.partition("/")
    if not (number.isdecimal() and n_parts.isdecimal()):
        raise ValueError(f"--part {text!r} is not of the form N/PARTS, such as 3/8.")
    return int(number), int(n_parts)
