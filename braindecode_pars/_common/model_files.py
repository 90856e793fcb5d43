"""A model on disk: one safetensors file with a description and a checksum, in a folder of its own.

A folder may be the user's, one of the encoders in the package, or one on the Hub. Loading reports
which tensors were loaded.
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

from braindecode_pars._common import checks, computing, files


@dataclass(frozen=True)
class LoadReport:
    """Report on which tensors of a module were loaded from a file.

    Attributes
    ----------
    loaded : tuple of str
        Tensors of the module that were loaded.
    missing : tuple of str
        Tensors of the module that are not in the file; their values are unchanged.
    reshaped : tuple of str
        Tensors of the module that have another shape in the file; their values are unchanged.
    unexpected : tuple of str
        Tensors of the file that are not in the module.

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
        """Whether all tensors of the module and of the file were loaded."""
        return not (self.missing or self.reshaped or self.unexpected)

    def __str__(self) -> str:
        total = len(self.loaded) + len(self.missing) + len(self.reshaped)
        text = f"{len(self.loaded)} of {total} tensors loaded"
        for what in ("missing", "reshaped", "unexpected"):
            if names := getattr(self, what):
                text += f"; {len(names)} {what} (such as {names[0]})"
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
        New tensors, by their names in the module's ``state_dict``.
    source : Any
        Origin of the tensors, for the error message.
    strict : bool
        Whether names and shapes must all match. If False, the matching tensors are loaded.

    Returns
    -------
    LoadReport
        Names of the tensors that were loaded, and of those that were not.

    Raises
    ------
    ValueError
        With ``strict``, when tensors are missing, unexpected or of another shape; without it, when
        no tensor matches.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from braindecode_pars._common.model_files import load_tensors
    >>> tensors = {"weight": torch.zeros(1, 2)}
    >>> print(load_tensors(nn.Linear(2, 1), tensors, "a dict", strict=False))
    1 of 2 tensors loaded; 1 missing (such as bias)
    """
    # A tensor matches when the module has one of the same name and shape.
    expected = module.state_dict()
    fits = {
        name for name, t in tensors.items() if name in expected and t.shape == expected[name].shape
    }
    report = LoadReport(
        loaded=tuple(name for name in expected if name in fits),
        missing=tuple(name for name in expected if name not in tensors),
        reshaped=tuple(name for name in expected if name in tensors and name not in fits),
        unexpected=tuple(name for name in tensors if name not in expected),
    )
    if not fits or (strict and not report.complete):
        advice = "; strict=False loads the matching tensors" if fits else ""
        raise ValueError(
            f"The tensors of {source} do not match the {type(module).__name__}: {report}{advice}."
        )
    # The report above replaces torch's own check.
    module.load_state_dict({name: tensors[name] for name in report.loaded}, strict=False)
    return report


@contextmanager
def described_in(source: Any, what: str = "model") -> Iterator[None]:
    """Raise a ValueError with the file when what it describes cannot be built."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"{source} does not describe a {what} of this version: {error}. Load it with the "
            "version that saved it, or fit again."
        ) from error


Module = TypeVar("Module", bound=nn.Module)


def build_and_load(
    build: Callable[[], Module], tensors: Mapping[str, Tensor], source: Any, *, strict: bool = True
) -> tuple[Module, LoadReport]:
    """Build a module and load its tensors. Random draws of the caller are not changed.

    Parameters
    ----------
    build : callable
        Function that returns a new module.
    tensors, source, strict
        As in :func:`load_tensors`.

    Returns
    -------
    module : nn.Module
        The module.
    report : LoadReport
        As in :func:`load_tensors`.

    Raises
    ------
    ValueError
        As in :func:`load_tensors`; when the module cannot be built, such as one of a newer version.
    """
    with described_in(source), computing.seeded(0):  # the initial weights are replaced
        module = build()
    return module, load_tensors(module, tensors, source, strict=strict)


#: Version of the format. A file of a newer version is refused.
VERSION = 2
#: The only key of the metadata in the header, so that the bytes of a file do not depend on the
#: order of keys.
_KEY = "braindecode_pars"


@dataclass(frozen=True)
class ModelFile:
    """Content of a model file.

    Attributes
    ----------
    kind : str
        Kind of model, such as ``"PARSNet"``.
    description : dict
        JSON object that describes the model.
    tensors : dict of str to Tensor
        Tensors by name, on the CPU.
    source : Path | str
        Its file, for error messages.
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
        A safetensors file. The description and the SHA-256 are in its metadata.

    Raises
    ------
    ValueError
        When a tensor contains NaN or infinite values.

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
        raise ValueError(f"{bad[0]} contains NaN or infinite values, so the model is not saved.")
    entries = {"version": VERSION, "kind": kind, "description": files.as_read(description)}
    # Saved twice, because the checksum covers the header and is a part of it.
    header, data = _split(safetensors.torch.save(tensors))
    entries["sha256"] = _sha256(entries, header, data)
    return safetensors.torch.save(tensors, metadata={_KEY: json.dumps(entries)})


def unpack(content: bytes, source: str | Path) -> ModelFile:
    """Return what :func:`pack` has packed.

    Parameters
    ----------
    content : bytes
        Content of the file.
    source : path | str
        Origin of the content, for error messages.

    Raises
    ------
    ValueError
        When the file is damaged or was edited, is not a model of this package, or has another
        version.
    """
    try:
        tensors = safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{source} is damaged or not a safetensors file: {error}.") from error
    header, data = _split(content)
    metadata = header.pop("__metadata__", {})
    if _KEY not in metadata:
        raise ValueError(
            f"{source} has no description: it is of another program, or of version 0.1.0, which "
            "is no longer read; fit again."
        )
    try:
        entries = json.loads(metadata[_KEY])
        version, expected = entries["version"], entries.pop("sha256")
    except (KeyError, ValueError) as error:
        raise ValueError(f"{source} is damaged: its description is not readable.") from error
    # The version first: another version may have another checksum.
    if version != VERSION:
        raise ValueError(
            f"{source} has version {version} of the format, but this version of braindecode_pars "
            f"reads version {VERSION}; update braindecode_pars."
        )
    if _sha256(entries, header, data) != expected:
        raise ValueError(
            f"{source} is damaged or was edited: its content does not match its checksum. Copy or "
            "download it again, or save the model in a new folder."
        )
    return ModelFile(entries["kind"], entries["description"], tensors, source)


def _split(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return the header and the data of a safetensors file."""
    start = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:start]), memoryview(content)[start:]


def _sha256(entries: Mapping[str, Any], header: Mapping[str, Any], data: memoryview) -> str:
    """Return the checksum of the description, of the names and shapes of tensors, and of data."""
    content = hashlib.sha256(json.dumps([entries, header], sort_keys=True).encode())
    content.update(data)
    return content.hexdigest()


#: Kinds of models.
ENCODER, EMBEDDER, NETWORK, CLASSIFIER = "PatchEncoder", "PARSEmbedder", "PARSNet", "PARSClassifier"
FEW_LABELS, REGRESSOR = "FewLabelsClassifier", "PARSRegressor"
#: Kinds that predict labels of windows, and kinds with a network that was fine-tuned.
PREDICTORS, NETWORKS = (CLASSIFIER, FEW_LABELS, REGRESSOR), (NETWORK, CLASSIFIER, REGRESSOR)
#: Model file of each kind, and the readable copy beside it. The names of a network are those of
#: the Hugging Face Hub.
MODEL_FILES = {
    **dict.fromkeys((ENCODER, EMBEDDER), ("encoder.safetensors", "encoder.json")),
    **dict.fromkeys((*NETWORKS, FEW_LABELS), ("model.safetensors", "config.json")),
}
#: Entry of the description that an estimator adds to that of its network.
ENTRIES = {
    **dict.fromkeys((CLASSIFIER, FEW_LABELS), "classifier"),
    **{EMBEDDER: "embedder", REGRESSOR: "regressor"},
}
_WEIGHTS = ("encoder.safetensors", "model.safetensors")
#: Files of a new repository, such as a clone of one on the Hub. They are never written over.
_BESIDE = (".git", ".gitattributes", ".gitignore", "LICENSE", "README.md")
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
        ``share``, any other file, also one that another process is writing.
    """
    kinds = kinds_in(folder)
    if others := {*kinds} - {kind}:
        raise ValueError(f"{folder} contains a saved {min(others)}; save the {kind} elsewhere.")
    beside = (*_BESIDE, *MODEL_FILES[kind]) if kinds else _BESIDE
    files.check_may_write(
        folder, f"a saved {kind}", is_ours=bool(kinds) and not share, beside=beside
    )
    if share and (leftovers := files.remove_abandoned(folder, at_once=True)):
        # The file may contain the names of subjects, which a save without share writes.
        raise ValueError(
            f"{folder} contains {leftovers[0].name}, into which another process may be writing; "
            "wait until it has ended, or remove it."
        )


def kinds_in(folder: Path) -> list[str]:
    """Return the kinds of the models in a folder.

    Raises
    ------
    ValueError
        When a model file is damaged or of another program.
    """
    return [unpack(file.read_bytes(), file).kind for file in _files_in(folder)]


def _files_in(folder: Path) -> list[Path]:
    return [folder / name for name in _WEIGHTS if (folder / name).is_file()]


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
    weights, readable = MODEL_FILES[kind]
    content = pack(kind, description, tensors)
    files.replace_files(folder, {weights: content, readable: _readable(description)})
    return folder


def _readable(description: Mapping[str, Any]) -> bytes:
    return files.to_json(description.get("network", description)).encode()


def read_model(source: str | Path, *kinds: str, **options: Any) -> ModelFile:
    """Read a model.

    Parameters
    ----------
    source : str | Path
        Folder or name of the model, as in :func:`model_folder`.
    *kinds : str
        Accepted kinds; all without any.
    **options
        Options of :func:`model_folder`.

    Returns
    -------
    ModelFile
        The model, with one of these kinds.

    Raises
    ------
    FileNotFoundError
        When the folder contains no model file, or as in :func:`model_folder`.
    ValueError
        When the file is damaged, or when the folder contains another kind of model or two models.

    Warns
    -----
    UserWarning
        When the readable copy differs from the model file, which alone is read.
    """
    folder, kinds = model_folder(source, **options), kinds or tuple(MODEL_FILES)
    paths = _files_in(folder)
    wanted = " or ".join(kinds)
    if not paths:
        names = " or ".join(dict.fromkeys(MODEL_FILES[kind][0] for kind in kinds))
        raise FileNotFoundError(f"{folder} does not contain a saved {wanted}: it has no {names}.")
    if len(paths) > 1:
        raise ValueError(
            f"{folder} contains two models, {' and '.join(_WEIGHTS)}; move one of them into "
            "another folder."
        )
    (file,) = paths
    model = unpack(file.read_bytes(), file)
    if model.kind not in kinds:
        advice = _ONLY_AN_ENCODER if model.kind == ENCODER else ""
        raise ValueError(f"{folder} contains a saved {model.kind}, not a {wanted}{advice}.")
    # Also after a save that was killed between the two files.
    copy = folder / MODEL_FILES[model.kind][1]
    if copy.is_file() and copy.read_bytes() != _readable(model.description):
        checks.warn_user(f"{copy} differs from the description in {file.name} and is ignored.")
    return model


#: Folder of the encoders; ``docs/experiments/make_encoder.py`` writes them.
FOLDER = Path(__file__).parents[1] / "pretrained" / "shipped"

#: Further names of encoders. ``"small"`` was chosen on development subjects.
ALIASES = {"small": "features-eegmmidb"}


def packaged_names() -> list[str]:
    """Return the names of the encoders in the package, without aliases.

    Examples
    --------
    >>> from braindecode_pars._common.model_files import packaged_names
    >>> "unknown" in packaged_names()
    False
    """
    return sorted(file.parent.name for file in FOLDER.glob("*/encoder.safetensors"))


def packaged_folder(name: str) -> Path | None:
    """Return the folder of an encoder in the package; None for an unknown name.

    Parameters
    ----------
    name : str
        Name of the encoder, or an alias.

    Examples
    --------
    >>> from braindecode_pars._common.model_files import packaged_folder
    >>> packaged_folder("unknown") is None
    True
    """
    name = ALIASES.get(name, name)
    return FOLDER / name if name in packaged_names() else None


PREFIX = "hf://"
PATTERNS = ["*.json", "*.safetensors"]
README = "README.md"
_REPO_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")


def model_folder(source: str | Path, *, download: bool = False, **options: Any) -> Path:
    """Return the folder of a pretrained model; download the model if requested.

    Parameters
    ----------
    source : str | Path
        Path of a folder or of the model file in it, name of an encoder in the package, or name of a
        model on the Hugging Face Hub. An existing folder wins. ``"hf://owner/name"`` and
        ``"hf://owner/name@revision"`` are downloaded unless they are in the local cache of the Hub.
        ``"owner/name"`` is searched for in this cache only.
    download : bool
        Whether ``"owner/name"`` is downloaded too.
    **options
        Options of ``huggingface_hub.snapshot_download``, such as ``revision`` or ``cache_dir``.

    Returns
    -------
    Path
        An existing folder.

    Raises
    ------
    FileNotFoundError
        When the folder or model does not exist, or cannot be downloaded. The message lists the
        encoders in the package.
    ImportError
        When a download is requested and ``huggingface_hub`` is not installed.

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
    # Only a string is a name; a Path is the user's own.
    packaged = packaged_folder(source) if isinstance(source, str) else None
    # A folder wins if it has a model, or will have one at the end of a run.
    has_model = any(folder.glob("*.safetensors")) or (folder / "run.json").is_file()
    if folder.is_dir() and (packaged is None or has_model):
        return folder
    if packaged is not None:
        return packaged
    if folder.exists():
        raise FileNotFoundError(f"{source} is a file; pass the folder that contains it.")
    # Anything else may be the name of a model on the Hub.
    name = str(source)
    download = download or name.startswith(PREFIX)
    repo_id, _, revision = name.removeprefix(PREFIX).partition("@")
    if not _REPO_ID.fullmatch(repo_id):
        known = ", ".join(sorted({*packaged_names(), *ALIASES}))
        raise FileNotFoundError(
            f"{source} is not the folder of a saved model: the folder does not exist. The encoders "
            f"in the package are {known}."
        )
    options = {"local_files_only": not download, **options}
    if revision:
        options["revision"] = revision
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(repo_id, allow_patterns=PATTERNS, **options))
    except Exception as error:  # the Hub and the network raise many types of errors
        if not download:
            raise FileNotFoundError(
                f"{source} is neither the folder of a saved model nor a downloaded model of the "
                f"Hugging Face Hub; to download it, pass {PREFIX}{source}."
            ) from error
        if isinstance(error, ImportError):
            raise
        # The other lines of an error of the Hub are for its developers.
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise FileNotFoundError(f"{source} could not be downloaded: {reason}") from error
