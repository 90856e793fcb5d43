"""Folder of one model: its model file, and a readable copy of the description."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

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
#: Further file of an estimator in a folder of version 0.1.0, and its entry in a description.
_EARLIER = {EMBEDDER: ("embedder.json", "embedder"), CLASSIFIER: ("classifier.json", "classifier")}


def check_may_save(folder: Path, kind: str) -> None:
    """Check that a model can be saved in a folder.

    Raises
    ------
    ValueError
        When the folder contains a model of another kind, or no model but other files.
    """
    found = kinds_in(folder)
    for other in found:
        if other != kind:
            raise ValueError(
                f"{folder} contains a saved {other}; save the {kind} in another folder."
            )
    check_may_write(folder, f"a saved {kind}", is_ours=bool(found))


def kinds_in(folder: Path) -> list[str]:
    """Return the kinds of the models in a folder; more than one is an error of the user.

    Raises
    ------
    ValueError
        When a model file is damaged.
    """
    files = [folder / name for name in dict.fromkeys(weights for weights, _ in FILES.values())]
    models = {file: unpack(file.read_bytes(), file) for file in files if file.is_file()}
    return [model.kind or _earlier_kind(file) for file, model in models.items()]


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
    files = [folder / name for name in names if (folder / name).is_file()]
    if not files:
        raise FileNotFoundError(
            f"{folder} does not contain a saved {' or '.join(kinds)}: it has no "
            f"{' or '.join(names)}."
        )
    if len(files) > 1:
        raise ValueError(
            f"{folder} contains two models, {files[0].name} and {files[1].name}; move one of them "
            "into another folder."
        )
    (file,) = files
    model = unpack(file.read_bytes(), file)
    if model.kind is None:
        model = _read_earlier(file, model.tensors)
        warnings.warn(
            f"{file} has no checksum, because version 0.1.0 of braindecode_pars or another program "
            "has written it. Load it and save it again in a new folder.",
            stacklevel=4,
        )
    else:
        _warn_if_copy_differs(file, model)
    if model.kind not in kinds:
        raise ValueError(f"{folder} contains a saved {model.kind}, not a {' or '.join(kinds)}.")
    return model


def _warn_if_copy_differs(file: Path, model: ModelFile) -> None:
    """Warn that an edited copy has no effect, also after a save that was killed in between."""
    copy = file.with_name("config.json" if "network" in model.description else "encoder.json")
    if not copy.is_file():
        return
    expected = model.description.get("network", model.description)
    try:
        found = differences(expected, read_json(copy))
    except ValueError as error:
        found = [str(error).rstrip(".")]
    if found:
        warnings.warn(
            f"{copy} differs from the description in {file.name} and is ignored: "
            f"{'; '.join(found[:3])}.",
            stacklevel=5,
        )


def _earlier_kind(file: Path) -> str:
    """Return the kind of a model of version 0.1.0, which the names of its files show."""
    for kind, (name, _) in _EARLIER.items():
        if FILES[kind][0] == file.name and file.with_name(name).is_file():
            return kind
    return ENCODER if FILES[ENCODER][0] == file.name else NETWORK


def _read_earlier(file: Path, tensors: dict[str, Tensor]) -> ModelFile:
    """Read a model of version 0.1.0, which was described by JSON files without a checksum."""
    kind = _earlier_kind(file)
    readable = file.with_name(FILES[kind][1])
    if not readable.is_file():
        raise FileNotFoundError(
            f"{file.parent} does not contain a saved {kind}: it has no {readable.name}."
        )
    described = read_json(readable)
    description = {"network": described} if kind in (NETWORK, CLASSIFIER) else described
    if kind in _EARLIER:
        name, entry = _EARLIER[kind]
        description = {**description, entry: read_json(file.with_name(name))}
    return ModelFile(kind, description, tensors)
