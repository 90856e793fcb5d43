"""Folder of one model: its model file, and a readable copy of the description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from braindecode_pars._warnings import warn_user
from braindecode_pars.storage._atomic import replace_files
from braindecode_pars.storage._folder import check_may_write
from braindecode_pars.storage._json import read_json, to_json
from braindecode_pars.storage._model_file import ModelFile, pack, unpack
from braindecode_pars.storage._settings import differences

__all__ = [
    "CLASSIFIER",
    "EMBEDDER",
    "ENCODER",
    "FILES",
    "NETWORK",
    "check_may_save",
    "kinds_in",
    "read_model",
    "write_model",
]

#: Kinds of models.
ENCODER, EMBEDDER, NETWORK, CLASSIFIER = "PatchEncoder", "PARSEmbedder", "PARSNet", "PARSClassifier"
#: Model file of each kind, and the readable copy beside it. The names of a network are those of
#: the Hugging Face Hub.
FILES = {
    ENCODER: ("encoder.safetensors", "encoder.json"),
    EMBEDDER: ("encoder.safetensors", "encoder.json"),
    NETWORK: ("model.safetensors", "config.json"),
    CLASSIFIER: ("model.safetensors", "config.json"),
}
#: Files of a new repository, such as a clone of one on the Hub. They are never written over.
_BESIDE = (".git", ".gitattributes", ".gitignore", "LICENSE", "README.md")
#: Entries of the descriptions of version 0.1.0, by which they are recognised.
_ENCODER_ENTRIES = {"encoder", "pretraining"}
_NETWORK_ENTRIES = {"channel_drop_prob", "electrode_position", "embed_dim", "num_layers"}
#: Further file of an estimator in a folder of version 0.1.0, and its entry in a description.
_EARLIER = {EMBEDDER: ("embedder.json", "embedder"), CLASSIFIER: ("classifier.json", "classifier")}

#: What to do with the folder of an encoder that was taken for that of another model.
_ONLY_AN_ENCODER = "; it is an encoder, which load_encoder and encoder= of the estimators take"


def check_may_save(folder: Path, kind: str, *, share: bool = False) -> None:
    """Check that a model can be saved in a folder.

    Parameters
    ----------
    folder : Path
        Folder of the model.
    kind : str
        Kind of the model.
    share : bool
        Whether the folder is for others. It must then have no file that may tell more than the
        model does.

    Raises
    ------
    ValueError
        When the folder contains a model of another kind, or no model but other files; with
        ``share``, any other file.
    """
    if share:
        check_may_write(folder, "a model to share", is_ours=False, beside=(*FILES[kind], *_BESIDE))
    found = kinds_in(folder)
    for other in found:
        if other != kind:
            raise ValueError(
                f"{folder} contains a saved {other}; save the {kind} in another folder."
            )
    check_may_write(folder, f"a saved {kind}", is_ours=bool(found), beside=_BESIDE)


def kinds_in(folder: Path) -> list[str]:
    """Return the kinds of the models in a folder; models of other programs are left out.

    Raises
    ------
    ValueError
        When a model file is damaged.
    """
    files = [folder / name for name in dict.fromkeys(weights for weights, _ in FILES.values())]
    models = {file: unpack(file.read_bytes(), file) for file in files if file.is_file()}
    kinds = [model.kind or _earlier_kind(file) for file, model in models.items()]
    return [kind for kind in kinds if kind is not None]


def write_model(
    folder: Path, kind: str, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> Path:
    """Write a model into a folder; a model of the same kind is replaced.

    The model file contains everything, so a reader finds either the old or the new model, even
    if this process is killed. The JSON file is a copy for people and for other programs.

    Parameters
    ----------
    folder : Path
        Folder of the model; created when it does not exist.
    kind : str
        Kind of the model.
    description : dict
        Description of the model. The constructor arguments of a network are its entry "network".
    tensors : dict of str to Tensor
        Tensors by name.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        When a tensor contains NaN or infinite values.
    OSError
        When the files cannot be written; the previous content of the folder is unchanged.
    """
    weights, readable = FILES[kind]
    copy = to_json(description.get("network", description)).encode()
    replace_files(folder, {weights: pack(kind, description, tensors), readable: copy})
    return folder


def read_model(folder: Path, *kinds: str) -> ModelFile:
    """Read the model in a folder.

    Parameters
    ----------
    folder : Path
        Folder of the model.
    *kinds : str
        Accepted kinds.

    Returns
    -------
    ModelFile
        The model, with one of these kinds.

    Raises
    ------
    FileNotFoundError
        When the folder contains no model file.
    ValueError
        When a file is damaged, or when the folder contains another kind of model or two models.

    Warns
    -----
    UserWarning
        When the model file has no checksum, or when the readable copy differs from it.
    """
    names = list(dict.fromkeys(FILES[kind][0] for kind in kinds))
    every = [folder / name for name in dict.fromkeys(weights for weights, _ in FILES.values())]
    found = [file for file in every if file.is_file()]
    if len(found) > 1:
        raise ValueError(
            f"{folder} contains two models, {found[0].name} and {found[1].name}; move one of them "
            "into another folder."
        )
    if not found or found[0].name not in names:
        is_encoder = any(file.name == FILES[ENCODER][0] for file in found)
        raise FileNotFoundError(
            f"{folder} does not contain a saved {' or '.join(kinds)}: it has no "
            f"{' or '.join(names)}" + (f"{_ONLY_AN_ENCODER}." if is_encoder else ".")
        )
    (file,) = found
    model = unpack(file.read_bytes(), file)
    has_checksum = model.kind is not None
    if not has_checksum:
        model = _read_earlier(file, model.tensors)
        warn_user(
            f"{file} has no checksum, because version 0.1.0 of braindecode_pars or another program "
            "has written it. Load it and save it again in a new folder."
        )
    if model.kind not in kinds:
        advice = _ONLY_AN_ENCODER if model.kind == ENCODER else ""
        raise ValueError(
            f"{folder} contains a saved {model.kind}, not a {' or '.join(kinds)}{advice}."
        )
    if has_checksum:  # otherwise, what is beside the file is its description
        _warn_if_copy_differs(file, model)
    return model


def _warn_if_copy_differs(file: Path, model: ModelFile) -> None:
    """Warn that an edited copy has no effect, also after a save that was killed in between."""
    copy = file.with_name(FILES[model.kind][1])
    if not copy.is_file():
        return
    expected = model.description.get("network", model.description)
    try:
        found = differences(expected, read_json(copy))
    except ValueError as error:
        found = [str(error).rstrip(".")]
    if found:
        warn_user(
            f"{copy} differs from the description in {file.name} and is ignored: "
            f"{'; '.join(found[:3])}."
        )


def _earlier_kind(file: Path) -> str | None:
    """Return the kind of a model of version 0.1.0; None for that of another program."""
    encoder_file, readable = FILES[ENCODER]
    is_encoder = file.name == encoder_file
    try:
        described = read_json(file.with_name(readable if is_encoder else FILES[NETWORK][1]))
    except (ValueError, OSError):
        return None
    if not described.keys() >= (_ENCODER_ENTRIES if is_encoder else _NETWORK_ENTRIES):
        return None
    kind, estimator = (ENCODER, EMBEDDER) if is_encoder else (NETWORK, CLASSIFIER)
    return estimator if file.with_name(_EARLIER[estimator][0]).is_file() else kind


def _read_earlier(file: Path, tensors: dict[str, Tensor]) -> ModelFile:
    """Read a model of version 0.1.0, which was described by JSON files without a checksum."""
    kind = _earlier_kind(file)
    if kind is None:
        readable = next(copy for weights, copy in FILES.values() if weights == file.name)
        raise ValueError(
            f"{file} is not a model of braindecode_pars: it has no checksum, and {readable} beside "
            "it does not describe one."
        )
    described = read_json(file.with_name(FILES[kind][1]))
    description = {"network": described} if kind in (NETWORK, CLASSIFIER) else described
    if kind in _EARLIER:
        name, entry = _EARLIER[kind]
        description = {**description, entry: read_json(file.with_name(name))}
    return ModelFile(kind, description, tensors)
