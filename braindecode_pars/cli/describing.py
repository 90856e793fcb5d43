"""Behind ``plan`` and ``encoders``: what a run takes, and the cards of packaged encoders."""

from __future__ import annotations

from typing import Any

import pandas as pd
from braindecode.datasets import BaseConcatDataset
from rich.filesize import decimal

from braindecode_pars._common import computing, model_files
from braindecode_pars.cli.terminal import print_frame, show
from braindecode_pars.datasets import mental_arithmetic
from braindecode_pars.pretrained import cards, saved
from braindecode_pars.recordings import cutting, preprocessing
from braindecode_pars.runs import CorpusSize, RunConfig, plan


def show_plan(corpus: CorpusSize, config: RunConfig) -> None:
    """Plan a run and print what it takes, one fact a line."""
    planned = plan(corpus, config)
    hours, days = planned.hours, f" ({planned.hours / 24:,.3g} days)" if planned.hours >= 48 else ""
    time = f"{hours:,.0f} h{days}" if hours >= 10 else f"{hours:.2g} h"
    time = f"{hours * 60:.2g} min" if hours < 1 else time
    facts = {
        "windows in a pass": f"{corpus.n_windows:,} at {corpus.sfreq:g} Hz",
        "network": f"{config.task} with {planned.parameters:,} parameters",
        "disk of the store": decimal(planned.store_bytes),
        "disk of the run": decimal(planned.run_bytes),
        "steps": f"{planned.n_steps:,}: {config.epochs:,} epochs of {planned.steps_per_epoch:,} "
        f"steps of {config.batch_size:,} windows",
        "windows in all steps": f"{planned.n_examples:,}",
        "tokens": f"{planned.tokens:.3g}",
        "FLOPs": f"{planned.flops:.3g}",
        "devices": f"{planned.n_devices} ({planned.device})",
        "speed": f"{planned.windows_per_second:,.4g} windows/s on each, measured on steps of "
        f"{planned.measured_windows} in {config.precision}",
        "time": time,
    }
    print_frame(pd.DataFrame(facts.items()), n_text=2, header=False)
    show("Nothing was started. The hours hold if data arrive as fast as they are used.")


def show_encoders() -> None:
    """Print a table with one column for each encoder in the package.

    There are few encoders and many facts, so the facts are the rows: a terminal has 80 columns.
    """
    names = model_files.packaged_names()
    if not names:
        show("This installation has no encoders of the package.")
        return
    table = (
        pd.DataFrame(map(_facts, names)).astype(str).set_index("name").T.reset_index(names="name")
    )
    print_frame(table, n_text=table.shape[1])
    show(f'Use one: PARSClassifier(encoder="{names[0]}")')
    show(f"The whole card: braindecode-pars encoders {names[0]}")
    show(f"What its features hold: braindecode-pars encoders {names[0]} --audit")


def _facts(name: str) -> dict[str, Any]:
    """Return what helps to choose an encoder."""
    encoder, card, _ = saved.load_encoder(model_files.packaged_folder(name))
    about, config = card.about, encoder.config
    held_out = about["held_out"]
    return {
        "name": name,
        "also called": ", ".join(alias for alias, of in model_files.ALIASES.items() if of == name)
        or "-",
        "task": card.task,
        **{fact: config[fact] for fact in ("num_layers", "embed_dim")},
        "parameters": f"{computing.n_parameters(encoder):,}",
        "sampling rate": preprocessing.text_of("sfreq", card.sfreq),
        **{fact: config[fact] for fact in ("patch_size", "tokenizer")},
        "band": preprocessing.text_of("band", about["band"]),
        "reference": about["reference"],
        **{fact: ", ".join(about[fact]) for fact in ("corpora", "people")},
        "held-out loss": f"{held_out['loss_relative']:.3f} of chance on {held_out['people']}",
        **{fact: about[fact] for fact in ("licence", "date")},
    }


def show_card(name: str) -> None:
    """Print the model card of an encoder, without its header.

    Parameters
    ----------
    name : str
        Source of the encoder, as in :func:`~braindecode_pars.pretrained.load_encoder`.
    """
    encoder, card, _ = saved.load_encoder(name)
    described = saved.describe_encoder(encoder, card)
    text = cards.model_card(model_files.ENCODER, described, source=name).partition("---\n\n")[2]
    # Without control characters, which could change the terminal.
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    show(shown, end="")


# Audits ------------------------------------------------------------------------------------------

#: Length of the windows in seconds.
AUDIT_SECONDS = 10.0


def show_audit(name: str) -> None:
    """Print what the features of an encoder hold: as stored on its card, or in the sample.

    Parameters
    ----------
    name : str
        Source of the encoder, as in :func:`~braindecode_pars.pretrained.load_encoder`.
    """
    folder = model_files.model_folder(name)
    card = saved.load_encoder(folder).card
    stored = card.about.get("audit") if folder == model_files.packaged_folder(name) else None
    from braindecode_pars.evaluation import audits  # takes seconds

    if not stored:
        audit = audits.audit_encoder({name: folder}, _sample(card.sfreq))
        title = "The sample in the package, rest and mental arithmetic"
        text = recordings_text(title, audit, AUDIT_SECONDS)
        stored = [dict(recordings=text, table=audits.audit_table(audit))]
    for each in stored:
        show(each["recordings"])
        if "measured" in each:
            show(f"Measured: {each['measured']}")
        for measure, rows in pd.DataFrame(each["table"]).groupby("measure", sort=False):
            # Only the chance level of accuracies differs.
            columns = [*audits.FEATURES, *([] if measure == audits.R2 else ["chance"])]
            shown = rows[columns].map("{:.2f}".format)
            shown.insert(0, measure, rows["property"])
            print_frame(shown)
    show(
        "R2 of a ridge regression on the features of one channel, on other people: 1 is read "
        "without an error, 0 not at all. Above tokens and random encoder, it was learned."
    )


def recordings_text(title: str, audit: pd.DataFrame, seconds: float) -> str:
    """Return a line that says on which recordings an audit was measured."""
    numbers = "{n_subjects} people, {n_signals} signals of {n_windows} windows"
    return f"{title}: {numbers.format(**audit.attrs)} of {seconds:g} s"


def _sample(sfreq: float | None) -> BaseConcatDataset:
    """Return the sample of recordings at the sampling rate of an encoder."""
    sample = mental_arithmetic(window_seconds=AUDIT_SECONDS)
    for i, recording in enumerate(sample.datasets):
        raw = recording.raw
        raw.resample(sfreq or raw.info["sfreq"], verbose="error")
        windows: Any = cutting.fixed_windows(raw, AUDIT_SECONDS)
        windows.set_description(recording.description)
        sample.datasets[i] = windows
    return BaseConcatDataset(sample.datasets)
