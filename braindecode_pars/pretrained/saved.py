"""Save, load and share encoders.

The format of model files is defined in ``_common.model_files``. PARSNet also has the methods of
braindecode for saving and loading, in ``models.network_files``. Fitted estimators are saved by
``estimators.saved_estimator``. Encoder cards are stored as JSON; pickle is neither read nor
written. Models that are saved for sharing contain no names of subjects and no paths.
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
    """Save an encoder and its encoder card in a folder.

    Use this function for an encoder that was pretrained without an estimator. Estimators save their
    encoders with ``PARSEmbedder.save``, or during ``fit`` if ``checkpoint_dir`` is set.

    The encoder card describes the training data. The file ``encoder.safetensors`` contains the
    weights, the card and a checksum. The file ``encoder.json`` is a copy of the card for users and
    other programs.

    Parameters
    ----------
    encoder : PatchEncoder
        Encoder to save.
    card : EncoderCard
        Training data and pretext task of the encoder. Set ``card.subjects`` to the training
        subjects, or to None if they are unknown. An empty list means that the encoder was not
        trained on any subject.
    folder : path
        Folder of the encoder. The folder is created if it does not exist. An existing encoder in
        the folder is replaced.
    share : bool
        Whether the folder is for sharing. If True, the card is saved without subject names (see
        :meth:`EncoderCard.without_names`), and a model card for the Hugging Face Hub is written to
        ``README.md``, unless this file exists.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        If the activation of the encoder is not a class of ``torch.nn``, if its weights are not
        finite, if the folder contains a model that is not a saved encoder, or if it contains other
        files but no model (repository files, such as ``README.md`` and ``.git``, are accepted).
        With ``share=True``, also if it contains other files next to a saved encoder.
    OSError
        If the folder cannot be written. Each file then has either its previous or its new content.

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
    """Return a SHA-256 digest of the architecture and the weights of an encoder."""
    weights = [tensor.detach().cpu().numpy().tobytes() for tensor in encoder.state_dict().values()]
    return hashlib.sha256(b"".join([repr(encoder.config).encode(), *weights])).hexdigest()


def describe_encoder(encoder: PatchEncoder, card: cards.EncoderCard) -> dict[str, Any]:
    """Return the description of an encoder and its card, as stored in a model file.

    Raises
    ------
    ValueError
        If the activation of the encoder is not a class of ``torch.nn``.
    """
    config = {**encoder.config, "activation": activation_name(encoder)}
    return {"encoder": config, "pretraining": asdict(card)}


def load_encoder(source: Any, *, strict: bool = True) -> cards.Pretrained:
    """Load a pretrained encoder: a saved or bundled encoder, or the encoder of a fitted model.

    Parameters
    ----------
    source : str | Path | object
        Source of the encoder, one of the following:

        - A folder written by :func:`save_encoder`, ``PARSEmbedder.save``, ``PARSClassifier.save``,
          ``PARSNet.save_pretrained`` or :func:`runs.pretrain <braindecode_pars.runs.pretrain>`, or
          the ``.safetensors`` file in such a folder.
        - The name of a bundled encoder (an encoder that is part of the package), such as
          ``"small"``; :func:`packaged_encoders` returns the names. If a folder with this name
          contains a model, the model in the folder is loaded instead.
        - A model on the Hugging Face Hub: ``"hf://owner/name"`` is downloaded if necessary, and
          ``"owner/name"`` is only loaded from a previous download.
        - A PatchEncoder, or the result of this function.
        - A fitted object with an encoder: an estimator (``.encoder_``), a skorch net
          (``.module_.encoder``) or a model (``.encoder``).
    strict : bool
        Whether to raise an error if the tensors in the file do not match the tensors of the
        encoder. If False, only matching tensors are loaded; the returned ``report`` lists the
        loaded tensors.

    Returns
    -------
    encoder : PatchEncoder
        Encoder. If an object was passed, this is the encoder of the object itself, not a copy.
    card : EncoderCard
        Encoder card, which describes the training data. If the source has no card,
        ``card.subjects`` is None (unknown).
    report : LoadReport | None
        Tensors that were loaded; None if an object was passed as ``source``.

    Raises
    ------
    FileNotFoundError
        If the folder or the model file does not exist. If ``source`` is an unknown name, the
        message lists the names of the bundled encoders.
    ValueError
        If a file is damaged, or if the tensors in the file do not match the encoder that the file
        describes. The message contains the number of matching tensors.
    TypeError
        If ``source`` has a type that is not listed above.
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
    # source is a folder, a name, or a model id on the Hub.
    if isinstance(source, (str, Path)):
        return encoder_from_file(model_files.read_model(source), strict=strict)

    # source is an object that contains an encoder, or an encoder.
    for owner in (source, getattr(source, "module_", None)):
        for name in ("encoder_", "encoder"):
            encoder = getattr(owner, name, None)
            if isinstance(encoder, PatchEncoder):
                card = getattr(source, "encoder_card_", None) or cards.unknown_card(owner)
                return cards.Pretrained(encoder, card, None)
    if isinstance(source, PatchEncoder):
        return cards.Pretrained(source, cards.unknown_card(source), None)
    raise TypeError(
        "encoder must be the folder of a saved encoder, the name of a bundled encoder, a "
        "PatchEncoder, or a fitted estimator, net or model that contains an encoder, got "
        f"{type(source).__name__}."
    )


def packaged_encoders() -> dict[str, cards.EncoderCard]:
    """Return the encoder cards of the bundled encoders, which are part of the package.

    An encoder card describes the training data of an encoder.

    Returns
    -------
    dict of str to EncoderCard
        Encoder cards by encoder name. Pass a name to the estimators as ``encoder``, or to
        :func:`load_encoder`. A name consists of the pretext task and the corpus, as in
        ``"pars-sleep"``. The encoder ``"features-eegmmidb"`` can also be loaded as ``"small"``.

    Raises
    ------
    ValueError
        If a file of the package is damaged.

    Examples
    --------
    >>> from braindecode_pars.pretrained import packaged_encoders
    >>> cards = packaged_encoders()
    >>> all(card.about["license"] for card in cards.values())  # each encoder has a license
    True
    """
    return {
        name: load_encoder(model_files.bundled_folder(name)).card
        for name in model_files.bundled_names()
    }


def encoder_from_file(model: model_files.ModelFile, *, strict: bool = True) -> cards.Pretrained:
    """Return the encoder in a model file of any kind, with its card and load report."""
    tensors, network = model.tensors, model.description.get("network")
    # The files of networks and feature ensembles also contain other tensors.
    if network is not None or model.kind == model_files.FEW_LABELS:
        prefix = "encoder."
        tensors = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

    def build() -> PatchEncoder:
        config = dict(model.description.get("encoder", {}))
        if network is not None:
            names = {*inspect.signature(PatchEncoder).parameters, space_time.KIND}
            config = {name: network[name] for name in names & network.keys()}
            if config["patch_size"] is None:  # the file has the patch length only in seconds
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
