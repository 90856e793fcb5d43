"""Save, load and share encoders.

The format of model files is defined in ``_common.model_files``. PARSNet additionally has the
interface of braindecode, in ``models.network_files``, and fitted estimators are saved by
``estimators.saved_estimator``. Cards are stored as JSON; pickle is neither read nor written. Shared
models contain no names of subjects and no paths.
"""

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from braindecode_pars._common import files, model_files
from braindecode_pars.encoder import PatchEncoder, activation_name
from braindecode_pars.models import space_time
from braindecode_pars.pretrained import cards


def save_encoder(
    encoder: PatchEncoder, card: cards.EncoderCard, folder: str | Path, *, share: bool = False
) -> Path:
    """Save an encoder and its card in a folder: ``encoder.safetensors`` and ``encoder.json``.

    ``encoder.safetensors`` contains the weights, the card and a checksum. ``encoder.json`` is a
    human-readable copy of the card, and can be used by other programs. Estimators save their
    encoders with ``PARSEmbedder.save`` and ``checkpoint_dir``. Use this function for encoders that
    were pretrained without an estimator.

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder to save.
    card : EncoderCard
        Training data and pretext task of the encoder. Set ``subjects`` to its training subjects,
        or to None if they are unknown. An empty list means that the encoder has no training
        subjects.
    folder : path
        Folder of the encoder. It is created if it does not exist. An existing encoder in this
        folder is replaced.
    share : bool
        Whether to save for sharing: without subject names (see :meth:`EncoderCard.without_names`),
        and with a model card (``README.md``; an existing one is kept).

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        If the activation of the encoder is not a class of ``torch.nn``, if its weights are not
        finite, or if the folder contains a model of another kind, or files but no model. With
        ``share=True``, also if the folder contains files that do not belong to the encoder.
    OSError
        If the folder cannot be written. Its previous content is then unchanged.

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
    model_files.check_may_save(folder, model_files.ENCODER, share=share)
    write = write_shared if share else model_files.write_model
    return write(folder, model_files.ENCODER, describe_encoder(encoder, card), encoder.state_dict())


def encoder_digest(encoder: PatchEncoder) -> str:
    """Return a digest of the architecture and the weights of an encoder."""
    weights = [tensor.detach().cpu().numpy().tobytes() for tensor in encoder.state_dict().values()]
    return hashlib.sha256(b"".join([repr(encoder.config).encode(), *weights])).hexdigest()


def describe_encoder(encoder: PatchEncoder, card: cards.EncoderCard) -> dict[str, Any]:
    """Return the description of an encoder in a model file.

    Raises
    ------
    ValueError
        If the activation of the encoder is not a class of ``torch.nn``.
    """
    config = {**encoder.config, "activation": activation_name(encoder)}
    return {"encoder": config, "pretraining": asdict(card)}


def load_encoder(source: Any, *, strict: bool = True) -> cards.Pretrained:
    """Load a pretrained encoder from a folder, the package, the Hugging Face Hub or an object.

    Parameters
    ----------
    source : str | Path | object
        Source of the encoder, one of the following:

        - A folder written by :func:`save_encoder`, ``PARSEmbedder.save``, ``PARSClassifier.save``,
          ``PARSNet.save_pretrained`` or :func:`runs.pretrain <braindecode_pars.runs.pretrain>`, or
          the ``.safetensors`` file in this folder.
        - The name of a bundled encoder, such as ``"small"``; :func:`packaged_encoders` lists the
          names. If a folder with this name exists, the folder is used.
        - A model on the Hugging Face Hub: ``"hf://owner/name"`` downloads it, ``"owner/name"`` uses
          a previous download.
        - A PatchEncoder, or the result of this function.
        - A fitted object with an encoder: an estimator (``.encoder_``), a skorch net
          (``.module_.encoder``) or a model (``.encoder``).
    strict : bool
        Whether to raise an error if the tensors in the file do not match the tensors of the
        encoder. If False, the matching tensors are loaded, and listed in ``report``.

    Returns
    -------
    encoder : PatchEncoder
        Encoder. If an object was passed, this is the encoder of the object itself, not a copy.
    card : EncoderCard
        Training data of the encoder. Its subjects are None (unknown) if the source has no card.
    report : LoadReport | None
        Tensors that were loaded; None if an object was passed.

    Raises
    ------
    FileNotFoundError
        If the folder or its model file does not exist. For an unknown name, the message lists the
        names of the bundled encoders.
    ValueError
        If a file is corrupt, or if its tensors do not match the encoder that it describes. The
        message contains the number of matching tensors.
    TypeError
        If the source has another type.
    ImportError
        If a model must be downloaded, but ``huggingface_hub`` is not installed.

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
    if isinstance(source, cards.Pretrained):
        return source
    # The folder or the name of an encoder, an embedder, a classifier or a PARSNet
    if isinstance(source, (str, Path)):
        return encoder_from_file(model_files.read_model(source), strict=strict)

    # An object that contains an encoder, or an encoder
    for owner in (source, getattr(source, "module_", None)):
        for name in ("encoder_", "encoder"):
            encoder = getattr(owner, name, None)
            if isinstance(encoder, PatchEncoder):
                card = getattr(source, "encoder_card_", None) or cards.unknown_card(owner)
                return cards.Pretrained(encoder, card, None)
    if isinstance(source, PatchEncoder):
        return cards.Pretrained(source, cards.unknown_card(source), None)
    raise TypeError(
        f"encoder must contain a pretrained encoder, got {type(source).__name__}. Pass a folder, a "
        "PatchEncoder, or a fitted estimator, net or model with an encoder."
    )


def packaged_encoders() -> dict[str, cards.EncoderCard]:
    """Return the encoder cards of the bundled encoders.

    Returns
    -------
    dict of str to EncoderCard
        Encoder cards by encoder name. A name, such as ``"pars-sleep"``, consists of pretext task
        and corpus. It can be passed to the estimators as ``encoder``, and to :func:`load_encoder`.

    Raises
    ------
    ValueError
        If a file of the package is corrupt.

    Examples
    --------
    >>> from braindecode_pars.pretrained import packaged_encoders
    >>> cards = packaged_encoders()
    >>> all(card.about["license"] for card in cards.values())
    True
    """
    return {
        name: load_encoder(model_files.bundled_folder(name)).card
        for name in model_files.bundled_names()
    }


def encoder_from_file(model: model_files.ModelFile, *, strict: bool = True) -> cards.Pretrained:
    """Return the encoder in a model file of any kind, with its card and load report."""
    tensors, network = model.tensors, model.description.get("network")
    if network is not None or model.kind == model_files.FEW_LABELS:  # other tensors are in the file
        prefix = "encoder."
        tensors = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

    def build() -> PatchEncoder:
        config = dict(model.description.get("encoder", {}))
        if network is not None:
            names = {*inspect.signature(PatchEncoder).parameters, space_time.KIND}
            config = {name: network[name] for name in names & network.keys()}
            if config["patch_size"] is None:  # the network stores its length in seconds
                config["patch_size"] = tensors["tokenizer.weight"].shape[1]
        activation = config["activation"].rpartition(".")[2]
        config["activation"] = getattr(torch.nn, activation)
        return space_time.build_encoder(**config)

    encoder, report = model_files.build_and_load(build, tensors, model.source, strict=strict)
    if model.kind == model_files.NETWORK:  # a PARSNet without an estimator has no card
        card = replace(cards.unknown_card(encoder), sfreq=model.description["network"].get("sfreq"))
        return cards.Pretrained(encoder, card, report)
    with model_files.described_in(model.source):
        return cards.Pretrained(encoder, cards.card_of(model.kind, model.description), report)


def write_shared(
    folder: Path, kind: str, description: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> Path:
    """Write a model for sharing, without names of subjects and with a model card.

    An existing ``README.md`` in the folder is not changed.

    Parameters
    ----------
    folder, kind, description, tensors
        As in :func:`~braindecode_pars._common.model_files.write_model`.

    Returns
    -------
    Path
        The folder.
    """
    entry = description.get(model_files.ENTRIES.get(kind, ""), {})
    part = {"pretraining": asdict(cards.card_of(kind, description).without_names())}
    shared = {**description, **part}
    if "pretraining" in entry:  # the card of a fine-tuned encoder
        shared = {**description, model_files.ENTRIES[kind]: {**entry, **part}}
    model_files.write_model(folder, kind, shared, tensors)
    if not (folder / model_files.README).exists():
        files.replace_file(folder / model_files.README, cards.model_card(kind, shared))
    return folder
