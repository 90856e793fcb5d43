"""The folder of a pretrained encoder: weights, and what they were trained on."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from braindecode_pars.encoder import PatchEncoder

__all__ = ["EncoderCard", "load_encoder", "save_encoder"]

WEIGHTS = "encoder.safetensors"
CARD = "encoder.json"


@dataclass
class EncoderCard:
    """What a pretrained encoder was trained on.

    Attributes
    ----------
    sfreq : float | None
        Sampling rate of its signals in Hz.
    task : str | None
        Pretext task.
    task_params : dict
        Arguments of the task, as they were given.
    subjects : list | None
        People whose windows were pretrained on; None where they are not known.
    finetune_subjects : list | None
        People whose labelled windows it was fine-tuned on since; None where not known.
    n_windows, epochs : int
        Size and length of the pretraining.
    loss_relative : float | None
        Last training loss relative to chance.
    versions : dict of str to str
        Of the packages that made it.
    """

    sfreq: float | None = None
    task: str | None = None
    task_params: dict[str, Any] = field(default_factory=dict)
    subjects: list | None = field(default_factory=list)
    finetune_subjects: list | None = field(default_factory=list)
    n_windows: int = 0
    epochs: int = 0
    loss_relative: float | None = None
    versions: dict[str, str] = field(
        default_factory=lambda: {
            name: version(name) for name in ("braindecode_pars", "braindecode", "torch")
        }
    )

    @property
    def seen_subjects(self) -> set:
        """All people known to have been seen, with or without labels."""
        return {*(self.subjects or ()), *(self.finetune_subjects or ())}


def save_encoder(encoder: PatchEncoder, card: EncoderCard, folder: str | Path) -> Path:
    """Write ``encoder.safetensors`` and ``encoder.json`` into a folder.

    Each is written aside and renamed, so that a reader never sees half a file.

    Returns
    -------
    Path
        The folder, made when it did not exist.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    activation = encoder.config["activation"]
    config = {**encoder.config, "activation": activation.__name__}
    if getattr(nn, activation.__name__, None) is not activation:
        raise ValueError(
            f"The encoder's activation {activation!r} is not one of torch.nn, so a folder cannot "
            "tell how to build it again; use one of torch.nn."
        )
    weights = {
        name: value.detach().cpu().contiguous() for name, value in encoder.state_dict().items()
    }
    text = json.dumps({"encoder": config, "pretraining": asdict(card)}, indent=2, default=_to_json)

    if not all(value.isfinite().all() for value in weights.values()):
        raise ValueError("The encoder has weights that are not finite; it is not worth keeping.")

    # Written by several processes at once, the folder ends with the files of one of them each.
    aside = uuid.uuid4().hex
    save_file(weights, folder / f".{WEIGHTS}.{aside}")
    (folder / f".{CARD}.{aside}").write_text(text + "\n", encoding="utf-8")
    for name in (WEIGHTS, CARD):
        os.replace(folder / f".{name}.{aside}", folder / name)
    return folder


def load_encoder(source: Any) -> tuple[PatchEncoder, EncoderCard]:
    """Load a pretrained encoder.

    Parameters
    ----------
    source : str | Path | object
        A folder made by :func:`save_encoder`, a PatchEncoder, or anything fitted that has one: an
        estimator (``.encoder_``), a skorch net (``.module_.encoder``), a model (``.encoder``).

    Returns
    -------
    encoder : PatchEncoder
    card : EncoderCard
        With unknown subjects where the source does not tell.

    Raises
    ------
    FileNotFoundError
        When the folder or one of its two files does not exist.
    ValueError
        When a file is damaged, or its tensors are not those of the encoder it describes; the
        message counts them.
    TypeError
        When the source is nothing of the above.
    """
    if isinstance(source, (str, Path)):
        return _load_folder(Path(source))
    for owner in (source, getattr(source, "module_", None)):
        for name in ("encoder_", "encoder"):
            encoder = getattr(owner, name, None)
            if isinstance(encoder, PatchEncoder):
                card = getattr(source, "encoder_card_", None)
                return encoder, card or EncoderCard(subjects=None, finetune_subjects=None)
    if isinstance(source, PatchEncoder):
        return source, EncoderCard(subjects=None, finetune_subjects=None)
    raise TypeError(
        f"A {type(source).__name__} holds no pretrained encoder; give a folder, a PatchEncoder, or "
        "a fitted estimator, net or model that has one."
    )


def _load_folder(folder: Path) -> tuple[PatchEncoder, EncoderCard]:
    for name in (WEIGHTS, CARD):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder} is not the folder of a pretrained encoder: it has no {name}."
            )
    try:
        described = json.loads((folder / CARD).read_text(encoding="utf-8"))
        config = dict(described["encoder"])
        config["activation"] = getattr(nn, config["activation"])
        encoder = PatchEncoder(**config)
        card = EncoderCard(**described["pretraining"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder / CARD} does not describe an encoder: {error}.") from error
    try:
        weights = load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise ValueError(
            f"{folder / WEIGHTS} is damaged or no safetensors file: {error}."
        ) from error
    _load_all(encoder, weights, folder / WEIGHTS)
    return encoder, card


def _load_all(encoder: PatchEncoder, weights: dict[str, torch.Tensor], path: Path) -> None:
    """Load weights that must match the encoder tensor by tensor."""
    expected = {name: value.shape for name, value in encoder.state_dict().items()}
    matched = [
        name for name in expected if name in weights and weights[name].shape == expected[name]
    ]
    if len(matched) < len(expected) or len(weights) > len(expected):
        missing = [name for name in expected if name not in weights]
        reshaped = [n for n in expected if n in weights and weights[n].shape != expected[n]]
        unexpected = [name for name in weights if name not in expected]
        details = "".join(
            f"; {len(names)} {what} (such as {names[0]})"
            for what, names in (
                ("missing", missing),
                ("of another shape", reshaped),
                ("unexpected", unexpected),
            )
            if names
        )
        raise ValueError(
            f"{path} is not the encoder its folder describes: {len(matched)} of {len(expected)} "
            f"tensors matched{details}."
        )
    encoder.load_state_dict(weights)


def _to_json(value: Any) -> Any:
    """NumPy scalars as numbers; anything else, such as an enum of subjects, as its name."""
    return value.item() if hasattr(value, "item") else str(value)


def unique_subjects(*groups: Sequence | None) -> list | None:
    """Sorted subjects of several sets of windows; None when one of them does not know its own."""
    if any(group is None for group in groups):
        return None
    subjects = {s.item() if hasattr(s, "item") else s for group in groups for s in group}
    return sorted(subjects, key=lambda subject: (str(type(subject)), subject))
