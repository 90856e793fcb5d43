"""Behind ``plan`` and ``encoders``: what a run takes, and the cards of packaged encoders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.filesize import decimal

from braindecode_pars._common.computing import n_parameters
from braindecode_pars._common.model_files import ALIASES, packaged_folder, packaged_names
from braindecode_pars._common.subjects import is_hidden
from braindecode_pars.cli.terminal import make_console, print_table
from braindecode_pars.pretrained.cards import EncoderCard, Pretrained
from braindecode_pars.pretrained.saved import load_encoder
from braindecode_pars.runs import CorpusSize, RunConfig, plan


def show_plan(corpus: CorpusSize, config: RunConfig) -> None:
    """Plan a run and print what it takes, one fact a line."""
    planned = plan(corpus, config)
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
        "time": _time(planned.hours),
    }
    console = make_console()
    print_table(console, facts.items())
    console.print("Nothing was started. The hours hold if data arrive as fast as they are used.")


def _time(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.2g} min"
    days = f" ({hours / 24:,.3g} days)" if hours >= 48 else ""
    return f"{hours:,.0f} h{days}" if hours >= 10 else f"{hours:.2g} h"


#: Lines of a card that help to choose an encoder.
_IN_TABLE = (
    *("num_layers", "embed_dim", "parameters", "sampling rate", "patch_size", "tokenizer"),
    *("band", "reference", "corpora", "people", "held-out loss", "licence", "date"),
)


def show_encoders(console: Console) -> None:
    """Print a table with one column for each encoder in the package.

    There are few encoders and many facts, so the facts are the rows: a terminal has 80 columns.
    """
    names = packaged_names()
    if not names:
        console.print("This installation has no encoders of the package.")
        return
    loaded = [load_encoder(packaged_folder(name)) for name in names]
    rows = [["also called", *(", ".join(_aliases(name)) or "-" for name in names)]]
    rows.append(["task", *(str(one.card.task) for one in loaded)])
    cards = [dict(_lines(one)) for one in loaded]
    rows += [[fact, *(str(card.get(fact, "-")) for card in cards)] for fact in _IN_TABLE]
    header = ["name", *names]
    print_table(console, rows, header, text=header)
    console.print(f'Use one: PARSClassifier(encoder="{names[0]}")')
    console.print(f"The whole card: braindecode-pars encoders {names[0]}")
    console.print(f"What its features hold: braindecode-pars encoders {names[0]} --audit")


def _aliases(name: str) -> list[str]:
    return [alias for alias, of in ALIASES.items() if of == name]


def _loss(loss: Any) -> str:
    return f"{loss:.3f}" if isinstance(loss, float) else str(loss)


def show_card(console: Console, name: str) -> None:
    """Print the whole card of an encoder, one fact a line.

    Parameters
    ----------
    console : rich.console.Console
        Console to print to.
    name : str
        Source of the encoder, as in :func:`~braindecode_pars.pretrained.load_encoder`.
    """
    for label, value in _lines(load_encoder(name)):
        # A list is long: each entry has a line of its own.
        lines = [f"{label}: {value}"] if isinstance(value, str) else [f"{label}:", *value]
        for i, line in enumerate(lines):
            # Without control characters, which could change the terminal.
            console.print("  " * (i > 0) + "".join(c if c.isprintable() else " " for c in line))


def _lines(pretrained: Pretrained) -> Iterator[tuple[str, str | list[str]]]:
    """Yield name and text of every fact: those of ``about``, of the encoder and of the training."""
    encoder, card, _ = pretrained
    about = dict(card.about)
    about.pop("audit", None)  # a table, which --audit prints
    held_out = about.pop("held_out", None)
    if "name" in about:
        name = str(about.pop("name"))
        yield "name", ", ".join([name, *_aliases(name)])
    last = {key: about.pop(key) for key in ("attribution", "command") if key in about}
    yield from ((key, _text(key, value)) for key, value in about.items())
    for key, value in encoder.config.items():
        yield key, getattr(value, "__name__", str(value))
    yield "parameters", f"{n_parameters(encoder):,}"
    yield from _training(card)
    if held_out is not None:
        loss = f"{_loss(held_out['loss_relative'])} of chance on {held_out['people']}"
        yield "held-out loss", loss
        parts = held_out.get("parts", {})
        yield "parts of it", [f"{part}: {_loss(x)}" for part, x in parts.items()]
    for key, value in last.items():
        yield key, list(map(str, value)) if isinstance(value, list) else str(value)


def _training(card: EncoderCard) -> Iterator[tuple[str, str]]:
    yield "sampling rate", "unknown" if card.sfreq is None else f"{card.sfreq:g} Hz"
    if card.preprocessing.known():
        yield "preprocessing", str(card.preprocessing)
    yield "task", " ".join([str(card.task), *(f"{k}={v}" for k, v in card.task_params.items())])
    yield "subjects", _subjects(card.subjects)
    yield "fine-tuned on subjects", _subjects(card.finetune_subjects)
    yield "windows in a pass", f"{card.n_windows:,}"
    yield "epochs", str(card.epochs)
    if card.loss_relative is not None:
        yield "training loss", f"{card.loss_relative:.3f} of chance"
    if card.continued_from is not None:
        yield "continued from", json.dumps(card.continued_from)
    yield "versions", ", ".join(f"{name} {version}" for name, version in card.versions.items())


def _text(key: str, value: Any) -> str:
    if key == "band":
        return f"{'-'.join(map(str, value))} Hz" if value else "-"
    if key == "channels":
        return f"{len(value)}: {' '.join(map(str, value))}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _subjects(subjects: list | None) -> str:
    """Return number and names of subjects."""
    if subjects is None:
        return "unknown"
    if not subjects:
        return "none"
    n = len(subjects)
    if all(map(is_hidden, subjects)):
        return f"{n}, as hashes"
    return f"{n}: {', '.join(map(str, subjects))}"
