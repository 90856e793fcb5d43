"""Saving and loading a pretrained encoder, with a card that describes its training data."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from braindecode_pars._common.model_files import (
    ENCODER,
    NETWORK,
    ModelFile,
    check_may_save,
    described_in,
    packaged_folder,
    packaged_names,
    read_model,
    write_model,
)
from braindecode_pars.encoder import PatchEncoder, activation_name
from braindecode_pars.models import PARSNet
from braindecode_pars.models.network_files import encoder_from_file
from braindecode_pars.pretrained.cards import EncoderCard, Pretrained, card_of, unknown_card
from braindecode_pars.pretrained.model_card import write_shared


def save_encoder(
    encoder: PatchEncoder, card: EncoderCard, folder: str | Path, *, share: bool = False
) -> Path:
    """Write ``encoder.safetensors`` and ``encoder.json`` into a folder.

    ``encoder.safetensors`` contains weights, card and a checksum. ``encoder.json`` is a copy of the
    card, for people and for other programs. Estimators save their encoders with
    ``PARSEmbedder.save`` and ``checkpoint_dir``. This function is for encoders that were pretrained
    without an estimator.

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder to save.
    card : EncoderCard
        Training data and pretext task of the encoder. Set ``subjects`` to its training subjects,
        or to None when they are unknown. An empty list means that the encoder has no training
        subjects.
    folder : path
        Folder of the encoder. It is created if it does not exist. An encoder in this folder is
        replaced.
    share : bool
        Whether the folder is for others: without the names of subjects, see
        :meth:`EncoderCard.without_names`, and with a model card, ``README.md``, if there is none.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        When the activation of the encoder is not one of ``torch.nn``, or its weights are not
        finite. Also when the folder contains another model, or other files; with ``share``, any
        further file.
    OSError
        When the folder cannot be written. Its previous content is then unchanged.

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
    folder = Path(folder).expanduser()
    check_may_save(folder, ENCODER, share=share)
    described = describe_encoder(encoder, card.without_names() if share else card)
    write = write_shared if share else write_model
    return write(folder, ENCODER, described, encoder.state_dict())


def write_encoder(encoder: PatchEncoder, card: EncoderCard, folder: Path) -> Path:
    """Write an encoder into a folder that the caller has checked, such as that of a run."""
    return write_model(folder, ENCODER, describe_encoder(encoder, card), encoder.state_dict())


def encoder_digest(encoder: PatchEncoder) -> str:
    """Return a digest of the architecture and the weights of an encoder."""
    weights = [tensor.detach().cpu().numpy().tobytes() for tensor in encoder.state_dict().values()]
    return hashlib.sha256(b"".join([repr(encoder.config).encode(), *weights])).hexdigest()


def describe_encoder(encoder: PatchEncoder, card: EncoderCard) -> dict[str, Any]:
    """Return the description of an encoder in a model file.

    Raises
    ------
    ValueError
        When the activation of the encoder is not one of ``torch.nn``.
    """
    config = {**encoder.config, "activation": activation_name(encoder)}
    return {"encoder": config, "pretraining": asdict(card)}


def load_encoder(source: Any, *, strict: bool = True) -> Pretrained:
    """Load a pretrained encoder.

    Parameters
    ----------
    source : str | Path | object
        Source of the encoder, one of the following.

        - A folder written by :func:`save_encoder`, ``PARSEmbedder.save``, ``PARSClassifier.save``,
          ``PARSNet.save_pretrained`` or :func:`runs.pretrain <braindecode_pars.runs.pretrain>`, or
          the ``.safetensors`` file in it.
        - The name of an encoder in the package, such as ``"small"``; a folder of this name wins.
          :func:`packaged_encoders` has the names.
        - Such a folder on the Hugging Face Hub: ``"hf://owner/name"`` downloads it,
          ``"owner/name"`` uses an earlier download.
        - A PatchEncoder.
        - A fitted object with an encoder: an estimator (``.encoder_``), a skorch net
          (``.module_.encoder``) or a model (``.encoder``).
    strict : bool
        Whether to raise an error when the tensors in the file differ from those of the encoder.
        With False, the matching tensors are loaded and the report lists them.

    Returns
    -------
    encoder : PatchEncoder
        Encoder: a new one when loaded from a folder, otherwise the encoder of the object itself.
    card : EncoderCard
        Training data of the encoder. Its subjects are None when the source has no card.
    report : LoadReport | None
        Tensors that were loaded; None when the source is an object.

    Raises
    ------
    FileNotFoundError
        When the folder or its model file does not exist. For an unknown name, the message lists
        those of the encoders in the package.
    ValueError
        When a file is damaged, or when its tensors do not match the encoder it describes. The
        message contains the number of matching tensors.
    TypeError
        When the source is of another type.
    ImportError
        When a download needs ``huggingface_hub`` and it is not installed.

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
    # A folder or name of an encoder, an embedder, a classifier or a PARSNet.
    if isinstance(source, (str, Path)):
        return pretrained_from_file(read_model(source), strict=strict)

    # An object that has an encoder, or an encoder.
    for owner in (source, getattr(source, "module_", None)):
        for name in ("encoder_", "encoder"):
            encoder = getattr(owner, name, None)
            if isinstance(encoder, PatchEncoder):
                card = getattr(source, "encoder_card_", None) or unknown_card(owner)
                return Pretrained(encoder, card, None)
    if isinstance(source, PatchEncoder):
        return Pretrained(source, unknown_card(source), None)
    maybe_unfitted = hasattr(source, "fit") and not hasattr(source, "module_")
    raise TypeError(
        f"A {type(source).__name__} has no pretrained encoder"
        + (" (is it fitted?)" if maybe_unfitted else "")
        + "; pass a folder, a PatchEncoder, or a fitted estimator, net or model that has one."
    )


def packaged_encoders() -> dict[str, EncoderCard]:
    """Return the cards of the encoders in the package.

    Returns
    -------
    dict of str to EncoderCard
        Card by name. The name says pretext task and corpus; ``encoder=`` of the estimators and
        :func:`load_encoder` accept it.

    Raises
    ------
    ValueError
        When a file of the package is damaged.

    Examples
    --------
    >>> from braindecode_pars.pretrained import packaged_encoders
    >>> cards = packaged_encoders()
    >>> all(card.about["licence"] for card in cards.values())
    True
    """
    return {name: load_encoder(packaged_folder(name)).card for name in packaged_names()}


def pretrained_from_file(model: ModelFile, *, strict: bool = True) -> Pretrained:
    """Return the encoder of a model file of any kind, and its card."""
    encoder, sfreq, report = encoder_from_file(PARSNet, model, strict=strict)
    if model.kind == NETWORK:  # alone, without a card
        return Pretrained(encoder, replace(unknown_card(encoder), sfreq=sfreq), report)
    with described_in(model.source):
        return Pretrained(encoder, card_of(model.kind, model.description), report)
