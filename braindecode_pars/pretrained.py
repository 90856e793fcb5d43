"""The folder of a pretrained encoder: weights, and what they were trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from braindecode_pars.encoder import PatchEncoder, check_activation
from braindecode_pars.models import PARSNet
from braindecode_pars.storage import LoadReport
from braindecode_pars.storage._hub import model_folder
from braindecode_pars.storage._json import read_json
from braindecode_pars.storage._tensors import load_tensors, read_tensors, write_folder

__all__ = ["EncoderCard", "Pretrained", "load_encoder", "save_encoder"]

WEIGHTS = "encoder.safetensors"
CARD = "encoder.json"
#: What PARSClassifier.save writes beside its PARSNet.
CLASSIFIER = "classifier.json"


@dataclass
class EncoderCard:
    """What a pretrained encoder was trained on.

    Evaluation warns when a test subject is on the card of an encoder, and estimators refuse
    windows of another sampling rate.

    Attributes
    ----------
    sfreq : float | None
        Sampling rate of its signals in Hz; None where it is not known.
    task : str | None
        Pretext task by name; None where there was none, or it is not known.
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

    Examples
    --------
    >>> from braindecode_pars.pretrained import EncoderCard
    >>> card = EncoderCard(sfreq=200.0, task="pars", subjects=["P01", "P02"])
    >>> sorted(card.seen_subjects)
    ['P01', 'P02']
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


class Pretrained(NamedTuple):
    """An encoder, where it comes from, and how much of it was found there.

    What :func:`load_encoder` returns; a tuple of three.

    Attributes
    ----------
    encoder : PatchEncoder
        A new one from a folder; the very one of an object.
    card : EncoderCard
        What it was trained on.
    report : LoadReport | None
        Which tensors were loaded; None where there was nothing to load.

    Examples
    --------
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretrained import load_encoder
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> pretrained = load_encoder(encoder)
    >>> pretrained.encoder is encoder, pretrained.card.subjects, pretrained.report
    (True, None, None)
    """

    encoder: PatchEncoder
    card: EncoderCard
    report: LoadReport | None


def save_encoder(encoder: PatchEncoder, card: EncoderCard, folder: str | Path) -> Path:
    """Write ``encoder.safetensors`` and ``encoder.json`` into a folder.

    Each is written aside and renamed, so that a reader never sees half a file. Estimators do this
    by themselves (``PARSEmbedder.save``, and ``checkpoint_dir``); this is for encoders that were
    pretrained in another way.

    Parameters
    ----------
    encoder : PatchEncoder
        Of any size.
    card : EncoderCard
        What it was trained on. Say who its ``subjects`` are, or None for unknown: an empty list
        says that it has seen nobody.
    folder : path
        Made when it does not exist; an encoder that lies there is replaced.

    Returns
    -------
    Path
        The folder, made when it did not exist.

    Raises
    ------
    ValueError
        When the encoder's activation is not one of ``torch.nn``, its weights are not finite, or
        the folder holds a saved PARSClassifier, whose encoder would hide this one.
    OSError
        When the folder cannot be written; what it held before is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretrained import EncoderCard, save_encoder
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> card = EncoderCard(sfreq=100.0, task="pars", subjects=[1, 2], epochs=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = save_encoder(encoder, card, folder)
    ...     sorted(file.name for file in folder.iterdir())
    ['encoder.json', 'encoder.safetensors']
    """
    check_no_classifier(Path(folder))
    return write_folder(folder, **encoder_files(encoder, card))


def encoder_files(encoder: PatchEncoder, card: EncoderCard) -> dict[str, dict[str, Any]]:
    """What :func:`save_encoder` writes, as arguments of ``write_folder``."""
    activation = encoder.config["activation"]
    check_activation(activation)
    config = {**encoder.config, "activation": activation.__name__}
    return {
        "tensors": {WEIGHTS: encoder.state_dict()},
        "described": {CARD: {"encoder": config, "pretraining": asdict(card)}},
    }


def check_no_classifier(folder: Path) -> None:
    """One folder holds one encoder.

    Raises
    ------
    ValueError
        When a classifier lies there, whose encoder would hide another.
    """
    if (folder / CLASSIFIER).exists():
        raise ValueError(f"{folder} holds a saved PARSClassifier; give its encoder another folder.")


def load_encoder(source: Any, *, strict: bool = True) -> Pretrained:
    """Load a pretrained encoder.

    Parameters
    ----------
    source : str | Path | object
        A folder made by :func:`save_encoder`, ``PARSEmbedder.save``, ``PARSClassifier.save``,
        ``PARSNet.save_pretrained`` or :func:`runs.pretrain <braindecode_pars.runs.pretrain>`; the
        same on the Hugging Face Hub, ``"hf://owner/name"`` to download it and ``"owner/name"``
        where it has been downloaded before; a PatchEncoder; or anything fitted that has one: an
        estimator (``.encoder_``), a skorch net (``.module_.encoder``), a model (``.encoder``).
    strict : bool
        Refuse an encoder of which only a part is there. False loads what fits, and the report
        tells what that was.

    Returns
    -------
    encoder : PatchEncoder
        A new one from a folder; the very one of an object.
    card : EncoderCard
        With unknown subjects where the source does not tell.
    report : LoadReport | None
        Which tensors were loaded; None where there was nothing to load.

    Raises
    ------
    FileNotFoundError
        When the folder or one of its two files does not exist.
    ValueError
        When a file is damaged, or its tensors are not those of the encoder it describes; the
        message counts them.
    TypeError
        When the source is nothing of the above.
    ImportError
        When a download is asked for and ``huggingface_hub`` is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretrained import (
    ...     EncoderCard, load_encoder, save_encoder
    ... )
    >>> encoder = PatchEncoder(patch_size=100, embed_dim=32, num_layers=1)
    >>> card = EncoderCard(sfreq=100.0, subjects=[1, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = save_encoder(encoder, card, folder)
    ...     loaded, card, report = load_encoder(folder)
    >>> card.subjects, str(report)
    ([1, 2], '20 of 20 tensors loaded')
    """
    if isinstance(source, (str, Path)):
        folder = model_folder(source)
        is_classifier = (folder / CLASSIFIER).is_file()
        is_encoder = (folder / WEIGHTS).is_file() or not (folder / PARSNet.WEIGHTS).is_file()
        if is_encoder and not is_classifier:
            return _load_folder(folder, strict)
        net = PARSNet.from_pretrained(folder, strict=strict)
        if not any(name.startswith("encoder.") for name in net.load_report.loaded):
            raise ValueError(f"{folder} holds nothing of an encoder: {net.load_report}.")
        card = _card_of_classifier(folder) if is_classifier else _unknown_card(net)
        return Pretrained(net.encoder, card, net.load_report)
    for owner in (source, getattr(source, "module_", None)):
        for name in ("encoder_", "encoder"):
            encoder = getattr(owner, name, None)
            if isinstance(encoder, PatchEncoder):
                card = getattr(source, "encoder_card_", None) or _unknown_card(owner)
                return Pretrained(encoder, card, None)
    if isinstance(source, PatchEncoder):
        return Pretrained(source, _unknown_card(source), None)
    fitted = hasattr(source, "fit") and not hasattr(source, "module_")
    raise TypeError(
        f"A {type(source).__name__} holds no pretrained encoder"
        + (" (is it fitted?)" if fitted else "")
        + "; give a folder, a PatchEncoder, or a fitted estimator, net or model that has one."
    )


def _load_folder(folder: Path, strict: bool) -> Pretrained:
    for name in (WEIGHTS, CARD):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder} is not the folder of a pretrained encoder: it has no {name}."
            )
    described = read_json(folder / CARD)
    try:
        config = dict(described["encoder"])
        config["activation"] = getattr(nn, config["activation"])
        encoder = PatchEncoder(**config)
        card = read_card(described["pretraining"])
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"{folder / CARD} does not describe an encoder: {error}.") from error
    path = folder / WEIGHTS
    return Pretrained(encoder, card, load_tensors(encoder, read_tensors(path), path, strict=strict))


def _unknown_card(owner: Any) -> EncoderCard:
    """Of a model that knows its sampling rate at best, and not whom it has seen."""
    sfreq = getattr(owner, "_sfreq", None) if isinstance(owner, PARSNet) else None
    return EncoderCard(sfreq=sfreq, subjects=None, finetune_subjects=None)


def _card_of_classifier(folder: Path) -> EncoderCard:
    try:
        return read_card(read_json(folder / CLASSIFIER)["pretraining"])
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{folder / CLASSIFIER} does not tell what the encoder was trained on: {error}."
        ) from error


def read_card(described: dict[str, Any]) -> EncoderCard:
    """A card from JSON.

    Raises
    ------
    TypeError
        When an entry is unknown or not of its type.
    """
    card = EncoderCard(**described)
    number = isinstance(card.sfreq, (int, float)) and card.sfreq > 0
    if not (card.sfreq is None or number):
        raise TypeError(f"sfreq is {card.sfreq!r}, not a positive number of Hz")
    for name in ("subjects", "finetune_subjects"):
        subjects = getattr(card, name)
        if not isinstance(subjects, (list, type(None))):
            raise TypeError(f"{name} is {subjects!r}, not a list")
        if subjects is not None:  # JSON has no tuples
            setattr(card, name, [tuple(s) if isinstance(s, list) else s for s in subjects])
    return card


def unique_subjects(*groups: Sequence | None) -> list | None:
    """Sorted subjects of several sets of windows; None when one of them does not know its own."""
    if any(group is None for group in groups):
        return None
    subjects = {s.item() if hasattr(s, "item") else s for group in groups for s in group}
    return sorted(subjects, key=lambda subject: (str(type(subject)), subject))
