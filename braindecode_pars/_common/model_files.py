"""Model files: one safetensors file per model, with a description and a checksum.

Each model has its own folder. A model can be loaded from a local folder, from the encoders that are
bundled with the package, or from the Hugging Face Hub. :class:`LoadReport` states which tensors
were loaded.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
from torch import Tensor, nn

from braindecode_pars._common import checks, computing, files, names
from braindecode_pars._common.results_folder import ResultsFolder


@dataclass(frozen=True)
class LoadReport:
    """Report on which tensors of a module were loaded from a file.

    Attributes
    ----------
    loaded : tuple of str
        Names of the tensors of the module that were loaded.
    missing : tuple of str
        Names of the tensors of the module that are not in the file. In the module, their values are
        unchanged.
    reshaped : tuple of str
        Names of the tensors that have a different shape in the file than in the module. In the
        module, their values are unchanged.
    unexpected : tuple of str
        Names of the tensors in the file that are not in the module.

    Examples
    --------
    >>> from braindecode_pars.pretrained import LoadReport
    >>> report = LoadReport(loaded=("weight", "bias"), missing=("mask_token",))
    >>> report.complete
    False
    >>> print(report)
    2 of 3 tensors loaded; 1 missing (such as mask_token)
    """

    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all tensors of the module, and all tensors in the file, were loaded."""
        return not (self.missing or self.reshaped or self.unexpected)

    def __str__(self) -> str:
        total = len(self.loaded) + len(self.missing) + len(self.reshaped)
        text = f"{len(self.loaded)} of {total} tensors loaded"
        for kind in ("missing", "reshaped", "unexpected"):
            if names := getattr(self, kind):
                text += f"; {len(names)} {kind} (such as {names[0]})"
        return text


def load_tensors(
    module: nn.Module, tensors: Mapping[str, Tensor], source: Any, *, strict: bool = True
) -> LoadReport:
    """Load tensors into a module, in place.

    Parameters
    ----------
    module : nn.Module
        Module whose tensors are replaced.
    tensors : dict of str to Tensor
        New tensors, by their names in the ``state_dict`` of the module.
    source : Any
        Where the tensors come from, for the error message.
    strict : bool
        Whether all names and shapes must match. If False, only tensors with a matching name and
        shape are loaded.

    Returns
    -------
    LoadReport
        Names of the tensors that were loaded, and of the tensors that were not loaded.

    Raises
    ------
    ValueError
        If no tensor matches. With ``strict=True``, also if tensors are missing, are unexpected or
        have a different shape.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from braindecode_pars._common.model_files import load_tensors
    >>> tensors = {"weight": torch.zeros(1, 2)}
    >>> print(load_tensors(nn.Linear(2, 1), tensors, "a dict", strict=False))
    1 of 2 tensors loaded; 1 missing (such as bias)
    """
    # A tensor matches if the module has a tensor with the same name and shape.
    expected = module.state_dict()
    matching = {
        name for name, t in tensors.items() if name in expected and t.shape == expected[name].shape
    }
    report = LoadReport(
        loaded=tuple(name for name in expected if name in matching),
        missing=tuple(name for name in expected if name not in tensors),
        reshaped=tuple(name for name in expected if name in tensors and name not in matching),
        unexpected=tuple(name for name in tensors if name not in expected),
    )
    if not matching or (strict and not report.complete):
        advice = "strict=False to load only the matching tensors" if matching else "a matching file"
        raise ValueError(
            f"The tensors in {source} do not match the {type(module).__name__}: {report}. Pass "
            f"{advice}."
        )
    # torch does not have to check the names again.
    module.load_state_dict({name: tensors[name] for name in report.loaded}, strict=False)
    return report


@contextmanager
def described_in(source: Any, what: str = "model") -> Iterator[None]:
    """Convert errors inside the context, which builds a model, to a ValueError that names the file.

    Parameters
    ----------
    source : Any
        File that describes the model, for the error message.
    what : str
        What the file describes, for the error message.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"{source} does not describe a valid {what} for this version of braindecode_pars: "
            f"{error}. Load the {what} with the version of braindecode_pars that saved it, or fit "
            f"and save the {what} again."
        ) from error


Module = TypeVar("Module", bound=nn.Module)


def build_and_load(
    build: Callable[[], Module], tensors: Mapping[str, Tensor], source: Any, *, strict: bool = True
) -> tuple[Module, LoadReport]:
    """Build a module and load its tensors. The random state of the caller is not changed.

    Parameters
    ----------
    build : callable
        Function that returns a new module.
    tensors, source, strict
        As in :func:`load_tensors`.

    Returns
    -------
    module : nn.Module
        Module with the loaded tensors.
    report : LoadReport
        As in :func:`load_tensors`.

    Raises
    ------
    ValueError
        As in :func:`load_tensors`, or if the module cannot be built, for example because it was
        saved by a newer version of this package.
    """
    with described_in(source), computing.seeded(0):  # the initial weights are replaced later
        module = build()
    return module, load_tensors(module, tensors, source, strict=strict)


#: Version of the file format. Files of other versions cannot be loaded.
VERSION = 2
#: Key of the metadata in the header. All metadata are stored under one key, so that the bytes of a
#: file do not depend on the order of keys.
_KEY = "braindecode_pars"


@dataclass(frozen=True)
class ModelFile:
    """Content of a model file.

    Attributes
    ----------
    kind : str
        Name of the class of the model, such as ``"PARSNet"``.
    description : dict
        JSON object that describes the model, such as its constructor arguments.
    tensors : dict of str to Tensor
        Weights and buffers by name, on the CPU.
    source : Path | str
        Path or other origin of the file, for error messages.
    """

    kind: str
    description: dict[str, Any]
    tensors: dict[str, Tensor]
    source: Path | str


def pack(kind: str, description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """Return the content of a model file.

    Parameters
    ----------
    kind, description, tensors
        As in :class:`ModelFile`.

    Returns
    -------
    bytes
        Content of a safetensors file, whose metadata contain the description and a SHA-256
        checksum.

    Raises
    ------
    ValueError
        If a tensor contains NaN or infinite values.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars._common.model_files import pack, unpack
    >>> content = pack("example", {"sfreq": 200.0}, {"weight": torch.ones(2)})
    >>> unpack(content, "memory").description
    {'sfreq': 200.0}
    """
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    bad = [name for name, value in tensors.items() if not value.isfinite().all()]
    if bad:
        raise ValueError(
            f"The model cannot be saved, because its tensor {bad[0]} contains NaN or infinite "
            "values. Train the model again, for example with a lower learning rate."
        )
    entries = {"version": VERSION, "kind": kind, "description": files.as_read(description)}
    # The tensors are saved twice, because the checksum covers the header that also contains it.
    header, data = _split(safetensors.torch.save(tensors))
    entries["sha256"] = _sha256(entries, header, data)
    return safetensors.torch.save(tensors, metadata={_KEY: json.dumps(entries)})


def unpack(content: bytes, source: str | Path) -> ModelFile:
    """Read the content of a model file created by :func:`pack`, and verify its checksum.

    Parameters
    ----------
    content : bytes
        Content of the file.
    source : path | str
        Path or other origin of the content, for error messages.

    Raises
    ------
    ValueError
        If the file was damaged or modified, is not a model file of this package, or has a different
        version of the file format.
    """
    try:
        tensors = safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{source} is not a valid safetensors file: {error}. Copy or download the file again."
        ) from error
    header, data = _split(content)
    try:
        entries = json.loads(header.pop("__metadata__", {})[_KEY])
        version, expected = entries["version"], entries.pop("sha256")
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{source} contains no valid model description. The file may be damaged, or may have "
            "been written by another program or by version 0.1.0 of braindecode_pars. Download the "
            "file again, or fit and save the model again."
        ) from error
    # The version is checked first, because other versions may compute the checksum differently.
    if version != VERSION:
        raise ValueError(
            f"{source} has version {version} of the file format, but the installed version of "
            f"braindecode_pars only reads version {VERSION}. Update braindecode_pars if the file "
            "is newer, or fit and save the model again."
        )
    if _sha256(entries, header, data) != expected:
        raise ValueError(
            f"{source} does not match its checksum: the file was modified or damaged after it was "
            "written. Copy or download the file again, or save the model in a new folder."
        )
    return ModelFile(entries["kind"], entries["description"], tensors, source)


def _split(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """Split the content of a safetensors file into its header and its data."""
    start = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:start]), memoryview(content)[start:]


def _sha256(entries: Mapping[str, Any], header: Mapping[str, Any], data: memoryview) -> str:
    """Return the SHA-256 of a model file: of description, names and shapes of tensors, and data."""
    content = hashlib.sha256(json.dumps([entries, header], sort_keys=True).encode())
    content.update(data)
    return content.hexdigest()


#: Kinds of models: names of their classes.
ENCODER, EMBEDDER, NETWORK, CLASSIFIER, FEW_LABELS, REGRESSOR = names.MODEL_KINDS
#: Kinds of models that predict labels of windows.
PREDICTORS = [kind for kind, row in names.MODEL_KINDS.items() if "predictor" in row.flags]
#: Kinds of models with a fine-tuned network.
NETWORKS = [kind for kind, row in names.MODEL_KINDS.items() if "network" in row.flags]
#: File names of each kind of model: the model file, and a readable copy of its description. The
#: file names of networks are those that the Hugging Face Hub expects.
MODEL_FILES = {
    kind: ("encoder.safetensors", "encoder.json")
    if "encoder" in row.flags
    else ("model.safetensors", "config.json")
    for kind, row in names.MODEL_KINDS.items()
}
#: Key that an estimator adds to the description of its network or encoder.
ENTRIES = {
    EMBEDDER: "embedder",
    CLASSIFIER: "classifier",
    FEW_LABELS: "classifier",
    REGRESSOR: "regressor",
}
#: Names of all model files.
_WEIGHTS = ("encoder.safetensors", "model.safetensors")
#: Files that a folder may contain before a model is saved, such as the files of a new repository.
#: They are not overwritten.
_REPOSITORY_FILES = (".git", ".gitattributes", ".gitignore", "LICENSE", "README.md")


def check_may_save(folder: Path, kind: str, *, share: bool = False) -> None:
    """Check that a model can be saved in a folder without overwriting other files.

    Parameters
    ----------
    folder : Path
        Folder of the model.
    kind : str
        Kind of the model.
    share : bool
        Whether the folder will be shared with other users. If True, the folder must not contain
        other files, because these may contain information that should not be shared.

    Raises
    ------
    ValueError
        If the folder contains a model of a different kind, or if it contains other files but no
        model (repository files, such as ``README.md`` and ``.git``, are accepted). With ``share``,
        also if it contains other files next to a model, including files that another process is
        writing.
    """
    kinds = kinds_in(folder)
    if other_kinds := {*kinds} - {kind}:
        raise ValueError(
            f"{folder} already contains a saved {min(other_kinds)}. Save the {kind} in another "
            "folder."
        )
    allowed_files = (*_REPOSITORY_FILES, *MODEL_FILES[kind]) if kinds else _REPOSITORY_FILES
    marks = () if share else MODEL_FILES[kind][:1]
    ResultsFolder(folder, f"a saved {kind}", marks=marks, allowed_files=allowed_files).check()
    if share and (leftovers := files.remove_abandoned(folder, at_once=True)):
        # The temporary files may contain names of subjects, which are only saved without share.
        raise ValueError(
            f"{folder} contains the temporary folder {leftovers[0].name}, to which another process "
            "may be writing. Wait until the process has ended, or remove the temporary folder."
        )


def kinds_in(folder: Path) -> list[str]:
    """Return the kinds of the models in a folder.

    Raises
    ------
    ValueError
        If a model file is damaged, or was not written by this package.
    """
    return [unpack(file.read_bytes(), file).kind for file in _files_in(folder)]


def _files_in(folder: Path) -> list[Path]:
    return [folder / name for name in _WEIGHTS if (folder / name).is_file()]


def write_model(
    folder: Path, kind: str, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> Path:
    """Write a model to a folder. A model of the same kind is replaced.

    The model file contains the whole model, so the folder always contains either the previous or
    the new model, even if this process is killed. The JSON file is a readable copy of the
    description for users and other programs.

    Parameters
    ----------
    folder : Path
        Folder of the model. Created if it does not exist.
    kind : str
        Kind of the model.
    description : dict
        Description of the model. If the model contains a network, the entry "network" contains the
        constructor arguments of the network.
    tensors : dict of str to Tensor
        Weights and buffers by name.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        If a tensor contains NaN or infinite values.
    OSError
        If the files cannot be written. Each file then has either its previous or its new content.
    """
    weights, readable = MODEL_FILES[kind]
    content = pack(kind, description, tensors)
    files.replace_files(folder, {weights: content, readable: _readable(description)})
    return folder


def _readable(description: Mapping[str, Any]) -> bytes:
    return files.to_json(description.get("network", description)).encode()


def read_model(source: str | Path, *kinds: str, **options: Any) -> ModelFile:
    """Read a model file.

    Parameters
    ----------
    source : str | Path
        Folder or name of the model, as in :func:`model_folder`.
    *kinds : str
        Accepted kinds of models. If empty, all kinds are accepted.
    **options
        Options of :func:`model_folder`.

    Returns
    -------
    ModelFile
        Content of the model file.

    Raises
    ------
    FileNotFoundError
        If the folder contains no model file, and in the cases listed in :func:`model_folder`.
    ValueError
        If the file is damaged, if the folder contains a kind of model that is not in ``kinds``, or
        if the folder contains two models.

    Warns
    -----
    UserWarning
        If the readable JSON file next to the model file differs from the metadata in the model
        file. The JSON file is ignored.
    """
    folder, kinds = model_folder(source, **options), kinds or tuple(MODEL_FILES)
    paths = _files_in(folder)
    wanted = " or ".join(kinds)
    if not paths:
        expected_files = " or ".join(dict.fromkeys(MODEL_FILES[kind][0] for kind in kinds))
        raise FileNotFoundError(
            f"{folder} does not contain a saved {wanted}: {expected_files} does not exist. Pass "
            "the folder in which the model was saved."
        )
    if len(paths) > 1:
        raise ValueError(
            f"{folder} contains two models ({' and '.join(_WEIGHTS)}), so it is unclear which one "
            "to load. Move one of these files to another folder."
        )
    (file,) = paths
    model = unpack(file.read_bytes(), file)
    if model.kind not in kinds:
        raise ValueError(
            f"{folder} contains a saved {model.kind}, but a {wanted} is required. Pass the folder "
            f"of a {wanted}. To use the encoder in {folder}, pass this folder as encoder= to an "
            "estimator."
        )
    # The copy differs if it was edited, or if a process was killed between writing the two files.
    copy = folder / MODEL_FILES[model.kind][1]
    if copy.is_file() and copy.read_bytes() != _readable(model.description):
        checks.warn_user(
            f"{copy} differs from the description in {file.name} and is ignored. Save the model "
            f"again to update {copy.name}."
        )
    return model


#: Folder of the bundled encoders, which are created by ``docs/experiments/make_encoder.py``.
FOLDER = Path(__file__).parents[1] / "pretrained" / "shipped"

#: Name of a bundled encoder -> name of its folder, for encoders whose folder has a different name.
ALIASES = {row.name: row.place for row in names.ENCODERS.values() if row.name != row.place}


def bundled_names() -> list[str]:
    """Return the names of the folders of the bundled encoders.

    Examples
    --------
    >>> from braindecode_pars._common.model_files import bundled_names
    >>> bundled_names()
    ['features-eegmmidb', 'pars-sleep']
    """
    return sorted(file.parent.name for file in FOLDER.glob("*/encoder.safetensors"))


def bundled_folder(name: str) -> Path | None:
    """Return the folder of a bundled encoder; None if the name is unknown.

    Parameters
    ----------
    name : str
        Name of the encoder, or name of its folder.

    Examples
    --------
    >>> from braindecode_pars._common.model_files import bundled_folder
    >>> bundled_folder("small").name, bundled_folder("unknown")
    ('features-eegmmidb', None)
    """
    name = ALIASES.get(name, name)
    return FOLDER / name if name in bundled_names() else None


#: Prefix of the name of a model on the Hugging Face Hub. Models with this prefix are downloaded.
PREFIX = "hf://"
#: Patterns of the files that are downloaded.
PATTERNS = ["*.json", "*.safetensors"]
#: File name of the model card.
README = "README.md"
_REPO_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")


def model_folder(source: str | Path, *, download: bool = False, **options: Any) -> Path:
    """Return the folder of a pretrained model, and download the model if requested.

    Parameters
    ----------
    source : str | Path
        One of the following:

        - a folder, or the model file in the folder
        - the name of an encoder that is bundled with the package
        - ``"hf://owner/name"`` or ``"hf://owner/name@revision"``: a model on the Hugging Face Hub.
          It is downloaded if it is not in the local cache.
        - ``"owner/name"``: a model in the local cache of the Hugging Face Hub. It is only
          downloaded if ``download`` is True.

        An existing folder takes precedence over a model on the Hub with the same name and, if the
        folder contains a model, over a bundled encoder with the same name.
    download : bool
        Whether to download models that are specified as ``"owner/name"``.
    **options
        Options of ``huggingface_hub.snapshot_download``, such as ``revision`` or ``cache_dir``.

    Returns
    -------
    Path
        Path of the folder. The folder exists, but does not have to contain a model.

    Raises
    ------
    FileNotFoundError
        If the folder or model does not exist, or cannot be downloaded.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars._common.model_files import model_folder
    >>> model_folder(".") == Path(".")
    True
    >>> model_folder("hf://owner/name@main")  # doctest: +SKIP
    """
    folder = Path(source).expanduser()
    if folder.name in _WEIGHTS and folder.is_file():
        return folder.parent
    # Only a string can be a name of a bundled encoder. A Path is always a local folder.
    bundled = bundled_folder(source) if isinstance(source, str) else None
    # A folder takes precedence over a bundled encoder if it contains a model or an unfinished run.
    has_model = any(folder.glob("*.safetensors")) or (folder / "run.json").is_file()
    if folder.is_dir() and (bundled is None or has_model):
        return folder
    if bundled is not None:
        return bundled
    # Otherwise, the source may be the name of a model on the Hub.
    name = str(source)
    download = download or name.startswith(PREFIX)
    repo_id, _, revision = name.removeprefix(PREFIX).partition("@")
    if not _REPO_ID.fullmatch(repo_id):
        known = ", ".join(sorted({*bundled_names(), *ALIASES}))
        raise FileNotFoundError(
            f"{source} is not an existing folder, and not the name of a bundled encoder. Pass the "
            f"folder of a saved model, or the name of a bundled encoder: {known}."
        )
    options = {"local_files_only": not download, **options}
    if revision:
        options["revision"] = revision
    try:
        hub = names.extra_module("huggingface_hub")
        return Path(hub.snapshot_download(repo_id, allow_patterns=PATTERNS, **options))
    except ImportError:
        if download:
            raise
        raise FileNotFoundError(
            f"{source} is not an existing folder. Pass the folder of a saved model."
        ) from None
    except Exception as error:  # the Hub and the network raise errors of many types
        if not download:
            raise FileNotFoundError(
                f"{source} is neither an existing folder nor a model in the local cache of the "
                f"Hugging Face Hub. To download a model from the Hub, pass {PREFIX}{source}."
            ) from error
        # Only the first line of an error message of the Hub is meant for users.
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise FileNotFoundError(
            f"{source} could not be downloaded ({reason}). Check the name of the model and the "
            "internet connection."
        ) from error
